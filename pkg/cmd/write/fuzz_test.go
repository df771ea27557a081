package write

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
)

func FuzzLint(f *testing.F) {
	f.Add(cmdtest.Manifest())
	f.Add("kind: List\nitems: [{kind: ConfigMap, apiVersion: v1, data: {plan.yaml: x}}]")
	f.Add("kind: Plan\nspec: [")
	f.Add(cmdtest.Using("long: 5m") + "---\n" + cmdtest.StepTemplate())
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Count(text, "\n") + 1
		docs, faults := source.Split("f", []byte(text))
		for _, d := range docs {
			faults = append(faults, d.Check()...)
			warnings(d)
		}
		for _, fault := range faults {
			if fault.Line < 1 || fault.Line > lines+1 {
				t.Errorf("a fault on line %d of %d: %s", fault.Line, lines, fault)
			}
		}
		if _, err := json.Marshal(faults); err != nil {
			t.Error(err)
		}
	})
}
