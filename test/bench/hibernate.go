package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// What sleeps, where, and by which plan.
const (
	sleepNamespace = "bench-sleep"
	sleepPlan      = "nights"
	sleepNodes     = 10
	sleepLimit     = 15 * time.Minute
	awakeOfMany    = 4 // of so many, one is awake when a large namespace falls asleep
)

// crowd are Deployments of one namespace, of which those that are awake have one pod each.
type crowd struct {
	all, awake int
	verbs      []string // that the plan has on them
}

// replicas are those of one of them: the awake ones lie evenly between the others.
func (c crowd) replicas(i int) int32 {
	if i*c.awake/c.all == (i+1)*c.awake/c.all {
		return 0
	}
	return 1
}

// sleeping measures how long so many workloads take to be asleep, and awake again, with a
// HibernatePlan and with a loop of kubectl scale, and what each asks of the API server.
func (b *bench) sleeping(ctx context.Context, out io.Writer) (err error) {
	if err := b.open(ctx, cluster.Options{ControllerManager: true, Scheduler: true, Kwok: true, Nodes: sleepNodes}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	b.printHead(out, fmt.Sprintf("%d Deployments of one pod", b.sleepers))
	all := crowd{b.sleepers, b.sleepers, []string{"get", "list"}}
	if err := b.makeSleepers(ctx, all); err != nil {
		return err
	}
	var samples []sample
	for range b.rounds {
		s, err := b.sleepRound(ctx, all)
		if err != nil {
			return err
		}
		samples = append(samples, s)
	}
	table(out, fmt.Sprintf("%d Deployments asleep and awake again", b.sleepers), samples, []figure{
		{"asleep", "s", "from the hold until all sleep"},
		{"awake", "s", "from there until all are ready again"},
		{"requests", "", "requests of the agent for each, in all"},
		{"cpu", "s", "CPU time of the agent, in all"},
	})
	s, err := b.kubectlRound(ctx)
	if err != nil {
		return err
	}
	table(out, "the same with kubectl scale, one after the other", []sample{s}, []figure{
		{"asleep", "s", "until the last command has ended, and no pod is left"},
		{"awake", "s", "until the last command has ended, and all are ready again"},
	})
	return nil
}

// sleepingMany has a namespace of many workloads sleep, most of which are at zero already, and
// weighs the agent.
func (b *bench) sleepingMany(ctx context.Context, out io.Writer) (err error) {
	if err := b.open(ctx, cluster.Options{ControllerManager: true, Scheduler: true, Kwok: true, Nodes: sleepNodes * 5}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	many := crowd{b.manySleepers, b.manySleepers / awakeOfMany, []string{"get", "list", "watch"}}
	b.printHead(out, fmt.Sprintf("%d Deployments, %d of them with one pod", many.all, many.awake))
	if err := b.makeSleepers(ctx, many); err != nil {
		return err
	}
	s, err := b.sleepRound(ctx, many)
	if err != nil {
		return err
	}
	table(out, fmt.Sprintf("%d Deployments, %d of which fall asleep and wake", many.all, many.awake), []sample{s}, []figure{
		{"asleep", "s", "from the hold until all sleep"},
		{"awake", "s", "from there until all are ready again"},
		{"requests", "", "requests of the agent for each Deployment, in all"},
		{"cpu", "s", "CPU time of the agent, in all"},
		{"before-rss", "MiB", "resident (VmRSS), before it falls asleep"},
		{"asleep-rss", "MiB", "resident (VmRSS), asleep"},
		{"asleep-peak", "MiB", "highest resident (VmHWM) until then"},
		{"awake-rss", "MiB", "resident (VmRSS), awake again"},
		{"awake-peak", "MiB", "highest resident (VmHWM) in all"},
	})
	return nil
}

func sleeper(i int) string { return fmt.Sprintf("service-%05d", i) }

// makeSleepers makes what sleeps, and the account that may have it do so.
func (b *bench) makeSleepers(ctx context.Context, c crowd) error {
	b.say("sleep: making %d Deployments", c.all)
	if _, err := b.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: sleepNamespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	err := harness.Runner(
		ctx, b.admin, sleepNamespace,
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: c.verbs},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"get", "patch"}},
	)
	if err != nil {
		return err
	}
	err = each(ctx, c.all, func(ctx context.Context, i int) error {
		labels := map[string]string{"app": sleeper(i)}
		_, err := b.admin.AppsV1().Deployments(sleepNamespace).Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: sleeper(i)},
			Spec: appsv1.DeploymentSpec{Replicas: new(c.replicas(i)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}}},
			}},
		}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	text := "apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec:\n  schedule: {offHours: [{start: \"00:00\", end: \"00:01\", daysOfWeek: [SUN]}]}\n  targets: [{name: all, type: workload, parameters: {kinds: [Deployment]}}]\n"
	if _, err := b.admin.CoreV1().ConfigMaps(sleepNamespace).Create(ctx, annotations.NewHibernatePlan(sleepNamespace, sleepPlan, text, ""), metav1.CreateOptions{}); err != nil {
		return err
	}
	return b.podsAre(ctx, c.awake)
}

