package gitops_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// source is a kind of what source-controller fetches.
type source struct {
	resource schema.GroupVersionResource
	kind     string
	spec     map[string]any
	folder   string // of the files in an archive
	// revision is what source-controller calls an archive that was made of files.
	revision func(files map[string]string, archive []byte) string
}

// repository is what source-controller would fetch: its newest commit as an archive over
// HTTP, and a source whose status says so.
type repository struct {
	source
	server  *httptest.Server
	objects dynamic.ResourceInterface

	mu       sync.Mutex
	archives map[string][]byte // by path
}

func newRepository(ctx context.Context, dyn dynamic.Interface, of source, namespace string) (*repository, error) {
	r := &repository{source: of, objects: dyn.Resource(of.resource).Namespace(namespace), archives: map[string][]byte{}}
	r.server = httptest.NewServer(r)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": of.spec}}
	u.SetGroupVersionKind(of.resource.GroupVersion().WithKind(of.kind))
	u.SetName("apps")
	_, err := r.objects.Create(ctx, u, metav1.CreateOptions{})
	return r, err
}

// ServeHTTP hands out archives.
func (r *repository) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	b, there := r.archives[req.URL.Path]
	r.mu.Unlock()
	if !there {
		http.NotFound(w, req)
		return
	}
	_, _ = w.Write(b)
}

// push makes files the newest commit, and returns its revision.
func (r *repository) push(ctx context.Context, files map[string]string) (string, error) {
	archive, err := packed(r.folder, files)
	if err != nil {
		return "", err
	}
	revision := r.revision(files, archive)
	at := fmt.Sprintf("/%x.tar.gz", sha256.Sum256(archive))
	r.mu.Lock()
	r.archives = map[string][]byte{at: archive}
	r.mu.Unlock()
	now := time.Now().UTC().Format(time.RFC3339)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"observedGeneration": 1,
		"conditions":         []any{map[string]any{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored artifact", "lastTransitionTime": now, "observedGeneration": 1}},
		"artifact":           map[string]any{"path": "apps" + at, "url": r.server.URL + at, "revision": revision, "digest": fmt.Sprintf("sha256:%x", sha256.Sum256(archive)), "lastUpdateTime": now, "size": len(archive)},
	}})
	if err != nil {
		return "", err
	}
	_, err = r.objects.Patch(ctx, "apps", types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return revision, err
}

// lose takes the artifact out of the status, as when it cannot be fetched any more.
func (r *repository) lose(ctx context.Context) error {
	_, err := r.objects.Patch(ctx, "apps", types.MergePatchType, []byte(`{"status":{"artifact":null}}`), metav1.PatchOptions{}, "status")
	return err
}

func packed(folder string, files map[string]string) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: path.Join(folder, name), Mode: 0o644, Size: int64(len(files[name])), Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err := zipped.Close()
	return out.Bytes(), err
}
