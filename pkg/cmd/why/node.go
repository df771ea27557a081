package why

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/claims"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/rollout"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// nodeQuestion is all that decides who gets a node. Of rollouts it knows what their
// journals say: of each that has no node at work, the next one counts as wanted.
type nodeQuestion struct {
	node       string
	bears      map[string]string  // the node's annotations
	world      nodes.ClusterState // of all nodes, with their gates
	stepClaims []view.StepClaim   // of all nodes
	runs       map[string]string  // a live run, by its plan as a claimant
	unseen     view.UnseenRuns    // which are not among them
	alone      map[string]string  // a live run that the agent leaves alone, by its plan as a claimant
	agent      factory.AgentState
	rules      nodeRules
	gates      map[string]claims.Node // by node, as runs meet them
	shut       *nodes.Gate            // what keeps change from all nodes
	cordoners  []annotations.CordonWriter
	gone       []string // plans that the node is cordoned for and that do not exist, as claimants
}

// nodeRules are what the agent's configuration says of all nodes, and what the agent says there of
// itself.
type nodeRules struct {
	unread   error  // why the limits are not known; nil: they are
	doubt    string // why its clock is in doubt; empty: it is not
	withheld string // why it carries no request out; empty: it does
}

// nodeAnswer is how a node stands, and what is in the way of whom.
type nodeAnswer struct {
	standing  []string
	obstacles []obstacle
	byLimits  bool // the limits over all maintenance decide something of it
	uncounted bool // a drain has begun, and what is in its way is not known yet
	unseen    bool // the agent has written nothing about a request whose turn has come
}

// answer asks the ranker that the agent asks.
func (q nodeQuestion) answer(v print.Printer) nodeAnswer {
	var out nodeAnswer
	i := slices.IndexFunc(q.world.Nodes, func(n nodes.Node) bool { return n.Name == q.node })
	if i < 0 {
		return out
	}
	n := q.world.Nodes[i]
	q.world.Nodes = slices.Clone(q.world.Nodes)
	q.addClaims()
	for i := range q.world.Nodes {
		q.world.Nodes[i].Asked = claims.Asked(q.world.Nodes[i], q.rules.withheld != "")
	}
	ranking := nodes.Rank(q.world)
	if q.agent.Missing != "" {
		out.obstacles = append(out.obstacles, nobodyActs(q.agent))
	}
	q.fullNode(&out, n, ranking)
	for _, a := range n.Asked {
		q.request(&out, v, n, a, ranking)
	}
	var rolling []string
	for _, r := range q.stepClaims {
		if r.Node == q.node {
			if r.Phase != "" {
				rolling = append(rolling, r.Claimant())
			}
			q.rollout(&out, v, n, r, ranking)
		}
	}
	q.leftCordoned(&out, v, n, rolling)
	return out
}

// roomForStatus is how many bytes the agent needs to say how a request does (a guess).
const roomForStatus = 256

// fullNode says that the node's annotations have no room for what the agent writes next for a
// request that does not have the node yet: the API server refuses it, and with it the whole change.
func (q nodeQuestion) fullNode(out *nodeAnswer, n nodes.Node, ranking nodes.Ranking) {
	before := []nodes.Phase{nodes.Pending, nodes.Scheduled, nodes.Cordoning, nodes.WaitingForPods, nodes.Draining}
	if !slices.ContainsFunc(n.Asked, func(a nodes.Asked) bool {
		return !a.Gone && (a.Status == nil || slices.Contains(before, a.Status.Phase))
	}) {
		return
	}
	needs := roomForStatus
	if step := nodes.Advance(n, ranking.Turns(n.Name), q.world.Limits, q.world.Now); step.Writes() {
		needs = annotations.Grows(q.bears, step)
	}
	if full, is := annotationsFull("the node", q.bears, needs); is {
		full.what += ", and others have its turn"
		out.obstacles = append(out.obstacles, full)
	}
}

