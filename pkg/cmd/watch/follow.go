package watch

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/live"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// FollowRun shows a run live until its end, and returns the exit code for that. It ends early when
// the agent has been silent for too long.
func FollowRun(ctx context.Context, c *factory.Factory, k *factory.Cluster, cm *corev1.ConfigMap, name string) error {
	return live.Run(ctx, c, k, live.View{Title: "run " + name}, func(ctx context.Context, k *factory.Cluster, show func([]view.Line)) error {
		return followRun(ctx, c, k, cm, name, show)
	})
}

func followRun(ctx context.Context, c *factory.Factory, k *factory.Cluster, cm *corev1.ConfigMap, name string, show func([]view.Line)) error {
	runs, err := ConfigMaps(ctx, k, cm.Namespace, ByName(name))
	if err != nil {
		return NotFollowed(ctx, name, err)
	}
	plans, err := ConfigMaps(ctx, k, cm.Namespace, ByName(cm.Name))
	if err != nil {
		return NotFollowed(ctx, name, err)
	}
	f := follower{env: c.Env, k: k, plan: cm, name: name, runs: runs, plans: plans, screen: Screen{Env: c.Env, Live: show}}
	f.earlier = sync.OnceValue(func() *factory.Cluster { // only a run that is not made yet waits for them
		earlier, err := ConfigMaps(ctx, k, cm.Namespace, ByLabel(annotations.LabelKind+"="+annotations.KindRun+","+annotations.LabelPlan+"="+cm.Name))
		if err != nil {
			return nil
		}
		return earlier.Reader(k, cm.Namespace, annotations.KindRun)
	})
	agent := c.WatchAgent(k)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		over, err := f.refresh(ctx)
		if over || err != nil {
			return err
		}
		if err := LeftAlone(ctx, c, k, f.plans.ConfigMap(cm.Namespace, cm.Name), name); err != nil {
			return err
		}
		if err := agent.Check(ctx, f.stands(c)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return EndedEarly(ctx, f.left(c))
		case <-runs.Changed:
		case <-plans.Changed:
		case <-tick.C: // the clock runs on; and a run taken away without a start is told by the ledger alone
		}
	}
}

// TriggerWaits says whether a plan has a trigger whose run is not there yet.
func TriggerWaits(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) bool {
	if cm.Labels[annotations.LabelKind] != annotations.KindPlan || cm.Annotations[annotations.Trigger] == "" {
		return false
	}
	name := view.AskedRun(cm)
	if _, err := k.ConfigMaps(cm.Namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
		return false
	}
	kept, err := k.Ledger(ctx, cm)
	if err != nil { // the plan's status tells, too
		return view.TokenPending(cm, nil)
	}
	return view.TokenPending(cm, kept.Head) || kept.Claimed(name)
}

// left says what happens to a run that is no longer followed. A run that the agent has not created
// yet is only known to commands about its plan.
func (f *follower) left(c *factory.Factory) string {
	if f.made() {
		return fmt.Sprintf("run %s goes on without you; see %s, or end it with %s", f.name, f.shown(c), c.Suggest().Abort(f.name))
	}
	text := fmt.Sprintf("run %s begins when it can; see %s", f.name, f.shown(c))
	if cm := f.plans.ConfigMap(f.plan.Namespace, f.plan.Name); cm != nil && view.TokenPending(cm, nil) {
		text += ", or take the trigger back with " + c.Suggest().Abort(f.name)
	}
	return text
}

// stands says what becomes of a run while no agent is at work.
func (f *follower) stands(c *factory.Factory) string {
	text := fmt.Sprintf("run %s goes on when an agent is back: see %s", f.name, f.shown(c))
	if f.answers != "" {
		return f.answers + ", and it is kept until then; " + text
	}
	return text
}

// shown is the command that shows the run, or what it waits for before it is created.
func (f *follower) shown(c *factory.Factory) string {
	if f.made() {
		return c.Suggest().StatusOf(f.name)
	}
	return c.Suggest().Why(f.plan.Name)
}

func (f *follower) made() bool { return f.runs.ConfigMap(f.plan.Namespace, f.name) != nil }

// NotFollowed says why a run is not shown.
func NotFollowed(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return EndedEarly(ctx, "run "+name+" goes on without you")
	}
	return err
}

type follower struct {
	env         factory.Env
	k           *factory.Cluster
	plan        *corev1.ConfigMap
	name        string
	runs, plans *Cache
	screen      Screen
	lastLedger  time.Time
	earlier     func() *factory.Cluster // the plan's runs as a watch shows them, for reading; nil: they may not be watched
	answers     string                  // that the agent has not taken up
	since       time.Time               // since when they stand
}

