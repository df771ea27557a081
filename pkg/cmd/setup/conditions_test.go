package setup

import (
	"bytes"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

// planned is a node with a lifecycle condition that a field manager set.
func planned(name, manager string, status corev1.ConditionStatus) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: "1"}}
	n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{"k:{\"type\":\"MaintenancePlanned\"}":{"f:status":{}}}}}`)}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: corev1.ConditionTrue}, {Type: "MaintenancePlanned", Status: status, Reason: "MaintenanceRequested", Message: "gpu: waits for the node"}}
	return n
}

// Without an agent nobody ends what it said of nodes.
func TestUninstallEndsTheAgentsConditions(t *testing.T) {
	for name, c := range map[string]struct {
		mode    string
		answers []error // to patches; then they succeed
		patched []string
		out     string
		err     bool
	}{
		"it ends ours":                         {mode: "none", patched: []string{"ours"}, out: "node/ours condition MaintenancePlanned ended\n"},
		"a rehearsal on the server":            {mode: "server", patched: []string{"ours"}, out: "node/ours condition MaintenancePlanned ended (server dry run)\n"},
		"a rehearsal that sends nothing":       {mode: "client", out: "node/ours condition MaintenancePlanned ended (dry run)\n"},
		"a node that somebody wrote meanwhile": {mode: "none", answers: []error{apierrors.NewConflict(corev1.Resource("nodes"), "ours", errors.New("modified"))}, patched: []string{"ours", "ours"}, out: "node/ours condition MaintenancePlanned ended\n"},
		"a node that is gone":                  {mode: "none", answers: []error{apierrors.NewNotFound(corev1.Resource("nodes"), "ours")}, patched: []string{"ours"}},
		"without the right to":                 {mode: "none", answers: []error{apierrors.NewForbidden(corev1.Resource("nodes"), "ours", errors.New("no"))}, patched: []string{"ours"}, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			kube := fake.NewClientset()
			list := []*corev1.Node{planned("ours", annotations.ManagerAgent, corev1.ConditionTrue), planned("over", annotations.ManagerAgent, corev1.ConditionFalse), planned("theirs", "kured", corev1.ConditionTrue)}
			kube.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				all := &corev1.NodeList{}
				for _, n := range list {
					all.Items = append(all.Items, *n)
				}
				return true, all, nil
			})
			kube.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, list[0], nil })
			var patched []string
			kube.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
				p := a.(clienttesting.PatchActionImpl)
				patched = append(patched, p.GetName())
				if p.GetSubresource() != "status" || (len(p.PatchOptions.DryRun) > 0) != (c.mode == "server") {
					t.Errorf("it patches %q, %v", p.GetSubresource(), p.PatchOptions.DryRun)
				}
				if n := len(patched); n <= len(c.answers) {
					return true, nil, c.answers[n-1]
				}
				return true, list[0], nil
			})
			o := &uninstallOptions{Factory: factory.New(factory.Env{IOStreams: genericiooptions.IOStreams{Out: &out}, Name: "kubectl maint", Now: func() time.Time { return time.Unix(0, 0) }})}
			o.Mode = c.mode
			err := o.conditions(t.Context(), &factory.Cluster{Kube: kube})
			if (err != nil) != c.err || out.String() != c.out || len(patched) != len(c.patched) {
				t.Errorf("it patches %v, says %q, %v", patched, out.String(), err)
			}
		})
	}
}
