package look

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

// held is what needs somebody besides plans and nodes: on the screen, and for scripts.
type held struct {
	needs []print.Need
	value print.Value
}

// heldNamespace is a namespace that is paused or frozen. The pause of the whole cluster is on the
// agent's namespace.
func heldNamespace(name string, needs []print.Need) held {
	return held{needs, print.Value{Kind: print.KindNamespaceStatus, Name: "namespace/" + name, Body: print.HeldValue("", name, needs)}}
}

// heldPolicy is a policy that is paused, frozen or broken, or one that is gone.
func heldPolicy(namespace, name string, needs ...print.Need) held {
	return held{needs, print.Value{Kind: print.KindPolicyStatus, Name: "policy/" + name, Body: print.HeldValue(namespace, name, needs)}}
}

// above is all of it: what has no plan any more, then what is paused, frozen or broken.
func (o *statusOptions) above(k *factory.Cluster, r reads) []held {
	return append(o.orphans(k, r), o.held(k, r)...)
}

// held are the paused or frozen namespaces and policies, and broken policies, among those that were
// read with the plans; where plans are chosen by labels, those that hold these. What may not be
// read is left out.
func (o *statusOptions) held(k *factory.Cluster, r reads) []held {
	var all []held
	about := o.namespacesOf(k, r)
	for _, name := range r.around.Namespaces() {
		if o.selector == "" || about[name] {
			all = append(all, heldNamespace(name, o.namespaceNeeds(k, r, name)))
		}
	}
	used := o.used(r)
	for _, p := range r.around.Policies() {
		if !o.listsPolicies(k, p.Namespace) && !used[policy.PolicyRef{Name: p.Name, Namespace: p.Namespace}] {
			continue
		}
		v, about := o.newPrinter(view.PolicyZone(p.Spec, o.Zone)), "policy "+p.Name
		if o.everywhere || p.Namespace != k.Namespace {
			v, about = v.In(p.Namespace), "policy "+p.Namespace+"/"+p.Name
		}
		all = append(all, heldPolicy(p.Namespace, p.Name, v.PolicyNeeds(about, p, r.around.NotReady(p, o.Now()), r.around.GatesWrong(p))...))
	}
	return slices.DeleteFunc(all, func(h held) bool { return len(h.needs) == 0 })
}

// listsPolicies says whether the policies of a namespace are listed whoever uses them.
func (o *statusOptions) listsPolicies(k *factory.Cluster, namespace string) bool {
	return o.selector == "" && (o.everywhere || namespace == k.Namespace)
}

// namespacesOf are those of the plans that were read, the present one, and the agent's, which stands
// for the cluster.
func (o *statusOptions) namespacesOf(k *factory.Cluster, r reads) map[string]bool {
	out := map[string]bool{r.agent.Namespace: true, k.Namespace: !o.everywhere}
	for _, cm := range slices.Concat(r.plans, r.sleepers) {
		out[cm.Namespace] = true
	}
	return out
}

// namespaceNeeds are those of a namespace; of the agent's, only the pause of the whole cluster
// unless it was asked for.
func (o *statusOptions) namespaceNeeds(k *factory.Cluster, r reads, name string) []print.Need {
	v := o.printer(o.Zone, name)
	var out []print.Need
	if r.around.Deleting(name) && (o.everywhere || name == k.Namespace) {
		out = append(out, print.Need{About: "namespace " + name, What: "is being deleted: nothing begins in it, and changes by its runs are not put back", Remedy: v.Suggest().DescribeNamespace(name)})
	}
	for _, p := range r.around.Above(name) {
		if (p.Of == annotations.WholeCluster) == (name == r.agent.Namespace) {
			out = append(out, v.PauseNeeds(p)...)
		}
	}
	if o.everywhere || name == k.Namespace {
		out = append(out, v.FreezeNeeds(name, r.around.NamespaceStanza(name))...)
	}
	return out
}

// used are the policies behind the plans and nodes that were read.
func (o *statusOptions) used(r reads) map[policy.PolicyRef]bool {
	out := map[policy.PolicyRef]bool{}
	add := func(namespace string, in intent.Intent, named []policy.PolicyRef) {
		for _, ref := range r.around.Uses(in.Query(namespace, named)) {
			out[ref] = true
		}
	}
	for _, p := range r.views {
		add(p.Object.Namespace, p.Intent, p.Spec.Policies)
	}
	for _, cm := range r.sleepers {
		spec, _ := annotations.HibernatePlan(cm)
		add(cm.Namespace, annotations.Intent(cm.Annotations), spec.Policies)
	}
	for _, n := range r.nodes {
		add("", annotations.Intent(n.Annotations), nil)
	}
	return out
}

// nodeNeeds are what needs somebody on the nodes.
func (o *statusOptions) nodeNeeds(r reads) []print.Need {
	v := o.newPrinter(o.Zone)
	out := v.ClaimNeeds(view.NodeClaims(r.nodes, r.use))
	for _, n := range r.nodes {
		out = append(out, v.NodeNeeds(n)...)
	}
	return out
}

// needsOn are what needs somebody on one node, as beside all others.
func needsOn(v print.Printer, object *corev1.Node, n view.Node) []print.Need {
	return append(v.ClaimNeeds(view.NodeClaims([]*corev1.Node{object}, n.Use())), v.NodeNeeds(object)...)
}
