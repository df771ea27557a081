package annotations

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// A document whose text is not kept reads like the one it was: the same faults, and the
// same mark for its status.
func TestShorten(t *testing.T) {
	const small = "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec: {steps: [{name: hold, type: suspend}]}\n"
	large := small + strings.Repeat("# a comment\n", document.MaxDocumentBytes/12)
	for name, c := range map[string]struct {
		kind    string
		data    map[string]string
		binary  map[string][]byte
		shorter bool
	}{
		"a plan of an ordinary size":           {KindPlan, map[string]string{DataPlan: small}, nil, false},
		"a plan that is too large":             {KindPlan, map[string]string{DataPlan: large}, nil, true},
		"a policy that is too large":           {KindPolicy, map[string]string{DataPolicy: large}, nil, true},
		"a calendar that is too large":         {KindCalendar, map[string]string{DataDates: large}, nil, true},
		"one with a large key that is not its": {KindPlan, map[string]string{DataPlan: small, "notes": large}, nil, true},
		"one with many of them":                {KindPlan, map[string]string{DataPlan: small, "a": large[:200_000], "b": large[:200_000]}, nil, true},
		"one without its key":                  {KindPlan, map[string]string{"other": large}, nil, true},
		"one with bytes":                       {KindPlan, map[string]string{DataPlan: small}, map[string][]byte{"x": []byte(large)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", Labels: map[string]string{LabelKind: c.kind}}, Data: c.data, BinaryData: c.binary}
			was := cm.DeepCopy()
			Shorten(cm, func(n int) string { return strings.Repeat("x", n) })
			if got := cm.BinaryData[shortenedKey] != nil; got != c.shorter {
				t.Fatalf("shortened: %v, want %v", got, c.shorter)
			}
			if Observed(cm) != Observed(was) {
				t.Error("its mark is another")
			}
			read := func(cm *corev1.ConfigMap) string {
				switch c.kind {
				case KindPolicy:
					return Policy(cm).Faults.Error()
				case KindCalendar:
					_, faults := Calendar(cm)
					return faults.Error()
				}
				_, faults := Plan(cm)
				return faults.Error()
			}
			if diff := cmp.Diff(read(was), read(cm)); diff != "" {
				t.Errorf("its faults (-want +got):\n%s", diff)
			}
			kept := 0
			for _, text := range cm.Data {
				kept += len(strings.Trim(text, "x"))
			}
			if c.shorter && kept > len(small) {
				t.Errorf("%d bytes are kept", kept)
			}
		})
	}
}

// A text that could be read is kept, to the byte: of one that could not, its length.
func TestShortenKeepsATextThatCanBeRead(t *testing.T) {
	for length, kept := range map[int]bool{document.MaxDocumentBytes - 1: true, document.MaxDocumentBytes: true, document.MaxDocumentBytes + 1: false} {
		text := strings.Repeat("#", length)
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", Labels: map[string]string{LabelKind: KindPlan}},
			Data:       map[string]string{DataPlan: text, "notes": "so that it is too large"},
		}
		Shorten(cm, func(n int) string { return strings.Repeat("x", n) })
		if got := cm.Data[DataPlan]; (got == text) != kept || len(got) != length || cm.Data["notes"] != "" {
			t.Errorf("of %d bytes, kept: %t, %d bytes are left, and of the notes %q", length, got == text, len(got), cm.Data["notes"])
		}
	}
}
