package executors_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

func TestHowAKindIsFoundToActAndToPutBack(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}, {Group: "apps", Version: "v1"}})
	secret, deployment := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	other := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
	for _, kind := range []schema.GroupVersionKind{secret, deployment, other} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	none := schema.GroupVersionKind{}
	for _, c := range []struct {
		apiVersion, kind string
		acts, putsBack   schema.GroupVersionKind
	}{
		{"v1", "Secret", secret, secret},
		{"apps/v1", "Deployment", deployment, deployment},
		{"v1", "secret", none, secret},
		{"apps/v1", "deployment", none, deployment},
		{"apps/", "Deployment", none, deployment},
		{"apps/__internal", "deployment", none, deployment},
		{"/v1", "Secret", none, secret},
		{"/", "Secret", none, secret},
		{"v1", "SECRET", none, none}, // no version took these
		{"v1", "secrets", none, none},
		{" v1", "Secret", none, none},
		{"V1", "Secret", none, none},
		{"Apps/v1", "Deployment", none, none},
		{"a/b/c", "Deployment", none, none},
		{"v1", "widget", none, none}, // of another group
		{"apps/v2", "deployment", none, none},
		{"apps/v1", "", none, none},
	} {
		for find, want := range map[string]schema.GroupVersionKind{"acts": c.acts, "puts back": c.putsBack} {
			mapping := executors.Mapping
			if find == "puts back" {
				mapping = executors.RecordedMapping
			}
			found, err := mapping(mapper, c.apiVersion, c.kind)
			switch {
			case want == none && !meta.IsNoMatchError(err):
				t.Errorf("who %s finds %s of %q: %v, %v", find, c.kind, c.apiVersion, found, err)
			case want != none && (err != nil || found.GroupVersionKind != want):
				t.Errorf("who %s does not find %s of %q: %v, %v", find, c.kind, c.apiVersion, found, err)
			}
		}
	}
}
