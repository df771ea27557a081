package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/chaos/check"
)

// What sleeps has this label, and the plan by which it does this name.
const (
	sleeper = "chaos.example.org/sleeps"
	nights  = "nights"
)

// layNights makes what sleeps at night: two Deployments, a CronJob that runs, and one that
// somebody has suspended.
func (w *world) layNights(ctx context.Context) error {
	for _, name := range []string{"night-1", "night-2"} {
		if err := w.deploy(ctx, name, map[string]string{sleeper: "yes"}); err != nil {
			return err
		}
	}
	for name, suspended := range map[string]bool{"night-on": false, "night-off": true} {
		pod := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}}}
		cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{sleeper: "yes"}}, Spec: batchv1.CronJobSpec{
			Schedule: "0 0 29 2 *", Suspend: &suspended,
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}}},
		}}
		if _, err := w.admin.BatchV1().CronJobs(namespace).Create(ctx, cron, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// nightly is the plan's text: its targets sleep in these off-hours.
func nightly(offHours string) string {
	return strings.Replace(`apiVersion: maint.dev/v1alpha1
kind: HibernatePlan
spec:
  schedule: {timezone: UTC, offHours: OFFHOURS}
  targets:
  - {name: jobs, type: workload, parameters: {kinds: [CronJob], selector: {matchLabels: {chaos.example.org/sleeps: "yes"}}}}
  - {name: apps, type: workload, parameters: {kinds: [Deployment], selector: {matchLabels: {chaos.example.org/sleeps: "yes"}}}}
`, "OFFHOURS", offHours, 1)
}

// everyOtherMinute are off-hours of a minute each, from an instant on for a while, but no
// more than a plan may have; with a length of none they are a day away.
func everyOtherMinute(from time.Time, length time.Duration) string {
	const most = 50
	var out []string
	begin := from.UTC().Truncate(time.Minute).Add(time.Minute)
	for at := begin; at.Before(from.Add(length)) && len(out) < most; at = at.Add(2 * time.Minute) {
		out = append(out, fmt.Sprintf("{start: %q, end: %q}", at.Format("15:04"), at.Add(time.Minute).Format("15:04")))
	}
	if len(out) == 0 {
		out = append(out, fmt.Sprintf("{start: %q, end: %q}", from.UTC().Add(-2*time.Hour).Format("15:04"), from.UTC().Add(-time.Hour).Format("15:04")))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// plantNights creates the plan, and returns when the agent has seen it.
func (p *people) plantNights(ctx context.Context) error {
	return p.plantSleeper(ctx, time.Until(p.until))
}

// plantDays creates the plan without a night that is near.
func (p *people) plantDays(ctx context.Context) error { return p.plantSleeper(ctx, 0) }

func (p *people) plantSleeper(ctx context.Context, length time.Duration) error {
	cm := annotations.NewHibernatePlan(namespace, nights, nightly(everyOtherMinute(time.Now(), length)), "")
	if _, err := p.admin.CoreV1().ConfigMaps(namespace).Create(ctx, cm, metav1.CreateOptions{}); err != nil {
		return err
	}
	return p.world.until(ctx, "the plan of the nights is seen", time.Minute, func(ctx context.Context) (bool, error) {
		now, err := p.plan(ctx, nights)
		if err == nil && now.Annotations[annotations.StatusPhase] == "Invalid" {
			err = fmt.Errorf("%s", now.Annotations[annotations.StatusMessage])
		}
		return err == nil && now.Annotations[annotations.StatusObserved] != "", err
	})
}

// hold holds what sleeps awake or asleep for a while, whatever the hour, or lets go of it.
func (p *people) hold(ctx context.Context) error {
	values := map[string]any{annotations.HoldState: nil, annotations.HoldUntil: nil}
	if state := []string{"asleep", "awake", ""}[p.random.IntN(3)]; state != "" {
		values[annotations.HoldState] = state
		values[annotations.HoldUntil] = time.Now().Add(time.Duration(5+p.random.IntN(25)) * time.Second).UTC().Format(time.RFC3339)
	}
	p.say("person", "holds %s: %v", nights, values)
	return p.annotateNights(ctx, values)
}

// pauseNights turns the pause of the nights.
func (p *people) pauseNights(ctx context.Context) error {
	cm, err := p.plan(ctx, nights)
	if err != nil {
		return err
	}
	values := map[string]any{annotations.Pause: "true"}
	if cm.Annotations[annotations.Pause] != "" {
		values[annotations.Pause] = nil
	}
	return p.annotateNights(ctx, values)
}

func (p *people) annotateNights(ctx context.Context, values map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": values}})
	if err != nil {
		return err
	}
	return p.mergeMap(ctx, nights, string(patch))
}

// windNights has no more nights: what sleeps wakes.
func (p *people) windNights(ctx context.Context) {
	p.insist(ctx, "ends the nights", func(ctx context.Context) error {
		return p.annotateNights(ctx, map[string]any{annotations.Pause: nil, annotations.HoldState: nil, annotations.HoldUntil: nil})
	})
	p.insist(ctx, "takes the off-hours away", func(ctx context.Context) error {
		text, err := json.Marshal(nightly(everyOtherMinute(time.Now(), 0)))
		if err != nil {
			return err
		}
		return p.mergeMap(ctx, nights, fmt.Sprintf(`{"data":{%q:%s}}`, annotations.DataPlan, text))
	})
}

// leftOfNights is what is not awake.
func leftOfNights(cm *corev1.ConfigMap) []check.Left {
	switch kind := cm.Labels[annotations.LabelKind]; {
	case kind == annotations.KindRestore:
		return []check.Left{{What: "restore data " + cm.Name, Why: "is still there"}}
	case kind == annotations.KindHibernatePlan && cm.Annotations[annotations.StatusPhase] != "Active":
		return []check.Left{{What: "plan " + cm.Name, Why: "is " + cm.Annotations[annotations.StatusPhase] + ": " + cm.Annotations[annotations.StatusMessage]}}
	}
	return nil
}

// cronJobs adds to a snapshot which of them are suspended.
func (w *world) cronJobs(ctx context.Context, out map[string]string) error {
	list, err := w.admin.BatchV1().CronJobs(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, c := range list.Items {
		out["cronjob "+c.Name+" suspended"] = fmt.Sprint(c.Spec.Suspend != nil && *c.Spec.Suspend)
		out["cronjob "+c.Name+" annotations"] = spelled(c.Annotations)
	}
	return nil
}
