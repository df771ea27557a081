package restore

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/term"
)

// inEditor has a person change a text in the editor that KUBE_EDITOR or EDITOR names, and returns
// what they left and the file that it stands in, which is the caller's to remove. The file is
// there after an error, too, unless its name is empty.
func inEditor(ctx context.Context, text []byte) (edited []byte, file string, err error) {
	f, err := os.CreateTemp("", "maint-restore-*.yaml")
	if err != nil {
		return nil, "", err
	}
	file = f.Name()
	_, err = f.Write(text)
	if err = cmp.Or(err, f.Close()); err != nil {
		return nil, file, err
	}
	// Control-C is the editor's: it has the terminal.
	cmd := editorOf(context.WithoutCancel(ctx), cmp.Or(os.Getenv("KUBE_EDITOR"), os.Getenv("EDITOR")), file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	in := int(os.Stdin.Fd())
	if before, err := term.GetState(in); err == nil {
		defer func() { _ = term.Restore(in, before) }() // an editor that dies leaves a terminal as it had it
	}
	if err := cmd.Run(); err != nil {
		return nil, file, err
	}
	edited, err = os.ReadFile(file)
	return edited, file, err
}

// editorOf is an editor with its arguments, as a shell reads them, and the file to edit.
func editorOf(ctx context.Context, editor, file string) *exec.Cmd {
	if runtime.GOOS == "windows" {
		return exec.CommandContext(ctx, "cmd", "/C", cmp.Or(editor, "notepad"), file)
	}
	return exec.CommandContext(ctx, "/bin/sh", "-c", cmp.Or(editor, "vi")+` "$1"`, "editor", file)
}
