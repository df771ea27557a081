package metrics

import (
	"bufio"
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// scrape is what a scraper reads: the value of each series of ours.
func scrape(t *testing.T, m *Metrics) map[string]string {
	t.Helper()
	got := httptest.NewRecorder()
	m.Handler(func() bool { return true }, func(*bufio.Writer) {}, nil).ServeHTTP(got, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	out := map[string]string{}
	for _, line := range strings.Split(got.Body.String(), "\n") {
		if at := strings.LastIndex(line, " "); at > 0 && (strings.HasPrefix(line, "maint_") || strings.HasPrefix(line, "rest_")) {
			out[line[:at]] = line[at+1:]
		}
	}
	return out
}

// instant is the beginning of the tests' time.
func instant() time.Time { return time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC) }

func later(d time.Duration) *time.Time {
	at := instant().Add(d)
	return &at
}

// everything counts one of each thing that is counted.
func everything() *Metrics {
	m := New("v1")
	m.Leads(true)
	m.Panicked()
	m.Request("GET", "200")
	m.RunStarted(run.Run{Request: run.Request{At: instant()}}, *later(90 * time.Second))
	m.RunEnded(run.Run{Request: run.Request{Kind: run.ByToken}}, run.Journal{Phase: run.Succeeded, StartedAt: later(0), FinishedAt: later(time.Minute)})
	m.StepPass(run.Run{}, "scale", executors.Done, 2*time.Second)
	m.NodeRequests(nil)
	m.Hibernated(map[string]int{"workload": 1})
	m.DrainEnded(instant(), *later(time.Minute), drain.Outcome{Evicted: 3, Forced: 1, Gone: 2})
	m.CountTroubles(troubled(true))
	m.DrainsBlocked([]BlockedDrain{{Node: "n1"}, {Namespace: "shop", Plan: "nightly", Node: "n2"}})
	m.CertificateSeen(executors.Certificate{Namespace: "shop", Endpoint: "fn:9443", Side: executors.ServerSide}, *later(time.Hour))
	m.CountWatches(func() int { return 3 }, func() int { return 2 }, func() int { return 1 })
	m.CountDocuments(func() []Documents { return []Documents{{"plan", 5, 1}, {"policy", 2, 0}} }, func(p run.Phase) int { return map[run.Phase]int{run.Pending: 4, run.Running: 2}[p] })
	return m
}

func TestWhatIsCounted(t *testing.T) {
	got := scrape(t, everything())
	for series, want := range map[string]string{
		`maint_leading`:                                                                                          "1",
		`maint_internal_errors_total`:                                                                            "1",
		`rest_client_requests_total{code="200",method="GET"}`:                                                    "1",
		`maint_start_lateness_seconds_sum`:                                                                       "90",
		`maint_slot_results_total{reason="manual",result="Ran"}`:                                                 "1",
		`maint_run_duration_seconds_sum{result="Succeeded"}`:                                                     "60",
		`maint_step_duration_seconds_sum{result="done",type="scale"}`:                                            "2",
		`maint_drain_seconds_sum`:                                                                                "60",
		`maint_evictions_total{result="evicted"}`:                                                                "3",
		`maint_evictions_total{result="forced"}`:                                                                 "1",
		`maint_evictions_total{result="gone"}`:                                                                   "2",
		`maint_evictions_total{result="left"}`:                                                                   "0",
		`maint_watches{for="targets"}`:                                                                           "3",
		`maint_watches{for="steps"}`:                                                                             "2",
		`maint_watches{for="gates"}`:                                                                             "1",
		`maint_documents{kind="plan",valid="true"}`:                                                              "5",
		`maint_documents{kind="plan",valid="false"}`:                                                             "1",
		`maint_documents{kind="policy",valid="true"}`:                                                            "2",
		`maint_documents{kind="policy",valid="false"}`:                                                           "0",
		`maint_runs{phase="Pending"}`:                                                                            "4",
		`maint_runs{phase="Running"}`:                                                                            "2",
		`maint_config_valid`:                                                                                     "1",
		`maint_node_requests{phase="Draining"}`:                                                                  "0",
		`maint_slot_missed_timestamp_seconds{namespace="shop",object="nightly"}`:                                 seconds(later(0)),
		`maint_run_failed_timestamp_seconds{namespace="shop",object="nightly"}`:                                  seconds(later(time.Minute)),
		`maint_not_put_back{kind="Plan",namespace="shop",object="nightly"}`:                                      "2",
		`maint_not_put_back{kind="HibernatePlan",namespace="shop",object="nights"}`:                              "1",
		`maint_asleep_past_wake_seconds{namespace="shop",object="nights"}`:                                       "300",
		`maint_drain_blocked{namespace="",node="n1",object=""}`:                                                  "1",
		`maint_drain_blocked{namespace="shop",node="n2",object="nightly"}`:                                       "1",
		`maint_policy_enforced{namespace="shop",object="hours"}`:                                                 "0",
		`maint_function_certificate_expiry_timestamp_seconds{endpoint="fn:9443",namespace="shop",side="server"}`: seconds(later(time.Hour)),
	} {
		if got[series] != want {
			t.Errorf("%s is %q, want %s", series, got[series], want)
		}
	}
}

// The page that operators read names each metric, with its labels.
func TestThePageOfOperatorsNamesEachMetric(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	word := regexp.MustCompile("`([^`]+)`")
	told := map[string][]string{}
	for _, line := range strings.Split(string(page), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`maint_") {
			continue
		}
		labels := []string{}
		for _, found := range word.FindAllStringSubmatch(cells[2], -1) {
			labels = append(labels, found[1])
		}
		slices.Sort(labels)
		told[word.FindStringSubmatch(cells[1])[1]] = labels
	}
	families, err := everything().registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	is := map[string][]string{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "maint_") {
			continue
		}
		labels := []string{}
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		is[f.GetName()] = labels
	}
	maps.DeleteFunc(told, func(name string, _ []string) bool { return name == "maint_notifications_total" }) // another room's
	if !cmp.Equal(told, is) {
		t.Error(cmp.Diff(told, is))
	}
}

func TestWhatIsNotCounted(t *testing.T) {
	m := New("v1")
	m.RunEnded(run.Run{Request: run.Request{Kind: run.ByToken, DryRun: true}}, run.Journal{Phase: run.Aborted, FinishedAt: later(0)}) // it had not begun
	m.RunStarted(run.Run{Request: run.Request{At: instant(), DryRun: true}}, *later(time.Minute))
	m.RunEnded(run.Run{Request: run.Request{Kind: run.ByToken, DryRun: true}}, run.Journal{Phase: run.Succeeded, StartedAt: later(0), FinishedAt: later(time.Minute)})
	m.RunStarted(run.Run{Request: run.Request{At: *later(time.Hour)}}, instant()) // the clock went back
	m.StepPass(run.Run{Request: run.Request{DryRun: true}}, "wait", executors.Failed, time.Second)
	m.NodeRequests([]nodes.Node{{Asked: []nodes.Asked{{}}}}) // nothing was said of it yet
	for series, value := range scrape(t, m) {
		counts := strings.HasPrefix(series, "maint_slot_results") || strings.HasPrefix(series, "maint_run_duration") || series == "maint_start_lateness_seconds_sum" ||
			strings.HasPrefix(series, "maint_node_requests") || strings.HasPrefix(series, "maint_step_duration")
		if counts && value != "0" {
			t.Errorf("%s %s", series, value)
		}
	}
}

// Prometheus takes a counter that appears as 1 for one that has not increased.
func TestCountersAreThereBeforeAnythingIsCounted(t *testing.T) {
	got := scrape(t, New("v1"))
	for _, series := range []string{
		`maint_slot_results_total{reason="schedule",result="Ran"}`, `maint_slot_results_total{reason="create",result="Ran"}`, `maint_slot_results_total{reason="busy",result="Skipped"}`,
		`maint_slot_results_total{reason="deadline",result="Missed"}`, `maint_slot_results_total{reason="refused",result="Missed"}`,
		`maint_run_duration_seconds_sum{result="Failed"}`, `maint_run_duration_seconds_sum{result="Replaced"}`, `maint_evictions_total{result="evicted"}`,
	} {
		if got[series] != "0" {
			t.Errorf("%s is %q", series, got[series])
		}
	}
}

func TestSlotsThatEndedWithoutARunAreCountedByTheirReasons(t *testing.T) {
	m := New("v1")
	m.SlotsEnded([]ledger.Entry{{Result: run.Missed, Reason: "deadline", Count: 2}, {Result: run.Skipped, Reason: "skip", Count: 1}, {Result: run.Missed, Reason: "superseded", Count: 1}})
	m.SlotsEnded(nil)
	m.SlotsEnded([]ledger.Entry{{Result: run.Missed, Reason: "deadline", Count: 1}})
	waited := run.Run{Request: run.Request{Kind: run.BySchedule}}
	m.RunEnded(waited, run.Journal{Phase: run.Aborted, FinishedAt: later(0), End: &run.End{Phase: run.Aborted, Result: run.Missed, Reason: "window"}})
	m.RunEnded(waited, run.Journal{Phase: run.Aborted, FinishedAt: later(0), End: &run.End{Phase: run.Aborted, Result: run.Skipped, Reason: "skip"}})
	m.RunEnded(waited, run.Journal{Phase: run.Aborted, FinishedAt: later(0)})
	got := scrape(t, m)
	maps.DeleteFunc(got, func(series, value string) bool { return !strings.HasPrefix(series, "maint_slot") || value == "0" })
	want := map[string]string{
		`maint_slot_results_total{reason="deadline",result="Missed"}`: "3", `maint_slot_results_total{reason="superseded",result="Missed"}`: "1",
		`maint_slot_results_total{reason="skip",result="Skipped"}`:  "2",
		`maint_slot_results_total{reason="window",result="Missed"}`: "1", `maint_slot_results_total{reason="aborted",result="Skipped"}`: "1",
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestRequestsForNodesAreCountedByPhase(t *testing.T) {
	m := New("v1")
	ask := func(p nodes.Phase, gone bool) nodes.Asked {
		return nodes.Asked{Status: &nodes.Status{Phase: p}, Gone: gone}
	}
	m.NodeRequests([]nodes.Node{{Asked: []nodes.Asked{ask(nodes.Draining, false), ask(nodes.Draining, true)}}, {Asked: []nodes.Asked{ask(nodes.Draining, false), ask(nodes.Ready, false)}}})
	m.NodeRequests([]nodes.Node{{Asked: []nodes.Asked{ask(nodes.Draining, false), ask(nodes.Pending, false)}}})
	got := scrape(t, m)
	for phase, want := range map[nodes.Phase]string{nodes.Draining: "1", nodes.Pending: "1", nodes.Ready: "0"} {
		if series := `maint_node_requests{phase="` + string(phase) + `"}`; got[series] != want {
			t.Errorf("%s is %s, want %s", series, got[series], want)
		}
	}
}

func TestSwitches(t *testing.T) {
	m := New("v1")
	m.Leads(true)
	m.Leads(false)
	m.ConfigRead(false)
	if got := scrape(t, m); got["maint_leading"] != "0" || got["maint_config_valid"] != "0" {
		t.Errorf("%v", got)
	}
	m.ConfigRead(true)
	if got := scrape(t, m); got["maint_config_valid"] != "1" {
		t.Errorf("%v", got)
	}
	for state, word := range map[executors.State]string{executors.NotYet: "not-yet", executors.Record: "recorded", executors.Done: "done", executors.Failed: "failed"} {
		m.StepPass(run.Run{}, "wait", state, time.Second)
		if scrape(t, m)[`maint_step_duration_seconds_count{result="`+word+`",type="wait"}`] != "1" {
			t.Errorf("a pass that is %s is not counted", word)
		}
	}
}

func TestWhatIsServed(t *testing.T) {
	ready := false
	m := New("v1")
	m.Register(prometheus.NewGauge(prometheus.GaugeOpts{Name: "maint_other_room", Help: "h"}))
	h := m.Handler(func() bool { return ready }, func(w *bufio.Writer) { _, _ = w.WriteString("change_management_change_pending 1\n") }, nil)
	get := func(path string, head http.Header) *httptest.ResponseRecorder {
		got, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
		req.Header = head
		h.ServeHTTP(got, req)
		return got
	}
	if got := get("/healthz", http.Header{}); got.Code != http.StatusOK {
		t.Errorf("an agent that lives says %d", got.Code)
	}
	if got := get("/readyz", http.Header{}); got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), "not ready") {
		t.Errorf("an agent that is not ready says %d: %s", got.Code, got.Body)
	}
	ready = true
	if got := get("/readyz", http.Header{}); got.Code != http.StatusOK {
		t.Errorf("an agent that is ready says %d", got.Code)
	}
	plain := get("/metrics", http.Header{"Accept": {"application/vnd.google.protobuf"}})
	body := plain.Body.String()
	if !strings.Contains(body, "maint_other_room 0") || !strings.HasSuffix(body, "change_management_change_pending 1\n") || plain.Header().Get("Content-Encoding") != "" {
		t.Errorf("served: %s", body)
	}
	packed := get("/metrics", http.Header{"Accept-Encoding": {"gzip"}})
	read, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(read)
	if err != nil || packed.Header().Get("Content-Encoding") != "gzip" || !strings.HasSuffix(string(text), "change_management_change_pending 1\n") {
		t.Errorf("packed: %v, %s", err, text)
	}
}
