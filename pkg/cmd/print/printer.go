package print

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
)

// Printer prints for one user: the time, the zone, the colours.
type Printer struct {
	paint
	Name  string // of the plugin, for suggested commands
	Now   time.Time
	Zone  string
	Fixed bool // When leaves out the distance from now, which grows old, and ages are instants

	elsewhere string // the namespace that suggested commands name; empty: none
	cluster   string // flags that choose the cluster; empty: none
}

// New prints for the user of an Env, in a zone.
func New(env factory.Env, zone string) Printer {
	return Printer{paint: paint{env.Color, env.Mark}, Name: env.Name, Now: env.Now(), Zone: zone, elsewhere: env.Elsewhere, cluster: env.ClusterFlags}
}

// Suggest are the commands that messages suggest.
func (v Printer) Suggest() remedy.Commands {
	return remedy.Commands{Name: v.Name, Namespace: v.elsewhere, ClusterFlags: v.cluster}
}

// In is a Printer whose suggested commands name a namespace.
func (v Printer) In(namespace string) Printer {
	v.elsewhere = namespace
	return v
}

// Both formats an instant for the zone and for UTC.
func (v Printer) Both(t time.Time) string { return instant.Both(t, v.Zone) }

// When is an instant and its distance from now.
func (v Printer) When(t time.Time) string {
	switch {
	case v.Fixed:
		return v.Both(t)
	case t.After(v.Now):
		return fmt.Sprintf("%s, in %s", v.Both(t), instant.Approximate(t.Sub(v.Now)))
	}
	return fmt.Sprintf("%s, %s ago", v.Both(t), instant.Approximate(v.Now.Sub(t)))
}

// lasts says for how long something has been so, or since when.
func (v Printer) lasts(since time.Time) string {
	if v.Fixed {
		return "since " + v.Both(since)
	}
	return "for " + instant.Approximate(v.Now.Sub(since))
}

// AgentText is a message of the agent with its instants in the zone, and its commands for the cluster of this one.
func (v Printer) AgentText(message string) string {
	return remedy.AgentText(v.Suggest(), instant.InText(message, v.Zone))
}

// soon is an instant, without the date where that is obvious.
func (v Printer) soon(t time.Time) string {
	text := instant.Local(t, v.Zone)
	if t.Sub(v.Now) > 12*time.Hour {
		return text
	}
	return strings.Join(strings.Fields(text)[2:], " ")
}

// Labelled are lines of "Name:  value", aligned, without empty values.
func (v Printer) Labelled(pairs ...string) []string {
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
			lines = append(lines, fmt.Sprintf("%s  %s", v.Bold(fmt.Sprintf("%-*s", width, name)), part))
		}
	}
	return lines
}

// Indent indents lines.
func Indent(lines []string) []string {
	out := slices.Clone(lines)
	for i := range out {
		out[i] = "  " + out[i]
	}
	return out
}

// IndentText indents each line of a text.
func IndentText(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  ")
}
