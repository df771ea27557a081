package source

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// Resolver is what may stand behind the gates of objects: policies, calendars, and what the
// annotations of namespaces say, as far as they may be read.
type Resolver struct {
	*policy.Resolver
	namespaces map[string]error             // whose annotations could not be read
	documents  map[string]error             // whose policies and calendars could not be read
	told       map[string]bool              // of these, what was warned of
	frozen     map[string]policy.StanzaText // of namespaces that could not be read: what the agent says
	asked      map[string]bool              // of which namespaces the agent's word was taken
	created    map[policy.PolicyRef]time.Time
	gates      map[policy.PolicyRef]string // why those of a policy do not hold
	records    map[policy.PolicyRef]GateRecord
}

// ReadResolver reads everything behind objects of some namespaces: in them, and in the agent's
// namespace. What may not be read is noted, and reported where it changes an answer.
func ReadResolver(ctx context.Context, k *factory.Cluster, agentNamespace string, namespaces ...string) Resolver {
	return ReadRestrictions(ctx, k, agentNamespace, namespaces...).Resolver
}

func newResolver(agentNamespace string) Resolver {
	return Resolver{Resolver: policy.NewResolver(agentNamespace), namespaces: map[string]error{}, documents: map[string]error{}, told: map[string]bool{}, frozen: map[string]policy.StanzaText{}, asked: map[string]bool{}, created: map[policy.PolicyRef]time.Time{}, gates: map[policy.PolicyRef]string{}, records: map[policy.PolicyRef]GateRecord{}}
}

// hidden says why not everything behind an object's gate is known; frozen says that its namespace
// may be frozen.
func (b Resolver) hidden(q policy.Query) (why []error, frozen bool) {
	if err := b.namespaces[q.Namespace]; err != nil {
		why, frozen = append(why, err), true
	}
	for _, namespace := range b.Reads(q) {
		if err := b.documents[namespace]; err != nil {
			why = append(why, err)
		}
	}
	return why, frozen
}

// GateOf is the gate of an object if everything behind it can be read. Else it is closed if a
// freeze may be hidden, and a hidden policy is not ready. What changes the answer is reported once.
func (b Resolver) GateOf(c *factory.Factory, q policy.Query) *schedule.Gate {
	if b.WarnOf(c, q) {
		b.PutNamespace(q.Namespace, policy.StanzaText{Unread: "whether it is frozen cannot be read"})
	}
	return b.Gate(q)
}

// NotReady says why a policy cannot be relied on; empty: it can, or what it names may not be read.
func (b Resolver) NotReady(p policy.State, now time.Time) string {
	if len(p.Faults) > 0 {
		return p.Faults[0].String()
	}
	v := b.Unpaused(p.Namespace, p.Name).Verdict(now)
	hidden := func(namespace string) bool { return b.documents[namespace] != nil }
	if v.Ready || slices.ContainsFunc(b.Reads(policy.Query{Namespace: p.Namespace, Policies: []policy.PolicyRef{{Name: p.Name, Namespace: p.Namespace}}}), hidden) {
		return ""
	}
	return strings.TrimPrefix(v.Reason, "policy "+p.Name+": not ready: ")
}

// GatesWrong says why the gates of a policy do not hold, by its status; empty: the status does not
// say so.
func (b Resolver) GatesWrong(p policy.State) string {
	return b.gates[policy.PolicyRef{Name: p.Name, Namespace: p.Namespace}]
}

// warn reports what could not be read, once each, and the consequence for the first object that
// needed it: the verdicts of others show it themselves.
func (b Resolver) warn(c *factory.Factory, why []error, follows string) {
	var news []error
	for _, err := range why {
		if !b.told[err.Error()] {
			b.told[err.Error()] = true
			news = append(news, err)
		}
	}
	if len(news) > 0 {
		c.Warn(joined(news) + "; " + follows)
	}
}

// WarnHidden tells what of that which stands behind an object is hidden, and what follows for who asks.
func (b Resolver) WarnHidden(c *factory.Factory, q policy.Query, follows string) {
	if why, _ := b.hidden(q); len(why) > 0 {
		b.warn(c, why, follows)
	}
}

// WarnOf reports what is hidden behind an object, and says whether its namespace may be frozen.
func (b Resolver) WarnOf(c *factory.Factory, q policy.Query) (frozen bool) {
	why, frozen := b.hidden(q)
	switch {
	case frozen:
		b.warn(c, why, "whether it is frozen is not known, so nothing is permitted")
	case len(why) > 0:
		b.warn(c, why, "its policies count as not ready")
	}
	return frozen
}

