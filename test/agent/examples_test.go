package agent_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/structpb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/functiontest"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// hooksOfExamples is where the examples say that somebody listens.
const hooksOfExamples = "https://hooks.example.org"

// foreign is as much of somebody else's kind as the examples have to do with.
type foreign struct {
	group, version, kind, plural string
}

func (f foreign) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: f.group, Version: f.version, Resource: f.plural}
}

func exampleOrg(kind string) foreign {
	return foreign{"example.org", "v1", kind, strings.ToLower(kind) + "s"}
}

func velaApplications() foreign {
	return foreign{"core.oam.dev", "v1beta1", "Application", "applications"}
}

func volumeSnapshots() foreign {
	return foreign{"snapshot.storage.k8s.io", "v1", "VolumeSnapshot", "volumesnapshots"}
}

// stage is a lab in which an example of the folder examples/ plays, as it stands
// there. The test plays those who are not in this cluster: kubelets, the
// Deployment and the snapshot controller, KubeVela, Crossplane.
type stage struct {
	*lab
	dyn  dynamic.Interface
	name string // of the example and of its plan
}

func newStage(t *testing.T, name string, kinds ...foreign) *stage {
	t.Helper()
	s := &stage{lab: newLab(t), name: name}
	dyn, err := dynamic.NewForConfig(world.cluster.AdminConfig())
	s.must(err)
	s.dyn = dyn
	for _, k := range kinds {
		s.install(k)
	}
	return s
}

// definition is the CustomResourceDefinition of a kind.
func (f foreign) definition() string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[4]s.%[1]s
  annotations: {api-approved.kubernetes.io: "unapproved, for a test"}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: %[4]s, singular: %[5]s, kind: %[3]s}
  versions:
  - name: %[2]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    subresources: {status: {}}
`, f.group, f.version, f.kind, f.plural, strings.ToLower(f.kind))
}

// install makes the cluster serve a kind. Tests that share one apply the same.
func (s *stage) install(f foreign) {
	s.Helper()
	s.make(f.definition())
	s.eventually(f.kind+"s are served", func() (bool, string) {
		_, err := s.of(f).List(s.ctx, metav1.ListOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

func (s *stage) of(f foreign) dynamic.ResourceInterface {
	return s.dyn.Resource(f.gvr()).Namespace(s.ns)
}

// make applies objects.
func (s *stage) make(text string) {
	s.Helper()
	s.must(harness.Apply(s.ctx, world.cluster.AdminConfig(), s.ns, []byte(text), nil))
}

func (s *stage) read(f foreign, name string) *unstructured.Unstructured {
	s.Helper()
	u, err := s.of(f).Get(s.ctx, name, metav1.GetOptions{})
	s.must(err)
	return u
}

func (s *stage) merge(f foreign, name, patch string, subresource ...string) {
	s.Helper()
	_, err := s.of(f).Patch(s.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "a-person"}, subresource...)
	s.must(err)
}

// play applies the example. Of its text nothing is changed but where others
// listen: pairs of what the example says and what is so here.
func (s *stage) play(elsewhere ...string) {
	s.Helper()
	root, err := harness.Root()
	s.must(err)
	b, err := os.ReadFile(filepath.Join(root, "examples", s.name+".yaml"))
	s.must(err)
	text := string(b)
	for i := 0; i < len(elsewhere); i += 2 {
		if !strings.Contains(text, elsewhere[i]) {
			s.Fatalf("examples/%s.yaml does not say %s any more", s.name, elsewhere[i])
		}
		text = strings.ReplaceAll(text, elsewhere[i], elsewhere[i+1])
	}
	s.make(text)
	s.seen(s.name)
}

// hook is the pair for webhooks.
func (s *stage) hook() []string { return []string{hooksOfExamples, s.hooks.URL + "/" + s.ns} }

// heard are the bodies that came to a path of the hooks, each delivery once.
func (s *stage) heard(path string) []map[string]any {
	s.Helper()
	var out []map[string]any
	var keys []string
	for _, d := range s.hooks.Deliveries() {
		if d.Path != "/"+s.ns+path || slices.Contains(keys, d.Key) {
			continue
		}
		keys = append(keys, d.Key)
		var body map[string]any
		s.must(json.Unmarshal([]byte(d.Body), &body))
		out = append(out, body)
	}
	return out
}

// once is the body of the only delivery to a path.
func (s *stage) once(path string) map[string]any {
	s.Helper()
	bodies := s.heard(path)
	if len(bodies) != 1 {
		s.Fatalf("%s was sent %d times: %v", path, len(bodies), bodies)
	}
	return bodies[0]
}

// waits is the run of the example's plan whose step says what it waits for.
func (s *stage) waits(step string) runState {
	s.Helper()
	var got runState
	s.eventually("step "+step+" waits", func() (bool, string) {
		text := ""
		for _, r := range s.runs(s.name) {
			rec := r.journal.Record(step)
			if rec != nil && rec.Phase == run.StepRunning && rec.Message != "" {
				got = r
				return true, ""
			}
			text += fmt.Sprintf("%s %s %v; ", r.journal.Phase, r.journal.Message, phasesOf(r.journal))
		}
		return false, text
	})
	return got
}

// watches waits until the runner watches a kind of objects. A step waits before its
// watch is open, and one whose object is ready by then needs none.
func (s *stage) watches(kind string) {
	s.Helper()
	s.eventually("the runner watches "+kind, func() (bool, string) {
		used := s.usedRights()
		return used[kind+" watch"], fmt.Sprint(slices.Sorted(maps.Keys(used)))
	})
}

// rolledOut plays the Deployment controller.
func (s *stage) rolledOut(name string) {
	s.Helper()
	d, err := s.admin.AppsV1().Deployments(s.ns).Get(s.ctx, name, metav1.GetOptions{})
	s.must(err)
	n := *d.Spec.Replicas
	s.merge(foreign{"apps", "v1", "Deployment", "deployments"}, name, fmt.Sprintf(
		`{"status":{"observedGeneration":%d,"replicas":%d,"readyReplicas":%d,"availableReplicas":%d,"updatedReplicas":%d}}`, d.Generation, n, n, n, n), "status")
}

// database is a StatefulSet of one replica with a volume; its pod is ready.
func (s *stage) database(name, image string) {
	s.Helper()
	s.make(fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %[1]s}
spec:
  serviceName: %[1]s
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: db, image: "%[2]s"}]}
  volumeClaimTemplates:
  - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
`, name, image))
	s.up(name)
}

