package agent_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// rounds is a server at which requests meet: each waits until so many are there.
type rounds struct {
	*httptest.Server
	mu    sync.Mutex
	here  int
	most  int
	paths []string
	full  chan struct{}
}

func newRounds(t *testing.T, together int) *rounds {
	t.Helper()
	r := &rounds{full: make(chan struct{})}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.here++
		r.most = max(r.most, r.here)
		r.paths = append(r.paths, req.URL.Path)
		if r.here == together {
			close(r.full)
		}
		r.mu.Unlock()
		select {
		case <-r.full:
		case <-req.Context().Done():
		}
		r.mu.Lock()
		r.here--
		r.mu.Unlock()
	}))
	t.Cleanup(r.Close)
	return r
}

func phasesOf(j run.Journal) map[string]string {
	out := map[string]string{}
	for _, rec := range j.Steps {
		out[rec.Path] = string(rec.Phase)
	}
	return out
}

func (l *lab) succeeded(name string) runState {
	l.Helper()
	end := l.ended(name, 1)[0]
	if end.journal.Phase != run.Succeeded {
		l.Fatalf("ended %s: %s\n%+v", end.journal.Phase, end.journal.Message, phasesOf(end.journal))
	}
	return end
}

func TestStepsSideBySideAreAtWorkAtTheSameTime(t *testing.T) {
	l := newLab(t)
	l.runner()
	meet := newRounds(t, 3)
	l.plan("side", strings.ReplaceAll(`
steps:
- name: all
  type: step-group
  properties:
    mode: parallel
    steps:
    - {name: a, type: webhook, properties: {url: "MEET/a"}}
    - {name: b, type: webhook, properties: {url: "MEET/b"}}
    - {name: c, type: webhook, properties: {url: "MEET/c"}}
    - {name: d, type: webhook, dependsOn: [a, b, c], properties: {url: "HOOK/d"}}
`, "MEET", meet.URL))
	l.seen("side")
	l.trigger("side", "t")
	end := l.succeeded("side")
	want := map[string]string{"all": "Succeeded", "all/a": "Succeeded", "all/b": "Succeeded", "all/c": "Succeeded", "all/d": "Succeeded"}
	if diff := cmp.Diff(want, phasesOf(end.journal)); diff != "" {
		t.Error(diff)
	}
	if meet.most != 3 || len(meet.paths) != 3 {
		t.Errorf("%d were at work at the same time, of %v; want 3", meet.most, meet.paths)
	}
}

func TestAnAbortCutsAllThatIsSideBySide(t *testing.T) {
	l := newLab(t)
	l.runner()
	meet := newRounds(t, 3) // only two come
	l.plan("side", strings.ReplaceAll(`
steps:
- name: all
  type: step-group
  properties:
    mode: parallel
    steps:
    - {name: a, type: webhook, properties: {url: "MEET/a"}}
    - {name: b, type: webhook, properties: {url: "MEET/b"}}
finally:
- {name: over, type: webhook, properties: {url: "HOOK/over"}}
`, "MEET", meet.URL))
	l.seen("side")
	l.trigger("side", "t")
	r := l.running("side", "all/b")
	l.annotate("side", map[string]string{annotations.Abort: r.run.Name})
	end := l.ended("side", 1)[0]
	if end.journal.Phase != run.Aborted || end.journal.Record("finally/over").Phase != run.StepSucceeded {
		t.Errorf("ended %s: %+v", end.journal.Phase, phasesOf(end.journal))
	}
	if took := end.journal.FinishedAt.Sub(*end.journal.StartedAt); took > 20*time.Second {
		t.Errorf("the abort waited %s for what it should have cut", took)
	}
}

func configMapRights(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}
}

func (l *lab) configMap(name string, labels, data map[string]string) {
	l.Helper()
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: data}, metav1.CreateOptions{})
	l.must(err)
}

