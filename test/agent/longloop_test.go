package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// A loop leaves more to be restored than a plain journal holds: the rest of it
// stands compressed, an agent that begins anew reads it, and everything comes back.
func TestALoopOfManyObjectsRestoresAllThatItFound(t *testing.T) {
	const objects = 800
	l := newLab(t)
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute) // half a minute alone; a guess for a busy machine
	defer cancel()
	l.ctx = ctx
	l.runner(configMapRights("get", "list", "watch", "patch"))
	for i := range objects {
		l.must(each(l, i, "was"))
	}
	l.plan("many", `
maxDuration: 1h
steps:
- name: cells
  type: for-each
  properties:
    apiVersion: v1
    kind: ConfigMap
    selector: {matchLabels: {tier: many}}
    maxConcurrency: 50
    steps:
    - {name: mark, type: annotate, properties: {object: {apiVersion: v1, kind: ConfigMap, name: "${each.metadata.name}"}, operation: add, annotations: {example.org/state: now}, restoreAfter: true}}
- {name: hold, type: suspend}
`)
	l.seen("many")
	l.trigger("many", "t")
	var now runState
	until := func(what string, holds func(runState) bool) {
		t.Helper()
		for limit := time.Now().Add(3 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
			if runs := l.runs("many"); len(runs) == 1 && holds(runs[0]) {
				now = runs[0]
				return
			}
			if time.Now().After(limit) {
				t.Fatalf("never: %s: %s", what, l.states("was", "now"))
			}
		}
	}
	until("all are marked", func(r runState) bool {
		rec := r.journal.Record("hold")
		return rec != nil && rec.Phase == run.StepRunning
	})
	if packed := now.object.BinaryData[annotations.DataSteps]; len(packed) == 0 || l.states("now") != fmt.Sprintf("%d now", objects) {
		t.Errorf("packed: %d bytes, plain: %d; %s", len(packed), len(now.object.Data[annotations.DataJournal]), l.states("was", "now"))
	}
	l.expect(l.maint("resume", now.run.Name), 0)
	until("the run ends", func(r runState) bool { return r.journal.Phase.Ended() })
	if got := l.states("was", "now"); got != fmt.Sprintf("%d was, 0 now", objects) {
		t.Error(got)
	}
	if now.journal.Phase != run.Succeeded || now.journal.Truncated {
		t.Errorf("%s, truncated %t", now.journal.Phase, now.journal.Truncated)
	}
}

func each(l *lab, i int, state string) error {
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("cell-%04d", i), Labels: map[string]string{"tier": "many"}, Annotations: map[string]string{"example.org/state": state},
	}}, metav1.CreateOptions{})
	return err
}

// states counts the objects by their state: "3 was, 2 now".
func (l *lab) states(of ...string) string {
	l.Helper()
	list, err := l.admin.CoreV1().ConfigMaps(l.ns).List(l.ctx, metav1.ListOptions{LabelSelector: "tier=many"})
	l.must(err)
	counts := map[string]int{}
	for _, cm := range list.Items {
		counts[cm.Annotations["example.org/state"]]++
	}
	var out []string
	for _, state := range of {
		out = append(out, fmt.Sprintf("%d %s", counts[state], state))
	}
	return strings.Join(out, ", ")
}
