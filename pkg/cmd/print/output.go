package print

import (
	stdjson "encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kubectl/pkg/cmd/get"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
)

// Output is the -o of lists: everything that kubectl get can print.
type Output struct{ flags *get.PrintFlags }

// NewOutput prints tables unless -o says otherwise.
func NewOutput() *Output { return &Output{flags: get.NewGetPrintFlags()} }

// AddFlags adds -o and its kin.
func (o *Output) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(o.flags.OutputFormat, "output", "o", "", "one of "+strings.Join(o.formats(), ", "))
	cmd.Flags().BoolVar(o.flags.NoHeaders, "no-headers", false, "without the line of headers")
	o.flags.TemplateFlags.AddFlags(cmd)
}

func (o *Output) formats() []string {
	formats := o.flags.AllowedFormats()
	slices.Sort(formats)
	return slices.Compact(formats)
}

// Check refuses a format that there is not.
func (o *Output) Check(f *exit.Faults) {
	if _, err := o.flags.ToPrinter(); err != nil {
		f.Add("-o %s: %v", *o.flags.OutputFormat, err)
	}
}

// Table says whether people read what is printed.
func (o *Output) Table() bool {
	return (*o.flags.OutputFormat == "" || *o.flags.OutputFormat == "wide") && *o.flags.TemplateFlags.TemplateArgument == ""
}

// Format is what -o says; empty for the usual table.
func (o *Output) Format() string { return *o.flags.OutputFormat }

// WithNamespace has the printer show namespaces, too.
func (o *Output) WithNamespace() error { return o.flags.EnsureWithNamespace() }

// Name says whether names alone are printed.
func (o *Output) Name() bool { return *o.flags.OutputFormat == "name" }

// Print writes a list: as a table for people, else the objects themselves.
func (o *Output) Print(w io.Writer, t *metav1.Table, objects func() (runtime.Object, error)) error {
	printer, err := o.flags.ToPrinter()
	if err != nil {
		return err
	}
	if o.Table() {
		return printer.PrintObj(t, w)
	}
	list, err := objects()
	if err != nil {
		return err
	}
	if o.Name() { // the name printer takes lists of no other kind
		return printNames(w, printer.PrintObj, list)
	}
	return printer.PrintObj(list, w)
}

func printNames(w io.Writer, print func(runtime.Object, io.Writer) error, list runtime.Object) error {
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(list)
	if err != nil {
		return err
	}
	items, _, err := unstructured.NestedSlice(u, "items")
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := print(&unstructured.Unstructured{Object: item.(map[string]any)}, w); err != nil {
			return err
		}
	}
	return nil
}

// ConfigMapList is ConfigMaps as kubectl get -o json would list them.
func ConfigMapList(items []*corev1.ConfigMap) (runtime.Object, error) {
	return objectList(items, func(cm *corev1.ConfigMap) runtime.Object {
		cm = cm.DeepCopy()
		cm.TypeMeta, cm.ManagedFields = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, nil
		return cm
	})
}

// NodeList is nodes as kubectl get -o json would list them.
func NodeList(items []*corev1.Node) (runtime.Object, error) {
	return objectList(items, func(n *corev1.Node) runtime.Object {
		n = n.DeepCopy()
		n.TypeMeta, n.ManagedFields = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, nil
		return n
	})
}

func objectList[T any](items []T, shown func(T) runtime.Object) (runtime.Object, error) {
	list := &corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	for _, o := range items {
		list.Items = append(list.Items, runtime.RawExtension{Object: shown(o)})
	}
	return list, nil
}

// List is a list of values of ours, {"kind": …, "items": […]}.
func List[T any](kind string, items []T) (runtime.Object, error) {
	list := &unstructured.UnstructuredList{Object: map[string]any{"kind": kind}, Items: []unstructured.Unstructured{}}
	for i := range items {
		u, err := decoded(kind, &items[i])
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, unstructured.Unstructured{Object: u})
	}
	return list, nil
}

// decoded is a value as its JSON reads, with whole numbers whole.
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

// Column is a column of a table; wide ones are shown with -o wide alone.
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

// AddRow adds a row; object is what its name stands for, or nil.
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

// JSON prints one value of ours with its kind, indented.
func JSON(w io.Writer, kind string, value any) error {
	u, err := decoded(kind, value)
	if err != nil {
		return err
	}
	u["kind"] = kind
	out := stdjson.NewEncoder(w)
	out.SetIndent("", "    ")
	return out.Encode(u)
}
