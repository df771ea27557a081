package document_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// whenever is a type that is written as a word or as an object, as a schedule is.
type whenever struct {
	Cron string `json:"cron,omitempty"`
	Zone string `json:"zone,omitempty"`
}

func (w *whenever) UnmarshalText(b []byte) error {
	if string(b) == "never" {
		return fmt.Errorf("%q is no cron", b)
	}
	w.Cron = string(b)
	return nil
}

// wide has a field of each kind that documents have.
type wide struct {
	Any    any                `json:"any"`
	Text   string             `json:"text"`
	Flag   bool               `json:"flag"`
	Number int64              `json:"number"`
	Small  int32              `json:"small"`
	Wait   *document.Duration `json:"wait"`
	List   []string           `json:"list"`
	Map    map[string]int     `json:"map"`
	Inner  *struct {
		Name string `json:"name"`
	} `json:"inner"`
	When whenever `json:"when"`
}

func TestAScalarIsWhatYAML12Says(t *testing.T) {
	for text, want := range map[string]any{
		"": nil, "~": nil, "null": nil, "Null": nil, "NULL": nil, "nULL": "nULL",
		"true": true, "True": true, "TRUE": true, "false": false, "False": false, "FALSE": false,
		"y": "y", "no": "no", "on": "on", "off": "off",
		"0": int64(0), "7": int64(7), "-7": int64(-7), "+7": int64(7), "010": int64(10), "9223372036854775807": int64(9223372036854775807), "-9223372036854775808": int64(-9223372036854775808),
		"0x1f": int64(31), "0o17": int64(15), "0x": "0x", "0xg": "0xg", "0x-1": "0x-1", "0o+1": "0o+1", "0o8": "0o8", "0b1": "0b1", "0x8000000000000000": "0x8000000000000000",
		"1.5": 1.5, "-1.5": -1.5, ".5": 0.5, "1e3": 1000.0, "1E3": 1000.0, "1e400": "1e400", "1.2.3": "1.2.3", "1-2": "1-2", "+": "+", "e": "e",
		".inf": ".inf", ".nan": ".nan", "1_000": "1_000", "0x1p4": "0x1p4", "Infinity": "Infinity",
		"'7'": "7", `"true"`: "true", "'~'": "~", "!!str 7": "7", "!!str ~": "~", "|\n    7\n": "7\n", ">-\n    7\n": "7",
		"2026-12-05": "2026-12-05", "1:30": "1:30",
	} {
		t.Run(text, func(t *testing.T) {
			var out wide
			if _, faults := document.Decode([]byte("any: "+text+"\n"), &out); len(faults) > 0 {
				t.Fatal(faults)
			}
			if diff := cmp.Diff(want, out.Any); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestADocumentIsReadIntoItsFields(t *testing.T) {
	var out wide
	text := "text: a\nflag: true\nnumber: -3\nsmall: 2147483647\nwait: 1h\nlist: [a, 'b']\nmap: {a: 1, 'b': 2}\ninner: {name: n}\nwhen: {cron: '0 2 * * *', zone: UTC}\nany: {a: [1, 1.5, {b: null}]}\n"
	lines, faults := document.Decode([]byte(text), &out)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	want := wide{
		Text: "a", Flag: true, Number: -3, Small: 2147483647, Wait: &document.Duration{Duration: time.Hour}, List: []string{"a", "b"}, Map: map[string]int{"a": 1, "b": 2},
		When: whenever{Cron: "0 2 * * *", Zone: "UTC"}, Any: map[string]any{"a": []any{int64(1), 1.5, map[string]any{"b": nil}}},
	}
	want.Inner = &struct {
		Name string `json:"name"`
	}{"n"}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
	for path, line := range map[string]int{"": 1, "text": 1, "list[1]": 6, "map.b": 7, "any.a[2].b": 10, "any.a[9].x": 10, "absent": 1} {
		if got := lines.Line(path); got != line {
			t.Errorf("%s stands on line %d, want %d", path, got, line)
		}
	}
	out = wide{Inner: want.Inner}
	if _, faults := document.Decode([]byte("when: 0 2 * * *\nlist: ~\nmap:\ninner: null\nwait:\n"), &out); len(faults) > 0 || out.When.Cron != "0 2 * * *" || out.List != nil || out.Map != nil || out.Wait != nil {
		t.Errorf("the short form, and what is empty: %+v, %v", out, faults)
	}
}

func TestEachFaultOfADocumentIsToldWithItsLineAndPath(t *testing.T) {
	deep := strings.Repeat("[", 98) + "x" + strings.Repeat("]", 98)
	for _, c := range []struct{ name, text, want string }{
		{"a number as a text", "\ntext: 7\n", `line 2: text: must be a string, is the number 7: write it in quotes, "7"`},
		{"a boolean as a text", "text: true", `line 1: text: must be a string, is the boolean true: write it in quotes, "true"`},
		{"nothing as a text", "text: ", "line 1: text: must be a string, is empty"},
		{"a list as a text", "text: [a]", "line 1: text: must be a string, is a list"},
		{"an object as a text", "text: {a: b}", "line 1: text: must be a string, is an object"},
		{"a text as a boolean", "flag: yes", `line 1: flag: must be true or false, is "yes"`},
		{"a text as a number", "number: x", `line 1: number: must be a whole number, is "x"`},
		{"a broken number as a whole one", "number: 1.5", "line 1: number: must be a whole number, is the number 1.5"},
		{"a number that does not fit", "small: 2147483648", "line 1: small: must be a whole number, is the number 2147483648"},
		{"a number that fits nowhere", "any: 9223372036854775808", "line 1: any: the number 9223372036854775808 does not fit in 64 bits: write it in quotes"},
		{"one with a sign", "any: -9223372036854775809", "line 1: any: the number -9223372036854775809 does not fit in 64 bits"},
		{"a duration that is none", "wait: soon", `line 1: wait: "soon" is no duration`},
		{"a list as a duration", "wait: [1h]", "line 1: wait: must be a string, is a list"},
		{"an object as a duration", "wait: {hours: 1}", "line 1: wait: must be a string, is an object"},
		{"a word that its type refuses", "when: never", `line 1: when: "never" is no cron`},
		{"nothing where a word or an object is wanted", "when: ", "line 1: when: must be a string, is empty"},
		{"a list where a word or an object is wanted", "when: []", "line 1: when: must be a string, is a list"},
		{"an object where a list is wanted", "list: {a: b}", "line 1: list: must be a list, is an object"},
		{"a text where a list is wanted", "list: a", `line 1: list: must be a list, is "a"`},
		{"a list where an object is wanted", "inner: [a]", "line 1: inner: must be an object, is a list"},
		{"a text where a map is wanted", "map: a", `line 1: map: must be an object, is "a"`},
		{"a wrong item", "list:\n- a\n- 7\n", "line 3: list[1]: must be a string, is the number 7"},
		{"a wrong value of a map", "map:\n  a: 1\n  b: x\n", `line 3: map.b: must be a whole number, is "x"`},
		{"an unknown field that is near one", "txet: a", `line 1: txet: unknown field; did you mean "text"?`},
		{"an unknown field", "inner: {quite: a}", "line 1: inner.quite: unknown field; known are name"},
		{"a key that appears twice", "text: a\nflag: true\ntext: b\n", "line 3: text: appears twice, first on line 1"},
		{"a key that is a list", "map: {[a]: 1}", "line 1: map: a key must be a string, is a list"},
		{"a key that is an object", "map: {{a: b}: 1}", "line 1: map: a key must be a string, is an object"},
		{"an anchor", "text: &a x", "line 1: text: anchors and aliases are not supported"},
		{"an anchor at a key", "map: {&a b: 1}", "line 1: map.b: anchors and aliases are not supported"},
		{"a tag", "text: !!binary aGk=", "line 1: text: the tag !!binary is not supported"},
		{"too many levels", "any: [" + deep + "]", "is nested deeper than 100 levels"},
		{"an empty document", "", "the document is empty"},
		{"a document of a comment", "# nothing\n", "the document is empty"},
		{"a document that is null", "null\n", "the document is empty"},
		{"a document that is a list", "- a\n", "line 1: must be an object, is a list"},
		{"a second document", "text: a\n---\ntext: b\n", "line 2: a second document begins here"},
		{"a second document that is no YAML", "text: a\n---\ntext: [\n", "this is no YAML"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out wide
			_, faults := document.Decode([]byte(c.text), &out)
			if len(faults) != 1 || !strings.Contains(faults[0].String(), c.want) {
				t.Errorf("%v, want %s", faults, c.want)
			}
		})
	}
	var out wide
	if _, faults := document.Decode([]byte("any: "+deep), &out); len(faults) > 0 {
		t.Errorf("a hundred levels are allowed: %v", faults)
	}
}

func TestWhatIsEmptyCannotBePutInQuotes(t *testing.T) {
	var out wide
	want := document.Faults{{Line: 1, Path: "text", Message: "must be a string, is empty"}}
	_, faults := document.Decode([]byte("text: "), &out)
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Error(diff)
	}
}

func TestNoYAMLIsToldWithTheLineThatIsMeant(t *testing.T) {
	for text, line := range map[string]int{
		"a: [\n": 1, "a: 1\nb: [1,\n": 2, "a: 1\n b: 2\n": 2, "a: 'x\n": 2, "a: 1\n\tb: 2\n": 2, "a:\n- b\nc\n": 3, "x: {a: 1\ny: 2\n": 2,
	} {
		var out map[string]any
		_, faults := document.Decode([]byte(text), &out)
		if len(faults) != 1 || !strings.HasPrefix(faults[0].Message, "this is no YAML: ") || faults[0].Line != line {
			t.Errorf("%q: line %d, %v, want line %d", text, faults[0].Line, faults, line)
		}
	}
}

func TestADocumentMayHaveAQuarterOfAMegabyte(t *testing.T) {
	text := func(n int) []byte { return []byte("text: a\n#" + strings.Repeat("x", n-len("text: a\n#"))) }
	var out wide
	if _, faults := document.Decode(text(document.MaxDocumentBytes), &out); len(faults) > 0 {
		t.Errorf("as many bytes as allowed: %v", faults)
	}
	want := document.Faults{{Message: "the document has 262145 bytes; at most 262144 are allowed"}}
	_, faults := document.Decode(text(document.MaxDocumentBytes+1), &out)
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("one more: %s", diff)
	}
}

func TestAPathStaysOneThatPeopleRead(t *testing.T) {
	long := strings.Repeat("k", 600)
	var out map[string]any
	lines, faults := document.Decode([]byte(long+":\n  "+long+":\n    "+long+": [1]\n"), &out)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for path := range lines {
		if len(path) > 1010 {
			t.Errorf("a path has %d bytes", len(path))
		}
	}
	first := strings.Repeat("k", 499)
	lines, _ = document.Decode([]byte(first+":\n  "+first+"k:\n    a: 1\n"), &out)
	if _, there := lines[first+"."+first+"k"]; !there {
		t.Error("a path of a thousand bytes is cut")
	}
	if _, there := lines[first+"."+first+"k.a"]; there {
		t.Error("what is below it has a path of its own")
	}
	for n, want := range map[int]string{1000: "[3]", 1001: ""} {
		path := strings.Repeat("p", n)
		if got := document.Index(path, 3); got != path+want {
			t.Errorf("an item below %d bytes ends in %q", n, got[len(got)-5:])
		}
	}
}

func TestATemplateIsLeftForLaterWhereItsTypeIsNotAText(t *testing.T) {
	for _, c := range []struct {
		name, key, value string
		left             bool
		fault            string
	}{
		{"in a number", "number", "${run.n}", true, ""},
		{"in a boolean", "flag", "${run.ok}", true, ""},
		{"in a duration", "wait", "${run.wait}", true, ""},
		{"in a list", "list", "${run.list}", true, ""},
		{"in an object", "inner", "${run.o}", true, ""},
		{"in a text", "text", "${run.name}", true, ""},
		{"in the short form of an object it is a text", "when", "${run.when}", false, ""},
		{"a literal is none", "number", "$${run.n}", false, "must be a whole number"},
		{"a literal beside one is", "number", "$${run.n} ${run.n}", true, ""},
		{"a text without one", "number", "three", false, "must be a whole number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			checker, _ := checkerOf(t, head)
			var out wide
			faults, left := checker.Value(map[string]any{c.key: c.value}, "p", &out)
			if left["p."+c.key] != c.left {
				t.Errorf("left for later: %v", left)
			}
			if c.fault == "" && len(faults) > 0 || c.fault != "" && (len(faults) != 1 || !strings.Contains(faults[0].Message, c.fault)) {
				t.Errorf("faults %v, want %q", faults, c.fault)
			}
		})
	}
	var out wide
	if _, faults := document.Decode([]byte("number: ${run.n}"), &out); len(faults) != 1 {
		t.Errorf("outside of a step's properties it is no number: %v", faults)
	}
	checker, _ := checkerOf(t, head)
	if faults, _ := checker.Value(map[string]any{"map": "${run.map}"}, "p", &out); len(faults) > 0 || out.Map == nil {
		t.Error("a map that is not yet known counts as missing")
	}
	out = wide{}
	if faults, _ := checker.Value(map[string]any{"inner": "${run.o}", "wait": "${run.wait}"}, "p", &out); len(faults) > 0 || out.Inner == nil || out.Wait != nil {
		t.Errorf("an object that is not yet known counts as missing, or a duration as given: %+v", out)
	}
}

