package look

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

type listOptions struct {
	*factory.Factory
	out        *print.Output
	selector   string
	everywhere bool
	faults     exit.Faults
}

// NewList lists the plans.
func NewList(c *factory.Factory) *cobra.Command {
	o := &listOptions{Factory: c, out: print.NewOutput()}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "The plans of both kinds, a line each",
		Example: "  kubectl maint list -A -o wide",
		Args:    cobra.NoArgs,
		RunE:    factory.RunE(o),
	}
	o.out.AddFlags(cmd)
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "labels of the plans")
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "of all namespaces")
	return cmd
}

// Complete has nothing to look up.
func (o *listOptions) Complete(*cobra.Command, []string) error { return nil }

// Validate checks the flags.
func (o *listOptions) Validate() error {
	o.out.Check(&o.faults)
	return o.faults.Err()
}

// Run prints the plans.
func (o *listOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	namespace := k.Namespace
	if o.everywhere {
		namespace = ""
	}
	plans, err := k.Plans(ctx, namespace, o.selector)
	if err != nil {
		return err
	}
	sleepers, err := k.HibernatePlans(ctx, namespace, o.selector)
	if err != nil {
		return err
	}
	plans = append(plans, sleepers...)
	if len(plans) == 0 && o.out.Table() {
		fmt.Fprintf(o.ErrOut, "no plans%s\n", in(namespace))
		return nil
	}
	columns := []print.Column{{Name: "Name"}, {Name: "Kind"}, {Name: "Phase"}, {Name: "Next"}, {Name: "Last"}, {Name: "Result"}, {Name: "Target", Wide: true}, {Name: "Message", Wide: true}}
	t := print.NewTable(columns...)
	for _, cm := range plans {
		print.AddRow(t, cm, listRow(cm)...)
	}
	if o.everywhere {
		if err := o.out.WithNamespace(); err != nil {
			return err
		}
	}
	return o.out.Print(o.Out, t, func() (runtime.Object, error) { return print.ConfigMapList(plans) })
}

func listRow(cm *corev1.ConfigMap) []string {
	if cm.Labels[annotations.LabelKind] == annotations.KindHibernatePlan {
		return sleeperRow(view.NewSleeper(cm, nil, nil))
	}
	spec, faults := annotations.Plan(cm)
	p := view.Plan{Object: cm, Spec: spec, Faults: faults}
	phase, message := p.Phase()
	target := ""
	if spec.Target != nil {
		target = spec.Target.String()
	}
	return []string{cm.Name, "Plan", phase, p.Published(annotations.StatusNextRun), p.Published(annotations.StatusLastRun), p.Published(annotations.StatusLastResult), target, message}
}

// sleeperRow has a HibernatePlan's next waking or sleeping, and since when it sleeps.
func sleeperRow(s view.Sleeper) []string {
	phase, message := s.Phase()
	var targets []string
	for _, t := range s.Spec.Targets {
		targets = append(targets, t.Name)
	}
	next := cmp.Or(s.Published(annotations.StatusWakes), s.Published(annotations.StatusSleeps))
	return []string{s.Name, "HibernatePlan", phase, next, s.Published(annotations.StatusAsleep), "", strings.Join(targets, ","), message}
}
