package print

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

func TestCustomColumns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "columns")
	for name, text := range map[string]string{file: "NAME  STEPS\n.name  {.steps[*].name}\n", file + ".odd": "NAME STEPS\n.name", file + ".none": "\n\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one := map[string]any{"name": "a", "replicas": int64(3), "labels": map[string]any{"x.y/z": "v"}, "steps": []any{map[string]any{"name": "stop"}, map[string]any{"name": "start\x1b[2J"}}}
	for _, c := range []struct {
		format, template string
		noHeaders        bool
		out, fault       string
	}{
		{format: "custom-columns=NAME:.name,N:replicas", out: "NAME   N\na      3\nb      <none>\n"},
		{format: "custom-columns=NAME:{.name},N:{replicas}", noHeaders: true, out: "a     3\nb     <none>\n"},
		{format: "custom-columns", template: "N:.replicas", out: "N\n3\n<none>\n"},
		{format: `custom-columns=V:.labels.x\.y/z`, out: "V\nv\n<none>\n"},
		{format: "custom-columns=S:.steps[*].name", out: "S\nstop,start^[[2J\n<none>\n"},
		{format: "custom-columns-file=" + file, out: "NAME   STEPS\na      stop,start^[[2J\nb      <none>\n"},
		{format: "custom-columns-file", template: file, noHeaders: true, out: "a     stop,start^[[2J\nb     <none>\n"},
		{format: "custom-columns", fault: "custom-columns format specified but no custom columns given"},
		{format: "custom-columns=NAME", fault: "unexpected custom-columns spec: NAME, expected <header>:<json-path-expr>"},
		{format: "custom-columns=NAME:", fault: `unexpected path "" of column NAME`},
		{format: "custom-columns=NAME:{.a}{.b}", fault: "unexpected path"},
		{format: "custom-columns=NAME:.a[", fault: "unterminated array"},
		{format: "custom-columns-file=" + file + ".odd", fault: "has 2 headers and 1 paths"},
		{format: "custom-columns-file=" + file + ".none", fault: "has 0 headers and 0 paths"},
		{format: "custom-columns-file=" + file + ".gone", fault: "error reading template"},
		{format: "custom", fault: "unable to match a printer"},
	} {
		flags := newPrintFlags()
		flags.output, flags.noHeaders, *flags.template.TemplateArgument = c.format, c.noHeaders, c.template
		p, err := flags.toPrinter()
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) || genericclioptions.IsNoCompatiblePrinterError(err) != (c.format == "custom") {
				t.Errorf("%s: %v", c.format, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.format, err)
			continue
		}
		var out bytes.Buffer
		list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{{Object: one}, {Object: map[string]any{"name": "b"}}}}
		if err := p.PrintObj(list, &out); err != nil || out.String() != c.out {
			t.Errorf("%s: %v\n%q", c.format, err, out.String())
		}
	}
}
