package agent

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// queued are the keys that wait in a queue, which is empty then.
func (w *world) queued(q *queue.Queue) []string {
	out := []string{}
	for q.Len() > 0 {
		k, _ := q.Get()
		q.Forget(k)
		q.Done(k)
		out = append(out, strings.Trim(k.String(), "/"))
	}
	slices.Sort(out)
	return out
}

// holds has the agent's cache of documents hold some.
func (w *world) holds(a *Agent, all ...*corev1.ConfigMap) {
	w.Helper()
	for _, cm := range all {
		if err := a.caches.documents.Informer.GetStore().Add(cm); err != nil {
			w.Fatal(err)
		}
	}
}

// lives has the agent know of a run that has not ended.
func (w *world) lives(a *Agent, namespace, name string, edit func(*run.Run, *run.Journal)) {
	w.Helper()
	r, j := coretest.RunOf(w.T, hook), run.Journal{Phase: run.Running}
	r.Namespace, r.Name = namespace, name
	if edit != nil {
		edit(&r, &j)
	}
	cm, err := annotations.RunObject(r, j)
	if err != nil {
		w.Fatal(err)
	}
	cm.UID, cm.ResourceVersion = types.UID("uid-"+name), "7"
	if err := a.keys.Sign(cm); err != nil {
		w.Fatal(err)
	}
	a.memory.runs.Observe(cm)
}

// withKey has an agent that does not run know its key.
func (w *world) withKey(a *Agent) *Agent {
	a.keys.Observe(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: annotations.KeyName}, Data: map[string][]byte{annotations.DataKey: []byte(strings.Repeat("k", 32))}})
	w.queued(a.queues.plans)
	return a
}

// What of a document is kept in memory.
func TestWhatIsKeptOfADocument(t *testing.T) {
	const foreign, ours = "example.org/note", annotations.Pause
	of := func(label, text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: shop, Name: "orders", Labels: map[string]string{annotations.LabelKind: label}, Annotations: map[string]string{foreign: "x", ours: "true"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)}},
			},
			Data: map[string]string{label + ".yaml": text},
		}
	}
	play(t, func(w *world) {
		a := w.withKey(w.built())
		slim := func(o any) *corev1.ConfigMap {
			t.Helper()
			kept, err := a.slimDocument(o)
			if err != nil {
				t.Fatal(err)
			}
			return kept.(*corev1.ConfigMap)
		}
		if got := slim(of(annotations.KindPlan, "a")); len(got.Annotations) != 1 || got.Annotations[ours] != "true" || len(got.ManagedFields) != 1 || got.ManagedFields[0].FieldsV1 != nil {
			t.Errorf("of a plan: %+v", got.ObjectMeta)
		}
		if got := slim(of(annotations.KindPolicy, "a")); len(got.Annotations) != 1 || got.Annotations[ours] != "true" || got.ManagedFields != nil {
			t.Errorf("of a policy: %+v", got.ObjectMeta)
		}
		large := strings.Repeat("y", document.MaxDocumentBytes+1)
		if got := slim(of(annotations.KindPlan, large)); got.Data[annotations.KindPlan+".yaml"] != strings.Repeat("x", len(large)) {
			t.Error("a plan beyond its size keeps its text")
		}
		for over, emptied := range []bool{false, true} {
			gate := of(annotations.KindGate, "")
			gate.Data["r"] = ""
			gate.Data["r"] = strings.Repeat("y", document.MaxDocumentBytes-annotations.SizeOf(gate)+over)
			if got := slim(gate); annotations.IsEmptied(got) != emptied {
				t.Errorf("a record of gates of %d bytes over: emptied %t", over, !emptied)
			}
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{foreign: "x"}}}
		if got, err := a.slimDocument(node); got != node || err != nil || len(node.Annotations) != 1 {
			t.Errorf("of what is no document: %v (%v)", got, err)
		}
	})
}

// The texts of a plan are in memory once, however often its status is written.
func TestThePlanBeforeLendsItsTexts(t *testing.T) {
	play(t, func(w *world) {
		a := w.built()
		planOf := func(text, status string) *corev1.ConfigMap {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "orders", Labels: map[string]string{annotations.LabelKind: annotations.KindPlan}, Annotations: map[string]string{annotations.Pause: "true", annotations.StatusConditions: status}},
				Data:       map[string]string{annotations.DataPlan: text},
			}
		}
		text := func(s string) string { return strings.Clone(s) }
		kept, _ := a.slimDocument(planOf(text("steps: []"), "one"))
		was := kept.(*corev1.ConfigMap)
		w.holds(a, was)
		kept, _ = a.slimDocument(planOf(text("steps: []"), "two"))
		is := kept.(*corev1.ConfigMap)
		if reflect.ValueOf(is.Data).Pointer() != reflect.ValueOf(was.Data).Pointer() || reflect.ValueOf(is.Labels).Pointer() != reflect.ValueOf(was.Labels).Pointer() {
			t.Error("what is the same is there twice")
		}
		if diff := cmp.Diff(map[string]string{annotations.Pause: "true", annotations.StatusConditions: "two"}, is.Annotations); diff != "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
		kept, _ = a.slimDocument(planOf(text("steps: [x]"), "two"))
		if got := kept.(*corev1.ConfigMap).Data[annotations.DataPlan]; got != "steps: [x]" {
			t.Errorf("a new text is %q", got)
		}
	})
	old, new := map[string]string{"a": "same", "b": "old"}, map[string]string{"a": strings.Clone("same"), "b": "new", "c": ""}
	got := shared(old, new)
	if diff := cmp.Diff(map[string]string{"a": "same", "b": "new", "c": ""}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if unsafe.StringData(got["a"]) != unsafe.StringData(old["a"]) {
		t.Error("a text that is the same is there twice")
	}
}

