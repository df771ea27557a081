package gates

import (
	"context"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// right is whether an account may patch, as it was last asked.
type right struct {
	may   bool
	asked time.Time
}

// rightTTL is how long such an answer counts (a guess).
const rightTTL = time.Minute

// mayWrite says whether the account of a watch may patch an object that it watches: all of them, or
// that one. It is asked where policies of several accounts name the object: what an account may not
// write, its policies have no say in.
func (g *Controller) mayWrite(ctx context.Context, w *gateWatch, name string) (bool, error) {
	if w.use.Refusal() != nil {
		return false, nil
	}
	for _, of := range []string{"", name} {
		if may, err := g.mayPatch(ctx, w, of); may || err != nil {
			return may, err
		}
	}
	return false, nil
}

func (g *Controller) mayPatch(ctx context.Context, w *gateWatch, name string) (bool, error) {
	now := g.Now()
	if last, asked := w.right(name); asked && now.Sub(last.asked) < rightTTL {
		return last.may, nil
	}
	c, err := g.Clients.Accounts.Clients(w.account(), "")
	if err != nil {
		return false, err
	}
	of := w.key.Resource
	may, err := executors.Allowed(ctx, c.Kube, authorizationv1.ResourceAttributes{Namespace: w.key.Namespace, Verb: "patch", Group: of.Group, Version: of.Version, Resource: of.Resource, Name: name})
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		return false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rights[name] = right{may: may, asked: now}
	return may, nil
}

func (w *gateWatch) right(name string) (last right, asked bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, asked = w.rights[name]
	return last, asked
}

// readOnly says that the account is known to be unable to write anything that it watches, as far as
// was asked.
func (w *gateWatch) readOnly() bool {
	if w.use.Refusal() != nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.rights {
		if r.may {
			return false
		}
	}
	return len(w.rights) > 0
}
