package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

// MaxDepth is how deep steps may hold steps (a guess: deeper is a program).
const MaxDepth = 5

// MaxRequires is how many kinds of objects a step may ask for.
const MaxRequires = 20

// place is where a step stands: what it may speak of, and what it may be.
type place struct {
	spec     Spec
	section  Section
	depth    int
	loop     bool // each
	node     bool // a for-each-node's
	template bool // params
	siblings []Step
	parallel bool
}

// conditionRoots are what a condition may speak of: what the journal knows. The
// target is read by steps alone.
func (p place) conditionRoots() []string {
	roots := []string{"run", "plan", "steps", "watched", "trigger_reason", "context"}
	if p.loop {
		roots = append(roots, "each")
	}
	if p.node {
		roots = append(roots, "node")
	}
	if p.template {
		roots = append(roots, "params")
	}
	return roots
}

// templateRoots are what the properties of a step may speak of.
func (p place) templateRoots() []string { return append(p.conditionRoots(), "target", "required") }

func (v *validator) allSteps(s Spec) {
	if len(s.Steps) == 0 {
		v.Fault("spec.steps", "is empty: a plan needs a step")
	}
	if n := countSteps(s.written()) + countSteps(s.OnFailure) + countSteps(s.Finally); n > MaxSteps {
		v.Fault("spec.steps", "a plan may have %d steps, this one has %d", MaxSteps, n)
		return
	}
	seen := map[string]string{}
	if s.HoldOwners && len(s.written()) == len(s.Steps) {
		seen[TypeHoldOwners] = "the step that spec.holdOwners puts first"
	}
	for _, section := range Sections(s) {
		v.steps("spec."+string(section.Name), section.Steps, place{spec: s, section: section.Name}, seen)
	}
}

func countSteps(steps []Step) int {
	n := len(steps)
	for _, s := range steps {
		if s.Holds() {
			n += countSteps(s.inner())
		}
	}
	return n
}

func (v *validator) steps(list string, steps []Step, p place, seen map[string]string) {
	p.siblings = steps
	for i, step := range steps {
		path := fmt.Sprintf("%s[%d]", list, i)
		if first, twice := seen[step.Name]; twice && step.Name != "" {
			v.Fault(path+".name", "%q is already the name of %s", step.Name, first)
		}
		seen[step.Name] = path
		v.step(path, step, p, seen)
	}
	if p.parallel {
		v.cycles(list, steps)
	}
}

func (v *validator) step(path string, s Step, p place, seen map[string]string) {
	if !document.DNSLabel(s.Name) {
		v.Fault(path+".name", "%q cannot name a step: at most %d characters of a-z, 0-9 and '-'", document.Cut(s.Name, 100), document.MaxNameLength)
	}
	if s.Holds() && slices.Contains(otherSections(), Section(s.Name)) {
		v.Fault(path+".name", "%q cannot name a step that holds others: it is the name of a section", s.Name)
	}
	v.Positive(path+".timeout", s.Timeout)
	v.retry(path+".retry", s.Retry)
	v.condition(path+".if", s.If, p)
	v.dependsOn(path, s, p)
	v.requires(path, s)
	v.onRestart(path, s)
	v.connectorRef(path+".connectorRef", s)
	if name, is := strings.CutPrefix(s.Type, TemplatePrefix); is {
		v.templateStep(path, name, s, p)
		return
	}
	t, known := StepTypeNamed(s.Type)
	if !known {
		v.Fault(path+".type", "%s", UnknownType(s.Type))
		return
	}
	v.properties(path+".properties", t, s, p)
	if s.Holds() {
		v.held(path, s, p, seen)
	}
}

// held checks the steps that a step holds.
func (v *validator) held(path string, s Step, p place, seen map[string]string) {
	inner := s.inner()
	list := path + ".properties.steps"
	if p.depth++; p.depth > MaxDepth {
		v.Fault(list, "are too deep: steps may hold steps %d times", MaxDepth)
		return
	}
	if given, ok := s.Properties["steps"].([]any); ok && len(given) == 0 {
		v.Fault(list, "is empty: a %s needs a step", s.Type)
	}
	if s.Type == TypeForEachNode && p.loop {
		v.Fault(path+".type", "a for-each-node cannot stand in a loop: it is one, over nodes that are taken one by one")
	}
	p.loop = p.loop || IsLoop(s.Type)
	p.node = p.node || s.Type == TypeForEachNode
	p.parallel, _ = s.Parallel()
	v.steps(list, inner, p, seen)
}

func (v *validator) templateStep(path, name string, s Step, p place) {
	if !document.DNSLabel(name) {
		v.Fault(path+".type", "%q cannot name a template: write it like template/notify", document.Cut(name, 100))
	}
	if p.depth >= MaxDepth {
		v.Fault(path+".type", "is too deep: steps may hold steps %d times", MaxDepth)
	}
	expr.CheckTemplates(map[string]any(s.Properties), p.templateRoots(), func(at string, err error) { v.Fault(path+".properties."+at, "%s", err) })
}