// PlanGate is the gate of a plan; gated is false if nothing stands between it and its runs. If
// something behind it may not be read, the agent's published verdict is used and marked as such;
// without one, GateOf decides.
func (b Resolver) PlanGate(c *factory.Factory, agent factory.AgentState, cm *corev1.ConfigMap) (gate *schedule.Gate, gated bool) {
	spec, _ := annotations.Plan(cm)
	return b.planGate(c, agent, cm, spec)
}

func (b Resolver) planGate(c *factory.Factory, agent factory.AgentState, cm *corev1.ConfigMap, spec plan.Spec) (gate *schedule.Gate, gated bool) {
	return b.documentGate(c, agent.In(cm.Namespace), cm, annotations.Intent(cm.Annotations).Query(cm.Namespace, spec.Policies))
}

// Quiet is a factory for reading gates that leaves unsaid what may not be read.
func Quiet(c *factory.Factory) *factory.Factory {
	quiet := &factory.Factory{Env: c.Env}
	quiet.ErrOut = io.Discard
	return quiet
}

// RunGate is the gate that the agent asks for a run of a plan, by the rules of PlanGate: with the policies that the
// plan had when the run was made, and for one that runs outside of its window, or has begun and does not wait for
// windows, what its namespace restricts alone. nil: nothing is known to restrict it.
func (b Resolver) RunGate(c *factory.Factory, agent factory.AgentState, cm *corev1.ConfigMap, r run.Run, begun bool) *schedule.Gate {
	own := !r.Request.OutsideWindow && (!begun || r.Spec.OnWindowClose == plan.CloseWait)
	q := annotations.Intent(cm.Annotations).Query(cm.Namespace, r.Spec.Policies).For(!own)
	gate, _ := b.documentGate(c, agent.In(cm.Namespace), cm, q)
	if own || !b.asked[cm.Namespace] {
		return gate
	}
	if said, told := b.frozen[cm.Namespace]; told { // what the agent published is of the plan, and opens with its policies
		b.PutNamespace(cm.Namespace, said)
		return b.Gate(q)
	}
	if !gate.Verdict(c.Now()).Cause.Namespace {
		return nil
	}
	return gate
}

// NodeGate is the gate of a node, by the rules of PlanGate. For a requested node, the agent
// publishes what is in the way, a pause of the cluster included. Where it does not, and the
// cluster's pause may not be read, nothing is permitted.
func (b Resolver) NodeGate(c *factory.Factory, agent factory.AgentState, n *corev1.Node) *schedule.Gate {
	q := annotations.Intent(n.Annotations).Query("", nil)
	why, _ := b.hidden(q)
	noSwitch := b.namespaces[agent.Namespace]
	if noSwitch != nil {
		why = append(why, noSwitch)
	}
	v, told := behaviorOf(n.Annotations)
	switch {
	case len(why) == 0:
		return b.Gate(q)
	case told && agent.Missing == "":
		b.warn(c, why, "the answer that the agent published is used")
		return schedule.Published(v, saysAgent)
	case noSwitch != nil && (agent.Missing != "" || len(annotations.RequestStatuses(n.Annotations)) == 0):
		return b.pauseHidden(c, why)
	}
	return b.GateOf(c, q)
}

// pauseHidden is the gate of what the pause of the whole cluster may hold, where that may not be read and
// nobody has told it.
func (b Resolver) pauseHidden(c *factory.Factory, why []error) *schedule.Gate {
	b.warn(c, why, "whether the whole cluster is paused is not known, so nothing is permitted")
	return schedule.NewGate(schedule.GateSpec{Own: schedule.Stanza{Unread: "whether the whole cluster is paused cannot be read"}})
}

// SleepGate is the gate of a HibernatePlan's sleep, by the rules of PlanGate.
func (b Resolver) SleepGate(c *factory.Factory, agent factory.AgentState, cm *corev1.ConfigMap) *schedule.Gate {
	spec, _ := annotations.HibernatePlan(cm)
	gate, _ := b.documentGate(c, agent.In(cm.Namespace), cm, annotations.Intent(cm.Annotations).Query(cm.Namespace, spec.Policies))
	return gate
}

