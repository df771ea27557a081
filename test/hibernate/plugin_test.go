package hibernate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/savings"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// maint is what the built plugin says, to an admin, of the lab's namespace.
func (l *lab) maint(args ...string) (code int, out string) {
	l.Helper()
	admin, err := world.cluster.KubeconfigFile("admin", world.cluster.AdminConfig())
	l.must(err)
	code, out, err = harness.Plugin(l.ctx, world.plugin, admin, append(args, "-n", l.ns)...)
	l.must(err)
	return code, out
}

// tells fails unless the plugin exits with a code and says all of some words.
func (l *lab) tells(args string, code int, words ...string) string {
	l.Helper()
	got, out := l.maint(strings.Fields(args)...)
	if got != code {
		l.Errorf("%s: exit code %d, want %d: %s", args, got, code, out)
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			l.Errorf("%s does not say %q:\n%s", args, w, out)
		}
	}
	return out
}

// loses has restore data go at once, finalizer and all, as by somebody who means it.
func (l *lab) loses(name string) {
	l.Helper()
	maps := l.admin.CoreV1().ConfigMaps(l.ns)
	_, err := maps.Patch(l.ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	l.must(err)
	l.must(maps.Delete(l.ctx, name, metav1.DeleteOptions{}))
	_, err = maps.Get(context.Background(), name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		l.Fatalf("%s is there: %v", name, err)
	}
}

// ordersAsleep has a plan, nights, put a Deployment of three to sleep.
func (l *lab) ordersAsleep() {
	l.Helper()
	l.runner(sleepRights()...)
	l.deployment("orders", 3)
	l.sleeper("nights", workloads())
	l.hold("asleep", hibernate.Hibernated)
}

// Restore data that is lost while no agent looks is said by all who are asked, until somebody
// has woken by hand what slept, and says so.
func TestLostRestoreDataIsSaidByTheBuiltPlugin(t *testing.T) {
	l := newLab(t)
	l.ordersAsleep()
	world.process.Kill()
	l.loses(annotations.RestoreName("nights", "apps"))
	l.must(world.launch())
	const gone = "the restore data of apps is gone: nobody knows how it was before it was put to sleep"
	l.phaseOf("nights", hibernate.InError, gone)
	l.annotate("nights", map[string]string{annotations.HoldState: "awake"})
	l.phaseOf("nights", hibernate.InError, gone)
	l.tells("status nights", 0, gone)
	l.tells("describe nights", 0, gone)
	l.tells("list", 0, "Error")
	l.tells("why nights", 3, gone, "wake it by hand")
	l.tells("doctor nights", 1, "amiss", "its restore data is gone")
	l.tells("restore show nights", 3, "has no restore data")
	if n := l.replicas("orders"); n != 0 {
		t.Errorf("orders has %d, which nobody knows", n)
	}
	l.scaleTo("orders", 3)
	l.tells("trigger nights", 0)
	l.phaseOf("nights", hibernate.Active, "")
}

// An editor that makes nonsense of restore data changes nothing: it is said, the text is kept,
// and all wakes as it was.
func TestNonsenseInRestoreDataIsRefusedByTheBuiltPlugin(t *testing.T) {
	l := newLab(t)
	l.ordersAsleep()
	t.Setenv("TMPDIR", t.TempDir())
	for edit, want := range map[string]string{
		"s/replicas: 3/replicas: many/":   "replicas must be a number",
		"s/replicas: 3/replicas: 2.5/":    "replicas must be a whole number",
		"s/replicas: 3/size: 3/":          "has the fields",
		"s/orders/other/":                 "only before may be changed",
		"s/replicas: 3/replicas: [3/":     "the text must be a list of id and before",
		"$ a - {id: another, before: {}}": "none may be added or removed",
	} {
		editor := filepath.Join(t.TempDir(), "editor")
		l.must(os.WriteFile(editor, []byte("#!/bin/sh\ngrep -q 'It was not taken' \"$1\" || exec sed -i -e '"+edit+"' \"$1\"\n"), 0o700))
		t.Setenv("KUBE_EDITOR", editor)
		l.tells("restore edit nights apps", 1, want, "nothing was written; your text is kept in ")
	}
	l.hold("awake", hibernate.Active)
	l.eventually("it wakes as it was", func() (bool, string) { return l.replicas("orders") == 3, fmt.Sprint(l.replicas("orders")) })
}

// saved is the one row of what the plugin says of the lab's savings.
func (l *lab) saved() savings.Row {
	l.Helper()
	out := l.tells("savings -o json", 0)
	var list struct{ Items []savings.Row }
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Items) != 1 {
		l.Fatalf("%v: %s", err, out)
	}
	return list.Items[0]
}

