package cmdtest

import (
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// Terminal is a pseudo terminal whose screen can be read and whose keys can be pressed.
type Terminal struct {
	*testing.T
	TTY      *os.File // for the program
	keyboard *os.File

	mu     sync.Mutex
	over   chan struct{} // closed once the program has ended; nil: it is not known
	stuck  func() string // what the program does, when it does not show what it should
	screen *vt.Emulator
	drawn  int // bytes that the program wrote
}

// NewTerminal makes a terminal of a given size.
func NewTerminal(t *testing.T, columns, rows int) *Terminal {
	t.Helper()
	keyboard, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	d := &Terminal{T: t, TTY: tty, keyboard: keyboard, stuck: func() string { return "" }, screen: vt.NewEmulator(columns, rows)}
	d.Resizes(columns, rows)
	go func() { _, _ = io.Copy(writer{d}, keyboard) }()
	go func() { _, _ = io.Copy(keyboard, d.screen) }() // answers of the terminal to queries
	t.Cleanup(func() {
		_ = tty.Close()
		_ = keyboard.Close()
	})
	return d
}

// writer draws what the program writes.
type writer struct{ *Terminal }

func (w writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drawn += len(p)
	return w.screen.Write(p)
}

// Drawn is how many bytes the program has written so far.
func (d *Terminal) Drawn() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.drawn
}

// Screen is the text on the screen; whole says that it is the alternate screen.
func (d *Terminal) Screen() (text string, whole bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.screen.String(), d.screen.IsAltScreen()
}

// Resizes changes the size of the window.
func (d *Terminal) Resizes(columns, rows int) {
	d.Helper()
	d.mu.Lock()
	d.screen.Resize(columns, rows)
	d.mu.Unlock()
	if err := pty.Setsize(d.keyboard, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)}); err != nil { //nolint:gosec // sizes of a screen
		d.Fatal(err)
	}
}

// Types presses keys.
func (d *Terminal) Types(keys string) {
	d.Helper()
	if _, err := io.WriteString(d.keyboard, keys); err != nil {
		d.Fatal(err)
	}
}

// Sees waits until the words are on the screen; those that begin with ! until they are not.
func (d *Terminal) Sees(words ...string) {
	d.Helper()
	for _, w := range words {
		bare, not := strings.CutPrefix(w, "!")
		d.until(w, func(text string, _ bool) bool { return strings.Contains(text, bare) != not })
	}
}

// Reads waits until the words are on the screen, wherever its lines break.
func (d *Terminal) Reads(words string) {
	d.Helper()
	whole := func(text string) string { return strings.Join(strings.Fields(text), "") } // a line may end after the hyphen of a name
	d.until(words, func(text string, _ bool) bool { return strings.Contains(whole(text), whole(words)) })
}

// IsBack waits until the normal screen is shown, with the words on it.
func (d *Terminal) IsBack(words ...string) {
	d.Helper()
	d.until("the usual screen", func(_ string, whole bool) bool { return !whole })
	d.Sees(words...)
}

func (d *Terminal) until(what string, holds func(text string, whole bool) bool) {
	d.Helper()
	limit, over := time.After(3*time.Minute), d.over // a screen of thousands of plans, on a busy machine
	for {
		text, whole := d.Screen()
		if holds(text, whole) {
			return
		}
		select {
		case <-over: // what it wrote last is drawn in a moment
			limit, over = time.After(5*time.Second), nil
		case <-limit:
			d.Fatalf("the terminal does not show %q (alternate screen: %v, %d bytes drawn):\n%s\n%s", what, whole, d.Drawn(), text, d.stuck())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
