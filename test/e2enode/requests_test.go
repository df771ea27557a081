//go:build linux

package e2enode

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

// request is what the API server wrote down of one.
type request struct {
	ID    string `json:"auditID"`
	Agent string `json:"userAgent"`
	Verb  string `json:"verb"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	Object *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Name        string `json:"name"`
	} `json:"objectRef"`
}

// words are what was asked of the API server, like "create pods/eviction".
func (r request) words() string {
	if r.Object == nil {
		return r.Verb
	}
	words := r.Verb + " " + r.Object.Resource
	if r.Object.Subresource != "" {
		words += "/" + r.Object.Subresource
	}
	return words
}

// journal is the API server's record of requests, read from where it ended
// last time.
type journal struct {
	file string
	read int64
}

// next are the requests since the last look that were answered, or are watches
// that began: each of them once.
func (j *journal) next(t *testing.T) []request {
	t.Helper()
	f, err := os.Open(j.file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(j.read, 0); err != nil {
		t.Fatal(err)
	}
	var out []request
	seen := map[string]bool{}
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if err != nil { // the last line may still be being written
			return out
		}
		j.read += int64(len(line))
		var got request
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("read the audit log: %v", err)
		}
		if !seen[got.ID] {
			seen[got.ID] = true
			out = append(out, got)
		}
	}
}
