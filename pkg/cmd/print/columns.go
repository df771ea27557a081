package print

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

const (
	customColumns     = "custom-columns"
	customColumnsFile = "custom-columns-file"
)

// toColumns is the printer of -o custom-columns=HEADER:PATH,… or custom-columns-file=FILE. What
// follows the = may be in template.
func toColumns(format, template string, noHeaders bool) (printers.ResourcePrinter, error) {
	word, spec, _ := strings.Cut(format, "=")
	if word != customColumns && word != customColumnsFile {
		return nil, genericclioptions.NoCompatiblePrinterError{}
	}
	spec = cmp.Or(spec, template)
	if spec == "" {
		return nil, errors.New("custom-columns format specified but no custom columns given")
	}
	read := columnsOf
	if word == customColumnsFile {
		read = columnsIn
	}
	columns, err := read(spec)
	if err != nil {
		return nil, err
	}
	return &columnsPrinter{columns, noHeaders}, nil
}

// column is a header and the path of its values.
type column struct {
	header string
	path   *jsonpath.JSONPath
}

// columnsOf reads HEADER:PATH,…
func columnsOf(spec string) ([]column, error) {
	var out []column
	for part := range strings.SplitSeq(spec, ",") {
		header, path, found := strings.Cut(part, ":")
		if !found {
			return nil, fmt.Errorf("unexpected custom-columns spec: %s, expected <header>:<json-path-expr>", part)
		}
		c, err := columnOf(header, path)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// columnsIn reads a file of two lines: headers, and their paths.
func columnsIn(file string) ([]column, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("error reading template %s, %w", file, err)
	}
	first, second, _ := strings.Cut(string(b), "\n")
	second, _, _ = strings.Cut(second, "\n")
	headers, paths := strings.Fields(first), strings.Fields(second)
	if len(headers) == 0 || len(headers) != len(paths) {
		return nil, fmt.Errorf("%s has %d headers and %d paths: it must have one line of headers, and one of paths", file, len(headers), len(paths))
	}
	var out []column
	for i, header := range headers {
		c, err := columnOf(header, paths[i])
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// columnOf parses a path with or without braces and the first dot.
func columnOf(header, path string) (column, error) {
	inner := path
	if within, braced := strings.CutPrefix(inner, "{"); braced && strings.HasSuffix(within, "}") {
		inner = strings.TrimSuffix(within, "}")
	}
	inner = strings.TrimPrefix(inner, ".")
	if inner == "" || strings.ContainsAny(inner, "{}") {
		return column{}, fmt.Errorf("unexpected path %q of column %s: expected one as .metadata.name or {.metadata.name}", path, header)
	}
	c := column{header, jsonpath.New("column").AllowMissingKeys(true)}
	return c, c.path.Parse("{." + inner + "}")
}

// cell is the value of an object, as kubectl prints it.
func (c column) cell(object map[string]any) (string, error) {
	found, err := c.path.FindResults(object)
	if err != nil {
		return "", err
	}
	var words []string
	for _, values := range found {
		for _, v := range values {
			words = append(words, printers.EscapeTerminal(fmt.Sprint(v.Interface())))
		}
	}
	return cmp.Or(strings.Join(words, ","), "<none>"), nil
}

type columnsPrinter struct {
	columns   []column
	noHeaders bool
}

// PrintObj prints an object, or each of a list, as a line.
func (p *columnsPrinter) PrintObj(object runtime.Object, out io.Writer) error {
	objects := []runtime.Object{object}
	if meta.IsListType(object) {
		var err error
		if objects, err = meta.ExtractList(object); err != nil {
			return err
		}
	}
	w := printers.GetNewTabWriter(out)
	if !p.noHeaders {
		var headers []string
		for _, c := range p.columns {
			headers = append(headers, c.header)
		}
		fmt.Fprintln(w, strings.Join(headers, "\t"))
	}
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}
		var cells []string
		for _, c := range p.columns {
			cell, err := c.cell(content)
			if err != nil {
				return err
			}
			cells = append(cells, cell)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}