func (v *validator) dependsOn(path string, s Step, p place) {
	if len(s.DependsOn) > 0 && !p.parallel {
		v.Fault(path+".dependsOn", "is for the steps of a parallel step-group; others run in order")
		return
	}
	for i, name := range s.DependsOn {
		at := fmt.Sprintf("%s.dependsOn[%d]", path, i)
		switch _, known := named(p.siblings, name); {
		case name == s.Name:
			v.Fault(at, "is the step itself")
		case !known:
			v.Fault(at, "there is no step %q in this group%s", document.Cut(name, 100), didYouMean(name, p.siblings))
		case slices.Index(s.DependsOn, name) < i:
			v.Fault(at, "%q appears twice", name)
		}
	}
}

func didYouMean(name string, steps []Step) string {
	var names []string
	for _, s := range steps {
		names = append(names, s.Name)
	}
	return document.DidYouMean(name, names)
}

// cycles reports steps that wait for each other.
func (v *validator) cycles(list string, steps []Step) {
	done := map[string]bool{}
	for range steps {
		for _, s := range steps {
			waits := slices.ContainsFunc(s.DependsOn, func(name string) bool {
				_, known := named(steps, name)
				return known && name != s.Name && !done[name]
			})
			done[s.Name] = done[s.Name] || !waits
		}
	}
	for i, s := range steps {
		if !done[s.Name] {
			v.Fault(fmt.Sprintf("%s[%d].dependsOn", list, i), "step %q waits for itself through %s", s.Name, strings.Join(s.DependsOn, ", "))
			return
		}
	}
}

func (v *validator) requires(path string, s Step) {
	if len(s.Requires) > MaxRequires {
		v.Fault(path+".requires", "has %d; a step may ask for %d", len(s.Requires), MaxRequires)
	}
	seen := map[string]bool{}
	for i, r := range s.Requires {
		at := fmt.Sprintf("%s.requires[%d]", path, i)
		if !labelName().MatchString(r.Name) {
			v.Fault(at+".name", "%q cannot name it: letters, digits, '-', '_' and '.'", document.Cut(r.Name, 100))
		}
		if seen[r.Name] {
			v.Fault(at+".name", "%q appears twice", r.Name)
		}
		seen[r.Name] = true
		checkRef("", ResourceRef{APIVersion: r.APIVersion, Kind: r.Kind, Name: "x", Namespace: r.Namespace}, func(field, format string, args ...any) { v.Fault(at+field, format, args...) })
		v.spelling(at, map[string]any{"apiVersion": r.APIVersion, "kind": r.Kind})
		if (r.ObjectName == "") == (r.MatchLabels == nil) {
			v.Fault(at, "needs exactly one of objectName and matchLabels")
		}
		if fault := document.NotNaming(r.ObjectName, "an object"); fault != "" && r.ObjectName != "" && !expr.IsTemplate(r.ObjectName) {
			v.Fault(at+".objectName", "%s", fault)
		}
		expr.CheckTemplates(map[string]any{"objectName": r.ObjectName, "namespace": r.Namespace}, []string{}, func(field string, _ error) {
			v.Fault(at+"."+field, "is taken as it stands: it cannot hold an expression")
		})
	}
}

func (v *validator) onRestart(path string, s Step) {
	switch {
	case s.OnRestart == "":
	case s.Type != "exec":
		v.Fault(path+".onRestart", "is for exec alone: steps of type %s know how to go on", s.Type)
	case s.OnRestart != "fail" && s.OnRestart != "retry":
		v.Fault(path+".onRestart", "must be fail or retry, is %q", document.Cut(s.OnRestart, 100))
	}
}

// UnknownType says that there is no such type of step, and which is near.
func UnknownType(name string) string {
	var names []string
	for _, t := range StepTypes() {
		names = append(names, t.Name)
	}
	if name == "" {
		return "is missing; known are " + strings.Join(names, ", ")
	}
	if near, ok := document.Nearest(name, names); ok {
		return fmt.Sprintf("unknown step type %q; did you mean %q?", document.Cut(name, 80), near)
	}
	return fmt.Sprintf("unknown step type %q; known are %s", document.Cut(name, 80), strings.Join(names, ", "))
}

func (v *validator) retry(path string, r *Retry) {
	if r == nil {
		return
	}
	if r.Limit < 0 || r.Limit > 100 {
		v.Fault(path+".limit", "must be from 0 to 100, is %d", r.Limit)
	}
	v.Positive(path+".backoff", r.Backoff)
	v.Positive(path+".maxBackoff", r.MaxBackoff)
}

// spelling checks how the kind of objects is spelt. It finds no fault with what a run holds: earlier
// versions took other spellings, and a run that is not read is never ended, nor is what it changed put
// back. Such a step is refused when it acts.
func (v *validator) spelling(path string, of map[string]any) {
	apiVersion, _ := of["apiVersion"].(string)
	kind, _ := of["kind"].(string)
	if v.snapshot || apiVersion == "" || expr.IsTemplate(apiVersion) {
		return
	}
	if field, why := document.Misspelt(apiVersion, kind); field != "" {
		v.Fault(path+"."+field, "%s", why)
	}
}

