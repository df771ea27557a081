package agent

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
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
		"a write that was held":   {method: "PATCH", err: errFenced},
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
