package node

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/terminal"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// On a terminal the picture is drawn again in place, a warning above it.
func TestDrainOnATerminal(t *testing.T) {
	node := cmdtest.Node("a", cmdtest.Asked(cmdtest.Jane, "{}"), cmdtest.Stood(cmdtest.Jane, nodes.Draining, "12 of 12 pods are left; Blocked for good: its budget", cmdtest.Progress(12, 12), cmdtest.ForGood("its budget")))
	objects := []runtime.Object{node}
	for i := range 12 {
		objects = append(objects, cmdtest.Pod(fmt.Sprintf("web-%02d", i), "a"))
	}
	var out, errOut bytes.Buffer
	env := factory.Env{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}, Name: "kubectl maint", Now: cmdtest.Now, Zone: "UTC", OutTerminal: true, Size: terminal.Size{Columns: 60}}
	w := newNodeWait(&factory.Factory{Env: env}, &factory.Cluster{Kube: fake.NewClientset(objects...)}, cmdtest.Jane, []*corev1.Node{node})
	w.settled, w.asked.expected = w.drained, "{}"
	var err error
	if w.nodes, err = watch.Nodes(t.Context(), w.k, w.changed, "a"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if over, err := w.refresh(t.Context()); over || err != nil {
			t.Fatal(over, err)
		}
	}
	picture := "a  Draining for 10m0s: 12 of 12 pods are left; Blocked for …\x1b[0m\n"
	for i := range 10 {
		picture += fmt.Sprintf("  shop/web-%02d  is still there\n", i)
	}
	picture += "  and 2 more\n"
	cmdtest.Printed{Code: 0, Out: out.String(), Err: errOut.String()}.Is(t, cmdtest.Printed{Code: 0, Out: picture + picture + "\x1b[12A\x1b[J" + picture, Err: "node/a is blocked until somebody changes something: its budget\n"})
}

// An agent that is too old for nodes has a heartbeat like any other, and says
// nothing of them.
func TestDrainDoesNotWaitForAnAgentThatIsTooOld(t *testing.T) {
	node := cmdtest.Node("a", cmdtest.Asked(cmdtest.Jane, "{}"))
	var out, errOut bytes.Buffer
	env := factory.Env{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}, Name: "kubectl maint", Now: cmdtest.Now, Zone: "UTC"}
	w := newNodeWait(&factory.Factory{Env: env}, &factory.Cluster{Kube: fake.NewClientset(node)}, cmdtest.Jane, []*corev1.Node{node})
	w.settled, w.asked.expected, w.asked.left, w.reportTimeout = w.drained, "{}", "the request stays", time.Millisecond
	err := w.run(t.Context())
	if want := "the agent writes nothing about node a: it is too old, or watches only one namespace; 'kubectl maint doctor' shows its version, and 'kubectl maint install --apply --namespace maint-system' upgrades it; the request stays"; exit.CodeOf(err) != exit.CodeNoAgent || cmdtest.ErrText(err) != want {
		t.Errorf("%d, %v", exit.CodeOf(err), err)
	}
}

// What blocks a node is said to whoever waits for it, and not to whoever gives it back.
func TestWhatBlocksANodeIsSaidToWhoWaitsForIt(t *testing.T) {
	passing := cmdtest.Node("a", cmdtest.Asked(cmdtest.Jane, `{"drain":{"onTimeout":"skip","timeout":"30m"}}`), cmdtest.Stood(cmdtest.Jane, nodes.Draining, "", cmdtest.ForGood("its budget")))
	var told bytes.Buffer
	waits := newNodeWait(&factory.Factory{Env: factory.Env{IOStreams: genericiooptions.IOStreams{Out: &bytes.Buffer{}, ErrOut: &told}, Name: "kubectl maint", Now: cmdtest.Now, Zone: "UTC"}}, &factory.Cluster{Kube: fake.NewClientset(passing)}, cmdtest.Jane, []*corev1.Node{passing})
	waits.asked.expected, waits.view = "{}", print.New(waits.env, "UTC")
	var unread error
	if waits.nodes, unread = watch.Nodes(t.Context(), waits.k, waits.changed, "a"); unread != nil {
		t.Fatal(unread)
	}
	if waits.warn(); told.String() != "node/a: its drain is blocked: its budget; it tries until Sat 2026-11-21 00:20 UTC, then leaves the pods that are still there and is Ready\n" {
		t.Errorf("one that goes on when its time is over: %q", told.String())
	}
	blocked := cmdtest.Node("a", cmdtest.Asked(cmdtest.Jane, "{}"), cmdtest.Stood(cmdtest.Jane, nodes.Draining, "", cmdtest.ForGood("its budget")))
	for expected, want := range map[string]string{"{}": "node/a is blocked until somebody changes something: its budget\n", "": ""} {
		var errOut bytes.Buffer
		env := factory.Env{IOStreams: genericiooptions.IOStreams{Out: &bytes.Buffer{}, ErrOut: &errOut}, Name: "kubectl maint", Now: cmdtest.Now, Zone: "UTC"}
		w := newNodeWait(&factory.Factory{Env: env}, &factory.Cluster{Kube: fake.NewClientset(blocked)}, cmdtest.Jane, []*corev1.Node{blocked, cmdtest.Node("gone")})
		w.asked.expected = expected
		var err error
		if w.nodes, err = watch.Nodes(t.Context(), w.k, w.changed, w.asked.names...); err != nil {
			t.Fatal(err)
		}
		if w.warn(); errOut.String() != want {
			t.Errorf("%q is expected: %q, want %q", expected, errOut.String(), want)
		}
	}
}

// A forecast knows whether the agent goes on elsewhere when its replica on the node leaves.
func TestAForecastKnowsTheReplicasOfTheAgent(t *testing.T) {
	replica := func(name, node string) *corev1.Pod {
		return cmdtest.Pod(name, node, func(p *corev1.Pod) {
			p.Namespace, p.Labels = annotations.DefaultNamespace, map[string]string{annotations.AgentLabel: annotations.AgentName}
		})
	}
	here, there := replica("maint-agent-1", "a"), replica("maint-agent-2", "b")
	last := drain.Agent{Pod: "maint-system/maint-agent-1"}
	ready, unknown := last, last
	ready.Elsewhere, unknown.Unknown = drain.ReadyElsewhere, "list the agent's pods: pods is forbidden: not for you"
	for _, c := range []struct {
		name   string
		pods   []*corev1.Pod // on the node
		forbid bool
		want   drain.Agent
	}{
		{name: "none is on the node", pods: []*corev1.Pod{cmdtest.Pod("web-1", "a")}},
		{name: "another is Ready elsewhere", pods: []*corev1.Pod{here, cmdtest.Pod("web-1", "a")}, want: ready},
		{name: "who may not see the others takes them for none", pods: []*corev1.Pod{cmdtest.Pod("web-1", "a"), here}, forbid: true, want: unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, nil, here, there, cmdtest.Pod("web-1", "a"))
			if c.forbid {
				o.Forbids("list", "pods", "")
			}
			var on []drain.Pod
			for _, p := range c.pods {
				on = append(on, annotations.DrainPod(p))
			}
			w := podReader{k: o.Connected(), agent: factory.AgentState{Namespace: annotations.DefaultNamespace, Pod: "maint-agent-1"}}
			if got := w.replicas(t.Context(), "a", on, cmdtest.Now()); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
