package look

import (
	"fmt"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// restoreLines are the restore data of a plan, in full.
func restoreLines(list []view.Restore) []string {
	if len(list) == 0 {
		return nil
	}
	lines := []string{"", "Restore data:"}
	for _, r := range list {
		text := "  " + r.Object.Name + "  " + r.Record.Target
		if sleeping, left := r.Count(); r.Record.Target != "" {
			text += fmt.Sprintf(": %s to be woken", view.Counted(sleeping, "resource"))
			if left > 0 {
				text += fmt.Sprintf(", %d left as they are", left)
			}
		}
		if r.Fault != "" {
			text += "; does not count: " + r.Fault
		}
		lines = append(lines, text)
	}
	return lines
}
