package remedy_test

import (
	"context"
	"errors"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
)

// What is in no namespace (nodes, the agent, the cluster) and what reads files is asked for
// without one: 'drain' with -n would be understood, and teach something wrong.
func TestARemedyNamesTheNamespaceOfWhatItIsAbout(t *testing.T) {
	everywhere := map[string]string{
		"DoctorAll":         "'kubectl maint doctor'",
		"DescribeNamespace": "'kubectl describe namespace x'",
		"Drain":             "'kubectl maint drain x'",
		"DrainPlan":         "'kubectl maint drain x --plan'",
		"FreezeNamespace":   "'kubectl maint freeze namespace/x --for D --reason R'",
		"Install":           "'kubectl maint install --apply'",
		"ListAll":           "'kubectl maint list -A'",
		"Lint":              "'kubectl maint lint -f FILE'",
		"New":               "'kubectl maint new'",
		"Release":           "'kubectl maint release x'",
		"ReleaseFor":        "'kubectl maint release x --requestor x'",
		"ResumeCluster":     "'kubectl maint resume --all -A'",
		"PauseCluster":      "'kubectl maint pause --all -A'",
		"GrantIn":           "'kubectl -n x create role maint:x:x:x:x --verb=x --resource=x --resource-name=x --dry-run=client -o yaml | kubectl -n x auth reconcile -f -' and 'kubectl -n x create rolebinding maint:x:x:x:x --role=maint:x:x:x:x --serviceaccount=x:x --dry-run=client -o yaml | kubectl -n x auth reconcile -f -'",
		"GrantEverywhere":   "'kubectl create clusterrole maint:x:x:x:x --verb=x --resource=x --resource-name=x --dry-run=client -o yaml | kubectl auth reconcile -f -' and 'kubectl create clusterrolebinding maint:x:x:x:x --clusterrole=maint:x:x:x:x --serviceaccount=x:x --dry-run=client -o yaml | kubectl auth reconcile -f -'",
		"InstallIn":         "'kubectl maint install --apply --namespace x'",
		"InstallWith":       "'kubectl maint install --apply --namespace x x'",
		"Uninstall":         "'kubectl maint uninstall --apply --namespace x'",
		"Uncordon":          "'kubectl uncordon x'",
		"Cordon":            "'kubectl cordon x'",
		"DeleteNamespace":   "'kubectl delete namespace x'",
		"ClusterInfo":       "'kubectl cluster-info'",
		"Contexts":          "'kubectl config get-contexts'",
		"Login":             "'kubectl auth whoami' tries your credentials, 'kubectl config get-contexts' lists other contexts",
		"WhyNode":           "'kubectl maint why NODE'",
	}
	inNamespace := map[string]string{
		"Abort":              "'kubectl maint abort x'",
		"Adopt":              "'kubectl maint adopt x'",
		"AdoptAll":           "'kubectl maint adopt --all --dry-run=client'",
		"ShowRestore":        "'kubectl maint restore show x'",
		"Allow":              "'kubectl maint allow x --for 2h --reason …'",
		"Ask":                "'kubectl maint rollback x --to xx'",
		"AskOutside":         "'kubectl maint rollback x --to xx --outside-window --reason x'",
		"Answer":             "'kubectl maint approve x' or 'kubectl maint reject x'",
		"Approve":            "'kubectl maint approve x'",
		"Describe":           "'kubectl maint describe x'",
		"Doctor":             "'kubectl maint doctor x'",
		"Grant":              "'kubectl get configmap x -o yaml | kubectl maint rbac -f - | kubectl apply -f -'",
		"Hibernate":          "'kubectl maint hibernate x'",
		"HibernateFor":       "'kubectl maint hibernate x --for 2h'",
		"WakeShortly":        "'kubectl maint wake x --for 2h'",
		"History":            "'kubectl maint history x'",
		"List":               "'kubectl maint list'",
		"ListOf":             "'kubectl maint list x'",
		"ReleaseHold":        "'kubectl maint wake x --release'",
		"Resume":             "'kubectl maint resume x'",
		"ResumeAll":          "'kubectl maint resume --all'",
		"RestoreShow":        "'kubectl maint restore show x'",
		"AllowUntil":         "'kubectl maint allow x --until x --reason x'",
		"FreezeUntil":        "'kubectl maint freeze x --until x --reason x'",
		"Retry":              "'kubectl maint retry x'",
		"RollbackTo":         "'kubectl maint rollback x --to RUN'",
		"Schedule":           "'kubectl maint schedule'",
		"Apply":              "'kubectl apply -f x'",
		"CanI":               "'kubectl auth can-i --list'",
		"Get":                "'kubectl get x'",
		"GetLabels":          "'kubectl get x --show-labels'",
		"Scale":              "'kubectl scale deployment x --replicas=2'",
		"Logs":               "'kubectl logs deployment/x'",
		"DeleteLedger":       "'kubectl delete configmap x'",
		"DescribeDeployment": "'kubectl describe deployment x'",
		"Role":               "'kubectl annotate serviceaccount x x=arn:aws:iam::x:role/ROLE'",
		"ShowLedger":         "'kubectl get configmap x -o yaml'",
		"TakeAnnotation":     "'kubectl annotate x x-'",
		"Status":             "'kubectl maint status'",
		"StatusOf":           "'kubectl maint status x'",
		"Trigger":            "'kubectl maint trigger x'",
		"Unfreeze":           "'kubectl maint freeze x --end'",
		"Unskip":             "'kubectl maint unskip x'",
		"Wake":               "'kubectl maint wake x'",
		"WakeFor":            "'kubectl maint wake x --for 24h'",
		"Why":                "'kubectl maint why x'",
	}
	here := remedy.Commands{Name: "kubectl maint"}
	for name, got := range suggested(here) {
		want, known := inNamespace[name]
		if !known {
			want = everywhere[name]
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for name, got := range suggested(here.In("shop")) {
		want := everywhere[name]
		if spaced, is := inNamespace[name]; is {
			want = strings.ReplaceAll(spaced, "'kubectl maint ", "'kubectl maint -n shop ")
			want = strings.ReplaceAll(want, "'kubectl get ", "'kubectl -n shop get ")
			want = strings.ReplaceAll(want, "'kubectl apply ", "'kubectl -n shop apply ")
			want = strings.ReplaceAll(want, "'kubectl annotate ", "'kubectl -n shop annotate ")
			for _, verb := range []string{"auth", "scale", "logs", "delete", "describe"} {
				want = strings.ReplaceAll(want, "'kubectl "+verb+" ", "'kubectl -n shop "+verb+" ")
			}
		}
		if got != want {
			t.Errorf("%s in a namespace: %s, want %s", name, got, want)
		}
	}
}

// Who asked another cluster than the kubeconfig's is told to ask that one again.
func TestARemedyNamesTheClusterThatWasAsked(t *testing.T) {
	there := remedy.Commands{Name: "kubectl maint", ClusterFlags: "--context prod", Namespace: "shop"}
	for name, c := range map[string]struct{ got, want string }{
		"in a namespace":      {there.Abort("r"), "'kubectl maint --context prod -n shop abort r'"},
		"in none":             {there.Drain("a"), "'kubectl maint --context prod drain a'"},
		"of two":              {there.Answer("r"), "'kubectl maint --context prod -n shop approve r' or 'kubectl maint --context prod -n shop reject r'"},
		"of files":            {there.Lint(), "'kubectl maint lint -f FILE'"},
		"back to the context": {there.In("").Abort("r"), "'kubectl maint --context prod abort r'"},
		"of a kubeconfig":     {remedy.Commands{ClusterFlags: `--context a\ --kubeconfig\ b --kubeconfig /my\ config --user x`}.Contexts(), `'kubectl --kubeconfig /my\ config config get-contexts'`},
		"for kubectl, too":    {there.Grant("p"), "'kubectl --context prod -n shop get configmap p -o yaml | kubectl maint rbac -f - | kubectl --context prod apply -f -'"},
		"as it was called":    {remedy.Commands{Name: "maint"}.Status(), "'maint status'"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
	}
	for name, got := range suggested(there) {
		bare := suggested(there.In(""))[name]
		for _, offline := range []string{"kubectl maint lint ", "kubectl maint new'", "kubectl maint rbac -f -", "kubectl config get-contexts'"} {
			bare = strings.ReplaceAll(bare, offline, "")
		}
		of := strings.ReplaceAll(bare, "kubectl maint ", "kubectl ")
		if strings.Count(of, "kubectl ") != strings.Count(of, "kubectl --context prod ") {
			t.Errorf("%s asks another cluster: %s", name, got)
		}
	}
	if there.Namespace != "shop" {
		t.Error("In changed the commands it was asked on")
	}
}

// What a command suggests in its own place does what it was asked to do: a dry run stays one.
func TestTheCommandsOfTheAgentNameTheClusterThatWasAsked(t *testing.T) {
	const text = "approve it with 'kubectl maint -n shop approve r' or 'kubectl maint -n shop reject r'; 'kubectl maint rbac -f FILE | kubectl apply -f -' and 'kubectl uncordon a' help; kubectl maint is not quoted"
	for name, c := range map[string]struct {
		by   remedy.Commands
		want string
	}{
		"the context's own": {remedy.Commands{Name: "kubectl maint", Namespace: "other"}, text},
		"another one": {
			remedy.Commands{Name: "kubectl maint", ClusterFlags: "--context prod --as jane"},
			"approve it with 'kubectl maint --context prod --as jane -n shop approve r' or 'kubectl maint --context prod --as jane -n shop reject r'; 'kubectl maint --context prod --as jane rbac -f FILE | kubectl --context prod --as jane apply -f -' and 'kubectl --context prod --as jane uncordon a' help; kubectl maint is not quoted",
		},
		"of a plugin that is called otherwise": {remedy.Commands{Name: "maint"}, "approve it with 'maint -n shop approve r' or 'maint -n shop reject r'; 'maint rbac -f FILE | kubectl apply -f -' and 'kubectl uncordon a' help; kubectl maint is not quoted"},
	} {
		got := remedy.AgentText(c.by, text)
		if got != c.want {
			t.Errorf("%s: %s", name, got)
		}
		if again := remedy.AgentText(c.by, got); again != got {
			t.Errorf("%s, once more: %s", name, again)
		}
	}
}

func TestARequestIsRepeatedWithItsFlags(t *testing.T) {
	c := remedy.Commands{Name: "kubectl maint"}
	for _, row := range []struct{ line, want string }{
		{"", "'kubectl maint trigger p --outside-window --reason …'"},
		{"--wait --param b=1 --param a=x,$y --dry-run", `'kubectl maint trigger p --dry-run --param b=1 --param a=x,\$y --wait --outside-window --reason …'`},
		{"--dry-run=server --reason CHG-1", "'kubectl maint trigger p --dry-run=server --outside-window --reason CHG-1'"},
	} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.String("reason", "", "")
		flags.StringArray("param", nil, "")
		flags.Bool("wait", false, "")
		flags.String("dry-run", "none", "")
		flags.Lookup("dry-run").NoOptDefVal = "run"
		if err := flags.Parse(strings.Fields(row.line)); err != nil {
			t.Fatal(err)
		}
		if got := c.AskOutside("p", "", remedy.Given(flags, "reason"), flags.Lookup("reason").Value.String()); got != row.want {
			t.Errorf("%s: %s, want %s", row.line, got, row.want)
		}
	}
	if got, want := c.Ask("p", "", remedy.AsAsked("", map[string]string{"mode": "full", "a": "b c"}, true)), `'kubectl maint trigger p --dry-run=run --param a=b\ c --param mode=full'`; got != want {
		t.Errorf("as it was asked for: %s, want %s", got, want)
	}
}

// Step paths hold names of another cluster's objects.
func TestARemedyKeepsANameOneWord(t *testing.T) {
	const hostile = `r/roll/$(touch pwn); x/ask`
	here := remedy.Commands{Name: "kubectl maint", Namespace: "shop"}
	if got, want := here.Approve(hostile), `'kubectl maint -n shop approve r/roll/\$\(touch\ pwn\)\;\ x/ask'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for name, command := range suggestedOf(here, "$(touch pwn)") {
		if strings.Contains(command, "$(touch") && !strings.Contains(command, `\$\(touch`) {
			t.Errorf("%s runs what a name says: %s", name, command)
		}
	}
	if got, want := here.Answer("r/a\nb"), "'kubectl maint -n shop approve r' or 'kubectl maint -n shop reject r'"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := here.InstallWith("maint", "--impersonate a;b"), `'kubectl maint install --apply --namespace maint --impersonate a\;b'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := remedy.CommandIn("it waits: " + here.Why("it's") + ": soon"); got != here.Why("it's") {
		t.Errorf("the command in a message is %s", got)
	}
}

// suggested calls every method that gives a command line, with x for what it is about.
func suggested(c remedy.Commands) map[string]string { return suggestedOf(c, "x") }

func suggestedOf(c remedy.Commands, about string) map[string]string {
	out := map[string]string{}
	of := reflect.ValueOf(c)
	for i := range of.NumMethod() {
		name, method := of.Type().Method(i).Name, of.Method(i)
		if method.Type().Out(0).Kind() != reflect.String {
			continue
		}
		args := slices.Repeat([]reflect.Value{reflect.ValueOf(about)}, method.Type().NumIn())
		out[name] = method.Call(args)[0].String()
	}
	return out
}

// What is said of an API server depends on how far a request came.
func TestWhatBecameOfARequestIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nobody is there":          {errors.New("dial tcp 10.0.0.1:443: connect: connection refused"), "cannot be reached: dial"},
		"it has no time left":      {context.DeadlineExceeded, "does not answer: "},
		"it is cut off":            {errors.New("stream error: stream ID 1; INTERNAL_ERROR; received from peer"), "ended the request without an answer: stream error"},
		"the connection is closed": {io.EOF, "ended the request without an answer: EOF"},
		"in the middle":            {io.ErrUnexpectedEOF, "ended the request without an answer: unexpected EOF"},
	} {
		err := remedy.Commands{}.Explain("list plans", &url.Error{Op: "Get", URL: "https://cluster:6443/api", Err: c.err})
		if !strings.Contains(err.Error(), "list plans: the API server at https://cluster:6443 "+c.want) || !errors.As(err, &remedy.UnansweredError{}) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
