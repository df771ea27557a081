package function

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

const hidden = "***"

// mask takes credentials out of what a function says, in the forms in which it
// is likely to repeat them: as they are, as text in JSON, and in base64. Part of
// a credential, or one that was turned into something else, it does not know.
type mask struct{ forms []string }

func (m *mask) add(secret string) {
	for _, s := range []string{secret, strings.TrimSpace(secret)} {
		if s == "" {
			continue
		}
		m.forms = append(m.forms, s, base64.StdEncoding.EncodeToString([]byte(s)), base64.URLEncoding.EncodeToString([]byte(s)))
		if quoted, err := json.Marshal(s); err == nil {
			m.forms = append(m.forms, string(quoted[1:len(quoted)-1]))
		}
	}
	// Longest first, so that no part of one is left over.
	slices.SortFunc(m.forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	m.forms = slices.Compact(m.forms)
}

func (m mask) text(s string) string {
	for _, form := range m.forms {
		s = strings.ReplaceAll(s, form, hidden)
	}
	return s
}

// value masks every text in a value: keys, strings, and numbers by the way they
// are written.
func (m mask) value(v any) any {
	switch v := v.(type) {
	case string:
		return m.text(v)
	case int64, float64:
		if written := fmt.Sprint(v); m.text(written) != written {
			return m.text(written)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[m.text(key)] = m.value(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = m.value(item)
		}
		return out
	}
	return v
}
