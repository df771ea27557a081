package doctor_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// diagnosis is what doctor says, beside what it always says of an agent that is well.
type diagnosis struct {
	name, line string
	world      []runtime.Object
	may        func(a authorizationv1.ResourceAttributes) bool
	before     func(o *cmdtest.Cluster)
	noActing   bool // the agent may act as no account
	code       int
	out, err   string
}

// usual are the lines of a cluster in which all is well.
const usual = "ok       agent v0.1.0 in namespace maint-system, seen 0s ago\nok       the clocks of this machine and the API server agree\nok       no configuration: the defaults hold\nok       admission policies confine the agent's token\n"

func (c diagnosis) check(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, c.world...)
	o.Kube.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		if review.Spec.ResourceAttributes.Verb == "impersonate" {
			return true, &authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: !c.noActing}}, nil
		}
		return true, &authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: c.may == nil || c.may(*review.Spec.ResourceAttributes)}}, nil
	})
	if c.before != nil {
		c.before(o)
	}
	got := o.Line(c.line)
	got.Out = strings.TrimPrefix(got.Out, usual)
	got.Is(t, cmdtest.Printed{Code: c.code, Out: c.out, Err: c.err})
}

func diagnose(t *testing.T, all []diagnosis) {
	t.Helper()
	for _, c := range all {
		t.Run(c.name, c.check)
	}
}

const oneProblem = "error: 1 problem\n"

func without(name string, world []runtime.Object) []runtime.Object {
	var out []runtime.Object
	for _, object := range world {
		if meta, is := object.(metav1.Object); !is || meta.GetName() != name {
			out = append(out, object)
		}
	}
	return out
}

func TestDoctorOfTheAgent(t *testing.T) {
	beat := func(age time.Duration, version string) *corev1.ConfigMap {
		cm := cmdtest.Agent()
		cm.Data["heartbeat"], cm.Data["version"] = cmdtest.Before(age).Format(time.RFC3339), version
		return cm
	}
	const heartbeat = "ok       the clocks of this machine and the API server agree\nok       no configuration: the defaults hold\nok       admission policies confine the agent's token\n"
	quiet := slices.Clip(without(annotations.HeartbeatName, installed()))
	said := func(list string) *corev1.ConfigMap {
		cm := cmdtest.Configured("{}")
		cm.Annotations = map[string]string{annotations.StatusConditions: list}
		return cm
	}
	relabelled := func(kind string) *corev1.ConfigMap {
		cm := cmdtest.Configured("{}")
		cm.Labels = map[string]string{annotations.LabelKind: kind, "team": "platform"}
		return cm
	}
	const unlabelled = "amiss    the agent's configuration, ConfigMap maint-system/maint-agent, lacks the label maint.dev/kind=agent-config, so the agent does not read it: what it took up before stays in force until it restarts, and after a restart the defaults hold, without your denied steps and limits\n         'kubectl -n maint-system label --overwrite configmap maint-agent maint.dev/kind=agent-config' puts the label back\n"
	const before = "ok       agent v0.1.0 in namespace maint-system, seen 0s ago\nok       the clocks of this machine and the API server agree\n"
	const after = "ok       admission policies confine the agent's token\n"
	diagnose(t, []diagnosis{
		{name: "all is well", line: "doctor", world: installed()},
		{name: "another version than this command", line: "doctor", world: append(quiet, beat(5*time.Second, "nightly")), out: "ok       agent nightly in namespace maint-system, seen 5s ago; this command is v0.1.0\n" + heartbeat},
		{name: "an older version than this command", line: "doctor", world: append(quiet, beat(5*time.Second, "v0.0.9")), out: "ok       agent v0.0.9 in namespace maint-system, seen 5s ago; this command is v0.1.0: 'kubectl maint install --apply --namespace maint-system' upgrades the agent\n" + heartbeat},
		{name: "a newer version than this command", line: "doctor", world: append(quiet, beat(5*time.Second, "v0.10.0-rc.1")), out: "ok       agent v0.10.0-rc.1 in namespace maint-system, seen 5s ago; this command is v0.1.0: 'kubectl krew upgrade maint' upgrades this command, or a newer archive does (docs/install.md)\n" + heartbeat},
		{name: "half a minute ago is fresh", line: "doctor", world: append(quiet, beat(30*time.Second, "v0.1.0")), out: "ok       agent v0.1.0 in namespace maint-system, seen 30s ago\n" + heartbeat},
		{
			name: "longer ago is silence", line: "doctor", world: append(quiet, beat(31*time.Second, "v0.1.0")), code: 1, err: oneProblem,
			out: "amiss    the agent in namespace maint-system was last seen 31s ago (Sat 2026-11-21 00:59:29 CET): see 'kubectl -n maint-system get pods'\n         nothing starts until it runs; requests by pause, skip, freeze, hibernate and wake are kept; trigger, approve, reject, abort of a run, retry, rollback and drain refuse\n" + heartbeat,
		},
		{name: "its clock is a little ahead of ours", line: "doctor", world: append(quiet, beat(-time.Minute, "v0.1.0"))},
		{
			name: "who may not look at the heartbeat knows nothing of the agent", line: "doctor", world: installed(), before: func(o *cmdtest.Cluster) { o.Forbids("get", "configmaps", "maint-system") },
			out: "unknown  the agent: could not look whether the agent runs: configmaps is forbidden: not for you\nok       the clocks of this machine and the API server agree\nunknown  the agent's configuration: it cannot be read: configmaps is forbidden: not for you\n" + after,
		},
		{name: "a valid configuration", line: "doctor", world: installed(cmdtest.Configured("{maxUnavailable: 2}")), out: before + "ok       the agent's configuration is valid\n" + after},
		{
			name: "a configuration with two faults", line: "doctor", world: installed(cmdtest.Configured("{maxUnavailable: many, maxParallelOperations: few}")), code: 1, err: oneProblem,
			out: before + "amiss    the agent's configuration: line 1: spec.nodes.maxParallelOperations: \"few\" is neither a number nor a share: write 3 or 10% (and 1 more)\n         fix ConfigMap maint-system/maint-agent; until then an agent that starts does nothing\n" + after,
		},
		{
			name: "a configuration without its text", line: "doctor", world: installed(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "maint-system", Name: annotations.AgentConfigName, Labels: map[string]string{annotations.LabelKind: annotations.KindAgentConfig}}}), code: 1, err: oneProblem,
			out: before + "amiss    the agent's configuration: data: the key config.yaml is missing: the document stands there\n         fix ConfigMap maint-system/maint-agent; until then an agent that starts does nothing\n" + after,
		},
		{
			name: "a configuration without its label", line: "doctor", world: installed(relabelled("")), code: 1, err: oneProblem,
			out: before + unlabelled + after,
		},
		{
			name: "a configuration with the label of a plan", line: "doctor", world: installed(relabelled(annotations.KindPlan)), code: 1, err: oneProblem,
			out: before + unlabelled + after,
		},
		{
			name: "the agent doubts its clock, and its configuration took effect", line: "doctor", world: installed(said(`[{"type":"ClockDoubt","status":"True","message":"it jumped"},{"type":"Valid","status":"True"},{"type":"NodesForbidden","status":"False"}]`)), code: 1, err: oneProblem,
			out: before + "amiss    the agent says ClockDoubt=True: it jumped\n         see docs/operations.md\nok       the agent's configuration is valid\n" + after,
		},
		{
			name: "what it says is good it says as True", line: "doctor", world: installed(said(`[{"type":"Valid","status":"False","message":"no sink"},{"type":"ClockDoubt","status":"False"},{"type":"Ready","status":"Unknown","message":"?"}]`)), code: 1, err: "error: 2 problems\n",
			out: before + "amiss    the agent says Valid=False: no sink\n         see docs/operations.md\namiss    the agent says Ready=Unknown: ?\n         see docs/operations.md\nok       the agent's configuration is valid\n" + after,
		},
	})
}

