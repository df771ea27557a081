package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/rights"
)

type options struct {
	*factory.Factory
	out    *print.Values
	name   string
	tried  []finding
	check  string // the one that is tried
	bad    int
	as     map[string]*factory.Cluster // clients that impersonate an account; nil: that is forbidden
	faults exit.Faults
}

// New tries what maintenance needs.
func New(c *factory.Factory) *cobra.Command {
	o := &options{Factory: c, out: print.NewValues(), as: map[string]*factory.Cluster{}}
	cmd := &cobra.Command{
		Use:   "doctor [PLAN|POLICY]",
		Short: "Check agent, clock, rights and sinks, and say what to do",
		Long: `Check in advance what maintenance needs. Each check is a line, and each problem comes with
what to do about it. Without a PLAN: the agent, its configuration and its key, the clocks,
and the policies that confine the agent. With a PLAN also: whether it is valid and ready,
whether its target, its account and its policies are there, whether the account has the rights
that the steps need, also on the owner in Git that holdOwners suspends, its connectors with
their Secrets and roles, whether its sinks are configured, and whether the hosts and images
that its steps name are found. With a HibernatePlan also: the hosts of its functions, the
state of each target, and whether the restore data of sleeping resources is complete.
With a POLICY also: whether it is valid, whether its gates hold, and whether its account has the
rights that they need.

Nothing is written, and no cloud is asked. A check that your rights do not allow is
shown, and does not count as a problem. The exit code is 0 without a problem, and 1 with one
or if the API server cannot be reached.`,
		Example:           "  kubectl maint doctor\n  kubectl maint doctor orders-weekly\n  kubectl maint doctor dev-nights",
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.Kinds(c, annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy),
	}
	o.out.AddFlags(cmd)
	return cmd
}

// Complete takes the plan's name.
func (o *options) Complete(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		o.name = factory.OneName(args, "PLAN or POLICY", &o.faults)
	}
	return nil
}

// Validate checks the format.
func (o *options) Validate() error {
	o.out.Check(&o.faults)
	return o.faults.Err()
}

// finding is the result of a check.
type finding struct {
	Check  string `json:"check"`  // of what, the same in every version
	Result string `json:"result"` // ok, unknown or amiss
	What   string `json:"what"`
	Remedy string `json:"remedy,omitempty"`
}

// good, unknown and amiss report the result of a check; amiss also says what to do.
func (o *options) good(format string, args ...any) {
	o.found(finding{Result: "ok", What: fmt.Sprintf(format, args...)}, "ok       %s\n")
}

func (o *options) unknown(what string, err error) {
	o.found(finding{Result: "unknown", What: fmt.Sprintf("%s: %v", what, err)}, "unknown  %s\n")
}

func (o *options) amiss(what, remedy string) {
	o.bad++
	o.found(finding{Result: "amiss", What: what, Remedy: remedy}, "amiss    %s\n")
	if o.out.Lines() {
		fmt.Fprintf(o.Out, "         %s\n", remedy)
	}
}

// found prints a finding to people at once; scripts get all of them at the end.
func (o *options) found(f finding, line string) {
	f.Check = o.check
	o.tried = append(o.tried, f)
	if o.out.Lines() {
		fmt.Fprintf(o.Out, line, f.What)
	}
}

// report prints the findings for scripts.
func (o *options) report() error {
	if o.out.Lines() {
		return nil
	}
	items := []print.Value{}
	for _, f := range o.tried {
		items = append(items, print.Value{Kind: "Finding", Name: f.Check, Body: f})
	}
	return o.out.PrintList(o.Out, "FindingList", items)
}

// Run tries everything.
func (o *options) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	var cm *corev1.ConfigMap
	if o.name != "" { // a name that is none is said before all else
		if cm, err = o.find(ctx, k); err != nil {
			return err
		}
	}
	agent, err := o.Agent(ctx, k)
	if answer := apierrors.APIStatus(nil); err != nil && !errors.As(err, &answer) { // nobody answered: nothing that follows could be seen
		return k.Explain("ask for the agent", err)
	}
	o.agent(agent, err)
	o.clock(k)
	config := o.config(ctx, k, agent)
	o.signed(ctx, k, agent)
	o.alone(ctx, k, agent)
	o.confined(ctx, k, agent.Namespace)
	if cm != nil {
		o.document(ctx, k, agent, cm, config)
	}
	if err := o.report(); err != nil {
		return err
	}
	if o.bad > 0 {
		return exit.Errorf(exit.CodeError, "%s", view.Counted(o.bad, "problem"))
	}
	return nil
}

// document tries what a plan, a HibernatePlan or a policy needs.
func (o *options) document(ctx context.Context, k *factory.Cluster, agent factory.AgentState, cm *corev1.ConfigMap, config *agentconfig.AgentConfig) {
	kind := cm.Labels[annotations.LabelKind]
	if kind == annotations.KindPolicy {
		o.policy(ctx, k, agent, cm)
		return
	}
	if agent.Missing == "" {
		cm = o.settled(ctx, k, cm)
	}
	if kind == annotations.KindHibernatePlan {
		o.sleeper(ctx, k, agent, cm, config)
		return
	}
	o.plan(ctx, k, agent, cm, config)
}

