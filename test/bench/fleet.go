package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

const (
	fleetNamespace = "fleet"
	fleetDrains    = 20              // at work at once
	heartbeat      = 5 * time.Minute // of a node, as kubelets have it
	patience       = 6 * time.Minute // for the pods; fewer are measured then
	settling       = 40 * time.Second
)

// nodesMemory weighs the agent on a cluster of many nodes and pods: idle, while
// the nodes tell their heartbeats, and with drains at work. Nobody plays the
// kubelets, so pods that were evicted stay, and so do the drains.
func (b *bench) nodesMemory(ctx context.Context, out io.Writer) (err error) {
	err = b.open(ctx, cluster.Options{})
	defer func() { err = errors.Join(err, b.close()) }()
	if err != nil {
		return err
	}
	b.printHead(out, fmt.Sprintf("%d nodes, %d pods", b.fleet, b.fleetPods))
	pods, err := b.people(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var beats atomic.Int64
	go b.beat(ctx, &beats)
	a, err := b.startAgent(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = a.Stop() }()
	s := sample{}
	if s["first-rss"], s["first-peak"], err = a.resident(); err != nil {
		return err
	}
	if err := b.weighLater(ctx, a, s, "idle-"); err != nil {
		return err
	}
	evicted, err := b.drainSome(ctx, pods)
	if err != nil {
		return fmt.Errorf("%w; the agent last said:\n%s", err, tail(a.Log()))
	}
	if err := b.weighLater(ctx, a, s, "drains-"); err != nil {
		return err
	}
	b.say("%d heartbeats; load average %s", beats.Load(), loadAverage())
	what := fmt.Sprintf("%d drains at work, %d pods evicted and not gone", fleetDrains, evicted)
	table(out, fmt.Sprintf("memory of the agent, %d nodes and %d pods", b.fleet, pods), []sample{s}, []figure{
		{"first-rss", "MiB", "resident (VmRSS) as soon as it leads"},
		{"idle-rss", "MiB", fmt.Sprintf("resident (VmRSS), idle for %s", settling)},
		{"idle-peak", "MiB", "highest resident (VmHWM) so far"},
		{"idle-heap", "MiB", "Go heap in use"},
		{"idle-cpu", "%", "of one core while idle, heartbeats included"},
		{"drains-rss", "MiB", "resident (VmRSS), " + what},
		{"drains-peak", "MiB", "highest resident (VmHWM) so far"},
		{"drains-heap", "MiB", "Go heap in use"},
		{"drains-cpu", "%", "of one core meanwhile"},
	})
	return nil
}

// weighLater weighs the agent when it has been left alone for a while.
func (b *bench) weighLater(ctx context.Context, a *agent, s sample, prefix string) error {
	before, err := a.effort(ctx)
	if err != nil {
		return err
	}
	if err := until(ctx, time.Now().Add(settling)); err != nil {
		return err
	}
	now, err := a.effort(ctx)
	if err != nil {
		return err
	}
	s[prefix+"cpu"] = 100 * (now.cpu - before.cpu) / settling.Seconds()
	return weigh(ctx, a, s, prefix)
}

// people makes the nodes, Ready and as big as real ones, and as many of the pods
// as there is time for.
func (b *bench) people(ctx context.Context) (pods int, err error) {
	if err := harness.Configure(ctx, b.cluster.AdminConfig(), fmt.Sprintf("{nodes: {maxParallelOperations: %d}}", fleetDrains)); err != nil {
		return 0, err
	}
	if err := b.fleetBasics(ctx); err != nil {
		return 0, err
	}
	b.say("making %d nodes", b.fleet)
	began := time.Now()
	err = each(ctx, b.fleet, func(ctx context.Context, i int) error {
		made, err := b.admin.CoreV1().Nodes().Create(ctx, bigNode(i), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		made.Status = bigNode(i).Status
		_, err = b.admin.CoreV1().Nodes().UpdateStatus(ctx, made, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("make nodes: %w", err)
	}
	b.say("%d nodes after %.0f s; making %d pods", b.fleet, time.Since(began).Seconds(), b.fleetPods)
	began = time.Now()
	var made atomic.Int64
	err = each(ctx, b.fleetPods, func(ctx context.Context, i int) error {
		if time.Since(began) > patience {
			return nil
		}
		made.Add(1)
		return b.makeFleetPod(ctx, i)
	})
	b.say("%d pods after %.0f s; load average %s", made.Load(), time.Since(began).Seconds(), loadAverage())
	return int(made.Load()), err
}

// fleetBasics are what a pod needs where no controllers run, and a budget with
// room for all that is evicted here.
func (b *bench) fleetBasics(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleetNamespace}}
	if _, err := b.admin.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := b.admin.CoreV1().ServiceAccounts(fleetNamespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	share := intstr.FromString("10%")
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: &share, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "fleet"}},
	}}
	budgets := b.admin.PolicyV1().PodDisruptionBudgets(fleetNamespace)
	pdb, err := budgets.Create(ctx, pdb, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	n := int32(b.fleetPods)
	pdb.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: pdb.Generation, DisruptionsAllowed: (n + 9) / 10, CurrentHealthy: n, DesiredHealthy: n - (n+9)/10, ExpectedPods: n,
	}
	_, err = budgets.UpdateStatus(ctx, pdb, metav1.UpdateOptions{})
	return err
}

