package store

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

const planText = "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: hold, type: suspend}\n"

func documentOf(kind, namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{annotations.LabelKind: kind}}, Data: map[string]string{annotations.DataPlan: planText}}
}

// world is what an agent sees of a cluster by its watches.
type world struct {
	*testing.T
	cluster *agenttest.Cluster
	docs    *Documents
	backlog int
}

func inWorld(t *testing.T, story func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, cluster: agenttest.New(t)}
		w.cluster.Put(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "maint-system"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "stage"}},
			documentOf(annotations.KindPlan, "shop", "nightly"), documentOf(annotations.KindPolicy, "shop", "hours"), documentOf(annotations.KindPolicy, "stage", "hours"),
		)
		conn, _ := w.cluster.Connect()
		maps := agenttest.ConfigMaps(conn, annotations.LabelKind, Strip)
		namespaces := agenttest.Metadata(conn, "namespaces", Strip)
		w.docs = NewDocuments(maps, namespaces, FreshConfig{
			Kube: conn.Kube, Meta: conn.Meta, Namespace: "maint-system", Now: time.Now, Backlog: func() int { return w.backlog }, Plans: func() int { return 1 },
		})
		maps.Handle(func(any) {}, func(o any) {
			cm := o.(*corev1.ConfigMap)
			w.docs.Forget(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
		})
		namespaces.Handle(func(any) {}, func(any) {})
		go maps.Informer.RunWithContext(t.Context())
		go namespaces.Informer.RunWithContext(t.Context())
		w.after(time.Second)
		story(w)
	})
}

func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) sure(on Basis) bool {
	w.Helper()
	sure, err := w.docs.Confirm(w.Context(), pk(), on)
	if err != nil {
		w.Fatal(err)
	}
	return sure
}

// What was decided is begun only on what stands in the cluster, and not on what a watch
// that hangs has shown.
func TestADecisionIsMadeAnewWhereWhatItWasMadeOnHasChanged(t *testing.T) {
	for name, c := range map[string]struct {
		changes func(w *world)
		hangs   bool // the watches
		sure    bool
		gone    bool // the plan
	}{
		"nothing changed":                                               {changes: func(*world) {}, sure: true},
		"nothing changed, and the watches hang":                         {changes: func(*world) {}, hangs: true, sure: true},
		"the plan was paused":                                           {changes: func(w *world) { w.cluster.Annotate("shop", "nightly", annotations.Pause, "true") }},
		"the plan was paused, and the watch hangs":                      {changes: func(w *world) { w.cluster.Annotate("shop", "nightly", annotations.Pause, "true") }, hangs: true},
		"the plan was deleted, and the watch hangs":                     {changes: func(w *world) { w.cluster.Delete("configmaps", "shop", "nightly") }, hangs: true, gone: true},
		"a policy was edited":                                           {changes: func(w *world) { w.cluster.Annotate("shop", "hours", annotations.Pause, "true") }},
		"a policy was edited, and the watch hangs":                      {changes: func(w *world) { w.cluster.Annotate("shop", "hours", annotations.Pause, "true") }, hangs: true},
		"a policy was deleted, and the watch hangs":                     {changes: func(w *world) { w.cluster.Delete("configmaps", "shop", "hours") }, hangs: true},
		"a policy was made, and the watch hangs":                        {changes: func(w *world) { w.cluster.Put(documentOf(annotations.KindPolicy, "shop", "more")) }, hangs: true},
		"the namespace was paused, and the watch hangs":                 {changes: func(w *world) { w.paused("shop") }, hangs: true},
		"a policy for all was made, and the watch hangs":                {changes: func(w *world) { w.cluster.Put(documentOf(annotations.KindPolicy, "maint-system", "all")) }, hangs: true},
		"a template for all was made":                                   {changes: func(w *world) { w.cluster.Put(documentOf(annotations.KindStepTemplate, "maint-system", "all")) }},
		"a policy became a plan":                                        {changes: func(w *world) { w.cluster.Put(documentOf(annotations.KindPlan, "shop", "hours")) }},
		"a policy of another namespace was made":                        {changes: func(w *world) { w.cluster.Put(documentOf(annotations.KindPolicy, "stage", "more")) }, sure: true},
		"a policy of another namespace was made, and the watch hangs":   {changes: func(w *world) { w.cluster.Put(documentOf(annotations.KindPolicy, "stage", "more")) }, hangs: true, sure: true},
		"a policy of another namespace was edited, and the watch hangs": {changes: func(w *world) { w.cluster.Annotate("stage", "hours", annotations.Pause, "true") }, hangs: true, sure: true},
		"a policy of another namespace was deleted":                     {changes: func(w *world) { w.cluster.Delete("configmaps", "stage", "hours") }, sure: true},
		"another namespace was paused":                                  {changes: func(w *world) { w.paused("stage") }, sure: true},
		"another namespace was paused, and the watch hangs":             {changes: func(w *world) { w.paused("stage") }, hangs: true, sure: true},
	} {
		for what, backlog := range map[string]int{"": 0, ", and many wait": 100} {
			t.Run(name+what, func(t *testing.T) {
				inWorld(t, func(w *world) {
					w.backlog = backlog
					if c.hangs {
						w.cluster.StallWatches("configmaps")
						w.cluster.StallWatches("namespaces")
					}
					on := w.docs.Basis(pk())
					c.changes(w)
					if !c.hangs {
						synctest.Wait()
					}
					began := time.Now()
					if got := w.sure(on); got != c.sure {
						t.Errorf("sure: %t, want %t", got, c.sure)
					}
					if took := time.Since(began); took > 0 && c.sure {
						t.Errorf("it took %s, and nothing was to be waited for", took)
					}
					if gone := w.docs.Plan(pk()) == nil; gone != c.gone {
						t.Errorf("the plan is gone: %t, want %t", gone, c.gone)
					}
					w.after(time.Minute) // in which what hung is listed
					if !w.sure(w.docs.Basis(pk())) {
						t.Error("it is never sure again")
					}
				})
			})
		}
	}
}

