package main

import (
	"context"
	"fmt"
	"io"
)

// ratios lets plans and CronJobs take turns, each after the other: whoever comes
// second meets a warmer API server with a longer past. The slow controller has
// one round, with plans before and after it.
func (b *bench) ratios(ctx context.Context, out io.Writer) error {
	plans := func(ctx context.Context) error { return b.planRound(ctx, suspends()) }
	fast := func(ctx context.Context) error { return b.cronRound(ctx, tuned()) }
	slow := func(ctx context.Context) error { return b.cronRound(ctx, untuned()) }
	for _, round := range []func(context.Context) error{plans, fast, fast, plans, plans, fast, plans, slow, plans} {
		if err := round(ctx); err != nil {
			return err
		}
	}
	p, f, s := b.samples[suspends().name], b.samples[tuned().name], b.samples[untuned().name]
	b.samples["ratios"] = []sample{{
		"tuned":           ratio(p, f, "started"),
		"tuned-first":     ratio(pick(p, 0, 2), pick(f, 0, 2), "started"),
		"tuned-second":    ratio(pick(p, 1), pick(f, 1), "started"),
		"tuned-created":   ratio(p, f, "created"),
		"default":         ratio(p, s, "started"),
		"default-first":   ratio(pick(p, 3), s, "started"),
		"default-second":  ratio(pick(p, 4), s, "started"),
		"default-created": ratio(p, s, "created"),
	}}
	table(out, "ratios: plans to CronJobs on the same API server, smaller is better for plans", b.samples["ratios"], []figure{
		{"tuned", "×", "all plans' runs started / all Jobs created, controller with lifted limits: medians of " + fmt.Sprintf("%d and %d rounds", len(p), len(f))},
		{"tuned-first", "×", "… plans first"},
		{"tuned-second", "×", "… CronJobs first"},
		{"tuned-created", "×", "… all runs created / all Jobs created"},
		{"default", "×", "all plans' runs started / all Jobs created, controller with default limits"},
		{"default-first", "×", "… plans first"},
		{"default-second", "×", "… CronJobs first"},
		{"default-created", "×", "… all runs created / all Jobs created"},
	})
	return nil
}

// pick are some of the rounds, by number.
func pick(rounds []sample, which ...int) []sample {
	var out []sample
	for _, i := range which {
		out = append(out, rounds[i])
	}
	return out
}

func ratio(plans, cronJobs []sample, key string) float64 {
	return percentile(valuesOf(plans, key), 50) / percentile(valuesOf(cronJobs, "created"), 50)
}