// up plays the kubelet: the database's newest pod runs and is ready.
func (s *stage) up(database string) {
	s.Helper()
	s.eventually(database+" is up", func() (bool, string) {
		set, err := s.admin.AppsV1().StatefulSets(s.ns).Get(s.ctx, database, metav1.GetOptions{})
		s.must(err)
		if st := set.Status; st.ObservedGeneration == set.Generation && st.AvailableReplicas == 1 && st.UpdatedReplicas == 1 && st.CurrentRevision == st.UpdateRevision {
			return true, ""
		}
		pod, err := s.admin.CoreV1().Pods(s.ns).Get(s.ctx, database+"-0", metav1.GetOptions{})
		if err != nil || pod.Labels["controller-revision-hash"] != set.Status.UpdateRevision {
			return false, fmt.Sprint(err, set.Status)
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		_, err = s.admin.CoreV1().Pods(s.ns).UpdateStatus(s.ctx, pod, metav1.UpdateOptions{})
		return false, fmt.Sprint(err, set.Status)
	})
}

// worked plays the kubelet of a Job's pod, which succeeds.
func (s *stage) worked() {
	s.Helper()
	s.eventually("the Job's pod is there", func() (bool, string) {
		pods, err := s.admin.CoreV1().Pods(s.ns).List(s.ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel})
		s.must(err)
		for _, pod := range pods.Items {
			pod.Status.Phase = corev1.PodSucceeded
			if _, err := s.admin.CoreV1().Pods(s.ns).UpdateStatus(s.ctx, &pod, metav1.UpdateOptions{}); err != nil {
				return false, err.Error()
			}
		}
		return len(pods.Items) == 1, fmt.Sprint(len(pods.Items))
	})
}

// usable plays the snapshot controller, and gives what was snapshotted.
func (s *stage) usable() (names, claims []string) {
	s.Helper()
	list, err := s.of(volumeSnapshots()).List(s.ctx, metav1.ListOptions{})
	s.must(err)
	for _, u := range list.Items {
		claim, _, _ := unstructured.NestedString(u.Object, "spec", "source", "persistentVolumeClaimName")
		names, claims = append(names, u.GetName()), append(claims, claim)
		s.merge(volumeSnapshots(), u.GetName(), `{"status":{"readyToUse":true}}`, "status")
	}
	return names, claims
}

