package setup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/lifecycle"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// Annotations by which Helm recognises the objects of a release.
const (
	helmRelease   = "meta.helm.sh/release-name"
	helmNamespace = "meta.helm.sh/release-namespace"
)

type uninstallOptions struct {
	*factory.Factory
	factory.Consent
	factory.DryRun
	out       *print.Values // of what would be removed; without a format it is removed
	apply     bool
	namespace string
	removed   int
	keys      view.Keys // by which the agent's records count
	uncounted []string  // what does not count, and holds nothing up
	faults    exit.Faults
}

// NewUninstall removes the agent.
func NewUninstall(c *factory.Factory) *cobra.Command {
	o := &uninstallOptions{Factory: c, out: print.NewValues()}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Print or remove the agent; refused while it holds something",
		Long: `Print what install applied and the agent keeps for itself, as it is in the cluster.
--apply removes it, after a question; --yes removes it without one. The agent's
namespace stays, and so do plans with their ledgers and history. Lifecycle conditions
that the agent set on nodes are ended.

uninstall is refused while a run is active (its steps under finally would not run, and
its finalizer would keep it from being deleted), while gates hold an object, while nodes
are cordoned by the agent, and while anything sleeps. Runs and gate records that the
agent's key has not signed are named, and refuse nothing.

--dry-run=client lists what would be deleted, --dry-run=server has the API server try it;
both are refused when uninstall is, and so is printing.`,
		Example: "  kubectl maint uninstall -o name\n  kubectl maint uninstall --dry-run=client\n  kubectl maint uninstall --apply",
		Args:    factory.NoNames,
		RunE:    factory.RunE(o),
	}
	o.Consent.AddFlag(cmd)
	o.AddMode(cmd)
	o.out.AddFlags(cmd)
	cmd.Flags().BoolVar(&o.apply, "apply", false, "remove, instead of printing")
	cmd.Flags().Bool(flagReadOnly, false, "as given to install: an agent that may act as nobody is removed in the same way")
	return cmd
}

// Complete takes the namespace, and prints YAML where nothing says that something is to be removed.
func (o *uninstallOptions) Complete(cmd *cobra.Command, _ []string) error {
	o.namespace = annotations.DefaultNamespace
	if f := cmd.Flag("namespace"); f != nil && f.Changed {
		o.namespace = f.Value.String()
	}
	yes, err := cmd.Flags().GetBool("yes")
	switch o.apply = o.apply || yes; {
	case err != nil:
		return err
	case o.apply && !o.out.Lines():
		o.faults.Add("-o prints what would be removed, and --apply and --yes remove it: give one of them")
	case !o.apply && o.Kept() && o.out.Lines():
		return cmd.Flags().Set("output", "yaml")
	}
	return nil
}

// Validate checks the flags.
func (o *uninstallOptions) Validate() error {
	o.DryRun.Check(&o.faults)
	o.out.Check(&o.faults)
	return o.faults.Err()
}

// nothingCordoned refuses while nodes are cordoned by the agent: nobody would uncordon them.
func (o *uninstallOptions) nothingCordoned(ctx context.Context, k *factory.Cluster) error {
	list, err := k.Nodes(ctx, "")
	if err != nil {
		return k.Explain("look whether nodes are cordoned", err)
	}
	for _, n := range list {
		if ours := view.CordonedHere(n); len(ours) > 0 {
			hand := "take back what asks for them: " + o.Suggest().ReleaseFor(n.Name, ours[0])
			if nodes.IsPlan(ours[0]) {
				hand = "uncordon them: " + o.Suggest().Uncordon(n.Name)
			}
			return exit.Errorf(exit.CodeNotNow, "node %s is cordoned for %s, and nobody would uncordon it: %s shows all such nodes; let their plans end, or %s", n.Name, nodes.ClaimantName(ours[0]), o.Suggest().Status(), hand)
		}
	}
	return nil
}