// A HibernatePlan is confirmed as a plan is, with all that gates it. What agents say on other
// HibernatePlans, of which many fall asleep together, gates nothing. Nodes are gated by what stands in
// the agent's namespace alone.
func TestASleepBeginsOnWhatStandsInTheCluster(t *testing.T) {
	nights := types.NamespacedName{Namespace: "shop", Name: "nights"}
	for name, c := range map[string]struct {
		changes func(w *world)
		sure    bool
		plan    string // its strategy, as it is seen then
		nodes   bool   // what gates nodes is as it was
	}{
		"nothing changed": {changes: func(*world) {}, sure: true, nodes: true},
		"another one says something": {changes: func(w *world) {
			w.cluster.Annotate("shop", "others", annotations.StatusPhase, "Active")
			synctest.Wait()
		}, sure: true, nodes: true},
		"its own stanza changed":      {changes: func(w *world) { w.cluster.Annotate("shop", "nights", annotations.ChangeStrategy, "Restrictive") }, plan: "Restrictive", nodes: true},
		"a policy was edited":         {changes: func(w *world) { w.cluster.Annotate("shop", "hours", annotations.Pause, "true") }, nodes: true},
		"the namespace was paused":    {changes: func(w *world) { w.paused("shop") }, nodes: true},
		"a policy for all was made":   {changes: func(w *world) { w.cluster.Put(documentOf(annotations.KindPolicy, "maint-system", "all")) }},
		"the whole cluster is paused": {changes: func(w *world) { w.paused("maint-system") }},
	} {
		for what, hangs := range map[string]bool{"": false, ", and the watches hang": true} {
			t.Run(name+what, func(t *testing.T) {
				inWorld(t, func(w *world) {
					w.cluster.Put(documentOf(annotations.KindHibernatePlan, "shop", "nights"), documentOf(annotations.KindHibernatePlan, "shop", "others"))
					w.after(time.Second)
					if hangs {
						w.cluster.StallWatches("configmaps")
						w.cluster.StallWatches("namespaces")
					}
					on, gates := w.docs.Basis(nights), w.docs.GateCheck()
					c.changes(w)
					err := w.docs.ConfirmSoon(w.Context(), nights, on)
					if sure := err == nil; sure != c.sure || !sure && !errors.Is(err, queue.ErrConflict) {
						t.Errorf("sure: %t, want %t: %v", sure, c.sure, err)
					}
					if err := gates(w.Context()); (err == nil) != c.nodes {
						t.Errorf("of what gates nodes: %v", err)
					}
					if got := w.docs.HibernatePlan(nights).Annotations[annotations.ChangeStrategy]; got != c.plan {
						t.Errorf("its strategy is seen as %q, want %q", got, c.plan)
					}
				})
			})
		}
	}
}