// annotationsFull is that the annotations of an object have no room for so many bytes more.
func annotationsFull(of string, bears map[string]string, needs int) (obstacle, bool) {
	has := annotations.Bytes(bears)
	if needs <= 0 || has+needs <= annotations.MaxBytes {
		return obstacle{}, false
	}
	largest := slices.MaxFunc(slices.Sorted(maps.Keys(bears)), func(a, b string) int { return cmp.Compare(len(bears[a]), len(bears[b])) })
	return obstacle{
		what:   fmt.Sprintf("the annotations of %s have %d of at most %d bytes: the API server refuses what the agent writes there", of, has, annotations.MaxBytes),
		remedy: fmt.Sprintf("remove what fills them: the largest is %s with %d bytes; the agent tries again every half minute", largest, len(bears[largest])),
	}, true
}

// leftCordoned are the plans for which the node is cordoned although no run of theirs has it: the
// run failed, was aborted, or has no uncordon step.
func (q nodeQuestion) leftCordoned(out *nodeAnswer, v print.Printer, n nodes.Node, rolling []string) {
	if !n.Unschedulable {
		return
	}
	if n.Cordon == nil {
		out.stands("cordoned, %s", v.CordonedByOthers(n.Name, q.cordoners))
		return
	}
	for _, by := range n.Cordon.By {
		switch run, lives := q.runs[by]; {
		case !nodes.IsPlan(by) || slices.Contains(rolling, by):
		case nodes.IsElsewhere(by):
			out.stands("%s: cordoned for it since %s; the agent there goes on with the node, and uncordons it", nodes.ClaimantName(by), v.When(n.Cordon.At))
		case lives:
			out.stands("%s: cordoned for it; its run %s goes on", nodes.ClaimantName(by), run)
		case q.alone[by] != "":
			out.add(
				fmt.Sprintf("it is cordoned for %s since %s, and the agent leaves its run %s alone", nodes.ClaimantName(by), v.When(n.Cordon.At), q.alone[by]),
				fmt.Sprintf("%s says why; or %s", v.WhyAlone(by, q.alone[by]), q.uncordon(v, n)),
			)
		case q.unseen.Of(by):
			out.add(
				fmt.Sprintf("it is cordoned for %s since %s, and %s", nodes.ClaimantName(by), v.When(n.Cordon.At), view.RunsUnseen),
				"if none has, the plan's next run goes on with it; whoever may list ConfigMaps in its namespace sees its runs",
			)
		case slices.Contains(q.gone, by):
			out.add(
				fmt.Sprintf("it is cordoned for %s since %s, and there is no such plan any more", nodes.ClaimantName(by), v.When(n.Cordon.At)),
				"nobody else uncordons it: "+q.uncordon(v, n),
			)
		default:
			out.add(
				fmt.Sprintf("it is cordoned for %s since %s, and no run of that plan has it now: one that failed or was aborted left it cordoned", nodes.ClaimantName(by), v.When(n.Cordon.At)),
				"the plan's next run goes on with it and uncordons it, if it has such a step; or "+q.uncordon(v, n),
			)
		}
	}
}

// uncordon is the command that uncordons the node, and whom it would stop before. A live run may have
// cordoned the node in a step that claims none.
func (q nodeQuestion) uncordon(v print.Printer, n nodes.Node) string {
	atWork := view.NodeUse{Steps: q.stepClaims, Unseen: q.unseen, Alone: q.alone}.AtWork(n)
	if n.Cordon != nil {
		for _, by := range n.Cordon.By {
			has := func(r view.StepClaim) bool { return r.Node == n.Name && r.Claimant() == by }
			if q.runs[by] != "" && !q.unseen.Of(by) && !slices.ContainsFunc(q.stepClaims, has) {
				atWork = append(atWork, nodes.ClaimantName(by))
			}
		}
	}
	return v.Uncordon(n.Name, atWork)
}

