package surge_test

import (
	"errors"
	"io"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/surge"
)

// A namespace with many records keeps the others waiting for one of them.
func TestExtraReplicasComeOneOfEachNamespaceAfterTheOther(t *testing.T) {
	cluster := agenttest.New(t)
	for _, d := range []struct{ namespace, name, record string }{
		{"a", "one", `{"replicas":1,"node":"n","pod":"x"}`},
		{"a", "two", `{"replicas":1,"node":"n","pod":"x"}`},
		{"a", "three", `{"replicas":1,"node":"n","pod":"x"}`},
		{"b", "one", `{"replicas":1,"node":"n","pod":"x"}`},
		{"b", "impossible", `{"replicas":-1,"node":"n","pod":"x"}`},
		{"c", "elsewhere", `{"replicas":1,"node":"other","pod":"x"}`},
		{"d", "one", `{"replicas":1,"node":"n","pod":"x"}`},
	} {
		cluster.Put(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: d.namespace, Name: d.name, Labels: map[string]string{annotations.LabelSurging: "true"},
			Annotations: map[string]string{annotations.StatusSurge: d.record},
		}})
	}
	extra, err := surge.List(t.Context(), cluster.Clients().Kube, func(r annotations.Surge) bool { return r.Node == "n" })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range extra {
		got = append(got, d.Namespace)
	}
	if want := []string{"a", "b", "d", "a", "a"}; !slices.Equal(got, want) {
		t.Errorf("%v: %q", extra, got)
	}
}

func TestWhatIsRefusedForGood(t *testing.T) {
	what := appsv1.Resource("deployments")
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"an impossible value":        {apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", nil), true},
		"a missing right":            {apierrors.NewForbidden(what, "web", errors.New("no")), true},
		"an unreadable request":      {apierrors.NewBadRequest("no"), true},
		"a conflict":                 {apierrors.NewConflict(what, "web", errors.New("changed")), false},
		"an API server that is busy": {apierrors.NewTooManyRequests("busy", 1), false},
		"one that does not know us":  {apierrors.NewUnauthorized("no"), false},
		"a fault of its own":         {apierrors.NewInternalError(io.EOF), false},
		"no answer":                  {io.ErrUnexpectedEOF, false},
	} {
		if got := surge.Final(c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
