package print

import (
	"fmt"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// EntryWhen is when an entry of a ledger was, on a zone's clocks; of folded ones, the span.
func EntryWhen(e ledger.Entry, zone string) string {
	if e.Count > 1 {
		return fmt.Sprintf("%s to %s, %d slots", instant.Local(*e.First, zone), instant.Local(*e.Last, zone), e.Count)
	}
	return instant.Local(view.EntryAt(e), zone)
}

// DryMark follows the result of an entry whose run was a dry run.
func DryMark(e ledger.Entry) string {
	if e.DryRun {
		return " (dry run)"
	}
	return ""
}
