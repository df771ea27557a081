//go:build linux

package e2enode

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// journal is the API server's record of requests, read from where it ended
// last time.
type journal struct {
	file string
	read int64
}

// next are the requests since the last look that were answered, or are watches
// that began: each of them once.
func (j *journal) next(t *testing.T) []harness.AuditEvent {
	t.Helper()
	var out []harness.AuditEvent
	seen := map[string]bool{}
	var err error
	j.read, err = harness.EachAudited(j.file, j.read, "", func(e harness.AuditEvent) {
		if !seen[e.ID] {
			seen[e.ID] = true
			out = append(out, e)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
