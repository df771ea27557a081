package doctor_test

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

// installed is a cluster with the agent, confined, and the account of namespace shop.
func installed(more ...runtime.Object) []runtime.Object {
	out := append(more, cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "maint-runner"}})
	if !slices.ContainsFunc(more, func(o runtime.Object) bool { _, is := o.(*appsv1.Deployment); return is }) {
		out = append(out, cmdtest.Deployment("orders"))
	}
	for _, name := range []string{"maint-agent-configmaps", "maint-agent-secrets", "maint-agent-namespaces", "maint-agent-nodes"} {
		out = append(out, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}, binding(name, admissionv1.Deny))
	}
	return out
}

// binding is that of a policy.
func binding(policy string, actions ...admissionv1.ValidationAction) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: policy, ValidationActions: actions}}
}

func seen(spec string, edits ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	return cmdtest.Plan("orders", spec, append(edits, func(cm *corev1.ConfigMap) { cm.Annotations[annotations.StatusObserved] = annotations.Observed(cm) })...)
}

func TestDoctor(t *testing.T) {
	const dep = "{apiVersion: apps/v1, kind: Deployment, name: orders}"
	for _, c := range []struct {
		name, line string
		world      []runtime.Object
		allowed    bool
		forbids    string
		code       int
		says       []string
	}{
		{name: "all is well", line: "doctor", world: installed(), says: []string{"ok       agent ", "ok       the clocks of this machine and the API server agree\n", "ok       no configuration: the defaults hold\n", "ok       admission policies confine the agent's token\n"}},
		{name: "no agent, and no policies", line: "doctor", world: []runtime.Object{cmdtest.Namespace("shop")}, code: 1, says: []string{"amiss    no agent runs in namespace maint-system", "amiss    no admission policy confines the agent's token\n         install them with 'kubectl maint install --apply'\n", "error: 2 problems\n"}},
		{name: "a plan that an agent saw that is gone", line: "doctor orders", world: []runtime.Object{cmdtest.Namespace("shop"), seen("")}, code: 1, says: []string{"amiss    no agent runs in namespace maint-system", "ok       the agent found the plan valid and ready when it was last seen\n"}},
		{name: "a plan that has all", line: "doctor orders", world: installed(seen("target: " + dep)), allowed: true, says: []string{"ok       the agent finds the plan valid and ready\n", "ok       ServiceAccount shop/maint-runner is there\n", "ok       system:serviceaccount:shop:maint-runner has the 1 right that the steps need\n"}},
		{name: "rights that are missing", line: "doctor orders", world: installed(seen("target: " + dep)), code: 1, says: []string{"amiss    system:serviceaccount:shop:maint-runner may not: get deployments.apps orders in namespace shop (for target)\n", "error: 1 problem\n"}},
		{name: "a plan with a fault", line: "doctor orders", world: installed(seen("serviceAccountName: other"), cmdtest.Namespace("x")), code: 1, says: []string{"amiss    ", "needs the label maint.dev/service-account: other"}},
		{name: "who may not ask", line: "doctor orders", world: installed(seen("target: " + dep)), forbids: "subjectaccessreviews", says: []string{"unknown  the rights of maint-runner: ask what it may: subjectaccessreviews is forbidden:"}},
		{name: "a configuration with a fault", line: "doctor", world: installed(cmdtest.Configured("{maxUnavailable: many}")), code: 1, says: []string{"amiss    the agent's configuration: "}},
		{name: "names of checks, for a script", line: "doctor orders -o name", world: installed(seen("target: " + dep)), allowed: true, says: []string{"agent\nclock\nconfiguration\n", "plan\ntarget\naccount\nrights\n"}},
		{name: "what is wrong, for a script", line: "doctor orders -o 'jsonpath={range .items[?(@.result==\"amiss\")]}{.check}{end}'", world: installed(seen("target: " + dep)), code: 1, says: []string{"rights"}},
		{name: "no such plan", line: "doctor ghost", world: installed(), code: 1, says: []string{"error: there is no plan or policy \"ghost\" in namespace shop"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, c.world...)
			o.Kube.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
				asked := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).Spec.ResourceAttributes
				return true, &authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: c.allowed || asked.Verb == "impersonate"}}, nil
			})
			if c.forbids != "" {
				o.Forbids("create", c.forbids, "")
			}
			got := o.Line(c.line)
			if got.Code != c.code {
				t.Errorf("exit code %d\n%s%s", got.Code, got.Out, got.Err)
			}
			for _, w := range c.says {
				if !strings.Contains(got.Out+got.Err, w) {
					t.Errorf("does not say %q:\n%s%s", w, got.Out, got.Err)
				}
			}
		})
	}
}
