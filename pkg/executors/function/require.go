package function

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// Bounds of what a function may require at once (guesses, but for maxFetched: more does not fit into a
// request, which has each object under two field names).
const (
	maxWanted  = 100         // requirements
	maxMatches = 1000        // objects of one requirement
	maxFetched = MaxSize / 2 // bytes of the objects of all requirements, as they are sent
	maxValues  = 200_000     // their values, which take more memory than their bytes
)

// fetch reads what the function requires, as the plan's account. What it required before is not kept
// meanwhile.
func (c *conversation) fetch(ctx context.Context, wants selectors) (map[string]*fnv1.Resources, error) {
	if len(wants) > maxWanted {
		return nil, api.Refuse("TooMany", "%s has %d requirements, and %d are the most; one with match_labels can pick many objects", c, len(wants), maxWanted)
	}
	c.show(nil)
	found, all := map[string]*fnv1.Resources{}, &fetched{conversation: c}
	for _, name := range wants.sorted() {
		resources, err := all.find(ctx, name, wants[name])
		if err != nil {
			return nil, err
		}
		found[name] = &fnv1.Resources{Items: resources}
	}
	return found, nil
}

// fetched counts the objects of all requirements.
type fetched struct {
	*conversation
	bytes, values int
}

// add counts an object before it is kept, and turns it into what is sent.
func (f *fetched) add(ctx context.Context, name string, object map[string]any) (*fnv1.Resource, error) {
	object = run.WithoutSecrets(object)
	n := values(object)
	if f.values += n; f.values > maxValues {
		return nil, api.Refuse(executors.ReasonTooLarge, "requirements.resources.%s: the objects that the %s requires have more than %d values in all; require fewer objects", name, f, maxValues)
	}
	s, err := structpb.NewStruct(object)
	if err != nil {
		return nil, api.Refuse(executors.ReasonInvalid, "requirements.resources.%s: what was found cannot be handed to a function: %s", name, err)
	}
	out := &fnv1.Resource{Resource: s}
	size := proto.Size(out)
	if f.bytes += size; f.bytes > maxFetched {
		return nil, api.Refuse(executors.ReasonTooLarge, "requirements.resources.%s: the objects that the %s requires have more than %d MiB in all; require fewer objects", name, f, maxFetched>>20)
	}
	return out, f.reserve(ctx, int64(size+n*fieldBytes))
}

// values counts a value and those within it.
func values(of any) int {
	n := 1
	switch of := of.(type) {
	case map[string]any:
		for _, one := range of {
			n += values(one)
		}
	case []any:
		for _, one := range of {
			n += values(one)
		}
	}
	return n
}

// reserve waits for the room that an object takes until the function has answered, no longer than for
// an answer.
func (c *conversation) reserve(ctx context.Context, n int64) error {
	limit := c.timeout(ctx)
	waiting, cancel := context.WithTimeout(ctx, limit.Duration)
	defer cancel()
	switch err := c.room.fetch(waiting, n); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return c.interrupted()
	}
	return &api.Refused{Outcome: executors.Fail("Timeout", "%s: what it requires is large, and within %s there was no room for it beside that of other steps", c, limit)}
}

// find reads the objects of one selector. An object that does not exist is no error: the function
// decides what that means.
func (f *fetched) find(ctx context.Context, name string, s *fnv1.ResourceSelector) ([]*fnv1.Resource, error) {
	ref := plan.ResourceRef{APIVersion: s.GetApiVersion(), Kind: s.GetKind(), Name: s.GetMatchName(), Namespace: s.GetNamespace()}
	if s.GetMatchLabels() != nil {
		ref.Name = "*" // for the message of an error of Resolve
	}
	if ref.APIVersion == "" || ref.Kind == "" || ref.Name == "" {
		return nil, api.Refuse(executors.ReasonInvalid, "requirements.resources.%s: the %s has to say api_version, kind and one of match_name and match_labels", name, f)
	}
	o, err := api.Resolve(f.call, ref)
	if err != nil {
		return nil, err
	}
	if s.GetMatchLabels() != nil {
		return f.list(ctx, name, o, s.GetMatchLabels().GetLabels())
	}
	live, err := o.Get(ctx, "")
	if api.IsMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	resource, err := f.add(ctx, name, live.Object)
	return []*fnv1.Resource{resource}, err
}

// list reads the objects that labels pick, by namespace and name.
func (f *fetched) list(ctx context.Context, name string, o api.Object, match map[string]string) ([]*fnv1.Resource, error) {
	picks, err := selector.Exact(match)
	if err != nil {
		return nil, api.Refuse(executors.ReasonInvalid, "requirements.resources.%s: match_labels: %s", name, err)
	}
	o.Name = ""
	type item struct {
		namespace, name string
		resource        *fnv1.Resource
	}
	var found []item
	picked, err := o.Each(ctx, picks, maxMatches, func(u *unstructured.Unstructured) error {
		resource, err := f.add(ctx, name, u.Object)
		found = append(found, item{u.GetNamespace(), u.GetName(), resource})
		return err
	})
	if err != nil {
		return nil, err
	}
	if picked > maxMatches {
		return nil, api.Refuse(executors.ReasonTooLarge, "requirements.resources.%s: its match_labels pick more than %d objects of %s", name, maxMatches, o.Resource.GroupResource())
	}
	slices.SortFunc(found, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	out := make([]*fnv1.Resource, len(found))
	for i, one := range found {
		out[i] = one.resource
	}
	return out, nil
}
