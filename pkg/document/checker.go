package document

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Checker collects what is wrong with one document. A field that has a fault gets no
// second one, and nothing below what could not be read gets any.
type Checker struct {
	lines  Positions
	faults Faults
	faulty map[string]bool // paths with a fault
	broken map[string]bool // paths that could not be read, nor what is below them
}

// Reporter takes one fault, at a path below the one that it was made for.
type Reporter = func(path, format string, args ...any)

// Read reads a document strictly into out, a pointer to a struct with json tags. The
// checker is for what its fields say; without ok nothing of it could be read.
func Read(text []byte, out any) (c *Checker, ok bool) {
	d, faults := decode(text, out)
	c = &Checker{lines: d.lines, faults: faults, faulty: map[string]bool{}, broken: d.broken}
	for _, f := range faults {
		c.faulty[f.Path] = true
	}
	return c, d.lines != nil
}

// NewChecker is for values that have no text of their own.
func NewChecker() *Checker { return &Checker{faulty: map[string]bool{}} }

// Faults are those found until now, in the order of their lines, as many as anybody
// reads.
func (c *Checker) Faults() Faults { return c.faults.Limited() }

// Fault notes that the field at a path is wrong.
func (c *Checker) Fault(path, format string, args ...any) {
	if c.faulty[path] || Under(path, c.broken) { // the first thing wrong with a field is the cause of the next
		return
	}
	c.faulty[path] = true
	c.faults = append(c.faults, Fault{Line: c.lines.Line(path), Path: path, Message: fmt.Sprintf(format, args...)})
}

// Below reports faults below a path.
func (c *Checker) Below(path string) Reporter {
	return func(at, format string, args ...any) {
		if at != "" {
			at = path + "." + at
		} else {
			at = path
		}
		c.Fault(at, format, args...)
	}
}

// Unread keeps what is below a path from being a second fault.
func (c *Checker) Unread(path string) {
	if c.broken == nil {
		c.broken = map[string]bool{}
	}
	c.broken[path] = true
}

// Broken says whether what stands at a path could not be read.
func (c *Checker) Broken(path string) bool { return c.broken[path] }

// Value reads an already parsed value of the document, the properties of a step,
// strictly into out. It gives the faults, which are noted too, and the paths at which
// a string with ${…} was left for later.
func (c *Checker) Value(v any, path string, out any) (Faults, map[string]bool) {
	faults, left := decodeValue(v, path, c.lines, true, out)
	for _, f := range faults {
		c.Fault(f.Path, "%s", f.Message)
	}
	return faults, left
}

// Envelope checks what every document begins with.
func (c *Checker) Envelope(apiVersion, kind, want string) {
	if apiVersion != APIVersion {
		c.Fault("apiVersion", "must be %s, is %q", APIVersion, apiVersion)
	}
	if kind != want {
		c.Fault("kind", "must be %s, is %q", want, kind)
	}
}

// FieldFault notes a fault that the time core found, at its path in the document.
func (c *Checker) FieldFault(f *schedule.FieldError) {
	message := f.Message
	if f.Value != "" {
		message = fmt.Sprintf("%q: %s", Cut(f.Value, 100), f.Message)
	}
	c.Fault(f.Field, "%s", message)
}

// OneOf checks a field that takes one of a few words; an empty one has its default.
func OneOf[T ~string](c *Checker, path string, value T, allowed ...T) {
	if value == "" || slices.Contains(allowed, value) {
		return
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	hint := ""
	if near, ok := Nearest(string(value), words); ok {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	c.Fault(path, "must be one of %s, is %q%s", strings.Join(words, ", "), string(value), hint)
}

// Longest is the longest duration that a document may name: beyond it instants
// overflow.
const Longest = 36500 * 24 * time.Hour

// Positive checks a duration that has to be longer than nothing.
func (c *Checker) Positive(path string, d *Duration) {
	if d != nil && d.Duration <= 0 {
		c.Fault(path, "must be longer than 0s, is %s", d)
	}
	if d != nil && d.Duration > Longest {
		c.Fault(path, "must be at most %dd, is %s", Longest/(24*time.Hour), d)
	}
}

// Under says whether a path is one of some paths, or lies below one.
func Under(path string, paths map[string]bool) bool {
	if len(paths) == 0 {
		return false
	}
	for path != "" {
		if paths[path] {
			return true
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return paths[""]
}

// CheckSpan reports a duration that is not within its bounds.
func CheckSpan(path string, d *Duration, least, most time.Duration, at Reporter) {
	if d != nil && (d.Duration < least || d.Duration > most) {
		at(path, "must be from %s to %s, is %s", least, most, d)
	}
}
