package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// night is a cluster with workloads that sleep, and one call for them.
type night struct {
	*agenttest.Cluster
	*testing.T
	call executors.SleepCall
}

func newNight(t *testing.T, params hibernate.WorkloadParameters, objects ...string) *night {
	n := &night{Cluster: agenttest.New(t), T: t}
	n.Serve(
		agenttest.Kind{Group: "apps", Version: "v1", Kind: "StatefulSet", Resource: "statefulsets", Namespaced: true},
		agenttest.Kind{Group: "apps", Version: "v1", Kind: "ReplicaSet", Resource: "replicasets", Namespaced: true},
		agenttest.Kind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject", Resource: "scaledobjects", Namespaced: true},
		agenttest.Kind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler", Resource: "horizontalpodautoscalers", Namespaced: true},
		agenttest.Kind{Group: "example.org", Version: "v1", Kind: "Machine", Resource: "machines", Namespaced: true},
	)
	n.call = executors.SleepCall{
		Plan: executors.PlanRef{Name: "nights", Namespace: "shop", Account: "sleeper", Manager: "maint-plan-x"}, Params: &params, Operation: hibernate.Shutdown,
		Clients: n.Clients(),
	}
	for _, text := range objects {
		n.Put(agenttest.Object(t, text))
	}
	return n
}

// only is a target that sleeps workloads of these kinds.
func only(kinds ...string) hibernate.WorkloadParameters {
	var p hibernate.WorkloadParameters
	for _, k := range kinds {
		p.Kinds = append(p.Kinds, k)
	}
	return p
}

func (n *night) observe() []hibernate.Observation {
	n.Helper()
	seen, err := Sleeps{}.Observe(n.Context(), n.call)
	if err != nil {
		n.Fatal(err)
	}
	slices.SortFunc(seen, func(a, b hibernate.Observation) int { return strings.Compare(a.ID, b.ID) })
	return seen
}

// due is what was seen, each recorded as it was when it was first seen awake.
func (n *night) due() []hibernate.Due {
	n.Helper()
	return sleepertest.Due(&n.call, n.observe())
}

func (n *night) sleep() []executors.SleepResult {
	n.Helper()
	n.call.Operation = hibernate.Shutdown
	return Sleeps{}.Shutdown(n.Context(), n.call, n.due())
}

func (n *night) wake() []executors.SleepResult {
	n.Helper()
	n.call.Operation = hibernate.Wake
	return Sleeps{}.Wake(n.Context(), n.call, n.due())
}