// After an installation that made a new key, what the former one signed does not count.
func TestDoctorTellsWhatAnotherKeySigned(t *testing.T) {
	run, former := cmdtest.RunObject(cmdtest.RunOf(), "maint-run-orders-a"), annotations.NewKey()
	secret := func(previous []byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "maint-system", Name: annotations.KeyName}, Data: map[string][]byte{annotations.DataKey: annotations.NewKey(), annotations.DataPreviousKey: previous}}
	}
	if keys, err := annotations.ReadKeyring(&corev1.Secret{Data: map[string][]byte{annotations.DataKey: former}}); err != nil || keys.Sign(run) != nil {
		t.Fatalf("the run is not signed: %v", err)
	}
	beat := func(key string) *corev1.ConfigMap {
		cm := cmdtest.Agent()
		cm.Data[annotations.HeartbeatKey] = key
		return cm
	}
	with := func(key string) []runtime.Object {
		return append(without(annotations.HeartbeatName, installed(run)), beat(key))
	}
	own := annotations.SignedWith(run)
	if own == "" {
		t.Fatal("the run is not signed")
	}
	const before = "ok       agent v0.1.0 in namespace maint-system, seen 0s ago\nok       the clocks of this machine and the API server agree\nok       no configuration: the defaults hold\n"
	const problem = before + "amiss    1 object not signed with the agent's key (0a0b0c0d0e), but, as its signature says, with another: shop/maint-run-orders-a. It does not count\n" +
		"         if the key was replaced, restore the former one as \"previous\" in Secret maint-system/maint-agent-key: the agent then signs it itself within minutes. If not, somebody else wrote it: look at it, and delete it, or sign it with 'kubectl maint -n shop adopt maint-run-orders-a'\n" +
		"ok       admission policies confine the agent's token\n"
	diagnose(t, []diagnosis{
		{name: "its own key", line: "doctor", world: with(own)},
		{name: "another key", line: "doctor", world: with("0a0b0c0d0e"), code: 1, err: oneProblem, out: problem},
		{name: "another key than both in the Secret", line: "doctor", world: append(with("0a0b0c0d0e"), secret(annotations.NewKey())), code: 1, err: oneProblem, out: problem},
		{name: "the key before this one", line: "doctor", world: append(with("0a0b0c0d0e"), secret(former))},
		{name: "who may not list them", line: "doctor", world: with("0a0b0c0d0e"), before: func(o *cmdtest.Cluster) { o.ForbidsMetadata = true }, out: before + "unknown  which key signed the agent's runs and ledgers: list them: configmaps is forbidden: not for you\nok       admission policies confine the agent's token\n"},
	})
}

// The policies name one token: an agent of another namespace is not confined by them.
func TestDoctorOfTwoInstallations(t *testing.T) {
	of := func(name, namespace string) runtime.Object {
		return &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{MatchConditions: []admissionv1.MatchCondition{{Name: "agent", Expression: "request.userInfo.username == 'system:serviceaccount:" + namespace + ":maint-agent'"}}}}
	}
	second := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: annotations.AgentName, Labels: map[string]string{"app.kubernetes.io/name": annotations.AgentName}}}
	policies := func(namespace string) []runtime.Object {
		return append(without("maint-agent-nodes", installed()), of("maint-agent-nodes", namespace), binding("maint-agent-nodes", admissionv1.Deny))
	}
	const before = "ok       agent v0.1.0 in namespace maint-system, seen 0s ago\nok       the clocks of this machine and the API server agree\nok       no configuration: the defaults hold\n"
	diagnose(t, []diagnosis{
		{name: "the policies name this agent", line: "doctor", world: policies("maint-system")},
		{name: "a policy names another", line: "doctor", world: policies("ops"), code: 1, err: oneProblem, out: before + "amiss    these policies confine another agent's token, and not that of namespace maint-system: maint-agent-nodes\n" +
			"         'kubectl maint uninstall --apply --namespace NS' removes the installation that is too much; then 'kubectl maint install --apply --namespace maint-system' has the policies name this one\n"},
		{name: "a Deployment of its name that anybody may have made", line: "doctor", world: append(policies("maint-system"), second)},
		{name: "a second Deployment, which another policy names", line: "doctor", world: append(policies("maint-system"), second, of("ours", "ops")), code: 1, err: oneProblem, out: before + "amiss    another agent is installed in namespace ops: there can be one in a cluster\n" +
			"         remove the one that is too much: 'kubectl maint uninstall --apply --namespace ops', or 'kubectl maint uninstall --apply --namespace maint-system'\nok       admission policies confine the agent's token\n"},
	})
	if got := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), second).Maint("version"); strings.Contains(got.Out, "another one") {
		t.Errorf("%+v", got)
	}
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), second, of("ours", "ops"))
	if got := o.Maint("version"); !strings.HasSuffix(got.Out, "agent:     another one is installed in namespace ops; there can be one in a cluster\n") {
		t.Errorf("%+v", got)
	}
}

