package intent

import (
	"os/exec"
	"testing"
)

func TestACommandLineNamesTheNamespaceOfItsObject(t *testing.T) {
	for want, c := range map[string][3]string{
		"'kubectl maint -n shop approve r/ask'": {"shop", "approve", "r/ask"},
		"'kubectl maint approve r'":             {"", "approve", "r"},
		"'kubectl maint -n shop resume --all'":  {"shop", "resume --all", ""},
	} {
		if got := Command(c[0], c[1], c[2]); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Names of other clusters' objects are anything but a slash and a percent sign.
func TestANameInACommandIsOneWordOfAShellAndRunsNothing(t *testing.T) {
	for _, name := range []string{
		"$(touch ${HOME}-pwn)", "x; touch pwned;", "`touch pwned`", "a b", "a'b", `a"b`, `a\b`, "~", "#a", "!!", "*", "a&&b", "a|b>c<d", "-rf", "jörg", "a=~", "{a,b}", "[a]",
	} {
		for where, line := range map[string]string{
			"alone":             "printf %s " + Word(name),
			"with what follows": "printf %s " + Word(name) + " && true",
		} {
			if out, err := exec.CommandContext(t.Context(), "sh", "-c", line).Output(); err != nil || string(out) != name {
				t.Errorf("%q, %s: %s said %q, %v", name, where, line, out, err)
			}
		}
	}
	quoted := "printf %s '" + Word("$(echo pwned)`echo pwned`;echo pwned") + "'"
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", quoted).Output(); err != nil || string(out) != "\\$\\(echo\\ pwned\\)\\`echo\\ pwned\\`\\;echo\\ pwned" {
		t.Errorf("pasted with its quotes: %s said %q, %v", quoted, out, err)
	}
}

func TestAStepThatCannotBePastedIsLeftOut(t *testing.T) {
	for name, want := range map[string]string{
		"r/roll/$(touch pwn)/ask": `'kubectl maint -n shop approve r/roll/\$\(touch\ pwn\)/ask'`,
		"r/roll/a\nb/ask":         "'kubectl maint -n shop approve r'",
		"r/roll/\x1b[0m/ask":      "'kubectl maint -n shop approve r'",
		"r/roll/a\u202eb/ask":     "'kubectl maint -n shop approve r'",
		"r\n":                     "'kubectl maint -n shop approve …'",
	} {
		if got := Command("shop", "approve", name); got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}
