package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/savings"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Document is one document in a file.
type Document struct {
	File   string
	Name   string
	Kind   string // plan, agent-config, or an unknown word
	Text   string
	line   int                // of the text's first line in the file, from 1
	block  bool               // the text's lines are lines of the file
	ics    bool               // the text is iCalendar
	Object *corev1.ConfigMap  // nil for a bare document
	Lines  document.Positions // of the manifest's own fields, in the file
}

// Fault is a fault with its place.
type Fault struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Path    string `json:"path"`
	Message string `json:"message"`
}

// Place is where the fault is: FILE:LINE.
func (f Fault) Place() string { return fmt.Sprintf("%s:%d", f.File, f.Line) }

// String is the fault on one line, in the format that editors read.
func (f Fault) String() string {
	if f.Path == "" {
		return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message)
	}
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Path, f.Message)
}

// File is the content of a file.
type File struct {
	Path string
	Root string // what was named: the file, or a folder above it
	Text []byte
}

// ReadFiles reads files, the documents in folders, and "-" for standard input.
func ReadFiles(paths []string, stdin io.Reader) ([]File, error) {
	var out []File
	for _, path := range paths {
		if path == "-" {
			text, err := io.ReadAll(stdin)
			if err != nil {
				return nil, fmt.Errorf("read standard input: %w", err)
			}
			out = append(out, File{Path: "-", Root: "-", Text: text})
			continue
		}
		err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || file != path && !isDocument(file) {
				return err
			}
			text, err := os.ReadFile(file)
			if err == nil {
				out = append(out, File{Path: file, Root: path, Text: text})
			}
			return err
		})
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("the path %q does not exist", path)
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	return out, nil
}

// ReadDocuments are the documents of ours in files, folders and "-" for standard input.
func ReadDocuments(paths []string, stdin io.Reader) ([]Document, []Fault, error) {
	files, err := ReadFiles(paths, stdin)
	if err != nil {
		return nil, nil, err
	}
	docs, faults := DocumentsIn(files)
	return docs, faults, nil
}

// DocumentsIn are the documents of ours in files that were read.
func DocumentsIn(files []File) (docs []Document, faults []Fault) {
	for _, f := range files {
		d, found := Split(f.Path, f.Text)
		docs, faults = append(docs, d...), append(faults, found...)
	}
	return docs, faults
}

func isDocument(file string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".ics"}, filepath.Ext(file)) || IsKustomization(file)
}

// namedAfter is the name of a document without a manifest: that of its file.
func namedAfter(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	if !document.DNSLabel(name) {
		return ""
	}
	return name
}

// Split finds our documents in a file with several. Others are ignored.
func Split(file string, text []byte) ([]Document, []Fault) {
	var docs []Document
	var faults []Fault
	if filepath.Ext(file) == ".ics" {
		return []Document{{File: file, Name: namedAfter(file), Kind: annotations.KindCalendar, Text: string(text), line: 1, block: true, ics: true}}, nil
	}
	line := 1
	for _, part := range SplitYAML(text) {
		d, found := readPart(file, line, part)
		docs, faults = append(docs, d...), append(faults, found...)
		line += bytes.Count(part, []byte("\n"))
	}
	return docs, faults
}

// SplitYAML splits a stream at its document markers, and keeps every line.
func SplitYAML(text []byte) [][]byte {
	var parts [][]byte
	var part []byte
	for _, l := range bytes.SplitAfter(text, []byte("\n")) {
		if bytes.HasPrefix(l, []byte("---")) && len(bytes.TrimSpace(part)) > 0 {
			parts = append(parts, part)
			part = nil
		}
		part = append(part, l...)
	}
	return append(parts, part)
}

// readPart reads one document of a stream; line is its first line in the file.
func readPart(file string, line int, text []byte) ([]Document, []Fault) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		f := document.YAMLFault(err, text)
		return nil, []Fault{{File: file, Line: line + max(f.Line-1, 0), Message: f.Message}}
	}
	if len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode {
		return nil, nil // only comments, or somebody's list
	}
	return readNode(file, line, text, root.Content[0])
}

