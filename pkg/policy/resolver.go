package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// StanzaText is a stanza as annotations spell it, already read. A strategy that
// is not known is kept as it stands: it is not ready.
type StanzaText struct {
	Strategy schedule.Strategy
	Policies []PolicyRef // as change-policy names them
	Until    *time.Time  // of the strategy, where it is one of the Untils
	By       string      // who said so and why, as it follows a sentence
	Unread   string      // of a namespace: why it is not known what it says
	Faults   document.Faults
}

// Set says whether the stanza says anything.
func (s StanzaText) Set() bool { return s.Strategy != "" || len(s.Policies) > 0 || s.Unread != "" }

// Equal says whether two stanzas say the same.
func (s StanzaText) Equal(o StanzaText) bool {
	return s.Strategy == o.Strategy && slices.Equal(s.Policies, o.Policies) && schedule.SameInstant(s.Until, o.Until) && s.By == o.By && s.Unread == o.Unread
}

// State is a policy's ConfigMap as it was read.
type State struct {
	Namespace, Name string
	Spec            PolicySpec
	Faults          document.Faults
	Pause           schedule.Pause
	Stanza          StanzaText
}

// Query is all that decides whether change of one object is permitted, apart
// from the policies themselves.
type Query struct {
	Namespace string      // empty for an object of the cluster
	Own       StanzaText  // the object's own
	Policies  []PolicyRef // spec.policies of a plan
	Gates     []PolicyRef // policies, of any namespace, whose spec.gates mean the object
	Bypass    *time.Time
	BypassBy  string // who said so and why, as it follows a sentence
}

// For is the question for a run: one that was asked for outside of the window asks
// no policy, but a namespace that is closed binds it all the same.
func (q Query) For(outsideWindow bool) Query {
	if outsideWindow {
		return q.OfNamespace()
	}
	return q
}

// OfNamespace is the question for what the namespace alone restricts, whatever the object
// and its policies say.
func (q Query) OfNamespace() Query {
	q.Own, q.Policies = StanzaText{Strategy: schedule.Permissive}, nil
	return q
}

// Key tells questions apart.
func (q Query) Key() string {
	return fmt.Sprintf("%s|%v|%q|%v|%v|%v|%v|%v|%q", q.Namespace, q.Own.Strategy, q.Own.By, q.Own.Policies, stampOf(q.Own.Until), q.Policies, q.Gates, stampOf(q.Bypass), q.BypassBy)
}

