package node

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// relook is how often a step looks at its nodes when nothing wakes it: a person may have uncordoned
// one, or it is gone.
const relook = 15 * time.Second

// Drains executes the step type drain. As the plan's account it needs get and
// patch on nodes (list for a selector), list and watch on pods in all
// namespaces, create on pods/eviction, get on daemonsets.apps, and delete on
// pods for onTimeout: force and for evictions that were cut off.
//
// The drainer that does the work wakes the step when a drain has moved.
type Drains struct{}

// Pass records the nodes and the start, cordons them, and continues their drains.
func (e Drains) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	out, err := e.pass(ctx, call)
	return api.Finish(ctx, call, out, err)
}

func (e Drains) pass(ctx context.Context, call executors.Call) (executors.Outcome, error) {
	p, err := api.PropertiesAs[plan.DrainProperties](call)
	if err != nil {
		return executors.Outcome{}, err
	}
	m, read := remembered(call)
	if !read || m.Attempt != call.Attempt {
		return e.begin(ctx, call, p, m)
	}
	if m.Aborting != nil {
		return e.abort(ctx, call, m)
	}
	all := summary{}
	for i := range m.Nodes {
		st, failed, err := e.node(ctx, call, p, &m, &m.Nodes[i])
		if err != nil {
			return executors.Outcome{}, err
		}
		if failed != nil {
			e.stop(call, m)
			return *failed, nil
		}
		m.Nodes[i].Drained, m.Nodes[i].Left = st.Done, st.Done && st.Outcome.Left > 0
		m.Nodes[i].Blocked = blockedForGood(st)
		if t := &m.Nodes[i]; t.Cordoned && !t.Yielded {
			t.Why = document.Cut(blockOf(st.Blocks).Text, 500)
		}
		all.add(m.Nodes[i].Name, st)
	}
	return e.conclude(ctx, call, p, m, all)
}

// begin records what the attempt is about. Nodes that an earlier attempt cordoned are remembered:
// if one is uncordoned now, somebody else did it.
func (e Drains) begin(ctx context.Context, call executors.Call, p *plan.DrainProperties, before run.DrainMemory) (executors.Outcome, error) {
	list, err := nodesOf(ctx, call, p.NodeProperties)
	if err != nil {
		return executors.Outcome{}, err
	}
	m := run.DrainMemory{Attempt: call.Attempt, Since: call.Now.UTC()}
	names := make([]string, len(list))
	for i, n := range list {
		names[i] = n.Name
		ours := slices.ContainsFunc(before.Nodes, func(t run.DrainTarget) bool { return t.UID == string(n.UID) && t.Cordoned })
		m.Nodes = append(m.Nodes, run.DrainTarget{Name: n.Name, UID: string(n.UID), Cordoned: ours})
	}
	if err := api.NeedNodes(ctx, call, names); err != nil {
		return executors.Outcome{}, err
	}
	return executors.Outcome{State: executors.Record, Memory: memory(call, m), Message: fmt.Sprintf("about to drain %d nodes", len(m.Nodes))}, nil
}

// memory is what a step remembers of its nodes. Nodes of another cluster are kept apart, so that
// nobody takes them for nodes of this one with the same names.
func memory(call executors.Call, m run.DrainMemory) json.RawMessage {
	if call.Clients.Cluster != "" {
		m.Nodes, m.Elsewhere = nil, m.Nodes
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings, numbers and times always marshal
	}
	return b
}

// remembered decodes the call's memory, if there is one.
func remembered(call executors.Call) (m run.DrainMemory, read bool) {
	if json.Unmarshal(call.Recorded.Memory, &m) != nil {
		return run.DrainMemory{}, false
	}
	if call.Clients.Cluster != "" {
		m.Nodes, m.Elsewhere = m.Elsewhere, nil
	}
	return m, true
}

