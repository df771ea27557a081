package exit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestTheCodeOfAnEnd(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	var some Faults
	some.Add("--count must be at least 1, is %d", 0)
	some.Check(nil)
	some.Check(errors.New("PLAN is missing"))
	for _, c := range []struct {
		name string
		err  error
		code int
		text string
	}{
		{"nothing went wrong", nil, CodeDone, ""},
		{"an error without a code is an error", Coded(t.Context(), errors.New("no")), CodeError, "no"},
		{"an error with a code keeps it, however deep", Coded(t.Context(), fmt.Errorf("look: %w", Errorf(CodeNoAgent, "no agent"))), CodeNoAgent, "look: no agent"},
		{"what ended by Ctrl-C is interrupted", Coded(interrupted, errors.New("context canceled")), CodeInterrupted, "interrupted"},
		{"what has a code is not interrupted", Coded(interrupted, Errorf(CodeTimeout, "too late")), CodeTimeout, "too late"},
		{"what never reached a command is wrong usage", errors.New("unknown flag"), CodeUsage, "unknown flag"},
		{"faults are told together", some.Err(), CodeUsage, "--count must be at least 1, is 0\nPLAN is missing"},
		{"no faults are no error", Faults{}.Err(), CodeDone, ""},
		{"a code alone says nothing more", &Error{Code: CodeNotNow}, CodeNotNow, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := ""
			if c.err != nil {
				text = c.err.Error()
			}
			if code := CodeOf(c.err); code != c.code || text != c.text {
				t.Errorf("code %d, %q; want %d, %q", code, text, c.code, c.text)
			}
		})
	}
}

func TestWhatWouldHelpIsToldAtTheEndAlone(t *testing.T) {
	inner := WithHelp(errors.New("no"), "ask jane")
	for _, c := range []struct {
		err  error
		text string
		want []string
	}{
		{inner, "no", []string{"error: no; ask jane"}},
		{fmt.Errorf("look: %w\nnothing was done", inner), "look: no\nnothing was done", []string{"error: look: no; ask jane", "error: nothing was done"}},
		{WithHelp(Coded(t.Context(), inner), "ask joe"), "no", []string{"error: no; ask joe"}},
		{errors.Join(errors.New("a is held"), fmt.Errorf("b: %w", inner)), "a is held\nb: no", []string{"error: a is held", "error: b: no; ask jane"}},
		{errors.Join(errors.New("a is held"), &Error{Code: 1, Err: errors.Join(errors.New("b is held"), fmt.Errorf("c: %w", inner))}), "a is held\nb is held\nc: no", []string{"error: a is held", "error: b is held", "error: c: no; ask jane"}},
		{&Error{Code: 1, Err: errors.Join(fmt.Errorf("a: %w", inner), errors.New("b is held"))}, "a: no\nb is held", []string{"error: a: no; ask jane", "error: b is held"}},
		{fmt.Errorf("%w, and %w", errors.New("a is held"), inner), "a is held, and no", []string{"error: a is held, and no; ask jane"}},
	} {
		if got := Lines(c.err, ""); c.err.Error() != c.text || !slices.Equal(got, c.want) {
			t.Errorf("%q, %q", c.err, got)
		}
	}
}
