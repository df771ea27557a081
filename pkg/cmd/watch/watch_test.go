package watch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/terminal"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestWaitingFlags(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
		fault string
	}{
		{"none", nil, ""},
		{"to wait for ever", []string{"--wait"}, ""},
		{"to wait for a while", []string{"--wait", "--timeout", "5s"}, ""},
		{"a timeout that nothing waits for", []string{"--timeout", "5s"}, "--timeout is for --wait"},
		{"a timeout below nothing", []string{"--wait", "--timeout=-5s"}, "--timeout must not be negative"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w Waiting
			cmd := &cobra.Command{}
			w.AddFlags(cmd, "the run until it ends")
			if err := cmd.ParseFlags(c.flags); err != nil {
				t.Fatal(err)
			}
			var faults exit.Faults
			if w.Check(&faults); strings.Join(faults, "; ") != c.fault {
				t.Errorf("%v", faults)
			}
		})
	}
}

func TestWhyAWaitEndedEarly(t *testing.T) {
	late, over := WithTimeout(t.Context(), time.Nanosecond)
	defer over(new(error))
	<-late.Done()
	interrupted, stop := WithTimeout(t.Context(), 0)
	stop(new(error))
	for _, c := range []struct {
		ctx  context.Context
		code int
		text string
	}{{late, 124, "--timeout passed: run x goes on without you"}, {interrupted, 130, "interrupted: run x goes on without you"}} {
		if err := NotFollowed(c.ctx, "x", context.Canceled); exit.CodeOf(err) != c.code || cmdtest.ErrText(err) != c.text {
			t.Errorf("%d, %v", exit.CodeOf(err), err)
		}
	}
	if err := NotFollowed(t.Context(), "x", exit.Errorf(1, "forbidden")); cmdtest.ErrText(err) != "forbidden" {
		t.Error(err)
	}
}

// What a timeout cut off has its exit code; what ended by itself before has its own.
func TestTheExitCodeOfWhatATimeoutCutsOff(t *testing.T) {
	for name, c := range map[string]struct {
		limit time.Duration
		err   error
		code  int
		text  string
	}{
		"a request":         {time.Nanosecond, errors.New("read plan orders: context deadline exceeded"), 124, "--timeout passed: read plan orders: context deadline exceeded"},
		"what has its code": {time.Nanosecond, exit.Errorf(3, "paused"), 3, "paused"},
		"nothing":           {time.Nanosecond, nil, 0, ""},
		"in time":           {time.Hour, errors.New("no such plan"), 2, "no such plan"}, // RunE gives it one
		"without a limit":   {0, errors.New("no such plan"), 2, "no such plan"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, done := WithTimeout(t.Context(), c.limit)
			if c.limit == time.Nanosecond {
				<-ctx.Done()
			}
			err := c.err
			if done(&err); exit.CodeOf(err) != c.code || cmdtest.ErrText(err) != c.text {
				t.Errorf("%d, %v", exit.CodeOf(err), err)
			}
			if ctx.Err() == nil {
				t.Error("it goes on")
			}
		})
	}
}

// What a timeout cut off says so once, and does not say of an API server that it is silent: how
// long it would have taken nobody knows.
func TestWhatATimeoutCutsOffSaysItOnce(t *testing.T) {
	for name, c := range map[string]struct {
		begins bool // the answer
		want   string
	}{
		"no answer yet":       {false, "--timeout passed: read plan orders: the API server at http://api.test had not answered by then; 'kubectl cluster-info' shows whether it does"},
		"half an answer only": {true, "--timeout passed: read plan orders: no full answer by then"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				go func() {
					_, _ = http.ReadRequest(bufio.NewReader(far))
					if c.begins {
						_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
					}
				}()
				client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil }}}
				ctx, done := WithTimeout(t.Context(), time.Minute)
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.test/api", nil)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := client.Do(r)
				if err == nil {
					_, err = io.ReadAll(answer.Body)
					_ = answer.Body.Close()
				}
				err = new(factory.Cluster).Explain("read plan orders", err)
				if done(&err); exit.CodeOf(err) != 124 || cmdtest.ErrText(err) != c.want {
					t.Errorf("%d, %q", exit.CodeOf(err), cmdtest.ErrText(err))
				}
			})
		})
	}
}

// screenOf is where things are shown, and what was written there.
func screenOf(onTerminal bool) (*Screen, *bytes.Buffer) {
	var out bytes.Buffer
	return &Screen{Env: factory.Env{IOStreams: genericiooptions.IOStreams{Out: &out}, OutTerminal: onTerminal, Size: terminal.Size{Columns: 8}, Now: cmdtest.Now}}, &out
}