// rightsAreUsed compares what the example's Role gives with what the API server
// saw the account do. spared are rights that this play has no use for.
func (s *stage) rightsAreUsed(spared ...string) {
	s.Helper()
	role, err := s.admin.RbacV1().Roles(s.ns).Get(s.ctx, "maint:"+s.name, metav1.GetOptions{})
	s.must(err)
	given, unused := map[string]bool{}, slices.Clone(spared)
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				given[rule.APIGroups[0]+" "+resource+" "+verb] = true
			}
		}
	}
	used := s.usedRights()
	for right := range used { // who watches is asked for list, too
		if kind, is := strings.CutSuffix(right, " watch"); is {
			used[kind+" list"] = true
		}
	}
	for right := range given {
		if !used[right] && !slices.Contains(spared, right) {
			s.Errorf("examples/%s.yaml gives a right that is not used: %s", s.name, right)
		}
	}
	for right := range used {
		unused = slices.DeleteFunc(unused, func(r string) bool { return r == right })
		if !given[right] {
			s.Errorf("examples/%s.yaml does not give a right that was asked for: %s", s.name, right)
		}
	}
	if !slices.Equal(unused, spared) {
		s.Errorf("spared are %v, and of these not used %v", spared, unused)
	}
}

// usedRights are what the runner of this namespace did, as the audit log has it.
// What it may do itself, every account may ask.
func (s *stage) usedRights() map[string]bool {
	s.Helper()
	used, mine := map[string]bool{}, "system:serviceaccount:"+s.ns+":maint-runner"
	_, err := harness.EachAudited(world.audit, 0, mine, func(e harness.AuditEvent) {
		if e.Impersonated != nil && e.Impersonated.Username == mine && e.Object.Resource != "" && e.Object.Group != "authorization.k8s.io" {
			e.Impersonated = nil
			e.Note(used)
		}
	})
	s.must(err)
	return used
}

func TestExampleKubeVelaDatabase(t *testing.T) {
	s := newStage(t, "kubevela-database", velaApplications(), volumeSnapshots())
	s.make(`{apiVersion: core.oam.dev/v1beta1, kind: Application, metadata: {name: orders}, spec: {components: [{name: orders}, {name: orders-db}]}}`)
	s.deployment("orders", 3)
	s.database("orders-db", "postgres:15.8")
	s.play(s.hook()...)
	york, err := time.LoadLocation("America/New_York")
	s.must(err)
	s.eventually("its owners see when it is next", func() (bool, string) {
		text := s.read(velaApplications(), "orders").GetAnnotations()["workflow-activity.oam.dev/kubevela-database-next-run"]
		next, err := time.Parse(time.RFC3339, text)
		local := next.In(york)
		return err == nil && local.Weekday() == time.Saturday && local.Hour() == 2 && local.Minute() == 0, text
	})
	s.expect(s.maint("trigger", s.name, "--reason", "trying it"), 0)

	r := s.waits("nobody-writes")
	scale := func() int32 {
		d, err := s.admin.AppsV1().Deployments(s.ns).Get(s.ctx, "orders", metav1.GetOptions{})
		s.must(err)
		return *d.Spec.Replicas
	}
	app := s.read(velaApplications(), "orders")
	if app.GetAnnotations()["maintenance.company.org/run"] != r.run.Name || app.GetLabels()["controller.core.oam.dev/pause"] != "true" || scale() != 0 {
		t.Errorf("during the maintenance the application is marked %v %v and has %d replicas", app.GetAnnotations(), app.GetLabels(), scale())
	}
	s.eventually("its owners see that it runs", func() (bool, string) {
		now := s.read(velaApplications(), "orders").GetAnnotations()
		return now["workflow-activity.oam.dev/kubevela-database-status"] == "running", fmt.Sprint(now)
	})
	s.watches("apps deployments")
	s.rolledOut("orders")
	s.waits("backup")
	snapshots, claims := s.usable()
	if !slices.Equal(claims, []string{"data-orders-db-0"}) {
		t.Errorf("the backup is of %v", claims)
	}
	s.waits("work")
	s.must(s.admin.CoreV1().Pods(s.ns).Delete(s.ctx, "orders-db-0", metav1.DeleteOptions{})) // the work restarts it
	s.worked()
	s.waits("database-is-well")
	s.watches("apps statefulsets")
	s.up("orders-db")
	s.waits("finally/application-is-well")
	if n := scale(); n != 3 {
		t.Errorf("back with %d replicas, want 3", n)
	}
	s.rolledOut("orders")
	s.succeeded(s.name)

	want := map[string]any{"run": r.run.Name, "outcome": "Succeeded", "snapshots": []any{snapshots[0]}, "well": true}
	if diff := cmp.Diff(want, s.once("/maintenance/over")); diff != "" {
		t.Error(diff)
	}
	if begins := s.once("/maintenance/begins"); begins["application"] != "orders" || begins["reason"] != "trying it" {
		t.Errorf("it began with %v", begins)
	}
	s.eventually("the application is as before, and says how it went", func() (bool, string) {
		now := s.read(velaApplications(), "orders")
		own, last := now.GetAnnotations(), "workflow-activity.oam.dev/kubevela-database-"
		return own[last+"status"] == "completed" && own[last+"last-run"] != "" && own["maintenance.company.org/run"] == "" && len(now.GetLabels()) == 0, fmt.Sprint(own, now.GetLabels())
	})
	s.rightsAreUsed("batch jobs delete", "snapshot.storage.k8s.io volumesnapshots delete", " persistentvolumeclaims get")
}

