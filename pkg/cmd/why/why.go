// Package why holds the command that says why nothing happens to a plan, a run, a policy or a
// node, and what would help.
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

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/gitops"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/rollout"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/stuck"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

type whyOptions struct {
	*factory.Factory
	out    *print.Values
	name   string
	nodes  []*corev1.Node // all of them, where a rollout is explained
	failed bool           // the run that was named has failed
	ended  string         // how the run ended that was named; empty: none was, or it goes on
	faults exit.Faults
}

// New is the command why.
func New(c *factory.Factory) *cobra.Command {
	o := &whyOptions{Factory: c, out: print.NewValues()}
	cmd := &cobra.Command{
		Use:   "why PLAN|RUN|POLICY|NODE",
		Short: "Show why nothing happens, and what would help",
		Long: `Show what keeps a plan from running now, in the order in which the agent checks, and
what would change each. For a run, its plan is explained. For a HibernatePlan: why it
sleeps or is awake, and what would change that. For a node: why its requestors do not
have it yet, by which rule and with which numbers. The agent decides by the same code.
Where a plan and a node have one name, write plan/NAME or node/NAME.
Exit code 0 where nothing is in the way, 3 where something is. A silent agent, of which
standard error warns, does not count for it.`,
		Example:           "  kubectl maint why orders-weekly\n  kubectl maint why worker-3",
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.Both(completion.Kinds(c, annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy, annotations.KindRun), completion.Likely(c, func(m metav1.ObjectMeta) bool { return completion.Maintained(m) || completion.Governed(m) })),
	}
	o.out.AddFlags(cmd)
	return cmd
}

// Complete takes the name.
func (o *whyOptions) Complete(_ *cobra.Command, args []string) error {
	o.name = factory.OneName(args, "PLAN, RUN, POLICY or NODE", &o.faults)
	return nil
}

// Validate checks the format.
func (o *whyOptions) Validate() error {
	o.out.Check(&o.faults)
	return o.faults.Err()
}

// obstacle is one obstacle, and what would remove it.
type obstacle struct {
	what, remedy string
	until        *time.Time // when it is over by itself; nil: it is not, or that is not known
}

// Run prints the obstacles, then what comes next.
func (o *whyOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	if !o.out.Lines() { // no colours in values
		o.Color = false
	}
	agent, unknown := o.Agent(ctx, k)
	o.WarnSilent(agent)
	sleeper, err := o.sleeper(ctx, k, agent)
	if err != nil {
		return err
	}
	if sleeper != nil {
		o.warn(unknown)
		return o.whySleep(ctx, k, agent, *sleeper)
	}
	s, err := o.subject(ctx, k, agent)
	if err != nil {
		return err
	}
	switch s.Kind {
	case annotations.KindPolicy:
		return o.permission(s)
	case factory.KindNode:
		return o.whyNode(ctx, k, s)
	}
	o.warn(unknown)
	cm, err := k.Plan(ctx, s.Name)
	if err != nil {
		return err
	}
	p, err := source.ReadPlan(ctx, o.Factory, k, agent, cm)
	if err != nil {
		return err
	}
	v := o.printer(s.Zone)
	alone := o.leftAlone(&p, v)
	if slices.ContainsFunc(p.Active, rollsThroughNodes) {
		o.nodes, _ = k.Nodes(ctx, "") // whoever may not list nodes does without
	}
	unseen := source.LookForNeeded(ctx, k, &p)
	standing := append(o.leftCordoned(ctx, k, p, v), p.OnlyDry(), missedByLock(p, v), view.Prefix("its ledger ", p.Kept.Fault()), o.granted(s))
	standing = slices.DeleteFunc(standing, func(line string) bool { return line == "" })
	found := answer{list: slices.Concat(alone, o.obstacles(s, p, agent, v)), granted: strings.Join(standing, "\n"), ask: agent.Missing == "" && o.triggerHelps(s, p)}
	found.retry = found.ask && o.retryHelps(ctx, k, p, v)
	if len(found.list) == 0 && len(unseen) > 0 {
		o.Warn("whether all that the plan needs is there is not known: " + strings.Join(unseen, "; "))
	}
	o.noteOwner(ctx, k, p)
	return o.report(p, v, found)
}

// answer is the answer about a plan.
type answer struct {
	list    []obstacle
	granted string // who permits change regardless of policies
	ask     bool   // the agent would handle a request for a run
	retry   bool   // and one for a retry of the run that failed
}

// noteOwner warns of a tool that would undo what the plan's runs do. If the target may not be read,
// it does not.
func (o *whyOptions) noteOwner(ctx context.Context, k *factory.Cluster, p view.Plan) {
	if p.Spec.Target == nil || p.Spec.OnDrift == plan.DriftIgnore || !mayMove(p.Spec) {
		return
	}
	owner, err := k.OwnerOf(ctx, p.Object.Namespace, *p.Spec.Target)
	if err != nil || owner == "" {
		return
	}
	templates := source.TemplatesOf(ctx, o.Factory, k, p.Object.Namespace, p.Spec)
	if step, moves := gitops.MovesTarget(plan.Tree{Spec: p.Spec, Templates: templates}); moves {
		fmt.Fprintf(o.ErrOut, "warning: %s manages %s from Git, and may undo what step %s does during a run: holdOwners: true in the plan suspends it meanwhile\n", owner, p.Spec.Target, step.Name)
	}
}

