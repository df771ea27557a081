package cmd

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
)

func TestAWrongCommandLineIsToldWithAllItsFaultsAtOnce(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		err  string
	}{
		{"an unknown command", []string{"frobnicate"}, "error: unknown command \"frobnicate\" for \"kubectl maint\"; 'kubectl maint --help' lists all commands\n"},
		{"a near miss", []string{"statsu"}, "error: unknown command \"statsu\" for \"kubectl maint\"; did you mean status?\n"},
		{"an unknown flag", []string{"skip", "p", "--nxt", "1"}, "error: unknown flag: --nxt\nerror: see 'kubectl maint skip --help'\n"},
		{"a name where none is taken", []string{"rbac", "p"}, "error: 'kubectl maint rbac' takes no names, such as \"p\": see 'kubectl maint rbac --help'\n"},
		{"no plan", []string{"trigger"}, "error: PLAN is missing; --help shows examples\n"},
		{"two plans", []string{"trigger", "a", "b"}, "error: one PLAN at a time, not 2\n"},
		{
			"trigger",
			[]string{"trigger", "p", "--param", "mode", "--outside-window", "--timeout", "5s"},
			"error: --param \"mode\": write it name=value\nerror: --outside-window needs a --reason\nerror: --timeout is for --wait\n",
		},
		{
			"skip",
			[]string{"skip", "--next", "0", "--until", "soon", "--dry-run=maybe"},
			"error: PLAN is missing; --help shows examples\nerror: --next must be from 1 to 100, is 0\nerror: give exactly one of --next, --slot, --until and --all\n" +
				"error: \"soon\" is no time: " + instant.Forms + "\nerror: --dry-run: \"maybe\" is not one of none, client, server\n",
		},
		{"skip nothing", []string{"skip", "p"}, "error: give exactly one of --next, --slot, --until and --all\n"},
		{"a plan without a step", []string{"schedule", "p", "--cron", "0 2 * * *"}, "error: --step is missing: a plan needs a step, such as --step call=webhook,url=https://example.org/hook\n"},
		{"a plan that only cleans up", []string{"schedule", "p", "--finally", "call=webhook"}, "error: --step is missing: a plan needs a step, such as --step call=webhook,url=https://example.org/hook\n"},
		{"pause nothing", []string{"pause"}, "error: PLAN, POLICY or NODE is missing; or give --all or -l\n"},
		{"pause too much", []string{"pause", "p", "--all"}, "error: --all and names exclude each other\n"},
		{"-A alone", []string{"pause", "p", "-A"}, "error: -A needs --all or -l\n"},
		{"a pause until no time of no zone", []string{"pause", "p", "--until", "soon", "--timezone", "Europe/Berln"}, "error: --timezone: timezone: \"Europe/Berln\": is not a time zone of the IANA database 2025c; did you mean Europe/Berlin?\nerror: --until: \"soon\" is no time: " + instant.Forms + "\n"},
		{"status of all and of one", []string{"status", "-A", "p"}, "error: -A and names exclude each other: a name is looked for in one namespace\n"},
		{"lint of nothing", []string{"lint", "-o", "xml"}, "error: -f is missing: name a file or folder, or - for standard input\nerror: -o must be json, yaml, name, jsonpath=…, custom-columns=… or go-template=…, is \"xml\"\n"},
		{"next", []string{"next", "--count", "0"}, "error: PLAN or POLICY is missing; --help shows examples\nerror: --count must be from 1 to 10000, is 0\n"},
		{"history", []string{"history", "p", "--limit", "-1"}, "error: --limit must be 0 or more, is -1\n"},
		{"describe nothing", []string{"describe"}, "error: name a RUN or a PLAN; 'kubectl maint list' shows the plans, 'kubectl maint history PLAN' their runs\n"},
		{"an image of two words", []string{"install", "--image", "a b", "-n", "X"}, "error: --namespace \"X\" cannot name a namespace\nerror: --image \"a b\" cannot name an image\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmdtest.Offline(t, Run, "", c.args...).Is(t, cmdtest.Printed{Code: 2, Out: "", Err: c.err})
		})
	}
}

