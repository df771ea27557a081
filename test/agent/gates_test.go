package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// kinds are the other controllers' kinds, as small as their knobs need.
func kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"},
		{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"},
		{Group: "core.oam.dev", Version: "v1beta1", Kind: "Application"},
		{Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "MachineConfigPool"},
		{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "Cluster"},
		{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "Machine"},
		{Group: "s3.example.org", Version: "v1beta1", Kind: "Bucket"},
		{Group: "gates.example.org", Version: "v1", Kind: "App"},
		{Group: "gates.example.org", Version: "v1", Kind: "Strict"}, // whose schema has no field of a knob
	}
}

func resourceOf(k schema.GroupVersionKind) schema.GroupVersionResource {
	plural, _ := meta.UnsafeGuessKindToResource(k)
	return plural
}

// installed are the kinds of a cluster, once.
var installed sync.Once

func installKinds(config *rest.Config, until func(holds func() (bool, string))) error {
	var all strings.Builder
	for _, k := range kinds() {
		scope, open := "Namespaced", "true"
		switch k.Kind {
		case "MachineConfigPool":
			scope = "Cluster"
		case "Strict":
			open = "false"
		}
		section := "{type: object, x-kubernetes-preserve-unknown-fields: true}"
		if open == "false" {
			section = "{type: object, properties: {size: {type: integer}}}"
		}
		r := resourceOf(k)
		fmt.Fprintf(&all, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: %[2]s
  scope: %[3]s
  names: {plural: %[1]s, singular: %[4]s, kind: %[5]s}
  versions:
  - name: %[6]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: %[7]s, status: %[7]s}}}
