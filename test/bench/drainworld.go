package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

const (
	drainNamespace = "drained"
	deployments    = 14
	requestor      = "bench"
	pool           = "pool=bench"
	mostTries      = 20 // of a kubectl that fails
	sideBySide     = 10 * time.Minute
	finalizer      = "bench.example.org/shutdown"
)

// drains is the cluster on which nodes are drained.
type drains struct {
	*bench
	audit, config, kubectl string
	rest, pods             int // nodes that stay, and all pods
	view                   *podView
	fresh                  bool        // the pods have just been made
	lingering              atomic.Bool // pods take their time to go

	mu      sync.Mutex
	clients float64 // seconds of CPU of commands that have ended
	failed  int     // of those that failed
}

func (d *drains) names() []string {
	out := make([]string, d.drains)
	for i := range out {
		out[i] = fmt.Sprintf("node-%d", i)
	}
	return out
}

// label says which nodes are to be drained.
func (d *drains) label(ctx context.Context) error {
	names := d.names()
	return each(ctx, len(names), func(ctx context.Context, i int) error {
		return d.patchNode(ctx, names[i], `{"metadata":{"labels":{"pool":"bench"}}}`)
	})
}

func (d *drains) patchNode(ctx context.Context, name, patch string) error {
	_, err := d.admin.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// fill makes the Deployments and the one budget over all their pods.
func (d *drains) fill(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: drainNamespace}}
	if _, err := d.admin.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	share := intstr.FromString(fmt.Sprintf("%d%%", budget))
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: &share, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "bench"}},
	}}
	if _, err := d.admin.PolicyV1().PodDisruptionBudgets(drainNamespace).Create(ctx, pdb, metav1.CreateOptions{}); err != nil {
		return err
	}
	return d.deploy(ctx)
}

// deploy spreads the pods over the Deployments. What they ask for is what makes
// the scheduler spread them evenly.
func (d *drains) deploy(ctx context.Context) error {
	d.say("making %d pods", d.pods)
	err := each(ctx, deployments, func(ctx context.Context, i int) error {
		replicas := int32(d.pods / deployments)
		if i < d.pods%deployments {
			replicas++
		}
		labels := map[string]string{"app": "bench", "part": fmt.Sprint(i)}
		template := corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/none", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10")},
			}}}},
		}
		if d.lingering.Load() {
			template.Finalizers = []string{finalizer}
		}
		one := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("part-%d", i)}, Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
		}}
		_, err := d.admin.AppsV1().Deployments(drainNamespace).Create(ctx, one, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	d.fresh = true
	return d.view.wait(ctx, d.pods, nil, 5*time.Minute)
}

// takeTheirTime puts pods in the place of the others that are gone some seconds
// after they were deleted, and no earlier: a finalizer stands for the kubelet.
func (d *drains) takeTheirTime(ctx context.Context) error {
	background := metav1.DeletePropagationBackground
	err := d.admin.AppsV1().Deployments(drainNamespace).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if err := d.view.wait(ctx, 0, nil, 5*time.Minute); err != nil {
		return err
	}
	d.lingering.Store(true)
	return d.deploy(ctx)
}

