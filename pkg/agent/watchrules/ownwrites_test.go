package watchrules

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/watchrule"
)

// protobufOf is an object as a typed client is sent it.
func protobufOf(t *testing.T, o runtime.Object) string {
	t.Helper()
	var b bytes.Buffer
	codec := scheme.Codecs.EncoderForVersion(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), corev1.SchemeGroupVersion)
	if err := codec.Encode(o, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func answerWith(pairs ...any) []map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return []map[string]any{{"metadata": m}}
}

// What a run wrote is read off the answer, whatever it looks like; what cannot be
// read leaves a doubt.
func TestOwnWritesAreReadOffTheirAnswers(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", UID: "u", ResourceVersion: "7"}}
	gone := &metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{UID: "u"}}
	for name, c := range map[string]struct {
		method, kind, body string
		status             int
		err                error
		want               []map[string]any
		lost               bool
	}{
		"an object as JSON":       {method: "PATCH", kind: "application/json", body: `{"metadata":{"uid":"u","resourceVersion":"7"}}`, want: answerWith("uid", "u", "resourceVersion", "7")},
		"an object as protobuf":   {method: "POST", kind: runtime.ContentTypeProtobuf, body: protobufOf(t, pod), want: answerWith("uid", "u", "name", "p", "namespace", "n", "resourceVersion", "7")},
		"a deletion as JSON":      {method: "DELETE", kind: "application/json", body: `{"kind":"Status","details":{"uid":"u"}}`, want: answerWith("uid", "u")},
		"a deletion as protobuf":  {method: "DELETE", kind: runtime.ContentTypeProtobuf, body: protobufOf(t, gone), want: answerWith("uid", "u")},
		"a deletion of many":      {method: "DELETE", kind: "application/json", body: `{"kind":"AppList","items":[{"metadata":{"uid":"u"}}]}`, want: answerWith("uid", "u")},
		"an answer of no object":  {method: "POST", kind: "application/json", body: `{"kind":"SelfSubjectAccessReview","metadata":{}}`},
		"a refusal":               {method: "PATCH", status: 409, kind: "application/json", body: `{"kind":"Status"}`},
		"a server that fell over": {method: "PATCH", status: 504, kind: "application/json", body: `{}`, lost: true},
		"a connection that broke": {method: "PATCH", err: errors.New("reset"), lost: true},
		"a write that was held":   {method: "PATCH", err: client.ErrFenced},
		"half an answer":          {method: "PATCH", kind: "application/json", body: `{"metadata":`, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequest(c.method, "https://example.org/api/v1/namespaces/n/pods/p", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp := &http.Response{StatusCode: max(c.status, 200), Header: http.Header{"Content-Type": {c.kind}}, Body: io.NopCloser(bytes.NewBufferString(c.body))}
			got, lost := answerOf(req, resp, c.err)
			if diff := cmp.Diff(c.want, got); diff != "" || lost != c.lost {
				t.Errorf("lost: %t\n%s", lost, diff)
			}
			if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != c.body {
				t.Errorf("whoever wrote is left with %q, %v", rest, err)
			}
		})
	}
}

