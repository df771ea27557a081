package choice_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/choice"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
)

// What ends the command before the last plan says how it ended, whatever failed before; otherwise those that
// failed do.
func TestTheExitCodeOfMany(t *testing.T) {
	failed := func(name string) error { return exit.Errorf(exit.CodeRunFailed, "plan %s failed", name) }
	for name, c := range map[string]struct {
		first, second error
		over          error // why the command ends while it is at the second; nil: it does not
		code          int
		text          string
	}{
		"both are done":                           {code: exit.CodeDone},
		"one failed":                              {first: failed("a"), code: exit.CodeRunFailed, text: "plan a failed"},
		"both failed alike":                       {first: failed("a"), second: failed("b"), code: exit.CodeRunFailed, text: "plan a failed\nplan b failed"},
		"each failed in its way":                  {first: failed("a"), second: errors.New("plan b: 503"), code: exit.CodeError, text: "plan a failed\nplan b: 503"},
		"one failed, and then the time was over":  {first: failed("a"), second: exit.Errorf(exit.CodeTimeout, "--timeout passed: b runs"), over: remedy.TimeoutPassed, code: exit.CodeTimeout, text: "plan a failed\n--timeout passed: b runs"},
		"one failed, and a client met the end":    {first: failed("a"), second: errors.New("context deadline exceeded"), over: remedy.TimeoutPassed, code: exit.CodeTimeout, text: "plan a failed\n--timeout passed: context deadline exceeded"},
		"one failed, and somebody interrupted":    {first: failed("a"), second: exit.Errorf(exit.CodeInterrupted, "interrupted: b runs"), over: context.Canceled, code: exit.CodeInterrupted, text: "plan a failed\ninterrupted: b runs"},
		"one failed, and a client is interrupted": {first: failed("a"), second: errors.New("context canceled"), over: context.Canceled, code: exit.CodeInterrupted, text: "plan a failed\ninterrupted: context canceled"},
		"the time was over for the first":         {first: exit.Errorf(exit.CodeTimeout, "--timeout passed: a runs"), over: remedy.TimeoutPassed, code: exit.CodeTimeout, text: "--timeout passed: a runs"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			plans := []*corev1.ConfigMap{cmdtest.Plan("a", ""), cmdtest.Plan("b", "")}
			err := choice.Each(ctx, factory.NewFor(factory.Env{}, nil), choice.Chosen{}, plans, choice.Object, func(plan *corev1.ConfigMap) error {
				if ended := c.over != nil && (plan.Name == "b" || c.second == nil); ended {
					cancel(c.over)
				}
				return map[string]error{"a": c.first, "b": c.second}[plan.Name]
			})
			err = exit.Coded(ctx, err)
			if got := cmdtest.ErrText(err); exit.CodeOf(err) != c.code || got != c.text {
				t.Errorf("exit code %d, %q, want %d, %q", exit.CodeOf(err), got, c.code, c.text)
			}
		})
	}
}