func stampOf(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Resolver holds every policy, calendar and namespace stanza that is known, and
// answers what follows from them for an object. It is the one place that
// resolves names, for the agent and the commands alike. It is not safe for
// concurrent use; Shared is.
type Resolver struct {
	agent      string // the agent's namespace; empty: not known, and any will do
	files      bool   // the documents are those of files
	policies   map[PolicyRef]State
	calendars  map[PolicyRef]*schedule.Calendar // nil: broken
	namespaces map[string]StanzaText
	unread     map[string]bool // namespaces whose policies and calendars are not known
	weights    weights
	parsed     byNamespace[*reading]         // by its document alone
	resolved   byNamespace[*schedule.Policy] // with its stanza and its pause
	shared     bool                          // policies are parsed by whoever asks, see Shared
	lacking    []*reading                    // what the answer since the last look at it lacks
	searches   func(namespace string) schedule.Budget
	generation int64
	changedAt  map[string]int64 // the generation of a namespace's last change
}

// OfFiles has the documents of files, not those of a cluster: what it lacks may be there all the same.
func (b *Resolver) OfFiles() *Resolver {
	b.files = true
	return b
}

// LimitSearches has the searches for the windows of each namespace's policies end where its budget
// is spent. It is for who answers for all namespaces.
func (b *Resolver) LimitSearches(budget func(namespace string) schedule.Budget) { b.searches = budget }

// searcher is the namespace whose budget the gate of a question takes from: that of the policies
// which mean the object, whoever's it is, else its own.
func (b *Resolver) searcher(q Query) string {
	if len(q.Gates) > 0 {
		return q.Gates[0].Namespace
	}
	return q.Namespace
}

// byNamespace are policies by namespace and name.
type byNamespace[T any] map[string]map[string]T

func (m byNamespace[T]) put(ref PolicyRef, p T) {
	if m[ref.Namespace] == nil {
		m[ref.Namespace] = map[string]T{}
	}
	m[ref.Namespace][ref.Name] = p
}

// NewResolver is a resolver that knows nothing yet.
func NewResolver(agentNamespace string) *Resolver {
	return &Resolver{
		agent: agentNamespace, weights: newWeights(), policies: map[PolicyRef]State{}, calendars: map[PolicyRef]*schedule.Calendar{},
		searches:   func(string) schedule.Budget { return nil },
		namespaces: map[string]StanzaText{}, unread: map[string]bool{}, parsed: byNamespace[*reading]{}, resolved: byNamespace[*schedule.Policy]{}, changedAt: map[string]int64{},
	}
}

// Generation changes with every change of what the answer to a question may depend on:
// a gate of another generation is to be asked for again. What other namespaces say, the
// agent's left aside, changes nothing: nobody's edits make the gates of others expensive.
func (b *Resolver) Generation(q Query) int64 {
	if b.agent == "" {
		return b.generation
	}
	last := max(b.changedAt[q.Namespace], b.changedAt[b.agent])
	for _, ref := range q.Gates {
		last = max(last, b.changedAt[ref.Namespace])
	}
	return last
}

// AffectsAllNamespaces says whether what a namespace says may matter to objects of every other one.
func (b *Resolver) AffectsAllNamespaces(namespace string) bool {
	return b.agent == "" || namespace == b.agent
}

// changed notes that something is said otherwise in a namespace.
func (b *Resolver) changed(namespace string) {
	b.generation++
	b.changedAt[namespace] = b.generation
	b.weights.outdate(namespace, b.AffectsAllNamespaces(namespace))
	b.resolved.forget(namespace, b.AffectsAllNamespaces(namespace))
}

// calendarChanged notes that the policies which name a calendar are to be read again.
func (b *Resolver) calendarChanged(at PolicyRef) {
	for namespace, policies := range b.parsed {
		if namespace == at.Namespace || b.AffectsAllNamespaces(at.Namespace) {
			maps.DeleteFunc(policies, func(_ string, one *reading) bool { return slices.Contains(one.calendars, at) })
		}
	}
	b.changed(at.Namespace)
}

// forget drops what is kept of one namespace, or of all.
func (m byNamespace[T]) forget(namespace string, everywhere bool) {
	if everywhere {
		clear(m)
		return
	}
	delete(m, namespace)
}

// PutPolicy takes in a policy.
func (b *Resolver) PutPolicy(p State) {
	ref := PolicyRef{Name: p.Name, Namespace: p.Namespace}
	b.policies[ref] = p
	b.weights.put(ref)
	delete(b.parsed[ref.Namespace], ref.Name)
	b.changed(ref.Namespace)
}

// DropPolicy forgets a policy.
func (b *Resolver) DropPolicy(namespace, name string) {
	ref := PolicyRef{Name: name, Namespace: namespace}
	delete(b.policies, ref)
	b.weights.drop(ref)
	delete(b.parsed[ref.Namespace], ref.Name)
	b.changed(ref.Namespace)
}

// PutCalendar takes in a calendar; nil is one that cannot be read.
func (b *Resolver) PutCalendar(namespace, name string, c *schedule.Calendar) {
	at := PolicyRef{Name: name, Namespace: namespace}
	b.calendars[at] = c
	b.calendarChanged(at)
}

// DropCalendar forgets a calendar.
func (b *Resolver) DropCalendar(namespace, name string) {
	at := PolicyRef{Name: name, Namespace: namespace}
	delete(b.calendars, at)
	b.calendarChanged(at)
}

// PutUnread takes in that the policies and calendars of a namespace could not be read: what is
// missing there may exist.
func (b *Resolver) PutUnread(namespace string) {
	b.unread[namespace] = true
	b.parsed.forget(namespace, b.AffectsAllNamespaces(namespace))
	b.changed(namespace)
}

// PutNamespace takes in what a namespace's annotations say, and says whether
// that is news.
func (b *Resolver) PutNamespace(name string, s StanzaText) bool {
	if b.namespaces[name].Equal(s) {
		return false
	}
	b.namespaces[name] = s
	b.changed(name)
	return true
}

// NamespaceStanza is what a namespace's annotations say.
func (b *Resolver) NamespaceStanza(name string) StanzaText { return b.namespaces[name] }

// Namespaces are those whose annotations say anything, by name.
func (b *Resolver) Namespaces() []string {
	var out []string
	for name, s := range b.namespaces {
		if s.Set() {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Policies are those that it knows, by namespace and name.
func (b *Resolver) Policies() []State {
	out := make([]State, 0, len(b.policies))
	for _, p := range b.policies {
		out = append(out, p)
	}
	slices.SortFunc(out, func(x, y State) int {
		return strings.Compare(x.Namespace+"/"+x.Name, y.Namespace+"/"+y.Name)
	})
	return out
}

// State is a policy as it was read.
func (b *Resolver) State(namespace, name string) (State, bool) {
	p, ok := b.policies[PolicyRef{Name: name, Namespace: namespace}]
	return p, ok
}

// Policy is a policy with all that stands on it; one that is missing or broken
// is not ready.
func (b *Resolver) Policy(namespace, name string) *schedule.Policy {
	return b.resolve(PolicyRef{Name: name, Namespace: namespace})
}

// Unpaused is Policy without its own pause.
func (b *Resolver) Unpaused(namespace, name string) *schedule.Policy {
	ref := PolicyRef{Name: name, Namespace: namespace}
	state, there := b.policies[ref]
	if !there {
		return b.resolve(ref)
	}
	p := b.read(ref, state)
	if state.Stanza.Set() {
		return p.Overridden(b.stanza(namespace, state.Stanza, b.document))
	}
	return p
}

// Plain is a policy by its document alone, without its pause and its stanza; nil: it is not there.
func (b *Resolver) Plain(namespace, name string) *schedule.Policy {
	ref := PolicyRef{Name: name, Namespace: namespace}
	state, there := b.policies[ref]
	if !there {
		return nil
	}
	return b.read(ref, state)
}

// resolve is a policy with the stanza on it. The policies that such a stanza names
// are judged by their documents and pauses alone: so no stanza leads back to
// itself, and none makes others expensive.
func (b *Resolver) resolve(ref PolicyRef) *schedule.Policy {
	if p := b.resolved[ref.Namespace][ref.Name]; p != nil {
		return p
	}
	p := b.document(ref)
	if state, there := b.policies[ref]; there && state.Stanza.Set() {
		p = p.Overridden(b.stanza(ref.Namespace, state.Stanza, b.document))
		p = b.paused(state, p)
	}
	if len(b.lacking) == 0 {
		b.resolved.put(ref, p)
	}
	return p
}

// document is a policy by its document and its pause.
func (b *Resolver) document(ref PolicyRef) *schedule.Policy {
	state, there := b.policies[ref]
	if !there && b.unread[ref.Namespace] {
		return schedule.PolicyHidden(ref.Name, "the policies of namespace "+ref.Namespace+" cannot be read")
	}
	if !there && b.files {
		return schedule.PolicyNotReady(ref.Name, "no file that was given holds it; give that, too, with -f")
	}
	if !there {
		return schedule.PolicyNotReady(ref.Name, "there is no such policy in namespace "+ref.Namespace)
	}
	return b.paused(state, b.read(ref, state))
}

// paused closes a policy that somebody paused; one that is broken stays so.
func (b *Resolver) paused(state State, p *schedule.Policy) *schedule.Policy {
	if !state.Pause.On || len(state.Faults) > 0 {
		return p
	}
	return p.Paused(state.Pause)
}

// stanza finds the policies that a stanza names.
func (b *Resolver) stanza(namespace string, s StanzaText, find func(PolicyRef) *schedule.Policy) schedule.Stanza {
	return schedule.Stanza{Strategy: s.Strategy, Until: s.Until, By: s.By, Unread: s.Unread, Policies: b.named(namespace, s.Policies, find)}
}

// named finds policies that an object of a namespace names, or one of the cluster.
func (b *Resolver) named(namespace string, refs []PolicyRef, find func(PolicyRef) *schedule.Policy) []*schedule.Policy {
	var out []*schedule.Policy
	for _, ref := range refs {
		ref.Namespace = cmp.Or(ref.Namespace, cmp.Or(namespace, b.agent))
		if !b.within(namespace, ref.Namespace) {
			out = append(out, schedule.PolicyNotReady(ref.Name, b.foreign("policy", ref, namespace)))
			continue
		}
		out = append(out, find(ref))
	}
	return out
}

// within says whether an object may use what stands in a namespace: its own, and the
// agent's. One of the cluster uses the agent's alone: whoever may annotate a node would
// read the reasons of every tenant on it.
func (b *Resolver) within(own, namespace string) bool {
	return b.agent == "" || namespace == own || namespace == b.agent
}

func (b *Resolver) foreign(what string, ref PolicyRef, own string) string {
	if own == "" {
		return fmt.Sprintf("%s %s is in namespace %s, and an object of the cluster may name only those of %s", what, ref.Name, ref.Namespace, b.agent)
	}
	return fmt.Sprintf("%s %s is in namespace %s, and only those of its own namespace and of %s may be named", what, ref.Name, ref.Namespace, b.agent)
}

// Gate is the gate of an object over time.
func (b *Resolver) Gate(q Query) *schedule.Gate {
	spec := schedule.GateSpec{Own: b.stanza(q.Namespace, q.Own, b.resolve), Bypass: q.Bypass, BypassBy: q.BypassBy}
	if q.Namespace != "" {
		spec.Namespace = b.stanza(q.Namespace, b.namespaces[q.Namespace], b.resolve)
	}
	spec.Policies = b.named(q.Namespace, q.Policies, b.resolve)
	for _, ref := range q.Gates { // what it may reach, its account's rights decide
		spec.Policies = append(spec.Policies, b.resolve(ref))
	}
	return schedule.NewGate(spec).Within(b.searches(b.searcher(q)))
}

// GateIfAny is the gate of an object, or nil where nothing stands between it and
// its change.
func (b *Resolver) GateIfAny(q Query) *schedule.Gate {
	if !b.Gated(q) && q.Bypass == nil {
		return nil
	}
	return b.Gate(q)
}

// Gated says whether anything stands between an object and its change.
func (b *Resolver) Gated(q Query) bool {
	return q.Own.Set() || len(q.Policies)+len(q.Gates) > 0 || q.Namespace != "" && b.namespaces[q.Namespace].Set()
}

// Uses are the policies that stand behind an object's gate.
func (b *Resolver) Uses(q Query) []PolicyRef {
	var out []PolicyRef
	for _, list := range [][]PolicyRef{q.Own.Policies, q.Policies, q.Gates, b.namespaces[q.Namespace].Policies} {
		for _, ref := range list {
			ref.Namespace = cmp.Or(ref.Namespace, cmp.Or(q.Namespace, b.agent))
			if !slices.Contains(out, ref) {
				out = append(out, ref)
			}
		}
	}
	return out
}

// Reads are the namespaces whose policies and calendars stand behind an object's gate, as far
// as what is known tells: those that its policies name, too.
func (b *Resolver) Reads(q Query) []string {
	var out []string
	for _, ref := range b.Uses(q) {
		out = append(out, ref.Namespace)
		out = append(out, b.readBy(ref)...)
		for _, named := range b.policies[ref].Stanza.Policies {
			named.Namespace = cmp.Or(named.Namespace, ref.Namespace)
			out = append(append(out, named.Namespace), b.readBy(named)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// readBy are the namespaces of the calendars that a policy excludes.
func (b *Resolver) readBy(ref PolicyRef) []string {
	spec := b.policies[ref].Spec.MaintenanceSchedule
	if spec == nil {
		return nil
	}
	var out []string
	for _, e := range spec.Exclude {
		if e.Calendar != nil {
			out = append(out, calendarOf(*e.Calendar, ref.Namespace).Namespace)
		}
	}
	return out
}

// Strategy is the strategy in force for an object at an instant, as status and
// metrics name it: a live Until counts as Permissive or Restrictive.
func (b *Resolver) Strategy(q Query, now time.Time) schedule.Strategy {
	above := b.namespaces[q.Namespace]
	if q.Namespace == "" {
		above = StanzaText{}
	}
	if s := above.strategy(now); s == schedule.Restrictive {
		return s
	}
	if s := q.Own.strategy(now); s != "" {
		return s
	}
	if len(q.Policies)+len(q.Gates) > 0 {
		return schedule.ByPolicy
	}
	if s := above.strategy(now); s != "" {
		return s
	}
	if q.Own.Strategy == schedule.PermissiveUntil || above.Strategy == schedule.PermissiveUntil { // it is over, and nothing is below it
		return schedule.Restrictive
	}
	return schedule.Permissive
}

// StrategyOf is the strategy in force of a policy itself.
func (p State) StrategyOf(now time.Time) schedule.Strategy {
	if p.Pause.Holds(now) {
		return schedule.Restrictive
	}
	if s := p.Stanza.strategy(now); s != "" && s != schedule.ByPolicy {
		return s
	}
	return p.Spec.Strategy
}

// strategy is what the stanza says at an instant; empty where it gives way to
// what is below it.
func (s StanzaText) strategy(now time.Time) schedule.Strategy {
	live := s.Until != nil && now.Before(*s.Until)
	switch {
	case s.Strategy == schedule.PermissiveUntil && live:
		return schedule.Permissive
	case s.Strategy == schedule.RestrictiveUntil && (live || s.Until == nil):
		return schedule.Restrictive
	case s.Strategy == schedule.PermissiveUntil || s.Strategy == schedule.RestrictiveUntil || s.Strategy == "":
		if len(s.Policies) > 0 {
			return schedule.ByPolicy
		}
		return ""
	}
	return s.Strategy
}
