package override

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// overrideOptions are the options of allow and freeze.
type overrideOptions struct {
	*factory.Factory
	factory.DryRun
	strategy  schedule.Strategy // PermissiveUntil or RestrictiveUntil
	past      string            // allowed, frozen
	object    string
	forText   string
	untilText string
	timezone  string
	reason    string
	end       bool
	faults    exit.Faults
}

// NewAllow permits change until a time.
func NewAllow(c *factory.Factory) *cobra.Command {
	o := &overrideOptions{Factory: c, strategy: schedule.PermissiveUntil, past: "allowed"}
	return o.command("allow", "Permit change until a time, whatever the windows say", `Permit change of a policy's objects, or of one object, until a time, whatever the
windows say. It ends by itself; after it, the policy decides again. On a
policy it overrides the policy for everything that it governs. A namespace's Restrictive binds
all the same.

An object has one override at a time: allow ends a freeze of the same object, which
does not come back afterwards. What was replaced is printed, with the command that
brings it back.`, `  kubectl maint allow weekends --for 2h --reason "CHG-1234: urgent fix"
  kubectl maint allow node/worker-3 --until "tomorrow 08:00" --reason "disks"
  kubectl maint allow weekends --end`)
}

// NewFreeze permits no change until a time.
func NewFreeze(c *factory.Factory) *cobra.Command {
	o := &overrideOptions{Factory: c, strategy: schedule.RestrictiveUntil, past: "frozen"}
	return o.command("freeze", "Permit no change until a time, whatever the windows say", `Permit no change of a policy's objects, of one object, or of everything in a
namespace, until a time, whatever the windows say. It ends by itself; after it,
the policy decides again. What runs goes on, unless its plan looks at the window between
its steps (onWindowClose); what waits goes on waiting.

An object has one override at a time: freeze replaces an earlier freeze of the same
object, even a longer one, and ends what was allowed. What was replaced is printed,
with the command that brings it back.`, `  kubectl maint freeze weekends --until "mon 08:00" --reason "go-live"
  kubectl maint freeze namespace/shop --for 3d --reason "stocktaking"
  kubectl maint freeze weekends --end`)
}

func (o *overrideOptions) command(use, short, long, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " POLICY|PLAN|KIND/NAME --for D|--until T --reason R", DisableFlagsInUseLine: true, Short: short, Long: long, Example: example,
		RunE: factory.RunE(o), ValidArgsFunction: completion.Both(completion.Kinds(o.Factory, annotations.KindPolicy, annotations.KindPlan, annotations.KindHibernatePlan), completion.Typed(o.Factory)),
	}
	o.DryRun.AddFlag(cmd)
	cmd.Flags().StringVar(&o.forText, "for", "", "how long, like 2h or 3d")
	cmd.Flags().StringVar(&o.untilText, "until", "", `until when: "tomorrow 08:00", "sat 02:00", RFC 3339`)
	cmd.Flags().StringVar(&o.timezone, "timezone", "", "zone of --until; default: that of the policy or plan, else yours")
	cmd.Flags().StringVar(&o.reason, "reason", "", "why; recorded beside it")
	cmd.Flags().BoolVar(&o.end, "end", false, "end it now: remove the strategy")
	return cmd
}

// Complete takes the object.
func (o *overrideOptions) Complete(_ *cobra.Command, args []string) error {
	o.object = factory.OneName(args, "POLICY, PLAN or KIND/NAME", &o.faults)
	return nil
}

// Validate checks the flags.
func (o *overrideOptions) Validate() error {
	o.DryRun.Check(&o.faults)
	given := 0
	for _, set := range []bool{o.forText != "", o.untilText != "", o.end} {
		if set {
			given++
		}
	}
	switch {
	case given == 0:
		o.faults.Add("--for or --until is missing: it must end by itself")
	case given > 1:
		o.faults.Add("give one of --for, --until and --end")
	case o.untilText != "": // whether it has passed depends on the zone of the object
		o.faults.Check(instant.NotPassed("--until", o.untilText, o.Now(), o.Zone))
	case !o.end:
		_, err := o.until(o.Zone)
		o.faults.Check(err)
	}
	o.faults.Check(instant.KnownZone(o.timezone))
	if !o.end && strings.TrimSpace(o.reason) == "" {
		o.faults.Add("--reason is missing: everybody who asks why sees it")
	}
	return o.faults.Err()
}