// mayMove says whether a plan's own steps change its target, or those of a template, which are still to be read.
func mayMove(spec plan.Spec) bool {
	_, moves := gitops.MovesTarget(plan.Tree{Spec: spec})
	return moves || source.UsesTemplates(spec)
}

// leftCordoned says which nodes a run of the plan left cordoned.
func (o *whyOptions) leftCordoned(ctx context.Context, k *factory.Cluster, p view.Plan, v print.Printer) []string {
	var out []string
	for _, n := range rollout.LeftCordoned(p, func() ([]*corev1.Node, error) { return k.Nodes(ctx, "") }) {
		claimant, link := nodes.PlanClaimant(p.Object.Namespace, p.Object.Name), ", or "
		if rollout.Shared(n, claimant) {
			link = "; see "
		}
		out = append(out, fmt.Sprintf("node %s is left cordoned for it since %s: its next run goes on with the node%s%s", n.Name, v.When(n.Cordon.At), link, rollout.Uncordon(v.Suggest(), n, claimant)))
	}
	return out
}

func (o *whyOptions) warn(err error) {
	if err != nil {
		fmt.Fprintf(o.ErrOut, "warning: %v\n", err)
	}
}

// subject is what is asked for. A run stands for its plan; of one that has ended, how
// is said first.
func (o *whyOptions) subject(ctx context.Context, k *factory.Cluster, agent factory.AgentState) (view.Subject, error) {
	s, err := source.SubjectOf(ctx, o.Factory, k, agent, o.name)
	if err == nil {
		return s, nil
	}
	if none := factory.NotFoundError(""); errors.As(err, &none) {
		if record := source.GatesOf(ctx, k, o.name); record != nil {
			return s, o.policyIsGone(ctx, k, *record)
		}
	}
	cm, notRun := k.Document(ctx, o.name, annotations.KindRun)
	if gone := (*factory.GoneRunError)(nil); errors.As(notRun, &gone) {
		return s, gone
	}
	if notRun != nil {
		if _, like := k.Find(ctx, o.name, annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy, annotations.KindRun); like != nil {
			err = like // with the nearest name of all that can be meant
		}
		return s, err
	}
	r, err := k.ReadRun(ctx, cm)
	if err != nil {
		return s, err
	}
	s, err = source.SubjectOf(ctx, o.Factory, k, agent, annotations.KindPlan+"/"+r.Run.Plan)
	if none := factory.NotFoundError(""); errors.As(err, &none) || err == nil && s.UID != r.Run.PlanUID {
		return s, o.planIsGone(ctx, k, r)
	}
	if err == nil && r.Journal.Phase.Ended() {
		o.failed = r.Journal.Phase == run.Failed
		o.ended = fmt.Sprintf("run %s of plan %s: %s", r.Run.Name, r.Run.Plan, print.New(o.Env, s.Zone).RunHead(r))
	}
	return s, err
}

// planIsGone is the answer about a run whose plan was deleted.
func (o *whyOptions) planIsGone(ctx context.Context, k *factory.Cluster, r view.Run) error {
	if r.Journal.Phase.Ended() {
		return fmt.Errorf("run %s has ended, and its plan %s was deleted: see %s", r.Run.Name, r.Run.Plan, o.Suggest().Describe(r.Run.Name))
	}
	what := fmt.Sprintf("the plan %s of run %s was deleted: the agent ends the run with its restore and finally; see %s", r.Run.Plan, r.Run.Name, o.Suggest().StatusOf(r.Run.Name))
	if agent, err := o.Agent(ctx, k); err == nil && agent.Missing != "" {
		what += "; no agent is at work: " + agent.Missing
	}
	return exit.Errorf(exit.CodeNotNow, "%s", what)
}

// granted says who permits change until an instant regardless of policies; empty: nobody.
func (o *whyOptions) granted(s view.Subject) string {
	verdict := s.Verdict(o.Now())
	if !verdict.Granted() {
		return ""
	}
	return "change is permitted: " + instant.InText(verdict.Reason, s.Zone)
}

