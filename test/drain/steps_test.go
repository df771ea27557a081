package drain_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/node"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// step is a step that is passed on until it ends, as the agent does.
type step struct {
	executor executors.Executor
	call     executors.Call
	bell     <-chan struct{}
}

func (w *world) step(e executors.Executor, planName string, properties any) *step {
	return &step{executor: e, call: executors.Call{
		Run: "r", Plan: executors.PlanRef{Name: planName, Namespace: w.ns, Account: "runner", Manager: "maint-plan-x"}, Path: "drain", Attempt: 1,
		Properties: properties, Clients: executors.Clients{Kube: w.kube},
		Nodes: executors.Nodes{Turn: func(string) (bool, string) { return true, "" }},
	}}
}

func (s *step) pass(t *testing.T) executors.Outcome {
	t.Helper()
	s.call.Now = time.Now()
	out := s.executor.Pass(t.Context(), s.call)
	if out.Memory != nil {
		s.call.Recorded.Memory = append(json.RawMessage(nil), out.Memory...)
	}
	return out
}

func (s *step) end(t *testing.T) executors.Outcome {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	var changed []run.Change // by passes that a conflict cut short
	for {
		out := s.pass(t)
		changed = append(changed, out.Changed...)
		out.Changed = changed
		switch {
		case out.State == executors.Done || out.State == executors.Failed:
			return out
		case time.Now().After(deadline):
			t.Fatalf("never ends: %+v", out)
		case out.State == executors.NotYet:
			select {
			case <-s.bell:
			case <-time.After(time.Second):
			}
		}
	}
}

func (w *world) record(t *testing.T, name string) (nodes.Cordon, bool) {
	t.Helper()
	n, err := w.kube.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := nodes.ParseCordon(n.Annotations[annotations.StatusCordoned]); ok {
		return *c, n.Spec.Unschedulable
	}
	return nodes.Cordon{}, n.Spec.Unschedulable
}

func on(name string) plan.NodeProperties { return plan.NodeProperties{Node: name} }

func TestCordonAndUncordonKeepWhatWasBefore(t *testing.T) {
	w := newWorld(t, 2)
	free, closed := w.nodes[0], w.nodes[1]
	w.cordon(t, closed)
	all := plan.NodeProperties{Selector: &selector.LabelSelector{MatchLabels: map[string]string{"pool": w.ns}}}
	cordon := func(name string, p plan.NodeProperties) executors.Outcome {
		return w.step(node.Cordoner{}, name, &plan.CordonProperties{NodeProperties: p}).end(t)
	}
	uncordon := func(name string, p plan.NodeProperties) executors.Outcome {
		return w.step(node.Uncordoner{}, name, &plan.CordonProperties{NodeProperties: p}).end(t)
	}
	if out := cordon("a", all); out.State != executors.Done || len(out.Changed) != 2 {
		t.Errorf("%+v", out)
	}
	if out := cordon("a", all); out.State != executors.Done || len(out.Changed) != 0 {
		t.Errorf("again: %+v", out)
	}
	cordon("b", on(free))
	out := uncordon("a", all)
	if _, is := w.record(t, free); !is || !strings.Contains(out.Message, "plan:"+w.ns+"/b wants it so") {
		t.Errorf("%+v", out)
	}
	if c, is := w.record(t, closed); !is || len(c.By) != 0 || !strings.Contains(out.Message, "it was before") {
		t.Errorf("%+v %+v", c, out)
	}
	out = uncordon("b", on(free))
	if c, is := w.record(t, free); is || len(c.By) != 0 {
		t.Errorf("%+v %+v", c, out)
	}
	if out = uncordon("b", on(closed)); out.State != executors.Done || !strings.Contains(out.Message, "not this plan") {
		t.Errorf("%+v", out)
	}
	if out = cordon("a", on("nowhere")); out.State != executors.Failed || !out.Permanent || out.Reason != executors.ReasonNotFound {
		t.Errorf("%+v", out)
	}
}

