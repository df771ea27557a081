// Package cmd is the plugin: options, looking up, validating, printing. It
// writes intent and reads what the agent says; it knows no rules of its own.
package cmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Env is everything that a command line takes from the process it runs in.
type Env struct {
	genericiooptions.IOStreams
	Name        string           // as which it was called: "kubectl maint"
	Version     string           // of this build
	Now         func() time.Time // the real clock, read once per question
	Zone        string           // IANA name of the user's time zone
	InTerminal  bool             // somebody can answer questions
	OutTerminal bool             // what is printed can be redrawn
	Color       bool
	Width       int // of the terminal, 0 where unknown
}

// Main runs one command line and returns its exit code. What went wrong has
// been told on ErrOut.
func Main(ctx context.Context, env Env, args []string) int {
	return Run(ctx, newCLI(env), args)
}

// Run is Main for whoever brings clients: the tests of the commands do.
func Run(ctx context.Context, c *cli, args []string) int {
	root := rootOf(c)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		for line := range strings.SplitSeq(oneLineSuggestion(err.Error()), "\n") {
			if line != "" {
				fmt.Fprintln(c.ErrOut, "error: "+line)
			}
		}
	}
	return codeOf(err)
}

// oneLineSuggestion brings cobra's paragraph about a mistyped command to one line.
func oneLineSuggestion(text string) string {
	head, names, found := strings.Cut(text, "\n\nDid you mean this?\n")
	if !found {
		return text
	}
	return head + "; did you mean " + strings.Join(strings.Fields(names), " or ") + "?"
}

// cli is what all commands share.
type cli struct {
	Env
	config         *genericclioptions.ConfigFlags
	agentNamespace string
	fixed          *cluster // instead of what the kubeconfig points at; nil: that
}

// newCLI has clients of the cluster that the kubeconfig points at.
func newCLI(env Env) *cli { return &cli{Env: env, config: genericclioptions.NewConfigFlags(true)} }

// newOn has the clients that it is given, whatever the kubeconfig says.
func newOn(env Env, k *cluster) *cli {
	c := newCLI(env)
	c.fixed = k
	return c
}

// New is the tree of commands.
func New(env Env) *cobra.Command { return rootOf(newCLI(env)) }

func rootOf(c *cli) *cobra.Command {
	env := c.Env
	root := &cobra.Command{
		Use:           strings.ReplaceAll(env.Name, " ", "-"),
		Short:         "Maintenance that runs at its time, as its own account, and can be seen",
		Long:          rootLong,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: env.Name},
		SilenceErrors: true,
		SilenceUsage:  true,
		CompletionOptions: cobra.CompletionOptions{
			DisableDefaultCmd: true,
		},
	}
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.ErrOut)
	c.config.AddFlags(root.PersistentFlags())
	root.PersistentFlags().StringVar(&c.agentNamespace, "agent-namespace", "", "namespace the agent runs in; looked for when not given")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit(CodeUsage, "%w\nsee '%s --help'", err, cmd.CommandPath())
	})
	for _, g := range groups(c) {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, sub := range g.commands {
			sub.GroupID = g.title
			root.AddCommand(sub)
		}
	}
	root.SetHelpCommandGroupID("More")
	root.SetUsageTemplate(usageTemplate(env.Name))
	return root
}

const rootLong = `Maintenance that runs at its time, as its own account, and can be seen.

A plan is a ConfigMap that says when maintenance runs and what its steps are.
The agent in the cluster runs it; these commands write plans and intents, and
show what the agent did and will do.`

type group struct {
	title    string
	commands []*cobra.Command
}

func groups(c *cli) []group {
	return []group{
		{"Write", []*cobra.Command{newSchedule(c), newLint(c), newNext(c), newCheck(c)}},
		{"Ask", []*cobra.Command{newTrigger(c), newSkip(c), newUnskip(c), newPause(c), newResume(c), newApprove(c), newReject(c), newAbort(c), newRetry(c), newAllow(c), newFreeze(c), newDrain(c), newRelease(c)}},
		{"Look", []*cobra.Command{newStatus(c), newList(c), newHistory(c), newDescribe(c), newLogs(c), newWhy(c), newCalendar(c), newSimulate(c)}},
		{"More", []*cobra.Command{newInstall(c), newUninstall(c), newVersion(c), newCompletion(), newOptions()}},
	}
}

// command is what the options of every command are: filled in from the command
// line, validated with all faults at once, then run.
type command interface {
	Complete(cmd *cobra.Command, args []string) error
	Validate() error
	Run(ctx context.Context) error
}

func run(o command) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if err := o.Complete(cmd, args); err != nil {
			return coded(ctx, err)
		}
		if err := o.Validate(); err != nil {
			return coded(ctx, err)
		}
		return coded(ctx, o.Run(ctx))
	}
}

// newOptions shows the flags that every command has, which their own help
// leaves out.
func newOptions() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "Flags that every command has",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(cmd.OutOrStdout(), "These flags can be given to every command:\n\n%s", cmd.InheritedFlags().FlagUsages())
			return nil
		},
	}
}

// usageTemplate is cobra's without the list of flags that every command has.
func usageTemplate(name string) string {
	return `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $cmds}}{{if (and (eq .GroupID $group.ID) .IsAvailableCommand)}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}{{if .HasParent}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{end}}

Use "` + name + ` options" for the flags that every command has.
`
}
