package node_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// refuses has writes to some nodes refused.
func refuses(o *cmdtest.Cluster, by map[string]error) {
	o.Kube.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		err := by[a.(clienttesting.PatchAction).GetName()]
		return err != nil, nil, err
	})
}

func forbidden(node string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, node, errors.New("not yours"))
}

const (
	forbiddenB = "Error from server (Forbidden): write to node b: nodes \"b\" is forbidden: not yours; a ClusterRole with patch on nodes would let you; 'kubectl auth can-i --list' shows what you may\n"
	brokenC    = "error: write to node c: Internal error occurred: no webhook\n"
)

// As kubectl drain does: the nodes after one that fails are drained all the same.
func TestDrainOfSeveralNodesGoesOnAfterAFailure(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a"), cmdtest.Node("b"), cmdtest.Node("c"), cmdtest.Node("d"))
	refuses(o, map[string]error{"b": forbidden("b"), "c": apierrors.NewInternalError(errors.New("no webhook"))})
	requested := "node/a requested for " + cmdtest.Jane + "\nnode/d requested for " + cmdtest.Jane + "\n"
	o.Maint("drain", "a", "b", "c", "d", "--yes").Is(t, cmdtest.Printed{Code: 1, Out: requested, Err: forbiddenB + brokenC})
	for _, name := range []string{"a", "d"} {
		o.Has(name, map[string]string{annotations.RequestPrefix + cmdtest.Jane: "{}"})
	}
	o.Told(map[string]func(){"the agent has not looked at it yet": func() {
		o.Become("a", cmdtest.Stood(cmdtest.Jane, nodes.Ready, "the requestor has the node"), cmdtest.CordonedFor(nodes.Cordon{By: []string{cmdtest.Jane}, Drained: []nodes.Drained{{}}}))
	}})
	o.Maint("drain", "a", "b", "--yes", "--wait").Is(t, cmdtest.Printed{
		Code: 1, Out: "2026-11-21T00:00:00Z node a: requested; the agent has not looked at it yet\n2026-11-21T00:00:00Z node a: Ready: the requestor has the node\n",
		Err: "node/a unchanged: " + cmdtest.Jane + " asks for it already\nwarning: 1 of 2 nodes failed; waiting for the others, and the errors follow at the end\n" + forbiddenB,
	})
	o.Maint("drain", "b", "c", "--yes", "--wait").Is(t, cmdtest.Printed{Code: 1, Err: forbiddenB + brokenC}) // there is nothing to wait for
}

func TestAPlanOfSeveralDrainsGoesOnAfterAFailure(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("n-1"), cmdtest.Node("n-2"), cmdtest.Pod("web-1", "n-1"))
	o.Forbids("list", "poddisruptionbudgets", "")
	const unread = "Error from server (Forbidden): node n-1: list the budgets of namespace shop: poddisruptionbudgets is forbidden: not for you\n"
	o.Maint("drain", "n-1", "n-2", "--plan").Is(t, cmdtest.Printed{Code: 1, Out: "node/n-2  possible: 0 pods would leave, 0 would stay\n", Err: unread})
	o.Maint("drain", "n-1", "--plan", "-o", "json").Is(t, cmdtest.Printed{Code: 1, Err: strings.Replace(unread, "node n-1: ", "", 1)})
}

func TestReleaseOfSeveralNodesGoesOnAfterAFailure(t *testing.T) {
	mine := cmdtest.Asked(cmdtest.Jane, "{}")
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a", mine, cmdtest.Stood(cmdtest.Jane, nodes.Ready, "")), cmdtest.Node("b", mine), cmdtest.Node("c", mine), cmdtest.Node("d", mine))
	refuses(o, map[string]error{"b": forbidden("b"), "c": apierrors.NewInternalError(errors.New("no webhook"))})
	o.Maint("release", "b", "c", "d").Is(t, cmdtest.Printed{Code: 1, Out: "node/d released by " + cmdtest.Jane + "\n", Err: forbiddenB + brokenC})
	o.Has("d", map[string]string{})
	o.Told(map[string]func(){"node a: being released": func() {
		o.Become("a", func(n *corev1.Node) { delete(n.Annotations, annotations.StatusRequestPrefix+cmdtest.Jane) })
	}})
	o.Maint("release", "--all", "--wait").Is(t, cmdtest.Printed{
		Code: 1, Out: "2026-11-21T00:00:00Z node a: being released, was Ready\n2026-11-21T00:00:00Z node a: not asked for\n",
		Err: "node/a released by " + cmdtest.Jane + "\nwarning: 2 of 3 nodes failed; waiting for the others, and the errors follow at the end\n" + forbiddenB + brokenC,
	})
}
