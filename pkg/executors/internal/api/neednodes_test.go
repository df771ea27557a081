package api_test

import (
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
)

func TestWhoMayChangeWhichNodes(t *testing.T) {
	for name, c := range map[string]struct {
		may     []string // names that may be patched; empty is all of them
		nodes   []string
		dryRun  bool
		refused string
		asked   int
	}{
		"all":                    {may: []string{""}, nodes: []string{"a", "b"}, asked: 1},
		"those that are named":   {may: []string{"a", "b"}, nodes: []string{"a", "b"}, asked: 3},
		"one of them":            {may: []string{"a"}, nodes: []string{"a", "b", "c"}, refused: `may not patch nodes "b"`, asked: 3},
		"none":                   {nodes: []string{"a", "b"}, refused: `may not patch nodes "a"`, asked: 2},
		"nothing is to be done":  {},
		"what is only rehearsed": {nodes: []string{"a"}, dryRun: true},
	} {
		t.Run(name, func(t *testing.T) {
			kube, asked := fake.NewClientset(), 0
			kube.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
				asked++
				right := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).Spec.ResourceAttributes
				allowed := right.Verb == "patch" && right.Resource == "nodes" && slices.Contains(c.may, right.Name)
				return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: allowed}}, nil
			})
			err := api.NeedNodes(t.Context(), executors.Call{Plan: executors.PlanRef{Namespace: "ops", Account: "maint-runner"}, DryRun: c.dryRun, Clients: executors.Clients{Kube: kube}}, c.nodes)
			if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%v, want %q", err, c.refused)
			}
			if asked != c.asked {
				t.Errorf("asked %d times, want %d", asked, c.asked)
			}
		})
	}
}
