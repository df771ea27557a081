package gitops_test

import (
	"crypto/sha1" //nolint:gosec // as Git names its commits
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// pushes are those of an hour in which somebody pushes every minute.
const pushes = 60

// files are the repository at one of its commits, as kustomize has it.
func files(commit int) map[string]string {
	out := harness.Repository(commit, "  annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}\n", "- {apiGroups: [kustomize.toolkit.fluxcd.io, helm.toolkit.fluxcd.io], resources: [kustomizations, helmreleases], verbs: [get, list, watch, patch]}\n")
	out["kustomization.yaml"] = "resources: [orders.yaml, nightly.yaml, plain.yaml, upgrade.yaml, windows.yaml, rbac.yaml]\n"
	return out
}

// kustomizations are what kustomize-controller applies from a repository of Git.
func kustomizations() fluxController {
	return fluxController{
		name: "kustomize-controller", module: "flux", definition: "kustomize.toolkit.fluxcd.io_kustomizations.yaml",
		owns: schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}, kind: "Kustomization",
		source: source{
			resource: schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}, kind: "GitRepository",
			spec: map[string]any{"url": "https://git.example/apps", "interval": "1h"},
			revision: func(_ map[string]string, archive []byte) string {
				return fmt.Sprintf("main@sha1:%x", sha1.Sum(archive)) //nolint:gosec // as Git names its commits
			},
		},
		files: files,
		settled: func(owner *unstructured.Unstructured, revision string) bool {
			got, _, _ := unstructured.NestedString(owner.Object, "status", "lastAppliedRevision")
			return got == revision
		},
	}
}

// deliver makes the owner, which applies what is pushed.
func (l *lab) deliver(spec map[string]any) {
	l.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(l.owns.GroupVersion().WithKind(l.kind))
	u.SetName("apps")
	_, err := l.dyn.Resource(l.owns).Namespace(l.ns).Create(l.ctx, u, metav1.CreateOptions{})
	l.must(err)
}

func (l *lab) owner() *unstructured.Unstructured {
	l.Helper()
	u, err := l.dyn.Resource(l.owns).Namespace(l.ns).Get(l.ctx, "apps", metav1.GetOptions{})
	l.must(err)
	return u
}

func (l *lab) suspended() bool {
	on, _, _ := unstructured.NestedBool(l.owner().Object, "spec", "suspend")
	return on
}

func (l *lab) push(commit int) string {
	l.Helper()
	revision, err := l.repo.push(l.ctx, l.files(commit))
	l.must(err)
	return revision
}

// applied waits until the controller has applied a revision, and says so.
func (l *lab) applied(revision string) {
	l.Helper()
	l.eventually("the controller applies "+revision, func() (bool, string) {
		u := l.owner()
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		return l.settled(u, revision) && strings.Contains(fmt.Sprint(conditions), "status:True type:Ready"), fmt.Sprint(u.Object["status"])
	})
}

func (l *lab) document(name string) *corev1.ConfigMap {
	l.Helper()
	cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	return cm
}

func (l *lab) replicas() int32 {
	l.Helper()
	d, err := l.admin.AppsV1().Deployments(l.ns).Get(l.ctx, "orders", metav1.GetOptions{})
	l.must(err)
	return *d.Spec.Replicas
}

// ready says what a Deployment's controller would: its pods are there, whatever its spec
// becomes.
func (l *lab) ready() {
	l.Helper()
	d, err := l.admin.AppsV1().Deployments(l.ns).Get(l.ctx, "orders", metav1.GetOptions{})
	l.must(err)
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1000, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3}
	_, err = l.admin.AppsV1().Deployments(l.ns).UpdateStatus(l.ctx, d, metav1.UpdateOptions{})
	l.must(err)
}

// holds waits until the n-th run of a plan has reached its step hold, and returns its name.
func (l *lab) holds(plan string, n int) string {
	l.Helper()
	name := ""
	l.eventually("a run of "+plan+" holds", func() (bool, string) {
		runs, err := l.admin.CoreV1().ConfigMaps(l.ns).List(l.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindRun + "," + annotations.LabelPlan + "=" + plan})
		l.must(err)
		if len(runs.Items) != n {
			return false, fmt.Sprint(len(runs.Items), " runs")
		}
		name = slices.MaxFunc(runs.Items, func(a, b corev1.ConfigMap) int {
			return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		}).Name
		out := l.maint(0, "describe", name)
		return strings.Contains(out, "hold") && l.replicas() == 0, out
	})
	return name
}

// documents are those of every commit.
func documents() []string { return []string{"nightly", "plain", "upgrade", "windows"} }