func TestExampleKubeVelaUpgrade(t *testing.T) {
	s := newStage(t, "kubevela-upgrade", velaApplications(), volumeSnapshots())
	s.make(`{apiVersion: core.oam.dev/v1beta1, kind: Application, metadata: {name: billing}, spec: {components: [{name: billing-db, type: statefulset, properties: {image: "postgres:15.8"}}]}}`)
	s.merge(velaApplications(), "billing", `{"status":{"status":"running","observedGeneration":1}}`, "status")
	s.database("billing-db", "postgres:15.8")
	s.play(s.hook()...)
	image := func() string {
		components, _, _ := unstructured.NestedSlice(s.read(velaApplications(), "billing").Object, "spec", "components")
		text, _, _ := unstructured.NestedString(components[0].(map[string]any), "properties", "image")
		return text
	}
	const key = "maintenance.company.org/database-upgrade"
	asks := func() runState {
		s.merge(velaApplications(), "billing", `{"metadata":{"labels":{"`+key+`":"16.4"}}}`)
		s.waits("backup")
		s.usable()
		r := s.waits("go")
		if text := r.journal.Record("go").Message; !strings.Contains(text, "billing-db becomes 16.4") || image() != "postgres:15.8" {
			t.Errorf("it asks %q, and the image is %s already", text, image())
		}
		return r
	}
	gone := func() {
		s.eventually("the label is gone", func() (bool, string) {
			labels := s.read(velaApplications(), "billing").GetLabels()
			return len(labels) == 0, fmt.Sprint(labels)
		})
	}

	first := asks()
	s.expect(s.maint("reject", first.run.Name, "--reason", "not today"), 0)
	if end := s.ended(s.name, 1)[0]; end.journal.Phase != run.Failed || image() != "postgres:15.8" {
		t.Errorf("rejected, it ended %s, and the image is %s", end.journal.Phase, image())
	}
	gone()

	second := asks()
	s.expect(s.maint("approve", second.run.Name, "--reason", "CHG-1234"), 0)
	s.waits("rolled-out")
	if got := image(); got != "postgres:16.4" {
		t.Errorf("the image is %s", got)
	}
	s.merge(foreign{"apps", "v1", "StatefulSet", "statefulsets"}, "billing-db", `{"spec":{"template":{"spec":{"containers":[{"name":"db","image":"postgres:16.4"}]}}}}`)
	s.merge(velaApplications(), "billing", fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, s.read(velaApplications(), "billing").GetGeneration()), "status")
	s.waits("database-is-well")
	s.watches("apps statefulsets")
	s.up("billing-db")
	s.ended(s.name, 2)
	gone()
	over := s.heard("/upgrade/over")
	if len(over) != 2 || over[0]["outcome"] != "Failed" || over[1]["outcome"] != "Succeeded" || over[1]["run"] != second.run.Name || len(over[1]["snapshots"].([]any)) != 1 || over[1]["approvedBy"] == "nobody" {
		t.Errorf("it said of its end %v", over)
	}
	if asked := s.heard("/upgrade/asks"); len(asked) != 2 || asked[1]["version"] != "16.4" {
		t.Errorf("it asked %v", asked)
	}
	s.rightsAreUsed("apps deployments get", " persistentvolumeclaims get") // of what else a component may be
}

