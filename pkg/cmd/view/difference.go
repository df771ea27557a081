package view

import (
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// Difference is the difference of two texts in the format of diff -u; empty: none.
func Difference(from, before, to, after string) (string, error) {
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: textLines(before), B: textLines(after), FromFile: from, ToFile: to, Context: 3})
}

func textLines(text string) []string {
	out := strings.SplitAfter(text, "\n")
	return out[:len(out)-1] // nothing follows the last line break
}
