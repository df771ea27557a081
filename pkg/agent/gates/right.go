package gates

import (
	"context"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// right is whether an account may patch what it watches, as it was last asked.
type right struct {
	may   bool
	asked time.Time
}

// rightTTL is how long such an answer counts (a guess).
const rightTTL = time.Minute

// mayWrite says whether the account of a watch may patch all that it watches. It is asked where a
// policy of another account names the same objects: what an account may not write, its policies
// have no say in.
func (g *Controller) mayWrite(ctx context.Context, w *gateWatch) (bool, error) {
	if w.use.Refusal() != nil {
		return false, nil
	}
	now := g.Now()
	if last := w.lastRight(); !last.asked.IsZero() && now.Sub(last.asked) < rightTTL {
		return last.may, nil
	}
	c, err := g.Clients.Accounts.Clients(w.account(), "")
	if err != nil {
		return false, err
	}
	of := w.key.Resource
	may, err := executors.Allowed(ctx, c.Kube, authorizationv1.ResourceAttributes{Namespace: w.key.Namespace, Verb: "patch", Group: of.Group, Version: of.Version, Resource: of.Resource})
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		return false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.right = right{may: may, asked: now}
	return may, nil
}

func (w *gateWatch) lastRight() right {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.right
}

// mayNotWrite says whether the account is known to have no right to write what it watches.
func (w *gateWatch) mayNotWrite() bool {
	last := w.lastRight()
	return w.use.Refusal() != nil || !last.asked.IsZero() && !last.may
}
