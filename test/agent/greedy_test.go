package agent_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// tenant gives a namespace an account with rights, and nothing else.
func (x *crashes) tenant(ns string, rules ...rbacv1.PolicyRule) {
	x.t.Helper()
	x.namespace(ns)
	if err := harness.Runner(x.ctx, x.admin, ns, rules...); err != nil {
		x.t.Fatal(err)
	}
}

// saying counts the plans of a namespace whose annotation holds a text.
func (x *crashes) saying(ns, key, text string) (int, string) {
	x.t.Helper()
	list, err := x.admin.CoreV1().ConfigMaps(ns).List(x.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindPlan})
	if err != nil {
		return 0, err.Error()
	}
	n, said := 0, map[string]int{}
	for _, cm := range list.Items {
		value := cm.Annotations[key]
		if value != "" && strings.Contains(value, text) {
			n++
		}
		said[value]++
	}
	return n, fmt.Sprint(said)
}

// Servers of one tenant answer all of their calls at once, each with as much as is read and as
// many values as are taken, or many more.
func TestAnswersOfManyValuesFillNoAgent(t *testing.T) {
	const plans, calls = 2, 8 // at most 16 of one namespace are under way at once
	values := `["` + strings.Repeat(strings.Repeat("x", 45)+`","`, 19_990) + `"]`
	mux := http.NewServeMux()
	mux.HandleFunc("/values", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, values) })
	mux.HandleFunc("/dense", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, denseList(1_000_000)) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	x := newCrashes(t)
	x.tenant("theirs")
	for n := range plans {
		var steps strings.Builder
		for i := range calls {
			fmt.Fprintf(&steps, "    - {name: s%d, type: webhook, properties: {url: '%s/%s', expect: {json: {a: 1}}}}\n", i, server.URL, []string{"values", "dense"}[i%2])
		}
		x.document("theirs", fmt.Sprint("asks-", n), "triggers: {onCreate: true}\nsteps:\n- name: all\n  type: step-group\n  properties:\n    mode: parallel\n    steps:\n"+steps.String())
	}
	x.staysSmallFor(shortly, "all answers were read", func() (bool, string) {
		n, said := x.saying("theirs", annotations.StatusLastResult, string(run.Failed))
		return n == plans, said
	})
}

// Rules that look at large objects of many keys are closed where they would keep too much, and say so.
func TestWatchedObjectsOfManyKeysFillNoAgent(t *testing.T) {
	const plans, objects, keys = 16, 20, 20_000 // some 18 MiB: more than a plan may keep
	x := newCrashes(t)
	x.tenant("theirs", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}})
	data := map[string]string{}
	for i := range keys {
		data[fmt.Sprintf("k%05d", i)] = strings.Repeat("x", 35)
	}
	for i := range objects {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("many-", i)}, Data: data}
		if _, err := x.admin.CoreV1().ConfigMaps("theirs").Create(x.ctx, cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range plans {
		x.document("theirs", fmt.Sprint("looks-", n), fmt.Sprintf("triggers: {watch: [{apiVersion: v1, kind: ConfigMap, when: 'size(object.data) > %d'}]}\nsteps:\n- {name: hold, type: suspend}\n", n))
	}
	x.staysSmallFor(shortly, "the limit is said", func() (bool, string) {
		n, said := x.saying("theirs", annotations.StatusConditions, "keeps more of its objects")
		return n == plans, said
	})
}

// Ledgers as large as an object may be are not all kept.
func TestLargeLedgersFillNoAgent(t *testing.T) {
	const plans, entries, parameters = 60, 200, 250
	x := newCrashes(t)
	x.tenant("theirs")
	first := x.direct()
	x.signs()
	first.Kill()
	ring := keyring(x.ctx, t, x.admin)
	names := make([]string, parameters)
	for i := range names {
		names[i] = fmt.Sprintf("parameter-%d", i)
	}
	at := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	for n := range plans {
		name := fmt.Sprint("past-", n)
		x.document("theirs", name, "steps:\n- {name: hold, type: suspend}\n")
		plan, err := x.admin.CoreV1().ConfigMaps("theirs").Get(x.ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		led := ledger.Ledger{PlanUID: string(plan.UID), Watermark: plan.CreationTimestamp.UTC(), Totals: map[run.Result]int64{run.Ran: entries}}
		for i := range entries {
			led.Recent = append(led.Recent, ledger.Entry{
				Kind: run.ByToken, Result: run.Ran, Run: fmt.Sprintf("maint-run-%s-%d", name, i), At: at.Add(time.Duration(i) * time.Second), StartedAt: &at,
				Outcome: &ledger.Outcome{Phase: run.Failed, Message: strings.Repeat("x", 256), Parameters: names},
			})
		}
		cm, err := annotations.LedgerObject("theirs", name, led)
		if err != nil {
			t.Fatal(err)
		}
		if size := len(cm.Data[annotations.DataLedger]); n == 0 && (size < 700_000 || size > 1_000_000) {
			t.Fatalf("a ledger has %d bytes", size)
		}
		if err := ring.Sign(cm); err != nil {
			t.Fatal(err)
		}
		if _, err := x.admin.CoreV1().ConfigMaps("theirs").Create(x.ctx, cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	x.staysSmall("all plans are taken up", func() (bool, string) {
		n, said := x.saying("theirs", annotations.StatusPhase, "Idle")
		return n == plans, said
	})
}
