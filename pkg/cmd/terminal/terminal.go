// Package terminal removes control characters of documents, logs and messages from what reaches the
// user's terminal.
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

// Mark distinguishes this process's control sequences from those in the text that it shows: nobody
// can know it in advance. It is the first parameter: ESC [ MARK 31m. An empty one marks nothing.
type Mark string

// NewMark is a random mark.
func NewMark() Mark {
	n, err := rand.Int(rand.Reader, big.NewInt(1e15))
	if err != nil {
		return "" // rather no colours than somebody else's
	}
	return Mark(fmt.Sprintf("%015d;", n))
}

// Sequence is a marked control sequence, such as 31m or 2A.
func (m Mark) Sequence(code string) string { return "\x1b[" + string(m) + code }

// Writer shows control characters as kubectl does, ^[ for an escape, except line breaks, tabs and
// marked sequences. Characters that change the direction of text, or are invisible, are shown as
// their codes.
type Writer struct {
	mark Mark

	mu   sync.Mutex
	to   io.Writer
	rest []byte // the beginning of an incomplete character
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

// Divert sends output elsewhere until the returned function is called: a full-screen view shows it
// there.
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

// unfinished is the length of an incomplete character at the end of a text.
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

// Clean is a text for a terminal: only marked sequences keep their effect.
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

// ours is the length of the beginning of a marked sequence; 0: it is none.
func (m Mark) ours(text string) int {
	begin := m.Sequence("")
	if m == "" || !strings.HasPrefix(text, begin) {
		return 0
	}
	return len(begin)
}

// brailleBlank is an invisible symbol that no Unicode table of invisible characters contains.
const brailleBlank = '\u2800'

// harmful says whether a character is invisible or does more than stand there: controls, changes of
// direction, other line ends, formats, and letters and marks without width. Exceptions are two
// formats that join letters in some scripts, formats that are letters, and variation selectors,
// which are not in these tables.
func harmful(r rune) bool {
	switch {
	case unicode.IsControl(r):
		return r != '\n' && r != '\t'
	case unicode.In(r, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point), r == brailleBlank:
		return true
	}
	return unicode.Is(unicode.Cf, r) && !unicode.In(r, unicode.Join_Control, unicode.Prepended_Concatenation_Mark)
}

// shown is the code of a character in JSON's notation, which readers recognise; unlike a code in
// angle brackets it does no harm in a page or picture.
func shown(r rune) string {
	switch high, low := utf16.EncodeRune(r); {
	case r < ' ':
		return "^" + string(r+'@')
	case high != unicode.ReplacementChar:
		return fmt.Sprintf(`\u%04X\u%04X`, high, low)
	}
	return fmt.Sprintf(`\u%04X`, r)
}
