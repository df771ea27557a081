package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

const (
	planName = "orders-weekly"
	workload = "orders"
	replicas = 3

	// As examples/orders-weekly.yaml spells them.
	triggerLabel = "maintenance.company.org/database-upgrade"
	pausedLabel  = "maintenance.company.org/paused"
	exampleHook  = "https://tickets.example.org/maintenance"
)

// deployment is the application that the plan maintains.
const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: orders}
spec:
  replicas: 3
  selector: {matchLabels: {app: orders}}
  template:
    metadata: {labels: {app: orders}}
    spec:
      terminationGracePeriodSeconds: 1
      securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: orders
        image: IMAGE
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`

// openShop brings an application that runs, somebody who is told by webhook,
// and the plan.
func (d *demo) openShop(ctx context.Context) error {
	d.screen.chapter("An application and a plan for it, in namespace %s", d.shopNS)
	if err := d.openReceiver(); err != nil {
		return err
	}
	if err := d.startOrders(ctx); err != nil {
		return err
	}
	if err := d.applyExample(ctx); err != nil {
		return err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	d.stopped = stop
	return d.watch(watching)
}

// openReceiver starts the ticket system: it is told when maintenance begins and
// ends, and can be made to refuse.
func (d *demo) openReceiver() (err error) {
	d.receiver, err = harness.NewReceiver(d.answer)
	if err != nil {
		return err
	}
	d.receiver.Heard(func(h harness.Delivery) {
		d.screen.saw("webhook", "POST %s ← %d  (Idempotency-Key %s, attempt %s)", h.Path, d.answer(h), h.Key, h.Attempt)
	})
	d.screen.line("a ticket system listens on %s", d.receiver.URL)
	return nil
}

func (d *demo) answer(h harness.Delivery) int {
	if h.Path == "/end" && d.refuse.Load() {
		return 400
	}
	return 200
}

func (d *demo) startOrders(ctx context.Context) error {
	if d.own != nil {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.shopNS}}
		if _, err := d.kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	text := strings.ReplaceAll(deployment, "IMAGE", d.image)
	if err := harness.Apply(ctx, d.admin, d.shopNS, []byte(text), nil); err != nil {
		return err
	}
	err := until(ctx, time.Minute, "all pods of deployment/orders are Ready", func() (bool, string) {
		o, err := d.orders(ctx)
		if err != nil {
			return false, err.Error()
		}
		return o.Status.ReadyReplicas == replicas && o.Status.ObservedGeneration == o.Generation, fmt.Sprintf("%d of %d are", o.Status.ReadyReplicas, replicas)
	})
	if err != nil {
		return err
	}
	d.screen.checked(fmt.Sprintf("deployment/orders: %d pods are Ready", replicas))
	return nil
}

func (d *demo) orders(ctx context.Context) (*appsv1.Deployment, error) {
	return d.kube.AppsV1().Deployments(d.shopNS).Get(ctx, workload, metav1.GetOptions{})
}

// pods counts those of the application, those on their way out included.
func (d *demo) pods(ctx context.Context) (int, error) {
	list, err := d.kube.CoreV1().Pods(d.shopNS).List(ctx, metav1.ListOptions{LabelSelector: "app=" + workload})
	if err != nil {
		return 0, err
	}
	return len(list.Items), nil
}

// applyExample applies the example as it is, but for where the webhooks go.
func (d *demo) applyExample(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(d.root, "examples", "orders-weekly.yaml"))
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), exampleHook) {
		return fmt.Errorf("examples/orders-weekly.yaml has no parameter with the default %s any more: the demo cannot point it at its receiver", exampleHook)
	}
	patched := strings.ReplaceAll(string(text), exampleHook, d.receiver.URL)
	path := filepath.Join(d.dir, "orders-weekly.yaml")
	if err := os.WriteFile(path, []byte(patched), 0o600); err != nil {
		return err
	}
	if out, err := d.kubectl(ctx, "apply", "-n", d.shopNS, "-f", path); err != nil {
		return fmt.Errorf("kubectl apply -f examples/orders-weekly.yaml: %w\n%s", err, out)
	}
	d.screen.line("kubectl apply -f examples/orders-weekly.yaml   (its webhooks pointed at that ticket system)")
	err = until(ctx, 30*time.Second, "the agent takes up the plan", func() (bool, string) {
		cm, err := d.kube.CoreV1().ConfigMaps(d.shopNS).Get(ctx, planName, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		phase := cm.Annotations[annotations.StatusPhase]
		return cm.Annotations[annotations.StatusObserved] == annotations.Observed(cm) && phase == "Idle", fmt.Sprintf("its phase is %q %s", phase, cm.Annotations[annotations.StatusMessage])
	})
	if err != nil {
		return err
	}
	return d.say(ctx, "maint", "status")
}

// asBefore checks that nothing of the maintenance is left on the application.
func (d *demo) asBefore(ctx context.Context) error {
	err := until(ctx, 30*time.Second, "deployment/orders is as before", func() (bool, string) {
		o, err := d.orders(ctx)
		if err != nil {
			return false, err.Error()
		}
		pods, err := d.pods(ctx)
		if err != nil {
			return false, err.Error()
		}
		ok := *o.Spec.Replicas == replicas && o.Status.ReadyReplicas == replicas && pods == replicas && len(o.Labels) == 0
		return ok, fmt.Sprintf("replicas %d, Ready %d, pods %d, labels %v", *o.Spec.Replicas, o.Status.ReadyReplicas, pods, o.Labels)
	})
	if err != nil {
		return err
	}
	d.screen.checked(fmt.Sprintf("deployment/orders is as before: %d replicas, all Ready, no label of ours or of the trigger", replicas))
	return nil
}
