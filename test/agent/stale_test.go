package agent_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// document creates a plan of a spec; HOOK is the namespace's path at the receiver.
func (x *crashes) document(ns, name, spec string) {
	x.t.Helper()
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  " + strings.ReplaceAll(strings.Trim(strings.ReplaceAll(spec, "HOOK", x.hooks.URL+"/"+ns), "\n"), "\n", "\n  ")
	if _, err := x.admin.CoreV1().ConfigMaps(ns).Create(x.ctx, annotations.NewPlan(ns, name, text, ""), metav1.CreateOptions{}); err != nil {
		x.t.Fatal(err)
	}
}

func (x *crashes) annotate(ns, name string, values map[string]string) {
	x.t.Helper()
	if err := patchAnnotations(x.ctx, x.admin, ns, name, values); err != nil {
		x.t.Fatal(err)
	}
}

// observed waits until the leader has taken a plan up.
func (x *crashes) observed(ns, name string) {
	x.t.Helper()
	eventually(x.t, x.ctx, "plan "+name+" is taken up", func() (bool, string) {
		cm, err := x.admin.CoreV1().ConfigMaps(ns).Get(x.ctx, name, metav1.GetOptions{})
		return err == nil && cm.Annotations[annotations.StatusObserved] == annotations.Hash10(cm.Data[annotations.DataPlan]), ""
	})
}

// at waits until a plan's run is at a step.
func (x *crashes) at(ns, name, step string) {
	x.t.Helper()
	eventually(x.t, x.ctx, "the run of "+name+" is at "+step, func() (bool, string) {
		runs, err := readRuns(x.ctx, x.admin, ns, name)
		if err != nil || len(runs) != 1 {
			return false, describeRuns(runs)
		}
		rec := recordOf(runs[0].journal, step)
		return rec != nil && rec.Phase == run.StepRunning, describeRuns(runs)
	})
}

// shows waits until an agent's metrics hold a line.
func shows(t *testing.T, ctx context.Context, p *harness.Process, line string) {
	t.Helper()
	eventually(t, ctx, "the metrics show "+line, func() (bool, string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Address()+"/metrics", nil)
		if err != nil {
			return false, err.Error()
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false, err.Error()
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(text), "\n"+line+"\n"), string(text)
	})
}

func (x *crashes) count(path string) int {
	n := 0
	for _, d := range x.hooks.Deliveries() {
		if d.Path == path {
			n++
		}
	}
	return n
}

const scaling = `
steps:
- {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0}}
- {name: hold, type: suspend}
- {name: start, type: webhook, properties: {url: "HOOK/start"}}
finally:
- {name: up, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 3}}
- {name: over, type: webhook, properties: {url: "HOOK/over"}}
`

const everyMinute = `
triggers: {schedules: [{cron: "* * * * *"}]}
steps:
- {name: call, type: webhook, properties: {url: "HOOK/%s"}}
`

