package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

type resumeOptions struct {
	*cli
	scope
	dryRun
	reason string
	faults faults
}

func newResume(c *cli) *cobra.Command {
	o := &resumeOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "resume PLAN|POLICY|NODE|RUN... | --all",
		Short: "End a plan's pause, or a run's suspend",
		Long: `End the pause of plans or nodes, or the present suspend of a run. Slots that passed
during a pause are not made up for. Of a run that ended and could not put something
back: say that you know, so that its plan speaks of it no more. --all ends the pause of the namespace, with
-A that of the whole cluster; plans that are paused themselves stay so.`,
		Example: `  kubectl maint resume orders-weekly
  kubectl maint resume maint-run-orders-weekly-k2x7a`,
		RunE: run(o),
		ValidArgsFunction: beside(c.complete(annotations.LabelKind+" in (plan,run)", func(m metav1.ObjectMeta) bool {
			return !notPaused(m) || m.Labels[annotations.LabelPhase] == string(plan.RunRunning)
		}), c.completeNodes(func(m metav1.ObjectMeta) bool { return !notPaused(m) })),
	}
	o.scope.addFlags(cmd)
	o.dryRun.addFlag(cmd)
	cmd.Flags().StringVar(&o.reason, "reason", "", "why")
	return cmd
}

func (o *resumeOptions) Complete(_ *cobra.Command, args []string) error {
	o.names = args
	return nil
}

func (o *resumeOptions) Validate() error {
	o.scope.check(&o.faults, "PLAN, POLICY, NODE or RUN")
	o.dryRun.check(&o.faults)
	return o.faults.err()
}

func (o *resumeOptions) Run(ctx context.Context) error {
	k, err := o.connect()
	if err != nil {
		return err
	}
	if o.all {
		return o.resumeAll(ctx, k)
	}
	var things []resumed
	for _, name := range o.names {
		found, err := o.find(ctx, k, name)
		if err != nil {
			return err
		}
		things = append(things, found)
	}
	for _, found := range things {
		if err := o.resumeOne(ctx, k, found); err != nil {
			return err
		}
	}
	return nil
}

// resumed is what is to be resumed: a document, a node, or a run whose object is gone.
type resumed struct {
	thing
	gone *aRun
}

// find looks for a run that is gone in the ledgers: what it left is acknowledged by
// its name, however long ago it was pruned.
func (o *resumeOptions) find(ctx context.Context, k *cluster, name string) (resumed, error) {
	found, err := k.thing(ctx, name, annotations.KindPlan, annotations.KindPolicy, annotations.KindRun)
	if kind, _ := splitKind(name); !errors.As(err, new(noDocument)) || kind == annotations.KindPlan || kind == annotations.KindPolicy {
		return resumed{thing: found}, err
	}
	gone, readErr := k.leftBy(ctx, bareName(name))
	if gone == nil {
		return resumed{}, errors.Join(err, readErr)
	}
	return resumed{gone: gone}, nil
}

func (o *resumeOptions) resumeOne(ctx context.Context, k *cluster, found resumed) error {
	switch {
	case found.gone != nil:
		return o.acknowledge(ctx, k, *found.gone)
	case found.node != nil:
		return o.resumeNode(ctx, k, found.node)
	case found.document.Labels[annotations.LabelKind] == annotations.KindRun:
		return o.resumeRun(ctx, k, found.document)
	}
	return o.resumePlan(ctx, k, found.document)
}

func (o *resumeOptions) resumeNode(ctx context.Context, k *cluster, n *corev1.Node) error {
	was := n.Annotations[annotations.Pause]
	_, err := k.annotateNode(ctx, n, &o.dryRun, func(n *corev1.Node) (change, error) {
		if _, there := n.Annotations[annotations.Pause]; !there {
			return nil, nil
		}
		return change{annotations.Pause: nil}.signed(annotations.Pause, "", ""), nil
	})
	if err != nil {
		return err
	}
	if was == "" || was == "false" {
		fmt.Fprintf(o.Out, "node/%s was not paused\n", n.Name)
	} else {
		fmt.Fprintf(o.Out, "node/%s resumed%s\n", n.Name, o.mark())
	}
	agent, _ := o.agent(ctx, k)
	if slices.ContainsFunc(k.pausesOf(ctx, agent.Namespace, agent.Namespace)[agent.Namespace], func(s plan.Switch) bool { return s.Holds(o.Now()) }) {
		fmt.Fprintf(o.ErrOut, "but the whole cluster is paused: see '%s resume --all -A'\n", o.Name)
	}
	return nil
}

