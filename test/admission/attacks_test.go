package admission_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// attack is what somebody attempts on a cluster with an agent at work.
type attack struct {
	who, what string
	does      func(s *siege) error
	refused   string         // by an admission policy that is optional, as one of those that do says; empty: these let it through
	always    string         // by a policy that install always brings
	stopped   func(s *siege) // what becomes of it where it is let through; nil: nothing more than the writer may
}

// Each attempt of docs/security.md by those who are no admins, on a real API server with an
// agent that has its own rights, first without the admission policies and then with them.
func TestAttacksWithoutAndWithTheAdmissionPolicies(t *testing.T) {
	for _, with := range []bool{false, true} {
		t.Run(map[bool]string{false: "without", true: "with"}[with], func(t *testing.T) {
			s := besiege(t, with)
			for _, a := range s.attacks() {
				s.attempt(a)
			}
			s.standsAsBefore()
		})
	}
}

// siege is a town with a neighbour who has nothing to do with what is attempted.
type siege struct {
	*town
	with      bool // the admission policies
	neighbour string
	hooks     *harness.Receiver
	plans     map[string]*corev1.ConfigMap // of the town, and the neighbour's books as "theirs"
	before    []string                     // the neighbour's objects
	kept      string                       // what somebody labelled as an ended run
	peak      func() int64                 // the most memory that the agent had so far
}

const siegedPlan = `apiVersion: maint.dev/v1alpha1
kind: Plan
spec:
  successfulRunsHistoryLimit: 0
  triggers: {schedules: [{cron: "0 3 1 1 *"}]}
  steps:
  - {name: hold, type: suspend}
`

const siegedNights = `apiVersion: maint.dev/v1alpha1
kind: HibernatePlan
spec:
  schedule: {timezone: UTC, offHours: [{start: "03:00", end: "03:30", daysOfWeek: [%s]}]}
  targets: [{name: apps, type: workload, parameters: {kinds: [Deployment]}}]
`

func besiege(t *testing.T, with bool) *siege {
	t.Helper()
	if err := world.build(); err != nil {
		t.Fatal(err)
	}
	if err := world.start(); err != nil {
		t.Fatal(err)
	}
	switching, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if !with {
		if err := world.switchOff(switching); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := world.switchOn(context.WithoutCancel(switching)); err != nil {
				t.Fatal(err)
			}
		})
	}
	s := &siege{town: newTown(t), with: with, neighbour: world.cluster.Namespace(t), plans: map[string]*corev1.ConfigMap{}}
	s.peak = s.agent.FollowMemory()
	var err error
	s.hooks, err = harness.NewReceiver(nil)
	s.must(err)
	t.Cleanup(s.hooks.Close)
	s.must(harness.Runner(s.ctx, world.admin, s.neighbour, rule("", "configmaps", nil, "get")))
	for _, name := range []string{"orders", "quiet", "books", "papers", "held"} {
		s.plans[name] = s.creates(s.ns, annotations.NewPlan(s.ns, name, siegedPlan, ""))
	}
	s.plans["theirs"] = s.creates(s.neighbour, annotations.NewPlan(s.neighbour, "books", siegedPlan, ""))
	day := strings.ToUpper(time.Now().AddDate(0, 0, 3).Weekday().String()[:3])
	s.plans["nights"] = s.creates(s.ns, annotations.NewHibernatePlan(s.ns, "nights", fmt.Sprintf(siegedNights, day), ""))
	s.deployment("web", nil)
	s.given(plain("app"))
	s.node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}})
	for _, cm := range s.plans {
		s.observed(cm)
	}
	s.asks("held", annotations.Trigger, "held-1")
	s.until("a run is at work", func() error { return s.atWork("held") })
	s.before = s.versions(s.neighbour)
	return s
}

// attempt is refused, or comes to nothing.
func (s *siege) attempt(a attack) {
	s.Run(a.who+": "+a.what, func(t *testing.T) {
		was := s.T
		s.T = t
		defer func() { s.T = was }()
		err := a.does(s)
		refused := a.always
		if s.with && refused == "" {
			refused = a.refused
		}
		switch {
		case refused == "" && err != nil:
			t.Fatalf("is refused: %v", err)
		case refused != "" && !says(err, refused):
			t.Fatalf("comes to %v, and should be refused: %s", err, refused)
		case refused != "" || a.stopped == nil:
			return
		}
		a.stopped(s)
	})
}

