package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// hibernated counts what sleeps, and for how long: the seconds go on between the changes.
type hibernated struct {
	now       func() time.Time
	resources *prometheus.Desc
	seconds   *prometheus.Desc

	mu    sync.Mutex
	count map[string]int // by type of target
	slept map[string]float64
	until time.Time // up to which slept is counted
}

func newHibernated(now func() time.Time) *hibernated {
	labels := []string{"executor"}
	return &hibernated{
		now:       now,
		resources: prometheus.NewDesc("maint_hibernated_resources", "Resources that sleep, by the type of their target.", labels, nil),
		seconds:   prometheus.NewDesc("maint_hibernated_seconds_total", "How long resources have slept while this replica led, together, by the type of their target.", labels, nil),
		slept:     map[string]float64{}, until: now(),
	}
}

// Hibernated says how many resources sleep from now on, by the type of their target.
func (m *Metrics) Hibernated(count map[string]int) { m.hibernated.set(count) }

func (h *hibernated) set(count map[string]int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.advance()
	h.count = count
}

func (h *hibernated) advance() {
	now := h.now()
	for executor, n := range h.count {
		h.slept[executor] += float64(n) * max(0, now.Sub(h.until).Seconds())
	}
	h.until = now
}

// Describe is prometheus.Collector's.
func (h *hibernated) Describe(out chan<- *prometheus.Desc) {
	out <- h.resources
	out <- h.seconds
}

// Collect is prometheus.Collector's.
func (h *hibernated) Collect(out chan<- prometheus.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.advance()
	for executor, n := range h.count {
		out <- prometheus.MustNewConstMetric(h.resources, prometheus.GaugeValue, float64(n), executor)
	}
	for executor, seconds := range h.slept {
		out <- prometheus.MustNewConstMetric(h.seconds, prometheus.CounterValue, seconds, executor)
	}
}
