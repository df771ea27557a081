package plan

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Parse reads a plan's text and reports everything wrong with it at once. It is
// the one place that says whether a plan is valid: the CLI and the agent call it.
func Parse(text []byte, name string) (Spec, document.Faults) {
	var doc Document
	c, ok := document.Read(text, &doc)
	if !ok {
		return doc.Spec, c.Faults()
	}
	(&validator{Checker: c}).document(doc, name)
	doc.Spec.Steps, doc.Spec.OnFailure, doc.Spec.Finally = opened(doc.Spec.Steps), opened(doc.Spec.OnFailure), opened(doc.Spec.Finally)
	return doc.Spec, c.Faults()
}

// Account is the ServiceAccount that a spec's steps run as.
func Account(s Spec) string { return cmp.Or(s.ServiceAccountName, policy.DefaultServiceAccount) }

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

// validator checks a plan or a template.
type validator struct {
	*document.Checker
	snapshot bool // held by a run, which an earlier version may have made: what that took is taken
}

func (v *validator) document(doc Document, name string) {
	v.Envelope(doc.APIVersion, doc.Kind, "Plan")
	if name != "" && !document.DNSLabel(name) {
		v.Fault("metadata.name", "%q cannot name a plan: at most %d characters of a-z, 0-9 and '-'", document.Cut(name, 100), document.MaxNameLength)
	}
	v.spec(doc.Spec)
}

func (v *validator) spec(s Spec) {
	v.target(s)
	v.triggers(s.Triggers)
	v.watches(s.Triggers.Watch, s.MirrorPrefix)
	document.OneOf(v.Checker, "spec.catchUp", s.CatchUp, CatchUpLatest, CatchUpAll, CatchUpNone)
	document.OneOf(v.Checker, "spec.concurrencyPolicy", s.ConcurrencyPolicy, Forbid, Allow, Replace, Queue)
	document.OneOf(v.Checker, "spec.onWindowClose", s.OnWindowClose, CloseFinish, CloseWait, CloseAbort)
	document.OneOf(v.Checker, "spec.onDrift", s.OnDrift, DriftHold, DriftFail, DriftIgnore)
	v.Positive("spec.startDeadline", s.StartDeadline)
	v.Positive("spec.maxDuration", s.MaxDuration)
	v.Positive("spec.approvalTimeout", s.ApprovalTimeout)
	v.limits(s)
	v.policies(s.Policies)
	v.parameters(s.Parameters)
	if s.ServiceAccountName != "" && !document.DNSSubdomain(s.ServiceAccountName) {
		v.Fault("spec.serviceAccountName", "%q cannot name a ServiceAccount", s.ServiceAccountName)
	}
	switch {
	case s.MirrorPrefix == "" || s.MirrorPrefix == DefaultMirrorPrefix:
	case !document.DNSSubdomain(s.MirrorPrefix):
		v.Fault("spec.mirrorPrefix", "%q is no prefix: write it like mirror.example.org", s.MirrorPrefix)
	case document.OurPrefix(s.MirrorPrefix):
		v.Fault("spec.mirrorPrefix", "%q belongs to kubectl maint: write a prefix of your own, or %s", s.MirrorPrefix, DefaultMirrorPrefix)
	}
	if s.HoldOwners && s.Target == nil {
		v.Fault("spec.holdOwners", "needs spec.target: the owner of that is suspended")
	}
	if s.FreezeTarget && s.Target == nil {
		v.Fault("spec.freezeTarget", "needs spec.target: that is what is frozen")
	}
	v.planConnector(s)
	v.allSteps(s)
}

