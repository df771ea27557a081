package view

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// NothingStarts is what follows from there being no agent: what is kept, and what is not.
const NothingStarts = "nothing starts until it runs; requests by pause, skip, freeze, hibernate and wake are kept; trigger, approve, reject, abort of a run, retry, rollback and drain refuse"

// Prefix is s with a prefix; empty if s is empty.
func Prefix(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

// NodeWords are nodes in a sentence, the first few by name.
func NodeWords(names []string) string {
	const few = 10
	if len(names) == 1 {
		return "node " + names[0]
	}
	return fmt.Sprintf("%d nodes (%s)", len(names), document.Few(names, few))
}

// AndMore says how many more there are; empty: none.
func AndMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n)
}

// PrefixList are names with a prefix; empty without names.
func PrefixList(before string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return before + strings.Join(names, ", ")
}

// Colon is s after a colon; empty if s is empty.
func Colon(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}

// Counted is a number of things: 1 slot, 2 slots.
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, found := strings.CutSuffix(what, "y"); found && !strings.ContainsAny(stem[max(0, len(stem)-1):], "aeiou") { // policies, but days
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// OrDash is a text for the cell of a table: on one line, with a dash if it is empty.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return strings.ReplaceAll(s, "\n", " ")
}

// In is the place in a sentence: in a namespace, or in the cluster.
func In(namespace string) string {
	if namespace == "" {
		return " in the cluster"
	}
	return " in namespace " + namespace
}

// Filled wraps words into lines of a width.
func Filled(words []string, width int) []string {
	var out []string
	line := ""
	for _, word := range words {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			out, line = append(out, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	if line != "" {
		out = append(out, line)
	}
	return out
}

// PrintableJSON escapes unprintable characters in JSON as YAML does. They occur only in its strings.
func PrintableJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) || r == '\n' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\U%08X`, r) // the text is parsed as YAML, which has no surrogate pairs
		}
	}
	return b.String()
}

// NearestName is the candidate that the word is a misspelling of, that contains it, or that begins
// alike. What the names of all records of a kind begin with does not make them alike.
func NearestName(word string, names []string) (string, bool) {
	own := make([]string, len(names))
	for i, name := range names {
		own[i] = ownName(name)
	}
	typed := word
	if word = ownName(word); word == "" {
		return "", false
	}
	if near, ok := document.Nearest(word, own); ok && word[:1] == near[:1] { // a misspelling rarely is the beginning of a name
		if name := names[slices.Index(own, near)]; word == typed || word == near || name != near { // a record's name is none of a plan, misspelt
			return name, true
		}
	}
	for _, like := range []func(n string) bool{
		func(n string) bool { return strings.HasPrefix(n, word) }, // a run's name contains that of its plan
		func(n string) bool { return strings.Contains(n, word) || strings.Contains(word, n) },
		func(n string) bool { return len(word) > 3 && len(n) > 3 && n[:3] == word[:3] },
	} {
		if i := slices.IndexFunc(own, like); i >= 0 {
			return names[i], true
		}
	}
	return "", false
}

// ownName is a name without the beginning that the agent gives to all of its records of a kind.
func ownName(name string) string {
	for _, kind := range []string{annotations.KindRun, annotations.KindLedger, annotations.KindGate, annotations.KindRestore} {
		name = strings.TrimPrefix(name, "maint-"+kind+"-")
	}
	return name
}