func TestExampleKubeVelaPatch(t *testing.T) {
	s := newStage(t, "kubevela-patch", velaApplications())
	s.make(`{apiVersion: core.oam.dev/v1beta1, kind: Application, metadata: {name: shop}, spec: {components: []}}`)
	s.deployment("shop-web", 2)
	s.deployment("shop-api", 2)
	s.database("shop-db", "postgres:15.8")
	s.play(s.hook()...)
	s.plan("nightly", `
triggers: {schedules: [{cron: "0 3 * * *"}]}
steps: [{name: db, type: template/rolling-restart, properties: {workload: shop-db}}]
`)
	s.eventually("a plan with a schedule may not use the template", func() (bool, string) {
		text := s.seen("nightly").Annotations[annotations.StatusMessage]
		return strings.Contains(text, "permitted in interactive plans, not in maintenance ones"), text
	})
	s.expect(s.maint("trigger", s.name), 2, "advisory")
	s.expect(s.maint("trigger", s.name, "--param", "advisory=CVE-2026-1234", "--reason", "patch day"), 0)

	s.waits("stateless/web/restart")
	s.waits("stateless/api/restart")
	s.watches("apps deployments")
	s.rolledOut("shop-web")
	s.eventually("web is tried", func() (bool, string) { return len(s.heard("/smoke/shop-web")) == 1, "" })
	set, err := s.admin.AppsV1().StatefulSets(s.ns).Get(s.ctx, "shop-db", metav1.GetOptions{})
	s.must(err)
	if set.Generation != 1 {
		t.Error("the database is touched while others are being restarted")
	}
	s.rolledOut("shop-api")
	s.waits("database/restart")
	s.watches("apps statefulsets")
	s.up("shop-db")
	end := s.succeeded(s.name)
	for path, want := range map[string]map[string]any{
		"/patch/begins":   {"run": end.run.Name, "advisory": "CVE-2026-1234", "asked": end.run.Request.Actor + " (unverified)"},
		"/smoke/shop-web": {"workload": "Deployment/shop-web", "requests": 3.0},
		"/smoke/shop-api": {"workload": "Deployment/shop-api", "requests": 3.0},
		"/smoke/shop-db":  {"workload": "StatefulSet/shop-db", "requests": 10.0},
		"/patch/over":     {"run": end.run.Name, "advisory": "CVE-2026-1234", "outcome": "Succeeded"},
	} {
		if diff := cmp.Diff(want, s.once(path)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	s.eventually("its owners see that it is over", func() (bool, string) {
		now := s.read(velaApplications(), "shop").GetAnnotations()
		return now["workflow-activity.oam.dev/kubevela-patch-status"] == "completed", fmt.Sprint(now)
	})
	s.rightsAreUsed()
}

// fleet is what a watch has shown of the clusters, and the controller that
// upgrades them.
type fleet struct {
	*stage
	version string
	batches [][]string

	mu      sync.Mutex
	begun   map[string]bool // its spec names the new version
	healthy map[string]bool // and it runs it, and is Ready
	events  int
	early   []string // begun before all of the batches before it were healthy
	busy    sync.WaitGroup
}

func (f *fleet) cluster(i int) string { return fmt.Sprintf("c-%02d", i) }

// watch shows all clusters that are made from now on. An API server may end a watch at any time: then it goes on with
// another one.
func (f *fleet) watch() watch.Interface {
	f.Helper()
	clusters := f.of(exampleOrg("Cluster"))
	now, err := clusters.List(f.ctx, metav1.ListOptions{})
	f.must(err)
	w, err := watchtools.NewRetryWatcherWithContext(f.ctx, now.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.LabelSelector = "upgrade=rolling"
		return clusters.Watch(ctx, o)
	}})
	f.must(err)
	return w
}

// control plays the controller until the watch ends. Each cluster becomes healthy a
// moment after its version changed, and is not in between: long enough that the plan
// has to watch it, on a slow machine, too.
func (f *fleet) control(w watch.Interface) {
	defer f.busy.Done()
	for e := range w.ResultChan() {
		u, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		spec, _, _ := unstructured.NestedString(u.Object, "spec", "version")
		status, _, _ := unstructured.NestedString(u.Object, "status", "version")
		f.note(u.GetName(), spec == f.version, spec == f.version && status == f.version)
		if spec != status {
			f.busy.Add(1)
			time.AfterFunc(400*time.Millisecond, func() {
				defer f.busy.Done()
				f.heal(u.GetName(), spec)
			})
		}
	}
}

