package live

import (
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/terminal"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// Messages of the model besides keys and sizes.
type (
	// pictureMsg is the new picture of a page.
	pictureMsg struct {
		page  int
		lines []view.Line
	}
	// textMsg is output of a page's command, in whole lines.
	textMsg struct {
		page  int
		lines []string
	}
	// overMsg is the end of a page's command.
	overMsg struct {
		page int
		err  error
	}
	// noticeMsg is a notice outside of the pages.
	noticeMsg string
	// troubleMsg is why the picture may be outdated; empty: it is current.
	troubleMsg string
	// doneMsg is the result of a command that was confirmed.
	doneMsg struct{ said string }
)

// effects are what the model asks for outside of it.
type effects interface {
	open(page int, c command) tea.Cmd // opens a page with the output of a command
	close(page int) tea.Cmd
	execute(c command) tea.Cmd
}

// model is everything on the screen.
type model struct {
	effects
	name  string // the name of the plugin
	home  string // the default namespace of commands
	login string // advice for who has to log in
	quit  quit
	mark  terminal.Mark

	width, height int
	pages         []page // the last one is in front
	opened        int    // counts all pages so far
	typing        bool   // somebody types the filter
	help          bool
	footer        footer
}

// footer is the content of the last lines.
type footer struct {
	confirm *command
	doing   string // the command that is being executed
	notice  string
	trouble string
}

// quit is how the view is left.
type quit struct {
	words       string // the meaning of q
	left        bool   // left with q
	interrupted bool   // left with Ctrl-C
}

// maxText limits the lines of a log: terminals keep about as many.
const maxText = 20_000

func (m model) front() page { return m.pages[len(m.pages)-1] }

// with is the model with another front page.
func (m model) with(p page) model {
	m.pages = append(slices.Clone(m.pages[:len(m.pages)-1]), p)
	return m
}

// acts says whether keys can run commands.
func (m model) acts() bool { return m.effects != nil }

// Init is tea.Model's.
func (m model) Init() tea.Cmd { return nil }

// View is tea.Model's.
func (m model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen = true
	return v
}

// Update is tea.Model's.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	next, cmd := m.update(msg)
	return next.with(next.front().within(next.frame())), cmd
}

func (m model) update(msg tea.Msg) (model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case pictureMsg:
		return m.change(msg.page, func(p page) page { return p.show(msg.lines) }), nil
	case textMsg:
		return m.change(msg.page, func(p page) page { return p.write(msg.lines) }), nil
	case overMsg:
		return m.ended(msg)
	case noticeMsg:
		m.footer.notice = string(msg)
	case troubleMsg:
		m.footer.trouble = string(msg)
	case doneMsg:
		m.footer.doing, m.footer.notice = "", msg.said
	case tea.PasteMsg:
		if m.typing {
			m = m.with(m.front().filterBy(m.front().filter + strings.Join(strings.Fields(msg.Content), " ")))
		}
	case tea.KeyPressMsg:
		return m.key(msg)
	}
	return m, nil
}

// change is the model with one page changed; pages that were closed are ignored.
func (m model) change(id int, edit func(page) page) model {
	at := slices.IndexFunc(m.pages, func(p page) bool { return p.id == id })
	if at < 0 {
		return m
	}
	m.pages = slices.Clone(m.pages)
	m.pages[at] = edit(m.pages[at])
	return m
}

// write appends lines to a page.
func (p page) write(texts []string) page {
	lines := append(slices.Clone(p.lines), view.LinesOf(view.Resource{}, texts...)...)
	if over := len(lines) - maxText; over > 0 {
		lines = lines[over:]
		p.top = max(p.top-over, 0)
	}
	return p.show(lines)
}

// ended closes the view when what it follows has ended, unless another page is in front.
func (m model) ended(msg overMsg) (model, tea.Cmd) {
	m = m.change(msg.page, func(p page) page { p.over = true; return p })
	switch {
	case msg.page != 0 && msg.err != nil:
		m.footer.notice = strings.ReplaceAll(strings.Join(exit.Lines(msg.err, m.login), "; "), "; error: ", "; ")
	case msg.page != 0:
	case len(m.pages) == 1 && m.footer.confirm == nil && m.footer.doing == "":
		return m, tea.Quit
	default:
		m.footer.notice = "what was followed has ended: esc goes back to it"
	}
	return m, nil
}

