package run_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func object(edits ...func(map[string]any)) map[string]any {
	o := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a", "namespace": "shop", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": map[string]any{"l": "v"}},
		"data":     map[string]any{"k": strings.Repeat("v", 100)},
	}
	for _, edit := range edits {
		edit(o)
	}
	return o
}

func meta(o map[string]any) map[string]any { return o["metadata"].(map[string]any) }

func size(t *testing.T, v any) int {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return len(b)
}

func TestARunSeesAnObjectAsFarAsItFits(t *testing.T) {
	whole := object()
	head := object(func(o map[string]any) { delete(o, "data"); o["truncated"] = true })
	few := object(func(o map[string]any) {
		delete(o, "data")
		delete(meta(o), "labels")
		o["truncated"] = true
	})
	for _, c := range []struct {
		name  string
		given map[string]any
		limit int
		want  map[string]any
	}{
		{"none", nil, 100, nil},
		{"one that just fits", whole, size(t, whole), whole},
		{"managedFields are nobody's matter", object(func(o map[string]any) { meta(o)["managedFields"] = []any{"x"} }), size(t, whole), whole},
		{"one byte more than fits", whole, size(t, whole) - 1, head},
		{"its metadata just fits", object(func(o map[string]any) { o["data"] = strings.Repeat("x", 1000) }), size(t, head), head},
		{"not even its metadata fits", whole, size(t, head) - 1, few},
		{"nothing fits: who it is stays", whole, 0, few},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := size(t, c.given)
			if diff := cmp.Diff(c.want, run.WatchedObject(c.given, c.limit)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if size(t, c.given) != before {
				t.Error("the object that was given has changed")
			}
		})
	}
	nameless := object(func(o map[string]any) {
		o["metadata"] = map[string]any{"name": "a", "labels": map[string]any{"l": "v"}}
	})
	want := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "truncated": true}
	if diff := cmp.Diff(want, run.WatchedObject(nameless, 1)); diff != "" {
		t.Errorf("what it has not is not made up:\n%s", diff)
	}
}

func TestOfASecretOnlyItsMetadataIsSeen(t *testing.T) {
	secret := func(version, kind string) map[string]any {
		return object(func(o map[string]any) {
			o["apiVersion"], o["kind"] = version, kind
			meta(o)["annotations"] = map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "{data}", "note": "stays"}
		})
	}
	given := secret("v1", "Secret")
	got := run.WithoutSecrets(given)
	if diff := cmp.Diff(secret("v1", "Secret"), given); diff != "" {
		t.Errorf("others see the object too, and it has changed:\n%s", diff)
	}
	want := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": meta(secret("v1", "Secret"))}
	delete(meta(want)["annotations"].(map[string]any), "kubectl.kubernetes.io/last-applied-configuration")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, other := range []map[string]any{secret("v1", "ConfigMap"), secret("example.org/v1", "Secret")} {
		if diff := cmp.Diff(secret(other["apiVersion"].(string), other["kind"].(string)), run.WithoutSecrets(other)); diff != "" {
			t.Errorf("%s of %s is another kind:\n%s", other["kind"], other["apiVersion"], diff)
		}
	}
}

func TestToolsKeepCopiesOfObjects(t *testing.T) {
	for key, want := range map[string]bool{
		"kubectl.kubernetes.io/last-applied-configuration": true, "kapp.k14s.io/original": true, "kapp.k14s.io/original-diff": true,
		"objectset.rio.cattle.io/applied": true, "banzaicloud.com/last-applied": true, "kapp.k14s.io/identity": false, "note": false,
	} {
		if got := run.CopiesObject(key); got != want {
			t.Errorf("%s: %t", key, got)
		}
	}
}

func TestTheWatchedObjectIsTheNewestThatIsKnown(t *testing.T) {
	request := func(edits ...func(*run.Request)) run.Request {
		r := run.Request{Kind: run.ByWatch, APIVersion: "v1", ObjectKind: "ConfigMap", Namespace: "shop", Name: "a", UID: "u"}
		for _, edit := range edits {
			edit(&r)
		}
		return r
	}
	kept := func(r *run.Request) {
		r.Body = json.RawMessage(`{"kind":"ConfigMap","data":{"n":9007199254740993}}`)
	}
	name := run.Body{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "shop", "uid": "u"}}
	for _, c := range []struct {
		name    string
		request run.Request
		body    run.Body
		want    run.Body
	}{
		{"of a slot there is none", run.Request{Kind: run.BySchedule}, run.Body(object()), nil},
		{"what is known now", request(kept), run.Body(object()), run.Body(object())},
		{"what the claim kept of one that is gone", request(kept), nil, run.Body{"kind": "ConfigMap", "data": map[string]any{"n": int64(9007199254740993)}}},
		{"what was kept cannot be read", request(func(r *run.Request) { r.Body = json.RawMessage("x") }), nil, name},
		{"nothing but its name", request(), nil, name},
		{"the name of one of the cluster", request(func(r *run.Request) { r.Namespace = "" }), nil, run.Body{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "uid": "u"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.request.Watched(c.body)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	large := run.Body(object(func(o map[string]any) { o["data"] = strings.Repeat("x", plan.MaxWatchedBody) }))
	if got := request().Watched(large); got["truncated"] != true {
		t.Error("a large one is held in full")
	}
}
