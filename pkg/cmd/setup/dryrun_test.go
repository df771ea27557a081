package setup

import (
	"bytes"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

func TestWhatTheAgentKeptIsListedToo(t *testing.T) {
	beat := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "maint-system", Name: annotations.HeartbeatName}}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "maint-system", Name: annotations.LeaseName}}
	for _, c := range []struct {
		name, mode, refused string
		there               []runtime.Object
		out, err            string
		stays               bool
	}{
		{name: "for good", mode: "none", there: []runtime.Object{beat, lease}, out: "configmap/maint-agent-status deleted\nlease/maint-agent deleted\n"},
		{name: "tried by the plugin", mode: "client", there: []runtime.Object{beat, lease}, out: "configmap/maint-agent-status deleted (dry run)\nlease/maint-agent deleted (dry run)\n", stays: true},
		{name: "an agent that elects nobody has no lease", mode: "client", there: []runtime.Object{beat}, out: "configmap/maint-agent-status deleted (dry run)\n", stays: true},
		{name: "what is only looked for is not said to be deleted", mode: "client", refused: "get", there: []runtime.Object{beat, lease}, err: `look for configmap/maint-agent-status: configmaps "maint-agent-status" is forbidden: <nil>`, stays: true},
		{name: "what may not be deleted", mode: "none", refused: "delete", there: []runtime.Object{beat, lease}, err: `delete configmap/maint-agent-status: configmaps "maint-agent-status" is forbidden: <nil>`, stays: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			kube := fake.NewClientset(c.there...)
			if c.refused != "" {
				kube.PrependReactor(c.refused, "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), annotations.HeartbeatName, nil)
				})
			}
			var out bytes.Buffer
			o := &uninstallOptions{Factory: factory.New(factory.Env{IOStreams: genericiooptions.IOStreams{Out: &out}}), DryRun: factory.DryRun{Mode: c.mode}, namespace: "maint-system"}
			err := o.ownRecords(t.Context(), &factory.Cluster{Kube: kube})
			if cmdtest.ErrText(err) != c.err || out.String() != c.out {
				t.Errorf("%q, %v", out.String(), err)
			}
			left, _ := kube.Tracker().List(corev1.SchemeGroupVersion.WithResource("configmaps"), corev1.SchemeGroupVersion.WithKind("ConfigMap"), "maint-system")
			if stays := len(left.(*corev1.ConfigMapList).Items) > 0; stays != c.stays {
				t.Errorf("the heartbeat is there: %t", stays)
			}
		})
	}
}
