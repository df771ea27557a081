package print

import (
	stdjson "encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// Values is the -o of commands with lines for people and values for scripts. The printers are those
// of kubectl get.
type Values struct {
	flags *printFlags
	own   []string // words of -o that the command prints itself
	begun bool     // the headers of values that are emitted are printed
}

// NewValues prints lines unless -o says otherwise. own are words of -o that the command
// prints itself.
func NewValues(own ...string) *Values { return &Values{flags: newPrintFlags(), own: own} }

// formats are the formats of -o, for messages.
const formats = "json, yaml, name, jsonpath=…, custom-columns=… or go-template=…"

func (o *Values) formats() string {
	return strings.Join(append(slices.Clone(o.own), formats), ", ")
}

// AddFlags adds -o.
func (o *Values) AddFlags(cmd *cobra.Command) {
	otherwise := "text"
	if slices.Contains(o.own, "table") {
		otherwise = "the table"
	}
	cmd.Flags().StringVarP(&o.flags.output, "output", "o", "", o.formats()+"; or nothing for "+otherwise)
	completeFormats(cmd, slices.Concat(o.own, formatWords())...)
}

// formatWords are the formats of -o for completion; those that end with = need more.
func formatWords() []string {
	return []string{"json", "yaml", "name", "jsonpath=", "custom-columns=", "go-template="}
}

// completeFormats offers the formats of -o.
func completeFormats(cmd *cobra.Command, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc("output", func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		var out []string
		for _, w := range words {
			if strings.HasPrefix(w, word) {
				out = append(out, w)
			}
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		if len(out) == 1 && strings.HasSuffix(out[0], "=") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return out, directive
	}) // fails only for a missing flag: it was added above
}

// Check refuses a format that there is not.
func (o *Values) Check(f *exit.Faults) {
	if o.Own() {
		return
	}
	switch _, err := o.flags.toPrinter(); {
	case err != nil && !genericclioptions.IsNoCompatiblePrinterError(err):
		f.Add("-o %s: %v", o.Format(), err)
	case err != nil, o.Format() == "wide":
		f.Add("-o must be %s, is %q", o.formats(), o.Format())
	}
}

// Own says whether -o is one of the command's own words.
func (o *Values) Own() bool { return slices.Contains(o.own, o.Format()) }

// Format is the format of -o; empty: lines.
func (o *Values) Format() string { return o.flags.output }

// Lines says whether the output is lines for people.
func (o *Values) Lines() bool { return o.Format() == "" }

// Value is a value for scripts.
type Value struct {
	Kind string // empty: the body has its own kind, or none
	Name string // printed by -o name; empty: it has none
	Body any
	// Plain omits apiVersion, for an item that is not an object by itself.
	Plain bool
}

// Object is a value with its kind and name, as decoded JSON.
func (v Value) Object() (*unstructured.Unstructured, error) {
	u, err := decoded(v.Kind, v.Body)
	if err != nil {
		return nil, err
	}
	if v.Kind != "" {
		u["kind"] = v.Kind
	}
	if !v.Plain {
		u["apiVersion"] = document.APIVersion
	}
	return &unstructured.Unstructured{Object: u}, nil
}

// Print prints one value.
func (o *Values) Print(w io.Writer, v Value) error {
	if o.Format() == "name" {
		_, err := fmt.Fprintln(w, v.Name)
		return err
	}
	u, err := v.Object()
	if err != nil {
		return err
	}
	return printObject(w, o.flags, u)
}

// PrintList prints values as the items of a list. unread says what could not be read for it, and why.
func (o *Values) PrintList(w io.Writer, kind string, items []Value, unread ...any) error {
	return printList(w, o.flags, kind, items, unread...)
}

// printList prints values as the items of a list, or with -o name their names.
func printList(w io.Writer, flags *printFlags, kind string, items []Value, unread ...any) error {
	if flags.output == "name" {
		return printNames(w, items)
	}
	list, err := listOf(kind, items)
	if err != nil {
		return err
	}
	if len(unread) > 0 {
		list.Object["unread"] = unread
	}
	return printObject(w, flags, list)
}

// printObject prints an object as -o says.
func printObject(w io.Writer, flags *printFlags, object runtime.Object) error {
	printer, err := flags.toPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(object, w)
}

// PrintObjects prints objects of the API as kubectl get prints several.
func (o *Values) PrintObjects(w io.Writer, items []unstructured.Unstructured) error {
	if o.Format() != "name" {
		return printObject(w, o.flags, &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}, Items: items})
	}
	for i := range items {
		if err := printObject(w, o.flags, &items[i]); err != nil {
			return err
		}
	}
	return nil
}

func printNames(w io.Writer, items []Value) error {
	for _, v := range items {
		if v.Name == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, v.Name); err != nil {
			return err
		}
	}
	return nil
}

// listOf are values as the items of a list.
func listOf(kind string, items []Value) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": document.APIVersion, "kind": kind}, Items: []unstructured.Unstructured{}}
	for _, v := range items {
		u, err := v.Object()
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, *u)
	}
	return list, nil
}

// Emit prints one value of several that come one after the other: with -o json on one line, with
// custom columns below a single line of headers.
func (o *Values) Emit(w io.Writer, v Value) error {
	u, err := v.Object()
	if err != nil {
		return err
	}
	switch {
	case o.Format() == "json":
		return stdjson.NewEncoder(w).Encode(u.Object)
	case o.Format() == "yaml":
		fmt.Fprintln(w, "---")
		return o.Print(w, v)
	case o.Format() == "name":
		return o.Print(w, v)
	case strings.HasPrefix(o.Format(), customColumns):
		flags := *o.flags
		flags.noHeaders, o.begun = flags.noHeaders || o.begun, true
		return printObject(w, &flags, u)
	}
	if err := o.Print(w, v); err != nil {
		return err
	}
	_, err = fmt.Fprintln(w)
	return err
}

// JSON prints a value with its fields in declared order, indented as kubectl does.
func JSON(w io.Writer, value any) error {
	b, err := stdjson.MarshalIndent(value, "", "    ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, string(b))
	return err
}

// Items prints a list whose items are no objects: they have neither kind nor apiVersion. name is
// printed by -o name.
func Items[T any](o *Values, w io.Writer, kind string, items []T, name func(T) string) error {
	if items == nil {
		items = []T{}
	}
	if o.Format() == "json" {
		if err := JSON(w, map[string]any{"apiVersion": document.APIVersion, "kind": kind, "items": items}); err != nil {
			return fmt.Errorf("print %s: %w", kind, err)
		}
		return nil
	}
	values := []Value{}
	for _, item := range items {
		values = append(values, Value{Name: name(item), Body: item, Plain: true})
	}
	return printList(w, o.flags, kind, values)
}
