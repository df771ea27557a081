package gitops

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
)

// AddTrees adds what lies elsewhere: the Kustomizations of Flux in the Git working trees of the files,
// the generators there that read the files, and the Helm charts that the files are templates of. What
// they do to a linted file is reported, too. Unreadable files are ignored.
func (g *Tools) AddTrees(files []source.File) {
	var tops []string
	read := map[string]bool{}
	for _, f := range files {
		if f.Path == "-" {
			continue
		}
		if at, err := filepath.Abs(f.Path); err == nil {
			read[at] = true
		}
		g.addChart(f.Path)
		if top, ok := treeOf(f.Root); ok && !slices.Contains(tops, top) {
			tops = append(tops, top)
		}
	}
	for i := range g.Substitutes {
		g.Substitutes[i].roots = slices.Concat(g.Substitutes[i].roots, tops)
	}
	for _, top := range tops {
		more := Read(configuring(top, read))
		for _, s := range more.Substitutes {
			s.tree = true
			g.Substitutes = append(g.Substitutes, s)
		}
		for _, s := range more.applied {
			s.tree = true
			g.applied = append(g.applied, s)
		}
		for file, made := range more.generated {
			g.generated[file] = append(g.generated[file], made...)
		}
	}
}

// addChart adds the chart above a folder templates in a file's path.
func (g *Tools) addChart(file string) {
	for at := filepath.Dir(file); filepath.Dir(at) != at; at = filepath.Dir(at) {
		chart := filepath.Dir(at)
		if filepath.Base(at) != "templates" || slices.Contains(g.charts, chart) {
			continue
		}
		if _, err := os.Stat(filepath.Join(chart, "Chart.yaml")); err == nil {
			g.charts = append(g.charts, chart)
		}
	}
}

// treeOf is the top of the working tree of a file or folder; false: none.
func treeOf(path string) (string, bool) {
	at, err := filepath.Abs(path)
	for ; err == nil; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at, true
		}
		if filepath.Dir(at) == at {
			break
		}
	}
	return "", false
}

// Limits of the search in a tree (guesses: a repository of manifests has less).
const (
	mostInTree    = 20000
	largestInTree = 1 << 20
)

// configuring are the files of a tree that may configure Flux or kustomize, without those
// that were read already.
func configuring(top string, read map[string]bool) []source.File {
	var out []source.File
	seen := 0
	_ = filepath.WalkDir(top, func(file string, entry fs.DirEntry, err error) error {
		switch seen++; {
		case seen > mostInTree:
			return filepath.SkipAll
		case err != nil:
			return nil //nolint:nilerr // unreadable files are ignored
		case entry.IsDir() && file != top && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case !entry.Type().IsRegular() || read[file] || !source.IsKustomization(file) && !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(file)):
			return nil
		}
		if info, err := entry.Info(); err != nil || info.Size() > largestInTree {
			return nil //nolint:nilerr // as above
		}
		text, err := os.ReadFile(file)
		if err == nil && (source.IsKustomization(file) || bytes.Contains(text, []byte("kustomize.toolkit.fluxcd.io/")) && bytes.Contains(text, []byte("Kustomization"))) {
			out = append(out, source.File{Path: file, Root: top, Text: text})
		}
		return nil //nolint:nilerr // as above
	})
	return out
}
