package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/chaos/check"
)

// scenarios are short stories, each about one thing that goes wrong. They are what
// shows that the checkers see: a fault that was mended, put back by a patch, is to
// be found by the story about it.
func scenarios() map[string]func(context.Context, *people) error {
	return map[string]func(context.Context, *people) error{
		"late-cordon":   lateCordon,
		"late-hold":     lateHold,
		"late-sleep":    lateSleep,
		"late-write":    lateWrite,
		"mid-step":      midStep,
		"stale-standby": staleStandby,
		"deaf-leader":   deafLeader,
		"deposed":       deposed,
		"refused":       refused,
		"torn-away":     tornAway,
	}
}

func scenarioNames() []string { return slices.Sorted(maps.Keys(scenarios())) }

// short plays one scenario and judges it.
func (w *world) short(ctx context.Context) error {
	if err := w.lay(ctx); err != nil {
		return fmt.Errorf("prepare the workload: %w", err)
	}
	if err := w.layNights(ctx); err != nil {
		return fmt.Errorf("prepare what sleeps: %w", err)
	}
	before, err := w.snapshot(ctx)
	if err != nil {
		return err
	}
	p := &people{world: w, random: rand.New(rand.NewPCG(w.seed, 1))}
	if err := scenarios()[w.scenario](ctx, p); err != nil {
		return err
	}
	w.calm()
	list, err := w.admin.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindPlan})
	if err != nil {
		return err
	}
	for _, cm := range list.Items {
		p.insist(ctx, "resumes "+cm.Name, func(ctx context.Context) error {
			return p.mergeMap(ctx, cm.Name, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, annotations.Pause))
		})
	}
	w.found(check.Leftovers(w.settle(ctx))...)
	after, err := w.snapshot(ctx)
	if err != nil {
		return err
	}
	w.found(check.Restored(before, after)...)
	return w.judge(ctx, nil, time.Time{}, time.Time{})
}

// calm ends all that breaks.
func (w *world) calm() {
	for _, r := range w.replicas {
		r.proxy.capture(nil, 0)
		r.proxy.set(func(x *weather) { *x = weather{} })
		r.proxy.thawWatches()
		r.hold(false)
	}
}

// write creates a plan from the lines of its spec, and returns when it is seen.
func (p *people) write(ctx context.Context, name, spec string) (*corev1.ConfigMap, error) {
	spec = strings.ReplaceAll(strings.Trim(spec, "\n"), "HOOK", p.hooks.URL)
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  " + strings.ReplaceAll(spec, "\n", "\n  ") + "\n"
	cm, err := p.admin.CoreV1().ConfigMaps(namespace).Create(ctx, annotations.NewPlan(namespace, name, text, ""), metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return cm, p.world.until(ctx, name+" is seen", time.Minute, func(ctx context.Context) (bool, error) {
		now, err := p.plan(ctx, name)
		if err == nil && now.Annotations[annotations.StatusPhase] == "Invalid" {
			err = fmt.Errorf("%s", now.Annotations[annotations.StatusMessage])
		}
		return err == nil && now.Annotations[annotations.StatusObserved] != "", err
	})
}

// phases waits until the runs of a plan are so many in these phases.
func (p *people) phases(ctx context.Context, name string, n int, in ...string) error {
	return p.world.until(ctx, fmt.Sprintf("%d runs of %s are %v", n, name, in), time.Minute, func(ctx context.Context) (bool, error) {
		list, err := p.admin.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelPlan + "=" + name + "," + annotations.LabelPhase + " in (" + strings.Join(in, ",") + ")"})
		return err == nil && len(list.Items) >= n, err
	})
}

// pair are the replica that leads and the one that stands by, which has read
// everything.
func (w *world) pair(ctx context.Context) (leader, heir *replica, err error) {
	if leader, err = w.leader(ctx); err != nil {
		return nil, nil, err
	}
	heir = w.other(leader)
	return leader, heir, w.until(ctx, "the standby is ready", time.Minute, func(ctx context.Context) (bool, error) {
		_, err := heir.metrics(ctx)
		return err == nil && strings.Contains(heir.current().Log(), "ttempting to acquire"), err
	})
}

const once = `
steps:
- {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: shop}, replicas: 0, restoreAfter: true}}
- {name: say, type: webhook, properties: {url: "HOOK/once"}}
`