// says whether a request was refused with one of the texts that a bar keeps apart: of several
// policies that refuse a request one is named.
func says(err error, texts string) bool {
	return apierrors.IsForbidden(err) && slices.ContainsFunc(strings.Split(texts, "|"), func(text string) bool { return strings.Contains(err.Error(), text) })
}

// standsAsBefore says that the agent is at work, and that the neighbour has what they had.
func (s *siege) standsAsBefore() {
	s.Helper()
	select {
	case <-s.agent.Ended():
		s.Fatalf("the agent ended:\n%s", s.agent.Log())
	default:
	}
	if log := s.agent.Log(); strings.Contains(log, "panic") || strings.Contains(log, "internal error") {
		s.Errorf("the agent panicked:\n%s", log)
	}
	for _, d := range s.hooks.Deliveries() {
		if d.Path == "/forged" {
			s.Error("a step of a run was done that somebody made up")
		}
	}
	if after := s.versions(s.neighbour); strings.Join(after, ",") != strings.Join(s.before, ",") {
		s.Errorf("the neighbour had %v, and has %v", s.before, after)
	}
	if d, err := world.admin.AppsV1().Deployments(s.ns).Get(s.ctx, "web", metav1.GetOptions{}); err != nil || *d.Spec.Replicas != 1 || d.Spec.Paused {
		s.Errorf("web is %+v, %v", d, err)
	}
	if s.kept != "" {
		s.get(s.kept)
	}
	after := s.creates(s.ns, annotations.NewPlan(s.ns, "after", siegedPlan, ""))
	s.observed(after)
	s.asks("after", annotations.Trigger, "after-1")
	s.until("a plan runs after all of it", func() error { return s.atWork("after") })
}

// creates has an admin write a document, as its owner did.
func (s *siege) creates(ns string, cm *corev1.ConfigMap) *corev1.ConfigMap {
	s.Helper()
	got, err := world.admin.CoreV1().ConfigMaps(ns).Create(s.ctx, cm, metav1.CreateOptions{})
	s.must(err)
	return got
}

func (s *siege) observed(cm *corev1.ConfigMap) {
	s.Helper()
	s.until("the agent has taken up "+cm.Name, func() error {
		now, err := world.admin.CoreV1().ConfigMaps(cm.Namespace).Get(s.ctx, cm.Name, metav1.GetOptions{})
		if err == nil && now.Annotations[annotations.StatusObserved] != annotations.Observed(now) {
			err = fmt.Errorf("%v", now.Annotations)
		}
		return err
	})
}

// asks has an admin annotate a plan of the town.
func (s *siege) asks(name, key, value string) {
	s.Helper()
	_, err := world.admin.CoreV1().ConfigMaps(s.ns).Patch(s.ctx, name, types.MergePatchType, []byte(annotationPatch([]string{key, value})), metav1.PatchOptions{})
	s.must(err)
}

// runOf is the live run of a plan of the town; nil: there is none.
func (s *siege) runOf(name string) *corev1.ConfigMap {
	s.Helper()
	list, err := world.admin.CoreV1().ConfigMaps(s.ns).List(s.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindRun + "," + annotations.LabelPlan + "=" + name})
	s.must(err)
	for i := range list.Items {
		if list.Items[i].Annotations[annotations.StatusSignature] != "" && len(list.Items[i].Finalizers) > 0 {
			return &list.Items[i]
		}
	}
	return nil
}

func (s *siege) atWork(name string) error {
	cm := s.runOf(name)
	if cm == nil {
		return errors.New("it has no run")
	}
	_, j, err := annotations.ReadRun(cm)
	if err == nil && j.Phase != run.Running {
		err = errors.New(string(j.Phase))
	}
	return err
}

// versions are the objects of a namespace, each with its version.
func (s *siege) versions(ns string) []string {
	s.Helper()
	list, err := world.admin.CoreV1().ConfigMaps(ns).List(s.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind})
	s.must(err)
	var out []string
	for _, cm := range list.Items {
		out = append(out, cm.Name+" "+cm.ResourceVersion)
	}
	return out
}

