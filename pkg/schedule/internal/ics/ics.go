// Package ics reads the lines and the components of an iCalendar file (RFC 5545), and nothing of
// what they mean.
package ics

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is a line that was not understood.
type Fault struct {
	Line    Line
	Message string
}

// Parse reads a file. Lines may end in LF. What was not understood is left out, and told.
func Parse(text string) (*Component, []Fault) {
	p := &parser{}
	return p.tree(unfold(text)), p.faults
}

type parser struct{ faults []Fault }

func (p *parser) fault(line Line, format string, args ...any) {
	p.faults = append(p.faults, Fault{line, fmt.Sprintf(format, args...)})
}

// Line is one unfolded line, taken apart.
type Line struct {
	Number int // from 1; of a folded line that of its first part
	Text   string
	Name   string // in capitals
	Params map[string]string
	Value  string
}

// unfold joins continued lines and numbers them.
func unfold(text string) []Line {
	var lines []Line
	var joined strings.Builder // the line that may go on
	number := 0
	end := func() {
		if number > 0 {
			lines = append(lines, Line{Number: number, Text: joined.String()})
		}
		joined.Reset()
	}
	text = strings.TrimPrefix(text, "\ufeff")
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if number > 0 && line != "" && (line[0] == ' ' || line[0] == '\t') {
			joined.WriteString(line[1:])
			continue
		}
		end()
		number = i + 1
		joined.WriteString(line)
	}
	end()
	return slices.DeleteFunc(lines, func(line Line) bool { return strings.TrimSpace(line.Text) == "" })
}

// split takes NAME;PARAM=VALUE;PARAM="VALUE":VALUE apart.
func (l *Line) split() bool {
	quoted, colon := false, -1
	var ends []int
	for i := 0; i < len(l.Text) && colon < 0; i++ {
		switch c := l.Text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ';':
			ends = append(ends, i)
		case c == ':':
			colon = i
		}
	}
	if colon < 1 {
		return false
	}
	l.Value = strings.TrimSpace(l.Text[colon+1:])
	ends = append(ends, colon)
	l.Name = strings.ToUpper(strings.TrimSpace(l.Text[:ends[0]]))
	l.Params = map[string]string{}
	for i := range ends[1:] {
		name, value, ok := strings.Cut(l.Text[ends[i]+1:ends[i+1]], "=")
		if !ok {
			return false
		}
		l.Params[strings.ToUpper(name)] = strings.Trim(value, `"`)
	}
	return l.Name != "" && strings.Trim(l.Name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == ""
}

// Component is a component with its lines and the components inside.
type Component struct {
	Begin    Line
	Name     string
	Lines    []Line
	Children []*Component
}

// Find lists the components of a name, at any depth, in order.
func (n *Component) Find(name string) []*Component {
	var found []*Component
	for _, child := range n.Children {
		if child.Name == name {
			found = append(found, child)
		}
		found = append(found, child.Find(name)...)
	}
	return found
}

// Line is the first line of a name.
func (n *Component) Line(name string) (Line, bool) {
	for _, line := range n.Lines {
		if line.Name == name {
			return line, true
		}
	}
	return Line{}, false
}

// maxNesting is how deep components may stand in each other (RFC 5545 has three levels; a guess).
const maxNesting = 10

// tree nests the components. A component that is not ended is ended by the next
// thing that is, or by the file, and told.
func (p *parser) tree(lines []Line) *Component {
	stack := []*Component{{}}
	for _, line := range lines {
		top := stack[len(stack)-1]
		if !line.split() {
			p.fault(line, "is not NAME:VALUE; write one property a line, and begin continued lines with a space")
			continue
		}
		switch line.Name {
		case "BEGIN":
			if len(stack) > maxNesting {
				p.fault(line, "stands in more than %d others", maxNesting)
				return stack[0]
			}
			node := &Component{Begin: line, Name: strings.ToUpper(line.Value)}
			top.Children = append(top.Children, node)
			stack = append(stack, node)
		case "END":
			stack = p.end(stack, line)
		default:
			if len(stack) == 1 {
				p.fault(line, "is outside of BEGIN:VCALENDAR and END:VCALENDAR")
			}
			top.Lines = append(top.Lines, line)
		}
	}
	for _, open := range stack[1:] {
		p.fault(open.Begin, "is never ended; write END:%s", open.Name)
	}
	return stack[0]
}

func (p *parser) end(stack []*Component, line Line) []*Component {
	name := strings.ToUpper(line.Value)
	for i := len(stack) - 1; i > 0; i-- {
		if stack[i].Name != name {
			continue
		}
		for _, open := range stack[i+1:] {
			p.fault(open.Begin, "is not ended before END:%s in line %d", name, line.Number)
		}
		return stack[:i]
	}
	p.fault(line, "ends what was not begun")
	return stack
}
