package write

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/gitops"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

type lintOptions struct {
	*factory.Factory
	files  []string
	out    *print.Values
	faults exit.Faults
}

// NewLint reports all faults of documents in files.
func NewLint(c *factory.Factory) *cobra.Command {
	o := &lintOptions{Factory: c, out: print.NewValues()}
	cmd := &cobra.Command{
		Use:   "lint -f FILE|FOLDER|-",
		Short: "Check documents in files, and show all faults with their lines",
		Long: `Show all faults of all documents in files and folders. A file holds a document, or a
manifest of the ConfigMap that a document is in. If files of kustomize, Flux or Helm are
there too, lint warns about what these tools would change; of Flux's variables also where
its Kustomization is elsewhere in the files' Git working tree. No cluster is asked. The
exit code is 1 if there are faults; it is 0 if there are only warnings.`,
		Example: "  kubectl maint lint -f examples/\n  cat plan.yaml | kubectl maint lint -f - -o json",
		Args:    factory.NoNames,
		RunE:    factory.RunE(o),
	}
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "file or folder, or - for standard input")
	o.out.AddFlags(cmd)
	return cmd
}

// Complete has nothing to look up.
func (o *lintOptions) Complete(*cobra.Command, []string) error { return nil }

// Validate checks the flags.
func (o *lintOptions) Validate() error {
	if len(o.files) == 0 {
		o.faults.Add("-f is missing: name a file or folder, or - for standard input")
	}
	o.out.Check(&o.faults)
	return o.faults.Err()
}

// Run prints the faults to Out, and warnings to ErrOut.
func (o *lintOptions) Run(context.Context) error {
	files, err := source.ReadFiles(o.files, o.In)
	if err != nil {
		return err
	}
	docs, found := source.DocumentsIn(files)
	tools := gitops.Read(files)
	tools.AddTrees(files)
	helmHints(tools, found, files)
	found = append(found, gitOpsFaults(tools, docs)...)
	for _, d := range docs {
		found = append(found, faultsOf(d)...)
		for _, w := range warnings(d) {
			fmt.Fprintln(o.ErrOut, "warning: "+w.String())
		}
	}
	found = append(found, twice(docs)...)
	wrong, unmet := crossCheck(source.NewSet(o.Factory, docs), o.Factory, tools)
	found = append(found, wrong...)
	for _, w := range unmet {
		fmt.Fprintln(o.ErrOut, "warning: "+w.String())
	}
	if err := o.print(found); err != nil {
		return err
	}
	o.sayBare(docs, found)
	if len(found) > 0 {
		where := "in " + view.Counted(len(docs), "document")
		if len(docs) == 0 {
			where = "and no document that can be read"
		}
		return exit.Errorf(exit.CodeError, "%s %s", view.Counted(len(found), "fault"), where)
	}
	if len(docs) == 0 {
		fmt.Fprintln(o.ErrOut, "warning: "+source.NothingIn(o.files))
	}
	fmt.Fprintf(o.ErrOut, "%s without faults\n", view.Counted(len(docs), "document"))
	return nil
}

// sayBare says how documents without a manifest are applied: also those that have a fault, since
// metadata may be the fault.
func (o *lintOptions) sayBare(docs []source.Document, found []source.Fault) {
	for _, d := range docs {
		key := keyOfBare(d, slices.ContainsFunc(found, func(f source.Fault) bool { return f.File == d.File && f.Path == "metadata" }))
		if key == "" {
			continue
		}
		name := d.File
		if name == "-" {
			name = "what standard input holds"
		}
		fmt.Fprintf(o.ErrOut, "note: %s is no manifest: kubectl apply takes it as the text under %s in a ConfigMap with the label %s: %s\n", name, key, annotations.LabelKind, d.Kind)
	}
}

// keyOfBare is the ConfigMap key for a file's bare document; empty: it is in a ConfigMap, or it is of a
// kind that only tools put into one, and has no metadata.
func keyOfBare(d source.Document, metadata bool) string {
	switch {
	case d.Object != nil:
		return ""
	case d.Kind == annotations.KindPlan, d.Kind == annotations.KindHibernatePlan:
		return annotations.DataPlan
	case d.Kind == annotations.KindPolicy:
		return annotations.DataPolicy
	case !metadata:
		return ""
	case d.Kind == annotations.KindStepTemplate:
		return annotations.DataTemplate
	case d.Kind == annotations.KindConnector:
		return annotations.DataConnector
	case d.Kind == annotations.KindAgentConfig:
		return annotations.DataConfig
	case d.Kind == annotations.KindCalendar:
		return annotations.DataDates
	}
	return ""
}

