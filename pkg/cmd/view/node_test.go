package view_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// rolls is a live run of plan shop/roll.
func rolls(records ...run.Record) view.Run {
	r := cmdtest.RunOf(records...)
	r.Run.Name, r.Run.Plan = "maint-run-roll-x", "roll"
	return r
}

func rollout(message string, items ...run.Item) run.Record {
	return cmdtest.Record("roll", plan.TypeForEachNode, run.StepRunning, cmdtest.Message(message), cmdtest.Looping(items...))
}

// drains is the record of a drain at work, since an hour.
func drains(path, message string, targets ...run.DrainTarget) run.Record {
	memory, err := json.Marshal(run.DrainMemory{Attempt: 1, Since: *cmdtest.Before(time.Hour), Nodes: targets})
	if err != nil {
		panic(err)
	}
	return cmdtest.Record(path, plan.TypeDrain, run.StepRunning, cmdtest.Message(message), func(rec *run.Record) { rec.Memory = memory })
}

func TestWhichNodesStepsHaveAndWant(t *testing.T) {
	ended := rolls(rollout("", run.Item{Name: "a", Phase: run.StepFailed}))
	ended.Journal.Phase = run.Failed
	for _, c := range []struct {
		name string
		run  view.Run
		want []view.StepClaim
	}{
		{"a run that has ended claims nothing", ended, nil},
		{
			"of a rollout: what is said of the node, or else of the step", rolls(rollout("2 of 4 nodes", run.Item{Name: "a", Phase: run.StepSucceeded}, run.Item{Name: "b", Phase: run.StepRunning}, run.Item{Name: "c", Phase: run.StepFailed, Message: "no disk"}, run.Item{Name: "d"})),
			[]view.StepClaim{
				{Path: "roll", Node: "b", Phase: run.StepRunning, Message: "2 of 4 nodes"},
				{Path: "roll", Node: "c", Phase: run.StepFailed, Message: "no disk"},
				{Path: "roll", Node: "d", Message: "2 of 4 nodes"},
			},
		},
		{
			"those that wait have their order, and the first is next", rolls(rollout("", run.Item{Name: "b"}, run.Item{Name: "a"})),
			[]view.StepClaim{{Path: "roll", Node: "b", Next: true}, {Path: "roll", Node: "a", Order: 1}},
		},
		{
			"a drain alone, and what it still wants", rolls(drains("empty", "2 pods left", run.DrainTarget{Name: "a", Cordoned: true}, run.DrainTarget{Name: "b", Blocked: true, Why: "its budget"})),
			[]view.StepClaim{
				{Path: "empty", Node: "a", Phase: run.StepRunning, Message: "2 pods left", Cordoned: true},
				{Path: "empty", Node: "b", Message: "2 pods left", Next: true, Since: *cmdtest.Before(time.Hour), Blocked: nodes.Block{Permanent: true, Text: "its budget"}},
			},
		},
		{
			"a drain within a rollout has what the rollout has", rolls(rollout("1 of 2", run.Item{Name: "a", Phase: run.StepRunning}), drains("roll/a/drain", "2 pods left", run.DrainTarget{Name: "a", Cordoned: true})),
			[]view.StepClaim{{Path: "roll", Node: "a", Phase: run.StepRunning, Message: "1 of 2"}},
		},
		{
			"one that yielded says what its drain says", rolls(rollout("1 of 2", run.Item{Name: "a", Phase: run.StepRunning}), drains("roll/a/drain", "blocked by its budget", run.DrainTarget{Name: "a", Cordoned: true, Yielded: true})),
			[]view.StepClaim{{Path: "roll", Node: "a", Phase: run.StepRunning, Message: "blocked by its budget", Yielded: true}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := view.StepClaims([]view.Run{c.run})
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(view.StepClaim{}, "Run")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, one := range got {
				if one.Claimant() != "plan:shop/roll" || one.Step() != "maint-run-roll-x/"+one.Path {
					t.Errorf("%s by %s", one.Step(), one.Claimant())
				}
			}
		})
	}
}

