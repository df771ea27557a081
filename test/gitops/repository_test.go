package gitops_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha1" //nolint:gosec // as Git names its commits
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// repository is what source-controller would fetch: its newest commit as an archive over
// HTTP, and a GitRepository whose status says so.
type repository struct {
	server    *httptest.Server
	objects   dynamic.ResourceInterface
	namespace string

	mu       sync.Mutex
	archives map[string][]byte // by path
}

var (
	gitRepositories = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}   //nolint:gochecknoglobals // a constant
	kustomizations  = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"} //nolint:gochecknoglobals // a constant
)

func newRepository(ctx context.Context, dyn dynamic.Interface, namespace string) (*repository, error) {
	r := &repository{objects: dyn.Resource(gitRepositories).Namespace(namespace), namespace: namespace, archives: map[string][]byte{}}
	r.server = httptest.NewServer(r)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"url": "https://git.example/apps", "interval": "1h"}}}
	u.SetGroupVersionKind(gitRepositories.GroupVersion().WithKind("GitRepository"))
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
	archive, err := packed(files)
	if err != nil {
		return "", err
	}
	revision := fmt.Sprintf("main@sha1:%x", sha1.Sum(archive)) //nolint:gosec // as Git names its commits
	path := fmt.Sprintf("/%x.tar.gz", sha256.Sum256(archive))
	r.mu.Lock()
	r.archives = map[string][]byte{path: archive}
	r.mu.Unlock()
	now := time.Now().UTC().Format(time.RFC3339)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"observedGeneration": 1,
		"conditions":         []any{map[string]any{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored artifact", "lastTransitionTime": now, "observedGeneration": 1}},
		"artifact":           map[string]any{"path": "apps" + path, "url": r.server.URL + path, "revision": revision, "digest": fmt.Sprintf("sha256:%x", sha256.Sum256(archive)), "lastUpdateTime": now, "size": len(archive)},
	}})
	if err != nil {
		return "", err
	}
	_, err = r.objects.Patch(ctx, "apps", types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return revision, err
}

func packed(files map[string]string) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Format: tar.FormatPAX}); err != nil {
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
