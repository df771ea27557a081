package plans

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

const (
	onStg      = "connectorRef: {kind: K8SCluster, name: stg}\n"
	kubeconfig = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}],
clusters: [{name: k, cluster: {server: "https://api.stg.test:6443"}}], users: [{name: u, user: {token: t}}]}`
)

// beside plays a story with another cluster, which the connector stg leads to.
func beside(t *testing.T, story func(w *world, far *agenttest.Cluster)) {
	t.Helper()
	play(t, func(w *world) {
		far := agenttest.New(w)
		w.api.ConnectTo(far)
		w.api.Put(w.connector(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "stg"}, Data: map[string][]byte{"kubeconfig": []byte(kubeconfig)}})
		story(w, far)
	})
}

func (w *world) connector() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "stg", Labels: map[string]string{annotations.LabelKind: annotations.KindConnector}},
		Data:       map[string]string{annotations.DataConnector: "apiVersion: maint.dev/v1alpha1\nkind: K8SCluster\nspec: {k8s: {kubeconfigRef: {name: stg}}}\n"},
	}
}

func TestALabelOnATargetOfAnotherClusterIsARequest(t *testing.T) {
	beside(t, func(w *world, far *agenttest.Cluster) {
		far.Put(deployment(true, nil))
		w.plan("nightly", onStg+orders+"triggers: {labels: [example.org/go]}\n"+hook)
		w.begins()
		w.after(2 * time.Second)
		w.api.Put(deployment(true, map[string]string{"example.org/go": "yes"})) // of the same name, and nobody's business
		w.after(2 * time.Second)
		w.expect("by an object here", "nightly")
		far.Put(deployment(true, map[string]string{"example.org/go": "yes"}))
		w.after(2 * time.Second)
		w.expect("then", "nightly", "00:00 open label:example.org/go")
		if e := w.ledger("nightly").Open[0]; !strings.Contains(e.TargetUID, "@") || e.Request.TargetUID != e.TargetUID {
			w.Errorf("the run is to hold %q, asked for on %q", e.TargetUID, e.Request.TargetUID)
		}
		if n := w.api.Asked(agenttest.When{Resource: "deployments"}); n != 0 {
			w.Errorf("Deployments here were asked for %d times", n)
		}
	})
}

func TestTheMirrorOfAPlanStandsWhereItsTargetIs(t *testing.T) {
	const key = "mirror.maint.dev/nightly-status"
	beside(t, func(w *world, far *agenttest.Cluster) {
		far.Put(deployment(true, nil))
		w.api.Put(deployment(true, nil))
		w.plan("nightly", onStg+orders+hook)
		w.begins()
		w.after(2 * time.Second)
		w.says("nightly", annotations.Trigger, "now")
		w.progress(w.runs("nightly")[0], "Running")
		w.after(5 * time.Second)
		if there, here := far.Get("deployments", shop, "orders").GetAnnotations(), w.api.Get("deployments", shop, "orders").GetAnnotations(); there[key] != "running" || here[key] != "" {
			w.Errorf("there %v, here %v", there, here)
		}
		w.api.Delete("configmaps", shop, "nightly")
		w.after(5 * time.Second)
		if there := far.Get("deployments", shop, "orders").GetAnnotations(); there[key] != "" {
			w.Errorf("after the plan is gone: %v", there)
		}
	})
}

// A plan may move to another cluster, or back: the former mirror would say for ever that something
// runs. What moved while no agent ran stays where it was, and stands at the new place, too.
func TestTheMirrorOfAPlanMovesToAnotherCluster(t *testing.T) {
	const key = "mirror.maint.dev/nightly-next-run"
	for name, c := range map[string]struct {
		from, to string
		down     bool
	}{
		"there":                     {from: "", to: onStg},
		"back":                      {from: onStg, to: ""},
		"there while no agent runs": {from: "", to: onStg, down: true},
	} {
		t.Run(name, func(t *testing.T) {
			beside(t, func(w *world, far *agenttest.Cluster) {
				far.Put(deployment(true, nil))
				w.api.Put(deployment(true, nil))
				stands := func() (here, there bool) {
					return w.api.Get("deployments", shop, "orders").GetAnnotations()[key] != "", far.Get("deployments", shop, "orders").GetAnnotations()[key] != ""
				}
				w.plan("nightly", c.from+orders+tenMins+hook)
				w.begins()
				w.after(5 * time.Second)
				if here, there := stands(); here != (c.from == "") || there == here {
					t.Fatalf("here %t, there %t", here, there)
				}
				if c.down {
					w.agent.stop()
				}
				w.plan("nightly", c.to+orders+tenMins+hook)
				if c.down {
					w.begins()
				}
				w.after(5 * time.Second)
				if here, there := stands(); here != (c.to == "" || c.down) || there != (c.to != "") {
					t.Errorf("after it moved: here %t, there %t", here, there)
				}
			})
		})
	}
}

func TestTheMirrorFollowsAConnectorThatLedElsewhereWhileNoAgentRan(t *testing.T) {
	const key = "mirror.maint.dev/nightly-next-run"
	beside(t, func(w *world, far *agenttest.Cluster) {
		far.Put(deployment(true, nil))
		w.plan("nightly", onStg+orders+tenMins+hook)
		w.begins()
		w.after(5 * time.Second)
		w.agent.stop()
		far.Put(deployment(true, nil)) // another cluster's, on which nobody wrote
		other := w.connector()
		other.Data[annotations.DataConnector] = strings.Replace(other.Data[annotations.DataConnector], "kubeconfigRef: {name: stg}", "kubeconfigRef: {name: other}", 1)
		w.api.Put(other, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "other"}, Data: map[string][]byte{"kubeconfig": []byte(kubeconfig)}})
		w.begins()
		w.after(5 * time.Second)
		if there := far.Get("deployments", shop, "orders").GetAnnotations(); there[key] == "" {
			t.Errorf("it is not there: %v", there)
		}
	})
}

func TestWhatKeepsAPlanFromItsTargetElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(w *world, far *agenttest.Cluster)
		mend  func(w *world, far *agenttest.Cluster)
		says  string
	}{
		"it is not there": {
			spoil: func(*world, *agenttest.Cluster) {}, says: "Deployment/orders does not exist",
			mend: func(_ *world, far *agenttest.Cluster) { far.Put(deployment(true, nil)) },
		},
		"it was never ready": {
			spoil: func(_ *world, far *agenttest.Cluster) { far.Put(deployment(false, nil)) }, says: "Deployment/orders was never ready yet",
			mend: func(_ *world, far *agenttest.Cluster) { far.Put(deployment(true, nil)) },
		},
		"the Secret may not be read": {
			spoil: func(w *world, far *agenttest.Cluster) {
				far.Put(deployment(true, nil))
				w.api.Deny(runner, "get", "secrets")
			},
			says: `may not get secrets "stg", which holds the kubeconfig of K8SCluster stg`,
			mend: func(w *world, _ *agenttest.Cluster) { w.api.Allow(runner, "get", "secrets") },
		},
		"its API server is away": {
			spoil: func(_ *world, far *agenttest.Cluster) {
				far.Put(deployment(true, nil))
				far.Refuse(agenttest.When{}, agenttest.Always, 503, "away")
			},
			says: "K8SCluster stg: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			beside(t, func(w *world, far *agenttest.Cluster) {
				c.spoil(w, far)
				w.plan("nightly", onStg+orders+tenMins+hook)
				w.begins()
				w.after(11 * time.Minute)
				if got := w.said("nightly", annotations.StatusMessage); !strings.Contains(got, c.says) || len(w.runs("nightly")) > 0 {
					w.Errorf("it says %q, runs %q; want %q", got, w.runs("nightly"), c.says)
				}
				if c.mend == nil {
					return
				}
				c.mend(w, far)
				w.after(2 * time.Minute)
				if len(w.runs("nightly")) != 1 {
					w.Errorf("when it was mended it runs %q: %s", w.runs("nightly"), w.said("nightly", annotations.StatusMessage))
				}
			})
		})
	}
}

// Another cluster may hold each request for as long as it likes: it takes no worker from
// the plans here, and its own plan says so.
func TestAClusterThatAnswersNothingHoldsNoOtherPlanUp(t *testing.T) {
	beside(t, func(w *world, far *agenttest.Cluster) {
		far.Put(deployment(true, nil))
		letGo := far.Hold(agenttest.When{Resource: "deployments"}, agenttest.Always)
		for _, name := range []string{"far-1", "far-2", "far-3", "far-4", "far-5", "far-6"} {
			w.plan(name, onStg+orders+tenMins+hook)
		}
		w.plan("home", hook)
		w.begins()
		w.after(30 * time.Second)
		began := time.Now()
		w.says("home", annotations.Trigger, "now")
		w.after(12 * time.Second) // the test's agent has two workers
		if len(w.runs("home")) != 1 {
			w.Errorf("after %s nothing runs here", time.Since(began))
		}
		w.after(10 * time.Minute)
		if got := w.said("far-1", annotations.StatusMessage); !strings.Contains(got, "K8SCluster stg: it did not answer within 5s") && !strings.Contains(got, "asked for other plans just now") {
			w.Errorf("it says %q", got)
		}
		letGo()
		w.after(3 * time.Minute)
		if len(w.runs("far-1")) != 1 {
			w.Errorf("when it answers nothing runs: %s", w.said("far-1", annotations.StatusMessage))
		}
	})
}