func TestTheNearestWordIsOfferedWhereOneIsNear(t *testing.T) {
	words := []string{"schedule", "suspend", "step"}
	for word, want := range map[string]string{
		"schedul": "schedule", "Schedule": "schedule", "scheduel": "schedule", "sheduel": "schedule", "stpe": "step", "stp": "step", "ste": "step", "st": "",
		"suspnd": "suspend", "banana": "", "": "",
	} {
		got, ok := document.Nearest(word, words)
		if got != want || ok != (want != "") {
			t.Errorf("%q: %q, %t, want %q", word, got, ok, want)
		}
	}
	if got, _ := document.Nearest("abe", []string{"abd", "abe"}); got != "abe" {
		t.Errorf("the last letter tells: %q", got)
	}
	if got, _ := document.Nearest("abc", []string{"abd", "abe"}); got != "abd" {
		t.Errorf("of two that are as near the first: %q", got)
	}
}

func TestAFaultIsToldOnOneLine(t *testing.T) {
	for want, f := range map[string]document.Fault{
		"line 3: spec.a: is wrong": {Line: 3, Path: "spec.a", Message: "is wrong"},
		"spec.a: is wrong":         {Path: "spec.a", Message: "is wrong"},
		"line 3: is wrong":         {Line: 3, Message: "is wrong"},
		"is wrong":                 {Message: "is wrong"},
	} {
		if got := f.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	many := document.Faults{}
	for i := range document.MaxFaults {
		many = append(many, document.Fault{Line: document.MaxFaults - i})
	}
	if told := many.Limited(); len(told) != document.MaxFaults || told[0].Line != 1 {
		t.Errorf("%d are told, the first of line %d", len(told), told[0].Line)
	}
}

func TestStringsOutOfWhatJSONHolds(t *testing.T) {
	if m, ok := document.StringMap(map[string]any{"a": "b"}); !ok || !cmp.Equal(m, map[string]string{"a": "b"}) {
		t.Errorf("%v, %t", m, ok)
	}
	if l, ok := document.StringList([]any{"a", "b"}); !ok || !cmp.Equal(l, []string{"a", "b"}) {
		t.Errorf("%v, %t", l, ok)
	}
	for name, v := range map[string]any{"a number in it": map[string]any{"a": int64(1)}, "a list": []any{"a"}, "a text": "a", "nothing": nil} {
		if m, ok := document.StringMap(v); ok || m != nil {
			t.Errorf("%s as a map: %v", name, m)
		}
	}
	for name, v := range map[string]any{"a number in it": []any{"a", int64(1)}, "an object": map[string]any{"a": "b"}, "a text": "a", "nothing": nil} {
		if l, ok := document.StringList(v); ok || l != nil {
			t.Errorf("%s as a list: %v", name, l)
		}
	}
}

func TestACopyKeepsNumbersAndSharesNothing(t *testing.T) {
	from := map[string]any{"n": int64(9007199254740993), "f": 0.5, "list": []any{map[string]any{"a": "b"}}}
	got := document.Clone(from)
	if diff := cmp.Diff(from, got); diff != "" {
		t.Error(diff)
	}
	got["list"].([]any)[0].(map[string]any)["a"] = "c"
	if from["list"].([]any)[0].(map[string]any)["a"] != "b" {
		t.Error("the copy is the same list")
	}
}

func TestADurationHasItsDefault(t *testing.T) {
	var none *document.Duration
	if got := none.Or(time.Hour); got != time.Hour {
		t.Errorf("none: %s", got)
	}
	if got := (&document.Duration{}).Or(time.Hour); got != 0 {
		t.Errorf("no time at all is one: %s", got)
	}
}

// What is read takes many times its text: a quarter of a megabyte may hold a hundred
// thousand values.
func TestADocumentHoldsSoManyValuesAndNoMore(t *testing.T) {
	list := func(n int) string { return "a: [" + strings.Repeat("0,", n-1) + "0]\n" }
	for name, c := range map[string]struct{ text, want string }{
		"as many as there may be":          {list(document.MaxValues - 3), ""},
		"one more":                         {list(document.MaxValues - 2), "the document has more than 20000 values"},
		"so many that they are not parsed": {list(100_000), "the document has more than 80000 marks"},
		"a script that fills a document":   {"a: |\n" + strings.Repeat("  echo \"$x\", {y}: [z]\n", 10_000), ""},
	} {
		var out struct {
			A any `json:"a"`
		}
		_, faults := document.Decode([]byte(c.text), &out)
		if got := faults.Error(); c.want == "" && len(faults) > 0 || c.want != "" && !strings.Contains(got, c.want) {
			t.Errorf("%s: %.200s", name, got)
		}
	}
}
