package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// assets is the directory with the binaries of the control plane.
type assets string

// findAssets returns where the binaries that o needs are: the directory that
// MAINT_ASSETS names, or bin/ of this repository. A missing binary is an
// error, never a reason to skip: a test that did not run proves nothing.
func findAssets(o Options) (assets, error) {
	dir, err := assetsDir()
	if err != nil {
		return "", err
	}
	a := assets(dir)
	var missing []string
	for _, name := range binaries(o) {
		if _, err := os.Stat(a.path(name)); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("no %s in %s: run `make tools-kube`, or let MAINT_ASSETS name the directory that has them",
			strings.Join(missing, ", "), dir)
	}
	return a, nil
}

func binaries(o Options) []string {
	names := []string{"etcd", "kube-apiserver"}
	if o.ControllerManager {
		names = append(names, "kube-controller-manager")
	}
	if o.Scheduler {
		names = append(names, "kube-scheduler")
	}
	if o.Kwok {
		names = append(names, "kwok")
	}
	return names
}

func assetsDir() (string, error) {
	if dir := os.Getenv("MAINT_ASSETS"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "bin"), nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory: set MAINT_ASSETS to the directory with the binaries of `make tools-kube`")
		}
		dir = parent
	}
}

// Asset returns the path of a binary that `make tools-kube` builds, such as
// kubectl, and an error that says what to run when it is missing.
func Asset(name string) (string, error) {
	dir, err := assetsDir()
	if err != nil {
		return "", err
	}
	path := assets(dir).path(name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no %s in %s: run `make tools-kube`", name, dir)
	}
	return path, nil
}

func (a assets) path(name string) string {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(string(a), name)
}
