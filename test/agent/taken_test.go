package agent_test

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const sendsOnce = `
steps:
- {name: tell, type: webhook, properties: {url: "HOOK/start"}}
- {name: hold, type: suspend}
`

// takeAway removes a run against its finalizer.
func (x *crashes) takeAway(ns, name string) {
	x.t.Helper()
	maps := x.admin.CoreV1().ConfigMaps(ns)
	if err := maps.Delete(x.ctx, name, metav1.DeleteOptions{}); err != nil {
		x.t.Fatal(err)
	}
	_, err := maps.Patch(x.ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
}

// endsOnce waits until the ledger of a plan has no open entry but one that ran.
func (x *crashes) endsOnce(ns, name string) {
	x.t.Helper()
	eventually(x.t, x.ctx, "the entry of "+name+" ends", func() (bool, string) {
		cm, err := x.admin.CoreV1().ConfigMaps(ns).Get(x.ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		ledger, err := x.admin.CoreV1().ConfigMaps(ns).Get(x.ctx, annotations.LedgerName(name, string(cm.UID)), metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		l, err := annotations.ReadLedger(ledger, string(cm.UID))
		if err != nil {
			return false, err.Error()
		}
		return len(l.Open) == 0 && l.Last != nil && l.Last.Phase == run.Aborted && strings.Contains(cm.Annotations[annotations.StatusMessage], "not put back"), cm.Annotations[annotations.StatusMessage]
	})
	if n := x.count("/" + ns + "/start"); n != 1 {
		x.t.Errorf("the webhook was sent %d times", n)
	}
	if runs, err := readRuns(x.ctx, x.admin, ns, name); err != nil || len(runs) != 0 {
		x.t.Errorf("the run was made again: %s %v", describeRuns(runs), err)
	}
}

func TestARunThatWasTakenAwayByHandIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	x := newCrashes(t)
	x.story = sendsOnce
	begin := func(ns string) string {
		x.prepare(ns)
		x.observed(ns, "orders-weekly")
		x.annotate(ns, "orders-weekly", map[string]string{annotations.Trigger: "t"})
		x.at(ns, "orders-weekly", "hold")
		runs, err := readRuns(x.ctx, x.admin, ns, "orders-weekly")
		if err != nil || len(runs) != 1 {
			t.Fatal(runs, err)
		}
		return runs[0].run.Name
	}
	p := x.agent()
	name := begin("broken")
	if err := breakJournal(x, "broken", name); err != nil {
		t.Fatal(err)
	}
	eventually(t, x.ctx, "the agent sees that the journal is broken", func() (bool, string) {
		list, err := x.admin.CoreV1().Events("broken").List(x.ctx, metav1.ListOptions{FieldSelector: "type=" + corev1.EventTypeWarning})
		return err == nil && len(list.Items) > 0, p.Log()
	})
	x.takeAway("broken", name)
	x.endsOnce("broken", "orders-weekly")

	name = begin("down")
	p.Kill()
	x.takeAway("down", name)
	p = x.agent()
	defer p.Kill()
	x.endsOnce("down", "orders-weekly")
}

// breakJournal writes over the journal of a run.
func breakJournal(x *crashes, ns, name string) error {
	_, err := x.admin.CoreV1().ConfigMaps(ns).Patch(x.ctx, name, types.MergePatchType, []byte(`{"data":{"`+annotations.DataJournal+`":"{garbage"}}`), metav1.PatchOptions{})
	return err
}

func TestWhatARunDidNotPutBackIsToldUntilSomebodyKnows(t *testing.T) {
	l := newLab(t)
	l.runner(configMapRights("get", "patch"))
	l.configMap("limits", nil, map[string]string{"rate": "100"})
	l.plan("left", `
steps:
- {name: slow, type: patch-object, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: limits}, patchType: merge, patch: {data: {rate: "1"}}, restoreAfter: true}}
- {name: hold, type: suspend}
`)
	l.seen("left")
	l.trigger("left", "t")
	r := l.running("left", "hold")
	l.must(patchData(l, "limits", `{"immutable": true}`))
	l.annotate("left", map[string]string{annotations.Abort: r.run.Name})
	end := l.ended("left", 1)[0]
	if end.journal.Phase != run.Aborted || end.journal.Record("slow").Restored != run.RestoreFailed {
		t.Fatalf("%+v", end.journal)
	}
	l.says("left", "not put back by run "+r.run.Name+", step slow", "data.rate: \"100\" of ConfigMap "+l.ns+"/limits", "resume "+r.run.Name)
	l.toldOnce("NotPutBack", "left")
	l.expect(l.maint("status", "left"), 0, "limits", "Restored")
	status := l.maint("status", r.run.Name)
	l.expect(status, 0, "✗", "could not be put back", "limits")
	l.expect(l.maint("describe", r.run.Name), 0, "could not be put back", "limits")
	l.expect(l.maint("why", "left"), 3, "not put back", "limits", "resume "+r.run.Name)
	l.expect(l.maint("resume", r.run.Name, "--reason", "seen"), 0, r.run.Name)
	l.eventually("it is acknowledged", func() (bool, string) {
		cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, "left", metav1.GetOptions{})
		l.must(err)
		text := cm.Annotations[annotations.StatusMessage]
		return !strings.Contains(text, "not put back") && cm.Annotations[annotations.Resume] == "", text
	})
	l.expect(l.maint("why", "left"), 0)
}

func TestWhatARunDidNotPutBackIsForgottenWhenItIsAsItWas(t *testing.T) {
	l := newLab(t)
	l.runner(deploymentRights())
	l.deployment("orders", 1)
	l.set("orders", `{"spec": {"minReadySeconds": 100}}`)
	l.plan("left", `
steps:
- {name: quick, type: patch-object, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, patchType: merge, patch: {spec: {minReadySeconds: 1}}, restoreAfter: true}}
- {name: hold, type: suspend}
`)
	l.seen("left")
	l.trigger("left", "t")
	r := l.running("left", "hold")
	l.set("orders", `{"spec": {"progressDeadlineSeconds": 50}}`) // must be longer than what is to be put back
	abort := l.maint("abort", r.run.Name, "--yes", "--wait", "--timeout", "60s")
	l.expect(abort, 4, "left something behind", "step quick could not be put back", "spec.minReadySeconds: 100 of Deployment "+l.ns+"/orders")
	l.says("left", "not put back by run "+r.run.Name+", step quick")
	l.set("orders", `{"spec": {"progressDeadlineSeconds": 600}}`)
	l.says("left", "not put back") // the value is still ours
	l.set("orders", `{"spec": {"minReadySeconds": 100}}`)
	l.eventually("it is as it was", func() (bool, string) {
		cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, "left", metav1.GetOptions{})
		l.must(err)
		text := cm.Annotations[annotations.StatusMessage]
		return !strings.Contains(text, "not put back") && !strings.Contains(cm.Annotations[annotations.StatusConditions], "Restored"), text
	})
	l.toldOnce("PutBack", "left")
}