// node cordons one node, if needed, and has it drained.
func (e Drains) node(ctx context.Context, call executors.Call, p *plan.DrainProperties, m *run.DrainMemory, t *run.DrainTarget) (executors.DrainStatus, *executors.Outcome, error) {
	by := claimant(call)
	n, err := readNode(ctx, call.Clients, t.Name)
	if apierrors.IsNotFound(err) {
		call.Nodes.Drainer.Stop(t.Name, by)
		return executors.DrainStatus{}, new(executors.Refuse(executors.ReasonGone, "Node/%s was deleted while it was drained", t.Name)), nil
	}
	if err != nil {
		return executors.DrainStatus{}, nil, err
	}
	if uid := string(n.UID); uid != t.UID { // made anew under its name: it is cordoned and drained again
		call.Nodes.Drainer.Stop(t.Name, by)
		*t = run.DrainTarget{Name: t.Name, UID: uid}
	}
	ours := n.claimed(by)
	far := call.Clients.Cluster != "" // once the node is uncordoned, the agent of that cluster drops a record that names only plans
	if !n.Spec.Unschedulable && (ours && (t.Cordoned || !n.record.At.Before(m.Since.Truncate(time.Second))) || far && t.Cordoned) {
		call.Nodes.Drainer.Stop(t.Name, by)
		if err := noteUncordoned(ctx, call, n); err != nil {
			return executors.DrainStatus{}, nil, err
		}
		failed := executors.Fail("Uncordoned", "Node/%s was uncordoned by somebody else during the drain: it is left so; %s", t.Name, "cordon it again for another attempt")
		failed.Memory = memory(call, *m)
		return executors.DrainStatus{}, &failed, nil
	}
	requested := n.record != nil && slices.ContainsFunc(n.record.By, func(by string) bool { return !nodes.IsPlan(by) })
	t.Hold(requested && !t.Cordoned, call.Now)
	if t.Yielded {
		if st, goesOn := resume(call, p, t); !goesOn {
			return st, nil, nil
		}
	}
	if !t.Cordoned { // else it has had its turn, maybe under an earlier agent
		if granted, why := turn(call, m, t.Name); !granted {
			return notBegun(call, p, t, why), nil, nil
		}
	}
	if _, err := claim(ctx, call, n, by, call.Now); err != nil {
		return executors.DrainStatus{}, nil, err
	}
	t.Cordoned, t.BlockedAt = !call.DryRun, time.Time{}
	if t.Since.IsZero() { // the wait for a turn does not count against its timeout
		t.Since = call.Now.UTC()
	}
	st := call.Nodes.Drainer.Ensure(ctx, executors.DrainOrder{
		Node: t.Name, NodeUID: t.UID, By: by, Options: p.Options, Since: t.Since,
		Clients: call.Clients, Manager: call.Plan.Manager, DryRun: call.DryRun,
	})
	return yield(call, p, t, st), nil, nil
}

// turn says whether a node may be taken now, or why not.
func turn(call executors.Call, m *run.DrainMemory, node string) (granted bool, why string) {
	if call.Nodes.Turn != nil {
		return call.Nodes.Turn(node)
	}
	for _, before := range m.Nodes {
		switch {
		case before.Name == node:
			return true, ""
		case !before.Drained:
			return false, "waits for its turn after Node/" + before.Name
		}
	}
	return true, ""
}

// yield gives a node's slot to others when its drain is blocked for good and they wait for it. The
// drain stops; the node stays cordoned. The slot is free only once that is recorded.
func yield(call executors.Call, p *plan.DrainProperties, t *run.DrainTarget, st executors.DrainStatus) executors.DrainStatus {
	block := blockOf(drain.Permanent(st.Blocks, p.Options))
	if call.Nodes.Yield == nil || !call.Nodes.Yield(t.Name, block) {
		return st
	}
	call.Nodes.Drainer.Stop(t.Name, claimant(call))
	t.Yielded, t.Why = true, document.Cut(block.Text, 500)
	return yielded(block)
}

// resume says whether a drain that yielded its slot goes on, or its status.
func resume(call executors.Call, p *plan.DrainProperties, t *run.DrainTarget) (executors.DrainStatus, bool) {
	call.Nodes.Drainer.Stop(t.Name, claimant(call))
	if at, ends := drain.Deadline(p.Options, t.Since); t.Cordoned && ends && p.OnTimeout == drain.TimeoutAbort && !call.Now.Before(at) {
		return executors.DrainStatus{Aborted: true, Reason: executors.DrainTimedOut, Message: "the drain was blocked for good, and its time is over"}, false
	}
	if call.Nodes.Resume == nil {
		t.Yielded, t.Why = false, ""
		return executors.DrainStatus{}, true
	}
	granted, why := call.Nodes.Resume(t.Name)
	if granted {
		t.Yielded, t.Why = false, ""
		return executors.DrainStatus{}, true
	}
	text := inTheWay(call, t.Name)
	if text == "" && why == "" { // nobody has looked yet: an earlier agent yielded it
		text = t.Why
	}
	switch {
	case text != "" && !t.Cordoned:
		return notCordoned(call, p, t, text), false
	case text != "":
		return yielded(nodes.Block{Permanent: true, Text: text}), false
	}
	t.BlockedAt = time.Time{}
	st := yielded(nodes.Block{})
	st.Message = "yielded its slot while it was blocked; goes on first"
	if why != "" {
		st.Message += ": " + why
	}
	return st, false
}