func (o *overrideOptions) until(zone string) (time.Time, error) {
	if o.forText != "" {
		d, err := document.ParseDuration(o.forText)
		if err != nil {
			return time.Time{}, fmt.Errorf("--for: %w", err)
		}
		if d.Duration <= 0 {
			return time.Time{}, fmt.Errorf("--for: must be more than nothing, is %s", o.forText)
		}
		return o.Now().Add(d.Duration), nil
	}
	return instant.Future("--until", o.untilText, o.Now(), zone)
}

// Run writes the stanza's strategy and its instant, and says what follows.
func (o *overrideOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	target, err := o.find(ctx, k)
	if err != nil {
		return err
	}
	if err := o.check(ctx, k, target); err != nil {
		return err
	}
	zone := cmp.Or(o.timezone, target.zone)
	c, words := o.clear(), "was not frozen or allowed"
	if was := o.inForce(target); was != "" {
		words = "no longer frozen or allowed: " + was
	}
	if !o.end {
		at, err := o.until(zone)
		if err != nil {
			return err
		}
		at = at.UTC().Truncate(time.Second)
		key := map[schedule.Strategy]string{schedule.PermissiveUntil: annotations.PermissiveUntil, schedule.RestrictiveUntil: annotations.RestrictiveUntil}[o.strategy]
		c = o.clear()
		c[annotations.ChangeStrategy], c[key] = factory.Value(string(o.strategy)), factory.Value(at.Format(time.RFC3339))
		c = c.Signed(annotations.ChangeStrategy, k.Actor(ctx), o.reason)
		words = o.past + " until " + instant.Both(at, zone)
	}
	if err := o.write(ctx, k, target, c); err != nil {
		return err
	}
	if err := o.Report(o.IOStreams, false, "%s %s%s", target.String(), words, o.Mark()); err != nil {
		return err
	}
	o.sayReplaced(target)
	for _, held := range o.heldAllTheSame(ctx, k, target) {
		fmt.Fprintf(o.ErrOut, "but %s\n", held)
	}
	return nil
}

// inForce says how an object was frozen or allowed, and by whom; empty: it was neither.
func (o *overrideOptions) inForce(f found) string {
	in, v := annotations.Intent(f.meta.GetAnnotations()), print.New(o.Env, f.zone)
	if frozen, is := strings.CutPrefix(v.Frozen(in), "is "); is {
		return "it was " + frozen
	}
	s := in.Stanza
	switch {
	case s.Strategy == schedule.Permissive:
		return "it was allowed" + s.By
	case s.Strategy == schedule.PermissiveUntil && s.Until != nil && s.Until.After(v.Now):
		return "it was allowed until " + v.When(*s.Until) + schedule.Clause(s.By)
	}
	return ""
}

// heldAllTheSame names what holds an object in spite of allow: its pauses, and the freeze of its
// namespace.
func (o *overrideOptions) heldAllTheSame(ctx context.Context, k *factory.Cluster, f found) []string {
	out := o.paused(ctx, k, f)
	if freeze := o.namespaceFrozen(ctx, k, f); freeze != "" {
		out = append(out, freeze)
	}
	return out
}

// paused names the pauses, the object's own and those above it, that hold an object in spite of
// allow, and the commands that end them.
func (o *overrideOptions) paused(ctx context.Context, k *factory.Cluster, f found) []string {
	hand := o.resume(k, f)
	if o.end || o.strategy != schedule.PermissiveUntil || hand == "" {
		return nil
	}
	var out []string
	v := print.New(o.Env, f.zone)
	if own := annotations.Intent(f.meta.GetAnnotations()).Pause; own.Holds(o.Now()) {
		out = append(out, goesOn(print.Need{About: f.String(), What: v.Paused(own), Remedy: hand}))
	}
	for _, p := range o.above(ctx, k, f) {
		if annotations.NamespaceNamed(f.meta.GetName()) == p.Of && f.info.Mapping.GroupVersionKind.Kind == "Namespace" {
			continue // its own
		}
		for _, n := range v.PauseNeeds(p) {
			out = append(out, goesOn(n))
		}
	}
	return out
}

func goesOn(pause print.Need) string {
	return fmt.Sprintf("%s %s; 'allow' does not end that: run %s", pause.About, pause.What, pause.Remedy)
}

