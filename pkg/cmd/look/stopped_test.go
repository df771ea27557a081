package look_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

// Of a plan of which nothing begins no command shows a slot as one that starts. What the agent said
// of another version of the document counts for nothing.
func TestSlotsOfAPlanOfWhichNothingBegins(t *testing.T) {
	going := cmdtest.Namespace("shop")
	going.DeletionTimestamp, going.Finalizers = new(metav1.NewTime(cmdtest.Now())), []string{"kubernetes"}
	odd := append(conditions("Valid", "False", "there is no step template hush"), annotations.StatusPhase, "Invalid")
	outdated := seen("orders", daily, odd...)
	outdated.Annotations[annotations.StatusObserved] = "another"
	sleeper := cmdtest.Sleeper("nights", "schedule: {offHours: [{start: '20:00', end: '06:00'}]}", func(cm *corev1.ConfigMap) { cm.CreationTimestamp.Time = *cmdtest.Before(1e9) })
	const invalid, deleted = "the plan is invalid", "the namespace is being deleted"
	for _, c := range []struct {
		name  string
		world []runtime.Object
		line  string
		has   []string // of both streams
		lacks []string
	}{
		{"next", objects(cmdtest.Namespace("shop"), seen("orders", daily, odd...)), "next orders --count 2", []string{"warning: the plan is invalid, so that nothing of it begins: there is no step template hush", " " + invalid + "\nSun", " " + invalid + "\n"}, nil},
		{"next for scripts", objects(cmdtest.Namespace("shop"), seen("orders", daily, odd...)), "next orders --count 2 -o jsonpath={.items[*].note}", []string{invalid + " " + invalid}, nil},
		{"status", objects(cmdtest.Namespace("shop"), seen("orders", daily, odd...)), "status", []string{"is not Valid: there is no step template hush"}, []string{"Sat 2026"}},
		{"status by name", objects(cmdtest.Namespace("shop"), seen("orders", daily, odd...)), "status orders", []string{"nothing runs while the plan is invalid"}, []string{"Sat 2026"}},
		{"status for scripts", objects(cmdtest.Namespace("shop"), seen("orders", daily, odd...)), "status orders -o json", []string{"there is no step template hush"}, []string{`"next"`}},
		{"why", objects(cmdtest.Namespace("shop"), seen("orders", daily, odd...)), "why orders", []string{"1. the plan is invalid: there is no step template hush"}, []string{"next slot: Sat"}},
		{"calendar", objects(cmdtest.Namespace("shop"), seen("orders", daily, odd...)), "calendar --to 2026-11-23", []string{"warning: shop/orders: there is no step template hush", invalid + "\nSun"}, nil},
		{"calendar for scripts", objects(cmdtest.Namespace("shop"), seen("orders", daily, odd...)), "calendar --from 2026-11-21T00:00:00Z --to 2026-11-22T00:00:00Z -o jsonpath={.items[0].idle}", []string{"true"}, nil},
		{"another version: next", objects(cmdtest.Namespace("shop"), outdated), "next orders", nil, []string{invalid}},
		{"another version: status", objects(cmdtest.Namespace("shop"), outdated), "status", []string{"Sat 2026"}, nil},
		{"another version: calendar", objects(cmdtest.Namespace("shop"), outdated), "calendar --to 2026-11-23", nil, []string{invalid}},
		{"deleted: next", objects(going, seen("orders", daily)), "next orders --count 1", []string{"warning: the namespace is being deleted", deleted + "\n"}, nil},
		{"deleted: next of a policy", objects(going, policed("night", nights)), "next night --count 1", []string{"warning: the namespace is being deleted"}, nil},
		{"deleted: status", objects(going, seen("orders", daily)), "status", []string{"namespace shop  is being deleted"}, []string{"Sat 2026", "can begin no run"}},
		{"deleted: status by name", objects(going, seen("orders", daily)), "status orders", []string{"Next:        none: " + deleted}, []string{"Sat 2026"}},
		{"deleted: all for scripts", objects(going, seen("orders", daily)), "status -o json", []string{deleted}, []string{`"next"`}},
		{"deleted: calendar", objects(going, seen("orders", daily)), "calendar --to 2026-11-22", []string{deleted + "\n"}, nil},
		{"deleted: next sleep", objects(going, sleeper), "next nights --count 2", []string{deleted + "\nSat", deleted + "\n"}, nil},
		{"deleted: sleep in the calendar", objects(going, sleeper), "calendar --to 2026-11-23", []string{deleted + "\n"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := cmdtest.NewCluster(t, cmd.Run, append(objects(cmdtest.Agent(), cmdtest.Namespace("maint-system")), c.world...)...).Line(c.line)
			all := got.Err + got.Out
			for _, text := range c.has {
				if !strings.Contains(all, text) {
					t.Errorf("it lacks %q:\n%s", text, all)
				}
			}
			for _, text := range c.lacks {
				if strings.Contains(all, text) {
					t.Errorf("it has %q:\n%s", text, all)
				}
			}
		})
	}
}