func TestDoctorOfWhatConfinesTheAgent(t *testing.T) {
	named := func(name string) runtime.Object {
		return &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	const before = "ok       agent v0.1.0 in namespace maint-system, seen 0s ago\nok       the clocks of this machine and the API server agree\nok       no configuration: the defaults hold\n"
	diagnose(t, []diagnosis{
		{
			name: "one of them is missing", line: "doctor", world: without("maint-agent-nodes", installed()), code: 1, err: oneProblem,
			out: before + "amiss    of the policies that confine the agent's token these are missing: maint-agent-nodes\n         install again with 'kubectl maint install --apply'; install --without may have left them out\n",
		},
		{
			name: "all but one are", line: "doctor", world: append(without("maint-agent-secrets", without("maint-agent-configmaps", without("maint-agent-namespaces", installed()))), named("another")), code: 1, err: oneProblem,
			out: before + "amiss    of the policies that confine the agent's token these are missing: maint-agent-configmaps, maint-agent-secrets, maint-agent-namespaces\n         install again with 'kubectl maint install --apply'; install --without may have left them out\n",
		},
		{
			name: "one has no binding, and one only warns", line: "doctor", code: 1, err: oneProblem,
			world: append(without("maint-agent-nodes", without("maint-agent-secrets", installed())), named("maint-agent-nodes"), named("maint-agent-secrets"), binding("maint-agent-nodes", admissionv1.Warn, admissionv1.Audit)),
			out: before + "amiss    of the policies that confine the agent's token these do not refuse: maint-agent-secrets (no binding maint-agent-secrets), maint-agent-nodes (binding maint-agent-nodes has [Warn Audit])\n" +
				"         'kubectl maint install --apply' creates a missing binding; set validationActions: [Deny] on the others\n",
		},
		{
			name: "tokens for a cloud, and the policy that limits them has no binding", line: "doctor", world: installed(named("maint-agent-tokens")), code: 1, err: oneProblem,
			out: before + "amiss    of the policies that confine the agent's token these do not refuse: maint-agent-tokens (no binding maint-agent-tokens)\n" +
				"         'kubectl maint install --apply' creates a missing binding; set validationActions: [Deny] on the others\n",
		},
		{
			name: "who may list the policies and not their bindings", line: "doctor", world: installed(), before: func(o *cmdtest.Cluster) { o.Forbids("list", "validatingadmissionpolicybindings", "") },
			out: before + "unknown  the bindings of the policies that confine the agent: list them: validatingadmissionpolicybindings is forbidden: not for you\n",
		},
		{name: "those that guard intents are there, too", line: "doctor", world: installed(named("maint-intents"), binding("maint-intents", admissionv1.Deny)), out: "ok       admission policies guard intents, records and freezes (--with-admission)\n"},
		{
			name: "those that guard intents are there, and not all that bind them", line: "doctor", code: 1, err: oneProblem,
			world: installed(named("maint-intents"), named("maint-status"), binding("maint-status", admissionv1.Audit), named("maint-records"), binding("maint-records", admissionv1.Deny), named("maint-nodes"), binding("maint-nodes", admissionv1.Deny)),
			out: "amiss    of the policies that guard intents, records and freezes these do not refuse: maint-intents (no binding maint-intents), maint-records (no binding maint-records-names), maint-status (binding maint-status has [Audit])\n" +
				"         'kubectl maint install --apply' creates a missing binding; set validationActions: [Deny] on the others\n",
		},
		{
			name: "who may not list what binds them", line: "doctor", world: installed(named("maint-intents")), before: func(o *cmdtest.Cluster) { o.Forbids("list", "validatingadmissionpolicybindings", "") },
			out: before + "unknown  the bindings of the policies that confine the agent: list them: validatingadmissionpolicybindings is forbidden: not for you\nunknown  the bindings of the policies that guard intents, records and freezes: list them: validatingadmissionpolicybindings is forbidden: not for you\n",
		},
		{
			name: "who may not list them", line: "doctor", world: installed(), before: func(o *cmdtest.Cluster) { o.Forbids("list", "validatingadmissionpolicies", "") },
			out: before + "unknown  the policies that confine the agent: list them: validatingadmissionpolicies is forbidden: not for you\n",
		},
		{
			name: "an API server that has no such policies", line: "doctor", world: installed(), before: func(o *cmdtest.Cluster) {
				o.Kube.PrependReactor("list", "validatingadmissionpolicies", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"}, "", "", 0, true)
				})
			},
			out: before + "unknown  the policies that confine the agent: this API server has no ValidatingAdmissionPolicy (Kubernetes 1.30 and later do)\n",
		},
	})
}

