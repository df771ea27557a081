package flow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Lister executes the part of a for-each that reads the cluster: which objects it takes, and
// whether the until condition holds for completed batches. It needs list on the kind, and with
// until also watch and get. The steps of the loop act on the objects.
type Lister struct{}

// maxItemBytes limits the size of the item names in a run.
const maxItemBytes = 200 << 10

// Pass lists once, and later checks whether until holds.
func (Lister) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.ForEachProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if call.Recorded.ItemKind != "" { // an expression may yield another by now
		p.APIVersion, p.Kind = call.Recorded.ItemVersion, call.Recorded.ItemKind
	} else if out, is := invalid(plan.TypeForEach, p); is {
		return out
	}
	from, err := selectionOf(call, p)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if call.Recorded.Listed {
		return from.holds(ctx, call, p)
	}
	most := plan.MaxItems
	if p.When != "" {
		most = mostAsked
	}
	var list []metav1.ObjectMeta
	n, err := from.Each(ctx, from.selector, most, func(u *unstructured.Unstructured) error {
		is, err := wanted(ctx, call, p.When, u)
		if err != nil {
			return err
		}
		if is {
			list = append(list, identity(u))
		}
		return ctx.Err()
	})
	switch {
	case err != nil:
		return api.Outcome(ctx, call, err)
	case n > most:
		return executors.Refuse("TooMany", "there are more than %d objects to look at: narrow the selector", most)
	}
	out := from.take(call, p, list)
	if p.When != "" && out.Listing.Listed {
		out.Message = fmt.Sprintf("takes %d of %d of kind %s", len(list), n, from.Kind.Kind)
	}
	return out
}

// mostAsked is how many objects a for-each asks its when about (a guess: five times as many as it
// takes).
const mostAsked = 5 * plan.MaxItems

// invalid is the outcome of properties that an expression made so; lint has seen all others.
func invalid(stepType string, p any) (out executors.Outcome, is bool) {
	kind, _ := plan.StepTypeNamed(stepType)
	kind.Check(p, func(at, format string, args ...any) {
		if !is {
			out, is = executors.Refuse("BadProperties", "%s: %s", at, fmt.Sprintf(format, args...)), true
		}
	})
	return out, is
}

// wanted says whether when holds for an object. An expression that cannot be evaluated is an error:
// whether such an object is meant is not known.
func wanted(ctx context.Context, call executors.Call, when string, u *unstructured.Unstructured) (bool, error) {
	if when == "" {
		return true, nil
	}
	is, err := executors.Holds(ctx, when, map[string]any{"each": run.WithoutSecrets(u.Object)})
	if err != nil && ctx.Err() == nil {
		return false, api.Refuse("BadCondition", "when, for %s: %s", itemOf(call, identity(u)).Segment(), err)
	}
	return is, err
}

// identity is what a loop needs of an object to put it in order.
func identity(u *unstructured.Unstructured) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(), CreationTimestamp: u.GetCreationTimestamp()}
}

// selection is the objects of one kind that a selector picks.
type selection struct {
	api.Object
	selector string
}

func selectionOf(call executors.Call, p *plan.ForEachProperties) (s selection, err error) {
	ref := plan.ResourceRef{APIVersion: p.APIVersion, Kind: p.Kind, Namespace: strings.TrimSuffix(p.Namespace, "*")}
	if s.Object, err = api.Resolve(call, ref); err != nil {
		return s, err
	}
	if p.Namespace == "*" {
		s.Object = s.AllNamespaces(call)
	}
	if p.Selector != nil {
		s.selector, err = api.Selector(*p.Selector)
	}
	return s, err
}

// take is the objects in the order of the loop.
func (s selection) take(call executors.Call, p *plan.ForEachProperties, list []metav1.ObjectMeta) executors.Outcome {
	if len(list) > plan.MaxItems {
		return executors.Refuse("TooMany", "picks more than %d objects: narrow the selector", plan.MaxItems)
	}
	order(list, p.Order)
	out := executors.Outcome{
		State:   executors.Record,
		Listing: executors.Listing{Listed: true, ItemVersion: s.Kind.GroupVersion().String(), ItemKind: s.Kind.Kind, Items: make([]run.Item, len(list))},
		Message: fmt.Sprintf("takes %d of kind %s", len(list), s.Kind.Kind),
	}
	size := 0
	for i, o := range list {
		out.Listing.Items[i] = itemOf(call, o)
		size += len(out.Listing.Items[i].Segment())
	}
	if size > maxItemBytes {
		return executors.Refuse("TooMany", "the names of the %d objects have %d bytes; a run keeps %d: narrow the selector", len(list), size, maxItemBytes)
	}
	return out
}

// itemOf is what a run keeps of an object.
func itemOf(call executors.Call, o metav1.ObjectMeta) run.Item {
	item := run.Item{Name: o.Name, UID: string(o.UID)}
	if o.Namespace != call.Plan.Namespace {
		item.Namespace = o.Namespace
	}
	return item
}

// asListed keeps the order of the list.
const asListed = "as-listed"

