package cmd

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// view is how things are shown: to whom, when, in which colours.
type view struct {
	paint
	name string // as which the plugin was called, for the commands it suggests
	now  time.Time
	zone string
}

func (c *cli) view(zone string) view {
	return view{paint: paint(c.Color), name: c.Name, now: c.Now(), zone: zone}
}

func (v view) both(t time.Time) string { return bothZones(t, v.zone) }

// when is an instant and how far away it is.
func (v view) when(t time.Time) string {
	if t.After(v.now) {
		return fmt.Sprintf("%s, in %s", v.both(t), roughly(t.Sub(v.now)))
	}
	return fmt.Sprintf("%s, %s ago", v.both(t), roughly(v.now.Sub(t)))
}

// soon is an instant without the date where that is plain.
func (v view) soon(t time.Time) string {
	text := localTime(t, v.zone)
	if t.Sub(v.now) > 12*time.Hour {
		return text
	}
	fields := strings.Fields(text)
	return strings.Join(fields[2:], " ")
}

// runHead says on one line where a run stands.
func (v view) runHead(r aRun) string {
	j := r.journal
	p := plan.ProgressOf(j)
	switch {
	case j.Phase == plan.RunPending && j.Waiting != "":
		return v.phase(string(j.Phase)) + ", " + waitingWords(j)
	case j.Phase.Ended():
		return v.phase(string(j.Phase)) + v.took(j) + colon(j.Message) + v.leftBehind(r)
	case j.StartedAt != nil:
		return fmt.Sprintf("%s for %s, %d of %d steps done%s", v.phase(string(j.Phase)), roughly(v.now.Sub(*j.StartedAt)), p.Done, p.Total, colon(v.ending(r)))
	}
	return v.phase(string(j.Phase)) + colon(j.Message)
}

// leftBehind is how many restores failed; the steps name what each of them left.
func (v view) leftBehind(r aRun) string {
	if n := len(notPutBack(r)); n > 0 {
		return "; " + v.bad(fmt.Sprintf("%d of its steps could not be put back", n))
	}
	return ""
}

// notPutBack are the restores of a run that failed, each with its step.
func notPutBack(r aRun) []string {
	var out []string
	for i := range r.journal.Steps {
		if rec := &r.journal.Steps[i]; rec.Restored == plan.RestoreFailed {
			out = append(out, "step "+rec.Path+" could not be put back"+colon(rec.RestoreMessage))
		}
	}
	return out
}

// ending says how a run that is cleaning up will end, and when one that is to be
// tried again begins.
func (v view) ending(r aRun) string {
	j := r.journal
	switch {
	case j.Notice() != j.Message:
		return j.Notice()
	case j.End != nil && j.End.Phase != plan.RunSucceeded:
		return fmt.Sprintf("cleaning up, then %s%s", j.End.Phase, colon(j.End.Message))
	case j.RetryAt != nil && j.RetryAt.After(v.now):
		try := fmt.Sprintf("retry %d of %d", j.Retries, r.run.Spec.RetryLimit)
		return try + " at " + v.soon(*j.RetryAt) + strings.TrimPrefix(j.Message, try)
	}
	return j.Message
}

func (v view) took(j plan.Journal) string {
	if j.StartedAt == nil || j.FinishedAt == nil {
		return ""
	}
	return " after " + roughly(j.FinishedAt.Sub(*j.StartedAt))
}

func colon(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}

// lineMark gives no tick to a step that left something behind.
func (v view) lineMark(l stepLine) string {
	if l.left {
		return v.bad("✗")
	}
	return v.mark(l.phase)
}

func (v view) mark(p plan.StepPhase) string {
	switch p {
	case plan.StepSucceeded:
		return v.good("✓")
	case plan.StepFailed:
		return v.bad("✗")
	case plan.StepRunning:
		return v.busy("▶")
	case plan.StepSkipped:
		return v.dim("-")
	}
	return v.dim("·")
}

func (v view) stepTime(s plan.Record) string {
	switch {
	case s.StartedAt == nil:
		return ""
	case s.FinishedAt != nil:
		return roughly(s.FinishedAt.Sub(*s.StartedAt))
	}
	return roughly(v.now.Sub(*s.StartedAt))
}

