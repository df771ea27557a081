package kube

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/rest"
)

// answer is a list as the API server encodes it.
func answer(t *testing.T, items ...metav1.PartialObjectMetadata) string {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	list := &metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "300"}, Items: items,
	}
	var out strings.Builder
	if err := protobuf.NewSerializer(scheme, scheme).Encode(list, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestMetadataInProtobuf(t *testing.T) {
	created := metav1.NewTime(time.Date(2026, 11, 29, 7, 0, 0, 0, time.UTC))
	early := metav1.NewTime(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC))
	full := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Namespace: "shop", UID: "uid", ResourceVersion: "5", Generation: 300, CreationTimestamp: created,
		Labels:          map[string]string{"maint.dev/kind": "plan", "empty": ""},
		Annotations:     map[string]string{"maint.dev/pause": "true", "ünïcode": "ja\n", lastApplied: "much"},
		OwnerReferences: []metav1.OwnerReference{{Name: "b"}}, Finalizers: []string{"f"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)}},
	}}
	want := metav1.ObjectMeta{
		Name: "a", Namespace: "shop", CreationTimestamp: metav1.Unix(created.Unix(), 0),
		Labels: map[string]string{"maint.dev/kind": "plan", "empty": ""}, Annotations: map[string]string{"maint.dev/pause": "true", "ünïcode": "ja\n"},
	}
	whole := answer(t, full)
	for name, c := range map[string]struct {
		status int
		body   string
		want   []metav1.ObjectMeta
		err    string
	}{
		"one with all that there is": {200, whole, []metav1.ObjectMeta{want}, ""},
		"two":                        {200, answer(t, full, full), []metav1.ObjectMeta{want, want}, ""},
		"none":                       {200, answer(t), nil, ""},
		"one of before the epoch": {
			200, answer(t, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "b", CreationTimestamp: early}}),
			[]metav1.ObjectMeta{{Name: "b", CreationTimestamp: metav1.Unix(early.Unix(), 0), Labels: map[string]string{}, Annotations: map[string]string{}}},
			"",
		},
		"cut off":       {200, whole[:len(whole)-40], nil, "decode protobuf"},
		"no protobuf":   {200, `{"kind":"PartialObjectMetadataList"}`, nil, "did not answer with metadata"},
		"a wrong field": {200, protobufMagic + "\x07", nil, "decode protobuf"},
		"a wrong item":  {200, protobufMagic + "\x12\x02\x12\x05", nil, "decode protobuf"},
		"a long number": {200, protobufMagic + "\x08" + strings.Repeat("\xff", 11), nil, "decode protobuf"},
		"a time that is text": {
			200, protobufMagic + "\x12\x0a\x12\x08\x0a\x06\x42\x04\x0a\x02no",
			[]metav1.ObjectMeta{{Labels: map[string]string{}, Annotations: map[string]string{}}},
			"",
		},
		"refused": {403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"not you"}`, nil, "not you"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked *http.Request
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r
				w.Header().Set("Content-Type", map[bool]string{true: runtime.ContentTypeProtobuf, false: "application/json"}[c.status == 200])
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			k, err := NewBasic(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			got, err := NewCached(k.CoreV1().RESTClient()).Metadata(t.Context(), "configmaps", "shop", Some{Selector: "maint.dev/kind=plan", Name: "orders"})
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); err == nil && diff != "" {
				t.Error(diff)
			}
			if q := asked.URL.Query(); q.Get("labelSelector") != "maint.dev/kind=plan" || q.Get("fieldSelector") != "metadata.name=orders" || q.Get("resourceVersion") != "0" || !strings.Contains(asked.Header.Get("Accept"), "as=PartialObjectMetadataList") {
				t.Errorf("asked %s, as %s", asked.URL, asked.Header.Get("Accept"))
			}
		})
	}
}
