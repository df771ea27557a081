package agent

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// metrics are the agent's own, in a registry of their own. Their labels are
// words of ours, so their number does not grow with the users' documents.
type metrics struct {
	registry  *prometheus.Registry
	leading   prometheus.Gauge
	panics    prometheus.Counter
	slots     *prometheus.CounterVec
	lateness  prometheus.Histogram
	durations *prometheus.HistogramVec
	steps     *prometheus.HistogramVec
	http      *prometheus.CounterVec
	configOK  prometheus.Gauge
	nodeAsks  *prometheus.GaugeVec
	drains    prometheus.Histogram
	evictions *prometheus.CounterVec
}

func newMetrics(version string) *metrics {
	m := &metrics{
		registry:  prometheus.NewRegistry(),
		leading:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "maint_leading", Help: "1 while this replica holds the lease."}),
		panics:    prometheus.NewCounter(prometheus.CounterOpts{Name: "maint_internal_errors_total", Help: "Errors of the agent itself that one object caused."}),
		slots:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "maint_slot_results_total", Help: "Slots, and runs without one, by how they ended."}, []string{"result", "reason"}),
		lateness:  prometheus.NewHistogram(prometheus.HistogramOpts{Name: "maint_start_lateness_seconds", Help: "From a slot, or a request, to the start of its run.", Buckets: []float64{.01, .05, .1, .5, 1, 5, 15, 60, 300, 3600}}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "maint_run_duration_seconds", Help: "From a run's first step to its end.", Buckets: prometheus.ExponentialBuckets(.1, 4, 10)}, []string{"result"}),
		steps:     prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "maint_step_duration_seconds", Help: "One pass over a step.", Buckets: prometheus.ExponentialBuckets(.001, 4, 10)}, []string{"type", "result"}),
		http:      prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rest_client_requests_total", Help: "Requests to the API server, by method and status."}, []string{"method", "code"}),
		configOK:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "maint_config_valid", Help: "1 while the newest agent configuration is understood."}),
		nodeAsks:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "maint_node_requests", Help: "Requests for nodes, by phase."}, []string{"phase"}),
		drains:    prometheus.NewHistogram(prometheus.HistogramOpts{Name: "maint_drain_seconds", Help: "Drains for requestors, from their begin to their end.", Buckets: []float64{1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600}}),
		evictions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "maint_evictions_total", Help: "Pods of drains for requestors that ended, by what became of them."}, []string{"result"}),
	}
	m.configOK.Set(1)
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "maint_build_info", Help: "Version of the agent and of its zone data."}, []string{"version", "tzdata"})
	build.WithLabelValues(version, schedule.ZoneVersion()).Set(1)
	m.registry.MustRegister(m.leading, m.panics, m.slots, m.lateness, m.durations, m.steps, m.http, m.configOK, m.nodeAsks, m.drains, m.evictions, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// nodes counts the requests as they stand.
func (m *metrics) nodes(all []nodes.Node) {
	count := map[nodes.Phase]int{
		nodes.Pending: 0, nodes.Scheduled: 0, nodes.Cordoning: 0, nodes.WaitingForPods: 0, nodes.Draining: 0, nodes.Ready: 0, nodes.RequestorFailed: 0, nodes.Uncordoned: 0, nodes.Invalid: 0,
	}
	for _, n := range all {
		for _, asked := range n.Asked {
			if asked.Status != nil && !asked.Gone {
				count[asked.Status.Phase]++
			}
		}
	}
	for phase, n := range count {
		m.nodeAsks.WithLabelValues(string(phase)).Set(float64(n))
	}
}

// drained tells of a drain for requestors that ended.
func (m *metrics) drained(since, now time.Time, o drain.Outcome) {
	m.drains.Observe(now.Sub(since).Seconds())
	for result, n := range map[string]int{"evicted": o.Evicted, "forced": o.Forced, "gone": o.Gone, "left": o.Left} {
		m.evictions.WithLabelValues(result).Add(float64(n))
	}
}

// watches exports how many watches are open on the plans' behalf: each costs the
// API server too.
func (m *metrics) watches(targets, steps, gates func() int) {
	for name, count := range map[string]func() int{"targets": targets, "steps": steps, "gates": gates} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "maint_watches", Help: "Watches open as plans' ServiceAccounts.", ConstLabels: prometheus.Labels{"for": name},
		}, func() float64 { return float64(count()) }))
	}
}