// priced fails unless a row is of a Deployment with 1.5 cores and 3 GiB that slept, at the
// prices of the example.
func (l *lab) priced(row savings.Row) {
	l.Helper()
	want := row.Hours * (1.5*0.03 + 3*0.004)
	if row.Plan != "nights" || row.Target != "apps" || row.Kind != "Deployment" || row.Resources != 1 || row.Sleeps != 1 || row.Hours <= 0 || row.Currency != "USD" || len(row.Unpriced) > 0 || math.Abs(row.Saved-want) > 1e-9 {
		l.Errorf("it saved %+v, want %g USD", row, want)
	}
}

// What a sleep saves is the same while it lasts and from the ledger, by the prices of the example.
func TestWhatASleepSavesIsToldByTheBuiltPlugin(t *testing.T) {
	l := newLab(t)
	l.runner(sleepRights()...)
	root, err := harness.Root()
	l.must(err)
	prices, err := os.ReadFile(filepath.Join(root, "examples", "prices.yaml"))
	l.must(err)
	l.apply(string(prices))
	l.apply(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders}
spec:
  replicas: 3
  selector: {matchLabels: {app: orders}}
  template: {metadata: {labels: {app: orders}}, spec: {containers: [{name: c, image: example.org/none, resources: {requests: {cpu: 500m, memory: 1Gi}}}]}}
`)
	now := time.Now().UTC()
	l.sleeper("nights", fmt.Sprintf("schedule: {offHours: [{start: %q, end: %q}]}\ntargets: [{name: apps, type: workload}]\n", now.Add(-2*time.Minute).Format("15:04"), now.Add(time.Hour).Format("15:04")))
	l.phaseOf("nights", hibernate.Hibernated, "")
	time.Sleep(1500 * time.Millisecond) // whole seconds are counted
	l.priced(l.saved())
	l.annotate("nights", map[string]string{annotations.Skip: "next"})
	l.phaseOf("nights", hibernate.Active, "these off-hours are skipped")
	l.eventually("the sleep is over", func() (bool, string) { return l.restoreData("nights", "apps") == nil, "" })
	row := l.saved()
	l.priced(row)
	total := fmt.Sprintf("%.1f hours, %.2f USD", row.Hours, row.Saved)
	l.tells("savings", 0, "PLAN     TARGET   KIND         RESOURCES   SLEEPS   HOURS   SAVED\nnights   apps     Deployment   1           1        ", total)
	l.tells("savings -o html", 0, "<!DOCTYPE html>", `<th scope="row">`+l.ns+"/nights</th><td>apps</td><td>Deployment</td>", total, "<rect ")
}

// What a GitOps controller puts back in the night is awake: it is shown so, and its hours do
// not count until it is put to sleep again.
func TestWhatGitOpsPutsBackIsNotCountedAsAsleep(t *testing.T) {
	l := newLab(t)
	l.ordersAsleep()
	reconciles := func() {
		_, err := l.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, "orders", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{FieldManager: "kustomize-controller"})
		l.must(err)
	}
	resource := func() hibernate.Resource { return l.restoreData("nights", "apps").Resources[0] }
	reconciles()
	l.eventually("it is put to sleep again", func() (bool, string) {
		r := resource()
		return r.Revived == 1 && r.AsleepAt != nil && l.replicas("orders") == 0, fmt.Sprintf("%+v", r)
	})
	reconciles()
	l.eventually("it is seen awake", func() (bool, string) { r := resource(); return r.RevivedNow(), fmt.Sprintf("%+v", r) })
	l.tells("restore show nights", 0, "awake: kustomize-controller puts it back")
	l.tells("restore list -o jsonpath={.items[0].sleeping}", 0, "0")
	before := resource().SleptFor(time.Now())
	time.Sleep(1500 * time.Millisecond) // whole seconds are counted
	if after := resource().SleptFor(time.Now()); after != before || l.replicas("orders") != 3 {
		t.Errorf("it slept %s, and then %s; it has %d", before, after, l.replicas("orders"))
	}
	l.hold("awake", hibernate.Active)
	if n := l.replicas("orders"); n != 3 {
		t.Errorf("orders has %d", n)
	}
}
