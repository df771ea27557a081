package agent_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// impostor is an API server of a tenant's own: it serves one Deployment and says of it
// what its owner likes, the uid of somebody else's object above all.
type impostor struct {
	*httptest.Server
	mu       sync.Mutex
	uid      string
	replicas any
}

func newImpostor(t *testing.T, uid string, replicas int) *impostor {
	t.Helper()
	i := &impostor{uid: uid, replicas: replicas}
	i.Server = httptest.NewTLSServer(i)
	t.Cleanup(i.Close)
	return i
}

func (i *impostor) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var answer any
	switch {
	case req.URL.Path == "/apis":
		version := metav1.GroupVersionForDiscovery{GroupVersion: "apps/v1", Version: "v1"}
		answer = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}}}
	case req.URL.Path == "/apis/apps/v1":
		answer = metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment", Namespaced: true, Verbs: metav1.Verbs{"get", "patch"}}}}
	case strings.HasSuffix(req.URL.Path, "/deployments/orders"):
		var patch struct {
			Spec map[string]any `json:"spec"`
		}
		if req.Method == http.MethodPatch && json.NewDecoder(req.Body).Decode(&patch) == nil {
			i.replicas = patch.Spec["replicas"]
		}
		answer = map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": i.replicas},
			"metadata": map[string]any{"name": "orders", "namespace": "any", "uid": i.uid, "resourceVersion": "1"},
		}
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// connected is a plan of a tenant whose step works on the impostor.
func (l *lab) connected(to *impostor, name, replicas string) {
	l.Helper()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: to.Certificate().Raw})
	config := &rest.Config{Host: to.URL, BearerToken: "t", TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
	r := &remoteLab{lab: l}
	r.secret(l.kubeconfigOf(config))
	r.connector()
	l.plan(name, `
steps:
- {name: down, type: patch-object, connectorRef: {kind: K8SCluster, name: stg}, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, patchType: merge, patch: {spec: {replicas: `+replicas+`}}, restoreAfter: true}}
- {name: hold, type: suspend}
`)
	l.seen(name)
}

// What another cluster's API server says of itself decides nothing about objects of this
// one: neither what a run of somebody else puts back nor whether it does.
func TestAClusterThatSaysTheUIDOfSomebodyElsesObjectChangesNothingOfIt(t *testing.T) {
	const victims = `
steps:
- {name: down, type: patch-object, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, patchType: merge, patch: {spec: {replicas: 0}}, restoreAfter: true}}
- {name: hold, type: suspend}
`
	for name, c := range map[string]struct {
		says  int    // how many replicas the impostor says that there were
		sets  string // what the attacker's step sets
		first bool   // the attacker's run begins first, and ends first
	}{
		"below it, to have something else put back": {says: 999, sets: "3", first: true},
		"on top of it, to have nothing put back":    {says: 0, sets: "5"},
	} {
		t.Run(name, func(t *testing.T) {
			theirs := newLab(t)
			mine := theirs.beside()
			theirs.runner(deploymentRights())
			mine.runner(readsKubeconfig())
			uid := string(theirs.deployment("orders", 3).UID)
			theirs.plan("orders", victims)
			theirs.seen("orders")
			mine.connected(newImpostor(t, uid, c.says), "false", c.sets)

			begin := func(l *lab, plan string) func() {
				l.trigger(plan, "t")
				run := l.running(plan, "hold").run.Name
				return func() {
					l.annotate(plan, map[string]string{annotations.Resume: run})
					l.succeeded(plan)
				}
			}
			if c.first {
				attack := begin(mine, "false")
				end := begin(theirs, "orders")
				attack()
				end()
			} else {
				end := begin(theirs, "orders")
				begin(mine, "false")
				end()
			}
			if n := theirs.replicas("orders"); n != 3 {
				t.Errorf("%d replicas are put back, want 3", n)
			}
			maps, err := mine.admin.CoreV1().ConfigMaps(mine.ns).List(mine.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindRun})
			mine.must(err)
			for _, cm := range maps.Items {
				if strings.Contains(cm.Data[annotations.DataJournal], theirs.runs("orders")[0].run.Name) {
					t.Error("the journal of the attacker's run tells of theirs")
				}
			}
		})
	}
}
