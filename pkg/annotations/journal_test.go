package annotations_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// longJournal is a loop's: of each item a step that has ended and is to be restored,
// and every seventh still at work.
func longJournal(items int) run.Journal {
	j := run.Journal{Phase: run.Running, Steps: []run.Record{{Path: "each", Type: plan.TypeForEach, Phase: run.StepRunning, Listed: true}}}
	for i := range items {
		name := fmt.Sprintf("orders-%04d", i)
		j.Steps[0].Items = append(j.Steps[0].Items, run.Item{Name: name, UID: uuid.NewString(), Phase: run.StepRunning})
		r := run.Record{Path: "each/" + name + "/down", Type: "scale", Phase: run.StepSucceeded, Attempt: 1, Message: "Deployment/" + name + " has 0 replicas"}
		r.Before = json.RawMessage(fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","namespace":"shop","name":%q,"uid":%q,"replicas":3,"wrote":0,"manager":"maint-plan-0123456789"}`, name, uuid.NewString()))
		if i%7 == 3 {
			r.Phase = run.StepRunning
		}
		j.Steps = append(j.Steps, r)
	}
	j.Steps = append(j.Steps, run.Record{Path: "last", Phase: run.StepPending})
	return j
}

func written(t *testing.T, j run.Journal) *corev1.ConfigMap {
	t.Helper()
	r, _ := newRun()
	cm, err := annotations.RunObject(r, j)
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

func TestALongJournalFitsAndSurvivesItsObject(t *testing.T) {
	for _, items := range []int{10, 1200, plan.MaxItems} {
		j := longJournal(items)
		cm := written(t, j)
		_, packed := cm.BinaryData[annotations.DataSteps]
		if packed != (items > 1000) {
			t.Errorf("%d items: packed %t", items, packed)
		}
		if over := annotations.TooLarge(cm); over > 0 {
			t.Errorf("%d items: %d bytes too large", items, over)
		}
		_, again, err := annotations.ReadRun(cm)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(j, again); diff != "" {
			t.Errorf("%d items: %s", items, diff[:min(len(diff), 2000)])
		}
		t.Logf("%d items: %d bytes plain, %d packed", items, len(cm.Data[annotations.DataJournal]), len(cm.BinaryData[annotations.DataSteps]))
	}
	short, err := annotations.WithJournal(written(t, longJournal(1200)), longJournal(10))
	if err != nil || len(short.BinaryData) > 0 {
		t.Errorf("%v: records of a longer journal were left behind: %d", err, len(short.BinaryData))
	}
}

func TestAJournalWhosePackedRecordsAreNotItsOwnIsBroken(t *testing.T) {
	zipped := func(text string) []byte {
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		if _, err := zip.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := zip.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	whole := written(t, longJournal(1200))
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"none":                          {nil, "EOF"},
		"no zip":                        {[]byte("x"), "unexpected EOF"},
		"no list":                       {zipped("{"), "unexpected end of JSON input"},
		"too few":                       {zipped("[]"), "holds 0 records, and journal.json speaks of 1029"},
		"half":                          {zipped(`[{"at":0,"record":{}}`), "unexpected end of JSON input"},
		"as many records as may be":     {zipped("[" + strings.Repeat(`{"at":0},`, 49_999) + `{"at":0}]`), "holds 50000 records, and"},
		"more records than any run has": {zipped("[" + strings.Repeat(`{"at":0},`, 50_000) + `{"at":0}]`), "holds more than 50000 records"},
		"a record with more in it than any run has": {zipped(`[{"at":0,"record":{"changed":[{}` + strings.Repeat(",{}", 500_000) + `]}}]`), "holds 500003 objects of"},
		"as large as may be":                        {zipped("[" + string(bytes.Repeat([]byte(" "), 16<<20-2)) + "]"), "holds 0 records, and"},
		"too large":                                 {zipped("[" + string(bytes.Repeat([]byte(" "), 16<<20-1)) + "]"), "holds more than 16777216 bytes"},
	} {
		cm := whole.DeepCopy()
		cm.BinaryData[annotations.DataSteps] = c.data
		if _, _, err := annotations.ReadRun(cm); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", name, err, c.says)
		}
	}
	cm := whole.DeepCopy()
	cm.Data[annotations.DataJournal] = `{"phase":"Running","packed":1}`
	cm.BinaryData[annotations.DataSteps] = zipped(`[{"at":1,"record":{"path":"a","type":"b","phase":"Succeeded"}}]`)
	if _, _, err := annotations.ReadRun(cm); err == nil {
		t.Error("a gap was not noticed")
	}
}

// By how much is told to the byte, whichever of its parts holds it.
func TestARunIsTooLargeByAllThatItHolds(t *testing.T) {
	for name, c := range map[string]struct {
		run, journal, steps int
		want                int
	}{
		"nothing":                  {want: -1_000_000},
		"the run, to the byte":     {run: 1_000_000},
		"its journal":              {run: 10, journal: 1_000_000, want: 10},
		"its packed records":       {run: 10, journal: 20, steps: 1_000_000, want: 30},
		"one byte less than it is": {run: 300_000, journal: 300_000, steps: 399_999, want: -1},
	} {
		cm := &corev1.ConfigMap{
			Data:       map[string]string{annotations.DataRun: strings.Repeat("x", c.run), annotations.DataJournal: strings.Repeat("x", c.journal)},
			BinaryData: map[string][]byte{annotations.DataSteps: bytes.Repeat([]byte("x"), c.steps)},
		}
		if got := annotations.TooLarge(cm); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
