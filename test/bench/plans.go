package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// What is ours on the targets.
const (
	targetLabel = "bench.example.org/target"
	markLabel   = "bench.example.org/run" // what the step of kind mark writes
)

// The marks that runs, plans and targets reach.
const (
	markCreated  = "created"
	markStarted  = "started"
	markEnded    = "ended"
	markObserved = "observed"
	markEffect   = "with their label"
)

// kind is a kind of plan: what its first step is, and how it is scheduled.
type kind struct {
	name, title string
	marks       bool // the first step is a label on a target of its own; else a suspend
	cron        bool // due by cron at a full minute; else by at
}

func suspends() kind { return kind{name: "plans", title: "plans due at once, first step: suspend"} }
func marks() kind {
	return kind{name: "marks", title: "plans due at once, only step: label on the target", marks: true}
}

func byCron() kind {
	return kind{name: "cron", title: "plans due at once by cron, first step: suspend", cron: true}
}

func (k kind) figures() []figure {
	return []figure{
		{"created", "s", "from the slot until all run ConfigMaps exist, seen by a watch"},
		{"created-half", "s", "… until half of them"},
		{"started", "s", "from the slot until all runs have started their first step, seen by a watch"},
		{"started-half", "s", "… until half of them"},
		{"started-own", "s", "from the slot to the last startedAt, by the runs' own journals"},
		{"effect", "s", "from the slot until all labels are on their targets, seen by a watch"},
		{"ended", "s", "from the slot until all runs have ended, seen by a watch"},
		{"requests", "requests", "of the agent per run, from the slot until it is at rest again"},
		{"GET", "requests", "… of them GET"},
		{"POST", "requests", "… of them POST"},
		{"PUT", "requests", "… of them PUT"},
		{"PATCH", "requests", "… of them PATCH"},
		{"failed", "requests", "… of them refused or failed (conflicts, not found)"},
		{"cpu", "s", "CPU time of the agent, from the slot until it is at rest again"},
		{"all-cpu", "s", "CPU time of agent, API server, etcd and controller manager, until all have started"},
	}
}

// plansDue prints what the rounds of ratios measured of plans, or measures it,
// and adds the other kinds.
func (b *bench) plansDue(ctx context.Context, out io.Writer) error {
	rounds := append(slices.Repeat([]kind{marks()}, b.rounds), byCron())
	if len(b.samples[suspends().name]) == 0 {
		rounds = append(slices.Repeat([]kind{suspends()}, b.rounds), rounds...)
	}
	for _, k := range rounds {
		if err := b.planRound(ctx, k); err != nil {
			return err
		}
	}
	for _, k := range []kind{suspends(), marks(), byCron()} {
		table(out, k.title, b.samples[k.name], k.figures())
	}
	return nil
}

// errLate says that the plans were not all seen by the agent before their slot.
var errLate = errors.New("the plans were not ready before their slot") //nolint:gochecknoglobals // a sentinel for errors.Is

// planRound measures one round. Where the machine was too slow to prepare it in
// time, it is given twice as long.
func (b *bench) planRound(ctx context.Context, k kind) error {
	for range 3 {
		s, err := b.tryPlans(ctx, k)
		if errors.Is(err, errLate) {
			b.lead *= 2
			b.say("%s: %s; once more with %s", k.name, err, b.lead)
			continue
		}
		if err != nil {
			return err
		}
		b.samples[k.name] = append(b.samples[k.name], s)
		b.say("%s: all created after %.2f s, all started after %.2f s, %.1f requests a run; load average %s", k.name, s["created"], s["started"], s["requests"], loadAverage())
		return nil
	}
	return errLate
}

func (b *bench) tryPlans(ctx context.Context, k kind) (_ sample, err error) {
	a, err := b.startAgent(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = a.Stop() // the next one need not wait for the lease; what it leaves is removed
		err = errors.Join(err, b.clear(ctx))
	}()
	slot := time.Now().Add(b.lead).UTC().Truncate(time.Second)
	if k.cron {
		slot = nextMinute(b.lead)
	}
	if err := b.makePlans(ctx, a, k, slot); err != nil {
		return nil, err
	}
	if err := until(ctx, slot.Add(-time.Second)); err != nil {
		return nil, err
	}
	return b.watchRound(ctx, a, k, slot)
}

