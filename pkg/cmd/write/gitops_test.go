package write_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

const (
	scalesWeb = `apiVersion: v1
kind: ConfigMap
metadata:
  name: nightly
  namespace: shop
  labels: {maint.dev/kind: plan}
data:
  plan.yaml: |
    apiVersion: maint.dev/v1alpha1
    kind: Plan
    spec:
      target: {apiVersion: apps/v1, kind: Deployment, name: web}
      steps:
      - {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: web}, replicas: 1, restoreAfter: true}}
      - {name: tell, type: webhook, properties: {url: "https://example.org/${run.name}"}}
`
	fluxApps = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps}\nspec:\n  path: ./apps\n"
)

func TestLintKnowsTheToolsBesideADocument(t *testing.T) {
	annotated := strings.Replace(scalesWeb, "  labels:", "  annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}\n  labels:", 1)
	held := strings.Replace(scalesWeb, "      target:", "      holdOwners: true\n      target:", 1)
	const hash = "kustomization.yaml:2: configMapGenerator: nightly gets a hash added to its name, so each edit makes another document"
	const eaten = "apps/nightly.yaml:15: Flux takes ${…} for a variable of its own, since Kustomization apps has postBuild: put the annotation kustomize.toolkit.fluxcd.io/substitute: disabled on this ConfigMap\n"
	const bare = "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps: [{name: tell, type: webhook, properties: {url: \"https://example.org/${run.name}\"}}]\n"
	generated := func(more string) string {
		return "configMapGenerator:\n- {name: bare, files: [plan.yaml]" + more + "}\ngeneratorOptions: {disableNameSuffixHash: true}\n"
	}
	const undone = "warning: apps/nightly.yaml:12: spec.target: step down changes Deployment/web; if a Kustomization manages that from Git, it undoes the change during the run: holdOwners: true suspends it meanwhile\n"
	for name, c := range map[string]struct {
		files     map[string]string
		out, warn string
	}{
		"a generated name":                       {files: map[string]string{"kustomization.yaml": "configMapGenerator:\n- name: nightly\n  files: [plan.yaml]\n"}, out: hash},
		"generated from another file":            {files: map[string]string{"kustomization.yaml": "configMapGenerator:\n- name: nightly\n  files: [plan.yaml=apps/nightly.yaml]\n"}, out: hash},
		"kustomize's third file name":            {files: map[string]string{"Kustomization": "configMapGenerator:\n- name: nightly\n  files: [plan.yaml]\n"}, out: strings.Replace(hash, "kustomization.yaml", "Kustomization", 1)},
		"generated and marked":                   {files: map[string]string{"kustomization.yaml": "configMapGenerator:\n- name: nightly\n  files: [x.yaml]\n  options: {labels: {maint.dev/kind: plan}}\n"}, out: hash},
		"a generated name that stays":            {files: map[string]string{"kustomization.yaml": "configMapGenerator:\n- name: nightly\n  files: [plan.yaml]\n  options: {disableNameSuffixHash: true}\n"}},
		"all generated names stay":               {files: map[string]string{"kustomization.yaml": "generatorOptions: {disableNameSuffixHash: true}\nconfigMapGenerator:\n- name: nightly\n  files: [plan.yaml]\n"}},
		"somebody else's is generated":           {files: map[string]string{"kustomization.yaml": "configMapGenerator:\n- name: web\n  files: [nginx.conf]\n"}},
		"Flux alone":                             {files: map[string]string{"clusters/apps.yaml": fluxApps}, warn: undone},
		"a release of Helm beside it":            {files: map[string]string{"clusters/apps.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web}\n"}, warn: strings.Replace(undone, "a Kustomization", "a HelmRelease", 1)},
		"Argo CD beside it":                      {files: map[string]string{"clusters/apps.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\n"}, warn: strings.Replace(undone, "a Kustomization", "an Application", 1)},
		"Argo CD with its owner held":            {files: map[string]string{"clusters/apps.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\n", "apps/nightly.yaml": held}},
		"Flux with its owner held":               {files: map[string]string{"clusters/apps.yaml": fluxApps, "apps/nightly.yaml": held}},
		"Flux substitutes":                       {files: map[string]string{"clusters/apps.yaml": fluxApps + "  postBuild: {substitute: {a: b}}\n"}, out: eaten, warn: undone},
		"Flux substitutes a file of a generator": {files: map[string]string{"clusters/apps.yaml": fluxApps + "  postBuild: {substitute: {a: b}}\n", "apps/bare/plan.yaml": bare, "apps/bare/kustomization.yaml": generated(""), "apps/nightly.yaml": annotated}, out: "apps/bare/plan.yaml:4: Flux takes ${…} for a variable of its own, since Kustomization apps has postBuild: give configMapGenerator bare in apps/bare/kustomization.yaml the options: {annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}}\n", warn: strings.Replace(undone, ":12:", ":13:", 1)},
		"Flux is told not to substitute it":      {files: map[string]string{"clusters/apps.yaml": fluxApps + "  postBuild: {substitute: {a: b}}\n", "apps/bare/plan.yaml": bare, "apps/bare/kustomization.yaml": generated(", options: {annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}}"), "apps/nightly.yaml": annotated}, warn: strings.Replace(undone, ":12:", ":13:", 1)},
		"Flux is told so for all generators":     {files: map[string]string{"clusters/apps.yaml": fluxApps + "  postBuild: {substitute: {a: b}}\n", "apps/bare/plan.yaml": bare, "apps/bare/kustomization.yaml": strings.Replace(generated(""), "generatorOptions: {disableNameSuffixHash: true}\n", "", 1) + "generatorOptions: {disableNameSuffixHash: true, annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}}\n", "apps/nightly.yaml": annotated}, warn: strings.Replace(undone, ":12:", ":13:", 1)},
		"no generator reads the file":            {files: map[string]string{"clusters/apps.yaml": fluxApps + "  postBuild: {substitute: {a: b}}\n", "apps/bare/plan.yaml": bare, "apps/nightly.yaml": annotated}, warn: strings.Replace(undone, ":12:", ":13:", 1)},
		"Flux substitutes elsewhere":             {files: map[string]string{"clusters/apps.yaml": strings.Replace(fluxApps, "./apps", "./app", 1) + "  postBuild: {substitute: {a: b}}\n"}, warn: undone},
		"Flux substitutes everywhere":            {files: map[string]string{"clusters/apps.yaml": strings.Replace(fluxApps, "  path: ./apps\n", "", 1) + "  postBuild: {substitute: {a: b}}\n"}, out: eaten, warn: undone},
		"Flux is told not to":                    {files: map[string]string{"clusters/apps.yaml": fluxApps + "  postBuild: {substitute: {a: b}}\n", "apps/nightly.yaml": annotated}, warn: strings.Replace(undone, ":12:", ":13:", 1)},
		"a chart's template":                     {files: map[string]string{"chart/Chart.yaml": "name: x\n", "chart/templates/p.yaml": strings.NewReplacer("nightly", "weekly", "name: web", "name: api", "${run.name}", "{{ .Release.Name }}").Replace(scalesWeb)}, out: "chart/templates/p.yaml:15: Helm expands {{…}} before anybody reads it: lint what 'helm template chart' makes of it\n"},
		"a template that is no YAML":             {files: map[string]string{"chart/Chart.yaml": "name: x\n", "chart/templates/p.yaml": "{{- if .Values.on }}\na: b\n{{- end }}\n"}, out: "chart/templates/p.yaml:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"apps/nightly.yaml": scalesWeb}
			maps.Copy(files, c.files)
			cmdtest.WriteFiles(t, files)
			got := cmdtest.Offline(t, cmd.Run, "", "lint", "-f", ".")
			if !strings.HasPrefix(got.Out, c.out) || c.out == "" && got.Out != "" || strings.Count(got.Out, "\n") > 1 {
				t.Errorf("it says %q, want %q", got.Out, c.out)
			}
			if (got.Code != 0) != (c.out != "") || !strings.HasPrefix(got.Err, c.warn) || c.warn == "" && strings.Contains(got.Err, "warning") {
				t.Errorf("exit code %d, and %q, want %q", got.Code, got.Err, c.warn)
			}
			if strings.HasPrefix(name, "a template that is") && !strings.Contains(got.Out, "; is it a template of Helm? Lint what 'helm template chart' makes of it\n") {
				t.Errorf("it says %q", got.Out)
			}
		})
	}
}

