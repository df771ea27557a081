package schedule_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Time is decided from values alone. What this package imports, every command
// and the agent import; and what could read a clock, an environment or a
// cluster would make a preview differ from the run.
func TestNothingButTheStandardLibraryIsImported(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=Imports,Deps,Standard", ".").Output()
	if err != nil {
		t.Skipf("no go command here: %v", err)
	}
	var listed struct{ Imports, Deps []string }
	if err := json.Unmarshal(out, &listed); err != nil {
		t.Fatal(err)
	}
	for _, name := range listed.Deps {
		const own = "github.com/kubectl-maint/kubectl-maint/pkg/schedule"
		if first, _, _ := strings.Cut(name, "/"); strings.Contains(first, ".") && name != own && !strings.HasPrefix(name, own+"/internal/") {
			t.Errorf("%s is imported: keep clients and SDKs in the rooms that need them", name)
		}
	}
	for _, name := range []string{"context", "os", "log", "log/slog", "net", "net/http", "os/exec"} {
		if slices.Contains(listed.Imports, name) {
			t.Errorf("%s is imported: instants and values are handed in, answers are returned", name)
		}
	}
}
