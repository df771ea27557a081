package object

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func TestWhenAWaitIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		properties plan.WaitProperties
		object     string
		want       bool
	}{
		"a condition that is True":                            {plan.WaitProperties{Condition: "Available"}, `{status: {conditions: [{type: Available, status: "True"}]}}`, true},
		"a condition that is False":                           {plan.WaitProperties{Condition: "Available"}, `{status: {conditions: [{type: Available, status: "False"}]}}`, false},
		"a condition that is Unknown":                         {plan.WaitProperties{Condition: "Available"}, `{status: {conditions: [{type: Available, status: Unknown}]}}`, false},
		"a condition that is not there":                       {plan.WaitProperties{Condition: "Available"}, `{status: {}}`, false},
		"no status at all":                                    {plan.WaitProperties{Condition: "Available"}, `{spec: {}}`, false},
		"a status that speaks of the generation before":       {plan.WaitProperties{Condition: "Available"}, `{metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Available, status: "True"}]}}`, false},
		"a condition that speaks of this generation":          {plan.WaitProperties{Condition: "Ready"}, `{metadata: {generation: 2}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 2}]}}`, true},
		"a condition of the generation before":                {plan.WaitProperties{Condition: "Ready"}, `{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`, false},
		"an expression that holds":                            {plan.WaitProperties{Until: "object.status.ready >= 2"}, `{status: {ready: 2}}`, true},
		"an expression that does not hold":                    {plan.WaitProperties{Until: "object.status.ready >= 2"}, `{status: {ready: 1}}`, false},
		"an expression over a field that is not there yet":    {plan.WaitProperties{Until: "object.status.ready >= 2"}, `{spec: {}}`, false},
		"an expression over the absence of a field that left": {plan.WaitProperties{Until: "!has(object.spec.busy)"}, `{spec: {}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, why := met(t.Context(), &c.properties, &unstructured.Unstructured{Object: parse(t, c.object)})
			if got != c.want || why == "" {
				t.Errorf("met: %t (%s), want %t", got, why, c.want)
			}
		})
	}
}
