package print

import (
	"slices"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// printFlags are -o and related flags, as in kubectl get. kubectl's own type would load its
// translations, which take half of a command's start time.
type printFlags struct {
	output    string
	noHeaders bool
	namespace bool // tables show it, too

	values   *genericclioptions.JSONYamlPrintFlags
	name     *genericclioptions.NamePrintFlags
	template *genericclioptions.KubeTemplatePrintFlags
}

func newPrintFlags() *printFlags {
	return &printFlags{
		values: genericclioptions.NewJSONYamlPrintFlags(), name: genericclioptions.NewNamePrintFlags(""),
		template: genericclioptions.NewKubeTemplatePrintFlags(),
	}
}

// formats are the words of -o.
func (f *printFlags) formats() []string {
	return slices.Concat(f.values.AllowedFormats(), f.name.AllowedFormats(), f.template.AllowedFormats(), []string{customColumns, customColumnsFile, "wide"})
}

// toPrinter is the printer for -o, or a NoCompatiblePrinterError.
func (f *printFlags) toPrinter() (printers.ResourcePrinter, error) {
	format, template := f.output, *f.template.TemplateArgument
	if format == "" && template != "" {
		format = "go-template"
	}
	for _, ask := range []func(string) (printers.ResourcePrinter, error){
		f.template.ToPrinter, f.toYAML, f.values.ToPrinter, f.toTable,
		func(format string) (printers.ResourcePrinter, error) { return toColumns(format, template, f.noHeaders) },
		f.name.ToPrinter,
	} {
		if p, err := ask(format); !genericclioptions.IsNoCompatiblePrinterError(err) {
			return p, err
		}
	}
	return nil, genericclioptions.NoCompatiblePrinterError{OutputFormat: &format, AllowedFormats: f.formats()}
}

// toTable is the printer for people.
func (f *printFlags) toTable(format string) (printers.ResourcePrinter, error) {
	if format != "" && format != "wide" {
		return nil, genericclioptions.NoCompatiblePrinterError{}
	}
	return printers.NewTablePrinter(printers.PrintOptions{NoHeaders: f.noHeaders, Wide: format == "wide", WithNamespace: f.namespace}), nil
}
