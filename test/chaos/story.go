package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/kubectl-maint/kubectl-maint/test/chaos/check"
)

// story is a whole run: the ground, work and faults, calm, and the verdict.
func (w *world) story(ctx context.Context) error {
	if w.scenario != "" {
		return w.short(ctx)
	}
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
	p := &people{world: w, random: rand.New(rand.NewPCG(w.seed, 1)), until: time.Now().Add(w.length)}
	if err := p.begin(ctx); err != nil {
		return fmt.Errorf("create the plans: %w", err)
	}
	leader, err := w.leader(ctx)
	if err != nil {
		return err
	}
	took, err := leader.size(ctx, 5)
	if err != nil {
		return err
	}
	w.say("chaos", "the leader takes %+v", took)
	w.turmoil(ctx, p)
	return w.verdict(ctx, p, before, took)
}

// begin creates the plans, and returns when the agent has seen each.
func (p *people) begin(ctx context.Context) error {
	for name, slots := range map[string]string{"steady": everyMinute, "ticks": p.slots(), "labelled": none, "watched": none, "asked": none, "rollout": none} {
		if err := p.plant(ctx, name, slots); err != nil {
			return err
		}
	}
	if err := p.plantNights(ctx); err != nil {
		return err
	}
	return p.world.until(ctx, "the plans are seen", time.Minute, func(ctx context.Context) (bool, error) {
		for _, name := range []string{"steady", "ticks", "labelled", "watched", "asked", "rollout"} {
			cm, err := p.plan(ctx, name)
			if err != nil || cm.Annotations["status.maint.dev/phase"] == "" {
				return false, err
			}
			if phase := cm.Annotations["status.maint.dev/phase"]; phase == "Invalid" {
				return false, fmt.Errorf("plan %s: %s", name, cm.Annotations["status.maint.dev/message"])
			}
		}
		return true, nil
	})
}

// turmoil lets people and faults loose for the length of the run. It waits for the
// writes that are late then: an agent writes again what one of them overwrote, and
// that is not quiet.
func (w *world) turmoil(ctx context.Context, p *people) {
	loose, end := context.WithTimeout(ctx, w.length)
	defer end()
	var all sync.WaitGroup
	all.Go(func() { p.live(loose) })
	all.Go(func() { w.approve(loose) })
	one := &faults{world: w, random: rand.New(rand.NewPCG(w.seed, 2))}
	two := &faults{world: w, random: rand.New(rand.NewPCG(w.seed, 3))}
	all.Go(func() { one.run(loose, "process", one.processes(), 8*time.Second) })
	all.Go(func() { two.run(loose, "network", two.network(), 6*time.Second) })
	all.Wait()
	w.calm()
	for _, r := range w.replicas {
		r.proxy.onTheWay.Wait()
	}
	w.say("chaos", "nothing breaks any more")
}

// verdict lets everything end and hands what was written down to the checkers.
func (w *world) verdict(ctx context.Context, p *people, before map[string]string, took check.Process) error {
	approving, stop := context.WithCancel(ctx)
	defer stop()
	go w.approve(approving)
	p.wind(ctx)
	left := w.settle(ctx)
	if len(left) == 0 {
		left = p.reopen(ctx)
	}
	w.found(check.Leftovers(left)...)
	if len(left) > 0 { // nothing is quiet, and nothing restored, while something goes on
		return w.judge(ctx, nil, time.Time{}, time.Time{})
	}
	leader, err := w.leader(ctx)
	if err != nil {
		return err
	}
	pause(ctx, 5*time.Second) // for statuses and Events that follow an end
	from := time.Now()
	w.say("chaos", "all is over; quiet for %s", w.quiet)
	pause(ctx, w.quiet)
	to := time.Now()
	takes, err := leader.size(ctx, 10)
	if err != nil {
		return err
	}
	w.say("chaos", "the leader takes %+v", takes)
	w.found(check.Size(took, takes)...)
	after, err := w.snapshot(ctx)
	if err != nil {
		return err
	}
	w.found(check.Restored(before, after)...)
	return w.judge(ctx, p.tokens, from, to)
}

// judge ends the agents and asks the checkers that read logs.
func (w *world) judge(ctx context.Context, tokens []string, from, to time.Time) error {
	memories, err := w.memories(ctx)
	if err != nil {
		return err
	}
	read := time.Now()
	w.stop()
	for _, r := range w.replicas {
		for _, what := range r.panics {
			w.found(check.Finding{Checker: "process", What: what})
		}
	}
	h, err := w.history()
	if err != nil {
		return err
	}
	w.found(slices.Concat(check.Ended(h), check.Leader(h), check.FirstWrite(h), check.Requests(h), check.Tokens(h, tokens), check.Refusals(h), check.Needless(h), check.Intents(h), check.Slots(h, memories, read))...)
	if !from.IsZero() {
		w.found(check.Quiet(h, from, to)...)
	}
	return nil
}
