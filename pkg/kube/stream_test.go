package kube_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// server has two hundred pods, and counts the requests for them.
type server struct {
	cannot error                  // why it streams no lists
	away   error                  // why it lists nothing
	sent   *apierrors.StatusError // in the middle of a stream
	cutOff bool
	asked  int
}

const manyPods = 200

func named(i int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("p", i)}}
}

// List is kube.ListWatcher's.
func (s *server) List(_ context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	s.asked++
	if s.away != nil {
		return nil, s.away
	}
	first := 0
	_, _ = fmt.Sscan(o.Continue, &first)
	page := &corev1.PodList{}
	for i := first; i < min(first+int(o.Limit), manyPods); i++ {
		page.Items = append(page.Items, *named(i))
	}
	if next := first + len(page.Items); next < manyPods {
		page.Continue = fmt.Sprint(next)
	}
	return page, nil
}

// Watch is kube.ListWatcher's.
func (s *server) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	s.asked++
	if s.cannot != nil {
		return nil, s.cannot
	}
	if o.FieldSelector != "spec.nodeName=a" || o.SendInitialEvents == nil || !o.AllowWatchBookmarks {
		return nil, fmt.Errorf("asked %+v", o)
	}
	w := watch.NewFakeWithChanSize(manyPods+5, false)
	for i := range manyPods + 1 {
		w.Add(named(i))
	}
	w.Modify(named(0))
	w.Delete(named(manyPods)) // it left meanwhile
	switch {
	case s.sent != nil:
		w.Error(&s.sent.ErrStatus)
	case s.cutOff:
		w.Stop()
	default:
		w.Action(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
	}
	return w, nil
}

// A list of what tenants may have filled takes one request where the API server streams lists; where
// it cannot, or the account may not watch, it is read in small pages.
func TestAListThatIsReducedTakesOneRequestWhereItIsStreamed(t *testing.T) {
	invalid := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)
	for name, c := range map[string]struct {
		server
		asks int
		want error
	}{
		"it is streamed":                      {asks: 1},
		"the API server streams none":         {server{cannot: invalid}, 1 + manyPods/kube.FewObjects, nil},
		"the account may not watch":           {server{cannot: apierrors.NewForbidden(corev1.Resource("pods"), "", nil)}, 1 + manyPods/kube.FewObjects, nil},
		"its etcd reports no progress":        {server{sent: apierrors.NewInternalError(errors.New("progress notifications are not supported"))}, 1 + manyPods/kube.FewObjects, nil},
		"its cache is behind":                 {server{sent: apierrors.NewTimeoutError("Too large resource version", 1)}, 1 + manyPods/kube.FewObjects, nil},
		"the stream is cut off in the middle": {server{cutOff: true}, 1 + manyPods/kube.FewObjects, nil},
		"the API server is away":              {server{cannot: io.ErrClosedPipe, away: io.ErrUnexpectedEOF}, 2, io.ErrUnexpectedEOF},
	} {
		s := &c.server
		got, err := kube.Reduced(t.Context(), s, metav1.ListOptions{FieldSelector: "spec.nodeName=a"}, func(p *corev1.Pod) string { return p.Name })
		var want []string
		for i := range manyPods {
			want = append(want, named(i).Name)
		}
		if c.want != nil {
			want = nil
		}
		slices.Sort(want)
		slices.Sort(got)
		if !errors.Is(err, c.want) || !slices.Equal(got, want) || s.asked != c.asks {
			t.Errorf("%s: %d objects by %d requests, %v", name, len(got), s.asked, err)
		}
	}
}

// ending is a server that answers nothing until the time of its reader is over.
type ending struct {
	server
	end context.CancelFunc
}

// Watch is kube.ListWatcher's.
func (e *ending) Watch(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	e.asked++
	e.end()
	return nil, ctx.Err()
}

// A reader whose time is over asks for nothing more.
func TestAListWhoseTimeIsOverIsNotAskedForAgain(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	e := &ending{end: end}
	_, err := kube.Reduced(ctx, e, metav1.ListOptions{}, func(p *corev1.Pod) string { return p.Name })
	if !errors.Is(err, context.Canceled) || e.asked != 1 {
		t.Errorf("%d requests, %v", e.asked, err)
	}
}
