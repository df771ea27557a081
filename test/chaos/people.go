package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// people do what users do, one thing after the other, until ctx ends. What they do
// follows from the seed; whether the API server takes it at once does not, so they
// try until it does.
type people struct {
	*world
	random *rand.Rand
	until  time.Time // of the slots that are made
	serial int
}

// deed is one thing that a person does. It may find that there is nothing to do.
type deed struct {
	weight int
	name   string
	do     func(context.Context) error
}

func (p *people) deeds() []deed {
	return []deed{
		{4, "asks for a run of asked", func(ctx context.Context) error { return p.ask(ctx, "asked") }},
		{2, "asks for a run of rollout", func(ctx context.Context) error { return p.ask(ctx, "rollout") }},
		{5, "labels orders", p.label},
		{5, "changes the watched object", p.change},
		{3, "pauses or resumes a plan", p.switchPause},
		{3, "edits steady", func(ctx context.Context) error { return p.edit(ctx, "steady", everyMinute) }},
		{2, "edits ticks", func(ctx context.Context) error { return p.edit(ctx, "ticks", p.slots()) }},
		{3, "creates or deletes newborn", p.birth},
		{2, "aborts a run", p.abort},
		{2, "resumes a suspended run", func(ctx context.Context) error { return p.answerLive(ctx, annotations.Resume) }},
		{3, "asks for a node, or releases it", p.node},
		{4, "holds what sleeps asleep or awake, or lets go of it", p.hold},
		{1, "pauses or resumes the nights", p.pauseNights},
	}
}

func (p *people) slots() string {
	now := time.Now()
	if left := p.until.Sub(now); left > 20*time.Second {
		return instants(now.Add(5*time.Second), 9*time.Second, left-15*time.Second)
	}
	return none
}

// live works until ctx ends. Approvals are given beside, so that nobody waits long.
func (p *people) live(ctx context.Context) {
	all, total := p.deeds(), 0
	for _, d := range all {
		total += d.weight
	}
	for pause(ctx, time.Duration(500+p.random.IntN(2500))*time.Millisecond) {
		roll := p.random.IntN(total)
		for _, d := range all {
			if roll -= d.weight; roll >= 0 {
				continue
			}
			p.insist(ctx, d.name, d.do)
			break
		}
	}
}

// insist tries until the API server has taken it, at most a minute.
func (p *people) insist(ctx context.Context, what string, do func(context.Context) error) {
	began := time.Now()
	for tries := 1; ctx.Err() == nil; tries++ {
		each, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := do(each)
		cancel()
		if err == nil || apierrors.IsNotFound(err) {
			p.say("person", "%s (%d tries, %s) %v", what, tries, time.Since(began).Round(time.Millisecond), err)
			return
		}
		if time.Since(began) > time.Minute {
			p.say("person", "gives up: %s: %v", what, err)
			return
		}
		pause(ctx, 300*time.Millisecond)
	}
}

func (p *people) plan(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	return p.admin.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
}

// ask sets a token, unless the last one is not handled yet.
func (p *people) ask(ctx context.Context, name string) error {
	cm, err := p.plan(ctx, name)
	if err != nil {
		return err
	}
	last := cm.Annotations[annotations.Trigger]
	if cm.Annotations[annotations.StatusObserved] == "" || last != "" && last != cm.Annotations[annotations.StatusTrigger] {
		return nil
	}
	p.serial++
	token := fmt.Sprintf("token-%d", p.serial)
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, cm.UID, annotations.Trigger, token)
	for ctx.Err() == nil { // a token that was committed, and whose answer was lost, is set again
		if err = p.mergeMap(ctx, name, patch); err == nil {
			p.tokens = append(p.tokens, string(cm.UID)+"/"+token)
			return nil
		}
		pause(ctx, 200*time.Millisecond)
	}
	return err
}

func (p *people) label(ctx context.Context) error {
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"go"}}}`, trigger)
	_, err := p.admin.AppsV1().Deployments(namespace).Patch(ctx, "orders", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "someone"})
	return err
}

func (p *people) change(ctx context.Context) error {
	p.serial++
	return p.mergeMap(ctx, "source", fmt.Sprintf(`{"data":{"v":"%d"}}`, p.serial))
}

// switchPause turns the pause of a plan.
func (p *people) switchPause(ctx context.Context) error {
	names := []string{"steady", "ticks", "labelled", "watched", "asked"}
	name := names[p.random.IntN(len(names))]
	cm, err := p.plan(ctx, name)
	if err != nil {
		return err
	}
	value := `"true"`
	if cm.Annotations[annotations.Pause] != "" {
		value = "null"
	}
	p.say("person", "sets the pause of %s to %s", name, value)
	return p.mergeMap(ctx, name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, annotations.Pause, value))
}

func (p *people) edit(ctx context.Context, name, slots string) error {
	p.edits++
	text, err := json.Marshal(p.document(name, p.edits, slots))
	if err != nil {
		return err
	}
	return p.mergeMap(ctx, name, fmt.Sprintf(`{"data":{%q:%s}}`, annotations.DataPlan, text))
}

func (p *people) birth(ctx context.Context) error {
	if _, err := p.plan(ctx, "newborn"); apierrors.IsNotFound(err) {
		return p.plant(ctx, "newborn", none)
	} else if err != nil {
		return err
	}
	return p.admin.CoreV1().ConfigMaps(namespace).Delete(ctx, "newborn", metav1.DeleteOptions{})
}

// live run of some plan, if there is one.
func (p *people) someRun(ctx context.Context) (*corev1.ConfigMap, error) {
	list, err := p.admin.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelPhase + "=Running"})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[p.random.IntN(len(list.Items))], nil
}

func (p *people) abort(ctx context.Context) error { return p.answerLive(ctx, annotations.Abort) }

func (p *people) answerLive(ctx context.Context, intent string) error {
	run, err := p.someRun(ctx)
	if err != nil || run == nil {
		return err
	}
	name := run.Labels[annotations.LabelPlan]
	p.say("person", "%s of %s: %s", strings.TrimPrefix(intent, annotations.IntentPrefix), name, run.Name)
	return p.mergeMap(ctx, name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, intent, run.Name))
}

func (p *people) node(ctx context.Context) error {
	name := fmt.Sprintf("node-%d", 2+p.random.IntN(2))
	n, err := p.admin.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	key, value := annotations.RequestPrefix+"person", `"{\"reason\":\"chaos\"}"`
	if n.Annotations[key] != "" {
		value = "null"
	}
	return p.mergeNode(ctx, name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, value))
}

// approve says yes to every step that asks, until ctx ends.
func (w *world) approve(ctx context.Context) {
	for pause(ctx, time.Second) {
		each, cancel := context.WithTimeout(ctx, 5*time.Second)
		list, err := w.admin.CoreV1().ConfigMaps(namespace).List(each, metav1.ListOptions{LabelSelector: annotations.LabelPhase + "=Running," + annotations.LabelPlan + "=asked"})
		if err == nil {
			for _, run := range list.Items {
				if strings.Contains(run.Data[annotations.DataJournal], `"may-i","type":"approval","phase":"Running"`) {
					err = w.mergeMap(each, "asked", fmt.Sprintf(`{"metadata":{"annotations":{%q:"%s/may-i"}}}`, annotations.Approve, run.Name))
					w.say("person", "approves %s: %v", run.Name, err)
				}
			}
		}
		cancel()
	}
}
