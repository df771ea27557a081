package preview

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
)

// What next names as the first slot that will run is what the agent says, at any instant.
func TestNextNamesTheSlotThatTheAgentWaitsFor(t *testing.T) {
	for number := range uint64(worlds) {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			r := rand.New(rand.NewPCG(number, 12))
			play(t, func(w *world) {
				names := draw(w, r, 2, true)
				w.begins()
				for range 3 {
					w.until(time.Now().Add(time.Duration(1+r.IntN(30))*time.Minute + 7*time.Second))
					for _, name := range names {
						if got, want := next(w, name), w.ConfigMap(shop, name).Annotations[annotations.StatusNextRun]; got != want {
							t.Errorf("at %s the next slot of %s is %q, and the agent says %q\n%s", time.Now().UTC().Format(time.RFC3339), name, got, want, documents(w))
						}
					}
				}
			})
		})
	}
}

// next is the first slot that is neither skipped nor paused.
func next(w *world, name string) string {
	w.Helper()
	var list struct{ Items []struct{ UTC, Note string } }
	if code := w.maint(&list, "next", name, "--count", "100"); code != 0 {
		w.Fatalf("next ended with %d", code)
	}
	for _, slot := range list.Items {
		if !strings.Contains(slot.Note, "skipped") && !strings.Contains(slot.Note, "paused") {
			return slot.UTC
		}
	}
	return ""
}

// A run that is asked for begins at once exactly where why found nothing in the way.
func TestARunBeginsAtOnceWhereWhySaysThatNothingIsInTheWay(t *testing.T) {
	begun := map[bool]int{}
	for number := range uint64(worlds) {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			r := rand.New(rand.NewPCG(number, 13))
			play(t, func(w *world) {
				names := draw(w, r, 2, true)
				w.begins()
				w.until(time.Now().Add(time.Duration(1+r.IntN(90))*time.Minute + 7*time.Second))
				for _, name := range names {
					var said struct{ InTheWay []struct{ What string } }
					code := w.maint(&said, "why", name)
					if (code == 0) != (len(said.InTheWay) == 0) || code != 0 && code != exit.CodeNotNow {
						t.Errorf("exit code %d beside %v", code, said.InTheWay)
					}
					if slices.ContainsFunc(said.InTheWay, func(o struct{ What string }) bool { return strings.HasPrefix(o.What, "slots are skipped") }) {
						continue // that keeps no run back that somebody asks for
					}
					w.Annotate(shop, name, annotations.Trigger, "now")
					w.until(time.Now().Add(3 * time.Second))
					at := begunBy(w, name, "now")
					if at != (code == 0) {
						t.Errorf("at %s a run of %s begins: %t, and in the way stands %v\n%s", time.Now().UTC().Format(time.RFC3339), name, at, said.InTheWay, documents(w))
					}
					begun[at]++
				}
			})
		})
	}
	if begun[true] == 0 || begun[false] == 0 {
		t.Errorf("%d began and %d did not: the worlds are too tame", begun[true], begun[false])
	}
}

// begunBy says whether the run that a token asked for has begun.
func begunBy(w *world, name, token string) bool {
	w.Helper()
	for _, at := range w.Names("configmaps") {
		cm := w.ConfigMap(shop, strings.TrimPrefix(at, shop+"/"))
		if cm == nil || cm.Labels[annotations.LabelKind] != annotations.KindRun || cm.Labels[annotations.LabelPlan] != name {
			continue
		}
		r, j, err := annotations.ReadRun(cm)
		if err != nil {
			w.Fatal(err)
		}
		if r.Request.Token == token {
			return j.StartedAt != nil
		}
	}
	return false
}