// stepDetail is what a person may have to do, or wants to know, about a step.
func (v view) stepDetail(r aRun, s plan.Record) string {
	var parts []string
	if s.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", s.Attempt))
	}
	switch {
	case s.Phase == plan.StepRunning && s.NotBefore != nil && s.NotBefore.After(v.now):
		parts = append(parts, "tries again in "+roughly(s.NotBefore.Sub(v.now)))
	case s.Phase == plan.StepRunning && s.Type == "suspend" && s.ResumeAt == nil:
		parts = append(parts, fmt.Sprintf("waits for '%s resume %s'", v.name, r.run.Name))
	case s.Phase == plan.StepRunning && s.Type == plan.TypeApproval:
		parts = append(parts, v.question(r, s))
	case s.Phase == plan.StepRunning && s.ResumeAt != nil:
		parts = append(parts, fmt.Sprintf("until %s or '%s resume %s'", v.soon(*s.ResumeAt), v.name, r.run.Name))
	case s.Phase == plan.StepFailed && s.Reason != "":
		parts = append(parts, s.Reason)
	}
	holds := s.Phase == plan.StepRunning && (s.Type == "suspend" || s.Type == plan.TypeApproval)
	switch count := loopCount(s); {
	case !s.Phase.Ended() && count != "":
		parts = append(parts, count)
	case s.Message != "" && !holds:
		parts = append(parts, s.Message)
	}
	if s.Waits != "" && s.Phase.Ended() { // of its cleanup: else its message says so
		parts = append(parts, "waits: "+s.Waits)
	}
	if s.KeepAt != nil {
		parts = append(parts, "kept until the run ends, renewed at "+v.soon(*s.KeepAt))
	}
	switch how := restoredWords()[s.Restored]; {
	case how == "":
	case s.Restored == plan.RestoreDone && s.RestoreMessage != "": // it says so itself
		parts = append(parts, s.RestoreMessage)
	default:
		parts = append(parts, how+colon(s.RestoreMessage))
	}
	return strings.Join(parts, ": ")
}

// question is what an approval waits for, or the answer that was just given.
func (v view) question(r aRun, s plan.Record) string {
	switch {
	case s.Approval != nil && s.Approval.Approved:
		return s.Approval.Said("approved")
	case s.Approval != nil:
		return s.Approval.Said("rejected")
	case s.Message != "": // it names the command
		return s.Message
	}
	return fmt.Sprintf("waits for '%s approve %s/%s'", v.name, r.run.Name, s.Path)
}

func restoredWords() map[string]string {
	return map[string]string{
		"done": "put back as it was", "changed": "not put back: somebody changed it meanwhile",
		"gone": "not put back: it is gone", "handed": "left to another run, which puts it back", "failed": "could not be put back",
	}
}

// cut shortens a line to a terminal's width, not counting colours.
func cutLine(line string, width int) string {
	if width <= 0 || visible(line) <= width {
		return line
	}
	var b strings.Builder
	n, escape := 0, false
	for _, r := range line {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case n == width-1:
			return b.String() + "…\x1b[0m"
		default:
			n++
		}
		b.WriteRune(r)
	}
	return b.String()
}

func visible(line string) int {
	n := utf8.RuneCountInString(line)
	for rest := line; ; {
		i := strings.IndexByte(rest, '\x1b')
		if i < 0 {
			return n
		}
		end := strings.IndexByte(rest[i:], 'm')
		if end < 0 {
			return n
		}
		n -= end + 1
		rest = rest[i+end+1:]
	}
}

// labelled are lines of "Name:  value", aligned; empty values are left out.
func (v view) labelled(pairs ...string) []string {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			width = max(width, len(pairs[i])+1)
		}
	}
	var lines []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		for j, part := range strings.Split(pairs[i+1], "\n") {
			name := ""
			if j == 0 {
				name = pairs[i] + ":"
			}
			lines = append(lines, fmt.Sprintf("%s  %s", v.bold(fmt.Sprintf("%-*s", width, name)), part))
		}
	}
	return lines
}

func indent(lines []string) []string {
	out := slices.Clone(lines)
	for i := range out {
		out[i] = "  " + out[i]
	}
	return out
}
