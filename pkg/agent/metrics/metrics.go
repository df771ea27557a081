// Package metrics counts what the agent does, and serves it.
package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Metrics are the agent's own, in a registry of their own. The labels of what is
// counted are words of ours, so their number does not grow with the users' documents;
// what is wrong has the name of its object, as long as it is wrong.
type Metrics struct {
	registry     *prometheus.Registry
	leading      prometheus.Gauge
	panics       prometheus.Counter
	slots        *prometheus.CounterVec
	lateness     prometheus.Histogram
	durations    *prometheus.HistogramVec
	steps        *prometheus.HistogramVec
	http         *prometheus.CounterVec
	configOK     prometheus.Gauge
	nodeRequests *prometheus.GaugeVec
	drains       prometheus.Histogram
	evictions    *prometheus.CounterVec
	hibernated   *hibernated
	troubles     *troubles
}

// New has a registry of its own.
func New(version string) *Metrics {
	m := &Metrics{
		registry:     prometheus.NewRegistry(),
		leading:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "maint_leading", Help: "1 while this replica holds the lease."}),
		panics:       prometheus.NewCounter(prometheus.CounterOpts{Name: "maint_internal_errors_total", Help: "Errors of the agent itself that one object caused."}),
		slots:        prometheus.NewCounterVec(prometheus.CounterOpts{Name: "maint_slot_results_total", Help: "Slots, and runs without one, by how they ended."}, []string{"result", "reason"}),
		lateness:     prometheus.NewHistogram(prometheus.HistogramOpts{Name: "maint_start_lateness_seconds", Help: "From a slot, or a request, to the start of its run.", Buckets: []float64{.01, .05, .1, .5, 1, 5, 15, 60, 300, 3600}}),
		durations:    prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "maint_run_duration_seconds", Help: "From a run's first step to its end.", Buckets: prometheus.ExponentialBuckets(.1, 4, 10)}, []string{"result"}),
		steps:        prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "maint_step_duration_seconds", Help: "One pass over a step.", Buckets: prometheus.ExponentialBuckets(.001, 4, 10)}, []string{"type", "result"}),
		http:         prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rest_client_requests_total", Help: "Requests to the API server, by method and status."}, []string{"method", "code"}),
		configOK:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "maint_config_valid", Help: "1 while the newest agent configuration is understood, and not gone."}),
		nodeRequests: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "maint_node_requests", Help: "Requests for nodes, by phase."}, []string{"phase"}),
		drains:       prometheus.NewHistogram(prometheus.HistogramOpts{Name: "maint_drain_seconds", Help: "Drains for requestors, from their begin to their end.", Buckets: []float64{1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600}}),
		evictions:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "maint_evictions_total", Help: "Pods of drains for requestors that ended, by result."}, []string{"result"}),
	}
	m.hibernated, m.troubles = newHibernated(time.Now), newTroubles()
	m.configOK.Set(1)
	m.beginAtZero()
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "maint_build_info", Help: "Version of the agent and of its zone data."}, []string{"version", "tzdata"})
	build.WithLabelValues(version, schedule.ZoneVersion()).Set(1)
	m.registry.MustRegister(m.leading, m.panics, m.slots, m.lateness, m.durations, m.steps, m.http, m.configOK, m.nodeRequests, m.drains, m.evictions, m.hibernated, m.troubles, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// beginAtZero has counters be there before anything is counted: to Prometheus one that appears
// as 1 has not increased.
func (m *Metrics) beginAtZero() {
	for _, result := range []run.Result{run.Ran, run.Skipped, run.Missed} {
		for _, reason := range run.Reasons(result) {
			m.slots.WithLabelValues(string(result), reason)
		}
	}
	for _, phase := range []run.Phase{run.Succeeded, run.Failed, run.Aborted, run.Replaced} {
		m.durations.WithLabelValues(string(phase))
	}
	for _, result := range evictions(drain.Outcome{}) {
		m.evictions.WithLabelValues(result.name)
	}
}

// evicted is what became of some pods of a drain.
type evicted struct {
	name  string
	count int
}

func evictions(o drain.Outcome) []evicted {
	return []evicted{{"evicted", o.Evicted}, {"forced", o.Forced}, {"gone", o.Gone}, {"left", o.Left}}
}

// NodeRequests counts the requests as they stand.
func (m *Metrics) NodeRequests(all []nodes.Node) {
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
		m.nodeRequests.WithLabelValues(string(phase)).Set(float64(n))
	}
}