// above are the pauses above an object, of its namespace and of the whole cluster, as far as they
// may be read.
func (o *overrideOptions) above(ctx context.Context, k *factory.Cluster, f found) []schedule.Pause {
	agent, _ := o.Agent(ctx, k)
	namespace := f.meta.GetNamespace()
	switch f.info.Mapping.GroupVersionKind.Kind {
	case "Node":
		namespace = agent.Namespace
	case "Namespace":
		namespace = f.meta.GetName()
	}
	switches := source.ReadPauses(ctx, k, agent.Namespace, namespace)
	if f.kind != annotations.KindPlan {
		return switches.Above(namespace)
	}
	cm, err := k.Plan(ctx, f.meta.GetName())
	if err != nil { // the object existed a moment ago
		return switches.Above(namespace)
	}
	return switches.AbovePlan(o.Factory, cm)
}

// resume is the command that ends an object's pause; empty if its kind has none.
func (o *overrideOptions) resume(k *factory.Cluster, f found) string {
	hand := o.Suggest()
	switch kind, name := f.info.Mapping.GroupVersionKind.GroupKind().String(), f.meta.GetName(); {
	case kind == "Node":
		return hand.In("").Resume("node/" + name)
	case kind == "Namespace" && name != k.Namespace:
		return hand.In(name).ResumeAll()
	case kind == "Namespace":
		return hand.ResumeAll()
	case kind == "ConfigMap" && slices.Contains([]string{annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy}, f.meta.GetLabels()[annotations.LabelKind]):
		return hand.Resume(f.meta.GetLabels()[annotations.LabelKind] + "/" + name)
	}
	return ""
}

// check refuses overrides that would do harm at their end: permission where no policy takes over
// again, and a strategy that replaces one without an end.
func (o *overrideOptions) check(ctx context.Context, k *factory.Cluster, f found) error {
	have := annotations.Stanza(f.meta.GetAnnotations())
	switch {
	case o.end:
		return nil
	case have.Strategy == schedule.Restrictive || have.Strategy == schedule.Permissive:
		return fmt.Errorf("%s is %s by its annotation %s, which would be lost: remove it first (--end)", f, have.Strategy, annotations.ChangeStrategy)
	case !f.asked():
		if gated, err := o.gated(ctx, k, f); gated || err != nil {
			return err
		}
		return o.notAsked(f)
	case o.strategy == schedule.RestrictiveUntil || f.kind == annotations.KindPolicy || len(have.Policies) > 0:
		return nil
	}
	governed, err := o.governed(ctx, k, f)
	if governed || err != nil {
		return err
	}
	held := o.heldAllTheSame(ctx, k, f)
	if freeze := o.frozen(f); freeze != "" {
		held = append(held, freeze)
	}
	if len(held) > 0 {
		return errors.New(strings.Join(held, "\n"))
	}
	return fmt.Errorf("%s has no policy, so change is permitted already; nothing was written, since this permission would close it at its end", f)
}

// asked says whether an object is of a kind that the agent asks by itself whether change is permitted.
// All others are asked only where a gate means them.
func (f found) asked() bool {
	switch f.info.Mapping.GroupVersionKind.GroupKind().String() {
	case "Node", "Namespace":
		return true
	}
	return f.isPlan() || f.kind == annotations.KindPolicy
}

// gated says whether a gate means an object: the agent says so on it, or a policy does. Where these
// may not be read it is not known, and said.
func (o *overrideOptions) gated(ctx context.Context, k *factory.Cluster, f found) (bool, error) {
	if f.meta.GetAnnotations()[annotations.StatusPermitted] != "" {
		return true, nil
	}
	list, err := k.ListDocuments(ctx, "policies", annotations.KindPolicy, metav1.NamespaceAll, "") // of any namespace
	hidden := apierrors.IsForbidden(err)
	if own := f.meta.GetNamespace(); hidden && own != "" {
		list, _ = k.ListDocuments(ctx, "policies", annotations.KindPolicy, own, "") // what may be read there
		err = nil
	}
	of := f.info.Mapping.GroupVersionKind
	means := slices.ContainsFunc(list, func(cm *corev1.ConfigMap) bool {
		return annotations.Policy(cm).Spec.Means(cm.Namespace, of.Group, of.Kind, f.meta.GetNamespace(), f.meta.GetName(), f.meta.GetLabels())
	})
	if hidden && !means {
		fmt.Fprintf(o.ErrOut, "warning: it is not known whether a policy's gate names %s, since you may not list ConfigMaps of all namespaces; if none does, this has no effect\n", f)
		return true, nil
	}
	return means, err
}

