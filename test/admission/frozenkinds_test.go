package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// frozenKinds is one object of each kind that can be frozen. None of them has a pod.
const frozenKinds = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: ice, labels: {maint.dev/freeze: year-end}}, data: {a: b}}
---
{apiVersion: v1, kind: Service, metadata: {name: ice, labels: {maint.dev/freeze: year-end}}, spec: {clusterIP: None, selector: {app: ice}, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: ice, labels: {maint.dev/freeze: year-end}}, spec: {storageClassName: "", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ice, labels: {maint.dev/freeze: year-end}}
spec: {replicas: 0, selector: {matchLabels: {app: ice}}, template: {metadata: {labels: {app: ice}}, spec: {containers: [{name: c, image: "example.org/c:1"}]}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: ice, labels: {maint.dev/freeze: year-end}}
spec: {replicas: 0, serviceName: ice, selector: {matchLabels: {app: ice}}, template: {metadata: {labels: {app: ice}}, spec: {containers: [{name: c, image: "example.org/c:1"}]}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: ice, labels: {maint.dev/freeze: year-end}}
spec: {replicas: 0, selector: {matchLabels: {app: ice}}, template: {metadata: {labels: {app: ice}}, spec: {containers: [{name: c, image: "example.org/c:1"}]}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: ice, labels: {maint.dev/freeze: year-end}}
spec: {selector: {matchLabels: {app: ice}}, template: {metadata: {labels: {app: ice}}, spec: {nodeSelector: {nowhere: here}, containers: [{name: c, image: "example.org/c:1"}]}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: ice, labels: {maint.dev/freeze: year-end}}
spec: {schedule: "0 3 1 1 *", suspend: true, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "example.org/c:1"}]}}}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: ice, labels: {maint.dev/freeze: year-end}}
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: "example.org/c:1"}]}}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: ice, labels: {maint.dev/freeze: year-end}}, spec: {defaultBackend: {service: {name: ice, port: {number: 80}}}}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: ice, labels: {maint.dev/freeze: year-end}}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: nobody}, maxReplicas: 3}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: ice, labels: {maint.dev/freeze: year-end}}, spec: {minAvailable: 1, selector: {matchLabels: {app: ice}}}}
`

// changeOf is a change that the API server takes of the object of a kind.
func changeOf(resource string) string {
	return map[string]string{
		"configmaps":               `{"data":{"x":"y"}}`,
		"services":                 `{"spec":{"selector":{"app":"other"}}}`,
		"persistentvolumeclaims":   `{"spec":{"volumeName":"another"}}`,
		"deployments":              `{"spec":{"replicas":3}}`,
		"statefulsets":             `{"spec":{"replicas":3}}`,
		"replicasets":              `{"spec":{"replicas":3}}`,
		"daemonsets":               `{"spec":{"minReadySeconds":5}}`,
		"cronjobs":                 `{"spec":{"suspend":false}}`,
		"jobs":                     `{"spec":{"suspend":false}}`,
		"ingresses":                `{"spec":{"ingressClassName":"other"}}`,
		"horizontalpodautoscalers": `{"spec":{"maxReplicas":9}}`,
		"poddisruptionbudgets":     `{"spec":{"minAvailable":0}}`,
	}[resource]
}

// servedAs is a resource as a policy names it, maybe with a subresource.
type servedAs struct{ group, version, resource, sub string }

// id is the resource as the agent publishes its objects.
func (r servedAs) id() string { return strings.TrimSuffix(r.resource+"."+r.group, ".") }

// name is the resource as the policy has it.
func (r servedAs) name() string { return path.Join(r.id(), r.sub) }

func (r servedAs) path(ns string) string {
	root := "/apis/" + r.group
	if r.group == "" {
		root = "/api"
	}
	return path.Join(root, r.version, "namespaces", ns, r.resource, "ice", r.sub)
}

// patched merges a patch into the object ice, or a subresource of it.
func (r servedAs) patched(patch string) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		answer := k.Discovery().RESTClient().Patch(types.MergePatchType).AbsPath(r.path(l.ns)).Param("dryRun", metav1.DryRunAll).Body([]byte(patch)).Do(l.ctx)
		if err := answer.Error(); err != nil { // unlike that of Raw, as the API server says it
			return nil, err
		}
		text, err := answer.Raw()
		if err != nil {
			return nil, err
		}
		var got metav1.PartialObjectMetadata
		return &got, json.Unmarshal(text, &got)
	}
}

func (r servedAs) deleted() request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		return nil, k.Discovery().RESTClient().Delete().AbsPath(r.path(l.ns)).Param("dryRun", metav1.DryRunAll).Do(l.ctx).Error()
	}
}

// ruledBy are the resources that a policy of manifests/admission/freeze.yaml is about.
func (l *lab) ruledBy(name string) []servedAs {
	l.Helper()
	root, err := harness.Root()
	l.must(err)
	text, err := os.ReadFile(filepath.Join(root, "manifests", "admission", "freeze.yaml"))
	l.must(err)
	var out []servedAs
	for one := range strings.SplitSeq(string(text), "\n---\n") {
		var p admissionv1.ValidatingAdmissionPolicy
		l.must(yaml.Unmarshal([]byte(one), &p))
		if p.Kind != "ValidatingAdmissionPolicy" || p.Name != name {
			continue
		}
		for _, rule := range p.Spec.MatchConstraints.ResourceRules {
			for _, r := range rule.Resources {
				resource, sub, _ := strings.Cut(r, "/")
				out = append(out, servedAs{rule.APIGroups[0], rule.APIVersions[0], resource, sub})
			}
		}
	}
	return out
}

// Of each kind that the policy names, what is frozen is not changed, scaled, deleted or unlabelled,
// by whomever; what is open is.
func TestEachKindThatCanBeFrozenIs(t *testing.T) {
	for state, denied := range map[string]string{"frozen": "is frozen by the policy of its label", "open": ""} {
		t.Run(state, func(t *testing.T) {
			l := newLab(t)
			l.must(harness.Apply(l.ctx, world.cluster.AdminConfig(), l.ns, []byte(frozenKinds), nil))
			kinds := l.ruledBy("maint-freeze")
			if len(kinds) < 15 { // twelve, and the scale of three
				t.Fatalf("the policy is about %v", kinds)
			}
			var published []string
			var rows []row
			for _, r := range kinds {
				change := changeOf(r.resource)
				if change == "" {
					t.Fatalf("this test knows no change of %s", r.resource)
				}
				rows = append(rows, row{name: "a change of " + r.name(), who: admin(), asks: r.patched(change), denied: denied})
				if r.sub != "" {
					continue
				}
				published = append(published, r.id()+"/ice="+state)
				rows = append(rows,
					row{name: "the label of " + r.name(), who: admin(), asks: r.patched(`{"metadata":{"labels":{"maint.dev/freeze":null}}}`), denied: denied},
					row{name: "a deletion of " + r.name(), who: admin(), asks: r.deleted(), denied: denied},
				)
			}
			l.publish(strings.Join(published, ","))
			l.table(rows)
		})
	}
}

// Whoever writes the status of something labelled takes neither its label off along with it nor
// gives it an owner: that is refused, or it is not stored with a status of that kind.
func TestTheStatusOfEachKindThatCanBeFrozenLeavesItsLabelAndOwners(t *testing.T) {
	l := newLab(t)
	l.must(harness.Apply(l.ctx, world.cluster.AdminConfig(), l.ns, []byte(frozenKinds), nil))
	kinds, refused := l.ruledBy("maint-freeze-status"), 0
	for _, r := range kinds {
		for what, patch := range map[string]string{
			"label": `{"metadata":{"labels":{"maint.dev/freeze":null}}}`,
			"owner": `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"mine","uid":"11111111-1111-1111-1111-111111111111"}]}}`,
		} {
			got, err := r.patched(patch)(l, world.as(admin()))
			switch {
			case err != nil && says(err, "maint-freeze-status"):
				refused++
			case err != nil:
				t.Errorf("the %s by %s: %v", what, r.name(), err)
			case got.GetLabels()["maint.dev/freeze"] == "" || len(got.GetOwnerReferences()) > 0:
				t.Errorf("the %s by %s is changed: %v, %v", what, r.name(), got.GetLabels(), got.GetOwnerReferences())
			}
		}
	}
	if len(kinds) < 11 || refused == 0 {
		t.Errorf("of %v so many were refused: %d", kinds, refused)
	}
}

// addedKinds are objects of kinds whose content is in other fields than spec and data.
const addedKinds = `
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: ice, labels: {maint.dev/freeze: year-end}}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: ice, labels: {maint.dev/freeze: year-end}}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ice}, subjects: [{kind: ServiceAccount, name: ice}]}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: ice, labels: {maint.dev/freeze: year-end}}, imagePullSecrets: [{name: ours}]}
`

// addKinds has the policy of freezes hold for more kinds in the test's namespace, as an admin has it who
// adds a rule: by a policy that differs from it by its rules only.
func (l *lab) addKinds(rules ...admissionv1.NamedRuleWithOperations) {
	l.Helper()
	k := world.admin.AdmissionregistrationV1()
	p, err := k.ValidatingAdmissionPolicies().Get(l.ctx, "maint-freeze", metav1.GetOptions{})
	l.must(err)
	p.ObjectMeta = metav1.ObjectMeta{Name: "test-" + l.ns}
	p.Spec.MatchConstraints.ResourceRules = rules
	_, err = k.ValidatingAdmissionPolicies().Create(l.ctx, p, metav1.CreateOptions{})
	l.must(err)
	_, err = k.ValidatingAdmissionPolicyBindings().Create(l.ctx, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: p.ObjectMeta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: p.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": l.ns}}},
	}}, metav1.CreateOptions{})
	l.must(err)
	l.Cleanup(func() {
		_ = k.ValidatingAdmissionPolicyBindings().Delete(context.Background(), p.Name, metav1.DeleteOptions{})
		_ = k.ValidatingAdmissionPolicies().Delete(context.Background(), p.Name, metav1.DeleteOptions{})
	})
}

// A kind that an admin adds to the policy is frozen with all its fields, whatever their names.
func TestAKindThatIsAddedIsFrozenInAllItsFields(t *testing.T) {
	l := newLab(t)
	l.must(harness.Apply(l.ctx, world.cluster.AdminConfig(), l.ns, []byte(addedKinds), nil))
	rule := func(group string, resources ...string) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update, admissionv1.Delete},
			Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: resources},
		}}
	}
	l.addKinds(rule("rbac.authorization.k8s.io", "roles", "rolebindings"), rule("", "serviceaccounts"))
	l.publish("roles.rbac.authorization.k8s.io/ice=frozen,rolebindings.rbac.authorization.k8s.io/ice=frozen,serviceaccounts/ice=frozen")
	role, account := servedAs{"rbac.authorization.k8s.io", "v1", "roles", ""}, servedAs{"", "v1", "serviceaccounts", ""}
	binding := servedAs{"rbac.authorization.k8s.io", "v1", "rolebindings", ""}
	l.must(eventuallyErr(l.ctx, func() error {
		if _, err := role.deleted()(l, world.as(admin())); err == nil {
			return errors.New("the kinds are not added yet")
		}
		return nil
	}))
	const frozen = "is frozen by the policy of its label"
	l.table([]row{
		{name: "the rules of a Role are not changed", who: admin(), asks: role.patched(`{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`), denied: frozen},
		{name: "nor taken away", who: admin(), asks: role.patched(`{"rules":null}`), denied: frozen},
		{name: "nor the subjects of a RoleBinding", who: admin(), asks: binding.patched(`{"subjects":[{"kind":"ServiceAccount","name":"mine"}]}`), denied: frozen},
		{name: "nor the image pull secrets of a ServiceAccount", who: admin(), asks: account.patched(`{"imagePullSecrets":[{"name":"mine"}]}`), denied: frozen},
		{name: "nor are they taken away", who: admin(), asks: account.patched(`{"imagePullSecrets":null}`), denied: frozen},
		{name: "nor a field that was not there", who: admin(), asks: account.patched(`{"automountServiceAccountToken":true}`), denied: frozen},
		{name: "nor the label", who: admin(), asks: role.patched(`{"metadata":{"labels":{"maint.dev/freeze":null}}}`), denied: frozen},
		{name: "an annotation is", who: admin(), asks: account.patched(`{"metadata":{"annotations":{"a":"b"}}}`)},
	})
}
