package print

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
)

// Output is the -o of lists, with all formats of kubectl get.
type Output struct {
	flags *printFlags
	own   []string // words of -o that the command prints itself
}

// NewOutput prints tables unless -o says otherwise. own are words of -o that the command prints
// itself.
func NewOutput(own ...string) *Output { return &Output{flags: newPrintFlags(), own: own} }

// AddFlags adds -o and its kin.
func (o *Output) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.flags.output, "output", "o", "", "one of "+strings.Join(o.formats(), ", "))
	cmd.Flags().BoolVar(&o.flags.noHeaders, "no-headers", false, "without the line of headers")
	o.flags.template.AddFlags(cmd)
	completeFormats(cmd, slices.Concat([]string{"wide"}, o.own, formatWords())...)
}

func (o *Output) formats() []string {
	formats := append(o.flags.formats(), o.own...)
	slices.Sort(formats)
	return slices.Compact(formats)
}

// Check refuses an unknown format.
func (o *Output) Check(f *exit.Faults) {
	if o.Own() {
		return
	}
	_, err := o.flags.toPrinter()
	switch {
	case genericclioptions.IsNoCompatiblePrinterError(err):
		f.Add("-o must be one of %s, is %q", strings.Join(o.formats(), ", "), o.Format())
	case err != nil:
		f.Add("-o %s: %v", o.Format(), err)
	}
}

// Own says whether -o is one of the command's own words.
func (o *Output) Own() bool { return slices.Contains(o.own, o.Format()) }

// Table says whether the output is a table for people.
func (o *Output) Table() bool {
	return (o.flags.output == "" || o.flags.output == "wide") && *o.flags.template.TemplateArgument == ""
}

// Format is the format of -o; empty for the default table.
func (o *Output) Format() string { return o.flags.output }

// WithNamespace has the printer show namespaces, too.
func (o *Output) WithNamespace() { o.flags.namespace = true }

// Print prints a list: as a table for people, else as values, of which -o name prints the names.
func (o *Output) Print(w io.Writer, t *metav1.Table, kind string, values func() ([]Value, error)) error {
	if o.Table() {
		return o.PrintTable(w, t)
	}
	items, err := values()
	if err != nil {
		return err
	}
	return printList(w, o.flags, kind, items)
}

// PrintTable writes a table for people.
func (o *Output) PrintTable(w io.Writer, t *metav1.Table) error {
	return printObject(w, o.flags, t)
}

// Empty says that nothing was found, as kubectl does; namespace is empty for all namespaces.
func Empty(w io.Writer, namespace string) {
	if namespace == "" {
		fmt.Fprintln(w, "No resources found")
		return
	}
	fmt.Fprintf(w, "No resources found in %s namespace.\n", namespace)
}

// Age is how long ago something began, as kubectl says it.
func Age(now, since time.Time) string {
	if since.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(since))
}

// decoded is a value after a round trip through JSON, with integers kept.
func decoded(kind string, value any) (map[string]any, error) {
	b, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("print %s: %w", kind, err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, fmt.Errorf("print %s: %w", kind, err)
	}
	return out, nil
}

// Column is a column of a table; wide ones are only shown with -o wide.
type Column struct {
	Name string
	Wide bool
}

// NewTable is a table without rows.
func NewTable(columns ...Column) *metav1.Table {
	t := &metav1.Table{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"}}
	for i, c := range columns {
		def := metav1.TableColumnDefinition{Name: c.Name, Type: "string"}
		if c.Wide {
			def.Priority = 1
		}
		if i == 0 {
			def.Format = "name"
		}
		t.ColumnDefinitions = append(t.ColumnDefinitions, def)
	}
	return t
}

// AddRow adds a row; object is the object behind it, or nil.
func AddRow(t *metav1.Table, object *corev1.ConfigMap, cells ...string) {
	row := metav1.TableRow{}
	for _, c := range cells {
		if c == "" {
			c = "<none>"
		}
		row.Cells = append(row.Cells, c)
	}
	if object != nil {
		row.Object = runtime.RawExtension{Object: &metav1.PartialObjectMetadata{ObjectMeta: object.ObjectMeta}}
	}
	t.Rows = append(t.Rows, row)
}
