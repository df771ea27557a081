package plans

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// mirror writes on a plan's target, as the plan's account, how its last run
// stands and when the next one is. It comes before the plan's own status, which
// keeps a digest of what was written, so that an agent that begins writes nothing
// again. What cannot be written is tried again, and holds nothing up.
func (c *Controller) mirror(ctx context.Context, k types.NamespacedName, known *store.CachedPlan, have map[string]string, f trigger.Facts, d trigger.Decision) {
	m := &known.Mirror
	if m.Digest == "" {
		m.Digest = have[annotations.StatusMirrored]
	}
	if known.Spec.Target == nil {
		*m = store.Mirror{}
		c.blockers.unmirrored(k, false)
		return
	}
	if len(f.Faults) > 0 || f.ClockDoubt != "" || !d.Ready.OK || f.Now.Before(m.Again) {
		return
	}
	want := map[string]string{}
	c.lastRun(want, f, d)
	values := map[string]any{}
	for suffix, value := range map[string]string{
		"status": mirrorWord(run.Phase(want[annotations.StatusLastResult])), "last-run": want[annotations.StatusLastRun], "next-run": nextRun(d),
	} {
		if value != "" || m.Digest != "" { // what was never there need not be taken away
			values[annotations.Mirror(known.Spec.MirrorPrefix, k.Name, suffix)] = status.OrNull(value)
		}
	}
	b, err := json.Marshal(values)
	if err != nil {
		return // words: JSON can say them all
	}
	digest := annotations.Hash10(known.Spec.Target.APIVersion, known.Spec.Target.String(), string(b))
	if len(values) == 0 || m.Digest == digest {
		return
	}
	m.Problem = c.patchMirror(ctx, client.Account{Namespace: k.Namespace, Name: plan.Account(known.Spec)}, known.Spec, values)
	pause := c.blockers.unmirrored(k, m.Problem != "")
	if m.Problem != "" {
		m.Again = f.Now.Add(pause)
		return
	}
	m.Digest, m.Again = digest, time.Time{}
}

// patchMirror says why it could not write, where that is so; the plan goes on.
func (c *Controller) patchMirror(ctx context.Context, w client.Account, spec plan.Spec, values map[string]any) (problem string) {
	to, err := c.Accounts.Resource(w, "", *spec.Target)
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
		c.Targets.Expectations().Expect(got.GetUID(), got.GetResourceVersion())
	}
	return ""
}

func mirrorWord(p run.Phase) string {
	switch p {
	case run.Running:
		return "running"
	case run.Succeeded:
		return "completed"
	case run.Failed, run.Aborted, run.Replaced:
		return "failed"
	}
	return ""
}

// mirrorCondition says that a target could not be written to; absent where it
// could.
func mirrorCondition(known *store.CachedPlan) []metav1.Condition {
	if known.Mirror.Problem == "" {
		return nil
	}
	return []metav1.Condition{{Type: "Mirrored", Status: metav1.ConditionFalse, Reason: "Refused", Message: document.Cut(known.Mirror.Problem, document.MaxMessage)}}
}
