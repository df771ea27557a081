package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// surging is a node with pod web-1 of Deployment web, which wants to be replaced first.
func surging(t *testing.T, replicas int32, edits ...func(*appsv1.Deployment)) *host {
	dep := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"},
		Spec:       appsv1.DeploymentSpec{Replicas: new(replicas), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
	for _, edit := range edits {
		edit(dep)
	}
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web", OwnerReferences: []metav1.OwnerReference{ownedBy("Deployment", "web")}}}
	return newHost(t, dep, rs, podNamed("web-1", drained("surge")))
}

// deployment is web as it stands: its replicas, and whether it is noted that it surges.
func (h *host) deployment() string {
	dep := h.Get("deployments", "shop", "web")
	n, _, _ := unstructured.NestedFieldNoCopy(dep.Object, "spec", "replicas")
	said := fmt.Sprintf("%v replicas", n)
	record, noted := dep.GetAnnotations()[annotations.StatusSurge]
	if _, labelled := dep.GetLabels()[annotations.LabelSurging]; noted != labelled {
		said += ", record and label disagree"
	}
	if noted {
		var s annotations.Surge
		if err := json.Unmarshal([]byte(record), &s); err != nil {
			return said + ", " + err.Error()
		}
		said += fmt.Sprintf(", of %d for %s by %s", s.Replicas, s.Pod, s.By)
	}
	return said
}

func (h *host) scale(n int64) {
	h.Edit("deployments", "shop", "web", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, n, "spec", "replicas")
	})
}

func notReady(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse},
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: reason},
		}
	}
}

const oneMore = "2 replicas, of 1 for uid-web-1 by " + mine

// A lone pod is replaced before it goes, and the replica is given back afterwards.
func TestALonePodIsReplacedBeforeItGoes(t *testing.T) {
	for _, c := range []struct {
		name      string
		meanwhile func(*host) // while both are there
		want      string      // at the end
	}{
		{"the Deployment has what it had", func(*host) {}, "1 replicas"},
		{"somebody scaled it up since: that is theirs", func(h *host) { h.scale(5) }, "5 replicas"},
		{"somebody scaled it down since: that is theirs", func(h *host) { h.scale(0) }, "0 replicas"},
		{
			"a write of somebody else is no reason to keep it", func(h *host) {
				h.Before(agenttest.When{Verb: "patch", Resource: "deployments"}, func() {
					h.Edit("deployments", "shop", "web", func(u *unstructured.Unstructured) {
						u.SetLabels(map[string]string{"team": "x", annotations.LabelSurging: "true"})
					})
				})
			}, "1 replicas",
		},
		{
			"an API server that is away for a while", func(h *host) { h.Fail(agenttest.When{Verb: "patch", Resource: "deployments"}, 3) }, "1 replicas",
		},
		{"an answer that is lost", func(h *host) { h.LoseReply(agenttest.When{Verb: "patch", Resource: "deployments"}, 1) }, "1 replicas"},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := surging(t, 1)
			d := h.drainer()
			order := h.order(drain.Options{})
			d.Ensure(t.Context(), order)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if got := h.deployment(); got != oneMore || len(h.requests()) != 0 {
				t.Fatalf("%s, asked %q", got, h.requests())
			}
			h.put(podNamed("web-2", on("b"), notReady("no room")))
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if got := h.requests(); len(got) != 0 {
				t.Fatalf("before it is Ready: %q", got)
			}
			c.meanwhile(h)
			h.put(podNamed("web-2", on("b")))
			time.Sleep(30 * time.Second)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); standing(st) != "Drained: done, 1 evicted" || !slices.Equal(h.requests(), []string{"evict shop/web-1"}) {
				t.Errorf("%q, asked %q", standing(st), h.requests())
			}
			if got := h.deployment(); got != c.want {
				t.Errorf("at the end %s", got)
			}
		})
	}
}