func (v *validator) policies(refs []policy.PolicyRef) {
	if len(refs) > MaxPolicies {
		v.Fault("spec.policies", "names %d; at most %d are asked", len(refs), MaxPolicies)
	}
	for i, ref := range refs {
		path := fmt.Sprintf("spec.policies[%d]", i)
		switch {
		case ref.Name == "":
			v.Fault(path+".name", "is missing: the name of a policy")
		case !document.DNSLabel(ref.Name):
			v.Fault(path+".name", "%q cannot name a policy: at most %d characters of a-z, 0-9 and '-'", document.Cut(ref.Name, 100), document.MaxNameLength)
		}
		if ref.Namespace != "" && !document.DNSLabel(ref.Namespace) {
			v.Fault(path+".namespace", "%q cannot name a namespace", document.Cut(ref.Namespace, 100))
		}
	}
}

func (v *validator) target(s Spec) {
	if s.Target == nil {
		if len(s.Triggers.Labels) > 0 {
			v.Fault("spec.triggers.labels", "need a target: they are labels on it")
		}
		return
	}
	checkRef("", ResourceRef{APIVersion: s.Target.APIVersion, Kind: s.Target.Kind, Name: s.Target.Name}, func(path, format string, args ...any) {
		v.Fault("spec.target"+path, format, args...)
	})
	v.spelling("spec.target", map[string]any{"apiVersion": s.Target.APIVersion, "kind": s.Target.Kind})
}

func (v *validator) triggers(t Triggers) {
	if n := len(t.Schedules); n > MaxSchedules {
		v.Fault("spec.triggers.schedules", "are %d; at most %d are allowed: write some as lists of one cron or rrule, or spread them over plans", n, MaxSchedules)
		t.Schedules = t.Schedules[:MaxSchedules]
	}
	set := make(schedule.Set, len(t.Schedules))
	for i, s := range t.Schedules {
		path := fmt.Sprintf("spec.triggers.schedules[%d]", i)
		parsed, err := schedule.Parse(s.pure())
		set[i] = parsed
		if err != nil {
			v.scheduleFaults(path, err)
		} else if parsed.WithinMinute() {
			v.Fault(path+".rrule", "BYSECOND names several seconds of a minute, and a plan begins at most once in a minute; write one")
		}
		if s.Jitter != nil && (s.Jitter.Duration < 0 || s.Jitter.Hours() > 24) {
			v.Fault(path+".jitter", "must be from 0s to 24h, is %s", s.Jitter)
		}
	}
	for i, why := range set.TooNear(func(i int) bool { return t.Schedules[i].At != "" }) {
		v.Fault(fmt.Sprintf("spec.triggers.schedules[%d]", i), "%s", why)
	}
	seen := map[string]bool{}
	for i, key := range t.Labels {
		path := fmt.Sprintf("spec.triggers.labels[%d]", i)
		checkKey("", key, func(_, format string, args ...any) { v.Fault(path, format, args...) })
		if seen[key] {
			v.Fault(path, "%q appears twice", key)
		}
		seen[key] = true
	}
}

// scheduleFaults puts the schedule's path before each of the parser's errors.
func (v *validator) scheduleFaults(path string, err error) {
	for _, f := range schedule.Faults(err) {
		v.Fault(strings.TrimSuffix(path+"."+f.Field, "."), "%s", f.Message)
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
			v.Fault(l.path, "must be from 0 to 100, is %d", *l.value)
		}
	}
}

func (v *validator) parameters(ps []Parameter) {
	seen := map[string]bool{}
	for i, p := range ps {
		path := fmt.Sprintf("spec.parameters[%d].name", i)
		if !labelName().MatchString(p.Name) {
			v.Fault(path, "%q cannot name a parameter: letters, digits, '-', '_' and '.'", p.Name)
		}
		if seen[p.Name] {
			v.Fault(path, "%q appears twice", p.Name)
		}
		seen[p.Name] = true
	}
}

// StepList is one of a spec's lists of steps, and which.
type StepList struct {
	Name  Section
	Steps []Step
}

// Sections are the lists of steps of a spec, in the order in which they run.
func Sections(s Spec) []StepList {
	return []StepList{{SectionSteps, s.Steps}, {SectionOnFailure, s.OnFailure}, {SectionFinally, s.Finally}}
}
