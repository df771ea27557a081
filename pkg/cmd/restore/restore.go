package restore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// New holds the commands for restore data.
func New(c *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore list|show|edit",
		Short: "Show or edit what sleeping resources are restored to",
		Long: `Restore data holds the former state of each sleeping resource. It is written before the
resource is changed, signed with the agent's key, and kept until everything in its plan
is awake again.`,
		Example: "  kubectl maint restore list -A\n  kubectl maint restore show dev-nights\n  kubectl maint restore edit dev-nights apps",
		RunE: func(*cobra.Command, []string) error {
			return exit.Errorf(exit.CodeUsage, "say what: list, show or edit")
		},
	}
	cmd.AddCommand(newList(c), newShow(c), newEdit(c))
	return cmd
}

// item is restore data for scripts, see docs/cli.md.
type item struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"` // of its ConfigMap
	Plan      string     `json:"plan"`
	Target    string     `json:"target,omitempty"`
	Executor  string     `json:"executor,omitempty"`
	Cycle     string     `json:"cycle,omitempty"`
	State     string     `json:"state,omitempty"`
	BeganAt   *time.Time `json:"beganAt,omitempty"`
	Sleeping  int64      `json:"sleeping"`
	Left      int64      `json:"left"`
	Fault     string     `json:"fault,omitempty"` // why it does not count
	PlanGone  bool       `json:"planGone,omitempty"`
	Message   string     `json:"message,omitempty"` // why its target failed the last time
	Resources []resource `json:"resources"`
}

type resource struct {
	ID         string     `json:"id"`
	UID        string     `json:"uid,omitempty"`
	Before     any        `json:"before"`
	CapturedAt time.Time  `json:"capturedAt"`
	AsleepAt   *time.Time `json:"asleepAt,omitempty"`
	AwakeAt    *time.Time `json:"awakeAt,omitempty"` // since when it is awake because something restored it, or somebody started all of it
	WokenAt    *time.Time `json:"wokenAt,omitempty"`
	RestoredAt *time.Time `json:"restoredAt,omitempty"`
	Left       string     `json:"left,omitempty"`
}

func itemOf(r view.Restore, planGone bool) item {
	sleeping, left := r.Count()
	out := item{
		Namespace: r.Object.Namespace, Name: r.Object.Name, Plan: r.Of(), Target: r.Record.Target, Executor: r.Record.Executor, Cycle: r.Record.Cycle,
		State: string(r.Record.State), Sleeping: int64(sleeping), Left: int64(left), Fault: r.Fault, PlanGone: planGone, Message: r.Trouble(), Resources: []resource{},
	}
	if at := r.Record.Snapshot.BeganAt; !at.IsZero() {
		out.BeganAt = &at
	}
	for _, res := range r.Record.Resources {
		one := resource{ID: res.ID, UID: res.UID, CapturedAt: res.CapturedAt, AsleepAt: res.AsleepAt, AwakeAt: res.AwakeAt, WokenAt: res.WokenAt, RestoredAt: res.RestoredAt, Left: res.Left}
		_ = json.Unmarshal(res.Before, &one.Before) // it was decoded from JSON
		out.Resources = append(out.Resources, one)
	}
	return out
}

// orphans are restore data whose plan is gone, by object.
type orphans map[*corev1.ConfigMap]view.Restore

// orphansOf finds restore data without a plan in a namespace, or in all.
func orphansOf(ctx context.Context, k *factory.Cluster, namespace string, list []view.Restore) (orphans, error) {
	plans, err := k.HibernatePlans(ctx, namespace, "")
	out := orphans{}
	for _, r := range view.Orphans(list, plans) {
		out[r.Object] = r
	}
	return out, err
}

func valuesOf(list []view.Restore, gone orphans) []print.Value {
	items := make([]print.Value, len(list))
	for i, r := range list {
		_, planGone := gone[r.Object]
		items[i] = print.Value{Kind: "Restore", Name: "configmap/" + r.Object.Name, Body: itemOf(r, planGone)}
	}
	return items
}

type listOptions struct {
	*factory.Factory
	out        *print.Output
	selector   string
	everywhere bool
	faults     exit.Faults
}

func newList(c *factory.Factory) *cobra.Command {
	o := &listOptions{Factory: c, out: print.NewOutput()}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the restore data of the namespace, one line for each target",
		Example: "  kubectl maint restore list -A",
		Args:    factory.NoNames,
		RunE:    factory.RunE(o),
	}
	o.out.AddFlags(cmd)
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "labels of the restore data, such as maint.dev/plan=NAME")
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

