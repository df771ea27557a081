package live

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/terminal"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// frames is the limit of pictures per second.
const frames = 10

// View is a live view of a command.
type View struct {
	Title string // the command, as it was given
	// Ends says that q is the normal end of the view; else q abandons a wait.
	Ends bool
	// Short says that resources are shown in short, so that a single one can be opened, too.
	Short bool
}

// Follow follows something until it or ctx ends, and shows it; show is nil without a screen.
type Follow func(ctx context.Context, k *factory.Cluster, show func([]view.Line)) error

// Run shows on the whole screen what follow shows, until it returns or somebody leaves. The last
// picture stays on the terminal. Without a screen, or within another view, it only follows.
func Run(ctx context.Context, c *factory.Factory, k *factory.Cluster, v View, follow Follow) error {
	switch {
	case c.Show != nil:
		return follow(ctx, k, c.Show)
	case c.Screen == nil:
		return follow(ctx, k, nil)
	}
	s := &session{c: c, k: k, view: v, stops: map[int]context.CancelFunc{}, outer: ctx}
	return s.run(ctx, follow)
}

// session is one live view and the commands that run in it.
type session struct {
	c     *factory.Factory
	k     *factory.Cluster
	view  View
	outer context.Context //nolint:containedctx // of the command: commands of keys run with it

	program *tea.Program
	ctx     context.Context //nolint:containedctx // of the view: ends when somebody leaves
	writes  sync.WaitGroup
	shown   string // the last picture
	out     kept   // output meanwhile
	beside  kept   // output to standard error meanwhile

	mu    sync.Mutex
	stops map[int]context.CancelFunc // of the open pages
}

// kept is output that is printed when the screen is released.
type kept struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *kept) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *kept) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// run starts to follow, and takes the screen with the first picture: an error before that is like
// that of any command.
func (s *session) run(ctx context.Context, follow Follow) error {
	inner, leave := context.WithCancel(ctx)
	defer leave()
	s.ctx = inner
	f := newFeed(s.c.Zone)
	k := s.k.In("")
	k.Broken = f.broke
	ended := make(chan error, 1)
	defer s.divert(f)()
	go func() {
		err := follow(inner, k, f.show)
		f.end()
		ended <- err
	}()
	if !f.begun() {
		return <-ended
	}
	last, err := s.draw(f, ended)
	leave()
	result := <-ended
	s.writes.Wait()
	if err != nil {
		return fmt.Errorf("draw on the terminal: %w", err)
	}
	return s.result(last, result, f)
}

// draw shows pictures until somebody leaves, or nothing is left to follow.
func (s *session) draw(f *feed, ended chan error) (model, error) {
	m := model{
		effects: s.effects(), name: s.name(), home: s.home(), login: s.c.Suggest().Login(), quit: quit{words: s.quitWords()}, mark: s.c.Mark,
		width: s.c.Size.Columns, height: 24, pages: []page{{title: s.view.Title, opens: s.view.Short}},
	}
	s.program = tea.NewProgram(m, tea.WithInput(s.c.Screen.In), tea.WithOutput(s.c.Screen.Out), tea.WithFPS(frames), tea.WithoutSignalHandler(), tea.WithColorProfile(colorprofile.ANSI))
	go func() {
		f.pump(0, s.program.Send)
		err := <-ended
		ended <- err
		if s.outer.Err() != nil { // interrupted, or timed out
			s.program.Quit()
			return
		}
		s.program.Send(overMsg{err: err})
	}()
	last, err := s.program.Run()
	if m, is := last.(model); is {
		return m, err
	}
	return m, err
}

// name begins the commands that are shown: it has the flags that choose the cluster.
func (s *session) name() string { return s.c.Name + view.Prefix(" ", s.c.ClusterFlags) }

// home is the namespace that shown commands need not name. One that was given is named in them:
// without it they would mean the context's own.
func (s *session) home() string {
	if s.c.Elsewhere != "" {
		return ""
	}
	return s.k.Namespace
}

