package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// sample is what one round measured, by figure.
type sample map[string]float64

// figure is one line of a table: which numbers, in words and with a unit.
type figure struct{ key, unit, what string }

// table prints the median of each figure over the rounds, and their span.
func table(out io.Writer, title string, rounds []sample, figures []figure) {
	if len(rounds) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s (%s)\n", title, plural(len(rounds), "round"))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range figures {
		values := valuesOf(rounds, f.key)
		if len(values) == 0 {
			continue
		}
		span := ""
		if len(values) > 1 {
			span = fmt.Sprintf("%.2f … %.2f", values[0], values[len(values)-1])
		}
		fmt.Fprintf(w, "  %.2f\t%s\t%s\t%s\n", percentile(values, 50), f.unit, f.what, span)
	}
	w.Flush()
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss, median and span", n, word)
}

// valuesOf are a figure's values in the rounds that have it, the smallest first.
func valuesOf(rounds []sample, key string) []float64 {
	var out []float64
	for _, r := range rounds {
		if v, have := r[key]; have {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

// percentile is the nearest-rank percentile of sorted values; of an even number
// the median is the mean of the middle two.
func percentile(sorted []float64, p int) float64 {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	if p == 50 && n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[min(n*p/100, n-1)]
}

// after is how many seconds the last and the middle of sorted instants come
// after another.
func after(from time.Time, instants []time.Time) (last, half float64) {
	if len(instants) == 0 {
		return 0, 0
	}
	return instants[len(instants)-1].Sub(from).Seconds(), instants[len(instants)/2].Sub(from).Seconds()
}
