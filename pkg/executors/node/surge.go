package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/follow"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Times of surges (guesses).
const (
	surgeRetry = 2 * time.Second  // after a conflict, or when the API server does not answer
	surgeAgain = 5 * time.Minute  // after a surge that was impossible: somebody may have made room
	undoFor    = 10 * time.Second // for one request that removes a replica
)

// cannot is why there is no surge, and what would help.
type cannot struct{ why, remedy string }

func (c *cannot) Error() string { return c.why }

// surge gives a pod of a Deployment a replacement: one replica more, until a pod elsewhere is Ready
// and this one leaves, then one replica less. It needs get on replicasets and deployments, list on
// horizontalpodautoscalers, list and watch on pods, and patch on deployments: the previous number
// is recorded on the Deployment in the same patch.
func (s *session) surge(p drain.Pod, going <-chan struct{}) {
	defer s.detached(func() { s.surges.open-- })
	name, record, err := s.begin(p)
	var no *cannot
	switch {
	case errors.As(err, &no):
		s.replacement(p, drain.Replacement{Impossible: true, Why: no.why, Remedy: no.remedy})
		return
	case err != nil || record == nil:
		s.replacement(p, drain.Replacement{Ready: err == nil})
		return
	}
	s.replacement(p, drain.Replacement{Why: "Deployment/" + name + " makes a replacement"})
	why := s.awaitReplacement(p, name, *record, going)
	if why != "" {
		s.giveBack(p.Namespace, name, *record)
		s.replacement(p, drain.Replacement{
			Impossible: true, Why: "no replacement became Ready: " + why + "; Deployment/" + name + " is as it was",
			Remedy: "make room for one more pod, or take the annotation maint.dev/drain=surge away",
		})
		return
	}
	s.replacement(p, drain.Replacement{Ready: true})
	select {
	case <-going:
	case <-s.life.ctx.Done():
	}
	s.giveBack(p.Namespace, name, *record)
}

// detached changes the session's state even after its end.
func (s *session) detached(f func()) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	f()
	s.wake()
}

func (s *session) replacement(p drain.Pod, r drain.Replacement) {
	s.alive(func() {
		if _, there := s.seen.pods[p.UID]; there {
			s.surges.of[p.UID] = r
		}
	})
	if r.Impossible {
		time.AfterFunc(surgeAgain, func() { s.alive(func() { delete(s.surges.of, p.UID) }) })
	}
}

// begins tells a surge that its pod is leaving.
func (s *session) begins(uid string) {
	if going, waits := s.surges.going[uid]; waits {
		close(going)
		delete(s.surges.going, uid)
	}
}

// begin adds a replica, with retries where they may help. No record and no error: the pod needs no
// surge.
func (s *session) begin(p drain.Pod) (deployment string, record *annotations.Surge, err error) {
	for {
		deployment, record, err = s.tryBegin(p)
		var no *cannot
		if err == nil || errors.As(err, &no) {
			return deployment, record, err
		}
		s.replacement(p, drain.Replacement{Why: document.Cut(err.Error(), 200)})
		select {
		case <-s.life.ctx.Done():
			return "", nil, s.life.ctx.Err()
		case <-time.After(surgeRetry):
		}
	}
}

func (s *session) tryBegin(p drain.Pod) (string, *annotations.Surge, error) {
	dep, err := s.deploymentOf(p)
	if err != nil {
		return "", nil, denied(err, "get on replicasets and deployments")
	}
	record, has, err := annotations.ReadSurge(dep.Annotations)
	switch {
	case err != nil:
		return "", nil, &cannot{err.Error(), "remove the annotation once its replicas are as they should be"}
	case has && record.Pod == p.UID:
		return dep.Name, &record, nil
	case has:
		return "", nil, errors.New("another pod of its Deployment is being replaced")
	}
	needed, err := s.needsSurge(p, dep)
	if err != nil || !needed {
		return "", nil, err
	}
	if err := s.mayScale(dep); err != nil {
		return "", nil, err
	}
	record = annotations.Surge{Replicas: replicas(dep), Node: s.order.Node, Pod: p.UID, By: s.order.By, At: s.d.config.Now().UTC()}
	text, err := json.Marshal(record)
	if err != nil {
		return "", nil, fmt.Errorf("record of a surge: %w", err)
	}
	if err := scale(s.life.ctx, s.kube(), s.order.Manager, dep, record.Replicas+1, string(text), "true"); err != nil {
		return "", nil, denied(err, "patch on deployments")
	}
	return dep.Name, &record, nil
}

