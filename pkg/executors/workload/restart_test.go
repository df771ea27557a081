package workload

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// shop is a cluster in which one step looks at workloads, or restarts them.
type shop struct {
	*agenttest.Cluster
	*testing.T
	executor executors.Executor
	call     executors.Call
}

func newShop(t *testing.T, e executors.Executor, properties any, objects ...string) *shop {
	s := &shop{Cluster: agenttest.New(t), T: t, executor: e}
	s.Serve(
		agenttest.Kind{Group: "apps", Version: "v1", Kind: "StatefulSet", Resource: "statefulsets", Namespaced: true},
		agenttest.Kind{Group: "batch", Version: "v1", Kind: "Job", Resource: "jobs", Namespaced: true},
		agenttest.Kind{Group: "example.org", Version: "v1", Kind: "App", Resource: "apps", Namespaced: true},
	)
	s.call = callOf(func(c *executors.Call) {
		c.Path, c.Properties, c.Clients, c.Plan.Manager = "restart", properties, s.Clients(), "maint-plan-x"
		c.Now = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	})
	for _, text := range objects {
		s.Put(agenttest.Object(t, text))
	}
	return s
}

// pass is one, and what it asks to be remembered is.
func (s *shop) pass() executors.Outcome {
	out := s.executor.Pass(s.Context(), s.call)
	if out.Memory != nil {
		s.call.Recorded.Memory = out.Memory
	}
	return out
}

// inShort is an outcome as its state, its reason and its message.
func inShort(out executors.Outcome) string {
	word := map[executors.State]string{executors.NotYet: "not yet", executors.Record: "record", executors.Done: "done", executors.Failed: "failed"}[out.State]
	if out.Permanent {
		word += " for good"
	}
	return word + " " + out.Reason + ": " + out.Message
}

func (s *shop) says(want string) {
	s.Helper()
	if got := inShort(s.pass()); got != want {
		s.Errorf("%s\nwant %s", got, want)
	}
}

// mark is who restarted a workload, as its pod template says.
func (s *shop) mark(resource string) string {
	text, _, _ := unstructured.NestedString(s.Get(resource, "shop", "web").Object, "spec", "template", "metadata", "annotations", annotations.RestartedBy)
	return text
}

// changed has the controller of a workload, or somebody, change it.
func (s *shop) changed(resource, patch string) {
	s.Edit(resource, "shop", "web", func(u *unstructured.Unstructured) {
		for field, value := range agenttest.Object(s.T, patch).Object {
			if field != "kind" {
				u.Object[field] = value
			}
		}
	})
}

func restartOf(kind string) *plan.RestartProperties {
	return &plan.RestartProperties{Resource: plan.ResourceRef{APIVersion: "apps/v1", Kind: kind, Name: "web"}}
}

