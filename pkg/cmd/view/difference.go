package view

import (
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// Difference is what changes between two texts, as diff -u writes it; empty where nothing
// does.
func Difference(from, before, to, after string) (string, error) {
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: textLines(before), B: textLines(after), FromFile: from, ToFile: to, Context: 3})
}

func textLines(text string) []string {
	out := strings.SplitAfter(text, "\n")
	return out[:len(out)-1] // after the last end of a line there is nothing
}