// documents exports how many plans are known.
func (m *metrics) documents(p *plans, r *runs) {
	for _, valid := range []bool{true, false} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "maint_documents", Help: "Documents, valid or not.", ConstLabels: prometheus.Labels{"kind": "plan", "valid": strconv.FormatBool(valid)},
		}, func() float64 {
			good, bad := p.count()
			if valid {
				return float64(good)
			}
			return float64(bad)
		}))
	}
	for _, phase := range []plan.RunPhase{plan.RunPending, plan.RunRunning} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "maint_runs", Help: "Live runs by phase.", ConstLabels: prometheus.Labels{"phase": string(phase)},
		}, func() float64 {
			return float64(len(r.where(func(l *liveRun) bool { return l.journal.Phase == phase })))
		}))
	}
}

func (m *metrics) config(ok bool) {
	m.configOK.Set(0)
	if ok {
		m.configOK.Set(1)
	}
}

// ends counts the slots that ended without a run between two ledgers.
func (m *metrics) ends(was *plan.Ledger, now plan.Ledger) {
	if was == nil {
		was = &plan.Ledger{}
	}
	for _, result := range []plan.Result{plan.Skipped, plan.Missed} {
		n := now.Totals[result] - was.Totals[result]
		if n > 0 && len(now.Recent) > 0 {
			m.slots.WithLabelValues(string(result), now.Recent[len(now.Recent)-1].Reason).Add(float64(n))
		}
	}
}

func (m *metrics) started(r plan.Run, now time.Time) {
	m.lateness.Observe(max(now.Sub(r.Request.ScheduledAt()).Seconds(), 0))
}

func (m *metrics) ended(r plan.Run, j plan.Journal) {
	if j.StartedAt == nil {
		return
	}
	m.slots.WithLabelValues(string(plan.Ran), string(r.Request.Kind)).Inc()
	m.durations.WithLabelValues(string(j.Phase)).Observe(j.FinishedAt.Sub(*j.StartedAt).Seconds())
}

func (m *metrics) pass(stepType string, s executors.State, took time.Duration) {
	words := map[executors.State]string{executors.NotYet: "not-yet", executors.Record: "recorded", executors.Done: "done", executors.Failed: "failed"}
	m.steps.WithLabelValues(stepType, words[s]).Observe(took.Seconds())
}

// request counts a request to the API server.
func (m *metrics) request(method, code string) { m.http.WithLabelValues(method, code).Inc() }

// Handler serves /metrics, /healthz and /readyz.
func (a *Agent) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", a.metricsHandler())
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !a.Ready() {
			http.Error(w, "not ready: the agent has not read the cluster yet, or its configuration is broken", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	return mux
}

// metricsHandler serves what the registry has and what changes say, as text.
func (a *Agent) metricsHandler() http.Handler {
	registered := promhttp.HandlerFor(a.metrics.registry, promhttp.HandlerOpts{DisableCompression: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Accept") // the text format is every scraper's
		out, closed := io.Writer(w), func() error { return nil }
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			compressed := gzip.NewWriter(w)
			out, closed = compressed, compressed.Close
		}
		lines := bufio.NewWriter(out)
		registered.ServeHTTP(bodyWriter{w, lines}, r)
		a.changes.write(lines)
		_ = errors.Join(lines.Flush(), closed()) // whoever asked has gone
	})
}

// bodyWriter is a response whose body goes another way.
type bodyWriter struct {
	http.ResponseWriter
	body io.Writer
}

// Write is io.Writer's.
func (w bodyWriter) Write(b []byte) (int, error) { return w.body.Write(b) }
