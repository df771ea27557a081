package preview

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// settles is how long after the span the last of its slots has ended: its jitter and its deadline.
const settles = 50 * time.Minute

// The agent ends each slot as simulate says of the same documents: with the same result, for the
// same reason, begun in the same minute.
func TestTheAgentDoesWhatIsSimulated(t *testing.T) {
	const worlds = 4 // of many plans
	seen := map[string]int{}
	for number := range uint64(worlds) {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			r := rand.New(rand.NewPCG(number, 11))
			play(t, func(w *world) {
				plans := draw(w, r, len(names), false)
				w.nextByName(plans)
				got := w.compared(plans, drawOutage(r))
				for _, e := range got {
					seen[e.Result]++
				}
			})
		})
	}
	for _, result := range []run.Result{run.Ran, run.Skipped, run.Missed} {
		if seen[string(result)] < worlds {
			t.Errorf("only %d slots were %s: the worlds are too tame", seen[string(result)], result)
		}
	}
}

// compared is how the slots of plans ended, which is to be what was simulated.
func (w *world) compared(plans []string, away outage) map[string]ending {
	w.Helper()
	want, got := w.simulated(away), map[string]ending{}
	w.through(away)
	for _, name := range plans {
		maps.Copy(got, w.happened(name))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("without an agent from %s to %s: simulated and not done (-), done and not simulated (+):\n%s\n%s", away.from, away.to, diff, documents(w))
	}
	return got
}

// nextByName has plans that skip their next slot skip it by its name: a file cannot say next.
func (w *world) nextByName(plans []string) {
	w.Helper()
	for _, name := range plans {
		if cm := w.ConfigMap(shop, name); cm.Annotations[annotations.Skip] == "next" {
			w.Annotate(shop, name, annotations.Skip, append(w.slots(cm), evening().Add(span).UTC().Format(time.RFC3339))[0])
		}
	}
}

// Draws have an end and a slot at one instant, and two plans on one target, too rarely.
func TestTheAgentDoesWhatIsSimulatedWhereRunsMeet(t *testing.T) {
	about := func(target string) string {
		return "target: {apiVersion: apps/v1, kind: Deployment, name: " + target + "}\n"
	}
	halfHours := func(policy plan.ConcurrencyPolicy, most, properties string) string {
		return meeting("0,30 * * * *", policy, most, properties)
	}
	specs := map[string]string{
		"created":                strings.Replace(halfHours(plan.Forbid, "1h", "duration: 45m"), "{schedules", "{onCreate: true, schedules", 1),
		"ends-by-limit":          halfHours(plan.Forbid, "30m", ""),
		"ends-by-limit-queue":    halfHours(plan.Queue, "30m", ""),
		"ends-by-limit-replace":  halfHours(plan.Replace, "30m", ""),
		"ends-by-itself":         halfHours(plan.Forbid, "1h", "duration: 30m"),
		"ends-by-itself-queue":   halfHours(plan.Queue, "1h", "duration: 30m"),
		"ends-by-itself-replace": halfHours(plan.Replace, "1h", "duration: 30m"),
		"ends-with-cleanup":      halfHours(plan.Forbid, "1h", "duration: 25m") + "finally: [{name: after, type: suspend, properties: {duration: 5m}}]\n",
		"ends-as-it-is-too-late": halfHours(plan.Queue, "45m", "duration: 40m") + "startDeadline: 10m\n",
		"ends-before":            halfHours(plan.Forbid, "1h", "duration: 29m"),
		"ends-after":             halfHours(plan.Forbid, "1h", "duration: 31m"),
		"turns-one":              halfHours(plan.Forbid, "1h", "duration: 15m") + about("turns"),
		"turns-two":              meeting("10,40 * * * *", plan.Forbid, "1h", "duration: 10m") + about("turns"),
		"late-one":               meeting("0 * * * *", plan.Forbid, "1h", "duration: 50m") + about("late"),
		"late-two":               meeting("10 * * * *", plan.Forbid, "1h", "duration: 10m") + about("late") + "startDeadline: 20m\n",
	}
	play(t, func(w *world) {
		w.namespace(nil)
		w.deployment("turns")
		w.deployment("late")
		plans := slices.Sorted(maps.Keys(specs))
		for _, name := range plans {
			w.plan(name, specs[name], nil)
		}
		w.compared(plans, outage{})
	})
}

// meeting is a plan of one step, which takes so long.
func meeting(cron string, policy plan.ConcurrencyPolicy, most, properties string) string {
	return fmt.Sprintf("triggers: {schedules: [{cron: '%s'}]}\nconcurrencyPolicy: %s\nmaxDuration: %s\nsteps: [{name: one, type: suspend, properties: {%s}}]\n", cron, policy, most, properties)
}

// outage is a time without an agent; a zero one is none.
type outage struct{ from, to time.Time }

func drawOutage(r *rand.Rand) outage {
	if r.IntN(2) == 0 {
		return outage{}
	}
	from := evening().Add(time.Duration(r.IntN(100))*time.Minute + 11*time.Second)
	return outage{from, from.Add(time.Duration(1+r.IntN(60)) * time.Minute)}
}