func readNode(file string, line int, text []byte, n *yaml.Node) ([]Document, []Fault) {
	version, kind := ScalarIn(n, "apiVersion"), ScalarIn(n, "kind")
	switch {
	case kind == "List" || kind == "ConfigMapList":
		return readList(file, line, n)
	case kind == "ConfigMap" && version == "v1":
		return readManifest(file, line, text, n)
	case kind == "Namespace" && version == "v1":
		return readNamespace(file, line, text, n)
	case strings.HasPrefix(version, "maint.dev") || version == "" && slices.Contains([]string{"Plan", "HibernatePlan", "Policy", "Calendar", "StepTemplate", connector.CloudProvider, connector.K8SCluster, "AgentConfig"}, kind):
		return []Document{{File: file, Name: namedAfter(file), Kind: documentKind(kind), Text: string(text), line: line, block: true}}, nil
	}
	return nil, nil
}

// documentKind is the kind in a document's label.
func documentKind(kind string) string {
	known := map[string]string{
		"AgentConfig": annotations.KindAgentConfig, "HibernatePlan": annotations.KindHibernatePlan, "Policy": annotations.KindPolicy,
		"Calendar": annotations.KindCalendar, "StepTemplate": annotations.KindStepTemplate, connector.CloudProvider: annotations.KindConnector, connector.K8SCluster: annotations.KindConnector,
	}
	if k := known[kind]; k != "" {
		return k
	}
	return annotations.KindPlan // which reports the wrong word
}

func readList(file string, line int, n *yaml.Node) (docs []Document, faults []Fault) {
	items := ValueOf(n, "items")
	if items == nil {
		return nil, nil
	}
	for _, item := range items.Content {
		text, err := yaml.Marshal(item)
		if err != nil || item.Kind != yaml.MappingNode {
			continue
		}
		d, found := readNode(file, line, text, item)
		docs, faults = append(docs, d...), append(faults, found...)
	}
	return docs, faults
}

// readManifest reads a ConfigMap of ours. It reports faults of the manifest that kubectl apply
// would not find.
func readManifest(file string, line int, text []byte, n *yaml.Node) ([]Document, []Fault) {
	d := Document{File: file, Object: &corev1.ConfigMap{}, Lines: manifestLines(line, n)}
	err := sigsyaml.UnmarshalStrict(text, d.Object)
	labels := ValueOf(ValueOf(n, "metadata"), "labels")
	d.Kind = ScalarIn(labels, annotations.LabelKind)
	data := ValueOf(n, "data")
	if d.Kind == "" && !looksLikeOurs(data) {
		return nil, nil
	}
	d.ics = ValueOf(data, annotations.DataICS) != nil
	if err != nil {
		return nil, []Fault{{File: file, Line: d.Lines[""], Message: "this is no ConfigMap: " + strings.ReplaceAll(err.Error(), "\n", " ")}}
	}
	d.Name, d.line = d.Object.Name, d.Lines.Line("data")
	if data != nil && len(data.Content) == 2 {
		v := data.Content[1]
		d.Text, d.line = v.Value, line+v.Line-1
		if d.block = v.Style == yaml.LiteralStyle; d.block {
			d.line++ // the text begins below its key
		}
	}
	return []Document{d}, nil
}

// looksLikeOurs says whether a ConfigMap without our label has the data of one of our documents. A
// key such as step.yaml alone does not count.
func looksLikeOurs(data *yaml.Node) bool {
	return slices.ContainsFunc([]string{annotations.DataPlan, annotations.DataPolicy, annotations.DataICS, annotations.DataDates, annotations.DataConnector}, func(key string) bool { return ValueOf(data, key) != nil }) ||
		strings.Contains(ScalarIn(data, annotations.DataTemplate), "kind: StepTemplate")
}

// KindNamespace marks a Namespace, whose annotations may freeze or pause what is in it.
const KindNamespace = "namespace"

// readNamespace reads a Namespace that has annotations of ours.
func readNamespace(file string, line int, text []byte, n *yaml.Node) ([]Document, []Fault) {
	d := Document{File: file, Kind: KindNamespace, Object: &corev1.ConfigMap{}, Lines: manifestLines(line, n), line: line}
	var whole struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := sigsyaml.Unmarshal(text, &whole); err != nil {
		return nil, nil //nolint:nilerr // kubectl reports what is wrong with it
	}
	d.Object.ObjectMeta, d.Name = whole.Metadata, whole.Metadata.Name
	for key := range d.Object.Annotations {
		if strings.HasPrefix(key, annotations.IntentPrefix) {
			return []Document{d}, nil
		}
	}
	return nil, nil
}

