package look

import (
	"fmt"
	"time"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// sleep prints the coming sleep windows of a HibernatePlan.
func (o *nextOptions) sleep(s view.Sleeper) error {
	if s.Table == nil {
		return s.Faults
	}
	clock := func(at time.Time) string { return o.until(at, s.Zone()) }
	if s.Hold.Holds(o.Now()) {
		fmt.Fprintf(o.ErrOut, "it is %s; %s ends that\n", view.HoldWords(s.Hold, clock)+s.HeldBy(), o.Suggest().ReleaseHold(s.Name))
	}
	var list []view.SleepWindow
	items := []view.Window{}
	for w := range s.SleepWindows(o.Now(), o.start, clock) {
		if len(list) == o.count {
			break
		}
		list = append(list, w)
		items = append(items, view.Window{Start: utcOr(w.Start), End: utcOr(w.End), Note: w.Note})
	}
	if !o.out.Lines() {
		return print.Items(o.out, o.Out, "WindowList", items, view.Window.Began)
	}
	if len(list) == 0 {
		fmt.Fprintln(o.ErrOut, "no sleep is to come: the off-hours are excluded or suspended for good")
		return nil
	}
	w := printers.GetNewTabWriter(o.Out)
	fmt.Fprintln(w, "SLEEPS\tWAKES\tUTC\tNOTE")
	for _, one := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", instant.LocalOr(set(one.Start), s.Zone(), "always"), instant.LocalOr(set(one.End), s.Zone(), "never"), spanUTC(set(one.Start), set(one.End)), view.OrDash(instant.InText(one.Note, s.Zone())))
	}
	return w.Flush()
}

func utcOr(t time.Time) string { return instant.UTC(set(t)) }

// set is an instant, or nil for zero.
func set(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
