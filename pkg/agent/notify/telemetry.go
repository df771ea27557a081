package notify

import (
	"fmt"
	"log/slog"

	"k8s.io/client-go/tools/record"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/metrics"
)

// Telemetry is where a controller says what it does: to people, to sinks, in
// figures and in the log.
type Telemetry struct {
	Events  record.EventRecorder
	Notify  *Notifier
	Metrics *metrics.Metrics
	Log     *slog.Logger
}

// RecoverPanic is deferred where one broken object must not take the agent down.
func (t Telemetry) RecoverPanic(where string) {
	if p := recover(); p != nil {
		t.Metrics.Panicked()
		t.Log.Error("internal error "+where, "panic", fmt.Sprint(p))
	}
}