// find is the plan, HibernatePlan or policy that is meant.
func (o *options) find(ctx context.Context, k *factory.Cluster) (*corev1.ConfigMap, error) {
	cm, err := k.HibernatePlan(ctx, o.name)
	if cm != nil || err != nil {
		return cm, err
	}
	return k.Document(ctx, o.name, annotations.KindPlan, annotations.KindPolicy)
}

func (o *options) agent(agent factory.AgentState, err error) {
	o.check = "agent"
	switch {
	case err != nil:
		o.unknown("the agent", err)
	case agent.Missing != "":
		o.amiss(agent.Missing, view.NothingStarts)
	case agent.Version != o.Version:
		o.good("agent %s in namespace %s, seen %s ago; this command is %s%s", agent.VersionText(), agent.Namespace, instant.Approximate(max(o.Now().Sub(agent.Heartbeat), 0)), o.Version, o.older(agent))
	default:
		o.good("agent %s in namespace %s, seen %s ago", agent.VersionText(), agent.Namespace, instant.Approximate(max(o.Now().Sub(agent.Heartbeat), 0)))
	}
}

// older says how to upgrade the older one of the agent and this command; empty: which that is, is not
// known.
func (o *options) older(agent factory.AgentState) string {
	its, err := version.ParseSemantic(agent.Version)
	ours, unread := version.ParseSemantic(o.Version)
	switch {
	case err != nil || unread != nil:
		return ""
	case its.LessThan(ours):
		return ": " + o.Suggest().InstallIn(agent.Namespace) + " upgrades the agent"
	case ours.LessThan(its):
		return ": 'kubectl krew upgrade maint' upgrades this command, or a newer archive does (docs/install.md)"
	}
	return ""
}

// worstSkew is the clock difference from which on people who write times are misled (a guess).
const worstSkew = 30 * time.Second

func (o *options) clock(k *factory.Cluster) {
	o.check = "clock"
	if skew := k.Skew(); skew.Abs() > worstSkew {
		o.amiss(fmt.Sprintf("the clock of this machine is %s off the API server's", skew.Abs().Round(time.Second)), "set it; times such as '2h' are counted from it")
		return
	}
	o.good("the clocks of this machine and the API server agree")
}

// config checks the agent's configuration and its status; nil: not known.
func (o *options) config(ctx context.Context, k *factory.Cluster, agent factory.AgentState) *agentconfig.AgentConfig {
	o.check = "configuration"
	cm, err := k.ConfigMaps(agent.Namespace).Get(ctx, annotations.AgentConfigName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && agent.Unconfigured != "":
		what, remedy, _ := strings.Cut(agent.Unconfigured, "; ")
		o.amiss(what, remedy)
		return nil
	case apierrors.IsNotFound(err):
		o.good("no configuration: the defaults hold")
		return &agentconfig.AgentConfig{}
	case err != nil:
		o.unknown("the agent's configuration", k.Explain("it cannot be read", err))
		return nil
	}
	if lacks := k.Unlabelled(cm); lacks != "" {
		what, remedy, _ := strings.Cut(lacks, "; ")
		o.amiss(what, remedy)
		return nil
	}
	spec, fault := factory.Configuration(cm)
	for _, c := range view.Conditions(cm) {
		if c.Type == "Valid" && fault != "" { // reported below, as it is now
			continue
		}
		warns := slices.Contains([]string{agentconfig.NodesForbidden, agentconfig.ClockDoubt, agentconfig.DryRun, "MaxUnavailableIsZero", "NoParallelOperations", "MachineConfigPoolsNotPaused"}, c.Type) // all others are good when they are True
		if (c.Status == metav1.ConditionTrue) == warns {
			o.amiss(fmt.Sprintf("the agent says %s=%s: %s", c.Type, c.Status, o.AgentText(c.Message, o.Zone)), "see docs/operations.md")
		}
	}
	if fault != "" {
		o.amiss("the agent's configuration: "+fault, "fix ConfigMap "+cm.Namespace+"/"+cm.Name+"; until then an agent that starts does nothing")
		return nil
	}
	o.good("the agent's configuration is valid")
	return spec
}

// alone warns of another agent's Deployment, if it can be seen.
func (o *options) alone(ctx context.Context, k *factory.Cluster, agent factory.AgentState) {
	o.check = "other-agents"
	others := k.OtherAgents(ctx, agent.Namespace)
	if len(others) > 0 {
		o.amiss(fmt.Sprintf("another agent is installed in namespace %s: there can be one in a cluster", strings.Join(others, " and ")), "remove the one that is too much: "+o.Suggest().Uninstall(others[0])+", or "+o.Suggest().Uninstall(agent.Namespace))
	}
}

