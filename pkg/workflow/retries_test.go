package workflow_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

func TestNoAttemptFollowsSoonerThanASecond(t *testing.T) {
	for name, r := range map[string]plan.Retry{
		"both are short":     {Backoff: coretest.Duration("1ms"), MaxBackoff: coretest.Duration("1ms")},
		"the first is short": {Backoff: coretest.Duration("1ms")},
		"the most is short":  {MaxBackoff: coretest.Duration("1ms")},
	} {
		for _, attempt := range []int{1, 2, 100} {
			if got := workflow.Backoff(r, attempt); got < time.Second {
				t.Errorf("%s: after attempt %d: %s", name, attempt, got)
			}
		}
	}
}

// nested is a step that fails, in groups that are retried as it is.
func nested(groups int) (spec, path string) {
	retry := "retry: {limit: 100, backoff: 1ms, maxBackoff: 1ms}"
	spec, path = coretest.Hook("x", retry), "x"
	for i := range groups {
		spec = fmt.Sprintf("{name: g%d, type: step-group, %s, properties: {steps: [%s]}}", i, retry, spec)
		path = fmt.Sprintf("g%d/%s", i, path)
	}
	return "maxDuration: 9000h\nretryLimit: 100\nsteps: [" + spec + "]", path
}

func TestRetriesOfNestedGroupsHaveOneBudget(t *testing.T) {
	spec, path := nested(4)
	s := begun(t, spec, 0)
	attempts := 0
	for range 4 * workflow.MaxRetries {
		j, m := workflow.Advance(s.run, s.j, s.now, s.sig)
		s.j = j
		if j.End != nil {
			break
		}
		if m.Act != workflow.ActPass {
			s.now = s.now.Add(time.Minute)
			continue
		}
		attempts++
		s.j = workflow.Note(s.run, s.j, m.Path, failed("Boom"), s.now)
	}
	if s.j.End == nil || s.j.End.Phase != run.Failed {
		t.Fatalf("after %d attempts the run has ended as %+v", attempts, s.j.End)
	}
	if attempts > workflow.MaxRetries+1 || attempts < workflow.MaxRetries*9/10 {
		t.Errorf("%d attempts", attempts)
	}
	if got := coretest.Record(s.j, path).Message; !strings.Contains(got, "not tried again, since the steps of this run were tried again 10000 times already: Boom") {
		t.Errorf("it says %q", got)
	}
}

func TestTheLastRetryOfARunIsMade(t *testing.T) {
	s := begun(t, "steps: ["+coretest.Hook("a", "retry: {limit: 5, backoff: 1s}")+"]", 0, func(s *stage) { s.j.Retried = workflow.MaxRetries - 1 }, script("a", failed("Boom"), workflow.StepResult{Done: true}))
	s.play()
	if s.j.End == nil || s.j.End.Phase != run.Succeeded {
		t.Errorf("%+v", s.j.End)
	}
}

func TestWhatWasRecordedIsReplacedOnlyWhereItIsOver(t *testing.T) {
	before := func(text string) (rep workflow.StepResult) { rep.Before = []byte(text); return rep }
	anew := func(rep workflow.StepResult) workflow.StepResult { rep.Anew = true; return rep }
	for name, c := range map[string]struct {
		reports []workflow.StepResult
		want    string
	}{
		"the first is kept":                {[]workflow.StepResult{before(`1`), before(`2`)}, "1"},
		"another takes its place":          {[]workflow.StepResult{before(`1`), anew(before(`2`))}, "2"},
		"nothing takes its place":          {[]workflow.StepResult{before(`1`), anew(workflow.StepResult{})}, ""},
		"and then the next":                {[]workflow.StepResult{before(`1`), anew(workflow.StepResult{}), before(`2`)}, "2"},
		"a failed attempt had none":        {[]workflow.StepResult{before(`1`), anew(failed("Denied")), before(`2`)}, "2"},
		"a failed attempt may have had it": {[]workflow.StepResult{before(`1`), failed("Lost"), before(`2`)}, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun(t, "steps: [{name: a, type: scale, retry: {limit: 5, backoff: 1s}, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: x}, replicas: 0, restoreAfter: true}}]", 0)
			s.j, _ = workflow.Advance(s.run, s.j, s.now, s.sig)
			for _, rep := range c.reports {
				s.j = workflow.Note(s.run, s.j, "a", rep, s.now)
			}
			if got := string(coretest.Record(s.j, "a").Before); got != c.want {
				t.Errorf("recorded is %s", got)
			}
		})
	}
}

func TestAFailedStepLetsGoOfItsHibernatePlan(t *testing.T) {
	hold := "{name: hold, type: hibernate, properties: {plan: nights}"
	held := failed("Failed")
	held.Memory = json.RawMessage("false")
	for name, c := range map[string]struct {
		spec   string
		script []func(*stage)
		want   string
	}{
		"when its retries are used up":         {"steps: [" + hold + ", retry: {limit: 1, backoff: 10s}}]", []func(*stage){script("hold", held, held)}, "hold #1, hold #2, stop hold"},
		"in finally":                           {"steps: [" + coretest.Hook("a") + "]\nfinally: [" + hold + "}]", []func(*stage){script("finally/hold", held)}, "a #1, finally/hold #1, stop finally/hold"},
		"one that never held it stops nothing": {"steps: [" + hold + "}]", []func(*stage){script("hold", failed("Forbidden"))}, "hold #1"},
		"a step of another type stops nothing": {"steps: [" + coretest.Hook("a") + "]", []func(*stage){script("a", failed("Boom"))}, "a #1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun(t, c.spec, 0, c.script...)
			s.play()
			acts := slices.DeleteFunc(s.acts, func(act string) bool { return strings.HasPrefix(act, "wait") })
			if got := strings.Join(acts, ", "); got != c.want {
				t.Errorf("it does %s", got)
			}
		})
	}
}
