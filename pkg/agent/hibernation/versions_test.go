package hibernation

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// edits has somebody with the key edit the restore data of a target.
func (w *world) edits(target string, edit func(*hibernate.Record)) {
	w.Helper()
	conn, _ := w.api.Connect()
	maps := conn.Kube.CoreV1().ConfigMaps(shop)
	live, err := maps.Get(w.Context(), annotations.RestoreName("nights", target), metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	record, err := annotations.ReadRestore(live)
	if err != nil {
		w.Fatal(err)
	}
	edit(&record)
	text, err := json.Marshal(record)
	if err != nil {
		w.Fatal(err)
	}
	live.Data = map[string]string{annotations.DataRestore: string(text)}
	if _, err := maps.Update(w.Context(), agenttest.Signed(w.T, live), metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func orders(n string) func(*hibernate.Record) {
	return func(r *hibernate.Record) {
		for i := range r.Resources {
			if r.Resources[i].ID == "orders" {
				r.Resources[i].Before = json.RawMessage(n)
			}
		}
	}
}

// What somebody edits while the agent looks at the target is what is put back.
func TestWhatIsEditedDuringALookIsPutBack(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("01:30")
		w.sleeps()
		w.beds.meanwhile(func() {
			w.edits("apps", orders("7"))
			for w.agent.records.find(shop, hibernate.Record{Plan: "nights", Target: "apps"}).object.ResourceVersion != w.api.ConfigMap(shop, annotations.RestoreName("nights", "apps")).ResourceVersion {
				time.Sleep(time.Millisecond) // until the watch has shown it
			}
		})
		w.until("03:30")
		w.has("orders 7, web 2")
		w.closed()
	})
}

// What was decided on is written on top of that alone, and each write of ours on top of the
// last one.
func TestARecordIsWrittenOnTopOfWhatItWasMadeFrom(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("01:30")
		c, k := w.agent.Controller, types.NamespacedName{Namespace: shop, Name: "nights"}
		read := c.records.of(k)
		w.edits("apps", orders("7"))
		w.after(time.Second)
		r := read[0].record
		r.Message = "decided on what was read before"
		if err := c.apply(w.Context(), k, read, hibernate.Decision{Write: []hibernate.Record{r}}); !errors.Is(err, queue.ErrConflict) {
			t.Errorf("on top of an edit: %v", err)
		}
		if err := c.apply(w.Context(), k, nil, hibernate.Decision{Write: []hibernate.Record{r}}); !errors.Is(err, queue.ErrConflict) {
			t.Errorf("as if there were none: %v", err)
		}
		if got := w.record("apps").Resources[0]; string(got.Before) != "7" {
			t.Errorf("the edit is lost: %s has %s", got.ID, got.Before)
		}
		from, inRow := c.records.of(k)[0], 0
		for try := 0; inRow < 3; try++ {
			r := from.record
			r.Message = fmt.Sprint("write ", try)
			written, err := c.records.write(w.Context(), shop, from, r)
			switch {
			case try == 20 || err != nil && !errors.Is(err, queue.ErrConflict):
				t.Fatalf("%s: %v, %d in a row", r.Message, err, inRow)
			case err != nil: // the agent itself was between
				from, inRow = c.records.of(k)[0], 0
			case written.record.Message != r.Message:
				t.Fatalf("%s was written as %q", r.Message, written.record.Message)
			default:
				from, inRow = written, inRow+1
			}
		}
		w.until("03:30")
		w.has("orders 7, web 2")
		w.closed()
	})
}

// Restore data that an earlier version filled to the brim wakes all the same.
func TestNothingStaysAsleepForTheSizeOfItsRestoreData(t *testing.T) {
	for name, free := range map[string]int{"it fits as it is": 40 << 10, "bookkeeping has to go": 16} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.until("01:30")
				w.sleeps()
				w.edits("apps", func(r *hibernate.Record) {
					text, err := json.Marshal(*r)
					if err != nil {
						w.Fatal(err)
					}
					for i := range 3 {
						r.Resources = append(r.Resources, hibernate.Resource{ID: fmt.Sprint("fn-", i), UID: "u", Before: json.RawMessage(`"` + strings.Repeat("x", (1<<20-free-len(text))/3-100) + `"`), CapturedAt: *r.StartedAt})
					}
				})
				w.until("03:30")
				w.awake()
				w.closed()
			})
		})
	}
}
