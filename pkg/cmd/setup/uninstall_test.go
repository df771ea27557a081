package setup_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

// uninstall runs the command, which asks the cluster whom its bindings and policies name.
func uninstall(o *cmdtest.Cluster, args ...string) cmdtest.Printed {
	return o.Maint(append(append([]string{"uninstall"}, args...), o.Served()...)...)
}

// Without an agent nobody would uncordon a node that is cordoned for somebody.
func TestUninstallRefusesWhileANodeIsHeld(t *testing.T) {
	for by, want := range map[string]string{
		"plan:ops/roll":      "plan ops/roll, and nobody would uncordon it: 'kubectl maint status' shows all such nodes; let their plans end, or uncordon them: 'kubectl uncordon b'",
		"plan:ops/roll zeta": "zeta, and nobody would uncordon it: 'kubectl maint status' shows all such nodes; let their plans end, or take back what asks for them: 'kubectl maint release b --requestor zeta'",
		"firmware":           "firmware, and nobody would uncordon it: 'kubectl maint status' shows all such nodes; let their plans end, or take back what asks for them: 'kubectl maint release b --requestor firmware'",
	} {
		o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a"), cmdtest.Node("b", cmdtest.CordonedFor(nodes.Cordon{By: strings.Fields(by)})))
		uninstall(o, "--yes").Is(t, cmdtest.Printed{Code: 3, Err: "error: node b is cordoned for " + want + "\n"})
	}
}

// Without its rights in the cluster an agent in another namespace would go on, and do nothing.
func TestUninstallRefusesWhereTheAgentIsInAnotherNamespace(t *testing.T) {
	agent := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: annotations.AgentName, Labels: map[string]string{"app.kubernetes.io/name": annotations.AgentName}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: annotations.AgentName}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: annotations.AgentName, Namespace: "ops"}}}
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), agent, binding)
	uninstall(o, "--yes").Is(t, cmdtest.Printed{Code: 1, Err: "error: there is no agent in namespace maint-system, and one in namespace ops: 'kubectl maint uninstall --apply --namespace ops' removes it\n"})
	if got := uninstall(o, "-n", "ops"); strings.Contains(got.Err, "there is no agent in namespace") {
		t.Errorf("%+v", got)
	}
	second := agent.DeepCopy()
	second.Namespace = annotations.DefaultNamespace
	o = cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), agent, second, binding)
	for _, namespace := range []string{"ops", annotations.DefaultNamespace} { // of two, each can go
		if got := uninstall(o, "-n", namespace); strings.Contains(got.Err, "there is no agent in namespace") {
			t.Errorf("%s: %+v", namespace, got)
		}
	}
}

// Whoever may create Deployments in a namespace steers nothing by one: it is told, and no command of
// an admin's is proposed for its namespace.
func TestUninstallDoesNotTakeADeploymentForAnAgent(t *testing.T) {
	tenant := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: annotations.AgentName, Labels: map[string]string{"app.kubernetes.io/name": annotations.AgentName}}}
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), tenant, cmdtest.Node("b", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:ops/roll"}})))
	got := uninstall(o, "--yes")
	const warning = "warning: Deployment maint-agent in namespace tenant does not count as an agent: no binding or policy of the cluster names its ServiceAccount, and whoever may create Deployments there may have made it\n"
	if !strings.HasPrefix(got.Err, warning+"error: node b is cordoned for plan ops/roll") || strings.Contains(got.Err, "--namespace tenant") {
		t.Errorf("%+v", got)
	}
}

// The bindings name the agent in ops, whose Deployment somebody deleted: no removal in another
// namespace takes its rights or its key for nobody's, also where somebody made a Deployment there.
func TestUninstallLeavesWhatAnAgentWithoutADeploymentNeeds(t *testing.T) {
	forged := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: annotations.AgentName, Labels: map[string]string{"app.kubernetes.io/name": annotations.AgentName}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: annotations.AgentName}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: annotations.AgentName, Namespace: "ops"}}}
	const (
		warning   = "warning: Deployment maint-agent in namespace tenant does not count as an agent: no binding or policy of the cluster names its ServiceAccount, and whoever may create Deployments there may have made it\n"
		elsewhere = "error: there is no agent in namespace tenant, and one in namespace ops: 'kubectl maint uninstall --apply --namespace ops' removes it\n"
		unread    = "; whether the agent wrote that cannot be checked (read the key in namespace "
	)
	held := cmdtest.RunObject(cmdtest.RunOf(), "maint-run-orders-a")
	for name, c := range map[string]struct {
		there     []runtime.Object
		namespace string
		want      string
		without   string
	}{
		"a Deployment somewhere is no agent":        {[]runtime.Object{forged, binding, held}, "tenant", warning + "error: run shop/maint-run-orders-a of plan orders is active", "clusterrolebinding"},
		"nor is a namespace without one":            {[]runtime.Object{binding}, "tenant", elsewhere, "clusterrolebinding"},
		"the agent's own namespace has its remains": {[]runtime.Object{forged, binding, held}, "ops", warning + "error: run shop/maint-run-orders-a of plan orders is active", "namespace tenant" + unread},
	} {
		t.Run(name, func(t *testing.T) {
			got := uninstall(cmdtest.NewCluster(t, cmd.Run, append(c.there, cmdtest.Agent())...), "-n", c.namespace, "-o", "name")
			if !strings.HasPrefix(got.Err, c.want) || strings.Contains(got.Out+got.Err, c.without) {
				t.Errorf("%+v", got)
			}
		})
	}
	got := uninstall(cmdtest.NewCluster(t, cmd.Run, forged, binding, cmdtest.Agent()), "-n", "tenant", "-o", "name")
	if strings.Contains(got.Out, "clusterrolebinding") || !strings.HasPrefix(got.Err, warning) {
		t.Errorf("%+v", got)
	}
}