func TestDoctorOfAPlan(t *testing.T) {
	const dep = "{apiVersion: apps/v1, kind: Deployment, name: orders}"
	const account = "ok       ServiceAccount shop/maint-runner is there\n"
	const target = "ok       the target Deployment/orders is there\n"
	const grant = "         grant it: 'kubectl get configmap orders -o yaml | kubectl maint rbac -f - | kubectl apply -f -'\n"
	const none = "ok       the steps need no rights in this cluster\n"
	const good = "ok       the agent finds the plan valid and ready\n"
	const holds = "holdOwners: true, target: " + dep
	kustomizations := serving("kustomize.toolkit.fluxcd.io/v1", "Kustomization", true)
	owned := func() *appsv1.Deployment {
		d := cmdtest.Deployment("orders")
		d.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
		return d
	}
	unseen := seen("")
	unseen.Annotations[annotations.StatusObserved] = "older"
	justWritten := unseen.DeepCopy()
	justWritten.CreationTimestamp = metav1.NewTime(cmdtest.Now().Add(-time.Second))
	nightly := func(fresh bool) *corev1.ConfigMap {
		cm := cmdtest.Sleeper("office", "schedule: {offHours: [{start: '20:00', end: '06:00'}]}")
		if cm.CreationTimestamp = justWritten.CreationTimestamp; fresh {
			cm.Annotations[annotations.StatusObserved] = "older"
		}
		return cm
	}
	conditions := func(list string) *corev1.ConfigMap {
		cm := seen("")
		cm.Annotations[annotations.StatusConditions] = list
		return cm
	}
	steps := func(text string) *corev1.ConfigMap {
		cm := seen("")
		cm.Data[annotations.DataPlan] = "{apiVersion: maint.dev/v1alpha1, kind: Plan, spec: {steps: [" + text + "]}}"
		cm.Annotations[annotations.StatusObserved] = annotations.Observed(cm)
		return cm
	}
	byDeployer := cmdtest.Plan("orders", "serviceAccountName: deployer", func(cm *corev1.ConfigMap) {
		cm.Labels[annotations.LabelServiceAccount] = "deployer"
		cm.Annotations[annotations.StatusObserved] = annotations.Observed(cm)
	})
	configured := func(spec string) *corev1.ConfigMap {
		cm := cmdtest.Configured("{}")
		cm.Data[annotations.DataConfig] = "{apiVersion: maint.dev/v1alpha1, kind: AgentConfig, spec: {" + spec + "}}"
		return cm
	}
	const withConfiguration = "ok       agent v0.1.0 in namespace maint-system, seen 0s ago\nok       the clocks of this machine and the API server agree\nok       the agent's configuration is valid\nok       admission policies confine the agent's token\n"
	refused := func(by, why string) string {
		return "amiss    the agent may not call what " + by + " calls: " + why + "\n         call another host, or have an admin change spec.outbound in ConfigMap maint-system/maint-agent\n"
	}
	inShop := func(a authorizationv1.ResourceAttributes) bool { return a.Namespace == "shop" }
	nothing := func(authorizationv1.ResourceAttributes) bool { return false }
	noVerb := func(a authorizationv1.ResourceAttributes) bool { return a.Group != "maint.dev" }
	intents := metav1.ObjectMeta{Name: "maint-intents"}
	const holdsNights = "{name: a, type: hibernate, properties: {plan: nights}}"
	reads := func(a authorizationv1.ResourceAttributes) bool { return a.Verb == "get" }
	const unmirrored = "ok       system:serviceaccount:shop:maint-runner may not patch Deployment/orders in namespace shop, so nothing there shows how the plan stands (condition Mirrored); runs do not need that. To grant it: 'kubectl -n shop create role maint:shop:maint-runner:deployments.apps:orders --verb=patch --resource=deployments.apps --resource-name=orders --dry-run=client -o yaml | kubectl -n shop auth reconcile -f -' and 'kubectl -n shop create rolebinding maint:shop:maint-runner:deployments.apps:orders --role=maint:shop:maint-runner:deployments.apps:orders --serviceaccount=shop:maint-runner --dry-run=client -o yaml | kubectl -n shop auth reconcile -f -'\n"
	const lacks = "amiss    system:serviceaccount:shop:maint-runner may not: get deployments.apps orders in namespace shop (for target)\n"
	waits := func(why, target string) *corev1.ConfigMap {
		return seen("target: {apiVersion: apps/v1, kind: Deployment, name: "+target+"}", cmdtest.Noting(annotations.StatusConditions, `[{"type":"Ready","status":"False","message":"`+why+`"}]`))
	}
	diagnose(t, []diagnosis{
		{name: "one that needs no rights", line: "doctor orders", world: installed(seen("")), out: good + account + none},
		{name: "the agent sees it within the next second", line: "doctor plan/orders", world: installed(justWritten), before: func(o *cmdtest.Cluster) {
			looks := 0
			o.Kube.PrependReactor("get", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if a.(clienttesting.GetAction).GetName() != "orders" {
					return false, nil, nil
				}
				if looks++; looks < 4 {
					return true, justWritten, nil
				}
				return true, seen(""), nil
			})
		}, out: good + account + none},
		{name: "a HibernatePlan, too", line: "doctor office", world: installed(nightly(true)), before: func(o *cmdtest.Cluster) {
			looks := 0
			o.Kube.PrependReactor("get", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if a.(clienttesting.GetAction).GetName() != "office" {
					return false, nil, nil
				}
				looks++
				return true, nightly(looks < 4), nil
			})
		}, out: good + account + "ok       the targets need no rights in this cluster\nok       target apps of type noop has not slept yet\nok       nothing of the plan sleeps\n"},
		{name: "the agent has not seen this version", line: "doctor plan/orders", world: installed(unseen), code: 1, err: oneProblem, out: "amiss    the agent has not looked at this version of the plan\n         it does within seconds where it runs and watches this namespace; if it is too old, 'kubectl maint install --apply --namespace maint-system' upgrades it\n" + account + none},
		{
			name: "the agent finds it not ready", line: "doctor orders", world: installed(conditions(`[{"type":"Valid","status":"True"},{"type":"Ready","status":"False","message":"policy night is not there"}]`)), code: 1, err: oneProblem,
			out: account + none + "amiss    the plan is not ready: policy night is not there\n         it goes on by itself once that is mended\n",
		},
		{
			name: "account, target and policies are missing: each is said, and once", line: "doctor orders", code: 1, err: "error: 4 problems\n",
			world: installed(cmdtest.Policy("night", "{strategy: Restrictive}"), seen("target: {apiVersion: apps/v1, kind: Deployment, name: gone}, policies: [{name: ghost}, {name: night}, {name: night, namespace: other}]", cmdtest.Noting(annotations.StatusConditions, `[{"type":"Ready","status":"False","message":"the ServiceAccount maint-runner does not exist in namespace shop"}]`))), before: func(o *cmdtest.Cluster) { o.Deletes("serviceaccounts", "maint-runner") },
			out: "amiss    the target Deployment/gone does not exist\n         create it, or change spec.target\namiss    ServiceAccount shop/maint-runner is not there\n         create it, with its Role: 'kubectl get configmap orders -o yaml | kubectl maint rbac -f - | kubectl apply -f -'\n" +
				"amiss    policy ghost: not ready: there is no such policy in namespace shop\n         create or fix it, or change spec.policies\nok       policy night in namespace shop is there\namiss    policy night: not ready: policy night is in namespace other, and only those of its own namespace and of maint-system may be named\n         create or fix it, or change spec.policies\n",
		},
		{
			name: "something else that is not ready is said beside them", line: "doctor orders", code: 1, err: "error: 2 problems\n",
			world: installed(seen("", cmdtest.Noting(annotations.StatusConditions, `[{"type":"Ready","status":"False","message":"configmaps are not watched"}]`))), before: func(o *cmdtest.Cluster) { o.Deletes("serviceaccounts", "maint-runner") },
			out: "amiss    ServiceAccount shop/maint-runner is not there\n         create it, with its Role: 'kubectl get configmap orders -o yaml | kubectl maint rbac -f - | kubectl apply -f -'\namiss    the plan is not ready: configmaps are not watched\n         it goes on by itself once that is mended\n",
		},
		{
			name: "the right to show on the target how the plan stands is optional", line: "doctor orders", may: reads,
			world: installed(seen("target: {apiVersion: apps/v1, kind: Deployment, name: orders}")),
			out:   good + target + account + "ok       system:serviceaccount:shop:maint-runner has the 1 right that the steps need\n" + unmirrored,
		},
		{
			name: "a plan that names a prefix for its mirror needs that right", line: "doctor orders", may: reads, code: 1, err: oneProblem,
			world: installed(seen("mirrorPrefix: workflow-activity.oam.dev, target: {apiVersion: apps/v1, kind: Deployment, name: orders}")),
			out:   good + target + account + "amiss    system:serviceaccount:shop:maint-runner may not: patch deployments.apps orders in namespace shop (for mirror)\n" + grant,
		},
		{
			name: "a right on the target is missing, and said once", line: "doctor orders", may: nothing, code: 1, err: oneProblem,
			world: installed(waits(`the ServiceAccount maint-runner may not patch deployments.apps \"orders\" in namespace shop, so its trigger label could not be taken away: grant it that right`, "orders")),
			out:   target + account + lacks + grant,
		},
		{
			name: "the agent was refused to read the target", line: "doctor orders", may: nothing, code: 1, err: oneProblem,
			world: installed(waits(`read the target Deployment/orders as system:serviceaccount:shop:maint-runner: deployments.apps \"orders\" is forbidden: User \"system:serviceaccount:shop:maint-runner\" cannot get resource \"deployments\"`, "orders")),
			out:   target + account + lacks + grant,
		},
		{
			name: "a right on the target is missing, and something else is not ready", line: "doctor orders", code: 1, err: "error: 2 problems\n",
			world: installed(waits("Deployment/orders was never ready yet: 0 of 1 are there", "orders")), may: nothing,
			out: target + account + lacks + grant + "amiss    the plan is not ready: Deployment/orders was never ready yet: 0 of 1 are there\n         it goes on by itself once that is mended\n",
		},
		{
			name: "a target with a short name hides no other message", line: "doctor orders", code: 1, err: "error: 2 problems\n",
			world: installed(waits("configmaps are not watched", "a")),
			out: "amiss    the target Deployment/a does not exist\n         create it, or change spec.target\n" + account + "ok       system:serviceaccount:shop:maint-runner has the 1 right that the steps need\n" +
				"amiss    the plan is not ready: configmaps are not watched\n         it goes on by itself once that is mended\n",
		},
		{
			name: "a target that is gone is said once", line: "doctor orders", code: 1, err: oneProblem,
			world: installed(waits("Deployment/a does not exist", "a")),
			out:   "amiss    the target Deployment/a does not exist\n         create it, or change spec.target\n" + account + "ok       system:serviceaccount:shop:maint-runner has the 1 right that the steps need\n",
		},
		{
			name: "an account that the agent may not act as is said once", line: "doctor orders", noActing: true, code: 1, err: oneProblem,
			world: installed(waits("read the target Deployment/orders as system:serviceaccount:shop:maint-runner: the agent may not act as the ServiceAccount maint-runner; 'kubectl maint install --read-only=false --apply' lets it (forbidden)", "orders")),
			out: target + account + "amiss    the agent may not act as the ServiceAccount maint-runner\n         'kubectl maint install --apply --namespace maint-system --read-only=false' lets it\n" +
				"ok       system:serviceaccount:shop:maint-runner has the 1 right that the steps need\n",
		},
		{name: "the owner in Git of what it holds may be suspended", line: "doctor orders", world: installed(seen(holds), owned()), before: kustomizations, out: good + target + account + "ok       system:serviceaccount:shop:maint-runner has the 1 right that the steps need\nok       system:serviceaccount:shop:maint-runner has the rights of step hold-owners on Kustomization/apps of namespace flux-system, which manages Deployment/orders from Git\n"},
		{
			name: "the owner in Git of what it holds may not be suspended", line: "doctor orders", world: installed(seen(holds), owned()), before: kustomizations, may: inShop, code: 1, err: oneProblem,
			out: good + target + account + "ok       system:serviceaccount:shop:maint-runner has the 1 right that the steps need\namiss    system:serviceaccount:shop:maint-runner may not get, list, watch, patch kustomizations.kustomize.toolkit.fluxcd.io, and step hold-owners suspends Kustomization/apps of namespace flux-system, which manages Deployment/orders from Git\n" +
				"         grant it: 'kubectl -n flux-system create role maint:shop:maint-runner:kustomizations.kustomize.toolkit.fluxcd.io --verb=get,list,watch,patch --resource=kustomizations.kustomize.toolkit.fluxcd.io --dry-run=client -o yaml | kubectl -n flux-system auth reconcile -f -' and 'kubectl -n flux-system create rolebinding maint:shop:maint-runner:kustomizations.kustomize.toolkit.fluxcd.io --role=maint:shop:maint-runner:kustomizations.kustomize.toolkit.fluxcd.io --serviceaccount=shop:maint-runner --dry-run=client -o yaml | kubectl -n flux-system auth reconcile -f -'\n",
		},
		{name: "nothing in Git owns what it holds", line: "doctor orders", world: installed(seen(holds)), out: good + target + account + "ok       system:serviceaccount:shop:maint-runner has the 1 right that the steps need\nok       no GitOps owner of Deployment/orders was found, so step hold-owners has none to suspend\n"},
		{
			name: "the agent finds it invalid: said once", line: "doctor orders", world: installed(conditions(`[{"type":"Valid","status":"False","message":"no template hush"},{"type":"Ready","status":"False","message":"it is invalid"}]`)), code: 1, err: oneProblem,
			out: "amiss    the plan is not valid: no template hush\n         fix it; 'kubectl maint describe orders' tells all\n" + account + none,
		},
		{name: "another condition that is False is no fault of it", line: "doctor orders", world: installed(conditions(`[{"type":"WindowOpen","status":"False"}]`)), out: good + account + none},
		{
			name: "with two faults nothing else is looked at", line: "doctor orders", world: installed(seen("startDeadline: soon, concurrencyPolicy: Maybe")), code: 1, err: oneProblem,
			out: "amiss    the plan is invalid: line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d (and 1 more)\n         fix it; 'kubectl maint lint -f FILE' tells all faults\n",
		},
		{
			name: "its account is not there", line: "doctor orders", world: installed(seen("target: " + dep)), before: func(o *cmdtest.Cluster) { o.Deletes("serviceaccounts", "maint-runner") }, code: 1, err: oneProblem,
			out: good + target + "amiss    ServiceAccount shop/maint-runner is not there\n         create it, with its Role: 'kubectl get configmap orders -o yaml | kubectl maint rbac -f - | kubectl apply -f -'\n",
		},
		{
			name: "its target is not there, which the agent has not looked at since it was", line: "doctor orders", world: installed(seen("target: {apiVersion: apps/v1, kind: Deployment, name: gone}")), may: inShop, code: 1, err: oneProblem,
			out: good + "amiss    the target Deployment/gone does not exist\n         create it, or change spec.target\n" + account + "ok       system:serviceaccount:shop:maint-runner has the 1 right that the steps need\n",
		},
		{
			name: "a target of which nobody here knows the kind", line: "doctor orders", world: installed(seen("target: {apiVersion: apps/v2, kind: Deployment, name: gone}")), may: inShop,
			out: good + "unknown  the target Deployment/gone: the API server has no kind Deployment in apps/v2\n" + account + "ok       system:serviceaccount:shop:maint-runner has the 1 right that the steps need\n",
		},
		{
			name: "the agent may not act as it", line: "doctor orders", world: installed(seen("")), noActing: true, code: 1, err: oneProblem,
			out: good + account + "amiss    the agent may not act as the ServiceAccount maint-runner\n         'kubectl maint install --apply --namespace maint-system --read-only=false' lets it\n" + none,
		},
		{
			name: "the agent may not act as one that it names", line: "doctor orders", world: installed(byDeployer, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployer"}}), noActing: true, code: 1, err: oneProblem,
			out: good + "ok       ServiceAccount shop/deployer is there\namiss    the agent may not act as the ServiceAccount deployer\n         'kubectl maint install --apply --namespace maint-system --impersonate deployer' lets it\n" + none,
		},
		{
			name: "who may not look at its account may ask what it may", line: "doctor orders", world: installed(seen("target: " + dep)), before: func(o *cmdtest.Cluster) { o.Forbids("get", "serviceaccounts", "shop") },
			out: good + target + "unknown  ServiceAccount shop/maint-runner: it cannot be read: serviceaccounts is forbidden: not for you\nok       system:serviceaccount:shop:maint-runner has the 1 right that the steps need\n",
		},
		{
			name: "without the admission policies nobody needs a verb of theirs", line: "doctor orders", may: noVerb,
			world: installed(steps(holdsNights)), out: good + account + "ok       system:serviceaccount:shop:maint-runner has the 4 rights that the steps need\n",
		},
		{
			name: "with them a step that holds a HibernatePlan does", line: "doctor orders", may: noVerb, code: 1, err: oneProblem,
			world: installed(steps(holdsNights), &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: intents}, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: intents, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: intents.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}),
			out:   "ok       admission policies guard intents, records and freezes (--with-admission)\n" + good + account + "amiss    system:serviceaccount:shop:maint-runner may not: override plans.maint.dev nights in namespace shop (for step a)\n" + grant,
		},
		{
			name: "rights are there in its own namespace, and missing in the other", line: "doctor orders", may: inShop, code: 1, err: oneProblem,
			world: installed(steps("{name: here, type: restart, properties: {resource: " + dep + "}}, {name: there, type: restart, properties: {resource: {apiVersion: apps/v1, kind: Deployment, namespace: other, name: orders}}}")),
			out:   good + account + "amiss    system:serviceaccount:shop:maint-runner may not: get deployments.apps orders in namespace other (for step there); patch deployments.apps orders in namespace other (for step there); list deployments.apps in namespace other (for step there); watch deployments.apps in namespace other (for step there)\n" + grant,
		},
		{
			name: "a step on a cluster-scoped kind with a plural of its own", line: "doctor orders", may: inShop, code: 1, err: "error: 2 problems\n",
			before: func(o *cmdtest.Cluster) {
				o.Kube.Resources = append(o.Kube.Resources, &metav1.APIResourceList{GroupVersion: "example.org/v1", APIResources: []metav1.APIResource{{Name: "tenantz", Kind: "Tenant"}}})
			},
			world: installed(steps("{name: one, type: wait, properties: {resource: {apiVersion: example.org/v1, kind: Tenant, name: a}, condition: 'true'}}")),
			out: good + account + "amiss    system:serviceaccount:shop:maint-runner may not get tenantz.example.org a in the cluster (for step one), which the Role that rbac prints does not grant\n" +
				"         grant it: 'kubectl create clusterrole maint:shop:maint-runner:tenantz.example.org:a --verb=get --resource=tenantz.example.org --resource-name=a --dry-run=client -o yaml | kubectl auth reconcile -f -' and 'kubectl create clusterrolebinding maint:shop:maint-runner:tenantz.example.org:a --clusterrole=maint:shop:maint-runner:tenantz.example.org:a --serviceaccount=shop:maint-runner --dry-run=client -o yaml | kubectl auth reconcile -f -'\n" +
				"amiss    system:serviceaccount:shop:maint-runner may not list, watch tenantz.example.org in the cluster (for step one), which the Role that rbac prints does not grant\n" +
				"         grant it: 'kubectl create clusterrole maint:shop:maint-runner:tenantz.example.org --verb=list,watch --resource=tenantz.example.org --dry-run=client -o yaml | kubectl auth reconcile -f -' and 'kubectl create clusterrolebinding maint:shop:maint-runner:tenantz.example.org --clusterrole=maint:shop:maint-runner:tenantz.example.org --serviceaccount=shop:maint-runner --dry-run=client -o yaml | kubectl auth reconcile -f -'\n",
		},
		{
			name: "every right is missing once, however many steps need it", line: "doctor orders", may: func(authorizationv1.ResourceAttributes) bool { return false }, code: 1, err: oneProblem,
			world: installed(steps("{name: one, type: wait, properties: {resource: " + dep + ", condition: 'true'}}, {name: two, type: wait, properties: {resource: " + dep + ", condition: 'true'}}")),
			out:   good + account + "amiss    system:serviceaccount:shop:maint-runner may not: get deployments.apps orders in namespace shop (for step one); list deployments.apps in namespace shop (for step one); watch deployments.apps in namespace shop (for step one)\n" + grant,
		},
		{
			name: "who may impersonate the account needs no other right", line: "doctor orders", code: 1, err: oneProblem,
			before: func(o *cmdtest.Cluster) {
				o.Forbids("create", "subjectaccessreviews", "")
				o.Kube.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
					asked := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).Spec.ResourceAttributes
					return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: asked.Verb == "get" && asked.Resource == "deployments" && asked.Subresource == ""}}, nil
				})
			},
			world: installed(steps("{name: one, type: restart, properties: {resource: " + dep + "}}")),
			out:   good + account + "amiss    system:serviceaccount:shop:maint-runner may not: patch deployments.apps orders in namespace shop (for step one); list deployments.apps in namespace shop (for step one); watch deployments.apps in namespace shop (for step one)\n" + grant,
		},
		{
			name: "hosts that steps call", line: "doctor orders", code: 1, err: oneProblem,
			world: append(installed(configured("outbound: {allow: [127.0.0.0/8, '::1']}"), steps("{name: one, type: webhook, properties: {url: 'https://hooks.shop.svc:8443/a'}}, {name: two, type: webhook, properties: {url: 'http://hooks.shop.svc.cluster.local'}}, {name: three, type: prometheus, properties: {url: 'http://gone.shop.svc', query: up, condition: '>= 1'}},"+
				"{name: four, type: function, properties: {endpoint: 'nowhere.invalid:9443'}}, {name: five, type: webhook, properties: {url: 'http://10.0.0.1/x'}}, {name: six, type: webhook, properties: {url: 'http://localhost/x'}}, {name: seven, type: webhook, properties: {url: 'http://${run.name}/x'}}")),
				&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hooks"}}),
			out: withConfiguration + good + account + none + "unknown  step four: get and list on what the function requires, get, create and patch on what it desires\namiss    there is no Service gone in namespace shop, which step three calls\n         create it, or fix the address\n" +
				"ok       Service shop/hooks, which step one calls, is there\nok       Service shop/hooks, which step two calls, is there\n" +
				"ok       the host localhost, which step six calls, is found from this machine\nunknown  whether the agent finds the host nowhere.invalid, which step four calls: this machine does not find it\n",
		},
		{
			name: "hosts that the agent's rules refuse", line: "doctor orders", code: 1, err: "error: 4 problems\n",
			world: append(installed(configured("outbound: {allow: [hooks.shop.svc, 169.254.0.0/16, 10.0.0.0/8], deny: [10.96.0.0/12]}"), steps("{name: one, type: webhook, properties: {url: 'http://elsewhere.invalid/a'}}, {name: two, type: webhook, properties: {url: 'http://10.0.0.1/x'}}, {name: three, type: prometheus, properties: {url: 'http://hooks.shop.svc', query: up, condition: '>= 1'}}, "+
				"{name: four, type: webhook, properties: {url: 'http://169.254.169.254/x'}}, {name: five, type: webhook, properties: {url: 'http://hooks.shop.svc.cluster.local:8080'}}")),
				&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hooks"}, Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.10"}}}),
			out: withConfiguration + good + account + none + refused("step four", "169.254.169.254 is refused: metadata services are not called unless outbound.allow names that address") +
				refused("step one", "elsewhere.invalid is refused: outbound.allow does not name it") + refused("step three", "hooks.shop.svc (10.96.0.10) is refused: outbound.deny names it") +
				refused("step five", "hooks.shop.svc.cluster.local is refused: outbound.allow does not name it"),
		},
		{
			name: "without rules no loopback address is called", line: "doctor orders", code: 1, err: oneProblem,
			world: installed(steps("{name: one, type: webhook, properties: {url: 'http://127.0.0.1/x'}}")),
			out:   good + account + none + refused("step one", "127.0.0.1 is refused: loopback addresses are not called unless outbound.allow names that address"),
		},
		{
			name: "a Service that may not be read, and is refused by its name", line: "doctor orders", code: 1, err: oneProblem, before: func(o *cmdtest.Cluster) { o.Forbids("get", "services", "shop") },
			world: installed(configured("outbound: {deny: ['*.svc']}"), steps("{name: one, type: webhook, properties: {url: 'http://hooks.shop.svc/x'}}")),
			out: withConfiguration + good + account + none + "unknown  Service shop/hooks, which step one calls: it cannot be read: services is forbidden: not for you\n" +
				refused("step one", "hooks.shop.svc is refused: outbound.deny names it"),
		},
		{
			name: "images of Jobs", line: "doctor orders", code: 1, err: oneProblem, may: func(authorizationv1.ResourceAttributes) bool { return true },
			world: append(installed(steps("{name: one, type: job, properties: {image: 'busybox:1.36'}}, {name: two, type: job, properties: {image: Busybox}}, {name: three, type: job, properties: {template: {template: {spec: {initContainers: [{name: a, image: 'busybox:1.36'}], containers: [{name: b, image: 'ghcr.io/shop/tool@sha256:0000000000000000000000000000000000000000000000000000000000000000'}]}}}}}")),
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"docker.io/library/busybox:1.36"}}}}}),
			out: good + account + "ok       system:serviceaccount:shop:maint-runner has the 7 rights that the steps need\n" +
				"amiss    the image \"Busybox\" of step two has no valid name: invalid reference format: repository name (library/Busybox) must be lowercase\n         write it as REGISTRY/NAME:TAG\n" +
				"ok       the image docker.io/library/busybox:1.36 of steps one, three is on a node already\n" +
				"unknown  whether the image ghcr.io/shop/tool@sha256:0000000000000000000000000000000000000000000000000000000000000000 of step three can be pulled: not reported by the 1 node looked at, so this is seen when the pod starts\n",
		},
		{
			name: "an installed function without a certificate for it", line: "doctor orders", code: 1, err: oneProblem,
			world: installed(configured(""), steps("{name: one, type: function, properties: {functionRef: {name: resize}}}, {name: two, type: pipeline, properties: {functions: [{name: a, functionRef: {name: resize}}, {name: b, endpoint: 'nowhere.invalid:9443'}]}}, {name: three, type: function, properties: {functionRef: {name: resize}, tls: {secretName: own}}}")),
			out: withConfiguration + good + account + "ok       system:serviceaccount:shop:maint-runner has the 2 rights that the steps need\n" +
				"unknown  step one: get and list on what the function requires, get, create and patch on what it desires\nunknown  step two, function a: get and list on what the function requires, get, create and patch on what it desires\nunknown  step two, function b: get and list on what the function requires, get, create and patch on what it desires\nunknown  step three: get and list on what the function requires, get, create and patch on what it desires\n" +
				"amiss    the agent has no client certificate for the installed functions of steps one, two\n         name its Secret in spec.functions.tlsSecretRef of the agent's configuration (docs/operations.md, Functions), or one of the plan's namespace in tls of the step\n" +
				"unknown  whether the agent finds the host nowhere.invalid, which step two calls: this machine does not find it\n",
		},
		{
			name: "an installed function and the certificate for it", line: "doctor orders",
			world: installed(configured("functions: {tlsSecretRef: {name: fn}}"), steps("{name: one, type: function, properties: {functionRef: {name: resize}}}"),
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "maint-system", Name: "fn"}, Data: map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k")}}),
			out: withConfiguration + good + account + "ok       system:serviceaccount:shop:maint-runner has the 1 right that the steps need\nunknown  step one: get and list on what the function requires, get, create and patch on what it desires\nok       the certificate for the installed functions of step one has its Secret maint-system/fn\n",
		},
		{
			name: "a sink that nobody configured, and one that is named twice", line: "doctor orders", code: 1, err: oneProblem,
			world: installed(steps("{name: one, type: notification, properties: {sinks: [ops], message: hi}}, {name: two, type: notification, properties: {sinks: [ops], message: hi}}")),
			out:   good + account + none + "amiss    the sink \"ops\": not among spec.notifications.sinks of the AgentConfig, which names none\n         add it to the agent's configuration (docs/operations.md, Notifications), or name another\n",
		},
		{
			name: "sinks that are configured, and their Secrets", line: "doctor orders", code: 1, err: "error: 2 problems\n",
			world: installed(configured("notifications: {sinks: [{name: ops, urlSecretRef: {name: chat, key: url}}, {name: mail, urlSecretRef: {name: chat, key: mail}}, {name: lost, urlSecretRef: {name: gone, key: url}}]}"),
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "maint-system", Name: "chat"}, Data: map[string][]byte{"url": []byte("slack://x")}},
				steps("{name: one, type: notification, properties: {sinks: [ops, mail, lost], message: hi}}")),
			out: withConfiguration + good + account + none + "ok       the sink ops is configured\nok       the sink ops has its Secret maint-system/chat\nok       the sink mail is configured\namiss    the Secret maint-system/chat of the sink mail lacks mail\n         add it\n" +
				"ok       the sink lost is configured\namiss    the Secret maint-system/gone of the sink lost is not there\n         create it with the keys url\n",
		},
		{
			name: "the sink of a step that names none", line: "doctor orders",
			world: installed(configured("notifications: {sinks: [{name: ops, urlSecretRef: {name: chat, key: url}}, {name: others, namespaces: [other], urlSecretRef: {name: chat, key: url}}]}"),
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "maint-system", Name: "chat"}, Data: map[string][]byte{"url": []byte("slack://x")}},
				steps("{name: one, type: notification, properties: {message: hi}}")),
			out: withConfiguration + good + account + none + "ok       the sink ops is configured\nok       the sink ops has its Secret maint-system/chat\n",
		},
		{
			name: "a step that names no sink, where there is none", line: "doctor orders", code: 1, err: oneProblem,
			world: installed(steps("{name: one, type: notification, properties: {message: hi}}")),
			out:   good + account + none + "amiss    the sink \"default\": a step names no sink, and spec.notifications.sinks of the AgentConfig names none\n         add it to the agent's configuration (docs/operations.md, Notifications), or name another\n",
		},
		{
			name: "of sinks nothing is known where the configuration may not be read", line: "doctor orders", before: func(o *cmdtest.Cluster) {
				o.Kube.PrependReactor("get", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
					if a.(clienttesting.GetAction).GetName() != annotations.AgentConfigName {
						return false, nil, nil
					}
					return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("not for you"))
				})
			},
			world: installed(steps("{name: one, type: notification, properties: {sinks: [ops], message: hi}}")),
			out:   "ok       agent v0.1.0 in namespace maint-system, seen 0s ago\nok       the clocks of this machine and the API server agree\nunknown  the agent's configuration: it cannot be read: configmaps is forbidden: not for you\nok       admission policies confine the agent's token\n" + good + account + none,
		},
	})
}