func (o *whyOptions) report(p view.Plan, v print.Printer, a answer) error {
	if !o.out.Lines() {
		return o.reportValue(p, v, a)
	}
	if o.ended != "" {
		fmt.Fprintln(o.Out, o.ended)
	}
	for _, l := range p.Active {
		if l.Journal.Phase == run.Running && l.Journal.HeldSince == nil {
			fmt.Fprintf(o.Out, "%s is at work: %s\n", l.Named(), v.RunHead(l))
		}
	}
	if refused := refusedRollback(p); refused != "" {
		fmt.Fprintf(o.Out, "%s\n   ask for another run with %s\n", refused, o.Suggest().RollbackTo(p.Object.Name))
	}
	failed := o.reportFailed(p, v, a.retry) || o.failed
	for i, found := range a.list {
		fmt.Fprintf(o.Out, "%d. %s\n   %s\n", i+1, document.OneLine(found.what), found.remedy)
	}
	switch {
	case len(a.list) > 0:
	case failed:
		fmt.Fprintln(o.Out, "nothing keeps the next run from starting")
	case keepsOut(p, v) != "":
		fmt.Fprintln(o.Out, keepsOut(p, v))
	default:
		fmt.Fprintln(o.Out, "nothing is in the way")
	}
	if waits := v.WaitingToken(p); waits != "" && !p.Deleting && p.Decision.Status.WaitsFor == "" {
		fmt.Fprintln(o.Out, "what waits: "+waits)
	}
	if a.granted != "" {
		fmt.Fprintln(o.Out, a.granted)
	}
	for _, line := range whatNext(p, v, a.ask) {
		fmt.Fprintln(o.Out, line)
	}
	return ended(a.list)
}

// ended is the exit code for what is in the way. The silence of the agent decides none: it is told,
// and standard error warns of it, as with every command that reads.
func ended(found []obstacle) error {
	if slices.ContainsFunc(found, func(o obstacle) bool { return o.remedy != view.NothingStarts }) {
		return exit.Errorf(exit.CodeNotNow, "")
	}
	return nil
}

// reportFailed says why the last run failed; a retry is suggested where it would begin.
func (o *whyOptions) reportFailed(p view.Plan, v print.Printer, retry bool) bool {
	failed, said := v.Failed(p)
	if failed == "" {
		return false
	}
	see := "see " + v.Suggest().Describe(failed)
	if retry {
		see += "; " + v.Suggest().Retry(failed) + " runs it once more"
	}
	fmt.Fprintf(o.Out, "%s\n   %s\n", said, see)
	return true
}

// retryHelps says whether the run that is said to have failed can be retried: another one may be
// newer, and its object may be gone.
func (o *whyOptions) retryHelps(ctx context.Context, k *factory.Cluster, p view.Plan, v print.Printer) bool {
	failed, _ := v.Failed(p)
	if failed == "" {
		return false
	}
	cm, err := k.Document(ctx, failed, annotations.KindRun)
	if err != nil {
		return false
	}
	r, err := k.ReadRun(ctx, cm)
	return err == nil && o.NoRetry(r, p.Ledger) == ""
}

// keepsOut says what becomes of slots and requests while a run is at work; empty where none is, or
// where runs may overlap.
func keepsOut(p view.Plan, v print.Printer) string {
	working := func(l view.Run) bool { return l.Journal.Phase == run.Running }
	at := slices.IndexFunc(p.Active, working)
	if at < 0 {
		return ""
	}
	hand := ""
	if l := p.Active[at]; l.Run.Request.DryRun {
		hand = "; " + v.Suggest().Abort(l.Run.Name) + " ends the dry run, which changes nothing"
	}
	switch p.Spec.Defaulted().ConcurrencyPolicy {
	case plan.Forbid:
		return "the next run begins when it has ended: slots that fall due before are Skipped (busy), and triggers wait" + hand
	case plan.Queue:
		return "the next run begins when it has ended: slots that fall due before wait, and so do triggers" + hand
	}
	return ""
}

// reportValue is report for scripts.
func (o *whyOptions) reportValue(p view.Plan, v print.Printer, a answer) error {
	var standing []string
	for _, l := range p.Active {
		if l.Journal.Phase == run.Running && l.Journal.HeldSince == nil {
			standing = append(standing, fmt.Sprintf("%s is at work: %s", l.Named(), v.RunHead(l)))
		}
	}
	_, failed := v.Failed(p)
	for _, said := range append([]string{o.ended, refusedRollback(p), failed}, strings.Split(a.granted, "\n")...) {
		if said != "" {
			standing = append(standing, said)
		}
	}
	if err := o.printWhy(explain(annotations.KindPlan, p.Object.Namespace, p.Object.Name, standing).then(whatNext(p, v, a.ask), nextAt(p)), a.list); err != nil {
		return err
	}
	return ended(a.list)
}

// refusedRollback says why the last request for a rollback was refused.
func refusedRollback(p view.Plan) string {
	if p.Ledger == nil || p.Intent.Token == "" {
		return ""
	}
	name := annotations.RunName(p.Object.Name, string(p.Object.UID), run.Request{Kind: run.ByToken, Token: p.Intent.Token})
	for _, e := range p.Ledger.Recent {
		if e.Run == name && e.AsOf != "" && e.Reason == run.ReasonRefused && e.Outcome != nil {
			return fmt.Sprintf("the rollback to run %s was refused: %s", e.AsOf, e.Outcome.Message)
		}
	}
	return ""
}

