package walls

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// waitingItems says of each reason by which a plan waits, as the code has it, which words of README's list
// speak of it.
func waitingItems() map[string]string {
	const account, target, right, watch, policy = "its ServiceAccount", "its target, which must exist", "the right of the account", "If a watch rule triggers it", "its policies"
	const cluster, clock, consent, runWaits = "the cluster of its connector", "a clock that the agent trusts", "the consent of the API server", "what its run waits for"
	return map[string]string{
		"phase: f.ClockDoubt": clock,
		`phase: l.named() + " is held: " + l.Message + behind`:                                                             runWaits,
		`phase: Waits(d.f.Live[0].named(), cmp.Or(cmp.Or(d.f.Live[0].Message, d.f.Live[0].Waiting), "starting")) + behind`: runWaits,
		"phase: d.waiting":                            runWaits,
		"phase: d.f.Ready.Message":                    policy,
		"phase: d.f.Unwatched":                        watch,
		"waiting: d.out.Status.Refused":               consent,
		`waiting: "the slot " + slot.Wall + " waits"`: runWaits,
		"waiting: fmt.Sprintf(format, args...)":       runWaits,
		"ready: isWithinQuota: d.f.Quota.Full":        "room beside the active runs of its namespace",
		"ready: gate: v.Reason":                       policy,
		"ready: readiness: missing":                   account,
		"ready: targetRights: err.Error()":            cluster,
		"ready: targetRights: refused":                right,
		"ready: liveTarget: gone.Error()":             target,
		"ready: liveTarget: err.Error()":              right,
		"ready: liveTarget: never ready":              "must have been ready once",
		"ready: labelTarget: err.Error()":             cluster,
		"ready: labelTarget: missing":                 account,
		"ready: labelTarget: failure":                 "list and watch the target's kind",
		"ready: labelTarget: gone":                    target,
		"ready: labelTarget: never ready":             "must have been ready once",
		"run: WaitWindow":                             "a window",
		"run: WaitApproval":                           "an approval",
		"run: WaitQueue":                              "an earlier run of the plan",
		"run: WaitLock":                               "a run on the same target",
		"run: WaitJitter":                             "its jitter",
		"run: WaitPause":                              "the end of a pause",
		"run: WaitClock":                              clock,
		"run: WaitNotReady":                           policy,
	}
}

// waits finds the reasons by which a plan waits in a file.
type waits struct {
	function string
	found    map[string]bool
}

// text is an expression as it is written; what is long stands for itself by a few words.
func (w *waits) text(e ast.Expr) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), e); err != nil {
		return err.Error()
	}
	switch text := b.String(); {
	case strings.Contains(text, "was never ready yet"):
		return "never ready"
	case strings.Contains(text, "GoneError{"):
		return "gone"
	default:
		return text
	}
}

// Visit is ast.Visitor's.
func (w *waits) Visit(n ast.Node) ast.Visitor {
	is := func(e ast.Expr, names ...string) bool { return slices.Contains(names, w.text(e)) }
	switch n := n.(type) {
	case *ast.FuncDecl:
		w.function = n.Name.Name
	case *ast.ReturnStmt:
		if len(n.Results) == 2 && is(n.Results[0], "PhaseWaiting") {
			w.found["phase: "+w.text(n.Results[1])] = true
		}
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			switch {
			case len(n.Lhs) != len(n.Rhs) || n.Tok != token.ASSIGN:
			case is(n.Rhs[i], "PhaseWaiting"):
				w.found["phase: "+w.text(n.Rhs[i+1])] = true
			case is(to, "d.waiting"):
				w.found["waiting: "+w.text(n.Rhs[i])] = true
			}
		}
	case *ast.CallExpr:
		if is(n.Fun, "notReadyYet") {
			w.found["ready: "+w.function+": "+w.text(n.Args[1])] = true
		}
	case *ast.CompositeLit:
		if n.Type != nil && is(n.Type, "Readiness", "trigger.Readiness") && w.function != "notReadyYet" {
			for _, field := range n.Elts {
				if pair, keyed := field.(*ast.KeyValueExpr); keyed && is(pair.Key, "Message") {
					w.found["ready: "+w.function+": "+w.text(pair.Value)] = true
				}
			}
		}
	case *ast.ValueSpec:
		if name := n.Names[0].Name; strings.HasPrefix(name, "Wait") && w.function == "" {
			w.found["run: "+name] = true
		}
	}
	return w
}

// Who reads why a plan stays Waiting finds each reason in README's list, and no other.
func TestREADMEHasEachReasonByWhichAPlanWaits(t *testing.T) {
	w := &waits{found: map[string]bool{}}
	files, err := goFiles("../../pkg/trigger")
	if err != nil {
		t.Fatal(err)
	}
	more, err := goFiles("../../pkg/agent/plans")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Concat(files, more, []string{"../../pkg/run/journal.go"}) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		w.function = ""
		ast.Walk(w, file)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(readme), "**A plan that stays `Waiting`**")
	list, _, closed := strings.Cut(list, "\n\nA plan is `Invalid`")
	if !found || !closed {
		t.Fatal("README has no list of what a plan needs")
	}
	items := strings.Split(list, "\n- ")[1:]
	table, spoken := waitingItems(), map[string]bool{}
	for reason := range w.found {
		if table[reason] == "" {
			t.Errorf("a plan waits by %q: say here which words of README's list speak of it", reason)
		}
	}
	for reason, words := range table {
		if !w.found[reason] {
			t.Errorf("no plan waits by %q any more: take its line away", reason)
		}
		at := slices.IndexFunc(items, func(item string) bool { return strings.Contains(item, words) })
		if at < 0 {
			t.Errorf("README's list does not say %q, by which a plan waits", words)
			continue
		}
		spoken[items[at]] = true
	}
	for _, item := range items {
		if !spoken[item] {
			t.Errorf("no plan waits by what README's list says: %s", item)
		}
	}
}
