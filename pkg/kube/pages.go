package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

// pageSize is how many objects one request lists (a guess).
const pageSize = 500

// EachOf hands on the objects of a typed list, page by page: a list that is asked for in one
// piece may be larger than what is read of an answer. One page is in memory, and the next is
// asked for meanwhile. An error of see ends it, and is returned as it is.
func EachOf[List, Item runtime.Object](ctx context.Context, list func(context.Context, metav1.ListOptions) (List, error), selector string, see func(Item) error) error {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(ctx, o) })
	pages.PageSize, pages.PageBufferSize, pages.FullListIfExpired = pageSize, 0, false
	return pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: selector}, func(o runtime.Object) error {
		return see(o.(Item)) //nolint:forcetypeassert // a list of Item holds nothing else
	})
}