func (b Resolver) documentGate(c *factory.Factory, agent factory.AgentState, cm *corev1.ConfigMap, q policy.Query) (gate *schedule.Gate, gated bool) {
	why, frozen := b.hidden(q)
	if err := b.namespaces[agent.Namespace]; err != nil && !frozen && (agent.Missing != "" || !observed(cm)) { // no pause of the cluster is told
		return b.pauseHidden(c, append(why, err)), true
	}
	if len(why) == 0 {
		return b.Gate(q), b.Gated(q) || q.Bypass != nil
	}
	v, ok := toldVerdict(cm, q)
	if !ok || agent.Missing != "" { // a silent agent does not know about later freezes
		return b.GateOf(c, q), true
	}
	b.warn(c, why, "the answer that the agent published is used")
	b.asked[cm.Namespace] = true
	b.noteFrozen(cm.Namespace, v)
	return schedule.Published(v, saysAgent), true
}

// saysAgent follows what is the agent's word.
const saysAgent = ", says the agent"

// noteFrozen takes from a verdict that the agent published that a namespace which may not be read is
// frozen.
func (b Resolver) noteFrozen(namespace string, v schedule.Verdict) {
	if said, frozen := schedule.FrozenNamespaceSaid(v.Reason); frozen && !v.Permitted && b.namespaces[namespace] != nil {
		b.frozen[namespace] = policy.StanzaText{Strategy: said.Strategy, Until: said.Until, By: said.By + saysAgent}
	}
}

// AgentAsked says whether the agent's word on a namespace that could not be read was asked for.
func (b Resolver) AgentAsked(namespace string) bool { return b.asked[namespace] }

// NamespaceStanza is what a namespace's annotations say. Of one that may not be read, it is the freeze
// that the agent published on the plans whose gates were asked for.
func (b Resolver) NamespaceStanza(name string) policy.StanzaText {
	if said, told := b.frozen[name]; told {
		return said
	}
	return b.Resolver.NamespaceStanza(name)
}

// toldVerdict is the verdict that the agent published for this version of a plan. An older agent
// publishes none for a plan with policies.
func toldVerdict(cm *corev1.ConfigMap, q policy.Query) (schedule.Verdict, bool) {
	if !observed(cm) {
		return schedule.Verdict{}, false
	}
	if cm.Annotations[annotations.StatusBehavior] == "" {
		return schedule.Verdict{Permitted: true, Ready: true, Reason: "no strategy is set"}, len(q.Policies) == 0
	}
	return behaviorOf(cm.Annotations)
}

// observed says whether the agent has seen this version of a document.
func observed(cm *corev1.ConfigMap) bool {
	return cm.Annotations[annotations.StatusObserved] == annotations.Observed(cm)
}

// behaviorOf is the verdict that the agent published on an object.
func behaviorOf(on map[string]string) (schedule.Verdict, bool) {
	var b policy.Behavior
	if err := json.Unmarshal([]byte(on[annotations.StatusBehavior]), &b); err != nil || b.Current.State == "" {
		return schedule.Verdict{}, false
	}
	return b.Verdict(), true
}

func joined(list []error) string {
	var out []string
	for _, err := range list {
		out = append(out, err.Error())
	}
	return strings.Join(out, "; ")
}

// policiesAndCalendars selects what stands behind gates, and what policies hold by theirs.
const policiesAndCalendars = annotations.LabelKind + " in (" + annotations.KindPolicy + "," + annotations.KindCalendar + "," + annotations.KindGate + ")"

// manyNamespaces is from how many namespaces on all are read at once (a guess: each needs two
// requests).
const manyNamespaces = 4

func (b Resolver) putDocument(cm *corev1.ConfigMap) {
	switch cm.Labels[annotations.LabelKind] {
	case annotations.KindGate:
		record := readGateRecord(cm)
		b.records[policy.PolicyRef{Name: record.Policy, Namespace: cm.Namespace}] = record
		return
	case annotations.KindPolicy:
		ref := policy.PolicyRef{Name: cm.Name, Namespace: cm.Namespace}
		b.PutPolicy(annotations.Policy(cm))
		b.created[ref] = cm.CreationTimestamp.Time
		_, b.gates[ref] = view.GatesOf(cm)
		return
	}
	c, _ := annotations.Calendar(cm)
	b.PutCalendar(cm.Namespace, cm.Name, c)
}

// PolicyNamespaces are those of the policies that a node's stanza names.
func PolicyNamespaces(in intent.Intent) []string {
	var out []string
	for _, ref := range in.Stanza.Policies {
		if ref.Namespace != "" { // else the agent's
			out = append(out, ref.Namespace)
		}
	}
	return out
}

