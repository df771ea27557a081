// Command manifests writes what others install the agent with, from what
// 'kubectl maint install' renders: agent.yaml and admission/ as it prints them, the
// templates of the Helm chart, and the base and components of kustomize.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/setup"
)

func main() {
	out := flag.String("o", "manifests", "the folder to write into")
	version := flag.String("version", "v0.1.0", "the version that they install")
	rules := flag.String("monitoring", filepath.Join("manifests", "monitoring"), "the folder with what Prometheus needs")
	flag.Parse()
	if err := run(*out, *version, *rules); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func run(dir, version, rules string) error {
	files, err := generate(setup.Manifests{Version: version, Namespace: annotations.DefaultNamespace, Image: "kubectl-maint/agent:" + version})
	if err != nil {
		return err
	}
	if err := monitoring(rules, files); err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate are the files, by path.
func generate(m setup.Manifests) (map[string]string, error) {
	files := map[string]string{}
	for _, write := range []func(setup.Manifests, map[string]string) error{plain, chart, kustomize} {
		if err := write(m, files); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// plain is what install prints.
func plain(m setup.Manifests, files map[string]string) error {
	text, err := m.Render()
	files["agent.yaml"] = text
	return err
}
