package main

import (
	"context"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// memory looks at the agent's memory with all plans idle, and again after each
// plan has had some runs, all of which are kept.
func (b *bench) memory(ctx context.Context, out io.Writer) error {
	if err := b.makePlansBeside(ctx); err != nil {
		return err
	}
	a, err := b.startAgent(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = a.Stop() }()
	if _, err := a.quiet(ctx); err != nil {
		return err
	}
	s := sample{}
	if err := weigh(ctx, a, s, "idle-"); err != nil {
		return err
	}
	began := time.Now()
	for n := 1; n <= b.history; n++ {
		if err := b.runAll(ctx, n); err != nil {
			return b.explain(ctx, a, err)
		}
		b.say("memory: round %d of %d of history", n, b.history)
	}
	s["rounds"] = time.Since(began).Seconds() / float64(b.history)
	if _, err := a.quiet(ctx); err != nil {
		return err
	}
	if err := weigh(ctx, a, s, "history-"); err != nil {
		return err
	}
	what := fmt.Sprintf("after %d runs of each, all kept", b.history)
	table(out, fmt.Sprintf("memory of the agent, %d plans", b.plans), []sample{s}, []figure{
		{"idle-rss", "MiB", "resident (VmRSS), all plans idle"},
		{"idle-peak", "MiB", "highest resident (VmHWM) so far"},
		{"idle-heap", "MiB", "Go heap in use"},
		{"history-rss", "MiB", "resident (VmRSS), " + what},
		{"history-peak", "MiB", "highest resident (VmHWM) so far"},
		{"history-heap", "MiB", "Go heap in use"},
		{"rounds", "s", "for one run of each plan by trigger, from the first annotation to the last end"},
	})
	return nil
}

func weigh(ctx context.Context, a *agent, s sample, prefix string) (err error) {
	if s[prefix+"rss"], s[prefix+"peak"], err = a.resident(); err != nil {
		return err
	}
	m, err := a.metrics(ctx)
	s[prefix+"heap"] = m["go_memstats_heap_inuse_bytes"] / (1 << 20)
	return err
}

// makePlansBeside makes plans without a schedule. An agent of its own observes
// them and ends, so that the next one's memory knows nothing of their making.
func (b *bench) makePlansBeside(ctx context.Context) error {
	a, err := b.startAgent(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = a.Stop() }()
	seen, err := b.observePlans(ctx)
	if err != nil {
		return err
	}
	defer seen.stop()
	if err := b.makeTargets(ctx); err != nil {
		return err
	}
	err = each(ctx, b.plans, func(ctx context.Context, i int) error {
		cm := annotations.NewPlan(b.namespace(i), planName(i), marks().text(i, time.Time{}), "")
		_, err := b.admin.CoreV1().ConfigMaps(cm.Namespace).Create(ctx, cm, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("make plans: %w", err)
	}
	if err := seen.wait(ctx, markObserved, b.plans, 2*time.Minute); err != nil {
		return b.explain(ctx, a, err)
	}
	return nil
}

// runAll triggers every plan once and returns when all those runs have ended.
func (b *bench) runAll(ctx context.Context, n int) error {
	runs, err := b.observeRuns(ctx)
	if err != nil {
		return err
	}
	defer runs.stop()
	err = each(ctx, b.plans, func(ctx context.Context, i int) error { return b.trigger(ctx, i, fmt.Sprintf("round-%d", n)) })
	if err != nil {
		return fmt.Errorf("trigger: %w", err)
	}
	return runs.wait(ctx, markEnded, n*b.plans, 2*time.Minute)
}

func (b *bench) trigger(ctx context.Context, i int, token string) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotations.Trigger, token)
	_, err := b.admin.CoreV1().ConfigMaps(b.namespace(i)).Patch(ctx, planName(i), types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: annotations.ManagerCLI})
	return err
}