---
`, r.Resource, k.Group, scope, strings.ToLower(k.Kind), k.Kind, k.Version, section)
	}
	if err := harness.Apply(context.Background(), config, "", []byte(all.String()), nil); err != nil {
		return err
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	until(func() (bool, string) {
		var all sync.WaitGroup
		errs := make([]error, len(kinds()))
		for i, k := range kinds() { // at once: the first list of each waits a second for its cache
			all.Go(func() {
				_, errs[i] = dyn.Resource(resourceOf(k)).List(context.Background(), metav1.ListOptions{})
			})
		}
		all.Wait()
		err := errors.Join(errs...)
		return err == nil, fmt.Sprint(err)
	})
	return nil
}

// gateLab is a lab with the other controllers' kinds.
type gateLab struct {
	*lab
	dyn dynamic.Interface
}

func newGateLab(t *testing.T) *gateLab {
	t.Helper()
	l := newLab(t)
	config := world.cluster.AdminConfig()
	installed.Do(func() {
		l.must(installKinds(config, func(holds func() (bool, string)) { l.eventually("the kinds are served", holds) }))
	})
	dyn, err := dynamic.NewForConfig(config)
	l.must(err)
	return &gateLab{lab: l, dyn: dyn}
}

// gateRights are all that the gates of these tests need.
func gateRights(verbs ...string) rbacv1.PolicyRule {
	if len(verbs) == 0 {
		verbs = []string{"get", "list", "watch", "patch"}
	}
	rule := rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: verbs}
	for _, k := range kinds() {
		rule.APIGroups, rule.Resources = append(rule.APIGroups, k.Group), append(rule.Resources, resourceOf(k).Resource)
	}
	return rule
}

func (l *gateLab) of(resource schema.GroupVersionResource, name string) dynamic.ResourceInterface {
	if resource.Resource == "machineconfigpools" {
		return l.dyn.Resource(resource)
	}
	return l.dyn.Resource(resource).Namespace(l.ns)
}

func find(kind, group string) schema.GroupVersionKind {
	if kind == "Deployment" {
		return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}
	}
	for _, k := range kinds() {
		if k.Kind == kind && (group == "" || k.Group == group) {
			return k
		}
	}
	panic("no kind " + kind)
}

func (l *gateLab) create(k schema.GroupVersionKind, name, body string) *unstructured.Unstructured {
	l.Helper()
	u := &unstructured.Unstructured{}
	l.must(json.Unmarshal([]byte(body), &u.Object))
	u.SetGroupVersionKind(k)
	u.SetName(name)
	got, err := l.of(resourceOf(k), name).Create(l.ctx, u, metav1.CreateOptions{})
	l.must(err)
	return got
}

func (l *gateLab) kustomization(name, body string) *unstructured.Unstructured {
	l.Helper()
	return l.create(find("Kustomization", ""), name, body)
}

func (l *gateLab) get(k schema.GroupVersionKind, name string) *unstructured.Unstructured {
	l.Helper()
	u, err := l.of(resourceOf(k), name).Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	return u
}

// write is a person's patch.
func (l *gateLab) write(k schema.GroupVersionKind, name, patch string) {
	l.Helper()
	_, err := l.of(resourceOf(k), name).Patch(l.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "person"})
	l.must(err)
}

// reaches waits until an object's spec, labels and foreign annotations are as
// wanted.
func (l *gateLab) reaches(k schema.GroupVersionKind, name, want string) *unstructured.Unstructured {
	l.Helper()
	var wanted map[string]any
	l.must(json.Unmarshal([]byte(want), &wanted))
	var u *unstructured.Unstructured
	l.eventually(k.Kind+" "+name+" becomes "+want, func() (bool, string) {
		u = l.get(k, name)
		have := knobs(u)
		return reflect.DeepEqual(have, wanted), fmt.Sprintf("%v %v", have, u.GetAnnotations())
	})
	return u
}

func knobs(u *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	if spec, ok := u.Object["spec"]; ok {
		out["spec"] = spec
	}
	if labels := u.GetLabels(); len(labels) > 0 {
		out["labels"] = anyMap(labels)
	}
	foreign := map[string]string{}
	for key, value := range u.GetAnnotations() {
		if !strings.Contains(key, "maint.dev/") {
			foreign[key] = value
		}
	}
	if len(foreign) > 0 {
		out["annotations"] = anyMap(foreign)
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil
	}
	read := map[string]any{} // with the numbers that the tests read theirs with
	if err := json.Unmarshal(b, &read); err != nil {
		return nil
	}
	return read
}

func anyMap(in map[string]string) map[string]any {
	out := map[string]any{}
	for k, v := range in {
		out[k] = v
	}
	return out
}

func (l *gateLab) open(policy string) {
	l.annotate(policy, map[string]string{annotations.ChangeStrategy: "Permissive"})
}

func (l *gateLab) close(policy string) {
	l.annotate(policy, map[string]string{annotations.ChangeStrategy: ""})
}

const fluxGate = "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, knob: flux}"

// settled waits until a policy's gates hold n objects, and nothing is left to do.
func (l *gateLab) settled(policy, counts string) {
	l.Helper()
	l.eventually("the gates of "+policy+" say "+counts, func() (bool, string) {
		cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, policy, metav1.GetOptions{})
		l.must(err)
		return strings.Contains(cm.Annotations[annotations.StatusConditions], counts), cm.Annotations[annotations.StatusConditions]
	})
}

// told waits for an Event about an object.
func (l *gateLab) told(reason, object, words string) {
	l.Helper()
	l.eventually("an Event "+reason+" about "+object, func() (bool, string) {
		list, err := l.admin.CoreV1().Events(l.ns).List(l.ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
		l.must(err)
		seen := ""
		for _, e := range list.Items {
			seen += e.InvolvedObject.Name + ": " + e.Message + "\n"
			if e.InvolvedObject.Name == object && strings.Contains(e.Message, words) {
				return true, ""
			}
		}
		return false, seen
	})
}

func TestGateClosesEveryKindOfKnobAndOpensItAsItWasFound(t *testing.T) {
	l := newGateLab(t)
	l.runner(gateRights())
	pool := "pool-" + l.ns
	l.must(harness.Apply(l.ctx, world.cluster.AdminConfig(), "", []byte(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules: [{apiGroups: [machineconfiguration.openshift.io], resources: [machineconfigpools], verbs: [list, watch, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{kind: ServiceAccount, name: maint-runner, namespace: %[2]s}]
`, pool, l.ns)), nil))
	l.deployment("web", 2)
	web := knobs(l.get(find("Deployment", ""), "web"))
	paused, err := json.Marshal(web)
	l.must(err)
	cases := []struct {
		kind         schema.GroupVersionKind
		name         string
		rule         string
		open, closed string
	}{
		{find("Kustomization", ""), "apps", "knob: flux", `{"spec":{"prune":true}}`, `{"spec":{"prune":true,"suspend":true}}`},
		{find("Application", "argoproj.io"), "shop", "knob: argocd", `{"spec":{"syncPolicy":{"automated":{"prune":true,"selfHeal":true},"syncOptions":["A=b"]}}}`, `{"spec":{"syncPolicy":{"syncOptions":["A=b"]}}}`},
		{find("MachineConfigPool", ""), pool, "knob: machineconfigpool, name: " + pool, `{"spec":{"paused":false}}`, `{"spec":{"paused":true}}`},
		{find("Cluster", ""), "prod", "knob: cluster-api", `{"spec":{"topology":{}}}`, `{"spec":{"topology":{},"paused":true}}`},
		{find("Machine", ""), "prod-1", "knob: cluster-api", `{"spec":{"x":1}}`, `{"spec":{"x":1},"annotations":{"cluster.x-k8s.io/paused":"true"}}`},
		{find("Bucket", ""), "data", "knob: crossplane", `{"spec":{"x":1}}`, `{"spec":{"x":1},"annotations":{"crossplane.io/paused":"true"}}`},
		{find("Application", "core.oam.dev"), "vela", "knob: kubevela", `{"spec":{"x":1}}`, `{"spec":{"x":1},"labels":{"controller.core.oam.dev/pause":"true"}}`},
		{find("App", ""), "own", "knob: {path: /spec/mode, closed: manual, open: auto}", `{"spec":{"mode":"canary"}}`, `{"spec":{"mode":"manual"}}`},
		{find("Deployment", ""), "web", "knob: deployment", string(paused), strings.Replace(string(paused), `"spec":{`, `"spec":{"paused":true,`, 1)},
	}
	var gates []string
	for _, c := range cases {
		if c.kind.Kind != "Deployment" {
			l.create(c.kind, c.name, c.open)
		}
		gates = append(gates, fmt.Sprintf("{apiVersion: %s, kind: %s, %s}", c.kind.GroupVersion(), c.kind.Kind, c.rule))
	}
	l.policy("weekends", "{strategy: Restrictive, gates: ["+strings.Join(gates, ", ")+"]}")
	for _, c := range cases {
		u := l.reaches(c.kind, c.name, c.closed)
		if a := u.GetAnnotations(); a[annotations.StatusPermitted] != "false" || !strings.Contains(a[annotations.StatusGate], l.ns+"/weekends") || !strings.Contains(a[annotations.StatusBehavior], "ChangesPaused") {
			t.Errorf("%s says %v", c.kind, a)
		}
		if !strings.Contains(fmt.Sprint(u.GetManagedFields()), annotations.ManagerAgent) {
			t.Errorf("%s was written by %v", c.kind, u.GetManagedFields())
		}
	}
	l.settled("weekends", "9 objects: 9 closed, 0 open")
	l.expect(l.maint("allow", "weekends", "--for", "1h", "--reason", "CHG-7"), 0, "allowed until")
	for _, c := range cases {
		u := l.reaches(c.kind, c.name, c.open)
		if a := u.GetAnnotations(); a[annotations.StatusPermitted] != "true" || a[annotations.StatusGate] != "" {
			t.Errorf("%s says %v", c.kind, a)
		}
	}
	l.settled("weekends", "9 objects: 0 closed, 9 open")
	l.told("GateClosed", "apps", "policy "+l.ns+"/weekends: ")
	l.told("GateOpened", "apps", "as it was found")
}

