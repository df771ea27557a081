// Package packages_test compares what the Helm chart and kustomize bring with what
// 'kubectl maint install' brings, and, where it is asked to, installs the chart.
package packages_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/setup"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

const (
	version = "v0.1.0" // of the chart in the repository
	home    = "maint-system"
)

func released() setup.Manifests {
	return setup.Manifests{Version: version, Namespace: home, Image: "kubectl-maint/agent:" + version}
}

// path is a file of the repository.
func path(t testing.TB, parts ...string) string {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(append([]string{root}, parts...)...)
}

// tool runs a binary that make built.
func tool(t testing.TB, name string, args ...string) (out, said string, err error) {
	t.Helper()
	binary := path(t, "bin", name)
	if _, missing := os.Stat(binary); missing != nil {
		t.Fatalf("bin/%s is not there: make tools-helm tools-kube", name)
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+os.TempDir()+"/maint-helm", "HELM_DATA_HOME="+os.TempDir()+"/maint-helm", "HELM_CONFIG_HOME="+os.TempDir()+"/maint-helm")
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// templated is what 'helm template' makes of values.
func templated(t testing.TB, values map[string]any) (text, said string, err error) {
	t.Helper()
	return templatedIn(t, home, values)
}

func templatedIn(t testing.TB, namespace string, values map[string]any) (text, said string, err error) {
	t.Helper()
	b, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "maint-values-") // not t.TempDir: helm parts its files at commas, and names of tests have some
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "values.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return tool(t, "helm", "template", "maint", path(t, "manifests", "chart"), "--namespace", namespace, "--values", file)
}

type objects map[string]map[string]any

// read gives the objects in a text, by kind and name. Those that Helm makes only to
// delete them are none.
func read(t testing.TB, text string) objects {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	out := objects{}
	for {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if string(raw) == "null" || len(raw) == 0 {
			continue
		}
		if err := u.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		if u.GetAnnotations()["helm.sh/hook"] == "post-delete" {
			continue
		}
		name := u.GetKind() + "/" + u.GetName()
		if out[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		out[name] = u.Object
	}
}

// installed are the objects of install.
func installed(t testing.TB, m setup.Manifests) objects {
	t.Helper()
	all, err := m.Objects()
	if err != nil {
		t.Fatal(err)
	}
	out := objects{}
	for _, u := range all {
		out[u.GetKind()+"/"+u.GetName()] = u.Object
	}
	return out
}

// at is a field of an object that has to be there.
func at(t testing.TB, object map[string]any, fields ...string) any {
	t.Helper()
	v, there, err := unstructured.NestedFieldNoCopy(object, fields...)
	if err != nil || !there {
		t.Fatalf("%s: there is no %s: %v", fmt.Sprint(object["kind"]), strings.Join(fields, "."), err)
	}
	return v
}
