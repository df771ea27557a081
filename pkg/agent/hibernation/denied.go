package hibernation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// denied says which target the agent's configuration does not allow in a namespace; empty: none.
func (c *Controller) denied(namespace string, targets ...hibernate.Target) string {
	types := c.Scope.Denied(namespace)
	i := slices.IndexFunc(targets, func(t hibernate.Target) bool { return slices.Contains(types, t.Type) })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("the agent's configuration does not allow targets of type %s in namespace %s", targets[i].Type, namespace)
}

// deny keeps a plan awake that has such a target. What sleeps since before it was denied wakes.
func (c *Controller) deny(k types.NamespacedName, v *view) {
	if denied := c.denied(k.Namespace, v.facts.Spec.Targets...); denied != "" {
		v.facts.Forbidden = denied
		v.again = queue.Soonest(v.again, c.Clock.Now().Add(fullPause)) // the configuration may change
	}
}
