package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

type lintOptions struct {
	*cli
	files  []string
	format string
	faults faults
}

func newLint(c *cli) *cobra.Command {
	o := &lintOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "lint -f FILE|FOLDER|-",
		Short: "All faults of all documents in files, with their lines",
		Long: `All faults of all documents in files and folders: manifests with ConfigMaps of
ours, or the documents themselves. No cluster is asked. Exit code 1 when there
are faults; warnings alone are 0.`,
		Example: "  kubectl maint lint -f examples/\n  cat plan.yaml | kubectl maint lint -f - -o json",
		Args:    cobra.NoArgs,
		RunE:    run(o),
	}
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "file or folder, or - for standard input")
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "json, or nothing for text")
	return cmd
}

// Complete has nothing to look up.
func (o *lintOptions) Complete(*cobra.Command, []string) error { return nil }

// Validate checks the flags.
func (o *lintOptions) Validate() error {
	if len(o.files) == 0 {
		o.faults.add("-f is missing: name a file or folder, or - for standard input")
	}
	if o.format != "" && o.format != "json" {
		o.faults.add("-o must be json, is %q", o.format)
	}
	return o.faults.err()
}

// Run prints the faults to Out, and warnings to ErrOut.
func (o *lintOptions) Run(context.Context) error {
	docs, found, err := readSources(o.files, o.In)
	if err != nil {
		return err
	}
	for _, d := range docs {
		found = append(found, d.check()...)
		found = append(found, unknownFields(d)...)
		for _, w := range warnings(d) {
			fmt.Fprintln(o.ErrOut, "warning: "+w.String())
		}
	}
	found = append(found, twice(docs)...)
	wrong, unmet := together(docs, o.cli)
	found = append(found, wrong...)
	for _, w := range unmet {
		fmt.Fprintln(o.ErrOut, "warning: "+w.String())
	}
	if err := o.print(found); err != nil {
		return err
	}
	if len(found) > 0 {
		return exit(CodeError, "%s in %s", counted(len(found), "fault"), counted(len(docs), "document"))
	}
	if len(docs) == 0 {
		fmt.Fprintln(o.ErrOut, "warning: no document of ours was found")
	}
	fmt.Fprintf(o.ErrOut, "%s without faults\n", counted(len(docs), "document"))
	return nil
}

// twice reports documents of one name: the last that is applied wins.
func twice(docs []sourced) []fileFault {
	first := map[string]sourced{}
	var out []fileFault
	for _, d := range docs {
		if d.object == nil || d.name == "" {
			continue
		}
		key := d.object.Namespace + "/" + d.name
		if other, seen := first[key]; seen {
			out = append(out, fileFault{File: d.file, Line: d.lines.Line("metadata.name"), Path: "metadata.name", Message: fmt.Sprintf("%s is the name of another document, in %s on line %d", d.name, other.file, other.lines.Line("metadata.name"))})
			continue
		}
		first[key] = d
	}
	return out
}

func (o *lintOptions) print(found []fileFault) error {
	if o.format == "json" {
		if found == nil {
			found = []fileFault{}
		}
		b, err := json.Marshal(map[string]any{"kind": "FaultList", "items": found})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(o.Out, string(b))
		return err
	}
	for _, f := range found {
		if _, err := fmt.Fprintln(o.Out, f); err != nil {
			return err
		}
	}
	return nil
}

// warnings are what is valid and probably not meant: a pause or a scale to zero
// that nothing undoes.
func warnings(d sourced) []fileFault {
	if d.kind != annotations.KindPlan {
		return nil
	}
	spec, _ := plan.Parse([]byte(d.text), d.name)
	lines, _ := plan.Decode([]byte(d.text), &plan.Document{})
	if len(spec.Finally) > 0 { // what it undoes is not ours to guess
		return nil
	}
	var out []fileFault
	walkSteps("spec.steps", spec.Steps, func(path string, s plan.Step) {
		if restore, _ := s.Properties["restoreAfter"].(bool); restore {
			return
		}
		if what := leaves(s); what != "" {
			out = append(out, fileFault{
				File: d.file, Line: d.lineOf(plan.Fault{Line: lines.Line(path)}), Path: path,
				Message: fmt.Sprintf("step %s %s, and nothing undoes it when a later step fails: add restoreAfter: true, or a step in finally", s.Name, what),
			})
		}
	})
	return out
}

// leaves says what a step leaves behind that hurts, if anything.
func leaves(s plan.Step) string {
	switch s.Type {
	case "scale":
		if fmt.Sprint(s.Properties["replicas"]) == "0" {
			return "scales to zero"
		}
	case "patch-object":
		return patchLeaves(s.Properties["patch"])
	case "label", "annotate":
		added, _ := plan.StringMap(s.Properties[map[string]string{"label": "labels", "annotate": "annotations"}[s.Type]])
		for key, value := range added {
			if name := key[strings.LastIndex(key, "/")+1:]; strings.Contains(name, "pause") && value != "false" {
				return "pauses its object"
			}
		}
	}
	return ""
}

// patchLeaves looks for a pause or a scale to zero in a patch of any type.
func patchLeaves(patch any) string {
	switch p := patch.(type) {
	case map[string]any:
		spec, _ := p["spec"].(map[string]any)
		if fmt.Sprint(spec["replicas"]) == "0" {
			return "scales to zero"
		}
		if spec["paused"] == true || spec["suspend"] == true {
			return "pauses its object"
		}
	case []any:
		for _, operation := range p {
			op, _ := operation.(map[string]any)
			switch path := fmt.Sprint(op["path"]); {
			case path == "/spec/replicas" && fmt.Sprint(op["value"]) == "0":
				return "scales to zero"
			case (path == "/spec/paused" || path == "/spec/suspend") && op["value"] == true:
				return "pauses its object"
			}
		}
	}
	return ""
}