// TestBesideFlux: what people and the agent wrote on documents from Git survives every push,
// nobody fights, and a run keeps its target while it lives.
func TestBesideFlux(t *testing.T) {
	l := newLab(t, kustomizations())
	l.begin(map[string]any{
		"interval": "3s", "path": "./", "prune": true, "targetNamespace": l.ns, "timeout": "30s",
		"sourceRef": map[string]any{"kind": "GitRepository", "name": "apps"},
	})
	t.Run("an hour of pushes leaves plans as they are", func(t *testing.T) { l.of(t).pushed(pushes) })
	t.Run("a run whose target Flux keeps is held", func(t *testing.T) { l.of(t).drift() })
	t.Run("a run that holds the owners is left alone", func(t *testing.T) { l.of(t).held() })
}

// begin delivers the first commit, and has people and the agent write on its documents.
func (l *lab) begin(owner map[string]any) {
	l.Helper()
	first := l.push(0)
	l.deliver(owner)
	l.applied(first)
	l.eventually("the agent has looked at the plans", func() (bool, string) {
		all := true
		for _, name := range documents() {
			cm := l.document(name)
			all = all && cm.Annotations[annotations.StatusObserved] == annotations.Observed(cm)
		}
		return all, ""
	})
	l.ready()
	l.maint(0, "pause", "nightly", "--reason", "launch")
	l.maint(0, "skip", "nightly", "--next", "1")
	l.maint(0, "freeze", "policy/windows", "--for", "2h", "--reason", "launch")
	l.eventually("the agent says so", func() (bool, string) {
		a := l.document("nightly").Annotations
		return a[annotations.StatusPhase] == "Paused" && strings.Contains(a[annotations.StatusBehavior], "launch"), fmt.Sprint(a)
	})
}

// of is the same lab for a part of the story.
func (l *lab) of(t *testing.T) *lab {
	t.Helper()
	part := *l
	part.T = t
	return &part
}

// pushed pushes n commits, and sees that each document is as it was: to the
// resourceVersion, unless the commits label it anew.
func (l *lab) pushed(n int) {
	l.Helper()
	began := map[string]*corev1.ConfigMap{}
	for _, name := range documents() {
		began[name] = l.document(name)
	}
	for i := range n {
		l.applied(l.push(i + 1))
	}
	for name, was := range began {
		is := l.document(name)
		written := is.ResourceVersion != was.ResourceVersion && maps.Equal(is.Labels, was.Labels)
		if written || !maps.Equal(is.Annotations, was.Annotations) {
			l.Errorf("%s was written:\nwas %v\nis  %v", name, was.Annotations, is.Annotations)
		}
	}
	if log := l.log.Tail(shown); strings.Contains(log, "ConfigMap/"+l.ns+"/nightly configured") {
		l.Errorf("the controller wrote a plan:\n%s", log)
	}
}

func (l *lab) drift() {
	l.Helper()
	l.maint(0, "trigger", "plain")
	l.eventually("the run is held, by name of who did it", func() (bool, string) {
		out := l.maint(0, "describe", "plain")
		return strings.Contains(out, l.name+" changed spec.replicas of Deployment/orders from 0 to 3"), out
	})
	if out := l.maint(3, "why", "plain"); !strings.Contains(out, "holdOwners: true") {
		l.Errorf("why does not say what helps:\n%s", out)
	}
	l.maint(0, "abort", "plain", "--yes")
	l.eventually("it ends", func() (bool, string) {
		out := l.maint(0, "history", "plain")
		return strings.Contains(out, "Aborted"), out
	})
	if got := l.replicas(); got != 3 {
		l.Errorf("%d replicas", got)
	}
}

func (l *lab) held() {
	l.Helper()
	was := l.owner().Object["spec"]
	l.maint(0, "trigger", "upgrade")
	name := l.holds("upgrade", 1)
	if !l.suspended() {
		l.Error("the owner is not suspended")
	}
	revision := l.push(pushes + 1)
	time.Sleep(7 * time.Second) // two of its intervals
	if got := l.replicas(); got != 0 {
		l.Errorf("a push while the run lives put back %d replicas", got)
	}
	l.released("upgrade", name, was)
	l.applied(revision)
	if got := l.replicas(); got != 3 {
		l.Errorf("%d replicas", got)
	}
}

// released ends a run that holds, and sees that the owner is given back as it was.
func (l *lab) released(plan, name string, was any) {
	l.Helper()
	l.maint(0, "resume", name)
	l.eventually("it ends", func() (bool, string) {
		out := l.maint(0, "history", plan)
		return slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
			return strings.Contains(line, name) && strings.Contains(line, "Succeeded")
		}), out
	})
	if is := l.owner().Object["spec"]; !reflect.DeepEqual(is, was) {
		l.Errorf("the owner is not as it was:\nwas %v\nis  %v", was, is)
	}
}