func TestAnUnknownFormatNamesTheKnownOnes(t *testing.T) {
	got := cmdtest.Offline(t, Run, "", "list", "-o", "xml")
	if got.Code != 2 || !strings.Contains(got.Err, "custom-columns") || !strings.Contains(got.Err, "jsonpath") {
		t.Errorf("%+v", got)
	}
}

func TestWithoutAClusterItSaysWhichOneDidNotAnswer(t *testing.T) {
	got := cmdtest.Offline(t, Run, "", "list", "--server", "http://127.0.0.1:1")
	got.Is(t, cmdtest.Printed{Code: 1, Out: "", Err: "error: list plans: the API server at http://127.0.0.1:1 cannot be reached: dial tcp 127.0.0.1:1: connect: connection refused; 'kubectl --server http://127.0.0.1:1 cluster-info' tries it, 'kubectl config get-contexts' lists others\n"})
}

func TestHelpSpeaksAsThePluginWasCalled(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"skip", "--help"}, {"help", "trigger"}} {
		got := cmdtest.Offline(t, Run, "", args...)
		if got.Code != 0 || !strings.Contains(got.Out, "\n  kubectl maint ") || strings.Contains(got.Out, "kubectl-maint ") {
			t.Errorf("%v printed\n%s%s", args, got.Out, got.Err)
		}
	}
	if got := cmdtest.Offline(t, Run, "", "skip", "--help"); strings.Contains(got.Out, "--kubeconfig") {
		t.Error("a command's help lists the flags that every command has")
	}
	if got := cmdtest.Offline(t, Run, "", "options"); !strings.Contains(got.Out, "--kubeconfig") {
		t.Error("options does not list the flags that every command has")
	}
}

// Every command has an example, and every example is a command line that exists.
func TestExamplesAreCommandLines(t *testing.T) {
	root := New(factory.Env{Name: "kubectl maint"})
	for _, c := range root.Commands() {
		for line := range strings.SplitSeq(strings.ReplaceAll(c.Example, "\\\n", ""), "\n") {
			_, after, found := strings.Cut(line, "kubectl maint ")
			if !found {
				continue
			}
			words := strings.Fields(after)
			cmd, rest, err := root.Find(words)
			if err != nil || cmd == root {
				t.Errorf("%s: %q is no command line: %v", c.Name(), line, err)
				continue
			}
			for _, w := range rest {
				name, isFlag := strings.CutPrefix(w, "--")
				name, _, _ = strings.Cut(name, "=")
				if isFlag && name != "" && cmd.Flag(name) == nil && cmd.InheritedFlags().Lookup(name) == nil {
					t.Errorf("%s: %q: there is no flag --%s", c.Name(), line, name)
				}
			}
		}
	}
}

// What messages tell people to give can be given.
func TestRemediesAreCommandLines(t *testing.T) {
	root := New(factory.Env{Name: "kubectl maint"})
	all := reflect.ValueOf(remedy.Commands{Name: "kubectl maint", Namespace: "ops", ClusterFlags: "--context prod --kubeconfig clusters.yaml"})
	for i := range all.NumMethod() {
		if all.Method(i).Type().Out(0).Kind() != reflect.String {
			continue // In makes no line
		}
		args := make([]reflect.Value, all.Method(i).Type().NumIn())
		for k := range args {
			args[k] = reflect.ValueOf("x")
		}
		text := all.Method(i).Call(args)[0].String()
		for part := range strings.SplitSeq(strings.ReplaceAll(text, " | ", " or "), " or ") {
			line, ours := strings.CutPrefix(strings.Trim(part, "'"), "kubectl maint ")
			if !ours && strings.HasPrefix(line, "kubectl ") {
				continue // a line of kubectl's own
			}
			words := strings.Fields(line)
			cmd, rest, err := root.Find(words)
			if err != nil || cmd == root {
				t.Errorf("%s is no command line: %v", part, err)
				continue
			}
			for i, w := range rest {
				if w == "…" {
					rest[i] = "some reason"
				}
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: %v", part, err)
			}
		}
	}
}