func (a *nodeAnswer) add(what, remedy string) {
	a.obstacles = append(a.obstacles, obstacle{what: what, remedy: remedy})
}

// until says when the last obstacle is over by itself; nil: that is not known.
func (a *nodeAnswer) until(at *time.Time) { a.obstacles[len(a.obstacles)-1].until = at }

func (a *nodeAnswer) stands(format string, args ...any) {
	a.standing = append(a.standing, fmt.Sprintf(format, args...))
}

// addClaims adds what rollouts have and want.
func (q *nodeQuestion) addClaims() {
	asked := map[string]bool{} // rollouts that want this node; their other nodes are not considered
	for _, r := range q.stepClaims {
		if r.Node == q.node && r.Phase == "" {
			asked[r.Step()] = true
		}
	}
	for _, r := range q.stepClaims {
		switch {
		case r.Phase != "":
			q.world.Holds = append(q.world.Holds, nodes.Hold{Node: r.Node, Claimant: r.Claimant(), Step: r.Step(), Failed: r.Phase == run.StepFailed, Yielded: r.Yielded, Cordoned: r.Cordoned})
		case r.Node == q.node || r.Next && !asked[r.Step()]:
			n, seen := q.gates[r.Node]
			if !seen { // the agent gives nobody a node that it does not see
				continue
			}
			gate, _ := claims.GateForRun(q.shut, n, claims.Work{Run: r.Run.Run.Name, Needs: r.Needs}, q.world.Now)
			q.world.Wants = append(q.world.Wants, nodes.Candidate{Node: r.Node, Claimant: r.Claimant(), Step: r.Step(), Order: r.Order, Since: r.Since, Blocked: r.Blocked, Permitted: gate.Permitted, Reason: gate.Reason})
		}
	}
}

// request is one request for the node: its progress, or what it waits for.
func (q nodeQuestion) request(out *nodeAnswer, v print.Printer, n nodes.Node, a nodes.Asked, ranking nodes.Ranking) {
	requestor := a.Request.Requestor
	wait, waits := waitOf(ranking, n.Name, requestor, "")
	switch {
	case a.Gone:
		out.stands("%s: %s", requestor, view.RequestWords(&a))
	case q.rules.withheld != "":
		out.add(requestor+": "+v.AgentText(q.rules.withheld), v.Suggest().ReleaseFor(n.Name, requestor)+" takes it back")
	case waits:
		q.waiting(out, v, n, a, wait)
	case slices.Contains(ranking.Grants, nodes.Grant{Node: n.Name, Claimant: requestor}):
		out.byLimits = true
		out.stands("%s: its turn has come: the agent takes it up as soon as it can", requestor)
		out.unseen = out.unseen || a.Status == nil
	case a.Status == nil:
		out.stands("%s: %s", requestor, view.RequestWords(&a))
	default:
		out.stands("%s: %s", requestor, v.Asked(&a))
		q.holding(out, v, n, a)
	}
}

func waitOf(r nodes.Ranking, node, claimant, step string) (nodes.Wait, bool) {
	i := slices.IndexFunc(r.Waits, func(w nodes.Wait) bool { return w.Node == node && w.Claimant == claimant && w.Step == step })
	if i < 0 {
		return nodes.Wait{}, false
	}
	return r.Waits[i], true
}

// waiting is what a request waits for. If the limits may not be read, the agent's status is better
// than their defaults.
func (q nodeQuestion) waiting(out *nodeAnswer, v print.Printer, n nodes.Node, a nodes.Asked, wait nodes.Wait) {
	what := a.Request.Requestor + ": " + v.AgentText(view.WordsFor(a.Request.Requestor, wait.Message))
	out.byLimits = out.byLimits || limited(wait.Reason)
	if q.rules.unread != nil && limited(wait.Reason) {
		what = fmt.Sprintf("%s: %s (the limits are not known here: %v)", a.Request.Requestor, view.RequestWords(&a), q.rules.unread)
	}
	out.add(what, q.remedy(v, n, a.Request.Requestor, wait))
	out.until(q.opensAt(n, wait))
}