// through has an agent run until all slots of the span have ended, but for an outage.
func (w *world) through(away outage) {
	w.begins()
	if !away.to.IsZero() {
		w.until(away.from)
		w.ends()
		w.until(away.to)
		w.begins()
	}
	w.until(evening().Add(span + settles))
}

// ending is how a slot ended.
type ending struct{ Result, Reason, Started string }

// minute is an instant as far as an agent is punctual.
func minute(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Round(time.Minute).Format("15:04")
}

// simulated is what the command says of the documents as they stand, by plan and slot.
func (w *world) simulated(away outage) map[string]ending {
	w.Helper()
	args := []string{"simulate", "-f", w.files(), "--from", evening().Format(time.RFC3339), "--to", evening().Add(span).Format(time.RFC3339)}
	if !away.to.IsZero() {
		args = append(args, "--outage", away.from.Format(time.RFC3339)+"/"+away.to.Format(time.RFC3339))
	}
	var list struct {
		Items []struct {
			Plan, Slot, Result, Reason string
			StartedAt                  *time.Time
		}
	}
	if code := w.maint(&list, args...); code != 0 {
		w.Fatalf("simulate ended with %d", code)
	}
	out := map[string]ending{}
	for _, i := range list.Items {
		out[strings.TrimPrefix(i.Plan, shop+"/")+" "+i.Slot] = ending{i.Result, i.Reason, minute(i.StartedAt)}
	}
	return out
}

// files is a file with the documents and their namespace.
func (w *world) files() string {
	w.Helper()
	var all bytes.Buffer
	add := func(resource, namespace, name string) {
		text, err := yaml.Marshal(w.Get(resource, namespace, name).Object)
		if err != nil {
			w.Fatal(err)
		}
		all.WriteString("---\n")
		all.Write(text)
	}
	add("namespaces", "", shop)
	for _, at := range w.Names("configmaps") {
		if name, here := strings.CutPrefix(at, shop+"/"); here {
			add("configmaps", shop, name)
		}
	}
	file := filepath.Join(w.TempDir(), "documents.yaml")
	if err := os.WriteFile(file, all.Bytes(), 0o600); err != nil {
		w.Fatal(err)
	}
	return file
}

// happened is what the ledger of a plan says in the end of the slots of the span, and of the run
// by its creation.
func (w *world) happened(name string) map[string]ending {
	w.Helper()
	cm := w.ConfigMap(shop, name)
	l := w.ledger(cm)
	out := map[string]ending{}
	for _, e := range slices.Concat(l.Recent, l.Open) {
		if e.Count <= 1 {
			out[name+" "+slotOf(e)] = w.endingOf(e)
		}
	}
	for _, slot := range w.slots(cm) { // of the others, several stand in one entry
		if _, told := out[name+" "+slot]; told {
			continue
		}
		for _, e := range l.Recent {
			if e.Count > 1 && e.First.UTC().Format(time.RFC3339) <= slot && slot <= e.Last.UTC().Format(time.RFC3339) {
				out[name+" "+slot] = w.endingOf(e)
			}
		}
	}
	end := evening().Add(span).UTC().Format(time.RFC3339)
	maps.DeleteFunc(out, func(key string, _ ending) bool { return strings.TrimPrefix(key, name+" ") >= end })
	return out
}

func (w *world) ledger(cm *corev1.ConfigMap) ledger.Ledger {
	w.Helper()
	l, err := annotations.ReadLedger(w.ConfigMap(shop, annotations.LedgerName(cm.Name, string(cm.UID))), string(cm.UID))
	if err != nil {
		w.Fatal(err)
	}
	return l
}

// slots are those of a plan in the span.
func (w *world) slots(cm *corev1.ConfigMap) []string {
	w.Helper()
	spec, _ := annotations.Plan(cm)
	set, err := plan.ParseSchedules(spec.Triggers.Schedules)
	if err != nil {
		w.Fatal(err)
	}
	var out []string
	for slot, ok := set.Next(evening()); ok && slot.At.Before(evening().Add(span)); slot, ok = set.Next(slot.At) {
		out = append(out, slot.At.UTC().Format(time.RFC3339))
	}
	return out
}

// slotOf is the slot of an entry; empty: it is of a run without one.
func slotOf(e ledger.Entry) string {
	if e.Slot == nil {
		return ""
	}
	return e.Slot.UTC().Format(time.RFC3339)
}

// endingOf is how the slot of an entry ended. What has begun ran, however long it takes.
func (w *world) endingOf(e ledger.Entry) ending {
	w.Helper()
	if e.Result == run.Open {
		_, journal, err := annotations.ReadRun(w.ConfigMap(shop, e.Run))
		if err != nil {
			w.Fatal(err)
		}
		if e.StartedAt = journal.StartedAt; e.StartedAt != nil {
			e.Result = run.Ran
		}
	}
	return ending{string(e.Result), e.Reason, minute(e.StartedAt)}
}