// Where a replacement cannot be, the drain is blocked for good and says what would help;
// nothing is evicted, and the Deployment is as it was.
func TestAReplacementThatCannotBe(t *testing.T) {
	hpa := func(kind, name string) *autoscalingv2.HorizontalPodAutoscaler {
		return &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "scaler"},
			Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: kind, Name: name}},
		}
	}
	managed := func(manager string, op metav1.ManagedFieldsOperationType, fields string) func(*appsv1.Deployment) {
		return func(dep *appsv1.Deployment) {
			dep.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Operation: op, FieldsV1: metav1.NewFieldsV1(fields)}}
		}
	}
	const replicasField, imageField = `{"f:spec":{"f:replicas":{}}}`, `{"f:spec":{"f:template":{}}}`
	for _, c := range []struct {
		name  string
		dep   []func(*appsv1.Deployment)
		world func(*host)
		why   string // empty: it is begun
	}{
		{"nothing is against it", nil, func(*host) {}, ""},
		{"an autoscaler of the Deployment would scale it back", nil, func(h *host) { h.Put(hpa("Deployment", "web")) }, "HorizontalPodAutoscaler/scaler owns the replicas of Deployment/web; raise its minReplicas for the drain, or take the annotation maint.dev/drain=surge away"},
		{"an autoscaler of another Deployment", nil, func(h *host) { h.Put(hpa("Deployment", "api")) }, ""},
		{"an autoscaler of a StatefulSet of the name", nil, func(h *host) { h.Put(hpa("StatefulSet", "web")) }, ""},
		{"Argo CD owns the replicas", []func(*appsv1.Deployment){managed("argocd-controller", metav1.ManagedFieldsOperationUpdate, replicasField)}, func(*host) {}, "argocd-controller owns the replicas of Deployment/web; add a replica where it is written, or leave replicas out there, or take the annotation maint.dev/drain=surge away"},
		{"Argo CD owns other fields", []func(*appsv1.Deployment){managed("argocd-controller", metav1.ManagedFieldsOperationUpdate, imageField)}, func(*host) {}, ""},
		{"somebody applies the replicas", []func(*appsv1.Deployment){managed("kustomize-controller", metav1.ManagedFieldsOperationApply, replicasField)}, func(*host) {}, "kustomize-controller owns the replicas of Deployment/web; add a replica"},
		{"we apply the replicas ourselves", []func(*appsv1.Deployment){managed("maint-plan-x", metav1.ManagedFieldsOperationApply, replicasField)}, func(*host) {}, ""},
		{"a person wrote the replicas, and owns nothing", []func(*appsv1.Deployment){managed("kubectl-edit", metav1.ManagedFieldsOperationUpdate, replicasField)}, func(*host) {}, ""},
		{
			"its budget would count the replacement in", nil, func(h *host) {
				h.put(budget(0, func(b *policyv1.PodDisruptionBudget) {
					b.Spec.MinAvailable = new(intstr.FromString("100%"))
				}))
			}, "its budget shop/web lets nobody go, however many replicas there are; write maxUnavailable: 1 there",
		},
		{
			"its budget lets none be missing", nil, func(h *host) {
				h.put(budget(0, func(b *policyv1.PodDisruptionBudget) {
					b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, new(intstr.FromString("0%"))
				}))
			}, "its budget shop/web lets nobody go, however many replicas there are; write maxUnavailable: 1 there",
		},
		{"its ReplicaSet is of nobody", nil, func(h *host) {
			h.put(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"}})
		}, "its ReplicaSet belongs to no Deployment; take the annotation maint.dev/drain=surge away"},
		{"its ReplicaSet is of something else", nil, func(h *host) {
			h.put(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web", OwnerReferences: []metav1.OwnerReference{ownedBy("Rollout", "web")}}})
		}, "its ReplicaSet belongs to no Deployment; take the annotation maint.dev/drain=surge away"},
		{"its ReplicaSet is of another Deployment that had the name", []func(*appsv1.Deployment){func(dep *appsv1.Deployment) { dep.UID = "uid-new" }}, func(*host) {}, "its ReplicaSet belongs to another Deployment than the one that is named web now; take the annotation maint.dev/drain=surge away"},
		{"another ReplicaSet has the name of its own", nil, func(h *host) {
			h.DeleteAtOnce("replicasets", "shop", "web")
			h.put(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-new", OwnerReferences: []metav1.OwnerReference{ownedBy("Deployment", "web")}}})
		}, "its ReplicaSet belongs to no Deployment; take the annotation maint.dev/drain=surge away"},
		{"an impossible record", []func(*appsv1.Deployment){func(dep *appsv1.Deployment) {
			dep.Annotations = map[string]string{annotations.StatusSurge: `{"replicas":-1,"node":"a","pod":"x"}`}
		}}, func(*host) {}, "says -1 replicas; possible are 0 to 1000000; remove the annotation once its replicas are as they should be"},
		{"what the API server refuses for good", nil, func(h *host) {
			h.Refuse(agenttest.When{Verb: "patch", Resource: "deployments"}, agenttest.Always, http.StatusUnprocessableEntity, "a policy says no")
		}, "the API server refuses: a policy says no; change what it objects to, or take the annotation maint.dev/drain=surge away"},
		{"a record that nobody can read", []func(*appsv1.Deployment){func(dep *appsv1.Deployment) { dep.Annotations = map[string]string{annotations.StatusSurge: "?"} }}, func(*host) {}, "remove the annotation once its replicas are as they should be"},
		{"without the right to read Deployments", nil, func(h *host) { h.Deny("", "get", "deployments") }, "; grant get on replicasets and deployments, or take the annotation maint.dev/drain=surge away"},
		{"an API server that starts, and refuses everybody for a while", nil, func(h *host) {
			h.Refuse(agenttest.When{Verb: "get", Resource: "replicasets"}, 2, http.StatusForbidden, "no")
			h.Refuse(agenttest.When{Verb: "list", Resource: "horizontalpodautoscalers"}, 1, http.StatusForbidden, "no")
			h.Refuse(agenttest.When{Verb: "patch", Resource: "deployments"}, 1, http.StatusForbidden, "no")
		}, ""},
		{"an API server that refuses everybody just after the replica was added", nil, func(h *host) {
			h.Before(agenttest.When{Verb: "patch", Resource: "deployments"}, func() {
				h.Refuse(agenttest.When{Verb: "get", Resource: "deployments"}, 2, http.StatusForbidden, "no")
			})
		}, ""},
		{"without the right to list autoscalers", nil, func(h *host) { h.Deny("", "list", "horizontalpodautoscalers") }, "; grant list on horizontalpodautoscalers.autoscaling, or take the annotation maint.dev/drain=surge away"},
		{"without the right to change Deployments", nil, func(h *host) { h.Deny("", "patch", "deployments") }, "; grant patch on deployments, or take the annotation maint.dev/drain=surge away"},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := surging(t, 1, c.dep...)
			c.world(h)
			d := h.drainer()
			order := h.order(drain.Options{Timeout: lasting(0)})
			d.Ensure(t.Context(), order)
			time.Sleep(40 * time.Second) // a refusal is believed after half a minute
			synctest.Wait()
			st := d.Ensure(t.Context(), order)
			blocked := c.why != ""
			if (st.Reason == executors.DrainBlocked) != blocked || len(h.requests()) != 0 {
				t.Errorf("%q, asked %q", standing(st), h.requests())
			}
			if blocked && !slices.ContainsFunc(st.Blocks, func(b drain.Block) bool { return b.Permanent && strings.Contains(b.String(), c.why) }) {
				t.Errorf("blocks %v", st.Blocks)
			}
			if begun := strings.HasPrefix(h.deployment(), "2 replicas"); begun == blocked {
				t.Errorf("it has %s", h.deployment())
			}
		})
	}
}

