package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// watchedKind installs a kind of the group watch.example.org.
func watchedKind(config *rest.Config, kind, scope string) error {
	plural := strings.ToLower(kind) + "s"
	return harness.Apply(context.Background(), config, "", []byte(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.watch.example.org}
spec:
  group: watch.example.org
  scope: %[3]s
  names: {plural: %[1]s, singular: %[4]s, kind: %[2]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    subresources: {status: {}}
`, plural, kind, scope, strings.ToLower(kind))), nil)
}

// watchedKinds are installed once in the shared cluster.
var watchedKinds sync.Once

// apps is a lab with objects to watch.
type apps struct {
	*lab
	dyn    dynamic.Interface
	config *rest.Config
}

func newApps(t *testing.T) *apps {
	t.Helper()
	l := newLab(t)
	a := &apps{lab: l, config: world.cluster.AdminConfig()}
	watchedKinds.Do(func() {
		l.must(watchedKind(a.config, "App", "Namespaced"))
		l.must(watchedKind(a.config, "Zone", "Cluster"))
	})
	a.connect()
	l.runner(appRights(), deploymentRights(), rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"get", "patch"}})
	return a
}

func (a *apps) connect() {
	a.Helper()
	dyn, err := dynamic.NewForConfig(a.config)
	a.must(err)
	a.dyn = dyn
	a.eventually("the kind is served", func() (bool, string) {
		_, err := a.of("App").List(a.ctx, metav1.ListOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

func appRights() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"watch.example.org"}, Resources: []string{"apps"}, Verbs: []string{"get", "list", "watch", "patch", "create", "delete"}}
}

func (a *apps) of(kind string) dynamic.ResourceInterface {
	resource := a.dyn.Resource(schema.GroupVersionResource{Group: "watch.example.org", Version: "v1", Resource: strings.ToLower(kind) + "s"})
	if kind == "Zone" {
		return resource
	}
	return resource.Namespace(a.ns)
}

// make creates an object of a size.
func (a *apps) make(kind, name string, size int, labels ...string) {
	a.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "watch.example.org/v1", "kind": kind, "spec": map[string]any{"size": int64(size), "color": "red"}}}
	u.SetName(name)
	if len(labels) > 0 {
		u.SetLabels(map[string]string{"role": labels[0]})
	}
	_, err := a.of(kind).Create(a.ctx, u, metav1.CreateOptions{})
	a.must(err)
}

// change merges into an object.
func (a *apps) change(kind, name, patch string, subresource ...string) {
	a.Helper()
	_, err := a.of(kind).Patch(a.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "a-person"}, subresource...)
	a.must(err)
}

func (a *apps) resize(name string, size int) {
	a.Helper()
	a.change("App", name, fmt.Sprintf(`{"spec":{"size":%d}}`, size))
}

func (a *apps) remove(kind, name string) {
	a.Helper()
	a.must(a.of(kind).Delete(a.ctx, name, metav1.DeleteOptions{}))
}

// watching waits until the agent says that a plan watches so many objects.
func (a *apps) watching(name string, n int) {
	a.Helper()
	a.eventually(fmt.Sprintf("plan %s watches %d objects", name, n), func() (bool, string) {
		cm := a.seen(name)
		return cm.Annotations[annotations.StatusWatching] == fmt.Sprint(n) && strings.Contains(cm.Annotations[annotations.StatusConditions], `"type":"Ready","status":"True"`) && a.started(name), fmt.Sprint(cm.Annotations)
	})
}

// started says whether all rules of a plan have recorded what was there.
func (a *apps) started(name string) bool {
	a.Helper()
	cm := a.seen(name)
	spec, _ := annotations.Plan(cm)
	kept := a.ledger(cm)
	for _, w := range spec.Triggers.Watch {
		if !kept.Kept(plan.RuleID(w, spec.MirrorPrefix)) {
			return false
		}
	}
	return true
}

// told waits until a plan's webhook was sent so often, and compares what it said,
// each run once.
func (a *apps) told(path string, want ...string) {
	a.Helper()
	heard := func() []string {
		var out, keys []string
		for _, d := range a.hooks.Deliveries() {
			if d.Path == "/"+a.ns+"/"+path && !slices.Contains(keys, d.Key) {
				keys = append(keys, d.Key)
				var body struct{ Text string }
				a.must(json.Unmarshal([]byte(d.Body), &body))
				out = append(out, body.Text)
			}
		}
		return out
	}
	a.eventually(fmt.Sprintf("%s hears %v", path, want), func() (bool, string) {
		return len(heard()) >= len(want), fmt.Sprint(heard())
	})
	if got := heard(); !slices.Equal(got, want) {
		a.Errorf("%s heard %v, want %v", path, got, want)
	}
}

// telling is a plan with a rule whose runs say what they saw.
func telling(path, rule string) string {
	return `
triggers: {watch: [` + rule + `]}
successfulRunsHistoryLimit: 20
steps:
- {name: tell, type: webhook, properties: {url: "HOOK/` + path + `", body: {text: "${watched.metadata.name} ${string(watched.?spec.size.orValue(0))}"}}}
`
}

const anyApp = `{apiVersion: watch.example.org/v1, kind: App}`

func TestWatchCreateUpdateAndDeleteRunOnce(t *testing.T) {
	a := newApps(t)
	a.make("App", "old", 1)
	a.plan("all", telling("all", anyApp))
	a.watching("all", 1)
	a.make("App", "new", 2)
	a.told("all", "new 2")
	a.resize("old", 3)
	a.told("all", "new 2", "old 3")
	a.change("App", "old", `{"status":{"ready":true}}`, "status")
	a.change("App", "old", `{"metadata":{"annotations":{"status.maint.dev/x":"y"}}}`)
	a.remove("App", "new")
	a.told("all", "new 2", "old 3", "new 2")
	for _, r := range a.ended("all", 3) {
		if r.journal.Phase != run.Succeeded || !strings.HasPrefix(r.run.Request.Why(), "watch:App/") || r.run.Request.Body != nil {
			t.Errorf("%s: %s %s", r.run.Request.Why(), r.journal.Phase, r.journal.Message)
		}
		if meta, _ := r.run.Watched["metadata"].(map[string]any); meta["uid"] != r.run.Request.UID || meta["managedFields"] != nil {
			t.Errorf("the run was handed %v", r.run.Watched)
		}
	}
	a.watching("all", 1)
}

func TestWatchFieldsEventsAndCondition(t *testing.T) {
	a := newApps(t)
	a.make("App", "a", 5)
	a.plan("sizes", telling("sizes", `{apiVersion: watch.example.org/v1, kind: App, fields: [spec.size]}`))
	a.plan("grown", telling("grown", `{apiVersion: watch.example.org/v1, kind: App, events: [update], when: object.spec.size > oldObject.spec.size}`))
	a.plan("born", telling("born", `{apiVersion: watch.example.org/v1, kind: App, events: [create], when: oldObject == null && object.spec.size > 1}`))
	a.plan("gone", telling("gone", `{apiVersion: watch.example.org/v1, kind: App, events: [delete]}`))
	for _, name := range []string{"sizes", "grown", "born", "gone"} {
		a.watching(name, 1)
	}
	a.change("App", "a", `{"spec":{"color":"blue"}}`)
	a.resize("a", 4)
	a.told("sizes", "a 4")
	a.resize("a", 6)
	a.told("sizes", "a 4", "a 6")
	a.told("grown", "a 6")
	a.make("App", "small", 1)
	a.make("App", "large", 2)
	a.told("born", "large 2")
	a.remove("App", "small")
	a.told("gone", "small 1")
	a.resize("a", 7)
	a.told("grown", "a 6", "a 7")
}

func TestWatchAClusterScopedKindAndOtherNamespaces(t *testing.T) {
	a := newApps(t)
	zone, other := "zone-"+a.ns, a.beside()
	_, err := a.admin.RbacV1().ClusterRoles().Create(a.ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: a.ns}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"watch.example.org"}, Resources: []string{"apps", "zones"}, Verbs: []string{"list", "watch"}},
	}}, metav1.CreateOptions{})
	a.must(err)
	_, err = a.admin.RbacV1().ClusterRoleBindings().Create(a.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: a.ns}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: a.ns},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "maint-runner", Namespace: a.ns}},
	}, metav1.CreateOptions{})
	a.must(err)
	only := `when: "object.metadata.name == '` + zone + `'"`
	a.plan("zones", telling("zones", `{apiVersion: watch.example.org/v1, kind: Zone, `+only+`}`))
	// The selector keeps what the stories beside this one make out of it.
	a.plan("everywhere", telling("everywhere", `{apiVersion: watch.example.org/v1, kind: App, namespace: "*", selector: {matchLabels: {role: `+zone+`}}, `+only+`}`))
	a.plan("beside", telling("beside", `{apiVersion: watch.example.org/v1, kind: App, namespace: `+other.ns+`}`))
	a.eventually("all have started", func() (bool, string) {
		return a.started("zones") && a.started("everywhere") && a.started("beside"), ""
	})
	a.make("Zone", zone, 1)
	a.told("zones", zone+" 1")
	(&apps{lab: other, dyn: a.dyn}).make("App", zone, 2, zone)
	a.told("everywhere", zone+" 2")
	a.told("beside", zone+" 2")
	a.remove("Zone", zone)
	a.told("zones", zone+" 1", zone+" 1")
}

func TestWatchWhatLeavesTheSelectionIsNoDelete(t *testing.T) {
	a := newApps(t)
	a.make("App", "inside", 1, "db")
	a.make("App", "outside", 1, "web")
	a.plan("db", telling("db", `{apiVersion: watch.example.org/v1, kind: App, selector: {matchLabels: {role: db}}}`))
	a.watching("db", 1)
	a.change("App", "inside", `{"metadata":{"labels":{"role":"web"}}}`)
	a.watching("db", 0)
	a.resize("inside", 2)
	a.change("App", "outside", `{"metadata":{"labels":{"role":"db"}}}`)
	a.told("db", "outside 1")
	a.change("App", "inside", `{"metadata":{"labels":{"role":"db"}}}`)
	a.told("db", "outside 1", "inside 2")
	a.remove("App", "outside")
	a.told("db", "outside 1", "inside 2", "outside 1")
	cm := a.seen("db")
	text := strings.ReplaceAll(cm.Data[annotations.DataPlan], "role: db", "role: web")
	_, err := a.admin.CoreV1().ConfigMaps(a.ns).Patch(a.ctx, "db", types.MergePatchType, []byte(fmt.Sprintf(`{"data":{"plan.yaml":%q}}`, text)), metav1.PatchOptions{})
	a.must(err)
	a.watching("db", 0)
	a.make("App", "page", 4, "web")
	a.told("db", "outside 1", "inside 2", "outside 1", "page 4")
	if kept := a.ledger(a.seen("db")); len(kept.Rules) != 1 {
		t.Errorf("the ledger knows the rules %v", kept.Rules)
	}
}

// The runs write on what they watch in every way that there is.
func TestWatchARunDoesNotTriggerItself(t *testing.T) {
	a := newApps(t)
	a.make("App", "a", 1)
	a.plan("own", `
triggers: {watch: [`+anyApp+`]}
steps:
- {name: patch, type: patch-object, properties: {resource: {apiVersion: watch.example.org/v1, kind: App, name: "${watched.metadata.name}"}, patchType: merge, patch: {spec: {handled: "${run.name}"}}}}
- {name: mark, type: label, properties: {operation: add, labels: {by: run}, restoreAfter: true, object: {apiVersion: watch.example.org/v1, kind: App, name: "${watched.metadata.name}"}}}
- {name: tell, type: webhook, properties: {url: "HOOK/own", body: {text: "${watched.metadata.name} ${string(watched.spec.size)}"}}}
`)
	a.watching("own", 1)
	a.resize("a", 2)
	a.told("own", "a 2")
	a.make("App", "b", 3)
	a.told("own", "a 2", "b 3")
	a.resize("b", 4)
	a.told("own", "a 2", "b 3", "b 4")
	a.deployment("web", 1)
	a.plan("scaled", `
triggers: {watch: [{apiVersion: apps/v1, kind: Deployment, fields: [spec.replicas], events: [update]}]}
steps:
- {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: "${watched.metadata.name}"}, replicas: 0}}
- {name: tell, type: webhook, properties: {url: "HOOK/scaled", body: {text: "${watched.metadata.name} ${string(watched.spec.replicas)}"}}}
`)
	a.watching("scaled", 1)
	for n, want := range [][]string{{"web 2"}, {"web 2", "web 3"}} {
		_, err := a.admin.AppsV1().Deployments(a.ns).Patch(a.ctx, "web", types.MergePatchType, []byte(fmt.Sprintf(`{"spec":{"replicas":%d}}`, n+2)), metav1.PatchOptions{})
		a.must(err)
		a.told("scaled", want...)
		a.ended("scaled", n+1)
	}
}

func TestWatchWithoutTheRightIsSaidAndWorksOnceGranted(t *testing.T) {
	a := newApps(t)
	weak := &apps{lab: a.beside(), dyn: a.dyn}
	weak.runner()
	weak.make("App", "a", 1)
	weak.plan("weak", telling("weak", anyApp))
	weak.eventually("the missing right is said", func() (bool, string) {
		cm := weak.seen("weak")
		text := cm.Annotations[annotations.StatusConditions]
		return strings.Contains(text, "may not list and watch apps.watch.example.org") && strings.Contains(text, `"type":"Ready","status":"False"`), text
	})
	weak.trigger("weak", "other-triggers-go-on")
	weak.ended("weak", 1)
	role, err := a.admin.RbacV1().Roles(weak.ns).Get(a.ctx, "maint-runner", metav1.GetOptions{})
	a.must(err)
	role.Rules = append(role.Rules, appRights())
	_, err = a.admin.RbacV1().Roles(weak.ns).Update(a.ctx, role, metav1.UpdateOptions{})
	a.must(err)
	weak.watching("weak", 1)
	weak.resize("a", 2)
	weak.told("weak", "a 2")
}

func TestWatchAKindThatComesLater(t *testing.T) {
	a := newApps(t)
	_, err := a.admin.RbacV1().Roles(a.ns).Patch(a.ctx, "maint-runner", types.JSONPatchType, []byte(`[{"op":"replace","path":"/rules/0/resources","value":["apps","laters"]}]`), metav1.PatchOptions{})
	a.must(err)
	a.plan("later", telling("later", `{apiVersion: watch.example.org/v1, kind: Later}`))
	a.eventually("the missing kind is said", func() (bool, string) {
		text := a.seen("later").Annotations[annotations.StatusConditions]
		return strings.Contains(text, "kind Later of watch.example.org/v1 is not known"), text
	})
	a.must(watchedKind(a.config, "Later", "Namespaced"))
	a.watching("later", 0)
	a.make("Later", "x", 3)
	a.told("later", "x 3")
}

func TestWatchAPauseHoldsTheNewestState(t *testing.T) {
	a := newApps(t)
	a.make("App", "a", 1)
	a.plan("paused", telling("paused", anyApp))
	a.watching("paused", 1)
	a.annotate("paused", map[string]string{annotations.Pause: "true"})
	a.eventually("it is paused", func() (bool, string) {
		phase := a.seen("paused").Annotations[annotations.StatusPhase]
		return phase == string(trigger.PhasePaused), phase
	})
	a.resize("a", 2)
	a.make("App", "b", 1)
	a.watching("paused", 2)
	a.resize("a", 3)
	a.eventually("nothing runs", func() (bool, string) { return len(a.runs("paused")) == 0, "" })
	a.annotate("paused", map[string]string{annotations.Pause: ""})
	a.told("paused", "a 3", "b 1")
}

func TestWatchASecretIsHandedOnWithoutItsData(t *testing.T) {
	a := newApps(t)
	_, err := a.admin.RbacV1().Roles(a.ns).Patch(a.ctx, "maint-runner", types.JSONPatchType, []byte(`[{"op":"replace","path":"/rules/0","value":{"apiGroups":[""],"resources":["secrets"],"verbs":["list","watch"]}}]`), metav1.PatchOptions{})
	a.must(err)
	a.plan("secret", telling("secret", `{apiVersion: v1, kind: Secret, events: [create, update, delete], when: "has(object.data) || !has(object.spec)"}`))
	a.watching("secret", 0)
	a.must(harness.Apply(a.ctx, a.config, a.ns, []byte(`{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: hidden-treasure}}`), nil))
	a.told("secret", "s 0")
	a.must(a.admin.CoreV1().Secrets(a.ns).Delete(a.ctx, "s", metav1.DeleteOptions{}))
	a.told("secret", "s 0", "s 0")
	maps, err := a.admin.CoreV1().ConfigMaps(a.ns).List(a.ctx, metav1.ListOptions{})
	a.must(err)
	for _, cm := range maps.Items {
		if text := fmt.Sprint(cm.Data); strings.Contains(text, "hidden-treasure") || strings.Contains(text, "aGlkZGVuLXRyZWFzdXJl") {
			t.Errorf("%s holds the secret", cm.Name)
		}
	}
}

// A rule that would keep more than a plan may is closed, and its plan says so; the
// plan beside it, which listens to the same watch, goes on. Edited, it is tried again.
func TestWatchWhatIsTooMuchIsSaidAndHarmsNobodyElse(t *testing.T) {
	a := newApps(t)
	a.make("App", "a", 1)
	large := 0
	for ; large*(1<<20) <= plan.MaxWatchedBytes; large++ {
		a.make("App", fmt.Sprintf("large-%d", large), 1)
		a.change("App", fmt.Sprintf("large-%d", large), `{"spec":{"pad":"`+strings.Repeat("x", 1<<20)+`"}}`)
	}
	a.plan("beside", telling("beside", `{apiVersion: watch.example.org/v1, kind: App, events: [update]}`))
	a.watching("beside", large+1)
	a.plan("greedy", telling("greedy", `{apiVersion: watch.example.org/v1, kind: App, when: object.spec.size > 1}`))
	a.plan("late", telling("late", `{apiVersion: watch.example.org/v1, kind: App, events: [update], when: object.spec.size > 1}`))
	a.watching("late", large+1)
	a.eventually("the limit is said", func() (bool, string) {
		text := a.seen("greedy").Annotations[annotations.StatusConditions]
		return strings.Contains(text, "the watch of App keeps more of its objects") && strings.Contains(text, "16 MiB") && strings.Contains(text, "narrow its selector") && strings.Contains(text, `"type":"Ready","status":"False"`), text
	})
	a.trigger("greedy", "other-triggers-go-on")
	a.ended("greedy", 1)
	a.resize("a", 2)
	a.told("beside", "a 2")
	a.told("late", "a 2")
	for i := range large {
		a.remove("App", fmt.Sprintf("large-%d", i))
	}
	a.watching("beside", 1)
	if cm := a.seen("greedy"); a.started("greedy") || cm.Annotations[annotations.StatusWatching] != "0" {
		t.Errorf("it watches again without an edit: %v", cm.Annotations)
	}
	text := strings.ReplaceAll(a.seen("greedy").Data[annotations.DataPlan], "HistoryLimit: 20", "HistoryLimit: 19")
	_, err := a.admin.CoreV1().ConfigMaps(a.ns).Patch(a.ctx, "greedy", types.MergePatchType, []byte(fmt.Sprintf(`{"data":{"plan.yaml":%q}}`, text)), metav1.PatchOptions{})
	a.must(err)
	a.watching("greedy", 1)
	a.resize("a", 3)
	a.told("greedy", "a 3")
	a.told("beside", "a 2", "a 3")
	a.told("late", "a 2", "a 3")
}

// watchCrashes is a cluster of its own, whose agent may be killed.
func watchCrashes(t *testing.T) (*crashes, func(ns string) *apps) {
	t.Helper()
	x := newCrashes(t)
	config := x.c.AdminConfig()
	if err := watchedKind(config, "App", "Namespaced"); err != nil {
		t.Fatal(err)
	}
	return x, func(ns string) *apps {
		t.Helper()
		a := &apps{lab: &lab{T: t, ctx: x.ctx, admin: x.admin, ns: ns, hooks: x.hooks}, config: config}
		x.namespace(ns)
		a.connect()
		a.runner(appRights())
		return a
	}
}

func (x *crashes) namespace(ns string) {
	x.t.Helper()
	err := harness.Apply(x.ctx, x.c.AdminConfig(), "", []byte(`{apiVersion: v1, kind: Namespace, metadata: {name: `+ns+`}}`), nil)
	if err != nil {
		x.t.Fatal(err)
	}
}

func TestWatchAnotherAgentGoesOnWhereTheOldOneWas(t *testing.T) {
	x, lab := watchCrashes(t)
	a := lab("restarts")
	first := x.agent()
	for i := range 5 {
		a.make("App", fmt.Sprintf("a-%d", i), i)
	}
	a.plan("all", telling("all", anyApp))
	a.watching("all", 5)
	a.resize("a-0", 10)
	a.told("all", "a-0 10")
	a.ended("all", 1)
	first.Kill()
	second := x.agent()
	a.resize("a-1", 11)
	a.told("all", "a-0 10", "a-1 11")
	a.ended("all", 2)
	second.Kill()
	a.resize("a-2", 12)
	a.resize("a-2", 13)
	a.make("App", "b", 1)
	a.remove("App", "a-3")
	third := x.agent()
	defer func() {
		third.Kill()
		if t.Failed() {
			t.Log(third.Log())
		}
	}()
	a.ended("all", 5)
	var got []string
	for _, r := range a.runs("all") {
		got = append(got, r.run.Request.Event+" "+r.run.Request.Name+" "+fmt.Sprint(r.run.Watched["spec"] != nil))
	}
	slices.Sort(got)
	if want := []string{"create b true", "delete a-3 false", "update a-0 true", "update a-1 true", "update a-2 true"}; !slices.Equal(got, want) {
		t.Errorf("ran %v, want %v", got, want)
	}
	a.watching("all", 5)
}

// A run that writes on what it watches is killed at each of its writes, before it
// reaches the API server, and after it, with the answer lost.
func TestWatchAKillAtEveryWriteRunsEachChangeOnce(t *testing.T) {
	x, lab := watchCrashes(t)
	points := 0
	for _, lost := range []bool{false, true} {
		for n := 1; ; n++ {
			a := lab(fmt.Sprintf("killed-%t-%d", lost, n))
			if !x.watchStory(a, lost, n) {
				break
			}
			points++
		}
	}
	if points < 12 {
		t.Errorf("only %d points were tried", points)
	}
	t.Logf("killed at %d points", points)
}

// watchStory plays a change once, and says whether the agent was killed.
func (x *crashes) watchStory(a *apps, lost bool, n int) bool {
	a.Helper()
	victim := x.agent()
	a.make("App", "a", 1)
	a.plan("own", `
