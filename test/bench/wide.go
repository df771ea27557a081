package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// What runs side by side, each with so many steps.
const (
	wideRuns  = 200
	wideSteps = 10
)

// wide measures many runs of many steps at once: each step annotates an object of
// its own. In order, and side by side in a group.
func (b *bench) wide(ctx context.Context, out io.Writer) error {
	for _, side := range []bool{false, true} {
		var samples []sample
		for range b.rounds {
			s, err := b.wideRound(ctx, side)
			if err != nil {
				return err
			}
			samples = append(samples, s)
		}
		title := fmt.Sprintf("%d runs of %d steps at once, in order", wideRuns, wideSteps)
		if side {
			title = fmt.Sprintf("%d runs of %d steps at once, side by side in a group", wideRuns, wideSteps)
		}
		table(out, title, samples, []figure{
			{"ended", "s", "from the slot until all runs have ended, seen by a watch"},
			{"requests", "requests", "of the agent per step, from the slot until it is at rest again"},
			{"GET", "requests", "… of them GET"},
			{"PUT", "requests", "… of them PUT"},
			{"PATCH", "requests", "… of them PATCH"},
			{"cpu", "s", "CPU time of the agent"},
		})
	}
	return nil
}

func (b *bench) wideRound(ctx context.Context, side bool) (_ sample, err error) {
	a, err := b.startAgent(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = a.Stop()
		err = errors.Join(err, b.clear(ctx))
	}()
	slot := time.Now().Add(b.lead).UTC().Truncate(time.Second)
	if err := b.makeWide(ctx, a, side, slot); err != nil {
		return nil, err
	}
	runs, err := b.observeRuns(ctx)
	if err != nil {
		return nil, err
	}
	defer runs.stop()
	if err := until(ctx, slot.Add(-time.Second)); err != nil {
		return nil, err
	}
	before, err := a.effort(ctx)
	if err != nil {
		return nil, err
	}
	if err := runs.wait(ctx, markEnded, wideRuns, 5*time.Minute); err != nil {
		return nil, b.explain(ctx, a, err)
	}
	ended, _ := after(slot, runs.arrivals(markEnded))
	now, err := a.quiet(ctx)
	if err != nil {
		return nil, err
	}
	s := sample{"ended": ended, "requests": (now.total() - before.total()) / (wideRuns * wideSteps), "cpu": now.cpu - before.cpu}
	for _, method := range []string{"GET", "PUT", "PATCH"} {
		s[method] = (now.requests[method] - before.requests[method]) / (wideRuns * wideSteps)
	}
	b.say("wide: all ended after %.2f s, %.2f requests a step; load average %s", s["ended"], s["requests"], loadAverage())
	return s, nil
}

// makeWide returns when the agent has observed all plans.
func (b *bench) makeWide(ctx context.Context, a *agent, side bool, slot time.Time) error {
	seen, err := b.observePlans(ctx)
	if err != nil {
		return err
	}
	defer seen.stop()
	err = each(ctx, wideRuns, func(ctx context.Context, i int) error {
		for n := range wideSteps {
			target := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: wideTarget(i, n), Labels: map[string]string{targetLabel: "true"}}}
			if _, err := b.admin.CoreV1().ConfigMaps(b.namespace(i)).Create(ctx, target, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		cm := annotations.NewPlan(b.namespace(i), planName(i), wideText(i, side, slot), "")
		_, err := b.admin.CoreV1().ConfigMaps(cm.Namespace).Create(ctx, cm, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("make plans: %w", err)
	}
	if err := seen.wait(ctx, markObserved, wideRuns, 2*time.Minute); err != nil {
		return b.explain(ctx, a, err)
	}
	return nil
}

func wideTarget(i, n int) string { return fmt.Sprintf("%s-%d", targetName(i), n) }

func wideText(i int, side bool, slot time.Time) string {
	var steps strings.Builder
	for n := range wideSteps {
		fmt.Fprintf(&steps, "  - {name: s%d, type: annotate, retry: {limit: 3, backoff: 1s}, properties: {operation: add, annotations: {bench.example.org/step-%d: \"${run.name}\"}, object: {apiVersion: v1, kind: ConfigMap, name: %s}}}\n", n, n, wideTarget(i, n))
	}
	text := fmt.Sprintf("apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  triggers: {schedules: [{at: %q}]}\n  steps:\n", slot.Format(time.RFC3339))
	if !side {
		return text + steps.String()
	}
	return text + "  - name: all\n    type: step-group\n    properties:\n      mode: parallel\n      steps:\n" + strings.ReplaceAll(steps.String(), "  - {", "      - {")
}

// cronJobPods is how long a CronJob's pod takes to be created, from its minute.
func (b *bench) cronJobPods(ctx context.Context, out io.Writer) (err error) {
	both := controller{name: "pods", args: []string{"--controllers=cronjob-controller,job-controller"}}
	manager, err := b.startController(ctx, both)
	if err != nil {
		return err
	}
	defer func() {
		manager()
		err = errors.Join(err, b.clearJobs(ctx))
	}()
	pods, err := observe(ctx, b.admin.CoreV1().Pods("").Watch, "", func(o runtime.Object) []sight {
		return []sight{{mark: markCreated, key: string(o.(*corev1.Pod).UID)}}
	})
	if err != nil {
		return err
	}
	defer pods.stop()
	if err := until(ctx, time.Now().Add(time.Second)); err != nil {
		return err
	}
	there, _ := pods.count(markCreated)
	job := cronJob(0, time.Now())
	goes := false
	job.Spec.Schedule, job.Spec.ConcurrencyPolicy, job.Spec.JobTemplate.Spec.Suspend = "* * * * *", batchv1.AllowConcurrent, &goes
	if _, err := b.admin.BatchV1().CronJobs(b.namespace(0)).Create(ctx, job, metav1.CreateOptions{}); err != nil {
		return err
	}
	var samples []sample
	for n := range b.rounds {
		if err := pods.wait(ctx, markCreated, there+n+1, 3*time.Minute); err != nil {
			return err
		}
		at := pods.arrivals(markCreated)[there+n]
		samples = append(samples, sample{"created": float64(at.Sub(at.Truncate(time.Minute)).Milliseconds())})
	}
	table(out, "one CronJob, every minute", samples, []figure{{"created", "ms", "from its minute until its pod is created, seen by a watch"}})
	return nil
}