// nothingAsleep refuses while anything sleeps: nobody would wake it.
func (o *uninstallOptions) nothingAsleep(ctx context.Context, k *factory.Cluster) error {
	list, err := k.HibernatePlans(ctx, "", "")
	if err != nil {
		return err
	}
	for _, cm := range list {
		if view.Asleep(cm) {
			return exit.Errorf(exit.CodeNotNow, "HibernatePlan %s/%s is asleep (%s), and without the agent nothing wakes it: wake it with %s, and uninstall once it is awake", cm.Namespace, cm.Name, cm.Annotations[annotations.StatusPhase], o.Suggest().In(cm.Namespace).WakeFor(cm.Name))
		}
	}
	return o.nothingRecorded(ctx, k)
}

// nothingRecorded refuses while restore data names sleeping resources: their plan may be gone, or
// may have failed to wake them.
func (o *uninstallOptions) nothingRecorded(ctx context.Context, k *factory.Cluster) error {
	list, err := k.Restores(ctx, "", "")
	if err != nil {
		return err
	}
	for _, r := range list {
		n, _ := r.Count()
		if n == 0 || r.Copy {
			continue
		}
		sleeps := view.Counted(n, "resource") + " of target " + r.Record.Target + " of HibernatePlan " + r.Object.Namespace + "/" + r.Of()
		if err := o.keys.Check(r.Object); err != nil {
			return exit.Errorf(exit.CodeNotNow, "%s may sleep: %s", sleeps, notOurs(o.Factory, r.Object, err))
		}
		return exit.Errorf(exit.CodeNotNow, "%s may sleep, and without the agent nothing wakes it: %s shows what it was%s", sleeps, o.Suggest().In(r.Object.Namespace).ShowRestore(r.Of()), o.keys.Doubt())
	}
	return nil
}

// nothingHeld refuses while gates may hold objects: nobody would release them.
func (o *uninstallOptions) nothingHeld(ctx context.Context, k *factory.Cluster) error {
	list, err := k.ConfigMaps("").List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindGate})
	if err != nil {
		return k.Explain("look whether gates hold anything", err)
	}
	held := slices.DeleteFunc(list.Items, func(cm corev1.ConfigMap) bool {
		err := o.keys.Check(&cm)
		if err != nil {
			o.uncounted = append(o.uncounted, notOurs(o.Factory, &cm, err))
		}
		return err != nil
	})
	if len(held) == 0 {
		return errors.Join(o.nothingCordoned(ctx, k), o.nothingAsleep(ctx, k))
	}
	cm := &held[0]
	policy := cm.Name
	if record, err := annotations.ReadGates(cm); err == nil {
		policy = record.Policy
	}
	return exit.Errorf(exit.CodeNotNow, "the gates of policy %s/%s%s may hold objects that nobody would open: take them out of the policy, or delete it, and wait until the agent has opened them%s", cm.Namespace, policy, view.AndMore(len(held)-1), o.keys.Doubt())
}

// notOurs says of a record that does not count what becomes of it: anybody may have written it.
func notOurs(c *factory.Factory, cm *corev1.ConfigMap, why error) string {
	return fmt.Sprintf("%v: delete it, or, if it is the agent's own, sign it with %s", why, c.Suggest().In(cm.Namespace).Adopt(cm.Name))
}

// Run deletes the objects in reverse order, once nothing is alive.
func (o *uninstallOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	others, err := o.others(ctx, k)
	if err == nil {
		o.keys = readKeys(ctx, k, append([]string{o.namespace}, others...))
		err = o.nothingLeft(ctx, k)
	}
	switch {
	case apierrors.IsForbidden(err):
		return exit.WithHelp(err, "uninstall has to look at all namespaces and nodes: ask an admin of the cluster to run it")
	case err != nil:
		return err
	}
	for _, what := range o.uncounted {
		fmt.Fprintf(o.ErrOut, "warning: %s\n", what)
	}
	if !o.out.Lines() {
		return o.print(ctx, others)
	}
	if o.Kept() {
		if err := o.Confirm(ctx, o.Consent, "remove the agent from namespace "+o.namespace); err != nil {
			return err
		}
	}
	if err := o.remove(ctx, others); err != nil {
		return err
	}
	if len(others) == 0 { // another agent still needs them
		if err := o.conditions(ctx, k); err != nil {
			return err
		}
	}
	return o.leftovers(ctx, k)
}

