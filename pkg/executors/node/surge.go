package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/surge"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// Times of surges (guesses).
const (
	surgeRetry = 2 * time.Second  // after a conflict, or when the API server does not answer
	surgeLook  = 30 * time.Second // for seeing what is there already
	// how long it is remembered how often surges of a pod failed: longer than the pauses between them
	rememberFor = 2 * time.Hour
	// for removing a replica, before the drain goes on without that; it ends between two attempts, so
	// that what was said of the last is known
	undoWithin = time.Minute - surgeRetry/2
)

// surge gives a pod of a Deployment a replacement: one replica more, until a pod elsewhere is Ready
// and this one leaves, then one replica less. It needs get on replicasets and deployments, list on
// horizontalpodautoscalers, list and watch on pods, and patch on deployments: the previous number
// is recorded on the Deployment in the same patch.
func (s *session) surge(p drain.Pod, going <-chan struct{}) {
	defer s.detached(func() { s.surges.open-- })
	extra, err := s.begin(p, going)
	if err != nil && extra != nil { // it may have been added nevertheless
		s.removeReplicas(*extra)
	}
	var no *surge.Cannot
	switch {
	case errors.As(err, &no):
		s.replacement(p, drain.Replacement{Impossible: true, Why: no.Why, Remedy: no.Remedy})
		return
	case err != nil:
		s.replacement(p, drain.Replacement{})
		return
	case extra == nil:
		s.replacement(p, drain.Replacement{Unneeded: s.d.config.Now()})
		return
	}
	s.replacement(p, drain.Replacement{Why: "Deployment/" + extra.Name + " makes a replacement"})
	why := s.awaitReplacement(p, *extra, going)
	now := "Deployment/" + extra.Name + " is as it was"
	switch complete, changed := s.removeReplicas(*extra); {
	case why == "":
		return
	case !complete:
		now = "Deployment/" + extra.Name + " keeps one replica too many"
	case len(changed) > 0:
		now = changed[0]
	}
	s.replacement(p, drain.Replacement{
		Impossible: true, Why: "no replacement became Ready: " + why + "; " + now,
		Remedy: "make room for one more pod, or " + surge.NoSurge,
	})
}

// detached changes the session's state even after its end.
func (s *session) detached(f func()) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	f()
	s.wake()
}

func (s *session) replacement(p drain.Pod, r drain.Replacement) {
	s.alive(func() {
		if _, there := s.seen.pods[p.UID]; !there {
			return
		}
		s.surges.of[p.UID] = r
		if r.Impossible {
			f := failedSurge{place: place{s.order.Node, s.order.By}, at: s.d.config.Now(), times: s.d.failed[p.UID].times + 1, Replacement: r}
			s.d.failed[p.UID] = f
			time.AfterFunc(drain.SurgeAgain(f.times), func() { s.detached(func() { s.tryAgain(p.UID, f.times) }) })
			time.AfterFunc(rememberFor, func() { s.detached(func() { s.forget(p.UID, f.times) }) })
		}
	})
}

// tryAgain has a surge that failed tried again. How often it did is remembered until the pod is gone, or
// for long: while nothing changes, the pauses grow.
func (s *session) tryAgain(uid string, times int) {
	delete(s.surges.of, uid)
	if f := s.d.failed[uid]; f.times == times {
		f.again = true
		s.d.failed[uid] = f
	}
}

func (s *session) forget(uid string, times int) {
	if s.d.failed[uid].times == times {
		delete(s.d.failed, uid)
	}
}

// failedSurge is a surge that was impossible, of whom, when, and how often.
type failedSurge struct {
	place
	at    time.Time
	times int
	again bool // it is tried again
	drain.Replacement
}

// Unreplaced are the pods whose surges failed in the last minutes.
func (d *Drainer) Unreplaced(node, by string, since time.Time) map[string]drain.Replacement {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := map[string]drain.Replacement{}
	for uid, f := range d.failed {
		if f.place == (place{node, by}) && !f.again && !f.at.Before(since) {
			out[uid] = f.Replacement
		}
	}
	return out
}

// begins tells a surge that its pod is leaving.
func (s *session) begins(uid string) {
	if going, waits := s.surges.going[uid]; waits {
		close(going)
		delete(s.surges.going, uid)
	}
}

