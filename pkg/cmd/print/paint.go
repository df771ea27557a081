package print

import "github.com/kubectl-maint/kubectl-maint/pkg/cmd/terminal"

// paint colours words at a terminal.
type paint struct {
	on   bool
	mark terminal.Mark
}

func (p paint) in(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return p.mark.Sequence(code+"m") + s + p.mark.Sequence("0m")
}

func (p paint) good(s string) string { return p.in("32", s) }

func (p paint) Bad(s string) string { return p.in("31", s) }

func (p paint) busy(s string) string { return p.in("36", s) }

func (p paint) Warn(s string) string { return p.in("33", s) }

func (p paint) Dim(s string) string { return p.in("2", s) }

func (p paint) Bold(s string) string { return p.in("1", s) }

// Phase colours a phase or a result by its meaning.
func (p paint) Phase(s string) string {
	switch s {
	case "Succeeded", "Ran", "Idle", "Ready", "Active", "Awake", "Hibernated", "Asleep":
		return p.good(s)
	case "Failed", "Invalid", "Missed", "RequestorFailed", "Uncordoned", "Error":
		return p.Bad(s)
	case "Running", "Scheduled", "Cordoning", "WaitingForPods", "Draining", "Hibernating", "WakingUp":
		return p.busy(s)
	case "Paused", "Aborted", "Replaced", "Skipped", "Waiting", "Pending", "Unseen", "Suspended":
		return p.Warn(s)
	}
	return s
}