func TestALoopGoesThroughBatchesAndWaitsBetweenThem(t *testing.T) {
	l := newLab(t)
	l.runner(configMapRights("get", "list", "watch", "patch"))
	for i := range 5 {
		l.configMap(fmt.Sprintf("cell-%d", i), map[string]string{"tier": "cell"}, map[string]string{"weight": fmt.Sprint(i)})
	}
	l.configMap("cell-done", map[string]string{"tier": "cell"}, map[string]string{"weight": "9"})
	l.plan("roll", `
parameters: [{name: tier, default: cell}]
steps:
- name: cells
  type: for-each
  properties:
    apiVersion: v1
    kind: ConfigMap
    namespace: "${plan.namespace}"
    selector: {matchLabels: {tier: "${run.parameters.tier}"}}
    when: "each.data.weight in ['0', '1', '2', '3', '4']"
    batches: [1, 60%]
    until: "'healthy' in object.data"
    maxConcurrency: 2
    steps:
    - name: upgrade
      type: patch-object
      properties:
        resource: {apiVersion: v1, kind: ConfigMap, name: "${each.metadata.name}"}
        patchType: merge
        patch: {data: {version: "2-${each.data.weight}"}}
    - {name: tell, type: webhook, properties: {url: "HOOK/done/${each.metadata.name}"}}
`)
	l.seen("roll")
	l.trigger("roll", "t")
	done := 0
	heal := func(want ...string) {
		t.Helper()
		l.eventually(fmt.Sprintf("%v are upgraded", want), func() (bool, string) {
			done = 0
			var names []string
			list, err := l.admin.CoreV1().ConfigMaps(l.ns).List(l.ctx, metav1.ListOptions{LabelSelector: "tier=cell"})
			l.must(err)
			for _, cm := range list.Items {
				if cm.Data["version"] == "2-"+cm.Data["weight"] {
					names = append(names, cm.Name)
				}
			}
			return slices.Equal(names, want), fmt.Sprint(names)
		})
		l.eventually("it waits", func() (bool, string) {
			rec := l.runs("roll")[0].journal.Record("cells")
			return rec != nil && strings.Contains(rec.Message, "does not hold yet"), fmt.Sprintf("%+v", rec)
		})
		for _, name := range want {
			l.must(patchData(l, name, `{"data":{"healthy":"yes"}}`))
		}
	}
	heal("cell-0")
	heal("cell-0", "cell-1", "cell-2")
	heal("cell-0", "cell-1", "cell-2", "cell-3", "cell-4")
	end := l.succeeded("roll")
	rec := end.journal.Record("cells")
	if got := rec.Outputs["succeeded"]; got != int64(5) || len(rec.Items) != 5 {
		t.Errorf("outputs %v, items %+v", rec.Outputs, rec.Items)
	}
	for i := range 5 {
		if keys := l.hooks.Keys(fmt.Sprintf("/%s/done/cell-%d", l.ns, i)); len(keys) != 1 || keys[0] != fmt.Sprintf("%s/cells/cell-%d/tell", end.run.Name, i) {
			t.Errorf("cell-%d was told under the keys %v", i, keys)
		}
	}
	_ = done
}

func patchData(l *lab, name, patch string) error {
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, name, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
	return err
}

func TestARunWaitsForItsApproval(t *testing.T) {
	l := newLab(t)
	l.runner()
	cm := l.plan("asks", `
requiresApproval: true
steps:
- {name: work, type: webhook, properties: {url: "HOOK/work"}}
- {name: sure, type: approval, properties: {message: "really?"}}
- {name: more, type: webhook, properties: {url: "HOOK/more", body: {by: "${steps.sure.outputs.by}"}}}
`)
	l.seen("asks")
	waits := func(token, want string) runState {
		t.Helper()
		l.trigger("asks", token)
		var got runState
		l.eventually("a run waits for approval", func() (bool, string) {
			for _, r := range l.runs("asks") {
				if r.journal.Waiting == want {
					got = r
					return true, ""
				}
			}
			return false, fmt.Sprint(len(l.runs("asks")))
		})
		return got
	}
	first := waits("one", run.WaitApproval)
	l.annotate("asks", map[string]string{annotations.Reject: first.run.Name, annotations.Actor(annotations.Reject): "jane", annotations.Reason(annotations.Reject): "wrong week"})
	l.eventually("it is rejected", func() (bool, string) {
		led := l.ledger(cm)
		last := ledger.Entry{}
		if len(led.Recent) > 0 {
			last = led.Recent[len(led.Recent)-1]
		}
		return last.Result == run.Skipped && last.Reason == run.ReasonRejected, fmt.Sprintf("%+v", last)
	})
	second := waits("two", run.WaitApproval)
	l.annotate("asks", map[string]string{annotations.Approve: second.run.Name, annotations.Actor(annotations.Approve): "joe"})
	asked := l.running("asks", "sure")
	if by := asked.journal.Approved; by == nil || by.Name != "joe" || by.Verified {
		t.Errorf("approved by %+v, want joe, unverified", by)
	}
	l.eventually("the step asks", func() (bool, string) {
		rec := l.running("asks", "sure").journal.Record("sure")
		return strings.Contains(rec.Message, "really?"), rec.Message
	})
	l.eventually("the first answer was taken away", func() (bool, string) {
		now, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, "asks", metav1.GetOptions{})
		l.must(err)
		return now.Annotations[annotations.Approve] == "" && now.Annotations[annotations.Reject] == "", fmt.Sprint(now.Annotations)
	})
	l.annotate("asks", map[string]string{annotations.Approve: second.run.Name + "/sure", annotations.Actor(annotations.Approve): "ann"})
	end := l.ended("asks", 2)
	i := slices.IndexFunc(end, func(r runState) bool { return r.run.Name == second.run.Name })
	if end[i].journal.Phase != run.Succeeded || end[i].journal.Record("sure").Approval.Name != "ann" {
		t.Errorf("ended %s: %+v", end[i].journal.Phase, end[i].journal.Record("sure"))
	}
	if n := len(l.hooks.Keys("/" + l.ns + "/work")); n != 1 {
		t.Errorf("work was sent %d times: the rejected run did something", n)
	}
}

