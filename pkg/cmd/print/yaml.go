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
	return p.kubectl.PrintObj(&runtime.Unknown{Raw: []byte(printable(string(text)))}, w)
}

// printable escapes unprintable characters in JSON. They occur only in its strings.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) || r == '\n' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\U%08X`, r) // the text is parsed as YAML, which has no surrogate pairs
		}
	}
	return b.String()
}
