package setup_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

func TestACommandLineOfInstallThatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		told string
	}{
		{"shows and applies", []string{"--apply", "--diff"}, "--diff changes nothing, and --apply does: give one of them"},
		{"a dry run of what is only printed", []string{"--dry-run=client"}, "--dry-run is for --apply; without --apply nothing is changed"},
		{"a dry run of what there is not", []string{"--apply", "--dry-run=maybe"}, `--dry-run: "maybe" is not one of none, client, server`},
		{"a part that is none", []string{"--without", "requests,pods"}, `--without takes requests, force, volumes, conditions, confinement, kubelets, or none alone; not "pods"`},
		{"none beside a part", []string{"--without", "none,force"}, `--without takes requests, force, volumes, conditions, confinement, kubelets, or none alone; not "none"`},
		{"no replicas", []string{"--replicas", "0"}, "--replicas must be at least 1, is 0"},
		{"an account by its namespace", []string{"--impersonate", "ops/deployer"}, `--impersonate "ops/deployer" cannot name a ServiceAccount`},
		{"a format that there is not", []string{"-o", "xml"}, `-o must be json, yaml, name, jsonpath=…, custom-columns=… or go-template=…, is "xml"`},
		{"a format of what is applied", []string{"--apply", "-o", "name"}, "-o prints the manifests, and --apply and --diff do not: give one of them"},
		{"a format of what would change", []string{"--diff", "-o", "yaml"}, "-o prints the manifests, and --apply and --diff do not: give one of them"},
		{"acting as one and as nobody", []string{"--read-only", "--impersonate", "deployer"}, "--impersonate lets the agent act as an account, and --read-only as none: give one of them"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run)
			o.Maint(append([]string{"install"}, c.args...)...).Is(t, cmdtest.Printed{Code: 2, Err: "error: " + c.told + "\n"})
		})
	}
}

func TestInstallPrintsItsManifestsInEachFormat(t *testing.T) {
	printed := func(flags ...string) string {
		got := cmdtest.Offline(t, cmd.Run, "", append([]string{"install", "-n", "ops"}, flags...)...)
		if got.Code != 0 || got.Err != "" {
			t.Fatalf("%q: exit code %d, %s", flags, got.Code, got.Err)
		}
		return got.Out
	}
	documents := printed()
	if diff := cmp.Diff(documents, printed("-o", "yaml")); diff != "" {
		t.Errorf("-o yaml (-without +with):\n%s", diff)
	}
	var want []any
	var names []string
	for text := range strings.SplitSeq(documents, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text+"\n"), &object); err != nil {
			t.Fatal(err)
		}
		if object == nil {
			continue
		}
		group, _, grouped := strings.Cut(object["apiVersion"].(string), "/")
		kind := strings.ToLower(object["kind"].(string))
		if grouped {
			kind += "." + group
		}
		want, names = append(want, object), append(names, kind+"/"+object["metadata"].(map[string]any)["name"].(string))
	}
	var list map[string]any
	if err := json.Unmarshal([]byte(printed("-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	delete(list, "metadata") // kubectl's printer writes an empty one
	if diff := cmp.Diff(map[string]any{"apiVersion": "v1", "kind": "List", "items": want}, list); diff != "" {
		t.Errorf("-o json (-documents +list):\n%s", diff)
	}
	if diff := cmp.Diff(names, strings.Fields(printed("-o", "name"))); diff != "" {
		t.Errorf("-o name (-documents +names):\n%s", diff)
	}
	if got := printed("-o", "jsonpath={.items[?(@.kind==\"Deployment\")].metadata.namespace}"); got != "ops" {
		t.Errorf("-o jsonpath: %q", got)
	}
}

// Whoever may edit ConfigMaps where the agent runs is its admin, but for the admission policies.
func TestInstallSaysWhatATeamCanTakeOut(t *testing.T) {
	const warning = "warning: --outbound strict is in ConfigMap shop/maint-agent, and whoever may edit ConfigMaps of the namespace can remove it: with --with-admission only those with the verb override on plans.maint.dev can\n"
	for line, want := range map[string]string{
		"install -n shop --single-namespace --outbound strict":                  warning,
		"install -n shop --single-namespace --outbound strict --with-admission": "",
		"install -n shop --single-namespace":                                    "",
		"install -n shop --outbound strict":                                     "",
	} {
		if got := cmdtest.NewCluster(t, cmd.Run).Line(line); got.Code != 0 || got.Err != want || got.Out == "" {
			t.Errorf("%s: exit code %d, %q", line, got.Code, got.Err)
		}
	}
}

// README has the image tagged so.
func TestAScriptLearnsTheVersion(t *testing.T) {
	cmdtest.Offline(t, cmd.Run, "", "version", "--client", "-o", "jsonpath={.client}").Is(t, cmdtest.Printed{Out: "v0.1.0"})
}