// missedByLock says that the plan's newest slot was Missed since another run held its target, and
// which: that run may have ended by now, and hold it again at the next slot. Empty: it was not.
func missedByLock(p view.Plan, v print.Printer) string {
	if p.Ledger == nil {
		return ""
	}
	for _, e := range slices.Backward(p.Ledger.Recent) {
		switch {
		case e.Slot == nil:
			continue
		case e.Result != run.Missed || e.Reason != run.ReasonLock || e.Outcome == nil:
			return ""
		}
		return fmt.Sprintf("its last slot, %s, was Missed (lock)%s; a longer startDeadline lets the next one wait for longer", v.When(*e.Slot), view.Colon(v.AgentText(e.Outcome.Message)))
	}
	return ""
}

// whatNext says what the plan waits for when nothing is in the way. ask: a request for a run
// would be taken up.
func whatNext(p view.Plan, v print.Printer, ask bool) []string {
	var triggers []string
	if p.Deleting {
		return nil
	}
	if p.Ledger != nil && p.Ledger.Last != nil && p.Ledger.Last.Phase == run.Succeeded {
		if said := p.Ledger.LastSaid(); said != "" {
			triggers = append(triggers, "its last run "+p.Ledger.Last.Name+" succeeded: "+v.AgentText(said))
		}
	}
	if due := v.Due(p); due != "" {
		triggers = append(triggers, "due slot: "+due)
	}
	if next := v.Next(p); next != "" {
		triggers = append(triggers, "next slot: "+next)
	}
	if !ask {
		return triggers
	}
	ignored, _ := labelReturns(p)
	keys := slices.DeleteFunc(slices.Clone(p.Spec.Triggers.Labels), func(key string) bool { return strings.Contains(ignored, " "+key+" ") })
	if len(keys) > 0 && p.Spec.Target != nil {
		triggers = append(triggers, fmt.Sprintf("put a label on %s to ask for a run: %s", p.Spec.TargetSaid(), strings.Join(keys, ", ")))
	}
	return append(triggers, "by hand: "+v.Suggest().Ask(p.Object.Name, "", view.ParametersToGive(p.Spec)))
}

// nextAt is the next slot of a plan; nil: none is known.
func nextAt(p view.Plan) *time.Time {
	next := p.Decision.Status.Next
	if next == nil || p.Deleting {
		return nil
	}
	at := trigger.StartsAt(p.Spec, p.Object.Namespace, p.Object.Name, next.At, next.Index)
	return &at
}

// triggerHelps says whether a run that is asked for now would begin by itself: at once, or
// when a window opens.
func (o *whyOptions) triggerHelps(s view.Subject, p view.Plan) bool {
	_, invalid := falseCondition(p, "Valid")
	_, unready := falseCondition(p, "Ready")
	if p.Deleting || p.Decision.Status.WaitsFor != "" || keepsOut(p, o.printer(s.Zone)) != "" || len(p.Faults)+len(p.Gone) > 0 || invalid || unready || s.PauseAt(o.Now()).On || o.printer(s.Zone).Frozen(p.Intent) != "" {
		return false
	}
	v := s.Gate.Verdict(o.Now())
	return v.Permitted || v.Ready && v.Until != nil && !v.Cause.Namespace
}

// printer prints in a zone; for scripts without ages, which differ with every answer.
func (o *whyOptions) printer(zone string) print.Printer {
	v := print.New(o.Env, zone)
	v.Fixed = !o.out.Lines()
	return v
}

// obstacles are in the order in which the core asks: invalid, not ready, paused, window, busy, skip.
// A run does what its plan said when it was asked for: what it needs is told of an invalid plan, too.
func (o *whyOptions) obstacles(s view.Subject, p view.Plan, agent factory.AgentState, v print.Printer) []obstacle {
	if s.Deleting {
		return []obstacle{{what: view.NamespaceGoes + ": nothing begins in it, and changes by runs are not put back", remedy: o.Suggest().DescribeNamespace(s.Namespace) + " tells what it still waits for"}}
	}
	var out []obstacle
	if agent.Missing != "" {
		out = append(out, nobodyActs(agent))
	}
	if full, is := annotationsFull("the plan", p.Object.Annotations, roomForStatus); is {
		full.what += "; its slots still run, but its status is not up to date"
		out = append(out, full)
	}
	invalid := o.invalid(p, v)
	out = append(out, invalid...)
	if len(invalid) == 0 {
		out = append(out, o.notReady(p, v)...)
	}
	out = append(out, o.pauseObstacles(s, p, v)...)
	if len(invalid) == 0 || len(p.Active) > 0 {
		out = append(out, o.gateObstacle(s, p, v)...)
	}
	out = append(out, o.leftovers(p, v)...)
	if refused := p.Decision.Status.Refused; refused != "" {
		out = append(out, obstacle{what: v.AgentText(refused), remedy: "make room, or fix what refuses it; it is tried again every half minute, and at once when the plan changes"})
	}
	if said, is := condition(p, "RunStuck", metav1.ConditionTrue); is && len(view.AllLeftAlone(p.Object)) == 0 {
		hand := "fix or remove what refuses it; an immutable ConfigMap can only be deleted, and its finalizer removed by hand"
		switch {
		case stuck.WaitsForRun(said):
			hand = "it goes on by itself when that run has ended"
		case stuck.HasNoOpenEntry(said, ""):
			hand = "nothing else helps: a resume or an approval of it begins nothing"
		}
		out = append(out, obstacle{what: v.AgentText(said), remedy: hand})
	}
	if ignored, is := labelReturns(p); is {
		out = append(out, obstacle{what: ignored, remedy: "it stays so until somebody changes it; " + o.Suggest().Ask(p.Object.Name, "", view.ParametersToGive(p.Spec)) + " asks without the label"})
	}
	return append(out, o.runObstacles(p, v)...)
}