func TestVersionOfThePluginAlone(t *testing.T) {
	got := cmdtest.Offline(t, Run, "", "version", "--client")
	if got.Code != 0 || !strings.HasPrefix(got.Out, "client:    v0.1.0\nzone data: 20") {
		t.Errorf("%+v", got)
	}
}

func TestCompletionForKubectlCallsThePlugin(t *testing.T) {
	cmdtest.Offline(t, Run, "", "completion", "kubectl").Is(t, cmdtest.Printed{Code: 0, Out: "#!/usr/bin/env sh\n# Save as kubectl_complete-maint in a folder of your PATH and make it executable.\nexec kubectl maint __complete \"$@\"\n", Err: ""})
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := cmdtest.Offline(t, Run, "", "completion", shell); got.Code != 0 || len(got.Out) < 1000 {
			t.Errorf("%s: %d, %d bytes, %s", shell, got.Code, len(got.Out), got.Err)
		}
	}
	for _, args := range [][]string{{"completion"}, {"completion", "bash", "zsh"}} {
		cmdtest.Offline(t, Run, "", args...).Is(t, cmdtest.Printed{Code: 2, Err: "error: name one of bash, zsh, fish, powershell, kubectl\n"})
	}
	if got := cmdtest.Offline(t, Run, "", "completion", "tcsh"); got.Code != 2 {
		t.Errorf("tcsh: %+v", got)
	}
	if got := cmdtest.Offline(t, Run, "", "__complete", "trigger", ""); got.Code != 0 { // never an error, also without a cluster
		t.Errorf("without a cluster: %+v", got)
	}
}

// A file is offered where one is asked for, and nowhere else.
func TestFilesAreOfferedToFlagsThatTakeThem(t *testing.T) {
	for line, want := range map[string]string{
		"adopt": ":4", "pause a --timezone": ":4", "install --outbound": ":4", "trigger a --reason": ":4", "schedule a -f": ":0", "lint -f": ":0", "trigger a --kubeconfig": ":0", "--client-key": ":0",
	} {
		got := cmdtest.Offline(t, Run, "", append(append([]string{"__complete"}, strings.Fields(line)...), "")...)
		if got.Code != 0 || strings.TrimSpace(got.Out) != want {
			t.Errorf("%s: %+v, want %s", line, got, want)
		}
	}
}

// That there is no agent is an answer; that nobody may say so is an error.
func TestVersionWithoutAnAgent(t *testing.T) {
	got := cmdtest.NewCluster(t, Run).Maint("version")
	if !strings.HasPrefix(got.Out, "client:    ") || !strings.Contains(got.Out, "agent:     none: no agent runs in namespace maint-system") || got.Err != "" || got.Code != 0 {
		t.Errorf("%d\n%s%s", got.Code, got.Out, got.Err)
	}
	cmdtest.NewCluster(t, Run).Maint("version", "-o", "jsonpath={.apiVersion} {.kind} {.agent}").Is(t, cmdtest.Printed{Out: "maint.dev/v1alpha1 Versions "})
	o := cmdtest.NewCluster(t, Run)
	o.Forbids("get", "configmaps", "")
	o.Forbids("list", "configmaps", "")
	if got := o.Maint("version"); !strings.HasPrefix(got.Out, "client:    ") || got.Code != 1 || !strings.Contains(got.Err, "ask for the agent") {
		t.Errorf("%d\n%s%s", got.Code, got.Out, got.Err)
	}
}

func TestVersionSaysWhichNamespaceAnAgentWatches(t *testing.T) {
	for _, namespace := range []string{"shop", "team"} {
		agent := cmdtest.Agent()
		agent.Data[annotations.HeartbeatWatches] = namespace
		cmdtest.NewCluster(t, Run, agent).Maint("version", "-o", "jsonpath={.agent.watches}").Is(t, cmdtest.Printed{Out: namespace})
	}
}

