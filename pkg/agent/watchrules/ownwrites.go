package watchrules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/watchrule"
)

// doubtful is for how long after a lost answer the write may still come true (a
// guess: what the API server itself gives a request).
const doubtful = time.Minute

// writesOf marks what is written with a context as the writes of a plan.
type writesOf struct{}

// WritesFor lets a context speak for a plan, where no run does.
func (r *Controller) WritesFor(ctx context.Context, k types.NamespacedName) context.Context {
	return context.WithValue(ctx, writesOf{}, k)
}

// Listen listens to the answers that writes of a plan's runs get: a state that one
// of them made is no event of the plan. Whoever wrote gets the answer after it
// was taken in, so that nothing can come of it before.
func (r *Controller) Listen(w client.Account, run string, next http.RoundTripper) http.RoundTripper {
	return client.RoundTripper(func(req *http.Request) (*http.Response, error) {
		wp := r.writer(req, w, run)
		if wp != nil {
			wp.mu.Lock()
			wp.tracker.BeginWrite()
			wp.mu.Unlock()
		}
		resp, err := next.RoundTrip(req)
		now := r.writer(req, w, run) // an agent that goes on with a run may write before it takes up the plan
		if wp == nil && now == nil {
			return resp, err
		}
		objects, lost := answerOf(req, resp, err)
		if wp != nil {
			r.took(wp, askOf(req), objects, lost)
			r.landed(wp)
		}
		if now != nil && now != wp {
			r.took(now, askOf(req), objects, lost)
		}
		return resp, err
	})
}

