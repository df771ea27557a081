package document

import "strings"

// OneLine is a text of somebody else in one line, with its lines between semicolons and blanks for
// tabs. It stands among lines or columns of ours, and must not look like one of them.
func OneLine(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r == '\t' || endsLine(r) }) {
		return text
	}
	var lines []string
	for line := range strings.FieldsFuncSeq(strings.ReplaceAll(text, "\t", " "), endsLine) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// endsLine says whether anybody who shows a text begins a new line at a character.
func endsLine(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }
