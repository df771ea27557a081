package simulate_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/simulate"
)

// steps makes the plan's steps those that are given.
func steps(list ...plan.Step) edit { return spec(func(s *plan.Spec) { s.Steps = list }) }

// group holds steps as a document does: as values.
func group(name, mode string, inner ...plan.Step) plan.Step {
	list := make([]any, len(inner))
	for i, s := range inner {
		list[i] = map[string]any{"name": s.Name, "type": s.Type, "properties": s.Properties}
	}
	return plan.Step{Name: name, Type: plan.TypeGroup, Properties: map[string]any{"mode": mode, "steps": list}}
}

func templated(name string, t plan.TemplateSpec) edit {
	return func(p *simulate.Plan) { p.Templates = map[string]plan.TemplateSpec{name: t} }
}

func TestStepsThatHoldSteps(t *testing.T) {
	hourly := cron("0 * * * *")
	pause := plan.TemplateSpec{
		Parameters: []plan.TemplateParameter{{Name: "long", Default: "90m"}},
		Steps:      []plan.Step{suspend("hold", "${params.long}")},
	}
	rolling := plan.Step{Name: "roll", Type: plan.TypeForEach, Properties: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "batches": []any{"10%", "100%"}, "until": "object.status.ok",
		"steps": []any{map[string]any{"name": "hold", "type": "suspend"}},
	}}
	held := plan.Step{Name: "quiet", Type: "silence"}
	limited := group("g", "sequential", suspend("hold", ""))
	limited.Timeout = coretest.Duration("10m")
	check(t, nil, []row{
		{"a group in order takes the time of all", span("01:00", "04:00"), nightly(hourly, steps(group("g", "sequential", suspend("a", "31m"), suspend("b", "31m"))), longest("2h")), nil, []string{"01:00 Ran", "02:00 Skipped(busy)", "03:00 Ran"}},
		{"a parallel one takes that of the longest", span("01:00", "04:00"), nightly(hourly, steps(group("g", "parallel", suspend("a", "31m"), suspend("b", "31m"))), longest("2h")), nil, []string{"01:00 Ran", "02:00 Ran", "03:00 Ran"}},
		{"a group's timeout ends what it holds", span("01:00", "04:00"), nightly(hourly, steps(limited), longest("3h")), nil, []string{"01:00 Ran", "02:00 Ran", "03:00 Ran", "note: plan shop/p: nobody resumes step g/hold here: it lasts until the timeout 10m0s of step g"}},
		{"a template's steps take their time", span("01:00", "04:00"), nightly(hourly, steps(plan.Step{Name: "t", Type: "template/pause"}), templated("pause", pause), longest("2h")), nil, []string{"01:00 Ran", "02:00 Skipped(busy)", "03:00 Ran"}},
		{"as its parameters say", span("01:00", "01:21"), nightly(cron("*/10 * * * *"), steps(plan.Step{Name: "t", Type: "template/pause", Properties: map[string]any{"long": "5m"}}), templated("pause", pause)), nil, []string{"01:00 Ran", "01:10 Ran", "01:20 Ran"}},
		{"a template that is not there counts as done", span("01:00", "03:00"), nightly(hourly, steps(plan.Step{Name: "t", Type: "template/pause"})), nil, []string{"01:00 Ran", "02:00 Ran"}},
		{"a loop finds nothing", span("01:00", "03:00"), nightly(hourly, steps(rolling)), nil, []string{"01:00 Ran", "02:00 Ran", "note: plan shop/p: step roll finds no objects here: it counts as done at once"}},
		{"a lease is kept and given back", span("01:00", "04:00"), nightly(hourly, steps(held, suspend("hold", "90m")), longest("2h")), outage("01:20", "01:40"), []string{"01:00 Ran", "02:00 Skipped(busy)", "03:00 Ran"}},
	})
}

func TestApprovals(t *testing.T) {
	hourly := cron("0 * * * *")
	asked := spec(func(s *plan.Spec) { s.RequiresApproval = true })
	check(t, windows("02:30", "04:30"), []row{
		{"a run is approved at once", span("01:00", "03:00"), nightly(hourly, asked), nil, []string{"01:00 Ran", "02:00 Ran"}},
		{"a step is approved at once", span("01:00", "03:00"), nightly(hourly, steps(plan.Step{Name: "ask", Type: plan.TypeApproval})), nil, []string{"01:00 Ran", "02:00 Ran"}},
		{"an approved run has met its deadline", span("00:00", "01:30"), nightly(cron("0 1 * * *"), asked, inWindow), nil, []string{"01:00 Ran at 02:30"}},
		{"one that nobody is asked about has not", span("00:00", "01:30"), nightly(cron("0 1 * * *"), inWindow), nil, []string{"01:00 Missed(window)"}},
	})
}

func TestWatchTriggersNeverFire(t *testing.T) {
	watching := spec(func(s *plan.Spec) { s.Triggers.Watch = []plan.Watch{{APIVersion: "v1", Kind: "Secret"}} })
	check(t, nil, []row{{"a watch", span("01:00", "03:00"), nightly(watching), nil, []string{"02:00 Ran", "note: plan shop/p: nothing changes here: its watch triggers ask for no run"}}})
}
