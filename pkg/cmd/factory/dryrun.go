package factory

import (
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
)

// DryRun is --dry-run of commands that write, and their -o: their result is a line for people, or
// the objects that they wrote.
type DryRun struct {
	Mode    string
	runs    bool // the command asks for a run, which may be a dry run
	flags   *genericclioptions.PrintFlags
	printer printers.ResourcePrinter // of -o, kept so that YAML documents are separated
	wrote   []runtime.Object         // not printed yet
}

// RunMode is the --dry-run mode of commands that ask for a run: the run itself is a dry run.
const RunMode = "run"

// AddFlag adds --dry-run and -o.
func (d *DryRun) AddFlag(cmd *cobra.Command) {
	d.AddMode(cmd)
	d.AddOutput(cmd)
}

// AddMode adds --dry-run alone.
func (d *DryRun) AddMode(cmd *cobra.Command) {
	d.addMode(cmd, "client", `"none", "client" (nothing is sent) or "server" (sent, and not kept)`)
}

// AddRunMode adds --dry-run to a command that asks for a run. def is its value without an argument.
func (d *DryRun) AddRunMode(cmd *cobra.Command, def string) {
	d.runs = true
	d.addMode(cmd, def, `"none", "run" (a run that changes nothing: its steps are tried and shown), "client" (nothing is sent) or "server" (sent, and not kept)`)
}

func (d *DryRun) addMode(cmd *cobra.Command, def, usage string) {
	cmd.Flags().StringVar(&d.Mode, "dry-run", "none", usage)
	cmd.Flags().Lookup("dry-run").NoOptDefVal = def
	modes := []string{"none", "client", "server"}
	if d.runs {
		modes = append(modes, RunMode)
	}
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp))
}

// AddOutput adds -o.
func (d *DryRun) AddOutput(cmd *cobra.Command) {
	d.flags = newPrintFlags("")
	cmd.Flags().StringVarP(d.flags.OutputFormat, "output", "o", "", "json, yaml, name or jsonpath=…: prints what was written; or nothing for words")
	words := []string{"json", "yaml", "name", "jsonpath=", "go-template="}
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// UseOutput takes the format from a command's own -o.
func (d *DryRun) UseOutput(format string) { d.flags = newPrintFlags(format) }

func newPrintFlags(format string) *genericclioptions.PrintFlags {
	return genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme).WithDefaultOutput(format)
}

// Check refuses an unknown mode and an unknown format.
func (d *DryRun) Check(f *exit.Faults) {
	switch {
	case d.Mode == "none", d.Mode == "client", d.Mode == "server", d.runs && d.Mode == RunMode:
	case d.runs:
		f.Add("--dry-run: %q is not one of none, run, client, server", d.Mode)
	default:
		f.Add("--dry-run: %q is not one of none, client, server", d.Mode)
	}
	if d.Format() == "" {
		return
	}
	printer, err := d.flags.ToPrinter()
	if err != nil {
		f.Add("-o %s: what was written is printed as json, yaml, name, jsonpath=… or go-template=…", d.Format())
		return
	}
	d.printer = printer
}

// Format is the format of -o; empty: lines for people.
func (d *DryRun) Format() string {
	if d.flags == nil {
		return ""
	}
	return *d.flags.OutputFormat
}

// Client says whether nothing is sent.
func (d *DryRun) Client() bool { return d.Mode == "client" }

// Kept says whether the write stays: only then there is something to wait for.
func (d *DryRun) Kept() bool { return d.Mark() == "" }

// Mark is the suffix of lines about a dry run.
func (d *DryRun) Mark() string {
	switch d.Mode {
	case "client":
		return " (dry run)"
	case "server":
		return " (server dry run)"
	}
	return ""
}

// Options are patch options.
func (d *DryRun) Options() metav1.PatchOptions {
	o := metav1.PatchOptions{FieldManager: annotations.ManagerCLI}
	if d.Mode == "server" {
		o.DryRun = []string{metav1.DryRunAll}
	}
	return o
}

// Deletion are delete options.
func (d *DryRun) Deletion() metav1.DeleteOptions {
	var o metav1.DeleteOptions
	if d.Mode == "server" {
		o.DryRun = []string{metav1.DryRunAll}
	}
	return o
}

// Wrote keeps a written object for -o.
func (d *DryRun) Wrote(o runtime.Object) {
	if d.Format() != "" {
		d.wrote = append(d.wrote, o)
	}
}

// WouldWrite keeps an object for -o as it would be written, when nothing is sent.
func (d *DryRun) WouldWrite(o runtime.Object, c Change) {
	if d.Format() == "" {
		return
	}
	o = o.DeepCopyObject()
	if m, ok := o.(metav1.Object); ok {
		m.SetAnnotations(c.On(m.GetAnnotations()))
	}
	d.Wrote(o)
}

// On applies a change to annotations.
func (c Change) On(have map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range have {
		out[key] = value
	}
	for key, value := range c {
		delete(out, key)
		if value != nil {
			out[key] = *value
		}
	}
	return out
}

// Report prints the result: the line, on standard error if something is waited for, or with -o the objects.
func (d *DryRun) Report(to genericiooptions.IOStreams, waits bool, format string, args ...any) error {
	if d.Format() == "" {
		out := to.Out
		if waits {
			out = to.ErrOut
		}
		_, err := fmt.Fprintf(out, format+"\n", args...)
		return err
	}
	return d.ReportObjects(to)
}

// ReportObjects prints the written objects with -o, and nothing without.
func (d *DryRun) ReportObjects(to genericiooptions.IOStreams) error {
	objects := d.wrote
	d.wrote = nil
	for _, o := range objects {
		if err := d.printer.PrintObj(o, to.Out); err != nil {
			return err
		}
	}
	return nil
}

// ReportRun is Report for a run that was asked for: with -o name only its name.
func (d *DryRun) ReportRun(to genericiooptions.IOStreams, waits bool, run string) error {
	if d.Format() == "name" {
		_, err := fmt.Fprintln(to.Out, run)
		return err
	}
	return d.Report(to, waits, "run/%s requested%s", run, d.Mark())
}

// BesideOutput is a Factory that prints to standard error while -o uses standard output.
func (c *Factory) BesideOutput(d *DryRun) *Factory {
	if d.Format() == "" {
		return c
	}
	return c.ToErrOut()
}

// ToErrOut is a Factory that prints its results to standard error.
func (c *Factory) ToErrOut() *Factory {
	out := *c
	out.Out, out.OutTerminal = c.ErrOut, false
	return &out
}
