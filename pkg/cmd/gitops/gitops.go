// Package gitops reads from files what kustomize, Flux, Argo CD and Helm make of the documents in
// them, and says which step of a plan such a tool may undo.
package gitops

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
)

// Tools is what files show of the tools that apply documents to a cluster.
type Tools struct {
	Hashed      []Generator
	generated   map[string][]Generator // by the absolute path of a file that generators read
	applied     []Substitution         // all Kustomizations of Flux, also those that are not among the files
	Substitutes []Substitution
	Owners      []string // their kinds in the files, without duplicates
	charts      []string // folders of Helm charts
}

// Generator is a configMapGenerator of a kustomization.yaml that makes documents.
type Generator struct {
	File string
	Line int
	Name string
	// Verbatim says that what it makes keeps Flux from substituting variables.
	Verbatim bool
}

// Substitution is a Kustomization of Flux, which may replace variables in what it applies.
type Substitution struct {
	File, Name string
	path       string // of the folder that it applies
	roots      []string
	tree       bool // not named itself, but in the working tree of files that were
}

// Read looks in files for what kustomize, Flux, Argo CD and Helm do with the documents.
// Unreadable files are ignored.
func Read(files []source.File) Tools {
	out := Tools{generated: map[string][]Generator{}}
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
		for _, part := range source.SplitYAML(f.Text) {
			var root yaml.Node
			if err := yaml.Unmarshal(part, &root); err == nil && len(root.Content) > 0 {
				out.take(f, line, root.Content[0], roots)
			}
			line += bytes.Count(part, []byte("\n"))
		}
	}
	return out
}

func (g *Tools) take(f source.File, line int, n *yaml.Node, roots []string) {
	group, _, _ := strings.Cut(source.ScalarIn(n, "apiVersion"), "/")
	kind := source.ScalarIn(n, "kind")
	isKustomize := group == "kustomize.config.k8s.io" || group == "" && source.IsKustomization(f.Path)
	switch {
	case isKustomize:
		g.generators(f.Path, line, n)
	case group == "kustomize.toolkit.fluxcd.io" && kind == "Kustomization", group == "helm.toolkit.fluxcd.io" && kind == "HelmRelease", group == "argoproj.io" && kind == "Application":
		if !slices.Contains(g.Owners, kind) {
			g.Owners = append(g.Owners, kind)
		}
		spec := source.ValueOf(n, "spec")
		if kind != "Kustomization" {
			return
		}
		flux := Substitution{File: f.Path, Name: source.ScalarIn(source.ValueOf(n, "metadata"), "name"), path: source.ScalarIn(spec, "path"), roots: roots}
		g.applied = append(g.applied, flux)
		if source.ValueOf(spec, "postBuild") != nil {
			g.Substitutes = append(g.Substitutes, flux)
		}
	}
}

// generators finds the generators of documents, and those that make ours under changing names.
func (g *Tools) generators(file string, line int, n *yaml.Node) {
	all := source.ValueOf(n, "generatorOptions")
	list := source.ValueOf(n, "configMapGenerator")
	if list == nil {
		return
	}
	for _, entry := range list.Content {
		own := source.ValueOf(entry, "options")
		made := Generator{File: file, Line: line + entry.Line - 1, Name: source.ScalarIn(entry, "name"), Verbatim: verbatim(own, "annotations", "labels") || verbatim(all, "annotations", "labels") || verbatim(n, "commonAnnotations", "commonLabels")}
		g.reads(made, entry)
		marked := source.ScalarIn(source.ValueOf(own, "labels"), annotations.LabelKind) + source.ScalarIn(source.ValueOf(all, "labels"), annotations.LabelKind)
		hashed := source.ScalarIn(all, "disableNameSuffixHash") != "true" && source.ScalarIn(own, "disableNameSuffixHash") != "true"
		if hashed && (marked != "" || makesOurs(entry)) {
			g.Hashed = append(g.Hashed, made)
		}
	}
}

// SubstituteAnnotation with the value disabled, as an annotation or a label, keeps Flux from
// substituting variables in an object.
const SubstituteAnnotation = "kustomize.toolkit.fluxcd.io/substitute"

// verbatim says whether one of some maps in a mapping has that annotation or label.
func verbatim(n *yaml.Node, maps ...string) bool {
	return slices.ContainsFunc(maps, func(name string) bool {
		return source.ScalarIn(source.ValueOf(n, name), SubstituteAnnotation) == "disabled"
	})
}

// reads notes which files a generator reads: orders.yaml, or plan.yaml=plans/orders.yaml.
func (g *Tools) reads(made Generator, entry *yaml.Node) {
	files := source.ValueOf(entry, "files")
	if files == nil {
		return
	}
	for _, item := range files.Content {
		path := item.Value
		if _, after, renamed := strings.Cut(path, "="); renamed {
			path = after
		}
		at, err := filepath.Abs(filepath.Join(filepath.Dir(made.File), path))
		if err != nil {
			continue
		}
		g.generated[at] = append(g.generated[at], made)
	}
}

// GeneratorsOf are the generators that make documents of a file.
func (g *Tools) GeneratorsOf(file string) []Generator {
	at, err := filepath.Abs(file)
	if err != nil {
		return nil
	}
	return g.generated[at]
}

// OwnersOf are the kinds of the tools that may keep what a document describes: those among the files,
// and Flux where a Kustomization elsewhere in the tree applies the document's file.
func (g *Tools) OwnersOf(file string) []string {
	const kind = "Kustomization"
	applies := func(s Substitution) bool { return s.Applies(file) }
	if slices.Contains(g.Owners, kind) || !slices.ContainsFunc(g.applied, applies) {
		return g.Owners
	}
	return append(slices.Clone(g.Owners), kind)
}

// makesOurs says whether a generator's files or literals have the key of a document of ours.
func makesOurs(entry *yaml.Node) bool {
	for _, field := range []string{"files", "literals"} {
		list := source.ValueOf(entry, field)
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

// SubstitutedBy is the first Kustomization that replaces variables in a file; false: none does.
func (g *Tools) SubstitutedBy(file string) (Substitution, bool) {
	i := slices.IndexFunc(g.Substitutes, func(s Substitution) bool { return s.Applies(file) })
	if i < 0 {
		return Substitution{}, false
	}
	return g.Substitutes[i], true
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
func (g Tools) Chart(file string) string {
	for _, chart := range g.charts {
		if strings.HasPrefix(file, filepath.Join(chart, "templates")+string(filepath.Separator)) {
			return chart
		}
	}
	return ""
}
