package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// sourced is one document of ours as it stands in a file.
type sourced struct {
	file   string
	line   int // of the document's first line in the file, from 1
	name   string
	kind   string // plan or agent-config
	object *corev1.ConfigMap
	text   string
}

// fileFault is a fault with where it stands.
type fileFault struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Path    string `json:"path"`
	Message string `json:"message"`
}

// String is the fault on one line, as editors read it.
func (f fileFault) String() string {
	if f.Path == "" {
		return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message)
	}
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Path, f.Message)
}

// readSources reads files, folders and "-" for standard input.
func readSources(paths []string, stdin io.Reader) ([]sourced, []fileFault, error) {
	var docs []sourced
	var faults []fileFault
	take := func(file string, text []byte) {
		d, f := splitDocuments(file, text)
		docs, faults = append(docs, d...), append(faults, f...)
	}
	for _, path := range paths {
		if path == "-" {
			text, err := io.ReadAll(stdin)
			if err != nil {
				return nil, nil, fmt.Errorf("read standard input: %w", err)
			}
			take("-", text)
			continue
		}
		err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || file != path && !isYAML(file) {
				return err
			}
			text, err := os.ReadFile(file)
			if err == nil {
				take(file, text)
			}
			return err
		})
		if err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	return docs, faults, nil
}

func isYAML(file string) bool {
	ext := filepath.Ext(file)
	return ext == ".yaml" || ext == ".yml" || ext == ".json"
}

// splitDocuments finds the documents of ours in a file of many. What belongs to
// others is left alone.
func splitDocuments(file string, text []byte) ([]sourced, []fileFault) {
	var docs []sourced
	var faults []fileFault
	line := 1
	for _, part := range splitYAML(text) {
		d, ours, err := readDocument(file, line, part)
		switch {
		case err != nil:
			faults = append(faults, fileFault{File: file, Line: line, Message: err.Error()})
		case ours:
			docs = append(docs, d)
		}
		line += bytes.Count(part, []byte("\n"))
	}
	return docs, faults
}

// splitYAML cuts a stream at its document markers and keeps every line.
func splitYAML(text []byte) [][]byte {
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

func readDocument(file string, line int, text []byte) (sourced, bool, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := sigsyaml.Unmarshal(text, &head); err != nil {
		return sourced{}, false, fmt.Errorf("this is no YAML: %w", err)
	}
	d := sourced{file: file, line: line}
	switch {
	case head.APIVersion == plan.APIVersion || head.APIVersion == "" && (head.Kind == "Plan" || head.Kind == "AgentConfig"):
		d.text, d.name = string(text), strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		d.kind = map[string]string{"Plan": annotations.KindPlan, "AgentConfig": annotations.KindAgentConfig}[head.Kind]
		if !plan.DNSLabel(d.name) { // a file's name need not name a plan
			d.name = ""
		}
		return d, true, nil
	case head.Kind != "ConfigMap":
		return d, false, nil
	}
	d.object = &corev1.ConfigMap{}
	if err := sigsyaml.Unmarshal(text, d.object); err != nil {
		return d, false, fmt.Errorf("this is no ConfigMap: %w", err)
	}
	d.name, d.kind = d.object.Name, d.object.Labels[annotations.LabelKind]
	if d.kind != annotations.KindPlan && d.kind != annotations.KindAgentConfig {
		return d, false, nil
	}
	body, fault := annotations.DocumentText(d.object)
	if fault != nil {
		return d, false, errors.New(fault.String())
	}
	d.text, d.line = body, line+dataLine(text)
	return d, true, nil
}

// dataLine is how many lines before the first line of a ConfigMap's document
// stand in its manifest.
func dataLine(text []byte) int {
	var root yaml.Node
	if yaml.Unmarshal(text, &root) != nil || len(root.Content) == 0 {
		return 0
	}
	data := valueOf(root.Content[0], "data")
	if data == nil || len(data.Content) < 2 {
		return 0
	}
	value := data.Content[1]
	if value.Style == yaml.LiteralStyle || value.Style == yaml.FoldedStyle {
		return value.Line
	}
	return value.Line - 1
}

func valueOf(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// check is everything wrong with a document, in the file's own lines.
func (d sourced) check() []fileFault {
	var faults plan.Faults
	switch {
	case d.kind == annotations.KindPlan && d.object != nil:
		_, faults = annotations.Plan(d.object)
		faults = append(faults, intentFaultsInFile(d)...)
	case d.kind == annotations.KindPlan:
		_, faults = plan.Parse([]byte(d.text), d.name)
	case d.kind == annotations.KindAgentConfig:
		_, faults = plan.ParseAgentConfig([]byte(d.text))
	default:
		faults = plan.Faults{{Path: "kind", Message: "this kind is not available in this version; available are Plan and AgentConfig"}}
	}
	out := make([]fileFault, len(faults))
	for i, f := range faults {
		out[i] = fileFault{File: d.file, Line: d.line + max(f.Line-1, 0), Path: f.Path, Message: f.Message}
	}
	return out
}

// intentFaultsInFile reports intents that a file should not hold.
func intentFaultsInFile(d sourced) plan.Faults {
	in := annotations.Intent(d.object.Annotations)
	faults := in.Faults
	if in.Skip.Next {
		faults = append(faults, plan.Fault{Path: annotations.Skip, Message: "next is for people: a file would bring it back each time it is applied; name the slot, or until:<instant>"})
	}
	return faults
}
