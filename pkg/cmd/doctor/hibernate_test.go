package doctor_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// nights is a HibernatePlan with some targets, as the agent has published them.
func nights(t *testing.T, targets string, published ...hibernate.TargetStatus) *corev1.ConfigMap {
	t.Helper()
	cm := cmdtest.Map(annotations.KindHibernatePlan, "nights", annotations.DataPlan,
		"{apiVersion: maint.dev/v1alpha1, kind: HibernatePlan, spec: {schedule: {offHours: [{start: '20:00', end: '06:00'}]}, targets: ["+targets+"]}}")
	if len(published) > 0 {
		text, err := json.Marshal(published)
		if err != nil {
			t.Fatal(err)
		}
		cm.Annotations[annotations.StatusTargets] = string(text)
	}
	cm.Annotations[annotations.StatusObserved] = annotations.Observed(cm)
	return cm
}

// recorded is restore data of the target apps, signed or not.
func recorded(t *testing.T, edits ...func(*corev1.ConfigMap, *hibernate.Record)) *corev1.ConfigMap {
	t.Helper()
	r := cmdtest.Slept("nights", "apps", hibernate.Resource{ID: "apps/v1/Deployment/shop/web", Before: []byte(`3`), AsleepAt: cmdtest.Before(4 * time.Hour)})
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotations.StatusSignature: "s"}}}
	for _, edit := range edits {
		edit(cm, &r)
	}
	made, err := annotations.RestoreObject("shop", r)
	if err != nil {
		t.Fatal(err)
	}
	if cm.Data != nil {
		made.Data = cm.Data
	}
	if cm.Annotations == nil {
		return made
	}
	return cmdtest.Signed(made)
}

func aws(auth string) *corev1.ConfigMap {
	return cmdtest.Map(annotations.KindConnector, "aws", annotations.DataConnector, "{apiVersion: maint.dev/v1alpha1, kind: CloudProvider, spec: {type: aws, aws: {accountId: '123456789012', region: eu-central-1, auth: "+auth+"}}}")
}

func runner(role string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "maint-runner", Annotations: map[string]string{"eks.amazonaws.com/role-arn": role}}}
}

func keys(names ...string) *corev1.Secret {
	out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "keys"}, Data: map[string][]byte{}}
	for _, name := range names {
		out.Data[name] = []byte("x")
	}
	return out
}