// Which pods need a replacement at all: one that is alone, or whose budget has no room.
func TestWhichPodsNeedAReplacement(t *testing.T) {
	for _, c := range []struct {
		name     string
		replicas int32
		world    func(*host)
		want     string
	}{
		{"one of two goes without", 2, func(*host) {}, "2 replicas"},
		{"one of two whose budget has room goes without", 2, func(h *host) { h.put(budget(1)) }, "2 replicas"},
		{"one of two whose budget has no room", 2, func(h *host) { h.put(budget(0)) }, "3 replicas, of 2 for uid-web-1 by " + mine},
		{"one that has no say in its budget goes without", 2, func(h *host) {
			h.put(budget(0), podNamed("web-1", drained("surge"), inPhase(corev1.PodPending)))
		}, "2 replicas"},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := surging(t, c.replicas)
			c.world(h)
			d := h.drainer()
			d.Ensure(t.Context(), h.order(drain.Options{}))
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if got := h.deployment(); got != c.want || (len(h.requests()) == 1) != (got == "2 replicas") {
				t.Errorf("it has %s, asked %q", got, h.requests())
			}
		})
	}
}

// Whether a pod needs a replacement, and has one, is seen as it is whenever it may go, and not once.
func TestWhetherAPodNeedsAReplacementIsSeenAgain(t *testing.T) {
	refused := func(h *host, n int) {
		for range n {
			h.answers["evict shop/web-1"] = append(h.answers["evict shop/web-1"], answered{refusal: apierrors.NewInternalError(errors.New("a webhook does not answer"))})
		}
	}
	const two = "3 replicas, of 2 for uid-web-1 by " + mine
	for _, c := range []struct {
		name      string
		replicas  int32
		world     func(*host)
		meanwhile []func(*host) // ten seconds after one another
		then      string        // what it has after that
		patches   int
	}{
		{
			"its budget lets nobody go any more when it is asked", 2, func(h *host) {
				h.put(budget(1), podNamed("web-2", on("b")))
				h.answers["evict shop/web-1"] = []answered{{refusal: overBudget()}}
			}, []func(*host){func(h *host) { h.allow(0) }}, two, 2,
		},
		{
			"its budget has no room at once, by the evictions of others", 2, func(h *host) {
				h.put(budget(1), podNamed("web-2", on("b")))
				h.answers["evict shop/web-1"] = []answered{{refusal: overBudget()}}
			}, []func(*host){func(h *host) { h.allow(0) }, func(h *host) { h.allow(1) }, func(h *host) { h.allow(0) }}, two, 2,
		},
		{
			"it is the only one by now", 2, func(h *host) {
				h.put(podNamed("web-2", on("b"), notReady("no room")))
				refused(h, 6)
			}, []func(*host){func(h *host) { h.scale(1) }}, oneMore, 2,
		},
		{
			"its replacement goes again while it is held up", 1, func(h *host) {
				h.put(podNamed("web-2", on("b")))
				refused(h, 6)
			}, []func(*host){func(h *host) { h.put(podNamed("web-2", on("b"), notReady("its node is away"))) }}, oneMore, 2,
		},
	} {
		for _, dies := range []bool{false, true} {
			inBubble(t, fmt.Sprintf("%s, the agent dies: %t", c.name, dies), func(t *testing.T) {
				h := surging(t, c.replicas)
				c.world(h)
				first, end := context.WithCancel(t.Context())
				d, order := New(first, Config{Reads: h.kube}), h.order(drain.Options{Timeout: lasting(0)})
				d.Ensure(t.Context(), order)
				time.Sleep(2 * time.Second)
				for _, f := range c.meanwhile {
					f(h)
					time.Sleep(10 * time.Second)
				}
				time.Sleep(30 * time.Second)
				synctest.Wait()
				if st := d.Ensure(t.Context(), order); h.deployment() != c.then || st.Done {
					t.Fatalf("%s, %q, asked %q", h.deployment(), standing(st), h.requests())
				}
				if dies {
					end()
					d = h.drainer()
					d.Ensure(t.Context(), order)
				}
				h.answers = map[string][]answered{}
				h.put(podNamed("web-2", on("b")), podNamed("web-3", on("b")))
				time.Sleep(10 * time.Second)
				if c.replicas == 2 && len(h.Names("poddisruptionbudgets")) > 0 {
					h.allow(1)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if st := d.Ensure(t.Context(), order); standing(st) != "Drained: done, 1 evicted" || h.owes("shop", "web") {
					t.Errorf("%q, %s", standing(st), h.deployment())
				}
				if n := len(slices.DeleteFunc(h.Log(), func(line string) bool { return line != "agent patch deployments shop/web" })); n != c.patches {
					t.Errorf("%d patches", n)
				}
				end()
			})
		}
	}
}

// A drain whose pod has its replacement, or waits for that of another drain, says what it waits for
// like any other that is blocked.
func TestWhatHoldsADrainThatSurgesIsSaid(t *testing.T) {
	for _, c := range []struct {
		name  string
		dep   []func(*appsv1.Deployment)
		world func(*host)
		want  string
	}{
		{"its budget has no room though the replacement is Ready", nil, func(h *host) {
			h.put(budget(0), podNamed("web-2", on("b")))
		}, "Blocked: 0 of 1 pods have left; shop/web-1 cannot leave for now: budget shop/web: 1 of 3 pods are healthy, and 1 must be: a rollout is in progress, or a replica is not Ready; wait; if it lasts, look why pods are not Ready"},
		{"another drain replaces a pod of its Deployment", []func(*appsv1.Deployment){func(dep *appsv1.Deployment) {
			dep.Annotations = map[string]string{annotations.StatusSurge: `{"replicas":1,"node":"b","pod":"x"}`}
		}}, func(*host) {}, `Blocked: 0 of 1 pods have left; shop/web-1 cannot leave for now: another pod of its Deployment is being replaced; wait; if it lasts, look what keeps that pod on node "b"`},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := surging(t, 1, c.dep...)
			c.world(h)
			d := h.drainer()
			order := h.order(drain.Options{})
			d.Ensure(t.Context(), order)
			time.Sleep(20 * time.Second)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); standing(st) != c.want || len(h.requests()) != 0 {
				t.Errorf("%q, asked %q", standing(st), h.requests())
			}
		})
	}
}

