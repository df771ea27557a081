package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Parse reads a plan's text and reports everything wrong with it at once. It is
// the one place that says whether a plan is valid: the CLI and the agent call it.
func Parse(text []byte, name string) (Spec, Faults) {
	var doc Document
	d, faults := decode(text, &doc)
	if d.lines == nil {
		return doc.Spec, faults
	}
	v := newValidator(d, faults)
	v.document(doc, name)
	return doc.Spec, v.faults.told()
}

// Account is the ServiceAccount that a spec's steps run as.
func Account(s Spec) string { return or(s.ServiceAccountName, DefaultServiceAccount) }

// ParseSchedules are a plan's schedules, ready to be asked for slots. The specs
// must be valid.
func ParseSchedules(specs []Schedule) (schedule.Set, error) {
	set := make(schedule.Set, 0, len(specs))
	for i, s := range specs {
		parsed, err := schedule.Parse(s.pure())
		if err != nil {
			return nil, fmt.Errorf("schedules[%d]: %w", i, err)
		}
		set = append(set, parsed)
	}
	return set, nil
}

func (s Schedule) pure() schedule.Spec {
	return schedule.Spec{Cron: s.Cron, RRule: s.RRule, At: s.At, Timezone: s.Timezone, DTStart: s.DTStart, ExDate: s.ExDate}
}

type validator struct {
	lines  Positions
	faults Faults
	faulty map[string]bool // paths with a fault
	broken map[string]bool // paths that could not be read, nor what is below them
}

func newValidator(d decoder, faults Faults) *validator {
	v := &validator{lines: d.lines, faults: faults, faulty: map[string]bool{}, broken: d.broken}
	for _, f := range faults {
		v.faulty[f.Path] = true
	}
	return v
}

func (v *validator) fault(path, format string, args ...any) {
	if v.faulty[path] || under(path, v.broken) { // the first thing wrong with a field is the cause of the next
		return
	}
	v.faulty[path] = true
	v.faults = append(v.faults, Fault{Line: v.lines.Line(path), Path: path, Message: fmt.Sprintf(format, args...)})
}

// unread keeps what is below a path from being a second fault.
func (v *validator) unread(path string) {
	if v.broken == nil {
		v.broken = map[string]bool{}
	}
	v.broken[path] = true
}

func (v *validator) document(doc Document, name string) {
	if doc.APIVersion != APIVersion {
		v.fault("apiVersion", "must be %s, is %q", APIVersion, doc.APIVersion)
	}
	if doc.Kind != "Plan" {
		v.fault("kind", "must be Plan, is %q", doc.Kind)
	}
	if name != "" && !DNSLabel(name) {
		v.fault("metadata.name", "%q cannot name a plan: at most %d characters of a-z, 0-9 and '-'", Cut(name, 100), MaxNameLength)
	}
	v.spec(doc.Spec)
}

func (v *validator) spec(s Spec) {
	v.target(s)
	v.triggers(s.Triggers)
	oneOf(v, "spec.catchUp", s.CatchUp, CatchUpLatest, CatchUpAll, CatchUpNone)
	oneOf(v, "spec.concurrencyPolicy", s.ConcurrencyPolicy, Forbid, Allow, Replace, Queue)
	oneOf(v, "spec.onWindowClose", s.OnWindowClose, CloseFinish, CloseWait, CloseAbort)
	v.positive("spec.startDeadline", s.StartDeadline)
	v.positive("spec.maxDuration", s.MaxDuration)
	v.positive("spec.approvalTimeout", s.ApprovalTimeout)
	v.limits(s)
	v.policies(s.Policies)
	v.parameters(s.Parameters)
	if s.ServiceAccountName != "" && !dnsSubdomain(s.ServiceAccountName) {
		v.fault("spec.serviceAccountName", "%q cannot name a ServiceAccount", s.ServiceAccountName)
	}
	if s.MirrorPrefix != "" && !dnsSubdomain(s.MirrorPrefix) {
		v.fault("spec.mirrorPrefix", "%q is no prefix: write it like mirror.example.org", s.MirrorPrefix)
	}
	v.allSteps(s)
	v.notYet(s)
}

// notYet refuses what the contract has and this version does not do: a field
// that is read and ignored would be a promise that is not kept.
func (v *validator) notYet(s Spec) {
	const words = "is not available in this version"
	for _, f := range []struct {
		path string
		used bool
	}{
		{"spec.triggers.watch", len(s.Triggers.Watch) > 0},
		{"spec.requiresApproval", s.RequiresApproval},
		{"spec.freezeTarget", s.FreezeTarget},
		{"spec.retryLimit", s.RetryLimit != 0},
	} {
		if f.used {
			v.fault(f.path, words)
		}
	}
}

