package ledger

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// maxFound are the fields that are named of one step (a guess: a message is read in one look).
const maxFound = 3

// foundText says what a step had found, for whoever puts it back by hand; empty: it is not known here.
// Of a text it says nothing, since that may be secret.
func foundText(before json.RawMessage) string {
	f := run.ReadWritten(before)
	if f == nil || f.Object == nil {
		return ""
	}
	var fields []string
	more := 0
	for _, c := range f.Changes {
		switch {
		case c.Made:
		case len(fields) == maxFound:
			more++
		default:
			fields = append(fields, nameOf(c)+" "+valueText(c.Before))
		}
	}
	if len(fields) == 0 {
		return ""
	}
	text := fmt.Sprintf("%s had %s", f.Object, strings.Join(fields, ", "))
	if more > 0 {
		text += fmt.Sprintf(", and %d more fields", more)
	}
	return text
}

func nameOf(c run.WrittenField) string {
	var parts []string
	for _, s := range c.Path {
		if s.Item != "" {
			parts = append(parts, "["+s.Item+"]")
			continue
		}
		parts = append(parts, s.Key)
	}
	return document.Cut(strings.Join(parts, "."), 60)
}

// valueText is a number, a truth value or that there was none.
func valueText(v json.RawMessage) string {
	if v == nil {
		return "absent"
	}
	text := string(v)
	if strings.ContainsAny(text, "\"{[") {
		return "(not shown here)"
	}
	return document.Cut(text, 40)
}
