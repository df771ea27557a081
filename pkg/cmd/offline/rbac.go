package offline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/rights"
)

type rbacOptions struct {
	*factory.Factory
	out    *print.Values
	files  []string
	faults exit.Faults
}

// NewRBAC prints the rights that the accounts of plans need.
func NewRBAC(c *factory.Factory) *cobra.Command {
	o := &rbacOptions{Factory: c, out: print.NewValues()}
	cmd := &cobra.Command{
		Use:   "rbac -f FILE|FOLDER|-",
		Short: "Print the Roles that plans and gates need",
		Long: `Print the ServiceAccounts, Roles and ClusterRoles that plans in files need for their
targets, triggers and steps, HibernatePlans for their targets, and policies for their gates,
with their bindings: all that they need, and nothing else. The right to patch a target so
that it shows how its plan stands is among them where the plan names a mirrorPrefix. Of a policy that is in the cluster:
kubectl get configmap POLICY -o yaml | kubectl maint rbac -f -. Roles and bindings are named after the plan, maint:PLAN,
and outside of its namespace maint:NAMESPACE:PLAN, so that plans with one account do not replace
each other's. A plan that names no namespace is in that of -n, or
of the kubeconfig's context. No cluster is asked, so resources are named by the rules of
English, and kinds that are not well known are taken to be in namespaces: review them if a
kind has another plural, or is cluster-scoped. Standard error lists the rights that cannot be
known from the files: for objects that an expression names, for what a function asks for, for
the owner of a target, for a gate on a kind that may be cluster-scoped, in another cluster, or
in an account of AWS.`,
		Example: "  kubectl maint rbac -f plan.yaml > rbac.yaml\n  kubectl maint rbac -f maintenance/ | kubectl apply -f -",
		Args:    factory.NoNames,
		RunE:    factory.RunE(o),
	}
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "file or folder, or - for standard input")
	o.out.AddFlags(cmd)
	cmd.Flags().Lookup("output").Usage = "yaml, json, name, jsonpath=…, custom-columns=… or go-template=…; or nothing for manifests in YAML"
	return cmd
}

// Complete has nothing to look up.
func (o *rbacOptions) Complete(*cobra.Command, []string) error { return nil }

// Validate checks the flags.
func (o *rbacOptions) Validate() error {
	o.out.Check(&o.faults)
	if len(o.files) == 0 {
		o.faults.Add("-f is missing: name the files that hold the plans")
	}
	return o.faults.Err()
}

// account is an account that needs rights.
type account struct{ namespace, name string }

// Run prints the manifests.
func (o *rbacOptions) Run(context.Context) error {
	w, err := source.Read(o.Factory, o.files)
	if err != nil {
		return err
	}
	gated := slices.DeleteFunc(slices.Clone(w.Policies()), func(p policy.State) bool { return len(p.Spec.Gates) == 0 })
	if len(w.Plans)+len(w.Sleepers)+len(gated) == 0 {
		return errors.New("the files hold no plan, and no policy with gates")
	}
	needs := map[account]map[string][]rights.Need{} // by the plan's name
	add := func(kind, namespace, name, as string, found []rights.Need, open []string) {
		who := account{namespace, cmp.Or(as, policy.DefaultServiceAccount)}
		if needs[who] == nil {
			needs[who] = map[string][]rights.Need{}
		}
		needs[who][name] = append(needs[who][name], found...)
		for _, text := range open {
			if name != "" {
				text = kind + " " + name + ", " + text
			}
			fmt.Fprintln(o.ErrOut, text)
		}
	}
	for _, p := range w.Plans {
		found, open := rights.Of(plan.Tree{Spec: p.Spec, Templates: p.Used.Templates}, p.Namespace, p.Used.Connectors)
		add("plan", p.Namespace, p.Name, p.Spec.ServiceAccountName, found, open)
	}
	for _, p := range w.Sleepers {
		found, open := rights.OfSleep(p.Spec, p.Namespace, w.UseConnectors(p).Connectors)
		add("HibernatePlan", p.Namespace, p.Name, p.Spec.ServiceAccountName, found, open)
	}
	for _, p := range gated {
		found, open := rights.OfGates(p.Spec, p.Namespace)
		add("policy", p.Namespace, p.Name, p.Spec.ServiceAccountName, found, append(open, rights.OpenScopes(p.Spec)...))
	}
	var manifests []runtime.Object
	for _, who := range slices.SortedFunc(maps.Keys(needs), func(a, b account) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
	}) {
		manifests = append(manifests, manifestsOf(who, needs[who])...)
	}
	return o.print(manifests)
}

