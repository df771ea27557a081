package restore

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/term"
)

// edited lets a person edit a text in a file, and returns the content of the file. The caller
// removes the file, also after errors; without a name there is none.
func edited(text []byte) (result []byte, file string, err error) {
	f, err := os.CreateTemp("", "maint-restore-*.yaml")
	if err != nil {
		return nil, "", err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil { // closed, since some editors lock the file
		return nil, f.Name(), err
	}
	if err := launch(editorCommand(os.Getenv("KUBE_EDITOR"), os.Getenv("EDITOR")), f.Name()); err != nil {
		return nil, f.Name(), err
	}
	result, err = os.ReadFile(f.Name())
	return result, f.Name(), err
}

// launch runs an editor on a file, and restores the terminal's state.
func launch(command []string, file string) error {
	in := int(os.Stdin.Fd()) //nolint:gosec // a descriptor fits an int
	if state, err := term.GetState(in); err == nil {
		defer func() { _ = term.Restore(in, state) }()
	}
	cmd := exec.Command(command[0], append(command[1:], file)...) //nolint:gosec // the person's own editor
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	return nil
}

// editorCommand is the first editor that is configured, or the system's. One with quotes is run by
// the shell, as git does; Windows has double quotes only.
func editorCommand(named ...string) []string {
	for _, editor := range named {
		switch {
		case len(quotedWords(editor)) == 0: // only blanks and quotes
		case runtime.GOOS == "windows":
			return quotedWords(editor)
		case strings.ContainsAny(editor, "\"'\\$"):
			return []string{"sh", "-c", editor + ` "$@"`, "sh"}
		default:
			return strings.Fields(editor)
		}
	}
	if runtime.GOOS == "windows" {
		return []string{"notepad"}
	}
	return []string{"vi"}
}

// quotedWords are the words of a line; double quotes keep spaces.
func quotedWords(line string) []string {
	var out []string
	for i, part := range strings.Split(line, `"`) {
		switch {
		case i%2 == 0:
			out = append(out, strings.Fields(part)...)
		case part != "":
			out = append(out, part)
		}
	}
	return out
}
