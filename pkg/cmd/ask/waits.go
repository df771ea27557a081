package ask

import (
	"cmp"
	"context"
	"fmt"
	"io"

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
	quiet := &factory.Factory{Env: c.Env}
	quiet.ErrOut = io.Discard
	agent, _ := c.Agent(ctx, k)
	in, around := annotations.Intent(cm.Annotations), source.ReadRestrictions(ctx, k, agent.Namespace, cm.Namespace).Plan(quiet, agent, cm)
	begins, who := "begins", "the run"
	if r.Journal.Phase != run.Pending {
		begins, who = "goes on", "its next step that changes something"
	}
	if pause := schedule.LongestPause(append(around.Pauses, in.Pause)...); pause.Holds(c.Now()) {
		fmt.Fprintf(c.ErrOut, "%s; the run %s when the pause ends\n", pauseSaid(c.Env, cm.Name, pause), begins)
	}
	if around.Gate == nil || !minds(r, around.Gate.Verdict(c.Now())) {
		return
	}
	closed := run.ClosedFor(around.Gate, r.Run.Name, in.Bypass, c.Now())
	if closed == nil {
		return
	}
	waits := closed.Message()
	if closed.NotReady {
		waits = "waits until that is mended: " + waits
	}
	fmt.Fprintf(c.ErrOut, "%s %s; %s shows what would help\n", who, instant.InText(waits, view.PlanZone(r.Run.Spec, c.Zone)), c.Suggest().Why(cm.Name))
}

// minds says whether a run waits while change is not permitted. What whoever asks may not read is not known to
// hold it.
func minds(r view.Run, v schedule.Verdict) bool {
	switch {
	case v.Permitted || v.Hidden() || v.Unknown():
		return false
	case r.Journal.Phase == run.Pending:
		return v.Cause.Namespace || !r.Run.Request.OutsideWindow
	case r.Run.Spec.OnWindowClose == plan.CloseAbort: // it ends
		return false
	}
	return v.Cause.Namespace || r.Run.Spec.OnWindowClose == plan.CloseWait && !r.Run.Request.OutsideWindow
}

// pauseSaid says what is paused until when, by whom and why.
func pauseSaid(env factory.Env, name string, p schedule.Pause) string {
	until := "until somebody resumes it"
	if p.Until != nil {
		until = "until " + instant.Both(*p.Until, env.Zone)
	}
	return cmp.Or(p.Of, "plan "+name) + " is paused " + until + p.Clause()
}
