package agent_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// keyring is the agent's.
func keyring(ctx context.Context, t testing.TB, admin kubernetes.Interface) annotations.Keyring {
	t.Helper()
	ring, err := harness.Keyring(ctx, admin)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// hooked is a step that calls a path of the receiver.
func (l *lab) hooked(path string) plan.Step {
	return plan.Step{Name: "hook", Type: "webhook", Properties: map[string]any{"url": world.hooks.URL + "/" + l.ns + path}}
}

func (l *lab) called(path string) bool {
	return slices.ContainsFunc(world.hooks.Deliveries(), func(d harness.Delivery) bool { return d.Path == "/"+l.ns+path })
}

// Whoever may write ConfigMaps writes a run as the agent would have, for a plan of their
// own: past a freeze of the namespace, and past what the configuration denies to plans.
func TestAValidRunThatTheAgentDidNotSignIsLeftAlone(t *testing.T) {
	l := newLab(t)
	l.runner()
	cm := l.plan("orders", holding)
	l.seen("orders")
	r := forgedRun(l, cm, "forged", l.hooked("/forged"))
	l.forge(r, workflow.NewJournal(r).Start(cm.CreationTimestamp.UTC()))
	l.saidToBeBroken(r.Name, "carries no signature")
	l.stuck("orders", "signature")

	// Somebody with the key signs it: it still has no entry in the ledger.
	l.expect(l.maint("adopt", "run/"+r.Name, "--yes"), 0, "configmap/"+r.Name+" signed")
	l.stuck("orders", "no open entry")
	if l.called("/forged") {
		t.Error("a step of it was done")
	}
	l.annotate("orders", map[string]string{annotations.Abort: r.Name})
	l.ended("orders", 1)
	if l.called("/forged") {
		t.Error("a step of it was done when it was aborted")
	}
}

// stuck waits until a plan says that one of its runs is stuck, and why.
func (l *lab) stuck(name, why string) {
	l.Helper()
	l.eventually(name+" says that its run is stuck: "+why, func() (bool, string) {
		cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, name, metav1.GetOptions{})
		l.must(err)
		said := cm.Annotations[annotations.StatusConditions]
		return strings.Contains(said, "RunStuck") && strings.Contains(said, why), said
	})
}

// A ledger that somebody wrote silences a plan for years, or has it make up for slots.
func TestALedgerThatTheAgentDidNotSignCountsAsLost(t *testing.T) {
	other := newLab(t)
	other.runner()
	victim := other.plan("orders", "triggers: {schedules: [{cron: '0 3 1 1 *'}]}"+holding)
	other.seen("orders")
	l := other.neighbour()
	l.runner()
	cm := l.plan("orders", "triggers: {schedules: [{cron: '0 3 1 1 *'}]}"+holding)
	l.seen("orders")
	for name, forge := range map[string]func(object *corev1.ConfigMap){
		"by hand": func(object *corev1.ConfigMap) {
			led, err := annotations.ReadLedger(object, string(cm.UID))
			l.must(err)
			led.Watermark = led.Watermark.AddDate(50, 0, 0)
			forged, err := annotations.WithLedger(object, led)
			l.must(err)
			object.Data = forged.Data
		},
		"with the signature of another plan's": func(object *corev1.ConfigMap) {
			theirs, err := l.admin.CoreV1().ConfigMaps(other.ns).Get(l.ctx, annotations.LedgerName("orders", string(victim.UID)), metav1.GetOptions{})
			l.must(err)
			object.Data, object.Annotations = theirs.Data, theirs.Annotations
		},
	} {
		object, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, annotations.LedgerName("orders", string(cm.UID)), metav1.GetOptions{})
		l.must(err)
		forge(object)
		_, err = l.admin.CoreV1().ConfigMaps(l.ns).Update(l.ctx, object, metav1.UpdateOptions{})
		l.must(err)
		token := strings.ReplaceAll(name, " ", "-")
		l.trigger("orders", token)
		l.eventually("the ledger is the agent's again: "+name, func() (bool, string) {
			object, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, object.Name, metav1.GetOptions{})
			l.must(err)
			led, err := annotations.ReadLedger(object, string(cm.UID))
			return err == nil && keyring(l.ctx, t, l.admin).Check(object) == nil && len(led.Open) == 1, object.Data[annotations.DataLedger]
		})
		if led := l.ledger(cm); led.Watermark.Year() > cm.CreationTimestamp.Year()+1 || len(led.Recent) > 0 {
			t.Errorf("%s: it believes %+v", name, led)
		}
		l.annotate("orders", map[string]string{annotations.Abort: l.running("orders", "hold").run.Name})
		l.eventually("its run ends", func() (bool, string) {
			led := l.ledger(cm)
			return len(led.Open) == 0 && led.Last != nil, fmt.Sprintf("%+v", led)
		})
	}
	events, err := l.admin.CoreV1().Events(l.ns).List(l.ctx, metav1.ListOptions{FieldSelector: "reason=LedgerLost,involvedObject.name=orders"})
	l.must(err)
	if len(events.Items) == 0 {
		t.Error("it is not said")
	}
}

