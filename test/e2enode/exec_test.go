//go:build linux

package e2enode

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// A step of type exec runs a command in a container that runs already: by way of
// the API server and a real kubelet, as the plan's account.
func TestAStepRunsACommandInARealContainer(t *testing.T) {
	w := start(t)
	w.agent()
	w.deployment("web", 1)
	w.waitReady("web", 1)
	w.must(harness.Runner(t.Context(), w.kube, w.ns,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"get", "create"}},
	))
	const step = `{name: talk, type: exec, properties: {pod: {matchLabels: {app: web}}, command: [/pod, %s]}}`
	for name, c := range map[string]struct {
		command string
		phase   run.Phase
		says    string
	}{
		"answers": {`say, "hello from ${plan.name}"`, run.Succeeded, "hello from answers"},
		"refuses": {"nonsense", run.Failed, `want pause, serve [GRACE], say WORD… or reboot FILE`},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - " + fmt.Sprintf(step, c.command) + "\n"
			maps := w.kube.CoreV1().ConfigMaps(w.ns)
			_, err := maps.Create(t.Context(), annotations.NewPlan(w.ns, name, text, ""), metav1.CreateOptions{})
			w.must(err)
			w.eventually("plan "+name+" is taken up", func(ctx context.Context) (bool, error) {
				cm, err := maps.Get(ctx, name, metav1.GetOptions{})
				return err == nil && cm.Annotations[annotations.StatusObserved] != "", err
			})
			_, err = maps.Patch(t.Context(), name, "application/merge-patch+json", []byte(`{"metadata":{"annotations":{"maint.dev/trigger":"now"}}}`), metav1.PatchOptions{})
			w.must(err)
			var got run.Journal
			w.eventually("the run of "+name+" ends", func(ctx context.Context) (bool, error) {
				var list *corev1.ConfigMapList
				if list, err = maps.List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=run," + annotations.LabelPlan + "=" + name}); err != nil || len(list.Items) != 1 {
					return false, err
				}
				_, got, err = annotations.ReadRun(&list.Items[0])
				return got.Phase.Ended(), err
			})
			if got.Phase != c.phase || !strings.Contains(words(got), c.says) {
				t.Errorf("want %s and %q: %s", c.phase, c.says, words(got))
			}
		})
	}
}
