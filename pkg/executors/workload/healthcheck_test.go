package workload

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

const everyKind = "Deployment, StatefulSet, DaemonSet, Job"

// appOf is an object with a condition Ready, as many operators have them.
func appOf(name, metadata, ready string) string {
	return fmt.Sprintf(`{apiVersion: example.org/v1, kind: App, metadata: {namespace: shop, name: %s%s}, status: {conditions: [{type: Ready, status: "%s"}]}}`, name, metadata, ready)
}

func jobNamed(name, metadata, condition string) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {namespace: shop, name: %s%s}, status: {conditions: [{type: %s, status: "True", reason: Broken, message: no disk}]}}`, name, metadata, condition)
}

func webWith(name string, available int) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: %s}, spec: {replicas: 2}, status: {replicas: 2, updatedReplicas: 2, availableReplicas: %d}}`, name, available)
}

// What a health check says of all that it picked.
func TestAHealthCheck(t *testing.T) {
	apps := func(change func(*plan.ObjectSelector)) *plan.HealthProperties {
		s := plan.ObjectSelector{APIVersion: "example.org/v1", Kind: "App"}
		change(&s)
		return &plan.HealthProperties{Selector: &s}
	}
	one := func(kind, version, name string) *plan.HealthProperties {
		return &plan.HealthProperties{Resource: &plan.ResourceRef{APIVersion: version, Kind: kind, Name: name}}
	}
	all := &plan.HealthProperties{All: true}
	whole := func(*plan.ObjectSelector) {}
	const cronJob = `, ownerReferences: [{apiVersion: %s, kind: %s, name: nightly, uid: u, controller: %t}]`
	for _, c := range []struct {
		name    string
		props   any
		objects []string
		want    string
	}{
		{"one that is healthy", one("App", "example.org/v1", "a"), []string{appOf("a", "", "True"), appOf("b", "", "False")}, "done : 1 of 1 healthy"},
		{"one that is not", one("App", "example.org/v1", "b"), []string{appOf("a", "", "True"), appOf("b", "", "False")}, "not yet Waiting: 0 of 1 healthy; not yet: App/b: condition Ready is False"},
		{"one that is not there", one("App", "example.org/v1", "c"), nil, `failed for good NotFound: get apps.example.org "c" in namespace shop: there is no such object`},
		{"one of a kind that is not served", one("Widget", "example.org/v1", "c"), nil, "failed for good UnknownKind: Widget/c: the cluster serves no kind Widget in example.org/v1; is its CRD installed?"},
		{"one that is well, of which there is something to say", one("Node", "v1", "edge"), []string{`{apiVersion: v1, kind: Node, metadata: {name: edge}, spec: {unschedulable: true}, status: {conditions: [{type: Ready, status: "True"}]}}`}, "done : 1 of 1 healthy; note: Node/edge is cordoned"},
		{"all of a kind", apps(whole), []string{appOf("a", "", "True"), appOf("b", "", "False"), appOf("c", "", "Unknown")}, "not yet Waiting: 1 of 3 healthy; not yet: App/b: condition Ready is False; App/c: condition Ready is Unknown"},
		{"those of some labels", apps(func(s *plan.ObjectSelector) { s.MatchLabels = map[string]string{"tier": "web"} }), []string{appOf("a", ", labels: {tier: web}", "True"), appOf("b", "", "False")}, "done : 1 of 1 healthy"},
		{"those of another namespace", apps(func(s *plan.ObjectSelector) { s.Namespace = "mall" }), []string{appOf("a", "", "True")}, "failed for good NotFound: nothing is there to be healthy: App in namespace mall picked no object"},
		{"labels that nothing has", apps(func(s *plan.ObjectSelector) { s.MatchLabels = map[string]string{"tier": "db"} }), []string{appOf("a", "", "True")}, "failed for good NotFound: nothing is there to be healthy: App with the labels tier=db in namespace shop picked no object"},
		{"one of them will not become healthy", &plan.HealthProperties{Selector: &plan.ObjectSelector{APIVersion: "batch/v1", Kind: "Job"}}, []string{jobNamed("a", "", "Suspended"), jobNamed("b", "", "Failed"), jobNamed("c", "", "Failed")}, "failed JobFailed: Job/b: failed: Broken: no disk; 0 of 3 healthy; not yet: Job/a: is suspended; Job/b: failed: Broken: no disk; Job/c: failed: Broken: no disk"},
		{"all workloads", all, []string{webWith("web", 2), jobNamed("import", "", "Complete"), appOf("a", "", "False")}, "done : 2 of 2 healthy"},
		{"all workloads where there are none", all, []string{appOf("a", "", "True")}, "failed for good NotFound: nothing is there to be healthy: " + everyKind + " in namespace shop picked no object"},
		{"a CronJob's Job is none of all workloads", all, []string{webWith("web", 2), jobNamed("nightly-1", fmt.Sprintf(cronJob, "batch/v1", "CronJob", true), "Failed")}, "done : 1 of 1 healthy"},
		{"nor is that of a step", all, []string{webWith("web", 2), jobNamed("migrate", ", annotations: {"+annotations.JobOf+": run}", "Failed")}, "done : 1 of 1 healthy"},
		{"but that of another controller is", all, []string{jobNamed("x", fmt.Sprintf(cronJob, "example.org/v1", "CronJob", true), "Failed")}, "failed JobFailed: Job/x: failed: Broken: no disk; 0 of 1 healthy; not yet: Job/x: failed: Broken: no disk"},
		{"and that of another kind", all, []string{jobNamed("x", fmt.Sprintf(cronJob, "batch/v1", "JobSet", true), "Failed")}, "failed JobFailed: Job/x: failed: Broken: no disk; 0 of 1 healthy; not yet: Job/x: failed: Broken: no disk"},
		{"a Deployment is never passed over", all, []string{`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web, annotations: {` + annotations.JobOf + `: run}}, spec: {replicas: 0}}`}, "done : 1 of 1 healthy"},
		{"a CronJob's Job counts for who names its kind", &plan.HealthProperties{Selector: &plan.ObjectSelector{APIVersion: "batch/v1", Kind: "Job"}}, []string{jobNamed("nightly-1", fmt.Sprintf(cronJob, "batch/v1", "CronJob", true), "Complete")}, "done : 1 of 1 healthy"},
		{"a selector without a kind is of all workloads", &plan.HealthProperties{Selector: &plan.ObjectSelector{}}, []string{webWith("web", 1)}, "not yet Waiting: 0 of 1 healthy; not yet: Deployment/web: 1 of 2 pods are available"},
		{"nothing is asked for", &plan.HealthProperties{}, nil, "failed for good Invalid: properties: write one of resource, selector and all: true"},
		{"properties of another type", &plan.ScaleProperties{}, nil, "failed for good Invalid: step restart: properties are *plan.ScaleProperties, not *plan.HealthProperties"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t, HealthChecker{}, c.props, c.objects...)
			s.says(c.want)
			s.call.DryRun = true // it changes nothing anyway, and does not wait
			if out := s.pass(); out.State == executors.NotYet || len(s.Log()) != 0 {
				t.Errorf("in a dry run: %s, written %q", inShort(out), s.Log())
			}
		})
	}
}

