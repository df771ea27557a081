package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

type scheduleOptions struct {
	*cli
	dryRun
	name, cron, rrule, at, timezone, target, account, file, format string
	labels, steps                                                  []string
	spec                                                           plan.Spec
	text                                                           string
	faults                                                         faults
}

func newSchedule(c *cli) *cobra.Command {
	o := &scheduleOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "schedule NAME",
		Short: "Write a plan",
		Long: `Write a plan from flags, or from a file with -f. A plan that is not valid is
refused before anything is written. --dry-run=client -o yaml prints what can be
kept in Git.`,
		Example: `  kubectl maint schedule nightly --cron "0 2 * * *" --timezone Europe/Berlin \
    --step '{"name":"hook","type":"webhook","properties":{"url":"https://example.org/hook"}}'
  kubectl maint schedule orders --target Deployment/orders --label company.org/upgrade \
    --step mark=label,operation=add,labels.company.org/paused=true --dry-run=client -o yaml`,
		RunE: run(o),
	}
	o.dryRun.addFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&o.cron, "cron", "", "five fields, as in \"0 2 * * 6\"")
	f.StringVar(&o.rrule, "rrule", "", "an RFC 5545 rule")
	f.StringVar(&o.at, "at", "", "once: RFC 3339, 2h, tomorrow 08:00, sat 02:00")
	f.StringVar(&o.timezone, "timezone", "", "IANA zone of the schedule; default UTC")
	f.StringVar(&o.target, "target", "", "KIND/NAME, or APIVERSION/KIND/NAME as in apps/v1/Deployment/orders")
	f.StringArrayVar(&o.labels, "label", nil, "label on the target that asks for a run; may be repeated")
	f.StringVar(&o.account, "service-account", "", "that the steps run as; default maint-runner")
	f.StringArrayVar(&o.steps, "step", nil, "NAME=TYPE,key=value,… or a step as JSON; may be repeated")
	f.StringVarP(&o.file, "filename", "f", "", "a plan's document, or - for standard input, instead of the flags above")
	f.StringVarP(&o.format, "output", "o", "", "yaml or json: print the ConfigMap")
	return cmd
}

// Complete builds the plan's text.
func (o *scheduleOptions) Complete(_ *cobra.Command, args []string) error {
	o.name = oneName(args, "NAME", &o.faults)
	if o.file != "" {
		docs, broken, err := readSources([]string{o.file}, o.In)
		if err != nil {
			return err
		}
		for _, f := range broken {
			o.faults.add("%s", f)
		}
		if len(docs) == 1 && docs[0].kind == annotations.KindPlan {
			o.text = docs[0].text
		} else if len(broken) == 0 {
			o.faults.add("%s must hold one plan, and holds %s", o.file, counted(len(docs), "document"))
		}
		return nil
	}
	return o.fromFlags()
}

func (o *scheduleOptions) fromFlags() error {
	o.spec.ServiceAccountName = o.account
	o.spec.Triggers.Labels = o.labels
	if o.cron+o.rrule+o.at != "" {
		o.spec.Triggers.Schedules = []plan.Schedule{{Cron: o.cron, RRule: o.rrule, At: o.instant(), Timezone: o.timezone}}
	}
	if o.target != "" {
		ref, err := parseTarget(o.target, o.cli)
		o.faults.check(err)
		o.spec.Target = ref
	}
	for _, s := range o.steps {
		step, err := parseStep(s)
		o.faults.check(err)
		o.spec.Steps = append(o.spec.Steps, step)
	}
	b, err := sigsyaml.Marshal(plan.Document{APIVersion: plan.APIVersion, Kind: "Plan", Spec: o.spec})
	o.text = string(b)
	return err
}

// instant resolves a person's time and says what was understood.
func (o *scheduleOptions) instant() string {
	if o.at == "" {
		return ""
	}
	zone := o.timezone
	if zone == "" {
		zone = o.Zone
	}
	at, err := parseInstant(o.at, o.Now(), zone)
	if err != nil {
		o.faults.check(err)
		return ""
	}
	if !at.After(o.Now()) {
		o.faults.add("--at %s is past", bothZones(at, zone))
	}
	fmt.Fprintf(o.ErrOut, "once at %s\n", bothZones(at, zone))
	return at.UTC().Format("2006-01-02T15:04:05Z")
}

// parseTarget reads KIND/NAME or APIVERSION/KIND/NAME. A kind alone is looked up
// in the cluster.
func parseTarget(text string, c *cli) (*plan.ObjectRef, error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 {
		return nil, fmt.Errorf("--target %q: write it like Deployment/orders or apps/v1/Deployment/orders", text)
	}
	ref := &plan.ObjectRef{Kind: parts[len(parts)-2], Name: parts[len(parts)-1], APIVersion: strings.Join(parts[:len(parts)-2], "/")}
	if ref.APIVersion != "" {
		return ref, nil
	}
	usual := map[string]string{"deployment": "apps/v1 Deployment", "statefulset": "apps/v1 StatefulSet", "daemonset": "apps/v1 DaemonSet", "cronjob": "batch/v1 CronJob", "service": "v1 Service", "configmap": "v1 ConfigMap", "node": "v1 Node", "namespace": "v1 Namespace"}
	if known := usual[strings.ToLower(ref.Kind)]; known != "" {
		ref.APIVersion, ref.Kind, _ = strings.Cut(known, " ")
		return ref, nil
	}
	mapper, err := c.config.ToRESTMapper()
	if err != nil {
		return nil, plain("ask what "+ref.Kind+" is", err)
	}
	full, err := mapper.ResourceSingularizer(strings.ToLower(ref.Kind))
	if err != nil {
		return nil, fmt.Errorf("--target %q: %w; write the apiVersion before it, like apps/v1/Deployment/orders", text, err)
	}
	return nil, fmt.Errorf("--target %q: write the apiVersion before it, like apps/v1/%s/%s", text, full, ref.Name)
}

