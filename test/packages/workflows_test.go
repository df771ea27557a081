package packages_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow is what of one of GitHub's counts here.
type workflow struct {
	Jobs map[string]struct {
		Steps []struct{ Uses, Run string }
	}
}

// actions are what make cannot do: they bring the sources and tools, and keep what was built.
func actions() []string {
	return []string{"actions/checkout", "actions/setup-go", "actions/cache", "sigstore/cosign-installer"}
}

// What a workflow does can be done anywhere: it calls make, and the targets exist.
func TestWorkflowsOnlyCallMake(t *testing.T) {
	makefile, err := os.ReadFile(path(t, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(path(t, ".github", "workflows", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal("there are no workflows: ", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Fatal(err)
		}
		for name, job := range w.Jobs {
			for _, step := range job.Steps {
				action, _, _ := strings.Cut(step.Uses, "@")
				if step.Run == "" && slices.Contains(actions(), action) {
					continue
				}
				if fault := notMake(step.Run, string(makefile)); fault != "" {
					t.Errorf("%s: job %s: %s%s: %s", filepath.Base(file), name, step.Uses, step.Run, fault)
				}
			}
		}
	}
}

// notMake is why a command is none of make with targets that exist; empty: it is one.
func notMake(command, makefile string) string {
	words := strings.Fields(regexp.MustCompile(`\$\{\{[^}]*\}\}`).ReplaceAllString(command, "VALUE")) // GitHub fills these in
	if len(words) < 2 || words[0] != "make" || strings.ContainsAny(command, ";&|\n") {
		return "that is no call of make alone"
	}
	for _, target := range words[1:] {
		if !strings.Contains(target, "=") && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(target)+`:`).MatchString(makefile) {
			return "make has no target " + target
		}
	}
	return ""
}