// leftAlone says which runs the agent leaves alone, and takes them from those that are at work: what
// one waits for does not come.
func (o *whyOptions) leftAlone(p *view.Plan, v print.Printer) (out []obstacle) {
	all := view.AllLeftAlone(p.Object)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		hand := "fix or remove what refuses it; an immutable ConfigMap can only be deleted, and its finalizer removed by hand"
		if stuck.ToAdopt(all[name]) {
			hand = o.signed(*p, name) + "; if you remove its finalizer by hand, it puts nothing back"
		}
		if stuck.ToLabel(all[name]) {
			hand = "the agent goes on with it then"
		}
		out = append(out, obstacle{what: v.AgentText(all[name]), remedy: hand})
	}
	p.Active = slices.DeleteFunc(slices.Clone(p.Active), func(r view.Run) bool { return all[r.Run.Name] != "" })
	return out
}

// signed says what becomes of a run that is left alone, once it is signed: whether it goes on.
func (o *whyOptions) signed(p view.Plan, name string) string {
	for _, r := range p.Active {
		if counted, _ := r.AsCounted(p.Object, p.Kept); r.Run.Name == name && counted.Unclaimed {
			return "if you sign it, it begins nothing, since its plan's ledger began anew without it: then " + o.Suggest().Abort(name) + " ends it, with its restore and its finally steps"
		}
	}
	return "if you sign it, nothing is lost"
}

// invalid says why nothing of a plan begins, whatever is permitted.
func (o *whyOptions) invalid(p view.Plan, v print.Printer) (out []obstacle) {
	for _, f := range p.Faults {
		out = append(out, obstacle{what: "the plan is invalid: " + f.String(), remedy: "fix it; " + o.Suggest().Lint() + " tells all faults"})
	}
	if c, bad := falseCondition(p, "Valid"); bad && len(out) == 0 { // what only the agent can see: its templates, its configuration
		hand := "fix it; " + o.Suggest().Describe(p.Object.Name) + " tells all"
		if strings.Contains(c, ledger.Unwritten) {
			hand = o.unwritten(p.Object)
		}
		out = append(out, obstacle{what: "the plan is invalid: " + v.AgentText(c), remedy: hand})
	}
	return out
}

// unwritten is what helps a plan whose ledger the API server does not take.
func (o *whyOptions) unwritten(cm *corev1.ConfigMap) string {
	name := annotations.LedgerName(cm.Name, string(cm.UID))
	return fmt.Sprintf("make room in the quota, or fix what refuses it; if somebody made the ConfigMap immutable, only %s helps: a new ledger begins then, and what was before is not known", o.Suggest().In(cm.Namespace).DeleteLedger(name))
}

// notReady is what a valid plan lacks.
func (o *whyOptions) notReady(p view.Plan, v print.Printer) (out []obstacle) {
	goesOn := "it goes on by itself when that is there; " + o.Suggest().Doctor(p.Object.Name) + " checks all that it needs"
	if c, bad := falseCondition(p, "Ready"); bad {
		out = append(out, obstacle{what: "the plan is not ready: " + v.AgentText(c), remedy: goesOn})
	}
	for _, gone := range p.Gone {
		out = append(out, obstacle{what: "no run can begin: " + gone, remedy: goesOn})
	}
	for _, f := range p.Intent.Faults {
		out = append(out, obstacle{what: "annotation " + f.String(), remedy: "write it anew, or take it away"})
	}
	return out
}

// gateObstacle says why change is not permitted now; none where it is.
func (o *whyOptions) gateObstacle(s view.Subject, p view.Plan, v print.Printer) []obstacle {
	verdict := s.Gate.Verdict(o.Now())
	if verdict.Permitted {
		return nil
	}
	found := obstacle{what: view.Permission(verdict) + ": " + v.AgentText(verdict.Why()), remedy: stays(verdict), until: openFrom(verdict)}
	switch {
	case !verdict.Ready:
		found.remedy = notReady(verdict)
	case verdict.Until != nil:
		found.remedy = "permitted from " + v.When(*verdict.Until)
	}
	if hand := o.lift(s, p); hand != "" {
		found.remedy += "; or " + hand
	}
	if !verdict.Cause.Namespace && !s.PauseAt(o.Now()).On { // these bind whatever is asked
		found.remedy += "; or " + o.Suggest().AskOutside(s.Name, "", view.ParametersToGive(p.Spec), "")
	}
	if waits := waitingForWindow(p); waits != "" && verdict.Cause.Namespace {
		found.remedy += fmt.Sprintf("; or the annotation %s: \"%s: REASON\" on the plan, which lets that run start", annotations.Bypass, waits)
	}
	return []obstacle{found}
}

