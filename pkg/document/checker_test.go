package document_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// sample is a document with a field of each kind that checks are about.
type sample struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Wait  *document.Duration `json:"wait"`
		Word  string             `json:"word"`
		Items []struct {
			Name string `json:"name"`
			Size int    `json:"size"`
		} `json:"items"`
		Free map[string]any `json:"free"`
	} `json:"spec"`
}

const head = "apiVersion: maint.dev/v1alpha1\nkind: Sample\n"

// checkerOf reads a sample.
func checkerOf(t *testing.T, text string) (*document.Checker, sample) {
	t.Helper()
	var s sample
	c, ok := document.Read([]byte(text), &s)
	if !ok {
		t.Fatalf("%s\nof\n%s", c.Faults(), text)
	}
	return c, s
}

func linesOf(c *document.Checker) []string {
	var out []string
	for _, f := range c.Faults() {
		out = append(out, f.String())
	}
	return out
}

func TestAFieldHasOneFaultAndNothingBelowWhatCannotBeReadHasAny(t *testing.T) {
	c, _ := checkerOf(t, head+"spec:\n  word: x\n  items: {}\n  wrong: 1\n")
	c.Fault("spec.word", "is %q", "x")
	c.Fault("spec.word", "is another")
	c.Fault("spec.items[0].name", "is missing")
	c.Fault("spec.wrong", "is said twice")
	c.Unread("spec.free")
	c.Fault("spec.free.a", "is below what nobody read")
	c.Fault("spec.freedom", "is not")
	got := strings.Join(linesOf(c), "\n")
	for _, want := range []string{`line 4: spec.word: is "x"`, "spec.freedom: is not"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, not := range []string{"another", "[0]", "twice", "nobody read"} {
		if strings.Contains(got, not) {
			t.Errorf("%q in\n%s", not, got)
		}
	}
	if !c.Broken("spec.items") || c.Broken("spec.word") {
		t.Errorf("broken: items %t, word %t", c.Broken("spec.items"), c.Broken("spec.word"))
	}
}

func TestATextThatIsNoDocumentHasItsOneFault(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML": "a: [", "two documents": head + "---\n" + head, "too long": strings.Repeat("#", document.MaxDocumentBytes+1),
	} {
		var s sample
		if c, ok := document.Read([]byte(text), &s); ok || len(c.Faults()) != 1 {
			t.Errorf("%s: read %t, %v", name, ok, c.Faults())
		}
	}
}

func TestTheChecksOfTheChecker(t *testing.T) {
	for _, c := range []struct {
		name  string
		spec  string
		check func(*document.Checker, sample)
		want  []string
	}{
		{"envelope", "", func(c *document.Checker, s sample) { c.Envelope("v1", s.Kind, "Plan") }, []string{
			`line 1: apiVersion: must be maint.dev/v1alpha1, is "v1"`, `line 2: kind: must be Plan, is "Sample"`,
		}},
		{"an envelope in order", "", func(c *document.Checker, s sample) { c.Envelope(s.APIVersion, s.Kind, "Sample") }, nil},
		{"one of some words", "  word: finsh\n", func(c *document.Checker, s sample) {
			document.OneOf(c, "spec.word", s.Spec.Word, "finish", "wait")
		}, []string{`line 4: spec.word: must be one of finish, wait, is "finsh"; did you mean finish?`}},
		{"no word is the default", "", func(c *document.Checker, s sample) { document.OneOf(c, "spec.word", s.Spec.Word, "finish") }, nil},
		{"no time at all", "  wait: 0s\n", func(c *document.Checker, s sample) { c.Positive("spec.wait", s.Spec.Wait) }, []string{"line 4: spec.wait: must be longer than 0s, is 0s"}},
		{"a nanosecond", "  wait: 1ns\n", func(c *document.Checker, s sample) { c.Positive("spec.wait", s.Spec.Wait) }, nil},
		{"the longest time", "  wait: 36500d\n", func(c *document.Checker, s sample) { c.Positive("spec.wait", s.Spec.Wait) }, nil},
		{"a longer one", "  wait: 876000h1s\n", func(c *document.Checker, s sample) { c.Positive("spec.wait", s.Spec.Wait) }, []string{"line 4: spec.wait: must be at most 36500d, is 876000h0m1s"}},
		{"below a path", "  word: x\n", func(c *document.Checker, _ sample) {
			c.Below("spec")("word", "is wrong")
			c.Below("spec.free")("", "is wrong too")
		}, []string{"line 4: spec.word: is wrong", "line 4: spec.free: is wrong too"}},
		{"what the time core found", "  word: x\n", func(c *document.Checker, _ sample) {
			c.FieldFault(&schedule.FieldError{Field: "spec.word", Value: "x", Message: "is no zone"})
		}, []string{`line 4: spec.word: "x": is no zone`}},
		{"a span within its bounds", "", func(c *document.Checker, _ sample) {
			for _, d := range []time.Duration{time.Second, time.Minute} {
				document.CheckSpan("spec.wait", &document.Duration{Duration: d}, time.Second, time.Minute, c.Fault)
			}
			document.CheckSpan("spec.wait", nil, time.Second, time.Minute, c.Fault)
		}, nil},
		{"a span below them", "  wait: 1s\n", func(c *document.Checker, s sample) {
			document.CheckSpan("spec.wait", s.Spec.Wait, 2*time.Second, time.Minute, c.Fault)
		}, []string{"line 4: spec.wait: must be from 2s to 1m0s, is 1s"}},
		{"a span above them", "  wait: 61s\n", func(c *document.Checker, s sample) {
			document.CheckSpan("spec.wait", s.Spec.Wait, 2*time.Second, time.Minute, c.Fault)
		}, []string{"line 4: spec.wait: must be from 2s to 1m0s, is 1m1s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			checker, s := checkerOf(t, head+"spec:\n"+c.spec)
			c.check(checker, s)
			if diff := cmp.Diff(c.want, linesOf(checker)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAValueIsReadWithTheLinesItStandsOn(t *testing.T) {
	c, s := checkerOf(t, head+"spec:\n  free:\n    name: ${run.name}\n    size: ${run.size}\n    more: 1\n")
	var into struct {
		Name string `json:"name"`
		Size int    `json:"size"`
	}
	faults, left := c.Value(s.Spec.Free, "spec.free", &into)
	if len(faults) != 1 || faults[0].Path != "spec.free.more" || faults[0].Line != 7 {
		t.Errorf("faults %v", faults)
	}
	if into.Name != "${run.name}" || !left["spec.free.size"] {
		t.Errorf("%+v, left %v", into, left)
	}
	if len(c.Faults()) != 1 {
		t.Errorf("noted: %v", c.Faults())
	}
}

func TestNobodyReadsMoreThanAHundredFaults(t *testing.T) {
	c, _ := checkerOf(t, head)
	for i := range document.MaxFaults + 5 {
		c.Fault(document.Index("spec.items", i), "is wrong")
	}
	faults := c.Faults()
	if len(faults) != document.MaxFaults+1 || faults[document.MaxFaults].Message != "and 5 more faults" {
		t.Errorf("%d, the last: %s", len(faults), faults[len(faults)-1])
	}
}

func TestAListIsToldFromAnObject(t *testing.T) {
	for text, want := range map[string]bool{"[]": true, "- a\n- b\n": true, "a: 1\n": false, "a\n": false} {
		if got, faults := document.IsList([]byte(text)); got != want || len(faults) > 0 {
			t.Errorf("%q: %t, %v", text, got, faults)
		}
	}
	if is, faults := document.IsList([]byte("a: [")); is || len(faults) == 0 {
		t.Errorf("no YAML: %t, %v", is, faults)
	}
}

func TestNamesOfObjects(t *testing.T) {
	for name, want := range map[string]struct{ label, subdomain bool }{
		"a": {true, true}, "a-1": {true, true}, "1a": {true, true}, "": {}, "-a": {}, "a-": {}, "A": {}, "a_b": {},
		"a.b": {false, true}, "a..b": {}, "a.-b": {},
		strings.Repeat("a", document.MaxNameLength):   {true, true},
		strings.Repeat("a", document.MaxNameLength+1): {false, true},
		strings.Repeat("a", 253):                      {false, true},
		strings.Repeat("a", 254):                      {},
	} {
		if label, subdomain := document.DNSLabel(name), document.DNSSubdomain(name); label != want.label || subdomain != want.subdomain {
			t.Errorf("%q: label %t, subdomain %t; want %+v", name, label, subdomain, want)
		}
	}
}

func TestSharesAreRoundedTheSafeWay(t *testing.T) {
	for _, c := range []struct {
		written  any
		of       int
		up, down int
		text     string
	}{
		{int64(3), 10, 3, 3, "3"},
		{"30%", 10, 3, 3, "30%"},
		{"25%", 10, 3, 2, "25%"},
		{"1%", 10, 1, 0, "1%"},
		{"100%", 7, 7, 7, "100%"},
		{"0%", 7, 0, 0, "0%"},
		{int64(2147483647), 1, 2147483647, 2147483647, "2147483647"},
	} {
		s, err := document.ParseShare(c.written)
		if err != nil {
			t.Errorf("%v: %v", c.written, err)
			continue
		}
		if got, want := fmt.Sprintf("%d up, %d down, %s", s.Up(c.of), s.Down(c.of), s), fmt.Sprintf("%d up, %d down, %s", c.up, c.down, c.text); got != want {
			t.Errorf("%v of %d: %s, want %s", c.written, c.of, got, want)
		}
	}
	for _, written := range []any{"", "x", "101%", "2147483648", "-1%", int64(-1), 1.5, true, nil} {
		if s, err := document.ParseShare(written); err == nil {
			t.Errorf("%v is taken for %s", written, s)
		}
	}
}