// notAsked refuses what would have no effect.
func (o *overrideOptions) notAsked(f found) error {
	if o.strategy == schedule.PermissiveUntil {
		return fmt.Errorf("a permission has no effect on %s: it works on plans, policies, nodes, namespaces and the objects of a policy's gates", f)
	}
	help := "freeze the plans that change it"
	if namespace := f.meta.GetNamespace(); namespace != "" {
		help += ", or its namespace with " + o.Suggest().FreezeNamespace(namespace)
	}
	return fmt.Errorf("a freeze has no effect on %s: it works on plans, policies, nodes, namespaces and the objects of a policy's gates; %s; with the admission policies, the label %s=POLICY freezes one object", f, help, annotations.LabelFreeze)
}

// governed says whether a policy that the document of a plan or HibernatePlan names applies to it.
func (o *overrideOptions) governed(ctx context.Context, k *factory.Cluster, f found) (bool, error) {
	if !f.isPlan() {
		return false, nil
	}
	cm, err := k.ConfigMaps(f.meta.GetNamespace()).Get(ctx, f.meta.GetName(), metav1.GetOptions{})
	if err != nil {
		return false, k.Explain("read "+f.String(), err)
	}
	q := policy.Query{Namespace: cm.Namespace}
	if cm.Labels[annotations.LabelKind] == annotations.KindPlan {
		spec, _ := annotations.Plan(cm)
		q.Policies = spec.Policies
	} else {
		spec, _ := annotations.HibernatePlan(cm)
		q.Policies = spec.Policies
	}
	agent, _ := o.Agent(ctx, k)
	return len(source.ReadRestrictions(ctx, k, agent.Namespace, cm.Namespace).Uses(q)) > 0, nil
}

// frozen says how the annotations of an object without a policy forbid change, and what ends that;
// empty: they do not.
func (o *overrideOptions) frozen(f found) string {
	in, hand := annotations.Intent(f.meta.GetAnnotations()), o.Suggest()
	if f.meta.GetNamespace() == "" {
		hand = hand.In("")
	}
	what := view.Prefix(" ", print.New(o.Env, f.zone).Frozen(in))
	if faults := in.Stanza.Faults; len(faults) > 0 {
		what = ": " + faults[0].String()
		if faults[0].Path == annotations.ChangePolicy { // which the end of a freeze leaves
			return f.String() + what + "; name fewer there"
		}
	}
	if what == "" {
		return ""
	}
	return fmt.Sprintf("%s%s; %s ends that, and no policy applies that 'allow' could override", f, what, hand.Unfreeze(f.String()))
}

// isPlan says whether an object is the document of a plan or a HibernatePlan, however it was named.
func (f found) isPlan() bool {
	kind := f.meta.GetLabels()[annotations.LabelKind]
	return f.info.Mapping.GroupVersionKind.GroupKind().String() == "ConfigMap" && (kind == annotations.KindPlan || kind == annotations.KindHibernatePlan)
}

// namespaceFrozen says that a frozen namespace holds a plan whatever the plan permits, and what
// ends that; empty: it does not.
func (o *overrideOptions) namespaceFrozen(ctx context.Context, k *factory.Cluster, f found) string {
	if !f.isPlan() || o.end || o.strategy != schedule.PermissiveUntil {
		return ""
	}
	cm, err := k.Document(ctx, f.meta.GetName(), annotations.KindPlan, annotations.KindHibernatePlan)
	if err != nil {
		return ""
	}
	agent, _ := o.Agent(ctx, k)
	around := source.ReadRestrictions(ctx, k, agent.Namespace, cm.Namespace)
	gate, _ := around.PlanGate(o.Factory, agent, cm)
	if cm.Labels[annotations.LabelKind] == annotations.KindHibernatePlan {
		gate = source.Sleepers(o.Factory, agent, []*corev1.ConfigMap{cm}, around)[0].Gate
	}
	v := gate.Verdict(o.Now())
	said, ofNamespace := strings.CutPrefix(v.Reason, schedule.OfNamespace)
	if v.Permitted || !ofNamespace {
		return ""
	}
	namespace := "namespace/" + f.meta.GetNamespace()
	return fmt.Sprintf("%s is %s, which binds everything in it; 'allow' does not end that: run %s", namespace, instant.InText(said, f.zone), o.Suggest().In("").Unfreeze(namespace))
}

