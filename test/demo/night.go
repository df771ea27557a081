package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

const (
	sleeperName = "stg-sleeps"
	night       = 2 * time.Minute // how long the shortened night lasts
)

// openStaging brings an application that runs, and the plan that has it sleep.
func (d *demo) openStaging(ctx context.Context) error {
	d.screen.chapter("A staging environment and a plan for its nights, in namespace %s", d.shopNS)
	if err := d.startOrders(ctx); err != nil {
		return err
	}
	if err := d.applyNight(ctx); err != nil {
		return err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	d.stopped = stop
	if err := d.watch(watching); err != nil {
		return err
	}
	if err := d.watchSleeper(watching); err != nil {
		return err
	}
	go d.watchCloud(watching)
	return nil
}

// applyNight applies the example as it is, but for its hours: they begin at the next
// full minute in Jakarta that leaves time to look, on every day of the week.
func (d *demo) applyNight(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(d.root, "examples", "staging-account-sleeps.yaml"))
	if err != nil {
		return err
	}
	jakarta, err := time.LoadLocation("Asia/Jakarta")
	if err != nil {
		return err
	}
	d.sleeps = time.Now().Add(10 * time.Second).Truncate(time.Minute).Add(time.Minute).In(jakarta)
	d.wakes = d.sleeps.Add(night)
	hours := fmt.Sprintf("offHours: [{start: %q, end: %q}]\n", d.sleeps.Format("15:04"), d.wakes.Format("15:04"))
	whole := regexp.MustCompile(`offHours:\n( +- \{start: .*\n)+`)
	if !whole.Match(text) {
		return fmt.Errorf("examples/staging-account-sleeps.yaml has other hours than the demo looks for: it cannot shorten them")
	}
	path := filepath.Join(d.dir, "staging-account-sleeps.yaml")
	if err := os.WriteFile(path, whole.ReplaceAllLiteral(text, []byte(hours)), 0o600); err != nil {
		return err
	}
	if out, err := d.kubectl(ctx, "apply", "-n", d.shopNS, "-f", path); err != nil {
		return fmt.Errorf("kubectl apply -f examples/staging-account-sleeps.yaml: %w\n%s", err, out)
	}
	d.screen.line("kubectl apply -f examples/staging-account-sleeps.yaml   (its 20:00 is %s here, its 06:00 is %s)", d.sleeps.Format("15:04"), d.wakes.Format("15:04 MST"))
	if err := d.phase(ctx, 30*time.Second, hibernate.Active); err != nil {
		return err
	}
	return d.say(ctx, "maint", "next", sleeperName)
}

// phase waits for a phase of the plan.
func (d *demo) phase(ctx context.Context, limit time.Duration, want hibernate.Phase) error {
	return until(ctx, limit, fmt.Sprintf("%s is %s", sleeperName, want), func() (bool, string) {
		cm, err := d.kube.CoreV1().ConfigMaps(d.shopNS).Get(ctx, sleeperName, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		is := cm.Annotations[annotations.StatusPhase]
		return is == string(want) && cm.Annotations[annotations.StatusObserved] == annotations.Observed(cm), fmt.Sprintf("it is %q: %s", is, cm.Annotations[annotations.StatusMessage])
	})
}

// evening waits for the beginning of the night, and sees that what is selected sleeps,
// and nothing else.
func (d *demo) evening(ctx context.Context) error {
	d.screen.chapter("Evening: at %s the application is put to sleep, then the database and the machines", d.sleeps.Format("15:04"))
	d.screen.clock()
	if err := d.phase(ctx, time.Until(d.sleeps)+time.Minute, hibernate.Hibernated); err != nil {
		return err
	}
	if late := time.Until(d.sleeps); late > 0 {
		return fmt.Errorf("it sleeps %s before its time", late)
	}
	if err := d.expect(ctx, 0, map[string]string{"worker-1": "stopped", "worker-2": "stopped", "stg-orders": "stopped", "prod-1": "running", "prod-orders": "available"}); err != nil {
		return err
	}
	taken, err := d.cloud.snapshots(ctx, "stg-orders")
	if err != nil {
		return err
	}
	if taken != 1 {
		return fmt.Errorf("the database was stopped with %d snapshots, not with one", taken)
	}
	d.screen.checked("all of the staging environment sleeps, its database with a snapshot; production runs")
	return d.atNight(ctx)
}

// atNight shows what a person sees meanwhile.
func (d *demo) atNight(ctx context.Context) error {
	for _, args := range [][]string{{"status"}, {"why", sleeperName}, {"restore", "list"}} {
		if err := d.say(ctx, append([]string{"maint"}, args...)...); err != nil {
			return err
		}
		d.screen.breathe(ctx)
	}
	return nil
}

// morning waits for the end of the night: everything is as it was in the evening.
func (d *demo) morning(ctx context.Context) error {
	d.screen.chapter("Morning: at %s the database and the machines come first, then the application", d.wakes.Format("15:04"))
	if err := d.phase(ctx, time.Until(d.wakes)+time.Minute, hibernate.Active); err != nil {
		return err
	}
	if late := time.Until(d.wakes); late > 0 {
		return fmt.Errorf("it woke %s before its time", late)
	}
	if err := d.expect(ctx, replicas, map[string]string{"worker-1": "running", "worker-2": "running", "stg-orders": "available", "prod-1": "running", "prod-orders": "available"}); err != nil {
		return err
	}
	d.screen.checked(fmt.Sprintf("deployment/orders has its %d replicas, the database is available, the machines run", replicas))
	for _, args := range [][]string{{"history", sleeperName}, {"restore", "list"}} {
		if err := d.say(ctx, append([]string{"maint"}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// expect looks at the things themselves, not at what the plan says of them.
func (d *demo) expect(ctx context.Context, wanted int32, cloud map[string]string) error {
	o, err := d.orders(ctx)
	if err != nil {
		return err
	}
	if *o.Spec.Replicas != wanted {
		return fmt.Errorf("deployment/orders has %d replicas, not %d", *o.Spec.Replicas, wanted)
	}
	is, err := d.cloud.states(ctx)
	if err != nil {
		return err
	}
	for name, state := range cloud {
		if is[name] != state {
			return fmt.Errorf("%s is %s, not %s", name, is[name], state)
		}
	}
	return nil
}

// watchSleeper tells the plan's progress, target by target.
func (d *demo) watchSleeper(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(d.kube, 0, informers.WithNamespace(d.shopNS), informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = annotations.LabelKind + "=" + annotations.KindHibernatePlan
	}))
	informer := factory.Core().V1().ConfigMaps().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(was, is any) { d.sawSleeper(was.(*corev1.ConfigMap), is.(*corev1.ConfigMap)) },
	})
	if err != nil {
		return err
	}
	go informer.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("the watch of the plan did not begin")
	}
	return nil
}

func (d *demo) sawSleeper(was, is *corev1.ConfigMap) {
	before := map[string]hibernate.State{}
	for _, t := range annotations.ReadTargets(was.Annotations[annotations.StatusTargets]) {
		before[t.Target] = t.State
	}
	for _, t := range annotations.ReadTargets(is.Annotations[annotations.StatusTargets]) {
		if before[t.Target] != t.State {
			d.screen.saw("target", "%s", strings.TrimRight(fmt.Sprintf("%s is %s  %s", t.Target, t.State, t.Message), " "))
		}
	}
	if phase := is.Annotations[annotations.StatusPhase]; phase != was.Annotations[annotations.StatusPhase] {
		d.screen.saw("plan", "%s is %s", is.Name, d.screen.paint(bold, phase))
	}
}