// denied turns a missing right into a failure that waiting does not fix.
func denied(err error, right string) error {
	if apierrors.IsForbidden(err) {
		return &cannot{"not allowed: " + document.Cut(err.Error(), 200), "grant " + right + ", or take the annotation maint.dev/drain=surge away"}
	}
	return err
}

func replicas(dep *appsv1.Deployment) int32 {
	if dep.Spec.Replicas == nil {
		return 1
	}
	return *dep.Spec.Replicas
}

func (s *session) deploymentOf(p drain.Pod) (*appsv1.Deployment, error) {
	apps := s.kube().AppsV1()
	rs, err := apps.ReplicaSets(p.Namespace).Get(s.life.ctx, p.Controller.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("find the Deployment of pod %s: %w", p, err)
	}
	owner := metav1.GetControllerOfNoCopy(rs)
	if owner == nil || owner.Kind != "Deployment" {
		return nil, &cannot{"its ReplicaSet belongs to no Deployment", "take the annotation maint.dev/drain=surge away"}
	}
	dep, err := apps.Deployments(p.Namespace).Get(s.life.ctx, owner.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("find the Deployment of pod %s: %w", p, err)
	}
	return dep, nil
}

// needsSurge says whether the pod cannot simply be evicted: it is the only one, or its budget
// permits no eviction, and would not with the new replica either.
func (s *session) needsSurge(p drain.Pod, dep *appsv1.Deployment) (bool, error) {
	s.d.mu.Lock()
	over := drain.Of(p, s.d.ledger.in(map[string]bool{p.Namespace: true}))
	s.d.mu.Unlock()
	tight := false
	for _, b := range over {
		tight = tight || drain.NeedOf(p, b) != drain.NeedNothing && b.Allowed <= 0
		if b.MaxUnavailable == "0" || b.MaxUnavailable == "0%" || b.MinAvailable == "100%" {
			return false, &cannot{"its budget " + b.Key() + " lets nobody go, however many replicas there are", "write maxUnavailable: 1 there"}
		}
	}
	return replicas(dep) == 1 || tight, nil
}

// mayScale refuses a Deployment whose replicas another controller would set back.
func (s *session) mayScale(dep *appsv1.Deployment) error {
	var owner string
	err := kube.EachOf(s.life.ctx, s.kube().AutoscalingV2().HorizontalPodAutoscalers(dep.Namespace).List, "", func(h *autoscalingv2.HorizontalPodAutoscaler) error {
		if ref := h.Spec.ScaleTargetRef; ref.Kind == "Deployment" && ref.Name == dep.Name {
			owner = h.Name
		}
		return nil
	})
	if err != nil {
		return denied(err, "list on horizontalpodautoscalers.autoscaling")
	}
	if owner != "" {
		return &cannot{
			fmt.Sprintf("HorizontalPodAutoscaler/%s owns the replicas of Deployment/%s", owner, dep.Name),
			"raise its minReplicas for the drain, or take the annotation maint.dev/drain=surge away",
		}
	}
	for _, f := range dep.ManagedFields {
		applied := f.Operation == metav1.ManagedFieldsOperationApply || strings.HasPrefix(f.Manager, "argocd")
		if applied && f.Manager != s.order.Manager && f.FieldsV1 != nil && setsReplicas(f.FieldsV1.GetRawBytes()) {
			return &cannot{
				fmt.Sprintf("%s owns the replicas of Deployment/%s", f.Manager, dep.Name),
				"add a replica where it is written, or leave replicas out there, or take the annotation maint.dev/drain=surge away",
			}
		}
	}
	return nil
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

// scale writes replicas and record together, under the version that was read. Empty text removes
// the record.
func scale(ctx context.Context, kube kube.Interface, manager string, dep *appsv1.Deployment, to int32, record, label string) error {
	value := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid": string(dep.UID), "resourceVersion": dep.ResourceVersion,
			"annotations": map[string]any{annotations.StatusSurge: value(record)},
			"labels":      map[string]any{annotations.LabelSurging: value(label)},
		},
		"spec": map[string]any{"replicas": to},
	})
	if err != nil {
		return fmt.Errorf("patch of Deployment/%s: %w", dep.Name, err)
	}
	_, err = kube.AppsV1().Deployments(dep.Namespace).Patch(ctx, dep.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: manager})
	return err
}

