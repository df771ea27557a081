package walls

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// besideMake are the commands of workflows that are no targets of make: they install what the
// machines of GitHub lack, as .ci/run does elsewhere.
func besideMake() []string {
	return []string{
		"sudo apt-get update && sudo apt-get install --yes --no-install-recommends prometheus",
		"pip install 'moto[server]'",
	}
}

// actions are those that workflows use: they fetch the sources and Go, keep what is built, and
// have an identity to sign by, which a machine of ours has not.
func actions() []string {
	return []string{"actions/checkout", "actions/setup-go", "actions/cache", "sigstore/cosign-installer", "actions/attest-build-provenance"}
}

// faultsOfWorkflow says what a workflow does beside calling make.
func faultsOfWorkflow(text []byte, targets []string) ([]string, error) {
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Run, Uses string }
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		return nil, err
	}
	var out []string
	for name, job := range workflow.Jobs {
		if len(job.Steps) == 0 {
			out = append(out, name+" has no steps")
		}
		for _, step := range job.Steps {
			action, _, _ := strings.Cut(step.Uses, "@")
			if action != "" && !slices.Contains(actions(), action) {
				out = append(out, name+" uses "+action)
			}
			for _, line := range strings.Split(strings.TrimSpace(step.Run), "\n") {
				if line != "" && !slices.Contains(besideMake(), line) {
					out = append(out, faultsOfCommand(name, line, targets)...)
				}
			}
		}
	}
	return out, nil
}

// faultsOfCommand are none where a line calls make with targets that there are, and variables.
func faultsOfCommand(job, line string, targets []string) []string {
	words := strings.Fields(regexp.MustCompile(`\$\{\{[^}]*\}\}`).ReplaceAllString(line, "$$"))
	if words[0] != "make" || strings.ContainsAny(line, ";&|") {
		return []string{job + " runs " + line}
	}
	var out []string
	for _, word := range words[1:] {
		if !strings.Contains(word, "=") && !slices.Contains(targets, word) {
			out = append(out, job+" makes "+word)
		}
	}
	return out
}

func TestWorkflowsCallMakeAndNothingElse(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, found := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`).FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, found[1])
	}
	files, err := filepath.Glob(filepath.Join("..", "..", ".github", "workflows", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		faults, err := faultsOfWorkflow(text, targets)
		if err != nil {
			t.Fatal(file, err)
		}
		for _, fault := range faults {
			t.Errorf("%s: %s: a workflow calls make, so that everybody can do what it does", filepath.Base(file), fault)
		}
	}
}

func TestAWorkflowThatDoesMoreIsFound(t *testing.T) {
	for step, want := range map[string]string{
		"run: make test": "",
		`run: make dist VERSION="$VERSION" A=b/$C`:    "",
		"run: pip install 'moto[server]'":             "",
		"uses: actions/checkout@v5":                   "",
		"run: go test ./...":                          "job runs go test ./...",
		"run: make test && go vet ./...":              "job runs make test && go vet ./...",
		"run: make coffee":                            "job makes coffee",
		"uses: somebody/builds-it@v1":                 "job uses somebody/builds-it",
		"run: |\n        make test\n        ./deploy": "job runs ./deploy",
		"run: make dist A=${{ b.c }}/d":               "",
	} {
		got, err := faultsOfWorkflow([]byte("jobs:\n  job:\n    steps:\n    - "+step+"\n"), []string{"test", "dist"})
		if err != nil || strings.Join(got, "\n") != want {
			t.Errorf("%s: %q, %v; want %q", step, got, err, want)
		}
	}
}