// told waits for an Event on an object of the town.
func (s *siege) told(reason, name, what string) {
	s.Helper()
	s.until(reason+" is told of "+name, func() error {
		events, err := world.admin.CoreV1().Events(s.ns).List(s.ctx, metav1.ListOptions{FieldSelector: "reason=" + reason + ",involvedObject.name=" + name})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if strings.Contains(e.Message, what) {
				return nil
			}
		}
		return fmt.Errorf("%v", events.Items)
	})
}

// writes creates a ConfigMap as somebody.
func (s *siege) writes(who person, cm *corev1.ConfigMap) error {
	_, err := world.as(who).CoreV1().ConfigMaps(s.ns).Create(s.ctx, cm, metav1.CreateOptions{})
	return err
}

// merges patches a ConfigMap of the town as somebody.
func (s *siege) merges(who person, name, patch string) error {
	_, err := world.as(who).CoreV1().ConfigMaps(s.ns).Patch(s.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// onNode patches the node, or its status, as somebody.
func (s *siege) onNode(who person, pairs []string, subresources ...string) error {
	_, err := world.as(who).CoreV1().Nodes().Patch(s.ctx, "worker-1", types.MergePatchType, []byte(annotationPatch(pairs)), metav1.PatchOptions{}, subresources...)
	return err
}

// forgedRun is a run that is made up, at its first step.
func (s *siege) forgedRun(of, token string, change func(*run.Run)) *corev1.ConfigMap {
	s.Helper()
	hook := plan.Step{Name: "hook", Type: "webhook", Properties: map[string]any{"url": s.hooks.URL + "/forged"}}
	r := harness.ForgedRun(s.ns, s.plans[of], token, hook)
	if change != nil {
		change(&r)
	}
	j := run.Journal{Phase: run.Running, Section: plan.SectionSteps}
	if change == nil {
		j = workflow.NewJournal(r).Start(s.plans[of].CreationTimestamp.UTC())
	}
	cm, err := annotations.RunObject(r, j)
	s.must(err)
	return cm
}

func (s *siege) attacks() []attack {
	all := s.ofTenants()
	all = append(all, s.ofTeams()...)
	all = append(all, s.ofKubelets()...)
	all = append(all, s.ofApprovers()...)
	all = append(all, s.ofBots()...)
	return append(all, s.ofReceivers()...)
}

// ofTenants are attempts of somebody who may edit ConfigMaps in one namespace.
func (s *siege) ofTenants() []attack {
	const who, theirs = "a tenant", "it is the agent's own record|only the agent says"
	broken := func(cm *corev1.ConfigMap) func(*siege) {
		return func(s *siege) { s.told("RunBroken", cm.Name, "no signature") }
	}
	valid := s.forgedRun("held", "forged-1", nil)
	looped := s.forgedRun("held", "forged-2", func(r *run.Run) {
		again := plan.Step{Name: "again", Type: "template/loop"}
		r.Spec.Steps, r.Templates = []plan.Step{again}, map[string]plan.TemplateSpec{"loop": {Steps: []plan.Step{again}}}
	})
	elsewhere := s.forgedRun("theirs", "forged-3", nil)
	ended := s.forgedRun("quiet", "forged-4", nil)
	ended.Labels[annotations.LabelPhase], ended.Finalizers = string(run.Succeeded), nil
	gate, err := annotations.GateObject(s.ns, policy.GateRecord{Policy: "phantom", Entries: []policy.GateEntry{{
		GateRule: policy.GateRule{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Knob: "deployment"}, Account: "maint-runner", Leaving: true,
	}}})
	s.must(err)
	restore, err := annotations.RestoreObject(s.ns, hibernate.Record{Plan: "nights", PlanUID: string(s.plans["nights"].UID), Target: "apps", Executor: "workload", Cycle: "2026-01-01T00:00:00Z"})
	s.must(err)
	return []attack{
		{who: who, what: "writes a run of their own plan, past what plans may do", does: func(s *siege) error { return s.writes(tenant(), valid) }, refused: theirs, stopped: broken(valid)},
		{who: who, what: "writes a run with a template that contains itself", does: func(s *siege) error { return s.writes(tenant(), looped) }, refused: theirs, stopped: broken(looped)},
		{who: who, what: "writes a run of a neighbour's plan", does: func(s *siege) error { return s.writes(tenant(), elsewhere) }, refused: theirs, stopped: broken(elsewhere)},
		{
			who: who, what: "labels something as an ended run, so that the agent deletes it", does: func(s *siege) error { return s.writes(tenant(), ended) }, refused: theirs,
			stopped: func(s *siege) { s.kept = ended.Name }, // it is looked for at the end
		},
		{
			who: who, what: "moves a ledger on by fifty years, so that the plan never runs", refused: theirs,
			does:    func(s *siege) error { return s.movesLedger("books") },
			stopped: func(s *siege) { s.losesLedger("books") },
		},
		{
			who: who, what: "gives a ledger the signature of a neighbour's", refused: theirs,
			does:    func(s *siege) error { return s.copiesLedger("papers") },
			stopped: func(s *siege) { s.losesLedger("papers") },
		},
		{
			who: who, what: "writes a gate record, so that the agent opens an object", does: func(s *siege) error { return s.writes(tenant(), gate) }, refused: theirs,
			stopped: func(s *siege) { s.told("GateRecordUnsigned", gate.Name, "no signature") },
		},
		{
			who: who, what: "writes restore data, so that the agent scales a workload", does: func(s *siege) error { return s.writes(tenant(), restore) }, refused: theirs,
			stopped: func(s *siege) { s.says("nights", annotations.StatusMessage, "signature") },
		},
		{
			who: who, what: "says how a plan stands", refused: "only the agent says",
			does: func(s *siege) error {
				return s.merges(tenant(), "quiet", annotationPatch([]string{annotations.StatusPhase, "Running"}))
			},
			stopped: func(s *siege) { s.says("quiet", annotations.StatusPhase, "Idle") },
		},
		{
			who: who, what: "removes the finalizer of a run and deletes it, so that nothing is cleaned up", refused: theirs,
			does:    func(s *siege) error { return s.tears("held") },
			stopped: func(s *siege) { s.told("RunTornAway", "held", "") },
		},
		{who: who, what: "asks for a run in somebody else's name", refused: "verb trigger", does: func(s *siege) error {
			return s.merges(tenant(), "quiet", annotationPatch([]string{annotations.Trigger, "1", annotations.Actor(annotations.Trigger), "ann"}))
		}, stopped: func(s *siege) { s.askedByNobodyForCertain("quiet") }},
		{
			who: who, what: "fills the annotations of a plan, so that its slots are not run", does: func(s *siege) error { return s.fills("filled") },
			stopped: func(s *siege) {
				s.until("its slot is run", func() error { return s.atWork("filled") })
				s.told("StatusNotWritten", "filled", "its annotations are full")
			},
		},
	}
}

// ofTeams is an attempt of somebody who may edit ConfigMaps where an agent of one namespace
// (--single-namespace) runs.
func (s *siege) ofTeams() []attack {
	const spec = "apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec: %s\n"
	team := &lab{T: s.T, ctx: s.ctx, ns: world.cluster.Namespace(s.T)}
	team.role(tenant(), rule("", "configmaps", nil, "get", "patch"))
	s.must(world.may(s.ctx, tenant(), team.ns, "patch", "", "configmaps", "x"))
	s.creates(team.ns, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: annotations.AgentConfigName, Labels: map[string]string{annotations.LabelKind: annotations.KindAgentConfig}},
		Data:       map[string]string{annotations.DataConfig: fmt.Sprintf(spec, `{outbound: {deny: [10.0.0.0/8]}, steps: [{namespaces: ["*"], deny: [webhook]}]}`)},
	})
	const takenUp = "took up the agent's configuration"
	patch := fmt.Sprintf(`{"data":{%q:%q}}`, annotations.DataConfig, fmt.Sprintf(spec, "{}"))
	var own *harness.Process
	hasTaken := func(n int) func() error {
		return func() error {
			if strings.Count(own.Log(), takenUp) < n {
				return errors.New(own.Log())
			}
			return nil
		}
	}
	return []attack{{
		who: "a tenant", what: "takes the limits out of the configuration of an agent of one namespace", refused: "verb override on plans.maint.dev",
		does: func(s *siege) error {
			if !s.with {
				own = s.beginsAlone(team.ns)
				s.until("it has taken up what limits it", hasTaken(1))
			}
			_, err := world.as(tenant()).CoreV1().ConfigMaps(team.ns).Patch(s.ctx, annotations.AgentConfigName, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		},
		stopped: func(s *siege) { // by nothing: the team is its admin
			s.until("it has taken up what the tenant wrote", hasTaken(2))
			s.must(own.Stop())
		},
	}}
}

// beginsAlone starts an agent that has its home in the only namespace that it watches.
func (s *siege) beginsAlone(ns string) *harness.Process {
	s.Helper()
	path, err := world.cluster.KubeconfigFile("alone", world.cluster.AdminConfig())
	s.must(err)
	p, err := harness.StartAgent(world.agent, path, "--namespace", ns, "--watch-namespace", ns)
	s.must(err)
	s.Cleanup(func() { _ = p.Stop() })
	return p
}

// fills makes a plan whose slot is due in some seconds, and has a tenant fill its annotations, none
// of which is of maint.dev.
func (s *siege) fills(name string) error {
	s.Helper()
	soon := time.Now().Add(8 * time.Second).UTC().Format(time.RFC3339)
	cm := s.creates(s.ns, annotations.NewPlan(s.ns, name, strings.Replace(siegedPlan, `cron: "0 3 1 1 *"`, fmt.Sprintf("at: %q", soon), 1), ""))
	s.observed(cm)
	cm = s.get(name)
	const key = "example.org/x"
	return s.merges(tenant(), name, annotationPatch([]string{key, strings.Repeat("y", annotations.MaxBytes-annotations.Bytes(cm.Annotations)-len(key))}))
}

// ofKubelets are attempts of a kubelet on its own node.
func (s *siege) ofKubelets() []attack {
	const who = "a kubelet"
	return []attack{
		{who: who, what: "asks for its node, by force", always: kubelets, does: func(s *siege) error {
			return s.onNode(withMasters(kubelet()), []string{"request.maint.dev/evil", `{"drain":{"force":true}}`})
		}},
		{who: who, what: "opens the window of its node, by its status", always: kubelets, does: func(s *siege) error {
			return s.onNode(withMasters(kubelet()), []string{annotations.ChangeStrategy, "Permissive"}, "status")
		}},
		{who: who, what: "says that its node is ready for somebody", always: "ValidatingAdmissionPolicy 'maint-", does: func(s *siege) error {
			return s.onNode(withMasters(kubelet()), []string{"status.request.maint.dev/evil", `{"phase":"Ready"}`})
		}},
	}
}

// ofApprovers are attempts of somebody who may approve runs, and patch a plan for that.
func (s *siege) ofApprovers() []attack {
	const who = "an approver"
	return []attack{
		{who: who, what: "has the plan act as another account", refused: "verb write", does: func(s *siege) error {
			const spec = "spec:\n  serviceAccountName: default\n  target: {apiVersion: v1, kind: ConfigMap, name: app}\n"
			text := strings.NewReplacer("spec:\n", spec, "  triggers: {", "  triggers: {labels: [example.org/upgrade], ").Replace(siegedPlan)
			return s.merges(approver(), "orders", fmt.Sprintf(`{"metadata":{"labels":{"maint.dev/service-account":"default"}},"data":{"plan.yaml":%q}}`, text))
		}, stopped: func(s *siege) { s.says("orders", annotations.StatusConditions, "the ServiceAccount default may not") }},
		{who: who, what: "passes a closed window for a run", refused: "verb override", does: func(s *siege) error {
			return s.merges(approver(), "orders", annotationPatch([]string{annotations.Bypass, "maint-run-orders-aaaaaaaaaa: x"}))
		}},
		{who: who, what: "pauses the plan", refused: "verb pause", does: func(s *siege) error {
			return s.merges(approver(), "orders", annotationPatch([]string{annotations.Pause, "true"}))
		}},
		{who: who, what: "approves in somebody else's name", does: func(s *siege) error {
			got, err := world.as(approver()).CoreV1().ConfigMaps(s.ns).Patch(s.ctx, "orders", types.MergePatchType, []byte(annotationPatch([]string{annotations.Approve, "maint-run-orders-aaaaaaaaaa", annotations.Actor(annotations.Approve), "root"})), metav1.PatchOptions{})
			if err == nil && s.with && got.Annotations[annotations.Actor(annotations.Approve)] != approver().name {
				err = fmt.Errorf("it is stored as %v", got.Annotations)
			}
			return err
		}},
	}
}

// ofBots are attempts of a bot that asks for nodes under one name.
func (s *siege) ofBots() []attack {
	const who, ask = "a bot", "verb create on noderequests.maint.dev"
	ready := `{"phase":"Ready"}`
	return []attack{
		{who: who, what: "says that its request is carried out", refused: "only the agent says", does: func(s *siege) error {
			return s.onNode(bot(), []string{"status.request.maint.dev/rebooter", ready})
		}, stopped: func(s *siege) {
			s.until("it is taken away", func() error {
				n, err := world.admin.CoreV1().Nodes().Get(s.ctx, "worker-1", metav1.GetOptions{})
				if err == nil && n.Annotations["status.request.maint.dev/rebooter"] == ready {
					err = errors.New("it stands there")
				}
				return err
			})
		}},
		{who: who, what: "asks in another bot's name", refused: ask, does: func(s *siege) error {
			return s.onNode(bot(), []string{"request.maint.dev/other", "{}"})
		}},
		{who: who, what: "asks by force", refused: "verb force", does: func(s *siege) error {
			return s.onNode(bot(), []string{"request.maint.dev/rebooter", `{"drain":{"force":true}}`})
		}},
		{who: who, what: "opens the window of the node", refused: "verb override", does: func(s *siege) error {
			return s.onNode(bot(), []string{annotations.ChangeStrategy, "Permissive"})
		}},
	}
}

// ofReceivers are attempts of servers that steps call. No admission policy is about those.
func (s *siege) ofReceivers() []attack {
	const who = "a receiver"
	mux := http.NewServeMux()
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for chunk := []byte(strings.Repeat("x", 1<<20)); r.Context().Err() == nil; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/dense", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "[0"+strings.Repeat(",0", 400_000)+"]")
	})
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/inside", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
	})
	server := httptest.NewServer(mux)
	s.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	calls := func(name, more string) func(*siege) error {
		return func(s *siege) error {
			text := fmt.Sprintf("apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: call, type: webhook, timeout: 1m, properties: {url: '%s/%s', timeout: 5s%s}}\n", server.URL, strings.TrimSuffix(name, "-post"), more)
			cm, err := world.as(editor()).CoreV1().ConfigMaps(s.ns).Create(s.ctx, annotations.NewPlan(s.ns, name, text, ""), metav1.CreateOptions{})
			if err != nil {
				return err
			}
			s.observed(cm)
			s.asks(name, annotations.Trigger, "1")
			return nil
		}
	}
	return []attack{
		{who: who, what: "answers without an end", does: calls("endless", ""), stopped: func(s *siege) {
			r := s.over("endless", "Succeeded", "", "answered 200")
			if body, _ := r.Outputs["body"].(string); r.Outputs["truncated"] != true || len(body) == 0 || len(body) > run.MaxStepOutput {
				s.Errorf("it keeps %d bytes, truncated: %v", len(body), r.Outputs["truncated"])
			}
			s.staysSmall()
		}},
		{who: who, what: "answers with hundreds of thousands of values", does: calls("dense", ", expect: {json: {a: 1}}"), stopped: func(s *siege) {
			r := s.over("dense", "Failed", "TooLarge", "answered 200 with more than 20000 values")
			if r.Outputs["json"] != nil {
				s.Errorf("it keeps them: %.100v", r.Outputs["json"])
			}
			s.staysSmall()
		}},
		{who: who, what: "never answers", does: calls("silent", ""), stopped: func(s *siege) { s.over("silent", "Failed", "Timeout", "no answer within 5s") }},
		{who: who, what: "sends the agent to the cloud's metadata", does: calls("inside", ", method: GET"), stopped: func(s *siege) {
			s.over("inside", "Failed", "Outbound", "169.254.169.254 is refused: metadata services are not called")
		}},
		{who: who, what: "sends a POST there", does: calls("inside-post", ""), stopped: func(s *siege) {
			s.over("inside-post", "Failed", "Status", "answered 302, a redirect, which only GET follows")
		}},
	}
}

