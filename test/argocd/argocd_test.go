package argocd_test

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// pushes are those of an hour in which somebody pushes every other minute.
const pushes = 30

// TestBesideArgoCD: what people and the agent wrote on documents from Git survives every
// push, nobody fights, and a run keeps its target while it lives.
func TestBesideArgoCD(t *testing.T) {
	l := newLab(t)
	for _, c := range []struct {
		name, ns, at string
		options      []string
	}{
		{"an Application of Argo CD's namespace, applied by the client", "shop", argoNamespace, nil},
		{"an Application of its own namespace, applied by the server", "store", "store", []string{"ServerSideApply=true"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			part := *l
			part.T = t
			p := part.newTenant(c.ns, c.at)
			p.apply(p.delivered(c.options...))
			p.begin()
			t.Run("an hour of pushes leaves plans as they are", func(t *testing.T) { p.of(t).pushed() })
			t.Run("nothing is out of sync, and nothing is synced again", func(t *testing.T) { p.of(t).atRest() })
			t.Run("what somebody asks for is done once", func(t *testing.T) { p.of(t).intents() })
			t.Run("a run whose target Argo CD keeps is held", func(t *testing.T) { p.of(t).drift() })
			t.Run("a run that holds the owners is left alone", func(t *testing.T) { p.of(t).held() })
			t.Run("a sync of a push that was decided before is waited for", func(t *testing.T) { p := p.of(t); p.raced(p.pushedLook) })
			t.Run("healing that was decided before is waited for", func(t *testing.T) { p := p.of(t); p.raced(p.healingLook) })
			t.Run("a run that ends before Argo CD has looked gives back", func(t *testing.T) { p.of(t).abandoned() })
			t.Run("a gate holds what is pushed while it is closed", func(t *testing.T) { p.of(t).gated() })
			t.Run("a run that may not hold the owner says so", func(t *testing.T) { p.of(t).forbidden() })
		})
	}
	t.Run("an Application that another Application keeps", func(t *testing.T) {
		part := *l
		part.T = t
		part.newTenant("family", "fleet").parent()
	})
	t.Run("an Application that marks by a label", func(t *testing.T) {
		part := *l
		part.T = t
		part.newTenant("guests", argoNamespace).labelled()
	})
	// Argo CD writes it after a look, over what was given back since.
	if strings.Contains(l.log.String(), "Normalized app spec") {
		t.Error("Argo CD had to tidy an Application")
	}
}

// begin has people and the agent write on the documents of the first commit.
func (p *tenant) begin() {
	p.Helper()
	p.applied(p.repo.revision)
	p.eventually("the agent has looked at the plans", func() (bool, string) {
		all := true
		for _, name := range documents() {
			cm := p.document(name)
			all = all && cm.Annotations[annotations.StatusObserved] == annotations.Observed(cm)
		}
		return all, ""
	})
	p.ready()
	p.eventually("the agent has seen the rights that came with the plans", func() (bool, string) {
		said := ""
		for _, name := range documents() {
			said += p.document(name).Annotations[annotations.StatusConditions]
		}
		return !strings.Contains(said, `"NotReady"`), said
	})
	p.maint(0, "pause", "nightly", "--reason", "launch")
	p.maint(0, "skip", "nightly", "--next", "1")
	p.maint(0, "freeze", "policy/windows", "--for", "2h", "--reason", "launch")
	p.eventually("the agent says so", func() (bool, string) {
		a := p.document("nightly").Annotations
		return a[annotations.StatusPhase] == "Paused" && strings.Contains(a[annotations.StatusBehavior], "launch"), fmt.Sprint(a)
	})
}

func (p *tenant) snapshot() map[string]*corev1.ConfigMap {
	p.Helper()
	out := map[string]*corev1.ConfigMap{}
	for _, name := range documents() {
		out[name] = p.document(name)
	}
	return out
}

