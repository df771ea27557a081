package store

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Mirror is what stands in the way of telling the users of a plan's target.
type Mirror struct {
	Digest  string    // of what was written last
	Problem string    // why it could not be written
	Again   time.Time // when to try again
	Seen    bool      // on the target, when that was looked at last; a plan of the same name may have left it
	// On, Prefix and Account are where it stands and who writes it.
	On      *plan.ObjectRef
	Prefix  string
	Account string
	Cluster *client.Cluster // where it stands; nil: on the plan's own
}
