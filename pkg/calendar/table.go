package calendar

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Table is the page as lines in order of time, like kubectl's lists.
func (p Page) Table() string {
	var out strings.Builder
	loc := p.clock()
	w := tabwriter.NewWriter(&out, 6, 4, 3, ' ', 0)
	fmt.Fprintln(w, "LOCAL\tUTC\tKIND\tNAME\tNOTE")
	for _, e := range p.Sorted() {
		note := e.Note
		if note == "" {
			note = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", e.local(loc), e.utcForPeople(), e.Kind, p.label(e.Owner), strings.Join(strings.Fields(note), " "))
	}
	_ = w.Flush() // a Builder takes everything
	return out.String()
}
