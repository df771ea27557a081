package factory

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/serverstate"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

func saturday() time.Time { return time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC) }

func object(kind, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "u", Labels: map[string]string{annotations.LabelKind: kind}}}
}

func clusterOf(objects ...runtime.Object) *Cluster {
	known := fake.NewClientset(objects...)
	names := func(ctx context.Context, _, namespace, selector string) (out []string, err error) {
		list, err := known.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		for _, cm := range list.Items {
			out = append(out, cm.Name)
		}
		return out, err
	}
	return &Cluster{Kube: known, Cached: &kube.Cached{Names: names}, Namespace: "shop"}
}

func TestWhatANameMeans(t *testing.T) {
	foreign := object("", "settings")
	k := clusterOf(object(annotations.KindPlan, "orders-nightly"), object(annotations.KindPlan, "orders-weekly"), object(annotations.KindRun, "maint-run-x"), object(annotations.KindRun, "maint-run-orders-nightly-a"), foreign)
	for _, c := range []struct{ name, arg, want, err string }{
		{"a plan", "orders-weekly", "orders-weekly", ""},
		{"a plan with its kind", "plan/orders-weekly", "orders-weekly", ""},
		{"a plan with its kind as lists and kubectl write it", "Plans/orders-weekly", "orders-weekly", ""},
		{"a kind that there is not", "pod/orders-weekly", "", `pod/orders-weekly: there is no kind "pod" here. If pod is a namespace, write: orders-weekly -n pod. A document or node is written NAME, plan/NAME, policy/NAME, run/NAME or node/NAME. Other kinds are for 'allow' and 'freeze' alone, whose --end ends what they wrote`},
		{"a slip of the pen, beside another name that begins alike", "orders-weakly", "", `there is no plan or run "orders-weakly" in namespace shop; did you mean "orders-weekly"?`},
		{"a run without its first letters", "x", "maint-run-x", ""},
		{"a name that was probably meant", "orders", "", `there is no plan or run "orders" in namespace shop; did you mean "orders-nightly"?`},
		{"the beginning of a plan's name, which is within a run's, too", "order", "", `there is no plan or run "order" in namespace shop; did you mean "orders-nightly"?`},
		{"a name of nothing", "zzz", "", `there is no plan or run "zzz" in namespace shop; see 'kubectl maint list'`},
		{"somebody else's object", "settings", "", "the ConfigMap shop/settings is no plan or run: it lacks the label " + annotations.LabelKind + "; see 'kubectl maint list'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cm, err := k.Document(t.Context(), c.arg, annotations.KindPlan, annotations.KindRun)
			got, text := "", ""
			if err != nil {
				text = err.Error()
			} else {
				got = cm.Name
			}
			if got != c.want || text != c.err {
				t.Errorf("%q, error %q", got, text)
			}
		})
	}
}