// unwritten compares each document with what it was, to the resourceVersion.
func (p *tenant) unwritten(before map[string]*corev1.ConfigMap) {
	p.Helper()
	for name, was := range before {
		is := p.document(name)
		if is.ResourceVersion != was.ResourceVersion || !maps.Equal(is.Annotations, was.Annotations) {
			p.Errorf("%s was written:\nwas %v\nis  %v\nby  %v", name, was.Annotations, is.Annotations, is.ManagedFields)
		}
	}
}

func (p *tenant) pushed() {
	p.Helper()
	before := p.snapshot()
	for i := range pushes {
		revision := p.push(files(i + 1))
		p.refresh()
		p.applied(revision)
		if got, want := p.deployment().Annotations["example.com/commit"], fmt.Sprint(i+1); got != want {
			p.Fatalf("commit %s is there, want %s", got, want)
		}
	}
	p.unwritten(before)
}

// atRest looks several times without a push.
func (p *tenant) atRest() {
	p.Helper()
	before, synced := p.snapshot(), field(p.owner(), "status", "operationState", "finishedAt")
	p.rest(4)
	p.unwritten(before)
	if got := field(p.owner(), "status", "operationState", "finishedAt"); got != synced {
		p.Errorf("it is synced again while nothing changes: at %s and at %s", synced, got)
	}
	if got := field(p.owner(), "status", "sync", "status"); got != "Synced" {
		p.Errorf("it is %s: %s", got, field(p.owner(), "status", "resources"))
	}
	if got := field(p.owner(), "status", "conditions"); got != "null" {
		p.Errorf("it has conditions: %s", got)
	}
}

// intents are written and taken away by people, and by the agent that has done them.
func (p *tenant) intents() {
	p.Helper()
	synced := field(p.owner(), "status", "operationState", "finishedAt")
	p.maint(0, "resume", "nightly")
	p.maint(0, "freeze", "policy/windows", "--end")
	p.eventually("the agent says so", func() (bool, string) {
		a := p.document("nightly").Annotations
		return a[annotations.StatusPhase] != "Paused", fmt.Sprint(a)
	})
	name := p.trigger("nightly", "--outside-window", "--reason", "launch")
	p.rest(2)
	p.maint(0, "abort", name, "--yes")
	p.ends("nightly", name, "Aborted")
	p.rest(2)
	if got := len(p.runs("nightly")); got != 1 {
		p.Errorf("%d runs of one request", got)
	}
	if got := field(p.owner(), "status", "operationState", "finishedAt"); got != synced {
		p.Errorf("it is synced again: at %s and at %s", synced, got)
	}
	if got := field(p.owner(), "status", "sync", "status"); got != "Synced" {
		p.Errorf("it is %s: %s", got, field(p.owner(), "status", "resources"))
	}
}

func (p *tenant) drift() {
	p.Helper()
	name := p.trigger("plain")
	p.eventually("the run is held, by name of who did it", func() (bool, string) {
		out := p.maint(0, "describe", "plain")
		return strings.Contains(out, "argocd-controller changed spec.replicas of Deployment/orders from 0 to 3"), out
	})
	if out := p.maint(3, "why", "plain"); !strings.Contains(out, "holdOwners: true") {
		p.Errorf("why does not say what helps:\n%s", out)
	}
	p.maint(0, "abort", "plain", "--yes")
	p.ends("plain", name, "Aborted")
	if got := p.replicas(); got != 3 {
		p.Errorf("%d replicas", got)
	}
}

func (p *tenant) held() {
	p.Helper()
	was := p.owner().Object["spec"]
	name := p.trigger("upgrade")
	p.holds(name)
	if !p.suspended() {
		p.Error("the owner is not suspended")
	}
	revision := p.push(files(pushes + 1))
	p.rest(3)
	if got := field(p.owner(), "status", "sync", "status"); got != "OutOfSync" {
		p.Errorf("Argo CD does not see the push: %s", got)
	}
	if got := p.replicas(); got != 0 {
		p.Errorf("a push while the run lives put back %d replicas", got)
	}
	p.released(name, was)
	p.applied(revision)
	if got := p.replicas(); got != 3 {
		p.Errorf("%d replicas", got)
	}
}

