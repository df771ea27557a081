package plan

import (
	"slices"
	"strings"
)

// TemplatePrefix begins the type of a step that stands for a template's steps.
const TemplatePrefix = "template/"

// children are the steps that a step of the run holds.
func (r Run) children(s Step) []Step {
	if name, is := strings.CutPrefix(s.Type, TemplatePrefix); is {
		return r.Templates[name].Steps
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
		if s.holds() {
			out[i].Inner = opened(s.inner())
		}
	}
	return out
}

// Find is the step of a run that stands at a path. The item of a loop is one
// segment of it: roll/orders-1/restart.
func (r Run) Find(path string) (Step, bool) {
	chain := r.chain(path)
	if len(chain) == 0 {
		return Step{}, false
	}
	last := chain[len(chain)-1]
	return last.step, last.path == path
}

// link is one step on the way from a section to a step, and for a loop the item
// that the way goes through.
type link struct {
	step Step
	path string
	item string
}

// chain is the way to a path: the steps that hold it, the outermost first, and
// the step itself.
func (r Run) chain(path string) []link {
	section := SectionOf(path)
	rest := path
	if section != SectionSteps {
		rest = strings.TrimPrefix(path, string(section)+"/")
	}
	var steps []Step
	for _, s := range sections(r.Spec) {
		if s.name == section {
			steps = s.steps
		}
	}
	var out []link
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
		l := link{step: step, path: at}
		if IsLoop(step.Type) && after != "" {
			l.item, after, _ = strings.Cut(after, "/")
			at += "/" + l.item
		}
		out = append(out, l)
		steps, rest = r.children(step), after
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

// ItemOf is the item of the innermost loop that a path lies in.
func (r Run) ItemOf(j Journal, path string) (Item, ForEachProperties, bool) {
	chain := r.chain(path)
	for i := len(chain) - 1; i >= 0; i-- {
		if chain[i].item == "" {
			continue
		}
		rec := j.Record(chain[i].path)
		if rec == nil {
			return Item{}, ForEachProperties{}, false
		}
		for _, item := range rec.Items {
			if item.Segment() == chain[i].item {
				return item, ForEachProperties{APIVersion: rec.ItemVersion, Kind: rec.ItemKind}, true
			}
		}
	}
	return Item{}, ForEachProperties{}, false
}

// TemplateOf is the innermost step that stands for a template on the way to a
// path, with its own path.
func (r Run) TemplateOf(path string) (Step, string, bool) {
	chain := r.chain(path)
	for i := len(chain) - 2; i >= 0; i-- {
		if strings.HasPrefix(chain[i].step.Type, TemplatePrefix) {
			return chain[i].step, chain[i].path, true
		}
	}
	return Step{}, "", false
}

// Record is what the journal knows of the step at a path; nil when nothing.
func (j Journal) Record(path string) *Record {
	for i := range j.Steps {
		if j.Steps[i].Path == path {
			return &j.Steps[i]
		}
	}
	return nil
}

// below says whether a path lies in what stands at another.
func below(path, holder string) bool { return strings.HasPrefix(path, holder+"/") }

// disruptive says whether a step asks the gate: one that holds others does when
// one of them does, unless it says otherwise itself.
func (r Run) disruptive(s Step) bool {
	if s.Disruptive != nil {
		return *s.Disruptive
	}
	children := r.children(s)
	if !s.holds() || len(children) == 0 {
		return true
	}
	for _, c := range children {
		if r.disruptive(c) {
			return true
		}
	}
	return false
}

// Loops says whether a spec holds a for-each, which looks at the gate before
// each of its items whatever the plan says.
func (r Run) Loops() bool {
	for _, s := range sections(r.Spec) {
		if r.loops(s.steps) {
			return true
		}
	}
	return false
}

func (r Run) loops(steps []Step) bool {
	for _, s := range steps {
		if IsLoop(s.Type) || s.holds() && r.loops(r.children(s)) {
			return true
		}
	}
	return false
}

// Walk visits all steps of a run, with those that other steps hold.
func (r Run) Walk(visit func(Step)) {
	for _, s := range sections(r.Spec) {
		r.walk(s.steps, visit)
	}
}

func (r Run) walk(steps []Step, visit func(Step)) {
	for _, s := range steps {
		visit(s)
		if s.holds() {
			r.walk(r.children(s), visit)
		}
	}
}

// Own are the properties of a step without the steps that it holds.
func (s Step) Own() map[string]any {
	if !s.holds() || s.Properties["steps"] == nil {
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

// ItemsDone are the items of a loop that its batches have done, the present one
// with them. Of those that failed nobody asks whether it holds what was done.
func (r Run) ItemsDone(j Journal, path string) []Item {
	rec := j.Record(path)
	if rec == nil || !rec.Listed {
		return nil
	}
	step, _ := r.Find(path)
	ends := loopBatches(step, len(rec.Items))
	done := rec.Items[:ends[min(rec.Batch, len(ends)-1)]]
	failed := func(i Item) bool { return i.Phase == StepFailed }
	if slices.ContainsFunc(done, failed) {
		done = slices.DeleteFunc(slices.Clone(done), failed)
	}
	return done
}