func TestGateWritesNothingWhereNothingChanged(t *testing.T) {
	l := newGateLab(t)
	l.runner(gateRights())
	flux := find("Kustomization", "")
	l.kustomization("a", `{"spec":{}}`)
	l.policy("shut", "{strategy: Restrictive, gates: ["+fluxGate+"]}")
	l.settled("shut", "1 objects: 1 closed, 0 open")
	was := l.get(flux, "a").GetResourceVersion()
	for i := range 3 { // the policy is looked at, and with the namespace everything that is gated
		l.annotate("shut", map[string]string{"example.org/n": fmt.Sprint(i)})
		l.kustomization(fmt.Sprintf("b%d", i), `{"spec":{}}`)
		_, err := l.admin.CoreV1().Namespaces().Patch(l.ctx, l.ns, types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:"Permissive"}}}`, annotations.ChangeStrategy)), metav1.PatchOptions{})
		l.must(err)
		_, err = l.admin.CoreV1().Namespaces().Patch(l.ctx, l.ns, types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, annotations.ChangeStrategy)), metav1.PatchOptions{})
		l.must(err)
	}
	l.settled("shut", "4 objects: 4 closed, 0 open")
	if is := l.get(flux, "a").GetResourceVersion(); is != was {
		t.Errorf("written again: version %s, was %s: %v", is, was, l.get(flux, "a").Object)
	}
}

// What the agent tells of documents, runs and nodes is not the gates' to write or to take away:
// the two of them would write against each other without end.
func TestGateLeavesWhatTheAgentTellsOfDocumentsRunsAndNodes(t *testing.T) {
	l := newGateLab(t)
	l.runner(configMapRights("get", "list", "watch", "patch"))
	l.must(harness.Apply(l.ctx, world.cluster.AdminConfig(), "", []byte(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: nodes-%[1]s}
rules: [{apiGroups: [""], resources: [nodes], verbs: [list, watch, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nodes-%[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nodes-%[1]s}
subjects: [{kind: ServiceAccount, name: maint-runner, namespace: %[1]s}]
`, l.ns)), nil))
	l.plan("orders", "steps: [{name: rest, type: suspend, properties: {duration: 1ms}}]")
	l.seen("orders")
	l.trigger("orders", "one")
	l.ended("orders", 1)
	l.configMap("held", nil, map[string]string{"x": "b"})
	node := l.worker("g")
	l.expect(l.maint("freeze", "node/"+node, "--for", "1h", "--reason", "inventory"), 0)
	l.expect(l.maint("drain", node, "--no-drain", "--requestor", "disk-swap", "--yes"), 0, "requested for disk-swap")
	knobs := "knob: {path: /data/x, closed: a, open: b}"
	l.policy("shut", "{strategy: Restrictive, gates: [{apiVersion: v1, kind: ConfigMap, name: nothing-at-all, "+knobs+"}, {apiVersion: v1, kind: ConfigMap, name: held, "+knobs+"}, {apiVersion: v1, kind: Node, name: "+node+", knob: {path: /metadata/annotations/example.org~1paused, closed: 'true', open: null}}]}")
	l.settled("shut", "2 objects: 2 closed, 0 open")
	l.eventually("the node says that it is frozen", func() (bool, string) {
		n, err := l.admin.CoreV1().Nodes().Get(l.ctx, node, metav1.GetOptions{})
		l.must(err)
		said := n.Annotations[annotations.StatusConditions]
		return strings.Contains(said, "disk-swap") && n.Annotations["example.org/paused"] == "true", fmt.Sprint(n.Annotations)
	})
	list, err := l.admin.CoreV1().ConfigMaps(l.ns).List(l.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind})
	l.must(err)
	for _, cm := range list.Items {
		if kind := cm.Labels[annotations.LabelKind]; (kind == annotations.KindPlan || kind == annotations.KindRun || kind == annotations.KindPolicy) && cm.Annotations[annotations.StatusConditions] == "" {
			t.Errorf("%s has lost its conditions: %v", cm.Name, cm.Annotations)
		}
	}
	var versions string
	l.still("what is written", func() int {
		list, err := l.admin.CoreV1().ConfigMaps(l.ns).List(l.ctx, metav1.ListOptions{})
		l.must(err)
		n, err := l.admin.CoreV1().Nodes().Get(l.ctx, node, metav1.GetOptions{})
		l.must(err)
		versions = n.ResourceVersion
		for _, cm := range list.Items {
			versions += " " + cm.ResourceVersion
		}
		return int(crc32.ChecksumIEEE([]byte(versions)))
	})
}

