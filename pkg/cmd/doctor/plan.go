package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/reference"
	"github.com/kubectl-maint/kubectl-maint/pkg/rights"
)

// plan tries what one plan needs.
func (o *options) plan(ctx context.Context, k *factory.Cluster, agent factory.AgentState, cm *corev1.ConfigMap, config *agentconfig.AgentConfig) {
	o.check = "plan"
	spec, faults := annotations.Plan(cm)
	if len(faults) > 0 {
		o.amiss("the plan is invalid: "+faults[0].String()+view.AndMore(len(faults)-1), "fix it; "+o.Suggest().Lint()+" tells all faults")
		return
	}
	unready := o.standing(agent, cm)
	targetGone := o.target(ctx, k, cm, spec)
	account := plan.Account(spec)
	accountThere, told := o.account(ctx, k, agent, cm, account)
	if targetGone {
		told = append(told, spec.Target.String()+" does not exist")
	}
	o.policies(ctx, k, agent, cm.Namespace, spec.Policies)
	tree := plan.Tree{Spec: spec, Templates: o.templates(ctx, k, spec, cm.Namespace, agent.Namespace)}
	used := o.connectors(ctx, k, tree, cm.Namespace)
	o.reachedAll(ctx, k, agent, cm.Namespace, account, used)
	if accountThere { // else all of its rights are missing with it
		told = append(told, o.planRights(ctx, k, cm, tree, account, used)...)
	}
	o.sinks(ctx, k, tree, cm.Namespace, agent.Namespace, config)
	o.certificate(ctx, k, tree, agent.Namespace, config)
	o.hosts(ctx, k, tree, outboundOf(config, agent.Namespace))
	o.images(ctx, k, tree)
	o.unready(unready, told)
}

// planRights checks the rights of what a plan does. told are words by which the agent says what of
// them is missing on the target.
func (o *options) planRights(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap, tree plan.Tree, account string, used map[string]connector.Connector) (told []string) {
	o.check = "rights"
	needs, open := rights.Of(tree, cm.Namespace, used)
	needs = o.withPolicies(ctx, k, needs)
	user := "system:serviceaccount:" + cm.Namespace + ":" + account
	lacking, err := o.rights(ctx, k, cm.Name, user, "steps", needs)
	if err != nil {
		o.unknown("the rights of "+account, err)
	}
	o.open(o.owners(ctx, k, tree, cm.Namespace, account, open))
	if err == nil && len(lacking) == 0 {
		o.mirror(ctx, k, tree.Spec, cm.Namespace, account)
	}
	if slices.Contains(lacking, rights.ForTarget) || slices.Contains(lacking, rights.ForLabels) {
		told = []string{"the ServiceAccount " + account + " may not ", fmt.Sprintf("User %q cannot ", user)}
	}
	return told
}

// policies looks for the policies that have to permit a plan of a namespace: the agent reports only
// the first thing that is missing.
func (o *options) policies(ctx context.Context, k *factory.Cluster, agent factory.AgentState, own string, refs []policy.PolicyRef) {
	o.check = "policies"
	if len(refs) == 0 {
		return
	}
	all := source.ReadResolver(ctx, k, agent.Namespace, own)
	for _, ref := range refs {
		namespace := cmp.Or(ref.Namespace, own)
		verdict := all.Unpaused(namespace, ref.Name).Verdict(o.Now())
		if namespace != own && namespace != agent.Namespace { // which the gate refuses
			verdict = all.Gate(policy.Query{Namespace: own, Policies: []policy.PolicyRef{ref}}).Verdict(o.Now())
		}
		switch {
		case verdict.Ready:
			o.good("policy %s is there", ref.Name+view.In(namespace))
		case verdict.Hidden():
			o.unknown("policy "+ref.Name+view.In(namespace), errors.New(verdict.Reason))
		default:
			o.amiss(instant.InText(verdict.Reason, o.Zone), "create or fix it, or change spec.policies")
		}
	}
}

// target looks for the object that a plan is about, and says whether it is missing: the agent looks
// at it again only when a run is to begin.
func (o *options) target(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap, spec plan.Spec) (gone bool) {
	o.check = "target"
	if spec.Target == nil || spec.ConnectorRef != nil { // of one in another cluster the agent says
		return false
	}
	target, err := k.Target(ctx, cm.Namespace, *spec.Target)
	switch {
	case err != nil:
		o.unknown("the target "+spec.Target.String(), err)
	case target != nil:
		o.good("the target %s is there", spec.Target)
	default:
		o.amiss("the target "+spec.Target.String()+" does not exist", "create it, or change spec.target")
		return true
	}
	return false
}

// templates are those that the plan uses, of its namespace and the agent's. A missing one makes the
// plan invalid, which the agent has reported.
func (o *options) templates(ctx context.Context, k *factory.Cluster, spec plan.Spec, namespaces ...string) map[string]plan.TemplateSpec {
	used, _ := reference.UseTemplates(spec, func(name string) *plan.Template {
		for _, namespace := range namespaces {
			cm, err := k.ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
			if err == nil && cm.Labels[annotations.LabelKind] == annotations.KindStepTemplate {
				t := annotations.StepTemplate(cm)
				return &t
			}
		}
		return nil
	})
	return used
}

// connectors are those that the plan names, as far as they can be read. A fault of them makes the
// plan invalid, which the agent has reported.
func (o *options) connectors(ctx context.Context, k *factory.Cluster, tree plan.Tree, namespace string) map[string]connector.Connector {
	used, _ := reference.UseConnectors(tree, o.findConnector(ctx, k, namespace))
	return used
}

// findConnector looks connectors up in a namespace.
func (o *options) findConnector(ctx context.Context, k *factory.Cluster, namespace string) reference.FindConnector {
	return func(ref connector.Reference) (connector.Connector, string) {
		cm, err := k.ConfigMaps(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		switch {
		case err != nil && !apierrors.IsNotFound(err):
			return connector.Connector{}, k.Explain("read the connector "+ref.Name, err).Error()
		case err != nil || cm.Labels[annotations.LabelKind] != annotations.KindConnector:
			return connector.Connector{}, reference.NoConnector(ref)
		}
		one, faults := annotations.Connector(cm)
		if len(faults) > 0 {
			return one, fmt.Sprintf("the connector %s is not valid: %s", ref.Name, faults[0])
		}
		return one, ""
	}
}

// open are needs that cannot be checked in this cluster.
func (o *options) open(needs []string) {
	for _, text := range needs {
		o.found(finding{Result: "unknown", What: text}, "unknown  %s\n")
	}
}

// rights asks the API server whether the account has the rights of everything that is done with it;
// whose says what needs a right, and lacking for what one is missing.
func (o *options) rights(ctx context.Context, k *factory.Cluster, plan, user, whose string, needs []rights.Need) (lacking []string, err error) {
	o.check = "rights"
	type asked struct {
		place
		name, verb string
	}
	seen, kinds := map[asked]bool{}, servedKinds{}
	var missing []string
	var unusual grants
	for _, n := range needs {
		at, usual, err := kinds.placeOf(k, n)
		if err != nil { // one API group that does not answer hides nothing of the others
			o.unknown("how "+n.Kind+" of "+n.APIVersion+" is served, which "+n.For+" needs", err)
		}
		for _, verb := range n.Verbs {
			one := asked{at, n.Name, verb}
			if seen[one] {
				continue
			}
			seen[one] = true
			may, err := o.allowed(ctx, k, user, authorizationv1.ResourceAttributes{Namespace: at.namespace, Group: at.group, Resource: at.resource, Name: n.Name, Verb: verb})
			if err != nil {
				return nil, err
			}
			if may {
				continue
			}
			lacking = append(lacking, n.For)
			if usual {
				missing = append(missing, fmt.Sprintf("%s %s%s%s (for %s)", verb, at.kind(), view.Prefix(" ", n.Name), view.In(at.namespace), n.For))
			} else {
				unusual = unusual.with(at, n.Name, verb, n.For)
			}
		}
	}
	if len(missing) > 0 {
		o.amiss(user+" may not: "+strings.Join(missing, "; "), "grant it: "+o.Suggest().Grant(plan))
	}
	o.unusual(user, unusual)
	switch {
	case len(lacking) > 0:
	case len(seen) > 0:
		o.good("%s has the %s that the %s need", user, view.Counted(len(seen), "right"), whose)
	default:
		o.good("the %s need no rights in this cluster", whose)
	}
	return lacking, nil
}

// allowed asks while impersonating the account, or with a SubjectAccessReview where that is
// forbidden: many owners of a namespace may impersonate its accounts, and admins may ask about
// anybody.
func (o *options) allowed(ctx context.Context, k *factory.Cluster, user string, a authorizationv1.ResourceAttributes) (bool, error) {
	a.Resource, a.Subresource, _ = strings.Cut(a.Resource, "/")
	if as, err := o.speaksAs(k, user); err != nil {
		return false, err
	} else if as != nil {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}
		review, err := as.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil {
			return review.Status.Allowed, nil
		}
		if !apierrors.IsForbidden(err) {
			return false, k.Explain("ask what it may", err)
		}
		o.as[user] = nil // it will be forbidden for the next right, too
	}
	return reviewed(ctx, k, user, a)
}