// others are the other namespaces with an agent. It refuses if this one has none, and no remains of
// one: the other agent would lose its rights in the cluster. An agent is a Deployment, a heartbeat or a
// held Lease where its account is named in the cluster: anybody may make those in a namespace. Where
// this namespace is not named, those that are keep what they need also without any of them.
func (o *uninstallOptions) others(ctx context.Context, k *factory.Cluster) ([]string, error) {
	deployed, err := k.Agents(ctx)
	if err != nil {
		return nil, k.Explain("look where the agent is", err)
	}
	named, err := o.named(ctx)
	if err != nil {
		return nil, err
	}
	for _, namespace := range named { // an agent may run without a Deployment
		if slices.Contains(deployed, namespace) {
			continue
		}
		switch there, err := shows(ctx, o.Factory, k, namespace); {
		case err != nil:
			return nil, err
		case there:
			deployed = append(deployed, namespace)
		}
	}
	ours := slices.Contains(named, o.namespace)
	others := slices.DeleteFunc(slices.Clone(named), func(other string) bool {
		return other == o.namespace || ours && !slices.Contains(deployed, other)
	})
	for _, namespace := range deployed {
		if !slices.Contains(named, namespace) && (namespace != o.namespace || len(others) > 0) {
			fmt.Fprintf(o.ErrOut, "warning: Deployment %s in namespace %s does not count as an agent: no binding or policy of the cluster names its ServiceAccount, and whoever may create Deployments there may have made it\n", annotations.AgentName, namespace)
		}
	}
	if len(others) == 0 || slices.Contains(deployed, o.namespace) {
		return others, nil
	}
	_, err = k.Kube.CoreV1().ServiceAccounts(o.namespace).Get(ctx, annotations.AgentName, metav1.GetOptions{}) // of an interrupted removal
	switch {
	case apierrors.IsNotFound(err):
		return nil, exit.Errorf(exit.CodeError, "there is no agent in namespace %s, and one in namespace %s: %s removes it", o.namespace, others[0], o.Suggest().Uninstall(others[0]))
	case err != nil:
		return nil, k.Explain("look whether the agent was in namespace "+o.namespace, err)
	}
	return others, nil
}

// named are the namespaces whose agent a binding or a policy of ours in the cluster names.
func (o *uninstallOptions) named(ctx context.Context) (out []string, err error) {
	objects, err := o.removable()
	if err != nil {
		return nil, err
	}
	a, err := connect(o.Factory)
	if err != nil {
		return nil, err
	}
	live, err := a.read(ctx, slices.DeleteFunc(objects, func(u *unstructured.Unstructured) bool {
		return u.GetKind() != "ClusterRoleBinding" && !policyKind(u.GetKind())
	}))
	for _, u := range live {
		out = append(out, agentsIn(u)...)
	}
	slices.Sort(out)
	return slices.Compact(out), err
}

// readKeys reads the keys of the agents in some namespaces.
func readKeys(ctx context.Context, k *factory.Cluster, namespaces []string) (keys view.Keys) {
	for _, namespace := range namespaces {
		secret, err := k.Kube.CoreV1().Secrets(namespace).Get(ctx, annotations.KeyName, metav1.GetOptions{})
		keys.Add(secret, k.Explain("read the key in namespace "+namespace, err))
	}
	return keys
}

// conditions ends the lifecycle conditions that the agent left on nodes, such as those of waiting
// requests. It runs after the agent's rights are gone, so that nobody sets them again.
func (o *uninstallOptions) conditions(ctx context.Context, k *factory.Cluster) error {
	list, err := k.Nodes(ctx, "")
	if err != nil {
		return k.Explain("look for conditions of nodes", err)
	}
	for _, n := range list {
		if err := o.conditionsOf(ctx, k, n); err != nil {
			return installError(o.Suggest(), "end the conditions of node "+n.Name+" (the agent is removed; uninstall again goes on with them)", err)
		}
	}
	return nil
}