// manifestLines are the lines of the manifest's fields that may have faults.
func manifestLines(line int, n *yaml.Node) document.Positions {
	lines := document.Positions{"": line + n.Line - 1}
	metadata := ValueOf(n, "metadata")
	for path, in := range map[string]*yaml.Node{"": n, "metadata": metadata, "metadata.labels": ValueOf(metadata, "labels"), "metadata.annotations": ValueOf(metadata, "annotations")} {
		if in == nil || in.Kind != yaml.MappingNode {
			continue
		}
		for i := 0; i+1 < len(in.Content); i += 2 {
			lines[fieldPath(path, in.Content[i].Value)] = line + in.Content[i].Line - 1
		}
	}
	return lines
}

// fieldPath is a field below a path; a key with a dot or a slash is in brackets.
func fieldPath(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./"):
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// ValueOf is the value of a key of a mapping; nil: it is no mapping, or has no such key.
func ValueOf(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// ScalarIn is the text of a key of a mapping; empty: there is none.
func ScalarIn(n *yaml.Node, name string) string {
	if v := ValueOf(n, name); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

// Check finds all faults of a document, with their lines in the file.
func (d Document) Check() []Fault {
	faults := d.manifestFaults()
	switch d.Kind {
	case annotations.KindPlan:
		faults = append(faults, d.planFaults()...)
	case annotations.KindHibernatePlan:
		faults = append(faults, d.hibernateFaults()...)
	case annotations.KindPolicy:
		faults = append(faults, append(d.policy().Faults, d.intentFaults()...)...)
	case annotations.KindCalendar:
		_, own := d.calendar()
		faults = append(faults, own...)
	case annotations.KindStepTemplate:
		faults = append(faults, d.templateFaults()...)
	case annotations.KindConnector:
		faults = append(faults, d.connectorFaults()...)
	case KindNamespace:
		faults = append(faults, d.intentFaults()...)
	case annotations.KindAgentConfig:
		faults = append(faults, d.textFaults(func(text []byte) document.Faults {
			_, own := agentconfig.Parse(text)
			return own
		})...)
	case annotations.KindPrices:
		faults = append(faults, d.textFaults(func(text []byte) document.Faults {
			_, own := savings.ParsePrices(text)
			return own
		})...)
	}
	out := make([]Fault, len(faults))
	for i, f := range faults {
		out[i] = Fault{File: d.File, Line: d.LineOf(f), Path: f.Path, Message: f.Message}
	}
	slices.SortStableFunc(out, func(a, b Fault) int { return a.Line - b.Line })
	return out
}

// textFaults are the faults of a document that is its text alone, under the key and the name that it
// must have.
func (d Document) textFaults(parse func([]byte) document.Faults) document.Faults {
	if d.Object == nil {
		return parse([]byte(d.Text))
	}
	text, fault := annotations.DocumentText(d.Object)
	if fault != nil {
		return append(annotations.NameFaults(d.Object, "a document"), *fault)
	}
	return append(annotations.NameFaults(d.Object, "a document"), parse([]byte(text))...)
}

// LineOf is the line of a fault in the file.
func (d Document) LineOf(f document.Fault) int {
	switch {
	case d.Object != nil && (strings.HasPrefix(f.Path, "metadata") || f.Path == "data"):
		return d.Lines.Line(f.Path)
	case f.Line > 0 && d.block:
		return d.line + f.Line - 1
	}
	return d.line
}

// LineAt is the line of the first occurrence of a text in the document.
func (d Document) LineAt(text string) int {
	before, _, found := strings.Cut(d.Text, text)
	if !found || !d.block {
		return d.line
	}
	return d.line + strings.Count(before, "\n")
}

// manifestFaults are the faults of the manifest around a document.
func (d Document) manifestFaults() document.Faults {
	var faults document.Faults
	const label = "metadata.labels[" + annotations.LabelKind + "]"
	switch d.Kind {
	case annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindAgentConfig, annotations.KindPolicy, annotations.KindCalendar, annotations.KindStepTemplate, annotations.KindConnector, annotations.KindPrices, KindNamespace:
	case "":
		faults = append(faults, document.Fault{Path: "metadata.labels", Message: fmt.Sprintf("lacks %s: %s, without which no agent looks at it", annotations.LabelKind, d.kindOfData())})
	case annotations.KindRun, annotations.KindLedger, annotations.KindRestore, annotations.KindGate, annotations.KindHeartbeat:
		faults = append(faults, document.Fault{Path: label, Message: fmt.Sprintf("a %s is written by the agent alone", d.Kind)})
	default:
		faults = append(faults, document.Fault{Path: label, Message: fmt.Sprintf("%q is no kind of document; available are %s, %s, %s, %s, %s, %s, %s and %s", d.Kind, annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy, annotations.KindCalendar, annotations.KindStepTemplate, annotations.KindConnector, annotations.KindPrices, annotations.KindAgentConfig)})
	}
	if d.Object != nil && d.Name == "" {
		faults = append(faults, document.Fault{Path: "metadata.name", Message: "is missing: a document is called by its name"})
	}
	return faults
}

func (d Document) planFaults() document.Faults {
	if d.Object == nil {
		spec, faults := plan.Parse([]byte(d.Text), d.Name)
		return WithDashHints(d.Text, spec, faults)
	}
	spec, faults := annotations.Plan(d.Object)
	return WithDashHints(d.Text, spec, append(faults, d.intentFaults()...))
}

func (d Document) connectorFaults() document.Faults {
	if d.Object == nil {
		_, faults := connector.Parse([]byte(d.Text))
		return faults
	}
	_, faults := annotations.Connector(d.Object)
	return faults
}

// intentFaults are those of the annotations around a document.
func (d Document) intentFaults() document.Faults {
	if d.Object == nil {
		return nil
	}
	in := annotations.Intent(d.Object.Annotations)
	if in.Skip.Next {
		in.Faults = append(in.Faults, document.Fault{Path: annotations.Skip, Message: "next is for people: a file would bring it back each time it is applied; name the slot, or until:<instant>"})
	}
	for i := range in.Faults {
		in.Faults[i].Path = fieldPath("metadata.annotations", in.Faults[i].Path)
	}
	return in.Faults
}

// kindOfData is the kind of a ConfigMap without our label, by its data.
func (d Document) kindOfData() string {
	switch {
	case d.Object == nil:
	case d.Object.Data[annotations.DataPolicy] != "":
		return annotations.KindPolicy
	case d.Object.Data[annotations.DataICS]+d.Object.Data[annotations.DataDates] != "":
		return annotations.KindCalendar
	case d.Object.Data[annotations.DataTemplate] != "":
		return annotations.KindStepTemplate
	case d.Object.Data[annotations.DataConnector] != "":
		return annotations.KindConnector
	case d.Object.Data[annotations.DataPrices] != "":
		return annotations.KindPrices
	case strings.Contains(d.Object.Data[annotations.DataPlan], "kind: HibernatePlan"):
		return annotations.KindHibernatePlan
	}
	return annotations.KindPlan
}

// policy reads a policy with its annotations.
func (d Document) policy() policy.State {
	if d.Object != nil {
		return annotations.Policy(d.Object)
	}
	spec, faults := policy.Parse([]byte(d.Text))
	return policy.State{Name: d.Name, Spec: spec, Faults: faults}
}

func (d Document) calendar() (*schedule.Calendar, document.Faults) {
	switch {
	case d.Object != nil:
		return annotations.Calendar(d.Object)
	case d.ics:
		return policy.ParseCalendarICS([]byte(d.Text))
	}
	return policy.ParseCalendarYAML([]byte(d.Text))
}

// OnePlan is the only plan in files, without faults. Other documents, such as its templates, may
// have some.
func OnePlan(c *factory.Factory, files []File) (Document, plan.Spec, error) {
	docs, broken := DocumentsIn(files)
	w := NewSet(c, docs)
	for _, d := range docs {
		if d.Kind == annotations.KindPlan {
			broken = append(broken, d.Check()...)
		}
	}
	for _, p := range w.Plans {
		broken = append(broken, w.Use(p, c.OfflineAgent()).Faults...)
	}
	if len(broken) > 0 {
		return Document{}, plan.Spec{}, FaultyError(broken)
	}
	if len(w.Plans) != 1 {
		return Document{}, plan.Spec{}, fmt.Errorf("%s must hold one plan, and holds %s", files[0].Root, view.Counted(len(w.Plans), "plan"))
	}
	only := w.Plans[0].Source
	spec, _ := plan.Parse([]byte(only.Text), only.Name)
	return only, spec, nil
}

// IsKustomization says whether kustomize reads a file, by its name.
func IsKustomization(file string) bool {
	return slices.Contains([]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}, filepath.Base(file))
}