func TestAnAgentThatIsSilentIsMissing(t *testing.T) {
	heartbeat := func(age time.Duration) *corev1.ConfigMap {
		cm := object(annotations.KindHeartbeat, annotations.HeartbeatName)
		cm.Namespace = annotations.DefaultNamespace
		cm.Data = map[string]string{"heartbeat": saturday().Add(-age).Format(time.RFC3339)}
		return cm
	}
	elsewhere := func(namespace, name string, age time.Duration) *corev1.ConfigMap {
		cm := heartbeat(age)
		cm.Namespace, cm.Name, cm.Data["identity"] = namespace, name, "agent-a"
		return cm
	}
	watching := func(namespace string) *corev1.ConfigMap {
		cm := heartbeat(time.Second)
		cm.Data[annotations.HeartbeatWatches] = namespace
		return cm
	}
	broken := heartbeat(0)
	broken.Data["heartbeat"] = "soon"
	again, evicted := podOf("a", corev1.ContainerState{}), podOf("b", corev1.ContainerState{})
	again.Status.ContainerStatuses[0].RestartCount = 3
	again.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
	evicted.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory"}
	quota := appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "pods is forbidden: exceeded quota: compute"}
	for _, c := range []struct {
		name    string
		objects []runtime.Object
		code    int
		err     string
	}{
		{"one that lives", []runtime.Object{heartbeat(time.Second)}, exit.CodeDone, ""},
		{"one that was silent for half a minute", []runtime.Object{heartbeat(31 * time.Second)}, exit.CodeNoAgent, "was last seen 31s ago"},
		{"one whose pods begin again or were evicted", []runtime.Object{heartbeat(time.Hour), again, evicted}, exit.CodeNoAgent, "see 'kubectl -n maint-system get pods'; pod a: not ready, started again after exit code 137 (OOMKilled), restarts: 3, pod b: Evicted: low on memory"},
		{"one that is silent, with its pods", []runtime.Object{heartbeat(time.Hour), podOf("a", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}), podOf("b", corev1.ContainerState{}), podOf("c", corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}})}, exit.CodeNoAgent, "see 'kubectl -n maint-system get pods'; pod a: ImagePullBackOff: no such image, pod c: exit code 1 (Error)"},
		{"none, and its pods do not start", []runtime.Object{podOf("a", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}})}, exit.CodeNoAgent, "the agent in namespace maint-system is installed, but sends no heartbeat: see 'kubectl -n maint-system get pods'; pod a: CrashLoopBackOff, after exit code 2 (Error)"},
		{"one that is scaled to nothing", []runtime.Object{heartbeat(time.Hour), deploymentOf(0)}, exit.CodeNoAgent, "was last seen 1h0m0s ago (Sat 2026-11-21 00:00 CET): its Deployment maint-agent is scaled to 0 replicas: start it with 'kubectl -n maint-system scale deployment maint-agent --replicas=2'"},
		{"one that was scaled to nothing before it began", []runtime.Object{deploymentOf(0)}, exit.CodeNoAgent, "the agent in namespace maint-system is installed, but sends no heartbeat: its Deployment maint-agent is scaled to 0 replicas: start it with"},
		{"one whose pods a quota refuses", []runtime.Object{deploymentOf(2, quota)}, exit.CodeNoAgent, "is installed, but sends no heartbeat: its Deployment maint-agent cannot create pods: pods is forbidden: exceeded quota: compute: see 'kubectl -n maint-system describe deployment maint-agent'"},
		{"one whose second pod a quota refuses", []runtime.Object{heartbeat(time.Hour), deploymentOf(2, quota), evicted}, exit.CodeNoAgent, "exceeded quota: compute: see 'kubectl -n maint-system describe deployment maint-agent'; pod b: Evicted: low on memory"},
		{"one whose Deployment has pods again", []runtime.Object{heartbeat(time.Hour), deploymentOf(2)}, exit.CodeNoAgent, "ago (Sat 2026-11-21 00:00 CET): see 'kubectl -n maint-system get pods'"},
		{"one whose last beat is old", []runtime.Object{heartbeat(time.Hour)}, exit.CodeNoAgent, "was last seen 1h0m0s ago"},
		{"one that cannot be read", []runtime.Object{broken}, exit.CodeNoAgent, "cannot be read"},
		{"one of a time to come", []runtime.Object{heartbeat(-time.Hour)}, exit.CodeNoAgent, "is in the future"},
		{"one that watches this namespace alone", []runtime.Object{watching("shop")}, exit.CodeDone, ""},
		{"one that watches another namespace", []runtime.Object{watching("team")}, exit.CodeNoAgent, "the agent in namespace maint-system watches only namespace team, and nothing acts in namespace shop: it watches all after 'kubectl maint install --apply --namespace maint-system --single-namespace=false'"},
		{"one that watched another namespace and is silent", []runtime.Object{elsewhere(annotations.DefaultNamespace, annotations.HeartbeatName, time.Hour)}, exit.CodeNoAgent, "was last seen 1h0m0s ago"},
		{"one in another namespace", []runtime.Object{elsewhere("ops", annotations.HeartbeatName, time.Second), leaseIn("ops", "agent-a", time.Hour)}, exit.CodeDone, ""},
		{"one in another namespace that gave its Lease back", []runtime.Object{elsewhere("ops", annotations.HeartbeatName, time.Hour), leaseIn("ops", "", time.Hour)}, exit.CodeNoAgent, "the agent in namespace ops was last seen 1h0m0s ago"},
		{"one in another namespace whose new leader writes no heartbeat yet", []runtime.Object{elsewhere("ops", annotations.HeartbeatName, 20*time.Second), leaseIn("ops", "agent-b", 10*time.Second)}, exit.CodeDone, ""},
		{"a heartbeat in another namespace, and no policy and no Lease", []runtime.Object{elsewhere("team", annotations.HeartbeatName, time.Second)}, exit.CodeNoAgent, "no agent runs in namespace maint-system: install it with"},
		{"a heartbeat in another namespace beside the Lease of somebody else", []runtime.Object{elsewhere("team", annotations.HeartbeatName, time.Second), leaseIn("team", "agent-b", time.Hour)}, exit.CodeNoAgent, "no agent runs in namespace maint-system: install it with"},
		{"one in another namespace, and what a tenant wrote without a Lease", []runtime.Object{elsewhere("ops", annotations.HeartbeatName, time.Second), leaseIn("ops", "agent-a", time.Hour), elsewhere("team", annotations.HeartbeatName, time.Second)}, exit.CodeDone, ""},
		{"what somebody labelled so", []runtime.Object{elsewhere("team", "mine", time.Second)}, exit.CodeNoAgent, "install it with"},
		{"two of them", []runtime.Object{elsewhere("ops", annotations.HeartbeatName, time.Second), elsewhere("team", annotations.HeartbeatName, time.Second), leaseIn("ops", "agent-a", time.Hour), leaseIn("team", "agent-a", time.Hour)}, exit.CodeNoAgent, "there are agents in namespaces ops and team: choose one with --agent-namespace"},
		{"one that is confined, and what a tenant wrote", []runtime.Object{elsewhere("ops", annotations.HeartbeatName, time.Second), elsewhere("team", annotations.HeartbeatName, time.Hour), confinedTo("ops")}, exit.CodeDone, ""},
		{"one that is confined and is silent, and what a tenant wrote", []runtime.Object{elsewhere("ops", annotations.HeartbeatName, time.Hour), elsewhere("team", annotations.HeartbeatName, time.Second), confinedTo("ops")}, exit.CodeNoAgent, "the agent in namespace ops was last seen 1h0m0s ago"},
		{"what a tenant wrote, and no agent", []runtime.Object{elsewhere("team", annotations.HeartbeatName, time.Second), confinedTo("maint-system")}, exit.CodeNoAgent, "install it with"},
		{"none", nil, exit.CodeNoAgent, "install it with 'kubectl maint install --apply'"},
		{"one that has just begun", []runtime.Object{leaseOf("one", time.Second, 59*time.Second)}, exit.CodeDone, ""},
		{"one that leads and writes no more heartbeats", []runtime.Object{heartbeat(time.Hour), leaseOf("one", time.Second, 20*time.Second)}, exit.CodeNoAgent, "was last seen 1h0m0s ago"},
		{"one that leads and says nothing", []runtime.Object{leaseOf("one", time.Second, 61*time.Second)}, exit.CodeNoAgent, "the agent in namespace maint-system has held its Lease since Sat 2026-11-21 00:58:59 CET, but writes no heartbeat: see 'kubectl -n maint-system logs deployment/maint-agent'"},
		{"one that died soon", []runtime.Object{leaseOf("one", 16*time.Second, 20*time.Second)}, exit.CodeNoAgent, "no agent runs in namespace maint-system"},
		{"one that gave its Lease back", []runtime.Object{leaseOf("", time.Second, 20*time.Second)}, exit.CodeNoAgent, "no agent runs in namespace maint-system"},
		{"a Lease of a time to come", []runtime.Object{leaseOf("one", -time.Hour, -time.Hour)}, exit.CodeNoAgent, "no agent runs in namespace maint-system"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &Factory{Env: Env{Name: "kubectl maint", Now: saturday, Zone: "Europe/Berlin"}}
			err := f.NeedAgent(t.Context(), clusterOf(c.objects...), "")
			if code := exit.CodeOf(err); code != c.code || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("code %d: %v", code, err)
			}
		})
	}
}

