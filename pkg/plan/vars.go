package plan

import (
	"strings"
	"time"
)

// Vars is what expressions in a run may speak of. target is the live object, or
// nil where it was not read.
func Vars(r Run, j Journal, target map[string]any) map[string]any {
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
		"parameters": parameters, "dryRun": r.Request.DryRun, "actor": r.Request.Actor, "trigger": string(r.Request.Kind),
		"startedAt": stamp(j.StartedAt), "phase": string(j.Phase),
	}
	if j.End != nil {
		run["phase"], run["message"] = string(j.End.Phase), j.End.Message
	}
	var object any
	if target != nil {
		object = target
	}
	return map[string]any{
		"run":            run,
		"plan":           map[string]any{"name": r.Plan, "namespace": r.Namespace, "uid": r.PlanUID, "description": r.Spec.Description},
		"target":         object,
		"steps":          stepVars(j),
		"trigger_reason": r.Request.Why(),
		"context":        map[string]any{"scheduledTime": scheduled},
		"required":       map[string]any{},
		"watched":        nil,
		"each":           nil,
		"params":         map[string]any{},
		"node":           nil,
	}
}

func stepVars(j Journal) map[string]any {
	steps := map[string]any{}
	for _, rec := range j.Steps {
		outputs := map[string]any{}
		if rec.Outputs != nil {
			outputs = Clone(rec.Outputs) // numbers read the same before and after a crash
		}
		steps[rec.Path[strings.LastIndex(rec.Path, "/")+1:]] = map[string]any{
			"phase": string(rec.Phase), "attempt": int64(rec.Attempt), "reason": rec.Reason, "message": rec.Message,
			"outputs": outputs, "startedAt": stamp(rec.StartedAt), "finishedAt": stamp(rec.FinishedAt),
		}
	}
	return steps
}

func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
