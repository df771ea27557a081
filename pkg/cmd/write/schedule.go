package write

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

type scheduleOptions struct {
	*factory.Factory
	factory.DryRun
	factory.Consent
	flags planFlags
	file  string

	spec   plan.Spec
	text   string // the document for the ConfigMap
	source *corev1.ConfigMap
	others []string // objects of the file that are not written
	faults exit.Faults
}

// planFlags are the flags that describe a plan.
type planFlags struct {
	name, cron, rrule, at, timezone string
	target, account, description    string
	labels, steps, finally          []string
	policies                        []string
}

// NewSchedule writes a plan.
func NewSchedule(c *factory.Factory) *cobra.Command {
	o := &scheduleOptions{Factory: c}
	cmd := &cobra.Command{
		Use:   "schedule NAME",
		Short: "Write a plan",
		Long: `Write a plan from flags, or from a file with -f. A plan that is not valid is
refused before anything is written. --dry-run=client -o yaml prints what can be
kept in Git.

A plan of that name that is there is replaced as a whole: what the command line, or
the file, does not say is gone from it. Standard error lists what goes, also with
--dry-run=server. Where that would let a run begin or do more than before, as
without a policy, the target, a time zone or an approval, the command asks first.

A step is NAME=TYPE,key=value,… or a step as JSON. A resource or object is
KIND/NAME or APIVERSION/KIND/NAME; labels.KEY=VALUE adds a label, labels=KEY
removes one; selector=KEY=VALUE picks by a label.`,
		Example: `  kubectl maint schedule nightly --cron "0 2 * * *" --timezone Europe/Berlin \
    --step call=webhook,url=https://example.org/hook
  kubectl maint schedule orders --target Deployment/orders \
    --label company.org/upgrade \
    --step down=scale,resource=Deployment/orders,replicas=0,restoreAfter=true \
    --step hold=suspend --dry-run=client -o yaml
  kubectl maint schedule orders-restart \
    --step ask=approval,message="restart orders?",timeout=2h \
    --step roll=restart,resource=Deployment/orders \
    --step healthy=health-check,selector=app=orders`,
		RunE: factory.RunE(o),
	}
	o.DryRun.AddFlag(cmd)
	o.Consent.AddFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&o.flags.cron, "cron", "", `five fields, as in "0 2 * * 6"`)
	f.StringVar(&o.flags.rrule, "rrule", "", "an RFC 5545 rule")
	f.StringVar(&o.flags.at, "at", "", `once: RFC 3339, 2h, "tomorrow 08:00", "sat 02:00"`)
	f.StringVar(&o.flags.timezone, "timezone", "", "IANA zone of the schedule; default UTC, for --at yours")
	f.StringVar(&o.flags.target, "target", "", "KIND/NAME, or APIVERSION/KIND/NAME as in apps/v1/Deployment/orders")
	f.StringArrayVar(&o.flags.labels, "label", nil, "label on the target that triggers a run; may be repeated")
	f.StringSliceVar(&o.flags.policies, "policy", nil, "policy that must permit its start, [NAMESPACE/]NAME; may be repeated")
	f.StringVar(&o.flags.account, "service-account", "", "ServiceAccount that the steps run as; default maint-runner")
	f.StringVar(&o.flags.description, "description", "", "what the plan is for")
	f.StringArrayVar(&o.flags.steps, "step", nil, "a step; may be repeated")
	f.StringArrayVar(&o.flags.finally, "finally", nil, "a step that runs always, whatever failed; may be repeated")
	f.StringVarP(&o.file, "filename", "f", "", "a plan's document or manifest, or - for standard input, instead of the flags above")
	for _, flag := range []string{"step", "finally"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, completeStep) // fails only for missing flags: both were added above
	}
	_ = cmd.RegisterFlagCompletionFunc("policy", completion.Kind(c, annotations.KindPolicy, nil))
	return cmd
}

// Complete makes the text of the plan.
func (o *scheduleOptions) Complete(_ *cobra.Command, args []string) error {
	if o.file != "" {
		return o.fromFile(args)
	}
	o.flags.name = factory.OneName(args, "NAME", &o.faults)
	return o.fromFlags()
}

// fromFile takes the text of a file, with its comments.
func (o *scheduleOptions) fromFile(args []string) error {
	files, err := source.ReadFiles([]string{o.file}, o.In)
	if err != nil {
		o.faults.Add("the plan is not valid, nothing was written\n%s", err)
		return nil
	}
	d, spec, err := source.OnePlan(o.Factory, files)
	if err != nil {
		o.faults.Add("the plan is not valid, nothing was written\n%s", err)
		return nil
	}
	o.text, o.spec, o.flags.name, o.source, o.others = d.Text, spec, d.Name, d.Object, besides(files, d)
	if len(args) > 0 || d.Object == nil { // a file's name need not be the plan's
		o.flags.name = factory.OneName(args, "NAME", &o.faults)
	}
	return nil
}