// over waits until the first run of a plan has ended with a result, and is its step, which says why.
func (s *siege) over(name, result, reason, message string) run.Record {
	s.Helper()
	s.until("the run of "+name+" ends", func() error {
		cm := s.get(name)
		if got := cm.Annotations[annotations.StatusLastResult]; got != result {
			return fmt.Errorf("%q: %v", got, cm.Annotations)
		}
		return nil
	})
	list, err := world.admin.CoreV1().ConfigMaps(s.ns).List(s.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindRun + "," + annotations.LabelPlan + "=" + name})
	s.must(err)
	if len(list.Items) != 1 {
		s.Fatalf("%s has %d runs", name, len(list.Items))
	}
	_, j, err := annotations.ReadRun(&list.Items[0])
	s.must(err)
	i := slices.IndexFunc(j.Steps, func(r run.Record) bool { return r.Path == "call" })
	if i < 0 {
		s.Fatalf("%s has the steps %v", name, j.Steps)
	}
	if r := j.Steps[i]; r.Reason != reason || !strings.Contains(r.Message, message) {
		s.Errorf("%s: %q, %q, want %q, %q", name, r.Reason, r.Message, reason, message)
	}
	return j.Steps[i]
}

// staysSmall says that the agent has never had more memory of its own than its Pod gets.
func (s *siege) staysSmall() {
	s.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	peak := s.peak()
	if s.Logf("the agent had %d MiB of its own at most", peak>>20); peak == 0 || peak > 256<<20 {
		s.Errorf("it had %d MiB", peak>>20)
	}
}

