package factory

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// Change maps annotations to new values; nil removes the key.
type Change map[string]*string

// Value is the value of a Change.
func Value(s string) *string { return &s }

// Signed adds the author and reason of an intent. Removing the intent removes them, too.
func (c Change) Signed(intent, actor, reason string) Change {
	for key, text := range map[string]string{annotations.Actor(intent): actor, annotations.Reason(intent): reason} {
		c[key] = nil
		if c[intent] != nil && text != "" {
			c[key] = Value(text)
		}
	}
	return c
}

// Annotate writes an intent on a document with a JSON merge patch. decide sees the document and returns the
// change; after a conflict it is called again, so that no intent is lost. An empty change is not written.
func (k *Cluster) Annotate(ctx context.Context, cm *corev1.ConfigMap, dry *DryRun, decide func(*corev1.ConfigMap) (Change, error)) error {
	err := retry.RetryOnConflict(ConflictBackoff(), func() error {
		c, err := decide(cm)
		if err != nil {
			return err
		}
		if len(c) == 0 || dry.Client() {
			dry.WouldWrite(cm, c)
			return nil
		}
		patch, err := mergePatch(cm.ObjectMeta, c)
		if err != nil {
			return err
		}
		written, refusal := k.ConfigMaps(cm.Namespace).Patch(ctx, cm.Name, types.MergePatchType, patch, dry.Options())
		if refusal == nil {
			dry.Wrote(written)
			return nil
		}
		if !apierrors.IsConflict(refusal) {
			return k.WriteError(fmt.Sprintf("write to %s/%s", cm.Namespace, cm.Name), "patch", cm.Namespace, refusal)
		}
		now, err := k.ConfigMaps(cm.Namespace).Get(ctx, cm.Name, metav1.GetOptions{})
		if err != nil {
			return k.ReadError("read again what somebody changed meanwhile", cm.Namespace, err)
		}
		if now.UID != cm.UID {
			return fmt.Errorf("%s/%s was deleted and created again meanwhile: look at it and ask again", cm.Namespace, cm.Name)
		}
		cm = now
		return refusal
	})
	if apierrors.IsConflict(err) {
		return k.Explain(fmt.Sprintf("write to %s/%s", cm.Namespace, cm.Name), err)
	}
	return err
}

// ConflictBackoff is for documents that others write, too: ten attempts in about five seconds.
func ConflictBackoff() wait.Backoff {
	return wait.Backoff{Steps: 10, Duration: 5 * time.Millisecond, Factor: 2, Jitter: 0.5, Cap: 2 * time.Second}
}

// mergePatch changes annotations of exactly the object that was read: with another uid or version,
// the API server refuses it.
func mergePatch(m metav1.ObjectMeta, c Change) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": m.UID, "resourceVersion": m.ResourceVersion, "annotations": c,
	}})
}
