package workload

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// shopping is a cluster of workloads, of which those with team=a sleep.
type shopping struct{ *night }

func newShopping(t *testing.T) sleepertest.Backend {
	params := hibernate.WorkloadParameters{Selector: &selector.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}
	params.Kinds = []any{"Deployment", "StatefulSet", "CronJob", "ReplicaSet"}
	n := newNight(t, params)
	for _, text := range []string{
		`{kind: Deployment, apiVersion: apps/v1, metadata: {name: web, labels: {team: a}}, spec: {replicas: 3}}`,
		`{kind: Deployment, apiVersion: apps/v1, metadata: {name: api, labels: {team: a}}, spec: {replicas: 1}}`,
		`{kind: Deployment, apiVersion: apps/v1, metadata: {name: idle, labels: {team: a}}, spec: {replicas: 0}}`,
		`{kind: Deployment, apiVersion: apps/v1, metadata: {name: theirs, labels: {team: b}}, spec: {replicas: 2}}`,
		`{kind: StatefulSet, apiVersion: apps/v1, metadata: {name: db, labels: {team: a}}, spec: {replicas: 2}}`,
		`{kind: ReplicaSet, apiVersion: apps/v1, metadata: {name: bare, labels: {team: a}}, spec: {replicas: 2}}`,
		`{kind: CronJob, apiVersion: batch/v1, metadata: {name: mail, labels: {team: a}}, spec: {schedule: "0 1 * * *", suspend: false}}`,
		`{kind: CronJob, apiVersion: batch/v1, metadata: {name: held, labels: {team: a}}, spec: {schedule: "0 1 * * *", suspend: true}}`,
	} {
		u := agenttest.Object(t, text)
		u.SetNamespace("shop")
		u.SetGeneration(1)
		n.Put(u)
	}
	other := agenttest.Object(t, `{kind: Deployment, apiVersion: apps/v1, metadata: {namespace: others, name: web, labels: {team: a}}, spec: {replicas: 4}}`)
	n.Put(other)
	w := shopping{n}
	w.Settle(t)
	return w
}

func (shopping) Sleeper() executors.Sleeper { return Sleeps{} }

func (w shopping) Call() executors.SleepCall { return w.call }

// all are the workloads by their resource, namespace and name.
func (shopping) all() [][3]string {
	return [][3]string{
		{"deployments", "shop", "web"},
		{"deployments", "shop", "api"},
		{"deployments", "shop", "idle"},
		{"deployments", "shop", "theirs"},
		{"deployments", "others", "web"},
		{"statefulsets", "shop", "db"},
		{"replicasets", "shop", "bare"},
		{"cronjobs", "shop", "mail"},
		{"cronjobs", "shop", "held"},
	}
}

func (w shopping) State(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, at := range w.all() {
		text, err := json.Marshal(w.Get(at[0], at[1], at[2]).Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		out[strings.Join(at[:], "/")] = string(text)
	}
	return out
}

func (shopping) Outside(id string) bool {
	return strings.Contains(id, "others/") || strings.Contains(id, "/theirs")
}

func (w shopping) Unselect(*testing.T) bool {
	for _, at := range w.all() {
		w.Edit(at[0], at[1], at[2], func(u *unstructured.Unstructured) { u.SetLabels(nil) })
	}
	return true
}

// Settle is what the controllers do: there are as many pods as there should be.
func (w shopping) Settle(t *testing.T) {
	t.Helper()
	for _, at := range w.all() {
		if at[0] == "cronjobs" {
			continue
		}
		w.Edit(at[0], at[1], at[2], func(u *unstructured.Unstructured) {
			var n int64
			switch v := u.Object["spec"].(map[string]any)["replicas"].(type) {
			case int64:
				n = v
			case float64: // as somebody patched it
				n = int64(v)
			default:
				t.Fatalf("%v has %v replicas", at, v)
			}
			u.Object["status"] = map[string]any{"observedGeneration": u.GetGeneration(), "replicas": n, "readyReplicas": n}
		})
	}
}

func TestWorkloadsSleepAsEveryTargetDoes(t *testing.T) { sleepertest.Run(t, newShopping) }