const (
	restartedBy = "maint-run-orders-abc/restart#1"
	webOf       = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web, uid: uid-web}, spec: {replicas: 2}, status: {updatedReplicas: 2, replicas: 2, availableReplicas: 2}}`
	begunOnce   = "not yet Restarting: Deployment/web is being restarted"
)

// A restart is written once, and followed to its end.
func TestADeploymentIsRestartedOnce(t *testing.T) {
	s := newShop(t, Restarter{}, restartOf("Deployment"), webOf)
	out := s.pass()
	if got := inShort(out); got != begunOnce || !out.WakeAt.Equal(s.call.Now) {
		t.Errorf("%s, again at %s", got, out.WakeAt)
	}
	if diff := cmp.Diff(`{"by":"maint-run-orders-abc/restart#1","uid":"uid-web"}`, string(out.Memory)); diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
	if got := s.mark("deployments"); got != restartedBy {
		t.Errorf("marked %q", got)
	}
	s.changed("deployments", `{kind: x, status: {updatedReplicas: 1, replicas: 3, availableReplicas: 2}}`)
	out = s.pass()
	if got := inShort(out); got != "not yet Waiting: Deployment/web: 1 of 2 pods are updated" || out.Memory != nil {
		t.Errorf("%s, remembered %s", got, out.Memory)
	}
	if w := out.Watch; w == nil || w.Resource.Resource != "deployments" || w.Namespace != "shop" || w.Name != "web" {
		t.Errorf("watched %+v", w)
	}
	s.changed("deployments", `{kind: x, status: {updatedReplicas: 2, replicas: 2, availableReplicas: 2}}`)
	out = s.pass()
	want := executors.Outcome{
		State: executors.Done, Message: "restarted Deployment/web: 2 pods are updated and available",
		Changed: []run.Change{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", What: "restarted"}},
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if log := s.Log(); len(log) != 1 {
		t.Errorf("written %q", log)
	}
}

// Whatever is lost between two passes, the restart is there once, and none is done for
// another's sake.
func TestARestartThatIsInterrupted(t *testing.T) {
	patch := agenttest.When{Verb: "patch", Resource: "deployments"}
	for _, c := range []struct {
		name  string
		world func(*shop) // before the first pass
		first string
		then  func(*shop)
		next  string
		write int
	}{
		{
			"the answer to the write is lost, and with it what was to be remembered", func(s *shop) { s.LoseReply(patch, 1) }, "not yet Unavailable: ",
			func(s *shop) { s.call.Recorded.Memory = nil }, "done : restarted Deployment/web: 2 pods are updated and available", 1,
		},
		{
			"somebody writes it between the look and the write", func(s *shop) {
				s.Before(patch, func() { s.changed("deployments", `{kind: x, spec: {replicas: 3}}`) })
			}, "not yet Conflict: ", func(s *shop) { s.call.Recorded.Memory = nil }, begunOnce, 1,
		},
		{
			"somebody takes the mark off", func(*shop) {}, begunOnce,
			func(s *shop) { s.changed("deployments", `{kind: x, spec: {replicas: 2}}`) },
			"failed Reverted: Deployment/web: somebody took the annotation " + annotations.RestartedBy + " off its pod template, and with it the restart; does another controller own the template?", 1,
		},
		{
			"another of its name stands there", func(*shop) {}, begunOnce, func(s *shop) {
				s.DeleteAtOnce("deployments", "shop", "web")
				s.Put(agenttest.Object(s.T, strings.Replace(webOf, "uid-web", "uid-other", 1)))
			}, "failed for good Replaced: Deployment/web was deleted and created again while it was being restarted; the new one is left alone", 1,
		},
		{
			"another attempt restarts it again", func(*shop) {}, begunOnce, func(s *shop) { s.call.Attempt = 2 }, begunOnce, 2,
		},
		{
			"what is remembered is nonsense", func(s *shop) { s.call.Recorded.Memory = json.RawMessage(`[`) }, begunOnce, func(*shop) {}, "done : restarted Deployment/web: 2 pods are updated and available", 1,
		},
		{
			"its rollout fails", func(*shop) {}, begunOnce, func(s *shop) {
				s.changed("deployments", `{kind: x, status: {conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: no image}]}}`)
			}, "failed ProgressDeadlineExceeded: Deployment/web exceeded its progress deadline: no image", 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t, Restarter{}, restartOf("Deployment"), webOf)
			c.world(s)
			if got := inShort(s.pass()); !strings.HasPrefix(got, c.first) {
				t.Errorf("first %s\nwant %s", got, c.first)
			}
			c.then(s)
			s.says(c.next)
			if log := s.Log(); len(log) != c.write {
				t.Errorf("written %q", log)
			}
		})
	}
}

// What would restart no pod is refused before it is written.
func TestWhatCannotBeRestarted(t *testing.T) {
	const (
		onDeleteOf = "failed for good OnDelete: %s has the update strategy OnDelete: its pods are replaced only when somebody deletes them; set spec.updateStrategy.type to RollingUpdate"
		stateful   = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: shop, name: web}, spec: `
	)
	for _, c := range []struct {
		name, kind, object, want string
	}{
		{"a Deployment that is paused", "Deployment", `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web}, spec: {paused: true}}`, "failed for good Paused: Deployment/web is paused and would restart no pod; resume it first: kubectl rollout resume deployment/web -n shop"},
		{"a DaemonSet whose pods are replaced by hand", "DaemonSet", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: shop, name: web}, spec: {updateStrategy: {type: OnDelete}}}`, strings.Replace(onDeleteOf, "%s", "DaemonSet/web", 1)},
		{"a StatefulSet whose pods are replaced by hand", "StatefulSet", stateful + `{updateStrategy: {type: OnDelete}}}`, strings.Replace(onDeleteOf, "%s", "StatefulSet/web", 1)},
		{"a StatefulSet whose partition keeps all", "StatefulSet", stateful + `{replicas: 2, updateStrategy: {rollingUpdate: {partition: 2}}}}`, "failed for good Partitioned: StatefulSet/web has 2 replicas and the partition 2, which keeps all of them as they are; lower spec.updateStrategy.rollingUpdate.partition"},
		{"a StatefulSet whose partition keeps one of two", "StatefulSet", stateful + `{replicas: 2, updateStrategy: {rollingUpdate: {partition: 1}}}}`, "not yet Restarting: StatefulSet/web is being restarted"},
		{"a StatefulSet without pods, whatever its partition", "StatefulSet", stateful + `{replicas: 0, updateStrategy: {rollingUpdate: {partition: 2}}}}`, "not yet Restarting: StatefulSet/web is being restarted"},
		{"a DaemonSet", "DaemonSet", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: shop, name: web}, spec: {updateStrategy: {type: RollingUpdate}}}`, "not yet Restarting: DaemonSet/web is being restarted"},
		{"one that is not there", "Deployment", "", `failed for good NotFound: get deployments.apps "web" in namespace shop: there is no such object`},
		{"a kind that is not served", "Widget", "", "failed for good UnknownKind: Widget/web: the cluster serves no kind Widget in apps/v1; is its CRD installed?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t, Restarter{}, restartOf(c.kind))
			if c.object != "" {
				s.Put(agenttest.Object(t, c.object))
			}
			s.says(c.want)
			if writes := len(s.Log()); writes != 0 != strings.HasPrefix(c.want, "not yet") {
				t.Errorf("written %d times", writes)
			}
		})
	}
	s := newShop(t, Restarter{}, &plan.RestartProperties{Resource: plan.ResourceRef{APIVersion: "example.org/v1", Kind: "App", Name: "web"}})
	s.says("failed for good Invalid: resource: App/web of example.org/v1 cannot be restarted; write a Deployment, StatefulSet or DaemonSet of apps/v1")
	s.call.Properties = &plan.ScaleProperties{}
	s.says("failed for good Invalid: step restart: properties are *plan.ScaleProperties, not *plan.RestartProperties")
}