// openFrom is when a closed gate opens by itself; nil: it does not, or that is not known.
func openFrom(v schedule.Verdict) *time.Time {
	if !v.Ready {
		return nil
	}
	return v.Until
}

// leftovers are what earlier runs changed and could not put back.
func (o *whyOptions) leftovers(p view.Plan, v print.Printer) (out []obstacle) {
	if p.Ledger == nil {
		return nil
	}
	for _, left := range p.Ledger.Left {
		hand := "restore it by hand, which is noticed within a minute, or acknowledge it"
		if left.Before == nil { // nobody can tell whether it is as it was
			hand = "look at it, and then acknowledge it"
		}
		out = append(out, obstacle{what: v.AgentText(left.Said()), remedy: hand + ": " + o.Suggest().Resume(left.Run)})
	}
	return out
}

// waitingForWindow is a run that has not begun because its window is closed; empty: there is none.
func waitingForWindow(p view.Plan) string {
	for _, l := range p.Active {
		if l.Journal.Phase == run.Pending && l.Journal.Waiting == run.WaitWindow {
			return l.Run.Name
		}
	}
	return ""
}

// labelReturns says that a tool restored a label that asks for a run, and that it asks for none.
func labelReturns(p view.Plan) (string, bool) {
	return condition(p, "TriggerLabelReturns", metav1.ConditionTrue)
}

// stays says of a gate that is closed, and of which it is not known when it opens, whether it will.
func stays(v schedule.Verdict) string {
	if v.Later != "" {
		return openingNotKnown
	}
	return "it stays so until somebody changes it"
}

const openingNotKnown = "whether it opens by itself is not known yet"

// notReady is what helps where what decides is missing, broken or hidden.
func notReady(v schedule.Verdict) string {
	if v.Hidden() {
		return "ask for the right to read that; without it, this command uses what a running agent has published"
	}
	return "fix or create the policy"
}

// nobodyActs says that no agent runs.
func nobodyActs(agent factory.AgentState) obstacle {
	return obstacle{what: "no agent is at work: " + agent.Missing, remedy: view.NothingStarts}
}

// lift are the commands that end what somebody set for a time, where nothing else is in the way then;
// empty: that would not open.
func (o *whyOptions) lift(s view.Subject, p view.Plan) string {
	var out []string
	for _, cause := range s.Gate.Lifts(o.Now()) {
		hand := o.lifts(s, p, cause)
		if hand == "" {
			return ""
		}
		out = append(out, hand)
	}
	if len(out) > 1 {
		return strings.Join(out, " and ") + " together"
	}
	return strings.Join(out, "")
}

// lifts is the command that ends a temporary setting, if that is the cause of a verdict; empty: it
// is not.
func (o *whyOptions) lifts(s view.Subject, p view.Plan, cause schedule.Cause) string {
	frozen := cause.Kind == schedule.CauseFreeze
	switch {
	case cause.Namespace && frozen:
		return o.Suggest().In("").Unfreeze("namespace/" + s.Namespace)
	case cause.Policy == "" && frozen:
		return o.Suggest().Unfreeze(s.Name)
	}
	hand, of := o.Suggest(), policyOf(s, p, cause)
	if of.Namespace != s.Namespace {
		hand = hand.In(of.Namespace)
	}
	switch {
	case of.Name == "":
	case frozen:
		return hand.Unfreeze("policy/" + of.Name)
	case cause.Kind == schedule.CausePause:
		return hand.Resume("policy/" + of.Name)
	}
	return ""
}

// policyOf is the policy that a verdict follows from. The agent's word has its name alone: then it is
// the one of that name that the plan asks. Without a name: none, or it is not known which of two.
func policyOf(s view.Subject, p view.Plan, cause schedule.Cause) policy.PolicyRef {
	if cause.Policy == "" || cause.PolicyNamespace != "" {
		return policy.PolicyRef{Name: cause.Policy, Namespace: cause.PolicyNamespace}
	}
	var found policy.PolicyRef
	q := p.Intent.Query(s.Namespace, p.Spec.Policies)
	for _, ref := range slices.Concat(q.Own.Policies, q.Policies) {
		ref.Namespace = cmp.Or(ref.Namespace, s.Namespace)
		switch {
		case ref.Name != cause.Policy || ref == found:
		case found.Name != "":
			return policy.PolicyRef{}
		default:
			found = ref
		}
	}
	return found
}

