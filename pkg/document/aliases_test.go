package document

import "testing"

func TestWhichTextsMayHaveAliases(t *testing.T) {
	for text, want := range map[string]bool{
		"":                          false,
		"a: b":                      false,
		`{"a": "*"}`:                false,
		"a: '*/5 * * * *'":          false,
		"a: |\n  *b\n":              false,
		"a: &x [1]":                 false,
		"a: &x [1]\nb: *x":          true,
		"a: &x {k: 1}\nb: {<<: *x}": true,
		"a: {b: [{c: &x 1}, *x]}":   true,
		"a: &x 1\nb: *x\n---\nc: 1": true, // a second document is no reason to read the first
		"a: [*":                     true,
	} {
		if got := MayHaveAliases([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