triggers: {watch: [`+anyApp+`]}
successfulRunsHistoryLimit: 20
steps:
- {name: patch, type: patch-object, properties: {resource: {apiVersion: watch.example.org/v1, kind: App, name: "${watched.metadata.name}"}, patchType: merge, patch: {spec: {handled: "by ${run.name}"}}}}
`)
	a.watching("own", 1)
	var mu sync.Mutex
	seen, where := 0, ""
	killed := make(chan struct{})
	x.proxy.At(func(req *http.Request, answered bool) bool {
		ours := strings.Contains(req.URL.Path, "/namespaces/"+a.ns+"/") && !strings.Contains(req.URL.Path, "/events")
		if answered != lost || !ours {
			return true
		}
		mu.Lock()
		seen++
		hit := seen == n
		if hit {
			where = fmt.Sprintf("write %d (reply lost: %t): %s %s", n, lost, req.Method, req.URL.Path)
		}
		mu.Unlock()
		if hit {
			victim.Kill()
			close(killed)
		}
		return !hit
	})
	a.resize("a", 2)
	a.eventually("the run ends, or the agent", func() (bool, string) {
		select {
		case <-killed:
			return true, ""
		default:
		}
		runs := a.runs("own")
		return len(runs) == 1 && runs[0].journal.Phase.Ended() && a.seen("own").Annotations[annotations.StatusLastResult] == string(run.Succeeded), fmt.Sprint(len(runs))
	})
	x.proxy.At(nil)
	victim.Kill()
	heir := x.agent()
	defer heir.Kill()
	defer func() {
		if a.Failed() {
			a.Logf("killed at %s\n%s", where, a.traces(victim, heir))
		}
	}()
	a.make("App", "sentinel", 1) // whatever else asks for a run came before it
	a.endedAfter(where, "own", 2)
	a.remove("App", "sentinel")
	var got []string
	for _, r := range a.endedAfter(where, "own", 3) {
		got = append(got, r.run.Request.Event+" "+r.run.Request.Name)
	}
	slices.Sort(got)
	if want := []string{"create sentinel", "delete sentinel", "update a"}; !slices.Equal(got, want) {
		a.Errorf("killed at %s: ran %v, want %v", where, got, want)
	}
	u, err := a.of("App").Get(a.ctx, "a", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		a.Fatal(err)
	}
	if by, _, _ := unstructured.NestedString(u.Object, "spec", "handled"); !strings.HasPrefix(by, "by maint-run-own-") {
		a.Errorf("killed at %s: handled %q", where, by)
	}
	return where != ""
}

// endedAfter is ended for a plan whose agent was killed: what fails says where
// that was, and which runs there are.
func (a *apps) endedAfter(where, name string, n int) []runState {
	a.Helper()
	var out []runState
	a.eventually(fmt.Sprintf("killed at %s: %d run(s) of %s end", where, n, name), func() (bool, string) {
		out = a.runs(name)
		ended, said := 0, ""
		for _, r := range out {
			if r.journal.Phase.Ended() && len(r.object.Finalizers) == 0 {
				ended++
			}
			said += fmt.Sprintf("\n%s of %s: %s of App/%s, ordinal %d, %s", r.run.Name, r.object.CreationTimestamp.UTC().Format("15:04:05"), r.run.Request.Event, r.run.Request.Name, r.run.Request.Ordinal, r.journal.Phase)
		}
		return ended == n && len(out) == n, fmt.Sprintf("%d of %d have ended%s", ended, len(out), said)
	})
	return out
}

// traces are what the runs, the objects and two agents left behind.
func (a *apps) traces(agents ...*harness.Process) string {
	var b strings.Builder
	if list, err := a.of("App").List(context.Background(), metav1.ListOptions{}); err == nil {
		for _, u := range list.Items {
			text, _ := u.MarshalJSON()
			fmt.Fprintf(&b, "%s\n", text)
		}
	}
	if maps, err := a.admin.CoreV1().ConfigMaps(a.ns).List(context.Background(), metav1.ListOptions{}); err == nil {
		for _, cm := range maps.Items {
			fmt.Fprintf(&b, "%s: %v\n%s%s\n", cm.Name, cm.Annotations, cm.Data[annotations.DataJournal], cm.Data[annotations.DataLedger])
		}
	}
	for i, p := range agents {
		for _, line := range strings.Split(p.Log(), "\n") {
			if strings.Contains(line, a.ns) || strings.Contains(line, "panic") || strings.Contains(line, "level=ERROR") {
				fmt.Fprintf(&b, "agent %d: %s\n", i, line)
			}
		}
	}
	return b.String()
}

// Each of two plans writes what the other watches. They do not go on for ever at the
// pace of the agent, and say why they wait: an object has 30 runs in a row, and then one a
// minute.
func TestTwoPlansThatStartEachOtherComeToRest(t *testing.T) {
	a := newApps(t)
	a.make("App", "ping", 1, "ping")
	a.make("App", "pong", 1, "pong")
	for from, to := range map[string]string{"ping": "pong", "pong": "ping"} {
		a.plan(from, `
