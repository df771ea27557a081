package calendar

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Table is the page as lines in order of time, like kubectl's lists. Where the clocks are those of
// UTC, they are shown once.
func (p Page) Table() string {
	var out strings.Builder
	p = p.spreadOut()
	loc := p.clock()
	w := tabwriter.NewWriter(&out, 6, 4, 3, ' ', 0)
	_, ahead := p.From.In(loc).Zone()
	both := ahead != 0 || slices.ContainsFunc(p.Entries, func(e Entry) bool { return e.local(loc) != e.local(time.UTC) })
	header := "UTC\tKIND\tNAME\tNOTE"
	if both {
		header = "LOCAL\t" + header
	}
	fmt.Fprintln(w, header)
	for _, e := range p.Sorted() {
		clocks := e.local(loc)
		if both {
			clocks += "\t" + e.utcForPeople()
		}
		note := e.Note
		if note == "" {
			note = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", clocks, e.Kind, p.label(e.Owner), strings.Join(strings.Fields(note), " "))
	}
	_ = w.Flush() // a Builder takes everything
	return out.String()
}
