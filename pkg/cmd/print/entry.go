package print

import (
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// EntryWhen is the time of a ledger's entry in a zone; of folded entries, the interval.
func EntryWhen(e ledger.Entry, zone string) string {
	if e.Count > 1 {
		return fmt.Sprintf("%s to %s, %d slots", instant.Local(*e.First, zone), instant.Local(*e.Last, zone), e.Count)
	}
	return instant.Local(view.EntryAt(e), zone)
}

// Totals are the counts of a ledger without dry runs; empty if nothing has ended yet.
func Totals(l *ledger.Ledger) string {
	if l == nil || len(l.Totals) == 0 {
		return ""
	}
	ran := fmt.Sprintf("%d Ran", l.Totals[run.Ran])
	var ends []string
	for _, phase := range []run.Phase{run.Succeeded, run.Failed, run.Aborted, run.Replaced} {
		if n := l.Outcomes[phase]; n > 0 {
			ends = append(ends, fmt.Sprintf("%d %s", n, phase))
		}
	}
	if len(ends) > 0 {
		ran += " (" + strings.Join(ends, ", ") + ")"
	}
	return fmt.Sprintf("%s, %d Skipped, %d Missed", ran, l.Totals[run.Skipped], l.Totals[run.Missed])
}

// EntryEnd says how the run of an entry ended, and why if it did not succeed, or what others did
// meanwhile if it did, or what kept it from starting; empty if that is not kept.
func EntryEnd(e ledger.Entry) string {
	out := e.Outcome
	if out == nil || e.Result != run.Ran {
		return document.OneLine(e.Kept())
	}
	text := string(out.Phase)
	if out.Duration.Duration > 0 {
		text += " after " + instant.Approximate(out.Duration.Duration)
	}
	return text + view.Prefix(", step ", out.Step) + view.Colon(document.OneLine(out.Message))
}

// DryMark is the suffix for the result of a dry run.
func DryMark(e ledger.Entry) string {
	if e.DryRun {
		return " (dry run)"
	}
	return ""
}