// The standby's watches stall while its lease traffic does not. What the leader did,
// and what people asked for meanwhile, is known to the standby when it leads.
func TestAStandbyThatLeadsOnStalledWatchesRepeatsNothing(t *testing.T) {
	x := newCrashes(t)
	x.story = scaling
	x.prepare("stale")
	for _, name := range []string{"edited", "paused", "deleted"} {
		x.document("stale", name, fmt.Sprintf(everyMinute, name))
		x.annotate("stale", name, map[string]string{annotations.Pause: "true"})
	}
	first := x.direct()
	leads(t, x.ctx, first)
	second, err := harness.StartAgent(x.bin, x.config)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Kill()
	for _, name := range []string{"orders-weekly", "edited", "paused", "deleted"} {
		x.observed("stale", name)
	}
	x.annotate("stale", "orders-weekly", map[string]string{annotations.Trigger: "one"})
	x.at("stale", "orders-weekly", "hold")
	for _, name := range []string{"edited", "paused", "deleted"} {
		x.annotate("stale", name, map[string]string{annotations.Pause: ""})
	}
	shows(t, x.ctx, second, `maint_runs{phase="Running"} 1`)
	x.proxy.StallWatches(harness.EveryWatch)

	x.annotate("stale", "paused", map[string]string{annotations.Pause: "true"})
	edit := fmt.Sprintf(`{"data":{%q:%q}}`, annotations.DataPlan, "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  triggers: {schedules: [{cron: \"0 0 1 1 *\"}]}\n  steps: [{name: call, type: webhook, properties: {url: \""+x.hooks.URL+"/stale/edited\"}}]\n")
	if _, err := x.admin.CoreV1().ConfigMaps("stale").Patch(x.ctx, "edited", "application/merge-patch+json", []byte(edit), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := x.admin.CoreV1().ConfigMaps("stale").Delete(x.ctx, "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	x.play("stale", nil, 60*time.Second)
	ledgers := func() int {
		list, err := x.admin.CoreV1().ConfigMaps("stale").List(x.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=ledger," + annotations.LabelPlan + "=deleted"})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	eventually(t, x.ctx, "the ledger goes with its plan", func() (bool, string) { return ledgers() == 0, "" })
	first.Kill()
	before := len(x.hooks.Deliveries())
	leads(t, x.ctx, second)
	next := time.Now().Truncate(time.Minute).Add(time.Minute + 5*time.Second)
	eventuallyWithin(t, x.ctx, 2*time.Minute, "a minute's slots have passed", func() (bool, string) { return !time.Now().Before(next), "" })

	if after := x.hooks.Deliveries(); len(after) != before {
		t.Errorf("sent again, or against what was asked: %v\n%s", after[before:], second.Log())
	}
	d, err := x.admin.AppsV1().Deployments("stale").Get(x.ctx, "orders", metav1.GetOptions{})
	if err != nil || *d.Spec.Replicas != 3 {
		t.Errorf("replicas are %v (%v), want 3: a step of a run that had ended was done again", d.Spec.Replicas, err)
	}
	if n := ledgers(); n != 0 {
		t.Errorf("%d ledgers of a deleted plan", n)
	}
	if !strings.Contains(second.Log(), "the caches are as new as the lease") {
		t.Errorf("no barrier:\n%s", second.Log())
	}
}

// The watches of a leader die without a word. A pause that comes then holds the next
// step, and is taken away again in time.
func TestALeaderWithStalledWatchesHeedsAPauseAndItsEnd(t *testing.T) {
	x := newCrashes(t)
	x.story = `
steps:
- {name: hold, type: suspend, properties: {duration: 6s}}
- {name: start, type: webhook, properties: {url: "HOOK/start"}}
`
	x.prepare("silent")
	agent := x.agent()
	defer agent.Kill()
	x.observed("silent", "orders-weekly")
	x.annotate("silent", "orders-weekly", map[string]string{annotations.Trigger: "one"})
	x.at("silent", "orders-weekly", "hold")
	x.proxy.StallWatches(harness.EveryWatch)
	x.annotate("silent", "orders-weekly", map[string]string{annotations.Pause: "true"})
	eventually(t, x.ctx, "the run waits behind the pause", func() (bool, string) {
		runs, err := readRuns(x.ctx, x.admin, "silent", "orders-weekly")
		if err != nil || len(runs) != 1 {
			return false, describeRuns(runs)
		}
		rec := recordOf(runs[0].journal, "hold")
		return rec != nil && rec.Phase.Ended(), describeRuns(runs) + agent.Log()
	})
	resumed := time.Now()
	if n := x.count("/silent/start"); n != 0 {
		t.Errorf("the step after the pause began: %d deliveries", n)
	}
	x.annotate("silent", "orders-weekly", map[string]string{annotations.Pause: ""})
	eventually(t, x.ctx, "the run goes on", func() (bool, string) { return x.count("/silent/start") == 1, agent.Log() })
	if took := time.Since(resumed); took > 13*time.Second {
		t.Errorf("the end of the pause was heeded after %s", took)
	}
}

// A leader is stopped for longer than its lease while a webhook's next attempt falls
// due. What it sends after waking would be sent beside the new leader's.
func TestALeaderThatStoodStillSendsNothingAfterItWakes(t *testing.T) {
	x := newCrashes(t)
	x.story = `
steps:
- {name: start, type: webhook, retry: {limit: 10, backoff: 3s, maxBackoff: 3s}, properties: {url: "HOOK/start"}}
`
	x.prepare("still")
	refuse := make(chan struct{})
	hooks, err := harness.NewReceiver(func(harness.Delivery) int {
		select {
		case <-refuse:
			return http.StatusOK
		default:
			return http.StatusServiceUnavailable
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer hooks.Close()
	x.document("still", "retried", strings.ReplaceAll(x.story, "HOOK", hooks.URL+"/still"))
	first := x.direct()
	defer first.Kill()
	leads(t, x.ctx, first)
	x.observed("still", "retried")
	x.annotate("still", "retried", map[string]string{annotations.Trigger: "one"})
	eventually(t, x.ctx, "the first attempts fail", func() (bool, string) { return len(hooks.Deliveries()) >= 2, first.Log() })
	if err := first.Freeze(); err != nil {
		t.Fatal(err)
	}
	second := x.direct()
	defer second.Kill()
	leads(t, x.ctx, second)
	close(refuse)
	eventually(t, x.ctx, "the second leader ends the run", func() (bool, string) {
		runs, err := readRuns(x.ctx, x.admin, "still", "retried")
		return err == nil && len(runs) == 1 && runs[0].journal.Phase == run.Succeeded, describeRuns(runs) + second.Log()
	})
	before := len(hooks.Deliveries())
	if err := first.Thaw(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-first.Ended():
	case <-time.After(30 * time.Second):
		t.Errorf("the deposed leader goes on:\n%s", first.Log())
	}
	if after := hooks.Deliveries(); len(after) != before {
		t.Errorf("sent by a leader that was none any more: %v", after[before:])
	}
}

// The watches that act as plans' accounts die without a word: that of a step that
// waits, and that of a watch rule. Both are doubted, and what they missed, a deletion
// too, is acted on.
func TestWatchesOfAccountsThatStallAreDoubted(t *testing.T) {
	t.Parallel()
	x := newCrashes(t)
	x.story = `
steps:
- {name: ready, type: wait, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, until: "object.spec.paused"}}
- {name: start, type: webhook, properties: {url: "HOOK/start"}}
`
	x.prepare("deaf")
	x.document("deaf", "seen", `
triggers: {watch: [{apiVersion: apps/v1, kind: Deployment, events: [delete], when: oldObject.metadata.name == "old"}]}
steps:
- {name: tell, type: webhook, properties: {url: "HOOK/${watched.metadata.name}"}}
`)
	deployments := x.admin.AppsV1().Deployments("deaf")
	old, err := deployments.Get(x.ctx, "orders", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	old.Name, old.ResourceVersion, old.UID = "old", "", ""
	if _, err := deployments.Create(x.ctx, old, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	agent := x.agent()
	defer agent.Kill()
	x.observed("deaf", "orders-weekly")
	x.annotate("deaf", "orders-weekly", map[string]string{annotations.Trigger: "one"})
	x.at("deaf", "orders-weekly", "ready")
	shows(t, x.ctx, agent, `maint_watches{for="steps"} 1`)
	shows(t, x.ctx, agent, `maint_watches{for="targets"} 1`)
	eventually(t, x.ctx, "the rule is compared with what is there", func() (bool, string) {
		cm, err := x.admin.CoreV1().ConfigMaps("deaf").Get(x.ctx, "seen", metav1.GetOptions{})
		return err == nil && strings.Contains(cm.Annotations[annotations.StatusConditions], "a run can start"), fmt.Sprint(cm.Annotations, err)
	})
	x.proxy.StallWatches(func(req *http.Request) bool { return strings.HasSuffix(req.URL.Path, "/deployments") })
	if err := deployments.Delete(x.ctx, "old", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := deployments.Patch(x.ctx, "orders", types.MergePatchType, []byte(`{"spec":{"paused":true}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventuallyWithin(t, x.ctx, 100*time.Second, "what the watches missed is acted on", func() (bool, string) {
		return x.count("/deaf/start") == 1 && x.count("/deaf/old") == 1, agent.Log()
	})
}