// A replacement that does not become Ready in its time is given up, and tried again later.
func TestAReplacementThatDoesNotBecomeReady(t *testing.T) {
	for _, c := range []struct {
		name string
		pod  *corev1.Pod // nil: none is made
		why  string
	}{
		{"none is made", nil, "it was not made"},
		{"it finds no node", podNamed("web-2", on(""), notReady("0/3 nodes are available")), "Unschedulable: 0/3 nodes are available"},
		{"its image is not there", podNamed("web-2", on("b"), func(p *corev1.Pod) {
			p.Status.Conditions = nil
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
		}), "ImagePullBackOff"},
		{"it is Ready, and on the node that is drained", podNamed("web-2", drained("skip")), "it was not made"},
		{"it is Ready, and about to go", podNamed("web-2", on("b"), func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }), "it was not made"},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := surging(t, 1)
			if c.pod != nil {
				h.put(c.pod)
			}
			d := h.drainer(func(c *Config) { c.SurgeFor = time.Minute })
			order := h.order(drain.Options{Timeout: lasting(0)})
			d.Ensure(t.Context(), order)
			time.Sleep(59 * time.Second)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); h.deployment() != oneMore || st.Reason != executors.DrainWorking {
				t.Fatalf("before its time is over: %s, %q", h.deployment(), standing(st))
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			st := d.Ensure(t.Context(), order)
			want := "no replacement became Ready: " + c.why + "; Deployment/web is as it was; make room for one more pod, or take the annotation maint.dev/drain=surge away"
			if h.deployment() != "1 replicas" || !strings.Contains(st.Message, want) || st.Reason != executors.DrainBlocked || len(h.requests()) != 0 {
				t.Errorf("%s, %q, asked %q", h.deployment(), standing(st), h.requests())
			}
			if known := d.Unreplaced("a", mine, order.Since); !strings.Contains(known["uid-web-1"].Why, c.why) || len(d.Unreplaced("a", mine, time.Now())) > 0 || len(d.Unreplaced("b", mine, order.Since)) > 0 {
				t.Errorf("known of what failed: %+v", known)
			}
			time.Sleep(drain.SurgeAgain(1))
			synctest.Wait()
			if known := d.Unreplaced("a", mine, order.Since); len(known) > 0 {
				t.Errorf("known still: %+v", known)
			}
			time.Sleep(time.Minute + 10*time.Second) // in which it fails again
			again := drain.SurgeAgain(2) - 30*time.Second
			time.Sleep(again)
			synctest.Wait()
			if known := d.Unreplaced("a", mine, order.Since); len(known) != 1 || h.deployment() != "1 replicas" {
				t.Errorf("%s later, after it failed again: %+v, %s", again, known, h.deployment())
			}
			time.Sleep(20 * time.Second)
			h.put(podNamed("web-2", on("b")))
			time.Sleep(time.Minute)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); !st.Done || h.deployment() != "1 replicas" {
				t.Errorf("when there is room later: %s, %q", h.deployment(), standing(st))
			}
		})
	}
}

