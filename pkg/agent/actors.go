package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
)

// actorPolicySettles is how long the policy that refuses false actors has to stand
// unchanged before it counts: every API server takes it up for itself, mostly within two
// seconds (the minute is a guess).
const actorPolicySettles = time.Minute

// actorPolicy follows that policy and its binding.
type actorPolicy struct {
	policies, bindings cache.SharedIndexInformer
	certain            func(bool)                  // what is seen from now on was admitted by it, or not
	await              func(context.Context) error // returns when it has stood for long, and all from before is seen
	mu                 sync.Mutex
	standing           string // its versions; empty: it refuses nothing
	stop               context.CancelFunc
}

// followActorPolicy keeps said, until ctx ends, whether actors that are written are those
// who write. Where the agent may not look, or the API server has no such kind, they are
// not known to be.
func (a *Agent) followActorPolicy(ctx context.Context) {
	if a.options.WatchNamespace != "" {
		return // with Roles alone it may not look
	}
	p := &actorPolicy{certain: a.memory.documents.Actors.SetVerified, await: a.awaitActorPolicy, stop: func() {}}
	defer p.certain(false)
	defer a.actors.Store(nil)
	named := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", annotations.ActorPolicyName).String()}
	api := a.conn.Kube.AdmissionregistrationV1()
	changed := func() { p.look(ctx) }
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	}
	whole := func(o any) (any, error) { return o, nil }
	p.policies, _ = informer.New(informer.ForMany(&admissionv1.ValidatingAdmissionPolicy{}, api.ValidatingAdmissionPolicies(), named, func(error) {}), whole, handler)
	p.bindings, _ = informer.New(informer.ForMany(&admissionv1.ValidatingAdmissionPolicyBinding{}, api.ValidatingAdmissionPolicyBindings(), named, func(error) {}), whole, handler)
	a.actors.Store(p)
	var group sync.WaitGroup
	group.Go(func() { p.policies.RunWithContext(ctx) })
	group.Go(func() { p.bindings.RunWithContext(ctx) })
	group.Wait()
}

// actorsRefused says for the heartbeat whether false actors are refused; empty: not known yet.
func (a *Agent) actorsRefused() string {
	p := a.actors.Load()
	switch {
	case a.options.WatchNamespace != "":
		return annotations.ActorsUnverified
	case p == nil || !p.policies.HasSynced() || !p.bindings.HasSynced():
		return ""
	case p.version() == "":
		return annotations.ActorsUnverified
	}
	return annotations.ActorsVerified
}

// awaitActorPolicy waits until the policy counts everywhere, and the documents are known as
// they were then.
func (a *Agent) awaitActorPolicy(ctx context.Context) error {
	if !informer.Sleep(ctx, actorPolicySettles) {
		return ctx.Err()
	}
	version, err := a.caches.documents.From.Latest(ctx)
	if err != nil {
		return err
	}
	return a.caches.documents.Reach(ctx, version)
}

// look begins anew where the policy or its binding is another than before.
func (p *actorPolicy) look(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	is := p.version()
	if is == p.standing {
		return
	}
	p.standing = is
	p.stop()
	p.certain(false)
	if is == "" {
		return
	}
	settling, stop := context.WithCancel(ctx)
	p.stop = stop
	go p.confirm(settling)
}

// confirm says that actors are certain once the policy has stood for long.
func (p *actorPolicy) confirm(ctx context.Context) {
	for failed := 1; ; failed++ {
		err := p.await(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			break
		}
		informer.Sleep(ctx, informer.Backoff(failed, err))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() == nil { // it is stopped under the lock
		p.certain(true)
	}
}

// version tells the policy and its binding from what they were; empty where they do not
// refuse every false actor.
func (p *actorPolicy) version() string {
	policies, bindings := p.policies.GetStore().List(), p.bindings.GetStore().List()
	if len(policies) != 1 || len(bindings) != 1 {
		return ""
	}
	policy, binding := policies[0].(*admissionv1.ValidatingAdmissionPolicy), bindings[0].(*admissionv1.ValidatingAdmissionPolicyBinding)
	if !refusesActors(policy.Spec) || !bindsAll(binding.Spec) {
		return ""
	}
	return string(policy.UID) + policy.ResourceVersion + "/" + string(binding.UID) + binding.ResourceVersion
}

// refusesActors says whether a policy looks at every document, and no condition but ours
// keeps it from that. What an admin changed in it is not certain.
func refusesActors(p admissionv1.ValidatingAdmissionPolicySpec) bool {
	m := p.MatchConstraints
	return m != nil && (p.FailurePolicy == nil || *p.FailurePolicy == admissionv1.Fail) && p.ParamKind == nil &&
		selectsAll(m.NamespaceSelector) && selectsAll(m.ObjectSelector) && len(m.ExcludeResourceRules) == 0 &&
		slices.ContainsFunc(m.ResourceRules, rulesConfigMaps) &&
		len(p.MatchConditions) == 1 && p.MatchConditions[0].Name == annotations.ActorPolicyCondition && len(p.Validations) > 0
}

func rulesConfigMaps(r admissionv1.NamedRuleWithOperations) bool {
	return len(r.ResourceNames) == 0 && slices.Contains(r.APIGroups, "") && slices.Contains(r.Resources, "configmaps") &&
		slices.Contains(r.Operations, admissionv1.Create) && slices.Contains(r.Operations, admissionv1.Update)
}

func bindsAll(b admissionv1.ValidatingAdmissionPolicyBindingSpec) bool {
	return b.PolicyName == annotations.ActorPolicyName && b.ParamRef == nil && slices.Contains(b.ValidationActions, admissionv1.Deny) &&
		(b.MatchResources == nil || selectsAll(b.MatchResources.NamespaceSelector) && selectsAll(b.MatchResources.ObjectSelector) &&
			len(b.MatchResources.ResourceRules)+len(b.MatchResources.ExcludeResourceRules) == 0)
}

func selectsAll(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
}