func order(list []metav1.ObjectMeta, by string) {
	if by == asListed {
		return
	}
	slices.SortStableFunc(list, func(a, b metav1.ObjectMeta) int {
		age := a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
		if by == "newest" {
			age = -age
		}
		if by != "oldest" && by != "newest" {
			age = 0
		}
		if age != 0 {
			return age
		}
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
}

// holds says whether until is true for all items of completed batches. Items that were deleted or
// replaced since are skipped.
func (s selection) holds(ctx context.Context, call executors.Call, p *plan.ForEachProperties) executors.Outcome {
	if err := expr.CheckBool(p.Until, "object"); err != nil && !call.DryRun { // only expressions with templates: lint checks the others
		return executors.Refuse("BadCondition", "until: %s", err)
	}
	done := map[types.UID]bool{}
	for _, item := range call.Recorded.Items {
		done[types.UID(item.UID)] = true
	}
	picked := map[types.UID]answer{} // before the objects themselves can be dropped
	if _, err := s.Each(ctx, s.selector, plan.MaxItems, func(u *unstructured.Unstructured) error {
		if done[u.GetUID()] && !call.DryRun {
			picked[u.GetUID()] = ask(ctx, p.Until, u)
		}
		return ctx.Err()
	}); err != nil {
		return api.Outcome(ctx, call, err)
	}
	if call.DryRun {
		return api.Done("dry run: would wait until %s holds for %d objects", p.Until, len(call.Recorded.Items))
	}
	var found look
	for _, item := range call.Recorded.Items {
		a, is := picked[types.UID(item.UID)]
		if !is { // its steps changed its labels, so it is read by name
			live, err := s.live(ctx, call, item)
			if err != nil {
				return api.Outcome(ctx, call, err)
			}
			if live == nil {
				continue
			}
			a = ask(ctx, p.Until, live)
		}
		found.at(item.Segment(), a)
	}
	if err := ctx.Err(); err != nil {
		return api.Outcome(ctx, call, err)
	}
	if len(found.not) == 0 {
		return api.Done("%s holds for %d objects", p.Until, len(call.Recorded.Items))
	}
	return s.wait(ctx, call, found.message(p.Until, len(call.Recorded.Items)))
}

// answer is the result of until for an object.
type answer struct {
	holds bool
	err   error
}

func ask(ctx context.Context, until string, u *unstructured.Unstructured) answer {
	ok, err := executors.Holds(ctx, until, map[string]any{"object": run.WithoutSecrets(u.Object)})
	return answer{holds: ok, err: err}
}

// look is the result for the objects of completed batches.
type look struct {
	not    []string // until is not true for them
	broken []string // those of them for which it cannot be evaluated
	why    error    // for the first of broken
}

// at notes one object. An expression that cannot be evaluated may refer to a field that is not
// there yet, or never will be: the step waits, and says so.
func (l *look) at(name string, a answer) {
	if a.err != nil {
		l.broken = append(l.broken, name)
		if l.why == nil {
			l.why = a.err
		}
	}
	if a.err != nil || !a.holds {
		l.not = append(l.not, name)
	}
}

func (l *look) message(until string, of int) string {
	text := fmt.Sprintf("%s does not hold yet for %d of %d: %s", until, len(l.not), of, few(l.not))
	if l.why != nil {
		text += fmt.Sprintf("; it cannot be evaluated for %s (of %s: %s)", few(l.broken), l.broken[0], l.why)
	}
	return document.Cut(text, document.MaxMessage)
}

// live is the current object of an item.
func (s selection) live(ctx context.Context, call executors.Call, item run.Item) (*unstructured.Unstructured, error) {
	ref := plan.ResourceRef{APIVersion: s.Kind.GroupVersion().String(), Kind: s.Kind.Kind, Name: item.Name, Namespace: item.Namespace}
	o, err := api.Resolve(call, ref)
	if err != nil {
		return nil, err
	}
	live, err := o.Get(ctx, "")
	switch {
	case api.IsMissing(err):
		return nil, nil //nolint:nilnil // a deleted item is an answer
	case err != nil:
		return nil, err
	case string(live.GetUID()) != item.UID:
		return nil, nil //nolint:nilnil // a replaced item counts as deleted
	}
	return live, nil
}

func few(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// lookAgain is the pause between looks at what a watch with a selector does not show: objects that
// left the selection.
const lookAgain = 30 * time.Second

// Every look reads all objects again: the pause between two looks grows with their number (guesses:
// the first is not noticed; the second is short compared with a change of so many objects).
const (
	lookCosts    = 5 * time.Millisecond // for each object
	longestPause = 2 * time.Second
)

func (s selection) wait(ctx context.Context, call executors.Call, why string) executors.Outcome {
	if err := api.MayWatch(ctx, call, s.Action("watch", "")); err != nil {
		return api.Outcome(ctx, call, err)
	}
	w := s.Watch(s.selector)
	w.Every = min(time.Duration(len(call.Recorded.Items))*lookCosts, longestPause)
	out := api.Waiting(w, "%s", why)
	out.WakeAt = call.Now.Add(lookAgain)
	return out
}