// A surge that fails says how the Deployment is, whoever changed it meanwhile.
func TestWhatIsSaidOfADeploymentWhoseSurgeFailed(t *testing.T) {
	edit := func(h *host, f func(*unstructured.Unstructured)) { h.Edit("deployments", "shop", "web", f) }
	for _, c := range []struct {
		name      string
		meanwhile func(*host)
		says      string
		want      string // empty: it is not there
	}{
		{"nobody changed it", func(*host) {}, "; Deployment/web is as it was", "1 replicas"},
		{"our answer is lost", func(h *host) { h.LoseReply(agenttest.When{Verb: "patch", Resource: "deployments"}, 1) }, "; Deployment/web is as it was", "1 replicas"},
		{"somebody scaled it", func(h *host) { h.scale(5) }, "; somebody changed Deployment/web meanwhile: its 5 replicas stay", "5 replicas"},
		{"somebody scaled it back", func(h *host) { h.scale(1) }, "; Deployment/web is as it was", "1 replicas"},
		{
			"somebody removed the record", func(h *host) {
				edit(h, func(u *unstructured.Unstructured) { u.SetAnnotations(nil); u.SetLabels(nil) })
			}, "; somebody changed Deployment/web meanwhile: its 2 replicas stay", "2 replicas",
		},
		{
			"somebody made the record unreadable", func(h *host) {
				edit(h, func(u *unstructured.Unstructured) {
					u.SetAnnotations(map[string]string{annotations.StatusSurge: "?"})
				})
			}, "; somebody changed Deployment/web meanwhile: its 2 replicas stay", "2 replicas, invalid character '?' looking for beginning of value",
		},
		{"somebody deleted it", func(h *host) { h.DeleteAtOnce("deployments", "shop", "web") }, "; Deployment/web was deleted meanwhile", ""},
		{"it may not be written any more", func(h *host) { h.Deny("", "patch", "deployments") }, "; Deployment/web keeps one replica too many", oneMore},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := surging(t, 1)
			h.put(podNamed("web-2", on(""), notReady("no room")))
			d := h.drainer(func(c *Config) { c.SurgeFor = time.Minute })
			order := h.order(drain.Options{Timeout: lasting(0)})
			d.Ensure(t.Context(), order)
			time.Sleep(30 * time.Second)
			synctest.Wait()
			c.meanwhile(h)
			time.Sleep(time.Minute)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); !strings.Contains(st.Message, "no replacement became Ready: Unschedulable: no room"+c.says+"; make room") {
				t.Errorf("%q", standing(st))
			}
			if c.want != "" && h.deployment() != c.want {
				t.Errorf("it has %s", h.deployment())
			}
		})
	}
}

// What a drain left that was broken off is given back by the next, or by the sweep.
func TestReplicasThatABrokenDrainLeft(t *testing.T) {
	left := func(s annotations.Surge) func(*appsv1.Deployment) {
		return func(dep *appsv1.Deployment) {
			text, _ := json.Marshal(s)
			dep.Spec.Replicas = new(int32(2))
			dep.Labels, dep.Annotations = map[string]string{annotations.LabelSurging: "true"}, map[string]string{annotations.StatusSurge: string(text)}
		}
	}
	gone := annotations.Surge{Replicas: 1, Node: "a", Pod: "uid-gone", By: mine}
	other := gone
	other.By = "gpu"
	elsewhere := gone
	elsewhere.Node = "b"
	nameless := gone
	nameless.By = ""
	has := func(s annotations.Surge) string {
		return fmt.Sprintf("2 replicas, of 1 for %s by %s", s.Pod, s.By)
	}
	for _, c := range []struct {
		name   string
		record annotations.Surge
		busy   bool
		world  func(*host)
		want   string
		left   int
		err    string
	}{
		{"its drain is no more", gone, false, nil, "1 replicas", 0, ""},
		{"its drain is about to be taken up", gone, true, nil, has(gone), 1, ""},
		{"it is another claimant's", other, false, nil, has(other), 0, ""},
		{"it is of an agent that wrote no claimant", nameless, false, nil, "1 replicas", 0, ""},
		{"of another node, whose drain is no more either", elsewhere, false, nil, "1 replicas", 0, ""},
		{"somebody is faster: it is left for the next time", gone, false, func(h *host) {
			h.Before(agenttest.When{Verb: "patch", Resource: "deployments"}, func() { h.scale(3) })
		}, "3 replicas, of 1 for uid-gone by " + mine, 1, "give back the replica that a surge added to Deployment shop/web: "},
		{"the Deployment goes meanwhile", gone, false, func(h *host) {
			h.Before(agenttest.When{Verb: "get", Resource: "deployments"}, func() { h.Delete("deployments", "shop", "web") })
		}, "", 0, ""},
		{"without a claimant, and it may not be changed: the refusal may pass", nameless, false, func(h *host) {
			h.Deny("", "patch", "deployments")
		}, has(nameless), 0, "give back the replica that a surge added to Deployment shop/web: "},
		{"they cannot be listed", gone, false, func(h *host) { h.Deny("", "list", "deployments") }, has(gone), 0, "list the Deployments that surge: "},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := surging(t, 1, left(c.record))
			if c.world != nil {
				c.world(h)
			}
			d := h.drainer()
			n, err := d.Sweep(t.Context(), executors.Clients{Kube: h.kube}, "maint-plan-x", mine, func(node string) bool { return c.busy && node == c.record.Node })
			if (err != nil) != (c.err != "") || err != nil && !strings.HasPrefix(err.Error(), c.err) || n != c.left {
				t.Errorf("%d are left, %v", n, err)
			}
			if c.want == "" {
				return
			}
			if got := h.deployment(); got != c.want {
				t.Errorf("it has %s", got)
			}
		})
	}
	inBubble(t, "the next drain of the node gives it back before it ends", func(t *testing.T) {
		h := surging(t, 1, left(gone))
		h.DeleteAtOnce("pods", "shop", "web-1")
		let := h.Hold(agenttest.When{Verb: "patch", Resource: "deployments"}, 1)
		d := h.drainer()
		order := h.order(drain.Options{})
		d.Ensure(t.Context(), order)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); st.Done {
			t.Error("it ends while a replica is still to be given back")
		}
		if n, err := d.Sweep(t.Context(), order.Clients, "maint-plan-x", mine, func(string) bool { return false }); n != 1 || err != nil {
			t.Errorf("a sweep meanwhile: %d, %v", n, err)
		}
		let()
		time.Sleep(time.Second)
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); !st.Done || h.deployment() != "1 replicas" {
			t.Errorf("%q, %s", standing(st), h.deployment())
		}
	})
	inBubble(t, "a drain goes on with the replica that the one before it added for the same pod", func(t *testing.T) {
		mineStill := gone
		mineStill.Pod = "uid-web-1"
		mineStill.At = time.Now()
		h := surging(t, 1, left(mineStill))
		d := h.drainer()
		order := h.order(drain.Options{})
		d.Ensure(t.Context(), order)
		time.Sleep(5 * time.Second)
		h.put(podNamed("web-2", on("b")))
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); !st.Done || h.deployment() != "1 replicas" {
			t.Errorf("%q, %s", standing(st), h.deployment())
		}
		if n := len(slices.DeleteFunc(h.Log(), func(line string) bool { return line != "agent patch deployments shop/web" })); n != 1 {
			t.Errorf("%d patches", n)
		}
	})
}

