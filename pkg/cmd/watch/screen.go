package watch

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/terminal"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// Screen shows lines that change: in a live view if there is one, redrawn in place on a terminal
// without input, else each new line once.
type Screen struct {
	Env   factory.Env
	Live  func([]view.Line) // nil: there is no live view
	Fit   bool              // no more lines are shown than the terminal holds
	drawn int
	begun bool
	told  map[string]string
}

// Show shows the picture; lines are the same as plain lines, in order, by the object that they are
// about.
func (s *Screen) Show(picture []string, lines []print.Update) {
	s.ShowOf(view.LinesOf(view.Resource{}, picture...), lines)
}

// ShowOf is Show for lines with resources.
func (s *Screen) ShowOf(lines []view.Line, said []print.Update) {
	s.begun = true
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
		picture = s.fitting(picture)
		for _, l := range picture {
			fmt.Fprintln(s.Env.Out, terminal.CutLine(l, s.Env.Size.Columns, s.Env.Mark))
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
			now := s.Env.Now()
			fmt.Fprintf(s.Env.Out, "%s %s\n", cmp.Or(l.At, &now).UTC().Format(time.RFC3339), l.Text)
		}
	}
}

// fitting are the first lines of a picture that the terminal can hold above its cursor: what has
// scrolled away cannot be drawn again.
func (s *Screen) fitting(picture []string) []string {
	room := s.Env.Size.Lines - 1
	if !s.Fit || room < 2 || len(picture) <= room {
		return picture
	}
	more := len(picture) - room + 1
	return append(slices.Clone(picture[:room-1]), fmt.Sprintf("… and %d more lines", more))
}

// Empty says whether nothing has been shown yet.
func (s *Screen) Empty() bool { return !s.begun }

// Leave keeps the present picture, because something else was printed below it.
func (s *Screen) Leave() { s.drawn = 0 }
