package workload

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// sleepKind is a kind of workload as the cluster serves it.
type sleepKind struct {
	resource schema.GroupVersionResource
	kind     string
	form     form
	unasked  bool // the plan names kinds, and not this one, which goes with them
}

// mayLack says whether an account lacks a right on a kind that its plan does not name: what sleeps
// without it goes on doing so.
func (k sleepKind) mayLack(err error) bool { return k.unasked && apierrors.IsForbidden(err) }

// form is how workloads of a kind are put to sleep.
type form int

const (
	byScale        form = iota // by the scale subresource
	byReplicas                 // the same, but the number of replicas is read from the object
	bySuspend                  // spec.suspend
	byPause                    // an annotation of KEDA
	byNodeSelector             // a node selector that matches no node
)

func formOf(of schema.GroupResource) form {
	switch {
	case of.Group == "batch" && of.Resource == "cronjobs":
		return bySuspend
	case of.Group == "keda.sh" && of.Resource == "scaledobjects":
		return byPause
	case of.Group == "apps" && of.Resource == "daemonsets":
		return byNodeSelector
	case of.Group == "apps":
		return byReplicas
	}
	return byScale
}

// pausedReplicas makes KEDA keep its target at a number of replicas, until the annotation is
// removed.
const pausedReplicas = "autoscaling.keda.sh/paused-replicas"

func suspension(u *unstructured.Unstructured, o hibernate.Observation) (hibernate.Observation, error) {
	suspended, _, err := unstructured.NestedBool(u.Object, "spec", "suspend")
	o.Asleep, o.Awake, o.Ready, o.Before = suspended, !suspended, !suspended, must(before{Suspend: &suspended})
	o.RevivedBy = api.GitOpsOwner(u, "suspend")
	return o, err
}

// pausing says how a ScaledObject is: it sleeps while its annotation pauses it at the floor.
func (s *sleep) pausing(u *unstructured.Unstructured, o hibernate.Observation) hibernate.Observation {
	was := field{}
	if value, there := u.GetAnnotations()[pausedReplicas]; there {
		was.Value = &value
	}
	o.Asleep = was.Value != nil && *was.Value == strconv.FormatInt(s.floor, 10)
	o.Awake, o.Ready, o.Before = !o.Asleep, !o.Asleep, must(before{Paused: &was})
	o.RevivedBy = api.GitOpsOwner(u, pausedReplicas)
	return o
}

// ownAgent says of the agent's own Deployment why it is left out; empty: it is another. What bears
// the agent's label in another namespace, or in another cluster, this one still wakes.
func (s *sleep) ownAgent(u *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(u.Object, "spec", "template", "metadata", "labels", annotations.AgentLabel)
	if name != annotations.AgentName || u.GetNamespace() != s.call.AgentNamespace || s.call.Clients.Connection != "" {
		return ""
	}
	return "it is the agent itself: nobody would wake what sleeps"
}

// banishment says how a DaemonSet is: with our node selector it has no pods.
func banishment(u *unstructured.Unstructured, o hibernate.Observation) hibernate.Observation {
	status := func(field string) int64 {
		n, _, _ := unstructured.NestedInt64(u.Object, "status", field)
		return n
	}
	was := field{}
	if value, there, _ := unstructured.NestedString(u.Object, "spec", "template", "spec", "nodeSelector", annotations.LabelAsleep); there {
		was.Value = &value
	}
	settled := status("observedGeneration") >= u.GetGeneration()
	o.Asleep = was.Value != nil && settled && status("currentNumberScheduled")+status("numberMisscheduled") == 0
	o.Awake = was.Value == nil
	o.Ready = o.Awake && settled && status("numberReady") >= status("desiredNumberScheduled")
	o.Before, o.RevivedBy = must(before{Selector: &was}), api.GitOpsOwner(u, "nodeSelector")
	if o.Awake {
		o.Units = units(u, status("currentNumberScheduled"))
	}
	return o
}

// patchOf is the patch of a workload and the subresource that it is for, under the version that was
// seen.
func patchOf(d hibernate.Due, to before) (body map[string]any, subresource []string) {
	metadata := map[string]any{"uid": d.UID, "resourceVersion": d.Seen.Version}
	body = map[string]any{"metadata": metadata}
	switch {
	case to.Suspend != nil:
		body["spec"] = map[string]any{"suspend": *to.Suspend}
	case to.Paused != nil:
		metadata["annotations"] = map[string]any{pausedReplicas: to.Paused.Value}
	case to.Selector != nil:
		pod := map[string]any{"nodeSelector": map[string]any{annotations.LabelAsleep: to.Selector.Value}}
		body["spec"] = map[string]any{"template": map[string]any{"spec": pod}}
	case to.Replicas != nil:
		body["spec"], subresource = map[string]any{"replicas": *to.Replicas}, []string{"scale"}
	}
	return body, subresource
}

// targetOf is the id of what a ScaledObject scales; empty: nothing that sleeps.
func (s *sleep) targetOf(u *unstructured.Unstructured) string {
	return s.scaledBy(u, "Deployment")
}

// scaledBy is the id of an autoscaler's scaleTargetRef.
func (s *sleep) scaledBy(u *unstructured.Unstructured, usual string) string {
	kind, found, _ := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", "kind")
	name, _, _ := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", "name")
	if !found {
		kind = usual
	}
	for _, k := range s.kinds {
		if k.kind == kind {
			return idOf(k.resource.GroupResource(), u.GetNamespace(), name)
		}
	}
	return ""
}

// floors finds, for targets that keep some replicas, the workloads that an autoscaler would scale
// up again: an autoscaler rests only at zero replicas.
func (s *sleep) floors(ctx context.Context, namespaces []string) error {
	if s.floor == 0 {
		return nil
	}
	s.scaled = map[string]string{}
	autoscalers := sleepKind{resource: schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}}
	for _, ns := range namespaces {
		err := s.list(ctx, autoscalers, ns, "", func(u *unstructured.Unstructured) error {
			owner := metav1.GetControllerOf(u)
			if id := s.scaledBy(u, ""); id != "" && (owner == nil || owner.Kind != hibernate.ScaledObject().Kind) {
				s.scaled[id] = fmt.Sprintf("HorizontalPodAutoscaler %s scales it, and would do so at a floor of %d: only at 0 it lets go", u.GetName(), s.floor)
				return s.keep()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