// released ends a run that holds, and sees that the owner is given back as it was.
func (p *tenant) released(name string, was any) {
	p.Helper()
	p.maint(0, "resume", name)
	p.ends("upgrade", name, "Succeeded")
	if is := p.owner().Object["spec"]; !reflect.DeepEqual(is, was) {
		p.Errorf("the owner is not as it was:\nwas %v\nis  %v", was, is)
	}
}

// pushedLook has the controller look at a push.
func (p *tenant) pushedLook() {
	p.Helper()
	p.push(files(pushes + 2))
	p.ask(p.ns, p.at)
}

// healingLook has the controller look at something that somebody edited, of its own accord.
func (p *tenant) healingLook() {
	p.Helper()
	_, err := p.admin.AppsV1().Deployments(p.ns).Patch(p.ctx, "orders", types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/commit":"edited"}}}`), metav1.PatchOptions{})
	p.must(err)
}

// raced has the controller look, and a run hold the Application meanwhile: what the
// controller decided by the Application as it was then, it does afterwards.
func (p *tenant) raced(look func()) {
	p.Helper()
	was := p.owner().Object["spec"]
	p.render.set(true)
	look()
	time.Sleep(2 * time.Second) // it asks the repository server
	name := p.trigger("upgrade")
	p.eventually("the owner is suspended", func() (bool, string) { return p.suspended(), p.maint(0, "describe", name) })
	time.Sleep(2 * time.Second)
	if got := p.replicas(); got != 3 {
		p.Errorf("the run goes on while a sync is decided: %d replicas\n%s", got, p.maint(0, "describe", name))
	}
	p.render.set(false)
	p.holds(name)
	p.rest(3)
	if out := p.maint(0, "describe", name); p.replicas() != 0 || strings.Contains(out, "changed spec.replicas") {
		p.Errorf("a sync that was decided before came in between:\n%s", out)
	}
	if got, want := p.deployment().Annotations["example.com/commit"], fmt.Sprint(pushes+2); got != want {
		p.Errorf("what was decided is not done: commit %s is there, want %s", got, want)
	}
	p.released(name, was)
	p.applied(p.repo.revision)
}

// abandoned ends a run while the controller looks and the run waits for it.
func (p *tenant) abandoned() {
	p.Helper()
	was := p.owner().Object["spec"]
	p.render.set(true)
	defer p.render.set(false)
	name := p.trigger("upgrade")
	p.eventually("the owner is suspended", func() (bool, string) { return p.suspended(), p.maint(0, "describe", name) })
	time.Sleep(2 * time.Second) // it asks the repository server
	p.maint(0, "abort", "upgrade", "--yes")
	p.ends("upgrade", name, "Aborted")
	p.render.set(false)
	p.rest(3)
	if is := p.owner().Object["spec"]; !reflect.DeepEqual(is, was) {
		p.Errorf("the owner is not as it was:\nwas %v\nis  %v", was, is)
	}
	p.applied(p.repo.revision)
}

// gated has a policy close its gate on the Application: what is pushed meanwhile waits, and
// comes once the policy permits it.
func (p *tenant) gated() {
	p.Helper()
	was := p.owner().Object["spec"]
	p.apply(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: shut, namespace: %[1]s, labels: {maint.dev/kind: policy}}, data: {policy.yaml: "{apiVersion: maint.dev/v1alpha1, kind: Policy, spec: {strategy: Restrictive, gates: [{apiVersion: argoproj.io/v1alpha1, kind: Application, namespace: %[2]s, name: %[1]s, knob: argocd}]}}"}}`, p.ns, p.at))
	p.eventually("the gate is closed", func() (bool, string) {
		return p.suspended(), p.document("shut").Annotations[annotations.StatusConditions]
	})
	p.rest(2)
	before := p.deployment().Annotations["example.com/commit"]
	revision := p.push(files(pushes + 3))
	p.rest(3)
	if got := p.deployment().Annotations["example.com/commit"]; got != before {
		p.Errorf("commit %s came in although the gate is closed", got)
	}
	if policy, there := p.owner().Object["spec"].(map[string]any)["syncPolicy"].(map[string]any); there && len(policy) == 0 {
		p.Error("an empty syncPolicy is left")
	}
	p.maint(0, "allow", "shut", "--for", "1h", "--reason", "CHG-7")
	p.applied(revision)
	if is := p.owner().Object["spec"]; !reflect.DeepEqual(is, was) {
		p.Errorf("the Application is not as it was:\nwas %v\nis  %v", was, is)
	}
	p.must(p.admin.CoreV1().ConfigMaps(p.ns).Delete(p.ctx, "shut", metav1.DeleteOptions{}))
}

// forbidden takes the right to the Application away.
func (p *tenant) forbidden() {
	p.Helper()
	before := p.owner().Object["spec"]
	p.must(p.admin.RbacV1().RoleBindings(p.at).Delete(p.ctx, "owners-of-"+p.ns, metav1.DeleteOptions{}))
	name := p.trigger("upgrade")
	p.ends("upgrade", name, "Failed")
	out := p.maint(0, "describe", name)
	if want := `may not get applications.argoproj.io "` + p.ns + `" in namespace ` + p.at; !strings.Contains(out, want) {
		p.Errorf("it does not say what to grant, %s:\n%s", want, out)
	}
	if got := p.replicas(); got != 3 || !reflect.DeepEqual(p.owner().Object["spec"], before) {
		p.Errorf("something was done: %d replicas", got)
	}
	p.grant()
}

// parent has the Application in a repository of its own, whose Application ignores its
// sync policy, as docs/gitops.md says.
func (p *tenant) parent() {
	p.Helper()
	fleet := p.newRepository("fleet")
	child := func(label string) map[string]string {
		return map[string]string{"family.yaml": strings.Replace(p.delivered(), "metadata: {", "metadata: {labels: {commit: "+label+"}, ", 1)}
	}
	_, err := fleet.push(p.ctx, child("first"))
	p.must(err)
	p.apply(manifest("fleet", argoNamespace, fleet, p.at, ", syncOptions: [RespectIgnoreDifferences=true]",
		"  ignoreDifferences: [{group: argoproj.io, kind: Application, jsonPointers: [/spec/syncPolicy]}]\n"))
	p.synced("fleet", argoNamespace, fleet.revision)
	p.begin()
	was := p.owner().Object["spec"]
	name := p.trigger("upgrade")
	p.holds(name)
	revision, err := fleet.push(p.ctx, child("second"))
	p.must(err)
	p.ask("fleet", argoNamespace)
	p.synced("fleet", argoNamespace, revision)
	p.rest(2)
	if got := p.owner().GetLabels()["commit"]; got != "second" {
		p.Errorf("the parent has not applied the Application: %s", got)
	}
	if !p.suspended() || p.replicas() != 0 {
		p.Errorf("the parent resumed the Application: %d replicas\n%s", p.replicas(), p.maint(0, "describe", name))
	}
	p.released(name, was)
}

// labelled has Argo CD mark what it applies by the label that others set, too.
func (p *tenant) labelled() {
	p.Helper()
	p.configure("application.resourceTrackingMethod: label")
	p.apply(p.delivered())
	p.begin()
	d := p.deployment()
	if d.Labels["app.kubernetes.io/instance"] != p.ns || d.Annotations["argocd.argoproj.io/tracking-id"] != "" {
		p.Fatalf("it is not marked by a label: %v %v", d.Labels, d.Annotations)
	}
	p.held()
}
