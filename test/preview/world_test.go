// Package preview compares what commands say beforehand with what the agent then does: the same
// documents, one cluster in memory, the whole agent, and the commands as people run them.
package preview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/flow"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

const shop = "shop"

// world is a cluster in memory. Its time is that of a synctest bubble.
type world struct {
	*testing.T
	*agenttest.Cluster
	stop  func() // the agent; nil: none runs
	ticks atomic.Int64
}

// now is a clock that moves on whenever it is read: that of a bubble stands still while something
// is done, and an answer would never be younger than the look before it.
func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ticks.Add(1))) }

// play has a story happen in an empty cluster, on the evening before Berlin's clocks go forward.
func play(t *testing.T, story func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, Cluster: agenttest.New(t)}
		w.Serve(
			agenttest.Kind{Version: "v1", Kind: "Event", Resource: "events", Namespaced: true},
			agenttest.Kind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy", Resource: "validatingadmissionpolicies"},
			agenttest.Kind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding", Resource: "validatingadmissionpolicybindings"},
		)
		time.Sleep(time.Until(evening()))
		w.Put(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: annotations.DefaultNamespace}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "maint-runner"}},
		)
		story(w)
		w.ends()
	})
}

// evening is when each story begins. No slot is due in its minute.
func evening() time.Time { return time.Date(2000, 3, 25, 23, 31, 30, 0, time.UTC) }

// deployment is one that is ready.
func (w *world) deployment(name string) {
	w.Put(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}, Status: appsv1.DeploymentStatus{ReadyReplicas: 1}})
}

// document is the ConfigMap of a plan or a policy.
func (w *world) document(name, kind, label, key, spec string, notes map[string]string) {
	text := "apiVersion: " + document.APIVersion + "\nkind: " + kind + "\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
	w.Put(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{annotations.LabelKind: label}, Annotations: notes},
		Data:       map[string]string{key: text},
	})
}

func (w *world) plan(name, spec string, notes map[string]string) {
	w.document(name, "Plan", annotations.KindPlan, annotations.DataPlan, spec, notes)
}

func (w *world) hibernatePlan(name, spec string, notes map[string]string) {
	w.document(name, "HibernatePlan", annotations.KindHibernatePlan, annotations.DataPlan, spec, notes)
}

func (w *world) policy(name, spec string) {
	w.document(name, "Policy", annotations.KindPolicy, annotations.DataPolicy, spec, nil)
}

func (w *world) namespace(notes map[string]string) {
	w.Put(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: shop, Annotations: notes}})
}

func (w *world) config() *rest.Config {
	return &rest.Config{Host: "http://cluster.test", Transport: w.Cluster, QPS: -1}
}

// begins has an agent run.
func (w *world) begins() {
	w.Helper()
	a, err := agent.New(agent.Options{
		Config: w.config(), Namespace: annotations.DefaultNamespace, LeaderElection: agent.LeaderElection{Identity: "agent-1"}, Version: "v0.1.0", Now: w.now,
		Log: slog.New(slog.DiscardHandler), LogLevel: &slog.LevelVar{},
		Executors: agent.Executors{Executor: executor, Sleepers: map[string]executors.Sleeper{hibernate.TypeNoop: flow.Noop{}}},
		Outbound:  agent.Outbound{HTTPClient: func(agentconfig.Outbound) *http.Client { return &http.Client{} }},
	})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			w.Errorf("the agent ended: %v", err)
		}
	}
}

// ends stops the agent, if one runs.
func (w *world) ends() {
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// until lets time go by up to an instant, and what is to happen then.
func (w *world) until(at time.Time) {
	time.Sleep(time.Until(at))
	synctest.Wait()
}

// done ends each step at once.
type done struct{}

// Pass is executors.Executor's.
func (done) Pass(context.Context, executors.Call) executors.Outcome {
	return executors.Outcome{State: executors.Done}
}

// executor is what a simulation takes for granted: a step ends at once, but suspend, which takes
// its time.
func executor(stepType string) (executors.Executor, bool) {
	if stepType == "suspend" {
		return flow.Suspender{}, true
	}
	return done{}, true
}

// maint runs one command line on the cluster, and reads what it prints for scripts into out.
func (w *world) maint(out any, args ...string) (code int) {
	w.Helper()
	typed, err := kube.NewBasic(w.config())
	if err != nil {
		w.Fatal(err)
	}
	meta, err := metadata.NewForConfig(&rest.Config{Host: "http://cluster.test", Transport: w.Cluster, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}})
	if err != nil {
		w.Fatal(err)
	}
	var printed, warned bytes.Buffer
	env := factory.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &printed, ErrOut: &warned},
		Name:      "kubectl maint", Version: "v0.1.0", Now: time.Now, Zone: "Europe/Berlin",
	}
	code = cmd.Run(w.Context(), factory.NewFor(env, &factory.Cluster{Kube: typed, Metadata: meta, Namespace: shop}), append(args, "-o", "json"))
	if err := json.Unmarshal(printed.Bytes(), out); err != nil {
		w.Fatalf("%s: exit code %d, %v\n%s%s", strings.Join(args, " "), code, err, &printed, &warned)
	}
	return code
}
