package print

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

func annotated(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"reason.maint.dev/pause": text}}}
}

// What one tenant writes into an annotation must not keep -o yaml from everybody.
func TestEveryTextCanBePrintedAsYAML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"r\x7f", "\u009b31m", "\u202egnp", "\U000E0041", "\u2028", "\ufeff", "\x00", "a\nb", "\u0085"})).Draw(t, "text")
		flags := newPrintFlags()
		flags.output = "yaml"
		printer, err := flags.toPrinter()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := printer.PrintObj(annotated(text), &out); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		var back corev1.ConfigMap
		if err := yaml.Unmarshal(out.Bytes(), &back); err != nil || back.Annotations["reason.maint.dev/pause"] != text {
			t.Fatalf("%q came back as %q, %v:\n%s", text, back.Annotations["reason.maint.dev/pause"], err, &out)
		}
		var usual bytes.Buffer // kubectl's fails at some characters, and loses others
		if err := (&printers.YAMLPrinter{}).PrintObj(annotated(text), &usual); err == nil && view.PrintableJSON(text) == text && usual.String() != out.String() {
			t.Fatalf("kubectl prints\n%s, we\n%s", &usual, &out)
		}
	})
}