// limited says whether a wait is due to the limits over all maintenance.
func limited(r nodes.WaitReason) bool {
	return slices.Contains([]nodes.WaitReason{nodes.WaitTurn, nodes.WaitNone, nodes.WaitBudget, nodes.WaitZone}, r)
}

// holding is what is in the way of a request that has the node.
func (q nodeQuestion) holding(out *nodeAnswer, v print.Printer, n nodes.Node, a nodes.Asked) {
	requestor := a.Request.Requestor
	out.uncounted = out.uncounted || a.Status.Phase == nodes.Draining && a.Status.Progress == nil && a.Status.Blocked == nil
	text, howLong := view.HowBlocked(a, v.Now)
	switch {
	case a.Fault != "":
		out.add(requestor+": "+v.AgentText(view.RequestReason(a)), mendRequest(n.Name, requestor))
	case n.Cordon != nil && n.Cordon.Undone && !n.Unschedulable && a.Status.Phase != nodes.Ready:
		out.add("somebody uncordoned the node while "+requestor+" had it: nothing more is drained", fmt.Sprintf("%s lets it go on; %s gives it back", v.Suggest().Cordon(n.Name), v.Suggest().ReleaseFor(n.Name, requestor)))
	case text != "":
		remedy := v.Suggest().DrainPlan(n.Name) + " shows all that blocks it"
		switch {
		case view.PassesBlock(a):
			howLong, remedy = "", "it "+v.AgentText(a.Request.Drain.Ending(a.Status.Since, v.Now))+"; "+remedy
		case !a.Status.Blocked.Permanent:
			remedy = "it goes on by itself when that is over; " + remedy
		}
		out.add(requestor+" is blocked"+view.Prefix(" ", v.AgentText(howLong))+": "+text, remedy)
	case a.Status.Phase == nodes.RequestorFailed:
		out.add(requestor+" failed, and keeps the node out", fmt.Sprintf("it goes on when %s has corrected its request; %s gives the node back", requestor, v.Suggest().ReleaseFor(n.Name, requestor)))
	}
}

// rollout is the node in a rollout of a plan.
func (q nodeQuestion) rollout(out *nodeAnswer, v print.Printer, n nodes.Node, r view.StepClaim, ranking nodes.Ranking) {
	who := r.Named() // first, as messages may end with what others have
	wait, waits := waitOf(ranking, n.Name, r.Claimant(), r.Step())
	out.byLimits = out.byLimits || r.Phase == "" && (!waits || limited(wait.Reason))
	switch {
	case r.Yielded:
		out.add(fmt.Sprintf("%s yielded its turn: %s", who, v.AgentText(r.Message)), v.Suggest().DrainPlan(n.Name)+" shows all that blocks it; it goes on first once nothing does")
	case r.Phase == run.StepRunning:
		out.stands("%s: at work", who)
	case r.Phase == run.StepFailed:
		out.add(fmt.Sprintf("%s failed here, and left the node as it is%s", who, view.Colon(v.AgentText(r.Message))), "fix it; the next run of the plan goes on with it, or "+q.uncordon(v, n))
	case waits && (q.rules.unread == nil || !limited(wait.Reason)):
		out.add(who+": "+v.AgentText(wait.Message), q.remedy(v, n, r.Claimant(), wait))
		out.until(q.opensAt(n, wait))
	default:
		out.add(who+" has not begun it"+view.Colon(v.AgentText(r.Message)), "it comes when its rollout gets to it")
	}
}