// giveBack restores the previous number, unless somebody changed it since: then only the record is
// removed. An agent that is ending leaves both to the next, which finds the record.
func (s *session) giveBack(namespace, name string, record annotations.Surge) {
	for s.d.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(s.d.ctx, undoFor)
		err := tryGiveBack(ctx, s.kube(), s.order.Manager, namespace, name, record)
		cancel()
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return
		}
		select {
		case <-s.d.ctx.Done():
		case <-time.After(surgeRetry):
		}
	}
}

func tryGiveBack(ctx context.Context, kube kube.Interface, manager, namespace, name string, record annotations.Surge) error {
	dep, err := kube.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	live, has, err := annotations.ReadSurge(dep.Annotations)
	if err != nil || !has || live.Pod != record.Pod {
		return nil //nolint:nilerr // somebody else's by now
	}
	to := replicas(dep)
	if to == record.Replicas+1 {
		to = record.Replicas
	}
	return scale(ctx, kube, manager, dep, to, "", "")
}

// undoSurges removes the replicas that an earlier drain of the node could not: its pod is gone, and
// the record is still there. For a pod that still exists, that happens when it is gone, whoever
// evicted it.
func (s *session) undoSurges() {
	defer s.detached(func() { s.surges.open-- })
	list, err := s.kube().AppsV1().Deployments("").List(s.life.ctx, metav1.ListOptions{LabelSelector: annotations.LabelSurging})
	if err != nil {
		return // without that right it never made one
	}
	for i := range list.Items {
		dep := &list.Items[i]
		record, has, err := annotations.ReadSurge(dep.Annotations)
		if err != nil || !has || record.Node != s.order.Node {
			continue
		}
		if !s.owes(record.Pod, func() { s.giveBack(dep.Namespace, dep.Name, record) }) {
			s.giveBack(dep.Namespace, dep.Name, record)
		}
	}
}

// owes registers what is to be undone when a pod has left.
func (s *session) owes(pod string, repay func()) bool {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	_, there := s.seen.pods[pod]
	if there {
		s.surges.owed[pod] = repay
	}
	return there
}

// repays undoes what was registered for a pod that has left; the caller holds the lock.
func (s *session) repays(pod string) {
	repay := s.surges.owed[pod]
	if repay == nil {
		return
	}
	delete(s.surges.owed, pod)
	s.surges.open++
	go func() {
		defer s.detached(func() { s.surges.open-- })
		repay()
	}()
}

// Sweep removes the replicas of surges whose drain no longer exists.
func (d *Drainer) Sweep(ctx context.Context, clients executors.Clients, manager, by string, busy func(node string) bool) (left int, err error) {
	list, err := clients.Kube.AppsV1().Deployments("").List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelSurging})
	if err != nil {
		return 0, fmt.Errorf("list the Deployments that surge: %w", err)
	}
	for i := range list.Items {
		dep := &list.Items[i]
		record, has, err := annotations.ReadSurge(dep.Annotations)
		if err != nil || !has || record.By != "" && record.By != by { // a record without a name is of an older agent
			continue
		}
		if busy(record.Node) || d.drains(record.Node, by) {
			left++
			continue
		}
		if err := tryGiveBack(ctx, clients.Kube, manager, dep.Namespace, dep.Name, record); err != nil && !apierrors.IsNotFound(err) {
			return left + 1, fmt.Errorf("give back the replica that a surge added to Deployment %s/%s: %w", dep.Namespace, dep.Name, err)
		}
	}
	return left, nil
}

