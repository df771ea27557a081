package gates

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

// policy is what is known of a policy's gates: in memory, or as an agent before
// us wrote it down. nil is nothing.
func (g *Controller) policy(k types.NamespacedName) (*gatePolicy, error) {
	g.mu.Lock()
	p := g.policies[k]
	g.mu.Unlock()
	cm := g.Stores.Documents.Any(types.NamespacedName{Namespace: k.Namespace, Name: annotations.GateName(k.Name)})
	if p != nil || cm == nil {
		return p, nil
	}
	if err := g.Stores.Keys.CheckKind(cm, annotations.KindGate); err != nil {
		return nil, fmt.Errorf("gates of policy %s: %w", k, err)
	}
	record, err := annotations.ReadGates(cm)
	if err != nil {
		return nil, fmt.Errorf("gates of policy %s: %w", k, err)
	}
	return &gatePolicy{record: record}, nil
}

// overwritten says whether somebody put another record in the place of one that is held
// in memory.
func (g *Controller) overwritten(k types.NamespacedName) bool {
	g.mu.Lock()
	held := g.policies[k] != nil
	g.mu.Unlock()
	cm := g.Stores.Documents.Any(types.NamespacedName{Namespace: k.Namespace, Name: annotations.GateName(k.Name)})
	return held && cm != nil && g.Stores.Keys.CheckKind(cm, annotations.KindGate) != nil
}

// refusal is why a policy's record does not count: nothing is closed or opened until somebody
// has looked at it, or a version is back that can read it.
type refusal struct {
	event, reason string // of the Event, and of the condition
	why, help     string
}

func (r refusal) message() string { return r.why + ": " + r.help }

// refusalOf is why a record does not count, where that is what an error says.
func refusalOf(k types.NamespacedName, err error) (refusal, bool) {
	if unsigned := new(annotations.SignatureError); errors.As(err, &unsigned) {
		help := fmt.Sprintf("nothing of policy %s is closed or opened. If it is the agent's own, sign it with %s, else delete it", k.Name, intent.Command(unsigned.Namespace, "adopt", unsigned.Name))
		return refusal{"GateRecordUnsigned", "RecordUnsigned", unsigned.Error(), help}, true
	}
	if errors.Is(err, annotations.ErrNewer) {
		return refusal{"GateRecordNewer", "RecordNewer", err.Error(), fmt.Sprintf("nothing of policy %s is closed or opened until a version runs that can read it", k.Name)}, true
	}
	return refusal{}, false
}

// refuse says once that a policy's record does not count.
func (g *Controller) refuse(k types.NamespacedName, why refusal) {
	g.mu.Lock()
	known := g.refused[k] == why
	g.refused[k] = why
	g.mu.Unlock()
	if known {
		return
	}
	g.Log.Warn("the record of a policy's gates does not count", "policy", k.String(), "why", why.why)
	for _, name := range []string{k.Name, annotations.GateName(k.Name)} {
		if about := g.Stores.Documents.Any(types.NamespacedName{Namespace: k.Namespace, Name: name}); about != nil {
			g.Events.Event(about, corev1.EventTypeWarning, why.event, document.Cut(why.message(), document.MaxMessage))
		}
	}
}

// counts forgets that a policy's record did not count.
func (g *Controller) counts(k types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.refused, k)
}

// put writes down what a policy names. Nobody else writes the record, so that what stands
// in its place is what was read, or does not count.
func (g *Controller) put(ctx context.Context, k types.NamespacedName, now policy.GateRecord) error {
	if g.DryRun {
		return nil
	}
	maps := g.Clients.Kube.CoreV1().ConfigMaps(k.Namespace)
	want, err := annotations.GateObject(k.Namespace, now)
	if err != nil {
		return err
	}
	if err := g.Stores.Keys.Sign(want); err != nil {
		return err
	}
	have, err := maps.Get(ctx, want.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && len(now.Entries) == 0:
		return nil
	case apierrors.IsNotFound(err):
		_, err = maps.Create(ctx, want, client.CreateOptions())
	case err != nil:
	default:
		err = g.replace(ctx, have, want, len(now.Entries) == 0)
	}
	if err != nil {
		return fmt.Errorf("write down the gates of policy %s: %w", k, err)
	}
	return nil
}

func (g *Controller) replace(ctx context.Context, have, want *corev1.ConfigMap, remove bool) error {
	if _, err := annotations.ReadGates(have); err != nil && g.Stores.Keys.CheckKind(have, annotations.KindGate) == nil {
		return err
	}
	maps := g.Clients.Kube.CoreV1().ConfigMaps(have.Namespace)
	if remove {
		err := maps.Delete(ctx, have.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &have.UID}})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	want.UID, want.ResourceVersion = have.UID, have.ResourceVersion
	_, err := maps.Update(ctx, want, client.UpdateOptions())
	return err
}

// RecordLost forgets what a policy names whose record somebody removed.
func (g *Controller) RecordLost(k types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.policies[k]
	if p == nil {
		return
	}
	for i, w := range p.watches {
		if w == nil {
			continue
		}
		if n, _ := w.holding(k, func(*gateObject) bool { return false }); n > 0 {
			g.Log.Error("the record of a policy's gates was removed while objects were held; they stay closed unless the policy is there", "policy", k.String(), "gate", p.record.Entries[i].String(), "objects", n)
		}
		g.leave(w, k)
	}
	delete(g.policies, k)
}
