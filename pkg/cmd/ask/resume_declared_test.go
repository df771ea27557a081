package ask_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

// What a GitOps tool applies comes back, on whatever it stands; what was written once does not.
func TestResumeWarnsOfAPauseThatAFileHas(t *testing.T) {
	const fields = `{"f:metadata":{"f:annotations":{"f:maint.dev/pause":{}}}}`
	pausing := cmdtest.Noting(annotations.Pause, "true")
	for manager, operation := range map[string]metav1.ManagedFieldsOperationType{
		"kustomize-controller": metav1.ManagedFieldsOperationApply, "argocd-controller": metav1.ManagedFieldsOperationUpdate, "maint-cli": metav1.ManagedFieldsOperationUpdate,
	} {
		want := "warning: maint.dev/pause is in the files that " + manager + " applies, and comes back with the next apply: remove it there, too\n"
		if manager == "maint-cli" {
			want = ""
		}
		night := cmdtest.Policy("night", "{strategy: Restrictive}")
		pausing(night)
		shop := cmdtest.Namespace("shop", annotations.Pause, "true")
		for line, on := range map[string]metav1.Object{
			"resume orders":       cmdtest.Plan("orders", "", pausing),
			"resume nights":       cmdtest.Sleeper("nights", "schedule: {offHours: [{start: '20:00', end: '06:00'}]}", pausing),
			"resume policy/night": night,
			"resume node/a":       cmdtest.Node("a", cmdtest.Noted(annotations.Pause, "true")),
			"resume --all":        shop,
		} {
			on.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(fields)}})
			world := []runtime.Object{cmdtest.Agent(), on.(runtime.Object)}
			if on != metav1.Object(shop) {
				world = append(world, cmdtest.Namespace("shop"))
			}
			got := cmdtest.NewCluster(t, cmd.Run, world...).Line(line)
			if got.Code != 0 || !strings.HasPrefix(got.Err, want) || want == "" && strings.Contains(got.Err, "comes back") {
				t.Errorf("%s, by %s: exit code %d, %q", line, manager, got.Code, got.Err)
			}
		}
	}
}
