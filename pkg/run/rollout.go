package run

import (
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// ClosedNode is the node that a step of a rollout relies on to be closed: an
// earlier step of the same item has cordoned or drained it, and none has opened it
// since. Such a step looks at the node before the first pass of each attempt: what
// takes it for empty must not run where somebody lets pods in again. A step that
// opens the node needs no look.
func (r Run) ClosedNode(j Journal, path string) (Item, bool) {
	rec := j.Record(path)
	if rec == nil || rec.Type == plan.TypeUncordon || rec.NodeSeen == rec.Attempt || r.Request.DryRun {
		return Item{}, false
	}
	for _, l := range r.Tree().Chain(path) {
		if l.Item == "" || l.Step.Type != plan.TypeForEachNode {
			continue
		}
		if loop := j.Record(l.Path); loop != nil {
			for _, item := range loop.Items {
				if item.Segment() == l.Item {
					return item, r.closed(j, l.Path+"/"+l.Item, item.Name)
				}
			}
		}
	}
	return Item{}, false
}

// closed says whether the last step below a path that was about a node closed it.
func (r Run) closed(j Journal, under, node string) bool {
	var last *Record
	for i := range j.Steps {
		rec := &j.Steps[i]
		if rec.Phase != StepSucceeded || rec.FinishedAt == nil || !plan.Below(rec.Path, under) || !r.about(rec, node) {
			continue
		}
		if last == nil || !rec.FinishedAt.Before(*last.FinishedAt) {
			last = rec
		}
	}
	return last != nil && last.Type != plan.TypeUncordon
}

// about says whether a step cordons, drains or uncordons the node of its item: one
// that names none means it, and a template may.
func (r Run) about(rec *Record, node string) bool {
	if rec.Type != plan.TypeCordon && rec.Type != plan.TypeDrain && rec.Type != plan.TypeUncordon {
		return false
	}
	step, found := r.Tree().Find(rec.Path)
	if !found {
		return false
	}
	name, _ := step.Own()["node"].(string)
	return name == node || expr.IsTemplate(name) || name == "" && step.Own()["selector"] == nil
}

// RolloutNode is the node that the for-each-node around a path has come to.
func (r Run) RolloutNode(j Journal, path string) (string, bool) {
	for _, l := range r.Tree().Chain(path) {
		if l.Item == "" || l.Step.Type != plan.TypeForEachNode {
			continue
		}
		if rec := j.Record(l.Path); rec != nil {
			for _, item := range rec.Items {
				if item.Segment() == l.Item {
					return item.Name, true
				}
			}
		}
	}
	return "", false
}

// Rollout is one for-each-node of a run that has listed its nodes: who is at work,
// and who failed and was left as it was.
type Rollout struct {
	Path            string
	Running, Failed []string
	Left            int // not begun
}

// Rollouts are the for-each-nodes of a run that have listed their nodes and have
// not ended.
func (j Journal) Rollouts() []Rollout {
	var out []Rollout
	for i := range j.Steps {
		rec := &j.Steps[i]
		if rec.Type != plan.TypeForEachNode || !rec.Listed || rec.Phase != StepRunning {
			continue
		}
		r := Rollout{Path: rec.Path}
		for _, item := range rec.Items {
			switch item.Phase {
			case StepRunning:
				r.Running = append(r.Running, item.Name)
			case StepFailed:
				r.Failed = append(r.Failed, item.Name)
			case "":
				r.Left++
			}
		}
		out = append(out, r)
	}
	return out
}
