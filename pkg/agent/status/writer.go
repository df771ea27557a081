// Package status writes what the agent says on documents, and takes away what it was asked.
package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Delay is how long a plan whose run just began waits for its status: those that
// are still to begin come first, and a short run is told once instead of twice (a
// guess: nobody reads faster).
const Delay = 250 * time.Millisecond

// Writer writes status onto documents, and takes away what users asked for
// once it is handled.
type Writer struct {
	kube   kube.Interface
	events record.EventRecorder
}

// NewWriter writes as the agent.
func NewWriter(kube kube.Interface, events record.EventRecorder) *Writer {
	return &Writer{kube: kube, events: events}
}

// Written is a status as we last wrote it, until the watch shows it.
type Written struct {
	status  map[string]string
	Version uint64 // of the object that the write gave
}

// Write writes the status keys that differ from what stands there, and says
// whether any did.
func (w *Writer) Write(ctx context.Context, cm *corev1.ConfigMap, last *Written, status func(have map[string]string) map[string]string) (bool, error) {
	return w.write(ctx, cm, last, "", status)
}

// WriteOver is Write for a status that is believed when it is read back. Where somebody has written
// since, it changes nothing and fails with queue.ErrConflict: an agent that led before may have begun
// the write, which was long on its way.
func (w *Writer) WriteOver(ctx context.Context, cm *corev1.ConfigMap, last *Written, status func(have map[string]string) map[string]string) (bool, error) {
	return w.write(ctx, cm, last, newest(cm, last), status)
}

// write writes onto one version of an object, or, with an empty one, onto whatever stands there.
func (w *Writer) write(ctx context.Context, cm *corev1.ConfigMap, last *Written, version string, status func(have map[string]string) map[string]string) (bool, error) {
	have := Current(cm, last)
	want := status(have)
	if said, is := want[annotations.StatusMessage]; is {
		want[annotations.StatusMessage] = document.OneLine(said)
	}
	diff := map[string]any{}
	for k, v := range want {
		old, present := have[k]
		switch {
		case v == "" && present:
			diff[k] = nil
		case v != "" && (!present || old != v):
			diff[k] = v
		}
	}
	if len(diff) == 0 {
		return false, nil
	}
	patched, err := w.patch(ctx, cm, version, diff)
	if err != nil || patched == nil {
		return false, err
	}
	last.status, last.Version = all(patched.Annotations), informer.VersionOf(patched)
	return true, nil
}

// Current is the status as it stands, by the watch or by our last write,
// whichever is newer.
func Current(cm *corev1.ConfigMap, last *Written) map[string]string {
	if last.status != nil && last.Version > informer.VersionOf(cm) {
		return last.status
	}
	last.status = nil // the watch shows it
	return all(cm.Annotations)
}

// newest is the version of an object as the watch shows it, or as our last write left it.
func newest(cm *corev1.ConfigMap, last *Written) string {
	if Current(cm, last); last.status != nil {
		return strconv.FormatUint(last.Version, 10)
	}
	return cm.ResourceVersion
}

