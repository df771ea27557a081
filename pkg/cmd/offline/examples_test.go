package offline_test

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

// roleOfAWS is what the ServiceAccounts of examples may differ in: each account has one role of AWS.
const roleOfAWS = "eks.amazonaws.com/role-arn"

// examples are the texts of the folder examples/, by their names.
func examples(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	out := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(file)] = string(text)
	}
	return out
}

// objectsIn are the objects of a file.
func objectsIn(t *testing.T, text string) (out []unstructured.Unstructured) {
	t.Helper()
	for _, part := range strings.Split("\n"+text, "\n---\n") {
		var u unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(part), &u.Object); err != nil {
			t.Fatal(err)
		}
		if u.Object != nil {
			out = append(out, u)
		}
	}
	return out
}

// A plan of an example has the Roles that rbac prints for it, by their names, with all of their
// rights: written by hand, and tried.
func TestTheExamplesGrantWhatRBACPrints(t *testing.T) {
	tried := 0
	for name, text := range examples(t) {
		in := "shop"
		if named := regexp.MustCompile(`(?m)^  namespace: (\S+)`).FindStringSubmatch(text); named != nil {
			in = named[1]
		}
		got := cmdtest.Offline(t, cmd.Run, "", "-n", in, "rbac", "-f", filepath.Join("../../../examples", name))
		if got.Code != 0 { // no plan in it
			continue
		}
		granted := rules(t, text)
		for role, needed := range rules(t, got.Out) {
			tried++
			for _, r := range needed {
				for _, verb := range r.Verbs {
					if !slices.ContainsFunc(granted[role], func(g rbacv1.PolicyRule) bool { return covers(g, r, verb) }) {
						t.Errorf("%s, %s: %s on %v %v %v is not granted there", name, role, verb, r.APIGroups, r.Resources, r.ResourceNames)
					}
				}
			}
		}
	}
	if tried < 15 {
		t.Errorf("only %d Roles were tried", tried)
	}
}

// covers says whether a rule grants a verb of another, which may name several objects.
func covers(g, r rbacv1.PolicyRule, verb string) bool {
	named := len(g.ResourceNames) == 0 || len(r.ResourceNames) > 0 && !slices.ContainsFunc(r.ResourceNames, func(n string) bool { return !slices.Contains(g.ResourceNames, n) })
	return slices.Contains(g.APIGroups, r.APIGroups[0]) && slices.Contains(g.Resources, r.Resources[0]) && slices.Contains(g.Verbs, verb) && named
}

// rules are those of the Roles in a text, by kind and name.
func rules(t *testing.T, text string) map[string][]rbacv1.PolicyRule {
	t.Helper()
	out := map[string][]rbacv1.PolicyRule{}
	for _, part := range strings.Split("\n"+text, "\n---\n") {
		var role rbacv1.Role
		if err := yaml.Unmarshal([]byte(part), &role); err == nil && (role.Kind == "Role" || role.Kind == "ClusterRole") {
			out[role.Kind+" "+role.Name] = role.Rules
		}
	}
	return out
}

// All of them can stand in one namespace: none changes what another one brought, but for the role of
// AWS, of which the files say so.
func TestNoExampleReplacesWhatAnotherBrought(t *testing.T) {
	type brought struct {
		by string
		is map[string]any
	}
	seen, all := map[string]brought{}, examples(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, u := range objectsIn(t, all[name]) {
			if u.GetKind() == "ServiceAccount" && u.GetAnnotations()[roleOfAWS] != "" {
				if !strings.Contains(all[name], "one role of AWS") {
					t.Errorf("%s does not say that its account has one role of AWS", name)
				}
				unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
			}
			key := u.GetKind() + " " + cmp.Or(u.GetNamespace(), "shop") + "/" + u.GetName()
			before, there := seen[key]
			if diff := gocmp.Diff(before.is, u.Object); there && diff != "" {
				t.Errorf("%s changes %s of %s (-before +after):\n%s", name, key, before.by, diff)
			}
			seen[key] = brought{name, u.Object}
		}
	}
}
