package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// asked is a line of an audit log: one request, or one stage of a watch.
type asked struct {
	Stage     string `json:"stage"`
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received metav1.MicroTime `json:"requestReceivedTimestamp"`
	Answered metav1.MicroTime `json:"stageTimestamp"`
}

// counts says whether a line stands for its request: a watch is counted when it
// begins, everything else when it was answered.
func (a asked) counts() bool {
	if a.Verb == "watch" {
		return a.Stage == "ResponseStarted"
	}
	return a.Stage == "ResponseComplete"
}

func (a asked) eviction() bool {
	return a.Object.Resource == "pods" && a.Object.Subresource == "eviction"
}

// auditEnd is how long the log is now.
func auditEnd(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// auditSince are the log's requests from a length on. The API server writes a
// line before it answers, so whoever has had its answer finds it here.
func auditSince(path string, from int64) ([]asked, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1] // the last line may be half written
	var out []asked
	lines := json.NewDecoder(bytes.NewReader(text))
	for {
		var a asked
		switch err := lines.Decode(&a); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if a.counts() {
			out = append(out, a)
		}
	}
}

// tally is what somebody asked of the API server.
type tally struct {
	all, pods        int // pods: evictions, gets, lists, watches, deletes
	evicted, refused int
	codes            map[int]int // of the refused evictions
	took             []float64   // milliseconds of the accepted evictions, sorted
	last             time.Time   // answer of an accepted eviction
	first            time.Time
}

func count(log []asked, who func(asked) bool) tally {
	t := tally{codes: map[int]int{}}
	for _, a := range log {
		if !who(a) {
			continue
		}
		t.all++
		if a.Object.Resource == "pods" {
			t.pods++
		}
		switch {
		case a.eviction() && a.Status.Code < 300:
			t.evicted++
			t.took = append(t.took, 1000*a.Answered.Sub(a.Received.Time).Seconds())
			if t.first.IsZero() || a.Received.Time.Before(t.first) {
				t.first = a.Received.Time
			}
			if a.Answered.After(t.last) {
				t.last = a.Answered.Time
			}
		case a.eviction():
			t.refused++
			t.codes[a.Status.Code]++
		}
	}
	slices.Sort(t.took)
	return t
}