func (o *whyOptions) pauseObstacles(s view.Subject, p view.Plan, v print.Printer) []obstacle {
	var out []obstacle
	if p.Intent.Pause.Holds(o.Now()) {
		out = append(out, obstacle{what: "the plan is paused " + v.Pause(p), remedy: o.Suggest().Resume(s.Name), until: p.Intent.Pause.Until})
	}
	for _, above := range s.Pauses[:len(s.Pauses)-1] {
		if above.Holds(o.Now()) {
			hand := o.Suggest().ResumeAll()
			if above.Of == annotations.WholeCluster {
				hand = o.Suggest().ResumeCluster()
			}
			out = append(out, obstacle{what: v.PauseAbove(above), remedy: hand, until: above.Until})
		}
	}
	if skip := v.Skipped(p.Object, p.Intent.Skip); skip != "" {
		out = append(out, obstacle{what: "slots are skipped: " + strings.ReplaceAll(skip, "\n", ", "), remedy: o.Suggest().Unskip(s.Name), until: p.Intent.Skip.Until})
	}
	if p.Skipped != "" {
		out = append(out, obstacle{what: "slots are skipped: all, " + view.SkipSaid(p.Skipped, p.Spec), remedy: o.Suggest().In(s.Namespace).TakeAnnotation(p.Spec.Target.String(), p.Skipped)})
	}
	return out
}

func (o *whyOptions) runObstacles(p view.Plan, v print.Printer) []obstacle {
	var out []obstacle
	if name := p.Decision.Status.WaitsFor; name != "" {
		remedy := "it begins when that run has ended; " + o.Suggest().Describe(name) + " shows how far it is"
		if p.Decision.Status.WaitsForDry {
			remedy += "; " + o.Suggest().Abort(name) + " ends it, which changes nothing"
		}
		out = append(out, obstacle{what: p.Decision.Status.Waiting, remedy: remedy})
	}
	for _, l := range p.Active {
		for _, answer := range l.Answers {
			out = append(out, obstacle{what: l.Named() + ": " + v.AgentText(answer.String()), remedy: "it is kept until an agent does; nobody has to say it again"})
		}
		switch open := view.Questions(l); {
		case l.AnswerTo("") != nil || l.Said("aborted") != nil:
		case l.Journal.Phase == run.Pending && len(open) > 0:
			out = append(out, obstacle{what: l.Named() + " " + v.AgentText(awaited(l)), remedy: o.Suggest().Answer(open[0])})
		case l.Journal.Phase == run.Pending && l.Journal.Waiting != "":
			out = append(out, o.waitObstacle(l, v))
		case l.Journal.HeldSince != nil && len(open) == 0: // else the steps that ask are told below
			out = append(out, obstacle{what: l.Named() + " is held between two steps: " + v.AgentText(l.Journal.Message), remedy: "it goes on by itself then; " + o.Suggest().Abort(l.Run.Name) + " ends it"})
		}
		if !view.Unclaimed(p.Object, l.Run.Name) {
			out = append(out, o.stepObstacles(l, v)...)
		}
	}
	return out
}

// awaited says that a pending run waits for approval, or will once the agent has seen it.
func awaited(l view.Run) string {
	if l.Journal.Message == "" {
		return "will wait for approval"
	}
	return view.ApprovalWords(l.Run, "", l.Journal.Message)
}

// waitObstacle is what a pending run waits for.
func (o *whyOptions) waitObstacle(l view.Run, v print.Printer) obstacle {
	remedy := "it starts by itself then"
	if l.Journal.Waiting == run.WaitWindow && (strings.Contains(l.Journal.Message, run.StaysClosed) || strings.Contains(l.Journal.Message, schedule.NotKnownYet)) {
		remedy = "it starts when change is permitted"
	}
	switch {
	case strings.Contains(l.Journal.Message, run.TooLate):
		remedy = "a longer startDeadline lets its next slots wait for the window"
	case l.Run.Request.Slot != nil && l.Journal.Approved == nil: // an approved run has met its deadline
		deadline := trigger.StartsAt(l.Run.Spec, l.Run.Namespace, l.Run.Plan, *l.Run.Request.Slot, l.Run.Request.Schedule).Add(l.Run.Spec.StartDeadline.Or(plan.DefaultStartDeadline))
		remedy += "; after " + v.Both(deadline) + " its slot is Missed"
	}
	return obstacle{what: trigger.Waits(l.Named(), v.AgentText(l.Journal.Message)), remedy: remedy}
}

