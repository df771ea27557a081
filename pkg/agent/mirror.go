package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// mirrored is what stands in the way of telling the users of a plan's target.
type mirrored struct {
	digest  string    // of what was written last
	problem string    // why it could not be written
	again   time.Time // when to try again
}

// mirror writes on a plan's target, as the plan's account, how its last run
// stands and when the next one is. It comes before the plan's own status, which
// keeps a digest of what was written, so that an agent that begins writes nothing
// again. What cannot be written is tried again, and holds nothing up.
func (a *Agent) mirror(ctx context.Context, k types.NamespacedName, known *knownPlan, have map[string]string, f trigger.Facts, d trigger.Decision) {
	m := &known.mirrored
	if m.digest == "" {
		m.digest = have[annotations.StatusMirrored]
	}
	if known.spec.Target == nil {
		*m = mirrored{}
		a.blockers.unmirrored(k, false)
		return
	}
	if len(f.Faults) > 0 || f.ClockDoubt != "" || !d.Ready.OK || f.Now.Before(m.again) {
		return
	}
	want := map[string]string{}
	a.lastRun(want, f, d)
	values := map[string]any{}
	for suffix, value := range map[string]string{
		"status": mirrorWord(run.RunPhase(want[annotations.StatusLastResult])), "last-run": want[annotations.StatusLastRun], "next-run": nextRun(d),
	} {
		if value != "" || m.digest != "" { // what was never there need not be taken away
			values[annotations.Mirror(known.spec.MirrorPrefix, k.Name, suffix)] = orNull(value)
		}
	}
	b, err := json.Marshal(values)
	if err != nil {
		return // words: JSON can say them all
	}
	digest := annotations.Hash10(known.spec.Target.APIVersion, known.spec.Target.String(), string(b))
	if len(values) == 0 || m.digest == digest {
		return
	}
	m.problem = a.patchMirror(ctx, client.Account{Namespace: k.Namespace, Name: plan.Account(known.spec)}, known.spec, values)
	pause := a.blockers.unmirrored(k, m.problem != "")
	if m.problem != "" {
		m.again = f.Now.Add(pause)
		return
	}
	m.digest, m.again = digest, time.Time{}
}

// patchMirror says why it could not write, where that is so; the plan goes on.
func (a *Agent) patchMirror(ctx context.Context, w client.Account, spec plan.Spec, values map[string]any) (problem string) {
	to, err := a.accounts.Resource(w, "", *spec.Target)
	if err != nil {
		return err.Error()
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": values}})
	if err != nil {
		return err.Error()
	}
	got, err := to.Patch(ctx, spec.Target.Name, types.MergePatchType, patch, client.PatchOptions())
	if err != nil {
		return fmt.Sprintf("the mirror on %s cannot be written: %s", spec.Target, err)
	}
	if len(spec.Triggers.Labels) > 0 {
		a.targets.wrote.patched(got.GetUID(), got.GetResourceVersion())
	}
	return ""
}

func mirrorWord(p run.RunPhase) string {
	switch p {
	case run.RunRunning:
		return "running"
	case run.RunSucceeded:
		return "completed"
	case run.RunFailed, run.RunAborted, run.RunReplaced:
		return "failed"
	}
	return ""
}

func orNull(value string) any {
	if value == "" {
		return nil
	}
	return value
}

// mirrorCondition says that a target could not be written to; absent where it
// could.
func mirrorCondition(known *knownPlan) []metav1.Condition {
	if known.mirrored.problem == "" {
		return nil
	}
	return []metav1.Condition{{Type: "Mirrored", Status: metav1.ConditionFalse, Reason: "Refused", Message: document.Cut(known.mirrored.problem, document.MaxMessage)}}
}