// drains says whether there is a session, or its surges are still being undone.
func (d *Drainer) drains(node, by string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sessions[place{node, by}]
	return s != nil && (!s.ended || s.surges.open > 0)
}

// sibling is a pod of the same Deployment.
type sibling struct {
	node  string
	ready bool
	why   string
}

// awaitReplacement waits until enough pods are Ready without the one that leaves, at least one of
// them elsewhere. It returns why that failed.
func (s *session) awaitReplacement(p drain.Pod, name string, record annotations.Surge, going <-chan struct{}) string {
	dep, err := s.kube().AppsV1().Deployments(p.Namespace).Get(s.life.ctx, name, metav1.GetOptions{})
	if err != nil {
		return "Deployment/" + name + " cannot be read: " + document.Cut(err.Error(), 200)
	}
	ctx, cancel := context.WithCancel(s.life.ctx)
	defer cancel()
	changed := make(chan map[string]sibling, 1)
	go s.watchSiblings(ctx, dep, changed)
	timer := time.NewTimer(time.Until(record.At.Add(s.d.config.SurgeFor)))
	defer timer.Stop()
	last := "it was not made"
	for {
		select {
		case pods := <-changed:
			enough, why := replacedBy(pods, p, s.order.Node, int(record.Replicas))
			if enough {
				return ""
			}
			if why != "" {
				last = why
			}
		case <-going:
			return ""
		case <-timer.C:
			return last
		case <-s.life.ctx.Done():
			return "the drain has ended"
		}
	}
}

// replacedBy says whether pods are enough without p; if not, why the newest is not Ready.
func replacedBy(pods map[string]sibling, p drain.Pod, node string, wanted int) (enough bool, why string) {
	ready, elsewhere := 0, 0
	for uid, other := range pods {
		if uid == p.UID {
			continue
		}
		if other.ready {
			ready++
			if other.node != node {
				elsewhere++
			}
		} else if other.why != "" {
			why = other.why
		}
	}
	return elsewhere > 0 && ready >= wanted, why
}

// watchSiblings sends the pods of a Deployment whenever they change.
func (s *session) watchSiblings(ctx context.Context, dep *appsv1.Deployment, changed chan map[string]sibling) {
	selector := metav1.FormatLabelSelector(dep.Spec.Selector)
	pods := map[string]sibling{}
	notify := func() {
		copied := map[string]sibling{}
		for uid, p := range pods {
			copied[uid] = p
		}
		select {
		case <-changed: // replace what nobody has received
		default:
		}
		changed <- copied
	}
	set := func(p *corev1.Pod) { pods[string(p.UID)] = siblingOf(p) }
	in := s.kube().CoreV1().Pods(dep.Namespace)
	follow.Reflect(ctx, "pods of Deployment "+dep.Name, follow.Source[*corev1.PodList]{
		List: in.List, Watch: in.Watch, Heard: func(error) {}, Trim: func(o *metav1.ListOptions) { o.LabelSelector = selector },
	}, follow.Mirror[*corev1.Pod]{
		Set:  func(p *corev1.Pod) { set(p); notify() },
		Gone: func(p *corev1.Pod) { delete(pods, string(p.UID)); notify() },
		Replaced: func(all []*corev1.Pod, _ string) {
			clear(pods)
			for _, p := range all {
				set(p)
			}
			notify()
		},
	}, &corev1.Pod{})
}

func siblingOf(p *corev1.Pod) sibling {
	out := sibling{node: p.Spec.NodeName}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady:
			out.ready = c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			out.why = c.Reason + ": " + document.Cut(c.Message, 200)
		}
	}
	if i := slices.IndexFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Waiting != nil }); i >= 0 && out.why == "" {
		out.why = p.Status.ContainerStatuses[i].State.Waiting.Reason
	}
	return out
}