// effects are nil when the command was not started by the root command: then it cannot start
// others.
func (s *session) effects() effects {
	if s.c.Perform == nil {
		return nil
	}
	return s
}

func (s *session) quitWords() string {
	if s.view.Ends {
		return "quit"
	}
	return "quit; what is waited for goes on without you (exit code 130)"
}

// divert holds back output while the screen is taken.
func (s *session) divert(f *feed) (back func()) {
	type diverted interface{ Divert(to io.Writer) func() }
	undo := []func(){func() {}, func() {}}
	if w, is := s.c.Out.(diverted); is {
		undo[0] = w.Divert(&s.out)
	}
	if w, is := s.c.ErrOut.(diverted); is {
		undo[1] = w.Divert(io.MultiWriter(&s.beside, noticer{f}))
	}
	return sync.OnceFunc(func() {
		undo[0]()
		undo[1]()
		fmt.Fprint(s.c.Out, s.shown, s.out.String())
		fmt.Fprint(s.c.ErrOut, s.beside.String())
	})
}

// noticer shows output to standard error as notices.
type noticer struct{ f *feed }

func (n noticer) Write(p []byte) (int, error) {
	if text := strings.TrimSpace(string(p)); text != "" {
		n.f.notice(text)
	}
	return len(p), nil
}

// result prints the last picture, and returns how the command ends.
func (s *session) result(m model, followed error, f *feed) error {
	lines := f.last()
	if s.view.Ends && len(lines) >= m.height && m.height > 1 {
		more := len(lines) - m.height + 2
		lines = append(lines[:m.height-2:m.height-2], view.Line{Text: fmt.Sprintf("… and %d more lines", more)})
	}
	var b strings.Builder
	for _, l := range lines {
		if l.Table != nil {
			l.Text = row(l, m.width)
		}
		b.WriteString(l.Text + "\n")
	}
	s.shown = b.String()
	switch {
	case m.quit.interrupted && s.view.Ends:
		return &exit.Error{Code: exit.CodeInterrupted}
	case m.quit.left && s.view.Ends:
		return nil
	}
	return followed
}

// open opens a page with the output of another command.
func (s *session) open(id int, c command) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithCancel(s.ctx)
		s.mu.Lock()
		s.stops[id] = stop
		s.mu.Unlock()
		f := newFeed(s.c.Zone)
		env := s.within()
		env.Show, env.Out, env.ErrOut = f.show, f, noticer{f}
		go f.pump(id, s.program.Send)
		err := s.c.Perform(ctx, env, s.k.In(c.namespace), c.args)
		f.end()
		if ctx.Err() != nil {
			err = nil
		}
		return overMsg{page: id, err: err}
	}
}

// close ends the command of a page.
func (s *session) close(id int) tea.Cmd {
	return func() tea.Msg {
		s.mu.Lock()
		defer s.mu.Unlock()
		if stop := s.stops[id]; stop != nil {
			stop()
			delete(s.stops, id)
		}
		return nil
	}
}

// execute runs a confirmed command. It goes on when the view ends meanwhile; its result is printed
// then.
func (s *session) execute(c command) tea.Cmd {
	done := make(chan string, 1)
	s.writes.Go(func() {
		var out kept
		env := s.within()
		env.Out, env.ErrOut = &out, &out
		err := s.c.Perform(s.outer, env, s.k.In(c.namespace), c.args)
		said := out.String()
		if err != nil {
			said += strings.Join(exit.Lines(err, s.c.Suggest().Login()), "\n")
		}
		said = strings.ReplaceAll(strings.TrimSpace(said), "\n", "; ")
		fmt.Fprintf(&s.beside, "%s: %s\n", c.line(s.name()), said)
		done <- said
	})
	return func() tea.Msg { return doneMsg{said: <-done} }
}

// within is the Env of a command in the view: it cannot ask questions, and it does not draw.
func (s *session) within() factory.Env {
	env := s.c.Env
	env.Screen, env.Show, env.InTerminal, env.OutTerminal, env.Size = nil, nil, false, false, terminal.Size{}
	env.In = strings.NewReader("")
	return env
}