// errLeft ends the attempts to replace a pod that leaves by itself.
var errLeft = errors.New("the pod is leaving")

// begin adds a replica, with retries where they may help, while the pod is there. No replica and no
// error: the pod needs no surge now. With an error, a replica is one that may be there.
func (s *session) begin(p drain.Pod, going <-chan struct{}) (extra *surge.ExtraReplica, err error) {
	var unclear *surge.ExtraReplica
	var refused, failing workflow.Refusal
	for {
		extra, err = s.tryBegin(p)
		if err == nil {
			return extra, nil
		}
		now, pause, final := s.d.config.Now(), surgeRetry, false
		waits := drain.Replacement{Why: document.Cut(err.Error(), 200)}
		if no := (*surge.Cannot)(nil); errors.As(err, &no) {
			failing = workflow.Refusal{}
			final = !no.Refused && !no.Behind
			waits.Behind, waits.Remedy = no.Behind, no.Remedy
			if no.Refused {
				refused, final = refused.Again(now)
				pause = refused.VerdictAt(now).Sub(now)
			}
		} else {
			unclear, refused = cmp.Or(extra, unclear), workflow.Refusal{}
			failing, waits.Behind = failing.Again(now) // a drain does not count as moving, nor do other pods wait, for long
			waits.Remedy = "wait; if it lasts, look at its Deployment"
		}
		if final {
			return unclear, err
		}
		s.replacement(p, waits)
		select {
		case <-s.life.ctx.Done():
			return unclear, s.life.ctx.Err()
		case <-going:
			return unclear, errLeft
		case <-time.After(pause):
		}
	}
}

// elsewhere is why a pod waits for a replacement: a Deployment has one replica more at a time.
const elsewhere = "another pod of its Deployment is being replaced"

// tryBegin is one attempt. With a replica and an error, the replica may have been added.
func (s *session) tryBegin(p drain.Pod) (*surge.ExtraReplica, error) {
	dep, err := surge.DeploymentOf(s.life.ctx, s.kube(), p)
	if err != nil {
		return nil, surge.Denied(err, "get on replicasets and deployments")
	}
	extra := &surge.ExtraReplica{Namespace: dep.Namespace, Name: dep.Name}
	record, has, err := annotations.ReadSurge(dep.Annotations)
	switch {
	case err != nil:
		return nil, &surge.Cannot{Why: err.Error(), Remedy: "remove the annotation once its replicas are as they should be"}
	case has && record.Pod == p.UID:
		extra.Record = record
		return extra, nil
	case has && record.Node == s.order.Node && claims(s.order.By, record):
		return nil, s.settle(surge.ExtraReplica{Namespace: dep.Namespace, Name: dep.Name, Record: record})
	case has:
		return nil, &surge.Cannot{Why: elsewhere, Remedy: fmt.Sprintf("wait; if it lasts, look what keeps that pod on node %q", record.Node), Behind: true}
	}
	needed, err := s.needsSurge(p, dep)
	if err != nil || !needed {
		return nil, err
	}
	if err := surge.MayScale(s.life.ctx, s.kube(), s.order.Manager, dep); err != nil {
		return nil, err
	}
	extra.Record = annotations.Surge{Replicas: surge.Replicas(dep), Node: s.order.Node, Pod: p.UID, By: s.order.By, At: s.d.config.Now().UTC()}
	if err := extra.Record.Check(); err != nil { // it could not be read back
		return nil, &surge.Cannot{Why: err.Error(), Remedy: surge.NoSurge}
	}
	text, err := json.Marshal(extra.Record)
	if err != nil {
		return nil, fmt.Errorf("record of a surge: %w", err)
	}
	if err := surge.Scale(s.life.ctx, s.kube(), s.order.Manager, dep, extra.Record.Replicas+1, string(text)); err != nil {
		return extra, surge.Denied(err, "patch on deployments")
	}
	return extra, nil
}