func every(seconds int) string {
	return "description: v1\nconcurrencyPolicy: Queue\ntriggers: {schedules: " + instants(time.Now(), time.Duration(seconds)*time.Second, 90*time.Second) + "}\nsteps:\n- {name: say, type: webhook, properties: {url: HOOK/tick}}\n"
}

// staleStandby: the standby's watches fall silent in the moment in which the leader
// scales something down. The leader ends the run, a plan is paused, another edited;
// then the leader dies, and the standby leads on what it knows.
func staleStandby(ctx context.Context, p *people) error {
	leader, heir, err := p.pair(ctx)
	if err != nil {
		return err
	}
	for name, spec := range map[string]string{"once": once, "paused": every(3), "edited": every(3), "deleted": every(3)} {
		if _, err := p.write(ctx, name, spec); err != nil {
			return err
		}
	}
	silent := false
	leader.proxy.capture(func(req *http.Request) bool {
		if !silent && req.Method == http.MethodPatch && strings.HasSuffix(req.URL.Path, "/scale") {
			silent = true
			pause(ctx, 500*time.Millisecond) // until the standby has heard of the journal
			heir.proxy.stallOpen()
		}
		return false
	}, 0)
	p.insist(ctx, "asks for the run", func(ctx context.Context) error { return p.ask(ctx, "once") })
	if err := p.phases(ctx, "once", 1, "Succeeded"); err != nil {
		return err
	}
	p.insist(ctx, "pauses", func(ctx context.Context) error {
		return p.mergeMap(ctx, "paused", fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, annotations.Pause))
	})
	p.insist(ctx, "edits", func(ctx context.Context) error {
		return p.mergeMap(ctx, "edited", fmt.Sprintf(`{"data":{%q:%q}}`, annotations.DataPlan, "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  description: v2\n  steps:\n  - {name: hold, type: suspend, properties: {duration: 1s}}\n"))
	})
	p.insist(ctx, "deletes", func(ctx context.Context) error {
		return p.admin.CoreV1().ConfigMaps(namespace).Delete(ctx, "deleted", metav1.DeleteOptions{})
	})
	leader.hold(true)
	leader.current().Kill()
	pause(ctx, 2*time.Second)
	if _, err := p.leader(ctx); err != nil {
		return err
	}
	pause(ctx, 10*time.Second)
	return nil
}

// midStep: the leader dies with a step's request on its way, which never arrives.
// The next one does the step, and says so in the journal before.
func midStep(ctx context.Context, p *people) error {
	leader, _, err := p.pair(ctx)
	if err != nil {
		return err
	}
	if _, err := p.write(ctx, "once", once); err != nil {
		return err
	}
	gone := make(chan struct{})
	var first sync.Once
	leader.proxy.capture(func(req *http.Request) bool {
		scales := req.Method == http.MethodPatch && strings.HasSuffix(req.URL.Path, "/scale")
		if scales {
			first.Do(func() { close(gone) })
		}
		return scales
	}, time.Hour) // long after all is over
	p.insist(ctx, "asks for the run", func(ctx context.Context) error { return p.ask(ctx, "once") })
	select {
	case <-gone:
	case <-time.After(time.Minute):
		return errors.New("the step does not begin within a minute")
	}
	leader.hold(true)
	leader.current().Kill()
	return p.phases(ctx, "once", 1, "Succeeded")
}

// lateWrite: a step's request is on its way when the run is aborted, and arrives
// later.
func lateWrite(ctx context.Context, p *people) error {
	return p.abortsBefore(ctx, once, "/scale")
}

// shutNode cordons a node, and uncordons it at the end.
const shutNode = `
steps:
- {name: shut, type: cordon, properties: {node: node-2}}
finally:
- {name: open, type: uncordon, properties: {node: node-2}}
`

// lateCordon: a cordon is on its way when the run is aborted, and arrives after the uncordon has looked.
func lateCordon(ctx context.Context, p *people) error {
	return p.abortsBefore(ctx, shutNode, "/nodes/node-2")
}

// lateHold: a step's hold of a HibernatePlan is on its way when the run is aborted, and arrives later.
func lateHold(ctx context.Context, p *people) error {
	if err := p.plantDays(ctx); err != nil {
		return err
	}
	return p.abortsBefore(ctx, "steps:\n- {name: sleep, type: hibernate, properties: {plan: nights}}\n", "/configmaps/"+nights)
}

