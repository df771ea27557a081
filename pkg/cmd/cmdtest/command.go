package cmdtest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

// Program is the command line under test: Run of the root, which the tests of the packages below it
// pass in.
type Program func(ctx context.Context, c *factory.Factory, args []string) int

// Printed is what one command line printed, and its exit code.
type Printed struct {
	Code     int
	Out, Err string
}

// Offline runs a command line without a terminal and without a cluster.
func Offline(t *testing.T, run Program, stdin string, args ...string) Printed {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out, errOut bytes.Buffer
	env := factory.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut},
		Name:      "kubectl maint", Version: "v0.1.0", Now: Now, Zone: "Europe/Berlin",
	}
	code := run(t.Context(), factory.New(env), args)
	return Printed{Code: code, Out: out.String(), Err: errOut.String()}
}

// Is compares all that was printed.
func (s Printed) Is(t *testing.T, want Printed) {
	t.Helper()
	if s.Code != want.Code {
		t.Errorf("exit code %d, want %d", s.Code, want.Code)
	}
	if diff := cmp.Diff(want.Out, s.Out); diff != "" {
		t.Errorf("standard output (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Err, s.Err); diff != "" {
		t.Errorf("standard error (-want +got):\n%s", diff)
	}
}

// WriteFiles writes a file to a folder of the test and changes into it, so that file names in
// messages are the same everywhere.
func WriteFiles(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// JSON is what -o json prints of a value that is written on one line here.
func JSON(line string) string {
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(line), "", "    "); err != nil {
		panic(err)
	}
	return out.String() + "\n"
}
