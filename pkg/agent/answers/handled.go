// Package answers remembers which answers of people the runs of a plan have taken up.
package answers

import (
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// Handled knows since which version of a plan the answers that its runs took up are gone, and which could
// not be taken away. A cache that is behind still shows the ones, and the plan bears the others: one resume
// must not end the suspend that comes next, too.
type Handled struct {
	mu    sync.Mutex
	since map[types.UID]uint64
	stays map[types.UID]map[string]string // what was said, by the annotation that says it
}

// most bounds of how many plans answers are remembered, by forgetting all.
const most = 10_000

// Note takes in since which version answers are gone, by their annotations.
func (a *Handled) Note(plan types.UID, since uint64, gone map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since == nil || len(a.since) > most {
		a.since = map[types.UID]uint64{}
	}
	a.since[plan] = max(a.since[plan], since)
	for key := range gone {
		delete(a.stays[plan], key)
	}
}

// NoteRemaining takes in that answers were taken up, and could not be taken off their plan.
func (a *Handled) NoteRemaining(cm *corev1.ConfigMap, answers map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stays == nil || len(a.stays) > most {
		a.stays = map[types.UID]map[string]string{}
	}
	said := a.stays[cm.UID]
	if said == nil {
		said = map[string]string{}
		a.stays[cm.UID] = said
	}
	for key := range asks(&intent.Intent{}) {
		if answers[key] != "" {
			said[key] = saidBy(cm, key)
		}
	}
}

// saidBy is what an annotation says, by whom and why. Who says the same again cannot be told apart.
func saidBy(cm *corev1.ConfigMap, key string) string {
	return cm.Annotations[key] + "\n" + cm.Annotations[annotations.Actor(key)] + "\n" + cm.Annotations[annotations.Reason(key)]
}

// Remains says whether a plan still bears an answer to a run that was taken up: it is still to be taken away.
func (a *Handled) Remains(cm *corev1.ConfigMap, run string) bool {
	if cm == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.remaining(cm) {
		if name, _, _ := strings.Cut(cm.Annotations[key], "/"); name == run {
			return true
		}
	}
	return false
}

// remaining are the answers that were taken up and stand there still, by their annotations. What is gone, or
// says something else, is forgotten.
func (a *Handled) remaining(cm *corev1.ConfigMap) map[string]string {
	for key, said := range a.stays[cm.UID] {
		if said != saidBy(cm, key) {
			delete(a.stays[cm.UID], key)
		}
	}
	if len(a.stays[cm.UID]) == 0 {
		delete(a.stays, cm.UID)
	}
	return a.stays[cm.UID]
}

// Pending is what a plan asks of its runs, without answers that were taken up.
func (a *Handled) Pending(cm *corev1.ConfigMap, in intent.Intent) intent.Intent {
	a.mu.Lock()
	defer a.mu.Unlock()
	behind, standing := informer.VersionOf(cm) < a.since[cm.UID], a.remaining(cm)
	if !behind {
		delete(a.since, cm.UID)
	}
	for key, ask := range asks(&in) {
		if behind || standing[key] != "" {
			*ask = intent.RunRef{}
		}
	}
	return in
}

// asks are the answers among what a plan asks, by their annotations.
func asks(in *intent.Intent) map[string]*intent.RunRef {
	return map[string]*intent.RunRef{annotations.Resume: &in.Resume, annotations.Approve: &in.Approve, annotations.Reject: &in.Reject}
}

// Resumed says whether a resume was taken up by an earlier look, which could not take it away.
func Resumed(j run.Journal, ask intent.RunRef, by intent.Actor) bool {
	same := func(a *intent.Actor) bool { return a != nil && a.Name == by.Name && a.Reason == by.Reason }
	answer := &workflow.Answer{Step: ask.Step}
	return slices.ContainsFunc(j.Steps, func(r run.Record) bool {
		return answer.Covers(r.Path) && (same(r.Resumed) || r.Drift != nil && same(r.Drift.Accepted))
	})
}

// Given says whether an approval or a rejection was taken up.
func Given(j run.Journal, ask intent.RunRef) bool {
	if ask.Step == "" {
		return j.Approved != nil || j.End != nil && j.End.Reason == run.ReasonRejected
	}
	return slices.ContainsFunc(j.Steps, func(r run.Record) bool {
		return r.Approval != nil && ask.Names(r.Path)
	})
}
