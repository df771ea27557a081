package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// today and earlier are the two sides of a pair. They differ in nothing but the agent.
func today() kind   { return renamed("today") }
func earlier() kind { return renamed("before") }

func renamed(name string) kind {
	k := suspends()
	k.name = name
	return k
}

// paired measures two agents in turns on one cluster. Between two hours the same machine may differ by half, and
// what it does at one moment it does to both.
func (b *bench) paired(ctx context.Context, out io.Writer) error {
	agents := map[string]string{today().name: b.binary, earlier().name: b.before}
	defer func() { b.binary = agents[today().name] }()
	for round := range b.rounds {
		order := []kind{today(), earlier()}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, k := range order {
			b.binary = agents[k.name]
			if err := b.planRound(ctx, k); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
		}
	}
	printPairs(out, b.samples[today().name], b.samples[earlier().name])
	return nil
}

// printPairs prints each figure of both sides with the ratio of each pair, and the median of those.
func printPairs(out io.Writer, now, before []sample) {
	fmt.Fprintf(out, "\n%s: two agents in turns, %s\n", suspends().title, plural(len(now), "round"))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  today\tbefore\tmedian of today / before\tof each pair\t")
	for _, f := range suspends().figures() {
		var ratios []float64
		for i := range min(len(now), len(before)) {
			if before[i][f.key] > 0 {
				ratios = append(ratios, now[i][f.key]/before[i][f.key])
			}
		}
		if len(ratios) == 0 {
			continue
		}
		each := fmt.Sprintf("%.2f", ratios)
		slices.Sort(ratios)
		fmt.Fprintf(w, "  %.2f\t%.2f\t%.2f\t%s\t%s %s\n", percentile(valuesOf(now, f.key), 50), percentile(valuesOf(before, f.key), 50), percentile(ratios, 50), each, f.unit, f.what)
	}
	w.Flush()
}