// stepObstacles are the steps that go on only when somebody says so, and a retry
// that is to come.
func (o *whyOptions) stepObstacles(l view.Run, v print.Printer) []obstacle {
	var out []obstacle
	if at := l.Journal.RetryAt; at != nil && at.After(v.Now) {
		out = append(out, obstacle{what: l.Named() + " is to be tried again: " + v.AgentText(l.Journal.Message), remedy: "it begins by itself at " + v.Both(*at), until: at})
	}
	if l.Said("resumed") == nil && l.Said("aborted") == nil {
		out = append(out, o.suspendObstacles(l, v)...)
	}
	full := rollout.Of(l, o.nodes, v.Now, v.Suggest())
	for _, f := range full {
		out = append(out, obstacle{what: f.Said(l), remedy: f.Remedy()})
	}
	for _, rec := range l.Journal.Steps {
		switch {
		case slices.ContainsFunc(full, func(f rollout.Full) bool { return f.Path == rec.Path }):
		case rec.Waits != "":
			out = append(out, obstacle{what: "step " + rec.Path + " of " + l.Named() + " waits: " + v.AgentText(rec.Waits), remedy: "it goes on by itself when that is given"})
		case rec.Type == plan.TypeForEachNode && rec.Phase == run.StepRunning && strings.Contains(rec.Message, run.NodesWait):
			out = append(out, obstacle{what: "step " + rec.Path + " of " + l.Named() + ": " + v.AgentText(rec.Message), remedy: "it goes on by itself when a node is free; " + o.Suggest().WhyNode() + " says what keeps one"})
		case rec.Type == plan.TypeForEachNode && rec.Phase == run.StepRunning && strings.Contains(rec.Message, "; "+workflow.NextWouldTake):
			out = append(out, obstacle{what: "step " + rec.Path + " of " + l.Named() + " waits: " + v.AgentText(rec.Message), remedy: "it goes on by itself in the next window; a longer window, or a smaller estimate in the plan, lets later runs begin more nodes"})
		case view.WaitsForAnswer(rec) && slices.Contains(view.Questions(l), l.Run.Name+"/"+rec.Path):
			out = append(out, obstacle{what: fmt.Sprintf("step %s of %s %s", rec.Path, l.Named(), v.AgentText(view.ApprovalWords(l.Run, rec.Path, rec.Message))), remedy: o.Suggest().Answer(l.Run.Name + "/" + rec.Path)})
		}
	}
	return out
}

// suspendObstacles are what somebody may resume: what others changed of what the run did, and the
// suspend steps that it is at.
func (o *whyOptions) suspendObstacles(l view.Run, v print.Printer) []obstacle {
	var out []obstacle
	resume, j := o.Suggest().Resume(l.Run.Name), l.Journal
	if said := j.DriftMessage(); said != "" && j.HeldSince == nil && j.End == nil && l.Run.Spec.OnDrift != plan.DriftIgnore { // else its message says so
		hand := "it goes on when that is as the step left it; " + resume + " accepts the change" + view.Prefix(", and ", v.EndsSuspend(l)) + "; " + o.Suggest().Abort(l.Run.Name) + " ends it"
		out = append(out, obstacle{what: l.Named() + " begins no further step: " + v.AgentText(said), remedy: hand})
	}
	for _, rec := range view.Suspends(l) {
		what := l.Named() + " is suspended at step " + rec.Path
		switch {
		case rec.ResumeAt == nil:
			out = append(out, obstacle{what: what, remedy: resume})
		case rec.ResumeAt.After(v.Now):
			out = append(out, obstacle{what: what + " until " + v.When(*rec.ResumeAt), remedy: "it goes on by itself then; " + resume + " ends the step before", until: rec.ResumeAt})
		}
	}
	return out
}

// falseCondition is the message of a condition that the agent published as False for this version
// of the plan.
func falseCondition(p view.Plan, kind string) (string, bool) {
	return condition(p, kind, metav1.ConditionFalse)
}

func condition(p view.Plan, kind string, status metav1.ConditionStatus) (string, bool) {
	return view.FindCondition(p.Conditions(), kind, status)
}

// permission is the answer where nothing runs by itself.
func (o *whyOptions) permission(s view.Subject) error {
	now := o.Now()
	v := s.Verdict(now)
	if !o.out.Lines() {
		var answer nodeAnswer
		if s.Gates != "" {
			answer.stands("%s", s.Gates)
		}
		return o.reportNodeValue(s, answer)
	}
	lines := print.VerdictLines(s, v, now)
	if s.Gates != "" {
		lines = append(lines, s.Gates)
	}
	for _, l := range lines {
		fmt.Fprintln(o.Out, l)
	}
	if !v.Permitted {
		fmt.Fprintln(o.Out, o.opens(s))
		return exit.Errorf(exit.CodeNotNow, "")
	}
	return nil
}

// rollsThroughNodes says whether a run goes through nodes.
func rollsThroughNodes(r view.Run) bool {
	return slices.ContainsFunc(r.Journal.Steps, func(rec run.Record) bool { return rec.Type == plan.TypeForEachNode && rec.Phase == run.StepRunning })
}

// policyIsGone is the answer about a policy that somebody deleted and whose gates are not all open.
func (o *whyOptions) policyIsGone(ctx context.Context, k *factory.Cluster, record source.GateRecord) error {
	what := "policy " + record.Policy + " " + record.PolicyGone()
	if record.Fault != "" {
		return exit.Errorf(exit.CodeNotNow, "%s; if it is the agent's own, sign it with %s", what, o.Suggest().Adopt(record.Object.Name))
	}
	if agent, err := o.Agent(ctx, k); err == nil && agent.Missing != "" {
		what += "; no agent is at work: " + agent.Missing
	}
	return exit.Errorf(exit.CodeNotNow, "%s", what)
}