// remedy is the command that ends a wait.
func (q nodeQuestion) remedy(v print.Printer, n nodes.Node, claimant string, wait nodes.Wait) string {
	switch wait.Reason {
	case nodes.WaitClosed:
		return q.opens(v, n, wait)
	case nodes.WaitBlocked:
		return v.Suggest().DrainPlan(n.Name) + " shows all that blocks it" + goesOnWith(n, claimant)
	case nodes.WaitEnded:
		return fmt.Sprintf("%s, then ask again; or ask for something else", v.Suggest().ReleaseFor(n.Name, claimant))
	case nodes.WaitInvalid:
		return mendRequest(n.Name, claimant)
	case nodes.WaitHeld:
		return q.whenReleased(v, n)
	case nodes.WaitDeleting:
		return "nothing: there will be no such node"
	case nodes.WaitUncordoned:
		return fmt.Sprintf("%s lets the one that has it go on; %s", v.Suggest().Cordon(n.Name), q.whenReleased(v, n))
	case nodes.WaitTurn:
		return "its turn comes when one of them is released; or raise " + q.limit("maxParallelOperations")
	case nodes.WaitNone:
		return "set " + q.limit("maxParallelOperations") + " to at least 1"
	case nodes.WaitBudget:
		return "it goes on when enough nodes take pods again; or raise " + q.limit("maxUnavailable")
	case nodes.WaitZone:
		return "it goes on when one of them is released; or raise " + q.limit("zoneLimit")
	}
	return "it goes on by itself then"
}

// goesOnWith are options with which the drain of a request would go on in spite of the pods in its
// way. Force ignores budgets; it does not delete pods that the drain refuses to evict. Both options
// need a timeout, and take effect after it.
func goesOnWith(n nodes.Node, claimant string) string {
	a := view.AskedBy(n, claimant)
	switch {
	case a == nil || a.Request.Drain == nil:
		return ""
	case a.Preview.Refused:
		return "; or ask with --on-timeout skip, which leaves those pods on the node"
	case a.Request.Drain.Timeout.Or(drain.DefaultDrainTimeout) <= 0:
		return "; or ask with a --drain-timeout, and --on-timeout skip or force"
	}
	return "; or ask with --on-timeout skip or force"
}

func (q nodeQuestion) limit(name string) string {
	return fmt.Sprintf("spec.nodes.%s in the agent's configuration (ConfigMap %s/%s)", name, q.agent.Namespace, annotations.AgentConfigName)
}

// clocksAgree is what ends a doubt of the agent's clock.
const clocksAgree = "it goes on when the clocks of the agent and the API server agree again"

// opensAt is when a gate opens for which something waits; nil: it waits for something else, or nobody
// knows.
func (q nodeQuestion) opensAt(n nodes.Node, wait nodes.Wait) *time.Time {
	if wait.Reason != nodes.WaitClosed || q.rules.doubt != "" || n.Gate.Permitted {
		return nil
	}
	return cmp.Or(wait.Next, n.Gate.Next)
}

func (q nodeQuestion) opens(v print.Printer, n nodes.Node, wait nodes.Wait) string {
	text, next := "it stays so until somebody changes it", q.opensAt(n, wait)
	if q.rules.doubt != "" {
		return clocksAgree
	}
	switch {
	case n.Gate.Permitted: // for work that takes less time
		text = "it begins once the window is long enough for the step's estimate"
	case next == nil && strings.Contains(n.Gate.Reason, schedule.NotKnownYet):
		text = openingNotKnown
	case next != nil:
		text = "permitted from " + v.When(*next)
	}
	switch {
	case n.Gate.Cluster:
		return text + "; or " + v.Suggest().ResumeCluster()
	case n.Gate.Cause == schedule.Cause{Kind: schedule.CausePause}:
		return text + "; or " + v.Suggest().Resume("node/"+n.Name)
	case n.Gate.Cause == schedule.Cause{Kind: schedule.CauseFreeze}: // of the node itself
		return text + "; or " + v.In("").Suggest().Unfreeze("node/"+n.Name)
	}
	return text + "; or " + v.Suggest().Allow("node/"+n.Name)
}

