package watchrules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/watchrule"
)

// unreadPause is how often an object that could not be read is tried again (a guess: its
// next change is told by the watch, a right that was granted is not).
const rereadDelay = 30 * time.Second

// smallerAdvice is what helps against an object that is too large to be read.
const smallerAdvice = "make it smaller, or have the rule's selector or namespace leave it out"

// unreadable is an object that a rule should be told of, and why it cannot be read.
type unreadable struct {
	where watchrule.ObjectKey
	why   error
}

// unreadableKey tells the objects of a plan's rules apart.
type unreadableKey struct{ rule, uid string }

// miss notes that a rule cannot be told of an object, and that it can be with nil. It says
// whether that is news.
func (wp *subscription) miss(where watchrule.ObjectKey, why error) (news bool) {
	k := unreadableKey{where.Rule, where.UID}
	was, known := wp.unread[k]
	if why == nil {
		delete(wp.unread, k)
		return known
	}
	wp.unread[k] = unreadable{where, why}
	return !known || was.why.Error() != why.Error()
}

// unreadOf are the objects that a rule could not be told of, by name.
func (wp *subscription) unreadOf(rule string) []unreadable {
	var out []unreadable
	for _, u := range wp.unread {
		if u.where.Rule == rule {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b unreadable) int {
		return cmp.Or(cmp.Compare(a.where.Namespace, b.where.Namespace), cmp.Compare(a.where.Name, b.where.Name))
	})
	return out
}

// unseen says in words which objects a rule is not told of; empty: none.
func (wp *subscription) unseen(rule plan.Watch, id string) string {
	all := wp.unreadOf(id)
	if len(all) == 0 {
		return ""
	}
	first := all[0]
	text := fmt.Sprintf("the watch of %s does not see %s %s/%s", rule, rule.Kind, first.where.Namespace, first.where.Name)
	if len(all) > 1 {
		text += fmt.Sprintf(", and %d more", len(all)-1)
	}
	text += ": " + first.why.Error()
	if isTooLarge(first.why) {
		text += "; " + smallerAdvice
	}
	return text
}

// blind says in words why a rule sees nothing at all.
func blind(rule plan.Watch, refusal error) string {
	var large *executors.TooLargeError
	switch {
	case !errors.As(refusal, &large):
		return refusal.Error()
	case large.Object == "":
		return fmt.Sprintf("the watch of %s sees nothing: %s; %s", rule, large.What, smallerAdvice)
	}
	return fmt.Sprintf("the watch of %s sees nothing, for %s %s cannot be read: %s; %s", rule, rule.Kind, large.Object, large.What, smallerAdvice)
}

func isTooLarge(err error) bool {
	var large *executors.TooLargeError
	return errors.As(err, &large)
}

// readAgain tries once more to read what could not be read, some of it at a time.
func (r *Controller) readAgain(ctx context.Context, wp *subscription, now time.Time) {
	wp.mu.Lock()
	all := []unreadable{}
	if !now.Before(wp.readNext) {
		for id := range wp.rules {
			all = append(all, wp.unreadOf(id)...)
		}
	}
	waits := len(wp.unread) > 0
	wp.mu.Unlock()
	if waits {
		r.Plans.AddAfter(wp.key, rereadDelay)
	}
	if len(all) == 0 {
		return
	}
	wp.readNext = now.Add(rereadDelay)
	for _, u := range all[:min(len(all), maxLookups)] {
		o := wp.rules[u.where.Rule]
		if o == nil || o.watch == nil {
			continue
		}
		found, err := r.readNow(ctx, o.watch.Key(), u.where)
		wp.mu.Lock()
		if _, still := wp.unread[unreadableKey{u.where.Rule, u.where.UID}]; still {
			wp.miss(u.where, err)
			if found != nil {
				wp.tracker.Observe(u.where.Rule, ruleObjectOf(found).asObservation())
				r.account(wp, u.where.Rule)
			}
		}
		wp.mu.Unlock()
	}
}
