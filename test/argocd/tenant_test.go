package argocd_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// tenant is an Application, its repository, and the namespace that it is applied to.
type tenant struct {
	*lab
	ns   string // of what is applied, and the Application's name
	at   string // of the Application
	repo *repository
}

// newTenant makes the first commit of a repository that an Application is to deliver.
func (l *lab) newTenant(ns, at string) *tenant {
	l.Helper()
	for _, name := range []string{ns, at} {
		l.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + name + `}}`)
	}
	p := &tenant{lab: l, ns: ns, at: at, repo: l.newRepository(ns)}
	p.grant()
	p.push(files(0))
	return p
}

// of is the same tenant for a part of the story.
func (p *tenant) of(t *testing.T) *tenant {
	t.Helper()
	l, part := *p.lab, *p
	l.T, part.lab = t, &l
	return &part
}

// grant lets plans and policies hold the Application; it is no part of the repository, whose Application
// may be elsewhere.
func (p *tenant) grant() {
	p.Helper()
	p.apply(fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: owners-of-%[1]s, namespace: %[2]s}, rules: [{apiGroups: [argoproj.io], resources: [applications], resourceNames: [%[1]s], verbs: [get, patch, watch]}, {apiGroups: [argoproj.io], resources: [applications], verbs: [list, watch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: owners-of-%[1]s, namespace: %[2]s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: owners-of-%[1]s}, subjects: [{kind: ServiceAccount, name: maint-runner, namespace: %[1]s}]}`, p.ns, p.at))
}

// delivered is an Application whose automation applies what is pushed and heals itself.
func (p *tenant) delivered(options ...string) string {
	sync := ""
	if len(options) > 0 {
		sync = ", syncOptions: [" + strings.Join(options, ", ") + "]"
	}
	return manifest(p.ns, p.at, p.repo, p.ns, sync, "")
}

func manifest(name, namespace string, from *repository, to, sync, more string) string {
	return fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: %s, namespace: %s}
spec:
  project: default
  source: {repoURL: 'file://%s', path: ., targetRevision: HEAD}
  destination: {server: 'https://kubernetes.default.svc', namespace: %s}
  syncPolicy: {automated: {prune: true, selfHeal: true}%s}
%s`, name, namespace, from.dir, to, sync, more)
}

// push makes files a commit, and returns its revision.
func (p *tenant) push(files map[string]string) string {
	p.Helper()
	revision, err := p.repo.push(p.ctx, files)
	p.must(err)
	return revision
}

// refresh has the controller look now, as its next poll would.
func (p *tenant) refresh() {
	p.Helper()
	p.ask(p.ns, p.at)
	p.eventually("the controller looks at the Application", func() (bool, string) {
		return p.owner().GetAnnotations()["argocd.argoproj.io/refresh"] == "", fmt.Sprint(p.owner().GetAnnotations())
	})
}

func (p *tenant) owner() *unstructured.Unstructured {
	p.Helper()
	return p.application(p.ns, p.at)
}

func (p *tenant) suspended() bool {
	return field(p.owner(), "spec", "syncPolicy", "automated") == "null"
}

// applied waits until a revision is synced.
func (p *tenant) applied(revision string) {
	p.Helper()
	p.synced(p.ns, p.at, revision)
}

func (p *tenant) document(name string) *corev1.ConfigMap {
	p.Helper()
	cm, err := p.admin.CoreV1().ConfigMaps(p.ns).Get(p.ctx, name, metav1.GetOptions{})
	p.must(err)
	return cm
}

func (p *tenant) deployment() *appsv1.Deployment {
	p.Helper()
	d, err := p.admin.AppsV1().Deployments(p.ns).Get(p.ctx, "orders", metav1.GetOptions{})
	p.must(err)
	return d
}

func (p *tenant) replicas() int32 { return *p.deployment().Spec.Replicas }

// ready says what a Deployment's controller would: its pods are there, whatever its spec
// becomes.
func (p *tenant) ready() {
	p.Helper()
	d := p.deployment()
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1000, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3}
	_, err := p.admin.AppsV1().Deployments(p.ns).UpdateStatus(p.ctx, d, metav1.UpdateOptions{})
	p.must(err)
}

func (p *tenant) runs(plan string) []corev1.ConfigMap {
	p.Helper()
	list, err := p.admin.CoreV1().ConfigMaps(p.ns).List(p.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindRun + "," + annotations.LabelPlan + "=" + plan})
	p.must(err)
	return list.Items
}

// trigger asks for a run, and returns its name.
func (p *tenant) trigger(plan string, flags ...string) string {
	p.Helper()
	before := len(p.runs(plan))
	p.maint(0, append([]string{"trigger", plan}, flags...)...)
	name := ""
	p.eventually("a run of "+plan+" begins", func() (bool, string) {
		all := p.runs(plan)
		if len(all) != before+1 {
			return false, fmt.Sprint(len(all), " runs")
		}
		name = slices.MaxFunc(all, func(a, b corev1.ConfigMap) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
		}).Name
		return true, ""
	})
	return name
}

// holds waits until a run has reached its step hold.
func (p *tenant) holds(run string) {
	p.Helper()
	p.eventually(run+" holds", func() (bool, string) {
		out := p.maint(0, "describe", run)
		return strings.Contains(out, "hold") && p.replicas() == 0, out
	})
}

// ends waits until a run has ended with a result, and returns what history says of it.
func (p *tenant) ends(plan, run, result string) string {
	p.Helper()
	said := ""
	p.eventually(run+" ends", func() (bool, string) {
		out := p.maint(0, "history", plan)
		for _, line := range strings.Split(out, "\n") {
			if strings.Contains(line, run) {
				said = line
			}
		}
		return strings.Contains(said, result), out
	})
	return said
}

// maint runs the plugin in the tenant's namespace.
func (p *tenant) maint(code int, args ...string) string {
	p.Helper()
	return p.lab.maint(code, p.ns, args...)
}

// rest looks several times while nobody pushes.
func (p *tenant) rest(times int) {
	p.Helper()
	for range times {
		p.refresh()
		time.Sleep(time.Second)
	}
}

// files are the repository at one of its commits.
func files(commit int) map[string]string { return harness.Repository(commit, "", "") }

// documents are those of every commit.
func documents() []string { return []string{"nightly", "plain", "upgrade", "windows"} }