func fleetNode(i int) string { return fmt.Sprintf("worker-%04d.eu-central-1.compute.example.org", i) }

// bigNode is a node with what makes real ones big: labels, addresses, conditions
// and the names of 50 images, about 10 KB.
func bigNode(i int) *corev1.Node {
	name, now := fleetNode(i), metav1.Now()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		corev1.LabelInstanceTypeStable: "m7i.4xlarge", corev1.LabelTopologyRegion: "eu-central-1",
		corev1.LabelTopologyZone: fmt.Sprintf("eu-central-1%c", 'a'+rune(i%3)), "pool": fmt.Sprintf("pool-%d", i%20), "example.org/rack": fmt.Sprintf("rack-%03d", i%200),
	}, Annotations: map[string]string{
		"node.alpha.kubernetes.io/ttl": "0", "volumes.kubernetes.io/controller-managed-attach-detach": "true",
		"csi.volume.kubernetes.io/nodeid": fmt.Sprintf(`{"ebs.csi.example.org":"i-%017x"}`, i),
	}}}
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("200Gi"),
	}
	node.Status = corev1.NodeStatus{
		Capacity: resources, Allocatable: resources,
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.1", i/250, i%250)}, {Type: corev1.NodeHostName, Address: name}},
		NodeInfo:  corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", OSImage: "Example Linux 12", KernelVersion: "6.12.0", ContainerRuntimeVersion: "containerd://2.1.0"},
	}
	for _, c := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		status := corev1.ConditionFalse
		if c == corev1.NodeReady {
			status = corev1.ConditionTrue
		}
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: c, Status: status, Reason: "KubeletHas", Message: "kubelet says so of " + string(c), LastHeartbeatTime: now, LastTransitionTime: now,
		})
	}
	for n := range 50 {
		image := fmt.Sprintf("registry.example.org/platform/team-%02d/service-with-a-long-name", n)
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			SizeBytes: int64(n+1) << 24, Names: []string{image + "@sha256:" + strings.Repeat(fmt.Sprintf("%02x", n), 32), image + ":v1.2.3"},
		})
	}
	return node
}

// makeFleetPod makes a pod on its node; those that are to be evicted run.
func (b *bench) makeFleetPod(ctx context.Context, i int) error {
	no := false
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("service-%05d", i), Labels: map[string]string{"app": "fleet", "pod-template-hash": "6d4cf56db6"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "service", UID: "8f0a7d6e-0000-4000-8000-000000000001", Controller: &[]bool{true}[0]}},
	}, Spec: corev1.PodSpec{
		NodeName: fleetNode(i % b.fleet), AutomountServiceAccountToken: &no,
		Containers: []corev1.Container{{Name: "c", Image: "registry.example.org/platform/service:v1.2.3", Env: []corev1.EnvVar{{Name: "A", Value: strings.Repeat("x", 400)}}}},
	}}
	made, err := b.admin.CoreV1().Pods(fleetNamespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil || i%b.fleet >= fleetDrains {
		return err
	}
	made.Status.Phase = corev1.PodRunning
	made.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	_, err = b.admin.CoreV1().Pods(fleetNamespace).UpdateStatus(ctx, made, metav1.UpdateOptions{})
	return err
}

// beat tells the nodes' heartbeats, spread evenly, until ctx ends.
func (b *bench) beat(ctx context.Context, beats *atomic.Int64) {
	tick := time.NewTicker(heartbeat / time.Duration(b.fleet))
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
		if _, err := b.admin.CoreV1().Nodes().Patch(ctx, fleetNode(i%b.fleet), types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err == nil {
			beats.Add(1)
		}
	}
}

// drainSome asks for some nodes, and returns when all their pods are evicted.
func (b *bench) drainSome(ctx context.Context, pods int) (int, error) {
	b.say("asking for %d nodes", fleetDrains)
	want := 0
	for i := range pods {
		if i%b.fleet < fleetDrains {
			want++
		}
	}
	err := each(ctx, fleetDrains, func(ctx context.Context, i int) error {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotations.RequestPrefix+requestor, `{"drain":{"timeout":"0s"}}`)
		_, err := b.admin.CoreV1().Nodes().Patch(ctx, fleetNode(i), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return 0, err
	}
	return want, soon(ctx, fmt.Sprintf("%d pods are evicted", want), func(ctx context.Context) (bool, error) {
		n := 0
		for i := range fleetDrains {
			list, err := b.admin.CoreV1().Pods(fleetNamespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + fleetNode(i)})
			if err != nil {
				return false, err
			}
			for _, p := range list.Items {
				if p.DeletionTimestamp != nil {
					n++
				}
			}
		}
		return n >= want, nil
	})
}
