package terminal

import (
	"strings"
	"unicode/utf8"
)

// Size is how much a terminal shows; zero where that is not known.
type Size struct{ Columns, Lines int }

// CutLine cuts a line to a terminal's width, without counting colours.
func CutLine(line string, width int, mark Mark) string {
	if width <= 0 || visible(line) <= width {
		return line
	}
	var b strings.Builder
	n, escape := 0, false
	for _, r := range line {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case n == width-1:
			return b.String() + "…" + mark.Sequence("0m")
		default:
			n++
		}
		b.WriteRune(r)
	}
	return b.String()
}

func visible(line string) int {
	n := utf8.RuneCountInString(line)
	for rest := line; ; {
		i := strings.IndexByte(rest, '\x1b')
		if i < 0 {
			return n
		}
		end := strings.IndexByte(rest[i:], 'm')
		if end < 0 {
			return n
		}
		n -= end + 1
		rest = rest[i+end+1:]
	}
}
