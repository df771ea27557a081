package workload

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// manyDeployments is an API server with so many Deployments, each of 4 KiB. It notes how
// large the heap is at each page.
type manyDeployments struct {
	n       int
	asked   int    // the most that somebody asked for at once
	largest uint64 // heap in bytes
}

func (m *manyDeployments) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var heap runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&heap)
	m.largest = max(m.largest, heap.HeapAlloc)
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	if m.asked = max(m.asked, limit); limit == 0 {
		m.asked = m.n
		limit = m.n
	}
	to, next := min(from+limit, m.n), ""
	if to < m.n {
		next = strconv.Itoa(to)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"kind": "DeploymentList", "apiVersion": "apps/v1", "metadata": {"resourceVersion": "7", "continue": %q}, "items": [`, next)
	notes := strings.Repeat("x", 4096)
	for i := from; i < to; i++ {
		if i > from {
			fmt.Fprint(w, ",")
		}
		fmt.Fprintf(w, `{"metadata": {"namespace": "shop", "name": "web-%05d", "uid": "uid-%d", "generation": 1, "annotations": {"notes": %q}}, "spec": {"replicas": 3}, "status": {"observedGeneration": 1, "replicas": 3, "readyReplicas": 3}}`, i, i, notes)
	}
	fmt.Fprint(w, "]}")
}

// Of ten thousand workloads no more is held than a page, and a line of each.
func TestTenThousandWorkloadsAreListedPageByPage(t *testing.T) {
	const n = 10_000
	api := &manyDeployments{n: n}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	objects, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	call := deploymentsOf(objects)
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	seen, err := Sleeps{}.Observe(t.Context(), call)
	if err != nil || len(seen) != n {
		t.Fatalf("%d are seen: %v", len(seen), err)
	}
	if api.asked != pageOfWorkloads {
		t.Errorf("%d are asked for at once", api.asked)
	}
	const all = n * 4096 // of their annotations alone
	if grown := int(api.largest) - int(before.HeapAlloc); grown > all/2 {
		t.Errorf("the heap grew by %d KiB over %d KiB of annotations", grown>>10, all>>10)
	} else {
		t.Logf("the heap grew by %d KiB over %d KiB of annotations", grown>>10, all>>10)
	}
	runtime.KeepAlive(seen)
}

// deploymentsOf is a look at the Deployments of an API server.
func deploymentsOf(objects dynamic.Interface) executors.SleepCall {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	return executors.SleepCall{
		Plan: executors.PlanRef{Namespace: "shop"}, Operation: hibernate.Shutdown, Params: &hibernate.WorkloadParameters{Kinds: []any{"Deployment"}},
		Clients: executors.Clients{Dynamic: objects, Mapper: mapper},
	}
}

// The API server of another cluster is anybody's, and may list workloads without end.
func TestTheWorkloadsOfAnotherClusterAreBounded(t *testing.T) {
	object := func(n int) map[string]any {
		return map[string]any{"metadata": map[string]any{"namespace": "shop", "name": fmt.Sprint("web-", n), "uid": "u"}}
	}
	objects, err := dynamic.NewForConfig(conformance.EndlessLists(t, "apps/v1", "Deployment", object))
	if err != nil {
		t.Fatal(err)
	}
	core, err := kube.NewForConfig(conformance.EndlessLists(t, "v1", "Namespace", object))
	if err != nil {
		t.Fatal(err)
	}
	for name, selects := range map[string]*selector.LabelSelector{"workloads": nil, "namespaces": {}} {
		t.Run(name, func(t *testing.T) {
			call := deploymentsOf(objects)
			call.Clients.Cluster, call.Clients.Kube = "theirs", core
			call.Params.(*hibernate.WorkloadParameters).NamespaceSelector = selects
			seen, err := Sleeps{}.Observe(t.Context(), call)
			if err == nil || !strings.Contains(err.Error(), "shows more than 10000 workloads") {
				t.Errorf("of %d workloads it says %v", len(seen), err)
			}
		})
	}
}