func (f *fleet) heal(name, version string) {
	patch := fmt.Sprintf(`{"status":{"version":%q,"conditions":[{"type":"Ready","status":"True"}]}}`, version)
	_, err := f.of(exampleOrg("Cluster")).Patch(f.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil && f.ctx.Err() == nil {
		f.Errorf("heal %s: %v", name, err)
	}
}

// note counts, at every event, whether a batch began too early.
func (f *fleet) note(name string, begun, healthy bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events++
	f.begun[name], f.healthy[name] = begun, healthy
	waitsFor := ""
	for _, batch := range f.batches {
		for _, c := range batch {
			if f.begun[c] && waitsFor != "" {
				f.early = append(f.early, c+" before "+waitsFor)
			}
		}
		for _, c := range batch {
			if !f.healthy[c] && waitsFor == "" {
				waitsFor = c
			}
		}
	}
}

func TestExampleRollingUpgrade(t *testing.T) {
	s := newStage(t, "rolling-upgrade", exampleOrg("Cluster"))
	f := &fleet{stage: s, version: "1.37.2", begun: map[string]bool{}, healthy: map[string]bool{}}
	end := 0
	for _, until := range []int{1, 4, 20, 40} { // 1%, 10%, 50% and 100% of 40
		var batch []string
		for ; end < until; end++ {
			batch = append(batch, f.cluster(end))
		}
		f.batches = append(f.batches, batch)
	}
	text := ""
	for i := range end {
		text += fmt.Sprintf("---\n{apiVersion: example.org/v1, kind: Cluster, metadata: {name: %s, labels: {upgrade: rolling}}, spec: {version: 1.36.3}}\n", f.cluster(i))
	}
	w := f.watch()
	s.make(text + "---\n{apiVersion: example.org/v1, kind: Cluster, metadata: {name: by-hand}, spec: {version: 1.36.3}}\n")
	f.busy.Add(1)
	go f.control(w)
	s.eventually("all are healthy at the old version", func() (bool, string) {
		list, err := s.of(exampleOrg("Cluster")).List(s.ctx, metav1.ListOptions{LabelSelector: "upgrade=rolling"})
		s.must(err)
		return !slices.ContainsFunc(list.Items, func(u unstructured.Unstructured) bool {
			v, _, _ := unstructured.NestedString(u.Object, "status", "version")
			return v != "1.36.3"
		}), ""
	})
	s.play()
	s.expect(s.maint("trigger", s.name, "--param", "version="+f.version, "--reason", "CHG-1234", "--wait", "--timeout", "100s"), 0, "Succeeded")
	if t.Failed() {
		t.Logf("the first cluster: %v", s.read(exampleOrg("Cluster"), f.cluster(0)).Object)
	}
	over := s.succeeded(s.name)
	w.Stop()
	f.busy.Wait()
	if got := over.journal.Record("clusters").Outputs["succeeded"]; got != int64(end) || len(f.healthy) != end {
		t.Errorf("%v were upgraded, the watch showed %d, want %d", got, len(f.healthy), end)
	}
	for name, is := range f.healthy {
		if !is {
			t.Errorf("%s is not healthy at the end", name)
		}
	}
	if len(f.early) > 0 || f.events < 3*end {
		t.Errorf("of %d events: %v", f.events, f.early)
	}
	if v, _, _ := unstructured.NestedString(s.read(exampleOrg("Cluster"), "by-hand").Object, "spec", "version"); v != "1.36.3" {
		t.Errorf("a cluster without the label was upgraded to %s", v)
	}
	s.rightsAreUsed()
}

// watching waits until the example's rule has recorded what was there.
func (s *stage) watching(n int) {
	s.Helper()
	(&apps{lab: s.lab}).watching(s.name, n)
}

// passport is a certificate for both ends of a connection to 127.0.0.1, signed by
// itself.
func passport(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	b, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b})
}

// guarded serves a function to those who show the same certificate.
func guarded(t *testing.T, f functiontest.Function, certificate, key []byte) string {
	t.Helper()
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	known := x509.NewCertPool()
	known.AppendCertsFromPEM(certificate)
	return functiontest.Serve(t, f, grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: known, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	})))
}

// mostFree is the function of the example: it desires that the watched App is on
// the cluster with the most that is free, and says so when there is none.
func mostFree(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	best, free := "", 0.0
	for _, c := range r.GetRequiredResources()["clusters"].GetItems() {
		object := c.GetResource().AsMap()
		if n, _, _ := unstructured.NestedFloat64(object, "spec", "free"); n > free {
			best, free = (&unstructured.Unstructured{Object: object}).GetName(), n
		}
	}
	if best == "" || r.GetInput().AsMap()["strategy"] != "most-free" {
		return &fnv1.RunFunctionResponse{Results: []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_FATAL, Message: "no cluster fits"}}}, nil
	}
	app := (&unstructured.Unstructured{Object: r.GetRequiredResources()["ops.crossplane.io/watched-resource"].GetItems()[0].GetResource().AsMap()}).GetName()
	desired, err := structpb.NewStruct(map[string]any{
		"apiVersion": "example.org/v1", "kind": "App", "metadata": map[string]any{"name": app}, "spec": map[string]any{"cluster": best},
	})
	return &fnv1.RunFunctionResponse{Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{"app": {Resource: desired}}}}, err
}