// Who has other work does not wait for a cluster that does not answer.
func TestAnAnswerIsNotAwaitedForLong(t *testing.T) {
	inWorld(t, func(w *world) {
		w.cluster.Hold(agenttest.When{Verb: "list"}, agenttest.Always)
		began := time.Now()
		if err := w.docs.GateCheck()(w.Context()); err == nil || errors.Is(err, queue.ErrConflict) || time.Since(began) != confirmTimeout {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func (w *world) paused(namespace string) {
	w.cluster.Edit("namespaces", "", namespace, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{annotations.Pause: "true"}) })
}

// What was read live is seen before the watch shows it, and gives way to what is newer.
func TestAPlanIsSeenAsItWasReadLive(t *testing.T) {
	inWorld(t, func(w *world) {
		w.cluster.StallWatches("configmaps")
		w.cluster.Annotate("shop", "nightly", annotations.Pause, "true")
		if w.docs.Plan(pk()).Annotations[annotations.Pause] != "" {
			t.Fatal("the watch does not hang")
		}
		w.sure(w.docs.Basis(pk()))
		if w.docs.Plan(pk()).Annotations[annotations.Pause] != "true" {
			t.Error("what was read is not seen")
		}
		w.after(time.Minute)
		w.cluster.Annotate("shop", "nightly", annotations.Pause, "")
		w.after(time.Second)
		if w.docs.Plan(pk()).Annotations[annotations.Pause] != "" {
			t.Error("what was read hides what is newer")
		}
	})
}

// A look counts for a moment: what begins in that time asks no more.
func TestALiveLookCountsForAMoment(t *testing.T) {
	inWorld(t, func(w *world) {
		reads := func() int {
			return w.cluster.Asked(agenttest.When{Verb: "get", Resource: "configmaps", Name: "nightly"})
		}
		on := w.docs.Basis(pk())
		for range 5 {
			w.sure(on)
		}
		if reads() != 1 {
			t.Errorf("read %d times at once", reads())
		}
		w.after(freshTTL)
		w.sure(on)
		if reads() != 2 {
			t.Errorf("read %d times in all", reads())
		}
	})
}

func TestWithoutAnAnswerNothingIsSure(t *testing.T) {
	for name, when := range map[string]agenttest.When{
		"of the plan": {Verb: "get", Resource: "configmaps"}, "of policies": {Verb: "list", Resource: "configmaps"}, "of namespaces": {Verb: "list", Resource: "namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				mend := w.cluster.Refuse(when, agenttest.Always, 500, "no")
				on := w.docs.Basis(pk())
				ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
				defer cancel()
				if sure, err := w.docs.Confirm(ctx, pk(), on); err == nil || sure {
					t.Errorf("sure: %t, %v", sure, err)
				}
				mend()
			})
		})
	}
}

func TestWhatDocumentsThereAre(t *testing.T) {
	inWorld(t, func(w *world) {
		template := func(namespace string) *corev1.ConfigMap {
			cm := documentOf(annotations.KindStepTemplate, namespace, "call")
			cm.Data = map[string]string{annotations.DataTemplate: "apiVersion: maint.dev/v1alpha1\nkind: StepTemplate\nspec:\n  description: of " + namespace + "\n  steps:\n  - {name: hold, type: suspend}\n"}
			return cm
		}
		if w.docs.Template("shop", "call") != nil {
			t.Error("a template that is not there")
		}
		w.cluster.Put(template("maint-system"))
		w.after(time.Second)
		if got := w.docs.Template("shop", "call"); got == nil || len(got.Faults) > 0 {
			t.Errorf("the admin's template is %+v", got)
		}
		w.cluster.Put(template("shop"))
		w.after(time.Second)
		if got := w.docs.Template("shop", "call"); got == nil || got.Spec.Description != "of shop" {
			t.Errorf("the namespace's own template is %+v", got)
		}
		if len(w.docs.All()) != 5 || w.docs.Any(types.NamespacedName{Namespace: "shop", Name: "hours"}) == nil || w.docs.Any(types.NamespacedName{Namespace: "shop", Name: "none"}) != nil {
			t.Errorf("%d documents", len(w.docs.All()))
		}
		if w.docs.Plan(types.NamespacedName{Namespace: "shop", Name: "hours"}) != nil {
			t.Error("a policy is taken for a plan")
		}
	})
}

func TestPausesAndEndsOfNamespaces(t *testing.T) {
	inWorld(t, func(w *world) {
		holds := func() (n int) {
			for _, p := range w.docs.Pauses("shop") {
				if p.Holds(time.Now()) {
					n++
				}
			}
			return n
		}
		for i, name := range []string{"shop", "maint-system"} {
			w.cluster.Edit("namespaces", "", name, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{annotations.Pause: "true"}) })
			w.after(time.Second)
			if holds() != i+1 {
				t.Errorf("with %s paused %d hold", name, holds())
			}
		}
		if w.docs.Terminating("shop") || w.docs.Terminating("none") {
			t.Error("a namespace that lives is on its way out")
		}
		w.cluster.Edit("namespaces", "", "shop", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"kubernetes"}) })
		w.cluster.Delete("namespaces", "", "shop")
		w.after(time.Second)
		if !w.docs.Terminating("shop") {
			t.Error("it is not seen to go")
		}
	})
}