// The message says which pods a partition kept.
func TestARestartSaysWhatAPartitionKept(t *testing.T) {
	for partition, want := range map[string]string{
		"1": "done : restarted StatefulSet/web: 3 pods are updated and available; its partition keeps those below ordinal 1 as they were",
		"0": "done : restarted StatefulSet/web: 3 pods are updated and available",
	} {
		s := newShop(t, Restarter{}, restartOf("StatefulSet"), `{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: shop, name: web}, spec: {replicas: 3, template: {metadata: {annotations: {`+annotations.RestartedBy+`: "`+restartedBy+`"}}}, updateStrategy: {rollingUpdate: {partition: `+partition+`}}}, status: {updatedReplicas: 3, availableReplicas: 3}}`)
		s.says(want)
	}
}

// A dry run asks the API server, and keeps nothing; without the right to watch nothing is
// begun that could not be followed.
func TestARestartThatIsNotBegun(t *testing.T) {
	s := newShop(t, Restarter{}, restartOf("Deployment"), webOf)
	s.Deny("", "watch", "deployments")
	s.says(`failed for good Forbidden: serviceaccount shop/maint-runner may not watch deployments.apps "web" in namespace shop: grant watch on deployments.apps to it`)
	s.call.DryRun = true
	s.Refuse(agenttest.When{Verb: "patch", Resource: "deployments"}, 1, http.StatusBadRequest, "admission says no")
	s.says("failed for good BadRequest: patch deployments.apps \"web\" in namespace shop: admission says no")
	s.Before(agenttest.When{Verb: "patch"}, func() { s.Note("asked") })
	s.says("done : dry run: would restart Deployment/web and wait until it is rolled out")
	if s.call.Recorded.Memory != nil {
		t.Errorf("a dry run remembers %s", s.call.Recorded.Memory)
	}
}