// Both are named, and the one in ops runs without a Deployment: it counts all the same.
func TestUninstallCountsAnAgentThatShowsItself(t *testing.T) {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: annotations.AgentName}, Subjects: []rbacv1.Subject{
		{Kind: "ServiceAccount", Name: annotations.AgentName, Namespace: "ops"}, {Kind: "ServiceAccount", Name: annotations.AgentName, Namespace: "maint-system"},
	}}
	beat := cmdtest.Agent()
	beat.Namespace = "ops"
	holder, at := "agent-b", func(ago time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: *cmdtest.Before(ago)} }
	lease := func(renewed time.Duration) runtime.Object {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: annotations.LeaseName}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: at(2 * time.Hour), RenewTime: at(renewed)}}
	}
	for name, c := range map[string]struct {
		shows []runtime.Object
		stays bool
	}{
		"by its heartbeat":               {[]runtime.Object{beat}, true},
		"by its Lease":                   {[]runtime.Object{lease(time.Second)}, true},
		"by a Lease that nobody renews":  {[]runtime.Object{lease(time.Hour)}, false},
		"it does not show itself at all": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			held := cmdtest.RunObject(cmdtest.RunOf(), "maint-run-orders-a")
			got := uninstall(cmdtest.NewCluster(t, cmd.Run, append(c.shows, binding.DeepCopy(), cmdtest.Agent(), held)...), "-o", "name")
			if strings.Contains(got.Err, "read the key in namespace ops") != c.stays { // what it signed counts, too
				t.Errorf("%+v", got)
			}
		})
	}
}

// The agent of another cluster goes on with what it has cordoned.
func TestUninstallLeavesNodesToTheAgentOfAnotherCluster(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("b", cmdtest.CordonedFor(nodes.Cordon{By: []string{nodes.PlanElsewhere("ops", "roll", "7b")}})))
	if got := uninstall(o); strings.Contains(got.Err, "cordoned for") {
		t.Errorf("%+v", got)
	}
}

// Nor would anybody wake what sleeps.
func TestUninstallRefusesWhileAnythingSleeps(t *testing.T) {
	asleep := cmdtest.Sleeper("office", "{schedule: {timezone: UTC, offHours: [{start: '20:00', end: '06:00'}]}, targets: [{name: a, type: noop}]}", cmdtest.Noting(annotations.StatusPhase, "Hibernated", annotations.StatusAsleep, "2026-11-20T20:00:00Z"))
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a"), asleep)
	uninstall(o, "--yes").Is(t, cmdtest.Printed{Code: 3, Out: "", Err: "error: HibernatePlan shop/office is asleep (Hibernated), and without the agent nothing wakes it: wake it with 'kubectl maint -n shop wake office --for 24h', and uninstall once it is awake\n"})
}

