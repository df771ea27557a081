package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// A patch that no longer fits would leave a checker that nobody has shown to see.
func TestEachFaultCanBePutBackAndSaysWhoSeesIt(t *testing.T) {
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	patches, err := filepath.Glob("faults/*.patch")
	if err != nil || len(patches) == 0 {
		t.Fatalf("no patches: %v", err)
	}
	for _, patch := range patches {
		text, err := os.ReadFile(patch)
		if err != nil {
			t.Fatal(err)
		}
		if field(text, "Fault") == "" || field(text, "Checkers") == "" || !slices.Contains(scenarioNames(), field(text, "Scenario")) {
			t.Errorf("%s: its head must say Fault, Checkers, and a Scenario of %v", patch, scenarioNames())
		}
		path, err := filepath.Abs(patch)
		if err != nil {
			t.Fatal(err)
		}
		check := exec.Command("git", "apply", "--check", path)
		check.Dir = root
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s does not fit any more, make it anew: %v\n%s", patch, err, out)
		}
	}
}

// field is a line "Name: value" before the first file of a patch.
func field(patch []byte, name string) string {
	head, _, _ := bytes.Cut(patch, []byte("\ndiff "))
	found := regexp.MustCompile(`(?m)^` + name + `: (.+)$`).FindSubmatch(head)
	if found == nil {
		return ""
	}
	return strings.TrimSpace(string(found[1]))
}