// confinedTo is the policy that confines the agent of a namespace.
func confinedTo(namespace string) *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "maint-agent-configmaps"},
		Spec:       admissionv1.ValidatingAdmissionPolicySpec{MatchConditions: []admissionv1.MatchCondition{{Name: "agent", Expression: "request.userInfo.username == 'system:serviceaccount:" + namespace + ":maint-agent'"}}},
	}
}

// The caller may see no more than the heartbeat.
func TestWhoMayNotLookAtTheAgentIsToldNoReason(t *testing.T) {
	k := clusterOf(deploymentOf(0))
	for _, resource := range []string{"deployments", "pods"} {
		k.Kube.(*fake.Clientset).PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("not for you") })
	}
	f := &Factory{Env: Env{Name: "kubectl maint", Now: saturday}}
	if err := f.NeedAgent(t.Context(), k, ""); exit.CodeOf(err) != exit.CodeNoAgent || err.Error() != "no agent runs in namespace maint-system: install it with 'kubectl maint install --apply'" {
		t.Error(err)
	}
}

// leaseOf is the agent's, renewed and acquired so long ago.
func leaseOf(holder string, renewed, acquired time.Duration) *coordinationv1.Lease {
	at := func(ago time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: saturday().Add(-ago)} }
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: annotations.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: at(renewed), AcquireTime: at(acquired)},
	}
}

