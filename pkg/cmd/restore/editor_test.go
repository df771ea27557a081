package restore

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWhichEditorIsTaken(t *testing.T) {
	for _, c := range []struct {
		name  string
		named []string
		want  []string
	}{
		{"the system's where none is named", []string{"", " "}, []string{"vi"}},
		{"the first that is named", []string{"nano", "emacs"}, []string{"nano"}},
		{"the second where the first is empty", []string{"", "emacs"}, []string{"emacs"}},
		{"the second where the first is nothing but quotes", []string{`""`, "emacs"}, []string{"emacs"}},
		{"one with flags", []string{"code --wait"}, []string{"code", "--wait"}},
		{"one with quotes is a line of the shell", []string{`"/my apps/edit" -w`}, []string{"sh", "-c", `"/my apps/edit" -w "$@"`, "sh"}},
	} {
		if got := editorCommand(c.named...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := quotedWords(`"C:\My Apps\edit.exe" --wait  -n`); !slices.Equal(got, []string{`C:\My Apps\edit.exe`, "--wait", "-n"}) {
		t.Errorf("on Windows: %q", got)
	}
}

func TestAnEditorWithSpacesInItsPathGetsTheFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my apps")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "edit")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nprintf '%s' \"$1\" >> \"$2\"\n"), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("KUBE_EDITOR", `"`+script+`" " and more"`)
	text, file, err := edited([]byte("was"))
	if err != nil || string(text) != "was and more" {
		t.Errorf("%q, %v", text, err)
	}
	if held, err := os.ReadFile(file); err != nil || string(held) != "was and more" {
		t.Errorf("its file holds %q, %v", held, err)
	}
	t.Setenv("KUBE_EDITOR", "/nowhere/edit")
	if _, file, err = edited([]byte("mine")); err == nil || !strings.Contains(err.Error(), "/nowhere/edit: ") {
		t.Errorf("an editor that is not there: %v", err)
	}
	if held, err := os.ReadFile(file); err != nil || string(held) != "mine" {
		t.Errorf("the text is gone: %q, %v", held, err)
	}
}
