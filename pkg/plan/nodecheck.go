package plan

import "github.com/kubectl-maint/kubectl-maint/pkg/expr"

// ClosedNode is the node that a step of a rollout relies on to be closed: an
// earlier step of the same item has cordoned or drained it, and none has opened it
// since. Such a step looks at the node before the first pass of each attempt: what
// takes it for empty must not run where somebody lets pods in again. A step that
// opens the node needs no look.
func (r Run) ClosedNode(j Journal, path string) (Item, bool) {
	rec := j.Record(path)
	if rec == nil || rec.Type == TypeUncordon || rec.NodeSeen == rec.Attempt || r.Request.DryRun {
		return Item{}, false
	}
	for _, l := range r.Tree().chain(path) {
		if l.item == "" || l.step.Type != TypeForEachNode {
			continue
		}
		if loop := j.Record(l.path); loop != nil {
			for _, item := range loop.Items {
				if item.Segment() == l.item {
					return item, r.closed(j, l.path+"/"+l.item, item.Name)
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
		if rec.Phase != StepSucceeded || rec.FinishedAt == nil || !below(rec.Path, under) || !r.about(rec, node) {
			continue
		}
		if last == nil || !rec.FinishedAt.Before(*last.FinishedAt) {
			last = rec
		}
	}
	return last != nil && last.Type != TypeUncordon
}

// about says whether a step cordons, drains or uncordons the node of its item: one
// that names none means it, and a template may.
func (r Run) about(rec *Record, node string) bool {
	if rec.Type != TypeCordon && rec.Type != TypeDrain && rec.Type != TypeUncordon {
		return false
	}
	step, found := r.Tree().Find(rec.Path)
	if !found {
		return false
	}
	name, _ := step.Own()["node"].(string)
	return name == node || expr.IsTemplate(name) || name == "" && step.Own()["selector"] == nil
}