// A write that found all as it wanted it made nothing: what its answer shows may
// be a person's change.
func TestAWriteInVainIsNobodysState(t *testing.T) {
	const merge, apply, patch = "application/merge-patch+json", "application/apply-patch+yaml", "application/json-patch+json"
	for name, c := range map[string]struct {
		method, kind, body string
		ours               int64
		want               bool
	}{
		"a merge that changed something":      {method: "PATCH", kind: merge, body: `{"metadata":{"uid":"u","resourceVersion":"6"}}`},
		"a merge that changed nothing":        {method: "PATCH", kind: merge, body: `{"metadata":{"uid":"u","resourceVersion":"7"}}`, want: true},
		"a JSON patch that changed something": {method: "PATCH", kind: patch, body: `[{"op":"replace","path":"/metadata/resourceVersion","value":"6"}]`},
		"a JSON patch that changed nothing":   {method: "PATCH", kind: patch, body: `[{"op":"replace","path":"/metadata/resourceVersion","value":"7"}]`, want: true},
		"a replacement that changed nothing":  {method: "PUT", kind: "application/json", body: `{"metadata":{"resourceVersion":"7"}}`, want: true},
		"a bound apply that changed nothing":  {method: "PATCH", kind: apply, body: `{"metadata":{"resourceVersion":"7"}}`, ours: 9, want: true},
		"an apply that changed something":     {method: "PATCH", kind: apply, body: `{"metadata":{}}`, ours: 9},
		"an apply that changed nothing":       {method: "PATCH", kind: apply, body: `{"metadata":{}}`, ours: 1, want: true},
		"a patch that is bound to nothing":    {method: "PATCH", kind: merge, body: `{"metadata":{}}`, ours: 1},
		"a body that is not read":             {method: "PUT", kind: runtime.ContentTypeProtobuf, body: "k8s\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequest(c.method, "https://example.org/apis/a/v1/namespaces/n/apps/a", bytes.NewBufferString(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", c.kind)
			s := watchrule.Observation{UID: "u", Version: 7, Writers: []watchrule.Writer{{Manager: "maint-p", At: c.ours}, {Manager: "kubectl", At: 5}, {Manager: "controller", Subresource: "status", At: 20}}}
			if got := askOf(req).isNoop(s, "maint-p"); got != c.want {
				t.Errorf("in vain: %t", got)
			}
			if rest, err := io.ReadAll(req.Body); err != nil || string(rest) != c.body {
				t.Errorf("what is sent on is %q, %v", rest, err)
			}
		})
	}
	req, err := http.NewRequest(http.MethodDelete, "https://example.org/apis/a/v1/namespaces/n/apps/a", bytes.NewBufferString(`{"preconditions":{"uid":"u"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := askOf(req); got != (ask{removes: true, uid: "u"}) {
		t.Errorf("a deletion says %+v", got)
	}
}

// An agent that goes on with a run may write before it has taken up the plan, and
// be answered when the plan's watch stands: whose write it was is known then.
func TestAWriteThatBeganBeforeThePlanWasTakenUp(t *testing.T) {
	r, k, rule := New(Config{}), types.NamespacedName{Namespace: "n", Name: "p"}, plan.Watch{APIVersion: "example.org/v1", Kind: "App"}
	tracker, id := watchrule.NewTracker("uid", annotations.PlanManager("n", "p"), annotations.ManagerAgent), plan.RuleID(rule, "")
	tracker.SetRules([]plan.Watch{rule}, "")
	at := func(version uint64, size int64) watchrule.Observation {
		return watchrule.Observation{UID: "u", Namespace: "n", Name: "a", Version: version, Body: run.Body{"spec": map[string]any{"size": size}}}
	}
	wire := r.Listen(client.Account{Namespace: "n", Name: "x"}, "", client.RoundTripper(func(*http.Request) (*http.Response, error) {
		tracker.Observe(id, at(6, 1))
		if _, ok := tracker.Start(id); !ok {
			t.Fatal("the rule does not start")
		}
		tracker.Started(id, true)
		r.plans[k] = &subscription{key: k, tracker: tracker}
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewBufferString(`{"metadata":{"uid":"u","resourceVersion":"7"}}`))}, nil
	}))
	req, err := http.NewRequestWithContext(r.WritesFor(t.Context(), k), http.MethodPatch, "https://example.org/apis/example.org/v1/namespaces/n/apps/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := wire.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	tracker.Observe(id, at(7, 2))
	if seen, _ := tracker.Candidates(evaluator{queue.NewEvaluations(time.Now, nil), "n"}); len(seen) > 0 {
		t.Errorf("the run's own write asks for a run: %+v", seen)
	}
	tracker.Observe(id, at(8, 3))
	if seen, _ := tracker.Candidates(evaluator{queue.NewEvaluations(time.Now, nil), "n"}); len(seen) != 1 {
		t.Errorf("of a person's write after it %d ask for a run", len(seen))
	}
}

// Writes of an earlier agent may come to light after this one has listed, and a
// lost answer's for as long.
func TestWhoseWritesAreInDoubt(t *testing.T) {
	at := time.Date(2026, 1, 5, 1, 0, 0, 0, time.UTC)
	wp := &subscription{early: at.Add(doubtful)}
	for _, c := range []struct {
		lost, now time.Time
		want      watchrule.Uncertainty
	}{
		{now: at, want: watchrule.DoubtEarly},
		{now: at.Add(doubtful), want: watchrule.NoDoubt},
		{lost: at.Add(doubtful), now: at, want: watchrule.DoubtLost},
		{lost: at.Add(2 * doubtful), now: at.Add(doubtful), want: watchrule.DoubtLost},
	} {
		if wp.doubt = c.lost; wp.doubts(c.now) != c.want {
			t.Errorf("at %s: %d, want %d", c.now, wp.doubts(c.now), c.want)
		}
	}
}
