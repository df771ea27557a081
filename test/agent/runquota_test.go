package agent_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// large is a ConfigMap that is heavy to read.
func (l *lab) large(name string) {
	l.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"text": strings.Repeat("x", 200<<10)}}
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, cm, metav1.CreateOptions{})
	l.must(err)
}

// silentServer answers nobody before the test has ended, and counts who asks.
func silentServer(t *testing.T) (server *httptest.Server, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	over := make(chan struct{})
	server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	t.Cleanup(func() {
		close(over)
		server.Close()
	})
	return server, asked
}

// Passes that had read a large object kept the few places of such for as long as whoever
// they called did not answer, which is a tenant's own server: nobody else's step that reads
// more than a few objects went on.
func TestWhoWaitsForAnAnswerKeepsNobodyFromReading(t *testing.T) {
	theirs := newLab(t)
	mine := theirs.beside()
	maps := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "patch"}}
	for _, l := range []*lab{theirs, mine} {
		l.runner(maps)
		l.large("large")
	}
	silent, asked := silentServer(t)
	const calls = 4
	var steps strings.Builder
	for i := range calls {
		fmt.Fprintf(&steps, "    - {name: s%d, type: webhook, timeout: 10m, requires: [{name: all, apiVersion: v1, kind: ConfigMap, objectName: large}], properties: {url: '%s', timeout: 10m, body: '${string(size(required.all))}'}}\n", i, silent.URL)
	}
	mine.plan("waits", "steps:\n- name: all\n  type: step-group\n  properties:\n    mode: parallel\n    steps:\n"+steps.String())
	mine.seen("waits")
	mine.trigger("waits", "t")
	mine.eventually("all of them wait for an answer", func() (bool, string) { return asked.Load() == calls, fmt.Sprint(asked.Load()) })
	theirs.plan("reads", "steps:\n- {name: mark, type: patch-object, timeout: 20s, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: large}, patchType: merge, patch: {metadata: {labels: {a: b}}}}}\n")
	theirs.seen("reads")
	theirs.trigger("reads", "t")
	theirs.succeeded("reads")
}

// quickRuns has a run of a plan end five times, and says how long each took, the fastest first.
func (l *lab) quickRuns() (fiveRuns func() []time.Duration) {
	l.plan("quick", "successfulRunsHistoryLimit: 10\nsteps:\n- {name: call, type: webhook, properties: {url: 'HOOK/quick'}}\n")
	l.seen("quick")
	ran := 0
	return func() (took []time.Duration) {
		for range 5 {
			ran++
			began := time.Now()
			l.trigger("quick", fmt.Sprint("t", ran))
			l.ended("quick", ran)
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took
	}
}

// Conditions of one tenant that are as dear as they may be, of rules and of steps, over objects that change all
// the time: a run of another one takes as long as before. The fastest counts, as below.
func TestDearConditionsOfOneTenantDelayNobodyElse(t *testing.T) {
	theirs := newLabFor(t, 10*time.Minute)
	mine := theirs.beside()
	theirs.runner()
	mine.runner(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}})
	fiveRuns := theirs.quickRuns()
	before := fiveRuns()[2]

	const plans, objects, waits = 40, 20, 60
	dear := "[1]" + strings.Repeat(".map(a, [a])", 8) + ".map(a, [" + strings.Repeat("a, ", 1200) + "a]).size() < 0" // its types are checked in 40 ms
	for i := range objects {
		mine.configMap(fmt.Sprint("watched-", i), map[string]string{"watched": "yes"}, nil)
	}
	var steps strings.Builder
	for i := range waits {
		fmt.Fprintf(&steps, "    - {name: s%d, type: wait, timeout: 10m, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: watched-%d}, until: '%s'}}\n", i, i%objects, dear)
	}
	mine.plan("waits", "steps:\n- name: all\n  type: step-group\n  properties:\n    mode: parallel\n    steps:\n"+steps.String())
	for n := range plans {
		mine.plan(fmt.Sprint("rule-", n), "triggers: {watch: [{apiVersion: v1, kind: ConfigMap, selector: {matchLabels: {watched: 'yes'}}, when: '"+dear+"'}]}\nsteps:\n- {name: hold, type: suspend}\n")
	}
	mine.seen(fmt.Sprint("rule-", plans-1))
	mine.seen("waits")
	mine.trigger("waits", "t")
	changing, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for round := 0; changing.Err() == nil; round++ {
			for i := range objects {
				patch := fmt.Appendf(nil, `{"data":{"round":"%d"}}`, round)
				_, _ = mine.admin.CoreV1().ConfigMaps(mine.ns).Patch(changing, fmt.Sprint("watched-", i), types.MergePatchType, patch, metav1.PatchOptions{})
			}
		}
	}()
	time.Sleep(10 * time.Second) // until what they may take at once is taken
	during := fiveRuns()
	t.Logf("a run takes %s, and %s while conditions of another tenant are evaluated", before, during)
	if during[0] > before+time.Second {
		t.Errorf("a run takes %s, and %s while conditions of another tenant are evaluated", before, during)
	}
}