// besides are the objects in files other than the plan, as KIND/NAME. Lists are looked into.
func besides(files []source.File, of source.Document) []string {
	var out []string
	add := func(n manifest) {
		if n.Metadata.Name != "" && (n.Kind != "ConfigMap" || n.Metadata.Name != of.Name) {
			out = append(out, n.Kind+"/"+n.Metadata.Name)
		}
	}
	for _, f := range files {
		for _, part := range source.SplitYAML(f.Text) {
			var n manifest
			if err := yaml.Unmarshal(part, &n); err != nil {
				continue // what cannot be read so is no object
			}
			add(n)
			for _, item := range n.Items {
				add(item)
			}
		}
	}
	return out
}

// manifest is what names an object in a file.
type manifest struct {
	Kind     string `yaml:"kind"`
	Metadata struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	Items []manifest `yaml:"items"`
}

// sayOthers warns of what of the file is not written.
func (o *scheduleOptions) sayOthers() {
	if len(o.others) == 0 {
		return
	}
	text := "only the plan of the file is written, and not " + document.Few(o.others, mostGone)
	if o.file != "-" && o.source != nil { // kubectl takes manifests alone
		text += ": " + o.Suggest().In(*o.Config.Namespace).Apply(o.file) + " writes all of it"
	}
	o.Warn(text)
}

func (o *scheduleOptions) fromFlags() error {
	s := plan.Spec{Description: o.flags.description, ServiceAccountName: o.flags.account}
	s.Triggers.Labels = o.flags.labels
	for _, text := range o.flags.policies {
		namespace, name, qualified := strings.Cut(text, "/")
		if !qualified {
			namespace, name = "", text
		}
		s.Policies = append(s.Policies, policy.PolicyRef{Name: name, Namespace: namespace})
	}
	if o.flags.cron+o.flags.rrule+o.flags.at != "" {
		s.Triggers.Schedules = []plan.Schedule{{Cron: o.flags.cron, RRule: o.flags.rrule, At: o.instant(), Timezone: o.flags.timezone}}
	} else if o.flags.timezone != "" {
		o.faults.Add("--timezone needs a --cron, --rrule or --at")
	}
	if o.flags.target != "" {
		ref, err := o.resource(o.flags.target)
		if err != nil {
			o.faults.Add("--target %s", err)
		}
		s.Target = &plan.ObjectRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}
	}
	if len(o.flags.steps) == 0 {
		o.faults.Add("--step is missing: a plan needs a step, such as --step call=webhook,url=https://example.org/hook")
	}
	s.Steps = o.parseSteps("--step", o.flags.steps)
	s.Finally = o.parseSteps("--finally", o.flags.finally)
	text, err := documentText(plan.Document{APIVersion: document.APIVersion, Kind: "Plan", Spec: s})
	o.text = text
	return err
}

// documentText formats a document as a person would: fields in documented order, every map as a
// block.
func documentText(doc plan.Document) (string, error) {
	b, err := json.Marshal(doc)
	if err != nil {
		return "", err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(b, &n); err != nil { // JSON is YAML, and a node keeps its order
		return "", err
	}
	plainStyle(&n)
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	e.CompactSeqIndent()
	if err := e.Encode(&n); err != nil {
		return "", err
	}
	return out.String(), e.Close()
}

func plainStyle(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		plainStyle(c)
	}
}

// instant parses a time, and prints how it was understood.
func (o *scheduleOptions) instant() string {
	if o.flags.at == "" {
		return ""
	}
	zone := o.flags.timezone
	if zone == "" {
		zone = o.Zone
	}
	at, err := instant.Parse(o.flags.at, o.Now(), zone)
	if err != nil {
		o.faults.Add("--at: %s", err)
		return ""
	}
	if !at.After(o.Now()) {
		o.faults.Add("--at: %s has passed", instant.Both(at, zone))
		return ""
	}
	fmt.Fprintf(o.ErrOut, "once at %s\n", instant.Both(at, cmp.Or(o.flags.timezone, time.UTC.String()))) // in the zone that the plan has from now on
	return at.UTC().Format(time.RFC3339)
}