func (v *validator) policies(refs []PolicyRef) {
	if len(refs) > MaxPolicies {
		v.fault("spec.policies", "names %d; at most %d are asked", len(refs), MaxPolicies)
	}
	for i, ref := range refs {
		path := fmt.Sprintf("spec.policies[%d]", i)
		switch {
		case ref.Name == "":
			v.fault(path+".name", "is missing: the name of a policy")
		case !DNSLabel(ref.Name):
			v.fault(path+".name", "%q cannot name a policy: at most %d characters of a-z, 0-9 and '-'", Cut(ref.Name, 100), MaxNameLength)
		}
		if ref.Namespace != "" && !DNSLabel(ref.Namespace) {
			v.fault(path+".namespace", "%q cannot name a namespace", Cut(ref.Namespace, 100))
		}
	}
}

func (v *validator) target(s Spec) {
	if s.Target == nil {
		if len(s.Triggers.Labels) > 0 {
			v.fault("spec.triggers.labels", "need a target: they are labels on it")
		}
		return
	}
	checkRef("", ResourceRef{APIVersion: s.Target.APIVersion, Kind: s.Target.Kind, Name: s.Target.Name}, func(path, format string, args ...any) {
		v.fault("spec.target"+path, format, args...)
	})
}

func (v *validator) triggers(t Triggers) {
	for i, s := range t.Schedules {
		path := fmt.Sprintf("spec.triggers.schedules[%d]", i)
		if _, err := schedule.Parse(s.pure()); err != nil {
			v.scheduleFaults(path, err)
		}
		if s.Jitter != nil && (s.Jitter.Duration < 0 || s.Jitter.Hours() > 24) {
			v.fault(path+".jitter", "must be from 0s to 24h, is %s", s.Jitter)
		}
	}
	seen := map[string]bool{}
	for i, key := range t.Labels {
		path := fmt.Sprintf("spec.triggers.labels[%d]", i)
		checkKey("", key, func(_, format string, args ...any) { v.fault(path, format, args...) })
		if seen[key] {
			v.fault(path, "%q stands twice", key)
		}
		seen[key] = true
	}
}

// scheduleFaults puts the schedule's path before each of the parser's errors.
func (v *validator) scheduleFaults(path string, err error) {
	for _, f := range schedule.Faults(err) {
		v.fault(strings.TrimSuffix(path+"."+f.Field, "."), "%s", f.Message)
	}
}

