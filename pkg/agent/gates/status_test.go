package gates

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// What is closed is named, as far as a condition has room.
func TestWhatIsClosedIsNamed(t *testing.T) {
	many := func(n int, long string) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("Deployment shop/%s%02d", long, n-i))
		}
		return out
	}
	if got := closedSaid(nil); got != "" {
		t.Errorf("of nothing it says %q", got)
	}
	if got := closedSaid([]string{"Deployment shop/web", "Deployment shop/api"}); got != " (closed: Deployment shop/api, Deployment shop/web)" {
		t.Errorf("of two it says %q", got)
	}
	if got := closedSaid(many(12, "")); !strings.HasPrefix(got, " (closed: Deployment shop/01, ") || !strings.HasSuffix(got, "Deployment shop/10 and 2 more)") {
		t.Errorf("of twelve it says %q", got)
	}
	if got := closedSaid(many(12, strings.Repeat("x", 200))); len(got) > document.MaxMessage-40 || !strings.HasSuffix(got, "… and 2 more)") {
		t.Errorf("of long names it says %q", got)
	}
}
