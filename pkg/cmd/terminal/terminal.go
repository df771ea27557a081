// Package terminal keeps control characters that stand in documents, logs and messages
// of others from the terminal of who looks at them.
package terminal

import (
	"crypto/rand"
	"fmt"
	"io"
	"math/big"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// reset ends colours: whoever sends it changes nothing else.
const reset = "\x1b[0m"

// Mark tells the sequences of this process from those that stand in what it shows: nobody
// can have written it before. It begins their parameters: ESC [ MARK 31m. An empty one
// marks nothing.
type Mark string

// NewMark is another for each process.
func NewMark() Mark {
	n, err := rand.Int(rand.Reader, big.NewInt(1e15))
	if err != nil {
		return "" // without colours rather than with somebody's
	}
	return Mark(fmt.Sprintf("%015d;", n))
}

// Sequence is a control sequence of ours, as 31m or 2A.
func (m Mark) Sequence(code string) string { return "\x1b[" + string(m) + code }

// Writer shows a control character as kubectl does, ^[ for an escape, unless it is a line
// break, a tab or the beginning of a sequence with the mark. Of what turns the direction of
// text around, or is not seen, it shows the code.
type Writer struct {
	mark Mark

	mu   sync.Mutex
	to   io.Writer
	rest []byte // the beginning of a character whose end has not come yet
}

// NewWriter writes to a terminal.
func NewWriter(to io.Writer, m Mark) *Writer { return &Writer{to: to, mark: m} }

// Write is io.Writer's.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := string(w.rest) + string(p)
	whole := len(text) - unfinished(text)
	w.rest = []byte(text[whole:])
	if _, err := io.WriteString(w.to, w.mark.Clean(text[:whole])); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Divert sends what is written elsewhere until the answer is called: who draws the whole screen
// shows it there.
func (w *Writer) Divert(to io.Writer) (back func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.to
	w.to = to
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.to = was
	}
}

// unfinished is how many bytes at the end of a text begin a character that is not whole.
func unfinished(text string) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRuneInString(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// Clean is a text as a terminal may have it: sequences of ours take effect, and nothing else.
func (m Mark) Clean(text string) string {
	if strings.IndexFunc(text, harmful) < 0 {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch ours := m.ours(text); {
		case ours > 0:
			b.WriteString("\x1b[")
			size = ours
		case strings.HasPrefix(text, reset):
			b.WriteString(reset)
			size = len(reset)
		case strings.HasPrefix(text, "\r\n"):
			b.WriteString("\r\n")
			size = 2
		case !harmful(r):
			b.WriteString(text[:size])
		default:
			b.WriteString(shown(r))
		}
		text = text[size:]
	}
	return b.String()
}

// ours is how long the beginning of a sequence with the mark is; 0: it is none.
func (m Mark) ours(text string) int {
	begin := m.Sequence("")
	if m == "" || !strings.HasPrefix(text, begin) {
		return 0
	}
	return len(begin)
}

// brailleBlank is a symbol of no dots: no table has it among those that nobody sees.
const brailleBlank = '\u2800'

// harmful says whether a character does more than stand there, or stands there unseen:
// controls, those that turn the direction of text around, the ends of lines that others
// know, formats, and letters and marks of no width. Two formats join the letters of some scripts,
// and some are letters; variation selectors, which are not in these tables, choose how one looks.
func harmful(r rune) bool {
	switch {
	case unicode.IsControl(r):
		return r != '\n' && r != '\t'
	case unicode.In(r, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point), r == brailleBlank:
		return true
	}
	return unicode.Is(unicode.Cf, r) && !unicode.In(r, unicode.Join_Control, unicode.Prepended_Concatenation_Mark)
}

// shown is a character as its code. It is that of JSON, of which a reader takes it for
// what stood there, and breaks no page or picture, as a code between angle brackets would.
func shown(r rune) string {
	switch high, low := utf16.EncodeRune(r); {
	case r < ' ':
		return "^" + string(r+'@')
	case high != unicode.ReplacementChar:
		return fmt.Sprintf(`\u%04X\u%04X`, high, low)
	}
	return fmt.Sprintf(`\u%04X`, r)
}