// owing is a Deployment with one replica more than its record says, of which a surge made two.
func owing(namespace, name string, s annotations.Surge) *appsv1.Deployment {
	text, _ := json.Marshal(s)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name),
			Labels: map[string]string{annotations.LabelSurging: "true"}, Annotations: map[string]string{annotations.StatusSurge: string(text)},
		},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
	}
}

// owes says whether a Deployment still has its record.
func (h *host) owes(namespace, name string) bool {
	return h.Get("deployments", namespace, name).GetAnnotations()[annotations.StatusSurge] != ""
}

// What somebody else wrote on a Deployment of theirs holds no drain, and keeps nobody else's
// Deployment from what it is owed.
func TestAForgedRecordOfASurgeHoldsNoDrain(t *testing.T) {
	forged := annotations.Surge{Replicas: 1, Node: "a", Pod: "uid-gone"}
	patched := agenttest.When{Verb: "patch", Resource: "deployments", Name: "aa"}
	const refused = "; the replica that a surge added is not given back yet to Deployment shop/aa (a policy says no)"
	edit := func(f func(*annotations.Surge)) annotations.Surge {
		s := forged
		f(&s)
		return s
	}
	for _, c := range []struct {
		name    string
		record  annotations.Surge
		world   func(*host)
		atFirst string // after ten seconds
		atLast  string // after another minute
		stays   bool
		unswept []string
	}{
		{
			"fewer replicas than none", edit(func(s *annotations.Surge) { s.Replicas = -1 }), func(h *host) {
				h.Refuse(patched, agenttest.Always, http.StatusUnprocessableEntity, "a policy says no")
			}, "Drained: done, 0 evicted", "Drained: done, 0 evicted", true, nil,
		},
		{"another claimant's", edit(func(s *annotations.Surge) { s.By = "gpu" }), func(*host) {}, "Drained: done, 0 evicted", "Drained: done, 0 evicted", true, nil},
		{"one that can be given back", forged, func(*host) {}, "Drained: done, 0 evicted", "Drained: done, 0 evicted", false, nil},
		{
			"one that is refused for good", forged, func(h *host) {
				h.Refuse(patched, agenttest.Always, http.StatusUnprocessableEntity, "a policy says no")
			}, "Drained: done, 0 evicted" + refused, "Drained: done, 0 evicted" + refused, true, []string{mine},
		},
		{
			"one without the right", forged, func(h *host) {
				h.Refuse(patched, agenttest.Always, http.StatusForbidden, "a policy says no")
			}, "Drained: done, 0 evicted" + refused, "Drained: done, 0 evicted" + refused, true, []string{mine},
		},
		{
			"one that others write all the time", forged, func(h *host) {
				h.Refuse(patched, agenttest.Always, http.StatusConflict, "a policy says no")
			}, "Draining: 0 of 0 pods have left; waits for the replica that a surge added to Deployment shop/aa to be given back: a policy says no",
			"Drained: done, 0 evicted" + refused, true,
			[]string{mine},
		},
		{
			"one whose webhook does not answer", forged, func(h *host) { h.Hold(patched, agenttest.Always) },
			"Draining: 0 of 0 pods have left; waits for the replica that a surge added to Deployment shop/aa to be given back",
			"Drained: done, 0 evicted; the replica that a surge added is not given back yet to Deployment shop/aa (", true,
			[]string{mine},
		},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			genuine := edit(func(s *annotations.Surge) { s.By = mine })
			h := newHost(t, owing("shop", "aa", c.record), owing("shop", "zz", genuine), owing("zoo", "yy", genuine))
			c.world(h)
			d := h.drainer()
			order := h.order(drain.Options{})
			d.Ensure(t.Context(), order)
			time.Sleep(9 * time.Second)
			synctest.Wait()
			if got := standing(d.Ensure(t.Context(), order)); !strings.HasPrefix(got, c.atFirst) {
				t.Errorf("at first %q", got)
			}
			if h.owes("shop", "zz") || h.owes("zoo", "yy") {
				t.Error("the others wait for it")
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := standing(d.Ensure(t.Context(), order)); !strings.HasPrefix(got, c.atLast) {
				t.Errorf("at last %q", got)
			}
			if h.owes("shop", "aa") != c.stays || !slices.Equal(d.Unswept(), c.unswept) || len(d.Unswept()) > 0 {
				t.Errorf("it stays: %t", h.owes("shop", "aa"))
			}
		})
	}
}

