package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

type listOptions struct {
	*cli
	out        *output
	selector   string
	everywhere bool
	faults     faults
}

func newList(c *cli) *cobra.Command {
	o := &listOptions{cli: c, out: newOutput()}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "The plans, a line each",
		Example: "  kubectl maint list -A -o wide",
		Args:    cobra.NoArgs,
		RunE:    run(o),
	}
	o.out.addFlags(cmd)
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "labels of the plans")
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "of all namespaces")
	return cmd
}

// Complete has nothing to look up.
func (o *listOptions) Complete(*cobra.Command, []string) error { return nil }

// Validate checks the flags.
func (o *listOptions) Validate() error {
	o.out.check(&o.faults)
	return o.faults.err()
}

// Run prints the plans.
func (o *listOptions) Run(ctx context.Context) error {
	k, err := o.connect()
	if err != nil {
		return err
	}
	namespace := k.namespace
	if o.everywhere {
		namespace = ""
	}
	plans, err := k.plansIn(ctx, namespace, o.selector)
	if err != nil {
		return err
	}
	if len(plans) == 0 && o.out.table() {
		fmt.Fprintf(o.ErrOut, "no plans%s\n", in(namespace))
		return nil
	}
	columns := []column{{name: "Name"}, {name: "Phase"}, {name: "Next"}, {name: "Last"}, {name: "Result"}, {name: "Target", wide: true}, {name: "Message", wide: true}}
	t := newTable(columns...)
	for _, cm := range plans {
		addRow(t, cm, listRow(cm)...)
	}
	if o.everywhere {
		if err := o.out.withNamespace(); err != nil {
			return err
		}
	}
	return o.out.print(o.Out, t, func() (runtime.Object, error) { return mapList(plans) })
}

func listRow(cm *corev1.ConfigMap) []string {
	spec, faults := annotations.Plan(cm)
	p := aPlan{object: cm, spec: spec, faults: faults}
	phase, message := p.phaseOf()
	target := ""
	if spec.Target != nil {
		target = spec.Target.String()
	}
	return []string{cm.Name, phase, p.published(annotations.StatusNextRun), p.published(annotations.StatusLastRun), p.published(annotations.StatusLastResult), target, message}
}