// conditionsOf ends those of one node. After a conflict the node is read again.
func (o *uninstallOptions) conditionsOf(ctx context.Context, k *factory.Cluster, n *corev1.Node) error {
	have := annotations.Lifecycle(n)
	change := lifecycle.Facts{Node: annotations.Node(n)}.Ends(have)
	if len(change) == 0 {
		return nil
	}
	if !o.Client() {
		patch, err := annotations.LifecyclePatch(n.UID, n.ResourceVersion, have, change, o.Now())
		if err != nil {
			return err
		}
		_, err = k.Kube.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, patch, o.Options(), "status")
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case apierrors.IsConflict(err):
			if n, err = k.Kube.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{}); err != nil {
				return err
			}
			return o.conditionsOf(ctx, k, n)
		case err != nil:
			return err
		}
	}
	for _, c := range change {
		fmt.Fprintf(o.Out, "node/%s condition %s ended%s\n", n.Name, c.Type, o.Mark())
	}
	return nil
}

// nothingLeft refuses while anything remains that only the agent can end.
func (o *uninstallOptions) nothingLeft(ctx context.Context, k *factory.Cluster) error {
	live, uncounted, err := liveRuns(ctx, o.Factory, k, o.keys)
	if err != nil {
		return err
	}
	o.uncounted = append(o.uncounted, uncounted...)
	if len(live) > 0 {
		view.SortRuns(live)
		return exit.Errorf(exit.CodeNotNow, "run %s/%s of plan %s is active%s: wait for it or abort it first; %s keeps others from beginning meanwhile%s", live[0].Run.Namespace, live[0].Run.Name, live[0].Run.Plan, view.AndMore(len(live)-1), o.Suggest().PauseCluster(), o.keys.Doubt())
	}
	return o.nothingHeld(ctx, k)
}

// liveRuns are the runs that have not ended and count by some keys, and what is to be said of those that do not:
// no agent ends them.
func liveRuns(ctx context.Context, c *factory.Factory, k *factory.Cluster, keys view.Keys) (live []view.Run, uncounted []string, err error) {
	list, err := k.ConfigMaps("").List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindRun + "," + factory.ActiveOnly})
	if err != nil {
		return nil, nil, k.Explain("list runs", err)
	}
	for i := range list.Items {
		cm := &list.Items[i]
		r, err := view.ReadRun(cm)
		if err == nil {
			plan, failed := planThere(ctx, k, cm)
			if failed != nil {
				return nil, nil, failed
			}
			err = keys.CheckBeside(cm, plan)
		}
		switch {
		case err == nil:
			live = append(live, r)
		case len(cm.Finalizers) > 0: // else nothing keeps it
			uncounted = append(uncounted, fmt.Sprintf("run %s/%s stays: %s; once it is deleted, take its finalizer off: kubectl -n %[1]s patch configmap %[2]s --type=merge -p '{\"metadata\":{\"finalizers\":null}}'", cm.Namespace, cm.Name, notOurs(c, cm, err)))
		}
	}
	return live, uncounted, nil
}

// planThere is the UID of the plan that is there of a run that somebody created again; else empty.
func planThere(ctx context.Context, k *factory.Cluster, run *corev1.ConfigMap) (string, error) {
	if !annotations.Recreated(run) {
		return "", nil
	}
	cm, err := k.ConfigMaps(run.Namespace).Get(ctx, run.Labels[annotations.LabelPlan], metav1.GetOptions{})
	switch {
	case err == nil:
		return string(cm.UID), nil
	case apierrors.IsNotFound(err):
		return "", nil
	}
	return "", k.Explain("get the plan of run "+run.Name, err)
}

// remove deletes everything that is removable, except the namespace. Cluster-scoped objects stay if
// an agent of another namespace needs them.
func (o *uninstallOptions) remove(ctx context.Context, others []string) error {
	objects, err := o.removable()
	if err != nil {
		return err
	}
	a, err := connect(o.Factory)
	if err != nil {
		return err
	}
	var live objectsByKey
	if len(others) > 0 {
		if live, err = a.read(ctx, slices.DeleteFunc(slices.Clone(objects), func(u *unstructured.Unstructured) bool { return u.GetNamespace() != "" || u.GetKind() == "Namespace" })); err != nil {
			return err
		}
	}
	kept := sharedWith(live, o.namespace)
	if err := o.disown(ctx, a, objects, live, kept); err != nil {
		return err
	}
	for _, u := range slices.Backward(objects) {
		if u.GetKind() == "Namespace" || u.GetNamespace() == "" && kept[keyOf(u)] {
			continue
		}
		if err := o.removeOne(ctx, a, u); err != nil {
			return err
		}
	}
	o.sayShared(others, live, kept)
	return nil
}