// account checks the plan's ServiceAccount. told are words by which the agent says what is reported.
func (o *options) account(ctx context.Context, k *factory.Cluster, agent factory.AgentState, cm *corev1.ConfigMap, name string) (there bool, told []string) {
	o.check = "account"
	namespace := cm.Namespace
	_, err := k.Kube.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		o.amiss(fmt.Sprintf("ServiceAccount %s/%s is not there", namespace, name), "create it, with its Role: "+o.Suggest().Grant(cm.Name))
		return false, []string{fmt.Sprintf("the ServiceAccount %s does not exist in namespace %s", name, namespace)}
	case err != nil:
		o.unknown("ServiceAccount "+namespace+"/"+name, k.Explain("it cannot be read", err))
	default:
		o.good("ServiceAccount %s/%s is there", namespace, name)
	}
	if o.actsAs(ctx, k, agent, namespace, name) {
		return true, nil
	}
	return true, []string{"the agent may not act as the ServiceAccount " + name + ";"}
}

// actsAs checks whether the agent may impersonate an account. Where the user may not ask, there is
// no finding: the agent reports it on the plan when it tries.
func (o *options) actsAs(ctx context.Context, k *factory.Cluster, agent factory.AgentState, namespace, name string) bool {
	if agent.Missing != "" {
		return true
	}
	may, err := reviewed(ctx, k, userOf(agent), authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "impersonate", Resource: "serviceaccounts", Name: name})
	if err != nil || may {
		return true
	}
	o.amiss("the agent may not act as the ServiceAccount "+name, o.Suggest().InstallWith(agent.Namespace, rights.ImpersonateOption(name))+" lets it")
	return false
}

// userOf is the user name of an agent.
func userOf(agent factory.AgentState) string {
	return "system:serviceaccount:" + agent.Namespace + ":" + annotations.AgentName
}

// How long a running agent may take to look at a plan that was just written, and at its target,
// before that counts as a problem, and the pause between two looks (guesses).
const (
	freshFor   = 10 * time.Second
	settlesIn  = 4 * time.Second
	settleLook = 300 * time.Millisecond
)

// settled is a plan once the agent has found it ready. One that was written seconds ago is given
// a few more.
func (o *options) settled(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) *corev1.ConfigMap {
	if o.Now().Add(k.Skew()).Sub(annotations.EditedAt(&cm.ObjectMeta)) > freshFor {
		return cm
	}
	ctx, done := context.WithTimeout(ctx, settlesIn)
	defer done()
	look := time.NewTicker(settleLook)
	defer look.Stop()
	for !ready(cm) {
		select {
		case <-ctx.Done():
			return cm
		case <-look.C:
		}
		if now, err := k.Document(ctx, cm.Name, cm.Labels[annotations.LabelKind]); err == nil {
			cm = now
		}
	}
	return cm
}

// ready says whether the agent has seen this version of a plan, and found it valid and ready.
func ready(cm *corev1.ConfigMap) bool {
	p := view.Plan{Object: cm}
	_, invalid := view.FindCondition(p.Conditions(), "Valid", metav1.ConditionFalse)
	_, unready := view.FindCondition(p.Conditions(), "Ready", metav1.ConditionFalse)
	return p.Observed() && !invalid && !unready
}

// standing checks how the agent sees the plan, and returns what is not ready by it.
func (o *options) standing(agent factory.AgentState, cm *corev1.ConfigMap) (unready string) {
	o.check = "plan"
	if cm.Annotations[annotations.StatusObserved] != annotations.Observed(cm) {
		remedy := "it does within seconds where it runs and watches this namespace"
		if agent.Missing == "" {
			remedy += "; if it is too old, " + o.Suggest().InstallIn(agent.Namespace) + " upgrades it"
		}
		o.amiss("the agent has not looked at this version of the plan", remedy)
		return ""
	}
	for _, c := range view.Conditions(cm) {
		switch { // why sends people here for both
		case c.Status != metav1.ConditionFalse:
		case c.Type == "Valid":
			o.amiss("the plan is not valid: "+o.AgentText(c.Message, o.Zone), "fix it; "+o.Suggest().Describe(cm.Name)+" tells all")
			return ""
		case c.Type == "Ready":
			return c.Message
		}
	}
	if agent.Missing != "" {
		o.good("the agent found the plan valid and ready when it was last seen")
		return ""
	}
	o.good("the agent finds the plan valid and ready")
	return ""
}

// unready says that a plan is not ready, and why; not if the reason has the words of what was told.
func (o *options) unready(why string, told []string) {
	if why == "" || slices.ContainsFunc(told, func(words string) bool { return strings.Contains(why, words) }) {
		return
	}
	o.check = "plan"
	o.amiss("the plan is not ready: "+o.AgentText(why, o.Zone), "it goes on by itself once that is mended")
}