// A run that goes on while its plan's ledger is lost stands in the new one, and ends there.
func TestARunThatLosesItsLedgerEndsInTheNewOne(t *testing.T) {
	l := newLab(t)
	l.runner()
	cm := l.plan("orders", holding)
	l.seen("orders")
	l.trigger("orders", "t")
	live := l.running("orders", "hold")
	l.must(l.admin.CoreV1().ConfigMaps(l.ns).Delete(l.ctx, annotations.LedgerName("orders", string(cm.UID)), metav1.DeleteOptions{}))
	l.annotate("orders", map[string]string{annotations.Resume: live.run.Name})
	l.succeeded("orders")
	if recent := l.ledger(cm).Recent; len(recent) != 1 || recent[0].Run != live.run.Name || recent[0].Result != run.Ran {
		t.Errorf("the ledger says %+v", recent)
	}
}

func TestTheKeyThatSomebodyTookAwayIsPutBack(t *testing.T) {
	l := newLab(t)
	was := keyring(l.ctx, t, l.admin)
	l.must(l.admin.CoreV1().Secrets(annotations.DefaultNamespace).Delete(l.ctx, annotations.KeyName, metav1.DeleteOptions{}))
	l.eventually("the key is there again", func() (bool, string) {
		secret, err := l.admin.CoreV1().Secrets(annotations.DefaultNamespace).Get(l.ctx, annotations.KeyName, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		ring, err := annotations.ReadKeyring(secret)
		return err == nil && ring.Equal(was), fmt.Sprint(err)
	})
}

// unsign leaves everything as an agent of a version that signs nothing would have.
func (x *crashes) unsign(ns string) {
	x.t.Helper()
	list, err := x.admin.CoreV1().ConfigMaps(ns).List(x.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + " in (run,ledger)"})
	if err != nil {
		x.t.Fatal(err)
	}
	for i := range list.Items {
		delete(list.Items[i].Annotations, annotations.StatusSignature)
		if _, err := x.admin.CoreV1().ConfigMaps(ns).Update(x.ctx, &list.Items[i], metav1.UpdateOptions{}); err != nil {
			x.t.Fatal(err)
		}
	}
	beat, err := x.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).Get(x.ctx, annotations.HeartbeatName, metav1.GetOptions{})
	if err == nil {
		delete(beat.Data, annotations.HeartbeatKey)
		_, err = x.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).Update(x.ctx, beat, metav1.UpdateOptions{})
	}
	if err != nil {
		x.t.Fatal(err)
	}
	x.losesKey()
}

func (x *crashes) losesKey() {
	x.t.Helper()
	if err := x.admin.CoreV1().Secrets(annotations.DefaultNamespace).Delete(x.ctx, annotations.KeyName, metav1.DeleteOptions{}); err != nil {
		x.t.Fatal(err)
	}
}

func (x *crashes) signs() {
	x.t.Helper()
	eventually(x.t, x.ctx, "the heartbeat names the key", func() (bool, string) {
		beat, err := x.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).Get(x.ctx, annotations.HeartbeatName, metav1.GetOptions{})
		return err == nil && beat.Data[annotations.HeartbeatKey] != "", fmt.Sprint(err)
	})
}

// killedAmid leaves a namespace as an agent does that is killed while a run holds.
func (x *crashes) killedAmid(ns string) {
	x.t.Helper()
	x.story = oneHold
	x.prepare(ns)
	old := x.direct()
	defer old.Kill()
	x.observed(ns, "orders-weekly")
	x.annotate(ns, "orders-weekly", map[string]string{annotations.Trigger: "t"})
	x.at(ns, "orders-weekly", "hold")
	x.signs()
}