// Webhooks of one tenant that nobody answers wait in that tenant's own queue: a run of another
// one takes as long as before. The fastest counts: whatever else is at work on this machine delays some
// of the runs, and a queue that both shared would delay all of them.
func TestHangingCallsOfOneTenantDelayNobodyElse(t *testing.T) {
	theirs := newLab(t)
	mine := theirs.beside()
	for _, l := range []*lab{theirs, mine} {
		l.runner()
	}
	silent, asked := silentServer(t)
	fiveRuns := theirs.quickRuns()
	before := fiveRuns()[2]

	const plans, calls = 9, 15
	for n := range plans {
		var steps strings.Builder
		for i := range calls {
			fmt.Fprintf(&steps, "    - {name: s%d, type: webhook, timeout: 10m, properties: {url: '%s', timeout: 10m}}\n", i, silent.URL)
		}
		name := fmt.Sprint("hangs-", n)
		mine.plan(name, "steps:\n- name: all\n  type: step-group\n  properties:\n    mode: parallel\n    steps:\n"+steps.String())
		mine.seen(name)
		mine.trigger(name, "t")
	}
	for n := range plans {
		mine.running(fmt.Sprint("hangs-", n), fmt.Sprint("all/s", calls-1))
	}
	mine.eventually("calls hang", func() (bool, string) { return asked.Load() > calls, fmt.Sprint(asked.Load()) })
	during := fiveRuns()[0]
	t.Logf("a run takes %s, and %s while %d of %d calls hang", before, during, asked.Load(), plans*calls)
	if during > before+time.Second {
		t.Errorf("a run takes %s, and %s while calls of another tenant hang", before, during)
	}
}

// The runs of one namespace carry so much text that no more of them begin: what is asked there waits and says
// why, until some of them have ended. Another namespace hears nothing of it.
func TestRunsOfANamespaceWaitForRoomAndThoseOfOthersDoNot(t *testing.T) {
	theirs := newLabFor(t, 10*time.Minute) // a minute alone; a guess for a busy machine
	mine := theirs.beside()
	for _, l := range []*lab{theirs, mine} {
		l.runner()
	}
	const big, size = 4, 240 << 10 // templates that a run carries, and their bytes
	steps := "concurrencyPolicy: Allow\nsteps:\n- {name: hold, type: suspend}\n"
	for i := range big {
		mine.template(fmt.Sprint("big-", i), "steps:\n- {name: note, type: patch-object, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: x}, patchType: merge, patch: {data: {a: "+strings.Repeat("x", size)+"}}}}\n", "")
		steps += fmt.Sprintf("- {name: note-%d, type: template/big-%d}\n", i, i)
	}
	mine.plan("fills", steps)
	mine.seen("fills")
	const waits, most = "waits: the active runs of namespace", 30
	look := func() (begun int, said string) { // of the plan alone: each run has a megabyte
		cm := mine.seen("fills")
		return strings.Count(cm.Annotations[annotations.StatusRuns], "="), cm.Annotations[annotations.StatusMessage]
	}
	asked, begun, said := 0, 0, ""
	for ; asked < most && !strings.Contains(said, waits); asked++ {
		mine.trigger("fills", fmt.Sprint("t", asked))
		mine.eventually("the trigger is answered, or waits", func() (bool, string) {
			begun, said = look()
			return begun == asked+1 || strings.Contains(said, waits), said
		})
	}
	if begun != asked-1 || begun < 20 {
		t.Fatalf("%d runs have begun for %d triggers", begun, asked)
	}
	mine.expect(mine.maint("why", "fills"), 3, "the active runs of namespace "+mine.ns+" take as much of the agent's memory")
	theirs.plan("small", "steps:\n- {name: mark, type: suspend, properties: {duration: 1ms}}\n")
	theirs.seen("small")
	theirs.trigger("small", "t")
	theirs.succeeded("small")
	first, _, _ := strings.Cut(mine.seen("fills").Annotations[annotations.StatusRuns], "=")
	mine.annotate("fills", map[string]string{annotations.Abort: first})
	mine.eventually("the run that waited begins", func() (bool, string) {
		_, said := look()
		return !strings.Contains(said, waits), said
	})
}