func (o *resumeOptions) resumePlan(ctx context.Context, k *cluster, cm *corev1.ConfigMap) error {
	was := cm.Annotations[annotations.Pause]
	err := k.annotate(ctx, cm, &o.dryRun, func(cm *corev1.ConfigMap) (change, error) {
		if _, there := cm.Annotations[annotations.Pause]; !there {
			return nil, nil
		}
		return change{annotations.Pause: nil}.signed(annotations.Pause, "", ""), nil
	})
	if err != nil {
		return err
	}
	if was == "" || was == "false" {
		fmt.Fprintf(o.Out, "%s/%s was not paused\n", cm.Labels[annotations.LabelKind], cm.Name)
	} else {
		fmt.Fprintf(o.Out, "%s/%s resumed%s\n", cm.Labels[annotations.LabelKind], cm.Name, o.mark())
	}
	o.stillPaused(ctx, k, cm.Namespace)
	return nil
}

// stillPaused says that a switch above a resumed plan goes on holding it.
func (o *resumeOptions) stillPaused(ctx context.Context, k *cluster, namespace string) {
	agent, _ := o.agent(ctx, k)
	for _, s := range k.pausesOf(ctx, agent.Namespace, namespace)[namespace] {
		if s.Holds(o.Now()) {
			fmt.Fprintf(o.ErrOut, "but the namespace or the whole cluster is paused: see '%s resume --all' and '--all -A'\n", o.Name)
			return
		}
	}
}

func (o *resumeOptions) resumeRun(ctx context.Context, k *cluster, cm *corev1.ConfigMap) error {
	r, err := readRun(cm)
	if err != nil {
		return err
	}
	if r.journal.Phase.Ended() && len(notPutBack(r)) > 0 {
		return o.acknowledge(ctx, k, r)
	}
	if r.journal.Phase.Ended() {
		return fmt.Errorf("run %s has ended (%s): there is nothing to resume", cm.Name, r.journal.Phase)
	}
	if !suspended(r) {
		return exit(CodeNotNow, "run %s is not suspended now%s", cm.Name, colon(o.view(o.Zone).runHead(r)))
	}
	if err := o.askRun(ctx, k, r, annotations.Resume, r.run.Name, o.reason, &o.dryRun); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "run/%s resumed%s\n", cm.Name, o.mark())
	return nil
}

// acknowledge says that somebody knows what an ended run did not put back.
func (o *resumeOptions) acknowledge(ctx context.Context, k *cluster, r aRun) error {
	if err := o.askRun(ctx, k, r, annotations.Resume, r.run.Name, o.reason, &o.dryRun); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "run/%s: what it did not put back is acknowledged%s; it stays as it is\n", r.run.Name, o.mark())
	return nil
}

// suspended says whether a run is at a suspend that somebody can end.
func suspended(r aRun) bool {
	return slices.ContainsFunc(r.journal.Steps, func(s plan.Record) bool {
		return s.Type == "suspend" && s.Phase == plan.StepRunning && s.Resumed == nil
	})
}

func (o *resumeOptions) resumeAll(ctx context.Context, k *cluster) error {
	namespace, err := o.namespaceOf(ctx, k, o.scope)
	if err != nil {
		return err
	}
	c := change{annotations.Pause: nil}.signed(annotations.Pause, "", "")
	if err := k.annotateNamespace(ctx, namespace, &o.dryRun, c); err != nil {
		return err
	}
	what, listed := "all plans in namespace "+namespace, namespace
	if o.everywhere {
		what, listed = "all maintenance in the cluster", ""
	}
	fmt.Fprintf(o.Out, "%s resumed%s\n", what, o.mark())
	o.pausedThemselves(ctx, k, listed)
	return nil
}

// pausedThemselves names the plans that have a pause of their own.
func (o *resumeOptions) pausedThemselves(ctx context.Context, k *cluster, namespace string) {
	list, err := k.maps(namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindPlan})
	if err != nil {
		return
	}
	var names []string
	for _, cm := range list.Items {
		if annotations.Intent(cm.Annotations).Pause.Holds(o.Now()) {
			names = append(names, cm.Namespace+"/"+cm.Name)
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(o.ErrOut, "still paused themselves: %s\n", strings.Join(names, ", "))
	}
}