// makePlans returns when the agent has observed all of them.
func (b *bench) makePlans(ctx context.Context, a *agent, k kind, slot time.Time) error {
	seen, err := b.observePlans(ctx)
	if err != nil {
		return err
	}
	defer seen.stop()
	began := time.Now()
	if k.marks {
		if err := b.makeTargets(ctx); err != nil {
			return err
		}
	}
	err = each(ctx, b.plans, func(ctx context.Context, i int) error {
		cm := annotations.NewPlan(b.namespace(i), planName(i), k.text(i, slot), "")
		_, err := b.admin.CoreV1().ConfigMaps(cm.Namespace).Create(ctx, cm, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("make plans: %w", err)
	}
	if err := seen.wait(ctx, markObserved, b.plans, 2*time.Minute); err != nil {
		return b.explain(ctx, a, err)
	}
	b.say("%s: %d plans made and observed in %.1f s", k.name, b.plans, time.Since(began).Seconds())
	if time.Until(slot) < 2*time.Second {
		return errLate
	}
	return nil
}

func planName(i int) string   { return fmt.Sprintf("plan-%05d", i) }
func targetName(i int) string { return fmt.Sprintf("target-%05d", i) }

// text is the plan of number i. A second schedule, half a day away, is there so
// that a cron expression is evaluated in every round.
func (k kind) text(i int, slot time.Time) string {
	far := slot.Add(12 * time.Hour)
	schedules := fmt.Sprintf(`[{at: %q}, {cron: "%d %d * * *"}]`, slot.Format(time.RFC3339), far.Minute(), far.Hour())
	if k.cron {
		schedules = fmt.Sprintf(`[{cron: "%d %d * * *"}]`, slot.Minute(), slot.Hour())
	}
	head := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n"
	if slot.IsZero() {
		head += "  successfulRunsHistoryLimit: 100\n"
	} else {
		head += "  triggers: {schedules: " + schedules + "}\n"
	}
	if !k.marks {
		return head + "  steps:\n  - {name: hold, type: suspend}\n"
	}
	return head + fmt.Sprintf("  target: {apiVersion: v1, kind: ConfigMap, name: %s}\n", targetName(i)) +
		fmt.Sprintf("  steps:\n  - {name: mark, type: label, properties: {operation: add, labels: {%s: \"${run.name}\"}}}\n", markLabel)
}

func (b *bench) makeTargets(ctx context.Context) error {
	err := each(ctx, b.plans, func(ctx context.Context, i int) error {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: targetName(i), Labels: map[string]string{targetLabel: "true"}}}
		_, err := b.admin.CoreV1().ConfigMaps(b.namespace(i)).Create(ctx, cm, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("make targets: %w", err)
	}
	return nil
}

func (b *bench) observePlans(ctx context.Context) (*observer, error) {
	return observe(ctx, b.admin.CoreV1().ConfigMaps("").Watch, annotations.LabelKind+"="+annotations.KindPlan, func(o runtime.Object) []sight {
		cm := o.(*corev1.ConfigMap)
		if cm.Annotations[annotations.StatusObserved] != annotations.Observed(cm) || cm.Annotations[annotations.StatusPhase] == string(trigger.PhaseInvalid) {
			return nil
		}
		return []sight{{mark: markObserved, key: string(cm.UID)}}
	})
}

// observeRuns sees runs come, start and end. A journal is read until it says
// that its first step has started, and no longer.
func (b *bench) observeRuns(ctx context.Context) (*observer, error) {
	started := map[types.UID]bool{}
	return observe(ctx, b.admin.CoreV1().ConfigMaps("").Watch, annotations.LabelKind+"="+annotations.KindRun, func(o runtime.Object) []sight {
		cm := o.(*corev1.ConfigMap)
		key := string(cm.UID)
		sights := []sight{{mark: markCreated, key: key, own: cm.CreationTimestamp.Time}}
		phase := run.Phase(cm.Labels[annotations.LabelPhase])
		if phase != run.Pending && !started[cm.UID] {
			var j run.Journal
			if err := json.Unmarshal([]byte(cm.Data[annotations.DataJournal]), &j); err == nil && len(j.Steps) > 0 && j.Steps[0].StartedAt != nil {
				started[cm.UID] = true
				sights = append(sights, sight{mark: markStarted, key: key, own: *j.Steps[0].StartedAt})
			}
		}
		if phase.Ended() && len(cm.Finalizers) == 0 {
			sights = append(sights, sight{mark: markEnded, key: key})
		}
		return sights
	})
}

// observeTargets sees each label that a step writes on a target.
func (b *bench) observeTargets(ctx context.Context) (*observer, error) {
	return observe(ctx, b.admin.CoreV1().ConfigMaps("").Watch, targetLabel+"=true", func(o runtime.Object) []sight {
		cm := o.(*corev1.ConfigMap)
		if cm.Labels[markLabel] == "" {
			return nil
		}
		return []sight{{mark: markEffect, key: string(cm.UID) + "/" + cm.Labels[markLabel]}}
	})
}

// watchRound looks on while the slot comes and the runs start.
func (b *bench) watchRound(ctx context.Context, a *agent, k kind, slot time.Time) (sample, error) {
	runs, err := b.observeRuns(ctx)
	if err != nil {
		return nil, err
	}
	defer runs.stop()
	targets, err := b.observeTargets(ctx)
	if err != nil {
		return nil, err
	}
	defer targets.stop()
	before, err := a.effort(ctx)
	if err != nil {
		return nil, err
	}
	profiled, used := b.profiles(ctx, a, k), cpu()
	limit := 3*time.Minute + time.Until(slot)
	if err := runs.wait(ctx, markStarted, b.plans, limit); err != nil {
		return nil, b.explain(ctx, a, err)
	}
	used = cpu() - used
	if k.marks {
		if err := errors.Join(targets.wait(ctx, markEffect, b.plans, limit), runs.wait(ctx, markEnded, b.plans, limit)); err != nil {
			return nil, err
		}
	}
	spent, err := a.quiet(ctx)
	if err != nil {
		return nil, err
	}
	s := b.efforts(before, spent)
	s["all-cpu"] = used
	s["created"], s["created-half"] = after(slot, runs.arrivals(markCreated))
	s["started"], s["started-half"] = after(slot, runs.arrivals(markStarted))
	s["started-own"], _ = after(slot, runs.own(markStarted))
	if k.marks {
		s["effect"], _ = after(slot, targets.arrivals(markEffect))
		s["ended"], _ = after(slot, runs.arrivals(markEnded))
	}
	if n, _ := runs.count(markCreated); n != b.plans {
		return s, fmt.Errorf("%d runs were created by %d plans", n, b.plans)
	}
	return s, profiled()
}

func (b *bench) efforts(before, now effort) sample {
	each := func(n float64) float64 { return n / float64(b.plans) }
	s := sample{"requests": each(now.total() - before.total()), "failed": each(now.failed - before.failed), "cpu": now.cpu - before.cpu}
	for method, n := range now.requests {
		s[method] = each(n - before.requests[method])
	}
	return s
}

// explain adds to an error what a person would look at first.
func (b *bench) explain(ctx context.Context, a *agent, err error) error {
	status := map[string]string{}
	if cm, err := b.admin.CoreV1().ConfigMaps(b.namespace(0)).Get(ctx, planName(0), metav1.GetOptions{}); err == nil {
		status = cm.Annotations
	}
	return fmt.Errorf("%w; %s says %v; the agent last said:\n%s", err, planName(0), status, tail(a.Log()))
}

// tail are the last lines of a log.
func tail(log string) string { return log[max(0, len(log)-2000):] }

// clear removes all plans, runs, ledgers and targets, and returns when they are
// gone. Live runs lose their finalizers first.
func (b *bench) clear(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil // the whole cluster goes
	}
	live, err := b.admin.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelPhase + " in (Pending,Running)"})
	if err != nil {
		return err
	}
	err = each(ctx, len(live.Items), func(ctx context.Context, i int) error {
		cm := live.Items[i]
		_, err := b.admin.CoreV1().ConfigMaps(cm.Namespace).Patch(ctx, cm.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("release runs: %w", err)
	}
	for _, selector := range []string{annotations.LabelKind, targetLabel} {
		if err := b.clearMaps(ctx, selector); err != nil {
			return fmt.Errorf("clear ConfigMaps: %w", err)
		}
	}
	return nil
}

func (b *bench) clearMaps(ctx context.Context, selector string) error {
	return each(ctx, b.namespaces, func(ctx context.Context, i int) error {
		maps := b.admin.CoreV1().ConfigMaps(b.namespace(i))
		if err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: selector}); err != nil {
			return err
		}
		left, err := maps.List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%d are still there, such as %s/%s", len(left.Items), b.namespace(i), left.Items[0].Name)
		}
		return err
	})
}
