// Package look looks at what people are shown: it hands the calendar's feed to
// somebody else's parser, and its page to a browser.
package look

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
)

// calendar runs the command on a Wednesday, four days before clocks change.
func calendar(t *testing.T, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	env := cmd.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut},
		Name:      "kubectl maint", Version: "v0.1.0", Zone: "Europe/Berlin",
		Now: func() time.Time { return time.Date(2026, 3, 25, 9, 20, 0, 0, time.UTC) },
	}
	if code := cmd.Main(t.Context(), env, append([]string{"calendar", "-f", "../../pkg/cmd/offline/testdata/calendar/shop.yaml"}, args...)); code != 0 {
		t.Fatalf("calendar %v: exit code %d\n%s", args, code, &errOut)
	}
	return out.String()
}

// missing ends a test whose tool is not here: CI is where it has to be.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// run runs a command and returns what it prints.
func run(t *testing.T, command *exec.Cmd) []byte {
	t.Helper()
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command.Args, " "), err, &complaints)
	}
	return out
}
