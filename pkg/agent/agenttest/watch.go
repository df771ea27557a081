package agenttest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// watcher is the body of an answer that does not end.
type watcher struct {
	request Request
	ctx     context.Context //nolint:containedctx // a body has no other
	cluster *Cluster
	limit   <-chan time.Time // nil: none
	hung    bool             // it says nothing more; under the cluster's lock

	mu     sync.Mutex
	queue  [][]byte
	more   chan struct{} // one place
	closed chan struct{}
	once   sync.Once
	ended  bool
}

// watch opens a watch from the version that the request names.
func (c *Cluster) watch(ctx context.Context, r Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.forbidden(r); err != nil {
		return answerError(err), nil
	}
	w := &watcher{request: r, ctx: ctx, cluster: c, more: make(chan struct{}, 1), closed: make(chan struct{})}
	if seconds, err := strconv.Atoi(first(r.query["timeoutSeconds"])); err == nil && seconds > 0 {
		w.limit = time.After(time.Duration(seconds) * time.Second)
	}
	from, err := strconv.ParseInt(first(r.query["resourceVersion"]), 10, 64)
	if err != nil || from == 0 { // from what is there now
		from = c.version
		for _, u := range c.listed(r) {
			w.send(watch.Added, r.shown(u))
		}
		if first(r.query["sendInitialEvents"]) == "true" {
			w.send(watch.Bookmark, c.endOfList(r))
		}
	}
	for _, made := range c.changes {
		if made.version > from {
			w.deliver(made)
		}
	}
	c.watches[w] = true
	return response(http.StatusOK, w), nil
}

// endOfList is sent after all that there is, where a list is streamed.
func (c *Cluster) endOfList(r Request) any {
	return map[string]any{
		"apiVersion": schema.GroupVersion{Group: r.kind.Group, Version: r.kind.Version}.String(), "kind": r.kind.Kind,
		"metadata": map[string]any{"resourceVersion": strconv.FormatInt(c.version, 10), "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"}},
	}
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// deliver sends a change to a watch that picks the object.
func (w *watcher) deliver(made change) {
	if kind, u := eventFor(w.request, made); u != nil && !w.hung {
		w.send(kind, w.request.shown(u))
	}
}

func (w *watcher) send(kind watch.EventType, object any) {
	line, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		panic(err) // what the cluster holds came from JSON
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, append(line, '\n'))
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// Read is io.Reader's.
func (w *watcher) Read(b []byte) (int, error) {
	for {
		w.mu.Lock()
		if len(w.queue) > 0 {
			n := copy(b, w.queue[0])
			if w.queue[0] = w.queue[0][n:]; len(w.queue[0]) == 0 {
				w.queue = w.queue[1:]
			}
			w.mu.Unlock()
			return n, nil
		}
		ended := w.ended
		w.mu.Unlock()
		if ended {
			return 0, io.EOF
		}
		select {
		case <-w.more:
		case <-w.limit:
			w.mu.Lock()
			w.ended = true
			w.mu.Unlock()
		case <-w.ctx.Done():
			_ = w.Close()
			return 0, w.ctx.Err()
		case <-w.closed:
			return 0, io.EOF
		}
	}
}

// Close is io.Closer's.
func (w *watcher) Close() error {
	w.once.Do(func() { close(w.closed) })
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	delete(w.cluster.watches, w)
	return nil
}