// goes ends a pod that was deleted, in its time.
func (d *drains) goes(pod *corev1.Pod) {
	if len(pod.Finalizers) == 0 {
		return
	}
	wait, pods := time.Duration(0), d.admin.CoreV1().Pods(pod.Namespace)
	if d.lingering.Load() {
		wait = shutdown
	}
	time.AfterFunc(wait, func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"finalizers":null}}`, pod.UID)
		_, err := pods.Patch(ctx, pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil && d.view.ctx.Err() == nil {
			d.say("pod %s cannot end: %v", pod.Name, err)
		}
	})
}

// refill gives every node its pods again: all are made anew, and the scheduler
// spreads them. It returns when the budget knows of it.
func (d *drains) refill(ctx context.Context) error {
	if d.fresh {
		d.fresh = false
		return d.full(ctx)
	}
	before, now := d.view.all(), int64(0)
	took := d.lingering.Swap(false)
	err := each(ctx, deployments, func(ctx context.Context, i int) error {
		return d.admin.CoreV1().Pods(drainNamespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{LabelSelector: fmt.Sprintf("part=%d", i)})
	})
	if err != nil {
		return err
	}
	if err := d.view.wait(ctx, d.pods, before, 5*time.Minute); err != nil {
		return err
	}
	d.lingering.Store(took)
	return d.full(ctx)
}

// full waits until the budget counts every pod as healthy.
func (d *drains) full(ctx context.Context) error {
	var counts []int
	for _, name := range d.names() {
		counts = append(counts, d.view.on(name))
	}
	d.say("%d to %d pods on each node to drain", slices.Min(counts), slices.Max(counts))
	return soon(ctx, "the budget counts all pods as healthy", func(ctx context.Context) (bool, error) {
		b, err := d.admin.PolicyV1().PodDisruptionBudgets(drainNamespace).Get(ctx, "all", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		s := b.Status
		return int(s.CurrentHealthy) == d.pods && int(s.ExpectedPods) == d.pods && int(s.DisruptionsAllowed) == d.pods-d.wanted() && len(s.DisruptedPods) == 0, nil
	})
}

// soon asks ten times a second, for two minutes.
func soon(ctx context.Context, what string, is func(context.Context) (bool, error)) error {
	limit := time.Now().Add(2 * time.Minute)
	for {
		yes, err := is(ctx)
		switch {
		case err != nil || yes:
			return err
		case time.Now().After(limit):
			return fmt.Errorf("not within 2 minutes: %s", what)
		}
		if err := until(ctx, time.Now().Add(100*time.Millisecond)); err != nil {
			return err
		}
	}
}

// kubectlInOrder is what one gets who names all nodes.
func (d *drains) kubectlInOrder(ctx context.Context) error {
	return d.kubectlDrain(ctx, d.names()...)
}

// kubectlDrain runs kubectl again as long as it fails: where evictions race for
// one budget the API server refuses some as conflicts, and kubectl gives up.
func (d *drains) kubectlDrain(ctx context.Context, names ...string) error {
	args := append([]string{"--kubeconfig", d.config, "--cache-dir", filepath.Join(d.dir, "kubectl-cache"), "drain"}, names...)
	for try := 1; ; try++ {
		err := d.command(ctx, d.kubectl, args...)
		if err == nil || try == mostTries || ctx.Err() != nil {
			return err
		}
		d.mu.Lock()
		d.failed++
		d.mu.Unlock()
	}
}

// kubectlSideBySide is what one gets with xargs -P. Under one budget that may never
// end: it is given up after a while, and said.
func (d *drains) kubectlSideBySide(ctx context.Context) error {
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, sideBySide)
	defer cancel()
	names := d.names()
	errs := make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() { errs[i] = d.kubectlDrain(ctx, name) })
	}
	group.Wait()
	if ctx.Err() != nil && outer.Err() == nil {
		d.say("kubectls: NOT ALL NODES ARE DRAINED after %s: given up", sideBySide)
		return nil
	}
	return errors.Join(errs...)
}

// command runs a program to its end.
func (d *drains) command(ctx context.Context, program string, args ...string) error {
	// The kernel's "die with your parent" means the parent thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, program, args...)
	dieWithParent(cmd)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState != nil {
		d.mu.Lock()
		d.clients += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
		d.mu.Unlock()
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args[:min(len(args), 8)], " "), err, strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
	return nil
}

func (d *drains) uncordon(ctx context.Context) error {
	names := d.names()
	return each(ctx, len(names), func(ctx context.Context, i int) error {
		return d.patchNode(ctx, names[i], `{"spec":{"unschedulable":null}}`)
	})
}

// request asks for all nodes, and waits until they are the requestor's.
func (d *drains) request(ctx context.Context) error {
	seen, err := observe(ctx, d.admin.CoreV1().Nodes().Watch, pool, func(o kruntime.Object) []sight {
		node, ok := o.(*corev1.Node)
		if !ok {
			return nil
		}
		status, ok := nodes.ParseStatus(node.Annotations[annotations.StatusRequestPrefix+requestor])
		if !ok {
			return nil
		}
		return []sight{{mark: string(status.Phase), key: node.Name}}
	})
	if err != nil {
		return err
	}
	defer seen.stop()
	if err := d.annotate(ctx, `"{}"`); err != nil {
		return err
	}
	return seen.wait(ctx, string(nodes.Ready), d.drains, 10*time.Minute)
}

func (d *drains) annotate(ctx context.Context, value string) error {
	names := d.names()
	return each(ctx, len(names), func(ctx context.Context, i int) error {
		return d.patchNode(ctx, names[i], fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, annotations.RequestPrefix+requestor, value))
	})
}

func (d *drains) release(ctx context.Context) error {
	if err := d.annotate(ctx, "null"); err != nil {
		return err
	}
	return d.free(ctx)
}

// free waits until nothing is left of requests on any node.
func (d *drains) free(ctx context.Context) error {
	return soon(ctx, "all nodes take pods again", func(ctx context.Context) (bool, error) {
		list, err := d.admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: pool})
		if err != nil {
			return false, err
		}
		return !slices.ContainsFunc(list.Items, func(n corev1.Node) bool {
			return n.Spec.Unschedulable || len(annotations.OfNode(n.Annotations)) > 0
		}), nil
	})
}

func (d *drains) maintDrain(ctx context.Context) error {
	return d.command(ctx, d.plugin, "--kubeconfig", d.config, "drain", "-l", pool, "--wait", "--yes")
}

func (d *drains) maintRelease(ctx context.Context) error {
	if err := d.command(ctx, d.plugin, "--kubeconfig", d.config, "release", "-l", pool); err != nil {
		return err
	}
	return d.free(ctx)
}