// sayShared says what an agent of another namespace keeps, and what is missing already.
func (o *uninstallOptions) sayShared(others []string, live objectsByKey, kept map[objectKey]bool) {
	if len(others) == 0 {
		return
	}
	names := strings.Join(others, " and ")
	if len(kept) > 0 {
		fmt.Fprintf(o.ErrOut, "the agent in namespace %s stays, with these objects of the cluster that it needs: %s\n", names, strings.Join(objectNames(kept), ", "))
	}
	if binding := (objectKey{"ClusterRoleBinding", annotations.AgentName}); live[binding] == nil || !kept[binding] {
		fmt.Fprintf(o.ErrOut, "the agent in namespace %s lacks objects that this installation had taken over from it, at least its ClusterRoleBinding: %s brings them back\n", names, o.Suggest().InstallIn(others[0]))
	}
}

// disown removes the marks by which 'helm uninstall' of a release in this namespace would delete
// what stays.
func (o *uninstallOptions) disown(ctx context.Context, a *applier, objects []*unstructured.Unstructured, live objectsByKey, kept map[objectKey]bool) error {
	for _, u := range objects {
		if u = live[keyOf(u)]; u == nil || !kept[keyOf(u)] || u.GetAnnotations()[helmNamespace] != o.namespace {
			continue
		}
		if !o.Client() {
			to, err := a.of(u)
			if err != nil {
				return err
			}
			patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:null,%q:null},"labels":{"app.kubernetes.io/managed-by":null}}}`, u.GetUID(), helmRelease, helmNamespace)
			if _, err := to.Patch(ctx, u.GetName(), types.MergePatchType, []byte(patch), o.Options()); err != nil && !apierrors.IsNotFound(err) {
				return installError(o.Suggest(), "take "+named(u)+" out of the release of Helm", err)
			}
		}
		fmt.Fprintf(o.Out, "%s taken out of Helm's release %s%s\n", named(u), u.GetAnnotations()[helmRelease], o.Mark())
	}
	return nil
}

func (o *uninstallOptions) removeOne(ctx context.Context, a *applier, u *unstructured.Unstructured) error {
	to, err := a.of(u)
	if err != nil || to == nil {
		return err
	}
	return o.deleted(named(u), func() error { return to.Delete(ctx, u.GetName(), o.Deletion()) }, func() error {
		_, err := to.Get(ctx, u.GetName(), metav1.GetOptions{})
		return err
	})
}

// deleted deletes an object and reports it; with --dry-run=client it only checks whether it exists.
func (o *uninstallOptions) deleted(name string, del, get func() error) error {
	doing, do := "delete ", del
	if o.Client() {
		doing, do = "look for ", get
	}
	switch err := do(); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return installError(o.Suggest(), doing+name, err)
	default:
		o.removed++
		fmt.Fprintf(o.Out, "%s deleted%s\n", name, o.Mark())
	}
	return nil
}

// leftovers deletes what the agent itself keeps in its namespace. The namespace stays: other
// objects in it are not ours to delete.
func (o *uninstallOptions) leftovers(ctx context.Context, k *factory.Cluster) error {
	if err := o.ownRecords(ctx, k); err != nil {
		return err
	}
	_, err := k.Kube.CoreV1().Secrets(o.namespace).Get(ctx, annotations.KeyName, metav1.GetOptions{})
	keyless := apierrors.IsNotFound(err)
	if o.removed == 0 {
		fmt.Fprintf(o.ErrOut, "no agent is installed in namespace %s: there is nothing to remove\n", o.namespace)
	}
	if o.removed == 0 && keyless {
		return nil
	}
	if _, err := k.Kube.CoreV1().Namespaces().Get(ctx, o.namespace, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		fmt.Fprintf(o.ErrOut, "there is no namespace %s: nothing is left in it\n", o.namespace)
		return nil
	}
	if keyless {
		fmt.Fprintf(o.ErrOut, "namespace %s stays, with everything else in it\n", o.namespace)
		return nil
	}
	fmt.Fprintf(o.ErrOut, "namespace %s stays, with everything else in it and with Secret %s: keep the Secret if you will install again, since without this key no run, ledger or gate record that the agent signed counts any more. %s deletes both for good\n", o.namespace, annotations.KeyName, o.Suggest().DeleteNamespace(o.namespace))
	return nil
}

// ownRecords deletes the heartbeat and the lease.
func (o *uninstallOptions) ownRecords(ctx context.Context, k *factory.Cluster) error {
	records, leases := k.ConfigMaps(o.namespace), k.Kube.CoordinationV1().Leases(o.namespace)
	err := o.deleted("configmap/"+annotations.HeartbeatName, func() error { return records.Delete(ctx, annotations.HeartbeatName, o.Deletion()) }, func() error {
		_, err := records.Get(ctx, annotations.HeartbeatName, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return o.deleted("lease/"+annotations.LeaseName, func() error { return leases.Delete(ctx, annotations.LeaseName, o.Deletion()) }, func() error {
		_, err := leases.Get(ctx, annotations.LeaseName, metav1.GetOptions{})
		return err
	})
}

// removable is everything that any install may have applied, the namespace included; also the
// PodDisruptionBudget of kustomize's component ha, which would have no pods.
func (o *uninstallOptions) removable() ([]*unstructured.Unstructured, error) {
	objects, err := Manifests{Version: o.Version, Namespace: o.namespace, Image: defaultRepository}.all()
	if err != nil {
		return nil, err
	}
	return append(objects, objectIn(o.namespace, "policy/v1", "PodDisruptionBudget", annotations.AgentName)), nil
}

// objectIn is an object of a namespace, by its name.
func objectIn(namespace, version, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// print shows what would be removed, as it is in the cluster, and removes nothing.
func (o *uninstallOptions) print(ctx context.Context, others []string) error {
	a, err := connect(o.Factory)
	if err != nil {
		return err
	}
	items, err := o.standing(ctx, a, others)
	if err != nil {
		return err
	}
	if err := o.out.PrintObjects(o.Out, items); err != nil {
		return err
	}
	if len(items) == 0 {
		fmt.Fprintf(o.ErrOut, "no agent is installed in namespace %s: there is nothing to remove\n", o.namespace)
		return nil
	}
	fmt.Fprintf(o.ErrOut, "nothing was removed: %s removes it\n", o.Suggest().Uninstall(o.namespace))
	return nil
}

// standing are the objects that would be removed, in the order of their removal. What an agent of
// another namespace needs is not among them.
func (o *uninstallOptions) standing(ctx context.Context, a *applier, others []string) ([]unstructured.Unstructured, error) {
	objects, err := o.removable()
	if err != nil {
		return nil, err
	}
	objects = append([]*unstructured.Unstructured{objectIn(o.namespace, "coordination.k8s.io/v1", "Lease", annotations.LeaseName), objectIn(o.namespace, "v1", "ConfigMap", annotations.HeartbeatName)}, objects...)
	objects = slices.DeleteFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "Namespace" })
	live, err := a.read(ctx, objects)
	if err != nil {
		return nil, err
	}
	kept := map[objectKey]bool{}
	if len(others) > 0 {
		shared := maps.Clone(live)
		maps.DeleteFunc(shared, func(_ objectKey, u *unstructured.Unstructured) bool { return u.GetNamespace() != "" })
		kept = sharedWith(shared, o.namespace)
	}
	items := []unstructured.Unstructured{}
	for _, u := range slices.Backward(objects) {
		if found := live[keyOf(u)]; found != nil && !kept[keyOf(u)] {
			found.SetManagedFields(nil)
			items = append(items, *found)
		}
	}
	return items, nil
}