// lateness is how much later a write arrives that is on its way.
const lateness = 15 * time.Second

// abortsBefore has a plan run and aborts it before the requests arrive by which its step changes what a path
// ends with.
func (p *people) abortsBefore(ctx context.Context, spec, path string) error {
	leader, _, err := p.pair(ctx)
	if err != nil {
		return err
	}
	if _, err := p.write(ctx, "once", spec); err != nil {
		return err
	}
	caught := leader.proxy.delayPatches(path)
	p.insist(ctx, "asks for the run", func(ctx context.Context) error { return p.ask(ctx, "once") })
	if err := p.world.until(ctx, "the step's request is on its way", time.Minute, func(context.Context) (bool, error) { return caught.Load() > 0, nil }); err != nil {
		return err
	}
	p.insist(ctx, "aborts the run", p.abort)
	leader.proxy.capture(nil, lateness)
	pause(ctx, lateness+5*time.Second)
	return nil
}

// delayPatches has the PATCH requests of plans' accounts arrive late whose path ends so, and counts them.
func (p *proxy) delayPatches(path string) (caught *atomic.Int64) {
	caught = &atomic.Int64{}
	p.capture(func(req *http.Request) bool {
		is := req.Method == http.MethodPatch && req.Header.Get("Impersonate-User") != "" && strings.HasSuffix(req.URL.Path, path)
		if is {
			caught.Add(1)
		}
		return is
	}, lateness)
	return caught
}

// lateSleep: a request that puts something to sleep is on its way when somebody wakes it, and arrives later.
func lateSleep(ctx context.Context, p *people) error {
	leader, _, err := p.pair(ctx)
	if err != nil {
		return err
	}
	if err := p.plantDays(ctx); err != nil {
		return err
	}
	caught := leader.proxy.delayPatches("/deployments/night-1/scale")
	holds := func(state string) {
		p.insist(ctx, "holds it "+state, func(ctx context.Context) error {
			return p.annotateNights(ctx, map[string]any{annotations.HoldState: state, annotations.HoldUntil: time.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339)})
		})
	}
	holds("asleep")
	if err := p.world.until(ctx, "the request is on its way", time.Minute, func(context.Context) (bool, error) { return caught.Load() > 0, nil }); err != nil {
		return err
	}
	holds("awake")
	leader.proxy.capture(nil, lateness)
	pause(ctx, lateness+5*time.Second)
	p.insist(ctx, "ends the hold", func(ctx context.Context) error {
		return p.annotateNights(ctx, map[string]any{annotations.HoldState: nil, annotations.HoldUntil: nil})
	})
	return nil
}

// deafLeader: the leader's own watches fall silent, and a plan is paused.
func deafLeader(ctx context.Context, p *people) error {
	leader, _, err := p.pair(ctx)
	if err != nil {
		return err
	}
	if _, err := p.write(ctx, "paused", every(3)); err != nil {
		return err
	}
	if err := p.phases(ctx, "paused", 1, "Succeeded"); err != nil {
		return err
	}
	leader.proxy.stallOpen()
	p.insist(ctx, "pauses", func(ctx context.Context) error {
		return p.mergeMap(ctx, "paused", fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, annotations.Pause))
	})
	pause(ctx, 30*time.Second)
	return nil
}

// deposed: the leader stands still for longer than its lease while webhooks wait for
// an answer. The next leader sends them again, and the runs end. Then the first one
// wakes up, reads that it is to call another address, and must not.
func deposed(ctx context.Context, p *people) error {
	const plans = 12
	leader, _, err := p.pair(ctx)
	if err != nil {
		return err
	}
	for i := range plans {
		name := fmt.Sprintf("held-%d", i)
		if _, err := p.write(ctx, name, "steps:\n- {name: say, type: webhook, timeout: 2m, retry: {limit: 5, backoff: 1s}, properties: {url: \"HOOK/held\", method: GET, timeout: 1m}}\n"); err != nil {
			return err
		}
		p.insist(ctx, "asks for the run", func(ctx context.Context) error { return p.ask(ctx, name) })
	}
	if err := p.world.until(ctx, "all webhooks have come", time.Minute, func(context.Context) (bool, error) { return len(p.hooks.deliveries()) >= plans, nil }); err != nil {
		return err
	}
	// With the renewal under way it has something to wait for when it wakes, beside
	// the answers: which it reads first is chance.
	leader.proxy.set(func(x *weather) { x.holdLease = true })
	if err := p.world.until(ctx, "the renewal of the lease hangs", time.Minute, func(context.Context) (bool, error) { return leader.proxy.holdsLease(), nil }); err != nil {
		return err
	}
	if err := leader.current().Freeze(); err != nil {
		return err
	}
	p.hooks.release()
	err = p.world.until(ctx, "the standby leads", time.Minute, func(ctx context.Context) (bool, error) { return p.other(leader).leads(ctx), nil })
	for i := range plans {
		if err == nil {
			err = p.phases(ctx, fmt.Sprintf("held-%d", i), 1, "Succeeded")
		}
	}
	if thawed := leader.current().Thaw(); thawed != nil || err != nil {
		return errors.Join(err, thawed)
	}
	pause(ctx, 8*time.Second)
	return nil
}