// patch merges annotations into a plan's ConfigMap, by its uid: a plan that
// was deleted, or made anew, is not touched.
func (w *Writer) patch(ctx context.Context, cm *corev1.ConfigMap, version string, diff map[string]any) (*corev1.ConfigMap, error) {
	metadata := map[string]any{"uid": cm.UID, "annotations": diff}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, err
	}
	got, err := w.kube.CoreV1().ConfigMaps(cm.Namespace).Patch(ctx, cm.Name, types.MergePatchType, patch, client.PatchOptions())
	if version != "" && apierrors.IsConflict(err) {
		return nil, queue.ErrConflict
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		w.warnOfFull(cm, err)
		return nil, nil // it is gone, another or full: the watch will say so
	}
	if err != nil {
		return nil, fmt.Errorf("write the status of %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	return got, nil
}

// warnOfFull says of a document that its annotations have no room for a status: somebody has filled
// them.
func (w *Writer) warnOfFull(cm *corev1.ConfigMap, refused error) {
	if cause, long := apierrors.StatusCause(refused, metav1.CauseTypeTooLong); long && cause.Field == "metadata.annotations" {
		w.events.Event(cm, corev1.EventTypeWarning, "StatusNotWritten", "the status of this document is not up to date, since its annotations are full: remove what fills them: "+refused.Error())
	}
}

// AnnouncedAhead is the instant of which sinks were told ahead, as Claim wrote it.
func AnnouncedAhead(cm *corev1.ConfigMap, last *Written) string {
	return Current(cm, last)[annotations.StatusToldAhead]
}

// Claim writes one status key before what it stands for is done, so that nobody does it
// twice: who looks at an older state than the newest gets ErrConflict, and is to look again.
func (w *Writer) Claim(ctx context.Context, cm *corev1.ConfigMap, last *Written, key, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": cm.UID, "resourceVersion": newest(cm, last), "annotations": map[string]any{key: value}}})
	if err != nil {
		return err
	}
	got, err := w.kube.CoreV1().ConfigMaps(cm.Namespace).Patch(ctx, cm.Name, types.MergePatchType, patch, client.PatchOptions())
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		return queue.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("write %s on %s/%s: %w", key, cm.Namespace, cm.Name, err)
	}
	last.status, last.Version = all(got.Annotations), informer.VersionOf(got)
	return nil
}

// RemoveHandled takes away what was said to a run. Where somebody wrote on the
// plan meanwhile, it is still taken away as long as it says the same; gone loses what
// was not there any more, or says something else. since is the version of the plan from
// which on none of it stands there; 0: the plan is gone.
func (w *Writer) RemoveHandled(ctx context.Context, cm *corev1.ConfigMap, gone map[string]string) (since uint64, err error) {
	for range 3 {
		got, err := w.removeIntents(ctx, cm, gone, "")
		if !errors.Is(err, queue.ErrConflict) {
			return versionOf(got), err
		}
		fresh, err := w.kube.CoreV1().ConfigMaps(cm.Namespace).Get(ctx, cm.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && fresh.UID != cm.UID {
			return 0, nil
		}
		if err != nil {
			return 0, fmt.Errorf("read plan %s/%s: %w", cm.Namespace, cm.Name, err)
		}
		cm = fresh
		maps.DeleteFunc(gone, func(intent, handled string) bool { return fresh.Annotations[intent] != handled })
		if len(gone) == 0 {
			return versionOf(fresh), nil
		}
	}
	return 0, queue.ErrConflict
}

func versionOf(cm *corev1.ConfigMap) uint64 {
	if cm == nil {
		return 0
	}
	return informer.VersionOf(cm)
}

// RemoveIntents takes handled intents off a plan, with those who stood behind
// them, as long as they still are what was handled.
func (w *Writer) RemoveIntents(ctx context.Context, cm *corev1.ConfigMap, gone map[string]string, skipLeft string) error {
	_, err := w.removeIntents(ctx, cm, gone, skipLeft)
	return err
}

// removeIntents gives the plan as it is then; nil: it is gone.
func (w *Writer) removeIntents(ctx context.Context, cm *corev1.ConfigMap, gone map[string]string, skipLeft string) (*corev1.ConfigMap, error) {
	diff := map[string]any{}
	for intent := range gone {
		diff[intent], diff[annotations.Actor(intent)], diff[annotations.Reason(intent)] = nil, nil, nil
		if intent == annotations.Skip && skipLeft != "" {
			diff = map[string]any{intent: skipLeft}
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": cm.UID, "resourceVersion": cm.ResourceVersion, "annotations": diff}})
	if err != nil {
		return nil, err
	}
	got, err := w.kube.CoreV1().ConfigMaps(cm.Namespace).Patch(ctx, cm.Name, types.MergePatchType, patch, client.PatchOptions())
	if apierrors.IsConflict(err) {
		return nil, queue.ErrConflict // somebody wrote meanwhile: look again
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return got, err
}
