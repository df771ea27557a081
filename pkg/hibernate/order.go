package hibernate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// How long an operation of one target may take.
const (
	leastTimeout   = time.Second
	mostTimeout    = 24 * time.Hour
	DefaultTimeout = 15 * time.Minute
)

// Order says of each target which others are asleep before it falls asleep, and how many
// are at work at once.
type Order struct {
	before map[string][]string
	groups []group
	group  map[string]int
}

// group is targets of which only so many are at work at once; 0 is any number.
type group struct{ most int }

// stages are those of the plan, wherever they stand.
func (e Execution) stages() []Stage {
	if len(e.Stages) > 0 {
		return e.Stages
	}
	return e.Strategy.Stages
}

// OrderOf is the order of a valid plan's targets.
func OrderOf(s Spec) Order {
	o := Order{before: map[string][]string{}, group: map[string]int{}}
	most := 0
	if m := s.Execution.Strategy.MaxConcurrency; m != nil {
		most = *m
	}
	if s.Execution.Strategy.Type == Staged {
		o.staged(s)
		return o
	}
	o.groups = []group{{most}}
	for i, t := range s.Targets {
		o.group[t.Name] = 0
		if sequential := s.Execution.Strategy.Type; (sequential == Sequential || sequential == "") && i > 0 {
			o.before[t.Name] = []string{s.Targets[i-1].Name}
		}
	}
	for _, d := range s.Execution.Strategy.Dependencies {
		o.before[d.To] = append(o.before[d.To], d.From)
	}
	return o
}

// staged orders the stages one after the other; what is in none comes last.
func (o *Order) staged(s Spec) {
	stages := slices.Clone(s.Execution.stages())
	var rest []string
	for _, t := range s.Targets {
		if !slices.ContainsFunc(stages, func(st Stage) bool { return slices.Contains(st.Targets, t.Name) }) {
			rest = append(rest, t.Name)
		}
	}
	if len(rest) > 0 {
		stages = append(stages, Stage{Targets: rest})
	}
	var earlier []string
	for i, st := range stages {
		g := group{}
		if st.MaxConcurrency != nil {
			g.most = *st.MaxConcurrency
		}
		o.groups = append(o.groups, g)
		for j, name := range st.Targets {
			o.group[name] = i
			o.before[name] = slices.Clone(earlier)
			if !st.Parallel && j > 0 {
				o.before[name] = append(o.before[name], st.Targets[j-1])
			}
		}
		if len(st.Targets) > 0 {
			earlier = st.Targets
		}
	}
}

// Before are the targets that are asleep before one falls asleep, and awake after it.
func (o Order) Before(target string) []string { return o.before[target] }

// After are the targets that fall asleep after one, and are awake before it wakes.
func (o Order) After(target string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(o.before)), func(other string) bool { return !slices.Contains(o.before[other], target) })
}

// most is how many of a target's group are at work at once; 0 is any number.
func (o Order) most(target string) int {
	if g, in := o.group[target]; in {
		return o.groups[g].most
	}
	return 0
}

func (o Order) together(a, b string) bool { return o.group[a] == o.group[b] }

func (v *validator) execution(s Spec) {
	e := s.Execution
	at := "spec.execution.strategy"
	document.OneOf(v.Checker, at+".type", e.Strategy.Type, Sequential, Parallel, DAG, Staged)
	positive(v, at+".maxConcurrency", e.Strategy.MaxConcurrency)
	if len(e.Strategy.Dependencies) > 0 && e.Strategy.Type != DAG {
		v.Fault(at+".dependencies", "are for the strategy DAG")
	}
	switch {
	case len(e.Stages) > 0 && len(e.Strategy.Stages) > 0:
		v.Fault("spec.execution.stages", "stand in the strategy, too; write them once")
	case len(e.stages()) > 0 && len(e.Strategy.Dependencies) > 0:
		v.Fault("spec.execution.stages", "stand beside dependencies; write one of them")
	case len(e.stages()) > 0 && e.Strategy.Type != Staged:
		v.Fault("spec.execution.stages", "are for the strategy Staged")
	case len(e.stages()) == 0 && e.Strategy.Type == Staged:
		v.Fault(at+".stages", "is empty: which targets fall asleep first")
	}
	known := map[string]bool{}
	for _, t := range s.Targets {
		known[t.Name] = true
	}
	v.dependencies(e.Strategy.Dependencies, known)
	path := "spec.execution.stages"
	if len(e.Stages) == 0 {
		path = at + ".stages"
	}
	v.stages(path, e.stages(), known)
}

func positive(v *validator, path string, n *int) {
	if n != nil && *n < 1 {
		v.Fault(path, "must be at least 1, is %d", *n)
	}
}

func (v *validator) dependencies(list []Dependency, known map[string]bool) {
	const at = "spec.execution.strategy.dependencies"
	var edges []Dependency // that can be part of a ring
	for i, d := range list {
		for _, end := range []struct{ field, name string }{{"from", d.From}, {"to", d.To}} {
			if !known[end.name] {
				v.Fault(fmt.Sprintf("%s[%d].%s", at, i, end.field), "%q is no target of this plan", document.Cut(end.name, 100))
			}
		}
		switch {
		case !known[d.From] || !known[d.To]:
		case d.From == d.To:
			v.Fault(fmt.Sprintf("%s[%d]", at, i), "%s waits for itself", d.From)
		default:
			edges = append(edges, d)
		}
	}
	if rings := cycles(edges); len(rings) > 0 {
		v.Fault(at, "wait for each other: %s", strings.Join(rings, "; "))
	}
}

// cycles are the rings of dependencies, no two of which have one in common: a → b → a.
func cycles(list []Dependency) (rings []string) {
	for ring := cycle(list); ring != nil; ring = cycle(list) {
		rings = append(rings, strings.Join(ring, " → "))
		list = slices.DeleteFunc(slices.Clone(list), func(d Dependency) bool {
			i := slices.Index(ring[:len(ring)-1], d.From)
			return i >= 0 && ring[i+1] == d.To
		})
	}
	return rings
}

// cycle is a ring of dependencies, its first name again at its end; nil: there is none.
func cycle(list []Dependency) []string {
	next := map[string][]string{}
	for _, d := range list {
		next[d.From] = append(next[d.From], d.To)
	}
	done, path := map[string]bool{}, []string(nil)
	var visit func(name string) []string
	visit = func(name string) []string {
		if i := slices.Index(path, name); i >= 0 {
			return append(slices.Clone(path[i:]), name)
		}
		if done[name] {
			return nil
		}
		path = append(path, name)
		for _, to := range next[name] {
			if ring := visit(to); ring != nil {
				return ring
			}
		}
		path = path[:len(path)-1]
		done[name] = true
		return nil
	}
	for _, d := range list {
		if ring := visit(d.From); ring != nil {
			return ring
		}
	}
	return nil
}

func (v *validator) stages(path string, stages []Stage, known map[string]bool) {
	in := map[string]int{}
	for i, st := range stages {
		at := fmt.Sprintf("%s[%d]", path, i)
		positive(v, at+".maxConcurrency", st.MaxConcurrency)
		if len(st.Targets) == 0 {
			v.Fault(at+".targets", "is empty")
		}
		for j, name := range st.Targets {
			first, twice := in[name]
			switch {
			case !known[name]:
				v.Fault(fmt.Sprintf("%s.targets[%d]", at, j), "%q is no target of this plan", document.Cut(name, 100))
			case twice:
				v.Fault(fmt.Sprintf("%s.targets[%d]", at, j), "%q is in stage %d already", name, first+1)
			default:
				in[name] = i
			}
		}
	}
}