// results are what came of each workload, in order.
func results(all []executors.SleepResult) []string {
	var out []string
	for _, r := range all {
		if r.Untouched && r.Err == nil { // it was not its turn
			continue
		}
		text := r.ID
		if r.Err != nil {
			text = "error: " + r.Err.Error()
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// spec is what stands in an object's spec.
func (n *night) spec(resource, name string) string {
	n.Helper()
	text, err := json.Marshal(n.Get(resource, "shop", name).Object["spec"])
	if err != nil {
		n.Fatal(err)
	}
	return string(text)
}

// deploymentOf is one of so many replicas, all of them Ready, and whatever else is said.
func deploymentOf(name string, replicas int, metadata string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: %s, uid: uid-%s, generation: 2%s}, spec: {replicas: %d}, status: {observedGeneration: 2, replicas: %d, readyReplicas: %d}}`, name, name, metadata, replicas, replicas, replicas)
}

// How a workload of a kind that scales is, by what it says and what it is said to be.
func TestHowAWorkloadThatScalesIs(t *testing.T) {
	const head = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web, generation: 2}, `
	const hpa = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: shop, name: scaler%s}, spec: {scaleTargetRef: {kind: %s, name: %s}}}`
	const left = "; left out: HorizontalPodAutoscaler scaler scales it, and would do so at a floor of 2: only at 0 it lets go"
	for _, c := range []struct {
		name   string
		object string
		floor  int32
		hpa    string
		want   string
	}{
		{"at work", head + `spec: {replicas: 3}, status: {observedGeneration: 2, replicas: 3, readyReplicas: 3}}`, 0, "", `asleep false, awake true, ready true, before {"replicas":3}`},
		{"not all of it is ready", head + `spec: {replicas: 3}, status: {observedGeneration: 2, replicas: 3, readyReplicas: 2}}`, 0, "", `asleep false, awake true, ready false, before {"replicas":3}`},
		{"no number is one", head + `spec: {}, status: {observedGeneration: 2, replicas: 1, readyReplicas: 1}}`, 0, "", `asleep false, awake true, ready true, before {"replicas":1}`},
		{"at none, and all of it gone", head + `spec: {replicas: 0}, status: {observedGeneration: 2}}`, 0, "", `asleep true, awake false, ready true, before {"replicas":0}`},
		{"at none, and one is still there", head + `spec: {replicas: 0}, status: {observedGeneration: 2, replicas: 1}}`, 0, "", `asleep false, awake false, ready true, before {"replicas":0}`},
		{"told to have none, and not heard yet", head + `spec: {replicas: 0}, status: {observedGeneration: 1, replicas: 0}}`, 0, "", `asleep false, awake false, ready false, before {"replicas":0}`},
		{"told to have three, and not heard yet", head + `spec: {replicas: 3}, status: {observedGeneration: 1, replicas: 3, readyReplicas: 3}}`, 0, "", `asleep false, awake true, ready false, before {"replicas":3}`},
		{"at the floor", head + `spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2}}`, 2, "", `asleep true, awake false, ready true, before {"replicas":2}`},
		{"below the floor", head + `spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 1, readyReplicas: 1}}`, 2, "", `asleep true, awake false, ready true, before {"replicas":1}`},
		{"on its way to the floor", head + `spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 3, readyReplicas: 3}}`, 2, "", `asleep false, awake false, ready true, before {"replicas":2}`},
		{"told to be at the floor, and not heard yet", head + `spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 2}}`, 2, "", `asleep false, awake false, ready false, before {"replicas":2}`},
		{"an autoscaler is no hindrance at none", head + `spec: {replicas: 3}, status: {observedGeneration: 2, replicas: 3, readyReplicas: 3}}`, 0, fmt.Sprintf(hpa, "", "Deployment", "web"), `asleep false, awake true, ready true, before {"replicas":3}`},
		{"an autoscaler would scale it up from a floor", head + `spec: {replicas: 3}, status: {observedGeneration: 2, replicas: 3, readyReplicas: 3}}`, 2, fmt.Sprintf(hpa, "", "Deployment", "web"), `asleep false, awake true, ready true, before {"replicas":3}` + left},
		{"an autoscaler of another", head + `spec: {replicas: 3}, status: {observedGeneration: 2, replicas: 3, readyReplicas: 3}}`, 2, fmt.Sprintf(hpa, "", "Deployment", "api"), `asleep false, awake true, ready true, before {"replicas":3}`},
		{"an autoscaler of another kind", head + `spec: {replicas: 3}, status: {observedGeneration: 2, replicas: 3, readyReplicas: 3}}`, 2, fmt.Sprintf(hpa, "", "StatefulSet", "web"), `asleep false, awake true, ready true, before {"replicas":3}`},
		{"an autoscaler of KEDA's, which is paused itself", head + `spec: {replicas: 3}, status: {observedGeneration: 2, replicas: 3, readyReplicas: 3}}`, 2, fmt.Sprintf(hpa, `, ownerReferences: [{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, name: web, uid: u, controller: true}]`, "Deployment", "web"), `asleep false, awake true, ready true, before {"replicas":3}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			params := only("Deployment")
			params.Floor = &c.floor
			n := newNight(t, params, c.object)
			if c.hpa != "" {
				n.Put(agenttest.Object(t, c.hpa))
			}
			seen := n.observe()
			if len(seen) != 1 || seen[0].ID != "deployments.apps/shop/web" {
				t.Fatalf("seen %+v", seen)
			}
			got := looks(seen[0])
			if seen[0].LeftOut != "" {
				got += "; left out: " + seen[0].LeftOut
			}
			if got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// Each kind falls asleep in its own way, and wakes as it was.
func TestWorkloadsWakeAsTheyWere(t *testing.T) {
	for _, c := range []struct {
		name, kind, resource, object string
		floor                        int32
		id                           string
		asleep, after                string
		writes                       int // on the way there; as many back
	}{
		{"a Deployment", "Deployment", "deployments", deploymentOf("web", 7, ""), 0, "deployments.apps/shop/web", `{"replicas":0}`, `{"replicas":7}`, 1},
		{"a Deployment with a floor", "Deployment", "deployments", deploymentOf("web", 7, ""), 2, "deployments.apps/shop/web", `{"replicas":2}`, `{"replicas":7}`, 1},
		{"a StatefulSet", "StatefulSet", "statefulsets", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: shop, name: web}, spec: {replicas: 3, serviceName: web}}`, 0, "statefulsets.apps/shop/web", `{"replicas":0,"serviceName":"web"}`, `{"replicas":3,"serviceName":"web"}`, 1},
		{"a CronJob", "CronJob", "cronjobs", `{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: shop, name: web}, spec: {schedule: "* * * * *"}}`, 0, "cronjobs.batch/shop/web", `{"schedule":"* * * * *","suspend":true}`, `{"schedule":"* * * * *","suspend":false}`, 1},
		{"a DaemonSet", "DaemonSet", "daemonsets", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: shop, name: web}, spec: {template: {spec: {nodeSelector: {disk: ssd}}}}}`, 0, "daemonsets.apps/shop/web", `{"template":{"spec":{"nodeSelector":{"disk":"ssd","maint.dev/asleep":"nights"}}}}`, `{"template":{"spec":{"nodeSelector":{"disk":"ssd"}}}}`, 1},
		{"one that had none stays at none", "Deployment", "deployments", deploymentOf("web", 0, ""), 0, "deployments.apps/shop/web", `{"replicas":0}`, `{"replicas":0}`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			params := only(c.kind)
			params.Floor = &c.floor
			n := newNight(t, params, c.object)
			writes := func(want int) {
				t.Helper()
				if log := n.Log(); len(log) != want {
					t.Errorf("%d writes, want %d: %q", len(log), want, log)
				}
			}
			n.sleep()
			if got := n.spec(c.resource, "web"); got != c.asleep {
				t.Errorf("asleep it is %s", got)
			}
			writes(c.writes)
			n.sleep() // the same again writes nothing
			writes(c.writes)
			if len(n.call.Recorded) != 1 || n.call.Recorded[0].ID != c.id {
				t.Fatalf("recorded %+v", n.call.Recorded)
			}
			n.wake()
			if got := n.spec(c.resource, "web"); got != c.after {
				t.Errorf("awake it is %s", got)
			}
		})
	}
}

