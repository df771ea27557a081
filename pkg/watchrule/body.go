package watchrule

import (
	"encoding/json"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// packed is an object as it is kept: its text is a fraction of what it takes as
// maps. Nil is none.
type packed []byte

func pack(body map[string]any) packed {
	if body == nil {
		return nil
	}
	b, err := json.Marshal(body)
	if err != nil {
		return nil // it came as JSON
	}
	return b
}

func (p packed) body() run.Body {
	var out run.Body
	if p == nil || json.Unmarshal(p, &out) != nil {
		return nil
	}
	return out
}