// What is watched until the next look, and what is told.
func TestAHealthCheckThatWaits(t *testing.T) {
	labelled := plan.ObjectSelector{APIVersion: "example.org/v1", Kind: "App", MatchLabels: map[string]string{"tier": "web"}}
	for _, c := range []struct {
		name    string
		props   *plan.HealthProperties
		objects []string
		watch   string // resource namespace/name selector
		relook  time.Duration
		outputs map[string]any
	}{
		{"one object", &plan.HealthProperties{Resource: &plan.ResourceRef{APIVersion: "example.org/v1", Kind: "App", Name: "a"}}, []string{appOf("a", "", "False")}, "apps shop/a ", 0, nil},
		{"all that labels pick", &plan.HealthProperties{Selector: &labelled}, []string{appOf("a", ", labels: {tier: web}", "True"), appOf("b", ", labels: {tier: web}", "False")}, "apps shop/ tier=web", 0, nil},
		{"of several kinds that of the first which is not healthy", &plan.HealthProperties{All: true}, []string{webWith("web", 2), jobNamed("import", "", "Suspended")}, "jobs shop/ ", 5 * time.Second, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t, HealthChecker{}, c.props, c.objects...)
			out := s.pass()
			if out.State != executors.NotYet || out.Watch == nil {
				t.Fatalf("%+v", out)
			}
			if got := fmt.Sprintf("%s %s/%s %s", out.Watch.Resource.Resource, out.Watch.Namespace, out.Watch.Name, out.Watch.Selector); got != c.watch {
				t.Errorf("watched %s", got)
			}
			want := time.Time{}
			if c.relook > 0 {
				want = s.call.Now.Add(c.relook)
			}
			if !out.WakeAt.Equal(want) {
				t.Errorf("again at %s, want %s", out.WakeAt, want)
			}
			s.Deny("", "watch", out.Watch.Resource.Resource)
			if out := s.pass(); out.Reason != executors.ReasonForbidden || !out.Permanent {
				t.Errorf("without the right to watch: %s", inShort(out))
			}
		})
	}
}

