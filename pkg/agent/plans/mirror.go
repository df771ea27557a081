package plans

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/targets"
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
	c.takeMirrors(ctx, k)
	m := known.Mirror
	if m.Digest == "" {
		m.Digest = have[annotations.StatusMirrored]
	}
	if len(f.Plan.Faults) > 0 { // where it is to stand is not known
		m.Again = time.Time{}
		if m.Problem == "" {
			c.blockers.unmirrored(k, false)
		}
		return
	}
	if moved(*m, known) {
		c.leaveMirror(ctx, k)
		*m = store.Mirror{Seen: m.Seen}
	}
	if known.Spec.Target == nil {
		*m = store.Mirror{}
		c.blockers.unmirrored(k, false)
		return
	}
	if m.Account != plan.Account(known.Spec) {
		m.Again = time.Time{}
	}
	m.On, m.Prefix, m.Account, m.Cluster = known.Spec.Target, known.Spec.MirrorPrefix, plan.Account(known.Spec), known.Cluster()
	c.blockers.leaving.wanted(k, *m)
	if f.ClockDoubt != "" || !d.Status.Ready.OK {
		m.Again = time.Time{} // what ends that is heard of
		return
	}
	if f.Now.Before(m.Again) {
		return
	}
	m.Again = time.Time{}
	want := map[string]string{}
	c.lastRun(want, f, d)
	word, step := mirrorWord(run.Phase(want[annotations.StatusLastResult])), ""
	for _, l := range f.Live {
		if l.Phase == run.Running && !l.Request.DryRun {
			step = l.Step
			if l.Suspended {
				word = "suspended"
			}
		}
	}
	values, says := map[string]any{}, m.Digest != "" || m.Seen
	for suffix, value := range map[string]string{
		annotations.MirrorStatus: word, annotations.MirrorLastRun: want[annotations.StatusLastRun], annotations.MirrorNextRun: nextRun(d), annotations.MirrorStep: step,
	} {
		says = says || value != ""
		values[annotations.Mirror(known.Spec.MirrorPrefix, k.Name, suffix)] = status.OrNull(value) // an earlier plan of the name may have left it
	}
	b, err := json.Marshal(values)
	if err != nil {
		return // words: JSON can say them all
	}
	digest := annotations.Hash10(append(mirrorPlace(known), string(b))...)
	if !says || m.Digest == digest {
		return
	}
	err = c.patchMirror(ctx, k.Namespace, *m, len(known.Spec.Triggers.Labels) > 0, values)
	pause := c.blockers.unmirrored(k, err != nil)
	if err != nil {
		m.Problem, m.Again = err.Error(), f.Now.Add(pause)
		return
	}
	m.Problem, m.Digest, m.Again = "", digest, time.Time{}
}

// mirrorPlace is where a plan wants its mirror: on another cluster also how that is reached, since
// its connector may lead elsewhere under the same name.
func mirrorPlace(known *store.CachedPlan) []string {
	place := []string{known.Spec.Target.APIVersion, known.Spec.TargetSaid()}
	if on := known.Cluster(); on != nil {
		reached, err := json.Marshal(on)
		if err == nil { // JSON can say all of it
			place = append(place, string(reached))
		}
	}
	return place
}

// moved says whether a plan wants its mirror elsewhere, or under another prefix, than where
// this agent wrote it.
func moved(m store.Mirror, known *store.CachedPlan) bool {
	if m.On == nil {
		return false
	}
	return known.Spec.Target == nil || *m.On != *known.Spec.Target || m.Prefix != known.Spec.MirrorPrefix || !reflect.DeepEqual(m.Cluster, known.Cluster())
}

// patchMirror is why it could not write, where that is so; the plan goes on.
func (c *Controller) patchMirror(ctx context.Context, namespace string, m store.Mirror, awaited bool, values map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": values}})
	if err != nil {
		return fmt.Errorf("write a mirror as JSON: %w", err)
	}
	got, err := client.Ask(ctx, c.Clients.Accounts, client.Account{Namespace: namespace, Name: m.Account}, "", m.Cluster, func(ctx context.Context, from client.ClusterAccess) (*targets.Object, error) {
		to, err := from.Resource(*m.On)
		if err != nil {
			return nil, err
		}
		got, err := to.Patch(ctx, m.On.Name, types.MergePatchType, patch, client.PatchOptions())
		if err != nil {
			return nil, fmt.Errorf("the mirror on %s cannot be written: %w", m.On, err)
		}
		return targets.Slim(got, from.Where()), nil
	})
	if err == nil && awaited {
		c.Watches.Targets.Expectations().Expect(got.ObjectID(), got.ResourceVersion)
	}
	return err
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