// Restore data says what sleeps also where its plan is gone, or says that it could not be woken.
func TestUninstallRefusesWhileRestoreDataNamesWhatSleeps(t *testing.T) {
	restore := func(edit func(r *hibernate.Resource)) *corev1.ConfigMap {
		res := hibernate.Resource{ID: "deployments.apps/shop/web", UID: "u", Before: []byte(`{"replicas":3}`), CapturedAt: *cmdtest.Before(time.Hour), AsleepAt: cmdtest.Before(time.Hour)}
		edit(&res)
		cm, err := annotations.RestoreObject("shop", cmdtest.Slept("office", "apps", res))
		if err != nil {
			t.Fatal(err)
		}
		return cmdtest.Signed(cm)
	}
	failed := cmdtest.Sleeper("office", "{schedule: {timezone: UTC, offHours: [{start: '20:00', end: '06:00'}]}, targets: [{name: apps, type: noop}]}", cmdtest.Noting(annotations.StatusPhase, "Error"))
	for name, c := range map[string]struct {
		plan    []runtime.Object
		edit    func(r *hibernate.Resource)
		refused bool
	}{
		"the plan is gone":   {nil, func(*hibernate.Resource) {}, true},
		"it is in error":     {[]runtime.Object{failed}, func(*hibernate.Resource) {}, true},
		"all of it is awake": {nil, func(r *hibernate.Resource) { r.RestoredAt = cmdtest.Before(time.Minute) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, append(c.plan, cmdtest.Agent(), cmdtest.Node("a"), restore(c.edit))...)
			got := uninstall(o, "--yes")
			const says = "error: 1 resource of target apps of HibernatePlan shop/office may sleep, and without the agent nothing wakes it: 'kubectl maint -n shop restore show office' shows what it was" + unchecked + "\n"
			if (got.Code == 3 && got.Err == says) != c.refused {
				t.Errorf("%+v", got)
			}
		})
	}
}

// unchecked is what is said of a record where the key is not there.
const unchecked = "; whether the agent wrote that cannot be checked (read the key in namespace maint-system: secrets \"maint-agent-key\" not found): delete it if it did not"

// A run that came back from a backup, without its plan, has a cleanup that only the agent can do. Beside
// its plan somebody may have created it again: the agent leaves that alone.
func TestUninstallWaitsForARunOutOfABackup(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: annotations.KeyName}, Data: map[string][]byte{annotations.DataKey: annotations.NewKey()}}
	ring, err := annotations.ReadKeyring(secret)
	if err != nil {
		t.Fatal(err)
	}
	restored := cmdtest.RunObject(cmdtest.RunOf(), "maint-run-orders-a")
	restored.UID = "before"
	if err := ring.Sign(restored); err != nil {
		t.Fatal(err)
	}
	restored.UID = "now"
	plan, another := cmdtest.Plan("orders", ""), cmdtest.Plan("orders", "")
	plan.UID, another.UID = "u-orders", "u-new"
	for name, c := range map[string]struct {
		beside []runtime.Object
		code   int
		says   string
	}{
		"no plan is there":  {nil, 3, "error: run shop/maint-run-orders-a of plan orders is active"},
		"another plan is":   {[]runtime.Object{another}, 3, "error: run shop/maint-run-orders-a of plan orders is active"},
		"its plan is there": {[]runtime.Object{plan}, 0, "warning: run shop/maint-run-orders-a stays: the run shop/maint-run-orders-a does not count: it was deleted, and somebody created it again from what the agent had signed"},
	} {
		objects := append([]runtime.Object{cmdtest.Agent(), secret.DeepCopy(), cmdtest.Node("a"), restored.DeepCopy()}, c.beside...)
		if got := uninstall(cmdtest.NewCluster(t, cmd.Run, objects...), "--yes"); !strings.HasPrefix(got.Err, c.says) || (got.Code == 3) != (c.code == 3) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A signature that has the right form was made up as well as any other.
func TestUninstallTakesNoRecordsThatTheAgentHasNotSigned(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: annotations.KeyName}, Data: map[string][]byte{annotations.DataKey: annotations.NewKey()}}
	ring, err := annotations.ReadKeyring(secret)
	if err != nil {
		t.Fatal(err)
	}
	gate, err := annotations.GateObject("shop", policy.GateRecord{Policy: "hours"})
	if err != nil {
		t.Fatal(err)
	}
	restore, err := annotations.RestoreObject("shop", cmdtest.Slept("office", "apps", hibernate.Resource{ID: "deployments.apps/shop/web", UID: "u", Before: []byte(`{"replicas":3}`), CapturedAt: *cmdtest.Before(time.Hour), AsleepAt: cmdtest.Before(time.Hour)}))
	if err != nil {
		t.Fatal(err)
	}
	const (
		notOurs = " does not count: it was signed with another key than the agent's: delete it, or, if it is the agent's own, sign it with 'kubectl maint -n shop adopt "
		asleep  = "error: 1 resource of target apps of HibernatePlan shop/office may sleep"
	)
	for name, c := range map[string]struct {
		record *corev1.ConfigMap
		ours   string // what is said of it where it counts
		forged string // and where another key has signed it
		holds  bool   // also then
	}{
		"a run": {
			record: cmdtest.RunObject(cmdtest.RunOf(), "maint-run-orders-a"),
			ours:   "error: run shop/maint-run-orders-a of plan orders is active: wait for it or abort it first; 'kubectl maint pause --all -A' keeps others from beginning meanwhile",
			forged: "warning: run shop/maint-run-orders-a stays: the run shop/maint-run-orders-a" + notOurs + "maint-run-orders-a'; once it is deleted, take its finalizer off: kubectl -n shop patch configmap maint-run-orders-a --type=merge -p '{\"metadata\":{\"finalizers\":null}}'\n",
		},
		"a gate record": {
			record: gate,
			ours:   "error: the gates of policy shop/hours may hold objects that nobody would open: take them out of the policy, or delete it, and wait until the agent has opened them",
			forged: "warning: the gate shop/" + gate.Name + notOurs + gate.Name + "'\n",
		},
		"restore data": {
			record: restore, holds: true,
			ours:   asleep + ", and without the agent nothing wakes it: 'kubectl maint -n shop restore show office' shows what it was",
			forged: asleep + ": the restore shop/" + restore.Name + notOurs + restore.Name + "'\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			forged, ours := cmdtest.Signed(c.record.DeepCopy()), c.record.DeepCopy()
			if err := ring.Sign(ours); err != nil {
				t.Fatal(err)
			}
			got := uninstall(cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), secret, cmdtest.Node("a"), ours), "--yes")
			got.Is(t, cmdtest.Printed{Code: 3, Err: c.ours + "\n"})
			got = uninstall(cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Node("a"), forged), "--yes")
			got.Is(t, cmdtest.Printed{Code: 3, Err: c.ours + unchecked + "\n"})
			got = uninstall(cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), secret, cmdtest.Node("a"), forged), "--yes")
			if !strings.HasPrefix(got.Err, c.forged) || (got.Code == 3) != c.holds {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A run that anybody may have made up holds nothing up, and is named.
func TestUninstallNamesRunsThatNoAgentGoesOnWith(t *testing.T) {
	forged := cmdtest.RunObject(cmdtest.RunOf(), "maint-run-orders-a")
	delete(forged.Annotations, annotations.StatusSignature)
	held := cmdtest.Node("b", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:ops/roll"}}))
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.RunObject(cmdtest.RunOf(), "maint-run-orders-b"), forged)
	uninstall(o, "--yes").Is(t, cmdtest.Printed{Code: 3, Err: "error: run shop/maint-run-orders-b of plan orders is active: wait for it or abort it first; 'kubectl maint pause --all -A' keeps others from beginning meanwhile" + unchecked + "\n"})
	o = cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), held, forged)
	if got := uninstall(o, "--yes"); got.Code != 3 || strings.Contains(got.Err, "maint-run-orders-a of plan orders is active") {
		t.Errorf("%+v", got)
	}
	o = cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), forged)
	if got := uninstall(o); !strings.HasPrefix(got.Err, "warning: run shop/maint-run-orders-a stays: the run shop/maint-run-orders-a does not count: it carries no signature of the agent's: delete it, or, if it is the agent's own, sign it with 'kubectl maint -n shop adopt maint-run-orders-a'; once it is deleted, take its finalizer off: kubectl -n shop patch configmap maint-run-orders-a --type=merge -p '{\"metadata\":{\"finalizers\":null}}'\n") {
		t.Errorf("%+v", got)
	}
}

