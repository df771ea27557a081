package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/rollout"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

type releaseOptions struct {
	*factory.Factory
	factory.DryRun
	watch.Waiting
	names     []string
	selector  string
	requestor string
	all       bool
	faults    exit.Faults
}

// NewRelease gives nodes back.
func NewRelease(c *factory.Factory) *cobra.Command {
	o := &releaseOptions{Factory: c}
	cmd := &cobra.Command{
		Use:   "release NODE... | -l SELECTOR | --all",
		Short: "Release nodes that 'drain' requested",
		Long: `Withdraw your request for nodes. When no other request for a node is left, the agent
uncordons it, if the agent cordoned it. --all releases every node that you requested;
with --requestor, every node that this requestor requested. If one of several nodes
cannot be released, the others are all the same, and the command does not end with 0.`,
		Example: `  kubectl maint release worker-1 worker-2 --wait
  kubectl maint release --all --requestor gpu-operator`,
		RunE: factory.RunE(o),
	}
	cmd.ValidArgsFunction = completion.Nodes(c, func(m metav1.ObjectMeta) bool {
		for requestor := range annotations.Requests(m.Annotations) {
			if requestor == o.requestor || o.requestor == "" && strings.HasPrefix(requestor, view.CLIRequestor) {
				return true
			}
		}
		return false
	})
	o.DryRun.AddFlag(cmd)
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "labels of the nodes")
	cmd.Flags().StringVar(&o.requestor, "requestor", "", "whose request; default cli.<your name>")
	cmd.Flags().BoolVar(&o.all, "all", false, "all nodes that the requestor has requested")
	o.Waiting.AddFlags(cmd, "the nodes until the agent has given them back")
	return cmd
}

// Complete takes the names.
func (o *releaseOptions) Complete(_ *cobra.Command, args []string) error {
	o.names = args
	return nil
}

// Validate checks the flags.
func (o *releaseOptions) Validate() error {
	switch {
	case o.all && (len(o.names) > 0 || o.selector != ""):
		o.faults.Add("--all excludes names and -l")
	case !o.all:
		checkNodes(o.names, o.selector, &o.faults)
	}
	o.DryRun.Check(&o.faults)
	o.Waiting.Check(&o.faults)
	checkRequestor(o.requestor, &o.faults)
	return o.faults.Err()
}

// Run removes the request from each node.
func (o *releaseOptions) Run(ctx context.Context) (err error) {
	ctx, done := watch.WithTimeout(ctx, o.Timeout)
	defer done(&err)
	k, err := o.Connect()
	if err != nil {
		return err
	}
	if o.requestor, err = k.Requestor(ctx, o.requestor); err != nil {
		return err
	}
	targets, err := o.targets(ctx, k)
	if err != nil || len(targets) == 0 {
		return err
	}
	if err := o.checkAgent(ctx, k); err != nil {
		return err
	}
	var released []*corev1.Node
	missed := 0
	failed := each(ctx, o.Factory, targets, func(n *corev1.Node) error {
		done, err := o.release(ctx, k, n)
		switch {
		case done:
			released = append(released, n)
		case err != nil:
			missed++
		}
		return err
	})
	if !o.Wait || o.Mark() != "" || len(released) == 0 || ctx.Err() != nil {
		return failed
	}
	return goOn(o.Factory, missed, len(targets), failed, func() error {
		w := newNodeWait(o.Factory, k, o.requestor, released)
		w.settled, w.asked.left = w.released, "the request is taken back; the agent gives the nodes back when it can"
		return w.run(ctx)
	})
}

// targets are the nodes that are meant.
func (o *releaseOptions) targets(ctx context.Context, k *factory.Cluster) ([]*corev1.Node, error) {
	if !o.all {
		return k.NodesNamed(ctx, o.names, o.selector)
	}
	list, err := k.Nodes(ctx, "")
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(n *corev1.Node) bool {
		_, stands := annotations.Requests(n.Annotations)[o.requestor]
		return !stands
	})
	if len(list) == 0 && o.Format() == "" {
		fmt.Fprintf(o.Out, "%s asks for no node\n", o.requestor)
	}
	return list, nil
}

