// Package adopt holds the command that signs the agent's own records that have no valid signature.
package adopt

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

type options struct {
	*factory.Factory
	factory.DryRun
	factory.Consent
	names   []string
	all     bool
	skipped int // with all: those that are not signed
	faults  exit.Faults
}

// New is the command adopt.
func New(c *factory.Factory) *cobra.Command {
	o := &options{Factory: c}
	cmd := &cobra.Command{
		Use:   "adopt OBJECT...",
		Short: "Sign the agent's own records that have no valid signature",
		Long: `Sign runs, ledgers, gate records and restore data with the agent's key, so that the
agent counts them as its own: after a backup was restored without the Secret maint-agent-key, or
after the key was lost.

OBJECT is the name of a ConfigMap in the namespace. Its content is shown first:
the agent will act on it, as the account that it names. Restore data of an earlier sleep that
you name counts for the present sleep from then on. You need the right to read the Secret.

--all signs what a tenant made up, too, so look at what it shows. It leaves out copies of
restore data from deleted namespaces, names what it cannot sign, and exits with 1 then.`,
		Example: `  kubectl maint adopt -n shop maint-gate-weekends-k2x7a4b9qd
  kubectl maint adopt -n shop --all --dry-run=client`,
		RunE: factory.RunE(o),
	}
	o.DryRun.AddFlag(cmd)
	o.Consent.AddFlag(cmd)
	cmd.Flags().BoolVar(&o.all, "all", false, "all records of the agent in the namespace that have no valid signature")
	return cmd
}

// Complete takes the names.
func (o *options) Complete(_ *cobra.Command, args []string) error {
	o.names = args
	return nil
}

// Validate checks the flags.
func (o *options) Validate() error {
	o.DryRun.Check(&o.faults)
	if o.all == (len(o.names) > 0) {
		o.faults.Add("name the objects, or give --all")
	}
	return o.faults.Err()
}

// Run shows the objects, asks, and signs them.
func (o *options) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	ring, err := o.Keyring(ctx, k)
	if err != nil {
		return err
	}
	found, err := o.find(ctx, k)
	if err != nil {
		return err
	}
	due, err := o.due(ctx, k, ring, found)
	if err == nil {
		due, err = o.show(due)
	}
	if err != nil {
		return err
	}
	if len(due) == 0 && o.skipped == 0 {
		if o.Format() == "" { // else what is printed is read by a program
			fmt.Fprintln(o.Out, "nothing is to be signed: everything counts")
		}
		return nil
	}
	if o.Kept() && len(due) > 0 {
		if err := o.Confirm(ctx, o.Consent, fmt.Sprintf("sign %s in namespace %s, so that the agent acts on it", view.Counted(len(due), "object"), k.Namespace)); err != nil {
			return err
		}
	}
	for _, cm := range due {
		if err := o.sign(ctx, k, ring, cm); err != nil && (!o.all || ctx.Err() != nil) {
			return err
		} else if err != nil {
			o.skip(err)
		}
	}
	if o.skipped > 0 {
		return exit.Errorf(exit.CodeError, "%s not signed", view.Counted(o.skipped, "object"))
	}
	return nil
}

// show says what objects make the agent do. Those that cannot be read are left out, if nobody named
// them: one tenant's must not keep the others from being signed.
func (o *options) show(due []*corev1.ConfigMap) ([]*corev1.ConfigMap, error) {
	var out []*corev1.ConfigMap
	for _, cm := range due {
		what, err := contents(cm, o.Zone)
		if err != nil {
			err = fmt.Errorf("configmap/%s is not signed: %w", cm.Name, err)
		}
		switch {
		case err == nil:
			fmt.Fprintf(o.ErrOut, "%s: %s\n", cm.Name, what)
			out = append(out, cm)
		case !o.all:
			return nil, err
		default:
			o.skip(err)
		}
	}
	return out, nil
}

func (o *options) skip(err error) {
	o.skipped++
	fmt.Fprintf(o.ErrOut, "warning: %v\n", err)
}

// due are the objects that do not count: those without a valid signature, and restore data of an
// earlier sleep that was named, which becomes data of the present one.
func (o *options) due(ctx context.Context, k *factory.Cluster, ring annotations.Keyring, found []*corev1.ConfigMap) ([]*corev1.ConfigMap, error) {
	var out []*corev1.ConfigMap
	for _, cm := range found {
		counts := ring.Check(cm) == nil
		if r, err := annotations.ReadRestore(cm); err == nil && !o.all {
			last, err := lastSleep(ctx, k, r.Plan)
			if err != nil {
				return nil, err
			}
			if began := r.Snapshot.BeganAt; last.HasEnded(began) {
				fmt.Fprintf(o.ErrOut, "%s: it is of an earlier sleep, which began %s; it is taken for data of the present one\n", cm.Name, instant.Both(began, o.Zone))
				r.Snapshot.BeganAt, counts = last.Next(began), false
				if cm, err = annotations.WithRestore(cm, r); err != nil {
					return nil, err
				}
			}
		}
		if !counts {
			out = append(out, cm)
		}
	}
	return out, nil
}

// lastSleep is the newest sleep in a plan's ledger; nil: none.
func lastSleep(ctx context.Context, k *factory.Cluster, plan string) (*ledger.LastSleep, error) {
	cm, err := k.ConfigMaps(k.Namespace).Get(ctx, plan, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, k.ReadError("read configmap/"+plan, k.Namespace, err)
	}
	kept, err := k.Ledger(ctx, cm)
	if err != nil || kept.Head == nil {
		return nil, err
	}
	return kept.Head.LastSleep, nil
}

// find returns the objects that are named, or all of the agent's in the namespace.
func (o *options) find(ctx context.Context, k *factory.Cluster) ([]*corev1.ConfigMap, error) {
	var out []*corev1.ConfigMap
	if o.all {
		list, err := k.ConfigMaps(k.Namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.SignedKinds()})
		if err != nil {
			return nil, k.ReadError("list what the agent wrote", k.Namespace, err)
		}
		for i := range list.Items {
			if _, err := annotations.ReadRescued(&list.Items[i]); err != nil {
				out = append(out, &list.Items[i])
			}
		}
		return out, nil
	}
	for _, name := range o.names {
		if _, rest, found := strings.Cut(name, "/"); found { // as run/NAME
			name = rest
		}
		cm, err := k.ConfigMaps(k.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("there is no ConfigMap %s in namespace %s%s", name, k.Namespace, o.instead(ctx, k, name))
		}
		if err != nil {
			return nil, k.ReadError("read configmap/"+name, k.Namespace, err)
		}
		out = append(out, cm)
	}
	return out, nil
}

// instead names the record that was probably meant, or says where to look.
func (o *options) instead(ctx context.Context, k *factory.Cluster, name string) string {
	names, err := k.Names(ctx, "configmaps", k.Namespace, annotations.SignedKinds())
	if near, ok := view.NearestName(name, names); err == nil && ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return "; " + o.Suggest().AdoptAll() + " shows which records of the agent have no valid signature"
}

func (o *options) sign(ctx context.Context, k *factory.Cluster, ring annotations.Keyring, cm *corev1.ConfigMap) error {
	err := k.Sign(ctx, ring, cm, &o.DryRun)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("configmap/%s was changed meanwhile: look at it again", cm.Name)
	}
	if err != nil {
		return k.WriteError("sign configmap/"+cm.Name, "update", cm.Namespace, err)
	}
	return o.Report(o.IOStreams, false, "configmap/%s signed%s", cm.Name, o.Mark())
}
