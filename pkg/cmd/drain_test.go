package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

const jane = "cli.jane-example.com"

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
		{"volumes", "--wait-for-volumes", `{"drain":{"waitForVolumes":true}}`},
		{"a cordon alone", "--no-drain", `{"drain":false}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOnline(t, Run, anAgent(), worker("a"))
			o.maint(append([]string{"drain", "a", "--yes"}, strings.Fields(c.flags)...)...).is(t, printed{code: 0, out: "node/a requested for " + jane + "\n", err: ""})
			o.has("a", map[string]string{annotations.RequestPrefix + jane: c.want})
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
		{"a format for nothing", "a -o json", "error: -o is for --plan\n"},
		{
			"what the request refuses, by the flags' names", "a --on-timeout never --pod-selector =x --priority 5000 --drain-timeout soon",
			"error: --drain-timeout: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\nerror: --priority: must be from -1000 to 1000, is 5000\n" +
				"error: --pod-selector: \"=x\" is no label selector: found '=', expected: !, identifier, or 'end of string'; write app=web, tier in (a,b), !canary or cores>4\nerror: --on-timeout: must be retry, skip, force or abort, is \"never\"\n",
		},
		{"a drain that is none", "a --no-drain --force", "error: --no-drain and what says how to drain exclude each other\n"},
		{"a requestor that is none", "a --requestor X", "error: --requestor: \"X\" is no name of a requestor: 2 to 63 lower-case letters, digits, - and ., a letter or digit first and last\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			offline(t, Run, "", append([]string{"drain"}, strings.Fields(c.flags)...)...).is(t, printed{code: 2, out: "", err: c.err})
		})
	}
}

func TestDrainAsks(t *testing.T) {
	same := asked(jane, ` {"drain": {"force": true, "timeout": "5m"}} `)
	o := newOnline(t, Run, anAgent(), worker("a"), worker("b", same), worker("c", asked(jane, `{"reason":"old"}`)), worker("d", asked("gpu", "")))
	o.maint("drain", "a", "b").is(t, printed{code: 2, out: "", err: "error: drain 2 nodes (a, b) for " + jane + ": give --yes, since nobody can be asked here\n"})
	o.maint("drain", "x", "a", "node/y", "--yes").is(t, printed{code: 1, out: "", err: "error: there are no nodes x, y; nothing was done\n"})
	o.has("a", map[string]string{})
	o.terminal, o.stdin = true, "no\n"
	o.maint("drain", "a", "--force").is(t, printed{code: 1, out: "", err: "drain node a for " + jane + "? [y/N] error: nothing was done\n"})
	o.stdin = "y\n"
	o.maint("drain", "a", "b", "c", "a", "--force").is(t, printed{
		code: 0, out: "node/a requested for " + jane + "\nnode/b unchanged: " + jane + " asks for it already\nnode/c requested for " + jane + `, instead of {"reason":"old"}` + "\n",
		err: "drain 2 nodes (a, c) for " + jane + "? [y/N] ",
	})
	want := `{"drain":{"force":true}}`
	o.has("a", map[string]string{annotations.RequestPrefix + jane: want})
	o.has("c", map[string]string{annotations.RequestPrefix + jane: want})
	o.maint("drain", "a", "b", "--force").is(t, printed{code: 0, out: "node/a unchanged: " + jane + " asks for it already\nnode/b unchanged: " + jane + " asks for it already\n", err: ""})
	o.maint("drain", "d", "--requestor", "disk-swap", "--dry-run").is(t, printed{code: 0, out: "node/d requested for disk-swap (dry run)\n", err: ""})
	o.has("d", map[string]string{annotations.RequestPrefix + "gpu": ""})
	o.maint("drain", "-l", "pool=none", "--yes").is(t, printed{code: 1, out: "", err: "error: -l pool=none picks no node\n"})
	o.user = ""
	o.maint("drain", "d", "--yes").is(t, printed{code: 1, out: "", err: "error: the API server does not say who you are: name the requestor with --requestor\n"})
}

// What was given up is not tried again as it stands; who asks for the same must
// hear that nothing will come of it.
func TestDrainSaysThatTheSameWasGivenUp(t *testing.T) {
	request, err := nodes.Parse(jane, "{}")
	if err != nil {
		t.Fatal(err)
	}
	end := func(s *nodes.Status) { s.Ended = &nodes.End{Why: nodes.EndAborted, Value: request.Identity} }
	o := newOnline(t, Run, anAgent(), worker("a", asked(jane, "{}"), stood(jane, nodes.Pending, "the drain was aborted after 5m0s", end)))
	o.maint("drain", "a").is(t, printed{code: 0, out: "node/a unchanged: " + jane + " asks for it already, and it was given up: the drain was aborted after 5m0s ('kubectl maint release a', then ask again)\n", err: ""})
	o.maint("drain", "a", "--wait").is(t, printed{
		code: 1, out: "2026-11-21T00:00:00Z node a: Pending: the drain was aborted after 5m0s\n",
		err: "node/a unchanged: " + jane + " asks for it already, and it was given up: the drain was aborted after 5m0s ('kubectl maint release a', then ask again)\nerror: node a: the drain was aborted after 5m0s\n",
	})
}

func TestDrainNeedsAnAgent(t *testing.T) {
	o := newOnline(t, Run, worker("a"))
	o.maint("drain", "a", "--yes").is(t, printed{code: 5, out: "", err: "error: no agent runs in namespace maint-system: install it with 'kubectl maint install --apply'\n"})
	o.has("a", map[string]string{})
}

// Somebody else writes to the node between our look and our write.
func TestDrainWritesToTheNodeItLookedAt(t *testing.T) {
	o := newOnline(t, Run, anAgent(), worker("a"))
	conflicts := 0
	o.kube.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts++; conflicts > 1 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "a", errors.New("changed"))
	})
	o.maint("drain", "a", "--yes").is(t, printed{code: 0, out: "node/a requested for " + jane + "\n", err: ""})
	o.has("a", map[string]string{annotations.RequestPrefix + jane: "{}"})

	again := newOnline(t, Run, anAgent(), worker("a"))
	again.kube.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		another := worker("a", func(n *corev1.Node) { n.UID = "another" })
		if err := again.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), another, ""); err != nil { // the client would wait for us
			t.Error(err)
		}
		return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, "a", nil)
	})
	again.maint("drain", "a", "--yes").is(t, printed{code: 1, out: "", err: "error: node a was deleted, or created again, meanwhile: look at it and ask again\n"})
}

// told has the agent go on when a line was heard: step by step, without a clock.
func (o *online) told(steps map[string]func()) {
	done := map[string]bool{}
	o.heard = func(text string) {
		for line, step := range steps {
			if strings.Contains(text, line) && !done[line] {
				done[line] = true
				go step()
			}
		}
	}
}

func progress(left, total int) func(*nodes.Status) {
	return func(s *nodes.Status) { s.Progress = &nodes.Progress{Left: left, Total: total, At: saturday()} }
}

func TestDrainWaitsUntilTheNodeIsReady(t *testing.T) {
	o := newOnline(t, Run, anAgent(), worker("a"), pod("web-1", "a"), pod("web-2", "a"), pod("web-3", "b"), ofDaemonSet(pod("proxy", "a")))
	o.told(map[string]func(){
		"has not looked at it yet": func() { o.become("a", stood(jane, nodes.Scheduled, "is next to have the node")) },
		"is next to have": func() {
			o.become("a", cordonedFor(nodes.Cordon{By: []string{jane}}), stood(jane, nodes.Draining, "2 of 2 pods are left", progress(2, 2)))
		},
		"pod shop/web-2 on a: is still there": func() {
			if err := o.kube.CoreV1().Pods("shop").Delete(context.Background(), "web-1", metav1.DeleteOptions{}); err != nil {
				o.Error(err)
			}
		},
		"pod shop/web-1 on a: has left": func() {
			o.become("a", stood(jane, nodes.Draining, "1 of 2 pods are left; Blocked for good: shop/web-2 cannot leave", progress(1, 2), forGood("shop/web-2 cannot leave")))
		},
		"is blocked until somebody changes something": func() {
			if err := o.kube.CoreV1().Pods("shop").Delete(context.Background(), "web-2", metav1.DeleteOptions{}); err != nil {
				o.Error(err)
			}
			o.become("a", stood(jane, nodes.Ready, "the node is its requestor's"),
				cordonedFor(nodes.Cordon{By: []string{jane}, Drained: []nodes.Drained{{}}}))
		},
	})
	o.maint("drain", "a", "--yes", "--wait").is(t, printed{code: 0, out: `2026-11-21T00:00:00Z node a: requested; the agent has not looked at it yet
2026-11-21T00:00:00Z node a: Scheduled: is next to have the node
2026-11-21T00:00:00Z node a: Draining: 2 of 2 pods are left
2026-11-21T00:00:00Z pod shop/web-1 on a: is still there
2026-11-21T00:00:00Z pod shop/web-2 on a: is still there
2026-11-21T00:00:00Z pod shop/web-1 on a: has left
2026-11-21T00:00:00Z node a: Draining: 1 of 2 pods are left; Blocked for good: shop/web-2 cannot leave
2026-11-21T00:00:00Z pod shop/web-2 on a: has left
2026-11-21T00:00:00Z node a: Ready: the node is its requestor's
`, err: "node/a requested for " + jane + "\nnode/a is blocked until somebody changes something: shop/web-2 cannot leave\n"})
}

// A pod that a drain leaves is not said to have left, nor one that is skipped while
// the drain goes on.
func TestDrainSaysWhichPodsStay(t *testing.T) {
	o := newOnline(t, Run, anAgent(), worker("a"), pod("web-1", "a"), pod("web-2", "a"), pod("web-3", "a"))
	o.told(map[string]func(){
		"has not looked at it yet": func() {
			o.become("a", cordonedFor(nodes.Cordon{By: []string{jane}}), stood(jane, nodes.Draining, "3 of 3 pods are left", progress(3, 3)))
		},
		"pod shop/web-3 on a: is still there": func() {
			p, err := o.kube.CoreV1().Pods("shop").Get(context.Background(), "web-1", metav1.GetOptions{})
			if err == nil {
				p.Annotations = map[string]string{annotations.DrainHow: "skip"}
				_, err = o.kube.CoreV1().Pods("shop").Update(context.Background(), p, metav1.UpdateOptions{})
			}
			if err != nil {
				o.Error(err)
			}
		},
		"pod shop/web-1 on a: stays on the node": func() {
			if err := o.kube.CoreV1().Pods("shop").Delete(context.Background(), "web-2", metav1.DeleteOptions{}); err != nil {
				o.Error(err)
			}
		},
		"pod shop/web-2 on a: has left": func() {
			o.become("a", stood(jane, nodes.Ready, "the node is its requestor's; left: shop/web-3 (its budget)"), cordonedFor(nodes.Cordon{By: []string{jane}, Drained: []nodes.Drained{{Left: true}}}))
		},
	})
	o.maint("drain", "a", "--on-timeout", "skip", "--yes", "--wait").is(t, printed{code: 0, out: `2026-11-21T00:00:00Z node a: requested; the agent has not looked at it yet
2026-11-21T00:00:00Z node a: Draining: 3 of 3 pods are left
2026-11-21T00:00:00Z pod shop/web-1 on a: is still there
2026-11-21T00:00:00Z pod shop/web-2 on a: is still there
2026-11-21T00:00:00Z pod shop/web-3 on a: is still there
2026-11-21T00:00:00Z pod shop/web-1 on a: stays on the node
2026-11-21T00:00:00Z pod shop/web-2 on a: has left
2026-11-21T00:00:00Z pod shop/web-3 on a: stays on the node
2026-11-21T00:00:00Z node a: Ready: the node is its requestor's; left: shop/web-3 (its budget)
`, err: "node/a requested for " + jane + "\n"})
}

// On a terminal the picture is drawn again in place, a warning above it.
func TestDrainOnATerminal(t *testing.T) {
	node := worker("a", asked(jane, "{}"), stood(jane, nodes.Draining, "12 of 12 pods are left; Blocked for good: its budget", progress(12, 12), forGood("its budget")))
	objects := []runtime.Object{node}
	for i := range 12 {
		objects = append(objects, pod(fmt.Sprintf("web-%02d", i), "a"))
	}
	var out, errOut bytes.Buffer
	c := newCLI(Env{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}, Name: "kubectl maint", Now: saturday, Zone: "UTC", OutTerminal: true, Width: 60})
	w := newNodeWait(c, &cluster{kube: fake.NewClientset(objects...)}, jane, []*corev1.Node{node})
	w.settled, w.expected = w.drained, "{}"
	var err error
	if w.nodes, err = w.k.watchNodes(t.Context(), w.bell, "a"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if over, err := w.look(t.Context()); over || err != nil {
			t.Fatal(over, err)
		}
	}
	picture := "a  Draining for 10m0s: 12 of 12 pods are left; Blocked for …\x1b[0m\n"
	for i := range 10 {
		picture += fmt.Sprintf("  shop/web-%02d  is still there\n", i)
	}
	picture += "  and 2 more\n"
	printed{code: 0, out: out.String(), err: errOut.String()}.is(t, printed{code: 0, out: picture + picture + "\x1b[12A\x1b[J" + picture, err: "node/a is blocked until somebody changes something: its budget\n"})
}

// Who may not see pods is told so once, and sees what the agent counts.
func TestDrainWaitsWithoutRightsToPods(t *testing.T) {
	o := newOnline(t, Run, anAgent(), worker("a", asked(jane, "{}"), stood(jane, nodes.Draining, "2 of 2 pods are left", progress(2, 2))))
	o.kube.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("not for you"))
	})
	ready := cordonedFor(nodes.Cordon{By: []string{jane}, Drained: []nodes.Drained{{}}})
	o.told(map[string]func(){
		"2 of 2": func() { o.become("a", stood(jane, nodes.Draining, "1 of 2 pods are left", progress(1, 2))) },
		"1 of 2": func() { o.become("a", stood(jane, nodes.Ready, ""), ready) },
	})
	o.maint("drain", "a", "--wait").is(t, printed{code: 0, out: `2026-11-21T00:00:00Z node a: Draining: 2 of 2 pods are left
2026-11-21T00:00:00Z node a: Draining: 1 of 2 pods are left
2026-11-21T00:00:00Z node a: Ready
`, err: "node/a unchanged: " + jane + " asks for it already\nwarning: watch the pods of node a: you may not: pods is forbidden: not for you; only their number is shown\n"})
}

// An agent that is too old for nodes has a heartbeat like any other, and says
// nothing of them.
func TestDrainDoesNotWaitForAnAgentThatIsTooOld(t *testing.T) {
	node := worker("a", asked(jane, "{}"))
	var out, errOut bytes.Buffer
	c := newCLI(Env{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}, Name: "kubectl maint", Now: saturday, Zone: "UTC"})
	w := newNodeWait(c, &cluster{kube: fake.NewClientset(node)}, jane, []*corev1.Node{node})
	w.settled, w.expected, w.left, w.patience = w.drained, "{}", "the request stays", time.Millisecond
	err := w.run(t.Context())
	if want := "the agent says nothing of node a: it is too old for that, or watches one namespace alone; the request stays"; codeOf(err) != CodeNoAgent || errText(err) != want {
		t.Errorf("%d, %v", codeOf(err), err)
	}
}

// A phase that stands there is that of what was asked before, until the agent has
// looked again.
func TestDrainDoesNotTakeAnOldReadyForItsOwn(t *testing.T) {
	o := newOnline(t, Run, anAgent(), worker("a", asked(jane, `{"drain":false}`), cordonedFor(nodes.Cordon{By: []string{jane}}), stood(jane, nodes.Ready, "the node is its requestor's")))
	o.told(map[string]func(){
		"Ready: the node is": func() { o.become("a", stood(jane, nodes.Cordoning, "the node takes no new pods")) },
		"Cordoning": func() {
			o.become("a", stood(jane, nodes.Ready, "the node is drained"), cordonedFor(nodes.Cordon{By: []string{jane}, Drained: []nodes.Drained{{}}}))
		},
	})
	o.maint("drain", "a", "--yes", "--wait").is(t, printed{code: 0, out: `2026-11-21T00:00:00Z node a: Ready: the node is its requestor's
2026-11-21T00:00:00Z node a: Cordoning: the node takes no new pods
2026-11-21T00:00:00Z node a: Ready: the node is drained
`, err: "node/a requested for " + jane + `, instead of {"drain":false}` + "\n"})
}

func TestDrainEndsWhereNothingWillCome(t *testing.T) {
	for _, c := range []struct {
		name string
		then []func(*corev1.Node)
		err  string
	}{
		{"a value that cannot be read", []func(*corev1.Node){asked(jane, "["), stood(jane, nodes.Invalid, "this is no JSON")}, "error: node a: the request of " + jane + " cannot be read: this is no JSON: unexpected EOF\n"},
		{"a request that was taken back", []func(*corev1.Node){func(n *corev1.Node) { delete(n.Annotations, annotations.RequestPrefix+jane) }}, "error: node a: somebody took the request of " + jane + " back\n"},
		{"a requestor that failed", []func(*corev1.Node){asked(jane, `{"failed":true,"reason":"no disk"}`), stood(jane, nodes.RequestorFailed, "no disk")}, "error: node a: no disk\n"},
		{"another node of the name", []func(*corev1.Node){func(n *corev1.Node) { n.UID = "another" }}, "error: node a was deleted\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOnline(t, Run, anAgent(), worker("a"))
			o.told(map[string]func(){"has not looked at it yet": func() { o.become("a", c.then...) }})
			got := o.maint("drain", "a", "--yes", "--wait")
			if want := "node/a requested for " + jane + "\n" + c.err; got.code != 1 || got.err != want {
				t.Errorf("exit code %d, %s, want %s", got.code, got.err, want)
			}
		})
	}
}

func TestDrainStopsWaiting(t *testing.T) {
	const stays = "the request of " + jane + " stays; 'kubectl maint release a b' takes it back\n"
	o := newOnline(t, Run, anAgent(), worker("a"), worker("b"))
	got := o.maint("drain", "a", "b", "--yes", "--wait", "--timeout", "300ms")
	if want := "error: --timeout passed: " + stays; got.code != 124 || !strings.HasSuffix(got.err, want) {
		t.Errorf("%+v", got)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	o.ctx = ctx
	o.become("a", cordonedFor(nodes.Cordon{By: []string{jane}, Drained: []nodes.Drained{{}}}), stood(jane, nodes.Ready, "the node is its requestor's"))
	o.told(map[string]func(){
		"node b: requested":          func() { o.become("b", stood(jane, nodes.Pending, "waits its turn (maxParallelOperations 1)")) },
		"node b: Pending: waits its": interrupt,
	})
	got = o.maint("drain", "a", "b", "--yes", "--wait")
	if want := "a is ready and keeps its place until it is released; the others may wait for that: 'kubectl maint release a'\nerror: interrupted: " + stays; got.code != 130 || !strings.HasSuffix(got.err, want) {
		t.Errorf("%+v", got)
	}
}

func TestReleaseTakesTheRequestBack(t *testing.T) {
	o := newOnline(
		t, Run, anAgent(), worker("a", asked(jane, "{}"), stood(jane, nodes.Ready, "")), worker("b", asked(jane, "{}"), asked("gpu", "")), worker("c", asked("gpu", "")),
		worker("d", cordonedFor(nodes.Cordon{By: []string{"plan:shop/roll"}})), worker("e", asked(jane, "{}"), cordonedFor(nodes.Cordon{By: []string{jane}, Before: true})),
	)
	o.maint("release").is(t, printed{code: 2, out: "", err: "error: NODE is missing; or pick nodes with -l\n"})
	o.maint("release", "a", "--all").is(t, printed{code: 2, out: "", err: "error: --all excludes names and -l\n"})
	o.maint("release", "b", "c", "d", "e").is(t, printed{
		code: 0, out: "node/b released by " + jane + "; still asked for by gpu\nnode/c was not asked for by " + jane + "; it is by gpu\nnode/d was not asked for by " + jane + "\nnode/e released by " + jane + "\n",
		err: "node/d stays cordoned for plan shop/roll: the next run goes on with it, or 'kubectl uncordon d'\nnode/e stays cordoned: it was so before; 'kubectl uncordon e' opens it\n",
	})
	o.has("b", map[string]string{annotations.RequestPrefix + "gpu": ""})
	o.told(map[string]func(){"node a: being released": func() {
		o.become("a", func(n *corev1.Node) { delete(n.Annotations, annotations.StatusRequestPrefix+jane) })
	}})
	o.maint("release", "--all", "--wait").is(t, printed{
		code: 0, out: "2026-11-21T00:00:00Z node a: being released, was Ready\n2026-11-21T00:00:00Z node a: not asked for\n", err: "node/a released by " + jane + "\n",
	})
	o.maint("release", "--all").is(t, printed{code: 0, out: jane + " asks for no node\n", err: ""})
	o.maint("release", "--all", "--requestor", "gpu", "--dry-run").is(t, printed{code: 0, out: "node/b released by gpu (dry run)\nnode/c released by gpu (dry run)\n", err: ""})
}

func TestReleaseWithoutAnAgent(t *testing.T) {
	o := newOnline(t, Run, worker("a", asked(jane, "{}")))
	o.maint("release", "a", "--wait").is(t, printed{code: 5, out: "", err: "error: no agent runs in namespace maint-system: install it with 'kubectl maint install --apply'\n"})
	o.has("a", map[string]string{annotations.RequestPrefix + jane: "{}"})
	o.maint("release", "a").is(t, printed{code: 0, out: "node/a released by " + jane + "\n", err: "warning: no agent runs in namespace maint-system: install it with 'kubectl maint install --apply'; until it runs, nothing is uncordoned\n"})
	o.has("a", map[string]string{})
}

// pod is one of a ReplicaSet's, on a node.
func pod(name, node string, edits ...func(*corev1.Pod)) *corev1.Pod {
	controller := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: "uid-pod", Labels: map[string]string{"app": strings.Split(name, "-")[0]}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "rs", Controller: &controller}},
		},
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func ofDaemonSet(p *corev1.Pod) *corev1.Pod {
	p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name = "DaemonSet", "proxy"
	return p
}

func naked(p *corev1.Pod) { p.OwnerReferences = nil }

func podNoted(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

// budgetOf is a budget over app, as its controller left it.
func budgetOf(app string, minAvailable, healthy, desired, expected int32) *policyv1.PodDisruptionBudget {
	most := intstr.FromInt32(minAvailable)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &most, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status:     policyv1.PodDisruptionBudgetStatus{CurrentHealthy: healthy, DesiredHealthy: desired, ExpectedPods: expected, DisruptionsAllowed: max(healthy-desired, 0)},
	}
}

func TestDrainPlanForeseesAndWritesNothing(t *testing.T) {
	proxy := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "proxy"}}
	o := newOnline(
		t, Run, worker("a"), worker("b"), worker("c"), proxy,
		pod("web-1", "a"), pod("cache-1", "a", podNoted(annotations.DrainOrder, "10")), pod("batch-1", "a", podNoted(annotations.DrainHow, "wait-completed")),
		ofDaemonSet(pod("proxy-a", "a")), pod("keep-1", "a", podNoted(annotations.DrainHow, "skip")),
		pod("db-1", "b"), budgetOf("db", 2, 2, 2, 2), pod("bare-1", "b", naked), pod("api-1", "b"), budgetOf("api", 2, 2, 2, 3),
		pod("slow-1", "c"), budgetOf("slow", 2, 2, 2, 3),
	)
	o.maint("drain", "a", "--plan").is(t, printed{code: 0, out: `node/a  possible: 3 pods would leave, 2 would stay
  order 0, evicted: shop/web-1
  order 0, left to finish: shop/batch-1
  order 10, evicted: shop/cache-1
  stays: shop/keep-1 (maint.dev/drain: skip)
  stays: shop/proxy-a (ignoring DaemonSet-managed Pods)
`, err: ""})
	o.maint("drain", "b", "--plan").is(t, printed{code: 3, out: `node/b  blocked until somebody changes something: 3 pods would leave, 0 would stay
  evicted: shop/api-1
  evicted: shop/db-1
  refused: shop/bare-1 (Pods that declare no controller (use --force to override))
    nothing would bring it back: delete it, set force, or annotate it with maint.dev/drain=skip if it may stay
  blocked for good: shop/db-1 by budget shop/db: minAvailable is 2, and there are 2 pods
    lower it, write maxUnavailable: 1 instead, or run one more replica
  blocked for now: shop/api-1 by budget shop/api: 2 of 3 pods are healthy, and 2 must be: a rollout is in progress, or a replica is not Ready
    wait; if it lasts, look why pods are not Ready
`, err: ""})
	o.maint("drain", "c", "--plan").is(t, printed{code: 0, out: `node/c  possible, after some waiting: 1 pod would leave, 0 would stay
  evicted: shop/slow-1
  blocked for now: shop/slow-1 by budget shop/slow: 2 of 3 pods are healthy, and 2 must be: a rollout is in progress, or a replica is not Ready
    wait; if it lasts, look why pods are not Ready
`, err: ""})
	o.maint("drain", "c", "--plan", "--no-drain").is(t, printed{code: 0, out: "node/c  possible: 0 pods would leave, 0 would stay\n", err: ""})
	o.maint("drain", "a", "b", "--plan", "-o", "wide").is(t, printed{code: 3, out: `NODE   POSSIBLE   LEAVE   STAY   REFUSED   BLOCKED
a      yes        3       2      0         0 for good, 0 for now
b      no         2       0      1         2 for good, 1 for now
`, err: ""})
	o.maint("drain", "b", "a", "--plan", "-o", "name").is(t, printed{code: 3, out: "node/a\nnode/b\n", err: ""})
	got := o.maint("drain", "c", "--plan", "-o", "json")
	var list bytes.Buffer
	if err := json.Compact(&list, []byte(got.out)); err != nil {
		t.Fatal(err)
	}
	want := `{"items":[{"blocks":[{"budgets":["shop/slow"],"count":1,"permanent":false,"pods":["shop/slow-1"],"remedy":"wait; if it lasts, look why pods are not Ready",` +
		`"why":"2 of 3 pods are healthy, and 2 must be: a rollout is in progress, or a replica is not Ready"}],"groups":[{"evict":["shop/slow-1"],"order":0}],` +
		`"node":"c","possible":true,"refused":[],"skipped":[],"total":1}],"kind":"ForecastList"}`
	if list.String() != want || got.code != 0 || got.err != "" {
		t.Errorf("%d %s\n%s, want\n%s", got.code, got.err, list.String(), want)
	}
	for _, action := range o.kube.Actions() {
		if verb := action.GetVerb(); verb != "get" && verb != "list" {
			t.Errorf("it did %s %s", verb, action.GetResource().Resource)
		}
	}
}

func TestDrainPlanSaysWhatItMayNotRead(t *testing.T) {
	for _, resource := range []string{"pods", "poddisruptionbudgets"} {
		o := newOnline(t, Run, worker("a"), pod("web-1", "a"))
		o.kube.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("not for you"))
		})
		if got := o.maint("drain", "a", "--plan"); got.code != 1 || got.out != "" || !strings.Contains(got.err, "you may not") {
			t.Errorf("%s: %+v", resource, got)
		}
	}
}