func TestExampleScheduleApp(t *testing.T) {
	s := newStage(t, "schedule-app", exampleOrg("App"), exampleOrg("Cluster"))
	certificate, key := passport(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "fn-tls"}, Data: map[string][]byte{"ca.crt": certificate, corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}}
	_, err := s.admin.CoreV1().Secrets(s.ns).Create(s.ctx, secret, metav1.CreateOptions{})
	s.must(err)
	s.make(`
{apiVersion: example.org/v1, kind: Cluster, metadata: {name: small, labels: {accepts: apps}}, spec: {free: 3}}
---
{apiVersion: example.org/v1, kind: Cluster, metadata: {name: large, labels: {accepts: apps}}, spec: {free: 9}}
---
{apiVersion: example.org/v1, kind: Cluster, metadata: {name: closed}, spec: {free: 99}}
---
{apiVersion: example.org/v1, kind: App, metadata: {name: was-there}, spec: {size: 1}}
`)
	s.play("fn.example.org:9443", guarded(t, mostFree, certificate, key))
	s.watching(1)
	app := func(name string) string {
		text, _, _ := unstructured.NestedString(s.read(exampleOrg("App"), name).Object, "spec", "cluster")
		return text
	}
	placed := func(name, cluster string) {
		s.eventually(name+" is on "+cluster, func() (bool, string) { return app(name) == cluster, app(name) })
	}

	s.make(`{apiVersion: example.org/v1, kind: App, metadata: {name: new}, spec: {size: 2}}`)
	placed("new", "large")
	s.make(`{apiVersion: example.org/v1, kind: App, metadata: {name: knows}, spec: {cluster: small}}`)
	s.watching(3)                                            // an object that is changed before it is seen is a new one
	s.merge(exampleOrg("App"), "new", `{"spec":{"size":3}}`) // it has its cluster
	s.merge(exampleOrg("Cluster"), "small", `{"spec":{"free":12}}`)
	s.merge(exampleOrg("App"), "knows", `{"spec":{"cluster":null}}`)
	placed("knows", "small")
	s.make(`
{apiVersion: example.org/v1, kind: App, metadata: {name: pair-a}}
---
{apiVersion: example.org/v1, kind: App, metadata: {name: pair-b}}
`)
	placed("pair-a", "small")
	placed("pair-b", "small")
	var about []string
	for _, r := range s.ended(s.name, 4) {
		about = append(about, r.run.Request.Event+" "+r.run.Request.Name+" "+string(r.journal.Phase))
	}
	slices.Sort(about)
	want := []string{"create new Succeeded", "create pair-a Succeeded", "create pair-b Succeeded", "update knows Succeeded"}
	if !slices.Equal(about, want) || app("was-there") != "" {
		t.Errorf("ran %v, want %v; what was there is on %q", about, want, app("was-there"))
	}
	if size, _, _ := unstructured.NestedInt64(s.read(exampleOrg("App"), "new").Object, "spec", "size"); size != 3 {
		t.Errorf("the App's own fields were touched: size %d", size)
	}
	s.rightsAreUsed()
}

func TestExamplePauseStuck(t *testing.T) {
	databases := exampleOrg("Database")
	s := newStage(t, "pause-stuck", databases)
	s.make(`
{apiVersion: example.org/v1, kind: Database, metadata: {name: calm}}
---
{apiVersion: example.org/v1, kind: Database, metadata: {name: busy}}
`)
	s.play(s.hook()...)
	s.watching(2)
	responsive := func(name, status, message string) {
		s.merge(databases, name, fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"False"},{"type":"Responsive","status":%q,"reason":"Watch","message":%q}]}}`, status, message), "status")
	}
	paused := func(name string) bool {
		return s.read(databases, name).GetAnnotations()["crossplane.io/paused"] == "true"
	}
	responsive("calm", "True", "")
	passes := 0
	loops := func() { // until somebody pauses it
		s.eventually("the loop is ended", func() (bool, string) {
			passes++
			if !paused("busy") {
				responsive("busy", "False", fmt.Sprintf("too many watch events, pass %d", passes))
			}
			return paused("busy"), fmt.Sprint(passes)
		})
	}

	loops()
	first := s.ended(s.name, 1)[0]
	told := s.once("/stuck")
	if told["database"] != "busy" || told["run"] != first.run.Name || !strings.HasPrefix(told["why"].(string), "too many watch events") {
		t.Errorf("it told %v", told)
	}
	if by := s.read(databases, "busy").GetAnnotations()["example.org/paused-by"]; by != first.run.Name {
		t.Errorf("paused by %q", by)
	}
	// Field managers have times of whole seconds: what is written in the second of a run's own write
	// is taken for a part of it.
	time.Sleep(time.Until(first.journal.FinishedAt.Truncate(time.Second).Add(time.Second)))
	responsive("busy", "False", "still said while it is paused")
	s.merge(databases, "busy", `{"metadata":{"annotations":{"crossplane.io/paused":null}}}`)
	responsive("busy", "True", "") // mended
	responsive("calm", "Unknown", "")
	if n := len(s.ended(s.name, 1)); n != 1 || paused("busy") || paused("calm") {
		t.Errorf("%d runs; paused: busy %t, calm %t", n, paused("busy"), paused("calm"))
	}
	loops()
	var about []string
	for _, r := range s.ended(s.name, 2) {
		about = append(about, r.run.Request.Event+" "+r.run.Request.Name+" "+string(r.journal.Phase))
	}
	if !slices.Equal(about, []string{"update busy Succeeded", "update busy Succeeded"}) || len(s.heard("/stuck")) != 2 || paused("calm") {
		t.Errorf("ran %v, told %v", about, s.heard("/stuck"))
	}
	s.rightsAreUsed()
}

func TestExampleBackupOnDelete(t *testing.T) {
	claims := exampleOrg("DatabaseClaim")
	s := newStage(t, "backup-on-delete", claims, volumeSnapshots())
	volume := func(name, database string) string {
		return fmt.Sprintf("---\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s, labels: {example.org/database: %s}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}\n", name, database)
	}
	s.make(volume("my-db-data", "my-db") + volume("my-db-wal", "my-db") + volume("other-data", "other") + `
