package watch

import (
	"fmt"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// Screen shows lines that change: in a live view where there is one, redrawn in place on a
// terminal that nobody types at, else each new line once.
type Screen struct {
	Env   factory.Env
	Live  func([]view.Line) // the live view; nil: there is none
	drawn int
	told  map[string]string
}

// Show takes the whole picture, and the same as plain lines by what they speak
// of, in order.
func (s *Screen) Show(picture []string, lines []print.Update) {
	s.ShowOf(view.LinesOf(view.Resource{}, picture...), lines)
}

// ShowOf is Show of lines that say what they are about.
func (s *Screen) ShowOf(lines []view.Line, said []print.Update) {
	if s.Live != nil {
		s.drawn = len(lines)
		s.Live(lines)
		return
	}
	s.print(view.Texts(lines), said)
}

func (s *Screen) print(picture []string, lines []print.Update) {
	if s.Env.OutTerminal {
		if s.drawn > 0 {
			fmt.Fprint(s.Env.Out, s.Env.Mark.Sequence(fmt.Sprintf("%dA", s.drawn))+s.Env.Mark.Sequence("J"))
		}
		for _, l := range picture {
			fmt.Fprintln(s.Env.Out, print.CutLine(l, s.Env.Width))
		}
		s.drawn = len(picture)
		return
	}
	if s.told == nil {
		s.told = map[string]string{}
	}
	for _, l := range lines {
		if s.told[l.Of] != l.Text {
			s.told[l.Of] = l.Text
			fmt.Fprintf(s.Env.Out, "%s %s\n", s.Env.Now().UTC().Format(time.RFC3339), l.Text)
		}
	}
}

// Empty says whether nothing is on the screen yet.
func (s *Screen) Empty() bool { return s.drawn == 0 }

// Leave lets stand what is drawn: something else was printed below it.
func (s *Screen) Leave() { s.drawn = 0 }