triggers: {watch: [{apiVersion: watch.example.org/v1, kind: App, selector: {matchLabels: {role: `+from+`}}, fields: [spec.color]}]}
steps: [{name: write, type: patch-object, properties: {resource: {apiVersion: watch.example.org/v1, kind: App, name: `+to+`}, patchType: merge, patch: {spec: {color: "${run.name}"}}}}]
`)
	}
	a.watching("ping", 1)
	a.watching("pong", 1)
	began, before := time.Now(), a.versions("ping", "pong")
	a.change("App", "ping", `{"spec":{"color":"blue"}}`)
	waits := func(name string) (bool, string) {
		text := a.seen(name).Annotations[annotations.StatusMessage]
		return strings.Contains(text, "changes again and again"), text
	}
	a.eventually("one of them waits, and says why", func() (bool, string) {
		one, text := waits("ping")
		other, more := waits("pong")
		return one || other, text + more
	})
	inARow := a.versions("ping", "pong") - before - 1 // each run wrote once, and the first change was ours
	if inARow < ledger.WatchBurst {
		a.Errorf("one of them waits after %d runs of both", inARow)
	}
	time.Sleep(10 * time.Second) // at the pace of the agent they would have dozens of runs more
	runs, earned := a.versions("ping", "pong")-before-1, int64(time.Since(began)/ledger.WatchPeriod)
	if most := 2 * (ledger.WatchBurst + earned + 1); runs > most {
		a.Errorf("%d runs of both after %s, at most %d", runs, time.Since(began).Round(time.Second), most)
	}
	if more := runs - inARow; more > 3 { // what one earned meanwhile, with the answer of the other
		a.Errorf("in the ten seconds after one of them waits they have %d runs more", more)
	}
}

// versions is how often the specs of Apps were written, all together.
func (a *apps) versions(names ...string) (sum int64) {
	a.Helper()
	for _, name := range names {
		u, err := a.of("App").Get(a.ctx, name, metav1.GetOptions{})
		a.must(err)
		sum += u.GetGeneration()
	}
	return sum
}