func TestGateNeverOpensWhatAPersonClosed(t *testing.T) {
	l := newGateLab(t)
	l.runner(gateRights())
	flux := find("Kustomization", "")
	l.kustomization("before", `{"spec":{"suspend":true}}`)
	l.kustomization("open", `{"spec":{"suspend":false}}`)
	l.kustomization("later", `{"spec":{"suspend":false}}`)
	l.policy("shut", "{strategy: Restrictive, gates: ["+fluxGate+"]}")
	l.settled("shut", "3 objects: 3 closed, 0 open")
	l.told("GateFoundClosed", "before", "stays closed")
	l.write(flux, "open", `{"spec":{"suspend":false}}`) // a person opens it while it is held
	l.reaches(flux, "open", `{"spec":{"suspend":true}}`)
	l.told("GateClosedAgain", "open", "policy "+l.ns+"/shut")
	l.write(flux, "later", `{"spec":{"suspend":false}}`)
	l.write(flux, "later", `{"spec":{"suspend":true}}`) // and closes it again: now it is theirs
	l.eventually("what a person closed is known as theirs", func() (bool, string) {
		gate := l.get(flux, "later").GetAnnotations()[annotations.StatusGate]
		return strings.Contains(gate, `"found":{"value":true}`) || strings.Contains(gate, `"set"`) && l.owner(flux, "later") == annotations.ManagerAgent, gate
	})
	theirs := l.owner(flux, "later") == "person"
	l.open("shut")
	l.reaches(flux, "open", `{"spec":{"suspend":false}}`)
	if theirs {
		l.reaches(flux, "later", `{"spec":{"suspend":true}}`)
	}
	l.eventually("it is let go", func() (bool, string) {
		a := l.get(flux, "before").GetAnnotations()
		return a[annotations.StatusGate] == "" && a[annotations.StatusPermitted] == "true", fmt.Sprint(a)
	})
	l.reaches(flux, "before", `{"spec":{"suspend":true}}`)
	l.write(flux, "open", `{"spec":{"suspend":true}}`) // a person closes it while change is permitted
	l.close("shut")
	l.eventually("it is held as it was found", func() (bool, string) {
		gate := l.get(flux, "open").GetAnnotations()[annotations.StatusGate]
		return strings.Contains(gate, `"found":{"value":true}`), gate
	})
	l.open("shut")
	l.eventually("it is let go", func() (bool, string) {
		gate := l.get(flux, "open").GetAnnotations()[annotations.StatusGate]
		return gate == "", gate
	})
	l.reaches(flux, "open", `{"spec":{"suspend":true}}`)
}