func TestADrainStepCordonsAndDrains(t *testing.T) {
	w := newWorld(t, 2)
	w.deployment(t, "web", 4)
	w.running(t, "web", 4)
	w.addNodes(t, 1)
	spare := w.nodes[2]
	d := w.drainer(t, w.kube)
	s := w.step(node.Drains{}, "p", &plan.DrainProperties{NodeProperties: plan.NodeProperties{Selector: &selector.LabelSelector{
		MatchLabels:      map[string]string{"pool": w.ns},
		MatchExpressions: []selector.SelectorRequirement{{Key: "kubernetes.io/hostname", Operator: "NotIn", Values: []string{spare}}},
	}}})
	s.call.Nodes.Drainer, s.bell = d, d.bell
	out := s.end(t)
	if out.State != executors.Done || len(out.Changed) != 2 || len(w.on(t, w.nodes[0]))+len(w.on(t, w.nodes[1])) != 0 {
		t.Fatalf("%+v", out)
	}
	t.Log(out.Message)
	if c, is := w.record(t, w.nodes[0]); !is || c.Before || !slices.Contains(c.By, nodes.PlanClaimant(w.ns, "p")) {
		t.Errorf("%+v", c)
	}
	if b, err := json.Marshal(out.Outputs); err != nil || len(b) > run.MaxStepOutput {
		t.Errorf("%d %v", len(b), err)
	}
}

func TestAnUncordonByAHumanEndsTheDrain(t *testing.T) {
	w := newWorld(t, 1)
	n := w.nodes[0]
	w.deployment(t, "web", 1)
	w.running(t, "web", 1)
	w.budget(t, "web", maxUnavailable(0))
	d := w.drainer(t, w.kube)
	s := w.step(node.Drains{}, "p", &plan.DrainProperties{NodeProperties: on(n)})
	s.call.Nodes.Drainer, s.bell = d, d.bell
	for s.pass(t).State != executors.NotYet {
	}
	w.unschedulable(t, false, n)
	out := s.end(t)
	c, is := w.record(t, n)
	if out.State != executors.Failed || out.Permanent || out.Reason != "Uncordoned" || is || !c.Undone {
		t.Errorf("%+v %+v", out, c)
	}
	s.call.Attempt = 2
	if out = s.end(t); out.Reason != "Uncordoned" {
		t.Errorf("a second attempt: %+v", out)
	}
	// Somebody cordons it again: the drain goes on, and leaves it cordoned.
	w.cordon(t, n)
	w.dropBudgets(t)
	w.addNodes(t, 1)
	s.call.Attempt = 3
	if out = s.end(t); out.State != executors.Done {
		t.Errorf("a third attempt: %+v", out)
	}
	w.step(node.Uncordoner{}, "p", &plan.CordonProperties{NodeProperties: on(n)}).end(t)
	if c, is := w.record(t, n); !is || len(c.By) != 0 {
		t.Errorf("%+v %t", c, is)
	}
}

func TestAnAbortUndoesOurCordon(t *testing.T) {
	w := newWorld(t, 1)
	n := w.nodes[0]
	w.deployment(t, "web", 1)
	w.running(t, "web", 1)
	w.budget(t, "web", maxUnavailable(0))
	d := w.drainer(t, w.kube)
	s := w.step(node.Drains{}, "p", &plan.DrainProperties{NodeProperties: on(n), Options: drain.Options{Timeout: seconds(1), OnTimeout: drain.TimeoutAbort}})
	s.call.Nodes.Drainer, s.bell = d, d.bell
	out := s.end(t)
	if c, is := w.record(t, n); out.State != executors.Failed || !out.Permanent || out.Reason != executors.DrainTimedOut || is || len(c.By) != 0 {
		t.Errorf("%+v %+v", out, c)
	}
}