// leaseIn is that of an agent in another namespace.
func leaseIn(namespace, holder string, acquired time.Duration) *coordinationv1.Lease {
	lease := leaseOf(holder, time.Second, acquired)
	lease.Namespace = namespace
	return lease
}

// Who may not read the Lease beside a heartbeat goes by the heartbeat.
func TestAHeartbeatCountsWhereItsLeaseMayNotBeRead(t *testing.T) {
	cm := object(annotations.KindHeartbeat, annotations.HeartbeatName)
	cm.Namespace, cm.Data = "ops", map[string]string{"identity": "agent-a", "heartbeat": saturday().Format(time.RFC3339)}
	k := clusterOf(cm)
	k.Kube.(*fake.Clientset).PrependReactor("get", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.GetNamespace() == "ops", nil, apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", nil)
	})
	if s, err := (&Factory{Env: Env{Now: saturday}}).Agent(t.Context(), k); err != nil || s.Namespace != "ops" || s.Missing != "" {
		t.Errorf("%+v, %v", s, err)
	}
}

// deploymentOf is the agent's.
func deploymentOf(replicas int32, conditions ...appsv1.DeploymentCondition) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: "maint-agent", Labels: map[string]string{"app.kubernetes.io/name": "maint-agent"}}}
	d.Spec.Replicas, d.Status.Conditions = &replicas, conditions
	return d
}

// podOf is a pod of the agent with one container.
func podOf(name string, state corev1.ContainerState) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: name, Labels: map[string]string{"app.kubernetes.io/name": "maint-agent"}}}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{State: state}}}
	if state.Waiting != nil && state.Waiting.Reason == "CrashLoopBackOff" {
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error"}
	}
	return p
}

