package hibernation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
)

// targetName is the target of restore data that does not count: by its name, as nothing in
// it is believed. The status names targets that the document does not, or cannot.
func targetName(k types.NamespacedName, spec hibernate.Spec, listed []hibernate.TargetStatus, s *stored) string {
	var names []string
	for _, t := range spec.Targets {
		names = append(names, t.Name)
	}
	for _, t := range listed {
		names = append(names, t.Target)
	}
	for _, name := range names {
		if annotations.RestoreName(k.Name, name) == s.object.Name {
			return name
		}
	}
	return s.object.Name
}

// whyBroken says why restore data does not count, and what helps.
func whyBroken(k types.NamespacedName, s *stored) string {
	if unsigned := new(annotations.SignatureError); errors.As(s.broken, &unsigned) {
		return fmt.Sprintf("%s; if it is the agent's own, sign it with %s", s.broken, intent.Command(k.Namespace, "adopt", s.object.Name))
	}
	if earlier := new(earlierError); errors.As(s.broken, &earlier) {
		return fmt.Sprintf("%s; the agent does not use it: put back what was there, or delete it; if there is nothing else, let it count with %s", s.broken, intent.Command(k.Namespace, "adopt", s.object.Name))
	}
	return s.broken.Error()
}

// renew writes restore data anew that somebody deletes while it is needed, or makes immutable:
// neither could be written on. Its finalizer keeps it until it is copied; the copy goes once
// what was deleted is there again. It is made whole again wherever an earlier agent died.
func (c *Controller) renew(ctx context.Context, k types.NamespacedName, plan *corev1.ConfigMap) error {
	for _, s := range c.records.of(k) {
		served := s.record.Operation == hibernate.Wake && s.record.State == hibernate.Awake
		if s.broken != nil || s.object.DeletionTimestamp == nil && !s.immutable() || served {
			continue
		}
		if err := c.records.copy(ctx, s); err != nil {
			return err
		}
		if err := c.records.close(ctx, s); err != nil {
			return err
		}
		switch {
		case plan == nil:
		case s.object.DeletionTimestamp == nil:
			c.Telemetry.Events.Eventf(plan, corev1.EventTypeWarning, "RestoreDataImmutable", "Somebody made ConfigMap %s immutable, the restore data of target %s: it is deleted and written anew", s.object.Name, s.record.Target)
		default:
			c.Telemetry.Events.Eventf(plan, corev1.EventTypeWarning, "RestoreDataDeleted", "Somebody deleted ConfigMap %s, the restore data of target %s, while it is needed: it is written anew", s.object.Name, s.record.Target)
		}
	}
	for _, s := range c.records.copies(k) {
		if s.broken != nil {
			continue
		}
		have := c.records.find(k.Namespace, s.record)
		if have == nil {
			if _, err := c.records.write(ctx, k.Namespace, nil, s.record); err != nil {
				return err
			}
		}
		if have == nil || have.broken == nil && have.object.DeletionTimestamp == nil && !have.immutable() {
			if err := c.records.close(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// confirmMissing looks whether restore data is gone, before that is said: what is seen of
// the plan and of its restore data may be of different times. queue.ErrConflict says that
// it is there, or that the plan does not say any more that its targets sleep.
func (c *Controller) confirmMissing(ctx context.Context, k types.NamespacedName, plan *corev1.ConfigMap, missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	for _, target := range missing {
		err := c.records.reread(ctx, types.NamespacedName{Namespace: k.Namespace, Name: annotations.RestoreName(k.Name, target)}, nil)
		if !errors.Is(err, queue.ErrConflict) {
			return err
		}
		if s := c.records.find(k.Namespace, hibernate.Record{Plan: k.Name, Target: target}); s != nil && !s.relabelled(k) {
			return queue.ErrConflict
		}
	}
	live, err := c.Clients.Kube.CoreV1().ConfigMaps(k.Namespace).Get(ctx, k.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && live.UID != plan.UID:
		return queue.ErrConflict
	case err != nil:
		return fmt.Errorf("read plan %s: %w", k, err)
	}
	for _, t := range annotations.ReadTargets(live.Annotations[annotations.StatusTargets]) {
		if t.MaySleep() && slices.Contains(missing, t.Target) {
			return nil
		}
	}
	return queue.ErrConflict
}

// relabelled says whether somebody took the labels from restore data by which it is found.
func (s *stored) relabelled(k types.NamespacedName) bool {
	return s.broken != nil && (s.object.Labels[annotations.LabelPlan] != k.Name || s.object.Labels[annotations.LabelKind] != annotations.KindRestore)
}

// blockRelabelled tells restore data that is there without its labels from what is gone.
func (c *Controller) blockRelabelled(k types.NamespacedName, v *view) {
	v.facts.Missing = slices.DeleteFunc(v.facts.Missing, func(target string) bool {
		s := c.records.find(k.Namespace, hibernate.Record{Plan: k.Name, Target: target})
		if s == nil {
			return false
		}
		v.facts.Blocked[target] = fmt.Sprintf("ConfigMap %s, the restore data of target %s, needs its labels %s=%s and %s=%s again: %s", s.object.Name, target, annotations.LabelKind, annotations.KindRestore, annotations.LabelPlan, k.Name, whyBroken(k, s))
		return true
	})
}

// rescue copies restore data out of a namespace that is being deleted, where nothing can
// be woken any more, and lets go of it. What does not count is copied, too: a person may
// know better.
func (c *Controller) rescue(ctx context.Context, k types.NamespacedName, stored []*stored) error {
	for _, s := range stored {
		if s.broken != nil || s.record.Sleeping() > 0 {
			if err := c.copyOut(ctx, k, s); err != nil {
				return err
			}
		}
		if err := c.records.close(ctx, s); err != nil && !errors.Is(err, queue.ErrConflict) {
			return err
		}
	}
	return nil
}

// mostUncounted is how many ConfigMaps that do not count are copied to the agent's namespace
// at most, of all namespaces (a guess: each may have 1 MiB, and anybody may write one).
const mostUncounted = 64

// copyOut copies restore data into the agent's own namespace. The copy belongs to no plan:
// one of the same name may be there.
func (c *Controller) copyOut(ctx context.Context, k types.NamespacedName, s *stored) error {
	copied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Scope.Namespace, Labels: map[string]string{annotations.LabelKind: annotations.KindRestore, annotations.LabelPlan: s.object.Labels[annotations.LabelPlan]}}, Data: s.object.Data}
	delete(copied.Labels, annotations.LabelPlan)
	about := fmt.Sprintf("target %s of plan %s", s.record.Target, k.Name)
	namespace := &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: k.Namespace}
	if s.broken == nil {
		copied.Name = annotations.RescuedName(k.Namespace, s.record)
		if err := c.Stores.Keys.Sign(copied); err != nil {
			return err
		}
	} else if c.records.uncounted(c.Scope.Namespace) >= mostUncounted {
		c.Telemetry.Events.Eventf(namespace, corev1.EventTypeWarning, "RestoreDataDropped", "ConfigMap %s is not valid restore data and is deleted with its namespace, without a copy: namespace %[3]s holds %[2]d such copies already; look at them, and delete those that nobody needs", s.object.Name, mostUncounted, c.Scope.Namespace)
		return nil
	} else { // of what is not signed nothing is held in memory
		live, err := c.Clients.Kube.CoreV1().ConfigMaps(k.Namespace).Get(ctx, s.object.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read restore data %s/%s: %w", k.Namespace, s.object.Name, err)
		}
		copied.Name, copied.Data = annotations.RescuedName(k.Namespace, hibernate.Record{Plan: k.Name, Target: live.Name, PlanUID: string(live.UID)}), live.Data
		about = fmt.Sprintf("what %s/%s speaks of, which does not count,", k.Namespace, live.Name)
	}
	there, err := c.Clients.Kube.CoreV1().ConfigMaps(c.Scope.Namespace).Create(ctx, copied, client.CreateOptions())
	switch {
	case err == nil:
		c.Stores.Keys.Empty(there) // as the watch shows it
		c.records.observe(there)
	case !isThere(err):
		return fmt.Errorf("copy restore data %s/%s: %w", k.Namespace, s.object.Name, err)
	}
	c.Telemetry.Events.Eventf(namespace, corev1.EventTypeWarning, "RestoreDataCopied", "The namespace is being deleted while %s sleeps: nothing of it is woken; its restore data is copied to ConfigMap %s/%s", about, c.Scope.Namespace, copied.Name)
	return nil
}