func (o *overrideOptions) clear() factory.Change {
	c := factory.Change{annotations.ChangeStrategy: nil, annotations.PermissiveUntil: nil, annotations.RestrictiveUntil: nil}
	c[annotations.Actor(annotations.ChangeStrategy)], c[annotations.Reason(annotations.ChangeStrategy)] = nil, nil
	return c
}

// found is an object of any kind that is to be annotated.
type found struct {
	kind, zone string
	info       *resource.Info
	meta       metav1.Object
}

// String names the object as the lists print it.
func (f found) String() string { return f.kind + "/" + f.meta.GetName() }

// grantedIn is the namespace in which a role lets people write to the object: a namespace is in itself.
func (f found) grantedIn() string {
	if f.info.Mapping.Resource.Resource == "namespaces" {
		return f.meta.GetName()
	}
	return f.meta.GetNamespace()
}

// find resolves a policy or a plan of either kind by its name, and everything else by KIND/NAME as
// kubectl does.
func (o *overrideOptions) find(ctx context.Context, k *factory.Cluster) (found, error) {
	kind, _ := factory.SplitKind(o.object)
	text, zone := o.object, o.Zone
	if kind == "" || documentKind(kind) {
		kinds := []string{annotations.KindPolicy, annotations.KindPlan, annotations.KindHibernatePlan}
		cm, err := k.Document(ctx, o.object, kinds...)
		switch {
		case kind == "" && err != nil:
			err = k.NodeMeant(ctx, o.object, err)
		case kind == "": // a node may have the name, too
			_, err = k.Find(ctx, o.object, kinds...)
		}
		if err != nil {
			return found{}, err
		}
		kind, text = cm.Labels[annotations.LabelKind], "configmaps/"+cm.Name
		zone = view.DocumentZone(cm, o.Zone)
	}
	if kind == factory.KindNode { // kubectl knows no names that are like it
		if _, err := k.Find(ctx, o.object); err != nil {
			return found{}, err
		}
	}
	infos, err := resource.NewBuilder(o.Config).Unstructured().NamespaceParam(k.Namespace).DefaultNamespace().ResourceTypeOrNameArgs(true, text).SingleResourceType().Flatten().Do().Infos()
	if apierrors.IsNotFound(err) {
		kind, _, _ := strings.Cut(text, "/")
		return found{}, fmt.Errorf("%w; %s shows which there are", k.Explain("read "+o.object, err), o.Suggest().Get(kind))
	}
	if err != nil {
		return found{}, k.Explain("read "+o.object, err)
	}
	if len(infos) != 1 {
		return found{}, fmt.Errorf("%s names %s, and must name one", o.object, view.Counted(len(infos), "object"))
	}
	meta, ok := infos[0].Object.(metav1.Object)
	if !ok {
		return found{}, fmt.Errorf("%s cannot carry annotations", o.object)
	}
	return found{kind: kind, zone: zone, info: infos[0], meta: meta}, nil
}

// documentKind says whether a kind before a name is one of our documents. Others are asked of the API:
// a ConfigMap may be any, and there are policies of other projects.
func documentKind(kind string) bool {
	return slices.Contains([]string{"plan", "plans", "hibernate-plan", "hibernate-plans", "hibernateplan", "hibernateplans", "policy", "policies"}, strings.ToLower(kind))
}

func (o *overrideOptions) write(ctx context.Context, k *factory.Cluster, f found, c factory.Change) error {
	if o.Client() {
		o.WouldWrite(f.info.Object, c)
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": f.meta.GetUID(), "annotations": c}})
	if err != nil {
		return err
	}
	options := o.Options()
	helper := resource.NewHelper(f.info.Client, f.info.Mapping).WithFieldManager(annotations.ManagerCLI)
	written, err := helper.Patch(f.meta.GetNamespace(), f.meta.GetName(), types.MergePatchType, patch, &options)
	if apierrors.IsInvalid(err) || apierrors.IsConflict(err) {
		return fmt.Errorf("%s was deleted and created again meanwhile: look at it and ask again", f)
	}
	if err == nil {
		o.Wrote(written)
	}
	_ = ctx // the builder's client has none
	return k.WriteError("write to "+f.String(), "patch", f.grantedIn(), err)
}