func TestADryRunTouchesNothing(t *testing.T) {
	w := newWorld(t, 1)
	n := w.nodes[0]
	w.deployment(t, "web", 3)
	w.running(t, "web", 3)
	d := w.drainer(t, w.kube)
	s := w.step(node.Drains{}, "p", &plan.DrainProperties{NodeProperties: on(n)})
	s.call.Nodes.Drainer, s.bell, s.call.DryRun = d, d.bell, true
	out := s.end(t)
	if _, is := w.record(t, n); out.State != executors.Done || is || !strings.Contains(out.Message, "3 pods would have to leave") || len(w.on(t, n)) != 3 {
		t.Errorf("%+v", out)
	}
}

func TestAMissingRightIsNamed(t *testing.T) {
	w := newWorld(t, 1)
	n := w.nodes[0]
	w.deployment(t, "web", 1)
	w.running(t, "web", 1)
	w.addNodes(t, 1)
	for name, c := range map[string]struct {
		rules []rbacv1.PolicyRule
		says  string
	}{
		"to read nodes": {nil, "nodes"},
		"to read pods":  {[]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch"}}}, "pods"},
		"to evict": {[]rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
		}, "create pods/eviction"},
	} {
		t.Run(name, func(t *testing.T) {
			d := w.drainer(t, w.kube)
			s := w.step(node.Drains{}, "p", &plan.DrainProperties{NodeProperties: on(n)})
			s.call.Plan.Account = strings.ReplaceAll(name, " ", "-")
			s.call.Nodes.Drainer, s.bell, s.call.Clients.Kube = d, d.bell, w.account(t, s.call.Plan.Account, c.rules)
			out := s.end(t)
			if out.State != executors.Failed || out.Reason != executors.ReasonForbidden || !strings.Contains(out.Message, c.says) {
				t.Errorf("%+v", out)
			}
			t.Log(out.Message)
		})
	}
}

// An API server that has just started refuses evictions for a while. No review says
// that the right is missing, and so the step goes on.
func TestARefusalWithoutAReviewThatSaysSoFailsNoDrain(t *testing.T) {
	w := newWorld(t, 1)
	n := w.nodes[0]
	w.deployment(t, "web", 1)
	w.running(t, "web", 1)
	w.addNodes(t, 1)
	starting := &wire{}
	kube := w.client(t, starting.wrap)
	starting.fault = func(r *http.Request, _ string, n int, send func() (*http.Response, error)) (*http.Response, error) {
		if r.Method == http.MethodPost && n == 1 {
			resp := status(http.StatusForbidden, "")
			resp.Request = r
			return resp, nil
		}
		return send()
	}
	d := w.drainer(t, kube)
	s := w.step(node.Drains{}, "p", &plan.DrainProperties{NodeProperties: on(n)})
	s.call.Nodes.Drainer, s.bell, s.call.Clients.Kube = d, d.bell, kube
	told := false
	for out := s.pass(t); !told; out = s.pass(t) {
		told = out.State == executors.NotYet && out.Reason == executors.ReasonForbidden && strings.Contains(out.Message, "create pods/eviction")
		if out.State == executors.Failed || out.State == executors.Done {
			t.Fatalf("%+v", out)
		}
		select {
		case <-s.bell:
		case <-time.After(time.Second):
		}
	}
	if out := s.end(t); out.State != executors.Done {
		t.Errorf("%+v", out)
	}
}

// account is a client that acts as a ServiceAccount with these rights.
func (w *world) account(t *testing.T, name string, rules []rbacv1.PolicyRule) kubernetes.Interface {
	t.Helper()
	ctx := t.Context()
	full := w.ns + "-" + name
	if _, err := w.kube.CoreV1().ServiceAccounts(w.ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.kube.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: full}, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: full}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: full},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.ns, Name: name}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.kube.RbacV1().ClusterRoles().Delete(context.Background(), full, metav1.DeleteOptions{})
		_ = w.kube.RbacV1().ClusterRoleBindings().Delete(context.Background(), full, metav1.DeleteOptions{})
	})
	config, err := w.ServiceAccountConfig(ctx, w.ns, name)
	if err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return kube
}
