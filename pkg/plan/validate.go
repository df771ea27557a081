package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

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
	doc.Spec.Steps, doc.Spec.OnFailure, doc.Spec.Finally = opened(doc.Spec.Steps), opened(doc.Spec.OnFailure), opened(doc.Spec.Finally)
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
	v.watches(s.Triggers.Watch, s.MirrorPrefix)
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
		{"spec.freezeTarget", s.FreezeTarget},
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

type section struct {
	name  Section
	steps []Step
}

func sections(s Spec) []section {
	return []section{{SectionSteps, s.Steps}, {SectionOnFailure, s.OnFailure}, {SectionFinally, s.Finally}}
}

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
