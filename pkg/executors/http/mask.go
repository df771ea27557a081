package http

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

const hidden = "***"

// mask takes secrets out of everything that is kept, in the forms in which a
// server is likely to send them back: as they are, escaped for JSON or a URL,
// in base64, and without the scheme before them.
type mask struct {
	forms   []string // longest first, so that no part of one is left over
	longest int
}

func newMask(secrets []string) mask {
	var m mask
	for _, s := range secrets {
		m.add(s)
		if _, credentials, ok := strings.Cut(s, " "); ok && strings.TrimSpace(credentials) != "" {
			m.add(strings.TrimSpace(credentials))
		}
	}
	slices.SortFunc(m.forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	m.forms = slices.Compact(m.forms)
	if len(m.forms) > 0 {
		m.longest = len(m.forms[0])
	}
	return m
}

func (m *mask) add(s string) {
	if s == "" {
		return
	}
	quoted, err := json.Marshal(s)
	if err != nil {
		quoted = []byte(`"` + s + `"`)
	}
	m.forms = append(m.forms, s, string(quoted[1:len(quoted)-1]), url.QueryEscape(s), url.PathEscape(s),
		base64.StdEncoding.EncodeToString([]byte(s)), base64.RawStdEncoding.EncodeToString([]byte(s)),
		base64.URLEncoding.EncodeToString([]byte(s)), fmt.Sprintf("%q", s)[1:len(fmt.Sprintf("%q", s))-1])
}

func (m mask) text(s string) string {
	for _, form := range m.forms {
		s = strings.ReplaceAll(s, form, hidden)
	}
	return s
}

// value masks every text in a JSON value: keys, strings, and numbers by the
// way they are written.
func (m mask) value(v any) any {
	switch v := v.(type) {
	case string:
		return m.text(v)
	case json.Number:
		if text := m.text(v.String()); text != v.String() {
			return text
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
