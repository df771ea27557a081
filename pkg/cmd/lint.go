package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
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
		mine := d.check()
		found = append(found, mine...)
		if len(mine) == 0 {
			for _, w := range warnings(d) {
				fmt.Fprintln(o.ErrOut, "warning: "+w.String())
			}
		}
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
	var out []fileFault
	for i, s := range spec.Steps {
		if undone(spec, s) {
			continue
		}
		if what := leaves(s); what != "" {
			out = append(out, fileFault{File: d.file, Line: d.line, Path: fmt.Sprintf("spec.steps[%d]", i), Message: "step " + s.Name + " " + what + ", and nothing undoes it when a later step fails: add restoreAfter: true, or a step in finally"})
		}
	}
	return out
}

// leaves says what a step leaves behind that hurts, if anything.
func leaves(s plan.Step) string {
	if s.Type == "scale" && fmt.Sprint(s.Properties["replicas"]) == "0" {
		return "scales to zero"
	}
	patch := fmt.Sprint(s.Properties["patch"])
	if s.Type == "patch-object" && strings.Contains(patch, "replicas:0") {
		return "scales to zero"
	}
	if s.Type == "patch-object" && (strings.Contains(patch, "paused:true") || strings.Contains(patch, "suspend:true")) {
		return "pauses its object"
	}
	return ""
}

func undone(spec plan.Spec, s plan.Step) bool {
	if restore, _ := s.Properties["restoreAfter"].(bool); restore {
		return true
	}
	return slices.ContainsFunc(spec.Finally, func(f plan.Step) bool {
		return f.Type == s.Type || f.Type == "patch-object" || f.Type == "scale"
	})
}
