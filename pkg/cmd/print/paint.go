package print

// paint colours words for people at a terminal.
type paint bool

func (p paint) in(code, s string) string {
	if !p || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p paint) good(s string) string { return p.in("32", s) }

func (p paint) Bad(s string) string { return p.in("31", s) }

func (p paint) busy(s string) string { return p.in("36", s) }

func (p paint) Warn(s string) string { return p.in("33", s) }

func (p paint) Dim(s string) string { return p.in("2", s) }

func (p paint) Bold(s string) string { return p.in("1", s) }

// Phase paints a phase or a result by what it means.
func (p paint) Phase(s string) string {
	switch s {
	case "Succeeded", "Ran", "Idle", "Ready":
		return p.good(s)
	case "Failed", "Invalid", "Missed", "RequestorFailed", "Uncordoned":
		return p.Bad(s)
	case "Running", "Scheduled", "Cordoning", "WaitingForPods", "Draining":
		return p.busy(s)
	case "Paused", "Aborted", "Replaced", "Skipped", "Waiting", "Pending", "Unseen":
		return p.Warn(s)
	}
	return s
}
