package annotations

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// What others write on pods about drains, and we honour.
const (
	// clusterAPIDrain is Cluster API's label on pods (api/core/v1beta2,
	// PodDrainLabel), of values skip and wait-completed in any case, the second also
	// without its dash. Its order stands in MachineDrainRules of the management
	// cluster, not on pods.
	clusterAPIDrain = "cluster.x-k8s.io/drain"
	safeToEvict     = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	doNotDisrupt    = "karpenter.sh/do-not-disrupt"
)

// AgentPod says whether a pod is a replica of the agent of a namespace: by its label,
// or since it is own, its namespace/name.
func AgentPod(p drain.Pod, namespace, own string) bool {
	return p.Namespace == namespace && p.Labels[AgentLabel] == AgentName || own != "" && p.String() == own
}

// On a Deployment while it runs one replica more than it should, both written in
// the patch that adds the replica: the record of how many it had, and a label by
// which it is found again.
const (
	StatusSurge  = "status.maint.dev/surge"
	LabelSurging = "maint.dev/surging"
)

// Surge is the record under StatusSurge.
type Surge struct {
	Replicas int32     `json:"replicas"` // before
	Node     string    `json:"node"`     // that is drained
	Pod      string    `json:"pod"`      // uid of the pod that is replaced
	By       string    `json:"by"`       // claimant whose drain it is
	At       time.Time `json:"at"`
}

// Limits of a record (guesses): more replicas than a cluster has pods, and names longer than
// Kubernetes has.
const (
	mostReplicas = 1_000_000
	longestName  = 253
)

// Check says what makes a record impossible: whoever may write the Deployment may write it.
func (s Surge) Check() error {
	switch {
	case s.Replicas < 0 || s.Replicas > mostReplicas:
		return fmt.Errorf("%s says %d replicas; possible are 0 to %d", StatusSurge, s.Replicas, mostReplicas)
	case s.Node == "" || len(s.Node) > longestName:
		return fmt.Errorf("%s names no node, or one that cannot be", StatusSurge)
	case s.Pod == "" || len(s.Pod) > longestName:
		return fmt.Errorf("%s names no pod, or one that cannot be", StatusSurge)
	}
	return nil
}

// ReadSurge is the record of a surge; ok is false where there is none. An impossible one is an error.
func ReadSurge(on map[string]string) (s Surge, ok bool, err error) {
	text, ok := on[StatusSurge]
	if !ok {
		return s, false, nil
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, true, fmt.Errorf("%s is %q: %w", StatusSurge, document.Cut(text, 100), err)
	}
	return s, true, s.Check()
}

// DrainPod is a pod as a drain sees it.
func DrainPod(p *corev1.Pod) drain.Pod {
	out := drain.Pod{
		UID: string(p.UID), Namespace: p.Namespace, Name: p.Name, Node: p.Spec.NodeName,
		Version: version(p.ResourceVersion), Labels: p.Labels, Created: p.CreationTimestamp.Time,
		Phase: string(p.Status.Phase), Trouble: troubleOf(p), Resources: requested(p),
		Controller: controllerOf(p), Kept: keptBy(p), Tolerates: tolerates(p),
	}
	_, out.Mirror = p.Annotations[corev1.MirrorPodAnnotationKey]
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			out.Unschedulable = c.Reason == corev1.PodReasonUnschedulable
		}
		if c.Type == corev1.PodReady {
			out.Ready = c.Status == corev1.ConditionTrue
			if !out.Ready {
				out.NotReady = c.LastTransitionTime.Time
			}
		}
	}
	if at := p.DeletionTimestamp; at != nil {
		out.Deleting, out.DeleteBy = true, at.Time
	}
	for _, v := range p.Spec.Volumes {
		out.EmptyDir = out.EmptyDir || v.EmptyDir != nil
		switch {
		case v.PersistentVolumeClaim != nil:
			out.Claims = append(out.Claims, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			out.Claims = append(out.Claims, p.Name+"-"+v.Name)
		}
	}
	howOf(p, &out)
	return out.Bounded()
}