func TestARunIsTriedAgainFromItsFailedStep(t *testing.T) {
	l := newLab(t)
	l.runner()
	var mu sync.Mutex
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[req.URL.Path]++
		if req.URL.Path == "/b" && asked["/b"] == 1 {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(server.Close)
	l.plan("again", strings.ReplaceAll(`
retryLimit: 1
steps:
- {name: a, type: webhook, properties: {url: "SERVER/a"}}
- {name: b, type: webhook, properties: {url: "SERVER/b"}}
- {name: c, type: webhook, properties: {url: "SERVER/c"}}
`, "SERVER", server.URL))
	l.seen("again")
	l.trigger("again", "t")
	end := l.succeeded("again")
	mu.Lock()
	defer mu.Unlock()
	if want := map[string]int{"/a": 1, "/b": 2, "/c": 1}; !maps.Equal(asked, want) {
		t.Errorf("was sent %v, want %v", asked, want)
	}
	if end.journal.Retries != 1 || end.journal.Record("b").Attempt != 2 {
		t.Errorf("retries %d, attempt %d", end.journal.Retries, end.journal.Record("b").Attempt)
	}
}

func (l *lab) template(name, spec, contexts string) {
	l.Helper()
	text := "apiVersion: maint.dev/v1alpha1\nkind: StepTemplate\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(strings.ReplaceAll(spec, "HOOK", l.hooks.URL+"/"+l.ns)), "\n", "\n  ") + "\n"
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{annotations.LabelKind: annotations.KindStepTemplate}}, Data: map[string]string{annotations.DataTemplate: text}}
	if contexts != "" {
		cm.Annotations = map[string]string{annotations.PermittedContexts: contexts}
	}
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, cm, metav1.CreateOptions{})
	l.must(err)
}

const announce = `
parameters: [{name: text, required: true}, {name: times, type: integer, default: 1}]
steps:
- {name: first, type: webhook, properties: {url: "HOOK/said/${params.text}/${string(params.times)}"}}
- {name: second, type: webhook, properties: {url: "HOOK/then/${steps.first.phase}"}}
`

func TestATemplateStandsForItsSteps(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("uses", `
steps:
- {name: hello, type: template/announce, properties: {text: "hi-${run.reason}"}}
- {name: bye, type: template/announce, properties: {text: bye, times: 2}}
`)
	invalid := func(what string) {
		t.Helper()
		l.eventually("the plan says "+what, func() (bool, string) {
			cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, "uses", metav1.GetOptions{})
			l.must(err)
			return strings.Contains(cm.Annotations[annotations.StatusMessage], what), cm.Annotations[annotations.StatusMessage]
		})
	}
	invalid(`there is no step template "announce"`)
	l.template("announce", announce, "maintenance")
	invalid(`permitted in maintenance plans, not in interactive ones`)
	l.annotate("announce", map[string]string{annotations.PermittedContexts: "maintenance,interactive"})
	l.eventually("the plan is valid", func() (bool, string) {
		cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, "uses", metav1.GetOptions{})
		l.must(err)
		return cm.Annotations[annotations.StatusPhase] == string(trigger.PhaseIdle), cm.Annotations[annotations.StatusMessage]
	})
	l.trigger("uses", "t")
	end := l.succeeded("uses")
	for _, path := range []string{"/said/hi-manual/1", "/then/Succeeded", "/said/bye/2"} {
		if keys := l.hooks.Keys("/" + l.ns + path); len(keys) == 0 {
			t.Errorf("%s was not sent; the steps are %v", path, phasesOf(end.journal))
		}
	}
	if end.journal.Record("bye/second") == nil {
		t.Errorf("steps %v", phasesOf(end.journal))
	}
}

