package factory

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// actorsOf remembers whether the agent says that false actors are refused.
type actorsOf struct {
	agent string // the agent's namespace; empty: the default
	once  sync.Once
	sure  bool
}

// ReadRun reads a run from its object. Actors count as verified only if that can be believed. The
// agent leaves a live run that does not carry its signature alone, as one whose signature is false.
func (k *Cluster) ReadRun(ctx context.Context, cm *corev1.ConfigMap) (view.Run, error) {
	r, err := view.ReadRun(cm)
	if err == nil {
		k.doubt(ctx, r.Verified())
	} else if unsigned := new(annotations.SignatureError); errors.As(err, &unsigned) {
		err = exit.WithHelp(&exit.Error{Code: exit.CodeNotNow, Err: err}, "the agent leaves it alone: if it is the agent's own, from a backup say, sign it with "+k.commands().In(cm.Namespace).Adopt("run/"+cm.Name)+", which needs the right to read the agent's key")
	}
	return r, err
}

// doubt marks the actors of a record as unverified unless the agent says that false ones are
// refused: otherwise whoever may write ConfigMaps of the namespace may have written them. The agent
// is asked only where a record claims a verified actor.
func (k *Cluster) doubt(ctx context.Context, verified []*bool) {
	if slices.ContainsFunc(verified, func(v *bool) bool { return *v }) && !k.actorsVerified(ctx) {
		view.Doubt(verified)
	}
}

// actorsVerified reads that from the heartbeat in the namespace where an admin installed the agent,
// and nowhere else: anybody may write a heartbeat in a namespace of their own.
func (k *Cluster) actorsVerified(ctx context.Context) bool {
	known := k.actors
	if known == nil { // clients were given
		known = &actorsOf{}
	}
	known.once.Do(func() {
		beat, err := k.ConfigMaps(cmp.Or(known.agent, annotations.DefaultNamespace)).Get(ctx, annotations.HeartbeatName, metav1.GetOptions{})
		known.sure = err == nil && beat.Data[annotations.HeartbeatActors] == annotations.ActorsVerified
	})
	return known.sure
}
