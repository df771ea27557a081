package live

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// feed connects what is followed with the model. Only the newest picture counts, so that thousands
// of changes do not queue up.
type feed struct {
	mu      sync.Mutex
	picture []view.Line
	shown   bool // there is a picture, or text
	fresh   bool // the model has not got it yet
	texts   []string
	rest    string // the beginning of an unfinished line
	notices []string
	trouble string      // why the picture may be outdated
	passes  bool        // the next picture clears the trouble: it is about the last one, and not about a watch
	heals   *time.Timer // clears the trouble when it is not repeated
	turned  bool        // the model has not got the latest trouble
	over    bool
	zone    string // of the times that are shown
	news    chan struct{}
}

func newFeed(zone string) *feed { return &feed{zone: zone, news: make(chan struct{}, 1)} }

// wake must be called with mu held.
func (f *feed) wake() {
	select {
	case f.news <- struct{}{}:
	default:
	}
}

func (f *feed) show(lines []view.Line) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.picture, f.shown, f.fresh = lines, true, true
	if f.trouble != "" && f.passes {
		f.trouble, f.turned = "", true
	}
	f.wake()
}

// Write takes what a command prints, line by line.
func (f *feed) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	lines := strings.Split(f.rest+string(bytes.ReplaceAll(p, []byte("\r\n"), []byte("\n"))), "\n")
	f.rest = lines[len(lines)-1]
	f.texts = append(f.texts, lines[:len(lines)-1]...)
	f.shown = true
	f.wake()
	return len(p), nil
}

func (f *feed) notice(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notices = append(f.notices, text)
	f.wake()
}

// healed is how long after its last failure a watch counts as working again: a broken watch fails
// at least every half minute.
const healed = 45 * time.Second

// broke notes that a watch is interrupted, or that a picture could not be made.
func (f *feed) broke(err error) {
	at := instant.Local(time.Now(), f.zone)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.heals == nil {
		f.heals = time.AfterFunc(healed, f.heal)
	}
	f.heals.Reset(healed)
	f.passes = errors.As(err, &remedy.UnansweredError{})
	f.trouble, f.turned = "the API server did not answer ("+at+"); what is shown may be old: "+err.Error(), true
	f.wake()
}

func (f *feed) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trouble, f.turned = "", true
	f.wake()
}

// end notes that nothing more comes.
func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rest != "" {
		f.texts, f.rest = append(f.texts, f.rest), ""
	}
	f.over = true
	f.wake()
}

// firstPicture is how long nothing is shown while the first picture is awaited (a guess: nobody takes
// a command for dead so soon).
const firstPicture = 5 * time.Second

// begun waits for the first picture; false: there was none. An API server that does not answer has
// somebody look at a screen that says so, and that can be left, in place of nothing.
func (f *feed) begun() bool {
	late := time.NewTimer(firstPicture)
	defer late.Stop()
	for {
		select {
		case <-f.news:
		case <-late.C:
			f.await()
		}
		f.mu.Lock()
		shown, over := f.shown, f.over
		if shown || over {
			f.wake()
		}
		f.mu.Unlock()
		if shown || over {
			return shown
		}
	}
}

// await begins without a picture, and says why there is none.
func (f *feed) await() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shown = true; f.trouble == "" {
		f.trouble, f.passes, f.turned = awaited, true, true
	}
}

// awaited is said until the first picture is there.
const awaited = "waiting for the first answer of the API server"

// last is the newest picture.
func (f *feed) last() []view.Line {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.picture
}

// pump sends news to the model, at most once per frame, until the end.
func (f *feed) pump(id int, send func(tea.Msg)) {
	for range f.news {
		msgs, over := f.take(id)
		for _, msg := range msgs {
			send(msg)
		}
		if over {
			return
		}
		time.Sleep(time.Second / frames)
	}
}

func (f *feed) take(id int) (msgs []tea.Msg, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fresh {
		msgs = append(msgs, pictureMsg{page: id, lines: f.picture})
	}
	if len(f.texts) > 0 {
		msgs = append(msgs, textMsg{page: id, lines: f.texts})
	}
	for _, text := range f.notices {
		msgs = append(msgs, noticeMsg(text))
	}
	if f.turned {
		msgs = append(msgs, troubleMsg(f.trouble))
	}
	f.fresh, f.texts, f.notices, f.turned = false, nil, nil, false
	return msgs, f.over
}