func TestDoctorOfWhatSleeps(t *testing.T) {
	const nights = "schedule: {offHours: [{start: '20:00', end: '06:00'}]}"
	target := func(state hibernate.State, attempts int, message string) string {
		return annotations.Targets([]hibernate.TargetStatus{{Target: "apps", Executor: "workload", State: state, Attempts: attempts, Message: message}})
	}
	record := func(wake time.Duration) *corev1.ConfigMap {
		r := cmdtest.Slept("office", "apps", hibernate.Resource{ID: "apps/v1/Deployment/web", Before: []byte(`{}`)})
		r.Snapshot.WakeAt = cmdtest.After(wake)
		cm, err := annotations.RestoreObject("shop", r)
		if err != nil {
			t.Fatal(err)
		}
		return cmdtest.Signed(cm)
	}
	const seenWell = "ok       the agent finds the plan valid and ready\nok       ServiceAccount shop/maint-runner is there\nok       the targets need no rights in this cluster\n"
	office := func(notes ...string) *corev1.ConfigMap {
		return cmdtest.Sleeper("office", nights, cmdtest.Noting(notes...))
	}
	for _, c := range []struct {
		name  string
		world []runtime.Object
		code  int
		says  []string
	}{
		{"nothing has slept yet", []runtime.Object{office()}, 0, []string{"ok       target apps of type noop has not slept yet", "ok       nothing of the plan sleeps"}},
		{"a target failed", []runtime.Object{office(annotations.StatusTargets, target(hibernate.Failed, 3, "no answer"), annotations.StatusPhase, "Error")}, 1, []string{"amiss    target apps is Failed: no answer", "         fix what it says, and 'kubectl maint trigger office' tries it again at once"}},
		{"one waits for one that failed", []runtime.Object{office(annotations.StatusTargets, target(hibernate.Aborted, 0, "")), record(0)}, 1, []string{"amiss    target apps is Aborted", "         fix what it says, and 'kubectl maint trigger office' tries it again at once", "ok       the restore data of target apps has 1 resource"}},
		{"one is tried again", []runtime.Object{office(annotations.StatusTargets, target(hibernate.Running, 1, "no answer"), annotations.StatusPhase, "Hibernating"), record(6 * time.Hour)}, 1, []string{"amiss    target apps is Running: no answer (1 attempt failed)", "         it is tried again by itself; at once: 'kubectl maint trigger office'", "ok       the restore data of target apps has 1 resource"}},
		{"one was tried again, and sleeps", []runtime.Object{office(annotations.StatusTargets, target(hibernate.Asleep, 1, ""), annotations.StatusPhase, "Hibernated"), record(6 * time.Hour)}, 0, []string{"ok       target apps is Asleep", "ok       the restore data of target apps has 1 resource"}},
		{"it sleeps a quarter of an hour past its time", []runtime.Object{office(annotations.StatusTargets, target(hibernate.Asleep, 0, ""), annotations.StatusPhase, "Hibernated"), record(-15 * time.Minute)}, 0, []string{"ok       target apps is Asleep", "ok       the restore data of target apps has 1 resource"}},
		{"and longer", []runtime.Object{office(annotations.StatusTargets, target(hibernate.Asleep, 0, ""), annotations.StatusPhase, "Hibernated"), record(-16 * time.Minute)}, 1, []string{"ok       target apps is Asleep", "amiss    1 resource of target apps should have been awake by Sat 2026-11-21 00:44 CET (2026-11-20T23:44:00Z)", "         'kubectl maint why office' says what they wait for"}},
		{"it is held asleep", []runtime.Object{office(annotations.HoldState, "asleep", annotations.StatusTargets, target(hibernate.Asleep, 0, ""), annotations.StatusPhase, "Hibernated"), record(-16 * time.Minute)}, 0, []string{"ok       target apps is Asleep", "ok       the restore data of target apps has 1 resource"}},
		{"its restore data is gone", []runtime.Object{office(annotations.StatusTargets, target(hibernate.Asleep, 0, ""), annotations.StatusPhase, "Hibernated")}, 1, []string{"ok       target apps is Asleep", "amiss    target apps sleeps, and its restore data is gone: nobody knows how it was", "         wake it by hand, and say so with 'kubectl maint trigger office'"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, installed(c.world...)...)
			got := o.Line("doctor office")
			rest, well := strings.CutPrefix(strings.TrimPrefix(got.Out, usual), seenWell)
			lines := strings.Split(strings.TrimSuffix(rest, "\n"), "\n")
			if diff := cmp.Diff(c.says, lines); diff != "" || got.Code != c.code || !well {
				t.Errorf("exit code %d, %s(-want +got):\n%s", got.Code, got.Out, diff)
			}
		})
	}
}