func TestAStepIsHandedWhatItRequires(t *testing.T) {
	l := newLab(t)
	l.runner(configMapRights("get", "list"))
	l.configMap("b", map[string]string{"set": "x"}, map[string]string{"v": "2"})
	l.configMap("a", map[string]string{"set": "x"}, map[string]string{"v": "1"})
	l.plan("needs", `
steps:
- name: tell
  type: webhook
  requires:
  - {name: all, apiVersion: v1, kind: ConfigMap, matchLabels: {set: x}}
  - {name: one, apiVersion: v1, kind: ConfigMap, objectName: b}
  - {name: none, apiVersion: v1, kind: ConfigMap, objectName: nobody}
  properties: {url: "HOOK/saw/${required.all.map(o, o.data.v).join('-')}/${required.one[0].metadata.name}/${string(size(required.none))}"}
- name: must
  type: webhook
  requires: [{name: one, apiVersion: v1, kind: ConfigMap, objectName: nobody, required: true}]
  properties: {url: "HOOK/never"}
`)
	l.seen("needs")
	l.trigger("needs", "t")
	end := l.ended("needs", 1)[0]
	if rec := end.journal.Record("must"); rec.Phase != run.StepFailed || rec.Reason != "RequiredMissing" {
		t.Errorf("%+v", rec)
	}
	if keys := l.hooks.Keys("/" + l.ns + "/saw/1-2/b/0"); len(keys) != 1 {
		t.Errorf("the step did not see its objects: %+v", end.journal.Record("tell"))
	}
}

func TestAStepWithoutTheRightToReadFailsByName(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("needs", `
steps:
- {name: tell, type: webhook, requires: [{name: one, apiVersion: v1, kind: ConfigMap, objectName: b}], properties: {url: "HOOK/never"}}
`)
	l.seen("needs")
	l.trigger("needs", "t")
	rec := l.ended("needs", 1)[0].journal.Record("tell")
	if rec.Phase != run.StepFailed || rec.Reason != "Forbidden" || !strings.Contains(rec.Message, "get on configmaps") {
		t.Errorf("%+v", rec)
	}
}

func TestALeaseLivesAsLongAsItsRun(t *testing.T) {
	l := newLab(t)
	l.runner()
	var mu sync.Mutex
	var calls []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, req.Method)
		switch req.Method {
		case http.MethodGet:
			fmt.Fprint(w, "[]")
		case http.MethodPost:
			fmt.Fprint(w, `{"silenceID":"s-1"}`)
		}
	}))
	t.Cleanup(server.Close)
	l.plan("quiet", strings.ReplaceAll(`
steps:
- {name: hush, type: silence, properties: {alertmanager: "SERVER", matchers: [{name: app, value: orders}]}}
- {name: hold, type: suspend}
`, "SERVER", server.URL))
	l.seen("quiet")
	l.trigger("quiet", "t")
	r := l.running("quiet", "hold")
	if rec := r.journal.Record("hush"); rec.KeepAt == nil || rec.Memory == nil {
		t.Errorf("it does not say when to renew: %+v", rec)
	}
	mu.Lock()
	if slices.Contains(calls, http.MethodDelete) {
		t.Error("was given back while the run lives")
	}
	mu.Unlock()
	l.annotate("quiet", map[string]string{annotations.Resume: r.run.Name})
	l.succeeded("quiet")
	mu.Lock()
	defer mu.Unlock()
	if n := len(calls); n == 0 || calls[n-1] != http.MethodDelete {
		t.Errorf("calls %v: the last must give it back", calls)
	}
}
