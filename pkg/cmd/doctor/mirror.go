package doctor

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/rights"
)

// mirror mentions the right to show on the target how the plan stands. It is no problem without: where
// the plan asks for it, by a prefix of its own, it is among the rights of the plan, and where it has
// labels, they need the same right.
func (o *options) mirror(ctx context.Context, k *factory.Cluster, spec plan.Spec, namespace, account string) {
	if spec.Target == nil || spec.ConnectorRef != nil || spec.MirrorPrefix != "" || len(spec.Triggers.Labels) > 0 {
		return
	}
	need := rights.Need{Namespace: namespace, APIVersion: spec.Target.APIVersion, Kind: spec.Target.Kind}
	at, _, err := servedKinds{}.placeOf(k, need)
	if err != nil {
		return // the rights of the target say so
	}
	user := "system:serviceaccount:" + namespace + ":" + account
	may, err := o.allowed(ctx, k, user, authorizationv1.ResourceAttributes{Namespace: at.namespace, Group: at.group, Resource: at.resource, Name: spec.Target.Name, Verb: "patch"})
	if err != nil || may {
		return
	}
	command := o.Suggest().GrantIn(at.namespace, namespace, account, "patch", at.kind(), spec.Target.Name)
	if at.namespace == "" {
		command = o.Suggest().GrantEverywhere(namespace, account, "patch", at.kind(), spec.Target.Name)
	}
	o.good("%s may not patch %s%s, so nothing there shows how the plan stands (condition Mirrored); runs do not need that. To grant it: %s", user, spec.Target, view.In(at.namespace), command)
}