// set merges a patch into a Deployment, as a person.
func (l *lab) set(deployment, patch string) {
	l.Helper()
	_, err := l.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, deployment, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	l.must(err)
}

func TestNothingIsDoneBeforeItsRunStandsInTheStatusOfItsPlan(t *testing.T) {
	t.Parallel()
	x := newCrashes(t)
	x.story = sendsOnce
	const ns = "silent"
	x.prepare(ns)
	p := x.agent()
	defer p.Kill()
	x.observed(ns, "orders-weekly")
	x.proxy.At(func(req *http.Request, _ bool) bool { // no status is written
		return req.Method != http.MethodPatch || !strings.HasSuffix(req.URL.Path, "/configmaps/orders-weekly")
	})
	x.annotate(ns, "orders-weekly", map[string]string{annotations.Trigger: "t"})
	eventually(t, x.ctx, "the run has begun", func() (bool, string) {
		runs, err := readRuns(x.ctx, x.admin, ns, "orders-weekly")
		return err == nil && len(runs) == 1 && runs[0].journal.Phase == run.Running, describeRuns(runs)
	})
	p.Kill()
	if n := x.count("/" + ns + "/start"); n != 0 {
		t.Errorf("the webhook was sent %d times before anything but the run said that it was made", n)
	}
	x.proxy.At(nil)
	p = x.agent()
	defer p.Kill()
	x.at(ns, "orders-weekly", "hold")
	if n := x.count("/" + ns + "/start"); n != 1 {
		t.Errorf("the webhook was sent %d times", n)
	}
}

func TestRunsThatOverlapOnReplicasLeaveThemAsTheyWere(t *testing.T) {
	for _, c := range []struct{ name, first, second string }{{"the later one ends first", "b", "a"}, {"the earlier one ends first", "a", "b"}} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.runner(scaleRights())
			l.deployment("orders", 7)
			run := map[string]string{}
			for name, replicas := range map[string]string{"a": "0", "b": "0"} {
				l.plan(name, `
steps:
- {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: `+replicas+`, restoreAfter: true}}
- {name: hold, type: suspend}
`)
			}
			for _, name := range []string{"a", "b"} {
				l.seen(name)
				l.trigger(name, "t")
				run[name] = l.running(name, "hold").run.Name
			}
			for _, name := range []string{c.first, c.second} {
				if n := l.replicas("orders"); n != 0 {
					t.Errorf("%d replicas before %s ends", n, name)
				}
				l.annotate(name, map[string]string{annotations.Resume: run[name]})
				l.ended(name, 1)
			}
			if n := l.replicas("orders"); n != 7 {
				t.Errorf("%d replicas after both", n)
			}
		})
	}
}