// owner is who wrote spec.suspend.
func (l *gateLab) owner(k schema.GroupVersionKind, name string) string {
	l.Helper()
	for _, m := range l.get(k, name).GetManagedFields() {
		if m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), "f:suspend") {
			return m.Manager
		}
	}
	return ""
}

func TestGateOfTwoPoliciesOpensWithTheLast(t *testing.T) {
	l := newGateLab(t)
	l.runner(gateRights())
	flux := find("Kustomization", "")
	l.kustomization("a", `{"spec":{}}`)
	l.policy("one", "{strategy: Restrictive, gates: ["+fluxGate+"]}")
	l.policy("two", "{strategy: Restrictive, gates: [{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, name: a, knob: {path: spec.suspend, closed: true, open: false}}]}")
	l.eventually("both hold it", func() (bool, string) {
		gate := l.get(flux, "a").GetAnnotations()[annotations.StatusGate]
		return strings.Contains(gate, l.ns+"/one") && strings.Contains(gate, l.ns+"/two"), gate
	})
	l.open("one")
	l.eventually("one lets go", func() (bool, string) {
		gate := l.get(flux, "a").GetAnnotations()[annotations.StatusGate]
		return !strings.Contains(gate, l.ns+"/one"), gate
	})
	u := l.reaches(flux, "a", `{"spec":{"suspend":true}}`)
	if u.GetAnnotations()[annotations.StatusPermitted] != "false" {
		t.Errorf("it says %v", u.GetAnnotations())
	}
	l.must(l.admin.CoreV1().ConfigMaps(l.ns).Delete(l.ctx, "two", metav1.DeleteOptions{}))
	l.reaches(flux, "a", `{"spec":{}}`)
	if n := l.change("change_pending", "Kustomization", "a", ""); n != "0" {
		t.Errorf("change_pending is %s", n)
	}
}

