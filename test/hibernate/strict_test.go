package hibernate_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// edit has a plan say something else.
func (l *lab) edit(name, old, is string) {
	l.Helper()
	maps := l.admin.CoreV1().ConfigMaps(l.ns)
	cm, err := maps.Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	text := strings.Replace(cm.Data[annotations.DataPlan], old, is, 1)
	if text == cm.Data[annotations.DataPlan] {
		l.Fatalf("%s does not say %q", name, old)
	}
	cm.Data[annotations.DataPlan] = text
	_, err = maps.Update(l.ctx, cm, metav1.UpdateOptions{})
	l.must(err)
}

// What waits for a target that does not become ready sleeps on, as a strict plan wants it; the
// plan says which, and an edit lets go of it.
func TestAStrictPlanKeepsAsleepWhatWaitsUntilItsModeIsEdited(t *testing.T) {
	l := newLab(t)
	l.runner(sleepRights()...)
	l.deployment("web", 1)
	l.deployment("db", 2)
	const target = "{name: %[1]s, type: workload, parameters: {kinds: [Deployment], selector: {matchLabels: {app: %[1]s}}, timeout: 10s}}"
	l.labelled("web")
	l.labelled("db")
	l.sleeper("nights", strings.Replace(workloads(), "[{name: apps, type: workload}]", "["+fmt.Sprintf(target, "web")+", "+fmt.Sprintf(target, "db")+"]\nbehavior: {mode: Strict, retries: 1}", 1))
	l.hold("asleep", hibernate.Hibernated)
	l.place("db", `{"nowhere":"is"}`)
	l.annotate("nights", map[string]string{annotations.HoldState: "awake"})
	l.phaseOf("nights", hibernate.InError, "these sleep until it is awake: web; with behavior.mode BestEffort they wake all the same")
	if web, db := l.replicas("web"), l.replicas("db"); web != 0 || db != 2 {
		t.Errorf("web has %d, db %d", web, db)
	}
	l.edit("nights", "mode: Strict", "mode: BestEffort")
	l.eventually("web wakes", func() (bool, string) {
		return l.replicas("web") == 1, l.annotationsOf("nights")[annotations.StatusMessage]
	})
	l.place("db", "null")
	l.annotate("nights", map[string]string{annotations.Trigger: "again"})
	l.phaseOf("nights", hibernate.Active, "")
}

// labelled gives a Deployment the label that its pods have.
func (l *lab) labelled(name string) {
	l.Helper()
	_, err := l.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"`+name+`"}}}`), metav1.PatchOptions{})
	l.must(err)
}

// place says on which nodes a Deployment's pods run.
func (l *lab) place(name, nodes string) {
	l.Helper()
	_, err := l.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, name, types.MergePatchType, []byte(`{"spec":{"template":{"spec":{"nodeSelector":`+nodes+`}}}}`), metav1.PatchOptions{})
	l.must(err)
}