// says waits until an annotation of a document holds a text.
func (s *siege) says(name, key, text string) {
	s.Helper()
	s.until(name+" says "+text, func() error {
		if got := s.get(name).Annotations[key]; !strings.Contains(got, text) {
			return errors.New(got)
		}
		return nil
	})
}

// movesLedger has the tenant write that a plan's slots of fifty years are over.
func (s *siege) movesLedger(name string) error {
	uid := string(s.plans[name].UID)
	cm := s.get(annotations.LedgerName(name, uid))
	led, err := annotations.ReadLedger(cm, uid)
	s.must(err)
	led.Watermark = led.Watermark.AddDate(50, 0, 0)
	forged, err := annotations.WithLedger(cm, led)
	s.must(err)
	cm.Data = forged.Data
	_, err = world.as(tenant()).CoreV1().ConfigMaps(s.ns).Update(s.ctx, cm, metav1.UpdateOptions{})
	return err
}

// copiesLedger has the tenant put the content and the signature of the neighbour's in its place.
func (s *siege) copiesLedger(name string) error {
	cm := s.get(annotations.LedgerName(name, string(s.plans[name].UID)))
	theirs, err := world.admin.CoreV1().ConfigMaps(s.neighbour).Get(s.ctx, annotations.LedgerName("books", string(s.plans["theirs"].UID)), metav1.GetOptions{})
	s.must(err)
	cm.Data, cm.Annotations = theirs.Data, theirs.Annotations
	_, err = world.as(tenant()).CoreV1().ConfigMaps(s.ns).Update(s.ctx, cm, metav1.UpdateOptions{})
	return err
}

