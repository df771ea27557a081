package restore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/amendment"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

type editOptions struct {
	*factory.Factory
	factory.DryRun
	names  []string
	faults exit.Faults
}

func newEdit(c *factory.Factory) *cobra.Command {
	o := &editOptions{Factory: c}
	cmd := &cobra.Command{
		Use:   "edit PLAN TARGET",
		Short: "Edit what is restored when a target wakes",
		Long: `Change what is put back when a target wakes, in the editor that KUBE_EDITOR or EDITOR
names. You can change the values under 'before', but not their fields or types. The result
is signed with the agent's key, since the agent ignores restore data without a valid
signature. You need the right to read the Secret maint-agent-key.`,
		Example:           "  kubectl maint restore edit dev-nights apps",
		RunE:              factory.RunE(o),
		ValidArgsFunction: complete(c),
	}
	o.DryRun.AddFlag(cmd)
	return cmd
}

// Complete takes the names.
func (o *editOptions) Complete(_ *cobra.Command, args []string) error {
	if o.names = args; len(args) != 2 {
		o.faults.Add("give a PLAN and a TARGET")
	}
	return nil
}

// Validate checks the flags.
func (o *editOptions) Validate() error {
	o.DryRun.Check(&o.faults)
	return o.faults.Err()
}

// Run lets the person edit, and writes the result. A missing right is reported before.
func (o *editOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	list, err := find(ctx, k, o.names)
	if err != nil {
		return err
	}
	ring, err := o.Keyring(ctx, k)
	if err != nil {
		return err
	}
	record, err := counted(ring, list[0].Object)
	if err != nil {
		return fmt.Errorf("%w\nif it is the agent's own, sign it first: %s", err, o.Suggest().Adopt(list[0].Object.Name))
	}
	e := edition{object: list[0].Object, shown: record}
	if err := e.ask(ctx); err != nil {
		if ctx.Err() != nil && e.file != "" {
			fmt.Fprintf(o.ErrOut, "nothing was written; your text is kept in %s\n", e.file)
		}
		return err
	}
	if len(e.changed) == 0 {
		fmt.Fprintln(o.ErrOut, "nothing was changed")
		return nil
	}
	if err := o.write(ctx, k, ring, e); err != nil {
		return e.kept(err)
	}
	_ = os.Remove(e.file) // its content is written
	return o.Report(o.IOStreams, false, "configmap/%s edited: %s%s", e.object.Name, strings.Join(e.changed, ", "), o.Mark())
}

// counted is restore data that the agent accepts.
func counted(ring annotations.Keyring, cm *corev1.ConfigMap) (hibernate.Record, error) {
	if err := ring.Check(cm); err != nil {
		return hibernate.Record{}, err
	}
	return annotations.ReadRestore(cm)
}

// write applies the edited values to the present record; if somebody else has changed one of them,
// nothing is written.
func (o *editOptions) write(ctx context.Context, k *factory.Cluster, ring annotations.Keyring, e edition) error {
	err := retry.RetryOnConflict(factory.ConflictBackoff(), func() error {
		cm, err := read(ctx, k, e.object)
		if err != nil {
			return err
		}
		now, err := counted(ring, cm)
		if err != nil {
			return err
		}
		amended, err := e.onto(now)
		if err != nil {
			return err
		}
		if cm, err = annotations.WithRestore(cm, amended); err != nil {
			return err
		}
		if err = k.Sign(ctx, ring, cm, &o.DryRun); apierrors.IsConflict(err) {
			return err
		}
		return k.WriteError("write configmap/"+cm.Name, "update", cm.Namespace, err)
	})
	if apierrors.IsConflict(err) {
		return fmt.Errorf("configmap/%s keeps changing, because the agent is working on the target: try again when it has finished", e.object.Name)
	}
	return err
}

// edition is what a person edits.
type edition struct {
	object  *corev1.ConfigMap
	shown   hibernate.Record
	wanted  []amendment.Value
	changed []string
	file    string // which holds the text
}

const head = `# What target %s of plan %s in namespace %s is put back to when it wakes.
# Change what stands under 'before', and nothing else. An empty file changes nothing.
`

// ask opens the editor until its result is valid, unchanged or empty, or the command is
// interrupted.
func (e *edition) ask(ctx context.Context) error {
	listed, err := yaml.Marshal(amendment.Of(e.shown))
	if err != nil {
		return err
	}
	top := fmt.Sprintf(head, e.shown.Target, e.shown.Plan, e.object.Namespace)
	text, wrong := listed, ""
	for {
		before := e.file
		result, file, err := edited(append([]byte(top+wrong), text...))
		if before != "" {
			_ = os.Remove(before) // the newer file has its text
		}
		e.file = file
		switch {
		case ctx.Err() != nil && err != nil: // the editor was interrupted, too
			return ctx.Err()
		case err != nil:
			return e.kept(fmt.Errorf("the editor: %w", err))
		}
		result = uncommented(result)
		if len(bytes.TrimSpace(result)) == 0 || bytes.Equal(result, listed) {
			_ = os.Remove(file) // it has no changes
			e.file = ""
			return ctx.Err()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fault := e.take(result)
		switch {
		case fault == nil:
			if len(e.changed) == 0 {
				_ = os.Remove(file) // as above
			}
			return nil
		case bytes.Equal(result, text): // the same faults again
			return e.kept(fault)
		}
		text, wrong = result, "#\n# It was not taken:\n# "+strings.ReplaceAll(fault.Error(), "\n", "\n# ")+"\n"
	}
}

// take reads the edited text.
func (e *edition) take(text []byte) error {
	var list []amendment.Value
	if err := yaml.UnmarshalStrict(text, &list); err != nil {
		return fmt.Errorf("the text must be a list of id and before: %w", err)
	}
	_, changed, faults := amendment.Put(e.shown, list)
	if len(faults) > 0 {
		return faults
	}
	e.wanted, e.changed = list, changed
	return nil
}

// onto applies the changes to the present record.
func (e *edition) onto(now hibernate.Record) (hibernate.Record, error) {
	if now.Cycle != e.shown.Cycle {
		return now, errors.New("the target has woken and fallen asleep again meanwhile: look at it again")
	}
	want := amendment.Of(now)
	for i, a := range e.wanted {
		was := e.shown.Resources[i]
		if was.Was(a.Before) {
			continue
		}
		at := -1
		for j, res := range now.Resources {
			if res.ID == was.ID && res.UID == was.UID {
				at = j
			}
		}
		if at < 0 || !was.Was(now.Resources[at].Before) {
			return now, fmt.Errorf("the restore data of %s has changed meanwhile: look at it again", was.ID)
		}
		want[at].Before = a.Before
	}
	amended, _, faults := amendment.Put(now, want)
	if len(faults) > 0 {
		return now, faults
	}
	return amended, nil
}

// kept says where the unwritten text is.
func (e *edition) kept(err error) error {
	if e.file == "" {
		return err
	}
	return fmt.Errorf("%w\nnothing was written; your text is kept in %s", err, e.file)
}

// uncommented is a text without lines that are comments.
func uncommented(text []byte) []byte {
	var out []byte
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("#")) {
			out = append(out, line...)
		}
	}
	return out
}