func TestHowAStepStandsWithANode(t *testing.T) {
	for _, c := range []struct {
		claim view.StepClaim
		want  string
	}{
		{view.StepClaim{Phase: run.StepRunning, Message: "2 pods left"}, "at work"},
		{view.StepClaim{Phase: run.StepRunning, Yielded: true}, "its drain is blocked, and others have its turn: the node stays cordoned, and goes on first"},
		{view.StepClaim{Phase: run.StepFailed, Message: "no disk"}, "failed, and left as it is: no disk"},
		{view.StepClaim{Phase: run.StepFailed}, "failed, and left as it is"},
		{view.StepClaim{Message: "waits for a turn"}, "not begun: waits for a turn"},
	} {
		if got := c.claim.Words(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// One line for each that has a node or asks for it, none twice, and none of those that only
// want it: status shows what is under maintenance.
func TestTheTableOfClaims(t *testing.T) {
	tenMinutesAgo := cmdtest.Now().Add(-10 * time.Minute)
	given := func(claimants ...string) func(*corev1.Node) { return cmdtest.CordonedFor(nodes.Cordon{By: claimants}) }
	claim := func(phase run.StepPhase, message string, yielded bool) view.StepClaim {
		return view.StepClaim{Run: rolls(), Path: "roll", Node: "a", Phase: phase, Message: message, Yielded: yielded}
	}
	for _, c := range []struct {
		name   string
		node   *corev1.Node
		steps  []view.StepClaim
		unseen view.UnseenRuns
		alone  map[string]string
		gone   []string
		want   []view.NodeClaim
	}{
		{name: "nobody", node: cmdtest.Node("a")},
		{name: "a request that nobody has looked at", node: cmdtest.Node("a", cmdtest.Asked("gpu", "{}")), want: []view.NodeClaim{{Node: "a", By: "gpu", Phase: "Pending", Reason: "requested; the agent has not looked at it yet"}}},
		{
			name: "one that drains", node: cmdtest.Node("a", cmdtest.Asked("gpu", "{}"), cmdtest.Stood("gpu", nodes.Draining, "2 of 3 pods are left", cmdtest.Progress(2, 3))),
			want: []view.NodeClaim{{Node: "a", By: "gpu", Phase: "Draining", Left: "2/3", Reason: "2 of 3 pods are left", Since: tenMinutesAgo}},
		},
		{
			name: "one that is blocked for good", node: cmdtest.Node("a", cmdtest.Asked("gpu", "{}"), cmdtest.Stood("gpu", nodes.Draining, "blocked", cmdtest.Progress(2, 0), cmdtest.ForGood("its budget"))),
			want: []view.NodeClaim{{Node: "a", By: "gpu", Phase: "Draining", Left: "2", Reason: "blocked", Since: tenMinutesAgo, Blocked: true}},
		},
		{
			name: "one that was taken back, and its cordon not yet", node: cmdtest.Node("a", cmdtest.Stood("gpu", nodes.Ready, "it is yours")),
			want: []view.NodeClaim{{Node: "a", By: "gpu", Phase: "Ready", Reason: "being released, was Ready", Since: tenMinutesAgo}},
		},
		{
			name: "a rollout at work is not told of its cordon as well", node: cmdtest.Node("a", given("plan:shop/roll")), steps: []view.StepClaim{claim(run.StepRunning, "1 of 2", false)},
			want: []view.NodeClaim{{Node: "a", By: "plan shop/roll", Phase: "Running", Reason: "run maint-run-roll-x, step roll"}},
		},
		{
			name: "one that failed says why", node: cmdtest.Node("a", given("plan:shop/roll")), steps: []view.StepClaim{claim(run.StepFailed, "no disk", false)},
			want: []view.NodeClaim{{Node: "a", By: "plan shop/roll", Phase: "Failed", Reason: "run maint-run-roll-x, step roll: no disk"}},
		},
		{
			name: "one that yielded says what is in its way", node: cmdtest.Node("a", given("plan:shop/roll")), steps: []view.StepClaim{claim(run.StepRunning, "its budget", true)},
			want: []view.NodeClaim{{Node: "a", By: "plan shop/roll", Phase: "Yielded", Reason: "run maint-run-roll-x, step roll: its budget"}},
		},
		{
			name: "who only wants it has it not, but its plan's cordon of an earlier run stands", node: cmdtest.Node("a", given("plan:shop/roll")), steps: []view.StepClaim{claim("", "waits", false)},
			want: []view.NodeClaim{{Node: "a", By: "plan shop/roll", Phase: "Cordoned", Reason: "no run of that plan has it now", Since: tenMinutesAgo}},
		},
		{
			name: "whose runs cannot be read may have it", node: cmdtest.Node("a", given("plan:shop/roll", "plan:ops/roll", "plan:shop/roll@uid")), unseen: view.UnseenRuns{Some: true, But: "shop"},
			want: []view.NodeClaim{
				{Node: "a", By: "plan ops/roll", Phase: "Cordoned", Reason: "whether a run of that has it now cannot be seen", Since: tenMinutesAgo, Unseen: true},
				{Node: "a", By: "plan shop/roll", Phase: "Cordoned", Reason: "no run of that plan has it now", Since: tenMinutesAgo},
				{Node: "a", By: "plan shop/roll of another cluster", Phase: "Cordoned", Reason: "cordoned for it; the agent there goes on with the node", Since: tenMinutesAgo, Elsewhere: true},
			},
		},
		{
			name: "whose plan does not exist any more", node: cmdtest.Node("a", given("plan:shop/roll")), gone: []string{"plan:shop/roll"},
			want: []view.NodeClaim{{Node: "a", By: "plan shop/roll", Phase: "Cordoned", Reason: "there is no such plan any more: nobody else uncordons it", Since: tenMinutesAgo, Gone: true, Uncordon: true}},
		},
		{
			name: "whose plans do not exist any more, of which the runs of one may go on", node: cmdtest.Node("a", given("plan:ops/roll", "plan:shop/roll")), gone: []string{"plan:ops/roll", "plan:shop/roll"}, unseen: view.UnseenRuns{Some: true, But: "shop"},
			want: []view.NodeClaim{
				{Node: "a", By: "plan ops/roll", Phase: "Cordoned", Reason: "whether a run of that has it now cannot be seen", Since: tenMinutesAgo, Unseen: true},
				{Node: "a", By: "plan shop/roll", Phase: "Cordoned", Reason: "there is no such plan any more: nobody else uncordons it", Since: tenMinutesAgo, Gone: true},
			},
		},
		{
			name: "whose plan does not exist any more, while somebody else drains it", node: cmdtest.Node("a", cmdtest.Asked("gpu", "{}"), cmdtest.Stood("gpu", nodes.Draining, "2 pods are left"), given("gpu", "plan:shop/roll")), gone: []string{"plan:shop/roll"},
			want: []view.NodeClaim{
				{Node: "a", By: "gpu", Phase: "Draining", Reason: "2 pods are left", Since: tenMinutesAgo},
				{Node: "a", By: "plan shop/roll", Phase: "Cordoned", Reason: "there is no such plan any more: nobody else uncordons it", Since: tenMinutesAgo, Gone: true},
			},
		},
		{
			name: "whose plan does not exist any more, and whose runs cannot be read", node: cmdtest.Node("a", given("plan:shop/roll")), gone: []string{"plan:shop/roll"}, unseen: view.UnseenRuns{Some: true},
			want: []view.NodeClaim{{Node: "a", By: "plan shop/roll", Phase: "Cordoned", Reason: "whether a run of that has it now cannot be seen", Since: tenMinutesAgo, Unseen: true}},
		},
		{
			name: "whose run the agent leaves alone", node: cmdtest.Node("a", given("plan:shop/roll")), alone: map[string]string{"plan:shop/roll": "maint-run-roll-x"},
			want: []view.NodeClaim{{Node: "a", By: "plan shop/roll", Phase: "Cordoned", Reason: "the agent leaves its run maint-run-roll-x alone", Since: tenMinutesAgo, Alone: "maint-run-roll-x"}},
		},
		{
			name: "where no runs can be read", node: cmdtest.Node("a", given("plan:shop/roll")), unseen: view.UnseenRuns{Some: true},
			want: []view.NodeClaim{{Node: "a", By: "plan shop/roll", Phase: "Cordoned", Reason: "whether a run of that has it now cannot be seen", Since: tenMinutesAgo, Unseen: true}},
		},
		{name: "another node's step is not its own", node: cmdtest.Node("b"), steps: []view.StepClaim{claim(run.StepRunning, "", false)}},
		{
			name: "a requestor's cordon is told by the request alone", node: cmdtest.Node("a", cmdtest.Asked("gpu", "{}"), cmdtest.Stood("gpu", nodes.Ready, "it is yours"), given("gpu")),
			want: []view.NodeClaim{{Node: "a", By: "gpu", Phase: "Ready", Reason: "it is yours", Since: tenMinutesAgo}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, view.NodeClaims([]*corev1.Node{c.node}, view.NodeUse{Steps: c.steps, Unseen: c.unseen, Alone: c.alone, Gone: c.gone})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// An uncordon stops whoever is at work on a node, and nobody who has left it.
func TestWhoIsAtWorkOnACordonedNode(t *testing.T) {
	const elsewhere, plan = "plan:shop/roll@uid", "plan:shop/roll"
	step := func(phase run.StepPhase) []view.StepClaim {
		return []view.StepClaim{{Run: rolls(), Path: "roll", Node: "a", Phase: phase}}
	}
	asked, released := cmdtest.Asked("gpu", "{}"), cmdtest.Stood("gpu", nodes.Ready, "")
	for name, c := range map[string]struct {
		by   []string
		edit func(*corev1.Node)
		use  view.NodeUse
		want []string
	}{
		"nobody":                                  {},
		"a request":                               {by: []string{"gpu", plan}, edit: asked, want: []string{"gpu"}},
		"a request that was taken back":           {by: []string{"gpu"}, edit: released},
		"a run":                                   {by: []string{plan}, use: view.NodeUse{Steps: step(run.StepRunning)}, want: []string{"plan shop/roll"}},
		"a run that still comes to it":            {by: []string{plan}, use: view.NodeUse{Steps: step("")}, want: []string{"plan shop/roll"}},
		"a run that failed there":                 {by: []string{plan}, use: view.NodeUse{Steps: step(run.StepFailed)}},
		"a run that the agent leaves alone":       {by: []string{plan}, use: view.NodeUse{Alone: map[string]string{plan: "r"}, Unseen: view.UnseenRuns{Some: true}}},
		"a plan of another cluster":               {by: []string{elsewhere}, want: []string{"plan shop/roll of another cluster"}},
		"a plan whose runs cannot be read":        {by: []string{plan}, use: view.NodeUse{Unseen: view.UnseenRuns{Some: true}}, want: []string{"plan shop/roll"}},
		"a plan of which no run has it":           {by: []string{plan}},
		"a plan that does not exist, and a run":   {by: []string{"plan:shop/gone", plan}, use: view.NodeUse{Steps: step(run.StepRunning), Gone: []string{"plan:shop/gone"}}, want: []string{"plan shop/roll"}},
		"a requestor of whom there is no request": {by: []string{"gpu"}},
	} {
		t.Run(name, func(t *testing.T) {
			var edits []func(*corev1.Node)
			if c.by != nil {
				edits = append(edits, cmdtest.CordonedFor(nodes.Cordon{By: c.by}))
			}
			if c.edit != nil {
				edits = append(edits, c.edit)
			}
			if diff := cmp.Diff(c.want, c.use.AtWork(annotations.Node(cmdtest.Node("a", edits...)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARequestAsItIsReadOffANode(t *testing.T) {
	node := cmdtest.Node("a", cmdtest.Asked("gpu", `{"reason":"firmware"}`), cmdtest.Asked("bad", "{"), cmdtest.Stood("gpu", nodes.Ready, "it is yours"))
	var by []string
	for _, one := range view.RequestClaims(node) {
		by = append(by, one.By+" "+one.Phase)
	}
	if diff := cmp.Diff([]string{"bad Pending", "gpu Ready"}, by); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhetherARequestIsGivenUp(t *testing.T) {
	ended := func(value string) *nodes.Status {
		return &nodes.Status{Ended: &nodes.End{Why: nodes.EndAborted, Value: value}}
	}
	asked := nodes.Asked{Request: nodes.Request{Requestor: "gpu", Identity: "one"}}
	for _, c := range []struct {
		name   string
		status *nodes.Status
		want   bool
	}{
		{"nobody has looked", nil, false},
		{"at work", &nodes.Status{Phase: nodes.Draining}, false},
		{"given up as it stands", ended("one"), true},
		{"given up, and changed since", ended("two"), false},
	} {
		asked.Status = c.status
		if got := view.GivenUp(asked); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestWhatOneRequestorAsks(t *testing.T) {
	n := nodes.Node{Asked: []nodes.Asked{{Request: nodes.Request{Requestor: "cli.jane"}}, {Request: nodes.Request{Requestor: "gpu"}}}}
	if got := view.AskedBy(n, "gpu"); got != &n.Asked[1] {
		t.Errorf("%+v", got)
	}
	if got := view.AskedBy(n, "cli"); got != nil {
		t.Errorf("a part of a name is another name: %+v", got)
	}
}

func TestWhatBlocksForGood(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  nodes.Status
		text    string
		forGood bool
	}{
		{"nothing", nodes.Status{}, "", false},
		{"something that passes", nodes.Status{Blocked: &nodes.Block{Text: "a pod starts"}}, "", false},
		{"something that does not", nodes.Status{Blocked: &nodes.Block{Text: "its budget", Permanent: true}}, "its budget", true},
	} {
		if text, is := view.BlockedForGood(c.status); text != c.text || is != c.forGood {
			t.Errorf("%s: %q, %t", c.name, text, is)
		}
	}
}
