package factory

import (
	"cmp"
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// actorsOf knows whether the agent says that false actors are refused, once somebody asked.
type actorsOf struct {
	agent string // its namespace; empty: the usual one
	once  sync.Once
	sure  bool
}

// ReadRun reads a run from its object, and says of whom it names that they are known to have
// done what is told of them where that can be believed.
func (k *Cluster) ReadRun(ctx context.Context, cm *corev1.ConfigMap) (view.Run, error) {
	r, err := view.ReadRun(cm)
	if err == nil {
		k.doubt(ctx, r.Verified())
	}
	return r, err
}

// doubt takes away what a record says of actors unless the agent says that false ones are
// refused: whoever may write ConfigMaps in a namespace could have written it else. The agent
// is asked where there is anything to doubt.
func (k *Cluster) doubt(ctx context.Context, verified []*bool) {
	if slices.ContainsFunc(verified, func(v *bool) bool { return *v }) && !k.actorsVerified(ctx) {
		view.Doubt(verified)
	}
}

// actorsVerified reads it from the heartbeat where an admin put the agent, and nowhere else:
// anybody may write one in a namespace of their own.
func (k *Cluster) actorsVerified(ctx context.Context) bool {
	known := k.actors
	if known == nil { // clients that were handed in
		known = &actorsOf{}
	}
	known.once.Do(func() {
		beat, err := k.ConfigMaps(cmp.Or(known.agent, annotations.DefaultNamespace)).Get(ctx, annotations.HeartbeatName, metav1.GetOptions{})
		known.sure = err == nil && beat.Data[annotations.HeartbeatActors] == annotations.ActorsVerified
	})
	return known.sure
}