// whenReleased says how the present holder releases a node.
func (q nodeQuestion) whenReleased(v print.Printer, n nodes.Node) string {
	for _, a := range n.Asked {
		if !a.Gone && a.Status != nil && a.Status.Ended == nil && a.Status.Phase.Holds() {
			return v.Suggest().ReleaseFor(n.Name, a.Request.Requestor) + " gives it back"
		}
	}
	return "it goes on by itself when that is through with the node"
}

func mendRequest(node, requestor string) string {
	return fmt.Sprintf("fix the annotation %s%s on node %s", annotations.RequestPrefix, requestor, node)
}

// questionOf reads what decides over a node.
func questionOf(ctx context.Context, c *factory.Factory, k *factory.Cluster, agent factory.AgentState, name string) (nodeQuestion, error) {
	q := nodeQuestion{node: name, agent: agent, world: nodes.ClusterState{Now: c.Now()}, gates: map[string]claims.Node{}}
	list, err := k.Nodes(ctx, "")
	if err != nil {
		return q, err
	}
	runs, err := rollout.OfAllNodes(ctx, c, k)
	if err != nil {
		return q, err
	}
	q.alone, q.unseen = runs.Alone, runs.Unseen
	q.stepClaims, q.runs = view.StepClaims(runs.Counted), map[string]string{}
	for _, r := range runs.Counted {
		q.runs[nodes.PlanClaimant(r.Run.Namespace, r.Run.Plan)] = r.Run.Name
	}
	q.world.Limits, q.rules = readRules(ctx, k, agent.Namespace)
	around := aroundNodes(ctx, k, agent, list)
	q.shut = claims.ClusterGate(q.rules.doubt, around.Above(agent.Namespace), c.Now())
	for _, n := range list {
		facts := annotations.Node(n)
		if n.Name == name {
			q.bears, q.cordoners, q.gone = n.Annotations, annotations.CordonWriters(n), runs.PlansGone(ctx, k, facts)
		}
		q.gates[n.Name] = claims.Node{Intent: annotations.Intent(n.Annotations), Verdict: around.NodeGate(c, agent, n).Verdict}
		facts.Gate = claims.Gate(q.shut, q.gates[n.Name], c.Now())
		for i := range facts.Asked {
			facts.Asked[i].Preview = facts.Asked[i].Remembered()
		}
		q.world.Nodes = append(q.world.Nodes, facts)
	}
	return q, nil
}

// aroundNodes reads the policies in the stanzas of nodes, and the cluster's pause.
func aroundNodes(ctx context.Context, k *factory.Cluster, agent factory.AgentState, list []*corev1.Node) source.Restrictions {
	var namespaces []string
	for _, n := range list {
		namespaces = append(namespaces, source.PolicyNamespaces(annotations.Intent(n.Annotations))...)
	}
	return source.ReadRestrictions(ctx, k, agent.Namespace, namespaces...)
}

// readRules reads the limits over all maintenance of nodes, the defaults if there is no
// configuration, and what the agent says there of itself.
func readRules(ctx context.Context, k *factory.Cluster, agentNamespace string) (nodes.Limits, nodeRules) {
	usual, _ := nodes.LimitsOf(nodes.NodeLimits{}) // the defaults are valid
	cm, err := k.ConfigMaps(agentNamespace).Get(ctx, annotations.AgentConfigName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return usual, nodeRules{}
	case err != nil:
		return usual, nodeRules{unread: k.Explain("read the agent's configuration", err)}
	}
	if lacks := k.Unlabelled(cm); lacks != "" {
		return usual, nodeRules{unread: errors.New(lacks)}
	}
	rules := rulesSaid(cm)
	limits, err := limitsIn(cm)
	if err != nil {
		limits, rules.unread = usual, err
	}
	return limits, rules
}