// How many are healthy is told to the plan, also where the check fails.
func TestWhatAHealthCheckPutsOut(t *testing.T) {
	for _, c := range []struct {
		name    string
		objects []string
		dry     bool
		want    map[string]any
		says    string
	}{
		{"all are", []string{jobNamed("a", "", "Complete"), webWith("b", 2)}, false, map[string]any{"healthy": int64(2), "total": int64(2)}, "done : 2 of 2 healthy"},
		{"all are, in a dry run", []string{jobNamed("a", "", "Complete")}, true, map[string]any{"healthy": int64(1), "total": int64(1)}, "done : dry run: 1 of 1 healthy"},
		{"one never will be", []string{jobNamed("a", "", "Failed"), webWith("b", 2)}, false, map[string]any{"healthy": int64(1), "total": int64(2)}, "failed JobFailed: Job/a: failed: Broken: no disk; 1 of 2 healthy; not yet: Job/a: failed: Broken: no disk"},
		{"one is not yet, in a dry run", []string{webWith("b", 1)}, true, nil, "done : dry run: not waited for: 0 of 1 healthy; not yet: Deployment/b: 1 of 2 pods are available"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t, HealthChecker{}, &plan.HealthProperties{All: true}, c.objects...)
			s.call.DryRun = c.dry
			out := s.pass()
			if diff := cmp.Diff(c.want, out.Outputs); diff != "" || inShort(out) != c.says {
				t.Errorf("%s (-want +got):\n%s", inShort(out), diff)
			}
		})
	}
}

// Whether an object without a status is to have one is asked of the API server.
func TestAnObjectWithoutAStatus(t *testing.T) {
	const bare = `{apiVersion: example.org/v1, kind: App, metadata: {namespace: shop, name: a}}`
	app := &plan.HealthProperties{Resource: &plan.ResourceRef{APIVersion: "example.org/v1", Kind: "App", Name: "a"}}
	account := &plan.HealthProperties{Resource: &plan.ResourceRef{APIVersion: "v1", Kind: "ServiceAccount", Name: "a"}}
	statusOf := func(group, version, resource string) agenttest.Kind {
		return agenttest.Kind{Group: group, Version: version, Kind: "Status", Resource: resource + "/status", Namespaced: true}
	}
	for _, c := range []struct {
		name   string
		props  *plan.HealthProperties
		object string
		serves []agenttest.Kind
		want   string
	}{
		{"its kind has none", app, bare, nil, "done : 1 of 1 healthy"},
		{"its kind has one", app, bare, []agenttest.Kind{statusOf("example.org", "v1", "apps")}, "not yet Waiting: 0 of 1 healthy; not yet: App/a: has no status yet"},
		{"another kind of its group has one", app, bare, []agenttest.Kind{statusOf("example.org", "v1", "bees")}, "done : 1 of 1 healthy"},
		{"a kind of the core group has none", account, `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: shop, name: a}}`, nil, "done : 1 of 1 healthy"},
		{"a kind of the core group has one", account, `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: shop, name: a}}`, []agenttest.Kind{statusOf("", "v1", "serviceaccounts")}, "not yet Waiting: 0 of 1 healthy; not yet: ServiceAccount/a: has no status yet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t, HealthChecker{}, c.props, c.object)
			s.Serve(c.serves...)
			s.says(c.want)
		})
	}
}

// What is asked and not answered is asked again, and fails nothing.
func TestAHealthCheckWithoutAnAnswer(t *testing.T) {
	const away = "not yet Unavailable: the API server does not answer as it should: "
	s := newShop(t, HealthChecker{}, &plan.HealthProperties{All: true}, webWith("web", 2), jobNamed("a", "", "Complete"))
	s.Refuse(agenttest.When{Verb: "list", Resource: "jobs"}, 1, 503, "etcd is away")
	s.says(away + "list jobs.batch in namespace shop: etcd is away")
	s.says("done : 2 of 2 healthy")
	s.Unserve("jobs")
	s.says("failed for good UnknownKind: list jobs.batch in namespace shop: the API server serves nothing of that kind")
}