// yielded is the status of a drain that yielded its slot.
func yielded(block nodes.Block) executors.DrainStatus {
	return executors.DrainStatus{Reason: executors.DrainBlocked, Message: nodes.YieldedText(block), Blocks: []drain.Block{{Permanent: true, Why: block.Text}}}
}

func blockedForGood(st executors.DrainStatus) bool {
	return slices.ContainsFunc(st.Blocks, func(b drain.Block) bool { return b.Permanent })
}

// blockOf is what blocks a drain for good.
func blockOf(lasting []drain.Block) nodes.Block {
	texts := make([]string, len(lasting))
	for i, b := range lasting {
		texts[i] = b.String()
	}
	return nodes.Block{Permanent: len(texts) > 0, Text: strings.Join(texts, "; ")}
}

// notBegun is the status of a drain that has not begun: it waits for its turn, or pods that never
// leave block it, and the node is not cordoned for that. The node of a rollout has a slot already,
// which others may have meanwhile.
func notBegun(call executors.Call, p *plan.DrainProperties, t *run.DrainTarget, why string) executors.DrainStatus {
	text := inTheWay(call, t.Name)
	t.Why = document.Cut(text, 500)
	if t.Name == call.Nodes.Current && call.Nodes.Yield != nil {
		t.Yielded = call.Nodes.Yield(t.Name, nodes.Block{Permanent: text != "", Text: text})
	}
	if text != "" {
		return notCordoned(call, p, t, text)
	}
	t.BlockedAt = time.Time{}
	return executors.DrainStatus{Reason: executors.DrainWorking, Message: cmp.Or(why, "waits for its turn")}
}

// inTheWay is what a look at the pods of a node found that never leaves.
func inTheWay(call executors.Call, node string) string {
	if call.Nodes.Blocked == nil {
		return ""
	}
	return call.Nodes.Blocked(node)
}

// notCordoned is the status of a drain that is blocked before its cordon. The timeout of one that aborts
// counts from when that was first found.
func notCordoned(call executors.Call, p *plan.DrainProperties, t *run.DrainTarget, text string) executors.DrainStatus {
	t.Block(p.Options, call.Now)
	at, aborts := t.GivenUpAt(p.Options)
	if aborts && !call.Now.Before(at) {
		return executors.DrainStatus{Aborted: true, Reason: executors.DrainTimedOut, Message: "the drain was blocked for good before its cordon, and its time is over: " + text}
	}
	text = nodes.BlockedText(nodes.Block{Permanent: true, Text: text})
	if aborts {
		text += "; given up at " + at.UTC().Format(time.RFC3339)
	}
	return executors.DrainStatus{Reason: executors.DrainBlocked, Message: text, Blocks: []drain.Block{{Permanent: true, Why: text}}}
}

// summary is the combined status of a step's drains.
type summary struct {
	statuses []executors.DrainStatus
	said     []string
	outputs  map[string]any
	done     int
	aborted  bool
	denied   string
	right    *authorizationv1.ResourceAttributes // that denied speaks of
}

func (s *summary) add(node string, st executors.DrainStatus) {
	s.statuses = append(s.statuses, st)
	text := "Node/" + node + ": " + st.Message
	switch {
	case st.Aborted:
		s.aborted = true
		s.said = slices.Insert(s.said, 0, text)
	case st.Done:
		s.done++
		s.said = append(s.said, text)
	default:
		s.said = slices.Insert(s.said, 0, text)
	}
	if st.Reason == executors.DrainForbidden && s.denied == "" {
		s.denied, s.right = text, st.Right
	}
	if s.outputs == nil {
		s.outputs = map[string]any{}
	}
	s.outputs[node] = st.Outcome
}