// rulesSaid are what the conditions of the agent's configuration say of nodes.
func rulesSaid(cm *corev1.ConfigMap) (rules nodeRules) {
	said := view.Conditions(cm)
	rules.doubt, _ = view.FindCondition(said, agentconfig.ClockDoubt, metav1.ConditionTrue)
	for _, kind := range []string{agentconfig.DryRun, agentconfig.NodesForbidden} {
		if why, is := view.FindCondition(said, kind, metav1.ConditionTrue); is {
			rules.withheld = why
		}
	}
	return rules
}

func limitsIn(cm *corev1.ConfigMap) (nodes.Limits, error) {
	text, fault := annotations.DocumentText(cm)
	if fault != nil {
		return nodes.Limits{}, errBrokenConfig(fault.String())
	}
	spec, faults := agentconfig.Parse([]byte(text))
	if len(faults) > 0 {
		return nodes.Limits{}, errBrokenConfig(faults[0].String())
	}
	limits, err := nodes.LimitsOf(spec.Nodes)
	if err != nil {
		return nodes.Limits{}, errBrokenConfig(err.Error())
	}
	return limits, nil
}

func errBrokenConfig(why string) error {
	return errors.New("the agent's configuration is invalid, and the previous one stays in force: " + why)
}

// whyNode says why a node is not given to its requestors.
func (o *whyOptions) whyNode(ctx context.Context, k *factory.Cluster, s view.Subject) error {
	agent, err := o.Agent(ctx, k)
	if err != nil {
		fmt.Fprintf(o.ErrOut, "warning: %v\n", err)
	}
	q, err := questionOf(ctx, o.Factory, k, agent, s.Name)
	if err != nil { // the node's own verdict is known all the same
		fmt.Fprintf(o.ErrOut, "warning: %v; only what the agent wrote about the requests is known\n", err)
		return o.reportNode(s, o.toldOf(ctx, k, agent, s.Name))
	}
	answer := q.answer(o.printer(o.Zone))
	if q.rules.unread != nil && answer.byLimits {
		fmt.Fprintf(o.ErrOut, "warning: the limits maxParallelOperations, maxUnavailable and zoneLimit are not known: %v\n", q.rules.unread)
	}
	return o.reportNode(s, answer)
}

// toldOf is what the agent says of the requests on a node, for whoever may read that node alone.
func (o *whyOptions) toldOf(ctx context.Context, k *factory.Cluster, agent factory.AgentState, name string) nodeAnswer {
	var out nodeAnswer
	if agent.Missing != "" {
		out.obstacles = append(out.obstacles, nobodyActs(agent))
	}
	object, err := k.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil { // it was there a moment ago
		o.Warn(fmt.Sprintf("read node %s: %v", name, err))
		return out
	}
	q, v, n := nodeQuestion{agent: agent, bears: object.Annotations}, o.printer(o.Zone), annotations.Node(object)
	_, q.rules = readRules(ctx, k, agent.Namespace)
	q.fullNode(&out, n, nodes.Ranking{})
	for _, a := range n.Asked {
		q.told(&out, v, n, a)
	}
	if n.Unschedulable && n.Cordon == nil {
		out.stands("cordoned, %s", v.CordonedByOthers(n.Name, annotations.CordonWriters(object)))
	}
	return out
}

// told is what the agent says of one request, and of itself where that keeps it from the request.
func (q nodeQuestion) told(out *nodeAnswer, v print.Printer, n nodes.Node, a nodes.Asked) {
	requestor, pending := a.Request.Requestor, a.Status == nil || a.Status.Phase == nodes.Pending
	takesBack := v.Suggest().ReleaseFor(n.Name, requestor) + " takes it back"
	switch {
	case a.Gone:
		out.stands("%s: %s", requestor, v.Asked(&a))
	case q.rules.withheld != "":
		out.add(requestor+": "+v.AgentText(q.rules.withheld), takesBack)
	case pending && q.rules.doubt != "":
		out.add(requestor+": "+v.AgentText(q.rules.doubt), clocksAgree+"; "+takesBack)
	case pending:
		out.add(requestor+": "+v.Asked(&a), "it goes on by itself then; "+takesBack)
	default:
		out.stands("%s: %s", requestor, v.Asked(&a))
		q.holding(out, v, n, a)
	}
}

