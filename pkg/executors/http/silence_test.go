package http

import (
	"encoding/json"
	"fmt"
	"io"
	nethttp "net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// alertmanager behaves as Alertmanager 0.27 does with silences: a silence that is
// prolonged gets another id, one that is over cannot be deleted.
type alertmanager struct {
	*server
	mu       sync.Mutex
	now      time.Time
	silences map[string]silence
	asked    []string
	answer   func(w nethttp.ResponseWriter, r *nethttp.Request) bool // true: it answered instead
}

func newAlertmanager(t *testing.T) *alertmanager {
	t.Helper()
	a := &alertmanager{silences: map[string]silence{}, now: time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)}
	a.server = newServer(t, a.serve)
	return a
}

func (a *alertmanager) serve(w nethttp.ResponseWriter, r *nethttp.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r.Method+" "+r.URL.String())
	if a.answer != nil && a.answer(w, r) {
		return
	}
	id := strings.TrimPrefix(r.URL.Path, "/api/v2/silence/")
	one, there := a.silences[id]
	switch {
	case r.Method == nethttp.MethodPost:
		a.set(w, r)
	case r.URL.Path == "/api/v2/silences":
		all := []silence{}
		for id, s := range a.silences {
			all = append(all, a.with(id, s))
		}
		_ = json.NewEncoder(w).Encode(all)
	case !there:
		w.WriteHeader(nethttp.StatusNotFound)
	case r.Method == nethttp.MethodGet:
		_ = json.NewEncoder(w).Encode(a.with(id, one))
	case !one.EndsAt.After(a.now):
		nethttp.Error(w, `"silence `+id+` already expired"`, nethttp.StatusInternalServerError)
	default:
		one.EndsAt = a.now
		a.silences[id] = one
	}
}

func (a *alertmanager) with(id string, s silence) silence {
	s.ID = id
	state := "active"
	if !s.EndsAt.After(a.now) {
		state = "expired"
	}
	s.Status = &struct {
		State string `json:"state"`
	}{state}
	return s
}

func (a *alertmanager) set(w nethttp.ResponseWriter, r *nethttp.Request) {
	var s silence
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		nethttp.Error(w, err.Error(), nethttp.StatusBadRequest)
		return
	}
	if s.ID != "" {
		old, there := a.silences[s.ID]
		if !there {
			w.WriteHeader(nethttp.StatusNotFound)
			return
		}
		old.EndsAt = a.now
		a.silences[s.ID] = old
	}
	id := fmt.Sprintf("id-%d", len(a.silences)+1)
	a.silences[id] = s
	_ = json.NewEncoder(w).Encode(map[string]string{"silenceID": id})
}

// active are the silences in force.
func (a *alertmanager) active() []silence {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []silence
	for _, s := range a.silences {
		if s.EndsAt.After(a.now) {
			out = append(out, s)
		}
	}
	return out
}

func (a *alertmanager) step() executors.Call {
	no := false
	return callWith(&plan.SilenceProperties{
		Alertmanager: a.URL, Comment: "database upgrade",
		Matchers: []plan.SilenceMatcher{{Name: "namespace", Value: "shop"}, {Name: "pod", Value: `orders-\d+ "a"`, IsRegex: true}, {Name: "severity", Value: "critical", IsEqual: &no}},
		Headers:  map[string]plan.HeaderValue{"Authorization": {SecretKeyRef: &document.SecretKeyRef{Name: "hook", Key: "token"}}},
	})
}

