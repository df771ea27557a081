package transcripts

import (
	"fmt"
	"strings"
)

// exchange is one command and what came of it.
type exchange struct {
	before  []string // lines for the reader
	command string
	answer  string // as it stands in the file
}

// parse reads a transcript; after are the lines behind the last answer.
func parse(text string) (out []exchange, after []string) {
	var prose []string
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		command, found := strings.CutPrefix(lines[i], "$ ")
		if !found {
			prose = append(prose, lines[i])
			i++
			continue
		}
		e := exchange{before: prose, command: command}
		prose = nil
		for i++; i < len(lines) && strings.HasPrefix(lines[i], "> "); i++ {
			e.command += "\n" + lines[i][2:]
		}
		begin := i
		for i < len(lines) && !strings.HasPrefix(lines[i], "$ ") && !strings.HasPrefix(lines[i], "#") {
			i++
		}
		end := i
		for end > begin && lines[end-1] == "" {
			end--
		}
		e.answer, prose = strings.Join(lines[begin:end], "\n"), append(prose, lines[end:i]...)
		out = append(out, e)
	}
	return out, prose
}

// render is the text of a transcript.
func render(exchanges []exchange, after []string) string {
	var b strings.Builder
	for _, e := range exchanges {
		for _, line := range e.before {
			b.WriteString(line + "\n")
		}
		b.WriteString("$ " + strings.ReplaceAll(e.command, "\n", "\n> ") + "\n")
		if e.answer != "" {
			b.WriteString(e.answer + "\n")
		}
	}
	for _, line := range after {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// answer is what a command said, as a transcript has it.
func answer(stdout, stderr string, code int) string {
	lines := append(output(stdout, ""), output(stderr, "! ")...)
	if code != 0 {
		lines = append(lines, fmt.Sprintf("[exit %d]", code))
	}
	return strings.Join(lines, "\n")
}

const cutOff = `\ (no end of line)`

func output(text, prefix string) []string {
	if text == "" {
		return nil
	}
	body, whole := strings.CutSuffix(text, "\n")
	lines := strings.Split(body, "\n")
	for i, line := range lines {
		switch {
		case prefix != "":
			lines[i] = strings.TrimRight(prefix+line, " ")
			if line != "" && strings.HasSuffix(line, " ") {
				lines[i] = prefix + line
			}
		case line == "" && i == len(lines)-1, mistaken(line):
			lines[i] = `\` + line
		}
	}
	if !whole {
		lines = append(lines, cutOff)
	}
	return lines
}

// mistaken says whether a line of output looks like one of a transcript's own.
func mistaken(line string) bool {
	for _, mark := range []string{"$ ", "> ", "#", "! ", "[exit ", `\`} {
		if strings.HasPrefix(line, mark) {
			return true
		}
	}
	return line == "!"
}