// conclude ends the step once every drain has ended.
func (e Drains) conclude(ctx context.Context, call executors.Call, p *plan.DrainProperties, m run.DrainMemory, all summary) (executors.Outcome, error) {
	switch {
	case all.denied != "":
		return e.denied(ctx, call, m, all), nil
	case all.aborted:
		return e.giveUp(call, m, all), nil
	case all.done < len(all.statuses):
		return executors.Outcome{
			State: executors.NotYet, Reason: "Draining", Memory: memory(call, m), WakeAt: m.GivenUpBefore(call.Now.Add(relook), p.Options),
			Message: document.Cut(joined(all.said), document.MaxMessage),
		}, nil
	}
	e.stop(call, m)
	out := api.Done("%s", joined(all.said))
	out.Memory = memory(call, m)
	out.Outputs = map[string]any{"nodes": bounded(all.outputs)}
	for i, st := range all.statuses {
		if !call.DryRun {
			out.Changed = append(out.Changed, changeOf(m.Nodes[i].Name, document.Cut("drained: "+st.Outcome.String(), 250)))
		}
		if left := st.Outcome.Left; left > 0 && p.OnTimeout != drain.TimeoutSkip {
			failed := executors.Fail(executors.DrainTimedOut, "%s", joined(all.said))
			failed.Outputs = out.Outputs
			return failed, nil
		}
	}
	return out, nil
}

// denied decides about a drain that the API server refuses. The drains keep asking meanwhile: a
// right that comes in time is no failure. Where an access review does not confirm that the right is
// missing, the meaning of the refusal is not known.
func (e Drains) denied(ctx context.Context, call executors.Call, m run.DrainMemory, all summary) executors.Outcome {
	out := executors.Refuse(executors.ReasonForbidden, "%s", all.denied)
	if all.right != nil {
		if may, err := executors.Allowed(ctx, call.Clients.Kube, *all.right); err != nil || may {
			out.State, out.Permanent, out.WakeAt = executors.NotYet, false, call.Now.Add(relook)
		}
	}
	out.Memory = memory(call, m)
	return out
}

// bounded limits what a step's outputs hold: beyond fifty nodes, only the numbers.
func bounded(outputs map[string]any) any {
	const most = 50
	if len(outputs) > most {
		return len(outputs)
	}
	return outputs
}

// giveUp ends every drain of the step, and records that it does. Without the record, an abort that is
// cut off would be taken up as a drain, and cordon again what it had given back.
func (e Drains) giveUp(call executors.Call, m run.DrainMemory, all summary) executors.Outcome {
	e.stop(call, m)
	m.Aborting = &run.DrainAbort{Message: joined(all.said)}
	if b, err := json.Marshal(bounded(all.outputs)); err == nil && len(b) <= run.MaxStepOutput {
		m.Aborting.Nodes = b
	}
	return executors.Outcome{State: executors.Record, Memory: memory(call, m), Message: document.Cut(m.Aborting.Message, document.MaxMessage)}
}

// abort undoes our cordons.
func (e Drains) abort(ctx context.Context, call executors.Call, m run.DrainMemory) (executors.Outcome, error) {
	e.stop(call, m)
	undone := "nothing was cordoned"
	for i, t := range m.Nodes {
		if t.Cordoned {
			undone = "our cordon is undone"
		}
		m.Nodes[i].Cordoned = false
		n, err := readNode(ctx, call.Clients, t.Name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			_, _, err = release(ctx, call, n, claimant(call))
		}
		if err != nil {
			return executors.Outcome{}, err
		}
	}
	out := executors.Refuse(executors.DrainTimedOut, "%s; %s", document.Cut(m.Aborting.Message, document.MaxMessage-100), undone)
	out.Outputs = map[string]any{"nodes": len(m.Nodes)}
	var each map[string]drain.Outcome
	if json.Unmarshal(m.Aborting.Nodes, &each) == nil {
		out.Outputs["nodes"] = each
	}
	m.Aborting = nil
	out.Memory = memory(call, m)
	return out, nil
}

// Stop ends the drains of a step. The nodes stay cordoned.
func (e Drains) Stop(_ context.Context, call executors.Call) error {
	if m, read := remembered(call); read {
		e.stop(call, m)
	}
	return nil
}

func (e Drains) stop(call executors.Call, m run.DrainMemory) {
	for _, t := range m.Nodes {
		call.Nodes.Drainer.Stop(t.Name, claimant(call))
	}
}
