package workflow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// next is one look at a run, over and over: what a large run costs its agent each
// time that something came of one of its steps.
func next(b *testing.B, s *stage) {
	b.Helper()
	for b.Loop() {
		workflow.Advance(s.run, s.j, s.now, s.sig)
	}
}

func BenchmarkAdvanceOfALoop(b *testing.B) {
	names := coretest.Repeat(func(i int) string { return fmt.Sprintf("orders-%04d", i) }, plan.MaxItems)
	restoring := "{name: x, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: d}, replicas: 0, restoreAfter: true}}"
	for name, c := range map[string]struct {
		spec  string
		looks int
	}{
		"one at a time":              {loopOf("", coretest.Hook("x"), coretest.Hook("y")), 2001},
		"a hundred at a time":        {loopOf(", maxConcurrency: 100", coretest.Hook("x"), coretest.Hook("y"), coretest.Hook("z")), 31},
		"all found things":           {loopOf(", maxConcurrency: 100", restoring, coretest.Hook("y")), 31},
		"each in groups in groups":   {loopOf(", maxConcurrency: 100", parallel(0, coretest.Hook("x"), strings.Replace(parallel(0, coretest.Hook("y"), coretest.Hook("z")), "name: g", "name: h", 1))), 11},
		"each on a condition of its": {loopOf(", maxConcurrency: 100", coretest.Hook("x", "if: \"each.metadata.name != 'z'\""), coretest.Hook("y", "if: \"steps.x.phase == 'Succeeded'\"")), 21},
	} {
		b.Run(name, func(b *testing.B) {
			s := begun(b, "steps: ["+c.spec+"]", 0, script("roll", picks(names...)))
			for _, item := range names {
				s.script["roll/"+item+"/x"] = []workflow.StepResult{before("1"), {Done: true}}
				if !strings.Contains(c.spec, "restoreAfter") {
					s.script["roll/"+item+"/x"] = nil
				}
			}
			for range c.looks {
				s.look()
			}
			next(b, s)
			b.ReportMetric(float64(len(s.j.Steps)), "records")
		})
	}
}

func BenchmarkAdvanceOfAHundredSteps(b *testing.B) {
	conditions := coretest.Repeat(func(i int) string { return coretest.Hook(fmt.Sprintf("s%d", i), "if: \"run.reason != 'x'\"") }, 99)
	s := begun(b, "steps: ["+parallel(0, conditions...)+"]", 1)
	next(b, s)
}