// checkAgent refuses to wait for a missing agent; without --wait a request can be removed all the
// same.
func (o *releaseOptions) checkAgent(ctx context.Context, k *factory.Cluster) error {
	err := o.NeedAgent(ctx, k, "")
	if err == nil || o.Wait || exit.CodeOf(err) != exit.CodeNoAgent {
		return err
	}
	fmt.Fprintf(o.ErrOut, "warning: %v; until it runs, nothing is uncordoned\n", err)
	return nil
}

// release removes the request from a node, and says what remains there.
func (o *releaseOptions) release(ctx context.Context, k *factory.Cluster, n *corev1.Node) (done bool, err error) {
	var now *corev1.Node
	_, err = k.AnnotateNode(ctx, n, &o.DryRun, func(n *corev1.Node) (factory.Change, error) {
		now = n
		_, done = annotations.Requests(n.Annotations)[o.requestor]
		if !done {
			return nil, nil
		}
		return factory.Change{annotations.RequestPrefix + o.requestor: nil}, nil
	})
	if err != nil {
		return false, err
	}
	facts := annotations.Node(now)
	others := standing(facts, o.requestor)
	switch {
	case done:
		err = o.Report(o.IOStreams, o.Wait && o.Kept(), "node/%s released by %s%s%s", n.Name, o.requestor, o.Mark(), view.PrefixList("; still asked for by ", others))
	default:
		err = o.Report(o.IOStreams, false, "node/%s was not asked for by %s%s", n.Name, o.requestor, view.PrefixList("; it is by ", others))
	}
	if err != nil {
		return done, err
	}
	if len(others) == 0 {
		o.stays(ctx, k, facts)
	}
	return done, nil
}

// standing are the other requestors of a node.
func standing(n nodes.Node, but string) []string {
	var out []string
	for _, a := range n.Asked {
		if !a.Gone && a.Request.Requestor != but {
			out = append(out, a.Request.Requestor)
		}
	}
	return out
}

// stays says why a node without requests stays cordoned.
func (o *releaseOptions) stays(ctx context.Context, k *factory.Cluster, n nodes.Node) {
	if n.Cordon == nil || !n.Unschedulable {
		return
	}
	var plans, elsewhere []string
	gone := rollout.Runs{}.PlansGone(ctx, k, n)
	for _, by := range n.Cordon.By {
		switch {
		case nodes.IsElsewhere(by):
			elsewhere = append(elsewhere, nodes.ClaimantName(by))
		case nodes.IsPlan(by) && !slices.Contains(gone, by):
			plans = append(plans, nodes.ClaimantName(by))
		}
	}
	stays := "node/" + n.Name + " stays cordoned"
	uncordon, why := o.Suggest().Uncordon(n.Name), o.Suggest().Why("node/"+n.Name)
	switch {
	case len(elsewhere) > 0:
		fmt.Fprintf(o.ErrOut, "%s for %s: the agent there uncordons it\n", stays, strings.Join(slices.Concat(elsewhere, plans), ", "))
	case len(plans) > 0 && len(gone) > 0: // what its runs are at is not read here
		fmt.Fprintf(o.ErrOut, "%s for %s: the next run goes on with it\n", stays, strings.Join(plans, ", "))
	case len(plans) > 0:
		fmt.Fprintf(o.ErrOut, "%s for %s: the next run goes on with it; see %s\n", stays, strings.Join(plans, ", "), why)
	case len(gone) == 0 && n.Cordon.Before:
		fmt.Fprintf(o.ErrOut, "%s: it was so before; %s opens it\n", stays, uncordon)
	}
	if len(gone) > 0 {
		hand := uncordon + " does" + view.PrefixList(view.OnceGivenBack, elsewhere)
		if len(plans) > 0 { // one whose run failed gives nothing back
			hand = "see " + why
		}
		fmt.Fprintf(o.ErrOut, "%s for %s, which does not exist any more: nobody else uncordons it; %s\n", stays, strings.Join(view.ClaimantNames(gone), ", "), hand)
	}
}

// released says whether the agent has released a node.
func (w *nodeWait) released(_ string, n *corev1.Node) (bool, error) {
	return n == nil || view.AskedBy(annotations.Node(n), w.asked.requestor) == nil, nil
}
