package agent

import (
	"context"
	"sync"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
)

// actorPolicySettles is how long the policies by which an actor is certain have to stand
// unchanged before they count: every API server takes them up for itself, mostly within two
// seconds (the minute is a guess).
const actorPolicySettles = time.Minute

// actorPolicy follows the policies by which an actor is certain: the one that refuses false
// actors, and the one that leaves what the agent records to the agent.
type actorPolicy struct {
	checks, records *policyWatch
	certain         func(bool)                  // what is seen from now on was admitted by them, or not
	await           func(context.Context) error // returns when they have stood for long, and all from before is seen
	mu              sync.Mutex
	standing        string // their versions; empty: one of them refuses nothing
	stop            context.CancelFunc
}

// followActorPolicy keeps said, until ctx ends, whether actors that are written are those
// who write. Where the agent may not look, or the API server has no such kind, they are
// not known to be.
func (a *Agent) followActorPolicy(ctx context.Context) {
	if a.options.WatchNamespace != "" {
		return // with Roles alone it may not look
	}
	p := &actorPolicy{certain: a.memory.documents.Actors.SetVerified, await: a.awaitActorPolicy, stop: func() {}}
	defer p.certain(false)
	defer a.actors.Store(nil)
	api, changed := a.conn.Kube.AdmissionregistrationV1(), func() { p.look(ctx) }
	p.checks = watchPolicy(api, annotations.ActorPolicyName, annotations.ActorPolicyCondition, bindsAll, a.options.Now, changed)
	p.records = watchPolicy(api, annotations.RecordsPolicyName, annotations.RecordsPolicyCondition, bindsRecords, a.options.Now, changed)
	a.actors.Store(p)
	var group sync.WaitGroup
	group.Go(func() { p.checks.run(ctx) })
	group.Go(func() { p.records.run(ctx) })
	group.Wait()
}

// actorsRefused says for the heartbeat whether false actors are refused, and what is recorded
// of them is the agent's; empty: not known yet.
func (a *Agent) actorsRefused() string {
	p := a.actors.Load()
	switch {
	case a.options.WatchNamespace != "":
		return annotations.ActorsUnverified
	case p == nil || !p.checks.known() || !p.records.known():
		return ""
	case p.version() == "":
		return annotations.ActorsUnverified
	}
	return annotations.ActorsVerified
}

// awaitActorPolicy waits until the policies count everywhere, and the documents are known as
// they were then.
func (a *Agent) awaitActorPolicy(ctx context.Context) error {
	if !informer.Sleep(ctx, actorPolicySettles) {
		return ctx.Err()
	}
	return a.caches.documents.ReachLatest(ctx)
}

// look begins anew where a policy or a binding is another than before.
func (p *actorPolicy) look(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	is := p.version()
	if is == p.standing {
		return
	}
	p.standing = is
	p.stop()
	p.certain(false)
	if is == "" {
		return
	}
	settling, stop := context.WithCancel(ctx)
	p.stop = stop
	go p.confirm(settling)
}

// confirm says that actors are certain once the policies have stood for long.
func (p *actorPolicy) confirm(ctx context.Context) {
	for failures := (informer.Failures{}); ; {
		err := p.await(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			break
		}
		informer.Sleep(ctx, informer.Backoff(failures.Count(err), err))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() == nil { // it is stopped under the lock
		p.certain(true)
	}
}

// version tells the policies and their bindings from what they were; empty where they do not
// refuse every false actor and every record that is not the agent's.
func (p *actorPolicy) version() string {
	checks, records := p.checks.version(), p.records.version()
	if checks == "" || records == "" {
		return ""
	}
	return checks + "," + records
}
