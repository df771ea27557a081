package policy

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// mostStretches bounds how many windows PermittedWithin adds up (a guess: five thousand, in a month
// one every nine minutes, take some milliseconds).
const mostStretches = 5000

// PermittedWithin is how much time a policy permits within a span from an instant on. It adds up no
// more than enough, and known is false where there are too many windows to add up.
func PermittedWithin(p *schedule.Policy, from time.Time, span, enough time.Duration) (sum time.Duration, known bool) {
	end, n := from.Add(span), 0
	for stretch := range p.Intervals(from) {
		opens, closes := from, end
		if s := stretch.Start; s != nil && s.After(from) {
			opens = *s
		}
		if e := stretch.End; e != nil && e.Before(end) {
			closes = *e
		}
		if !opens.Before(end) {
			break
		}
		if sum += closes.Sub(opens); sum >= enough {
			return enough, true
		}
		if n++; n == mostStretches {
			return sum, false
		}
	}
	return sum, true
}