// refused: for some seconds requests are answered with 403, as by an API server that
// has read no roles yet, or some of them: amid waits, before a step, amid a restore.
func refused(ctx context.Context, p *people) error {
	leader, _, err := p.pair(ctx)
	if err != nil {
		return err
	}
	plans := map[string]string{
		"waits":    "steps:\n- {name: back, type: wait, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: source}, until: \"object.data.v == 'go'\"}}\n",
		"restores": once + "- {name: hold, type: suspend}\n",
		"scales":   "steps:\n- {name: hold, type: suspend}\n- {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0, restoreAfter: true}}\n",
	}
	for name, spec := range plans {
		if _, err := p.write(ctx, name, spec); err != nil {
			return err
		}
		p.insist(ctx, "asks for the run", func(ctx context.Context) error { return p.ask(ctx, name) })
		if err := p.phases(ctx, name, 1, "Running"); err != nil {
			return err
		}
	}
	pause(ctx, 2*time.Second)
	leader.proxy.set(func(x *weather) { x.refuse = runners })
	for _, name := range []string{"restores", "scales"} {
		p.insist(ctx, "resumes", func(ctx context.Context) error {
			list, err := p.admin.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=run," + annotations.LabelPlan + "=" + name})
			if err != nil {
				return err
			}
			return p.mergeMap(ctx, name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotations.Resume, list.Items[0].Name))
		})
	}
	pause(ctx, 6*time.Second)
	leader.proxy.set(func(x *weather) { x.refuse = everybody })
	leader.proxy.CloseClientConnections() // watches are asked for anew, and refused
	pause(ctx, 6*time.Second)
	leader.proxy.set(func(x *weather) { x.refuse = nobody })
	pause(ctx, 4*time.Second)
	return p.mergeMap(ctx, "source", `{"data":{"v":"go"}}`)
}

// tornAway: both agents are down, and somebody deletes a run and takes its finalizer
// off. What it was for has begun, and does not begin again.
func tornAway(ctx context.Context, p *people) error {
	leader, heir, err := p.pair(ctx)
	if err != nil {
		return err
	}
	if _, err := p.write(ctx, "once", once+"- {name: hold, type: suspend, properties: {duration: 20s}}\n"); err != nil {
		return err
	}
	p.insist(ctx, "asks for the run", func(ctx context.Context) error { return p.ask(ctx, "once") })
	if err := p.phases(ctx, "once", 1, "Running"); err != nil {
		return err
	}
	if err := p.world.until(ctx, "the webhook comes", time.Minute, func(context.Context) (bool, error) { return len(p.hooks.deliveries()) > 0, nil }); err != nil {
		return err
	}
	for _, r := range []*replica{leader, heir} {
		r.hold(true)
		r.current().Kill()
	}
	list, err := p.admin.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=run"})
	if err != nil || len(list.Items) != 1 {
		return fmt.Errorf("want one run: %w", err)
	}
	maps, name := p.admin.CoreV1().ConfigMaps(namespace), list.Items[0].Name
	if err := maps.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if _, err := maps.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	// What the run had scaled nobody can put back but a person: its record is gone.
	if _, err := p.admin.AppsV1().Deployments(namespace).Patch(ctx, "shop", types.MergePatchType, []byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	leader.hold(false)
	heir.hold(false)
	pause(ctx, 25*time.Second)
	return nil
}