// A clock that is wrong here is no silence there.
func TestAHeartbeatIsReadByTheClockOfTheAPIServer(t *testing.T) {
	cm := object(annotations.KindHeartbeat, annotations.HeartbeatName)
	cm.Namespace, cm.Data = annotations.DefaultNamespace, map[string]string{"heartbeat": saturday().Add(-10 * time.Minute).Format(time.RFC3339)}
	for ahead, code := range map[time.Duration]int{0: exit.CodeNoAgent, -10 * time.Minute: exit.CodeDone, 10 * time.Minute: exit.CodeNoAgent, -15 * time.Minute: exit.CodeNoAgent} {
		k := clusterOf(cm)
		k.clock = &serverstate.State{}
		answers := k.clock.RoundTripper(serverstate.RoundTripFunc(func(*http.Request) (*http.Response, error) {
			return &http.Response{Header: http.Header{"Date": {time.Now().Add(ahead).UTC().Format(http.TimeFormat)}}}, nil
		}))
		if _, err := answers.RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil)); err != nil { //nolint:bodyclose // there is none
			t.Fatal(err)
		}
		f := &Factory{Env: Env{Name: "kubectl maint", Now: saturday}}
		if err := f.NeedAgent(t.Context(), k, ""); exit.CodeOf(err) != code {
			t.Errorf("%s ahead: %v", ahead, err)
		}
	}
}

// Who may not look gets a word of doubt, and goes on.
func TestWhetherAnAgentRunsMayNotBeKnown(t *testing.T) {
	kube := fake.NewClientset()
	kube.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "", nil)
	})
	var said bytes.Buffer
	f := &Factory{Env: Env{IOStreams: genericiooptions.IOStreams{ErrOut: &said}, Now: saturday}}
	if err := f.NeedAgent(t.Context(), &Cluster{Kube: kube}, ""); err != nil || !strings.HasPrefix(said.String(), "warning: could not look whether the agent runs") {
		t.Errorf("%v, said %q", err, said.String())
	}
}

// What somebody wrote in between is looked at again, so that no intent is lost.
func TestAnIntentIsDecidedAgainAfterAConflict(t *testing.T) {
	kube := fake.NewClientset(object(annotations.KindPlan, "orders"))
	conflicts := 2
	kube.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		conflicts--
		if conflicts < 0 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(corev1.Resource("configmaps"), "orders", errors.New("changed"))
	})
	k, asked := &Cluster{Kube: kube, Namespace: "shop"}, 0
	err := k.Annotate(t.Context(), object(annotations.KindPlan, "orders"), &DryRun{Mode: "none"}, func(*corev1.ConfigMap) (Change, error) {
		asked++
		return Change{annotations.Pause: Value("true")}.Signed(annotations.Pause, "jane", "why not"), nil
	})
	if err != nil || asked != 3 {
		t.Fatalf("asked %d times: %v", asked, err)
	}
	cm, err := k.ConfigMaps("shop").Get(t.Context(), "orders", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{annotations.Pause: "true", annotations.Actor(annotations.Pause): "jane", annotations.Reason(annotations.Pause): "why not"}
	if diff := cmp.Diff(want, cm.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestConsent(t *testing.T) {
	for _, c := range []struct {
		name     string
		consent  Consent
		terminal bool
		typed    string
		code     int
	}{
		{"--yes asks nobody", Consent{yes: true}, false, "", exit.CodeDone},
		{"without a terminal nobody can be asked", Consent{}, false, "", exit.CodeUsage},
		{"yes", Consent{}, true, "Yes\n", exit.CodeDone},
		{"anything else is no", Consent{}, true, "sure\n", exit.CodeError},
		{"the end of input is no", Consent{}, true, "", exit.CodeError},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &Factory{Env: Env{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(c.typed), ErrOut: &bytes.Buffer{}}, InTerminal: c.terminal}}
			if code := exit.CodeOf(f.Confirm(t.Context(), c.consent, "abort run x")); code != c.code {
				t.Errorf("code %d, want %d", code, c.code)
			}
		})
	}
}

func TestAnEmptyListOfANamespaceThatIsNotThereIsTold(t *testing.T) {
	for namespace, want := range map[string]string{"shop": "", "": "", "shpo": "there is no namespace shpo; 'kubectl get namespaces' shows which there are"} {
		k := clusterOf(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		var said []string
		k.Warn = func(text string) { said = append(said, text) }
		if list, err := k.Plans(t.Context(), namespace, ""); err != nil || len(list) != 0 || strings.Join(said, ", ") != want {
			t.Errorf("%s: %v, %v, said %q", namespace, list, err, said)
		}
	}
}
