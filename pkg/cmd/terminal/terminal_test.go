package terminal

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"
)

func TestWhatReachesATerminal(t *testing.T) {
	const mark = Mark("123;")
	for name, c := range map[string]struct{ writes, want string }{
		"words, breaks and tabs":              {"a\tb\nc", "a\tb\nc"},
		"letters of all the world":            {"zażółć 維護 ✓", "zażółć 維護 ✓"},
		"a colour of ours":                    {mark.Sequence("31m") + "bad" + mark.Sequence("0m"), "\x1b[31mbad\x1b[0m"},
		"the cursor of ours":                  {mark.Sequence("2A") + mark.Sequence("J") + "x", "\x1b[2A\x1b[Jx"},
		"a colour of theirs":                  {"\x1b[31mbad", "^[[31mbad"},
		"the end of colours of theirs":        {"cut…\x1b[0m", "cut…^[[0m"},
		"a cursor of theirs":                  {"\x1b[2A\x1b[Jall is well", "^[[2A^[[Jall is well"},
		"a title":                             {"\x1b]0;root@prod\a", "^[]0;root@prod^G"},
		"somebody who guesses at the mark":    {"\x1b[124;31m", "^[[124;31m"},
		"half of the mark":                    {"\x1b[123", "^[[123"},
		"a line that writes over itself":      {"Failed\rSucceeded", "Failed^MSucceeded"},
		"line breaks of calendars":            {"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n", "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"},
		"a bell and a backspace":              {"a\a\bb", "a^G^Hb"},
		"sequences of one character":          {"a\u009b31mb", `a\u009B31mb`},
		"delete":                              {"a\x7fb", `a\u007Fb`},
		"text that runs the other way around": {"a\u202eb\u2066c", `a\u202Eb\u2066c`},
		"letters that nobody sees":            {"a\u200bb\u2060c\ufeffd\u00ade\U000e0041", `a\u200Bb\u2060c\uFEFFd\u00ADe\uDB40\uDC41`},
		"a symbol nobody sees":                {"a\u2800b\u2801", "a\\u2800b\u2801"},
		"letters and marks nobody sees":       {"a\u3164b\u115fc\u1160d\uffa0e\u034f", `a\u3164b\u115Fc\u1160d\uFFA0e\u034F`},
		"how a letter is to look":             {"❤\ufe0f 葛\U000e0100", "❤\ufe0f 葛\U000e0100"},
		"what ends a line elsewhere":          {"a\u2028b\u2029c", `a\u2028b\u2029c`},
		"what joins letters of a script":      {"می\u200cخواهم 👩\u200d🚀", "می\u200cخواهم 👩\u200d🚀"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			w := NewWriter(&out, mark)
			if n, err := w.Write([]byte(c.writes)); n != len(c.writes) || err != nil {
				t.Errorf("wrote %d of %d, %v", n, len(c.writes), err)
			}
			if out.String() != c.want {
				t.Errorf("%q, want %q", out.String(), c.want)
			}
		})
	}
}

func TestACharacterThatComesInPieces(t *testing.T) {
	const text = "維✓é𝄞x"
	for cut := range len(text) {
		var out bytes.Buffer
		w := NewWriter(&out, "")
		for _, part := range []string{text[:cut], text[cut:]} {
			if _, err := w.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if out.String() != text {
			t.Errorf("cut at %d: %q", cut, out.String())
		}
	}
}

func TestMarksDiffer(t *testing.T) {
	a, b := NewMark(), NewMark()
	if a == b || len(a) < 10 || !strings.HasSuffix(string(a), ";") {
		t.Errorf("%q and %q", a, b)
	}
	if got := Mark("").Sequence("31m"); got != "\x1b[31m" {
		t.Errorf("without a mark: %q", got)
	}
}

func TestWhatIsDivertedIsCleanToo(t *testing.T) {
	const mark = Mark("123;")
	var out, beside bytes.Buffer
	w := NewWriter(&out, mark)
	write := func(text string) {
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("a")
	back := w.Divert(&beside)
	write("b\x1b[2J" + mark.Sequence("31m"))
	back()
	write("c")
	if out.String() != "ac" || beside.String() != "b^[[2J\x1b[31m" {
		t.Errorf("%q, beside %q", out.String(), beside.String())
	}
}

// A reader of JSON gets what stood there: only what a terminal would do is taken out.
func TestJSONIsTheSameBehindAWriter(t *testing.T) {
	const text = "\u202ea\u200b\u2028\x7f\u009b\U000e0041 <x> \\"
	var in, out bytes.Buffer
	e := json.NewEncoder(&in)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		t.Fatal(err)
	}
	if _, err := NewWriter(&out, "").Write(in.Bytes()); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got != text {
		t.Errorf("%s is read as %q, %v; want %q", out.Bytes(), got, err, text)
	}
}

// Pictures and pages are XML: a freeze's reason must not keep anybody from opening them.
func TestAPictureStaysOneBehindAWriter(t *testing.T) {
	var out bytes.Buffer
	if _, err := NewWriter(&out, "").Write([]byte("<svg><title>frozen: \u202eyear end\u009b</title></svg>")); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(out.Bytes(), new(struct{})); err != nil {
		t.Errorf("%s cannot be read: %v", out.String(), err)
	}
}

func TestALineIsCutToTheTerminal(t *testing.T) {
	for _, c := range []struct {
		name, line string
		width      int
		want       string
	}{
		{"it fits", "node a", 6, "node a"},
		{"of unknown width", "node a", 0, "node a"},
		{"too long", "node abc", 6, "node …\x1b[0m"},
		{"colours take no room", "\x1b[31mnode a\x1b[0m", 6, "\x1b[31mnode a\x1b[0m"},
		{"too long, in colour", "\x1b[31mnode abc\x1b[0m", 6, "\x1b[31mnode …\x1b[0m"},
		{"letters, not bytes", "ä ö ü ß", 7, "ä ö ü ß"},
		{"an escape that does not end", "ab\x1b[31", 3, "ab\x1b[31"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := CutLine(c.line, c.width, ""); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