// reviewed asks with a SubjectAccessReview what an account may do.
func reviewed(ctx context.Context, k *factory.Cluster, user string, a authorizationv1.ResourceAttributes) (bool, error) {
	namespace, _ := accountOf(user)
	review, err := k.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}, ResourceAttributes: &a,
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, k.Explain("ask what it may", err)
	}
	return review.Status.Allowed, nil
}

// speaksAs is a client that impersonates an account; nil: that is impossible.
func (o *options) speaksAs(k *factory.Cluster, user string) (*factory.Cluster, error) {
	if as, known := o.as[user]; known {
		return as, nil
	}
	as, err := o.ConnectAs(k, user)
	if err == nil {
		o.as[user] = as
	}
	return as, err
}

// sinks checks whether the sinks that the plan names are configured and accept its messages.
func (o *options) sinks(ctx context.Context, k *factory.Cluster, t plan.Tree, namespace, agent string, config *agentconfig.AgentConfig) {
	o.check = "sinks"
	if config == nil {
		return
	}
	for _, name := range sinksOf(t) {
		sink, err := config.Notifications.Sink(namespace, name)
		if name == "" {
			sink, err = config.Notifications.Default(namespace)
		}
		if err != nil {
			o.amiss("the sink "+err.Error(), "add it to the agent's configuration (docs/operations.md, Notifications), or name another")
			continue
		}
		o.good("the sink %s is configured", sink.Name)
		o.secret(ctx, k, agent, sink.URLSecretRef.Name, "the sink "+sink.Name, sink.URLSecretRef.Key)
	}
}

// sinksOf are the sinks that the steps of a plan name, each once; empty is that of steps that name
// none.
func sinksOf(t plan.Tree) (names []string) {
	t.Walk(func(s plan.Step) {
		if s.Type != "notification" {
			return
		}
		list, _ := s.Properties["sinks"].([]any)
		if s.Properties["sinks"] == nil {
			list = []any{""}
		}
		for _, one := range list {
			if name, ok := one.(string); ok && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	})
	return names
}

// certificate checks whether the agent has a client certificate for installed functions, where the
// plan calls one with it.
func (o *options) certificate(ctx context.Context, k *factory.Cluster, t plan.Tree, agent string, config *agentconfig.AgentConfig) {
	o.check = "functions"
	type called struct {
		FunctionRef *plan.FunctionRef `json:"functionRef"`
		TLS         plan.FunctionTLS  `json:"tls"`
	}
	uses := usedBy{}
	note := func(step string, f called) {
		if f.FunctionRef != nil && f.TLS.SecretName == "" && !f.TLS.Insecure {
			uses.add(plan.TypeFunction, step)
		}
	}
	t.Walk(func(s plan.Step) {
		var one called
		var all struct{ Functions []called }
		text, err := json.Marshal(s.Properties)
		if err != nil || s.Type != plan.TypeFunction && s.Type != plan.TypePipeline {
			return
		}
		_, _ = json.Unmarshal(text, &one), json.Unmarshal(text, &all) // the validator has refused what does not fit
		for _, f := range append(all.Functions, one) {
			note(s.Name, f)
		}
	})
	if len(uses) == 0 || config == nil {
		return
	}
	ref := config.Functions.TLSSecretRef
	if ref == nil {
		o.amiss("the agent has no client certificate for the installed functions of "+uses.of("step", plan.TypeFunction), "name its Secret in spec.functions.tlsSecretRef of the agent's configuration (docs/operations.md, Functions), or one of the plan's namespace in tls of the step")
		return
	}
	o.secret(ctx, k, agent, ref.Name, "the certificate for the installed functions of "+uses.of("step", plan.TypeFunction), corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
}