func TestATerminalIsRedrawn(t *testing.T) {
	s, out := screenOf(true)
	if !s.Empty() {
		t.Error("it is not empty")
	}
	s.Show([]string{"run x", "  step a is at work"}, nil)
	s.Show([]string{"run x"}, nil)
	s.Leave()
	s.Show([]string{"below"}, nil)
	if want := "run x\n  step …\x1b[0m\n\x1b[2A\x1b[Jrun x\nbelow\n"; out.String() != want || s.Empty() {
		t.Errorf("%q", out.String())
	}
}

// What a terminal cannot hold is counted: lines that have scrolled away would be drawn again and again.
func TestATerminalIsNotRedrawnBeyondItsHeight(t *testing.T) {
	s, out := screenOf(true)
	s.Env.Size.Lines, s.Fit = 4, true
	s.Show([]string{"a", "b", "c", "d", "e"}, nil)
	s.Show([]string{"a", "b", "c"}, nil)
	if want := "a\nb\n… and 3…\x1b[0m\n\x1b[3A\x1b[Ja\nb\nc\n"; out.String() != want {
		t.Errorf("%q", out.String())
	}
}

func TestOffATerminalEachNewLineIsSaidOnce(t *testing.T) {
	s, out := screenOf(false)
	for _, lines := range [][]print.Update{{{Of: "run", Text: "Pending"}}, {{Of: "run", Text: "Pending"}, {Of: "a", Text: "Running"}}, {{Of: "run", Text: "Running"}, {Of: "a", Text: "Running"}}, {{Of: "run", Text: "Pending"}}} {
		s.Show([]string{"a picture"}, lines)
	}
	want := "Z Pending\nZ Running\nZ Running\nZ Pending\n"
	if got := strings.ReplaceAll(out.String(), "2026-11-21T00:00:00Z", "Z"); got != want {
		t.Errorf("%q", got)
	}
}

// What was so before anybody looked is told with the time since when it is so.
func TestOffATerminalALineHasTheTimeOfWhatItSays(t *testing.T) {
	s, out := screenOf(false)
	s.Show(nil, print.New(s.Env, "Europe/Berlin").RunUpdates(cmdtest.RunOf(
		cmdtest.Record("restart", "restart", run.StepSucceeded, func(r *run.Record) {
			r.StartedAt, r.FinishedAt = cmdtest.Before(3*time.Hour), cmdtest.Before(2*time.Hour)
		}),
		cmdtest.Record("rest", "suspend", run.StepRunning, func(r *run.Record) { r.StartedAt = cmdtest.Before(time.Hour) }),
		cmdtest.Record("stuck", "scale", run.StepRunning, func(r *run.Record) { r.StartedAt, r.Waits = cmdtest.Before(time.Hour), "a quota" }),
	)))
	for _, want := range []string{"T22:00:00Z step restart: Succeeded\n", "T23:00:00Z step rest: Running\n", "T00:00:00Z step stuck: Running, and waits: a quota\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q lacks %q", out.String(), want)
		}
	}
}

// inBubble has a cluster in memory whose watches have begun when time goes on.
func inBubble(t *testing.T, story func(ctx context.Context, o *cmdtest.Cluster, k *factory.Cluster), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := cmdtest.NewCluster(t, nil, objects...)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		story(ctx, o, &factory.Cluster{Kube: o.Kube, Namespace: "shop"})
	})
}

// pending says whether a change is to be read, after all that goes on has settled.
func pending(changed chan struct{}) bool {
	time.Sleep(time.Second)
	synctest.Wait()
	select {
	case <-changed:
		return true
	default:
		return false
	}
}

func TestACacheShowsConfigMapsAndSaysThatTheyChanged(t *testing.T) {
	inBubble(t, func(ctx context.Context, o *cmdtest.Cluster, k *factory.Cluster) {
		w, err := ConfigMaps(ctx, k, "shop", ByLabel(annotations.LabelKind+"=plan"))
		if err != nil {
			t.Fatal(err)
		}
		if !pending(w.Changed) || w.ConfigMap("shop", "orders") == nil || w.ConfigMap("shop", "ghost") != nil {
			t.Error("the first picture is not complete")
		}
		o.Stores("configmaps", cmdtest.Plan("orders", "", cmdtest.Noting(annotations.Pause, "true")))
		if !pending(w.Changed) || w.ConfigMap("shop", "orders").Annotations[annotations.Pause] != "true" {
			t.Error("a change is not seen")
		}
		o.Deletes("configmaps", "orders")
		if !pending(w.Changed) || w.ConfigMap("shop", "orders") != nil {
			t.Error("a deletion is not seen")
		}
		if pending(w.Changed) {
			t.Error("something changed by itself")
		}
	}, cmdtest.Plan("orders", ""))
}