// settle is why a pod waits while its Deployment has a record of another pod of this drain. What is to be removed
// for one that does not leave any more, or is gone, is removed first: nobody else may do so as long as
// the drain lasts, and whoever may write the Deployment may write the record.
func (s *session) settle(d surge.ExtraReplica) error {
	s.d.mu.Lock()
	p, there := s.seen.pods[d.Record.Pod]
	_, undoing := s.surges.undoing[d.String()]
	leaves := there && p.Namespace == d.Namespace && s.seen.mustLeave[p.UID]
	s.d.mu.Unlock()
	if leaves || undoing {
		return errors.New(elsewhere)
	}
	if complete, _ := s.removeReplicas(d); complete {
		return errors.New("the replica of an earlier surge was just given back")
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return &surge.Cannot{
		Why:    "the replica that the surge of another pod added to Deployment/" + d.Name + " is not given back (" + s.surges.kept[d.String()] + ")",
		Remedy: "let the agent patch that Deployment, or remove its annotation " + annotations.StatusSurge + " once its replicas are as they should be", Refused: true,
	}
}

// needsSurge says whether the pod cannot simply be evicted: it is the only one, or its budget
// permits no eviction. One that would not with the new replica either is an error.
func (s *session) needsSurge(p drain.Pod, dep *appsv1.Deployment) (bool, error) {
	s.d.mu.Lock()
	over := drain.Of(p, s.d.budgets.in(map[string]bool{p.Namespace: true}))
	s.d.mu.Unlock()
	for _, b := range over {
		if b.MaxUnavailable == "0" || b.MaxUnavailable == "0%" || b.MinAvailable == "100%" {
			return false, &surge.Cannot{Why: "its budget " + b.Key() + " lets nobody go, however many replicas there are", Remedy: "write maxUnavailable: 1 there"}
		}
	}
	return surge.Replicas(dep) == 1 || drain.NeedsReplacement(p, over), nil
}

// removeReplicas removes the replicas that surges added, and says whether all of them are gone, and which
// Deployments somebody else changed. It gives up on those that the API server refuses for good or
// that take longer than a minute, and leaves them to the sweep: a record, which everybody writes who
// may write the Deployment, must not hold a drain.
// An agent that is ending leaves them to the next, which finds the records.
func (s *session) removeReplicas(extra ...surge.ExtraReplica) (complete bool, changed []string) {
	ctx, cancel := context.WithTimeout(s.d.ctx, undoWithin)
	defer cancel()
	s.detached(func() {
		for _, d := range extra {
			s.surges.undoing[d.String()] = ""
		}
	})
	for complete = true; ; {
		var again, final []surge.NotRemoved
		kept, notes := surge.Remove(ctx, s.kube(), s.order.Manager, extra)
		changed = append(changed, notes...)
		for _, k := range kept {
			if surge.Final(k.Err) {
				final = append(final, k)
			} else {
				again = append(again, k)
			}
		}
		s.noteRemoval(extra, again, final)
		complete = complete && len(final) == 0
		extra = extra[:0:0]
		for _, k := range again {
			extra = append(extra, k.ExtraReplica)
		}
		if len(extra) == 0 {
			return complete, changed
		}
		select {
		case <-ctx.Done():
		case <-time.After(surgeRetry):
		}
		if ctx.Err() != nil {
			s.noteRemoval(extra, nil, again)
			return false, changed
		}
	}
}

// noteRemoval notes what became of replicas: what is tried again, and what it gave up on.
func (s *session) noteRemoval(tried []surge.ExtraReplica, again, gaveUp []surge.NotRemoved) {
	s.detached(func() {
		for _, d := range tried {
			delete(s.surges.undoing, d.String())
			delete(s.surges.kept, d.String())
		}
		for _, k := range again {
			s.surges.undoing[k.String()] = ": " + document.Cut(k.Err.Error(), 200)
		}
		for _, k := range gaveUp {
			s.d.unswept[s.order.By] = true
			if len(s.surges.kept) < mostPods {
				s.surges.kept[k.String()] = document.Cut(k.Err.Error(), 100)
			} else {
				s.surges.unnamed++
			}
		}
	})
}

// undoSurges removes the replicas that an earlier drain of the node could not: its pod is gone, and
// the record is still there. For a pod that still exists, that happens when it is gone, whoever
// evicted it.
func (s *session) undoSurges() {
	defer s.detached(func() { s.surges.open-- })
	ctx, cancel := context.WithTimeout(s.life.ctx, requestTimeout)
	defer cancel()
	extra, err := surge.List(ctx, s.kube(), func(r annotations.Surge) bool { return r.Node == s.order.Node && claims(s.order.By, r) })
	if err != nil { // also one that is refused: the sweep finds out whether that stays so
		s.detached(func() { s.d.unswept[s.order.By] = true })
	}
	s.removeReplicas(slices.DeleteFunc(extra, s.removeLater)...)
}

// claims says whether a record is of a claimant's drain. One without a name is of an older agent.
func claims(by string, r annotations.Surge) bool { return r.By == "" || r.By == by }

// removeLater registers what is to be undone when a pod has left.
func (s *session) removeLater(d surge.ExtraReplica) bool {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	p, there := s.seen.pods[d.Record.Pod]
	if there = there && p.Namespace == d.Namespace; there {
		s.surges.extra[p.UID] = append(s.surges.extra[p.UID], d)
	}
	return there
}

// removeFor undoes what was registered for a pod that has left; the caller holds the lock.
func (s *session) removeFor(pod string) {
	extra := s.surges.extra[pod]
	if extra == nil {
		return
	}
	delete(s.surges.extra, pod)
	s.surges.open++
	go func() {
		defer s.detached(func() { s.surges.open-- })
		s.removeReplicas(extra...)
	}()
}

// Unswept are the claimants of drains that left replicas since it was last asked.
func (d *Drainer) Unswept() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer clear(d.unswept)
	return slices.Sorted(maps.Keys(d.unswept))
}

