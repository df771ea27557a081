package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// unreadable is the status when nothing can be decided, and why. What is asked for first is a list.
func (s *session) unreadable(pods, budgets error) {
	s.status.Reason, s.status.Right = executors.DrainUnavailable, nil
	s.status.Message = "cannot read pods and budgets: " + document.Cut(errors.Join(pods, budgets).Error(), 300)
	if apierrors.IsForbidden(pods) {
		s.status.Right = &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}
	} else if s.d.config.Elsewhere && apierrors.IsForbidden(budgets) {
		s.status.Right = &authorizationv1.ResourceAttributes{Verb: "list", Group: "policy", Resource: "poddisruptionbudgets"}
	}
	if apierrors.IsForbidden(pods) || apierrors.IsForbidden(budgets) {
		s.status.Reason = executors.DrainForbidden
	}
	s.changed()
}

// rehearse is the status of a dry run: what the drain would do.
func (s *session) rehearse(v drain.View) {
	pods := make([]drain.Pod, len(v.Judged))
	for i, j := range v.Judged {
		pods[i] = j.Pod
	}
	f := s.judge(v.Now).Begun(s.order.Since, v.Now).Forecast(pods, v.Budgets, v.Now)
	s.status.Total, s.status.Left, s.status.Blocks = f.Total, f.Total, f.Blocks
	s.status.Outcome.Skipped, s.status.Outcome.SkippedPods = len(f.Skipped), f.Skipped
	s.finish()
	s.status.Done, s.status.Reason = true, executors.DrainDone
	s.status.Message = fmt.Sprintf("dry run: %d pods would have to leave", f.Total)
	if len(f.Blocks) > 0 {
		s.status.Message += "; " + f.Blocks[0].String()
	}
	s.changed()
}

// standstill notes since when nothing moves. A short standstill is normal while controllers catch
// up; a lasting one is a block.
func (s *session) standstill(dec drain.Decision, now time.Time) (wake time.Time) {
	if dec.Moving || len(dec.Blocks) == 0 {
		s.still.since = time.Time{}
		return time.Time{}
	}
	if s.still.since.IsZero() {
		s.still.since = now
	}
	s.still.stuck = !now.Before(s.still.since.Add(stillFor))
	if !s.still.stuck {
		wake = s.still.since.Add(stillFor)
	}
	return wake
}

// report turns a decision into the status.
func (s *session) report(v drain.View, dec drain.Decision) {
	skipped := 0
	for _, j := range v.Judged {
		if j.Do == drain.Skip {
			skipped++
		}
	}
	o := drain.Outcome{
		Evicted: len(s.departed.evicted), Forced: len(s.departed.forced), Gone: len(s.departed.gone), Skipped: skipped,
		SkippedPods: dec.Skipped, EvictedPods: firstOf(s.departed.evicted), ForcedPods: firstOf(s.departed.forced),
	}
	for _, j := range v.Judged {
		if j.Own && j.Do == drain.Skip {
			o.Agent = &drain.RemainingPod{Pod: j.Pod.String(), Why: j.Why}
		}
	}
	if dec.Done || dec.Aborted {
		o.Left, o.LeftPods = dec.Leaving, dec.Left
	}
	o.Kept, o.KeptReplicas = len(s.surges.kept)+s.surges.unnamed, firstOf(told(s.surges.kept))
	left := s.status
	s.status = executors.DrainStatus{
		Done: dec.Done, Aborted: dec.Aborted, Outcome: o, Left: dec.Leaving,
		Total: dec.Leaving + o.Evicted + o.Forced + o.Gone, Evicted: o.Evicted + o.Forced,
		Blocks: dec.Blocks[:min(len(dec.Blocks), mostBlocks)], Pods: dec.Pods[:min(len(dec.Pods), mostPods)],
		Deadline: left.Deadline, Late: dec.Late,
	}
	if s.status.Reason, s.status.Message = s.summary(dec); s.status.Reason == executors.DrainForbidden {
		s.status.Right = s.sent.right
	}
	if dec.Done || dec.Aborted {
		s.finish()
	}
	s.changed()
}

// Limits of what a status lists.
const (
	mostBlocks = 20
	mostPods   = 50
)

