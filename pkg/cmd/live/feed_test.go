package live

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// pumped are the messages that a feed hands on while something is told to it.
func pumped(t *testing.T, tell func(f *feed)) (out []tea.Msg) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		f := newFeed("UTC")
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.pump(7, func(msg tea.Msg) { out = append(out, msg) })
		}()
		tell(f)
		f.end()
		<-done
	})
	return out
}

func TestOfManyPicturesTheNewestIsShown(t *testing.T) {
	got := pumped(t, func(f *feed) {
		for i := range 10_000 {
			f.show([]view.Line{{Text: fmt.Sprint(i)}})
			time.Sleep(100 * time.Microsecond) // a second in all
		}
	})
	if len(got) < 2 || len(got) > frames+2 {
		t.Errorf("%d pictures in a second", len(got))
	}
	if last := got[len(got)-1].(pictureMsg); last.page != 7 || last.lines[0].Text != "9999" {
		t.Errorf("the last one is %+v", last)
	}
}

func TestTextComesInWholeLines(t *testing.T) {
	got := pumped(t, func(f *feed) {
		fmt.Fprint(f, "one\ntw")
		time.Sleep(time.Second)
		fmt.Fprint(f, "o\r\nthree")
	})
	if text := fmt.Sprintf("%q", got); text != `[{'\a' ["one"]} {'\a' ["two" "three"]}]` {
		t.Error(text)
	}
}

func TestATroubleStandsUntilNothingIsHeardOfItAnyMore(t *testing.T) {
	got := pumped(t, func(f *feed) {
		f.broke(errors.New("connection refused"))
		time.Sleep(30 * time.Second)
		f.broke(errors.New("connection refused"))
		time.Sleep(30 * time.Second)
		synctest.Wait()
		f.mu.Lock()
		if f.trouble == "" {
			t.Error("it is forgotten while it goes on")
		}
		f.mu.Unlock()
		time.Sleep(time.Minute)
	})
	if want := troubleMsg("the API server did not answer (Sat 2000-01-01 00:00 UTC); what is shown may be old: connection refused"); len(got) != 3 || got[0] != want || got[2] != troubleMsg("") {
		t.Errorf("%q", got)
	}
}

func TestWhatEndsBeforeItShowsAnythingHasNotBegun(t *testing.T) {
	f := newFeed("UTC")
	f.notice("warning: x")
	f.end()
	if f.begun() {
		t.Error("it has begun")
	}
	f = newFeed("UTC")
	f.show(nil)
	f.end()
	if !f.begun() {
		t.Error("it has not begun")
	}
}

// A screen that stays empty for minutes is taken for a command that hangs.
func TestAnAPIServerThatDoesNotAnswerHasTheViewBeginWithoutAPicture(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*feed)
		want      string
		passes    bool // with the first picture
	}{
		"nothing is known":   {func(*feed) {}, awaited, true},
		"a watch was broken": {func(f *feed) { f.broke(errors.New("timeout")) }, "the API server did not answer (Sat 2000-01-01 00:00 UTC); what is shown may be old: timeout", false},
		"a picture was late": {func(f *feed) { f.broke(remedy.Late(time.Minute)) }, "the API server did not answer (Sat 2000-01-01 00:00 UTC); what is shown may be old: not everything was answered within 1m0s", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, began := newFeed("UTC"), time.Now()
				c.meanwhile(f)
				if !f.begun() || time.Since(began) != firstPicture {
					t.Errorf("begun after %s", time.Since(began))
				}
				if msgs, _ := f.take(0); len(msgs) != 1 || msgs[0] != troubleMsg(c.want) {
					t.Errorf("it says %q", msgs)
				}
				f.show(nil)
				msgs, _ := f.take(0)
				if got := slices.Contains(msgs, tea.Msg(troubleMsg(""))); got != c.passes {
					t.Errorf("with the first picture: %q", msgs)
				}
			})
		})
	}
}

// An empty line on standard error takes no notice away.
func TestANoticeHasWords(t *testing.T) {
	f := newFeed("UTC")
	for _, text := range []string{"", " \n", "warning: the agent is silent\n"} {
		if n, err := (noticer{f}).Write([]byte(text)); n != len(text) || err != nil {
			t.Error(n, err)
		}
	}
	msgs, _ := f.take(0)
	if len(msgs) != 1 || msgs[0] != noticeMsg("warning: the agent is silent") {
		t.Errorf("%q", msgs)
	}
}
