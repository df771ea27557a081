package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// bush is a step of a generated plan with the steps that it holds. It is how the
// tests know a plan's shape without asking what is under test.
type bush struct {
	step plan.Step
	kids []*bush
}

func (b *bush) is(kind string) bool { return b.step.Type == kind }

func (b *bush) holds() bool { return len(b.kids) > 0 }

func (b *bush) side() (side bool, most int) {
	most, _ = b.step.Properties["maxConcurrency"].(int)
	if most == 0 {
		most = 1000
	}
	return b.step.Properties["mode"] == "parallel", most
}

// disrupts says whether a step asks the gate.
func (b *bush) disrupts() bool {
	if b.step.Disruptive != nil {
		return *b.step.Disruptive
	}
	return !b.holds() || slices.ContainsFunc(b.kids, (*bush).disrupts)
}

// gardener grows plans.
type gardener struct {
	t         *rapid.T
	names     int
	templates map[string]plan.TemplateSpec
	grown     map[string][]*bush // what stands in a template
	known     []string           // templates that are whole
}

// oneOf draws a number below n. rapid prefers small ones, which makes for dull
// plans and duller days: they are spread, and 0 stays what it shrinks to.
func oneOf(t *rapid.T, n int, of string) int {
	return int(uint32(rapid.Uint16().Draw(t, of))*2654435761>>15) % n
}

func (g *gardener) chance(percent int, of string) bool { return oneOf(g.t, 100, of) > 99-percent }

func (g *gardener) pick(of string, from ...string) string { return from[oneOf(g.t, len(from), of)] }

func (g *gardener) name() string {
	g.names++
	return fmt.Sprintf("s%d", g.names)
}

// steps grows the steps of one list. In cleanup nothing is restored, for it would
// come too late.
func (g *gardener) steps(depth, most int, side, cleanup bool) []*bush {
	var out []*bush
	for i := range 1 + oneOf(g.t, most, "steps") {
		b := g.step(depth, cleanup)
		for _, earlier := range out[:i] {
			if side && g.chance(35, "depends") {
				b.step.DependsOn = append(b.step.DependsOn, earlier.step.Name)
			}
		}
		g.condition(b, out)
		out = append(out, b)
	}
	if side && g.chance(50, "upside down") {
		slices.Reverse(out)
	}
	return out
}

func (g *gardener) condition(b *bush, earlier []*bush) {
	switch n := oneOf(g.t, 20, "if"); {
	case n > 16:
		b.step.If = "always"
	case n > 14 && len(earlier) > 0:
		b.step.If = "steps['" + earlier[len(earlier)-1].step.Name + "'].phase == '" + g.pick("phase", "Failed", "Succeeded") + "'"
	case n == 5:
		b.step.If = "steps['nobody'].phase == 'Failed'"
	case n == 6:
		b.step.If = "false"
	}
}

func (g *gardener) step(depth int, cleanup bool) *bush {
	kind := g.pick("type", "webhook", "webhook", "webhook", "suspend", "approval", "scale", "silence", "group", "group", "for-each", "for-each", "template")
	if depth == 0 || g.names > 14 {
		kind = g.pick("leaf", "webhook", "webhook", "suspend", "approval", "scale", "silence")
	}
	b := &bush{step: plan.Step{Name: g.name(), Type: kind}}
	switch kind {
	case "group":
		g.group(b, depth, cleanup)
	case "for-each":
		g.loop(b, depth, cleanup)
	case "template":
		g.template(b, depth, cleanup)
	case "scale":
		b.step.Properties = map[string]any{"restoreAfter": !cleanup}
	}
	if g.chance(30, "retries") {
		b.step.Retry = &plan.Retry{Limit: 1 + oneOf(g.t, 2, "limit"), Backoff: coretest.Duration(g.pick("backoff", "1s", "3m"))}
	}
	if g.chance(20, "has a timeout") {
		b.step.Timeout = coretest.Duration(g.pick("timeout", "4m", "25m", "2h"))
	}
	if g.chance(15, "says whether it disrupts") {
		yes := oneOf(g.t, 2, "disrupts") == 1
		b.step.Disruptive = &yes
	}
	return b
}

func (g *gardener) group(b *bush, depth int, cleanup bool) {
	side := oneOf(g.t, 2, "side by side") == 1
	b.step.Type, b.step.Properties = plan.TypeGroup, map[string]any{}
	if side {
		b.step.Properties["mode"] = "parallel"
		if most := oneOf(g.t, 3, "most"); most > 0 {
			b.step.Properties["maxConcurrency"] = most
		}
	}
	g.fill(b, g.steps(depth-1, 4, side, cleanup))
}