func firstOf(pods []string) []string {
	pods = slices.Sorted(slices.Values(pods))
	return pods[:min(len(pods), mostPods)]
}

// summary is the reason and the message of a decision.
func (s *session) summary(dec drain.Decision) (reason, message string) {
	st := s.status
	counted := fmt.Sprintf("%d of %d pods have left", st.Total-st.Left, st.Total)
	switch {
	case dec.Aborted:
		return executors.DrainTimedOut, document.Cut("time is over, and the drain is given up: "+st.Outcome.String(), document.MaxMessage)
	case dec.Done && st.Left > 0:
		return executors.DrainTimedOut, document.Cut(st.Outcome.String(), document.MaxMessage)
	case dec.Done:
		return executors.DrainDone, document.Cut(st.Outcome.String(), document.MaxMessage)
	}
	if dec.Late {
		counted += "; its time is over, and it goes on"
	}
	switch {
	case s.sent.forbidden != "" && !dec.Moving:
		return executors.DrainForbidden, document.Cut(counted+"; "+s.sent.forbidden, document.MaxMessage)
	case len(dec.Blocks) > 0 && !dec.Moving && s.still.stuck:
		return executors.DrainBlocked, document.Cut(counted+"; "+dec.Blocks[0].String(), document.MaxMessage)
	case len(dec.Blocks) > 0:
		return executors.DrainWorking, document.Cut(counted+"; "+dec.Blocks[0].String(), document.MaxMessage)
	case len(dec.Pods) > 0 && dec.Pods[0].Why != "":
		return executors.DrainWorking, document.Cut(counted+"; "+dec.Pods[0].Pod+" waits: "+dec.Pods[0].Why, document.MaxMessage)
	}
	return executors.DrainWorking, document.Cut(counted+s.awaitsSurges(), document.MaxMessage)
}

// awaitsSurges says for which replicas the drain waits, and which it does not wait for any more.
func (s *session) awaitsSurges() (text string) {
	switch undoing := slices.Sorted(maps.Keys(s.surges.undoing)); {
	case len(undoing) > 0:
		text = "; waits for the replica that a surge added to " + undoing[0] + " to be given back" + s.surges.undoing[undoing[0]]
		if len(undoing) > 1 {
			text += fmt.Sprintf("; and for %d more", len(undoing)-1)
		}
	case s.surges.open > 0 && s.status.Left == 0:
		text = "; waits for what is to be known of the surges of earlier drains"
	}
	return text + s.status.Outcome.StringOfKept()
}

// told are Deployments, each with what was said of it.
func told(of map[string]string) []string {
	var texts []string
	for name, why := range of {
		texts = append(texts, name+" ("+why+")")
	}
	return texts
}

// finish ends everything of the session except its status: requests in flight are cancelled.
func (s *session) finish() {
	s.ended = true
	s.d.wakeAll(s.d.budgets.wait(s, nil))
	s.life.cancel()
}

// changed schedules a call of OnChange for all changes until then: at once for an end or a block,
// after a while for pods that left.
func (s *session) changed() {
	wait := debounce
	switch says := s.says(); {
	case says == s.notice.told:
		return
	case !s.ended && s.status.Reason == s.notice.reason:
		wait = progress
	}
	at := s.d.config.Now().Add(wait)
	if s.notice.timer != nil && !at.Before(s.notice.at) {
		return
	}
	if s.notice.timer != nil {
		s.notice.timer.Stop()
	}
	s.notice.at = at
	s.notice.timer = time.AfterFunc(wait, s.publish)
}

// says is the part of the status that a person would notice.
func (s *session) says() string {
	st := s.status
	permanent := 0
	for _, b := range st.Blocks {
		if b.Permanent {
			permanent++
		}
	}
	return fmt.Sprint(st.Done, st.Aborted, st.Late, st.Reason, st.Left, st.Evicted, permanent, len(s.surges.undoing) > 0, st.Outcome.Kept)
}

func (s *session) publish() {
	s.d.mu.Lock()
	s.notice.told, s.notice.reason, s.notice.timer = s.says(), s.status.Reason, nil
	current := s.d.sessions[place{s.order.Node, s.order.By}] == s
	s.d.mu.Unlock()
	if current && s.d.ctx.Err() == nil {
		s.d.config.OnChange(s.order.Node, s.order.By)
	}
}