// The templates of a chart are told as such also where the chart itself is not named.
func TestLintKnowsTheChartOfATemplate(t *testing.T) {
	templated := strings.NewReplacer("${run.name}", "{{ .Release.Name }}").Replace(scalesWeb)
	for name, c := range map[string]struct {
		chart string
		told  bool
	}{
		"a chart":     {"charts/orders/Chart.yaml", true},
		"none at all": {"charts/orders/values.yaml", false},
	} {
		t.Run(name, func(t *testing.T) {
			cmdtest.WriteFiles(t, map[string]string{c.chart: "name: orders\n", "charts/orders/templates/jobs/p.yaml": templated})
			got := cmdtest.Offline(t, cmd.Run, "", "lint", "-f", "charts/orders/templates/jobs")
			if told := strings.Contains(got.Out, "lint what 'helm template charts/orders' makes of it"); told != c.told {
				t.Errorf("exit code %d: %s%s", got.Code, got.Out, got.Err)
			}
		})
	}
}

// Who lints a part of a repository is told what Flux makes of it, as who lints all of it.
func TestLintKnowsTheTreeOfADocument(t *testing.T) {
	const eaten = "apps/nightly.yaml:15: Flux takes ${…} for a variable of its own, since Kustomization apps has postBuild: put the annotation kustomize.toolkit.fluxcd.io/substitute: disabled on this ConfigMap\n"
	substitutes := fluxApps + "  postBuild: {substitute: {a: b}}\n"
	for name, c := range map[string]struct {
		flux  map[string]string
		noGit bool
		lint  []string
		out   string
		warn  bool // of the tool that undoes what the plan does
	}{
		"one manifest":                    {flux: map[string]string{"clusters/apps.yaml": substitutes}, lint: []string{"apps/nightly.yaml"}, out: eaten, warn: true},
		"one folder":                      {flux: map[string]string{"clusters/apps.yaml": substitutes}, lint: []string{"apps"}, out: eaten, warn: true},
		"both folders":                    {flux: map[string]string{"clusters/apps.yaml": substitutes}, lint: []string{"apps", "clusters"}, out: eaten, warn: true},
		"all of it, and told once":        {flux: map[string]string{"clusters/apps.yaml": substitutes}, lint: []string{"."}, out: eaten, warn: true},
		"the whole tree is applied":       {flux: map[string]string{"clusters/apps.yaml": strings.Replace(substitutes, "  path: ./apps\n", "", 1)}, lint: []string{"apps"}, out: eaten, warn: true},
		"another folder is applied":       {flux: map[string]string{"clusters/apps.yaml": strings.Replace(substitutes, "./apps", "./app", 1)}, lint: []string{"apps"}},
		"Flux replaces nothing":           {flux: map[string]string{"clusters/apps.yaml": fluxApps}, lint: []string{"apps/nightly.yaml"}, warn: true},
		"what Git does not show":          {flux: map[string]string{".cache/apps.yaml": substitutes}, lint: []string{"apps"}},
		"beside it is what nobody parses": {flux: map[string]string{"clusters/apps.yaml": substitutes, "broken.yaml": "kustomize.toolkit.fluxcd.io/ postBuild: ["}, lint: []string{"apps"}, out: eaten, warn: true},
		"outside of any tree":             {flux: map[string]string{"clusters/apps.yaml": substitutes}, noGit: true, lint: []string{"apps"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"apps/nightly.yaml": scalesWeb, ".git": "gitdir: elsewhere\n"}
			if c.noGit {
				delete(files, ".git")
			}
			maps.Copy(files, c.flux)
			cmdtest.WriteFiles(t, files)
			args := []string{"lint"}
			for _, path := range c.lint {
				args = append(args, "-f", path)
			}
			if got := cmdtest.Offline(t, cmd.Run, "", args...); got.Out != c.out || (got.Code != 0) != (c.out != "") || strings.Contains(got.Err, "if a Kustomization manages that from Git") != c.warn {
				t.Errorf("exit code %d, and it says %q and %q, want %q", got.Code, got.Out, got.Err, c.out)
			}
		})
	}
}
