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
