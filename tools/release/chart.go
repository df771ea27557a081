package main

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// chart packs the Helm chart of this version, as 'helm package' lays it out, but with the
// same bytes every time; and what install prints and kustomize reads.
func (d dist) chart(ctx context.Context, from source) error {
	dir, err := os.MkdirTemp("", "maint-manifests-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(d.root, "manifests"))); err != nil {
		return err
	}
	if _, err := d.command(ctx, []string{"GOWORK=off"}, "go", "run", "./tools/manifests", "-o", dir, "-version", d.version); err != nil {
		return err
	}
	number := strings.TrimPrefix(d.version, "v")
	license, err := os.ReadFile(filepath.Join(d.root, "LICENSE"))
	if err != nil {
		return err
	}
	for name, of := range map[string]string{"kubectl-maint-chart-" + number + ".tgz": "chart", "kubectl-maint-manifests-" + number + ".tar.gz": "."} {
		top := "kubectl-maint"
		if of == "." {
			top = "manifests"
		}
		entries, err := tree(filepath.Join(dir, of), top)
		if err != nil {
			return err
		}
		entries = append(entries, entry{top + "/LICENSE", false, license})
		if err := pack(filepath.Join(d.out, name), entries, from.at); err != nil {
			return err
		}
	}
	return nil
}

// tree are the files of a folder, under another name.
func tree(dir, as string) ([]entry, error) {
	var out []entry
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		out = append(out, entry{path.Join(as, name), false, text})
		return err
	})
	return out, err
}
