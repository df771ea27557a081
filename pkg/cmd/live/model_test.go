package live

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// noted are effects that write down what was asked of them.
type noted struct{ asked []string }

func (n *noted) open(page int, c command) tea.Cmd {
	n.asked = append(n.asked, fmt.Sprintf("open %d %s in %s", page, c.line("maint"), c.namespace))
	return nil
}

func (n *noted) close(page int) tea.Cmd {
	n.asked = append(n.asked, fmt.Sprintf("close %d", page))
	return nil
}

func (n *noted) execute(c command) tea.Cmd {
	n.asked = append(n.asked, fmt.Sprintf("do %s in %s", c.line("maint"), c.namespace))
	return nil
}

func runLine(name, text string) view.Line {
	return view.Line{Text: text, Of: view.Resource{Kind: "run", Namespace: "shop", Name: name, Plan: "orders", Question: name, Resumes: "run/" + name}}
}

func planLine(name, text string) view.Line {
	return view.Line{Text: text, Of: view.Resource{Kind: "plan", Namespace: "shop", Name: name}}
}

// overview is a run with a step, and three plans in a table.
func overview() []view.Line {
	t := &view.Table{Spare: []int{3, 2}}
	lines := []view.Line{runLine("r1", "shop/r1  Running, 1 of 2 steps done"), runLine("r1", "  > hold  suspend  Running"), {}}
	for i, cells := range [][]string{
		{"PLAN", "PHASE", "NEXT", "LAST", "MESSAGE"},
		{"orders", "Running", "Sun 2026-11-22 02:00 CET (1d)", "Succeeded 6d ago", "run r1"},
		{"mail", "Idle", "Sun 2026-11-22 03:00 CET (1d)", "Failed 6d ago", "-"},
		{"backup", "Paused", "-", "-", "paused until resumed"},
	} {
		t.Fit(cells)
		l := view.Line{Text: strings.Join(cells, "   "), Cells: cells, Table: t, Head: i == 0}
		if i > 0 {
			l.Of = view.Resource{Kind: "plan", Namespace: "shop", Name: cells[0]}
		}
		lines = append(lines, l)
	}
	lines[4].Of.Question, lines[6].Of.Resumes = "r1/ask", "plan/backup"
	return lines
}

// modelOf is a view of some lines on a screen of a size.
func modelOf(n *noted, columns, rows int, lines ...view.Line) model {
	m := model{effects: n, name: "maint", home: "shop", quit: quit{words: "quit"}, pages: []page{{title: "status"}}}
	return told(m, tea.WindowSizeMsg{Width: columns, Height: rows}, pictureMsg{lines: lines})
}

// told is the model after some messages.
func told(m model, msgs ...tea.Msg) model {
	for _, msg := range msgs {
		next, _ := m.Update(msg)
		m = next.(model)
	}
	return m
}

// keyed is a key by its name.
func keyed(name string) tea.KeyPressMsg {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd, "backspace": tea.KeyBackspace}
	switch code, is := special[name]; {
	case is:
		return tea.KeyPressMsg{Code: code}
	case strings.HasPrefix(name, "ctrl+"):
		return tea.KeyPressMsg{Code: rune(name[len(name)-1]), Mod: tea.ModCtrl}
	case name == "space":
		return tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

// typed is the model after some keys, which blanks part.
func typed(m model, keys string) (model, bool) {
	quit := false
	for _, name := range strings.Fields(keys) {
		next, cmd := m.Update(keyed(name))
		m = next.(model)
		if cmd != nil {
			_, quit = cmd().(tea.QuitMsg)
		}
	}
	return m, quit
}

// onScreen are the rows of the screen, without what is empty at their ends.
func onScreen(m model) []string {
	rows := strings.Split(ansi.Strip(m.View().Content), "\n")
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " ")
	}
	return rows
}

