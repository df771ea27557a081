package offline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

type explainOptions struct {
	*factory.Factory
	out    *print.Values
	path   []string
	faults exit.Faults
}

// NewExplain explains the fields of documents.
func NewExplain(c *factory.Factory) *cobra.Command {
	o := &explainOptions{Factory: c, out: print.NewValues()}
	cmd := &cobra.Command{
		Use:   "explain KIND[.FIELD…]",
		Short: "Explain the fields of a document",
		Long: `Show the fields of a document, from its schema: their types, which are required, their
allowed values if there are few, and their defaults. For the properties of a step, or the
parameters of a target, add its type: plan.spec.steps.drain. For a field of the items of
a list, leave out the index: plan.spec.steps.retry. No cluster is asked.

Kinds: ` + strings.Join(kinds(), ", ") + ".",
		Example: "  kubectl maint explain plan.spec\n  kubectl maint explain plan.spec.steps.drain\n  kubectl maint explain policy.spec.maintenanceSchedule.windows",
		RunE:    factory.RunE(o),
		ValidArgsFunction: func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return slices.DeleteFunc(continued(word), func(path string) bool { return !strings.HasPrefix(path, word) }), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		},
	}
	o.out.AddFlags(cmd)
	return cmd
}

// Complete takes the path. Without a kind, the error lists the kinds.
func (o *explainOptions) Complete(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		o.faults.Add("KIND is missing: write one of %s, and fields behind it, such as plan.spec.steps", strings.Join(kinds(), ", "))
		return nil
	}
	o.path = strings.Split(strings.Trim(factory.OneName(args, "KIND", &o.faults), "."), ".")
	return nil
}

// Validate checks the flags.
func (o *explainOptions) Validate() error {
	o.out.Check(&o.faults)
	return o.faults.Err()
}

// Run prints the field.
func (o *explainOptions) Run(context.Context) error {
	s, err := schemaOf(o.path[0])
	if err != nil {
		return err
	}
	field, err := s.find(o.path[1:])
	if err != nil {
		return exit.Errorf(exit.CodeUsage, "%w", err)
	}
	if !o.out.Lines() {
		return o.out.Print(o.Out, print.Value{Kind: "Field", Name: strings.Join(o.path, "."), Body: o.explained(s, field)})
	}
	version := ""
	if s.enveloped {
		version = document.APIVersion + ", "
	}
	fmt.Fprintf(o.Out, "KIND:   %s, %sunder the key %s\n", s.kind, version, s.key)
	if len(o.path) > 1 {
		fmt.Fprintf(o.Out, "FIELD:  %s <%s>\n", strings.Join(o.path[1:], "."), s.typeOf(field))
	}
	for _, l := range s.about(field) {
		fmt.Fprintln(o.Out, l)
	}
	o.fields(s, s.object(field))
	return nil
}

// explained is the explanation of a field for scripts, see docs/cli.md.
type explained struct {
	Of     string      `json:"of"`   // the kind of the document
	Path   string      `json:"path"` // below it; empty: the document itself
	Type   string      `json:"type"`
	About  []string    `json:"about,omitempty"`
	Fields []fieldItem `json:"fields"`
	Types  []string    `json:"types,omitempty"` // of steps or targets, whose properties differ
}

type fieldItem struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`
	Required bool     `json:"required"`
	About    []string `json:"about,omitempty"`
}

func (o *explainOptions) explained(s kindSchema, field node) explained {
	object := s.object(field)
	out := explained{Of: s.kind, Path: strings.Join(o.path[1:], "."), Type: s.typeOf(field), About: s.about(field), Fields: []fieldItem{}, Types: slices.Sorted(maps.Keys(s.byType(object)))}
	for _, name := range slices.Sorted(maps.Keys(object.children("properties"))) {
		one := object.children("properties")[name]
		out.Fields = append(out.Fields, fieldItem{Name: name, Type: s.typeOf(one), Required: slices.Contains(object.words("required"), name), About: s.about(one)})
	}
	return out
}

// fields prints the fields of an object.
func (o *explainOptions) fields(s kindSchema, object node) {
	names := slices.Sorted(maps.Keys(object.children("properties")))
	if len(names) > 0 {
		fmt.Fprintln(o.Out, "\nFIELDS:")
	}
	for _, name := range names {
		field := object.children("properties")[name]
		required := ""
		if slices.Contains(object.words("required"), name) {
			required = "  -required-"
		}
		fmt.Fprintf(o.Out, "  %s <%s>%s\n", name, s.typeOf(field), required)
		for _, l := range s.about(field) {
			fmt.Fprintln(o.Out, "      "+strings.TrimSpace(l))
		}
	}
	types := s.byType(object)
	if len(types) == 0 {
		return
	}
	below := strings.Join(o.path, ".")
	fmt.Fprintf(o.Out, "\nBY TYPE, as %s explain %s.%s:\n  %s\n", o.Name, below, slices.Sorted(maps.Keys(types))[0], strings.Join(slices.Sorted(maps.Keys(types)), "\n  "))
}

// continued are the paths that begin with a word.
func continued(word string) []string {
	head, _, dotted := cutLast(word)
	if !dotted {
		return kinds()
	}
	path := strings.Split(head, ".")
	s, err := schemaOf(path[0])
	if err != nil {
		return nil
	}
	field, err := s.find(path[1:])
	if err != nil {
		return nil
	}
	object := s.object(field)
	var out []string
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(object.children("properties"))), slices.Sorted(maps.Keys(s.byType(object)))) {
		out = append(out, head+"."+name)
	}
	return out
}

func cutLast(word string) (head, last string, dotted bool) {
	i := strings.LastIndex(word, ".")
	if i < 0 {
		return "", word, false
	}
	return word[:i], word[i+1:], true
}