// A pod that waits for the replacement of another, by a record that is never removed, may leave by
// itself.
func TestAPodThatLeavesBeforeItsSurgeBeginsHoldsNoDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := surging(t, 1, func(dep *appsv1.Deployment) {
			dep.Annotations = map[string]string{annotations.StatusSurge: `{"replicas":1,"node":"b","pod":"x"}`}
		})
		d := h.drainer()
		order := h.order(drain.Options{})
		d.Ensure(t.Context(), order)
		time.Sleep(5 * time.Second)
		h.end("shop", "web-1")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); standing(st) != "Drained: done, 0 evicted, 1 gone by themselves" {
			t.Errorf("%q", standing(st))
		}
	})
}

// A replica that was added, though nobody heard so, is removed when its pod leaves by itself.
func TestAReplicaThatWasAddedUnheardIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := surging(t, 1)
		patched := agenttest.When{Verb: "patch", Resource: "deployments"}
		h.LoseReply(patched, 1)
		d := h.drainer()
		order := h.order(drain.Options{})
		d.Ensure(t.Context(), order)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := h.deployment(); got != oneMore {
			t.Fatalf("it has %s", got)
		}
		h.end("shop", "web-1")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); !st.Done || h.deployment() != "1 replicas" {
			t.Errorf("%q, %s", standing(st), h.deployment())
		}
	})
}

// An API server that starts refuses everybody for a while: the sweep looks again.
func TestAReplicaThatADrainMayNotLookForIsSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, owing("shop", "aa", annotations.Surge{Replicas: 1, Node: "a", Pod: "uid-gone", By: mine}))
		h.Deny("", "list", "deployments")
		d := h.drainer()
		d.Ensure(t.Context(), h.order(drain.Options{}))
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if got := d.Unswept(); !slices.Equal(got, []string{mine}) {
			t.Errorf("swept are %q", got)
		}
	})
}

// A replica that was added, though nobody heard so, is left to the sweep where nothing may be read
// since.
func TestAReplicaThatWasAddedUnheardIsSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := surging(t, 1)
		h.LoseReply(agenttest.When{Verb: "patch", Resource: "deployments"}, 1)
		d := h.drainer()
		order := h.order(drain.Options{})
		d.Ensure(t.Context(), order)
		time.Sleep(time.Second)
		synctest.Wait()
		h.Deny("", "get", "deployments")
		time.Sleep(time.Minute)
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); st.Reason != executors.DrainBlocked || h.deployment() != oneMore {
			t.Errorf("%q, %s", standing(st), h.deployment())
		}
		if got := d.Unswept(); !slices.Equal(got, []string{mine}) {
			t.Errorf("swept are %q", got)
		}
	})
}

// One Deployment whose replica cannot be given back keeps no other from it.
func TestASweepGoesOnAfterADeploymentThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := annotations.Surge{Replicas: 1, Node: "a", Pod: "uid-gone"}
		h := newHost(t, owing("shop", "aa", record), owing("shop", "bb", record), owing("shop", "mm", record), owing("zoo", "zz", record))
		for name, code := range map[string]int{"aa": http.StatusUnprocessableEntity, "bb": http.StatusForbidden} {
			h.Refuse(agenttest.When{Verb: "patch", Resource: "deployments", Name: name}, agenttest.Always, code, "no")
		}
		d := h.drainer()
		left, err := d.Sweep(t.Context(), executors.Clients{Kube: h.kube}, "maint-plan-x", mine, func(string) bool { return false })
		const gives = "give back the replica that a surge added to Deployment shop/"
		if left != 1 || err == nil || err.Error() != gives+"aa: no\n"+gives+"bb: no" {
			t.Errorf("%d are left, %v", left, err)
		}
		if !h.owes("shop", "aa") || !h.owes("shop", "bb") || h.owes("shop", "mm") || h.owes("zoo", "zz") {
			t.Error("not what is left")
		}
	})
}

// recordOn writes a record on web that no list by its label shows.
func recordOn(s annotations.Surge, replicas int32) func(*appsv1.Deployment) {
	return func(dep *appsv1.Deployment) {
		text, _ := json.Marshal(s)
		dep.Spec.Replicas, dep.Annotations = new(replicas), map[string]string{annotations.StatusSurge: string(text)}
	}
}

