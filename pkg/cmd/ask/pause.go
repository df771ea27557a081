package ask

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/choice"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// scope is what pause and resume are about: named plans, those with some labels, all of a namespace,
// or all of the cluster.
type scope struct {
	names      []string
	all        bool
	selector   string
	everywhere bool
}

func (s *scope) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.all, "all", false, "all plans of the namespace, including future ones; with -A those of the whole cluster")
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "the plans that have these labels now, HibernatePlans too")
	cmd.Flags().BoolVarP(&s.everywhere, "all-namespaces", "A", false, "with --all: the whole cluster; with -l: of all namespaces")
}

func (s *scope) check(f *exit.Faults, what string) {
	switch {
	case s.everywhere && !s.all && s.selector == "":
		f.Add("-A needs --all or -l")
	case s.all && s.selector != "":
		f.Add("--all and -l exclude each other")
	case s.all && len(s.names) > 0:
		f.Add("--all and names exclude each other")
	case s.selector != "" && len(s.names) > 0:
		f.Add("-l and names exclude each other")
	case !s.all && s.selector == "" && len(s.names) == 0:
		f.Add("%s is missing; or give --all or -l", what)
	}
}

// selected are the plans of both kinds that have the labels which were given, of the namespace or of
// all; none where no labels were given.
func (s *scope) selected(ctx context.Context, c *factory.Factory, k *factory.Cluster) ([]factory.Resource, error) {
	if s.selector == "" {
		return nil, nil
	}
	plans, err := choice.Plans(ctx, c, k, k.Whole(s.everywhere).Namespace, s.selector)
	out := make([]factory.Resource, len(plans))
	for i, cm := range plans {
		out[i].Document = cm
	}
	return out, err
}

// nameOf is a plan's name, with its namespace where plans of all namespaces are meant.
func (s *scope) nameOf(cm *corev1.ConfigMap) string {
	return choice.Name(cm, s.everywhere)
}

// chosen says how it was chosen.
func (s *scope) chosen() choice.Chosen {
	return choice.Chosen{ByName: s.selector == "", Everywhere: s.everywhere}
}

// objectOf is what is meant as an object.
func objectOf(r factory.Resource) metav1.Object {
	if r.Node != nil {
		return r.Node
	}
	return r.Document
}

// namespace is the namespace that carries the pause for all: the agent's own stands for the whole
// cluster.
func (s *scope) namespace(c *factory.Factory, k *factory.Cluster, agent agentSeen) (string, error) {
	switch {
	case !s.everywhere:
		return k.Namespace, nil
	case agent.unknown != nil:
		return "", k.Explain("find the agent's namespace", agent.unknown)
	case agent.Missing != "" && agent.Heartbeat.IsZero() && c.AgentNamespace == "":
		return "", exit.Errorf(exit.CodeNoAgent, "%s (or name its namespace with --agent-namespace)", agent.Missing)
	}
	return agent.Namespace, nil
}

type pauseOptions struct {
	*factory.Factory
	scope
	factory.DryRun
	factory.Consent
	untilText string
	timezone  string
	reason    string
	faults    exit.Faults
}

// NewPause keeps anything new from starting.
func NewPause(c *factory.Factory) *cobra.Command {
	o := &pauseOptions{Factory: c}
	cmd := &cobra.Command{
		Use:   "pause PLAN|POLICY|NODE... | -l SELECTOR | --all",
		Short: "Pause plans until resumed, or until a time",
		Long: `Start no new run of the plans, until they are resumed or until a time.
An active run finishes its current step and then waits. A paused HibernatePlan keeps its
present state: what sleeps stays asleep, what is awake stays awake. A paused policy
permits nothing. On a paused node no maintenance begins; maintenance that has begun
goes on.
--all pauses the namespace, with -A the whole cluster.`,
		Example: `  kubectl maint pause orders-weekly --until "mon 06:00" --reason "CHG-1234"
  kubectl maint pause node/worker-1
  kubectl maint pause -l team=orders --until 2h
  kubectl maint pause --all -A --yes`,
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.Both(completion.Documents(c, annotations.LabelKind+" in (plan,hibernate-plan,policy)", notPaused), completion.Nodes(c, notPaused)),
	}
	o.scope.addFlags(cmd)
	o.DryRun.AddFlag(cmd)
	o.Consent.AddFlag(cmd)
	cmd.Flags().StringVar(&o.untilText, "until", "", `resume by itself then: 2h, "tomorrow 08:00", RFC 3339`)
	cmd.Flags().StringVar(&o.timezone, "timezone", "", "zone of --until; default: that of the plan or policy, else yours")
	cmd.Flags().StringVar(&o.reason, "reason", "", "why")
	return cmd
}

func notPaused(m metav1.ObjectMeta) bool { return !isPaused(m) }

func isPaused(m metav1.ObjectMeta) bool { return m.Annotations[annotations.Pause] != "" }

func (o *pauseOptions) Complete(_ *cobra.Command, args []string) error {
	o.names = args
	return nil
}

func (o *pauseOptions) Validate() error {
	o.scope.check(&o.faults, "PLAN, POLICY or NODE")
	o.DryRun.Check(&o.faults)
	o.faults.Check(instant.KnownZone(o.timezone))
	if o.untilText != "" { // whether it has passed depends on the zone of what is paused
		o.faults.Check(instant.NotPassed("--until", o.untilText, o.Now(), o.Zone))
	}
	return o.faults.Err()
}