// reportNode says what is in the way of a node.
func (o *whyOptions) reportNode(s view.Subject, answer nodeAnswer) error {
	if !o.out.Lines() {
		return o.reportNodeValue(s, answer)
	}
	verdict := s.Verdict(o.Now())
	for _, l := range print.VerdictLines(s, verdict, o.Now()) {
		fmt.Fprintln(o.Out, l)
	}
	for _, l := range answer.standing {
		fmt.Fprintln(o.Out, l)
	}
	for i, found := range answer.obstacles {
		fmt.Fprintf(o.Out, "%d. %s\n   %s\n", i+1, document.OneLine(found.what), found.remedy)
	}
	switch {
	case !verdict.Permitted:
		fmt.Fprintln(o.Out, o.opens(s))
	case len(answer.obstacles) > 0:
	case answer.uncounted:
		fmt.Fprintln(o.Out, "it is not known yet whether anything blocks its drain")
	case answer.unseen: // an agent that knows no requests looks the same
		fmt.Fprintf(o.Out, "the agent has not looked at the request yet: if that stays so, it is too old, or watches only one namespace; see %s\n", o.Suggest().DoctorAll())
	case len(answer.standing) > 0:
		fmt.Fprintln(o.Out, "nothing is in the way")
	default:
		fmt.Fprintf(o.Out, "nobody asks for it: %s does\n", o.Suggest().Drain(s.Name))
	}
	if !verdict.Permitted {
		return exit.Errorf(exit.CodeNotNow, "")
	}
	return ended(answer.obstacles)
}

// opens is the command that permits change; while there is a pause above, it is another one.
func (o *whyOptions) opens(s view.Subject) string {
	pause := s.PauseAt(o.Now())
	if s.Verdict(o.Now()).Hidden() {
		return "who may read it sees more: ask for the right that the warning names"
	}
	if !pause.On && s.Kind == annotations.KindPolicy && !s.Verdict(o.Now()).Ready { // allow would not help
		return "mend the policy, or what it names; " + o.Suggest().Lint() + " tells all its faults"
	}
	if !pause.On {
		return o.permits(s)
	}
	resume := o.Suggest().Resume(s.String())
	if pause.Of == annotations.WholeCluster {
		resume = o.Suggest().ResumeCluster()
	}
	if !s.Verdict(o.Now()).Ready { // the verdict hides the pause
		return "it is paused as well: fix the policy, then end the pause with " + resume
	}
	return "to end the pause: " + resume
}

// permits is the command that permits change where a gate is closed without a pause: a freeze is
// ended, not overridden.
func (o *whyOptions) permits(s view.Subject) string {
	itself := "" // the policy whose freeze is the subject's own
	if s.Kind == annotations.KindPolicy {
		itself = s.Name
	}
	if c := s.Verdict(o.Now()).Cause; c.Kind == schedule.CauseFreeze && !c.Namespace && c.Policy == itself {
		hand := o.Suggest()
		if s.Kind == factory.KindNode { // nodes are in no namespace
			hand = hand.In("")
		}
		return "to end the freeze: " + hand.Unfreeze(s.String())
	}
	return "to permit it for a while: " + o.Suggest().Allow(s.String())
}

// reportNodeValue says for scripts what blocks a node, or what a policy governs.
func (o *whyOptions) reportNodeValue(s view.Subject, answer nodeAnswer) error {
	found := answer.obstacles
	if v := s.Verdict(o.Now()); !v.Permitted {
		found = append([]obstacle{{what: view.Permission(v) + ": " + instant.InText(v.Reason+v.Later, s.Zone), remedy: o.opens(s), until: openFrom(v)}}, found...)
	}
	if err := o.printWhy(explain(s.Kind, s.Namespace, s.Name, answer.standing), found); err != nil {
		return err
	}
	return ended(found)
}
