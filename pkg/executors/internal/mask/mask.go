// Package mask removes secrets from what executors keep and report.
package mask

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const hidden = "***"

// Mask removes secrets in the forms in which a server is likely to send them back: as they are,
// escaped for JSON or a URL, in base64 also of a longer text, and without the scheme before them.
// The zero value hides nothing.
type Mask struct {
	forms []string // longest first, so that no part of one remains
}

// New hides the given secrets.
func New(secrets []string) Mask {
	var m Mask
	for _, s := range distinct(secrets) {
		m.add(s)
	}
	slices.SortFunc(m.forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	m.forms = slices.Clip(slices.Compact(m.forms))
	return m
}

// distinct are the secrets and what is left of them without a scheme, each once: all forms of one are
// dozens of times as long.
func distinct(secrets []string) []string {
	all := slices.Clone(secrets)
	for _, s := range secrets {
		if _, credentials, ok := strings.Cut(s, " "); ok {
			all = append(all, strings.TrimSpace(credentials))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Longest is the length of a secret's longest form. Whoever cuts a text before masking drops that
// many bytes at the cut: they may be half of a secret.
func (m Mask) Longest() int {
	if len(m.forms) == 0 {
		return 0
	}
	return len(m.forms[0])
}

func (m *Mask) add(s string) {
	if s == "" {
		return
	}
	quoted, err := json.Marshal(s)
	if err != nil {
		quoted = []byte(`"` + s + `"`)
	}
	m.forms = append(m.forms, s, inQuotes(string(quoted)), url.QueryEscape(s), url.PathEscape(s),
		base64.StdEncoding.EncodeToString([]byte(s)), base64.RawStdEncoding.EncodeToString([]byte(s)),
		base64.URLEncoding.EncodeToString([]byte(s)), inQuotes(strconv.Quote(s)))
	for before := range 3 {
		m.inside(s, before)
	}
}

// inQuotes is what stands between quotes.
func inQuotes(s string) string { return s[1 : len(s)-1] }

// leastInside keeps words of a text from being taken for what is left of a secret of three bytes.
const leastInside = 4

// inside hides a secret in base64 of a text that has it behind so many bytes, modulo three: the
// characters that are the same whatever stands around it.
func (m *Mask) inside(s string, before int) {
	padded := append(make([]byte, before), s...)
	from, to := (8*before+5)/6, 8*len(padded)/6
	if to-from < leastInside {
		return
	}
	m.forms = append(m.forms, base64.RawStdEncoding.EncodeToString(padded)[from:to], base64.RawURLEncoding.EncodeToString(padded)[from:to])
}

// Text is a text without the secrets.
func (m Mask) Text(s string) string {
	for _, form := range m.forms {
		s = strings.ReplaceAll(s, form, hidden)
	}
	return s
}

// Value masks every text in a JSON value: keys, strings, and numbers by the
// way they are written.
func (m Mask) Value(v any) any {
	switch v := v.(type) {
	case string:
		return m.Text(v)
	case json.Number, int64, float64:
		if written := fmt.Sprint(v); m.Text(written) != written {
			return m.Text(written)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[m.Text(key)] = m.Value(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = m.Value(item)
		}
		return out
	}
	return v
}
