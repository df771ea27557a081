package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func saturday() time.Time { return time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC) }

func in(d time.Duration) *time.Time {
	at := saturday().Add(d)
	return &at
}

func TestWhatIsPausedIsNotPermitted(t *testing.T) {
	open := NewSubject("plan", "shop", "orders", "UTC", policy.NewResolver("maint-system").Gate(policy.Query{Namespace: "shop"}))
	for _, c := range []struct {
		name      string
		pauses    []schedule.Pause
		permitted bool
		reason    string
		until     *time.Time
	}{
		{name: "no pause", permitted: true},
		{name: "a pause without an end", pauses: []schedule.Pause{{On: true}}, reason: "paused"},
		{name: "a pause that has ended", pauses: []schedule.Pause{{On: true, Until: in(-time.Hour)}}, permitted: true},
		{name: "a pause that ends", pauses: []schedule.Pause{{On: true, Until: in(time.Hour)}}, reason: "paused until 2026-11-21T01:00:00Z", until: in(time.Hour)},
		{name: "of two the longer one", pauses: []schedule.Pause{{On: true, Until: in(time.Hour)}, {On: true, Until: in(3 * time.Hour)}}, reason: "paused until 2026-11-21T03:00:00Z", until: in(3 * time.Hour)},
		{name: "the one without an end is the longest", pauses: []schedule.Pause{{On: true}, {On: true, Until: in(time.Hour)}, {}}, reason: "paused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open
			s.Pauses = c.pauses
			got := s.Verdict(saturday())
			if got.Permitted != c.permitted || !got.Ready || !c.permitted && got.Reason != c.reason {
				t.Errorf("%+v", got)
			}
			if !c.permitted {
				if diff := cmp.Diff(c.until, got.Until); diff != "" {
					t.Errorf("until (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestThePhaseOfAPlanIsTheAgentsWhereItHasLooked(t *testing.T) {
	document := func(text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "u", Labels: map[string]string{annotations.LabelKind: annotations.KindPlan}, Annotations: map[string]string{}},
			Data:       map[string]string{annotations.DataPlan: text},
		}
	}
	const valid = "{apiVersion: maint.dev/v1alpha1, kind: Plan, spec: {steps: [{name: hold, type: suspend}]}}"
	seen := document(valid)
	seen.Annotations[annotations.StatusPhase], seen.Annotations[annotations.StatusMessage] = "Idle", "sleeps"
	seen.Annotations[annotations.StatusObserved] = annotations.Observed(seen)
	edited := seen.DeepCopy()
	edited.Data[annotations.DataPlan] = valid + "\n"
	for _, c := range []struct {
		name           string
		object         *corev1.ConfigMap
		phase, message string
	}{
		{"the agent has looked", seen, "Idle", "sleeps"},
		{"it was edited since", edited, "Unseen", "the agent has not looked at this version of the plan yet"},
		{"nobody has looked", document(valid), "Unseen", "the agent has not looked at this version of the plan yet"},
		{"with faults it is invalid, whoever has looked", document("kind: Plan"), "Invalid", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			phase, message := NewPlan(c.object, Ledger{}, nil, Around{}, saturday()).Phase()
			if phase != c.phase || c.message != "" && message != c.message {
				t.Errorf("%s, %q", phase, message)
			}
		})
	}
}

func TestWhatARunAsks(t *testing.T) {
	asking := run.Record{Path: "a/ask", Type: plan.TypeApproval, Phase: run.StepRunning}
	answered := asking
	answered.Path, answered.Approval = "b/ask", &run.Approval{Approved: true}
	at := func(phase run.Phase, steps ...run.Record) Run {
		return Run{Run: run.Run{Name: "r"}, Journal: run.Journal{Phase: phase, Steps: steps}}
	}
	approved := at(run.Pending)
	approved.Run.Spec.RequiresApproval = true
	dry := approved
	dry.Run.Request.DryRun = true
	for _, c := range []struct {
		name string
		run  Run
		want []string
	}{
		{"a step that waits", at(run.Running, asking, answered), []string{"r/a/ask"}},
		{"a run that has ended asks nothing", at(run.Failed, asking), nil},
		{"a run before it begins", approved, []string{"r"}},
		{"a dry run needs no approval", dry, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Questions(c.run)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([]string{"a/ask", "b/ask"}, StepsNamed(at(run.Running, asking, answered), "ask")); diff != "" {
		t.Errorf("a name that two steps have (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b/ask"}, StepsNamed(at(run.Running, asking, answered), "b/ask")); diff != "" {
		t.Errorf("a path (-want +got):\n%s", diff)
	}
}

func TestHowARequestStands(t *testing.T) {
	for _, c := range []struct {
		name  string
		asked *nodes.Asked
		want  string
	}{
		{"nobody asks", nil, "not asked for"},
		{"nobody has looked", &nodes.Asked{}, "requested; the agent has not looked at it yet"},
		{"at work", &nodes.Asked{Status: &nodes.Status{Phase: nodes.Draining, Reason: "2 pods left"}}, "Draining: 2 pods left"},
		{"taken back", &nodes.Asked{Gone: true, Status: &nodes.Status{Phase: nodes.Ready}}, "being released, was Ready"},
		{"taken back before anybody looked", &nodes.Asked{Gone: true}, "being released"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := RequestWords(c.asked); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestWhoHasANode(t *testing.T) {
	n := nodes.Node{Name: "a", Unschedulable: true, Cordon: &nodes.Cordon{By: []string{"plan:shop/roll", "plan:shop/left", "cli.jane"}, At: saturday()}}
	n.Asked = []nodes.Asked{{Request: nodes.Request{Requestor: "cli.jane"}, Status: &nodes.Status{Phase: nodes.Ready, Since: saturday()}}}
	claim := StepClaim{Run: Run{Run: run.Run{Namespace: "shop", Name: "r", Plan: "roll"}}, Path: "drain", Node: "a", Phase: run.StepRunning}
	want := []NodeClaim{
		{Node: "a", By: "cli.jane", Phase: "Ready", Since: saturday()},
		{Node: "a", By: "plan shop/roll", Phase: "at work", Reason: "run r"},
		{Node: "a", By: "plan shop/left", Phase: "Cordoned", Reason: "no run of that plan has it now", Since: saturday()},
	}
	if diff := cmp.Diff(want, ClaimsOfNode(Node{Node: n, StepClaims: []StepClaim{claim}})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	claim.Phase, n.Asked = "", nil // a new run, which has not come to what an earlier one left
	want = []NodeClaim{
		{Node: "a", By: "plan shop/roll", Phase: "not begun", Reason: "run r"},
		{Node: "a", By: "plan shop/roll", Phase: "Cordoned", Reason: "no run of that plan has it now", Since: saturday()},
		{Node: "a", By: "plan shop/left", Phase: "Cordoned", Reason: "no run of that plan has it now", Since: saturday()},
	}
	if diff := cmp.Diff(want, ClaimsOfNode(Node{Node: n, StepClaims: []StepClaim{claim}})); diff != "" {
		t.Errorf("of a run that waits (-want +got):\n%s", diff)
	}
	n.Unschedulable = false // somebody uncordoned it
	if diff := cmp.Diff(want[:1], ClaimsOfNode(Node{Node: n, StepClaims: []StepClaim{claim}})); diff != "" {
		t.Errorf("of a node that is in service again (-want +got):\n%s", diff)
	}
}

func TestWordsAroundWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Colon(""), ""},
		{Colon("x"), ": x"},
		{AndMore(0), ""},
		{AndMore(2), " (and 2 more)"},
		{Counted(1, "slot"), "1 slot"},
		{Counted(0, "slot"), "0 slots"},
		{PrefixList(" by ", nil), ""},
		{PrefixList(" by ", []string{"a", "b"}), " by a, b"},
		{Prefix(" in ", ""), ""},
		{Prefix(" in ", "x"), " in x"},
		{OrDash(""), "-"},
		{OrDash("a\nb"), "a b"},
		{NodeWords([]string{"a"}), "node a"},
		{NodeWords([]string{"a", "b"}), "2 nodes (a, b)"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// All runs begin with maint-run-: that makes no two of them alike.
func TestANameIsLikeAnotherByWhatIsItsOwn(t *testing.T) {
	names := []string{"cache-restart-gate", "cache-restart", "maint-run-cache-restart-ax4b3iv4cs", "maint-run-orders-weekly-xypdbuyczr", "maint-ledger-cache-restart-b5k"}
	for word, want := range map[string]string{
		"maint-run-invoices-xypdbuyczr":         "",
		"maint-run-bad-xyz":                     "",
		"maint-ledger-bad-b5k":                  "",
		"maint-run-":                            "",
		"":                                      "",
		"maint-run-orders-weekly-xypdbuyczs":    "maint-run-orders-weekly-xypdbuyczr",
		"orders-weekly-xypdbuyczr":              "maint-run-orders-weekly-xypdbuyczr",
		"maint-run-orders-nightly-b5k2x7d2aa":   "maint-run-orders-weekly-xypdbuyczr",
		"maint-run-cache-restart":               "cache-restart",
		"maint-ledger-cache-restart-ax4b3iv4cr": "maint-run-cache-restart-ax4b3iv4cs",
		"restart":                               "cache-restart-gate",
		"maint-run-cache-restart-aaaaaaaaaa":    "cache-restart",
	} {
		if got, ok := NearestName(word, names); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", word, got, ok)
		}
	}
}
