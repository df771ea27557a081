package source

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/calendar"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/rights"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const (
	policyText = "apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: {strategy: Sometimes}\n"
	planText   = "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec: {steps: [{name: hold, type: suspend}]}\n"
)

// manifestOf is a ConfigMap whose data is a block.
func manifestOf(labels, key, text string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n" + labels + "data:\n  " + key + ": |\n    " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    ") + "\n"
}

func indented(text string) string {
	return "- " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

// What is found in a file, and in which line its faults are: an editor jumps there.
func TestWhichDocumentsAreInAFile(t *testing.T) {
	const labelled = "  labels: {maint.dev/kind: policy}\n"
	for _, c := range []struct {
		name, file, text string
		want             []string // kind, name, and the line of its first fault
		faults           []string // of the file
	}{
		{name: "nothing", text: ""},
		{name: "comments", text: "# nothing\n---\n# here\n"},
		{name: "what is somebody else's", text: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n---\n- a\n- list\n---\nword\n"},
		{name: "a bare document is called as its file", file: "night.yaml", text: policyText, want: []string{"policy night 3"}},
		{name: "a file of no name for a document", file: "Night shift.yaml", text: policyText, want: []string{"policy  3"}},
		{name: "the second of two begins further below", file: "night.yaml", text: "# first\n" + planText + "---\n# second\n" + policyText, want: []string{"plan night", "policy night 9"}},
		{name: "a marker with a comment parts, too", file: "night.yaml", text: planText + "--- # second\n" + policyText, want: []string{"plan night", "policy night 7"}},
		{name: "a marker before the first parts nothing", file: "night.yaml", text: "\n---\n" + policyText, want: []string{"policy night 5"}},
		{name: "a kind without its apiVersion is ours", file: "night.yaml", text: "kind: Policy\nspec: {}\n", want: []string{"policy night 1"}},
		{name: "such a kind of others is theirs", file: "night.yaml", text: "apiVersion: example.com/v1\nkind: Policy\nspec: {}\n"},
		{name: "an unknown kind of ours is said to be none", file: "night.yaml", text: "apiVersion: maint.dev/v1alpha1\nkind: Ploicy\nspec: {}\n", want: []string{"plan night 2"}},
		{name: "a manifest", text: manifestOf(labelled, "policy.yaml", policyText), want: []string{"policy a 10"}},
		{name: "a manifest below another", text: "kind: Other\n---\n" + manifestOf(labelled, "policy.yaml", policyText), want: []string{"policy a 12"}},
		{name: "a manifest without its label has the data of ours", text: manifestOf("", "policy.yaml", policyText), want: []string{" a 3"}},
		{name: "one with data of others is theirs", text: manifestOf("", "config.yaml", policyText)},
		{name: "a step.yaml may well be another's", text: manifestOf("", "step.yaml", "apiVersion: tekton.dev/v1\nkind: Task\n")},
		{name: "a manifest that cannot be one", text: "# one\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {maint.dev/kind: policy}}\ndate: {}\n", faults: []string{`x.yaml:2: this is no ConfigMap: error unmarshaling JSON: while decoding JSON: json: unknown field "date"`}},
		{name: "a list of manifests", text: "apiVersion: v1\nkind: List\nitems:\n" + indented(manifestOf(labelled, "policy.yaml", policyText)) + "- word\n" + indented("kind: Other\n"), want: []string{"policy a 13"}},
		{name: "an empty list", text: "apiVersion: v1\nkind: List\n"},
		{name: "a namespace that says something", text: "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, annotations: {maint.dev/pause: 'true'}}\n", want: []string{"namespace shop"}},
		{name: "a namespace that says nothing to us", text: "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, annotations: {other.dev/pause: 'true'}}\n"},
		{name: "a calendar of another program", file: "days.ics", text: "BEGIN:VCALENDAR\nEND:VCALENDAR\n", want: []string{"calendar days"}},
		{name: "what is no YAML, and what comes after it", file: "night.yaml", text: "kind: Other\n---\na: [\n---\n" + planText, want: []string{"plan night"}, faults: []string{"night.yaml:3: this is no YAML: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.file == "" {
				c.file = "x.yaml"
			}
			docs, faults := Split(c.file, []byte(c.text))
			var got []string
			for _, d := range docs {
				words := d.Kind + " " + d.Name
				if found := d.Check(); len(found) > 0 {
					words += fmt.Sprint(" ", found[0].Line)
				}
				got = append(got, words)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
			if len(faults) != len(c.faults) {
				t.Fatalf("faults %v, want %v", faults, c.faults)
			}
			for i, f := range faults {
				if !strings.HasPrefix(f.String(), c.faults[i]) {
					t.Errorf("fault %q, want %q", f, c.faults[i])
				}
			}
		})
	}
}

func TestWhatRBACCallsANeed(t *testing.T) {
	for _, c := range []struct{ version, kind, sub, want string }{
		{"apps/v1", "Deployment", "", "apps deployments"},
		{"apps/v1", "Deployment", "scale", "apps deployments/scale"},
		{"v1", "Endpoints", "", " endpoints"},
		{"networking.k8s.io/v1", "NetworkPolicy", "", "networking.k8s.io networkpolicies"},
		{"networking.k8s.io/v1", "Ingress", "", "networking.k8s.io ingresses"},
		{"a/b/c", "Deployment", "scale", " "},
	} {
		group, resource := ResourceOf(rights.Need{APIVersion: c.version, Kind: c.kind, Subresource: c.sub})
		if got := group + " " + resource; got != c.want {
			t.Errorf("%s %s: %q, want %q", c.version, c.kind, got, c.want)
		}
	}
}

func TestHowAnEntryOfThePastIsSaid(t *testing.T) {
	outcome := func(phase run.Phase, step, message string) *ledger.Outcome {
		return &ledger.Outcome{Phase: phase, Step: step, Message: message, Duration: document.Duration{Duration: 90*time.Second + 300*time.Millisecond}}
	}
	for _, c := range []struct {
		name         string
		entry        ledger.Entry
		note         string
		idle, failed bool
	}{
		{"it succeeded", ledger.Entry{Result: run.Ran, Outcome: outcome(run.Succeeded, "", "while it ran jane changed it")}, "Succeeded in 1m30s: while it ran jane changed it", false, false},
		{"it failed at a step", ledger.Entry{Result: run.Ran, Outcome: outcome(run.Failed, "dump", "exit code 3")}, "Failed at dump: exit code 3", false, true},
		{"it failed at none", ledger.Entry{Result: run.Ran, Outcome: outcome(run.Failed, "", "")}, "Failed", false, true},
		{"somebody aborted it", ledger.Entry{Result: run.Ran, Outcome: outcome(run.Aborted, "", "by jane")}, "Aborted: by jane", false, false},
		{"of an older agent, which did not keep how", ledger.Entry{Result: run.Ran, Reason: "schedule"}, "Ran: schedule", false, false},
		{"it is not over", ledger.Entry{Result: run.Open, Run: "maint-run-orders-a"}, "its run is not over: maint-run-orders-a", false, false},
		{"it was skipped", ledger.Entry{Result: run.Skipped, Reason: "paused"}, "Skipped: paused", true, false},
		{"it was missed by a freeze", ledger.Entry{Result: run.Missed, Reason: "window", Said: "frozen by jane: CHG-1", Outcome: outcome(run.Aborted, "", "did not start within startDeadline 2s: frozen by jane: CHG-1")}, "Missed: did not start within startDeadline 2s: frozen by jane: CHG-1", true, true},
		{"it was paused", ledger.Entry{Result: run.Skipped, Reason: "paused", Said: "paused by jane: CHG-1"}, "Skipped: paused by jane: CHG-1", true, false},
		{"it was missed", ledger.Entry{Result: run.Missed, Reason: "deadline"}, "Missed: deadline", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := *cmdtest.Before(time.Hour)
			p := past{bySlot: map[int64]ledger.Entry{at.Unix(): c.entry}}
			e := calendar.Entry{Kind: calendar.Slot, Start: at}
			p.note(&e)
			if e.Note != c.note || e.Idle != c.idle || e.Failed != c.failed {
				t.Errorf("%q, idle %t, failed %t", e.Note, e.Idle, e.Failed)
			}
		})
	}
}

func TestWhatIsKnownOfTheSlotsOfThePast(t *testing.T) {
	at := func(hours int) time.Time { return *cmdtest.Before(time.Duration(hours) * time.Hour) }
	first, last := at(6), at(4)
	p := past{created: at(10), seen: at(2), bySlot: map[int64]ledger.Entry{}, folded: []ledger.Entry{{Result: run.Skipped, Reason: "paused", First: &first, Last: &last, Count: 3}}}
	for _, c := range []struct {
		name, note string
		hours      int
		was        string // the note before
		idle       bool
	}{
		{"before what is folded", "how it ended is not kept", 7, "", false},
		{"the first of the folded", "Skipped: paused", 6, "", true},
		{"one within", "Skipped: paused", 5, "", true},
		{"the last of them", "Skipped: paused", 4, "", true},
		{"after them", "how it ended is not kept", 3, "", false},
		{"up to which the agent has looked", "how it ended is not kept", 2, "", false},
		{"after it has looked", "the agent has not looked at it", 1, "", true},
		{"what has a note keeps it", "clocks go back", 1, "clocks go back", false},
	} {
		e := calendar.Entry{Kind: calendar.Slot, Start: at(c.hours), Note: c.was}
		p.note(&e)
		if e.Note != c.note || e.Idle != c.idle {
			t.Errorf("%s: %q, idle %t", c.name, e.Note, e.Idle)
		}
	}
	slept := past{bySlot: map[int64]ledger.Entry{at(5).Unix(): {Result: run.Ran, Slept: []ledger.Slept{{Resources: 2}, {Resources: 1}}}}}
	e := calendar.Entry{Kind: calendar.Sleep, Start: at(5), Note: "extended"}
	if slept.note(&e); e.Note != "extended, 3 resources slept" || e.Idle {
		t.Errorf("%q", e.Note)
	}
	if !p.covers(at(1), cmdtest.Now()) || p.covers(cmdtest.Now(), cmdtest.Now()) || (past{}).covers(at(1), cmdtest.Now()) {
		t.Error("the past of a plan in a cluster is before now; one in a file has none")
	}
	if got := p.after(at(20)); !got.Equal(at(10)) {
		t.Errorf("nothing was before the plan was made: %s", got)
	}
	if got := p.after(at(1)); !got.Equal(at(1)) {
		t.Errorf("%s", got)
	}
}

func TestWhichStepsHoldOthers(t *testing.T) {
	inner := []any{map[string]any{"name": "inner", "type": "suspend"}}
	for _, c := range []struct {
		kind  string
		steps any
		want  int
	}{
		{plan.TypeGroup, inner, 1},
		{plan.TypeForEach, inner, 1},
		{plan.TypeForEachNode, inner, 1},
		{"webhook", inner, 0},
		{plan.TypeGroup, "inner", 0},
		{plan.TypeGroup, nil, 0},
	} {
		s := plan.Step{Name: "s", Type: c.kind, Properties: map[string]any{"steps": c.steps}}
		if got := heldBy(s); len(got) != c.want {
			t.Errorf("%s with %v: %v", c.kind, c.steps, got)
		}
	}
	faults := document.Faults{{Path: "a", Message: "is wrong"}, {Path: "b", Message: "is too"}}
	got := hint(faults, document.Fault{Path: "a", Message: "write x"})
	if diff := cmp.Diff(document.Faults{{Path: "a", Message: "is wrong; write x"}, {Path: "b", Message: "is too"}}, got); diff != "" || faults[0].Message != "is wrong" {
		t.Errorf("a hint belongs to the fault of its path (-want +got):\n%s", diff)
	}
	if got := hint(faults, document.Fault{Path: "c", Message: "write x"}); len(got) != 3 || got[2].Path != "c" {
		t.Errorf("%v", got)
	}
}

// A connector is checked alike, as a document of its own and in its ConfigMap.
func TestWhatIsWrongWithAConnectorIsSaidWhereverItStands(t *testing.T) {
	bare := func(spec string) string {
		return "apiVersion: maint.dev/v1alpha1\nkind: K8SCluster\nspec: " + spec + "\n"
	}
	wrapped := func(spec string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: edge, namespace: shop, labels: {maint.dev/kind: connector}}\ndata:\n  connector.yaml: |\n    " + strings.ReplaceAll(bare(spec), "\n", "\n    ") + "\n"
	}
	for name, text := range map[string]func(string) string{"bare": bare, "in its ConfigMap": wrapped} {
		for spec, faulty := range map[string]bool{"{k8s: {kubeconfigRef: {name: edge}}}": false, "{color: red}": true} {
			docs, _, err := ReadDocuments([]string{"-"}, strings.NewReader(text(spec)))
			if err != nil || len(docs) != 1 {
				t.Fatalf("%s: %d documents, %v", name, len(docs), err)
			}
			if faults := docs[0].Check(); len(faults) > 0 != faulty {
				t.Errorf("%s, %s: %v", name, spec, faults)
			}
		}
	}
}