// Which caches an agent fills: with Roles alone it may not list what is of no namespace.
func TestWhatAnAgentOfOneNamespaceDoesNotWatch(t *testing.T) {
	play(t, func(w *world) {
		all, one := w.built(), w.built(func(o *Options) { o.WatchNamespace = shop })
		if len(all.watched()) != 7 || !slices.Contains(all.watched(), all.caches.nodes) || !slices.Contains(all.watched(), all.caches.namespaces) {
			t.Errorf("of all namespaces %d caches are filled", len(all.watched()))
		}
		if len(one.watched()) != 5 || slices.Contains(one.watched(), one.caches.nodes) || slices.Contains(one.watched(), one.caches.namespaces) {
			t.Errorf("of one namespace %d caches are filled", len(one.watched()))
		}
		if all.controllers.freezes.Scope.Scoped || !one.controllers.freezes.Scope.Scoped {
			t.Error("namespaces are labelled by who may not, or are not by who may")
		}
		if all.caches.ended.From.Labels != keptLabels() || all.caches.namespaces.From.Labels != [2]string{} {
			t.Errorf("kept are the labels %q and %q", all.caches.ended.From.Labels, all.caches.namespaces.From.Labels)
		}
	})
}

// A namespace that is paused, or goes, has what is in it looked at again, once.
func TestWhatANamespaceHasLookedAtAgain(t *testing.T) {
	namespace := func(name string, edit func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
		m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
		edit(m)
		return m
	}
	paused := func(m *metav1.PartialObjectMetadata) {
		m.Annotations = map[string]string{annotations.Pause: "true"}
	}
	as := func(*metav1.PartialObjectMetadata) {}
	for _, c := range []struct {
		name        string
		was, is     *metav1.PartialObjectMetadata
		plans, runs []string
	}{
		{"it is paused", namespace(shop, as), namespace(shop, paused), []string{"shop/orders"}, []string{"shop/run-a"}},
		{"it is paused when it is first seen", nil, namespace(shop, paused), []string{"shop/orders"}, []string{"shop/run-a"}},
		{"it is not paused any more", namespace(shop, paused), namespace(shop, as), []string{"shop/orders"}, []string{"shop/run-a"}},
		{"it is being deleted", namespace(shop, as), namespace(shop, func(m *metav1.PartialObjectMetadata) { m.DeletionTimestamp = new(metav1.Now()) }), []string{"shop/orders"}, []string{"shop/run-a"}},
		{"it is as nobody has to know", nil, namespace(shop, as), []string{}, []string{}},
		{"it is as it was", namespace(shop, paused), namespace(shop, paused), []string{}, []string{}},
		{"a note on it changes", namespace(shop, as), namespace(shop, func(m *metav1.PartialObjectMetadata) { m.Annotations = map[string]string{"example.org/note": "x"} }), []string{}, []string{}},
		{"it is the agent's: that is the whole cluster", namespace(home, as), namespace(home, paused), []string{"mall/orders", "shop/orders"}, []string{"mall/run-b", "shop/run-a"}},
		{"change is not permitted in it", namespace(shop, as), namespace(shop, func(m *metav1.PartialObjectMetadata) {
			m.Annotations = map[string]string{annotations.ChangeStrategy: "Restrictive"}
		}), []string{"shop"}, []string{"shop/run-a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(w *world) {
				a := w.withKey(w.built())
				w.holds(a, w.document(shop, "orders", "Plan", annotations.KindPlan, hook), w.document("mall", "orders", "Plan", annotations.KindPlan, hook))
				w.lives(a, shop, "run-a", nil)
				w.lives(a, "mall", "run-b", nil)
				if c.was != nil {
					a.observeNamespace(c.was)
					w.queued(a.queues.plans)
					w.queued(a.queues.runs)
				}
				a.observeNamespace(c.is)
				if diff := cmp.Diff(c.plans, w.queued(a.queues.plans)); diff != "" {
					t.Errorf("documents (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(c.runs, w.queued(a.queues.runs)); diff != "" {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A gate that changes has those plans looked at again that may have to do with gates.
func TestWhatAGateHasLookedAtAgain(t *testing.T) {
	play(t, func(w *world) {
		a := w.withKey(w.built())
		plain := func(name string) *corev1.ConfigMap {
			cm := w.document(shop, name, "Plan", annotations.KindPlan, hook)
			a.memory.plans.Of(cm)
			return cm
		}
		stanza := plain("stanza")
		stanza.Annotations = map[string]string{annotations.ChangeStrategy: "Restrictive"}
		policed := w.document(shop, "policed", "Plan", annotations.KindPlan, "policies: [{name: nights}]\n"+hook)
		a.memory.plans.Of(policed)
		kept := plain("kept")
		a.memory.plans.Memory(key("kept")).Gate.Gate = &schedule.Gate{}
		mall := w.document("mall", "orders", "Plan", annotations.KindPlan, hook)
		a.memory.plans.Of(mall)
		w.holds(a, plain("plain"), stanza, policed, kept, mall,
			w.document(shop, "unknown", "Plan", annotations.KindPlan, hook), w.document(shop, "nights", "Policy", annotations.KindPolicy, "windows: []"), w.document(shop, "sleep", "HibernatePlan", annotations.KindHibernatePlan, "x: y"), w.document(shop, "steps", "StepTemplate", annotations.KindStepTemplate, hook))
		a.reconcileGated("mall")
		if got := append(w.queued(a.queues.plans), w.queued(a.controllers.hibernation.Queue)...); len(got) > 0 {
			t.Errorf("what another tenant edits has %q looked at", got)
		}
		a.reconcileGated(shop)
		if diff := cmp.Diff([]string{"shop/kept", "shop/nights", "shop/policed", "shop/stanza", "shop/unknown"}, w.queued(a.queues.plans)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"shop/sleep"}, w.queued(a.controllers.hibernation.Queue)); diff != "" {
			t.Errorf("plans of hibernation (-want +got):\n%s", diff)
		}
		a.observeNamespace(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "mall", Annotations: map[string]string{annotations.ChangeStrategy: "Restrictive"}}})
		w.queued(a.queues.plans)
		a.reconcileGated(home)
		if got := w.queued(a.queues.plans); !slices.Contains(got, "mall/orders") || slices.Contains(got, "shop/plain") {
			t.Errorf("with a stanza on a namespace: %q", got)
		}
	})
}

// Which queue hears of a document, and what else is looked at with it.
func TestWhoHearsOfADocument(t *testing.T) {
	for _, c := range []struct {
		name, namespace, document, kind, label, spec string
		plans, sleeps                                []string
	}{
		{"a plan", shop, "p", "Plan", annotations.KindPlan, hook, []string{"shop/p"}, []string{}},
		{"a plan of hibernation", shop, "p", "HibernatePlan", annotations.KindHibernatePlan, "x: y", []string{}, []string{"shop/p"}},
		{"a configuration that says when to tell of runs", home, annotations.AgentConfigName, "AgentConfig", annotations.KindAgentConfig, "notifications: {before: 1h}", []string{home + "/" + annotations.AgentConfigName, "shop/orders"}, []string{"shop/sleep"}},
		{"a configuration that denies steps", home, annotations.AgentConfigName, "AgentConfig", annotations.KindAgentConfig, "steps: [{namespaces: ['*'], deny: [webhook]}]", []string{home + "/" + annotations.AgentConfigName, "shop/orders"}, []string{"shop/sleep"}},
		{"a configuration that does not", home, annotations.AgentConfigName, "AgentConfig", annotations.KindAgentConfig, "logLevel: info", []string{home + "/" + annotations.AgentConfigName}, []string{}},
		{"a configuration that demands windows", home, annotations.AgentConfigName, "AgentConfig", annotations.KindAgentConfig, "minimumWindow: {hours: 8, per: 30d}", []string{home + "/" + annotations.AgentConfigName, "shop/orders"}, []string{"shop/sleep"}},
		{"a configuration that is not the agent's", shop, annotations.AgentConfigName, "AgentConfig", annotations.KindAgentConfig, "notifications: {before: 1h}", []string{shop + "/" + annotations.AgentConfigName}, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(w *world) {
				a := w.withKey(w.built())
				w.holds(a, w.document(shop, "orders", "Plan", annotations.KindPlan, hook), w.document(shop, "sleep", "HibernatePlan", annotations.KindHibernatePlan, "x: y"), w.document(shop, "nightly", "Calendar", annotations.KindCalendar, "x: y"))
				cm := w.document(c.namespace, c.document, c.kind, c.label, c.spec)
				a.observeDocument(cm)
				if diff := cmp.Diff(c.plans, w.queued(a.queues.plans)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(c.sleeps, w.queued(a.controllers.hibernation.Queue)); diff != "" {
					t.Errorf("hibernation (-want +got):\n%s", diff)
				}
				a.observeDocument(cm) // as it was: others have nothing to do with it
				if got := len(w.queued(a.queues.plans)); got > 1 {
					t.Errorf("heard of once more %d are looked at", got)
				}
			})
		})
	}
}
