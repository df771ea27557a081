package plan

import (
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
)

// TemplatePrefix begins the type of a step that stands for a template's steps.
const TemplatePrefix = "template/"

// Tree is what a run does: the steps of its spec, with those of the templates that
// they stand for.
type Tree struct {
	Spec      Spec
	Templates map[string]TemplateSpec
}

// MaxWalked is how many steps a walk of a tree visits at most, whatever the tree was made
// of: a template that stands for itself has no end. One that is run has 2*MaxSteps at most.
const MaxWalked = 10 * MaxSteps

// Children are the steps that a step of the tree holds.
func (t Tree) Children(s Step) []Step {
	if name, is := strings.CutPrefix(s.Type, TemplatePrefix); is {
		return t.Templates[name].Steps
	}
	if s.Inner != nil {
		return s.Inner
	}
	return s.inner()
}

// opened are steps with what they hold read out of their properties.
func opened(steps []Step) []Step {
	out := append([]Step(nil), steps...)
	for i, s := range out {
		if s.Holds() {
			out[i].Inner = opened(s.inner())
		}
	}
	return out
}

// Find is the step that stands at a path. The item of a loop is one
// segment of it: roll/orders-1/restart.
func (t Tree) Find(path string) (Step, bool) {
	chain := t.Chain(path)
	if len(chain) == 0 {
		return Step{}, false
	}
	last := chain[len(chain)-1]
	return last.Step, last.Path == path
}

// Link is one step on the way from a section to a step, and for a loop the item
// that the way goes through.
type Link struct {
	Step Step
	Path string
	Item string
}

// Chain is the way to a path: the steps that hold it, the outermost first, and
// the step itself.
func (t Tree) Chain(path string) []Link {
	section := SectionOf(path)
	rest := path
	if section != SectionSteps {
		rest = strings.TrimPrefix(path, string(section)+"/")
	}
	var steps []Step
	for _, s := range Sections(t.Spec) {
		if s.Name == section {
			steps = s.Steps
		}
	}
	var out []Link
	at := ""
	for rest != "" {
		name, after, _ := strings.Cut(rest, "/")
		step, ok := named(steps, name)
		if !ok {
			return nil
		}
		if at == "" {
			at = StepPath(section, name)
		} else {
			at += "/" + name
		}
		l := Link{Step: step, Path: at}
		if IsLoop(step.Type) && after != "" {
			l.Item, after, _ = strings.Cut(after, "/")
			at += "/" + l.Item
		}
		out = append(out, l)
		steps, rest = t.Children(step), after
	}
	return out
}

func named(steps []Step, name string) (Step, bool) {
	for _, s := range steps {
		if s.Name == name {
			return s, true
		}
	}
	return Step{}, false
}

// TemplateOf is the innermost step that stands for a template on the way to a
// path, with its own path.
func (t Tree) TemplateOf(path string) (Step, string, bool) {
	chain := t.Chain(path)
	for i := len(chain) - 2; i >= 0; i-- {
		if strings.HasPrefix(chain[i].Step.Type, TemplatePrefix) {
			return chain[i].Step, chain[i].Path, true
		}
	}
	return Step{}, "", false
}

// Below says whether a path lies in what stands at another.
func Below(path, holder string) bool { return strings.HasPrefix(path, holder+"/") }

// Disruptive says whether a step asks the gate: one that holds others does when
// one of them does, unless it says otherwise itself.
func (t Tree) Disruptive(s Step) bool { return t.disruptive(s, new(int)) }

func (t Tree) disruptive(s Step, walked *int) bool {
	switch *walked++; {
	case s.Disruptive != nil:
		return *s.Disruptive
	case *walked > MaxWalked:
		return true
	}
	children := t.Children(s)
	if !s.Holds() || len(children) == 0 {
		return true
	}
	return slices.ContainsFunc(children, func(c Step) bool { return t.disruptive(c, walked) })
}

// Loops says whether a spec holds a for-each, which looks at the gate before
// each of its items whatever the plan says.
func (t Tree) Loops() bool {
	found := false
	t.Walk(func(s Step) { found = found || IsLoop(s.Type) })
	return found
}

// Walk visits all steps, with those that other steps hold.
func (t Tree) Walk(visit func(Step)) {
	t.WalkClusters(func(s Step, _ *connector.Reference) { visit(s) })
}

// WalkBelow visits the steps that a step holds, and those that they hold.
func (t Tree) WalkBelow(s Step, visit func(Step)) {
	t.walk(t.Children(s), nil, new(int), func(s Step, _ *connector.Reference) { visit(s) })
}

// WalkClusters is Walk with the connector by which each step reaches its cluster; nil is the
// plan's own cluster, and that of steps that work on none.
func (t Tree) WalkClusters(visit func(s Step, at *connector.Reference)) {
	walked := new(int)
	for _, s := range Sections(t.Spec) {
		t.walk(s.Steps, t.Spec.ConnectorRef, walked, visit)
	}
}

func (t Tree) walk(steps []Step, outer *connector.Reference, walked *int, visit func(Step, *connector.Reference)) {
	for _, s := range steps {
		if *walked++; *walked > MaxWalked {
			return
		}
		at := outer
		if s.ConnectorRef != nil {
			at = s.ConnectorRef
		}
		visit(s, onlyOnClusters(s, at))
		if s.Holds() {
			t.walk(t.Children(s), at, walked, visit)
		}
	}
}

// Own are the properties of a step without the steps that it holds.
func (s Step) Own() map[string]any {
	if !s.Holds() || s.Properties["steps"] == nil {
		return s.Properties
	}
	out := make(map[string]any, len(s.Properties))
	for key, value := range s.Properties {
		if key != "steps" {
			out[key] = value
		}
	}
	return out
}

// RollsOut says whether a spec holds a for-each-node: it takes the windows that it
// takes, so that it has no time limit unless it says so itself.
func (t Tree) RollsOut() bool {
	found := false
	t.Walk(func(s Step) { found = found || s.Type == TypeForEachNode })
	return found
}

func (t Tree) usesTemplates() bool {
	found := false
	t.Walk(func(s Step) { found = found || strings.HasPrefix(s.Type, TemplatePrefix) })
	return found
}

// Defaulted is the spec with every default of the contract filled in. Runs snapshot this
// form, so that a later version's defaults cannot change a run in flight. What rolls out
// has no maxDuration by default: nodes take the windows that they take.
func (t Tree) Defaulted() Spec {
	s := t.Spec.Defaulted()
	if !t.RollsOut() {
		s.MaxDuration = orDuration(s.MaxDuration, DefaultMaxDuration)
	}
	return s
}

// Keeps is how many steps below a step leave something to be restored.
func (t Tree) Keeps(s Step) int { return t.keeps(s, new(int)) }

func (t Tree) keeps(s Step, walked *int) int {
	if *walked++; *walked > MaxWalked {
		return 0
	}
	n := 0
	for _, c := range t.Children(s) {
		if n += t.keeps(c, walked); Restores(c) {
			n++
		}
	}
	return n
}

// Restores says whether a step may have something to put back. A ${…} there is
// evaluated by the step itself, which writes nothing down where it is false.
func Restores(s Step) bool {
	switch v := s.Properties["restoreAfter"].(type) {
	case bool:
		return v
	case string:
		return v != ""
	}
	return false
}