func TestDoctorOfAHibernatePlan(t *testing.T) {
	const (
		apps   = "{name: apps, type: workload}"
		vm     = "{name: vm, type: ec2, connectorRef: {kind: CloudProvider, name: aws}, parameters: {selector: {ids: [i-0123456789abcdef0]}}}"
		nodes  = "{name: nodes, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {karpenter: {}, managedNodeGroups: {names: [a]}}}"
		far    = "{name: far, type: workload, connectorRef: {kind: K8SCluster, name: stg}}"
		byKeys = "{static: {secretRef: {name: keys}}}"
		byRole = "{serviceAccount: {}}"
		role   = "arn:aws:iam::123456789012:role/nights"
	)
	asleep := hibernate.TargetStatus{Target: "apps", Executor: "workload", State: hibernate.Asleep}
	cluster := func(spec string) *corev1.ConfigMap {
		return cmdtest.Map(annotations.KindConnector, "stg", annotations.DataConnector, "{apiVersion: maint.dev/v1alpha1, kind: K8SCluster, spec: "+spec+"}")
	}
	for name, c := range map[string]struct {
		plan   *corev1.ConfigMap
		more   []runtime.Object
		runner *corev1.ServiceAccount // the plan's account; nil: one without a role
		denied string                 // a resource that nobody may
		hidden string                 // a resource that who asks may not get
		says   []string
		bad    int
	}{
		"all is well and awake": {plan: nights(t, apps), says: []string{
			"ok       the agent finds the plan valid and ready\n", "ok       ServiceAccount shop/maint-runner is there\n", "that the targets need\n", "ok       target apps of type workload has not slept yet\n", "ok       nothing of the plan sleeps\n",
		}},
		"it sleeps well":     {plan: nights(t, apps, asleep), more: []runtime.Object{recorded(t)}, says: []string{"ok       target apps is Asleep\n", "ok       the restore data of target apps has 1 resource\n"}},
		"a plan with faults": {plan: nights(t, "{name: apps, type: gke}"), more: []runtime.Object{recorded(t)}, says: []string{"amiss    the plan is invalid: line 1: spec.targets[0].type: \"gke\" is not supported", "ok       the restore data of target apps"}, bad: 1},
		"rights are missing": {plan: nights(t, apps), denied: "deployments", says: []string{"amiss    system:serviceaccount:shop:maint-runner may not: get deployments.apps in namespace shop (for target apps)"}, bad: 1},
		"a function that is not there": {
			plan: nights(t, "{name: fleet, type: function, parameters: {endpoint: 'fleet.shop.svc:9443', tls: {insecure: true}}}"),
			says: []string{"amiss    there is no Service fleet in namespace shop, which target fleet calls\n         create it, or fix the address\n"}, bad: 1,
		},
		"no connector": {plan: nights(t, vm), says: []string{"amiss    spec.targets[0].connectorRef: there is no connector aws of kind CloudProvider\n"}, bad: 1},
		"a connector with faults": {
			plan: nights(t, vm), more: []runtime.Object{aws("{}")}, says: []string{"amiss    spec.targets[0].connectorRef: the connector aws is not valid: line 1: spec.aws.auth"}, bad: 1,
		},
		"an account by keys":                {plan: nights(t, vm), more: []runtime.Object{aws(byKeys), keys("accessKeyId", "secretAccessKey")}, says: []string{"ok       the connector CloudProvider/aws has its Secret shop/keys\n", "unknown  target vm: its rights are those of its role in AWS for targets of type ec2"}},
		"keys that are not there":           {plan: nights(t, vm), more: []runtime.Object{aws(byKeys)}, says: []string{"amiss    the Secret shop/keys of the connector CloudProvider/aws is not there\n         create it with the keys accessKeyId, secretAccessKey\n"}, bad: 1},
		"half a key":                        {plan: nights(t, vm), more: []runtime.Object{aws(byKeys), keys("accessKeyId")}, says: []string{"amiss    the Secret shop/keys of the connector CloudProvider/aws lacks secretAccessKey\n"}, bad: 1},
		"a Secret that one may not look at": {plan: nights(t, vm), more: []runtime.Object{aws(byKeys), keys("accessKeyId")}, hidden: "secrets", says: []string{"unknown  the Secret shop/keys of the connector CloudProvider/aws: "}},
		"an account by a role":              {plan: nights(t, vm), more: []runtime.Object{aws(byRole)}, runner: runner(role), says: []string{"ok       the connector CloudProvider/aws reaches account 123456789012 in eu-central-1 by the role of ServiceAccount shop/maint-runner\n", "ok       the agent may ask for tokens of ServiceAccount shop/maint-runner\n"}},
		"no role":                           {plan: nights(t, vm), more: []runtime.Object{aws(byRole)}, says: []string{"amiss    ServiceAccount shop/maint-runner names no role of AWS, which the connector CloudProvider/aws takes\n         'kubectl -n shop annotate serviceaccount maint-runner eks.amazonaws.com/role-arn=arn:aws:iam::123456789012:role/ROLE'\n"}, bad: 1},
		"a role of another account":         {plan: nights(t, vm), more: []runtime.Object{aws(byRole)}, runner: runner("arn:aws:iam::999999999999:role/nights"), says: []string{"amiss    ServiceAccount shop/maint-runner has a role of account 999999999999, and the connector CloudProvider/aws names account 123456789012\n"}, bad: 1},
		"an agent without --cloud":          {plan: nights(t, vm), more: []runtime.Object{aws(byRole)}, runner: runner(role), denied: "serviceaccounts", says: []string{"amiss    the agent may not ask for tokens of ServiceAccount shop/maint-runner\n         'kubectl maint install --apply --namespace maint-system --cloud' gives it that right\n"}, bad: 1},
		"a cluster of EKS": {plan: nights(t, nodes), more: []runtime.Object{aws(byKeys), keys("accessKeyId", "secretAccessKey"), cluster("{providerRef: {name: aws}, eks: {name: stg-eks-1}}")}, says: []string{
			"ok       the connector K8SCluster/stg leads to the cluster stg-eks-1 of EKS\n", "ok       the connector CloudProvider/aws has its Secret shop/keys\n", "unknown  target nodes: there it needs list, patch on nodepools.karpenter.sh and list, delete on nodeclaims.karpenter.sh\n",
		}},
		"no cluster of EKS":              {plan: nights(t, nodes), more: []runtime.Object{cluster("{k8s: {kubeconfigRef: {name: keys}}}")}, says: []string{"amiss    spec.targets[0].connectorRef: the connector stg is no cluster of EKS, which a target of type eks needs\n"}, bad: 1},
		"a kubeconfig that is not there": {plan: nights(t, far), more: []runtime.Object{cluster("{k8s: {kubeconfigRef: {name: keys}}}"), keys("other")}, says: []string{"amiss    the Secret shop/keys of the connector K8SCluster/stg lacks kubeconfig\n"}, bad: 1},
		"no such namespace":              {plan: nights(t, "{name: apps, type: workload, parameters: {namespaces: [shop, shpo]}}"), says: []string{"amiss    the namespace shpo of target apps is not there\n"}, bad: 1},
		"a target that failed": {
			plan: nights(t, apps, hibernate.TargetStatus{Target: "apps", State: hibernate.Failed, Message: "list Deployments: no"}), says: []string{"amiss    target apps is Failed: list Deployments: no\n         fix what it says, and 'kubectl maint trigger nights' tries it again at once\n"}, bad: 1,
		},
		"a target that is tried again": {plan: nights(t, apps, hibernate.TargetStatus{Target: "apps", State: hibernate.Running, Attempts: 2, Message: "no"}), says: []string{"amiss    target apps is Running: no (2 attempts failed)\n"}, bad: 1},
		"restore data that is gone":    {plan: nights(t, apps, asleep), says: []string{"amiss    target apps sleeps, and its restore data is gone: nobody knows how it was\n         wake it by hand, and say so with 'kubectl maint trigger nights'\n"}, bad: 1},
		"restore data that is nonsense": {
			plan: nights(t, apps, asleep), more: []runtime.Object{recorded(t, func(cm *corev1.ConfigMap, _ *hibernate.Record) {
				cm.Data = map[string]string{annotations.DataRestore: "{"}
			})}, says: []string{"amiss    the restore data maint-restore-nights-"}, bad: 1,
		},
		"restore data that nobody signed": {
			plan: nights(t, apps, asleep), more: []runtime.Object{recorded(t, func(cm *corev1.ConfigMap, _ *hibernate.Record) { cm.Annotations = nil })},
			says: []string{"does not count: it carries no signature of the agent's\n"}, bad: 1,
		},
		"it should be awake": {
			plan: nights(t, apps, asleep), more: []runtime.Object{recorded(t, func(_ *corev1.ConfigMap, r *hibernate.Record) { r.Snapshot.WakeAt = cmdtest.Before(time.Hour) })},
			says: []string{"amiss    1 resource of target apps should have been awake by Sat 2026-11-21 00:00 CET (2026-11-20T23:00:00Z)\n"}, bad: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			world := append(installed(c.plan), c.more...)
			if c.runner != nil {
				for i, o := range world {
					if account, is := o.(*corev1.ServiceAccount); is && account.Name == c.runner.Name {
						world[i] = c.runner
					}
				}
			}
			o := cmdtest.NewCluster(t, cmd.Run, world...)
			o.Kube.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
				asked := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
				return true, &authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: asked.Spec.ResourceAttributes.Resource != c.denied || asked.Spec.ResourceAttributes.Verb == "impersonate"}}, nil
			})
			if c.hidden != "" {
				o.Forbids("get", c.hidden, "")
			}
			got := o.Line("doctor nights")
			if got.Code != min(c.bad, 1) || strings.Count(got.Out, "amiss") != c.bad {
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
