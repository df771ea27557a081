package cmd

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

func TestHelpFitsATerminalOfEightyColumns(t *testing.T) {
	var walk func(path []string, c *cobra.Command)
	walk = func(path []string, c *cobra.Command) {
		got := cmdtest.Offline(t, Run, "", append(path, "--help")...)
		for line := range strings.SplitSeq(got.Out, "\n") {
			if n := utf8.RuneCountInString(line); n > 80 && len(strings.Fields(line)) > 1 {
				t.Errorf("%s --help: %d columns: %s", strings.Join(path, " "), n, line)
			}
		}
		for _, sub := range c.Commands() {
			walk(append(path[:len(path):len(path)], sub.Name()), sub)
		}
	}
	walk(nil, New(factory.Env{Name: "kubectl maint"}))
}

func TestWithoutACommandOneScreenSaysWhatToDoFirst(t *testing.T) {
	got := cmdtest.Offline(t, Run, "")
	lines := strings.Split(strings.TrimSuffix(got.Out, "\n"), "\n")
	if got.Code != 0 || got.Err != "" || len(lines) > 23 {
		t.Fatalf("code %d, %d lines, %q", got.Code, len(lines), got.Err)
	}
	root := New(factory.Env{Name: "kubectl maint"})
	named := 0
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
		if words, is := strings.CutPrefix(line, "  kubectl maint "); is {
			named++
			if cmd, _, err := root.Find(strings.Fields(words)); err != nil || cmd == root {
				t.Errorf("%q is no command: %v", line, err)
			}
		}
	}
	if last := lines[len(lines)-1]; named < 8 || !strings.Contains(last, "'kubectl maint --help'") {
		t.Errorf("%d commands, and at last %q", named, last)
	}
}

func TestTextsAreFilledAnew(t *testing.T) {
	for text, want := range map[string]string{
		"a bb ccc":              "a bb\nccc",
		"a\nb\n\nc":             "a b\n\nc",
		"a\n\n  as it is, long": "a\n\n  as it is, long",
		"averylongword b":       "averylongword\nb",
		"":                      "",
	} {
		if got := wrapped(text, 5); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
