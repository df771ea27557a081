package policies

import (
	"bufio"
	"compress/gzip"
	"io"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/gates"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/metrics"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

func TestMetricsOfChangeStandBesideTheRegistered(t *testing.T) {
	g := store.NewGates("maint-system")
	o := g.Subject(policy.Query{Namespace: "shop"}, nil)
	o.Kind, o.System = "Plan", `a"b`
	g.Note(types.NamespacedName{Namespace: "shop", Name: "orders"}, o)
	m := metrics.New("v1")
	changes := &Changes{gates: g, runs: store.NewRuns(agenttest.Keys()), held: func() []*gates.HeldObject { return nil }, now: time.Now, leading: func() bool { return true }}
	for name, encoding := range map[string]string{"plain": "", "compressed": "gzip"} {
		t.Run(name, func(t *testing.T) {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil)
			r.Header.Set("Accept-Encoding", encoding)
			m.Handler(func() bool { return true }, changes.Write, nil).ServeHTTP(w, r)
			body := io.Reader(w.Body)
			if encoding != "" {
				var err error
				if body, err = gzip.NewReader(w.Body); err != nil {
					t.Fatal(err)
				}
			}
			text, err := io.ReadAll(bufio.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{
				"maint_build_info{", "# TYPE change_management_change_pending gauge\n",
				`change_management_change_pending{kind="Plan",namespace="shop",object="orders",system="a\"b"} 0` + "\n",
				`change_management_permissive_remaining{kind="Plan",namespace="shop",object="orders",system="a\"b"} -1` + "\n",
				`change_management_strategy_enabled{kind="Plan",namespace="shop",object="orders",strategy="Permissive",system="a\"b"} `,
			} {
				if !strings.Contains(string(text), want) {
					t.Errorf("%s is missing in\n%s", want, text)
				}
			}
		})
	}
}

// The page that operators read names each metric of change.
func TestThePageOfOperatorsNamesTheMetricsOfChange(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range changeFamilies() {
		if !strings.Contains(string(page), "`change_management_"+f.name) {
			t.Errorf("docs/operations.md does not name change_management_%s", f.name)
		}
	}
}

// What else than a number of seconds the values are, the help of the metrics and the page say alike.
func TestHelpAndPageSayAlikeWhatIsNoNumberOfSeconds(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	means := map[string]string{
		"next_change_eta":      "-1 never, -2 not ready, or not known yet",
		"permissive_remaining": "-1 for ever, -2 not ready, or not known yet",
	}
	for _, f := range changeFamilies() {
		words := means[f.name]
		if !strings.Contains(f.help, words) {
			t.Errorf("the help of %s does not say %q: %s", f.name, words, f.help)
		}
		row := regexp.MustCompile("(?m)^\\| `change_management_" + f.name + ".*").FindString(string(page))
		if !strings.Contains(row, words) {
			t.Errorf("docs/operations.md does not say of %s %q: %s", f.name, words, row)
		}
	}
}
