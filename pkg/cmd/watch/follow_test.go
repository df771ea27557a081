package watch

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestARunThatLeftSomethingBehindIsAFailureForScripts(t *testing.T) {
	began := time.Date(2026, 8, 9, 2, 0, 0, 0, time.UTC)
	left := run.Record{Path: "down", Type: "scale", Phase: run.StepSucceeded, Restored: run.RestoreFailed, RestoreMessage: "put back spec.replicas: 7: forbidden"}
	back := run.Record{Path: "down", Type: "scale", Phase: run.StepSucceeded, Restored: run.RestoreDone}
	for _, c := range []struct {
		name    string
		phase   run.Phase
		started bool
		record  run.Record
		code    int
		words   string
	}{
		{"succeeded", run.Succeeded, true, back, 0, ""},
		{"at work", run.Running, true, left, 0, ""},
		{"aborted, all put back", run.Aborted, true, back, exit.CodeRunFailed, "ended Aborted"},
		{"aborted, not put back", run.Aborted, true, left, exit.CodeRunFailed, "left something behind: step down could not be put back: put back spec.replicas: 7: forbidden"},
		{"failed, not put back", run.Failed, true, left, exit.CodeRunFailed, "left something behind"},
		{"did not start", run.Aborted, false, run.Record{}, exit.CodeNotNow, "did not start"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := cmdtest.RunOf(c.record)
			r.Journal.Phase, r.Journal.StartedAt = c.phase, nil
			if c.started {
				r.Journal.StartedAt = &began
			}
			err := RunEnd(print.New(factory.Env{Now: cmdtest.Now}, "Europe/Berlin"), r)
			var with *exit.Error
			if c.code == 0 && err != nil || c.code != 0 && (!errors.As(err, &with) || with.Code != c.code || !strings.Contains(err.Error(), c.words)) {
				t.Errorf("got %v, want code %d with %q", err, c.code, c.words)
			}
		})
	}
}