func TestWhatMattersStaysOnANarrowScreen(t *testing.T) {
	for _, c := range []struct {
		name          string
		columns, rows int
		want          []string
	}{
		{"wide", 200, 9, []string{
			"> shop/r1  Running, 1 of 2 steps done", "    > hold  suspend  Running", "",
			"  PLAN    PHASE    NEXT                           LAST              MESSAGE",
			"  orders  Running  Sun 2026-11-22 02:00 CET (1d)  Succeeded 6d ago  run r1",
			"  mail    Idle     Sun 2026-11-22 03:00 CET (1d)  Failed 6d ago     -",
			"  backup  Paused   -                              -                 paused until resumed",
			"", "1-7/7  q quit  ? help  / filter  enter open  a approve  r resume  s skip  l logs  status",
		}},
		{"80 columns", 80, 9, []string{
			"> shop/r1  Running, 1 of 2 steps done", "    > hold  suspend  Running", "",
			"  PLAN    PHASE    NEXT                           MESSAGE",
			"  orders  Running  Sun 2026-11-22 02:00 CET (1d)  run r1",
			"  mail    Idle     Sun 2026-11-22 03:00 CET (1d)  -",
			"  backup  Paused   -                              paused until resumed",
			"", "1-7/7  q quit  ? help  / filter  enter open  a approve  r resume  s skip  l logs",
		}},
		{"50 columns", 50, 9, []string{
			"> shop/r1  Running, 1 of 2 steps done", "    > hold  suspend  Running", "",
			"  PLAN    PHASE    MESSAGE", "  orders  Running  run r1", "  mail    Idle     -", "  backup  Paused   paused until resumed",
			"", "1-7/7  q quit  ? help  / filter  enter open",
		}},
		{"20 columns", 20, 9, []string{
			"> shop/r1", "      Running, 1 of", "      2 steps done", "    > hold", "      suspend", "      Running", "",
			"  PLAN    PHASE    …", "1-4/7  q quit",
		}},
		{"one column", 1, 3, []string{"> s", "  …", "…"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, onScreen(modelOf(&noted{}, c.columns, c.rows, overview()...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		name, keys string
		asked      []string
		last       string // the row above the foot
		quit       bool
	}{
		{name: "nothing asks for nothing"},
		{name: "enter opens the run of the line", keys: "enter", asked: []string{"open 1 maint status run/r1 -w in shop"}},
		{name: "down and enter opens a plan", keys: "down j enter", asked: []string{"open 1 maint status plan/orders -w in shop"}},
		{name: "the last line", keys: "G enter", asked: []string{"open 1 maint status plan/backup -w in shop"}},
		{name: "up stays on the page", keys: "G g up k enter", asked: []string{"open 1 maint status run/r1 -w in shop"}},
		{name: "esc closes what was opened", keys: "enter esc", asked: []string{"open 1 maint status run/r1 -w in shop", "close 1"}},
		{name: "esc at the beginning leaves nothing", keys: "esc"},
		{name: "logs are opened without a question", keys: "l", asked: []string{"open 1 maint logs r1 -f in shop"}},
		{name: "a is asked first", keys: "a", last: "run 'maint approve r1'? [y/N]"},
		{name: "and done after y", keys: "a y", asked: []string{"do maint approve r1 in shop"}, last: "running 'maint approve r1' …"},
		{name: "n is no", keys: "a n", last: "nothing was done"},
		{name: "and so is any other key", keys: "a enter", last: "nothing was done"},
		{name: "q while asked is no, too", keys: "a q", last: "nothing was done"},
		{name: "a plan is approved by what its run asks", keys: "down j a y", asked: []string{"do maint approve r1/ask in shop"}, last: "running 'maint approve r1/ask' …"},
		{name: "a says where nothing waits for approval", keys: "down down down a", last: "nothing of it waits for approval"},
		{name: "r says where nothing waits to be resumed", keys: "down down down r", last: "nothing of it waits to be resumed"},
		{name: "r resumes", keys: "G r y", asked: []string{"do maint resume plan/backup in shop"}, last: "running 'maint resume plan/backup' …"},
		{name: "s skips the next slot", keys: "G s y", asked: []string{"do maint skip backup --next 1 in shop"}, last: "running 'maint skip backup --next 1' …"},
		{name: "s on a run is of its plan", keys: "s y", asked: []string{"do maint skip orders --next 1 in shop"}, last: "running 'maint skip orders --next 1' …"},
		{name: "one at a time", keys: "a y a", asked: []string{"do maint approve r1 in shop"}, last: "running 'maint approve r1' …"},
		{name: "q leaves", keys: "q", quit: true},
		{name: "Ctrl-C leaves", keys: "ctrl+c", quit: true},
		{name: "Ctrl-C leaves a question, too", keys: "a ctrl+c", quit: true, last: "run 'maint approve r1'? [y/N]"},
		{name: "and the filter", keys: "/ q ctrl+c", quit: true},
		{name: "q in the filter is a letter", keys: "/ q"},
		{name: "help goes by any key", keys: "? q"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := &noted{}
			m, quit := typed(modelOf(n, 80, 20, overview()...), c.keys)
			if diff := cmp.Diff(c.asked, n.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			rows := onScreen(m)
			if last := rows[len(rows)-2]; last != c.last {
				t.Errorf("says %q, want %q", last, c.last)
			}
			if quit != c.quit {
				t.Errorf("quit: %v", quit)
			}
		})
	}
}

// Keys that do nothing are not offered: where a wait shows one run, enter opens nothing; a node has no logs.
func TestOnlyKeysThatActAreOffered(t *testing.T) {
	node := view.Line{Text: "a  gpu  Draining", Of: view.Resource{Kind: "node", Name: "a"}}
	aRun := view.Line{Text: "r1  Running", Of: view.Resource{Kind: "run", Namespace: "shop", Name: "r1", Plan: "orders"}}
	const open, approve, skip, logs = "enter    open the plan, run or node of the line", "a    approve what the run waits for", "s    skip the next slot of the plan", "l    logs of the run"
	for _, c := range []struct {
		name       string
		lines      []view.Line
		foot       string
		help, none []string
	}{
		{"one run", []view.Line{aRun}, "1-1/1  q quit  ? help  / filter  s skip  l logs  status", []string{approve, skip, logs}, []string{open}},
		{"one node", []view.Line{node}, "1-1/1  q quit  ? help  / filter  status", nil, []string{open, approve, skip, logs}},
		{"a node, above a run", []view.Line{node, aRun}, "1-2/2  q quit  ? help  / filter  enter open  status", []string{open, approve, skip, logs}, nil},
	} {
		m := modelOf(&noted{}, 80, 20, c.lines...)
		if rows := onScreen(m); rows[len(rows)-1] != c.foot {
			t.Errorf("%s: %q", c.name, rows[len(rows)-1])
		}
		m, _ = typed(m, "?")
		rows := onScreen(m)
		for _, row := range c.help {
			if !slices.Contains(rows, row) {
				t.Errorf("%s: %q lacks %q", c.name, rows, row)
			}
		}
		for _, row := range c.none {
			if slices.Contains(rows, row) {
				t.Errorf("%s: %q has %q", c.name, rows, row)
			}
		}
	}
}

func TestLogsInWhichNothingIsYetSayIt(t *testing.T) {
	m := modelOf(&noted{}, 80, 10, view.Line{Text: "r1  Running", Of: view.Resource{Kind: "run", Namespace: "shop", Name: "r1", Plan: "orders"}})
	m, _ = typed(m, "l")
	if rows := onScreen(m); rows[0] != "nothing was printed yet" {
		t.Errorf("%q", rows)
	}
}

func TestWhatAThingCannotBeAskedIsSaid(t *testing.T) {
	node := view.Line{Text: "a  gpu  Draining", Of: view.Resource{Kind: "node", Name: "a", Resumes: "node/a"}}
	sleeper := view.Line{Text: "night  Hibernated", Of: view.Resource{Kind: "hibernate-plan", Namespace: "shop", Name: "night"}}
	elsewhere := view.Line{Text: "x", Of: view.Resource{Kind: "plan", Namespace: "ops", Name: "roll", Question: "roll-1"}}
	for _, c := range []struct {
		keys, want string
	}{
		{"a", "a node has nothing to approve"},
		{"s", "a node has nothing to skip"},
		{"l", "a node has nothing to log"},
		{"r", "run 'maint resume node/a'? [y/N]"},
		{"j a", "a HibernatePlan has nothing to approve"},
		{"j s", "run 'maint skip night --next 1'? [y/N]"},
		{"G a", "run 'maint -n ops approve roll-1'? [y/N]"},
	} {
		m, _ := typed(modelOf(&noted{}, 80, 10, node, sleeper, elsewhere), c.keys)
		if rows := onScreen(m); rows[len(rows)-2] != c.want {
			t.Errorf("%s: %q, want %q", c.keys, rows[len(rows)-2], c.want)
		}
	}
	m, _ := typed(modelOf(&noted{}, 80, 10, view.Line{Text: "no plans"}), "a")
	if rows := onScreen(m); rows[len(rows)-2] != "no run, plan or node is on this line" {
		t.Errorf("%q", rows)
	}
}

func TestTheFilterLeavesWhatHasItsWords(t *testing.T) {
	for _, c := range []struct {
		name, keys string
		want       []string // of the page
	}{
		{"a plan, and the head of its table", "/ M A I l", []string{"  PLAN    PHASE    NEXT                           MESSAGE", "> mail    Idle     Sun 2026-11-22 03:00 CET (1d)  -"}},
		{"a step, and its run", "/ h o l d", []string{"> shop/r1  Running, 1 of 2 steps done", "    > hold  suspend  Running", "  PLAN    PHASE    NEXT                           MESSAGE"}},
		{"nothing", "/ z z", []string{"> PLAN    PHASE    NEXT                           MESSAGE"}},
		{"after the end was looked at", "G / m a i l", []string{"  PLAN    PHASE    NEXT                           MESSAGE", "> mail    Idle     Sun 2026-11-22 03:00 CET (1d)  -"}},
		{"a letter taken back", "/ m a x backspace enter", []string{"  PLAN    PHASE    NEXT                           MESSAGE", "> mail    Idle     Sun 2026-11-22 03:00 CET (1d)  -"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := typed(modelOf(&noted{}, 80, 10, overview()...), c.keys)
			if diff := cmp.Diff(c.want, onScreen(m)[:len(c.want)]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if row := onScreen(m)[len(c.want)]; row != "" {
				t.Errorf("and below it: %q", row)
			}
			m, _ = typed(m, "esc")
			if m.front().filter != "" || len(m.front().shown) != 7 {
				t.Errorf("esc leaves %q, and %d lines", m.front().filter, len(m.front().shown))
			}
		})
	}
	m, _ := typed(modelOf(&noted{}, 80, 10, overview()...), "/")
	m = told(m, tea.PasteMsg{Content: "ma\nil\x1b[2J"})
	if rows := onScreen(m); rows[len(rows)-1] != "/ma il^[[2J█  no line matches" {
		t.Errorf("%q", rows[len(rows)-1])
	}
}

func TestOfManyPlansTheScreenHasAPart(t *testing.T) {
	var lines []view.Line
	for i := range 5000 {
		lines = append(lines, planLine(fmt.Sprintf("p%04d", i), fmt.Sprintf("p%04d  Idle", i)))
	}
	m := modelOf(&noted{}, 80, 5, lines...)
	for _, c := range []struct {
		keys  string
		first string
		foot  string
	}{
		{"", "> p0000  Idle", "1-4/5000"},
		{"down down", "  p0000  Idle", "1-4/5000"},
		{"pgdown", "  p0003  Idle", "4-7/5000"},
		{"G", "  p4996  Idle", "4997-5000/5000"},
		{"pgup", "> p4995  Idle", "4996-4999/5000"},
		{"pgdown pgdown pgdown", "  p4996  Idle", "4997-5000/5000"},
		{"home", "> p0000  Idle", "1-4/5000"},
	} {
		m, _ = typed(m, c.keys)
		rows := onScreen(m)
		if rows[0] != c.first || !strings.HasPrefix(rows[len(rows)-1], c.foot+"  ") {
			t.Errorf("%s: %q … %q", c.keys, rows[0], rows[len(rows)-1])
		}
	}
}

func TestALogIsScrolledAndStaysAtItsEnd(t *testing.T) {
	n := &noted{}
	m, _ := typed(modelOf(n, 40, 4, overview()...), "l")
	m = told(m, textMsg{page: 1, lines: []string{"==> backup (job, Running)", "one", "two", "three"}})
	if diff := cmp.Diff([]string{"one", "two", "three"}, onScreen(m)[:3]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m, _ = typed(m, "up")
	m = told(m, textMsg{page: 1, lines: []string{"four"}})
	if diff := cmp.Diff([]string{"==> backup (job, Running)", "one", "two"}, onScreen(m)[:3]); diff != "" {
		t.Errorf("whoever scrolls is let be (-want +got):\n%s", diff)
	}
	m, _ = typed(m, "G")
	m = told(m, textMsg{page: 1, lines: []string{strings.Repeat("word ", 12)}}, overMsg{page: 1, err: errors.New("run r1 ended Failed:\nno disk")})
	if diff := cmp.Diff([]string{"word word word word word word word", "    word word word word word", "error: run r1 ended Failed:; no disk"}, onScreen(m)[:3]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m, _ = typed(m, "esc")
	if onScreen(m)[0] != "> shop/r1  Running, 1 of 2 steps done" || cmp.Diff([]string{"open 1 maint logs r1 -f in shop", "close 1"}, n.asked) != "" {
		t.Errorf("%q %q", onScreen(m)[0], n.asked)
	}
	if told(m, textMsg{page: 1, lines: []string{"late"}}).front().id != 0 {
		t.Error("a page that was left came back")
	}
}

// What is looked at stays under the cursor while things come and go above it, and a question
// stays about what it was asked for.
func TestTheCursorStaysWithItsThing(t *testing.T) {
	lines := overview()
	m, _ := typed(modelOf(&noted{}, 80, 20, lines...), "G up")
	m = told(m, pictureMsg{lines: append([]view.Line{{Text: "Needs somebody:", Head: true}, planLine("mail", "  mail  failed"), {}}, lines...)})
	if got := onScreen(m)[8]; got != "> mail    Idle     Sun 2026-11-22 03:00 CET (1d)  -" {
		t.Errorf("%q", got)
	}
	m, _ = typed(m, "s")
	m = told(m, pictureMsg{lines: lines[:4]})
	if rows := onScreen(m); rows[len(rows)-2] != "run 'maint skip mail --next 1'? [y/N]" {
		t.Errorf("%q", rows)
	}
}

func TestWhatBecameOfACommandIsTold(t *testing.T) {
	for _, c := range []struct {
		name string
		msgs []tea.Msg
		want string
	}{
		{"it is done", []tea.Msg{doneMsg{"run/r1 approved"}}, "run/r1 approved"},
		{"it is refused", []tea.Msg{doneMsg{"Error from server (Forbidden): approve: forbidden"}}, "Error from server (Forbidden): approve: forbidden"},
		{"a watch broke", []tea.Msg{doneMsg{}, troubleMsg("what is shown may be old: connection refused")}, "what is shown may be old: connection refused"},
		{"and goes on", []tea.Msg{doneMsg{}, troubleMsg("old"), troubleMsg("")}, ""},
		{"the agent warns", []tea.Msg{doneMsg{}, noticeMsg("warning: the agent is silent")}, "warning: the agent is silent"},
		{"somebody writes control characters", []tea.Msg{doneMsg{"a\x1b[2Jb\rc"}}, "a^[[2Jb^Mc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := typed(modelOf(&noted{}, 80, 20, overview()...), "a y")
			m = told(m, c.msgs...)
			if rows := onScreen(m); rows[len(rows)-2] != c.want {
				t.Errorf("%q, want %q", rows[len(rows)-2], c.want)
			}
		})
	}
}

// A view ends with what it follows, but not under the hands of whoever does something else.
func TestTheEndOfWhatIsFollowed(t *testing.T) {
	for _, c := range []struct {
		name, before, after string
		atOnce, then        bool
	}{
		{name: "at once", atOnce: true},
		{name: "a question is answered first", before: "a", after: "n", then: true},
		{name: "logs are read first", before: "l", after: "esc", then: true},
		{name: "q leaves from anywhere", before: "l", after: "q", then: true},
		{name: "a command is waited for", before: "a y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := typed(modelOf(&noted{}, 80, 20, overview()...), c.before)
			next, cmd := m.Update(overMsg{})
			if (cmd != nil) != c.atOnce {
				t.Errorf("at once: %v", cmd != nil)
			}
			if _, quit := typed(next.(model), c.after); quit != c.then {
				t.Errorf("then: %v", quit)
			}
		})
	}
}

// No size, and no document, makes it fall.
func TestNoSizeIsTooSmall(t *testing.T) {
	lines := append(overview(), view.Line{Text: "\x1b]0;title\a\u202e" + strings.Repeat("維護", 40)}, runLine("r2", ""))
	for columns := range 25 {
		for rows := range 8 {
			m := modelOf(&noted{}, columns, rows, lines...)
			for _, keys := range []string{"G", "g", "pgdown down", "a", "n", "/ x", "esc", "? x", "l", "esc"} {
				m, _ = typed(m, keys)
				m = told(m, tea.WindowSizeMsg{Width: 24 - columns, Height: rows}, pictureMsg{lines: lines[:len(lines)-columns%5]})
				if got := m.View().Content; strings.ContainsAny(got, "\a\u202e") || strings.Contains(got, "\x1b]") {
					t.Fatalf("control characters on %dx%d: %q", columns, rows, got)
				}
				if n := strings.Count(m.View().Content, "\n") + 1; rows > 1 && n > rows {
					t.Fatalf("%d rows on a screen of %d", n, rows)
				}
			}
		}
	}
	told(model{pages: []page{{}}}, pictureMsg{}, tea.WindowSizeMsg{}, keyed("a"), keyed("enter"))
}

func TestTheFootNamesTheKeysThatDoSomething(t *testing.T) {
	open, act := "enter open", "s skip"
	plan := []view.Line{{Text: "orders", Of: view.Resource{Kind: "plan", Namespace: "shop", Name: "orders"}}}
	for _, c := range []struct {
		name string
		page page
		want []string
	}{
		{"several things", page{lines: plan, shown: []int{0}, resources: 2}, []string{open, act}},
		{"the only one, shown in short", page{lines: plan, shown: []int{0}, resources: 1, opens: true}, []string{open, act}},
		{"the only one, shown in full", page{lines: plan, shown: []int{0}, resources: 1}, []string{act}},
		{"nothing, shown in short", page{opens: true}, nil},
	} {
		m := modelOf(&noted{}, 80, 10)
		got := slices.DeleteFunc(m.hints(c.page), func(hint string) bool { return hint != open && hint != act })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAPageThatIsOnlyShownOpensNothing(t *testing.T) {
	m := modelOf(&noted{}, 80, 10, overview()...)
	m.effects = nil
	for _, key := range []string{"l", "enter", "a"} {
		if got, _ := typed(m, key); len(got.pages) != 1 || got.footer.confirm != nil {
			t.Errorf("%s: %d pages, asks %v", key, len(got.pages), got.footer.confirm)
		}
	}
}
