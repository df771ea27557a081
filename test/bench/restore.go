package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// A loop over so many objects, so many at once, with two steps each that restore.
const (
	restoreObjects   = 1400
	restoreAtOnce    = 50
	restoreNamespace = "bench-restore"
)

// restoring measures a long loop whose steps restore what they found: forward, and
// back again.
func (b *bench) restoring(ctx context.Context, out io.Writer) error {
	if err := b.makeRestored(ctx); err != nil {
		return err
	}
	var samples []sample
	for i := range b.rounds {
		s, err := b.restoreRound(ctx, fmt.Sprintf("restore-%d", i))
		if err != nil {
			return err
		}
		samples = append(samples, s)
	}
	table(out, fmt.Sprintf("a loop over %d objects, %d at once, with two steps each that restore", restoreObjects, restoreAtOnce), samples, []figure{
		{"forward", "s", "from its start until its last step has ended"},
		{"back", "s", "from there until all is as it was and the run has ended"},
		{"ratio", "", "back by forward"},
		{"cpu", "s", "CPU time of the agent, in all"},
	})
	return nil
}

// makeRestored makes the objects, and the account that may change them.
func (b *bench) makeRestored(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: restoreNamespace}}
	if _, err := b.admin.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "patch"}}
	if err := harness.Runner(ctx, b.admin, restoreNamespace, rule); err != nil {
		return err
	}
	return each(ctx, restoreObjects, func(ctx context.Context, i int) error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("cell-%04d", i), Labels: map[string]string{targetLabel: "true"}, Annotations: map[string]string{"bench.example.org/a": "was", "bench.example.org/b": "was"},
		}}
		_, err := b.admin.CoreV1().ConfigMaps(restoreNamespace).Create(ctx, object, metav1.CreateOptions{})
		return err
	})
}

func (b *bench) restoreRound(ctx context.Context, name string) (_ sample, err error) {
	a, err := b.startAgent(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Stop()) }()
	before, err := a.effort(ctx)
	if err != nil {
		return nil, err
	}
	runs, err := b.observeRuns(ctx)
	if err != nil {
		return nil, err
	}
	defer runs.stop()
	had, _ := runs.count(markEnded)
	cm := annotations.NewPlan(restoreNamespace, name, restoreText(), "")
	if _, err := b.admin.CoreV1().ConfigMaps(restoreNamespace).Create(ctx, cm, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	if err := runs.wait(ctx, markEnded, had+1, 20*time.Minute); err != nil {
		return nil, b.explain(ctx, a, err)
	}
	now, err := a.effort(ctx)
	if err != nil {
		return nil, err
	}
	s, err := b.restoreTimes(ctx, name)
	if err == nil {
		s["cpu"] = now.cpu - before.cpu
		b.say("restore: forward %.1f s, back %.1f s; load average %s", s["forward"], s["back"], loadAverage())
	}
	return s, err
}

// restoreTimes reads from a run's journal how long it took forward and back.
func (b *bench) restoreTimes(ctx context.Context, name string) (sample, error) {
	list, err := b.admin.CoreV1().ConfigMaps(restoreNamespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=run," + annotations.LabelPlan + "=" + name})
	if err != nil || len(list.Items) != 1 {
		return nil, errors.Join(err, fmt.Errorf("%d runs of %s", len(list.Items), name))
	}
	_, j, err := annotations.ReadRun(&list.Items[0])
	if err != nil {
		return nil, err
	}
	if j.Phase != run.Succeeded {
		return nil, fmt.Errorf("the run of %s ended %s: %s", name, j.Phase, j.Message)
	}
	last := *j.StartedAt
	for _, rec := range j.Steps {
		if rec.FinishedAt != nil && rec.FinishedAt.After(last) {
			last = *rec.FinishedAt
		}
	}
	forward, back := last.Sub(*j.StartedAt).Seconds(), j.FinishedAt.Sub(last).Seconds()
	return sample{"forward": forward, "back": back, "ratio": back / forward}, nil
}

func restoreText() string {
	step := "      - {name: %[1]s, type: annotate, properties: {object: {apiVersion: v1, kind: ConfigMap, name: \"${each.metadata.name}\"}, operation: add, annotations: {bench.example.org/%[1]s: now}, restoreAfter: true}}\n"
	return "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  maxDuration: 1h\n  triggers: {onCreate: true}\n  steps:\n  - name: cells\n    type: for-each\n    properties:\n      apiVersion: v1\n      kind: ConfigMap\n" +
		fmt.Sprintf("      selector: {matchLabels: {%s: \"true\"}}\n      maxConcurrency: %d\n      steps:\n", targetLabel, restoreAtOnce) + fmt.Sprintf(step, "a") + fmt.Sprintf(step, "b")
}