// A record of a pod that does not leave by this drain holds no surge: the next one gives back what it
// says.
func TestARecordOfAPodThatDoesNotLeaveHoldsNoSurge(t *testing.T) {
	for _, c := range []struct {
		name     string
		record   annotations.Surge
		replicas int32
	}{
		{"a forged one", annotations.Surge{Replicas: 1, Node: "a", Pod: "x"}, 1},
		{"of a pod that is gone", annotations.Surge{Replicas: 1, Node: "a", Pod: "x", By: mine}, 2},
		{"of a pod that stays on the node", annotations.Surge{Replicas: 1, Node: "a", Pod: "uid-stays", By: mine}, 2},
		{"of a pod of another namespace", annotations.Surge{Replicas: 1, Node: "a", Pod: "uid-held", By: mine}, 2},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := surging(t, 1, recordOn(c.record, c.replicas))
			held := podNamed("held", alone, func(p *corev1.Pod) { p.Namespace = "zoo" })
			h.put(podNamed("stays", drained("skip")), held)
			d := h.drainer()
			order := h.order(drain.Options{OnTimeout: drain.TimeoutSkip})
			d.Ensure(t.Context(), order)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if got := h.deployment(); got != oneMore || len(h.requests()) != 0 {
				t.Fatalf("%s, asked %q", got, h.requests())
			}
			h.put(podNamed("web-2", on("b")))
			time.Sleep(30 * time.Second)
			synctest.Wait()
			if got := h.requests(); !slices.Equal(got, []string{"evict shop/web-1"}) || h.deployment() != "1 replicas" {
				t.Errorf("asked %q, %s", got, h.deployment())
			}
		})
	}
}

// What holds a surge up is a block that is said, once it lasts.
func TestWhatHoldsASurgeUpForLongIsABlock(t *testing.T) {
	patched := agenttest.When{Verb: "patch", Resource: "deployments"}
	for _, c := range []struct {
		name  string
		dep   []func(*appsv1.Deployment)
		world func(*host)
		want  string
	}{
		{
			"a replica that may not be given back",
			[]func(*appsv1.Deployment){recordOn(annotations.Surge{Replicas: 1, Node: "a", Pod: "x"}, 2)},
			func(h *host) { h.Refuse(patched, agenttest.Always, http.StatusForbidden, "a policy says no") },
			"Blocked: 0 of 1 pods have left; shop/web-1 cannot leave until somebody changes something: the replica that the surge of another pod added to Deployment/web is not given back (a policy says no); " +
				"let the agent patch that Deployment, or remove its annotation status.maint.dev/surge once its replicas are as they should be",
		},
		{
			"a webhook that does not answer", nil,
			func(h *host) { h.Refuse(patched, agenttest.Always, http.StatusInternalServerError, "no answer") },
			"Blocked: 0 of 1 pods have left; shop/web-1 cannot leave for now: no answer; wait; if it lasts, look at its Deployment",
		},
		{
			"another pod of its Deployment that cannot leave",
			[]func(*appsv1.Deployment){recordOn(annotations.Surge{Replicas: 1, Node: "a", Pod: "uid-held", By: mine}, 2)},
			func(h *host) { h.put(podNamed("held", drained("wait-completed"))) },
			"Blocked: 0 of 2 pods have left; shop/web-1 cannot leave for now: another pod of its Deployment is being replaced; wait; if it lasts, look at its Deployment",
		},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := surging(t, 1, c.dep...)
			c.world(h)
			d := h.drainer()
			order := h.order(drain.Options{})
			d.Ensure(t.Context(), order)
			time.Sleep(20 * time.Second)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); st.Reason != executors.DrainWorking {
				t.Errorf("at first %q", standing(st))
			}
			time.Sleep(25 * time.Second)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); standing(st) != c.want {
				t.Errorf("%q", standing(st))
			}
		})
	}
}

// Two pods of one Deployment are replaced one after the other.
func TestPodsOfOneDeploymentAreReplacedOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := surging(t, 2)
		h.put(podNamed("web-2", drained("surge")), budget(0))
		d := h.drainer()
		order := h.order(drain.Options{Timeout: lasting(0)})
		d.Ensure(t.Context(), order)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		first := h.deployment()
		if !strings.HasPrefix(first, "3 replicas, of 2 for uid-web-") {
			t.Fatalf("it has %s", first)
		}
		st := d.Ensure(t.Context(), order)
		if !slices.ContainsFunc(st.Pods, func(p drain.Progress) bool { return strings.HasPrefix(p.Why, "after pod shop/web-") }) {
			t.Errorf("of the second: %+v", st.Pods)
		}
		h.put(podNamed("web-3", on("b")))
		h.allow(1)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := h.requests(); len(got) != 1 || !strings.HasSuffix(first, strings.TrimPrefix(got[0], "evict shop/")+" by "+mine) {
			t.Errorf("asked %q for %s", got, first)
		}
		h.put(podNamed("web-4", on("b")))
		time.Sleep(10 * time.Second)
		h.allow(1)
		time.Sleep(time.Minute)
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); !st.Done || len(h.requests()) != 2 || h.deployment() != "2 replicas" {
			t.Errorf("%q, asked %q, %s", standing(st), h.requests(), h.deployment())
		}
	})
}

// A drain that is called off gives the replica back; an agent that ends leaves it, and its
// record, to the next.
func TestAReplacementWhoseDrainEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := surging(t, 1)
		d := h.drainer()
		d.Ensure(t.Context(), h.order(drain.Options{}))
		time.Sleep(5 * time.Second)
		h.Refuse(agenttest.When{Verb: "patch", Resource: "deployments"}, 1, http.StatusInternalServerError, "etcd is away")
		d.Stop("a", mine)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := h.deployment(); got != "1 replicas" {
			t.Errorf("called off: %s", got)
		}
	})
}