---
{apiVersion: example.org/v1, kind: DatabaseClaim, metadata: {name: my-db}}
---
{apiVersion: example.org/v1, kind: DatabaseClaim, metadata: {name: other}}
---
{apiVersion: example.org/v1, kind: DatabaseClaim, metadata: {name: empty}}
`)
	s.play(s.hook()...)
	s.watching(3)
	uid := string(s.read(claims, "my-db").GetUID())
	s.merge(claims, "other", `{"spec":{"size":2}}`) // no delete
	s.must(s.of(claims).Delete(s.ctx, "my-db", metav1.DeleteOptions{}))
	r := s.waits("backup")
	names, of := s.usable()
	slices.Sort(of)
	if !slices.Equal(of, []string{"my-db-data", "my-db-wal"}) {
		t.Errorf("the backup is of %v", of)
	}
	if end := s.succeeded(s.name); end.run.Name != r.run.Name || end.run.Request.Why() != "watch:DatabaseClaim/my-db" {
		t.Errorf("ran for %s", end.run.Request.Why())
	}
	slices.Sort(names)
	told := s.once("/backup-on-delete")
	want := map[string]any{"database": "my-db", "uid": uid, "outcome": "Succeeded", "snapshots": []any{names[0], names[1]}}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
	s.must(s.of(claims).Delete(s.ctx, "empty", metav1.DeleteOptions{}))
	s.ended(s.name, 2)
	if last := s.heard("/backup-on-delete"); len(last) != 2 || last[1]["database"] != "empty" || last[1]["outcome"] != "Failed" {
		t.Errorf("of a backup of nothing was told %v", last)
	}
	s.rightsAreUsed()
}

func TestAStepKnowsAKindThatIsInstalledWhileTheAgentRuns(t *testing.T) {
	s := newStage(t, "late")
	late := exampleOrg("Late" + s.ns[strings.LastIndex(s.ns, "-")+1:]) // a cluster knows it from then on
	s.runner(rbacv1.PolicyRule{APIGroups: []string{late.group}, Resources: []string{late.plural}, Verbs: []string{"get", "list", "patch"}})
	s.plan("late", strings.ReplaceAll(`
steps:
- {name: reads, type: webhook, requires: [{name: all, apiVersion: example.org/v1, kind: KIND, matchLabels: {a: b}}], properties: {url: "HOOK/saw/${string(size(required.all))}"}}
- {name: writes, type: patch-object, properties: {resource: {apiVersion: example.org/v1, kind: KIND, name: one}, patchType: merge, patch: {spec: {size: 2}}}}
`, "KIND", late.kind))
	s.seen("late")
	s.trigger("late", "before")
	if rec := s.ended("late", 1)[0].journal.Record("reads"); rec.Reason != executors.ReasonUnknownKind {
		t.Errorf("while the kind is not there: %+v", rec)
	}
	s.install(late)
	s.make(`{apiVersion: example.org/v1, kind: ` + late.kind + `, metadata: {name: one, labels: {a: b}}}`)
	s.trigger("late", "after")
	s.ended("late", 2)
	if size, _, _ := unstructured.NestedInt64(s.read(late, "one").Object, "spec", "size"); size != 2 || len(s.hooks.Keys("/"+s.ns+"/saw/1")) != 1 {
		t.Errorf("once it is there: size %d", size)
	}
}