func (x *crashes) ready(p *harness.Process) bool {
	req, err := http.NewRequestWithContext(x.ctx, http.MethodGet, "http://"+p.Address()+"/readyz", nil)
	if err != nil {
		x.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

const oneHold = `
steps:
- {name: hold, type: suspend}
- {name: end, type: webhook, properties: {url: "HOOK/end"}}
`

// The upgrade comes in the middle of a run: what the version before left without a
// signature goes on.
func TestTheUpgradeFromAVersionThatSignedNothingKeepsRunsAndLedgers(t *testing.T) {
	t.Parallel()
	x := newCrashes(t)
	x.killedAmid("upgraded")
	x.unsign("upgraded")

	now := x.direct()
	defer now.Kill()
	x.play("upgraded", nil, 30*time.Second)
	if n := x.count("/upgraded/end"); n != 1 {
		t.Errorf("its last step was done %d times\n%s", n, now.Log())
	}
	events, err := x.admin.CoreV1().Events("upgraded").List(x.ctx, metav1.ListOptions{FieldSelector: "type=Warning"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		again := e.Reason == "ResumeIgnored" || e.Reason == "IntentIgnored" && strings.Contains(e.Message, annotations.Resume)
		if !again { // the story asks again and again, also after its end
			t.Errorf("it warns: %s %s", e.Reason, e.Message)
		}
	}
}

// The key is lost together with every process that held it: nothing that it signed
// counts, that is said, and the plan goes on from now.
func TestALostKeyIsSaidAndMaintenanceGoesOnFromThen(t *testing.T) {
	t.Parallel()
	x := newCrashes(t)
	x.killedAmid("lost")
	old, err := x.admin.CoreV1().Secrets(annotations.DefaultNamespace).Get(x.ctx, annotations.KeyName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x.losesKey()

	now := x.direct()
	defer now.Kill()
	eventually(t, x.ctx, "the configuration says that the key was lost", func() (bool, string) {
		cm, err := x.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).Get(x.ctx, annotations.AgentConfigName, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		said := cm.Annotations[annotations.StatusConditions]
		return strings.Contains(said, "SigningKey") && strings.Contains(said, "Lost"), said
	})
	eventually(t, x.ctx, "the run is left alone, and that is said on its plan", func() (bool, string) {
		cm, err := x.admin.CoreV1().ConfigMaps("lost").Get(x.ctx, "orders-weekly", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		said := cm.Annotations[annotations.StatusConditions]
		return strings.Contains(said, "RunStuck") && strings.Contains(said, "another key"), said
	})
	if n := x.count("/lost/end"); n != 0 {
		t.Error("a run that does not count went on")
	}
	if led := x.ledgerOf("lost", "orders-weekly"); led.Watermark.IsZero() || len(led.Open) > 0 {
		t.Errorf("the ledger says %+v", led)
	}

	// Somebody finds the old key: what it signed is read, by the agent that is at work.
	secret, err := x.admin.CoreV1().Secrets(annotations.DefaultNamespace).Get(x.ctx, annotations.KeyName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret.Data[annotations.DataPreviousKey] = old.Data[annotations.DataKey]
	if _, err := x.admin.CoreV1().Secrets(annotations.DefaultNamespace).Update(x.ctx, secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, x.ctx, "the run counts again, and its entry is missed", func() (bool, string) {
		cm, err := x.admin.CoreV1().ConfigMaps("lost").Get(x.ctx, "orders-weekly", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		said := cm.Annotations[annotations.StatusConditions]
		return strings.Contains(said, "no open entry"), said
	})
}

func (x *crashes) ledgerOf(ns, name string) ledger.Ledger {
	x.t.Helper()
	cm, err := x.admin.CoreV1().ConfigMaps(ns).Get(x.ctx, name, metav1.GetOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	var led ledger.Ledger
	eventually(x.t, x.ctx, "the ledger of "+name+" is signed", func() (bool, string) {
		object, err := x.admin.CoreV1().ConfigMaps(ns).Get(x.ctx, annotations.LedgerName(name, string(cm.UID)), metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		if err := keyring(x.ctx, x.t, x.admin).Check(object); err != nil {
			return false, err.Error()
		}
		led, err = annotations.ReadLedger(object, string(cm.UID))
		return err == nil, fmt.Sprint(err)
	})
	return led
}

// A Secret that is broken where an agent starts: it does nothing, says so, and begins
// when it is mended.
func TestAnAgentWithABrokenKeyDoesNothingUntilItIsMended(t *testing.T) {
	t.Parallel()
	x := newCrashes(t)
	x.story = oneHold
	x.prepare("broken")
	secrets := x.admin.CoreV1().Secrets(annotations.DefaultNamespace)
	broken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: annotations.KeyName}, Data: map[string][]byte{annotations.DataKey: []byte("short")}}
	if _, err := secrets.Create(x.ctx, broken, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := x.direct()
	defer p.Kill()
	eventually(t, x.ctx, "the configuration says that the key is broken", func() (bool, string) {
		cm, err := x.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).Get(x.ctx, annotations.AgentConfigName, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		said := cm.Annotations[annotations.StatusConditions]
		return strings.Contains(said, "SigningKey") && strings.Contains(said, "5 bytes"), said + p.Log()
	})
	if x.ready(p) {
		t.Error("it says that it is ready")
	}
	if cm, err := x.admin.CoreV1().ConfigMaps("broken").Get(x.ctx, "orders-weekly", metav1.GetOptions{}); err != nil || cm.Annotations[annotations.StatusObserved] != "" {
		t.Errorf("it took a plan up: %v", err)
	}
	broken.Data[annotations.DataKey] = annotations.NewKey()
	if _, err := secrets.Update(x.ctx, broken, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	x.observed("broken", "orders-weekly")
	if !x.ready(p) {
		t.Error("mended, and not ready")
	}
}
