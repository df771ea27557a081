package adopt

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

func TestWhatHasNoContentsSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		cm   corev1.ConfigMap
		want string
	}{
		"a run without its label": {
			object("maint-run-orders-1", "", "v1.a.b.c"),
			"it needs no new signature: its label maint.dev/kind is gone; put it back with 'kubectl -n shop label configmap maint-run-orders-1 maint.dev/kind=run --overwrite'",
		},
		"something else":    {object("settings", "", ""), `it is nothing that the agent writes: its label maint.dev/kind is ""`},
		"of another's kind": {object("maint-run-orders-1", "plan", ""), `it is nothing that the agent writes: its label maint.dev/kind is "plan"`},
	} {
		if _, err := contents(&c.cm, "UTC"); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// object is a ConfigMap of plan orders, with a kind and a signature where they are given.
func object(name, kind, signature string) corev1.ConfigMap {
	cm := corev1.ConfigMap{}
	cm.Namespace, cm.Name = "shop", name
	cm.Labels, cm.Annotations = map[string]string{annotations.LabelPlan: "orders"}, map[string]string{}
	if kind != "" {
		cm.Labels[annotations.LabelKind] = kind
	}
	if signature != "" {
		cm.Annotations[annotations.StatusSignature] = signature
	}
	return cm
}
