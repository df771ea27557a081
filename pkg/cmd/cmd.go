// Package cmd is the plugin: it completes, validates and runs command lines. It writes intents and
// shows what the agent says; it has no rules of its own.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/adopt"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/ask"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/doctor"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/logs"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/look"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/node"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/offline"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/override"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/report"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/restore"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/setup"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/wait"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/why"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/write"
)

// Env is everything that a command line takes from its process.
type Env = factory.Env

// Main runs one command line and returns its exit code. Errors are printed to ErrOut.
func Main(ctx context.Context, env factory.Env, args []string) int {
	return Run(ctx, factory.New(env), args)
}

// Run is Main with given clients: for the tests of commands.
func Run(ctx context.Context, c *factory.Factory, args []string) int {
	if len(args) == 0 {
		fmt.Fprint(c.Out, firstScreen(c.Name))
		return exit.CodeDone
	}
	root := rootOf(c)
	paint := root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		warnOfZone(c, cmd)
		return paint(cmd, args)
	}
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		for _, line := range exit.Lines(unknownCommand(c.Name, err), c.Suggest().Login()) {
			fmt.Fprintln(c.ErrOut, line)
		}
	}
	return exit.CodeOf(err)
}

// warnOfZone warns where the user's own zone is unknown: what a command shows is in UTC then. A shell
// that completes, or reads its script, is told nothing, and neither is who asked for an exit code alone.
func warnOfZone(c *factory.Factory, cmd *cobra.Command) {
	quiet := cmd.Flags().Lookup("quiet")
	timeless := []string{cobra.ShellCompRequestCmd, "completion", "explain", "help", "options"}
	if quiet != nil && quiet.Changed || slices.Contains(timeless, cmd.Name()) {
		return
	}
	if wrong := instant.UnknownZone(c.Zone); wrong != "" {
		c.Warn(wrong)
	}
}

// unknownCommand turns cobra's paragraph about a mistyped command into one line with advice. cobra
// has no type for that error.
func unknownCommand(name string, err error) error {
	head, names, near := strings.Cut(err.Error(), "\n\nDid you mean this?\n")
	switch {
	case near:
		return errors.New(head + "; did you mean " + strings.Join(strings.Fields(names), " or ") + "?")
	case strings.HasPrefix(head, "unknown command "):
		return fmt.Errorf("%w; '%s --help' lists all commands", err, name)
	}
	return err
}

// New is the root command.
func New(env factory.Env) *cobra.Command { return rootOf(factory.New(env)) }

func rootOf(c *factory.Factory) *cobra.Command {
	env := c.Env
	c.Perform = func(ctx context.Context, env factory.Env, k *factory.Cluster, args []string) error {
		return perform(ctx, c, env, k, args)
	}
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
	colour := root.PersistentFlags().String("color", "auto", "auto (a terminal, and no NO_COLOR), always or never")
	_ = root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp))
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return paintAs(c, *colour) }
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.ErrOut)
	c.AddFlags(root.PersistentFlags())
	root.PersistentFlags().StringVar(&c.AgentNamespace, "agent-namespace", c.AgentNamespace, "namespace of the agent; found by itself when not given")
	for _, flag := range []string{"namespace", "agent-namespace"} {
		_ = root.RegisterFlagCompletionFunc(flag, completion.Namespaces(c)) // fails only for a missing flag: both were added above
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.Errorf(exit.CodeUsage, "%w\nsee '%s --help'", err, cmd.CommandPath())
	})
	for _, g := range groups(c) {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, sub := range g.commands {
			sub.GroupID = g.title
			root.AddCommand(sub)
		}
	}
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	completeFiles(root)
	root.SetHelpCommandGroupID("More")
	root.SetUsageTemplate(usageTemplate(env.Name))
	wrapHelp(root)
	return root
}

// completeFiles offers files for the flags that take them, of a command and all below it.
func completeFiles(cmd *cobra.Command) {
	for _, flags := range []*pflag.FlagSet{cmd.LocalNonPersistentFlags(), cmd.PersistentFlags()} {
		for _, name := range []string{"filename", "prices", "kubeconfig", "certificate-authority", "client-certificate", "client-key", "cache-dir"} {
			if flags.Lookup(name) != nil {
				_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)) // fails only for a missing flag
			}
		}
	}
	for _, sub := range cmd.Commands() {
		completeFiles(sub)
	}
}

// paintAs has a command print in colours, or not.
func paintAs(c *factory.Factory, when string) error {
	switch when {
	case "auto":
	case "always", "never":
		c.Color = when == "always"
	default:
		return exit.Errorf(exit.CodeUsage, "--color must be auto, always or never, is %q", when)
	}
	return nil
}

// perform runs a command line within another one.
func perform(ctx context.Context, c *factory.Factory, env factory.Env, k *factory.Cluster, args []string) error {
	within := factory.NewFor(env, k)
	within.AgentNamespace = c.AgentNamespace
	root := rootOf(within)
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

const rootLong = `Maintenance that runs at its time, as its own account, and can be seen.

A plan is a ConfigMap that says when maintenance runs and what its steps are.
The agent in the cluster runs it; these commands write plans and intents, and
show what the agent did and will do.`

type group struct {
	title    string
	commands []*cobra.Command
}

func groups(c *factory.Factory) []group {
	return []group{
		{"Write", []*cobra.Command{write.NewSchedule(c), write.NewNew(c), offline.NewExplain(c)}},
		{"Check", []*cobra.Command{write.NewLint(c), look.NewCheck(c), offline.NewSimulate(c), offline.NewRBAC(c), doctor.New(c)}},
		{"Ask", []*cobra.Command{ask.NewTrigger(c), ask.NewRollback(c), ask.NewSkip(c), ask.NewUnskip(c), ask.NewPause(c), ask.NewResume(c), ask.NewApprove(c), ask.NewReject(c), ask.NewAbort(c), ask.NewRetry(c), override.NewAllow(c), override.NewFreeze(c), ask.NewHibernate(c), ask.NewWake(c), restore.New(c), node.NewDrain(c), node.NewRelease(c)}},
		{"Look", []*cobra.Command{look.NewStatus(c), look.NewList(c), look.NewNext(c), report.NewHistory(c), report.NewReport(c), look.NewDescribe(c), logs.New(c), why.New(c), report.NewSavings(c), wait.New(c), offline.NewCalendar(c)}},
		{"More", []*cobra.Command{setup.NewInstall(c), setup.NewUninstall(c), adopt.New(c), setup.NewVersion(c), setup.NewCompletion(), newOptions()}},
	}
}

// newOptions is the command that shows the flags which every command has; their own help omits
// them.
func newOptions() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "Flags that every command has",
		Args:  factory.NoNames,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(cmd.OutOrStdout(), "These flags can be given to every command:\n\n%s", cmd.InheritedFlags().FlagUsagesWrapped(helpWidth))
			return nil
		},
	}
}

// usageTemplate is cobra's, without the flags that every command has.
func usageTemplate(name string) string {
	return `Usage:{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{else if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $cmds}}{{if (and (eq .GroupID $group.ID) .IsAvailableCommand)}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if not .Groups}}

Commands:{{range $cmds}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}{{if .HasParent}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}{{end}}{{end}}

Use "` + name + ` options" for the flags that every command has.
`
}