// Restore data that was edited to what sleeps says that it is not to wake, and is no failure.
func TestWhatIsEditedToStayAsleepStaysSo(t *testing.T) {
	slept := map[string]string{
		"deployments": `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web, uid: u}, spec: {replicas: 0}}`,
		"cronjobs":    `{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: shop, name: web, uid: u}, spec: {suspend: true}}`,
	}
	for resource, c := range map[string]struct{ id, before, edited string }{
		"deployments": {"deployments.apps/shop/web", `{"replicas":7}`, `{"replicas": 0}`},
		"cronjobs":    {"cronjobs.batch/shop/web", `{"suspend":false}`, `{"suspend": true}`},
	} {
		for before, want := range map[string]bool{c.before: false, c.edited: true} {
			n := newNight(t, only("Deployment", "CronJob"), slept[resource])
			n.call.Recorded = []hibernate.Resource{{ID: c.id, UID: "u", Before: json.RawMessage(before), AsleepAt: &n.call.Now}}
			n.call.Operation = hibernate.Wake
			if seen := n.observe(); len(seen) != 1 || seen[0].Awake != want || seen[0].Asleep == want || want && !seen[0].Ready {
				t.Errorf("with %s it is %+v", before, seen)
			}
			n.call.Operation = hibernate.Shutdown
			if seen := n.observe(); len(seen) != 1 || !seen[0].Asleep {
				t.Errorf("while it sleeps, with %s, it is %+v", before, seen)
			}
		}
	}
}

// Kinds wake one after the other, until that has failed: then nothing waits any more.
func TestAWorkloadThatDoesNotBecomeReadyKeepsNoOtherAsleep(t *testing.T) {
	for failures, want := range map[int]string{0: `{"replicas":0}`, 1: `{"replicas":7}`} {
		n := newNight(t, hibernate.WorkloadParameters{}, deploymentOf("web", 7, ""), `{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: shop, name: broken, uid: uid-broken}, spec: {replicas: 1}}`)
		n.sleep()
		n.sleep()
		n.call.Failures = failures
		for range 3 {
			n.wake()
		}
		if got := n.spec("statefulsets", "broken"); got != `{"replicas":1}` {
			t.Errorf("after %d failures the first is %s", failures, got)
		}
		if got := n.spec("deployments", "web"); got != want {
			t.Errorf("after %d failures the next is %s, want %s", failures, got, want)
		}
	}
}

// A ScaledObject is paused at the floor, and before what it scales.
func TestAScaledObjectIsPausedFirst(t *testing.T) {
	const scaled = `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {namespace: shop, name: %s%s}, spec: {scaleTargetRef: {name: %s}}}`
	n := newNight(t, hibernate.WorkloadParameters{}, deploymentOf("web", 3, ""), fmt.Sprintf(scaled, "web", "", "web"), fmt.Sprintf(scaled, "elsewhere", "", "ghost"))
	paused := func(want string) {
		t.Helper()
		if got := n.Get("scaledobjects", "shop", "web").GetAnnotations()[pausedReplicas]; got != want {
			t.Errorf("it is paused at %q, want %q", got, want)
		}
		if got := n.Get("scaledobjects", "shop", "elsewhere").GetAnnotations()[pausedReplicas]; got != "" {
			t.Errorf("one of nothing that sleeps is paused at %q", got)
		}
	}
	if diff := cmp.Diff([]string{"scaledobjects.keda.sh/shop/web"}, results(n.sleep())); diff != "" {
		t.Errorf("first: %s", diff)
	}
	paused("0")
	if got := n.spec("deployments", "web"); got != `{"replicas":3}` {
		t.Errorf("at once it is %s", got)
	}
	n.sleepRest()
	if got := n.spec("deployments", "web"); got != `{"replicas":0}` {
		t.Errorf("then it is %s", got)
	}
	n.wake()
	paused("")
}

// sleepRest asks for those that are not told to sleep yet.
func (n *night) sleepRest() {
	n.Helper()
	due := slices.DeleteFunc(n.due(), func(d hibernate.Due) bool { return !d.Seen.Awake })
	for _, r := range (Sleeps{}).Shutdown(n.Context(), n.call, due) {
		if r.Err != nil {
			n.Error(r.Err)
		}
	}
}

