// Package surge writes the replicas of Deployments while one of their pods is replaced, and writes
// them back. Records on Deployments are input: whoever may write a Deployment may write its record.
package surge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Guesses.
const (
	undoFor = 10 * time.Second // for the two requests that remove a replica
	atOnce  = 8                // Deployments whose replicas are removed at the same time
)

// Replicas are those that a Deployment asks for.
func Replicas(dep *appsv1.Deployment) int32 {
	if dep.Spec.Replicas == nil {
		return 1
	}
	return *dep.Spec.Replicas
}

// ownerOf is a controller that would set the replicas of a Deployment back, and what would help; empty:
// there is none. It needs list on horizontalpodautoscalers.
func ownerOf(ctx context.Context, clients kube.Interface, manager string, dep *appsv1.Deployment) (owner, remedy string, err error) {
	err = kube.EachOf(ctx, clients.AutoscalingV2().HorizontalPodAutoscalers(dep.Namespace).List, "", func(h *autoscalingv2.HorizontalPodAutoscaler) error {
		if ref := h.Spec.ScaleTargetRef; ref.Kind == "Deployment" && ref.Name == dep.Name {
			owner = "HorizontalPodAutoscaler/" + h.Name
		}
		return nil
	})
	if err != nil || owner != "" {
		return owner, "raise its minReplicas for the drain", err
	}
	for _, f := range dep.ManagedFields {
		applied := f.Operation == metav1.ManagedFieldsOperationApply || strings.HasPrefix(f.Manager, "argocd")
		if applied && f.Manager != manager && f.FieldsV1 != nil && setsReplicas(f.FieldsV1.GetRawBytes()) {
			return f.Manager, "add a replica where it is written, or leave replicas out there", nil
		}
	}
	return "", "", nil
}

func setsReplicas(fields []byte) bool {
	var f struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	if json.Unmarshal(fields, &f) != nil {
		return true
	}
	_, sets := f.Spec["f:replicas"]
	return sets
}

// Scale writes replicas and record together, under the version that was read. An empty record
// removes what is there.
func Scale(ctx context.Context, kube kube.Interface, manager string, dep *appsv1.Deployment, to int32, record string) error {
	value, label := any(nil), any(nil)
	if record != "" {
		value, label = record, "true"
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid": string(dep.UID), "resourceVersion": dep.ResourceVersion,
			"annotations": map[string]any{annotations.StatusSurge: value},
			"labels":      map[string]any{annotations.LabelSurging: label},
		},
		"spec": map[string]any{"replicas": to},
	})
	if err != nil {
		return fmt.Errorf("patch of Deployment/%s: %w", dep.Name, err)
	}
	_, err = kube.AppsV1().Deployments(dep.Namespace).Patch(ctx, dep.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: manager})
	return err
}

// ExtraReplica is a replica that is to be removed from a Deployment, as its record says.
type ExtraReplica struct {
	Namespace, Name string
	Record          annotations.Surge
}

// String names the Deployment.
func (d ExtraReplica) String() string { return "Deployment " + d.Namespace + "/" + d.Name }

// NotRemoved is a replica that stays, and why.
type NotRemoved struct {
	ExtraReplica
	Err error
}

// List finds the extra replicas that are wanted. They come one of each namespace after the other, so that
// no namespace is ahead of the others with all that it has.
func List(ctx context.Context, clients kube.Interface, wanted func(annotations.Surge) bool) ([]ExtraReplica, error) {
	var namespaces []string
	of := map[string][]ExtraReplica{}
	err := kube.EachOf(ctx, clients.AppsV1().Deployments("").List, annotations.LabelSurging, func(dep *appsv1.Deployment) error {
		record, has, err := annotations.ReadSurge(dep.Annotations)
		if err != nil || !has || !wanted(record) {
			return nil //nolint:nilerr // no surge of ours wrote it
		}
		if of[dep.Namespace] == nil {
			namespaces = append(namespaces, dep.Namespace)
		}
		of[dep.Namespace] = append(of[dep.Namespace], ExtraReplica{Namespace: dep.Namespace, Name: dep.Name, Record: record})
		return nil
	})
	var extra []ExtraReplica
	for turn, some := 0, true; some; turn++ {
		some = false
		for _, namespace := range namespaces {
			if list := of[namespace]; turn < len(list) {
				extra, some = append(extra, list[turn]), true
			}
		}
	}
	return extra, err
}

// Remove tries once to remove each of the replicas, and returns those that stay. Of Deployments that
// somebody else changed it says how they are: that is theirs.
func Remove(ctx context.Context, kube kube.Interface, manager string, extra []ExtraReplica) (kept []NotRemoved, changed []string) {
	errs, notes := make([]error, len(extra)), make([]string, len(extra))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, d := range extra {
		group.Go(func() error { notes[i], errs[i] = d.remove(ctx, kube, manager); return nil })
	}
	_ = group.Wait() // each has its own error
	for i, err := range errs {
		switch {
		case err != nil:
			kept = append(kept, NotRemoved{extra[i], err})
		case notes[i] != "":
			changed = append(changed, notes[i])
		}
	}
	return kept, changed
}

// remove restores the previous number, unless somebody changed it since: then only the record is
// removed, and changed says how the Deployment is.
func (d ExtraReplica) remove(ctx context.Context, kube kube.Interface, manager string) (changed string, err error) {
	ctx, cancel := context.WithTimeout(ctx, undoFor)
	defer cancel()
	dep, err := kube.AppsV1().Deployments(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
	to := d.Record.Replicas
	if err == nil {
		live, has, unreadable := annotations.ReadSurge(dep.Annotations)
		ours := unreadable == nil && has && live.Pod == d.Record.Pod
		if n := Replicas(dep); !ours || n != to+1 {
			to = n
		}
		if ours {
			err = Scale(ctx, kube, manager, dep, to, "")
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return "Deployment/" + d.Name + " was deleted meanwhile", nil
	case err != nil:
		return "", err
	case to != d.Record.Replicas:
		return fmt.Sprintf("somebody changed Deployment/%s meanwhile: its %d replicas stay", d.Name, to), nil
	}
	return "", nil
}

// Final says that an API server refuses a request for a reason that does not pass within a minute.
func Final(err error) bool {
	return !executors.Unanswered(err) && !apierrors.IsConflict(err) && !apierrors.IsTooManyRequests(err) && !apierrors.IsUnauthorized(err)
}