// DrainEnded tells of a drain for requestors that ended.
func (m *Metrics) DrainEnded(since, now time.Time, o drain.Outcome) {
	m.drains.Observe(now.Sub(since).Seconds())
	for _, result := range evictions(o) {
		m.evictions.WithLabelValues(result.name).Add(float64(result.count))
	}
}

// CountWatches exports how many watches are open on the plans' behalf: each costs the
// API server too.
func (m *Metrics) CountWatches(targets, steps, gates func() int) {
	for name, count := range map[string]func() int{"targets": targets, "steps": steps, "gates": gates} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "maint_watches", Help: "Watches open as plans' ServiceAccounts.", ConstLabels: prometheus.Labels{"for": name},
		}, func() float64 { return float64(count()) }))
	}
}

// Documents are how many documents of a kind are known.
type Documents struct {
	Kind          string // as in the label maint.dev/kind
	Valid, Broken int
}

// documents exports how many documents there are, counted once for each scrape.
type documents struct {
	count func() []Documents
	desc  *prometheus.Desc
}

// Describe says what is exported.
func (d documents) Describe(out chan<- *prometheus.Desc) { out <- d.desc }

// Collect exports it.
func (d documents) Collect(out chan<- prometheus.Metric) {
	for _, of := range d.count() {
		for valid, n := range map[bool]int{true: of.Valid, false: of.Broken} {
			out <- prometheus.MustNewConstMetric(d.desc, prometheus.GaugeValue, float64(n), of.Kind, strconv.FormatBool(valid))
		}
	}
}

// CountDocuments exports how many documents are known, and how many runs live in each phase.
func (m *Metrics) CountDocuments(count func() []Documents, runs func(run.Phase) int) {
	m.registry.MustRegister(documents{count, prometheus.NewDesc("maint_documents", "Documents, valid or not.", []string{"kind", "valid"}, nil)})
	for _, phase := range []run.Phase{run.Pending, run.Running} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "maint_runs", Help: "Live runs by phase.", ConstLabels: prometheus.Labels{"phase": string(phase)},
		}, func() float64 {
			return float64(runs(phase))
		}))
	}
}

// Leads says whether this replica holds the lease.
func (m *Metrics) Leads(is bool) {
	if is {
		m.leading.Set(1)
		return
	}
	m.leading.Set(0)
}

// Panicked counts an error of the agent itself.
func (m *Metrics) Panicked() { m.panics.Inc() }

// Register takes in what another room counts.
func (m *Metrics) Register(c prometheus.Collector) { m.registry.MustRegister(c) }

// ConfigRead says whether the newest configuration is understood.
func (m *Metrics) ConfigRead(ok bool) {
	m.configOK.Set(0)
	if ok {
		m.configOK.Set(1)
	}
}

// SlotsEnded counts slots and requests that ended before they had a run.
func (m *Metrics) SlotsEnded(ended []ledger.Entry) {
	for _, e := range ended {
		m.slots.WithLabelValues(string(e.Result), e.Reason).Add(float64(e.Count))
	}
}

// RunStarted notes how late a run began. Dry runs count in no metric.
func (m *Metrics) RunStarted(r run.Run, now time.Time) {
	if r.Request.DryRun {
		return
	}
	m.lateness.Observe(max(now.Sub(r.Request.ScheduledAt()).Seconds(), 0))
}

// RunEnded counts how a run ended; of one that never began, what its slot or its request came to.
func (m *Metrics) RunEnded(r run.Run, j run.Journal) {
	switch {
	case r.Request.DryRun:
		return
	case j.StartedAt == nil:
		result, reason := ledger.NotStarted(j)
		m.slots.WithLabelValues(string(result), reason).Inc()
		return
	}
	m.slots.WithLabelValues(string(run.Ran), string(r.Request.Kind)).Inc()
	m.durations.WithLabelValues(string(j.Phase)).Observe(j.FinishedAt.Sub(*j.StartedAt).Seconds())
}

// StepPass notes how long one pass over a run's step took.
func (m *Metrics) StepPass(r run.Run, stepType string, s executors.State, took time.Duration) {
	if r.Request.DryRun {
		return
	}
	words := map[executors.State]string{executors.NotYet: "not-yet", executors.Record: "recorded", executors.Done: "done", executors.Failed: "failed"}
	m.steps.WithLabelValues(stepType, words[s]).Observe(took.Seconds())
}

// Request counts a request to the API server.
func (m *Metrics) Request(method, code string) { m.http.WithLabelValues(method, code).Inc() }
