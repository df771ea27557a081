package gitops

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
)

// What of the files of GitOps tools lint has to know: names with hashes, variables that are
// replaced, and whose they are.
func TestWhatGitOpsToolsDoWithDocuments(t *testing.T) {
	const (
		kustomize = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
		flux      = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps}\n"
	)
	generator := func(more string) string { return "configMapGenerator:\n- {name: orders, " + more + "}\n" }
	for _, c := range []struct {
		name, file, text string
		hashed           []string // file:line name
		substitutes      []string
		owners           []string
	}{
		{name: "a generator of a plan", text: kustomize + generator("files: [deploy/plan.yaml]"), hashed: []string{"FILE:4 orders"}},
		{name: "one whose key is given", text: kustomize + generator("files: [policy.yaml=nights.txt]"), hashed: []string{"FILE:4 orders"}},
		{name: "one of literals", text: kustomize + generator("literals: [calendar.ics=x]"), hashed: []string{"FILE:4 orders"}},
		{name: "one with our label", text: kustomize + generator("options: {labels: {maint.dev/kind: plan}}"), hashed: []string{"FILE:4 orders"}},
		{name: "one with our label from the options of all", text: kustomize + "generatorOptions: {labels: {maint.dev/kind: plan}}\n" + generator("files: [a.txt]"), hashed: []string{"FILE:5 orders"}},
		{name: "one of somebody else's", text: kustomize + generator("files: [app.properties, plan.yaml=x]") + "- {name: other, files: [app.properties]}\n", hashed: []string{"FILE:4 orders"}},
		{name: "one without a hash", text: kustomize + generator("files: [plan.yaml], options: {disableNameSuffixHash: true}")},
		{name: "none with a hash", text: kustomize + "generatorOptions: {disableNameSuffixHash: true}\n" + generator("files: [plan.yaml]")},
		{name: "no generator", text: kustomize + "resources: [a.yaml]\n"},
		{name: "a file of kustomize's name needs no kind", file: "kustomization.yaml", text: generator("files: [plan.yaml]"), hashed: []string{"FILE:2 orders"}},
		{name: "a file of another name does", file: "values.yaml", text: generator("files: [plan.yaml]")},
		{name: "the second document of a file", text: "kind: Other\n---\n" + kustomize + generator("files: [plan.yaml]"), hashed: []string{"FILE:6 orders"}},
		{name: "Flux with variables", text: flux + "spec: {path: ./apps, postBuild: {substitute: {a: b}}}\n", substitutes: []string{"FILE apps"}, owners: []string{"Kustomization"}},
		{name: "Flux without", text: flux + "spec: {path: ./apps}\n", owners: []string{"Kustomization"}},
		{name: "each tool once", text: flux + "---\n" + flux + "---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\n---\napiVersion: argoproj.io/v1alpha1\nkind: Application\n", owners: []string{"Kustomization", "HelmRelease", "Application"}},
		{name: "other kinds of theirs", text: "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmChart\n---\napiVersion: argoproj.io/v1alpha1\nkind: AppProject\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Other\n---\napiVersion: example.org/v1\nkind: Application\n---\napiVersion: example.org/v1\nkind: HelmRelease\n"},
		{name: "what is no YAML", text: "a: [\n---\n" + flux, owners: []string{"Kustomization"}},
		{name: "nothing", text: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.file == "" {
				c.file = "all.yaml"
			}
			g := Read([]source.File{{Path: c.file, Root: c.file, Text: []byte(c.text)}})
			var hashed, substitutes []string
			for _, h := range g.Hashed {
				hashed = append(hashed, fmt.Sprintf("FILE:%d %s", h.Line, h.Name))
			}
			for _, s := range g.Substitutes {
				substitutes = append(substitutes, "FILE "+s.Name)
			}
			if diff := cmp.Diff(c.hashed, hashed); diff != "" {
				t.Errorf("names with hashes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.substitutes, substitutes); diff != "" {
				t.Errorf("substitutions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.owners, g.Owners); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}

// Which files a Kustomization applies, and of which chart a file is a template.
func TestWhichFilesAToolTakes(t *testing.T) {
	substitution := func(path string) Substitution { return Substitution{path: path, roots: []string{"repo", "other"}} }
	for _, c := range []struct {
		path, file string
		want       bool
	}{
		{"./apps", "repo/apps/plan.yaml", true},
		{"/apps", "other/apps/deep/plan.yaml", true},
		{"apps", "repo/apps.yaml", false},
		{"./apps", "repo/infra/plan.yaml", false},
		{"./apps", "elsewhere/apps/plan.yaml", false},
		{"", "repo/infra/plan.yaml", true},
		{"./", "anything.yaml", true},
	} {
		if got := substitution(c.path).Applies(filepath.FromSlash(c.file)); got != c.want {
			t.Errorf("%q applies %s: %t", c.path, c.file, got)
		}
	}
	g := Read([]source.File{{Path: "charts/shop/Chart.yaml", Root: "charts", Text: []byte("name: shop\n")}, {Path: "charts/shop/templates/plan.yaml", Root: "charts"}})
	for file, want := range map[string]string{"charts/shop/templates/plan.yaml": "charts/shop", "charts/shop/values.yaml": "", "charts/shop/templates": "", "charts/other/templates/plan.yaml": ""} {
		if got := g.Chart(filepath.FromSlash(file)); got != want {
			t.Errorf("%s is of chart %q", file, got)
		}
	}
	if substitutes := Read([]source.File{
		{Path: "a/x.yaml", Root: "a", Text: []byte("kind: Other\n")},
		{Path: "a/y.yaml", Root: "a"},
		{Path: "b/k.yaml", Root: "b", Text: []byte("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nspec: {postBuild: {}}\n")},
	}).Substitutes; len(substitutes) != 1 || !cmp.Equal(substitutes[0].roots, []string{"a", "b"}) {
		t.Errorf("%+v", substitutes)
	}
}