// print prints manifests as YAML documents, or with -o as a list, as kubectl does.
func (o *rbacOptions) print(manifests []runtime.Object) error {
	items := make([]unstructured.Unstructured, len(manifests))
	for i, object := range manifests {
		u, err := bare(object)
		if err != nil {
			return err
		}
		items[i].Object = u
	}
	if !o.out.Lines() {
		return o.out.PrintObjects(o.Out, items)
	}
	for i, u := range items {
		b, err := yaml.Marshal(u.Object)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprint(o.Out, "---\n")
		}
		if _, err := o.Out.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// bare is an object without fields that only the API server sets.
func bare(object runtime.Object) (map[string]any, error) {
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	if m, ok := u["metadata"].(map[string]any); ok {
		delete(m, "creationTimestamp")
	}
	return u, nil
}

// manifestsOf are an account and the roles of its plans.
func manifestsOf(who account, plans map[string][]rights.Need) []runtime.Object {
	out := []runtime.Object{&corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: metav1.ObjectMeta{Name: who.name, Namespace: who.namespace}}}
	for _, name := range slices.Sorted(maps.Keys(plans)) {
		out = append(out, rolesOf(who, cmp.Or(name, who.name), plans[name])...)
	}
	return out
}

// rolesOf are the roles of a plan, one in each namespace and one of the cluster. Their names are
// unique to the plan: a name of a ConfigMap cannot contain a colon.
func rolesOf(who account, planName string, needs []rights.Need) []runtime.Object {
	subject := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: who.name, Namespace: who.namespace}}
	var out []runtime.Object
	byNamespace := map[string][]rights.Need{}
	for _, n := range needs {
		byNamespace[n.Namespace] = append(byNamespace[n.Namespace], n)
	}
	kind := func(name string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: name}
	}
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		rules := rulesOf(byNamespace[namespace])
		name := metav1.ObjectMeta{Name: "maint:" + planName, Namespace: namespace}
		if namespace != who.namespace {
			name.Name = "maint:" + who.namespace + ":" + planName
		}
		if namespace == "" {
			out = append(out, &rbacv1.ClusterRole{TypeMeta: kind("ClusterRole"), ObjectMeta: name, Rules: rules},
				&rbacv1.ClusterRoleBinding{TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: name, Subjects: subject, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name}})
			continue
		}
		out = append(out, &rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: name, Rules: rules},
			&rbacv1.RoleBinding{TypeMeta: kind("RoleBinding"), ObjectMeta: name, Subjects: subject, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name}})
	}
	return out
}

// rulesOf merges needs: verbs on the same objects become one rule, and so do resources of a group
// with the same verbs.
func rulesOf(needs []rights.Need) []rbacv1.PolicyRule {
	type on struct{ group, resource, name string }
	verbs := map[on]map[string]bool{}
	for _, n := range needs {
		group, resource := source.ResourceOf(n)
		for _, v := range n.Verbs {
			at := on{group, resource, n.Name}
			if verbs[at] == nil {
				verbs[at] = map[string]bool{}
			}
			verbs[at][v] = true
		}
	}
	for at, has := range verbs { // a verb on all objects includes the named ones
		maps.DeleteFunc(has, func(v string, _ bool) bool { return at.name != "" && verbs[on{at.group, at.resource, ""}][v] })
	}
	type same struct {
		group, resource, verbs string
		named                  bool
	}
	names := map[same][]string{}
	for at, has := range verbs {
		if len(has) > 0 {
			s := same{at.group, at.resource, strings.Join(slices.Sorted(maps.Keys(has)), ","), at.name != ""}
			names[s] = append(names[s], at.name)
		}
	}
	var out []rbacv1.PolicyRule
	for _, s := range slices.SortedFunc(maps.Keys(names), func(a, b same) int {
		return cmp.Or(strings.Compare(a.group, b.group), strings.Compare(a.resource, b.resource), strings.Compare(b.verbs, a.verbs))
	}) {
		rule := rbacv1.PolicyRule{APIGroups: []string{s.group}, Resources: []string{s.resource}, Verbs: strings.Split(s.verbs, ",")}
		if s.named {
			slices.Sort(names[s])
			rule.ResourceNames = names[s]
		}
		out = append(out, rule)
	}
	return out
}