// It looks everywhere: a namespace of one's own would not do.
func TestUninstallNeedsTheRightsOfAnAdmin(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent())
	o.Forbids("list", "configmaps", "")
	uninstall(o, "--yes").Is(t, cmdtest.Printed{Code: 1, Err: "Error from server (Forbidden): list runs: configmaps is forbidden: not for you; uninstall has to look at all namespaces and nodes: ask an admin of the cluster to run it\n"})
}

// A command line that says both, or neither.
func TestUninstallPrintsOrRemoves(t *testing.T) {
	for _, c := range []struct {
		line string
		want cmdtest.Printed
	}{
		{"uninstall -o yaml --yes", cmdtest.Printed{Code: 2, Err: "error: -o prints what would be removed, and --apply and --yes remove it: give one of them\n"}},
		{"uninstall -o name --apply --read-only", cmdtest.Printed{Code: 2, Err: "error: -o prints what would be removed, and --apply and --yes remove it: give one of them\n"}},
		{"uninstall -o xml", cmdtest.Printed{Code: 2, Err: "error: -o must be json, yaml, name, jsonpath=…, custom-columns=… or go-template=…, is \"xml\"\n"}},
		{"uninstall --apply", cmdtest.Printed{Code: 2, Err: "error: remove the agent from namespace maint-system: give --yes, since nobody can be asked here\n"}},
		{"uninstall --apply --read-only", cmdtest.Printed{Code: 2, Err: "error: remove the agent from namespace maint-system: give --yes, since nobody can be asked here\n"}},
	} {
		args := strings.Fields(strings.TrimPrefix(c.line, "uninstall"))
		uninstall(cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent()), args...).Is(t, c.want)
	}
}
