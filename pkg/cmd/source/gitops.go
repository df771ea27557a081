package source

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// GitOps is what files show of the tools that apply documents to a cluster.
type GitOps struct {
	Hashed      []Generator
	Substitutes []Substitution
	Owners      []string // their kinds in the files, without duplicates
	charts      []string // folders of Helm charts
}

// Generator is a configMapGenerator of a kustomization.yaml that makes a document with a hash in
// its name.
type Generator struct {
	File string
	Line int
	Name string
}

// Substitution is a Kustomization of Flux that replaces variables in what it applies.
type Substitution struct {
	File, Name string
	path       string // of the folder that it applies
	roots      []string
	tree       bool // not named itself, but in the working tree of files that were
}

// ReadGitOps looks in files for what kustomize, Flux, Argo CD and Helm do with the documents.
// Unreadable files are ignored.
func ReadGitOps(files []File) GitOps {
	var out GitOps
	var roots []string
	for _, f := range files {
		if !slices.Contains(roots, f.Root) {
			roots = append(roots, f.Root)
		}
		if filepath.Base(f.Path) == "Chart.yaml" {
			out.charts = append(out.charts, filepath.Dir(f.Path))
		}
	}
	for _, f := range files {
		line := 1
		for _, part := range splitYAML(f.Text) {
			var root yaml.Node
			if err := yaml.Unmarshal(part, &root); err == nil && len(root.Content) > 0 {
				out.take(f, line, root.Content[0], roots)
			}
			line += bytes.Count(part, []byte("\n"))
		}
	}
	return out
}

func (g *GitOps) take(f File, line int, n *yaml.Node, roots []string) {
	group, _, _ := strings.Cut(scalarIn(n, "apiVersion"), "/")
	kind := scalarIn(n, "kind")
	isKustomize := group == "kustomize.config.k8s.io" || group == "" && isKustomization(f.Path)
	switch {
	case isKustomize:
		g.generators(f.Path, line, n)
	case group == "kustomize.toolkit.fluxcd.io" && kind == "Kustomization", group == "helm.toolkit.fluxcd.io" && kind == "HelmRelease", group == "argoproj.io" && kind == "Application":
		if !slices.Contains(g.Owners, kind) {
			g.Owners = append(g.Owners, kind)
		}
		spec := valueOf(n, "spec")
		if kind == "Kustomization" && valueOf(spec, "postBuild") != nil {
			g.Substitutes = append(g.Substitutes, Substitution{File: f.Path, Name: scalarIn(valueOf(n, "metadata"), "name"), path: scalarIn(spec, "path"), roots: roots})
		}
	}
}

// isKustomization says whether kustomize reads a file, by its name.
func isKustomization(file string) bool {
	return slices.Contains([]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}, filepath.Base(file))
}

// generators finds the generators that make our documents under changing names.
func (g *GitOps) generators(file string, line int, n *yaml.Node) {
	all := valueOf(n, "generatorOptions")
	list := valueOf(n, "configMapGenerator")
	if list == nil || scalarIn(all, "disableNameSuffixHash") == "true" {
		return
	}
	for _, entry := range list.Content {
		own := valueOf(entry, "options")
		marked := scalarIn(valueOf(own, "labels"), annotations.LabelKind) + scalarIn(valueOf(all, "labels"), annotations.LabelKind)
		if scalarIn(own, "disableNameSuffixHash") == "true" || marked == "" && !makesOurs(entry) {
			continue
		}
		g.Hashed = append(g.Hashed, Generator{File: file, Line: line + entry.Line - 1, Name: scalarIn(entry, "name")})
	}
}

// makesOurs says whether a generator's files or literals have the key of a document of ours.
func makesOurs(entry *yaml.Node) bool {
	for _, field := range []string{"files", "literals"} {
		list := valueOf(entry, field)
		if list == nil {
			continue
		}
		for _, item := range list.Content {
			key, _, given := strings.Cut(item.Value, "=")
			if !given {
				key = filepath.Base(item.Value)
			}
			if slices.Contains([]string{annotations.DataPlan, annotations.DataPolicy, annotations.DataICS, annotations.DataDates, annotations.DataTemplate, annotations.DataConnector}, key) {
				return true
			}
		}
	}
	return false
}

// Applies says whether a file is in the folder that is applied, below any folder that may be the
// top of the repository.
func (s Substitution) Applies(file string) bool {
	path := filepath.Clean("./" + strings.TrimPrefix(s.path, "/"))
	if path == "." && !s.tree {
		return true
	}
	return slices.ContainsFunc(s.roots, func(root string) bool { return isBelow(filepath.Join(root, path), file) })
}

func isBelow(folder, file string) bool {
	from, err := filepath.Abs(folder)
	if err != nil {
		return false
	}
	to, err := filepath.Abs(file)
	if err != nil {
		return false
	}
	return strings.HasPrefix(to, from+string(filepath.Separator))
}

// Chart is the folder of the Helm chart that a file is a template of; empty: none.
func (g GitOps) Chart(file string) string {
	for _, chart := range g.charts {
		if strings.HasPrefix(file, filepath.Join(chart, "templates")+string(filepath.Separator)) {
			return chart
		}
	}
	return ""
}
