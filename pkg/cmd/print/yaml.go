package print

import (
	stdjson "encoding/json"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// yamlPrinter prints as kubectl does. kubectl's own printer parses JSON as YAML, which forbids some
// characters that JSON allows: one of them in any annotation, and nothing would be printed.
type yamlPrinter struct{ kubectl printers.YAMLPrinter }

// toYAML is the printer of -o yaml, and a NoCompatiblePrinterError for any other format.
func (f *printFlags) toYAML(format string) (printers.ResourcePrinter, error) {
	if format != "yaml" {
		return nil, genericclioptions.NoCompatiblePrinterError{}
	}
	return &printers.OmitManagedFieldsPrinter{Delegate: &yamlPrinter{}}, nil
}

// PrintObj prints an object; several are separated by lines of three dashes.
func (p *yamlPrinter) PrintObj(object runtime.Object, w io.Writer) error {
	text, err := stdjson.Marshal(object)
	if err != nil {
		return err
	}
	return p.kubectl.PrintObj(&runtime.Unknown{Raw: []byte(view.PrintableJSON(string(text)))}, w)
}