// losesLedger waits until a plan's ledger is the agent's again, and believes nothing of what
// stood there.
func (s *siege) losesLedger(name string) {
	s.Helper()
	s.asks(name, annotations.Trigger, "after")
	s.told("LedgerLost", name, "")
	ring, err := harness.Keyring(s.ctx, world.admin)
	s.must(err)
	uid := string(s.plans[name].UID)
	s.until("the ledger is the agent's again", func() error {
		cm := s.get(annotations.LedgerName(name, uid))
		if err := ring.Check(cm); err != nil {
			return err
		}
		led, err := annotations.ReadLedger(cm, uid)
		if err == nil && (len(led.Open) != 1 || led.Watermark.Year() > time.Now().Year()+1) {
			err = fmt.Errorf("%+v", led)
		}
		return err
	})
}

// tears has the tenant remove what keeps a run until it has cleaned up, and the run.
func (s *siege) tears(name string) error {
	cm := s.runOf(name)
	if err := s.merges(tenant(), cm.Name, `{"metadata":{"finalizers":null}}`); err != nil {
		return err
	}
	err := world.as(tenant()).CoreV1().ConfigMaps(s.ns).Delete(s.ctx, cm.Name, metav1.DeleteOptions{})
	return ignore(err, apierrors.IsNotFound)
}

// askedByNobodyForCertain waits for the run of a plan, whose asker is only said to be ann.
func (s *siege) askedByNobodyForCertain(name string) {
	s.Helper()
	s.until("its run is at work", func() error { return s.atWork(name) })
	r, _, err := annotations.ReadRun(s.runOf(name))
	s.must(err)
	if r.Request.Actor != "ann" || r.Request.Verified {
		s.Errorf("it was asked for by %q, for certain: %t", r.Request.Actor, r.Request.Verified)
	}
}