// howOf reads how the pod wants to be drained. Our annotation wins over the
// label of Cluster API, of which a value that it does not know means nothing.
func howOf(p *corev1.Pod, out *drain.Pod) {
	how, ours := p.Annotations[DrainHow]
	label := strings.ToLower(p.Labels[clusterAPIDrain])
	switch {
	case ours:
		out.How = how
	case label == drain.HowSkip:
		out.How, out.HasHowLabel = drain.HowSkip, true
	case strings.Replace(label, "-", "", 1) == "waitcompleted":
		out.How, out.HasHowLabel = drain.HowWaitCompleted, true
	}
	if text, given := p.Annotations[DrainOrder]; given {
		order, err := strconv.ParseInt(text, 10, 32)
		out.Order = int(order)
		if err != nil {
			out.Order, out.OrderFault = 0, text
			if text == "" {
				out.OrderFault = "empty"
			}
		}
	}
}

func controllerOf(p *corev1.Pod) *drain.Owner {
	ref := metav1.GetControllerOfNoCopy(p)
	if ref == nil {
		return nil
	}
	return &drain.Owner{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: string(ref.UID)}
}

// keptBy is the annotation by which an autoscaler is told to leave the pod.
func keptBy(p *corev1.Pod) string {
	if p.Annotations[safeToEvict] == "false" {
		return safeToEvict + ": \"false\""
	}
	if v := p.Annotations[doNotDisrupt]; v != "" && v != "false" {
		return doNotDisrupt + ": " + strconv.Quote(document.Cut(v, 50))
	}
	return ""
}

func requested(p *corev1.Pod) []string {
	names := map[string]bool{}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for name := range c.Resources.Requests {
			names[string(name)] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func troubleOf(p *corev1.Pod) string {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return w.Reason
		}
	}
	return ""
}

func tolerates(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
		return (t.Key == corev1.TaintNodeUnschedulable || t.Key == "" && t.Operator == corev1.TolerationOpExists) &&
			(t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule)
	})
}

// version is a resourceVersion as a number: of two, the larger is the newer
// (KEP-5504); zero for one that is none.
func version(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// DrainBudget is a PodDisruptionBudget as a drain sees it.
func DrainBudget(b *policyv1.PodDisruptionBudget) drain.Budget {
	out := drain.Budget{
		Namespace: b.Namespace, Name: b.Name, Version: version(b.ResourceVersion),
		MinAvailable: written(b.Spec.MinAvailable), MaxUnavailable: written(b.Spec.MaxUnavailable),
		AlwaysAllow:    b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow,
		Current:        b.Status.ObservedGeneration >= b.Generation,
		Allowed:        int(b.Status.DisruptionsAllowed),
		CurrentHealthy: int(b.Status.CurrentHealthy), DesiredHealthy: int(b.Status.DesiredHealthy), ExpectedPods: int(b.Status.ExpectedPods),
	}
	for name, at := range b.Status.DisruptedPods {
		if out.Disrupted == nil {
			out.Disrupted = map[string]time.Time{}
		}
		out.Disrupted[name] = at.Time
	}
	for _, c := range b.Status.Conditions {
		if c.Type == policyv1.DisruptionAllowedCondition && c.Reason == policyv1.SyncFailedReason {
			out.SyncFailed = document.Cut(c.Message, 200)
		}
	}
	if s := b.Spec.Selector; s != nil {
		out.Selector = &selector.LabelSelector{MatchLabels: s.MatchLabels}
		for _, e := range s.MatchExpressions {
			out.Selector.MatchExpressions = append(out.Selector.MatchExpressions, selector.SelectorRequirement{Key: e.Key, Operator: string(e.Operator), Values: e.Values})
		}
	}
	return out.Bounded()
}

func written(v *intstr.IntOrString) string {
	if v == nil {
		return ""
	}
	return v.String()
}