func TestGateReachesAnotherNamespaceWhereItsAccountMay(t *testing.T) {
	l := newGateLab(t)
	l.runner(gateRights())
	there := &gateLab{lab: &lab{T: t, ctx: l.ctx, admin: l.admin, ns: world.cluster.Namespace(t), hooks: l.hooks}, dyn: l.dyn}
	flux := find("Kustomization", "")
	there.kustomization("a", `{"spec":{}}`)
	l.policy("shut", "{strategy: Restrictive, gates: [{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, namespace: "+there.ns+", knob: flux}]}")
	l.settled("shut", "may not list and watch kustomizations.kustomize.toolkit.fluxcd.io in namespace "+there.ns)
	there.reaches(flux, "a", `{"spec":{}}`)
	l.must(harness.Apply(l.ctx, world.cluster.AdminConfig(), there.ns, []byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: gates}
rules: [{apiGroups: [kustomize.toolkit.fluxcd.io], resources: [kustomizations], verbs: [list, watch, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: gates}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: gates}
subjects: [{kind: ServiceAccount, name: maint-runner, namespace: `+l.ns+`}]
`), nil))
	there.runner(gateRights())
	there.policy("open", "{strategy: Permissive, gates: ["+fluxGate+"]}")
	u := there.reaches(flux, "a", `{"spec":{"suspend":true}}`)
	if a := u.GetAnnotations(); a[annotations.StatusPermitted] != "false" {
		t.Errorf("it says %v", a)
	}
	there.annotate("open", map[string]string{annotations.ChangeStrategy: "Restrictive"}) // a second account on the same object
	there.eventually("both hold it", func() (bool, string) {
		gate := there.get(flux, "a").GetAnnotations()[annotations.StatusGate]
		return strings.Contains(gate, l.ns+"/shut") && strings.Contains(gate, there.ns+"/open"), gate
	})
	l.open("shut")
	there.open("open")
	there.reaches(flux, "a", `{"spec":{}}`)
	there.eventually("next_change_eta is 0", func() (bool, string) {
		n := there.change("next_change_eta", "Kustomization", "a", "")
		return n == "0", n
	})
}

func TestGateOpensWhatAPolicyNoLongerNames(t *testing.T) {
	l := newGateLab(t)
	l.runner(gateRights())
	flux, app := find("Kustomization", ""), find("App", "")
	tier := `{"metadata":{"labels":{"tier":"prod"}},"spec":{}}`
	l.kustomization("prod", tier)
	l.kustomization("moves", tier)
	l.kustomization("other", `{"spec":{}}`)
	l.create(app, "own", `{"spec":{"mode":"auto"}}`)
	const selecting = "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, selector: {matchLabels: {tier: prod}}, knob: flux}"
	const custom = "{apiVersion: gates.example.org/v1, kind: App, knob: {path: spec.mode, closed: manual, open: auto}}"
	l.policy("shut", "{strategy: Restrictive, gates: ["+selecting+", "+custom+"]}")
	l.settled("shut", "3 objects: 3 closed, 0 open")
	l.reaches(flux, "other", `{"spec":{}}`)
	l.write(flux, "moves", `{"metadata":{"labels":{"tier":"dev"}}}`)
	u := l.reaches(flux, "moves", `{"spec":{},"labels":{"tier":"dev"}}`)
	if a := u.GetAnnotations(); len(a) != 0 {
		t.Errorf("left behind: %v", a)
	}
	l.edit("shut", "{strategy: Restrictive, gates: ["+selecting+"]}") // one gate is taken out
	l.reaches(app, "own", `{"spec":{"mode":"auto"}}`)
	l.reaches(flux, "prod", `{"spec":{"suspend":true},"labels":{"tier":"prod"}}`)
	l.edit("shut", "{strategy: Restrictive, gates: [{apiVersion: kustomize") // a broken policy holds what it last named
	l.policySeen("shut", func(a map[string]string) bool { return condition(t, a, "Valid").Status == metav1.ConditionFalse })
	l.kustomization("new", tier)
	l.reaches(flux, "new", `{"spec":{"suspend":true},"labels":{"tier":"prod"}}`)
	l.must(l.admin.CoreV1().ConfigMaps(l.ns).Delete(l.ctx, "shut", metav1.DeleteOptions{}))
	for _, name := range []string{"prod", "new"} {
		if a := l.reaches(flux, name, `{"spec":{},"labels":{"tier":"prod"}}`).GetAnnotations(); len(a) != 0 {
			t.Errorf("left behind: %v", a)
		}
	}
	l.eventually("the record is gone", func() (bool, string) {
		list, err := l.admin.CoreV1().ConfigMaps(l.ns).List(l.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindGate})
		l.must(err)
		return len(list.Items) == 0, fmt.Sprint(list.Items)
	})
}

func (l *gateLab) edit(policy, spec string) {
	l.Helper()
	text, err := json.Marshal(map[string]any{"data": map[string]string{annotations.DataPolicy: "apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: " + spec + "\n"}})
	l.must(err)
	_, err = l.admin.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, policy, types.MergePatchType, text, metav1.PatchOptions{})
	l.must(err)
}

func TestGateFollowsTheStanzaOnTheObjectAndItsNamespace(t *testing.T) {
	l := newGateLab(t)
	l.runner(gateRights())
	flux := find("Kustomization", "")
	l.kustomization("a", `{"spec":{}}`)
	l.kustomization("b", `{"spec":{}}`)
	l.policy("shut", "{strategy: Restrictive, gates: ["+fluxGate+"]}")
	l.settled("shut", "2 objects: 2 closed, 0 open")
	until := time.Now().Add(4 * time.Second).UTC().Truncate(time.Second)
	l.write(flux, "a", fmt.Sprintf(`{"metadata":{"annotations":{%q:"PermissiveUntil",%q:%q}}}`, annotations.ChangeStrategy, annotations.PermissiveUntil, until.Format(time.RFC3339)))
	l.reaches(flux, "a", `{"spec":{}}`)
	l.reaches(flux, "b", `{"spec":{"suspend":true}}`)
	l.reaches(flux, "a", `{"spec":{"suspend":true}}`)
	if now := time.Now(); now.Before(until) {
		t.Errorf("closed at %s, before %s", now, until)
	}
	l.open("shut")
	l.reaches(flux, "b", `{"spec":{}}`)
	l.expect(l.maint("freeze", "namespace/"+l.ns, "--for", "1h", "--reason", "stocktaking"), 0)
	l.reaches(flux, "b", `{"spec":{"suspend":true}}`)
}

func TestGateWithoutRightsIsToldAndDoesNothing(t *testing.T) {
	l := newGateLab(t)
	flux := find("Kustomization", "")
	l.kustomization("a", `{"spec":{}}`)
	l.policy("shut", "{strategy: Restrictive, gates: ["+fluxGate+"]}")
	refused := func(words ...string) {
		l.Helper()
		l.eventually(fmt.Sprintf("the condition Gates says %q", words), func() (bool, string) {
			a := l.policySeen("shut", permitted("false"))
			if !strings.Contains(a[annotations.StatusConditions], `"Gates"`) {
				return false, a[annotations.StatusConditions]
			}
			c := condition(t, a, "Gates")
			for _, w := range words {
				if !strings.Contains(c.Message, w) {
					return false, fmt.Sprint(c)
				}
			}
			return c.Status == metav1.ConditionFalse && condition(t, a, "Ready").Status == metav1.ConditionTrue, fmt.Sprint(c)
		})
	}
	refused("the ServiceAccount maint-runner does not exist in namespace " + l.ns)
	l.runner(gateRights("list", "watch"))
	l.annotate("shut", map[string]string{"example.org/look": "again"})
	refused("the ServiceAccount maint-runner of namespace "+l.ns+" may not patch kustomizations.kustomize.toolkit.fluxcd.io in namespace "+l.ns, "grant patch")
	l.told("GateRefused", "shut", "may not patch kustomizations")
	if u := l.get(flux, "a"); len(u.GetAnnotations()) != 0 || !reflect.DeepEqual(knobs(u), map[string]any{"spec": map[string]any{}}) {
		t.Errorf("written all the same: %v", u.Object)
	}
	role, err := l.admin.RbacV1().Roles(l.ns).Get(l.ctx, "maint-runner", metav1.GetOptions{})
	l.must(err)
	role.Rules = []rbacv1.PolicyRule{gateRights("list", "watch", "patch")}
	_, err = l.admin.RbacV1().Roles(l.ns).Update(l.ctx, role, metav1.UpdateOptions{})
	l.must(err)
	l.write(flux, "a", `{"metadata":{"labels":{"look":"again"}}}`)
	l.eventually("it is closed once the right is there", func() (bool, string) {
		l.write(flux, "a", fmt.Sprintf(`{"metadata":{"labels":{"look":"%d"}}}`, time.Now().Unix()))
		suspended, _, _ := unstructured.NestedBool(l.get(flux, "a").Object, "spec", "suspend")
		return suspended, "open"
	})
	l.settled("shut", "1 objects: 1 closed, 0 open")
	l.create(find("Strict", ""), "s", `{"spec":{"size":1}}`)
	l.policy("strict", "{strategy: Restrictive, gates: [{apiVersion: gates.example.org/v1, kind: Strict, knob: {path: spec.paused, closed: true, open: null}}, {apiVersion: nowhere.example.org/v1, kind: Thing, knob: crossplane}]}")
	l.told("GateRefused", "strict", "kind Thing of nowhere.example.org/v1 is not known to this cluster")
	l.settled("strict", "and 1 more")
	l.edit("strict", "{strategy: Restrictive, gates: [{apiVersion: gates.example.org/v1, kind: Strict, knob: {path: spec.paused, closed: true, open: null}}]}")
	l.settled("strict", "did not stay as it was written")
}

func TestGateTellsWhetherChangeWaits(t *testing.T) {
	l := newGateLab(t)
	l.runner(gateRights())
	repo := find("GitRepository", "")
	l.create(repo, "repo", `{"status":{"artifact":{"revision":"main@sha1:new"}}}`)
	l.kustomization("behind", `{"spec":{"sourceRef":{"kind":"GitRepository","name":"repo"}},"status":{"lastAppliedRevision":"main@sha1:old"}}`)
	l.kustomization("level", `{"spec":{"sourceRef":{"kind":"GitRepository","name":"repo"}},"status":{"lastAppliedRevision":"main@sha1:new"}}`)
	l.create(find("Application", "argoproj.io"), "shop", `{"spec":{"syncPolicy":{"automated":{}}},"status":{"sync":{"status":"OutOfSync"}}}`)
	l.policy("shut", "{strategy: Restrictive, gates: ["+fluxGate+", {apiVersion: argoproj.io/v1alpha1, kind: Application, knob: argocd}]}")
	expect := func(kind, object, want string) {
		l.Helper()
		l.eventually("change_pending of "+object, func() (bool, string) {
			got := l.change("change_pending", kind, object, "")
			return got == want, "is " + got + ", want " + want
		})
	}
	expect("Kustomization", "behind", "2")
	expect("Kustomization", "level", "0")
	expect("Application", "shop", "2")
	expect("Policy", "shut", "2")
	l.open("shut")
	expect("Kustomization", "behind", "1")
	expect("Application", "shop", "1")
	if eta := l.change("next_change_eta", "Kustomization", "behind", ""); eta != "0" {
		t.Errorf("next_change_eta is %s", eta)
	}
}

// The agent is killed before and after each of its writes for a gate, and the
// policy is taken away while no agent lives: nothing stays closed.
func TestGateSurvivesAnAgentThatDiesAnywhere(t *testing.T) {
	t.Parallel()
	x := newCrashes(t)
	config := x.c.AdminConfig()
	if err := installKinds(config, func(holds func() (bool, string)) { eventually(t, x.ctx, "the kinds are served", holds) }); err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for i, point := range []struct {
		path, method string
		answered     bool
	}{
		{"/configmaps", http.MethodPost, false},
		{"/configmaps", http.MethodPost, true},
		{"/kustomizations/a", http.MethodPatch, false},
		{"/kustomizations/a", http.MethodPatch, true},
	} {
		x.gate(dyn, fmt.Sprintf("gate-%d", i), func(req *http.Request, answered bool) bool {
			return strings.HasSuffix(req.URL.Path, point.path) && req.Method == point.method && answered == point.answered
		})
	}
}

// gate plays the story of a gate in a namespace; the agent dies where at says.
func (x *crashes) gate(dyn dynamic.Interface, ns string, at func(req *http.Request, answered bool) bool) {
	x.t.Helper()
	must := func(err error) {
		x.t.Helper()
		if err != nil {
			x.t.Fatal(err)
		}
	}
	_, err := x.admin.CoreV1().Namespaces().Create(x.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
	must(err)
	must(harness.Runner(x.ctx, x.admin, ns, gateRights()))
	objects := dyn.Resource(resourceOf(find("Kustomization", ""))).Namespace(ns)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"prune": true}}}
	u.SetGroupVersionKind(find("Kustomization", ""))
	u.SetName("a")
	_, err = objects.Create(x.ctx, u, metav1.CreateOptions{})
	must(err)
	policy := func() {
		_, err := x.admin.CoreV1().ConfigMaps(ns).Create(x.ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "shut", Labels: map[string]string{annotations.LabelKind: annotations.KindPolicy}},
			Data:       map[string]string{annotations.DataPolicy: "apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: {strategy: Restrictive, gates: [" + fluxGate + "]}\n"},
		}, metav1.CreateOptions{})
		must(err)
	}
	is := func(what string, suspended bool) {
		x.t.Helper()
		eventually(x.t, x.ctx, what, func() (bool, string) {
			u, err := objects.Get(x.ctx, "a", metav1.GetOptions{})
			must(err)
			want := map[string]any{"prune": true}
			if suspended {
				want["suspend"] = true
			}
			return reflect.DeepEqual(u.Object["spec"], want) && (u.GetAnnotations()[annotations.StatusGate] != "") == suspended, fmt.Sprint(u.Object["spec"], u.GetAnnotations())
		})
	}
	victim := x.agent()
	killed, once := make(chan struct{}), sync.Once{}
	x.proxy.At(func(req *http.Request, answered bool) bool {
		if !strings.Contains(req.URL.Path, "/"+ns+"/") || !at(req, answered) {
			return true
		}
		once.Do(func() {
			victim.Kill()
			close(killed)
		})
		return false
	})
	policy()
	<-killed
	x.proxy.At(nil)
	heir := x.agent()
	is("the heir closes it", true)
	heir.Kill()
	must(x.admin.CoreV1().ConfigMaps(ns).Delete(x.ctx, "shut", metav1.DeleteOptions{}))
	last := x.agent()
	is("it is opened although the policy was deleted while nobody looked", false)
	last.Kill()
}

func TestGateKeepsTheAgentFromBeingUninstalled(t *testing.T) {
	l := newGateLab(t)
	l.runner(gateRights())
	l.policy("held", "{strategy: Restrictive, gates: [{apiVersion: apps/v1, kind: Deployment, name: absent, knob: deployment}]}")
	l.eventually("the gates are written down", func() (bool, string) {
		_, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, annotations.GateName("held"), metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
	l.expect(l.maint("uninstall", "--yes", "--namespace", annotations.DefaultNamespace), 3)
}
