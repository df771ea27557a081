package api

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// Apply is one server-side apply.
type Apply struct {
	Body   map[string]any
	Force  bool // take fields from other managers
	DryRun bool
}

// Apply applies as the plan's field manager, and returns the new object, with DryRun the one that
// it would be. It carries the uid and the resourceVersion that were read; without a read object it
// creates.
func (o Object) Apply(ctx context.Context, read *unstructured.Unstructured, a Apply) (*unstructured.Unstructured, error) {
	body := any(a.Body)
	if read != nil {
		var err error
		if body, err = guarded(a.Body, read); err != nil {
			return nil, err
		}
	}
	options := metav1.ApplyOptions{FieldManager: o.manager, Force: a.Force}
	if a.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	after, err := o.client.Apply(ctx, o.Name, &unstructured.Unstructured{Object: body.(map[string]any)}, options)
	return after, Failed(o.Action("patch", ""), err)
}

// Create creates the object.
func (o Object) Create(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	made, err := o.client.Create(ctx, u, metav1.CreateOptions{FieldManager: o.manager})
	return made, Failed(o.Action("create", ""), err)
}

// Delete deletes the object under the given options.
func (o Object) Delete(ctx context.Context, options metav1.DeleteOptions) error {
	return Failed(o.Action("delete", ""), o.client.Delete(ctx, o.Name, options))
}

// mostListed is how many objects List reads (a guess: no step makes as many). The API server of
// another cluster may list them without end.
const mostListed = 10_000

// List reads the objects of the kind and namespace that a selector picks, ordered by namespace and
// name as the API server does. More than mostListed are refused.
func (o Object) List(ctx context.Context, selector string) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	n, err := o.Each(ctx, selector, mostListed, func(u *unstructured.Unstructured) error {
		out = append(out, *u)
		return nil
	})
	if err == nil && n > mostListed {
		return nil, Refuse("TooMany", "there are more than %d %s with the labels %s", mostListed, o.Resource.Resource, selector)
	}
	return out, err
}

// pageSize is how many objects one request of Each lists.
const pageSize = 500

// Each calls a function for the objects that a label selector picks, page by page, so that no more
// than one page is in memory. It stops beyond a limit, and returns how many objects it came to.
func (o Object) Each(ctx context.Context, selector string, most int, see func(*unstructured.Unstructured) error) (int, error) {
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for seen := 0; ; {
		page, err := o.client.List(ctx, options)
		if err != nil {
			return seen, Failed(o.Action("list", ""), err)
		}
		for i := range page.Items {
			if err := see(&page.Items[i]); err != nil {
				return seen, err
			}
		}
		seen += len(page.Items)
		if options.Continue = page.GetContinue(); options.Continue == "" || seen > most {
			return seen, nil
		}
	}
}

// ListNamed are the objects of the same kind and name; without a namespace, those of all
// namespaces.
func (o Object) ListNamed(ctx context.Context) ([]unstructured.Unstructured, error) {
	list, err := o.client.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", o.Name).String()})
	if err != nil {
		return nil, Failed(o.Action("list", ""), err)
	}
	return list.Items, nil
}

// AllNamespaces is the same kind in all namespaces.
func (o Object) AllNamespaces(call executors.Call) Object {
	o.Namespace, o.client = "", call.Clients.Dynamic.Resource(o.Resource)
	return o
}

// Named is another object of the same kind and namespace.
func (o Object) Named(name string) Object {
	o.Name = name
	return o
}

// Watch is what to watch for the next change: the object, or, without a name, all of its kind that
// the selector picks.
func (o Object) Watch(selector string) *executors.Watch {
	return &executors.Watch{Resource: o.Resource, Namespace: o.Namespace, Name: o.Name, Selector: selector}
}

// Selector is a plan's selector in the API's syntax; an empty one picks all.
func Selector(s selector.LabelSelector) (string, error) {
	sel, err := executors.Selector(s)
	if err != nil {
		return "", Refuse(executors.ReasonInvalid, "%s", err)
	}
	return sel, nil
}

// Finish turns the error of a pass into an outcome, where there is one.
func Finish(ctx context.Context, call executors.Call, out executors.Outcome, err error) executors.Outcome {
	if err != nil {
		return Outcome(ctx, call, err)
	}
	return out
}

// Done is the outcome at the end of a step.
func Done(format string, args ...any) executors.Outcome {
	return executors.Outcome{State: executors.Done, Message: document.Cut(fmt.Sprintf(format, args...), document.MaxMessage)}
}

// Waiting is NotYet, to be called again when the watched object changes.
func Waiting(w *executors.Watch, format string, args ...any) executors.Outcome {
	return executors.Outcome{
		State: executors.NotYet, Reason: "Waiting", Watch: w,
		Message: document.Cut(fmt.Sprintf(format, args...), document.MaxMessage),
	}
}

// OwnersOf are the fields that an apply may not change and their owners, from the API server's
// answer; empty for any other error.
func OwnersOf(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			fields = append(fields, strings.TrimPrefix(cause.Field, ".")+" belongs to "+strings.TrimPrefix(cause.Message, "conflict with "))
		}
	}
	return strings.Join(fields, ", ")
}
