// Package policies publishes what policies and calendars say, and the metrics of change.
package policies

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/gates"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Controller publishes what policies and calendars say, and has their gates kept.
type Controller struct{ Config }

// Config is what policies are looked at with.
type Config struct {
	Documents *store.Documents
	Plans     *store.Plans // with what was last written on every document
	Store     *store.Gates
	Gates     *gates.Controller
	Status    *status.Writer
	Notify    *notify.Notifier
	Enqueue   func(document types.NamespacedName)
	Changed   func(namespace string) // what reads its policies and calendars may be gated otherwise now
	Pause     func() schedule.Pause  // of the whole cluster
	Now       func() time.Time
	// MinimumWindow is how much change a policy has to permit by the agent's configuration; nil: any.
	MinimumWindow func() *agentconfig.MinimumWindow
}

// New has looked at nothing yet.
func New(c Config) *Controller { return &Controller{c} }