// faultsOf are all faults of one document. Unknown names are only reported in valid expressions.
func faultsOf(d source.Document) []source.Fault {
	found := append(d.Check(), UnknownFields(d)...)
	wrong := map[string]bool{}
	for _, f := range found {
		wrong[f.Path] = true
	}
	return append(found, slices.DeleteFunc(UnknownNames(d), func(f source.Fault) bool { return wrong[f.Path] })...)
}

// twice reports documents with the same name: the last one that is applied wins.
func twice(docs []source.Document) []source.Fault {
	first := map[string]source.Document{}
	var out []source.Fault
	for _, d := range docs {
		if d.Object == nil || d.Name == "" {
			continue
		}
		key := d.Object.Namespace + "/" + d.Name
		if other, seen := first[key]; seen {
			out = append(out, source.Fault{File: d.File, Line: d.Lines.Line("metadata.name"), Path: "metadata.name", Message: fmt.Sprintf("%s is the name of another document, in %s on line %d", d.Name, other.File, other.Lines.Line("metadata.name"))})
			continue
		}
		first[key] = d
	}
	return out
}

func (o *lintOptions) print(found []source.Fault) error {
	if !o.out.Lines() {
		return print.Items(o.out, o.Out, "FaultList", found, source.Fault.Place)
	}
	for _, f := range found {
		if _, err := fmt.Fprintln(o.Out, f); err != nil {
			return err
		}
	}
	return nil
}

// warnings are about what is valid and probably not meant: a pause or a scale to zero that nothing
// undoes, a limit that is none, and off-hours that end otherwise than they read.
func warnings(d source.Document) []source.Fault {
	switch d.Kind {
	case annotations.KindPlan:
	case annotations.KindHibernatePlan:
		return hibernateWarnings(d)
	default:
		return nil
	}
	spec, _ := plan.Parse([]byte(d.Text), d.Name)
	lines, _ := document.Decode([]byte(d.Text), &plan.Document{})
	var out []source.Fault
	warn := func(path, format string, args ...any) {
		out = append(out, source.Fault{File: d.File, Line: d.LineOf(document.Fault{Line: lines.Line(path)}), Path: path, Message: fmt.Sprintf(format, args...)})
	}
	source.WalkSteps("spec.steps", spec.Steps, func(path string, s plan.Step) {
		if most := fmt.Sprint(s.Properties["maxUnavailable"]); s.Type == plan.TypeForEachNode && (most == "0" || most == "0%") {
			warn(path+".properties.maxUnavailable", "is %s, but one node may be unavailable all the same: a rollout has at least one place", most)
		}
		if restore, _ := s.Properties["restoreAfter"].(bool); restore || len(spec.Finally) > 0 { // finally may undo anything
			return
		}
		if what := leaves(s); what != "" {
			help := "add properties.restoreAfter: true, or a step in finally"
			if s.Type == "apply-object" { // which has no restoreAfter
				help = "add a step in finally"
			}
			warn(path, "step %s %s, and nothing undoes it when a later step fails: %s", s.Name, what, help)
		}
	})
	return out
}

// leaves says what a step leaves behind that does harm; empty: nothing.
func leaves(s plan.Step) string {
	switch s.Type {
	case "scale":
		if fmt.Sprint(s.Properties["replicas"]) == "0" {
			return "scales to zero"
		}
	case "patch-object":
		return patchLeaves(s.Properties["patch"])
	case "apply-object":
		return patchLeaves(s.Properties["object"])
	case "label", "annotate":
		return marksPaused(s.Properties[map[string]string{"label": "labels", "annotate": "annotations"}[s.Type]])
	}
	return ""
}

// marksPaused looks for a pause among labels or annotations.
func marksPaused(added any) string {
	values, _ := added.(map[string]any)
	for key, value := range values {
		text, set := value.(string) // a patch removes by null
		if name := key[strings.LastIndex(key, "/")+1:]; set && strings.Contains(name, "pause") && text != "false" {
			return "pauses its object"
		}
	}
	return ""
}

// patchLeaves looks for a pause or a scale to zero in a patch of any type, or in an object.
func patchLeaves(patch any) string {
	switch p := patch.(type) {
	case map[string]any:
		metadata, _ := p["metadata"].(map[string]any)
		if what := cmp.Or(marksPaused(metadata["annotations"]), marksPaused(metadata["labels"])); what != "" {
			return what
		}
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
