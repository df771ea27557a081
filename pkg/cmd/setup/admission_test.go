package setup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// MAINT_WRITE=1 writes them.
func TestThePoliciesInTheRepositoryAreWhatInstallPrints(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "manifests", "admission")
	for _, name := range policyOrder() {
		text, err := renderPolicy(name, annotations.DefaultNamespace)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name+".yaml")
		if os.Getenv("MAINT_WRITE") != "" {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text, string(kept)); diff != "" {
			t.Errorf("%s is stale: MAINT_WRITE=1 go test ./pkg/cmd/setup (-install +kept):\n%s", path, diff)
		}
	}
}

func TestEachFileOfPoliciesIsInstalled(t *testing.T) {
	entries, err := policyFiles.ReadDir("manifests/admission")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		files = append(files, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	want := policyOrder()
	slices.Sort(want)
	slices.Sort(files)
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("the order names other files than there are (-order +files):\n%s", diff)
	}
	if policyOrder()[0] != "roles" {
		t.Error("the roles are not first")
	}
}

func TestThePoliciesKnowTheAgentByItsNamespace(t *testing.T) {
	text, err := renderPolicies("upkeep")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, annotations.DefaultNamespace) || strings.Contains(text, "{{") || !strings.Contains(text, "system:serviceaccount:upkeep:maint-agent") {
		t.Error("the policies speak of an agent in another namespace")
	}
}

// What no policy may do: fail closed on nodes, match everything, or refuse without
// saying that it is forbidden.
func TestNoPolicyStandsInTheWayOfACluster(t *testing.T) {
	text, err := renderPolicies("maint-system")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := readObjects(text)
	if err != nil {
		t.Fatal(err)
	}
	policies := 0
	for _, u := range objects {
		spec, ours := u.Object["spec"].(map[string]any)
		if !ours || !strings.HasSuffix(u.GetKind(), "AdmissionPolicy") {
			continue
		}
		policies++
		resources := resourcesOf(t, spec)
		if slices.Contains(resources, "*") || len(resources) == 0 {
			t.Errorf("%s matches %v", named(u), resources)
		}
		onNodes := slices.ContainsFunc(resources, func(r string) bool { return strings.HasPrefix(r, "nodes") })
		if onNodes != (spec["failurePolicy"] == "Ignore") {
			t.Errorf("%s matches %v, and its failurePolicy is %v", named(u), resources, spec["failurePolicy"])
		}
		validations, _ := spec["validations"].([]any)
		for _, v := range validations {
			if v.(map[string]any)["reason"] != "Forbidden" {
				t.Errorf("%s refuses for another reason than Forbidden: %v", named(u), v)
			}
		}
	}
	if policies != 12 {
		t.Errorf("there are %d policies, want 12", policies)
	}
}

func resourcesOf(t *testing.T, spec map[string]any) (out []string) {
	t.Helper()
	match, _ := spec["matchConstraints"].(map[string]any)
	rules, _ := match["resourceRules"].([]any)
	for _, r := range rules {
		list, _ := r.(map[string]any)["resources"].([]any)
		for _, resource := range list {
			out = append(out, resource.(string))
		}
	}
	return out
}