func TestColoursAreControlled(t *testing.T) {
	world := func() *cmdtest.Cluster {
		return cmdtest.NewCluster(t, Run, cmdtest.Agent(), cmdtest.Namespace("maint-system"), cmdtest.Namespace("shop"), cmdtest.Plan("orders", ""))
	}
	for when, coloured := range map[string]bool{"always": true, "never": false, "auto": false} {
		got := world().Maint("status", "orders", "--color="+when)
		if got.Code != 0 || strings.Contains(got.Out, "\x1b[1m") != coloured {
			t.Errorf("--color=%s: %+v", when, got)
		}
	}
	world().Maint("status", "--color=sometimes").Is(t, cmdtest.Printed{Code: 2, Err: "error: --color must be auto, always or never, is \"sometimes\"\n"})
}

// An object that can be frozen is no document: every command says so in the same words.
func TestAKindThatNoCommandReadsIsToldSo(t *testing.T) {
	const said = "error: deployment/hello: there is no kind \"deployment\" here. If deployment is a namespace, write: hello -n deployment. A document or node is written NAME, plan/NAME, policy/NAME, run/NAME or node/NAME. Other kinds are for 'allow' and 'freeze' alone, whose --end ends what they wrote\n"
	for _, line := range []string{"why", "check", "next", "status", "describe", "doctor"} {
		got := cmdtest.NewCluster(t, Run, cmdtest.Agent(), cmdtest.Namespace("shop")).Maint(line, "deployment/hello")
		if got.Code != 2 || !strings.HasSuffix(got.Err, said) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

func TestACommandThatTakesNoNodeSaysWhatDoes(t *testing.T) {
	for _, line := range []string{"describe node/a", "trigger no/a --reason x", "skip nodes/a --next 1", "logs node/a"} {
		got := cmdtest.NewCluster(t, Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Node("a")).Line(line)
		const said = "/a: this command takes no node; 'kubectl maint status node/a' shows it, and 'kubectl maint why node/a' why nothing happens to it\n"
		if got.Code != 2 || !strings.HasSuffix(got.Err, said) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// A selector that is none is wrong usage, whatever the command would do with it.
func TestASelectorThatIsNoneIsWrongUsage(t *testing.T) {
	rest := map[string]string{"pause": "--reason x", "hibernate": "--reason x", "skip": "--next 1", "drain": "--reason x"}
	for name, flags := range selecting() {
		if !strings.Contains(flags, "-l") {
			continue
		}
		got := cmdtest.NewCluster(t, Run, cmdtest.Agent(), cmdtest.Namespace("shop")).Line(name + " -l a=(b " + rest[name])
		if got.Code != 2 || !strings.Contains(got.Err, "error: -l: \"a=(b\" is no label selector: ") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestANameThatIsNearlyThatOfAPolicyIsSuggested(t *testing.T) {
	for _, line := range []string{"status", "describe", "doctor"} {
		got := cmdtest.NewCluster(t, Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Policy("weekends", "{}")).Maint(line, "weekendz")
		if got.Code != 1 || !strings.Contains(got.Err+got.Out, `"weekendz" in namespace shop; did you mean "weekends"?`) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// Files do not say what a cluster holds: a policy that they lack may be there.
func TestAPolicyThatFilesLackIsNotSaidToBeMissing(t *testing.T) {
	cmdtest.WriteFiles(t, map[string]string{"plan.yaml": cmdtest.PlanOf("orders", "", "triggers: {schedules: [{cron: '0 2 * * *'}]}, policies: [{name: weekends}]")})
	const said = "policy weekends: not ready: no file that was given holds it; give that, too, with -f"
	for line, code := range map[string]int{"check -f plan.yaml": 3, "next -f plan.yaml --count 1": 0} {
		got := cmdtest.Offline(t, Run, "", cmdtest.Words(line)...)
		if got.Code != code || !strings.Contains(got.Out, said) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

func TestHelpOfACommandWithCommandsNamesThem(t *testing.T) {
	got := cmdtest.Offline(t, Run, "", "restore", "--help")
	for _, want := range []string{"Usage:\n  kubectl maint restore [command]\n", "Commands:\n", "  edit ", "  list ", "  show ", "  kubectl maint restore list -A\n"} {
		if got.Code != 0 || !strings.Contains(got.Out, want) {
			t.Errorf("lacks %q:\n%s", want, got.Out)
		}
	}
}