// value is the pause of an object whose times are in a zone, and its end in words.
func (o *pauseOptions) value(zone string) (*string, string, error) {
	if o.untilText == "" {
		return factory.Value("true"), "until resumed", nil
	}
	zone = cmp.Or(o.timezone, zone)
	at, err := instant.Future("--until", o.untilText, o.Now(), zone)
	if err != nil {
		return nil, "", err
	}
	return factory.Value(at.UTC().Format(time.RFC3339)), "until " + instant.Both(at, zone), nil
}

func (o *pauseOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	if o.all {
		return o.pauseAll(ctx, k)
	}
	things, err := o.find(ctx, k)
	if err != nil {
		return err
	}
	if o.everywhere && o.Kept() {
		if err := o.Confirm(ctx, o.Consent, "pause "+view.Counted(len(things), "plan")+" of all namespaces"); err != nil {
			return err
		}
	}
	actor := k.Actor(ctx)
	return choice.Each(ctx, o.Factory, o.chosen(), things, objectOf, func(found factory.Resource) error {
		if found.Node != nil {
			return o.pauseNode(ctx, k, found, actor)
		}
		return o.pauseOne(ctx, k, found, actor)
	})
}

// find finds all that is meant, before anything is written: of none that is named may the end have
// passed in its zone.
func (o *pauseOptions) find(ctx context.Context, k *factory.Cluster) ([]factory.Resource, error) {
	things, err := o.selected(ctx, o.Factory, k)
	if err != nil {
		return nil, err
	}
	for _, name := range o.names {
		found, err := k.Find(ctx, name, annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy)
		if err != nil {
			return nil, err
		}
		if _, _, err := o.value(o.zoneOf(found)); err != nil {
			return nil, err
		}
		things = append(things, found)
	}
	return things, nil
}

func (o *pauseOptions) pauseNode(ctx context.Context, k *factory.Cluster, found factory.Resource, actor string) error {
	to, words, err := o.value(o.Zone)
	if err != nil {
		return err
	}
	was := ""
	_, err = k.AnnotateNode(ctx, found.Node, &o.DryRun, func(n *corev1.Node) (factory.Change, error) {
		was = o.replaced(n, o.Zone)
		return factory.Change{annotations.Pause: to}.Signed(annotations.Pause, actor, o.reason), nil
	})
	if err != nil {
		return err
	}
	return o.Report(o.IOStreams, false, "node/%s paused %s%s%s", found.Node.Name, words, was, o.Mark())
}

func (o *pauseOptions) pauseOne(ctx context.Context, k *factory.Cluster, found factory.Resource, actor string) error {
	cm := found.Document
	zone := o.zoneOf(found)
	to, words, err := o.value(zone) // an invalid plan can be paused, too
	if err != nil {
		return err
	}
	was := ""
	err = k.Annotate(ctx, cm, &o.DryRun, func(cm *corev1.ConfigMap) (factory.Change, error) {
		was = o.replaced(cm, zone)
		return factory.Change{annotations.Pause: to}.Signed(annotations.Pause, actor, o.reason), nil
	})
	if err != nil {
		return err
	}
	return o.Report(o.IOStreams, false, "%s/%s paused %s%s%s", cm.Labels[annotations.LabelKind], o.nameOf(cm), words, was, o.Mark())
}

// replaced says which pause the new one takes the place of, with its author and reason, as it
// follows a sentence; empty: there was none.
func (o *pauseOptions) replaced(object metav1.Object, zone string) string {
	pause := annotations.Intent(object.GetAnnotations()).Pause
	if !pause.Holds(o.Now()) {
		return ""
	}
	return "; before it was " + strings.TrimPrefix(print.New(o.Env, zone).Paused(pause), "is ")
}

// zoneOf is the zone of a document's times; of a node, the user's.
func (o *pauseOptions) zoneOf(found factory.Resource) string {
	if found.Document == nil {
		return o.Zone
	}
	return view.DocumentZone(found.Document, o.Zone)
}

func (o *pauseOptions) pauseAll(ctx context.Context, k *factory.Cluster) error {
	agent := lookForAgent(ctx, o.Factory, k.Whole(o.everywhere))
	namespace, err := o.namespace(o.Factory, k, agent)
	if err != nil {
		return err
	}
	to, words, err := o.value(o.Zone)
	if err != nil {
		return err
	}
	what := "all plans in namespace " + namespace
	if namespace == agent.Namespace { // its pause is that of the cluster, however it was named
		what = "all maintenance in the cluster"
		if o.Kept() {
			if err := o.Confirm(ctx, o.Consent, "pause "+what); err != nil {
				return err
			}
		}
	}
	c := factory.Change{annotations.Pause: to}.Signed(annotations.Pause, k.Actor(ctx), o.reason)
	was := ""
	err = annotateNamespace(ctx, k, namespace, &o.DryRun, func(ns *corev1.Namespace) factory.Change {
		was = o.replaced(ns, o.Zone)
		return c
	})
	if err != nil {
		return err
	}
	return o.Report(o.IOStreams, false, "%s paused %s%s%s", what, words, was, o.Mark())
}

// annotateNamespace writes an intent for all plans of a namespace.
func annotateNamespace(ctx context.Context, k *factory.Cluster, name string, dry *factory.DryRun, wanted func(*corev1.Namespace) factory.Change) error {
	ns, err := k.Kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no namespace %q", name)
	}
	if err != nil {
		return k.ReadError("read namespace "+name, name, err)
	}
	c := wanted(ns)
	if dry.Client() || c == nil {
		dry.WouldWrite(ns, c)
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": ns.UID, "annotations": c}})
	if err != nil {
		return err
	}
	written, err := k.Kube.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, patch, dry.Options())
	if err == nil {
		dry.Wrote(written)
	}
	err = k.WriteError("write to namespace "+name, "patch", name, err)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w\n--all is about the namespace itself; name plans to pause or resume single ones", err)
	}
	return err
}
