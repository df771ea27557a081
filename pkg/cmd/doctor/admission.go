package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/rights"
)

// confining are the admission policies that confine the agent's own token.
func confining() []string {
	return []string{annotations.AgentPolicy, "maint-agent-secrets", "maint-agent-namespaces", "maint-agent-nodes"}
}

// guarding are the optional ones that guard intents, records and freezes. Somebody may have applied
// only some of them.
func guarding() []string {
	return []string{
		annotations.ActorPolicyName, annotations.ActorPolicyName + "-nodes", "maint-documents",
		annotations.FreezePolicyName, annotations.FreezePolicyName + "-autoscalers", annotations.FreezePolicyName + "-status",
		"maint-intents", "maint-nodes", annotations.RecordsPolicyName, "maint-status",
	}
}

// confined checks the admission policies: those that confine the agent's token, and those that guard
// intents, if they are there.
func (o *options) confined(ctx context.Context, k *factory.Cluster, namespace string) {
	o.check = "admission"
	list, err := k.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err): // of the kind
		o.unknown("the policies that confine the agent", errors.New("this API server has no ValidatingAdmissionPolicy (Kubernetes 1.30 and later do)"))
		return
	case err != nil:
		o.unknown("the policies that confine the agent", k.Explain("list them", err))
		return
	}
	var names, missing []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	for _, name := range confining() {
		if !slices.Contains(names, name) {
			missing = append(missing, name)
		}
	}
	bindings, unread := k.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	switch {
	case len(missing) == len(confining()):
		o.amiss("no admission policy confines the agent's token", "install them with "+o.Suggest().Install())
	case len(missing) > 0:
		o.amiss("of the policies that confine the agent's token these are missing: "+strings.Join(missing, ", "), "install again with "+o.Suggest().Install()+"; install --without may have left them out")
	default:
		if strangers := confiningOthers(list.Items, namespace); len(strangers) > 0 {
			o.amiss(fmt.Sprintf("these policies confine another agent's token, and not that of namespace %s: %s", namespace, strings.Join(strangers, ", ")), o.Suggest().Uninstall("NS")+" removes the installation that is too much; then "+o.Suggest().InstallIn(namespace)+" has the policies name this one")
			break
		}
		if unread != nil {
			o.unknown("the bindings of the policies that confine the agent", k.Explain("list them", unread))
			break
		}
		if o.bound("that confine the agent's token", append(confining(), "maint-agent-tokens"), names, bindings.Items) {
			o.good("admission policies confine the agent's token")
		}
	}
	if !slices.ContainsFunc(guarding(), func(name string) bool { return slices.Contains(names, name) }) {
		return
	}
	if unread != nil {
		o.unknown("the bindings of the policies that guard intents, records and freezes", k.Explain("list them", unread))
		return
	}
	if o.bound("that guard intents, records and freezes", guarding(), names, bindings.Items) && slices.Contains(names, "maint-intents") {
		o.good("admission policies guard intents, records and freezes (--with-admission)")
	}
}

// confiningOthers are the policies that confine the token of agents of other namespaces only.
func confiningOthers(policies []admissionv1.ValidatingAdmissionPolicy, namespace string) []string {
	var out []string
	for i := range policies {
		p := &policies[i]
		if !slices.Contains(append(confining(), "maint-agent-tokens"), p.Name) {
			continue
		}
		if named := annotations.AgentsNamed(p.Spec); len(named) > 0 && !slices.Contains(named, namespace) {
			out = append(out, p.Name)
		}
	}
	return out
}

// bound says of those policies that are there whether each refuses something: without its binding,
// or with one that only warns, a policy does nothing.
func (o *options) bound(which string, policies, there []string, bindings []admissionv1.ValidatingAdmissionPolicyBinding) bool {
	var idle []string
	for _, policy := range policies {
		if fault := refusesNothing(policy, bindings); fault != "" && slices.Contains(there, policy) {
			idle = append(idle, policy+" ("+fault+")")
		}
	}
	if len(idle) > 0 {
		o.amiss("of the policies "+which+" these do not refuse: "+strings.Join(idle, ", "), o.Suggest().Install()+" creates a missing binding; set validationActions: [Deny] on the others")
	}
	return len(idle) == 0
}

// refusesNothing says why a policy refuses nothing, or not all that it should; empty: each of its
// bindings refuses, and there are as many as are installed with it. Admins may name theirs as they like.
func refusesNothing(policy string, all []admissionv1.ValidatingAdmissionPolicyBinding) string {
	missing, bound := []string{policy}, 0
	if policy == annotations.RecordsPolicyName {
		missing = append(missing, policy+"-names") // what is created under a name of the agent's
	}
	wanted := len(missing)
	for _, b := range all {
		if b.Spec.PolicyName != policy {
			continue
		}
		if !slices.Contains(b.Spec.ValidationActions, admissionv1.Deny) {
			return fmt.Sprintf("binding %s has %v", b.Name, b.Spec.ValidationActions)
		}
		bound++
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == b.Name })
	}
	if bound >= wanted {
		return ""
	}
	return "no binding " + strings.Join(missing, " and none ")
}

// withPolicies leaves out the verbs that the admission policies ask for, unless they are there. Who
// may not see them is told of the verbs: to have one that nobody asks for does no harm.
func (o *options) withPolicies(ctx context.Context, k *factory.Cluster, needs []rights.Need) []rights.Need {
	isVerb := func(n rights.Need) bool { return n.APIVersion == rights.OfIntents }
	if !slices.ContainsFunc(needs, isVerb) {
		return needs
	}
	_, err := k.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Get(ctx, "maint-intents", metav1.GetOptions{})
	if apierrors.IsNotFound(err) { // or the API server has no such policies
		return slices.DeleteFunc(needs, isVerb)
	}
	return needs
}