func TestDoctorOfAPolicy(t *testing.T) {
	const account = "ok       ServiceAccount shop/maint-runner is there\n"
	const ready = "ok       the policy is valid, and all that it names is there\n"
	const has = "ok       system:serviceaccount:shop:maint-runner has the 3 rights that the gates need\n"
	gated := func(status, message string) *corev1.ConfigMap {
		cm := cmdtest.Policy("shut", "{strategy: Restrictive, gates: [{apiVersion: apps/v1, kind: Deployment, name: api, knob: deployment}]}")
		if status != "" {
			cm.Annotations[annotations.StatusConditions] = `[{"type":"Gates","status":"` + status + `","message":"` + message + `"}]`
		}
		return cm
	}
	const crossplane = "s3.aws.upbound.io/v1beta1"
	held := cmdtest.Policy("shut", "{strategy: Restrictive, gates: [{apiVersion: "+crossplane+", kind: Bucket, knob: crossplane}, {apiVersion: "+crossplane+", kind: Bucket, name: logs, knob: crossplane}]}")
	held.Annotations[annotations.StatusConditions] = `[{"type":"Gates","status":"True","message":"0 objects"}]`
	inShop := func(a authorizationv1.ResourceAttributes) bool { return a.Namespace == "shop" }
	const everywhere = "amiss    system:serviceaccount:shop:maint-runner may not list, watch, patch buckets.s3.aws.upbound.io in the cluster (for gate every Bucket, gate Bucket/logs), which the Role that rbac prints does not grant\n" +
		"         grant it: 'kubectl create clusterrole maint:shop:maint-runner:buckets.s3.aws.upbound.io --verb=list,watch,patch --resource=buckets.s3.aws.upbound.io --dry-run=client -o yaml | kubectl auth reconcile -f -' and 'kubectl create clusterrolebinding maint:shop:maint-runner:buckets.s3.aws.upbound.io --clusterrole=maint:shop:maint-runner:buckets.s3.aws.upbound.io --serviceaccount=shop:maint-runner --dry-run=client -o yaml | kubectl auth reconcile -f -'\n"
	gone := func(o *cmdtest.Cluster) { o.Deletes("serviceaccounts", "maint-runner") }
	diagnose(t, []diagnosis{
		{name: "without gates", line: "doctor shut", world: installed(cmdtest.Policy("shut", "{strategy: Restrictive}")), out: ready},
		{name: "its gates hold", line: "doctor policy/shut", world: installed(gated("True", "1 objects: 1 closed, 0 open")), out: ready + "ok       its gates hold: 1 objects: 1 closed, 0 open\n" + account + has},
		{name: "they do not", line: "doctor shut", world: installed(gated("False", "no right")), code: 1, err: oneProblem, out: ready + "amiss    its gates do not hold, so objects that they should close may be open: no right\n         it goes on by itself once that is mended\n" + account + has},
		{name: "nobody has looked at them", line: "doctor shut", world: installed(gated("", "")), code: 1, err: oneProblem, out: ready + "amiss    the agent has said nothing of its gates\n         it does within seconds where it runs and watches this namespace\n" + account + has},
		{name: "its account is not there", line: "doctor shut", world: installed(gated("True", "0 objects")), before: gone, code: 1, err: oneProblem, out: ready + "ok       its gates hold: 0 objects\namiss    ServiceAccount shop/maint-runner is not there\n         create it, with its Role: 'kubectl get configmap shut -o yaml | kubectl maint rbac -f - | kubectl apply -f -'\n"},
		{
			name: "its account may not", line: "doctor shut", world: installed(gated("True", "0 objects")), may: func(a authorizationv1.ResourceAttributes) bool { return a.Verb != "patch" }, code: 1, err: oneProblem,
			out: ready + "ok       its gates hold: 0 objects\n" + account + "amiss    system:serviceaccount:shop:maint-runner may not: patch deployments.apps api in namespace shop (for gate Deployment/api)\n         grant it: 'kubectl get configmap shut -o yaml | kubectl maint rbac -f - | kubectl apply -f -'\n",
		},
		{name: "a Role does not count for a cluster-scoped kind", line: "doctor shut", world: installed(held), before: serving(crossplane, "Bucket", false), may: inShop, code: 1, err: oneProblem, out: ready + "ok       its gates hold: 0 objects\n" + account + everywhere},
		{name: "for one in namespaces it does", line: "doctor shut", world: installed(held), before: serving(crossplane, "Bucket", true), may: inShop, out: ready + "ok       its gates hold: 0 objects\n" + account + "ok       system:serviceaccount:shop:maint-runner has the 4 rights that the gates need\n"},
		{name: "it is broken", line: "doctor odd", world: installed(cmdtest.Policy("odd", "{strategy: Sometimes}")), code: 1, err: oneProblem, out: "amiss    the policy is invalid: line 1: spec.strategy: \"Sometimes\" is no strategy of a policy; write Permissive, Restrictive or MaintenanceSchedule\n         fix it; 'kubectl maint lint -f FILE' tells all faults\n"},
		{name: "what it names is not there", line: "doctor odd", world: installed(cmdtest.Policy("odd", "{strategy: MaintenanceSchedule, maintenanceSchedule: {exclude: [{calendar: {name: ghost}}]}}")), code: 1, err: oneProblem, out: "amiss    the policy is not ready: policy odd: not ready: maintenanceSchedule.exclude[0].calendar: \"ghost\": there is no such Calendar document\n         fix or create what it names; 'kubectl maint why policy/odd' says what follows\n"},
	})
}