// Which workloads a target means.
func TestWhichWorkloadsSleep(t *testing.T) {
	const owned = ", ownerReferences: [{apiVersion: example.org/v1, kind: App, name: x, uid: u, controller: true}]"
	const namespace = `{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {team: %s}%s}}`
	elsewhere := strings.Replace(deploymentOf("far", 1, ""), "namespace: shop", "namespace: mall", 1)
	for _, c := range []struct {
		name    string
		params  hibernate.WorkloadParameters
		objects []string
		op      hibernate.Operation
		record  []hibernate.Resource
		want    []string
		err     string
	}{
		{"all of the plan's namespace", only("Deployment"), []string{deploymentOf("a", 1, ""), elsewhere}, hibernate.Shutdown, nil, []string{"deployments.apps/shop/a"}, ""},
		{"those of the namespaces that are named", hibernate.WorkloadParameters{Kinds: []any{"Deployment"}, Namespaces: []string{"mall", "shop"}}, []string{deploymentOf("a", 1, ""), elsewhere}, hibernate.Shutdown, nil, []string{"deployments.apps/mall/far", "deployments.apps/shop/a"}, ""},
		{
			"those of the namespaces that are picked, but of one that ends",
			hibernate.WorkloadParameters{Kinds: []any{"Deployment"}, NamespaceSelector: &selector.LabelSelector{MatchLabels: map[string]string{"team": "x"}}},
			[]string{
				deploymentOf("a", 1, ""), elsewhere, fmt.Sprintf(namespace, "shop", "x", ""), fmt.Sprintf(namespace, "other", "y", ""),
				fmt.Sprintf(namespace, "mall", "x", `, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [kubernetes]`),
			},
			hibernate.Shutdown, nil,
			[]string{"deployments.apps/shop/a"},
			"",
		},
		{"those that a selector picks", hibernate.WorkloadParameters{Kinds: []any{"Deployment"}, Selector: &selector.LabelSelector{MatchLabels: map[string]string{"tier": "web"}}}, []string{deploymentOf("a", 1, ", labels: {tier: web}"), deploymentOf("b", 1, "")}, hibernate.Shutdown, nil, []string{"deployments.apps/shop/a"}, ""},
		{"what another controller makes is that one's affair", only("Deployment"), []string{deploymentOf("a", 1, owned), deploymentOf("b", 1, "")}, hibernate.Shutdown, nil, []string{"deployments.apps/shop/b"}, ""},
		{"what was recorded is looked at, whoever makes it now", only("Deployment"), []string{deploymentOf("a", 1, owned)}, hibernate.Shutdown, []hibernate.Resource{{ID: "deployments.apps/shop/a", UID: "uid-a"}}, []string{"deployments.apps/shop/a"}, ""},
		{"on waking only what was recorded is looked at", only("Deployment"), []string{deploymentOf("a", 1, ""), deploymentOf("b", 1, "")}, hibernate.Wake, []hibernate.Resource{{ID: "deployments.apps/shop/a", UID: "uid-a"}}, []string{"deployments.apps/shop/a"}, ""},
		{"what was recorded and is not selected any more", hibernate.WorkloadParameters{Kinds: []any{"Deployment"}, Selector: &selector.LabelSelector{MatchLabels: map[string]string{"tier": "web"}}}, []string{deploymentOf("a", 1, "")}, hibernate.Shutdown, []hibernate.Resource{{ID: "deployments.apps/shop/a", UID: "uid-a"}}, []string{"deployments.apps/shop/a"}, ""},
		{"what was recorded and is gone", only("Deployment"), nil, hibernate.Wake, []hibernate.Resource{{ID: "deployments.apps/shop/a", UID: "uid-a"}}, []string{"deployments.apps/shop/a gone"}, ""},
		{"what was recorded, of a kind that is not served any more", only("Deployment"), nil, hibernate.Wake, []hibernate.Resource{{ID: "widgets.example.org/shop/a", UID: "uid-a"}}, []string{"widgets.example.org/shop/a gone"}, ""},
		{"what was recorded, of a kind that the plan does not name any more", only("CronJob"), []string{deploymentOf("a", 1, "")}, hibernate.Wake, []hibernate.Resource{{ID: "deployments.apps/shop/a", UID: "uid-a"}}, []string{"deployments.apps/shop/a"}, ""},
		{"restore data that name no workload", only("Deployment"), nil, hibernate.Wake, []hibernate.Resource{{ID: "x/a"}}, nil, `the restore data names "x/a", which is no workload`},
		{"restore data that name a workload without its kind", only("Deployment"), nil, hibernate.Wake, []hibernate.Resource{{ID: "/shop/a"}}, nil, `the restore data names "/shop/a", which is no workload`},
		{"restore data without a name", only("Deployment"), nil, hibernate.Wake, []hibernate.Resource{{}}, nil, "the restore data has a resource without an id"},
		{"one that is being deleted is as good as gone", only("Deployment"), []string{deploymentOf("a", 1, `, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [x]`)}, hibernate.Shutdown, nil, []string{"deployments.apps/shop/a gone"}, ""},
		{"a kind that is not served", hibernate.WorkloadParameters{Kinds: []any{map[string]any{"apiVersion": "example.org/v1", "kind": "Widget"}}}, nil, hibernate.Shutdown, nil, nil, "the cluster does not serve Widget of example.org/v1: "},
		{"the same on waking keeps nothing else asleep", hibernate.WorkloadParameters{Kinds: []any{"Deployment", map[string]any{"apiVersion": "example.org/v1", "kind": "Widget"}}}, []string{deploymentOf("a", 1, "")}, hibernate.Wake, []hibernate.Resource{{ID: "deployments.apps/shop/a", UID: "uid-a"}}, []string{"deployments.apps/shop/a"}, ""},
		{"a kind that belongs to no namespace", hibernate.WorkloadParameters{Kinds: []any{map[string]any{"apiVersion": "v1", "kind": "Node"}}}, nil, hibernate.Shutdown, nil, nil, "Node of v1 belongs to no namespace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNight(t, c.params, c.objects...)
			n.call.Operation, n.call.Recorded = c.op, c.record
			seen, err := Sleeps{}.Observe(t.Context(), n.call)
			if (err != nil) != (c.err != "") || err != nil && !strings.HasPrefix(err.Error(), c.err) {
				t.Fatalf("%v", err)
			}
			var got []string
			for _, o := range seen {
				text := o.ID
				if o.Gone {
					text += " gone"
				}
				got = append(got, text)
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What is recorded and selected is seen in the list: it is not asked for once more.
func TestWhatIsRecordedAndSelectedIsAskedForOnce(t *testing.T) {
	n := newNight(t, only("Deployment"), deploymentOf("a", 1, ", ownerReferences: [{apiVersion: example.org/v1, kind: App, name: x, uid: u, controller: true}]"))
	n.call.Recorded = []hibernate.Resource{{ID: "deployments.apps/shop/a", UID: "uid-a"}}
	if seen := n.observe(); len(seen) != 1 || n.Asked(agenttest.When{Verb: "get", Resource: "deployments"}) != 0 {
		t.Errorf("seen %+v", seen)
	}
}

// KEDA may be missing where nobody names it; every other kind may not.
func TestKindsThatTheClusterDoesNotServe(t *testing.T) {
	for _, c := range []struct {
		name   string
		params hibernate.WorkloadParameters
		lacks  string
		op     hibernate.Operation
		want   string
	}{
		{"KEDA's, which nobody names", hibernate.WorkloadParameters{}, "scaledobjects", hibernate.Shutdown, ""},
		{"KEDA's, beside kinds that the plan names", only("Deployment"), "scaledobjects", hibernate.Shutdown, ""},
		{"KEDA's, which the plan names", only("ScaledObject"), "scaledobjects", hibernate.Shutdown, "the cluster does not serve ScaledObject of keda.sh/v1alpha1: "},
		{"another, which nobody names", hibernate.WorkloadParameters{}, "statefulsets", hibernate.Shutdown, "the cluster does not serve StatefulSet of apps/v1: "},
		{"another, on waking", hibernate.WorkloadParameters{}, "statefulsets", hibernate.Wake, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNight(t, c.params, deploymentOf("a", 1, ""))
			n.Unserve(c.lacks)
			n.call.Clients, n.call.Operation = n.Clients(), c.op
			err := Sleeps{}.Validate(t.Context(), n.call)
			if (err != nil) != (c.want != "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// KEDA is paused also where the plan names the kinds that sleep. An account that lacks the right puts
// the rest to sleep as before, and that is said.
func TestKEDAIsPausedBesideKindsThatAPlanNames(t *testing.T) {
	const scaled = `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {namespace: shop, name: web}, spec: {scaleTargetRef: {name: web}}}`
	n := newNight(t, only("Deployment"), deploymentOf("web", 3, ""), scaled)
	n.sleep()
	if got := n.Get("scaledobjects", "shop", "web").GetAnnotations()[pausedReplicas]; got != "0" {
		t.Errorf("it is paused at %q", got)
	}
	n = newNight(t, only("Deployment"), deploymentOf("web", 3, ""), scaled)
	n.Deny("", "list", "scaledobjects")
	if err := (Sleeps{}).Validate(t.Context(), n.call); err != nil {
		t.Error(err)
	}
	seen := n.observe()
	if len(seen) != 2 || seen[0].ID != "deployments.apps/shop/web" || !strings.HasPrefix(seen[1].LeftOut, "they are not paused: list scaledobjects.keda.sh in namespace shop: ") {
		t.Errorf("seen %+v", seen)
	}
	for name, params := range map[string]hibernate.WorkloadParameters{"named": only("Deployment", "ScaledObject"), "of all kinds": {}} {
		n.call.Params = &params
		if _, err := (Sleeps{}).Observe(t.Context(), n.call); err == nil || !strings.HasPrefix(err.Error(), "list scaledobjects.keda.sh in namespace shop: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Who scales a workload down below the floor at which it sleeps has changed it; one that is below it
// from the start is none of the target's.
func TestWhatSomebodyScalesBelowTheFloorIsChanged(t *testing.T) {
	at := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	slept := hibernate.Resource{AsleepAt: &at}
	for _, c := range []struct {
		name     string
		replicas int
		record   *hibernate.Resource
		want     string
	}{
		{"at the floor", 2, &slept, "asleep true, awake false"},
		{"below it since it sleeps", 0, &slept, "asleep false, awake true"},
		{"below it before it was seen asleep", 0, &hibernate.Resource{}, "asleep true, awake false"},
		{"on its way up", 1, &hibernate.Resource{AsleepAt: &at, WokenAt: &at}, "asleep true, awake false"},
		{"never recorded", 1, nil, "asleep true, awake false"},
	} {
		params := only("Deployment")
		params.Floor = new(int32(2))
		n := newNight(t, params, deploymentOf("web", c.replicas, ""))
		if c.record != nil {
			c.record.ID, c.record.UID, c.record.Before = "deployments.apps/shop/web", "uid-web", json.RawMessage(`{"replicas":5}`)
			n.call.Recorded = []hibernate.Resource{*c.record}
		}
		seen := n.observe()
		if got := looks(seen[0]); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// An agent that puts itself to sleep wakes nobody.
func TestTheAgentItselfIsLeftOut(t *testing.T) {
	const agent = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: maint-agent, uid: u}, spec: {replicas: 2, template: {metadata: {labels: {app.kubernetes.io/name: %s}}}}}`
	for name, c := range map[string]struct{ label, namespace, connection, want string }{
		"its own":             {"maint-agent", "shop", "", "it is the agent itself: nobody would wake what sleeps"},
		"another namespace's": {"maint-agent", "maint-system", "", ""},
		"another cluster's":   {"maint-agent", "shop", "far", ""},
		"another Deployment":  {"web", "shop", "", ""},
	} {
		n := newNight(t, only("Deployment"), fmt.Sprintf(agent, c.label))
		n.call.Clients.Connection, n.call.AgentNamespace = c.connection, c.namespace
		if seen := n.observe(); seen[0].LeftOut != c.want {
			t.Errorf("%s: %q", name, seen[0].LeftOut)
		}
	}
}

// Autoscalers are looked for in each namespace, and only where there is a floor.
func TestAutoscalersAreLookedForInEachNamespace(t *testing.T) {
	floor := int32(2)
	params := hibernate.WorkloadParameters{Kinds: []any{"Deployment"}, Namespaces: []string{"mall", "shop"}, Floor: &floor}
	n := newNight(t, params, deploymentOf("web", 3, ""), `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: shop, name: scaler}, spec: {scaleTargetRef: {kind: Deployment, name: web}}}`)
	if seen := n.observe(); len(seen) != 1 || !strings.HasPrefix(seen[0].LeftOut, "HorizontalPodAutoscaler scaler scales it") {
		t.Errorf("seen %+v", seen)
	}
	n.Deny("", "list", "horizontalpodautoscalers")
	if _, err := (Sleeps{}).Observe(t.Context(), n.call); err == nil || !strings.HasPrefix(err.Error(), "list horizontalpodautoscalers.autoscaling in namespace mall: ") {
		t.Errorf("without the right: %v", err)
	}
	floor = 0
	n.observe()
}

// What sleeping saves is what the pods above the floor request.
func TestWhatASleepSaves(t *testing.T) {
	for floor, want := range map[int32]float64{0: 1.5, 1: 1} {
		params := only("Deployment")
		params.Floor = &floor
		n := newNight(t, params, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web}, spec: {replicas: 3, template: {spec: {containers: [{name: a, resources: {requests: {cpu: 500m}}}]}}}}`)
		if diff := cmp.Diff(map[string]float64{"cpu": want}, n.observe()[0].Units); diff != "" {
			t.Errorf("at a floor of %d (-want +got):\n%s", floor, diff)
		}
	}
}

// Many recorded workloads of a namespace are listed, a few are asked for one by one: what
// is seen is the same.
func TestRecordedWorkloadsAreLookedAt(t *testing.T) {
	for _, c := range []struct{ many, gets, lists int }{{fewToList, fewToList, 0}, {fewToList + 1, 0, 1}} {
		t.Run(fmt.Sprint(c.many), func(t *testing.T) {
			n := newNight(t, only("Deployment"), deploymentOf("other", 1, ""))
			n.call.Operation = hibernate.Wake
			var want []string
			for i := range c.many {
				name := fmt.Sprint("web-", i)
				if i > 0 { // the first is gone
					n.Put(agenttest.Object(t, deploymentOf(name, 1, "")))
				}
				n.call.Recorded = append(n.call.Recorded, hibernate.Resource{ID: "deployments.apps/shop/" + name, UID: "uid-" + name})
				want = append(want, fmt.Sprintf("deployments.apps/shop/%s uid-%s gone %t", name, name, i == 0))
			}
			var got []string
			for _, o := range n.observe() {
				got = append(got, fmt.Sprintf("%s %s gone %t", o.ID, o.UID, o.Gone))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if gets, lists := n.Asked(agenttest.When{Verb: "get", Resource: "deployments"}), n.Asked(agenttest.When{Verb: "list", Resource: "deployments"}); gets != c.gets || lists != c.lists {
				t.Errorf("asked for %d, listed %d times", gets, lists)
			}
		})
	}
}

// What becomes of a write: what somebody else wrote is looked at again first, and a failure
// of one workload keeps no other from falling asleep.
func TestWritesThatDoNotSucceed(t *testing.T) {
	patchOf := func(name string) agenttest.When {
		return agenttest.When{Verb: "patch", Resource: "deployments", Name: name}
	}
	for _, c := range []struct {
		name  string
		world func(*night)
		want  []string // results
		a     string   // its spec then; empty: it is gone
		next  string   // after another pass
	}{
		{"all goes well", func(*night) {}, []string{"deployments.apps/shop/a", "deployments.apps/shop/b"}, `{"replicas":0}`, `{"replicas":0}`},
		{
			"somebody scales it meanwhile: that is not overwritten unseen", func(n *night) {
				n.Before(patchOf("a"), func() {
					n.Edit("deployments", "shop", "a", func(u *unstructured.Unstructured) {
						_ = unstructured.SetNestedField(u.Object, int64(9), "spec", "replicas")
					})
				})
			}, []string{"deployments.apps/shop/a", "deployments.apps/shop/b"}, `{"replicas":9}`, `{"replicas":0}`,
		},
		{
			"another of its name stands there meanwhile: the record of the one before is not its own", func(n *night) {
				n.Before(patchOf("a"), func() {
					n.DeleteAtOnce("deployments", "shop", "a")
					n.Put(agenttest.Object(n.T, strings.Replace(deploymentOf("a", 4, ""), "uid-a", "uid-other", 1)))
				})
			}, []string{"deployments.apps/shop/a", "deployments.apps/shop/b"}, `{"replicas":4}`, `{"replicas":4}`,
		},
		{"it is gone meanwhile", func(n *night) { n.Before(patchOf("a"), func() { n.DeleteAtOnce("deployments", "shop", "a") }) }, []string{"deployments.apps/shop/a", "deployments.apps/shop/b"}, "", ""},
		{"the answer is lost", func(n *night) { n.LoseReply(patchOf("a"), 1) }, []string{"deployments.apps/shop/b", "error: deployments.apps/shop/a: "}, `{"replicas":0}`, `{"replicas":0}`},
		{"the API server is broken", func(n *night) { n.Refuse(patchOf("a"), 1, http.StatusInternalServerError, "etcd is away") }, []string{"deployments.apps/shop/b", "error: deployments.apps/shop/a: etcd is away"}, `{"replicas":3}`, `{"replicas":0}`},
		{"a webhook says no", func(n *night) {
			n.Refuse(patchOf("a"), agenttest.Always, http.StatusBadRequest, `admission webhook "keep" denied the request: no`)
		}, []string{"deployments.apps/shop/b", `error: deployments.apps/shop/a: admission webhook "keep" denied the request: no`}, `{"replicas":3}`, `{"replicas":3}`},
		{"the right is missing", func(n *night) { n.Deny("", "patch", "deployments") }, []string{"error: deployments.apps/shop/a: deployments.apps \"a\" is forbidden: ", "error: deployments.apps/shop/b: deployments.apps \"b\" is forbidden: "}, `{"replicas":3}`, `{"replicas":3}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNight(t, only("Deployment"), deploymentOf("a", 3, ""), deploymentOf("b", 1, ""))
			c.world(n)
			stands := func(want string) {
				t.Helper()
				got := ""
				if n.Get("deployments", "shop", "a") != nil {
					got = n.spec("deployments", "a")
				}
				if got != want {
					t.Errorf("it is %s, want %s", got, want)
				}
			}
			got := results(n.sleep())
			if len(got) != len(c.want) {
				t.Fatalf("%q", got)
			}
			for i, want := range c.want {
				if got[i] != want && (!strings.HasPrefix(want, "error: ") || !strings.HasPrefix(got[i], want)) {
					t.Errorf("%q, want %q", got[i], want)
				}
			}
			stands(c.a)
			n.sleep()
			stands(c.next)
		})
	}
}

// A pass whose time is over says nothing of what it did not come to.
func TestAPassWhoseTimeIsOver(t *testing.T) {
	n := newNight(t, only("Deployment"), deploymentOf("a", 3, ""))
	due := n.due()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := (Sleeps{}).Shutdown(ctx, n.call, due); len(got) != 0 {
		t.Errorf("before it began: %v", got)
	}
	ctx, cancel = context.WithCancel(t.Context())
	n.Before(agenttest.When{Verb: "patch"}, cancel)
	if got := (Sleeps{}).Shutdown(ctx, n.call, due); len(got) != 0 {
		t.Errorf("in the middle: %v", got)
	}
}

// Restore data that are nonsense wake nothing, and keep nothing else asleep.
func TestOneWorkloadWithoutRestoreDataKeepsNoOtherAsleep(t *testing.T) {
	n := newNight(t, only("Deployment"), deploymentOf("a", 3, ""), deploymentOf("b", 1, ""))
	n.sleep()
	n.call.Recorded[0].Before = []byte(`{}`)
	want := []string{"deployments.apps/shop/b", "error: the restore data of deployments.apps/shop/a does not say what it was"}
	if diff := cmp.Diff(want, results(n.wake())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if a, b := n.spec("deployments", "a"), n.spec("deployments", "b"); a != `{"replicas":0}` || b != `{"replicas":1}` {
		t.Errorf("a is %s, b is %s", a, b)
	}
}

// In a dry run the API server is told so.
func TestADryRunOfASleepIsSaidToTheAPIServer(t *testing.T) {
	n := newNight(t, only("Deployment"), deploymentOf("a", 3, ""))
	due := n.due()
	n.call.DryRun = true
	said := ""
	n.call.Clients.Dynamic = n.through(func(r *http.Request) { said = r.URL.Query().Get("dryRun") + " " + r.URL.Query().Get("fieldManager") })
	if got := results(Sleeps{}.Shutdown(t.Context(), n.call, due)); len(got) != 1 || said != "All maint-plan-x" {
		t.Errorf("%q, said %q", got, said)
	}
}

type listens struct {
	http.RoundTripper
	heard func(*http.Request)
}

func (l listens) RoundTrip(r *http.Request) (*http.Response, error) {
	l.heard(r)
	return l.RoundTripper.RoundTrip(r)
}

func (n *night) through(heard func(*http.Request)) dynamic.Interface {
	n.Helper()
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://cluster.test", Transport: listens{n, heard}, QPS: -1})
	if err != nil {
		n.Fatal(err)
	}
	return client
}

// Before anything sleeps it is told what cannot be reached.
func TestWhatIsWrongWithATargetOfWorkloads(t *testing.T) {
	for _, c := range []struct {
		name   string
		params any
		deny   [2]string
		want   string
	}{
		{"nothing", &hibernate.WorkloadParameters{}, [2]string{}, ""},
		{"parameters of another type", &hibernate.NoopParameters{}, [2]string{}, "the parameters are *hibernate.NoopParameters"},
		{"a selector that picks no namespace", &hibernate.WorkloadParameters{NamespaceSelector: &selector.LabelSelector{MatchLabels: map[string]string{"team": "x"}}}, [2]string{}, "parameters.namespaceSelector selects no namespace"},
		{"namespaces that may not be listed", &hibernate.WorkloadParameters{NamespaceSelector: &selector.LabelSelector{MatchLabels: map[string]string{"team": "x"}}}, [2]string{"list", "namespaces"}, "list namespaces: "},
		{"a kind that may not be listed", &hibernate.WorkloadParameters{Namespaces: []string{"mall"}}, [2]string{"list", "statefulsets"}, "list statefulsets.apps in namespace mall: "},
		{"a selector that nobody can read", &hibernate.WorkloadParameters{Selector: &selector.LabelSelector{MatchExpressions: []selector.SelectorRequirement{{Key: "a", Operator: "Near"}}}}, [2]string{}, "selector: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNight(t, hibernate.WorkloadParameters{})
			n.call.Params = c.params
			if c.deny[0] != "" {
				n.Deny("", c.deny[0], c.deny[1])
			}
			err := Sleeps{}.Validate(t.Context(), n.call)
			if (err != nil) != (c.want != "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// What is watched of a target, and whether that shows all that may change.
func TestWhatIsWatchedOfATarget(t *testing.T) {
	for _, c := range []struct {
		name   string
		params hibernate.WorkloadParameters
		want   []string
		all    bool
	}{
		{"of one namespace, without what goes with its kinds", only("Deployment"), []string{"deployments in shop "}, true},
		{"of a kind that KEDA does not scale", only("CronJob"), []string{"cronjobs in shop "}, true},
		{"of two", hibernate.WorkloadParameters{Kinds: []any{"Deployment"}, Namespaces: []string{"a", "b"}, Selector: &selector.LabelSelector{MatchLabels: map[string]string{"t": "w"}}}, []string{"deployments in a t=w", "deployments in b t=w"}, true},
		{"ScaledObjects go with what they scale, whatever their labels", hibernate.WorkloadParameters{Kinds: []any{"ScaledObject", "Deployment"}, Selector: &selector.LabelSelector{MatchLabels: map[string]string{"t": "w"}}}, []string{"deployments in shop t=w", "scaledobjects in shop "}, true},
		{"of those that are picked there may be others later", hibernate.WorkloadParameters{Kinds: []any{"Deployment"}, NamespaceSelector: &selector.LabelSelector{}}, []string{"deployments in shop "}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNight(t, c.params, `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`)
			list, all, err := Sleeps{}.Watches(t.Context(), n.call)
			var got []string
			for _, w := range list {
				got = append(got, w.Resource.Resource+" in "+w.Namespace+" "+w.Selector)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || all != c.all || err != nil {
				t.Errorf("all %t, %v (-want +got):\n%s", all, err, diff)
			}
		})
	}
}

// A kind that we do not know is asked and told by its scale.
func TestAKindThatIsScaledByItsSubresource(t *testing.T) {
	params := hibernate.WorkloadParameters{Kinds: []any{map[string]any{"apiVersion": "example.org/v1", "kind": "Machine"}}}
	n := newNight(t, params, `{apiVersion: example.org/v1, kind: Machine, metadata: {namespace: shop, name: m}, spec: {replicas: 4}, status: {replicas: 3}}`)
	if got := looks(n.observe()[0]); got != `asleep false, awake true, ready false, before {"replicas":4}` {
		t.Error(got)
	}
	n.sleep()
	if got := n.spec("machines", "m"); got != `{"replicas":0}` {
		t.Errorf("it is %s", got)
	}
	n.wake()
	if got := n.spec("machines", "m"); got != `{"replicas":4}` {
		t.Errorf("it is %s", got)
	}
	n.Deny("", "get", "machines")
	seen, err := Sleeps{}.Observe(t.Context(), n.call)
	if err != nil || len(seen) != 1 || seen[0].Unseen == nil || !strings.Contains(seen[0].Unseen.Error(), "machines.example.org") {
		t.Errorf("on waking, without the right to ask: %+v, %v", seen, err)
	}
	n.call.Operation = hibernate.Shutdown
	if _, err := (Sleeps{}).Observe(t.Context(), n.call); err == nil || !strings.Contains(err.Error(), "machines.example.org") {
		t.Errorf("without the right to ask: %v", err)
	}
}