// podsAre waits until so many pods are there, and ready.
func (b *bench) podsAre(ctx context.Context, n int) error {
	return b.poll(ctx, fmt.Sprintf("%d pods are ready", n), func() (bool, error) {
		list, err := b.admin.CoreV1().Pods(sleepNamespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		ready := 0
		for _, p := range list.Items {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil {
					ready++
				}
			}
		}
		return len(list.Items) == n && ready == n, nil
	})
}

func (b *bench) poll(ctx context.Context, what string, holds func() (bool, error)) error {
	for end := time.Now().Add(sleepLimit); ; {
		ok, err := holds()
		if err != nil || ok {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("not within %s: %s", sleepLimit, what)
		}
		if err := until(ctx, time.Now().Add(200*time.Millisecond)); err != nil {
			return err
		}
	}
}

// sleepRound has an agent put all to sleep, and wake it.
func (b *bench) sleepRound(ctx context.Context, c crowd) (_ sample, err error) {
	a, err := b.startAgent(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Stop()) }()
	before, err := a.quiet(ctx)
	if err != nil {
		return nil, err
	}
	s := sample{}
	if err := weigh(ctx, a, s, "before-"); err != nil {
		return nil, err
	}
	for _, half := range []struct {
		hold, key string
		phase     hibernate.Phase
		pods      int
	}{{"asleep", "asleep", hibernate.Hibernated, 0}, {"awake", "awake", hibernate.Active, c.awake}} {
		began := time.Now()
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotations.HoldState, half.hold)
		if _, err := b.admin.CoreV1().ConfigMaps(sleepNamespace).Patch(ctx, sleepPlan, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return nil, err
		}
		err := b.poll(ctx, fmt.Sprintf("the plan is %s", half.phase), func() (bool, error) {
			cm, err := b.admin.CoreV1().ConfigMaps(sleepNamespace).Get(ctx, sleepPlan, metav1.GetOptions{})
			return err == nil && cm.Annotations[annotations.StatusPhase] == string(half.phase), err
		})
		if err != nil {
			return nil, b.explain(ctx, a, err)
		}
		s[half.key] = time.Since(began).Seconds()
		if err := b.podsAre(ctx, half.pods); err != nil {
			return nil, err
		}
		if err := weigh(ctx, a, s, half.key+"-"); err != nil {
			return nil, err
		}
	}
	now, err := a.effort(ctx)
	if err != nil {
		return nil, err
	}
	s["requests"], s["cpu"] = (now.total()-before.total())/float64(c.all), now.cpu-before.cpu
	b.say("sleep: asleep after %.1f s, awake after %.1f s, %.2f requests for each; load average %s", s["asleep"], s["awake"], s["requests"], loadAverage())
	return s, nil
}

// kubectlRound does the same as people do it.
func (b *bench) kubectlRound(ctx context.Context) (sample, error) {
	root, err := harness.Root()
	if err != nil {
		return nil, err
	}
	config, err := b.cluster.KubeconfigFile("kubectl", b.cluster.AdminConfig())
	if err != nil {
		return nil, err
	}
	s := sample{}
	for _, half := range []struct {
		key            string
		replicas, pods int
	}{{"asleep", 0, 0}, {"awake", 1, b.sleepers}} {
		began := time.Now()
		for i := range b.sleepers {
			cmd := exec.CommandContext(ctx, filepath.Join(root, "bin", "kubectl"), "--kubeconfig", config, "-n", sleepNamespace, "scale", "deployment/"+sleeper(i), fmt.Sprintf("--replicas=%d", half.replicas)) //nolint:gosec // our own kubectl
			if said, err := cmd.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("kubectl scale: %w: %s", err, said)
			}
		}
		if err := b.podsAre(ctx, half.pods); err != nil {
			return nil, err
		}
		s[half.key] = time.Since(began).Seconds()
	}
	b.say("sleep: with kubectl asleep after %.1f s, awake after %.1f s; load average %s", s["asleep"], s["awake"], loadAverage())
	return s, nil
}
