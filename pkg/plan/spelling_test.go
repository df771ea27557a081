package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Where a plan names a kind, and how it may not be spelt. A run that an earlier version made of such a
// plan is read all the same: what it changed is put back, and its finally runs.
func TestAKindThatIsMisspeltIsAFaultOfAPlanAndNotOfARun(t *testing.T) {
	const suspend = "steps: [{name: a, type: suspend}]\n"
	for _, place := range []struct{ name, spec, at string }{
		{"a step", "steps: [{name: a, type: patch-object, properties: {resource: {apiVersion: '%s', kind: %s, name: x}, patch: {}}}]\n", "spec.steps[0].properties.resource."},
		{"an object that a step applies", "steps: [{name: a, type: apply-object, properties: {object: {apiVersion: '%s', kind: %s, metadata: {name: x}}}}]\n", "spec.steps[0].properties.object."},
		{"a loop", "steps: [{name: a, type: for-each, properties: {apiVersion: '%s', kind: %s, steps: [{name: b, type: suspend}]}}]\n", "spec.steps[0].properties."},
		{"a step in a loop", "steps: [{name: a, type: for-each, properties: {apiVersion: v1, kind: Pod, steps: [{name: b, type: delete-object, properties: {resource: {apiVersion: '%s', kind: %s, name: x}}}]}}]\n", "spec.steps[0].properties.steps[0].properties.resource."},
		{"what a step asks for", "steps: [{name: a, type: suspend, requires: [{name: r, apiVersion: '%s', kind: %s, objectName: x}]}]\n", "spec.steps[0].requires[0]."},
		{"the target", "target: {apiVersion: '%s', kind: %s, name: x}\n" + suspend, "spec.target."},
		{"a watch", "triggers: {watch: [{apiVersion: '%s', kind: %s}]}\n" + suspend, "spec.triggers.watch[0]."},
	} {
		for _, c := range []struct{ apiVersion, kind, field string }{
			{"v1", "Secret", ""},
			{"v1", "secret", "kind"},
			{"v1", "SECRET", "kind"},
			{"v1", "secrets", "kind"},
			{"v1/", "Secret", "apiVersion"},
			{" v1", "Secret", "apiVersion"},
			{"apps/", "Deployment", "apiVersion"},
			{"Apps/v1", "Deployment", "apiVersion"},
		} {
			t.Run(fmt.Sprintf("%s: %s of %q", place.name, c.kind, c.apiVersion), func(t *testing.T) {
				spec, faults := plan.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  "+strings.ReplaceAll(strings.TrimSpace(fmt.Sprintf(place.spec, c.apiVersion, c.kind)), "\n", "\n  ")+"\n"), "orders")
				if c.field == "" && len(faults) > 0 || c.field != "" && (len(faults) != 1 || !strings.Contains(faults[0].String(), place.at+c.field+": ")) {
					t.Errorf("faults: %s", faults.Error())
				}
				if faults := plan.CheckSnapshot(spec.Defaulted(), nil); len(faults) > 0 {
					t.Errorf("a run of it is not read: %s", faults.Error())
				}
			})
		}
	}
}
