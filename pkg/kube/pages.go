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
	return each(ctx, list, pageSize, metav1.ListOptions{LabelSelector: selector}, see)
}

// FewObjects is how many objects one request lists that tenants may have filled (a guess: a pod
// of 1 MiB may take 10 in memory, and two pages are there at once).
const FewObjects = 8

// EachOfLarge is EachOf with small pages: for objects that tenants write, of which little is kept.
func EachOfLarge[List, Item runtime.Object](ctx context.Context, list func(context.Context, metav1.ListOptions) (List, error), o metav1.ListOptions, see func(Item) error) error {
	return each(ctx, list, FewObjects, o, see)
}

func each[List, Item runtime.Object](ctx context.Context, list func(context.Context, metav1.ListOptions) (List, error), size int64, which metav1.ListOptions, see func(Item) error) error {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(ctx, o) })
	pages.PageSize, pages.PageBufferSize, pages.FullListIfExpired = size, 0, false
	return pages.EachListItem(ctx, which, func(o runtime.Object) error {
		return see(o.(Item)) //nolint:forcetypeassert // a list of Item holds nothing else
	})
}
