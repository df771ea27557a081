package document

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStrictJSON(t *testing.T) {
	for text, want := range map[string]any{
		`{"a": {"b": [1, true, null, "x"]}}`: map[string]any{"a": map[string]any{"b": []any{json.Number("1"), true, nil, "x"}}},
		` [] `:                               []any{},
		`{}`:                                 map[string]any{},
		`9007199254740993`:                   json.Number("9007199254740993"),
		`[{"a": 1}, {"a": 2}]`:               []any{map[string]any{"a": json.Number("1")}, map[string]any{"a": json.Number("2")}},
	} {
		got, err := StrictJSON(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		``:                     "unexpected EOF",
		`{"a": 1`:              "unexpected EOF",
		`{"a":`:                "unexpected EOF",
		`[1, `:                 "unexpected EOF",
		`[1`:                   "unexpected EOF",
		`{"a": 1, "a": 2}`:     `"a" appears twice`,
		`{"x": {"a": 1, "a"}}`: `"a" appears twice`,
		`{"a": 1} {}`:          "something follows the value",
		`1 2`:                  "something follows the value",
		`{"a": 1}]`:            "invalid character",
		`{a: 1}`:               "invalid character",
		`[1, {"a" 1}]`:         "invalid character",
	} {
		if got, err := StrictJSON(text); err == nil || got != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", text, got, err, want)
		}
	}
}

func TestAKeyWhoseValueIsNullCountsAsAbsent(t *testing.T) {
	object := map[string]any{"a": nil, "b": map[string]any{"c": nil, "d": map[string]any{"e": nil}, "f": "x"}, "list": []any{nil}}
	DropNulls(object)
	want := map[string]any{"b": map[string]any{"d": map[string]any{}, "f": "x"}, "list": []any{nil}}
	if diff := cmp.Diff(want, object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAJSONObjectOfSomebodysIsRead(t *testing.T) {
	for text, want := range map[string]map[string]any{
		"":                {},
		" \n":             {},
		`{}`:              {},
		`{"a":"b"}`:       {"a": "b"},
		`{"a":"123456"}`:  {"a": "123456"}, // 14 bytes, which is the most
		` { "a" : null }`: {"a": nil},
	} {
		got, err := JSONObject(text, max(14, len(text)), `{"b":1}`)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		`{"a":"1234567"}`: "it has 15 bytes; at most 14 are allowed",
		`{"a":`:           "this is no JSON: unexpected EOF",
		`["a"]`:           `must be a JSON object like {"b":1}, is ["a"]`,
		`null`:            `must be a JSON object like {"b":1}, is null`,
	} {
		if got, err := JSONObject(text, 14, `{"b":1}`); err == nil || got != nil || err.Error() != want {
			t.Errorf("%q: %v, %v; want %q", text, got, err, want)
		}
	}
}
