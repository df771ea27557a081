package setup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// Only who takes rights that the agent has leaves behind what is alive.
func TestWhichFlagTakesRights(t *testing.T) {
	readOnly := func() *Manifests {
		m := released()
		m.ReadOnly = true
		return &m
	}
	noRequests := func() *Manifests {
		m := released()
		m.Without = []string{partRequests}
		return &m
	}
	cloud := func() *Manifests {
		m := released()
		m.Cloud = true
		return &m
	}
	for name, c := range map[string]struct {
		before, now  *Manifests
		flag, spared string
	}{
		"nothing changes":         {new(released()), new(released()), "", ""},
		"it may change nothing":   {new(released()), readOnly(), flagReadOnly, ""},
		"it could change nothing": {readOnly(), readOnly(), "", ""},
		"one namespace is left":   {new(released()), new(alone()), flagSingle, "maint-system"},
		"it had one namespace":    {new(alone()), new(alone()), "", ""},
		"it gets all":             {new(alone()), new(released()), "", ""},
		"it gets no tokens":       {cloud(), new(released()), "", ""},
		"it keeps its tokens":     {cloud(), cloud(), "", ""},
		"there was none":          {nil, readOnly(), "", ""},
		"it loses the nodes":      {new(released()), noRequests(), flagWithout, ""},
		"it had no nodes":         {noRequests(), noRequests(), "", ""},
		"it had one namespace, and loses no nodes": {new(alone()), func() *Manifests {
			m := alone()
			m.Without = []string{partRequests}
			return &m
		}(), "", ""},
	} {
		live := objectsByKey{}
		if c.before != nil {
			objects, err := c.before.Objects()
			if err != nil {
				t.Fatal(err)
			}
			live = byKey(objects)
		}
		if flag, spared := c.now.narrowing(live); flag != c.flag || spared != c.spared {
			t.Errorf("%s: %q, but not in %q", name, flag, spared)
		}
	}
}

// The command that helps takes back the request that is named, whoever asks.
func TestWhatNarrowsTheAgentNamesTheCommandThatHelps(t *testing.T) {
	node := func(name, by string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotations.StatusCordoned: nodes.Cordon{By: []string{by}}.String()}}}
	}
	f := factory.NewFor(factory.Env{Version: "v0.1.0", Name: "kubectl maint"}, &factory.Cluster{Kube: fake.NewClientset(node("a", nodes.PlanClaimant("shop", "roll")), node("b", "gpu"), node("c", "net"))})
	before := released()
	objects, err := before.Objects()
	if err != nil {
		t.Fatal(err)
	}
	const requests = "the request of gpu for node b, the request of net for node c"
	for flag, want := range map[string]string{
		flagWithout:  "nothing was changed: after --without requests the agent could not end " + requests + ": take back what asks for the nodes first, as with 'kubectl maint release b --requestor gpu'",
		flagReadOnly: "nothing was changed: after --read-only the agent could not end " + requests + ": wait for runs or abort them, wake what sleeps, and release nodes, first",
	} {
		o := &installOptions{Factory: f, apply: true, manifests: released()}
		switch flag {
		case flagWithout:
			o.manifests.Without = []string{partRequests}
		case flagReadOnly:
			o.manifests.ReadOnly = true
		}
		if err := o.strands(t.Context(), byKey(objects)); err == nil || err.Error() != want || exit.CodeOf(err) != exit.CodeNotNow {
			t.Errorf("--%s: %v", flag, err)
		}
	}
}

// A run that does not count keeps no right with the agent: nobody could wait for it, or abort it.
func TestRunsThatDoNotCountDoNotHoldUpWhatNarrowsTheAgent(t *testing.T) {
	const unchecked = `; whether the agent wrote that cannot be checked (read the key in namespace maint-system: secrets "maint-agent-key" not found): delete it if it did not`
	before := released()
	objects, err := before.Objects()
	if err != nil {
		t.Fatal(err)
	}
	ours, forged := cmdtest.RunObject(cmdtest.RunOf(), "maint-run-orders-a"), cmdtest.RunObject(cmdtest.RunOf(), "maint-run-orders-b")
	delete(forged.Annotations, annotations.StatusSignature)
	for _, c := range []struct {
		narrow *installOptions
		given  string
	}{
		{&installOptions{manifests: func() Manifests { m := released(); m.ReadOnly = true; return m }()}, "--read-only"},
		{&installOptions{manifests: alone()}, "--single-namespace"},
	} {
		for said, world := range map[string][]runtime.Object{
			"": {forged},
			"nothing was changed: after " + c.given + " the agent could not end run shop/maint-run-orders-a: wait for runs or abort them, wake what sleeps, and release nodes, first" + unchecked: {forged, ours},
		} {
			var warned strings.Builder
			c.narrow.Factory, c.narrow.apply = factory.NewFor(factory.Env{Version: "v0.1.0", Name: "kubectl maint", IOStreams: genericiooptions.IOStreams{ErrOut: &warned}}, &factory.Cluster{Kube: fake.NewClientset(world...)}), true
			got := ""
			if err := c.narrow.strands(t.Context(), byKey(objects)); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(said, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.given, diff)
			}
			if !strings.HasPrefix(warned.String(), "warning: run shop/maint-run-orders-b stays: the run shop/maint-run-orders-b does not count: it carries no signature of the agent's: delete it, or, if it is the agent's own, sign it with ") {
				t.Errorf("%s: it warns %q", c.given, warned.String())
			}
		}
	}
}
