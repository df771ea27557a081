package function

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/mask"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// heavyPipeline is after how long a pipeline for which much was read calls no other function: one
// function may take as long with all its rounds.
const heavyPipeline = (MaxRounds + 1) * heavyTimeout

// Pipeline executes the step type pipeline. As the plan's account it needs what each of its functions
// needs, and get, patch and create on what the last one desires.
//
// Nothing is written before the last function has answered. So after a crash in between, and after a
// function that failed, all are called again from the first, as one function is.
type Pipeline struct {
	Answers *Answers // nil: no limit
}

// TakesRequired is executors.Requirer's: the functions get the objects themselves.
func (Pipeline) TakesRequired() {}

// Pass calls the functions and applies what the last one desires.
func (l Pipeline) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.PipelineProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	all := chain{force: p.Force, kept: map[string]any{}, answers: l.Answers}
	for _, f := range p.Functions {
		all.functions = append(all.functions, &conversation{call: call, name: f.Name, props: f.Called()})
	}
	if len(all.functions) == 0 { // the validator refused it
		return executors.Refuse(executors.ReasonInvalid, "functions: there are none")
	}
	return all.pass(ctx, call)
}

// chain is what a step calls: one function, or those of a pipeline in their order.
type chain struct {
	functions []*conversation
	force     bool
	kept      map[string]any // of a pipeline: what each function said, by its name; nil: a function alone
	answers   *Answers
}

// pass makes ready for all functions before it calls the first.
func (l chain) pass(ctx context.Context, call executors.Call) executors.Outcome {
	if call.DryRun {
		return executors.Outcome{State: executors.Done, Message: document.Cut("dry run: would call "+l.names()+"; "+l.uncalled(), document.MaxMessage)}
	}
	room := l.answers.open(call.Plan.Namespace)
	defer room.close()
	shared, err := given(call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	var secrets []string
	for _, c := range l.functions {
		c.room, c.given = room, shared
		if err := c.prepare(ctx); err != nil {
			return api.Outcome(ctx, call, err)
		}
		secrets = append(secrets, c.secrets...)
	}
	masked := mask.New(secrets) // what one function was given, another may say
	for _, c := range l.functions {
		c.mask = masked
	}
	out := l.hold(ctx)
	if tooLong(out.Outputs) { // no longer than the pass are they counted
		out.Outputs = truncated()
	}
	out.Message = document.Cut(masked.Text(out.Message), document.MaxMessage)
	return out
}

func (l chain) names() string {
	var names []string
	for _, c := range l.functions {
		names = append(names, c.String())
	}
	return strings.Join(names, ", ")
}

func (l chain) uncalled() string {
	if l.kept == nil {
		return "it was not called"
	}
	return "none was called"
}

func (l chain) String() string {
	if l.kept == nil {
		return l.functions[0].String()
	}
	if n := len(l.functions); n > 1 {
		return "pipeline of " + strconv.Itoa(n) + " functions"
	}
	return "pipeline of 1 function"
}

// hold calls the functions, each with what the one before desires and its context, and applies what
// the last one desires. After a fatal result nobody else is called, and nothing is applied.
func (l chain) hold(ctx context.Context) executors.Outcome {
	desired, handed := &fnv1.State{}, (*fnv1.RunFunctionResponse)(nil)
	var all answer
	begun := time.Now()
	for _, c := range l.functions {
		if why := c.heavy(ctx); why != "" && time.Since(begun) > heavyPipeline {
			out := executors.Fail("Timeout", "%s: not called: %s, so the functions of this step may take %s in all", c, why, heavyPipeline)
			out.Outputs = all.outputs
			return out
		}
		c.request.Desired, c.request.Context = desired, handed.GetContext()
		response, err := c.answered(ctx)
		if err != nil {
			out := api.Outcome(ctx, c.call, err)
			out.Outputs = all.outputs
			return out
		}
		a := c.read(response)
		all = l.keep(all, c, a, response)
		if a.fatal != "" {
			out := executors.Fail("FunctionFatal", "%s failed: %s", c, a.fatal)
			out.Outputs = all.outputs
			return out
		}
		if desired, handed = response.GetDesired(), response; desired == nil {
			desired = &fnv1.State{}
		}
	}
	if desired.GetComposite().GetResource() != nil {
		all.notes = append([]string{"its desired.composite was ignored: an operation has no composite resource"}, all.notes...)
	}
	last := l.functions[len(l.functions)-1]
	wanted, err := last.wanted(desired)
	if err != nil {
		out := api.Outcome(ctx, last.call, err)
		out.Outputs = all.outputs
		return out
	}
	return l.apply(ctx, last, wanted, all)
}

// keep adds what a function said to what those before it said.
func (l chain) keep(all answer, c *conversation, a answer, r *fnv1.RunFunctionResponse) answer {
	if l.kept == nil {
		return a
	}
	said := map[string]any{}
	if output := r.GetOutput(); output != nil {
		said["output"] = c.output(r)
	}
	if len(a.results) > 0 {
		said["results"] = a.results
	}
	if required := c.required(r); len(required) > 0 {
		said["requirements"] = required
	}
	if tooLong(said) {
		said = truncated()
	}
	l.kept[c.name] = said
	for _, note := range a.notes {
		all.notes = append(all.notes, c.name+": "+note)
	}
	all.outputs = bounded(l.kept)
	return all
}

// maxRequirements is how many of a function's requirements are kept, as of its results.
const maxRequirements = maxResults

// required are a function's last requirements, by name.
func (c *conversation) required(r *fnv1.RunFunctionResponse) map[string]any {
	out := map[string]any{}
	cut := func(text string) string { return document.Cut(c.mask.Text(text), document.MaxNameLength*4) }
	all := selectorsOf(r.GetRequirements())
	for _, name := range all.sorted() {
		if len(out) == maxRequirements {
			break
		}
		s := all[name]
		one := map[string]any{"apiVersion": cut(s.GetApiVersion()), "kind": cut(s.GetKind())}
		if s.GetMatchName() != "" {
			one["matchName"] = cut(s.GetMatchName())
		}
		if s.GetNamespace() != "" {
			one["namespace"] = cut(s.GetNamespace())
		}
		if match := s.GetMatchLabels(); match != nil {
			labels := map[string]any{}
			for key, value := range match.GetLabels() {
				labels[cut(key)] = cut(value)
			}
			one["matchLabels"] = labels
		}
		out[cut(name)] = one
	}
	return out
}

// bounded is what the functions said, the longest left out where all of it is more than a step may
// keep: else the words of one would take those of all.
func bounded(kept map[string]any) map[string]any {
	out, sizes, total := maps.Clone(kept), map[string]int{}, 0
	for name, said := range kept {
		b, err := json.Marshal(said)
		if err != nil {
			b = nil
		}
		sizes[name] = len(b) + len(name) + len(`"":,`)
		total += sizes[name]
	}
	for _, name := range slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return sizes[b] - sizes[a] }) {
		if total <= run.MaxStepOutput-1000 {
			break
		}
		out[name] = truncated()
		total -= sizes[name] - len(name) - len(`"":{"truncated":true},`)
	}
	return out
}

// tooLong says whether outputs are more than a step may keep.
func tooLong(outputs map[string]any) bool {
	b, err := json.Marshal(outputs)
	return err != nil || len(b) > run.MaxStepOutput
}

// truncated stands for outputs that are left out.
func truncated() map[string]any { return map[string]any{"truncated": true} }

// exhausted says whether a pass has no time left for another call.
func exhausted(ctx context.Context) bool {
	end, is := ctx.Deadline()
	return is && time.Until(end) <= time.Second
}