// parseStep reads a step as JSON, or as NAME=TYPE,key=value,…; a dot in a key
// goes one level down, for the first dot alone.
func parseStep(text string) (plan.Step, error) {
	var step plan.Step
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		if err := json.Unmarshal([]byte(text), &step); err != nil {
			return step, fmt.Errorf("--step %q is no JSON: %w", text, err)
		}
		return step, nil
	}
	head, rest, _ := strings.Cut(text, ",")
	name, kind, ok := strings.Cut(head, "=")
	if !ok {
		return step, fmt.Errorf("--step %q: begin with NAME=TYPE, like hold=suspend,duration=10m", text)
	}
	step = plan.Step{Name: name, Type: kind, Properties: map[string]any{}}
	for _, pair := range strings.Split(rest, ",") {
		if pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return step, fmt.Errorf("--step %q: %q must be key=value", text, pair)
		}
		setProperty(step.Properties, key, scalarOf(value))
	}
	return step, nil
}

func setProperty(m map[string]any, key string, value any) {
	outer, inner, nested := strings.Cut(key, ".")
	if !nested {
		m[key] = value
		return
	}
	sub, ok := m[outer].(map[string]any)
	if !ok {
		sub = map[string]any{}
		m[outer] = sub
	}
	if s, isText := value.(string); isText {
		sub[inner] = s
		return
	}
	sub[inner] = fmt.Sprint(value)
}

// scalarOf reads true, false and numbers as such.
func scalarOf(s string) any {
	var v any
	if err := json.Unmarshal([]byte(s), &v); err == nil {
		switch v.(type) {
		case bool, float64:
			return v
		}
	}
	return s
}

// Validate checks the flags and the plan.
func (o *scheduleOptions) Validate() error {
	o.dryRun.check(&o.faults)
	if o.format != "" && o.format != "yaml" && o.format != "json" {
		o.faults.add("-o must be yaml or json, is %q", o.format)
	}
	if o.file != "" && o.cron+o.rrule+o.at+o.target+o.account+o.timezone+strings.Join(o.labels, "")+strings.Join(o.steps, "") != "" {
		o.faults.add("-f stands in for the flags that describe a plan: give one or the other")
	}
	if err := o.faults.err(); err != nil {
		return err
	}
	spec, found := plan.Parse([]byte(o.text), o.name)
	if len(found) > 0 {
		return exit(CodeUsage, "the plan is not valid, nothing was written\n%s", found.Error())
	}
	o.spec = spec
	return nil
}

// Run writes the plan's ConfigMap, or prints it.
func (o *scheduleOptions) Run(ctx context.Context) error {
	cm := annotations.NewPlan("", o.name, o.text, o.spec.ServiceAccountName)
	if o.client() {
		if namespace := *o.config.Namespace; namespace != "" {
			cm.Namespace = namespace
		}
		return o.said(cm)
	}
	k, err := o.connect()
	if err != nil {
		return err
	}
	cm.Namespace = k.namespace
	if err := notOther(ctx, k, cm.Name); err != nil {
		return err
	}
	b, err := json.Marshal(cm)
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: annotations.ManagerCLI, DryRun: o.options().DryRun}
	got, err := k.maps(k.namespace).Patch(ctx, cm.Name, types.ApplyPatchType, b, options)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("plan %s is kept by somebody else (Git?): change it there: %w", cm.Name, err)
	}
	if err != nil {
		return plain("write plan "+cm.Name, err)
	}
	got.TypeMeta, got.ManagedFields = cm.TypeMeta, nil
	return o.said(got)
}

// notOther keeps a ConfigMap that is no plan from being written over.
func notOther(ctx context.Context, k *cluster, name string) error {
	have, err := k.maps(k.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return plain("look whether "+name+" is there", err)
	}
	if have.Labels[annotations.LabelKind] != annotations.KindPlan {
		return errors.New(wrongKind(have, "plan").Error() + "; choose another name")
	}
	return nil
}

func (o *scheduleOptions) said(cm *corev1.ConfigMap) error {
	switch o.format {
	case "yaml":
		return (&printers.YAMLPrinter{}).PrintObj(cm, o.Out)
	case "json":
		return (&printers.JSONPrinter{}).PrintObj(cm, o.Out)
	}
	fmt.Fprintf(o.Out, "plan/%s written%s\n", cm.Name, o.mark())
	set, err := plan.ParseSchedules(o.spec.Triggers.Schedules)
	if err != nil {
		return err
	}
	if slots := nextSlots(set, o.Now(), 1); len(slots) > 0 {
		fmt.Fprintf(o.ErrOut, "next run %s (%s)\n", slots[0].Local, slots[0].UTC)
	}
	return nil
}
