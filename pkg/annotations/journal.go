package annotations

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Bounds of a run's ConfigMap, in bytes.
const (
	maxRun     = 1_000_000 // of all that we write: a ConfigMap holds a mebibyte, with some room for keys
	maxJournal = 400_000   // of a journal that is plain JSON throughout (a guess: it is written often)
	maxSteps   = 16 << 20  // of records that were packed, when they are unpacked
)

// Bounds of a journal by what stands in it (guesses, far beyond what a run of thousands
// of objects writes): an object of a few bytes takes hundreds once it is read.
const (
	maxRecords = 50_000    // of steps
	maxObjects = 400_000   // in all of them
	maxValues  = 2_000_000 // members of objects and lists
)

// packedRecord is a record that stands under DataSteps, with its place in the journal.
type packedRecord struct {
	At     int        `json:"at"`
	Record run.Record `json:"record"`
}

// putJournal writes a journal into a run's ConfigMap. Where it is long, the records
// of steps that have ended stand beside it, compressed: they are much alike, and one
// object is written in one piece, which several are not.
func putJournal(cm *corev1.ConfigMap, j run.Journal) error {
	delete(cm.BinaryData, DataSteps)
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if len(text) > maxJournal {
		if text, err = packed(cm, j); err != nil {
			return err
		}
	}
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	cm.Data[DataJournal] = string(text)
	return nil
}

// packed puts the records that have ended under DataSteps, and returns the rest.
func packed(cm *corev1.ConfigMap, j run.Journal) ([]byte, error) {
	var live []run.Record
	var ended []packedRecord
	for i, r := range j.Steps {
		if r.Phase.Ended() {
			ended = append(ended, packedRecord{i, r})
		} else {
			live = append(live, r)
		}
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if err := json.NewEncoder(zip).Encode(ended); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	if cm.BinaryData == nil {
		cm.BinaryData = map[string][]byte{}
	}
	cm.BinaryData[DataSteps] = out.Bytes()
	j.Steps, j.Packed = live, len(ended)
	return json.Marshal(j)
}

// journalOf reads what putJournal wrote.
func journalOf(cm *corev1.ConfigMap) (run.Journal, error) {
	var j run.Journal
	w, err := weigh([]byte(cm.Data[DataJournal]))
	switch {
	case err != nil:
		return j, err
	case w.objects > maxRecords:
		return j, fmt.Errorf("holds %d objects; at most %d are read", w.objects, maxRecords)
	}
	if err := json.Unmarshal([]byte(cm.Data[DataJournal]), &j); err != nil {
		return j, err
	}
	if j.Packed == 0 {
		return j, nil
	}
	ended, err := unpacked(cm.BinaryData[DataSteps])
	if err != nil {
		return j, fmt.Errorf("%s: %w", DataSteps, err)
	}
	if len(ended) != j.Packed {
		return j, fmt.Errorf("%s holds %d records, and %s speaks of %d", DataSteps, len(ended), DataJournal, j.Packed)
	}
	all := make([]run.Record, 0, len(ended)+len(j.Steps))
	for len(ended) > 0 || len(j.Steps) > 0 {
		switch {
		case len(ended) > 0 && ended[0].At == len(all):
			all, ended = append(all, ended[0].Record), ended[1:]
		case len(j.Steps) > 0:
			all, j.Steps = append(all, j.Steps[0]), j.Steps[1:]
		default:
			return j, fmt.Errorf("%s: a record stands at %d, and there are %d before it", DataSteps, ended[0].At, len(all))
		}
	}
	j.Steps, j.Packed = all, 0
	return j, nil
}

func unpacked(data []byte) ([]packedRecord, error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(zip, maxSteps+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxSteps {
		return nil, fmt.Errorf("holds more than %d bytes", maxSteps)
	}
	w, err := weigh(text)
	switch {
	case err != nil:
		return nil, err
	case w.items > maxRecords:
		return nil, fmt.Errorf("holds more than %d records", maxRecords)
	}
	var out []packedRecord
	return out, json.Unmarshal(text, &out)
}

// weight is what a JSON text holds, counted before anything is made of it.
type weight struct {
	items   int // objects in the outermost list
	objects int
	values  int // members of objects and lists, but for the first of each
}

func weigh(text []byte) (w weight, err error) {
	quoted, depth := false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++ // what is escaped says nothing
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',':
			w.values++
		case c == '{':
			w.objects++
			if depth == 1 {
				w.items++
			}
			depth++
		case c == '[':
			depth++
		case c == '}', c == ']':
			depth--
		}
	}
	if w.objects > maxObjects || w.values > maxValues {
		err = fmt.Errorf("holds %d objects of %d values; at most %d of %d are read", w.objects, w.values, maxObjects, maxValues)
	}
	return w, err
}

// TooLarge is by how many bytes a run's ConfigMap is too large to be kept; 0 or less: it fits.
func TooLarge(cm *corev1.ConfigMap) int {
	return len(cm.Data[DataRun]) + len(cm.Data[DataJournal]) + len(cm.BinaryData[DataSteps]) - maxRun
}
