package ask

import (
	"cmp"
	"context"
	"fmt"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// sayStillWaits says what keeps a run from going on that was approved or resumed: a pause, or its closed window.
// That was written by then, so what cannot be read is left unsaid, and is no error.
func sayStillWaits(ctx context.Context, c *factory.Factory, k *factory.Cluster, r view.Run) {
	cm, err := k.Plan(ctx, r.Run.Plan)
	if err != nil {
		return
	}
	agent, _ := c.Agent(ctx, k)
	quiet := source.Quiet(c)
	in, around := annotations.Intent(cm.Annotations), source.ReadRestrictions(ctx, k, agent.Namespace, cm.Namespace)
	begins, who := "begins", "the run"
	begun := r.Journal.Phase != run.Pending
	if begun {
		begins, who = "goes on", "its next step that changes something"
	}
	if pause := schedule.LongestPause(append(around.AbovePlan(quiet, cm), in.Pause)...); pause.Holds(c.Now()) {
		fmt.Fprintf(c.ErrOut, "%s; the run %s when the pause ends\n", pauseSaid(c.Env, cm.Name, pause), begins)
	}
	gate := around.RunGate(quiet, agent, cm, r.Run, begun)
	if gate == nil || begun && r.Run.Spec.OnWindowClose == plan.CloseAbort { // it ends
		return
	}
	if v := gate.Verdict(c.Now()); v.Hidden() || v.Unknown() { // what may not be read is not known to hold it
		return
	}
	closed := run.ClosedFor(gate, r.Run.Name, in.Bypass, c.Now())
	if closed == nil {
		return
	}
	waits := closed.Message()
	if closed.NotReady {
		waits = "waits until that is mended: " + waits
	}
	fmt.Fprintf(c.ErrOut, "%s %s; %s shows what would help\n", who, instant.InText(waits, view.PlanZone(r.Run.Spec, c.Zone)), c.Suggest().Why(cm.Name))
}

// pauseSaid says what is paused until when, by whom and why.
func pauseSaid(env factory.Env, name string, p schedule.Pause) string {
	until := "until somebody resumes it"
	if p.Until != nil {
		until = "until " + instant.Both(*p.Until, env.Zone)
	}
	return cmp.Or(p.Of, "plan "+name) + " is paused " + until + p.Clause()
}