// resource parses KIND/NAME or APIVERSION/KIND/NAME. Kinds other than the usual ones are looked up
// in the cluster.
func (o *scheduleOptions) resource(text string) (plan.ResourceRef, error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 4 || slices.Contains(parts, "") {
		return plan.ResourceRef{}, fmt.Errorf("%q: write it like Deployment/orders or apps/v1/Deployment/orders", text)
	}
	kind := len(parts) - 2
	ref := plan.ResourceRef{Kind: parts[kind], Name: parts[kind+1], APIVersion: strings.Join(parts[:kind], "/")}
	if ref.APIVersion != "" {
		return ref, nil
	}
	if known := usualKinds()[strings.ToLower(ref.Kind)]; known != "" {
		ref.APIVersion, ref.Kind, _ = strings.Cut(known, " ")
		return ref, nil
	}
	mapper, err := o.Config.ToRESTMapper()
	if err != nil {
		return ref, fmt.Errorf("%q: %w; or write its apiVersion before it, like apps/v1/Deployment/orders", text, o.NoCluster(err))
	}
	gvk, err := mapper.KindFor(groupResource(ref.Kind))
	if meta.IsNoMatchError(err) {
		return ref, fmt.Errorf("%q: the cluster has no kind %s; write it like Deployment/orders or apps/v1/Deployment/orders", text, ref.Kind)
	}
	if err != nil {
		return ref, fmt.Errorf("%q: %w; or write its apiVersion before it, like apps/v1/Deployment/orders", text, err)
	}
	ref.APIVersion, ref.Kind = gvk.ToAPIVersionAndKind()
	return ref, nil
}

// usualKinds are those that need no lookup, by all their names.
func usualKinds() map[string]string {
	return map[string]string{
		"deployment": "apps/v1 Deployment", "deployments": "apps/v1 Deployment", "deploy": "apps/v1 Deployment",
		"statefulset": "apps/v1 StatefulSet", "statefulsets": "apps/v1 StatefulSet", "sts": "apps/v1 StatefulSet",
		"daemonset": "apps/v1 DaemonSet", "daemonsets": "apps/v1 DaemonSet", "ds": "apps/v1 DaemonSet",
		"cronjob": "batch/v1 CronJob", "cronjobs": "batch/v1 CronJob", "cj": "batch/v1 CronJob",
		"job": "batch/v1 Job", "jobs": "batch/v1 Job",
		"service": "v1 Service", "svc": "v1 Service", "configmap": "v1 ConfigMap", "cm": "v1 ConfigMap",
		"pod": "v1 Pod", "node": "v1 Node", "namespace": "v1 Namespace", "ns": "v1 Namespace",
	}
}

// Validate checks the flags and the plan.
func (o *scheduleOptions) Validate() error {
	o.DryRun.Check(&o.faults)
	if o.file != "" && o.flags.cron+o.flags.rrule+o.flags.at+o.flags.target+o.flags.account+o.flags.timezone+o.flags.description+strings.Join(slices.Concat(o.flags.labels, o.flags.steps, o.flags.finally, o.flags.policies), "") != "" {
		o.faults.Add("-f stands in for the flags that describe a plan: give one or the other")
	}
	return o.checkPlan()
}

// checkPlan reads the plan that the flags made.
func (o *scheduleOptions) checkPlan() error {
	if err := o.faults.Err(); err != nil {
		return err
	}
	spec, found := plan.Parse([]byte(o.text), o.flags.name)
	if found = source.WithDashHints(o.text, spec, found); len(found) > 0 {
		for i := range found { // the text is generated: its line numbers mean nothing
			found[i].Line = 0
		}
		return exit.Errorf(exit.CodeUsage, "the plan is not valid, nothing was written\n%s", found.Error())
	}
	o.spec = spec
	return nil
}

// object is the plan's ConfigMap; a manifest keeps its other labels and
// annotations.
func (o *scheduleOptions) object(namespace string) *corev1.ConfigMap {
	cm := annotations.NewPlan(namespace, o.flags.name, o.text, o.spec.ServiceAccountName)
	if o.source != nil {
		for key, text := range o.source.Labels {
			cm.Labels[key] = text
		}
		cm.Annotations = o.source.Annotations
	}
	return cm
}

// Run writes the plan's ConfigMap, or prints it.
func (o *scheduleOptions) Run(ctx context.Context) error {
	o.sayOthers()
	if o.Client() {
		namespace := *o.Config.Namespace
		if o.source != nil && namespace == "" {
			namespace = o.source.Namespace
		}
		return o.report(o.object(namespace), "written")
	}
	k, err := o.Connect()
	if err != nil {
		return err
	}
	if err := o.completeNamespace(k); err != nil {
		return err
	}
	have, err := notOther(ctx, k, o.flags.name)
	if err != nil {
		return err
	}
	if err := o.replace(ctx, k, have); err != nil {
		return err
	}
	got, err := o.apply(ctx, k)
	if err != nil {
		return err
	}
	how := "changed"
	switch {
	case have == nil:
		how = "written"
	case have.Data[annotations.DataPlan] == o.text:
		how = "unchanged"
	}
	if agent, unseen := o.Agent(ctx, k); unseen == nil && agent.In(got.Namespace).Missing != "" {
		defer o.Warn(agent.In(got.Namespace).Missing + "; no run of the plan begins before one is at work")
	}
	return o.report(got, how)
}