// Sweep removes the replicas of surges whose drain no longer exists. A refusal (403) with nothing
// left says that, if it stays, the account has made no surge.
func (d *Drainer) Sweep(ctx context.Context, clients executors.Clients, manager, by string, busy func(node string) bool) (left int, err error) {
	extra, err := surge.List(ctx, clients.Kube, func(r annotations.Surge) bool { return claims(by, r) })
	if err != nil {
		return 0, fmt.Errorf("list the Deployments that surge: %w", err)
	}
	extra = slices.DeleteFunc(extra, func(o surge.ExtraReplica) bool {
		waits := busy(o.Record.Node) || d.drains(o.Record.Node, by)
		if waits {
			left++
		}
		return waits
	})
	var failed []error
	kept, _ := surge.Remove(ctx, clients.Kube, manager, extra)
	for _, k := range kept {
		if k.Record.By != "" || !apierrors.IsForbidden(k.Err) { // who may not change one without a name has not made it
			left++
		}
		if len(failed) < mostBlocks {
			failed = append(failed, fmt.Errorf("give back the replica that a surge added to %s: %w", k.ExtraReplica, k.Err))
		}
	}
	return left, errors.Join(failed...)
}

// drains says whether there is a session, or its surges are still being undone.
func (d *Drainer) drains(node, by string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sessions[place{node, by}]
	return s != nil && (!s.ended || s.surges.open > 0)
}

// awaitReplacement notes whether enough pods are Ready without the one that leaves, at least one of
// them elsewhere, until that one goes or the drain ends. It returns why there was none for too long.
func (s *session) awaitReplacement(p drain.Pod, extra surge.ExtraReplica, going <-chan struct{}) string {
	ctx, cancel := context.WithCancel(s.life.ctx)
	defer cancel()
	changed := make(chan map[string]surge.Sibling, 1)
	go extra.Follow(ctx, s.kube(), changed)
	rest := max(surgeLook, time.Until(extra.Record.At.Add(s.d.config.SurgeFor))) // an agent that has just begun has not seen it yet
	timer := time.NewTimer(min(s.d.config.SurgeFor, rest))
	defer timer.Stop()
	last, ready := "it was not made", false
	for {
		select {
		case pods := <-changed:
			enough, why := surge.Replaced(pods, p.UID, s.order.Node, int(extra.Record.Replicas))
			last = cmp.Or(why, last)
			switch {
			case enough && !ready:
				timer.Stop()
				s.replacement(p, drain.Replacement{Ready: true, ReadyAt: s.d.config.Now()})
			case ready && !enough: // its eviction was held up meanwhile
				timer.Reset(s.d.config.SurgeFor)
				last = cmp.Or(why, "it went again")
				s.replacement(p, drain.Replacement{Why: "its replacement is not Ready any more"})
			}
			ready = enough
		case <-going:
			return ""
		case <-timer.C:
			return last
		case <-s.life.ctx.Done():
			return ""
		}
	}
}