// Pauses are the pauses above objects of some namespaces.
type Pauses struct {
	of     map[string][]schedule.Pause
	hidden map[string]bool // whose pause may not be read, as pauses name it
	// deleting are those that somebody has deleted and that are not gone yet; missing are not there.
	deleting, missing map[string]bool
}

// Deleting says whether a namespace is being deleted that was read, or of a plan that DeletingOf was
// asked about.
func (s Pauses) Deleting(namespace string) bool { return s.deleting[namespace] }

// DeletingOf says whether the namespace of a plan is being deleted. Where that may not be read, the
// agent's word on the plan counts: it stays true.
func (s Pauses) DeletingOf(cm *corev1.ConfigMap) bool {
	if _, told := view.FindCondition(view.Conditions(cm), annotations.NamespaceDeleting, metav1.ConditionTrue); told && s.hidden[annotations.NamespaceNamed(cm.Namespace)] {
		s.deleting[cm.Namespace] = true
	}
	return s.deleting[cm.Namespace]
}

// Goes says that the namespace of a plan is being deleted, and whose word that is; empty: it is not known
// to be.
func (s Pauses) Goes(cm *corev1.ConfigMap) string {
	switch {
	case !s.DeletingOf(cm):
		return ""
	case s.hidden[annotations.NamespaceNamed(cm.Namespace)]:
		return view.NamespaceGoes + saysAgent
	}
	return view.NamespaceGoes
}

// Missing says whether a namespace that was asked for is not there.
func (s Pauses) Missing(namespace string) bool { return s.missing[namespace] }

// ReadPauses reads the pauses above the objects of some namespaces: each namespace's own, and the
// cluster's. What may not be read is not shown.
func ReadPauses(ctx context.Context, k *factory.Cluster, agentNamespace string, namespaces ...string) Pauses {
	names := namesOf(agentNamespace, namespaces)
	known := make([]namespace, len(names))
	sideBySide(names, func(i int, name string) { known[i] = getNamespace(ctx, k, name) })
	return pausesOf(byName(names, known), agentNamespace)
}

func unread(err error) bool { return err != nil && !apierrors.IsNotFound(err) }

// Namespaces are those that were asked for, in order.
func (s Pauses) Namespaces() []string { return slices.Sorted(maps.Keys(s.of)) }

// Above are the pauses above the objects of a namespace.
func (s Pauses) Above(namespace string) []schedule.Pause { return slices.Clone(s.of[namespace]) }

// AbovePlan are the pauses above a plan. If one may not be read, and the plan's status says that it
// holds, that counts.
func (s Pauses) AbovePlan(c *factory.Factory, cm *corev1.ConfigMap) []schedule.Pause {
	return s.above(c, cm, pausedPlan)
}

// PublishedPause is what the agent says of a pause above a plan, where not all of these may be read; off:
// it says of none.
func (s Pauses) PublishedPause(c *factory.Factory, cm *corev1.ConfigMap) schedule.Pause {
	return s.told(c, cm, pausedPlan)
}

const pausedPlan = string(trigger.PhasePaused)

// AboveSleeper are the pauses above a HibernatePlan, by the rules of AbovePlan.
func (s Pauses) AboveSleeper(c *factory.Factory, cm *corev1.ConfigMap) []schedule.Pause {
	return s.above(c, cm, string(hibernate.Suspended))
}

func (s Pauses) above(c *factory.Factory, cm *corev1.ConfigMap, paused string) []schedule.Pause {
	out := s.Above(cm.Namespace)
	if told := s.told(c, cm, paused); told.On {
		out = append(out, told)
	}
	return out
}

func (s Pauses) told(c *factory.Factory, cm *corev1.ConfigMap, paused string) schedule.Pause {
	if !observed(cm) {
		return schedule.Pause{}
	}
	told, ok := toldPause(cm, paused)
	if !ok || !s.hidden[told.Of] || told.Until != nil && !told.Holds(c.Now()) {
		return schedule.Pause{}
	}
	told.By += saysAgent
	return told
}

// toldPause is the pause that the agent published on a document. An older agent says it in the
// phase alone.
func toldPause(cm *corev1.ConfigMap, paused string) (schedule.Pause, bool) {
	for _, condition := range view.Conditions(cm) {
		if condition.Type == policy.ChangesPaused && condition.Status == metav1.ConditionTrue && condition.Reason == policy.ReasonPaused {
			return schedule.PauseSaid(condition.Message)
		}
	}
	if cm.Annotations[annotations.StatusPhase] != paused {
		return schedule.Pause{}, false
	}
	return schedule.PauseSaid(cm.Annotations[annotations.StatusMessage])
}
