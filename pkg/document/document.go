package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

// APIVersion is the version every document begins with.
const APIVersion = "maint.dev/v1alpha1"

// Limits of documents, fixed by the contract in docs/documents.md.
const (
	MaxDocumentBytes = 256 << 10
	MaxNameLength    = 63
)

// MaxValues is how many values a document may hold: read, each takes some hundred bytes
// beside its text (a guess: a plan of a hundred steps has some three thousand).
const MaxValues = 20_000

// Duration is a Go duration in a document: "90s", "1h30m", and days as "30d".
type Duration struct{ time.Duration }

// ParseDuration reads a Go duration or a whole number of days ("30d").
func ParseDuration(s string) (Duration, error) {
	var days int64
	if n, err := fmt.Sscanf(s, "%dd", &days); err == nil && n == 1 && fmt.Sprintf("%dd", days) == s {
		if days < 0 || days > 36500 {
			return Duration{}, fmt.Errorf("%q is out of range: 0d to 36500d", s)
		}
		return Duration{time.Duration(days) * 24 * time.Hour}, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return Duration{}, fmt.Errorf("%q is no duration: write it like 90s, 15m, 1h30m or 30d", s)
	}
	return Duration{d}, nil
}

// UnmarshalText lets decoders read a duration from a string.
func (d *Duration) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDuration(string(b))
	return err
}

// MarshalText writes a duration as it is read.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Or is the duration, or the default where none is given.
func (d *Duration) Or(def time.Duration) time.Duration {
	if d == nil {
		return def
	}
	return d.Duration
}

// Unmarshal reads JSON and keeps numbers as they were written.
func Unmarshal(b []byte, out any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	return dec.Decode(out)
}

// Clone is a deep copy of any value that survives JSON.
func Clone[T any](v T) T {
	var out T
	b, err := json.Marshal(v)
	if err == nil {
		err = Unmarshal(b, &out)
	}
	if m, ok := any(out).(map[string]any); ok {
		expr.Whole(m)
	}
	if err != nil {
		panic(fmt.Sprintf("document.Clone of %T: %v", v, err)) // our own types always survive
	}
	return out
}

// MaxMessage is how many bytes of a message are kept.
const MaxMessage = 1024

// SecretKeyRef names one key of a Secret in the plan's namespace.
type SecretKeyRef struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}
