package plans

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/reference"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// noteEarlier looks for the earlier run that the plan's next claim goes back to.
func (c *Controller) noteEarlier(ctx context.Context, k types.NamespacedName, f *trigger.Facts) error {
	name := f.AsOf()
	if name == "" || len(f.Plan.Faults) > 0 {
		return nil
	}
	earlier, err := c.earlier(ctx, k, *f, name)
	f.State.Earlier = &earlier
	return err
}

// earlier is a run that is to run again: it is read live, has to be signed, and is judged
// by today's rules, those of the agent's configuration among them. The connectors that
// its steps name are today's, too: what they reach is not for an old run to say.
func (c *Controller) earlier(ctx context.Context, k types.NamespacedName, f trigger.Facts, name string) (trigger.Earlier, error) {
	out := trigger.Earlier{Name: name}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		out.Refused = fmt.Sprintf("%q is no name of a run", document.Cut(name, 100))
		return out, nil
	}
	cm, err := c.Clients.Kube.CoreV1().ConfigMaps(k.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		out.Refused = fmt.Sprintf("there is no run %s any more", name)
		return out, nil
	case err != nil:
		return out, fmt.Errorf("read run %s/%s, which plan %s is to go back to: %w", k.Namespace, name, k.Name, err)
	}
	r, journal, err := c.Stores.Runs.Read(cm)
	if err != nil { // not signed, not understood, or not valid by today's rules
		out.Refused = err.Error()
		return out, nil
	}
	if out.Refused = f.CheckEarlier(r, journal); out.Refused != "" {
		return out, nil
	}
	if denied := c.deniedSteps(k.Namespace, r); len(denied) > 0 {
		out.Refused = denied[0]
		return out, nil
	}
	connectors, faults := reference.UseConnectors(r.Tree(), func(ref connector.Reference) (connector.Connector, string) {
		return c.Stores.Documents.Connector(k.Namespace, ref)
	})
	if len(faults) > 0 {
		out.Refused = fmt.Sprintf("run %s: %s", name, faults[0])
		return out, nil
	}
	r.Connectors = connectors
	out.Run = r
	return out, nil
}

// asOf is the run of a claim that goes back to an earlier one. Where that is gone, or
// not allowed any more, since the claim was made, the claim ends without a run.
func (c *Controller) asOf(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, f trigger.Facts, e ledger.Entry) (r run.Run, ok bool, err error) {
	if f.State.Earlier == nil || f.State.Earlier.Name != e.Request.AsOf {
		earlier, err := c.earlier(ctx, k, f, e.Request.AsOf)
		if err != nil {
			return r, false, err
		}
		f.State.Earlier = &earlier
	}
	if why := f.State.Earlier.Refused; why != "" {
		c.recordNotRun(cm, why)
		err := c.Stores.Ledgers.Edit(ctx, k, string(cm.UID), func(l ledger.Ledger) ledger.Ledger {
			return l.Abandon(e.Run, run.ReasonRefused, why, c.Now())
		})
		if err == nil && !e.DryRun {
			c.Telemetry.Metrics.SlotsEnded([]ledger.Entry{{Result: run.Skipped, Reason: run.ReasonRefused, Count: 1}})
		}
		return r, false, err
	}
	r = f.RunAsOf(e, f.State.Earlier.Run)
	r.Connectors = f.State.Earlier.Run.Connectors
	return r, true, nil
}

// newRun is the run of a claim, not ok where it gets none.
func (c *Controller) newRun(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, f trigger.Facts, templates map[string]plan.TemplateSpec, connectors map[string]connector.Connector, e ledger.Entry) (r run.Run, ok bool, err error) {
	if e.Request.AsOf != "" {
		return c.asOf(ctx, k, cm, f, e)
	}
	watched, err := c.Watches.Rules.Watched(ctx, k, client.Account{Namespace: k.Namespace, Name: plan.Account(f.Plan.Spec)}, *e.Request)
	if err != nil {
		return r, false, err
	}
	r = f.NewRun(e, templates)
	r.Watched, r.Connectors = watched, connectors
	return r, true, nil
}

// recordNotRun says that a rollback was refused.
func (c *Controller) recordNotRun(cm *corev1.ConfigMap, why string) {
	c.Telemetry.Events.Event(cm, corev1.EventTypeWarning, "RollbackRefused", document.Cut("No run was started: "+why, document.MaxMessage))
}

// recordAsOf says of a run that was made just now what it goes back to.
func (c *Controller) recordAsOf(cm *corev1.ConfigMap, r run.Run) {
	if r.Request.AsOf != "" {
		c.Telemetry.Events.Eventf(cm, corev1.EventTypeNormal, "RollbackRequested", "Run %s does what run %s did", r.Name, r.Request.AsOf)
	}
}