func (f *follower) refresh(ctx context.Context) (over bool, err error) {
	if cm := f.runs.ConfigMap(f.plan.Namespace, f.name); cm != nil {
		r, err := f.k.ReadRun(ctx, cm)
		if err != nil {
			return true, err
		}
		v := print.New(f.env, view.PlanZone(r.Run.Spec, f.env.Zone))
		lines := v.RunUpdates(f.answered(&r))
		picture := append([]string{v.Bold(r.Run.Name) + "  " + v.RunHead(r)}, print.Indent(v.StepLines(r))...)
		f.screen.ShowOf(view.LinesOf(view.RunResource(r), picture...), lines)
		if r.Journal.Phase.Ended() {
			for _, line := range print.DifferenceLines(r) {
				fmt.Fprintln(f.env.Out, line)
			}
		}
		return r.Journal.Phase.Ended(), RunEnd(print.New(f.env, f.env.Zone), r)
	}
	cm := f.plans.ConfigMap(f.plan.Namespace, f.plan.Name)
	if cm == nil || cm.UID != f.plan.UID {
		return true, exit.Errorf(exit.CodeNotNow, "plan %s was deleted before run %s began", f.plan.Name, f.name)
	}
	message := view.AgentMessage(cm, nil)
	text := fmt.Sprintf("waiting for run %s%s", f.name, view.Colon(print.New(f.env, f.env.Zone).AgentText(message)))
	if k := f.earlier(); k != nil {
		text += view.Prefix("; ", neededBefore(ctx, f.env, k, cm))
	}
	f.screen.ShowOf(view.LinesOf(planResource(f.plan), text), []print.Update{{Of: "wait", Text: text}})
	return f.endedUnseen(ctx)
}

// answeredFor is how long an answer stands until a line is made of it: an agent that is at work takes
// it up sooner (a guess).
const answeredFor = 10 * time.Second

// answered puts into a run the answers that stand for it, and gives it back as its lines are to tell it.
func (f *follower) answered(r *view.Run) view.Run {
	without := *r
	*r = view.Answered(*r, f.plans.ConfigMap(f.plan.Namespace, f.plan.Name))
	without.Unheard = r.Unheard
	if said := r.AnswersSaid(); said != f.answers {
		f.answers, f.since = said, f.env.Now()
	}
	if f.env.Now().Sub(f.since) < answeredFor {
		return without
	}
	return *r
}

// planResource is a plan of which only its object is known.
func planResource(cm *corev1.ConfigMap) view.Resource {
	return view.Resource{Kind: cm.Labels[annotations.LabelKind], Namespace: cm.Namespace, Name: cm.Name}
}

// endedUnseen looks in the ledger for a run that does not exist: it may have ended and been cleaned
// up, or never have started.
func (f *follower) endedUnseen(ctx context.Context) (bool, error) {
	if f.env.Now().Sub(f.lastLedger) < 3*time.Second {
		return false, nil
	}
	f.lastLedger = f.env.Now()
	kept, err := f.k.Ledger(ctx, f.plan)
	if err != nil || kept.Head == nil {
		return false, nil //nolint:nilerr // the next look may succeed
	}
	for _, e := range kept.Closed {
		if e.Run != f.name {
			continue
		}
		return true, Remembered(f.env, f.plan.Name, e)
	}
	return false, nil
}

// Remembered is the end of a run that is gone, by the ledger of its plan: as an exit code, and as a line where
// it succeeded.
func Remembered(env factory.Env, plan string, e ledger.Entry) error {
	v := print.New(env, env.Zone)
	switch {
	case e.AsOf != "" && e.Reason == run.ReasonRefused && e.Outcome != nil:
		return exit.Errorf(exit.CodeNotNow, "the rollback was refused, and run %s not started: %s", e.Run, v.AgentText(e.Outcome.Message))
	case e.Result != run.Ran:
		return exit.Errorf(exit.CodeNotNow, "run %s did not start: %s (%s)", e.Run, e.Result, e.Reason)
	case e.Outcome == nil:
		return exit.Errorf(exit.CodeError, "run %s has ended and is no longer kept: see %s", e.Run, env.Suggest().History(plan))
	case e.Outcome.Phase == run.Succeeded:
		fmt.Fprintf(env.Out, "run %s: Succeeded\n", e.Run)
		return nil
	}
	return exit.Errorf(exit.CodeRunFailed, "run %s ended %s%s%s", e.Run, e.Outcome.Phase, view.Prefix(" in step ", e.Outcome.Step), view.Colon(v.AgentText(e.Outcome.Message)))
}

// RunEnd is a run's end as an exit code.
func RunEnd(v print.Printer, r view.Run) error {
	j := r.Journal
	switch {
	case !j.Phase.Ended():
		return nil
	case len(view.NotPutBack(r)) > 0:
		return exit.Errorf(exit.CodeRunFailed, "run %s ended %s and left something behind%s", r.Run.Name, j.Phase, view.Colon(v.AgentText(strings.Join(view.NotPutBack(r), "; "))))
	case j.Phase == run.Succeeded:
		return nil
	case j.StartedAt == nil:
		return exit.Errorf(exit.CodeNotNow, "run %s did not start%s", r.Run.Name, view.Colon(v.AgentText(j.Message)))
	}
	return exit.Errorf(exit.CodeRunFailed, "run %s ended %s%s", r.Run.Name, j.Phase, view.Colon(v.AgentText(j.Message)))
}