// replace says what a plan that is there loses. Where that restricts it, and a person wrote the
// command line, it asks: a file is all of a plan, and a script has been told.
func (o *scheduleOptions) replace(ctx context.Context, k *factory.Cluster, have *corev1.ConfigMap) error {
	if have == nil {
		return nil
	}
	spec, _ := annotations.Plan(have) // of an invalid one, as much as can be read
	restricting := o.sayGone(have.Name, goes(spec, o.spec))
	if len(restricting) == 0 || !o.Kept() || o.file != "" || !o.InTerminal {
		return nil
	}
	if _, err := o.patch(ctx, k, metav1.PatchOptions{FieldManager: annotations.ManagerCLI, DryRun: []string{metav1.DryRunAll}}); err != nil { // a yes would come to nothing
		return err
	}
	if err := o.Confirm(ctx, o.Consent, fmt.Sprintf("replace plan %s, without what restricts it now (%s)", have.Name, document.Few(restricting, mostGone))); err != nil {
		return err
	}
	is, err := notOther(ctx, k, have.Name)
	if err == nil && (is == nil || is.Data[annotations.DataPlan] != have.Data[annotations.DataPlan]) {
		return fmt.Errorf("plan %s was changed meanwhile, and is left as it is: look at it again", have.Name)
	}
	return err
}

// completeNamespace takes the namespace of a manifest, unless -n contradicts.
func (o *scheduleOptions) completeNamespace(k *factory.Cluster) error {
	if o.source == nil || o.source.Namespace == "" || o.source.Namespace == k.Namespace {
		return nil
	}
	if *o.Config.Namespace != "" {
		return exit.Errorf(exit.CodeUsage, "%s is for namespace %s, and -n says %s", o.file, o.source.Namespace, k.Namespace)
	}
	k.Namespace = o.source.Namespace
	return nil
}

func (o *scheduleOptions) apply(ctx context.Context, k *factory.Cluster) (*corev1.ConfigMap, error) {
	return o.patch(ctx, k, o.Options())
}

func (o *scheduleOptions) patch(ctx context.Context, k *factory.Cluster, options metav1.PatchOptions) (*corev1.ConfigMap, error) {
	cm := o.object(k.Namespace)
	b, err := json.Marshal(cm)
	if err != nil {
		return nil, err
	}
	got, err := k.ConfigMaps(k.Namespace).Patch(ctx, cm.Name, types.ApplyPatchType, b, options)
	if apierrors.IsConflict(err) {
		return nil, o.keptByOther(cm, err)
	}
	if err != nil {
		return nil, k.WriteError("write plan "+cm.Name, "patch", k.Namespace, err)
	}
	got.TypeMeta, got.ManagedFields = cm.TypeMeta, nil
	return got, nil
}

// keptByOther is the error of a plan whose fields another manager keeps: where that is kubectl, it names the way.
func (o *scheduleOptions) keptByOther(cm *corev1.ConfigMap, err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if manager := strings.Split(cause.Message+`""`, `"`)[1]; cause.Type == metav1.CauseTypeFieldManagerConflict && strings.HasPrefix(manager, "kubectl") {
				return fmt.Errorf("plan %s was written with kubectl (%s), and 'schedule' changes no plan that others wrote: change it in its file, and give %s", cm.Name, manager, o.Suggest().Apply("FILE"))
			}
		}
	}
	return fmt.Errorf("plan %s is kept by somebody else (Git?): change it there: %w", cm.Name, err)
}

// notOther refuses to overwrite a ConfigMap that is not a plan.
func notOther(ctx context.Context, k *factory.Cluster, name string) (*corev1.ConfigMap, error) {
	have, err := k.ConfigMaps(k.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, k.ReadError("look whether "+name+" is there", k.Namespace, err)
	}
	if have.Labels[annotations.LabelKind] != annotations.KindPlan {
		return nil, errors.New(view.WrongKind(have, "plan").Error() + "; choose another name")
	}
	return have, nil
}

func (o *scheduleOptions) report(cm *corev1.ConfigMap, how string) error {
	if o.Format() != "" {
		o.Wrote(cm)
		return o.ReportObjects(o.IOStreams)
	}
	fmt.Fprintf(o.Out, "plan/%s %s%s\n", cm.Name, how, o.Mark())
	set, err := plan.ParseSchedules(o.spec.Triggers.Schedules)
	if err != nil {
		return err
	}
	if slot, ok := set.Next(o.Now()); ok {
		at := trigger.StartsAt(o.spec, cm.Namespace, cm.Name, slot.At, slot.Index)
		fmt.Fprintf(o.ErrOut, "next run %s\n", print.New(o.Env, slot.Zone).When(at))
	} else if len(set) > 0 {
		fmt.Fprintln(o.ErrOut, "warning: its schedule has no slot to come")
	}
	return nil
}