// writer is the watched plan that a request writes for, if it does.
func (r *Controller) writer(req *http.Request, w client.Account, run string) *subscription {
	if req.Method == http.MethodGet || req.Method == http.MethodHead || req.URL.Query().Get("dryRun") != "" {
		return nil
	}
	for _, stream := range []string{"/exec", "/attach", "/portforward", "/proxy"} { // these change no object, and may take long
		if strings.HasSuffix(req.URL.Path, stream) {
			return nil
		}
	}
	k, ok := req.Context().Value(writesOf{}).(types.NamespacedName)
	if !ok && run != "" {
		l := r.Runs.Live(types.NamespacedName{Namespace: w.Namespace, Name: run})
		if l == nil {
			return nil
		}
		k = l.PlanKey()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.plans[k]
}

func (r *Controller) took(wp *subscription, ask ask, objects []map[string]any, lost bool) {
	wp.mu.Lock()
	for _, o := range objects {
		u := &unstructured.Unstructured{Object: o}
		if ask.removes {
			wp.tracker.Removed(string(u.GetUID()))
		}
		s := ruleObjectOf(u).asObservation()
		if !ask.isNoop(s, annotations.PlanManager(wp.key.Namespace, wp.key.Name)) {
			wp.tracker.NoteWrite(u.GetAPIVersion(), u.GetKind(), s)
		}
	}
	if lost {
		wp.doubt = r.Now().Add(doubtful)
		wp.tracker.SetUncertainty(watchrule.DoubtLost)
		if ask.removes && ask.uid != "" {
			wp.tracker.Removing(ask.uid)
		}
	}
	wp.mu.Unlock()
}

// landed ends a write that was begun.
func (r *Controller) landed(wp *subscription) {
	wp.mu.Lock()
	waits := wp.tracker.EndWrite()
	wp.mu.Unlock()
	if waits {
		r.Plans.Add(wp.key)
	}
}

// ask is what a write says of the object that it is for.
type ask struct {
	removes, applies bool
	uid              string
	read             uint64 // the version that it is bound to
}

func askOf(req *http.Request) ask {
	out := ask{removes: req.Method == http.MethodDelete, applies: strings.HasPrefix(req.Header.Get("Content-Type"), string(types.ApplyPatchType))}
	if req.GetBody == nil {
		return out
	}
	body, err := req.GetBody()
	if err != nil {
		return out
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(body)
	var said any
	if err != nil || json.Unmarshal(text, &said) != nil {
		return out // protobuf, or nothing: it does not tell
	}
	switch said := said.(type) {
	case map[string]any:
		part := "metadata"
		if out.removes {
			part = "preconditions"
		}
		out.uid, _, _ = unstructured.NestedString(said, part, "uid")
		version, _, _ := unstructured.NestedString(said, part, "resourceVersion")
		out.read = informer.Version(version)
	case []any: // a JSON patch
		for _, op := range said {
			op, _ := op.(map[string]any)
			if version, ok := op["value"].(string); ok && op["path"] == "/metadata/resourceVersion" {
				out.read = informer.Version(version)
			}
		}
	}
	return out
}

// isNoop says whether an answer is that to a write which found all as it wanted
// it: the state is whoever's it was, and may be a person's change that nobody has
// seen yet. An apply that is bound to no version, and did change something, has
// left its time.
func (a ask) isNoop(s watchrule.Observation, mine string) bool {
	if a.read != 0 {
		return s.Version == a.read
	}
	var ours, theirs int64
	for _, w := range s.Writers {
		switch {
		case w.Manager == mine:
			ours = max(ours, w.At)
		case w.Subresource != "status":
			theirs = max(theirs, w.At)
		}
	}
	return a.applies && ours < theirs
}

// answerOf reads the objects in the answer to a write. lost says that nobody knows
// whether anything was written.
func answerOf(req *http.Request, resp *http.Response, err error) (objects []map[string]any, lost bool) {
	if err != nil {
		return nil, !errors.Is(err, client.ErrFenced)
	}
	if resp.StatusCode >= http.StatusInternalServerError {
		return nil, true
	}
	if resp.StatusCode < http.StatusOK || resp.StatusCode >= http.StatusMultipleChoices {
		return nil, false
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
		return nil, true
	}
	o, err := decodeAnswer(resp.Header.Get("Content-Type"), body)
	if err != nil {
		return nil, true
	}
	return objectsIn(o, req.Method), false
}

// failing hands on what went wrong with a body after what could be read of it.
type failing struct{ err error }

// Read is io.Reader's.
func (f failing) Read([]byte) (int, error) { return 0, f.err }

// decodeAnswer reads JSON, and the protobuf of built-in kinds.
func decodeAnswer(kind string, body []byte) (map[string]any, error) {
	if !strings.Contains(kind, "protobuf") {
		var o map[string]any
		if err := json.Unmarshal(body, &o); err != nil {
			return nil, fmt.Errorf("read the answer to a write: %w", err)
		}
		return o, nil
	}
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("read the answer to a write: %w", err)
	}
	return slimAnswer(o), nil
}

// slimAnswer is what is needed of a typed object: its kind stays out, so that
// nobody takes it for the object as a watch shows it.
func slimAnswer(o runtime.Object) map[string]any {
	if status, ok := o.(*metav1.Status); ok {
		out := map[string]any{"kind": "Status"}
		if status.Details != nil {
			out["details"] = map[string]any{"uid": string(status.Details.UID)}
		}
		return out
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return map[string]any{}
	}
	return map[string]any{"metadata": map[string]any{"uid": string(m.GetUID()), "name": m.GetName(), "namespace": m.GetNamespace(), "resourceVersion": m.GetResourceVersion()}}
}

// objectsIn are the objects that an answer speaks of: itself, the items of a list,
// or what a Status says was deleted.
func objectsIn(o map[string]any, method string) []map[string]any {
	if o["kind"] == "Status" {
		uid, _, _ := unstructured.NestedString(o, "details", "uid")
		if uid == "" || method != http.MethodDelete {
			return nil
		}
		return []map[string]any{{"metadata": map[string]any{"uid": uid}}}
	}
	if items, ok := o["items"].([]any); ok {
		var out []map[string]any
		for _, item := range items {
			if m, ok := item.(map[string]any); ok {
				out = append(out, m)
			}
		}
		return out
	}
	if uid, _, _ := unstructured.NestedString(o, "metadata", "uid"); uid == "" {
		return nil
	}
	return []map[string]any{o}
}
