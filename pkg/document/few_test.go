package document_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

func TestFew(t *testing.T) {
	for want, names := range map[string][]string{
		"":                nil,
		"a":               {"a"},
		"a, b":            {"a", "b"},
		"a, b and 1 more": {"a", "b", "c"},
		"a, b and 2 more": {"a", "b", "c", "d"},
	} {
		if got := document.Few(names, 2); got != want {
			t.Errorf("%v: %q, want %q", names, got, want)
		}
	}
}
