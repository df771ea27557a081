package cmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// helpWidth is the width of help texts: that of a usual terminal.
const helpWidth = 80

// wrapHelp wraps the help of every command to the width.
func wrapHelp(root *cobra.Command) {
	show := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.Long = wrapped(cmd.Long, helpWidth)
		show(cmd, args)
	})
}

// wrapped refills the paragraphs of a text. Indented lines stay as they are.
func wrapped(text string, width int) string {
	var out, words []string
	fill := func() {
		out, words = append(out, view.Filled(words, width)...), nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || strings.HasPrefix(line, " ") {
			fill()
			out = append(out, line)
			continue
		}
		words = append(words, strings.Fields(line)...)
	}
	fill()
	return strings.Join(out, "\n")
}

// firstScreen is shown without a command: the first things that people do, on one screen.
func firstScreen(name string) string {
	var out strings.Builder
	fmt.Fprintln(&out, "Maintenance that runs at its time, as its own account, and can be seen.")
	for _, part := range []struct {
		title string
		lines [][2]string
	}{
		{"Begin", [][2]string{
			{"doctor", "check agent, clock and rights"},
			{"new", "create a plan by answering questions"},
			{"lint -f plan.yaml", "check it before it is applied"},
			{"trigger PLAN --wait", "run it once, now"},
		}},
		{"Look", [][2]string{
			{"status -w", "what runs, what waits and why"},
			{"why PLAN|NODE", "why nothing happens, and what helps"},
			{"history PLAN", "how each slot and each run ended"},
			{"calendar", "what is to come"},
		}},
		{"Step in", [][2]string{
			{"approve RUN", "approve a run that waits for it"},
			{"skip PLAN --next 1", "leave out the next slot"},
			{"pause PLAN", "start nothing until it is resumed"},
			{"drain NODE --plan", "what a drain would do"},
		}},
	} {
		fmt.Fprintf(&out, "\n%s:\n", part.title)
		for _, line := range part.lines {
			fmt.Fprintf(&out, "  %s %-21s %s\n", name, line[0], line[1])
		}
	}
	fmt.Fprintf(&out, "\nMore: '%s --help' lists all commands.\n", name)
	return out.String()
}
