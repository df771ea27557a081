package node

import (
	"context"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// request is one that is to be sent.
type request struct {
	pod      drain.Pod
	deletion bool
	finish   bool // deletes a pod whose eviction was cut off
	surge    bool
	going    <-chan struct{} // surge: closed when the pod begins to go
	version  uint64          // of the budget
	budget   string          // that it takes of
}

// take counts requests before they are sent.
func (s *session) take(view drain.View, dec drain.Decision, now time.Time) []request {
	for _, uid := range dec.Held {
		a := s.sent.asked[uid]
		if a.Held.IsZero() {
			a.Held = now
			s.sent.asked[uid] = a
		}
	}
	var out []request
	for _, p := range dec.Requests.Evict {
		r := request{pod: p}
		if over := drain.Of(p, view.Budgets); len(over) == 1 {
			r.version = over[0].Version
			if drain.NeedOf(p, over[0]) == drain.NeedRoom {
				r.budget = over[0].Key()
				s.d.budgets.claim(r.budget, p, now)
			}
		}
		out = s.note(out, r, now)
	}
	for _, p := range dec.Requests.Delete {
		out = s.note(out, request{pod: p, deletion: true}, now)
	}
	for _, p := range dec.Requests.Finish {
		out = s.note(out, request{pod: p, deletion: true, finish: true}, now)
	}
	for _, p := range dec.Requests.Surge {
		s.surges.of[p.UID] = drain.Replacement{Why: "a replacement is asked for"}
		s.surges.going[p.UID] = make(chan struct{})
		s.surges.open++
		out = append(out, request{pod: p, surge: true, going: s.surges.going[p.UID]})
	}
	return out
}

// note marks a pod as requested, unless another drain has a request for it in flight.
func (s *session) note(out []request, r request, now time.Time) []request {
	if other := s.d.budgets.asked[r.pod.UID]; other != nil {
		return out
	}
	s.d.budgets.asked[r.pod.UID] = s
	a := s.sent.asked[r.pod.UID]
	a.Answer, a.At, a.Deleted = drain.InFlight, now, r.deletion && !r.finish
	s.sent.asked[r.pod.UID] = a
	s.sent.busy++
	s.d.busy++
	if r.budget != "" {
		s.d.budgets.flying[r.budget]++
	}
	return append(out, r)
}

// send makes one request. The deadline cuts it off when pods are left, or deleted, from then on:
// that decision must not cross with an earlier request.
func (s *session) send(r request) {
	ctx, cancel := context.WithTimeout(s.life.sends, requestTimeout)
	defer cancel()
	s.d.mu.Lock()
	kube, options, deadline := s.order.Clients.Kube, s.order.Options, s.status.Deadline
	s.d.mu.Unlock()
	goesOn := options.OnTimeout == "" || options.OnTimeout == drain.TimeoutRetry
	ends := options.OnTimeout == drain.TimeoutAbort || options.OnTimeout == drain.TimeoutSkip
	now := s.d.config.Now()
	if ends && !deadline.IsZero() && !deadline.After(now) {
		s.answered(r, "", notSentError{})
		return
	}
	if deadline.After(now) && !goesOn {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, deadline.Sub(now))
		defer stop()
	}
	verb := "create pods/eviction"
	var err error
	if r.deletion {
		verb, err = "delete pods", deletePod(ctx, kube, r.pod, options.GracePeriod)
	} else {
		if options.WaitForVolumes {
			if err = s.noteVolumes(ctx, kube, r.pod); err != nil {
				verb = "get persistentvolumeclaims"
			}
		}
		if err == nil {
			err = evict(ctx, kube, r.pod, options.GracePeriod)
		}
	}
	s.answered(r, verb, err)
}

// answered handles an answer, also for a pod that is gone meanwhile.
func (s *session) answered(r request, verb string, err error) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	uid := r.pod.UID
	delete(s.d.budgets.asked, uid)
	full := s.d.busy >= overall
	s.sent.busy--
	s.d.busy--
	if r.budget != "" {
		s.d.wakeAll(s.d.budgets.landed(r.budget))
	}
	for _, other := range s.d.sessions {
		if full || other.order.Node == s.order.Node {
			other.wake()
		}
	}
	a := answerOf(err, r.pod, verb, s.sent.tries[uid])
	if a.Answer != drain.Accepted && !a.unclear {
		s.d.budgets.unclaim(uid)
	}
	asked := s.sent.asked[uid]
	if pod, gone := s.sent.limbo[uid]; gone {
		delete(s.sent.limbo, uid)
		s.account(pod, asked, a.Answer == drain.Accepted || a.unclear)
		return
	}
	if _, there := s.seen.pods[uid]; !there {
		return
	}
	now := s.d.config.Now()
	if r.finish && a.forbidden { // its eviction is requested again when the budget has room
		s.sent.mayNotDelete = true
		delete(s.sent.asked, uid)
		s.wake()
		return
	}
	asked.Answer, asked.At, asked.NotBefore, asked.Why, asked.Unclear = a.Answer, now, time.Time{}, a.why, a.unclear
	switch a.Answer {
	case drain.Accepted:
		s.sent.tries[uid], asked.Why, s.sent.forbidden, s.sent.right = 0, "", "", nil
	case drain.OverBudget:
		asked.Version, asked.NotBefore = r.version, now.Add(a.after)
		if asked.Held.IsZero() {
			asked.Held = now
		}
	default:
		asked.NotBefore = now.Add(a.after)
		s.sent.tries[uid]++
		if a.forbidden {
			s.sent.forbidden, s.sent.right = a.why, rightOf(verb, r.pod.Namespace)
		}
	}
	s.sent.asked[uid] = asked
}
