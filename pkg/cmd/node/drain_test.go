package node_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

func TestDrainFlagsAsARequest(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags string
		want  string
	}{
		{"nothing but defaults", "", `{}`},
		{"defaults that are given", "--drain-timeout 5m --on-timeout retry --grace-period -1", `{}`},
		{"a reason, first and together with others", "--reason disks --priority 5 --shared", `{"reason":"disks","priority":5,"shared":true}`},
		{"kubectl's words", "--force --delete-emptydir-data --grace-period 30 --pod-selector app=web", `{"drain":{"force":true,"podSelector":"app=web","deleteEmptyDir":true,"gracePeriod":"30s"}}`},
		{"the other word", "--delete-empty-dir", `{"drain":{"deleteEmptyDir":true}}`},
		{"time", "--drain-timeout 0 --on-timeout abort --pod-timeout 90s --grace-period 2m", `{"drain":{"timeout":"0s","gracePeriod":"2m0s","onTimeout":"abort","podTimeout":"1m30s"}}`},
		{"pods that are killed at once", "--grace-period 0", `{"drain":{"gracePeriod":"0s"}}`},
		{"a drain without a timeout of its own", "--drain-timeout 5m30s --pod-timeout 0s", `{"drain":{"timeout":"5m30s","podTimeout":"0s"}}`},
		{"volumes", "--wait-for-volumes", `{"drain":{"waitForVolumes":true}}`},
		{"a cordon alone", "--no-drain", `{"drain":false}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a"))
			o.Maint(append([]string{"drain", "a", "--yes"}, strings.Fields(c.flags)...)...).Is(t, cmdtest.Printed{Code: 0, Out: "node/a requested for " + cmdtest.Jane + "\n", Err: ""})
			o.Has("a", map[string]string{annotations.RequestPrefix + cmdtest.Jane: c.want})
		})
	}
}

func TestDrainTellsAllThatIsWrongWithItsFlags(t *testing.T) {
	for _, c := range []struct {
		name, flags, err string
	}{
		{"no node", "", "error: NODE is missing; or pick nodes with -l\n"},
		{"names and labels", "a -l pool=gpu", "error: -l and names exclude each other\n"},
		{"a timeout of nothing", "a --timeout 5s", "error: --timeout is for --wait\n"},
		{"a plan that waits", "a --plan --wait", "error: --plan asks for nothing, so there is nothing to --wait for\n"},
		{"a format for nothing", "a -o wide", "error: -o wide is for --plan\n"},
		{
			"what the request refuses, by the flags' names", "a --on-timeout never --pod-selector =x --priority 5000 --drain-timeout soon",
			"error: --drain-timeout: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\nerror: --priority: must be from -1000 to 1000, is 5000\n" +
				"error: --pod-selector: \"=x\" is no label selector: found '=', expected: !, identifier, or 'end of string'; write app=web, tier in (a,b), !canary or cores>4\nerror: --on-timeout: must be retry, skip, force or abort, is \"never\"\n",
		},
		{"a drain that is none", "a --no-drain --force", "error: --no-drain and what says how to drain exclude each other\n"},
		{"a requestor that is none", "a --requestor X", "error: --requestor: \"X\" is no name of a requestor: 2 to 63 lower-case letters, digits, - and ., a letter or digit first and last\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmdtest.Offline(t, cmd.Run, "", append([]string{"drain"}, strings.Fields(c.flags)...)...).Is(t, cmdtest.Printed{Code: 2, Out: "", Err: c.err})
		})
	}
}

func TestDrainAsks(t *testing.T) {
	same := cmdtest.Asked(cmdtest.Jane, ` {"drain": {"force": true, "timeout": "5m"}} `)
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a"), cmdtest.Node("b", same), cmdtest.Node("c", cmdtest.Asked(cmdtest.Jane, `{"reason":"old"}`)), cmdtest.Node("d", cmdtest.Asked("gpu", "")))
	o.Maint("drain", "a", "b").Is(t, cmdtest.Printed{Code: 2, Out: "", Err: "error: drain 2 nodes (a, b) for " + cmdtest.Jane + ": give --yes, since nobody can be asked here\n"})
	o.Maint("drain", "x", "a", "node/y", "--yes").Is(t, cmdtest.Printed{Code: 1, Out: "", Err: "error: there are no nodes x, y; 'kubectl get nodes' shows which there are; nothing was done\n"})
	o.Has("a", map[string]string{})
	o.Terminal, o.Stdin = true, "no\n"
	o.Maint("drain", "a", "--force").Is(t, cmdtest.Printed{Code: 1, Out: "", Err: "drain node a for " + cmdtest.Jane + "? [y/N] error: nothing was done\n"})
	o.Stdin = "y\n"
	o.Maint("drain", "a", "b", "c", "a", "--force").Is(t, cmdtest.Printed{
		Code: 0, Out: "node/a requested for " + cmdtest.Jane + "\nnode/b unchanged: " + cmdtest.Jane + " asks for it already\nnode/c requested for " + cmdtest.Jane + `, instead of {"reason":"old"}` + "\n",
		Err: "drain 2 nodes (a, c) for " + cmdtest.Jane + "? [y/N] ",
	})
	want := `{"drain":{"force":true}}`
	o.Has("a", map[string]string{annotations.RequestPrefix + cmdtest.Jane: want})
	o.Has("c", map[string]string{annotations.RequestPrefix + cmdtest.Jane: want})
	o.Maint("drain", "a", "b", "--force").Is(t, cmdtest.Printed{Code: 0, Out: "node/a unchanged: " + cmdtest.Jane + " asks for it already\nnode/b unchanged: " + cmdtest.Jane + " asks for it already\n", Err: ""})
	o.Maint("drain", "d", "--requestor", "disk-swap", "--dry-run").Is(t, cmdtest.Printed{Code: 0, Out: "node/d requested for disk-swap (dry run)\n", Err: ""})
	o.Has("d", map[string]string{annotations.RequestPrefix + "gpu": ""})
	o.Maint("drain", "-l", "pool=none", "--yes").Is(t, cmdtest.Printed{Code: 1, Out: "", Err: "error: -l pool=none picks no node; 'kubectl get nodes --show-labels' shows which there are\n"})
	o.User = ""
	o.Maint("drain", "d", "--yes").Is(t, cmdtest.Printed{Code: 1, Out: "", Err: "error: the API server does not say who you are: name the requestor with --requestor\n"})
}

// What was given up is not tried again as it stands; who asks for the same must
// hear that nothing will come of it.
func TestDrainSaysThatTheSameWasGivenUp(t *testing.T) {
	request, err := nodes.Parse(cmdtest.Jane, "{}")
	if err != nil {
		t.Fatal(err)
	}
	end := func(s *nodes.Status) { s.Ended = &nodes.End{Why: nodes.EndAborted, Value: request.Identity} }
	other := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a", cmdtest.Asked("gpu", "{}"), cmdtest.Stood("gpu", nodes.Pending, "the drain was aborted after 5m0s", end)))
	other.Maint("drain", "a", "--requestor", "gpu").Is(t, cmdtest.Printed{Out: "node/a unchanged: gpu asks for it already, and it was given up: the drain was aborted after 5m0s ('kubectl maint release a --requestor gpu', then ask again)\n"})
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a", cmdtest.Asked(cmdtest.Jane, "{}"), cmdtest.Stood(cmdtest.Jane, nodes.Pending, "the drain was aborted after 5m0s", end)))
	o.Maint("drain", "a").Is(t, cmdtest.Printed{Code: 0, Out: "node/a unchanged: " + cmdtest.Jane + " asks for it already, and it was given up: the drain was aborted after 5m0s ('kubectl maint release a', then ask again)\n", Err: ""})
	o.Maint("drain", "a", "--wait").Is(t, cmdtest.Printed{
		Code: 1, Out: "2026-11-21T00:00:00Z node a: Pending: the drain was aborted after 5m0s\n",
		Err: "node/a unchanged: " + cmdtest.Jane + " asks for it already, and it was given up: the drain was aborted after 5m0s ('kubectl maint release a', then ask again)\nerror: node a: the drain was aborted after 5m0s\n",
	})
}

// A request that the agent does not take up now says why; whatever cannot be read keeps nobody from asking.
func TestDrainSaysWhatTheNodeWaitsFor(t *testing.T) {
	const requested, helps = "node/a requested for " + cmdtest.Jane, "; 'kubectl maint why node/a' shows what would help\n"
	pauses := func(value string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Annotations[annotations.Pause], n.Annotations[annotations.Actor(annotations.Pause)], n.Annotations[annotations.Reason(annotations.Pause)] = value, "jane", "inventory"
		}
	}
	freezes := func(n *corev1.Node) {
		n.Annotations[annotations.ChangeStrategy], n.Annotations[annotations.RestrictiveUntil], n.Annotations[annotations.Actor(annotations.ChangeStrategy)] = "RestrictiveUntil", "2026-11-22T00:00:00Z", "jane"
	}
	cluster := cmdtest.Namespace("maint-system", annotations.Pause, "true", annotations.Actor(annotations.Pause), "root")
	request, _ := nodes.Parse(cmdtest.Jane, "{}")
	ended := cmdtest.Stood(cmdtest.Jane, nodes.Pending, "no pods left in time", func(s *nodes.Status) { s.Ended = &nodes.End{Why: nodes.EndAborted, Value: request.Identity} })
	for _, c := range []struct {
		name, line, out, err string
		world                []runtime.Object
		forbids              bool
	}{
		{name: "a paused node", world: []runtime.Object{cmdtest.Node("a", pauses("true"))}, err: "node a waits until change is permitted there (the node is paused by jane (unverified): inventory)" + helps},
		{name: "one that is paused for a time", world: []runtime.Object{cmdtest.Node("a", pauses("2026-11-22T00:00:00Z"))}, err: "node a waits until change is permitted there, at Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z) (the node is paused by jane (unverified): inventory)" + helps},
		{name: "a pause that is over", world: []runtime.Object{cmdtest.Node("a", pauses("2026-11-20T00:00:00Z"))}},
		{name: "a frozen node", world: []runtime.Object{cmdtest.Node("a", freezes)}, err: "node a waits until change is permitted there, at Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z) (RestrictiveUntil Sun 2026-11-22 01:00 CET by jane (unverified))" + helps},
		{name: "several nodes in a paused cluster, once", line: "drain a b --yes", world: []runtime.Object{cmdtest.Node("a"), cmdtest.Node("b"), cluster}, out: requested + "\nnode/b requested for " + cmdtest.Jane + "\n", err: "2 nodes (a, b) wait until change is permitted there (the whole cluster is paused by root (unverified))" + helps},
		{name: "a trial on the server", line: "drain a --yes --dry-run=server", world: []runtime.Object{cmdtest.Node("a", pauses("true"))}, out: requested + " (server dry run)\n"},
		{name: "a request that was given up, which stands as it is", world: []runtime.Object{cmdtest.Node("a", pauses("true"), cmdtest.Asked(cmdtest.Jane, "{}"), ended)}, out: "node/a unchanged: " + cmdtest.Jane + " asks for it already, and it was given up: no pods left in time ('kubectl maint release a', then ask again)\n"},
		{name: "one instead of a request that was given up", line: "drain a --yes --reason disk", world: []runtime.Object{cmdtest.Node("a", pauses("true"), cmdtest.Asked(cmdtest.Jane, "{}"), ended)}, out: "node/a requested for " + cmdtest.Jane + ", instead of {}\n", err: "node a waits until change is permitted there (the node is paused by jane (unverified): inventory)" + helps},
		{name: "a trial", line: "drain a --yes --dry-run", world: []runtime.Object{cmdtest.Node("a", pauses("true"))}, out: requested + " (dry run)\n"},
		{name: "a node that is had already", world: []runtime.Object{cmdtest.Node("a", pauses("true"), cmdtest.Asked(cmdtest.Jane, "{}"), cmdtest.Stood(cmdtest.Jane, nodes.Ready, "the node is its requestor's"))}, out: "node/a unchanged: " + cmdtest.Jane + " asks for it already\n"},
		{name: "where the cluster's pause may not be read", world: []runtime.Object{cmdtest.Node("a"), cluster}, forbids: true},
		{name: "where the cluster's pause may not be read, and the node's own may", world: []runtime.Object{cmdtest.Node("a", pauses("true")), cluster}, forbids: true, err: "node a waits until change is permitted there (the node is paused by jane (unverified): inventory)" + helps},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, append(c.world, cmdtest.Agent())...)
			if c.forbids {
				o.Forbids("get", "namespaces", "")
			}
			o.Line(cmp.Or(c.line, "drain a --yes")).Is(t, cmdtest.Printed{Out: cmp.Or(c.out, requested+"\n"), Err: c.err})
		})
	}
}

func TestDrainNeedsAnAgent(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Node("a"))
	o.Maint("drain", "a", "--yes").Is(t, cmdtest.Printed{Code: 5, Out: "", Err: "error: no agent runs in namespace maint-system: install it with 'kubectl maint install --apply'; nothing was asked\n"})
	o.Has("a", map[string]string{})
}

// Somebody else writes to the node between our look and our write.
func TestDrainWritesToTheNodeItLookedAt(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a"))
	conflicts := 0
	o.Kube.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts++; conflicts > 1 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "a", errors.New("changed"))
	})
	o.Maint("drain", "a", "--yes").Is(t, cmdtest.Printed{Code: 0, Out: "node/a requested for " + cmdtest.Jane + "\n", Err: ""})
	o.Has("a", map[string]string{annotations.RequestPrefix + cmdtest.Jane: "{}"})

	again := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a"))
	again.Kube.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		another := cmdtest.Node("a", func(n *corev1.Node) { n.UID = "another" })
		if err := again.Kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), another, ""); err != nil { // the client would wait for us
			t.Error(err)
		}
		return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, "a", nil)
	})
	again.Maint("drain", "a", "--yes").Is(t, cmdtest.Printed{Code: 1, Out: "", Err: "error: node a was deleted, or created again, meanwhile: look at it and ask again\n"})
}

func TestDrainWaitsUntilTheNodeIsReady(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a"), cmdtest.Pod("web-1", "a"), cmdtest.Pod("web-2", "a"), cmdtest.Pod("web-3", "b"), cmdtest.OfDaemonSet(cmdtest.Pod("proxy", "a")))
	o.Told(map[string]func(){
		"has not looked at it yet": func() { o.Become("a", cmdtest.Stood(cmdtest.Jane, nodes.Scheduled, "is next to have the node")) },
		"is next to have": func() {
			o.Become("a", cmdtest.CordonedFor(nodes.Cordon{By: []string{cmdtest.Jane}}), cmdtest.Stood(cmdtest.Jane, nodes.Draining, "2 of 2 pods are left", cmdtest.Progress(2, 2)))
		},
		"pod shop/web-2 on a: is still there": func() {
			if err := o.Kube.CoreV1().Pods("shop").Delete(context.Background(), "web-1", metav1.DeleteOptions{}); err != nil {
				o.Error(err)
			}
		},
		"pod shop/web-1 on a: has left": func() {
			o.Become("a", cmdtest.Stood(cmdtest.Jane, nodes.Draining, "1 of 2 pods are left; Blocked for good: shop/web-2 cannot leave", cmdtest.Progress(1, 2), cmdtest.ForGood("shop/web-2 cannot leave")))
		},
		"Blocked for good: shop/web-2 cannot leave": func() {
			if err := o.Kube.CoreV1().Pods("shop").Delete(context.Background(), "web-2", metav1.DeleteOptions{}); err != nil {
				o.Error(err)
			}
			o.Become("a", cmdtest.Stood(cmdtest.Jane, nodes.Ready, "the node is its requestor's"),
				cmdtest.CordonedFor(nodes.Cordon{By: []string{cmdtest.Jane}, Drained: []nodes.Drained{{}}}))
		},
	})
	o.Maint("drain", "a", "--yes", "--wait").Is(t, cmdtest.Printed{Code: 0, Out: `2026-11-21T00:00:00Z node a: requested; the agent has not looked at it yet
2026-11-21T00:00:00Z node a: Scheduled: is next to have the node
2026-11-21T00:00:00Z node a: Draining: 2 of 2 pods are left
2026-11-21T00:00:00Z pod shop/web-1 on a: is still there
2026-11-21T00:00:00Z pod shop/web-2 on a: is still there
2026-11-21T00:00:00Z pod shop/web-1 on a: has left
2026-11-21T00:00:00Z node a: Draining: 1 of 2 pods are left; Blocked for good: shop/web-2 cannot leave
2026-11-21T00:00:00Z pod shop/web-2 on a: has left
2026-11-21T00:00:00Z node a: Ready: the node is its requestor's
`, Err: "node/a requested for " + cmdtest.Jane + "\n"})
}

// A pod that a drain leaves is not said to have left, nor one that is skipped while
// the drain goes on.
func TestDrainSaysWhichPodsStay(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a"), cmdtest.Pod("web-1", "a"), cmdtest.Pod("web-2", "a"), cmdtest.Pod("web-3", "a"))
	o.Told(map[string]func(){
		"has not looked at it yet": func() {
			o.Become("a", cmdtest.CordonedFor(nodes.Cordon{By: []string{cmdtest.Jane}}), cmdtest.Stood(cmdtest.Jane, nodes.Draining, "3 of 3 pods are left", cmdtest.Progress(3, 3)))
		},
		"pod shop/web-3 on a: is still there": func() {
			p, err := o.Kube.CoreV1().Pods("shop").Get(context.Background(), "web-1", metav1.GetOptions{})
			if err == nil {
				p.Annotations = map[string]string{annotations.DrainHow: "skip"}
				_, err = o.Kube.CoreV1().Pods("shop").Update(context.Background(), p, metav1.UpdateOptions{})
			}
			if err != nil {
				o.Error(err)
			}
		},
		"pod shop/web-1 on a: stays on the node": func() {
			if err := o.Kube.CoreV1().Pods("shop").Delete(context.Background(), "web-2", metav1.DeleteOptions{}); err != nil {
				o.Error(err)
			}
		},
		"pod shop/web-2 on a: has left": func() {
			o.Become("a", cmdtest.Stood(cmdtest.Jane, nodes.Ready, "the node is its requestor's; left: shop/web-3 (its budget)"), cmdtest.CordonedFor(nodes.Cordon{By: []string{cmdtest.Jane}, Drained: []nodes.Drained{{Left: true}}}))
		},
	})
	o.Maint("drain", "a", "--on-timeout", "skip", "--yes", "--wait").Is(t, cmdtest.Printed{Code: 0, Out: `2026-11-21T00:00:00Z node a: requested; the agent has not looked at it yet
2026-11-21T00:00:00Z node a: Draining: 3 of 3 pods are left
2026-11-21T00:00:00Z pod shop/web-1 on a: is still there
2026-11-21T00:00:00Z pod shop/web-2 on a: is still there
2026-11-21T00:00:00Z pod shop/web-3 on a: is still there
2026-11-21T00:00:00Z pod shop/web-1 on a: stays on the node
2026-11-21T00:00:00Z pod shop/web-2 on a: has left
2026-11-21T00:00:00Z pod shop/web-3 on a: stays on the node
2026-11-21T00:00:00Z node a: Ready: the node is its requestor's; left: shop/web-3 (its budget)
`, Err: "node/a requested for " + cmdtest.Jane + "\n"})
}

// Who may not see pods is told so once, and sees what the agent counts.
func TestDrainWaitsWithoutRightsToPods(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a", cmdtest.Asked(cmdtest.Jane, "{}"), cmdtest.Stood(cmdtest.Jane, nodes.Draining, "2 of 2 pods are left", cmdtest.Progress(2, 2))))
	o.Kube.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("not for you"))
	})
	ready := cmdtest.CordonedFor(nodes.Cordon{By: []string{cmdtest.Jane}, Drained: []nodes.Drained{{}}})
	o.Told(map[string]func(){
		"2 of 2": func() {
			o.Become("a", cmdtest.Stood(cmdtest.Jane, nodes.Draining, "1 of 2 pods are left", cmdtest.Progress(1, 2)))
		},
		"1 of 2": func() { o.Become("a", cmdtest.Stood(cmdtest.Jane, nodes.Ready, ""), ready) },
	})
	o.Maint("drain", "a", "--wait").Is(t, cmdtest.Printed{Code: 0, Out: `2026-11-21T00:00:00Z node a: Draining: 2 of 2 pods are left
2026-11-21T00:00:00Z node a: Draining: 1 of 2 pods are left
2026-11-21T00:00:00Z node a: Ready
`, Err: "node/a unchanged: " + cmdtest.Jane + " asks for it already\nwarning: watch the pods of node a: pods is forbidden: not for you; only their number is shown\n"})
}

// A phase that stands there is that of what was asked before, until the agent has
// looked again.
func TestDrainDoesNotTakeAnOldReadyForItsOwn(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a", cmdtest.Asked(cmdtest.Jane, `{"drain":false}`), cmdtest.CordonedFor(nodes.Cordon{By: []string{cmdtest.Jane}}), cmdtest.Stood(cmdtest.Jane, nodes.Ready, "the node is its requestor's")))
	o.Told(map[string]func(){
		"Ready: the node is": func() { o.Become("a", cmdtest.Stood(cmdtest.Jane, nodes.Cordoning, "the node takes no new pods")) },
		"Cordoning": func() {
			o.Become("a", cmdtest.Stood(cmdtest.Jane, nodes.Ready, "the node is drained"), cmdtest.CordonedFor(nodes.Cordon{By: []string{cmdtest.Jane}, Drained: []nodes.Drained{{}}}))
		},
	})
	o.Maint("drain", "a", "--yes", "--wait").Is(t, cmdtest.Printed{Code: 0, Out: `2026-11-21T00:00:00Z node a: Ready: the node is its requestor's
2026-11-21T00:00:00Z node a: Cordoning: the node takes no new pods
2026-11-21T00:00:00Z node a: Ready: the node is drained
`, Err: "node/a requested for " + cmdtest.Jane + `, instead of {"drain":false}` + "\n"})
}

func TestDrainEndsWhereNothingWillCome(t *testing.T) {
	for _, c := range []struct {
		name string
		then []func(*corev1.Node)
		err  string
	}{
		{"a value that cannot be read", []func(*corev1.Node){cmdtest.Asked(cmdtest.Jane, "["), cmdtest.Stood(cmdtest.Jane, nodes.Invalid, "this is no JSON")}, "error: node a: the request of " + cmdtest.Jane + " cannot be read: this is no JSON: unexpected EOF\n"},
		{"a request that was taken back", []func(*corev1.Node){func(n *corev1.Node) { delete(n.Annotations, annotations.RequestPrefix+cmdtest.Jane) }}, "error: node a: somebody took the request of " + cmdtest.Jane + " back\n"},
		{"a requestor that failed", []func(*corev1.Node){cmdtest.Asked(cmdtest.Jane, `{"failed":true,"reason":"no disk"}`), cmdtest.Stood(cmdtest.Jane, nodes.RequestorFailed, "no disk")}, "error: node a: no disk\n"},
		{"another node of the name", []func(*corev1.Node){func(n *corev1.Node) { n.UID = "another" }}, "error: node a was deleted\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a"))
			o.Told(map[string]func(){"has not looked at it yet": func() { o.Become("a", c.then...) }})
			got := o.Maint("drain", "a", "--yes", "--wait")
			if want := "node/a requested for " + cmdtest.Jane + "\n" + c.err; got.Code != 1 || got.Err != want {
				t.Errorf("exit code %d, %s, want %s", got.Code, got.Err, want)
			}
		})
	}
}

func TestDrainStopsWaiting(t *testing.T) {
	const stays = "the request of " + cmdtest.Jane + " stays; 'kubectl maint release a b' takes it back\n"
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a"), cmdtest.Node("b"))
	got := o.Maint("drain", "a", "b", "--yes", "--wait", "--timeout", "300ms")
	if want := "error: --timeout passed: " + stays; got.Code != 124 || !strings.HasSuffix(got.Err, want) {
		t.Errorf("%+v", got)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	o.Ctx = ctx
	o.Become("a", cmdtest.CordonedFor(nodes.Cordon{By: []string{cmdtest.Jane}, Drained: []nodes.Drained{{}}}), cmdtest.Stood(cmdtest.Jane, nodes.Ready, "the node is its requestor's"))
	o.Told(map[string]func(){
		"node b: requested": func() {
			o.Become("b", cmdtest.Stood(cmdtest.Jane, nodes.Pending, "waits its turn (maxParallelOperations 1)"))
		},
		"node b: Pending: waits its": interrupt,
	})
	got = o.Maint("drain", "a", "b", "--yes", "--wait")
	if want := "a is ready and keeps its place until it is released; the others may wait for that: 'kubectl maint release a'\nerror: interrupted: " + stays; got.Code != 130 || !strings.HasSuffix(got.Err, want) {
		t.Errorf("%+v", got)
	}
}

func TestReleaseTakesTheRequestBack(t *testing.T) {
	o := cmdtest.NewCluster(
		t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a", cmdtest.Asked(cmdtest.Jane, "{}"), cmdtest.Stood(cmdtest.Jane, nodes.Ready, "")), cmdtest.Node("b", cmdtest.Asked(cmdtest.Jane, "{}"), cmdtest.Asked("gpu", "")), cmdtest.Node("c", cmdtest.Asked("gpu", "")),
		cmdtest.Node("d", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/roll"}})), cmdtest.Node("e", cmdtest.Asked(cmdtest.Jane, "{}"), cmdtest.CordonedFor(nodes.Cordon{By: []string{cmdtest.Jane}, Before: true})),
		cmdtest.Node("f", cmdtest.CordonedFor(nodes.Cordon{By: []string{nodes.PlanElsewhere("shop", "roll", "7b")}})),
		cmdtest.Node("g", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/gone"}})), cmdtest.Plan("roll", ""),
		cmdtest.Node("h", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/gone", "plan:shop/roll"}})),
		cmdtest.Node("i", cmdtest.CordonedFor(nodes.Cordon{By: []string{nodes.PlanElsewhere("shop", "roll", "7b"), "plan:shop/gone"}})),
	)
	o.Maint("release", "g").Is(t, cmdtest.Printed{Out: "node/g was not asked for by " + cmdtest.Jane + "\n", Err: "node/g stays cordoned for plan shop/gone, which does not exist any more: nobody else uncordons it; 'kubectl uncordon g' does\n"})
	o.Maint("release", "h", "i").Is(t, cmdtest.Printed{
		Out: "node/h was not asked for by " + cmdtest.Jane + "\nnode/i was not asked for by " + cmdtest.Jane + "\n",
		Err: "node/h stays cordoned for plan shop/roll: the next run goes on with it\n" +
			"node/h stays cordoned for plan shop/gone, which does not exist any more: nobody else uncordons it; see 'kubectl maint why node/h'\n" +
			"node/i stays cordoned for plan shop/roll of another cluster: the agent there uncordons it\n" +
			"node/i stays cordoned for plan shop/gone, which does not exist any more: nobody else uncordons it; 'kubectl uncordon i' does once it is given back by plan shop/roll of another cluster\n",
	})
	o.Maint("release").Is(t, cmdtest.Printed{Code: 2, Out: "", Err: "error: NODE is missing; or pick nodes with -l\n"})
	o.Maint("release", "a", "--all").Is(t, cmdtest.Printed{Code: 2, Out: "", Err: "error: --all excludes names and -l\n"})
	o.Maint("release", "f").Is(t, cmdtest.Printed{Code: 0, Out: "node/f was not asked for by " + cmdtest.Jane + "\n", Err: "node/f stays cordoned for plan shop/roll of another cluster: the agent there uncordons it\n"})
	o.Maint("release", "b", "c", "d", "e").Is(t, cmdtest.Printed{
		Code: 0, Out: "node/b released by " + cmdtest.Jane + "; still asked for by gpu\nnode/c was not asked for by " + cmdtest.Jane + "; it is by gpu\nnode/d was not asked for by " + cmdtest.Jane + "\nnode/e released by " + cmdtest.Jane + "\n",
		Err: "node/d stays cordoned for plan shop/roll: the next run goes on with it; see 'kubectl maint why node/d'\nnode/e stays cordoned: it was so before; 'kubectl uncordon e' opens it\n",
	})
	o.Has("b", map[string]string{annotations.RequestPrefix + "gpu": ""})
	o.Told(map[string]func(){"node a: being released": func() {
		o.Become("a", func(n *corev1.Node) { delete(n.Annotations, annotations.StatusRequestPrefix+cmdtest.Jane) })
	}})
	o.Maint("release", "--all", "--wait").Is(t, cmdtest.Printed{
		Code: 0, Out: "2026-11-21T00:00:00Z node a: being released, was Ready\n2026-11-21T00:00:00Z node a: not asked for\n", Err: "node/a released by " + cmdtest.Jane + "\n",
	})
	o.Maint("release", "--all").Is(t, cmdtest.Printed{Code: 0, Out: cmdtest.Jane + " asks for no node\n", Err: ""})
	o.Maint("release", "--all", "--requestor", "gpu", "--dry-run").Is(t, cmdtest.Printed{Code: 0, Out: "node/b released by gpu (dry run)\nnode/c released by gpu (dry run)\n", Err: ""})
}

func TestReleaseNamesTheClusterInWhatUncordons(t *testing.T) {
	prod := func(ctx context.Context, c *factory.Factory, args []string) int {
		c.ClusterFlags = "--context prod"
		return cmd.Run(ctx, c, args)
	}
	o := cmdtest.NewCluster(t, prod, cmdtest.Agent(), cmdtest.Node("a", cmdtest.Asked(cmdtest.Jane, "{}"), cmdtest.CordonedFor(nodes.Cordon{By: []string{cmdtest.Jane}, Before: true})))
	o.Maint("release", "a").Is(t, cmdtest.Printed{Out: "node/a released by " + cmdtest.Jane + "\n", Err: "node/a stays cordoned: it was so before; 'kubectl --context prod uncordon a' opens it\n"})
}

func TestReleaseWithoutAnAgent(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Node("a", cmdtest.Asked(cmdtest.Jane, "{}")))
	o.Maint("release", "a", "--wait").Is(t, cmdtest.Printed{Code: 5, Out: "", Err: "error: no agent runs in namespace maint-system: install it with 'kubectl maint install --apply'\n"})
	o.Has("a", map[string]string{annotations.RequestPrefix + cmdtest.Jane: "{}"})
	o.Maint("release", "a").Is(t, cmdtest.Printed{Code: 0, Out: "node/a released by " + cmdtest.Jane + "\n", Err: "warning: no agent runs in namespace maint-system: install it with 'kubectl maint install --apply'; until it runs, nothing is uncordoned\n"})
	o.Has("a", map[string]string{})
}

func TestDrainPlanForeseesAndWritesNothing(t *testing.T) {
	proxy := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "proxy"}}
	o := cmdtest.NewCluster(
		t, cmd.Run, cmdtest.Node("a"), cmdtest.Node("b"), cmdtest.Node("c"), proxy,
		cmdtest.Pod("web-1", "a"), cmdtest.Pod("cache-1", "a", cmdtest.PodNoted(annotations.DrainOrder, "10")), cmdtest.Pod("batch-1", "a", cmdtest.PodNoted(annotations.DrainHow, "wait-completed")),
		cmdtest.OfDaemonSet(cmdtest.Pod("proxy-a", "a")), cmdtest.Pod("keep-1", "a", cmdtest.PodNoted(annotations.DrainHow, "skip")),
		cmdtest.Pod("db-1", "b"), cmdtest.BudgetOf("db", 2, 2, 2, 2), cmdtest.Pod("bare-1", "b", cmdtest.WithoutOwner), cmdtest.Pod("api-1", "b"), cmdtest.BudgetOf("api", 2, 2, 2, 3),
		cmdtest.Pod("slow-1", "c"), cmdtest.BudgetOf("slow", 2, 2, 2, 3),
	)
	o.Maint("drain", "a", "--plan").Is(t, cmdtest.Printed{Code: 0, Out: `node/a  possible: 3 pods would leave, 2 would stay
  order 0, would be evicted: shop/web-1
  order 0, would be left to finish: shop/batch-1
  order 10, would be evicted: shop/cache-1
  stays: shop/keep-1 (maint.dev/drain: skip)
  stays: shop/proxy-a (ignoring DaemonSet-managed Pods)
`, Err: ""})
	o.Maint("drain", "b", "--plan").Is(t, cmdtest.Printed{Code: 3, Out: `node/b  blocked until somebody changes something: 3 pods would leave, 0 would stay
  would be evicted: shop/api-1
  would be evicted: shop/db-1
  refused: shop/bare-1 (Pods that declare no controller (use --force to override))
    nothing would bring it back: delete it, drain it with --force, or annotate it with maint.dev/drain=skip if it may stay
  blocked for good: shop/db-1 by budget shop/db: minAvailable is 2, and there are 2 pods
    lower it, write maxUnavailable: 1 instead, or run one more replica
  blocked for now: shop/api-1 by budget shop/api: 2 of 3 pods are healthy, and 2 must be: a rollout is in progress, or a replica is not Ready
    wait; if it lasts, look why pods are not Ready
`, Err: ""})
	o.Maint("drain", "c", "--plan").Is(t, cmdtest.Printed{Code: 0, Out: `node/c  possible, after some waiting: 1 pod would leave, 0 would stay
  would be evicted: shop/slow-1
  blocked for now: shop/slow-1 by budget shop/slow: 2 of 3 pods are healthy, and 2 must be: a rollout is in progress, or a replica is not Ready
    wait; if it lasts, look why pods are not Ready
`, Err: ""})
	o.Maint("drain", "c", "--plan", "--no-drain").Is(t, cmdtest.Printed{Code: 0, Out: "node/c  possible: 0 pods would leave, 0 would stay\n", Err: ""})
	o.Maint("drain", "a", "b", "--plan", "-o", "wide").Is(t, cmdtest.Printed{Code: 3, Out: `NODE   POSSIBLE   LEAVE   STAY   REFUSED   BLOCKED
a      yes        3       2      0         0 for good, 0 for now
b      no         2       0      1         2 for good, 1 for now
`, Err: ""})
	o.Maint("drain", "b", "a", "--plan", "-o", "name").Is(t, cmdtest.Printed{Code: 3, Out: "node/a\nnode/b\n", Err: ""})
	got := o.Maint("drain", "c", "--plan", "-o", "json")
	var list bytes.Buffer
	if err := json.Compact(&list, []byte(got.Out)); err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"maint.dev/v1alpha1","items":[{"apiVersion":"maint.dev/v1alpha1","blocks":[{"budgets":["shop/slow"],"count":1,"permanent":false,"pods":["shop/slow-1"],"remedy":"wait; if it lasts, look why pods are not Ready",` +
		`"why":"2 of 3 pods are healthy, and 2 must be: a rollout is in progress, or a replica is not Ready"}],"groups":[{"evict":["shop/slow-1"],"order":0}],` +
		`"kind":"Forecast","node":"c","possible":true,"refused":[],"skipped":[],"total":1}],"kind":"ForecastList"}`
	if list.String() != want || got.Code != 0 || got.Err != "" {
		t.Errorf("%d %s\n%s, want\n%s", got.Code, got.Err, list.String(), want)
	}
	for _, action := range o.Kube.Actions() {
		if verb := action.GetVerb(); verb != "get" && verb != "list" {
			t.Errorf("it did %s %s", verb, action.GetResource().Resource)
		}
	}
}

func TestDrainPlanSaysWhatItMayNotRead(t *testing.T) {
	for _, resource := range []string{"pods", "poddisruptionbudgets"} {
		o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Node("a"), cmdtest.Pod("web-1", "a"))
		o.Kube.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("not for you"))
		})
		if got := o.Maint("drain", "a", "--plan"); got.Code != 1 || got.Out != "" || !strings.HasPrefix(got.Err, "Error from server (Forbidden): list the ") {
			t.Errorf("%s: %+v", resource, got)
		}
	}
}

func TestReleaseCompletesTheNodesOfItsRequestor(t *testing.T) {
	world := []runtime.Object{cmdtest.Node("free"), cmdtest.Node("mine", cmdtest.Asked(cmdtest.Jane, "")), cmdtest.Node("theirs", cmdtest.Asked("gpu", "")), cmdtest.Node("joes", cmdtest.Asked("cli.joe", ""))}
	for flags, want := range map[string]string{"": "joes\nmine\n", "--requestor gpu": "theirs\n", "--requestor cli.joe": "joes\n", "--requestor os": ""} {
		got := cmdtest.NewCluster(t, cmd.Run, world...).Maint(append(append([]string{"__complete", "release"}, strings.Fields(flags)...), "")...)
		if got.Code != 0 || got.Out != want+":4\n" {
			t.Errorf("%q: %+v, want %q", flags, got, want)
		}
	}
}
