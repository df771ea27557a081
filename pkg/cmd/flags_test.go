package cmd

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

// writing are the commands that write to a cluster.
func writing() []string {
	return []string{
		"abort", "adopt", "allow", "approve", "drain", "freeze", "hibernate", "install", "pause", "reject", "release", "restore edit",
		"resume", "retry", "rollback", "schedule", "skip", "trigger", "uninstall", "unskip", "wake",
	}
}

// reading are the commands that read, be it from a cluster or from files.
func reading() []string {
	return []string{
		"calendar", "check", "describe", "doctor", "drain", "explain", "history", "lint", "list", "logs", "next", "rbac", "report",
		"restore list", "restore show", "savings", "simulate", "status", "version", "wait", "why",
	}
}

// neither are the commands that do neither, and why.
func neither() map[string]string {
	return map[string]string{
		"completion": "prints a script for a shell",
		"help":       "prints text for people",
		"new":        "asks its way to a plan and prints it, in YAML; nothing is read or written",
		"options":    "prints text for people",
	}
}

// otherOutput are the commands whose -o is not that of their kind, and why.
func otherOutput() map[string]string {
	return map[string]string{
		"drain":     "its -o is that of --plan, which reads",
		"install":   "prints the manifests that --apply would apply",
		"uninstall": "prints what it would delete; names what it deletes, a line each",
	}
}

// selecting are the flags that choose among many, of the commands that act on many.
func selecting() map[string]string {
	return map[string]string{
		"calendar": "-A -l", "history": "-A -l", "list": "-A -l", "report": "-A -l", "restore list": "-A -l", "savings": "-A -l", "status": "-A -l",
		"drain": "-l", "release": "-l", // nodes are in no namespace
		"hibernate": "-A -l", "wake": "-A -l", "skip": "-A -l", "unskip": "-A -l", "pause": "-A -l", "resume": "-A -l", "wait": "-A -l",
	}
}

// single are the other commands that read or write what is in a cluster, and why they choose no many.
func single() map[string]string {
	const answer, override, about, files = "an answer is about one run that somebody has looked at", "what it writes overrides policies, and has one reason: each object is named", "it explains one", "it is about files"
	return map[string]string{
		"abort": answer, "approve": answer, "reject": answer, "retry": answer, "rollback": answer,
		"allow": override, "freeze": override, // a policy, or a namespace, stands for many
		"check": about, "describe": about, "doctor": about, "logs": about, "next": about, "restore edit": about, "restore show": about, "why": about,
		"lint": files, "rbac": files, "schedule": files, "simulate": files,
		"trigger": "a run is asked for one by one; a schedule, a label and a watch rule ask for many",
		"adopt":   "each object is named, or --all",
		"install": "it is about the agent", "uninstall": "it is about the agent", "version": "it is about the agent",
		"explain": "it is about schemas",
	}
}

// leaves are the commands of the tree that can be given, by their names.
func leaves(root *cobra.Command) map[string]*cobra.Command {
	out := map[string]*cobra.Command{}
	var walk func(path []string, c *cobra.Command)
	walk = func(path []string, c *cobra.Command) {
		if len(c.Commands()) == 0 {
			out[strings.Join(path, " ")] = c
		}
		for _, sub := range c.Commands() {
			walk(append(slices.Clone(path), sub.Name()), sub)
		}
	}
	walk(nil, root)
	return out
}

func TestEveryCommandReadsOrWritesOrSaysWhyNot(t *testing.T) {
	all := leaves(New(factory.Env{Name: "kubectl maint"}))
	for name := range all {
		if neither()[name] == "" && !slices.Contains(writing(), name) && !slices.Contains(reading(), name) {
			t.Errorf("%s is on no list here", name)
		}
	}
	for _, name := range slices.Concat(writing(), reading()) {
		if all[name] == nil {
			t.Errorf("there is no command %s", name)
		}
	}
}

func formatsOf(t *testing.T, name string) []string {
	t.Helper()
	got := cmdtest.Offline(t, Run, "", append(append([]string{"__complete"}, strings.Fields(name)...), "-o", "")...)
	words := strings.Fields(got.Out)
	return words[:max(len(words)-1, 0)] // the last one is for the shell
}

func TestWhatReadsHasAllFormats(t *testing.T) {
	for _, name := range reading() {
		have := formatsOf(t, name)
		for _, format := range []string{"json", "yaml", "name", "jsonpath=", "custom-columns=", "go-template="} {
			if !slices.Contains(have, format) {
				t.Errorf("%s has no -o %s: %v", name, format, have)
			}
		}
	}
}

func TestWhatWritesCanBeTriedAndPrintsWhatItWrote(t *testing.T) {
	all := leaves(New(factory.Env{Name: "kubectl maint"}))
	for _, name := range writing() {
		got := cmdtest.Offline(t, Run, "", append(append([]string{"__complete"}, strings.Fields(name)...), "--dry-run=")...)
		for _, mode := range []string{"none", "client", "server"} {
			if !slices.Contains(strings.Fields(got.Out), mode) {
				t.Errorf("%s has no --dry-run=%s", name, mode)
			}
		}
		if otherOutput()[name] != "" {
			continue
		}
		have := formatsOf(t, name)
		for _, format := range []string{"json", "yaml", "name", "jsonpath=", "go-template="} {
			if !slices.Contains(have, format) {
				t.Errorf("%s has no -o %s: %v", name, format, have)
			}
		}
	}
	for name, c := range all {
		if !slices.Contains(writing(), name) && c.Flag("dry-run") != nil {
			t.Errorf("%s has --dry-run, and is not among those that write", name)
		}
	}
}

func TestWhatActsOnManyCanChooseAmongThem(t *testing.T) {
	for name, c := range leaves(New(factory.Env{Name: "kubectl maint"})) {
		var have []string
		for short, long := range map[string]string{"A": "all-namespaces", "l": "selector"} {
			if f := c.Flag(long); f != nil {
				have = append(have, "-"+short)
				if f.Shorthand != short {
					t.Errorf("%s: -%s is not short for --%s", name, short, long)
				}
			}
		}
		if slices.Sort(have); len(have) == 0 && (slices.Contains(writing(), name) || slices.Contains(reading(), name)) && single()[name] == "" {
			t.Errorf("%s chooses among nothing, and no reason says why", name)
		}
		if got := strings.Join(have, " "); got != selecting()[name] {
			t.Errorf("%s has %q, want %q", name, got, selecting()[name])
		}
	}
}

// Values that are known are offered, and nothing else that stands there.
func TestKnownValuesAreCompleted(t *testing.T) {
	for line, want := range map[string]string{
		"explain plan.spec.st":               "plan.spec.startDeadline plan.spec.steps",
		"explain pol":                        "policy",
		"install --without=":                 "requests force volumes conditions confinement kubelets none",
		"drain --on-timeout=":                "retry skip force abort",
		"schedule x --step roll=re":          "roll=restart",
		"schedule x --step roll=restart,res": "roll=restart,resource=",
	} {
		got := cmdtest.Offline(t, Run, "", append([]string{"__complete"}, strings.Fields(line)...)...)
		words := strings.Fields(got.Out)
		if offered := strings.Join(words[:max(len(words)-1, 0)], " "); offered != want {
			t.Errorf("%s offers %q, want %q", line, offered, want)
		}
	}
}
