package agent_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/steppool"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/functiontest"
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

// Steps of many small plans of a tenant call a server that never answers: all but a few of them wait for
// a place, and the agent stays small and works for others.
func TestManyStepsThatWaitForAPlaceFillNoAgent(t *testing.T) {
	const plans, calls = 150, 98
	silent, asked := silentServer(t)
	x := newCrashes(t)
	x.tenant("theirs")
	x.tenant("others")
	var steps strings.Builder
	for i := range calls {
		fmt.Fprintf(&steps, "    - {name: s%d, type: webhook, timeout: 10m, properties: {url: '%s', timeout: 10m}}\n", i, silent.URL)
	}
	for n := range plans {
		x.document("theirs", fmt.Sprint("hangs-", n), "triggers: {onCreate: true}\nsteps:\n- name: all\n  type: step-group\n  properties:\n    mode: parallel\n    steps:\n"+steps.String())
	}
	x.staysSmallFor(shortly, "all steps are at work", func() (bool, string) {
		list, err := x.admin.CoreV1().ConfigMaps("theirs").List(x.ctx, metav1.ListOptions{LabelSelector: annotations.LabelPhase + "=" + string(run.Running)})
		if err != nil {
			return false, err.Error()
		}
		begun := 0
		for _, cm := range list.Items {
			if _, j, err := annotations.ReadRun(&cm); err == nil && j.AtWork(fmt.Sprint("all/s", calls-1), 1) {
				begun++
			}
		}
		if begun < plans {
			return false, fmt.Sprint(begun, " of ", len(list.Items))
		}
		x.goesOn("others")
		return true, ""
	})
	if n := asked.Load(); n != steppool.MaxOwn {
		t.Errorf("%d steps called, want %d", n, steppool.MaxOwn)
	}
}

// passes is a way to a server that lets so many bytes of each connection's answers through, and then
// nothing more.
func passes(t *testing.T, to string, bytes int64) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			down, err := listener.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", to)
			if err != nil {
				_ = down.Close()
				continue
			}
			go func() { _, _ = io.CopyN(down, up, bytes) }()
			go func() { _, _ = io.Copy(up, down); _ = up.Close(); _ = down.Close() }()
		}
	}()
	return listener.Addr().String()
}

// Functions of three tenants answer all of their calls at once, each with as large a text as is read:
// half of them stop right before its end.
func TestLargeAnswersOfFunctionsFillNoAgent(t *testing.T) {
	const tenants, plans, calls = 3, 2, 8
	answer, err := functiontest.Output(map[string]any{"text": strings.Repeat("x", 4_000_000)})
	if err != nil {
		t.Fatal(err)
	}
	whole := functiontest.Serve(t, func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) { return answer, nil })
	endpoints := []string{whole, passes(t, whole, 3_900_000)}
	x := newCrashes(t)
	var steps strings.Builder
	for i := range calls {
		fmt.Fprintf(&steps, "    - {name: s%d, type: function, properties: {endpoint: '%s', tls: {insecure: true}, timeout: 8s}}\n", i, endpoints[i%2])
	}
	for tenant := range tenants {
		ns := fmt.Sprint("theirs-", tenant)
		x.tenant(ns)
		for n := range plans {
			x.document(ns, fmt.Sprint("asks-", n), "triggers: {onCreate: true}\nsteps:\n- name: all\n  type: step-group\n  properties:\n    mode: parallel\n    steps:\n"+steps.String())
		}
	}
	x.staysSmallFor(shortly, "all answers were read, or given up", func() (bool, string) {
		all, words := 0, ""
		for tenant := range tenants {
			n, said := x.saying(fmt.Sprint("theirs-", tenant), annotations.StatusLastResult, string(run.Failed))
			all, words = all+n, words+said
		}
		return all == tenants*plans, words
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
