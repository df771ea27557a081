package print

import (
	stdjson "encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// yamlPrinter prints as kubectl does. kubectl's own printer reads JSON as YAML, which refuses some
// characters that JSON may hold: one in anybody's annotation, and nothing is printed of any object.
type yamlPrinter struct{ kubectl printers.YAMLPrinter }

// toYAML is the printer of -o yaml, and a NoCompatiblePrinterError for any other format.
func (f *printFlags) toYAML(format string) (printers.ResourcePrinter, error) {
	if format != "yaml" {
		return nil, genericclioptions.NoCompatiblePrinterError{}
	}
	return &printers.OmitManagedFieldsPrinter{Delegate: &yamlPrinter{}}, nil
}

// PrintObj prints an object; several are parted by lines of three dashes.
func (p *yamlPrinter) PrintObj(object runtime.Object, w io.Writer) error {
	text, err := stdjson.Marshal(object)
	if err != nil {
		return err
	}
	return p.kubectl.PrintObj(&runtime.Unknown{Raw: []byte(printable(string(text)))}, w)
}

// printable is JSON with each character that is not printed written as its code. Such characters
// stand in its strings alone.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) || r == '\n' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\U%08X`, r) // the text is read as YAML, which knows no pairs
		}
	}
	return b.String()
}