func TestASilenceFromItsBeginningToItsEnd(t *testing.T) {
	a := newAlertmanager(t)
	call := a.step()
	out := Silence{}.Pass(t.Context(), call)
	if out.State != executors.Done || !out.WakeAt.Equal(call.Now.Add(5*time.Minute)) || out.Outputs["silenceID"] != "id-1" || out.Memory == nil {
		t.Fatalf("made: %+v", out)
	}
	want := []silence{{
		Matchers: []matcher{{"namespace", "shop", false, true}, {"pod", `orders-\d+ "a"`, true, true}, {"severity", "critical", false, false}},
		StartsAt: call.Now, EndsAt: call.Now.Add(10 * time.Minute), CreatedBy: "kubectl-maint",
		Comment: "database upgrade — plan shop/orders, run maint-run-orders-abc [maint-run-orders-abc/finally/tell]",
	}}
	if diff := cmp.Diff(want, a.active()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if lookup := "GET /api/v2/silences?filter=namespace%3D%22shop%22&filter=pod%3D~%22orders-%5C%5Cd%2B+%5C%22a%5C%22%22&filter=severity%21%3D%22critical%22"; a.asked[0] != lookup {
		t.Errorf("asked %s\nwant  %s", a.asked[0], lookup)
	}

	call.Recorded.Memory, a.asked = out.Memory, nil
	if out = (Silence{}).Keep(t.Context(), call); out.State != executors.Done || out.Memory != nil || len(a.asked) > 0 || !out.WakeAt.Equal(call.Now.Add(5*time.Minute)) {
		t.Errorf("kept too early: %+v, asked %v", out, a.asked)
	}
	call.Now = call.Now.Add(5 * time.Minute)
	a.now = call.Now
	out = Silence{}.Keep(t.Context(), call)
	if active := a.active(); out.State != executors.Done || !out.WakeAt.Equal(call.Now.Add(5*time.Minute)) || len(active) != 1 || !active[0].EndsAt.Equal(call.Now.Add(10*time.Minute)) || !strings.Contains(string(out.Memory), `"id":"id-2"`) {
		t.Fatalf("renewed: %+v (%s)", out, out.Memory)
	}

	call.Recorded.Memory = out.Memory
	for _, says := range []string{"is over", "over already"} {
		if out = (Silence{}).Release(t.Context(), call); out.State != executors.Done || len(a.active()) != 0 || !strings.Contains(out.Message, says) {
			t.Errorf("released: %+v, want %q", out, says)
		}
	}
	delete(a.silences, "id-2")
	if out = (Silence{}).Release(t.Context(), call); out.State != executors.Done || !strings.Contains(out.Message, "over already") {
		t.Errorf("released what is gone: %+v", out)
	}
}

func TestASilenceThatNobodyRecorded(t *testing.T) {
	a := newAlertmanager(t)
	call := a.step()
	sibling := call
	sibling.Path = "finally/tell-2"
	first, other := (Silence{}).Pass(t.Context(), call), (Silence{}).Pass(t.Context(), sibling)
	again := Silence{}.Pass(t.Context(), call)
	if again.State != executors.Done || len(a.active()) != 2 || string(again.Memory) != string(first.Memory) || string(other.Memory) == string(first.Memory) {
		t.Errorf("found again: %+v (%s), made: %s, beside it: %s", again, again.Memory, first.Memory, other.Memory)
	}
	if out := (Silence{}).Release(t.Context(), call); out.State != executors.Done || len(a.active()) != 1 {
		t.Errorf("released what nobody recorded: %+v", out)
	}
	if out := (Silence{}).Release(t.Context(), call); out.State != executors.Done || !strings.Contains(out.Message, "no silence is left") {
		t.Errorf("released nothing: %+v", out)
	}
}

func TestASilenceThatAlertmanagerForgot(t *testing.T) {
	a := newAlertmanager(t)
	call := a.step()
	call.Recorded.Memory = Silence{}.Pass(t.Context(), call).Memory
	clear(a.silences)
	call.Now = call.Now.Add(6 * time.Minute)
	a.now = call.Now
	if out := (Silence{}).Keep(t.Context(), call); out.State != executors.Done || len(a.active()) != 1 || out.Memory == nil {
		t.Errorf("%+v", out)
	}
}

func TestWhatAlertmanagerMayAnswer(t *testing.T) {
	says := func(status int, body string) func(nethttp.ResponseWriter, *nethttp.Request) bool {
		return func(w nethttp.ResponseWriter, r *nethttp.Request) bool {
			w.Header().Set("Location", "/api/v2/silences")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, strings.ReplaceAll(body, "ECHO", r.Header.Get("Authorization")))
			return true
		}
	}
	toPost := func(answer func(nethttp.ResponseWriter, *nethttp.Request) bool) func(nethttp.ResponseWriter, *nethttp.Request) bool {
		return func(w nethttp.ResponseWriter, r *nethttp.Request) bool {
			return r.Method == nethttp.MethodPost && answer(w, r)
		}
	}
	for name, c := range map[string]struct {
		answer func(nethttp.ResponseWriter, *nethttp.Request) bool
		final  bool
		reason string
		says   string
	}{
		"503 to the search":                    {says(503, "starting ECHO"), false, "Status", "503: starting ***"},
		"429 to the search":                    {says(429, ""), false, "Status", "429"},
		"401 to the search":                    {says(401, "who?"), true, "Status", "401: who?"},
		"no JSON to the search":                {says(200, "<html>"), false, "BadAnswer", "is the URL right?"},
		"redirects without end":                {says(302, ""), false, "Network", "more than 5 redirects"},
		"400 to the silence":                   {toPost(says(400, "bad matcher ECHO")), true, "Status", "400: bad matcher ***"},
		"a redirect of the silence":            {toPost(says(307, "")), true, "Status", "a redirect, which is not followed"},
		"500 to the silence":                   {toPost(says(500, "")), false, "Status", "500"},
		"no JSON to the silence":               {toPost(says(200, "thanks")), false, "BadAnswer", "is the URL right?"},
		"no id":                                {toPost(says(200, "{}")), false, "BadAnswer", "answered 200: {}"},
		"an answer to the silence without end": {toPost(says(200, strings.Repeat(" ", MaxBody)+"{}")), false, "BadAnswer", "answered 200"},
		"nothing at all":                       {func(_ nethttp.ResponseWriter, r *nethttp.Request) bool { hangs(nil, r); return true }, false, "Network", "no answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAlertmanager(t)
			a.answer = c.answer
			call := a.step()
			call.Clients.HTTP.Timeout = 300 * time.Millisecond
			for what, out := range map[string]executors.Outcome{"pass": Silence{}.Pass(t.Context(), call), "keep": Silence{}.Keep(t.Context(), call)} {
				if out.State != executors.Failed || out.Permanent != c.final || out.Reason != c.reason || !strings.Contains(out.Message, c.says) || strings.Contains(fmt.Sprintf("%+v", out), token) {
					t.Errorf("%s: %+v, want %q", what, out, c.says)
				}
				if what == "keep" && !out.WakeAt.Equal(call.Now.Add(30*time.Second)) {
					t.Errorf("renews again at %s", out.WakeAt)
				}
			}
		})
	}
}

func TestAListOfSilencesWithoutEndIsNotRead(t *testing.T) {
	a := newAlertmanager(t)
	a.answer = func(w nethttp.ResponseWriter, r *nethttp.Request) bool {
		if r.Method == nethttp.MethodGet {
			_, _ = io.WriteString(w, strings.Repeat("x", MaxBody+1))
		}
		return r.Method == nethttp.MethodGet
	}
	if out := (Silence{}).Pass(t.Context(), a.step()); out.State != executors.Done || len(a.active()) != 1 {
		t.Errorf("%+v", out)
	}
}

func TestASilenceThatCannotBeReleased(t *testing.T) {
	a := newAlertmanager(t)
	call := a.step()
	call.Recorded.Memory = Silence{}.Pass(t.Context(), call).Memory
	a.answer = func(w nethttp.ResponseWriter, r *nethttp.Request) bool {
		w.WriteHeader(nethttp.StatusInternalServerError)
		return true
	}
	if out := (Silence{}).Release(t.Context(), call); out.State != executors.Failed || out.Permanent || !strings.Contains(out.Message, "answered 500") {
		t.Errorf("%+v", out)
	}
}