func oneOf[T ~string](v *validator, path string, value T, allowed ...T) {
	if value == "" || slices.Contains(allowed, value) {
		return
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	hint := ""
	if near, ok := nearest(string(value), words); ok {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	v.fault(path, "must be one of %s, is %q%s", strings.Join(words, ", "), string(value), hint)
}

// longest is the longest duration that a document may name: beyond it instants
// overflow.
const longest = 36500 * 24 * time.Hour

func (v *validator) positive(path string, d *Duration) {
	if d != nil && d.Duration <= 0 {
		v.fault(path, "must be longer than 0s, is %s", d)
	}
	if d != nil && d.Duration > longest {
		v.fault(path, "must be at most %dd, is %s", longest/(24*time.Hour), d)
	}
}

func (v *validator) limits(s Spec) {
	for _, l := range []struct {
		path  string
		value *int
	}{
		{"spec.successfulRunsHistoryLimit", s.SuccessfulRunsHistoryLimit},
		{"spec.failedRunsHistoryLimit", s.FailedRunsHistoryLimit},
		{"spec.retryLimit", &s.RetryLimit},
	} {
		if l.value != nil && (*l.value < 0 || *l.value > 100) {
			v.fault(l.path, "must be from 0 to 100, is %d", *l.value)
		}
	}
}

func (v *validator) parameters(ps []Parameter) {
	seen := map[string]bool{}
	for i, p := range ps {
		path := fmt.Sprintf("spec.parameters[%d].name", i)
		if !labelName().MatchString(p.Name) {
			v.fault(path, "%q cannot name a parameter: letters, digits, '-', '_' and '.'", p.Name)
		}
		if seen[p.Name] {
			v.fault(path, "%q stands twice", p.Name)
		}
		seen[p.Name] = true
	}
}

func (v *validator) allSteps(s Spec) {
	if len(s.Steps) == 0 {
		v.fault("spec.steps", "is empty: a plan needs a step")
	}
	if n := len(s.Steps) + len(s.OnFailure) + len(s.Finally); n > MaxSteps {
		v.fault("spec.steps", "a plan may have %d steps, this one has %d", MaxSteps, n)
		return
	}
	seen := map[string]string{}
	for _, section := range sections(s) {
		for i, step := range section.steps {
			path := fmt.Sprintf("spec.%s[%d]", section.name, i)
			if first, twice := seen[step.Name]; twice && step.Name != "" {
				v.fault(path+".name", "%q is already the name of %s", step.Name, first)
			}
			seen[step.Name] = path
			v.step(path, step, s)
		}
	}
}

type section struct {
	name  Section
	steps []Step
}

func sections(s Spec) []section {
	return []section{{SectionSteps, s.Steps}, {SectionOnFailure, s.OnFailure}, {SectionFinally, s.Finally}}
}

func (v *validator) step(path string, s Step, spec Spec) {
	if !DNSLabel(s.Name) {
		v.fault(path+".name", "%q cannot name a step: at most %d characters of a-z, 0-9 and '-'", Cut(s.Name, 100), MaxNameLength)
	}
	v.positive(path+".timeout", s.Timeout)
	v.retry(path+".retry", s.Retry)
	v.condition(path+".if", s.If)
	for _, f := range []struct {
		field string
		used  bool
	}{{"dependsOn", len(s.DependsOn) > 0}, {"requires", len(s.Requires) > 0}, {"onRestart", s.OnRestart != ""}} {
		if f.used {
			v.fault(path+"."+f.field, "is not available in this version")
		}
	}
	t, known := StepTypeNamed(s.Type)
	if !known {
		v.fault(path+".type", "%s", unknownType(s.Type))
		return
	}
	v.properties(path+".properties", t, s, spec)
}

func unknownType(name string) string {
	var names []string
	for _, t := range StepTypes() {
		names = append(names, t.Name)
	}
	if name == "" {
		return "is missing; known are " + strings.Join(names, ", ")
	}
	if slices.Contains(plannedStepTypes(), name) || strings.HasPrefix(name, "template/") {
		return fmt.Sprintf("%q is not available in this version; available are %s", name, strings.Join(names, ", "))
	}
	if near, ok := nearest(name, names); ok {
		return fmt.Sprintf("unknown step type %q; did you mean %q?", Cut(name, 80), near)
	}
	return fmt.Sprintf("unknown step type %q; known are %s", Cut(name, 80), strings.Join(names, ", "))
}

func (v *validator) retry(path string, r *Retry) {
	if r == nil {
		return
	}
	if r.Limit < 0 || r.Limit > 100 {
		v.fault(path+".limit", "must be from 0 to 100, is %d", r.Limit)
	}
	v.positive(path+".backoff", r.Backoff)
	v.positive(path+".maxBackoff", r.MaxBackoff)
}

func (v *validator) condition(path, text string) {
	if text == "" || text == IfAlways {
		return
	}
	if err := expr.CheckBool(text, conditionRoots()...); err != nil {
		v.fault(path, "%s", err)
	}
}

// conditionRoots are what a condition may speak of: what the journal knows. The
// target is read by steps alone.
func conditionRoots() []string {
	return []string{"run", "plan", "steps", "trigger_reason", "context"}
}

// templateRoots are what the properties of a step may speak of in this version.
func templateRoots() []string { return append(conditionRoots(), "target") }

// under says whether a path is one of some paths, or lies below one.
func under(path string, paths map[string]bool) bool {
	if len(paths) == 0 {
		return false
	}
	for path != "" {
		if paths[path] {
			return true
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return paths[""]
}

func (v *validator) properties(path string, t StepType, s Step, spec Spec) {
	raw := any(s.Properties)
	if s.Properties == nil {
		raw = map[string]any{}
	}
	props := t.New()
	faults, left := decodeValue(raw, path, v.lines, true, props)
	for _, f := range faults {
		v.fault(f.Path, "%s", f.Message)
	}
	for _, key := range t.Required {
		if s.Properties[key] == nil {
			v.fault(path+"."+key, "is missing: a step of type %s needs it", t.Name)
			v.unread(path + "." + key)
		}
	}
	expr.CheckTemplates(raw, templateRoots(), func(at string, err error) { v.fault(path+"."+at, "%s", err) })
	if len(faults) > 0 {
		return
	}
	v.restoreInFinally(path, s)
	t.Check(props, func(at, format string, args ...any) {
		full := path
		if at != "" {
			full = path + "." + at
		}
		if !under(full, left) { // what an expression will yield is checked when it has
			v.fault(full, format, args...)
		}
	})
	if s.Properties["object"] == nil && needsTarget(props) && spec.Target == nil {
		v.fault(path+".object", "is missing, and the plan has no target to default to")
	}
}

// restoreInFinally refuses a restore that would never come: finally is the last
// thing a run does, and restores come before it.
func (v *validator) restoreInFinally(path string, s Step) {
	if strings.HasPrefix(path, "spec."+string(SectionFinally)+"[") && restores(s) {
		v.fault(path+".restoreAfter", "comes too late in finally: what a run found is put back before finally begins")
	}
}

func needsTarget(props any) bool {
	switch p := props.(type) {
	case *LabelProperties:
		return p.Object == nil
	case *AnnotateProperties:
		return p.Object == nil
	}
	return false
}