// A node publishes its heartbeat all the time: that is no news.
func TestNodesChangeWhenSomethingDoesThatIsLookedAt(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*corev1.Node)
		want bool
	}{
		{"a heartbeat", func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime.Time = cmdtest.Now() }, false},
		{"a label of somebody's", func(n *corev1.Node) { n.Labels["team"] = "x" }, false},
		{"an annotation of somebody's", func(n *corev1.Node) { n.Annotations["team"] = "x" }, false},
		{"a request", cmdtest.Asked("gpu", ""), true},
		{"a pause", cmdtest.Noted(annotations.Pause, "true"), true},
		{"a cordon", func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		{"it is not Ready", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
		{"another node of that name", func(n *corev1.Node) { n.UID = "another" }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, o *cmdtest.Cluster, k *factory.Cluster) {
				changed := make(chan struct{}, 1)
				w, err := Nodes(ctx, k, changed)
				if err != nil || !pending(changed) {
					t.Fatal("no first picture", err)
				}
				o.Stores("nodes", cmdtest.Node("a", c.edit))
				if got := pending(changed); got != c.want {
					t.Errorf("news: %v", got)
				}
				if w.Node("ghost") != nil || len(w.Nodes()) != 2 || w.Nodes()[0].Name != "a" || w.Node("a").Status.Conditions[0].Type != corev1.NodeReady {
					t.Errorf("%+v", w.Nodes())
				}
			}, cmdtest.Node("b"), cmdtest.Node("a"))
		})
	}
}

func TestPodsOfANode(t *testing.T) {
	inBubble(t, func(ctx context.Context, _ *cmdtest.Cluster, k *factory.Cluster) {
		w, err := PodsOn(ctx, k, make(chan struct{}, 1), "a")
		if err != nil {
			t.Fatal(err)
		}
		all, err := Pods(ctx, k, "shop", "app=web")
		if err != nil {
			t.Fatal(err)
		}
		names := func(list []*corev1.Pod) (out []string) {
			for _, p := range list {
				out = append(out, p.Name)
			}
			return out
		}
		if diff := cmp.Diff([][]string{{"web-0", "web-1"}, {"web-0", "web-1", "web-2"}}, [][]string{names(w.Pods("a")), names(all.Pods(""))}); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}, cmdtest.Pod("web-1", "a"), cmdtest.Pod("web-0", "a"), cmdtest.Pod("web-2", "b"))
}

func TestWhatMayNotBeReadIsNotWatched(t *testing.T) {
	o := cmdtest.NewCluster(t, nil)
	k := &factory.Cluster{Kube: o.Kube, Namespace: "shop"}
	for _, resource := range []string{"configmaps", "nodes", "pods"} {
		o.Forbids("list", resource, "")
	}
	_, maps := ConfigMaps(t.Context(), k, "shop", ByName("x"))
	_, nodes := Nodes(t.Context(), k, make(chan struct{}, 1), "a")
	_, pods := PodsOn(t.Context(), k, make(chan struct{}, 1), "a")
	_, some := Pods(t.Context(), k, "shop", "a=b")
	want := []string{"watch ConfigMaps: configmaps is forbidden: not for you", "watch nodes: nodes is forbidden: not for you", "watch the pods of node a: pods is forbidden: not for you", "pods is forbidden: not for you"}
	if diff := cmp.Diff(want, []string{cmdtest.ErrText(maps), cmdtest.ErrText(nodes), cmdtest.ErrText(pods), cmdtest.ErrText(some)}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A run is followed to its end, whatever becomes of it.
func TestFollowRun(t *testing.T) {
	const name = "maint-run-orders-a"
	live := cmdtest.RunObject(cmdtest.RunOf(cmdtest.Record("call", "webhook", run.StepRunning)), name)
	torn := live.DeepCopy()
	torn.Data = nil
	asked := cmdtest.Plan("orders", "", cmdtest.Noting(annotations.Trigger, "token"))
	for _, c := range []struct {
		name   string
		then   func(*cmdtest.Cluster)
		unmade bool // the agent has not made the run
		limit  time.Duration
		code   int
		err    string
	}{
		{name: "the time is over before the agent made it", unmade: true, limit: time.Minute, code: 124, err: "--timeout passed: run maint-run-orders-a begins when it can; see 'kubectl maint why orders'"},
		{name: "the same, and its trigger waits", unmade: true, then: func(o *cmdtest.Cluster) { o.Stores("configmaps", asked) }, limit: time.Minute, code: 124, err: "--timeout passed: run maint-run-orders-a begins when it can; see 'kubectl maint why orders', or take the trigger back with 'kubectl maint abort maint-run-orders-a'"},
		{name: "it succeeds", then: func(o *cmdtest.Cluster) {
			r := cmdtest.RunOf()
			r.Journal.Phase = run.Succeeded
			o.Stores("configmaps", cmdtest.RunObject(r, name))
		}},
		{name: "its object is torn", then: func(o *cmdtest.Cluster) { o.Stores("configmaps", torn) }, code: 1, err: "read run shop/maint-run-orders-a: the key run.yaml is missing"},
		{name: "its object and its plan are deleted", then: func(o *cmdtest.Cluster) { o.Deletes("configmaps", name); o.Deletes("configmaps", "orders") }, code: 3, err: "plan orders was deleted before run maint-run-orders-a began"},
		{name: "the time is over", limit: time.Minute, code: 124, err: "--timeout passed: run maint-run-orders-a goes on without you; see 'kubectl maint status maint-run-orders-a', or end it with 'kubectl maint abort maint-run-orders-a'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, o *cmdtest.Cluster, k *factory.Cluster) {
				ctx, done := WithTimeout(ctx, c.limit)
				defer done(new(error))
				if c.then != nil {
					go cmdtest.Later(func() { c.then(o) })()
				}
				env := factory.Env{IOStreams: genericiooptions.IOStreams{Out: &bytes.Buffer{}}, Name: "kubectl maint", Now: cmdtest.Now}
				if c.unmade {
					o.Deletes("configmaps", name)
				}
				err := exit.Coded(ctx, FollowRun(ctx, &factory.Factory{Env: env}, k, cmdtest.Plan("orders", ""), name))
				if exit.CodeOf(err) != c.code || cmdtest.ErrText(err) != c.err {
					t.Errorf("%d, %v", exit.CodeOf(err), err)
				}
			}, live.DeepCopy(), cmdtest.Plan("orders", ""))
		})
	}
}

