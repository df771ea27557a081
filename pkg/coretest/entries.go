package coretest

import (
	"fmt"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// Entries are the closed entries of a ledger that have a slot, each in one line: 2 20:00 Skipped hold.
func Entries(l ledger.Ledger) []string {
	var out []string
	for _, e := range l.Recent {
		line := fmt.Sprintf("%s %s", e.Slot.Format("2 15:04"), e.Result)
		if e.Reason != "" {
			line += " " + e.Reason
		}
		if e.StartedAt != nil {
			line += e.StartedAt.Format(" since 2 15:04")
		}
		if e.Count > 1 {
			line += fmt.Sprintf(" x%d", e.Count)
		}
		if e.DryRun {
			line += " dry"
		}
		out = append(out, line)
	}
	return out
}
