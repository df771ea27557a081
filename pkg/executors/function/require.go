package function

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// maxMatches is how many objects one requirement may match (a guess: more hardly fit into a
// request).
const maxMatches = 1000

// fetch reads what the function requires, as the plan's account.
func (c *conversation) fetch(ctx context.Context, wants selectors) (map[string]*fnv1.Resources, error) {
	found := map[string]*fnv1.Resources{}
	for _, name := range wants.sorted() {
		objects, err := c.find(ctx, name, wants[name])
		if err != nil {
			return nil, err
		}
		resources, err := toResources(objects)
		if err != nil {
			return nil, api.Refuse(executors.ReasonInvalid, "requirements.resources.%s: what was found cannot be handed to a function: %s", name, err)
		}
		found[name] = resources
	}
	return found, nil
}

// find reads the objects of one selector. An object that does not exist is no error: the function
// decides what that means.
func (c *conversation) find(ctx context.Context, name string, s *fnv1.ResourceSelector) ([]map[string]any, error) {
	ref := plan.ResourceRef{APIVersion: s.GetApiVersion(), Kind: s.GetKind(), Name: s.GetMatchName(), Namespace: s.GetNamespace()}
	if s.GetMatchLabels() != nil {
		ref.Name = "*" // for the message of an error of Resolve
	}
	if ref.APIVersion == "" || ref.Kind == "" || ref.Name == "" {
		return nil, api.Refuse(executors.ReasonInvalid, "requirements.resources.%s: the %s has to say api_version, kind and one of match_name and match_labels", name, c)
	}
	o, err := api.Resolve(c.call, ref)
	if err != nil {
		return nil, err
	}
	if s.GetMatchLabels() != nil {
		return c.list(ctx, name, o, s.GetMatchLabels().GetLabels())
	}
	live, err := o.Get(ctx, "")
	if api.IsMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []map[string]any{run.WithoutSecrets(live.Object)}, nil
}

func (c *conversation) list(ctx context.Context, name string, o api.Object, match map[string]string) ([]map[string]any, error) {
	picks, err := selector.Exact(match)
	if err != nil {
		return nil, api.Refuse(executors.ReasonInvalid, "requirements.resources.%s: match_labels: %s", name, err)
	}
	o.Name = ""
	var found []unstructured.Unstructured
	size := 0
	picked, err := o.Each(ctx, picks, maxMatches, func(u *unstructured.Unstructured) error {
		text, err := json.Marshal(u.Object)
		if size += len(text); err != nil || size > MaxSize {
			return api.Refuse(executors.ReasonTooLarge, "requirements.resources.%s: its match_labels pick objects of more than %d MiB in all", name, MaxSize>>20)
		}
		found = append(found, *u)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if picked > maxMatches {
		return nil, api.Refuse(executors.ReasonTooLarge, "requirements.resources.%s: its match_labels pick more than %d objects of %s", name, maxMatches, o.Resource.GroupResource())
	}
	slices.SortFunc(found, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	out := make([]map[string]any, len(found))
	for i, item := range found {
		out[i] = run.WithoutSecrets(item.Object)
	}
	return out, nil
}
