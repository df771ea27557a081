package doctor

import (
	"cmp"
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/rights"
)

// policy tries what one policy needs: what it names, and what its gates do.
func (o *options) policy(ctx context.Context, k *factory.Cluster, agent factory.AgentState, cm *corev1.ConfigMap) {
	o.check = "policy"
	state := annotations.Policy(cm)
	if len(state.Faults) > 0 {
		o.amiss("the policy is invalid: "+state.Faults[0].String()+view.AndMore(len(state.Faults)-1), "fix it; "+o.Suggest().Lint()+" tells all faults")
		return
	}
	s := source.PolicySubject(ctx, o.Factory, k, agent, cm)
	switch v := s.Verdict(o.Now()); {
	case v.Ready:
		o.good("the policy is valid, and all that it names is there")
	case v.Hidden():
		o.unknown("whether the policy is ready", errors.New(v.Reason))
	default:
		o.amiss("the policy is not ready: "+instant.InText(v.Reason, s.Zone), "fix or create what it names; "+o.Suggest().Why("policy/"+cm.Name)+" says what follows")
	}
	if len(state.Spec.Gates) == 0 {
		return
	}
	account := cmp.Or(state.Spec.ServiceAccountName, policy.DefaultServiceAccount)
	o.gates(cm, s.Zone)
	o.gateAccount(ctx, k, agent, cm, state.Spec, account)
}

// gates is how the agent says that those of a policy do.
func (o *options) gates(cm *corev1.ConfigMap, zone string) {
	o.check = "gates"
	held, wrong := view.GatesOf(cm)
	switch {
	case wrong != "":
		o.amiss("its gates do not hold, so objects that they should close may be open: "+instant.InText(wrong, zone), "it goes on by itself once that is mended")
	case held != "":
		o.good("its gates hold: %s", held)
	default:
		o.amiss("the agent has said nothing of its gates", "it does within seconds where it runs and watches this namespace")
	}
}

// gateAccount is the account by which a policy's gates are closed and opened, and its rights.
func (o *options) gateAccount(ctx context.Context, k *factory.Cluster, agent factory.AgentState, cm *corev1.ConfigMap, spec policy.PolicySpec, name string) {
	if there, _ := o.account(ctx, k, agent, cm, name); !there {
		return
	}
	needs, open := rights.OfGates(spec, cm.Namespace)
	if _, err := o.rights(ctx, k, cm.Name, "system:serviceaccount:"+cm.Namespace+":"+name, "gates", needs); err != nil {
		o.unknown("the rights of "+name, err)
	}
	o.open(open)
}
