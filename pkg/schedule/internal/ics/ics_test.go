package ics_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/ics"
)

// outline is a component and those inside of it, as NAME(LINES){COMPONENTS}.
func outline(c *ics.Component) string {
	var lines, inside []string
	for _, l := range c.Lines {
		lines = append(lines, fmt.Sprintf("%d %s%v=%s", l.Number, l.Name, l.Params, l.Value))
	}
	for _, child := range c.Children {
		inside = append(inside, outline(child))
	}
	return fmt.Sprintf("%s(%s){%s}", c.Name, strings.Join(lines, ", "), strings.Join(inside, ", "))
}

func TestLinesAndComponents(t *testing.T) {
	for name, c := range map[string]struct {
		lines  []string
		want   string
		faults []string
	}{
		"components lie in components": {
			lines: []string{"BEGIN:VCALENDAR", "begin:vevent", "UID:1", "END:VEVENT", "END:VCALENDAR"},
			want:  "(){VCALENDAR(){VEVENT(3 UIDmap[]=1){}}}",
		},
		"a folded line has the number of its first part": {
			lines: []string{"BEGIN:A", "SUMMARY:one", " two", "\t three", "UID:1", "END:A"},
			want:  "(){A(2 SUMMARYmap[]=onetwo three, 5 UIDmap[]=1){}}",
		},
		"parameters may be quoted": {
			lines: []string{"BEGIN:A", `DTSTART;TZID="a:b;c";VALUE=DATE:2026`, "END:A"},
			want:  "(){A(2 DTSTARTmap[TZID:a:b;c VALUE:DATE]=2026){}}",
		},
		"empty lines and the mark of the byte order say nothing": {
			lines: []string{"\ufeffBEGIN:A", "", "  ", "END:A", ""},
			want:  "(){A(){}}",
		},
		"what is no property is left out": {
			lines: []string{"BEGIN:A", "hello", "X;P:1", "É:1", ":1", "UID:1", "END:A"},
			want:  "(){A(6 UIDmap[]=1){}}",
			faults: []string{
				"2 is not NAME:VALUE; write one property a line, and begin continued lines with a space",
				"3 is not NAME:VALUE; write one property a line, and begin continued lines with a space",
				"4 is not NAME:VALUE; write one property a line, and begin continued lines with a space",
				"5 is not NAME:VALUE; write one property a line, and begin continued lines with a space",
			},
		},
		"an end ends what was begun inside of it": {
			lines:  []string{"BEGIN:A", "BEGIN:B", "END:A", "UID:1"},
			want:   "(4 UIDmap[]=1){A(){B(){}}}",
			faults: []string{"2 is not ended before END:A in line 3", "4 is outside of BEGIN:VCALENDAR and END:VCALENDAR"},
		},
		"a space before the first line continues nothing": {
			lines: []string{" BEGIN:A", "END:A"},
			want:  "(){A(){}}",
		},
		"ten levels are read": {
			lines: []string{"BEGIN:A", "BEGIN:B", "BEGIN:C", "BEGIN:D", "BEGIN:E", "BEGIN:F", "BEGIN:G", "BEGIN:H", "BEGIN:I", "BEGIN:J", "END:A"},
			want:  "(){A(){B(){C(){D(){E(){F(){G(){H(){I(){J(){}}}}}}}}}}}",
			faults: []string{
				"2 is not ended before END:A in line 11", "3 is not ended before END:A in line 11", "4 is not ended before END:A in line 11",
				"5 is not ended before END:A in line 11", "6 is not ended before END:A in line 11", "7 is not ended before END:A in line 11",
				"8 is not ended before END:A in line 11", "9 is not ended before END:A in line 11", "10 is not ended before END:A in line 11",
			},
		},
		"an eleventh level ends the reading": {
			lines:  []string{"BEGIN:A", "BEGIN:A", "BEGIN:A", "BEGIN:A", "BEGIN:A", "BEGIN:A", "BEGIN:A", "BEGIN:A", "BEGIN:A", "BEGIN:A", "BEGIN:A", "hello"},
			want:   "(){A(){A(){A(){A(){A(){A(){A(){A(){A(){A(){}}}}}}}}}}}",
			faults: []string{"11 stands in more than 10 others"},
		},
		"an end without a name ends nothing": {
			lines:  []string{"END:", "BEGIN:A", "END:", "END:A"},
			want:   "(){A(){}}",
			faults: []string{"1 ends what was not begun", "3 ends what was not begun"},
		},
		"an end of nothing, and nothing that ends": {
			lines:  []string{"END:A", "BEGIN:B"},
			want:   "(){B(){}}",
			faults: []string{"1 ends what was not begun", "2 is never ended; write END:B"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, end := range []string{"\n", "\r\n"} {
				root, faults := ics.Parse(strings.Join(c.lines, end))
				var told []string
				for _, f := range faults {
					told = append(told, fmt.Sprintf("%d %s", f.Line.Number, f.Message))
				}
				if diff := cmp.Diff(c.faults, told); diff != "" || outline(root) != c.want {
					t.Errorf("%s, not %s; faults:\n%s", outline(root), c.want, diff)
				}
			}
		})
	}
}

func TestComponentsAndLinesAreFound(t *testing.T) {
	root, _ := ics.Parse("BEGIN:A\nBEGIN:B\nX:1\nX:2\nBEGIN:B\nEND:B\nEND:B\nEND:A\nBEGIN:B\nEND:B")
	found := root.Find("B")
	if len(found) != 3 {
		t.Fatalf("%d components", len(found))
	}
	if l, ok := found[0].Line("X"); !ok || l.Value != "1" {
		t.Errorf("%+v, %t", l, ok)
	}
	if l, ok := found[0].Line("Y"); ok {
		t.Errorf("%+v", l)
	}
}