// key handles a key.
func (m model) key(k tea.KeyPressMsg) (model, tea.Cmd) {
	name := k.String()
	switch {
	case name == "ctrl+c":
		m.quit.interrupted = true
		return m, tea.Quit
	case name == "ctrl+z":
		return m, tea.Suspend
	case m.typing:
		return m.typeFilter(k), nil
	case m.footer.confirm != nil:
		return m.answer(name)
	case m.help:
		m.help = false
		return m, nil
	}
	m.footer.notice = ""
	return m.order(name)
}

// typeFilter handles a key while the filter is typed.
func (m model) typeFilter(k tea.KeyPressMsg) model {
	p := m.front()
	switch k.String() {
	case "enter":
		m.typing = false
		return m
	case "esc":
		m.typing = false
		return m.with(p.filterBy(""))
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(p.filter)
		return m.with(p.filterBy(p.filter[:len(p.filter)-size]))
	}
	if k.Text == "" {
		return m
	}
	return m.with(p.filterBy(p.filter + k.Text))
}

// answer handles the answer to a question.
func (m model) answer(name string) (model, tea.Cmd) {
	c := *m.footer.confirm
	m.footer.confirm = nil
	if name != "y" && name != "Y" {
		m.footer.notice = "nothing was done"
		if m.overAtFront() {
			return m, tea.Quit
		}
		return m, nil
	}
	m.footer.doing = c.line(m.name)
	return m, m.execute(c)
}

// overAtFront says that what the view follows has ended, and that it is in front.
func (m model) overAtFront() bool { return len(m.pages) == 1 && m.pages[0].over }

// order handles a key outside of questions and the filter.
func (m model) order(name string) (model, tea.Cmd) {
	f := m.frame()
	p := m.front()
	switch name {
	case "q":
		m.quit.left = true
		return m, tea.Quit
	case "esc":
		return m.back()
	case "?":
		m.help = true
	case "/":
		m.typing = true
	case "up", "k":
		return m.with(p.move(-1, f)), nil
	case "down", "j":
		return m.with(p.move(1, f)), nil
	case "pgup", "b", "ctrl+b", "ctrl+u":
		return m.with(p.move(-f.rows, f)), nil
	case "pgdown", "space", "ctrl+f", "ctrl+d":
		return m.with(p.move(f.rows, f)), nil
	case "g", "home":
		return m.with(p.end(false, f)), nil
	case "G", "end":
		return m.with(p.end(true, f)), nil
	case "enter", "l":
		return m.look(name)
	case "a", "r", "s":
		return m.ask(name), nil
	}
	return m, nil
}

// back leaves the filter, or closes the front page.
func (m model) back() (model, tea.Cmd) {
	p := m.front()
	switch {
	case p.filter != "":
		return m.with(p.filterBy("")), nil
	case len(m.pages) == 1:
		return m, nil
	}
	m.pages = m.pages[:len(m.pages)-1]
	if m.overAtFront() {
		return m, tea.Quit
	}
	return m, m.close(p.id)
}

// look opens another page.
func (m model) look(key string) (model, tea.Cmd) {
	p := m.front()
	if !m.acts() || key == "enter" && !p.picks() && !p.opens {
		return m, nil
	}
	c, whyNot := commandFor(key, p.resource(), m.home)
	if whyNot != "" {
		m.footer.notice = whyNot
		return m, nil
	}
	m.opened++
	m.pages = append(slices.Clone(m.pages), page{id: m.opened, title: c.line(m.name), tail: key == "l"})
	return m, m.open(m.opened, c)
}

// ask asks whether a command is to be carried out.
func (m model) ask(key string) model {
	switch c, whyNot := commandFor(key, m.front().resource(), m.home); {
	case !m.acts():
	case m.footer.doing != "":
		m.footer.notice = "one at a time: '" + m.footer.doing + "' is being carried out"
	case whyNot != "":
		m.footer.notice = whyNot
	default:
		m.footer.confirm = &c
	}
	return m
}
