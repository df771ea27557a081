package document_test

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// hinted has a field of each form that a hint shows, and knows where some fields belong.
type hinted struct {
	One  *named   `json:"one"`
	Ones []named  `json:"ones"`
	Two  pair     `json:"two"`
	None optional `json:"none"`
	List []string `json:"list"`
	When whenever `json:"when"`
	Text string   `json:"text"`
}

type named struct {
	Name   string `json:"name"`
	Kind   string `json:"kind,omitempty"`
	Plain  string
	Hidden string `json:"-"`
}

type pair struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type optional struct {
	Kind string `json:"kind,omitempty"`
}

func (hinted) Misplaced(field string) string {
	if field == "restoreAfter" {
		return "two.restoreAfter"
	}
	return ""
}

func TestAFaultSaysHowTheValueIsWritten(t *testing.T) {
	long := strings.Repeat("n", document.MaxNameLength)
	for text, want := range map[string]string{
		"one: web":              `line 1: one: must be an object, is "web": write {name: web}`,
		"one: " + long:          `line 1: one: must be an object, is "` + document.Cut(long, 80) + `": write {name: ` + long + `}`,
		"one: " + long + "n":    `line 1: one: must be an object, is "` + document.Cut(long+"n", 80) + `": write {name: …}`,
		"one: ''":               `line 1: one: must be an object, is "": write {name: …}`,
		"one: [web]":            "line 1: one: must be an object, is a list: write {name: …}",
		"ones: web":             `line 1: ones: must be a list, is "web": write [{name: web}]`,
		"ones: {name: web}":     "line 1: ones: must be a list, is an object: write [{name: …}]",
		"two: web":              `line 1: two: must be an object, is "web": write {from: …, to: …}`,
		"none: web":             `line 1: none: must be an object, is "web"`,
		"list: web":             `line 1: list: must be a list, is "web": write [web]`,
		"list: {a: b}":          "line 1: list: must be a list, is an object",
		"when: []":              "line 1: when: must be a string, is a list",
		"text: [web]":           "line 1: text: must be a string, is a list",
		"- web":                 "line 1: must be an object, is a list",
		"restoreAfter: success": `line 1: restoreAfter: unknown field; did you mean "two.restoreAfter"?`,
		"tex: web":              `line 1: tex: unknown field; did you mean "text"?`,
		"quite: web":            "line 1: quite: unknown field; known are list, none, one, ones, text, two, when",
	} {
		var out hinted
		_, faults := document.Decode([]byte(text), &out)
		if len(faults) != 1 || faults[0].String() != want {
			t.Errorf("%s:\n%v, want\n%s", text, faults, want)
		}
	}
}
