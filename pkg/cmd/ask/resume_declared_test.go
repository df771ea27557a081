package ask_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

func TestResumeWarnsOfAPauseThatAFileHas(t *testing.T) {
	paused := cmdtest.Plan("orders", "", cmdtest.Noting(annotations.Pause, "true"))
	for manager, want := range map[string]string{
		"kustomize-controller": "warning: maint.dev/pause is in what kustomize-controller applies, and comes back with its next apply: take it out of the file, too\n",
		"maint-cli":            "",
	} {
		cm := paused.DeepCopy()
		operation := metav1.ManagedFieldsOperationApply
		if manager == "maint-cli" {
			operation = metav1.ManagedFieldsOperationUpdate
		}
		cm.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:maint.dev/pause":{}}}}`)}}
		got := cmdtest.NewCluster(t, cmd.Run, cmdtest.Namespace("shop"), cmdtest.Agent(), cm).Maint("resume", "orders")
		if got.Code != 0 || !strings.HasPrefix(got.Err, want) || want == "" && strings.Contains(got.Err, "comes back") {
			t.Errorf("%s: exit code %d, %q", manager, got.Code, got.Err)
		}
	}
}