// A wait for an agent that died ends within half a minute of its last beat, and not before.
func TestAWaitEndsWhenTheAgentIsSilent(t *testing.T) {
	live := cmdtest.RunOf(cmdtest.Record("call", "webhook", run.StepRunning))
	inBubble(t, func(ctx context.Context, o *cmdtest.Cluster, k *factory.Cluster) {
		beats := func(last time.Time) {
			cm := cmdtest.Agent()
			cm.Data["heartbeat"] = last.UTC().Format(time.RFC3339)
			o.Stores("configmaps", cm)
		}
		begun := time.Now()
		beats(begun)
		go func() {
			for range 20 { // for 100 s
				time.Sleep(5 * time.Second)
				beats(time.Now())
			}
		}()
		c := &factory.Factory{Env: factory.Env{IOStreams: genericiooptions.IOStreams{Out: &bytes.Buffer{}}, Name: "kubectl maint", Now: time.Now}}
		err := FollowRun(ctx, c, k, cmdtest.Plan("orders", ""), "maint-run-orders-a")
		if took := time.Since(begun); exit.CodeOf(err) != exit.CodeNoAgent || took < 130*time.Second || took > 132*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
		if text := cmdtest.ErrText(err); !strings.HasSuffix(text, "; run maint-run-orders-a goes on when an agent is back: see 'kubectl maint status maint-run-orders-a'") {
			t.Error(text)
		}
	}, cmdtest.RunObject(live, "maint-run-orders-a"), cmdtest.Plan("orders", ""), cmdtest.Agent())
}

// What somebody answered is kept, and the wait says so as it ends.
func TestAWaitSaysThatAnAnswerIsKeptWhileNoAgentActs(t *testing.T) {
	asking := cmdtest.PendingRun(func(r *view.Run) {
		r.Journal.Waiting, r.Journal.Message = run.WaitApproval, "waits for approval: 'kubectl maint -n shop approve maint-run-orders-a'"
	})
	orders := cmdtest.Plan("orders", "", cmdtest.Noting(annotations.Approve, "maint-run-orders-a", annotations.Actor(annotations.Approve), "jane", annotations.Reason(annotations.Approve), "CHG-4"))
	inBubble(t, func(ctx context.Context, o *cmdtest.Cluster, k *factory.Cluster) {
		cm := cmdtest.Agent()
		cm.Data["heartbeat"] = time.Now().UTC().Format(time.RFC3339)
		o.Stores("configmaps", cm)
		var out bytes.Buffer
		c := &factory.Factory{Env: factory.Env{IOStreams: genericiooptions.IOStreams{Out: &out}, Name: "kubectl maint", Now: time.Now}}
		err := FollowRun(ctx, c, k, orders, "maint-run-orders-a")
		const said = "approved by jane (unverified): CHG-4; no agent has taken that up yet"
		if text := cmdtest.ErrText(err); exit.CodeOf(err) != exit.CodeNoAgent || !strings.HasSuffix(text, "; "+said+", and it is kept until then; run maint-run-orders-a goes on when an agent is back: see 'kubectl maint status maint-run-orders-a'") {
			t.Error(text)
		}
		if !strings.HasSuffix(out.String(), " run maint-run-orders-a: Pending: "+said+"\n") {
			t.Error(out.String())
		}
	}, cmdtest.RunObject(asking, "maint-run-orders-a"), orders, cmdtest.Agent())
}
