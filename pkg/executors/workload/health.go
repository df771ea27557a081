package workload

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// HealthChecker executes the step type health-check: it holds the run until one object, or all that
// are picked, are healthy, and fails when one of them cannot become healthy by waiting. It needs
// get, list and watch on the kind for one object, and list and watch for a selection. It changes
// nothing.
//
// An empty selection is a failure, also that of `all`: absence is not success.
type HealthChecker struct{}

// relook is the pause between looks over several kinds, of which only one can be watched (a guess:
// prompt for people, nothing for an API server).
const relook = 5 * time.Second

// named is how many unhealthy objects a message names.
const named = 5

// selection is what a step checks: objects of one kind or several.
type selection struct {
	kinds    []api.Object // with a name, if it is one object
	selector string
	mixed    bool // workloads of all kinds
}

// checked is one object and its health.
type checked struct {
	object  api.Object
	verdict verdict
}

// Pass checks everything that is picked.
func (HealthChecker) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	out, err := healthPass(ctx, call)
	return api.Finish(ctx, call, out, err)
}

func healthPass(ctx context.Context, call executors.Call) (executors.Outcome, error) {
	s, err := selectionOf(call)
	if err != nil {
		return executors.Outcome{}, err
	}
	var all []checked
	for _, kind := range s.kinds {
		err := s.find(ctx, kind, func(u *unstructured.Unstructured) error {
			v, err := health(ctx, call, kind, u)
			all = append(all, checked{object: kind.Named(u.GetName()), verdict: v})
			return err
		})
		if err != nil {
			return executors.Outcome{}, err
		}
	}
	if len(all) == 0 {
		return executors.Outcome{}, api.Refuse(executors.ReasonNotFound, "nothing is there to be healthy: %s picked no object", s)
	}
	return s.judged(ctx, call, all)
}

func selectionOf(call executors.Call) (selection, error) {
	p, err := api.PropertiesAs[plan.HealthProperties](call)
	if err != nil {
		return selection{}, err
	}
	picked := plan.ObjectSelector{}
	switch {
	case p.Resource != nil:
		o, err := api.Resolve(call, *p.Resource)
		return selection{kinds: []api.Object{o}}, err
	case p.Selector != nil:
		picked = *p.Selector
	case !p.All:
		return selection{}, api.Refuse(executors.ReasonInvalid, "properties: write one of resource, selector and all: true")
	}
	s := selection{mixed: picked.Kind == ""}
	if s.selector, err = api.Selector(picked.Labels()); err != nil {
		return s, err
	}
	refs := []plan.ResourceRef{{APIVersion: picked.APIVersion, Kind: picked.Kind}}
	if s.mixed {
		refs = workloads()
	}
	for _, ref := range refs {
		ref.Namespace = picked.Namespace
		kind, err := api.Resolve(call, ref)
		if err != nil {
			return s, err
		}
		s.kinds = append(s.kinds, kind)
	}
	return s, nil
}

func workloads() []plan.ResourceRef {
	return []plan.ResourceRef{
		{APIVersion: "apps/v1", Kind: "Deployment"},
		{APIVersion: "apps/v1", Kind: "StatefulSet"},
		{APIVersion: "apps/v1", Kind: "DaemonSet"},
		{APIVersion: "batch/v1", Kind: "Job"},
	}
}

func (s selection) String() string {
	kinds := make([]string, len(s.kinds))
	for i, k := range s.kinds {
		kinds[i] = k.Kind.Kind
	}
	text := strings.Join(kinds, ", ")
	if s.selector != "" {
		text += " with the labels " + s.selector
	}
	if n := s.kinds[0].Namespace; n != "" {
		text += " in namespace " + n
	}
	return text
}

// mostChecked is how many objects of a kind are checked (a guess: no namespace has as many). The API
// server of another cluster may list them without end.
const mostChecked = 20_000

// find calls a function for the picked objects of a kind. More than mostChecked are refused.
func (s selection) find(ctx context.Context, kind api.Object, see func(*unstructured.Unstructured) error) error {
	if kind.Name != "" {
		live, err := kind.Get(ctx, "")
		if err != nil {
			return err
		}
		return see(live)
	}
	n, err := kind.Each(ctx, s.selector, mostChecked, func(u *unstructured.Unstructured) error {
		if s.mixed && passing(u) {
			return nil
		}
		return see(u)
	})
	if err == nil && n > mostChecked {
		return api.Refuse("TooMany", "there are more than %d %s; select fewer by labels", mostChecked, kind.Resource.Resource)
	}
	return err
}

// passing is a Job of a CronJob or of a plan's step. It says how one execution went, not whether
// the namespace is healthy; a check that names Jobs includes it.
func passing(u *unstructured.Unstructured) bool {
	if u.GetKind() != "Job" {
		return false
	}
	owner := metav1.GetControllerOf(u)
	return u.GetAnnotations()[annotations.JobOf] != "" || owner != nil && owner.Kind == "CronJob" && strings.HasPrefix(owner.APIVersion, batchv1.GroupName+"/")
}

// judged is the outcome for all objects together.
func (s selection) judged(ctx context.Context, call executors.Call, all []checked) (executors.Outcome, error) {
	var unwell, remarks []string
	var first, broken *checked
	for i, c := range all {
		switch {
		case c.verdict.Well && c.verdict.Why != "":
			remarks = append(remarks, c.object.String()+" "+c.verdict.Why)
		case !c.verdict.Well:
			unwell = append(unwell, c.object.String()+": "+c.verdict.Why)
			if first == nil {
				first = &all[i]
			}
			if broken == nil && c.verdict.Failed != "" {
				broken = &all[i]
			}
		}
	}
	outputs := map[string]any{"healthy": int64(len(all) - len(unwell)), "total": int64(len(all))}
	text := fmt.Sprintf("%d of %d healthy%s", len(all)-len(unwell), len(all), listed("; not yet: ", unwell)+listed("; note: ", remarks))
	switch {
	case broken != nil:
		out := executors.Fail(broken.verdict.Failed, "%s: %s; %s", broken.object, broken.verdict.Why, text)
		out.Outputs = outputs
		return out, nil
	case len(unwell) == 0:
		out := api.Done("%s", text)
		if call.DryRun {
			out = api.Done("dry run: %s", text)
		}
		out.Outputs = outputs
		return out, nil
	case call.DryRun:
		return api.Done("dry run: not waited for: %s", text), nil
	}
	return s.waits(ctx, call, first.object, text)
}

// waits watches one object, or the whole selection of one kind. With more kinds, it watches that of
// the first unhealthy object, and the others are checked in between.
func (s selection) waits(ctx context.Context, call executors.Call, first api.Object, text string) (executors.Outcome, error) {
	watched := first.Named(s.kinds[0].Name)
	if err := api.MayWatch(ctx, call, watched.Action("watch", "")); err != nil {
		return executors.Outcome{}, err
	}
	out := api.Waiting(watched.Watch(s.selector), "%s", text)
	if len(s.kinds) > 1 {
		out.WakeAt = call.Now.Add(relook)
	}
	return out, nil
}

// listed is the beginning of a list after a word, or nothing for an empty one.
func listed(word string, items []string) string {
	if len(items) == 0 {
		return ""
	}
	more := ""
	if n := len(items) - named; n > 0 {
		items, more = items[:named], fmt.Sprintf("; and %d more", n)
	}
	return word + strings.Join(items, "; ") + more
}
