package run

import (
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Inputs is what was read of the cluster for an expression; nil where nothing was.
type Inputs struct {
	Target   map[string]any
	Each     map[string]any              // the object of the innermost loop; without it, what the journal knows of it
	Required map[string][]map[string]any // by name, sorted by namespace and name
	Params   map[string]any              // of the template that the step stands in
}

// Vars is what expressions in a run may speak of, outside of any step that holds
// others. target is the live object, or nil where it was not read.
func Vars(r Run, j Journal, target map[string]any) map[string]any {
	return VarsAt(r, j, "", Inputs{Target: target})
}

// VarsAt is what expressions of the step at a path may speak of: of other steps,
// those that stand in no loop and no template, and those of its own item.
func VarsAt(r Run, j Journal, path string, seen Inputs) map[string]any {
	scheduled := r.Request.ScheduledAt().UTC().Format(time.RFC3339)
	parameters := map[string]any{}
	for _, p := range r.Spec.Parameters {
		if p.Default != nil {
			parameters[p.Name] = *p.Default
		}
	}
	for name, value := range r.Request.Parameters {
		parameters[name] = value
	}
	run := map[string]any{
		"name": r.Name, "namespace": r.Namespace, "reason": r.Request.Why(), "scheduledTime": scheduled,
		"parameters": parameters, "dryRun": r.Request.DryRun, "actor": r.Request.Who(), "trigger": string(r.Request.Kind),
		"startedAt": stamp(j.StartedAt), "phase": string(j.Phase),
	}
	if j.End != nil {
		run["phase"], run["message"] = string(j.End.Phase), j.End.Message
	}
	required, params := map[string]any{}, seen.Params
	for name, list := range seen.Required {
		objects := make([]any, len(list))
		for i, o := range list {
			objects[i] = o
		}
		required[name] = objects
	}
	if params == nil {
		params = map[string]any{}
	}
	return map[string]any{
		"run":            run,
		"plan":           map[string]any{"name": r.Plan, "namespace": r.Namespace, "uid": r.PlanUID, "description": r.Spec.Description},
		"target":         expr.OrNull(seen.Target),
		"steps":          stepVars(r, j, path),
		"trigger_reason": r.Request.Why(),
		"context":        map[string]any{"scheduledTime": scheduled},
		"required":       required,
		"watched":        expr.OrNull(r.Watched),
		"each":           expr.OrNull(eachOf(r, j, path, seen.Each)),
		"params":         params,
		"node":           expr.OrNull(rolledNode(r, j, path, seen.Each)),
	}
}

// eachOf is the object of the loop that a path lies in.
func eachOf(r Run, j Journal, path string, read map[string]any) map[string]any {
	if read != nil || !strings.Contains(path, "/") {
		return read
	}
	item, loop, ok := r.ItemOf(j, path)
	if !ok {
		return nil
	}
	meta := map[string]any{"name": item.Name, "uid": item.UID}
	if item.Namespace != "" {
		meta["namespace"] = item.Namespace
	}
	return map[string]any{"apiVersion": loop.APIVersion, "kind": loop.Kind, "metadata": meta}
}

// rolledNode is the node that a rollout has come to.
func rolledNode(r Run, j Journal, path string, read map[string]any) map[string]any {
	if each := eachOf(r, j, path, read); each["kind"] == "Node" && each["apiVersion"] == "v1" {
		return each
	}
	return nil
}

func stepVars(r Run, j Journal, path string) map[string]any {
	steps, depth := map[string]any{}, map[string]int{}
	loops := j.outerLoops()
	for i := range j.Steps {
		rec := &j.Steps[i]
		if in := itemIn(loops, rec.Path); in != "" && !plan.Below(path, in) {
			continue // of another item: not worth a longer look
		}
		room := r.room(rec.Path)
		if room != "" && !plan.Below(path, room) {
			continue
		}
		name := rec.Path[strings.LastIndex(rec.Path, "/")+1:]
		if _, have := steps[name]; have && depth[name] > len(room) {
			continue // the one nearer to the step is meant
		}
		depth[name] = len(room)
		outputs := map[string]any{}
		if rec.Outputs != nil {
			outputs = document.Clone(rec.Outputs) // numbers read the same before and after a crash
		}
		steps[name] = map[string]any{
			"phase": string(rec.Phase), "attempt": int64(rec.Attempt), "reason": rec.Reason, "message": rec.Message,
			"outputs": outputs, "startedAt": stamp(rec.StartedAt), "finishedAt": stamp(rec.FinishedAt),
		}
	}
	return steps
}

// outerLoops are the loops that lie in no other.
func (j Journal) outerLoops() (loops []string) {
	for i := range j.Steps {
		if rec := &j.Steps[i]; plan.IsLoop(rec.Type) && itemIn(loops, rec.Path) == "" {
			loops = append(loops, rec.Path)
		}
	}
	return loops
}

// itemIn is the path of the item that a path lies in; empty when it lies in none.
func itemIn(loops []string, path string) string {
	for _, loop := range loops {
		if segment := SegmentIn(loop, path); segment != "" {
			return path[:len(loop)+1+len(segment)]
		}
	}
	return ""
}

// room is the innermost loop's item or template that a path lies in: only what
// lies there too may speak of it.
func (r Run) room(path string) string {
	if !strings.Contains(path, "/") {
		return ""
	}
	room := ""
	chain := r.Tree().Chain(path)
	for _, l := range chain[:max(len(chain)-1, 0)] {
		switch {
		case l.Item != "":
			room = l.Path + "/" + l.Item
		case strings.HasPrefix(l.Step.Type, plan.TemplatePrefix):
			room = l.Path
		}
	}
	return room
}

func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