// Run prints the list.
func (o *listOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	namespace := k.Whole(o.everywhere).Namespace
	agent := o.AgentBeside(ctx, k.Whole(o.everywhere))
	list, err := k.Restores(ctx, namespace, o.selector)
	_, _ = agent() // whoever may not look for it does without
	if err != nil {
		return err
	}
	if len(list) == 0 && o.out.Table() {
		print.Empty(o.ErrOut, namespace)
		return nil
	}
	gone, err := orphansOf(ctx, k, namespace, list)
	if err != nil {
		return err
	}
	if o.everywhere {
		o.out.WithNamespace()
	}
	t := print.NewTable(print.Column{Name: "Plan"}, print.Column{Name: "Target"}, print.Column{Name: "Executor"}, print.Column{Name: "State"}, print.Column{Name: "Sleeping"}, print.Column{Name: "Left"}, print.Column{Name: "Age"}, print.Column{Name: "Name", Wide: true}, print.Column{Name: "Fault"}, print.Column{Name: "Message", Wide: true})
	for _, r := range list {
		sleeping, left := r.Count()
		fault := cmp.Or(r.Fault, r.Trouble())
		if orphan, is := gone[r.Object]; is {
			fault = orphan.PlanGone()
		}
		print.AddRow(t, r.Object, r.Of(), r.Record.Target, r.Record.Executor, string(r.Record.State), fmt.Sprint(sleeping), fmt.Sprint(left), o.age(r), r.Object.Name, document.Cut(fault, shortFault), fault)
	}
	return o.out.Print(o.Out, t, "RestoreList", func() ([]print.Value, error) { return valuesOf(list, gone), nil })
}

// shortFault is how much of a fault a cell of the table holds (a guess); -o wide has all of it.
const shortFault = 60

// age is that of the sleep: the object may have come back from a backup since.
func (o *listOptions) age(r view.Restore) string {
	if at := r.Record.Snapshot.BeganAt; !at.IsZero() {
		return print.Age(o.Now(), at)
	}
	return print.Age(o.Now(), r.Object.CreationTimestamp.Time)
}

type showOptions struct {
	*factory.Factory
	out    *print.Output
	names  []string
	faults exit.Faults
}

func newShow(c *factory.Factory) *cobra.Command {
	o := &showOptions{Factory: c, out: print.NewOutput()}
	cmd := &cobra.Command{
		Use:               "show PLAN [TARGET]",
		Short:             "Show the former state of each resource of a plan",
		Example:           "  kubectl maint restore show dev-nights\n  kubectl maint restore show dev-nights apps -o yaml",
		RunE:              factory.RunE(o),
		ValidArgsFunction: complete(c),
	}
	o.out.AddFlags(cmd)
	return cmd
}

// Complete takes the names.
func (o *showOptions) Complete(_ *cobra.Command, args []string) error {
	if o.names = args; len(args) == 0 || len(args) > 2 {
		o.faults.Add("give a PLAN, and a TARGET if you want one alone")
	}
	return nil
}

// Validate checks the flags.
func (o *showOptions) Validate() error {
	o.out.Check(&o.faults)
	return o.faults.Err()
}

// Run prints the resources.
func (o *showOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	agent := o.AgentBeside(ctx, k)
	list, err := find(ctx, k, o.names)
	_, _ = agent() // whoever may not look for it does without
	if err != nil {
		copies := rescued(ctx, k, o.names)
		if len(copies) == 0 {
			return err
		}
		list = copies
	}
	t := print.NewTable(print.Column{Name: "Resource"}, print.Column{Name: "Target"}, print.Column{Name: "State"}, print.Column{Name: "Before"}, print.Column{Name: "Captured", Wide: true}, print.Column{Name: "UID", Wide: true})
	gone, err := orphansOf(ctx, k, k.Namespace, list)
	if err != nil {
		return err
	}
	recorded := 0 // resources, and records that cannot be read
	for _, r := range list {
		o.warn(r, gone)
		if r.Fault != "" {
			recorded++
		}
		recorded += len(r.Record.Resources)
		for _, res := range r.Record.Resources {
			print.AddRow(t, nil, res.ID, r.Record.Target, stateOf(res), string(res.Before), instant.Both(res.CapturedAt, o.Zone), res.UID)
		}
	}
	if recorded == 0 && o.out.Table() {
		print.Empty(o.ErrOut, k.Namespace)
	}
	if recorded == 0 {
		fmt.Fprintf(o.ErrOut, "nothing is recorded of plan %s: no resource was put to sleep\n", o.names[0])
	}
	return o.out.Print(o.Out, t, "RestoreList", func() ([]print.Value, error) { return valuesOf(list, gone), nil })
}