func (v *validator) condition(path, text string, p place) {
	if text == "" || text == IfAlways {
		return
	}
	if err := expr.CheckBool(text, p.conditionRoots()...); err != nil {
		v.Fault(path, "%s", err)
	}
}

func (v *validator) properties(path string, t StepType, s Step, p place) {
	raw := any(s.Properties)
	if s.Properties == nil {
		raw = map[string]any{}
	}
	props := t.New()
	faults, left := v.Value(raw, path, props)
	v.holder(path, s, left)
	for _, key := range t.Required {
		if s.Properties[key] == nil && !p.defaultsToNode(t.Name, key) {
			v.Fault(path+"."+key, "is missing: a step of type %s needs it", t.Name)
			v.Unread(path + "." + key)
		}
	}
	expr.CheckTemplates(any(s.Own()), p.templateRoots(), func(at string, err error) { v.Fault(path+"."+at, "%s", err) })
	if len(faults) > 0 {
		return
	}
	v.restoreInFinally(path, s)
	v.spelling(path, s.Properties)
	for _, name := range []string{"resource", "object", "selector"} {
		if of, is := s.Properties[name].(map[string]any); is {
			v.spelling(path+"."+name, of)
		}
	}
	t.Check(props, func(at, format string, args ...any) {
		full := path
		if at != "" {
			full = path + "." + at
		}
		if !document.Under(full, left) { // what an expression will yield is checked when it has
			v.Fault(full, format, args...)
		}
	})
	if s.Type != TypeForEachNode && IsNodeStep(t.Name) && s.Properties["node"] == nil && s.Properties["selector"] == nil && !p.node && !p.template {
		v.Fault(path, "needs node or selector: outside of a for-each-node it has no node to default to")
	}
	if s.Properties["object"] == nil && needsTarget(props) && p.spec.Target == nil && !p.template {
		v.Fault(path+".object", "is missing, and the plan has no target to default to")
	}
}

// holder checks what is said of a step that holds others beyond its properties' types. left are
// the paths at which an expression stands.
func (v *validator) holder(path string, s Step, left map[string]bool) {
	if !s.Holds() {
		return
	}
	for _, at := range slices.Sorted(maps.Keys(left)) {
		name, _, _ := strings.Cut(strings.TrimPrefix(at, path+"."), ".")
		name, _, _ = strings.Cut(name, "[")
		switch picks := picking(s.Type); {
		case inProperties(at, path) || slices.Contains(picks, name):
		case name == "steps":
			v.Fault(at, "cannot be an expression: only properties are")
		case len(picks) > 0:
			v.Fault(at, "cannot be an expression: it says how the steps run, and is taken as it stands; of a %s, %s can be", s.Type, strings.Join(picks, ", "))
		default:
			v.Fault(at, "cannot be an expression: it says how the steps run, and is taken as it stands")
		}
	}
	if n, given := s.Properties["maxConcurrency"]; given && !v.snapshot && n != nil && s.Whole("maxConcurrency", 1) == 0 {
		v.Fault(path+".maxConcurrency", "must be from 1 to %d, is 0", MaxSteps)
	}
}

// picking are the properties of a loop that are evaluated when its objects are looked at. All
// others are read again and again while it runs, from the plan alone.
func picking(stepType string) []string {
	switch stepType {
	case TypeForEach:
		return []string{"apiVersion", "kind", "namespace", "selector", "when", "until", "order"}
	case TypeForEachNode:
		return []string{"selector", "when", "order"}
	}
	return nil
}

// IsNodeStep says whether a step type is about nodes.
func IsNodeStep(name string) bool {
	return name == TypeCordon || name == TypeDrain || name == TypeUncordon
}

// defaultsToNode says whether a property defaults to the node that a rollout has
// come to.
func (p place) defaultsToNode(stepType, property string) bool {
	return (p.node || p.template) && stepType == "wait" && property == "resource"
}

// inProperties says whether a path lies in the properties of a step that the step
// with these properties holds.
func inProperties(at, properties string) bool {
	rest, inner := strings.CutPrefix(at, properties+".steps[")
	return inner && strings.Contains(rest, "].properties")
}

// restoreInFinally refuses a restore that would never come: finally is the last
// thing a run does, and restores come before it.
func (v *validator) restoreInFinally(path string, s Step) {
	if strings.HasPrefix(path, "spec."+string(SectionFinally)+"[") && Restores(s) {
		v.Fault(path+".restoreAfter", "comes too late in finally: what a run found is put back before finally begins")
	}
}

func needsTarget(props any) bool {
	switch p := props.(type) {
	case *LabelProperties:
		return p.Object == nil
	case *AnnotateProperties:
		return p.Object == nil
	case *HoldOwnersProperties:
		return p.Object == nil
	}
	return false
}
