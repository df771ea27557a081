package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// latency triggers one plan again and again, beside all the other idle ones,
// and waits each time until the run has ended.
func (b *bench) latency(ctx context.Context, out io.Writer) (err error) {
	if !b.peopled(ctx) {
		if err := b.makePlansBeside(ctx); err != nil {
			return err
		}
	}
	defer func() {
		if err == nil {
			err = b.clear(ctx)
		}
	}()
	a, err := b.startAgent(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = a.Stop() }()
	if _, err := a.quiet(ctx); err != nil {
		return err
	}
	effects, ends, err := b.triggerOften(ctx)
	if err != nil {
		return err
	}
	writes, err := b.writes(ctx)
	if err != nil {
		return err
	}
	table(out, fmt.Sprintf("%d triggers of one plan, one after another, beside %d idle plans", b.triggers, b.plans-1), []sample{{
		"p50": percentile(effects, 50), "p99": percentile(effects, 99), "max": effects[len(effects)-1],
		"end50": percentile(ends, 50), "end99": percentile(ends, 99), "write": percentile(writes, 50),
	}}, []figure{
		{"p50", "ms", "from the annotation's write to the first step's effect seen by a watch, p50"},
		{"p99", "ms", "… p99"},
		{"max", "ms", "… the longest"},
		{"end50", "ms", "from the annotation's write to the run's end seen by a watch, p50"},
		{"end99", "ms", "… p99"},
		{"write", "ms", "for comparison: from one write to its event in the same watch, p50"},
	})
	return nil
}

// peopled says whether the plans of the memory benchmark are still there.
func (b *bench) peopled(ctx context.Context) bool {
	_, err := b.admin.CoreV1().ConfigMaps(b.namespace(0)).Get(ctx, planName(0), metav1.GetOptions{})
	return err == nil
}

// triggerOften measures the milliseconds from each trigger to its effect and to its end,
// sorted.
func (b *bench) triggerOften(ctx context.Context) (effects, ends []float64, err error) {
	runs, err := b.observeRuns(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer runs.stop()
	targets, err := b.observeTargets(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer targets.stop()
	if err := until(ctx, time.Now().Add(time.Second)); err != nil { // what was there before has been seen
		return nil, nil, err
	}
	marked, _ := targets.count(markEffect)
	ended, _ := runs.count(markEnded)
	for n := 1; n <= b.triggers; n++ {
		from := time.Now()
		if err := b.trigger(ctx, 0, fmt.Sprintf("latency-%d", n)); err != nil {
			return nil, nil, err
		}
		if err := targets.wait(ctx, markEffect, marked+n, time.Minute); err != nil {
			return nil, nil, err
		}
		if err := runs.wait(ctx, markEnded, ended+n, time.Minute); err != nil {
			return nil, nil, err
		}
		effects = append(effects, milliseconds(from, targets.arrivals(markEffect)))
		ends = append(ends, milliseconds(from, runs.arrivals(markEnded)))
	}
	slices.Sort(effects)
	slices.Sort(ends)
	return effects, ends, nil
}

func milliseconds(from time.Time, arrivals []time.Time) float64 {
	last, _ := after(from, arrivals)
	return 1000 * last
}

// writes are the milliseconds from a write of ours to its event, sorted: what a
// trigger cannot be faster than.
func (b *bench) writes(ctx context.Context) ([]float64, error) {
	targets, err := b.observeTargets(ctx)
	if err != nil {
		return nil, err
	}
	defer targets.stop()
	if err := until(ctx, time.Now().Add(time.Second)); err != nil {
		return nil, err
	}
	marked, _ := targets.count(markEffect)
	var out []float64
	for n := 1; n <= 50; n++ {
		from := time.Now()
		if err := b.mark(ctx, fmt.Sprintf("write-%d", n)); err != nil {
			return nil, err
		}
		if err := targets.wait(ctx, markEffect, marked+n, time.Minute); err != nil {
			return nil, err
		}
		out = append(out, milliseconds(from, targets.arrivals(markEffect)))
	}
	slices.Sort(out)
	return out, nil
}

func (b *bench) mark(ctx context.Context, value string) error {
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, markLabel, value)
	_, err := b.admin.CoreV1().ConfigMaps(b.namespace(0)).Patch(ctx, targetName(0), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}