// warn says what is wrong with restore data.
func (o *showOptions) warn(r view.Restore, gone orphans) {
	_, planGone := gone[r.Object]
	switch why := r.Trouble(); {
	case planGone:
		fmt.Fprintf(o.ErrOut, "warning: restore data %s: %s\n", r.Object.Name, r.PlanGone())
	case r.Fault != "":
		fmt.Fprintf(o.ErrOut, "warning: restore data %s does not count: %s\n", r.Object.Name, r.Fault)
	case why != "":
		fmt.Fprintf(o.ErrOut, "warning: target %s is %s: %s\n", r.Record.Target, r.Record.State, why)
	}
}

// stateOf is the state of a resource.
func stateOf(r hibernate.Resource) string {
	switch {
	case r.Left != "":
		return "left: " + r.Left
	case r.RestoredAt != nil:
		return "awake"
	case r.WokenAt != nil:
		return "waking"
	case r.RevivedNow() && r.RevivedBy == "":
		return "awake: somebody started all of it"
	case r.RevivedNow():
		return "awake: " + r.RevivedBy + " puts it back"
	case r.AsleepAt != nil:
		return "asleep"
	}
	return "recorded"
}

// find finds the restore data of a plan, or of one of its targets; the plan itself may be gone.
func find(ctx context.Context, k *factory.Cluster, names []string) ([]view.Restore, error) {
	before, name := factory.SplitKind(names[0])
	var list []view.Restore
	var err error
	if view.MayMean(before, annotations.KindHibernatePlan) {
		list, err = k.RestoresOf(ctx, k.Namespace, name)
	}
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		_, err := k.Document(ctx, names[0], annotations.KindHibernatePlan)
		if err != nil {
			return nil, err
		}
		return nil, exit.Errorf(exit.CodeNotNow, "plan %s has no restore data: nothing of it sleeps", name)
	}
	if len(names) == 1 {
		return list, nil
	}
	var targets []string
	for _, r := range list {
		if r.Object.Name == annotations.RestoreName(name, names[1]) {
			return []view.Restore{r}, nil
		}
		targets = append(targets, r.Record.Target)
	}
	return nil, fmt.Errorf("plan %s has no restore data of a target %q; it has that of %s", name, names[1], strings.Join(targets, ", "))
}

// rescued are copies of a plan's restore data, or of a target's, from a deleted namespace.
func rescued(ctx context.Context, k *factory.Cluster, names []string) []view.Restore {
	before, name := factory.SplitKind(names[0])
	list, err := k.Restores(ctx, k.Namespace, "!"+annotations.LabelPlan)
	if err != nil || !view.MayMean(before, annotations.KindHibernatePlan) {
		return nil // that the plan has none is reported
	}
	return slices.DeleteFunc(list, func(r view.Restore) bool {
		return r.Of() != name || len(names) > 1 && r.Record.Target != names[1]
	})
}

// read reads restore data again.
func read(ctx context.Context, k *factory.Cluster, was *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	cm, err := k.ConfigMaps(was.Namespace).Get(ctx, was.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && cm.UID != was.UID:
		return nil, exit.Errorf(exit.CodeNotNow, "the restore data %s was deleted meanwhile: all targets of its plan are awake", was.Name)
	case err != nil:
		return nil, k.ReadError("read configmap/"+was.Name, was.Namespace, err)
	}
	return cm, nil
}

// complete offers plans, then the targets of the plan that have restore data.
func complete(c *factory.Factory) completion.Func {
	plans := completion.Kind(c, annotations.KindHibernatePlan, nil)
	return func(cmd *cobra.Command, given []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(given) != 1 {
			if len(given) > 1 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return plans(cmd, given, word)
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		k, err := c.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, err := k.RestoresOf(ctx, k.Namespace, factory.BareName(given[0]))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, r := range list {
			out = append(out, r.Record.Target)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
