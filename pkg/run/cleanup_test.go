package run_test

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestAnEndSaysWhatOfTheCleanupFailed(t *testing.T) {
	broke := func(path, why string) run.Record {
		return run.Record{Path: path, Phase: run.StepFailed, Message: why}
	}
	stays := func(path, why string) run.Record {
		return run.Record{Path: path, Phase: run.StepSucceeded, Restored: run.RestoreFailed, RestoreMessage: why}
	}
	long := strings.Repeat("x", 2000)
	for name, c := range map[string]struct {
		end   string
		steps []run.Record
		want  string
	}{
		"nothing":                              {"aborted by jane", []run.Record{{Path: "finally/up", Phase: run.StepSucceeded}, {Path: "down", Restored: run.RestoreDone}}, "aborted by jane"},
		"a failed step is none of the cleanup": {"step down failed", []run.Record{broke("down", "boom")}, "step down failed"},
		"finally":                              {"aborted by jane", []run.Record{broke("finally/up", "answered 404")}, "aborted by jane; finally/up failed: answered 404"},
		"onFailure and finally":                {"step down failed", []run.Record{broke("onFailure/undo", "no right"), broke("finally/up", "answered 404")}, "step down failed; onFailure/undo failed: no right; finally/up failed: answered 404"},
		"a restore before both":                {"a newer run takes its place", []run.Record{stays("down", "no right"), broke("finally/up", "answered 404")}, "a newer run takes its place; what step down found was not put back: no right; finally/up failed: answered 404"},
		"some restores":                        {"aborted", []run.Record{stays("a", "no right"), stays("b", "gone")}, "aborted; what 2 steps found was not put back, of step a: no right"},
		"a step for which no time was left":    {"aborted", []run.Record{{Path: "finally/up", Phase: run.StepSkipped, Reason: "Timeout", Message: "finally did not end within 15m0s"}}, "aborted; finally/up failed: finally did not end within 15m0s"},
		"a step that was not wanted":           {"aborted", []run.Record{{Path: "finally/up", Phase: run.StepSkipped, Reason: "Condition", Message: "its condition is false"}}, "aborted"},
		"a group says what failed in it":       {"aborted", []run.Record{broke("finally/g", "step finally/g/up failed: 404"), broke("finally/g/up", "404")}, "aborted; finally/g failed: step finally/g/up failed: 404"},
		"what the end says itself":             {"the steps succeeded, but finally/up failed: 404", []run.Record{broke("finally/up", "404"), broke("finally/z", "405")}, "the steps succeeded, but finally/up failed: 404; finally/z failed: 405"},
		"an end without words":                 {"", []run.Record{broke("finally/up", "404")}, "finally/up failed: 404"},
		"many":                                 {"aborted", []run.Record{broke("finally/a", "1"), broke("finally/b", "2"), broke("finally/c", "3"), broke("finally/d", "4"), broke("finally/e", "5")}, "aborted; finally/a failed: 1; finally/b failed: 2; finally/c failed: 3; and 2 more steps of the cleanup"},
		"as many as are told":                  {"aborted", []run.Record{broke("finally/a", "1"), broke("finally/b", "2"), broke("finally/c", "3")}, "aborted; finally/a failed: 1; finally/b failed: 2; finally/c failed: 3"},
		"however long the end is":              {long, []run.Record{broke("finally/up", "404")}, long[:512-len("…; finally/up failed: 404")] + "…; finally/up failed: 404"},
	} {
		t.Run(name, func(t *testing.T) {
			j := run.Journal{End: &run.End{Phase: run.Aborted, Message: c.end}, Steps: c.steps}
			got := j.Finish(coretest.Clock("02:00"))
			if got.Phase != run.Aborted || got.Message != c.want {
				t.Errorf("%s %q, want %q", got.Phase, got.Message, c.want)
			}
			if failed := c.end != c.want || name == "what the end says itself"; j.CleanupFailed() != failed {
				t.Errorf("its cleanup failed: %t", j.CleanupFailed())
			}
		})
	}
}

// A short sentence stays whole, and what fits beside it is told; of two long ones each has half.
func TestHowMuchOfAnEndIsKept(t *testing.T) {
	const most = 100
	x := func(n int) string { return strings.Repeat("x", n) }
	failed := func(n int) string { return "finally/a failed: " + x(n-len("finally/a failed: ")) }
	cut := func(text string, n int) string { return text[:n-len("…")] + "…" }
	for name, c := range map[string]struct{ text, failed, want string }{
		"nothing failed besides":       {"aborted", "", "aborted"},
		"of a long sentence":           {x(200), "", cut(x(200), most)},
		"both fit":                     {x(60), failed(38), x(60) + "; " + failed(38)},
		"the sentence is short":        {x(40), failed(90), x(40) + "; " + cut(failed(90), 58)},
		"the sentence has just half":   {x(48), failed(90), x(48) + "; " + cut(failed(90), 50)},
		"both are long":                {x(200), failed(90), cut(x(200), 48) + "; " + cut(failed(90), 50)},
		"what failed is said in short": {x(200), failed(20), cut(x(200), 78) + "; " + failed(20)},
		"there is no sentence":         {"", failed(90), failed(90)},
	} {
		j := run.Journal{}
		if c.failed != "" {
			j.Steps = []run.Record{{Path: "finally/a", Phase: run.StepFailed, Message: strings.TrimPrefix(c.failed, "finally/a failed: ")}}
		}
		if got := j.WithCleanup(c.text, most); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestTheSummaryOfAnEndHasWhatOthersDid(t *testing.T) {
	failed := run.Record{Path: "finally/a", Phase: run.StepFailed, Message: "404"}
	changed := run.Record{Path: "b", Drift: new(wrote("flux", "c", "3"))}
	for want, steps := range map[string][]run.Record{
		"aborted":                                nil,
		"aborted; finally/a failed: 404":         {failed},
		"aborted; while it ran " + fluxSaid("c"): {changed},
		"aborted; finally/a failed: 404; while it ran " + fluxSaid("c"): {changed, failed},
	} {
		if got := (run.Journal{Message: fluxSaid("c"), Steps: steps}).Summary("aborted", 512); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (run.Journal{Steps: []run.Record{changed}}).Summary("step b: "+fluxSaid("c"), 512); got != "step b: "+fluxSaid("c") {
		t.Errorf("what it says is said again: %q", got)
	}
}