func (g *gardener) loop(b *bush, depth int, cleanup bool) {
	b.step.Properties = map[string]any{"apiVersion": "v1", "kind": "Pod"}
	switch oneOf(g.t, 4, "batches") {
	case 1:
		b.step.Properties["batches"] = []any{1}
	case 2:
		b.step.Properties["batches"] = []any{1, "60%"}
	}
	if oneOf(g.t, 2, "until") == 1 {
		b.step.Properties["until"] = "true"
	}
	if oneOf(g.t, 2, "onError") == 1 {
		b.step.Properties["onError"] = "continue"
	}
	if most := oneOf(g.t, 4, "at once"); most > 0 {
		b.step.Properties["maxConcurrency"] = most
	}
	g.fill(b, g.steps(depth-1, 2, false, cleanup))
}

func (g *gardener) template(b *bush, depth int, cleanup bool) {
	name := "t" + b.step.Name
	if len(g.known) > 0 && !cleanup && g.chance(50, "a known one") {
		name = g.pick("template", g.known...)
	} else {
		kids := g.steps(min(depth-1, 1), 2, false, cleanup)
		g.templates[name], g.grown[name] = plan.TemplateSpec{Steps: stepsOf(kids)}, kids
		g.known = append(g.known, name) // now, so that none holds itself
	}
	b.step.Type, b.kids = plan.TemplatePrefix+name, g.grown[name]
}

func (g *gardener) fill(b *bush, kids []*bush) {
	b.kids = kids
	b.step.Properties["steps"] = document.Clone(map[string]any{"steps": stepsOf(kids)})["steps"]
}

func stepsOf(kids []*bush) []plan.Step {
	out := make([]plan.Step, len(kids))
	for i, kid := range kids {
		out[i] = kid.step
	}
	return out
}

// grove is a generated run, and its shape.
type grove struct {
	run      run.Run
	sections map[plan.Section][]*bush
}

func growRun(t *rapid.T) grove {
	g := &gardener{t: t, templates: map[string]plan.TemplateSpec{}, grown: map[string][]*bush{}}
	shape := map[plan.Section][]*bush{plan.SectionSteps: g.steps(3, 4, false, false)}
	s := plan.Spec{Steps: stepsOf(shape[plan.SectionSteps]), MaxDuration: coretest.Duration(g.pick("maxDuration", "30m", "3h", "20h"))}
	if g.chance(30, "onFailure") {
		shape[plan.SectionOnFailure] = g.steps(1, 2, false, false)
		s.OnFailure = stepsOf(shape[plan.SectionOnFailure])
	}
	if g.chance(50, "finally") {
		shape[plan.SectionFinally] = g.steps(2, 2, false, true)
		s.Finally = stepsOf(shape[plan.SectionFinally])
	}
	s.RetryLimit = oneOf(t, 3, "retryLimit")
	s.OnWindowClose = plan.OnWindowClose(g.pick("onWindowClose", "finish", "wait", "abort"))
	r := coretest.NewRun()
	r.Spec, r.Templates = s.Defaulted(), g.templates
	return grove{run: document.Clone(r), sections: shape}
}

// spot is where a path leads: a step, in which list it stands, and the item of the
// loop that it is the first list of.
type spot struct {
	bush     *bush
	path     string
	siblings []*bush
	prefix   string // of the siblings' paths
	side     bool   // they run side by side
	item     string // of the loop that holds the list directly
}

// way is the chain of steps to a path; nil where there is none.
func (g grove) way(path string) []spot {
	section, rest := plan.SectionOf(path), path
	prefix := ""
	if section != plan.SectionSteps {
		rest, prefix = strings.TrimPrefix(path, string(section)+"/"), string(section)+"/"
	}
	list := g.sections[section]
	var out []spot
	side, item := false, ""
	for rest != "" {
		name, after, _ := strings.Cut(rest, "/")
		i := slices.IndexFunc(list, func(b *bush) bool { return b.step.Name == name })
		if i < 0 {
			return nil
		}
		b := list[i]
		out = append(out, spot{bush: b, path: prefix + name, siblings: list, prefix: prefix, side: side, item: item})
		prefix += name + "/"
		item, side = "", false
		if b.is(plan.TypeForEach) && after != "" {
			item, after, _ = strings.Cut(after, "/")
			prefix += item + "/"
		}
		if b.is(plan.TypeGroup) {
			side, _ = b.side()
		}
		list, rest = b.kids, after
	}
	return out
}

func (g grove) spot(path string) spot {
	way := g.way(path)
	return way[len(way)-1]
}

// rounds is how often a step may begin at most, and attempts how many of its
// attempts there may be: each retry of what holds it begins it anew.
func (g grove) attempts(path string) int {
	n := 1
	if plan.SectionOf(path) == plan.SectionSteps {
		n += g.run.Spec.RetryLimit
	}
	for _, s := range g.way(path) {
		if s.bush.step.Retry != nil {
			n *= s.bush.step.Retry.Limit + 1
		}
	}
	return n
}

const leaseTime = 10 * time.Minute
