package run_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestWhichStepsRelyOnAClosedNode(t *testing.T) {
	r := coretest.RunOf(t, "steps: [{name: roll, type: for-each-node, properties: {steps: ["+
		"{name: first, type: webhook, properties: {url: 'https://example.org'}}, {name: drain, type: drain}, {name: reboot, type: webhook, properties: {url: 'https://example.org'}},"+
		" {name: uncordon, type: uncordon}, {name: last, type: webhook, properties: {url: 'https://example.org'}}, {name: other, type: drain, properties: {node: another}},"+
		" {name: named, type: drain, properties: {node: n0}}, {name: this, type: drain, properties: {node: '${node.metadata.name}'}}, {name: chosen, type: drain, properties: {selector: {matchLabels: {pool: gpu}}}}, {name: far, connectorRef: {kind: K8SCluster, name: stg}, type: drain, properties: {node: n0}},"+
		" {name: delete, type: delete-object, properties: {resource: {apiVersion: v1, kind: Node, name: '${node.metadata.name}'}}}, {name: tidy, type: delete-object, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: n0}}}]}}]")
	at := func(minute int) *time.Time {
		out := time.Date(2026, 5, 1, 2, minute, 0, 0, time.UTC)
		return &out
	}
	done := func(name, kind string, minute int) run.Record {
		return run.Record{Path: "roll/n0/" + name, Type: kind, Phase: run.StepSucceeded, Attempt: 1, FinishedAt: at(minute)}
	}
	works := func(name, kind string, attempt, seen int) run.Record {
		return run.Record{Path: "roll/n0/" + name, Type: kind, Phase: run.StepRunning, Attempt: attempt, NodeSeen: seen}
	}
	for name, c := range map[string]struct {
		steps  []run.Record
		dryRun bool
		want   bool
	}{
		"before the drain":                     {steps: []run.Record{works("first", "webhook", 1, 0)}},
		"the drain itself":                     {steps: []run.Record{works("drain", "drain", 1, 0)}},
		"after the drain":                      {steps: []run.Record{done("drain", "drain", 1), works("reboot", "webhook", 1, 0)}, want: true},
		"once it has begun":                    {steps: []run.Record{done("drain", "drain", 1), works("reboot", "webhook", 1, 1)}},
		"at its next attempt":                  {steps: []run.Record{done("drain", "drain", 1), works("reboot", "webhook", 2, 1)}, want: true},
		"the uncordon":                         {steps: []run.Record{done("drain", "drain", 1), works("uncordon", "uncordon", 1, 0)}},
		"after the uncordon":                   {steps: []run.Record{done("drain", "drain", 1), done("uncordon", "uncordon", 2), works("last", "webhook", 1, 0)}},
		"after the drain of another node":      {steps: []run.Record{done("other", "drain", 1), works("last", "webhook", 1, 0)}},
		"after a drain by its name":            {steps: []run.Record{done("named", "drain", 1), works("last", "webhook", 1, 0)}, want: true},
		"after a drain by a template":          {steps: []run.Record{done("this", "drain", 1), works("last", "webhook", 1, 0)}, want: true},
		"after a drain of what is selected":    {steps: []run.Record{done("chosen", "drain", 1), works("last", "webhook", 1, 0)}},
		"after a drain on another cluster":     {steps: []run.Record{done("far", "drain", 1), works("last", "webhook", 1, 0)}},
		"a drain that failed closed nothing":   {steps: []run.Record{{Path: "roll/n0/drain", Type: "drain", Phase: run.StepFailed, FinishedAt: at(1)}, works("reboot", "webhook", 1, 0)}},
		"nor does the drain of another item":   {steps: []run.Record{{Path: "roll/n1/drain", Type: "drain", Phase: run.StepSucceeded, FinishedAt: at(1)}, works("reboot", "webhook", 1, 0)}},
		"nor one that is only rehearsed":       {steps: []run.Record{done("drain", "drain", 1), works("reboot", "webhook", 1, 0)}, dryRun: true},
		"after its deletion by the run":        {steps: []run.Record{done("drain", "drain", 1), done("delete", "delete-object", 2), works("last", "webhook", 1, 0)}},
		"after the deletion of something else": {steps: []run.Record{done("drain", "drain", 1), done("tidy", "delete-object", 2), works("last", "webhook", 1, 0)}, want: true},
		"the deletion itself":                  {steps: []run.Record{done("drain", "drain", 1), works("delete", "delete-object", 1, 0)}, want: true},
		"the last of drain and uncordon tells": {steps: []run.Record{done("drain", "drain", 3), done("uncordon", "uncordon", 2), works("reboot", "webhook", 1, 0)}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			r.Request.DryRun = c.dryRun
			loop := run.Record{Path: "roll", Type: plan.TypeForEachNode, Phase: run.StepRunning, Listed: true, Items: []run.Item{{Name: "n0", UID: "u0", Phase: run.StepRunning}}}
			j := run.Journal{Steps: append([]run.Record{loop}, c.steps...)}
			got := r.ClosedNodes(j, c.steps[len(c.steps)-1].Path)
			if want := []run.ClosedNode{{Name: "n0", UID: "u0"}}; c.want && !cmp.Equal(want, got) || !c.want && len(got) > 0 {
				t.Errorf("relies on %+v, want %t", got, c.want)
			}
		})
	}
}

// A node may have been made anew after it was listed, and before it was drained.
func TestAStepReliesOnTheNodeThatWasDrained(t *testing.T) {
	r := coretest.RunOf(t, "steps: [{name: roll, type: for-each-node, properties: {steps: [{name: drain, type: drain}, {name: reboot, type: webhook, properties: {url: 'https://example.org'}}]}}]")
	for memory, want := range map[string]string{
		`{"nodes": [{"name": "n0", "uid": "u0-anew"}]}`: "u0-anew",
		`{"nodes": [{"name": "n0"}]}`:                   "u0",
		`{"nodes": [{"name": "n1", "uid": "u1"}]}`:      "u0",
		``: "u0",
	} {
		at := time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC)
		j := run.Journal{Steps: []run.Record{
			{Path: "roll", Type: plan.TypeForEachNode, Phase: run.StepRunning, Listed: true, Items: []run.Item{{Name: "n0", UID: "u0", Phase: run.StepRunning}}},
			{Path: "roll/n0/drain", Type: plan.TypeDrain, Phase: run.StepSucceeded, Attempt: 1, FinishedAt: &at, Memory: []byte(memory)},
			{Path: "roll/n0/reboot", Type: "webhook", Phase: run.StepRunning, Attempt: 1},
		}}
		if diff := cmp.Diff([]run.ClosedNode{{Name: "n0", UID: want}}, r.ClosedNodes(j, "roll/n0/reboot")); diff != "" {
			t.Errorf("%s: %s", memory, diff)
		}
	}
}

func TestWhichStepsRelyOnNodesThatEarlierStepsOfTheRunClosed(t *testing.T) {
	const hook, toStg = "type: webhook, properties: {url: 'https://example.org'}", "connectorRef: {kind: K8SCluster, name: stg}"
	spec := "steps: [{name: side, " + hook + "}, {name: close, type: cordon, properties: {node: n0}}, {name: drain, type: drain, properties: {selector: {matchLabels: {pool: gpu}}}}," +
		" {name: work, " + hook + "}, {name: told, if: always, " + hook + "}, {name: mended, if: 'steps.work.phase == \"Failed\"', " + hook + "}," +
		" {name: patch, type: patch-object, properties: {resource: {apiVersion: v1, kind: Node, name: n0}, patch: {spec: {unschedulable: false}}}}," +
		" {name: note, type: patch-object, properties: {resource: {apiVersion: v1, kind: Node, name: n0}, patch: {metadata: {annotations: {a: b}}}}}," +
		" {name: apply, type: apply-object, properties: {object: {apiVersion: v1, kind: Node, metadata: {name: n0}}}}," +
		" {name: delete, type: delete-object, properties: {resource: {apiVersion: v1, kind: Node, name: n0}}}," +
		" {name: open, type: uncordon, properties: {node: n0}}, {name: all, type: uncordon, properties: {selector: {matchLabels: {pool: gpu}}}}," +
		" {name: roll, type: for-each-node, properties: {steps: [{name: empty, type: drain}, {name: free, type: uncordon}]}}," +
		" {name: each, type: for-each, properties: {apiVersion: v1, kind: Node, steps: [{name: shut, type: cordon, properties: {node: '${each.metadata.name}'}}, {name: toil, " + hook + "}]}}," +
		" {name: group, type: step-group, properties: {steps: [{name: inside, " + hook + "}, {name: unlock, type: uncordon, properties: {node: n0}}]}}," +
		" {name: items, type: for-each, properties: {apiVersion: v1, kind: Node, steps: [{name: lock, type: cordon, properties: {node: '${each.metadata.name}'}}, {name: toil2, " + hook + "}, {name: unlock2, type: uncordon, properties: {node: '${each.metadata.name}'}}]}}," +
		" {name: apply-other, type: apply-object, properties: {object: {apiVersion: v1, kind: Node, metadata: {name: n9}}}}," +
		" {name: apply-else, type: apply-object, properties: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: n0}}}}," +
		" {name: farther, " + toStg + ", type: drain, properties: {node: n0}}," +
		" {name: far, " + toStg + ", type: drain, properties: {node: n0}}, {name: freed, " + toStg + ", type: uncordon, properties: {node: n0}}]\n" +
		"finally: [{name: last, " + hook + "}]"
	at := func(minute int) *time.Time {
		out := time.Date(2026, 5, 1, 2, minute, 0, 0, time.UTC)
		return &out
	}
	kinds := map[string]string{"lock": "cordon", "apply-other": "apply-object", "apply-else": "apply-object", "farther": "drain", "far": "drain", "freed": "uncordon", "close": "cordon", "shut": "cordon", "drain": "drain", "empty": "drain", "open": "uncordon", "all": "uncordon", "delete": "delete-object", "patch": "patch-object", "note": "patch-object", "apply": "apply-object"}
	ended := func(path string, phase run.StepPhase, minute int, nodes ...string) run.Record {
		var m run.DrainMemory
		for _, n := range nodes {
			m.Nodes = append(m.Nodes, run.DrainTarget{Name: n, UID: "u" + n[1:]})
		}
		memory, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return run.Record{Path: path, Type: kinds[path[strings.LastIndex(path, "/")+1:]], Phase: phase, Attempt: 1, FinishedAt: at(minute), Memory: memory}
	}
	done := func(path string, minute int, nodes ...string) run.Record {
		return ended(path, run.StepSucceeded, minute, nodes...)
	}
	away := func(path string, minute int) run.Record { // what was done to node n0 of the other cluster
		rec := done(path, minute)
		rec.Memory = []byte(`{"attempt": 1, "elsewhere": [{"name": "n0", "uid": "u9"}]}`)
		return rec
	}
	works := func(path string, minute int) run.Record {
		return run.Record{Path: path, Type: "webhook", Phase: run.StepRunning, Attempt: 1, StartedAt: at(minute), AttemptAt: at(minute)}
	}
	opens := func(path string) run.Record {
		return run.Record{Path: path, Type: kinds[path], Phase: run.StepRunning, Attempt: 1, StartedAt: at(4), AttemptAt: at(4)}
	}
	loop := run.Record{Path: "roll", Type: plan.TypeForEachNode, Phase: run.StepSucceeded, FinishedAt: at(4), Listed: true}
	holds := func(path, kind string, items ...run.Item) run.Record {
		return run.Record{Path: path, Type: kind, Phase: run.StepRunning, Attempt: 1, StartedAt: at(4), AttemptAt: at(4), Items: items}
	}
	n0, n1 := run.ClosedNode{Name: "n0", UID: "u0"}, run.ClosedNode{Name: "n1", UID: "u1"}
	far := run.ClosedNode{Name: "n0", UID: "u9", Elsewhere: "far"}
	anew := done("drain", 2)
	anew.Memory = []byte(`{"attempt": 1, "nodes": [{"name": "n0", "uid": "u0-anew"}]}`)
	for name, c := range map[string]struct {
		steps  []run.Record
		dryRun bool
		want   []run.ClosedNode
	}{
		"after a cordon":                                           {steps: []run.Record{done("close", 1, "n0"), works("work", 5)}, want: []run.ClosedNode{n0}},
		"after a drain of several":                                 {steps: []run.Record{done("drain", 1, "n0", "n1"), works("work", 5)}, want: []run.ClosedNode{n0, n1}},
		"both name a node once":                                    {steps: []run.Record{done("close", 1, "n0"), done("drain", 2, "n0"), works("work", 5)}, want: []run.ClosedNode{n0}},
		"the last tells which node it was":                         {steps: []run.Record{anew, done("close", 1, "n0"), works("work", 5)}, want: []run.ClosedNode{{Name: "n0", UID: "u0-anew"}}},
		"after its deletion by the run":                            {steps: []run.Record{done("close", 1, "n0"), done("delete", 2), works("work", 5)}},
		"once it has begun":                                        {steps: []run.Record{done("close", 1, "n0"), {Path: "work", Type: "webhook", Phase: run.StepRunning, Attempt: 1, NodeSeen: 1}}},
		"a rehearsal":                                              {steps: []run.Record{done("close", 1, "n0"), works("work", 5)}, dryRun: true},
		"a drain that failed closed nothing":                       {steps: []run.Record{ended("drain", run.StepFailed, 1, "n0"), works("work", 5)}},
		"nor a cordon that did":                                    {steps: []run.Record{ended("close", run.StepFailed, 1, "n0"), works("work", 5)}},
		"one beside a drain at work":                               {steps: []run.Record{opens("drain"), works("side", 2)}},
		"in a group that opens it later":                           {steps: []run.Record{done("close", 1, "n0"), holds("group", plan.TypeGroup), works("group/inside", 5)}, want: []run.ClosedNode{n0}},
		"in an item that opens it later":                           {steps: []run.Record{holds("items", plan.TypeForEach, run.Item{Name: "n0", Phase: run.StepRunning}), done("items/n0/lock", 1, "n0"), works("items/n0/toil2", 5)}, want: []run.ClosedNode{n0}},
		"beside a loop that may open it":                           {steps: []run.Record{done("close", 1, "n0"), holds("items", plan.TypeForEach), works("work", 5)}},
		"after an apply of another node":                           {steps: []run.Record{done("close", 1, "n0"), done("apply-other", 2), works("work", 5)}, want: []run.ClosedNode{n0}},
		"after an apply of something else of that name":            {steps: []run.Record{done("close", 1, "n0"), done("apply-else", 2), works("work", 5)}, want: []run.ClosedNode{n0}},
		"two drains on the other cluster name a node once":         {steps: []run.Record{away("farther", 1), away("far", 2), works("work", 5)}, want: []run.ClosedNode{far}},
		"nodes of one name, the one here later":                    {steps: []run.Record{away("far", 1), done("close", 2, "n0"), works("work", 5)}, want: []run.ClosedNode{far, n0}},
		"nodes of several names, one of them twice":                {steps: []run.Record{done("drain", 1, "n0", "n1"), done("close", 2, "n0"), works("work", 5)}, want: []run.ClosedNode{n1, n0}},
		"a drain that undid its cordon opened what another closed": {steps: []run.Record{done("close", 1, "n0"), ended("drain", run.StepFailed, 2, "n0"), works("work", 5)}},
		"one beside the drain began before its end":                {steps: []run.Record{done("drain", 3, "n0"), works("side", 2)}},
		"after its uncordon":                                       {steps: []run.Record{done("close", 1, "n0"), done("open", 2, "n0"), works("work", 5)}},
		"after the uncordon of one of two":                         {steps: []run.Record{done("drain", 1, "n0", "n1"), done("open", 2, "n0"), works("work", 5)}, want: []run.ClosedNode{n1}},
		"after an uncordon by a selector":                          {steps: []run.Record{done("drain", 1, "n0", "n1"), done("all", 2, "n1"), works("work", 5)}, want: []run.ClosedNode{n0}},
		"beside an uncordon that has not said its nodes yet":       {steps: []run.Record{done("drain", 1, "n0", "n1"), opens("all"), works("work", 5)}},
		"closed again after its uncordon":                          {steps: []run.Record{done("close", 1, "n0"), done("open", 2, "n0"), done("drain", 3, "n0"), works("work", 5)}, want: []run.ClosedNode{n0}},
		"after a patch that opens it":                              {steps: []run.Record{done("close", 1, "n0"), done("patch", 2), works("work", 5)}},
		"the patch that opens it":                                  {steps: []run.Record{done("close", 1, "n0"), opens("patch")}},
		"after a patch of something else of it":                    {steps: []run.Record{done("close", 1, "n0"), done("note", 2), works("work", 5)}, want: []run.ClosedNode{n0}},
		"after an apply of the node":                               {steps: []run.Record{done("close", 1, "n0"), done("apply", 2), works("work", 5)}},
		"after a rollout that may have opened it":                  {steps: []run.Record{done("close", 1, "n0"), loop, works("work", 5)}},
		"after a rollout that left a node closed":                  {steps: []run.Record{loop, done("roll/n0/empty", 1, "n0"), works("work", 5)}},
		"in the same item of a loop":                               {steps: []run.Record{done("each/n0/shut", 1, "n0"), works("each/n0/toil", 5)}, want: []run.ClosedNode{n0}},
		"in another item of a loop":                                {steps: []run.Record{done("each/n1/shut", 1, "n1"), works("each/n0/toil", 5)}},
		"one that runs always":                                     {steps: []run.Record{done("close", 1, "n0"), works("told", 5)}},
		"one by a condition":                                       {steps: []run.Record{done("close", 1, "n0"), works("mended", 5)}, want: []run.ClosedNode{n0}},
		"one by a condition after a failure":                       {steps: []run.Record{done("close", 1, "n0"), ended("work", run.StepFailed, 2), works("mended", 5)}},
		"after a drain on another cluster":                         {steps: []run.Record{away("far", 1), works("work", 5)}, want: []run.ClosedNode{far}},
		"after its uncordon there":                                 {steps: []run.Record{away("far", 1), away("freed", 2), works("work", 5)}},
		"an uncordon of a node of that name here":                  {steps: []run.Record{away("far", 1), done("open", 2, "n0"), works("work", 5)}, want: []run.ClosedNode{far}},
		"an uncordon there opens no node of that name here":        {steps: []run.Record{done("close", 1, "n0"), away("freed", 2), works("work", 5)}, want: []run.ClosedNode{n0}},
		"nodes of one name, one of each cluster":                   {steps: []run.Record{done("close", 1, "n0"), away("far", 2), works("work", 5)}, want: []run.ClosedNode{n0, far}},
		"a patch that opens a node of that name here":              {steps: []run.Record{away("far", 1), done("patch", 2), works("work", 5)}, want: []run.ClosedNode{far}},
		"what cleans up":                                           {steps: []run.Record{done("close", 1, "n0"), works("finally/last", 5)}},
	} {
		t.Run(name, func(t *testing.T) {
			r := coretest.RunOf(t, spec)
			r.Request.DryRun = c.dryRun
			if diff := cmp.Diff(c.want, r.ClosedNodes(run.Journal{Steps: c.steps}, c.steps[len(c.steps)-1].Path)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An uncordon by a selector opens what steps of the run closed by the same one, and nothing that
// another selector, or another item of a loop, closed. One by a name knows whether the run closed it.
func TestWhatAnUncordonOpensBeside(t *testing.T) {
	r := coretest.RunOf(t, `steps: [{name: gpu, type: cordon, properties: {selector: {matchLabels: {pool: gpu}}}}, {name: cpu, type: cordon, properties: {selector: {matchLabels: {pool: cpu}}}}, {name: one, type: cordon, properties: {node: n9}},
 {name: each, type: for-each, properties: {apiVersion: v1, kind: ConfigMap, steps: [{name: shut, type: cordon, properties: {selector: {matchLabels: {pool: "${each.metadata.name}"}}}}, {name: reopen, type: uncordon, properties: {selector: {matchLabels: {pool: "${each.metadata.name}"}}}}]}},
 {name: again, type: cordon, properties: {selector: {matchLabels: {pool: gpu}}}},
 {name: drain, type: drain, properties: {selector: {matchLabels: {pool: gpu}}}}]
finally: [{name: open, type: uncordon, properties: {selector: {matchLabels: {pool: gpu}}}}, {name: open-one, type: uncordon, properties: {node: n9}}]`)
	closed := func(path, kind string, phase run.StepPhase, names ...string) run.Record {
		m := run.DrainMemory{}
		for _, name := range names {
			m.Nodes = append(m.Nodes, run.DrainTarget{Name: name, UID: "u-" + name, Cordoned: true})
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return run.Record{Path: path, Type: kind, Phase: phase, Memory: text}
	}
	anew := run.Record{Path: "again", Type: "cordon", Phase: run.StepSucceeded, Memory: []byte(`{"nodes": [{"name": "n1", "uid": "u-anew"}]}`)} // made anew since
	j := run.Journal{Steps: []run.Record{
		closed("gpu", "cordon", run.StepSucceeded, "n1", "n2"), closed("cpu", "cordon", run.StepSucceeded, "n3"), closed("one", "cordon", run.StepSucceeded, "n9"),
		anew, closed("each/a/shut", "cordon", run.StepSucceeded, "n4"), closed("each/b/shut", "cordon", run.StepSucceeded, "n5"), closed("drain", "drain", run.StepFailed, "n2", "n6"),
		{Path: "each/b/reopen", Type: "uncordon"},
		{Path: "finally/open", Type: "uncordon"},
		{Path: "finally/open-one", Type: "uncordon"},
	}}
	for path, want := range map[string][]string{"finally/open": {"n1 u-n1", "n2 u-n2", "n1 u-anew", "n6 u-n6"}, "each/b/reopen": {"n5 u-n5"}, "finally/open-one": {"n9 u-n9"}, "nothing": nil} {
		var got []string
		for _, n := range r.ClosedFor(j, path) {
			got = append(got, n.Name+" "+n.UID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestWhichStepsAreThereToCloseNodes(t *testing.T) {
	for _, c := range []struct {
		within string
		want   bool
	}{
		{"{name: a, type: cordon}", true},
		{"{name: a, type: drain}", true},
		{coretest.Hook("a") + ", {name: b, type: drain}", true},
		{"{name: a, type: drain}, " + coretest.Hook("b"), true},
		{"{name: a, type: step-group, properties: {steps: [{name: b, type: cordon}]}}", true},
		{"{name: a, type: uncordon}", false},
		{coretest.Hook("a"), false},
	} {
		r := coretest.RunOf(t, "steps: [{name: roll, type: for-each-node, properties: {steps: ["+c.within+"]}}]")
		if got := r.Cordons("roll"); got != c.want {
			t.Errorf("%s: %t", c.within, got)
		}
		if r.Cordons("nothing") {
			t.Errorf("%s: a step that is not there", c.within)
		}
	}
}

func TestWhichRunsTakeNodes(t *testing.T) {
	for _, c := range []struct {
		steps []run.Record
		want  bool
	}{
		{nil, false},
		{[]run.Record{{Path: "a", Type: plan.TypeCordon}, {Path: "b", Type: plan.TypeCordon}}, false},
		{[]run.Record{{Path: "a", Type: plan.TypeCordon}, {Path: "b", Type: plan.TypeDrain, Phase: run.StepPending}}, true},
		{[]run.Record{{Path: "all", Type: plan.TypeForEachNode}}, true},
		{[]run.Record{{Path: "all", Type: plan.TypeForEach}, {Path: "all/n-1/out", Type: plan.TypeDrain}}, true},
	} {
		if got := (run.Journal{Steps: c.steps}).TakesNodes(); got != c.want {
			t.Errorf("%+v: %t", c.steps, got)
		}
	}
}

func TestWhenACordonWasInterrupted(t *testing.T) {
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	record := func(kind string, phase run.StepPhase, memory string) run.Record {
		return run.Record{Path: "a", Type: kind, Phase: phase, FinishedAt: &at, Memory: []byte(memory)}
	}
	cut := record(plan.TypeCordon, run.StepFailed, "")
	for name, c := range map[string]struct {
		end  *run.End
		rec  run.Record
		want bool
	}{
		"aborted in mid-cordon":   {&run.End{Phase: run.Aborted}, cut, true},
		"replaced in mid-drain":   {&run.End{Phase: run.Replaced}, record(plan.TypeDrain, run.StepFailed, ""), true},
		"out of time":             {&run.End{Phase: run.Failed, Reason: "Timeout"}, cut, true},
		"the step was refused":    {&run.End{Phase: run.Failed, Reason: "Forbidden"}, cut, false},
		"it is not over":          {nil, cut, false},
		"its outcome is known":    {&run.End{Phase: run.Aborted}, record(plan.TypeDrain, run.StepFailed, "{}"), false},
		"it was done":             {&run.End{Phase: run.Aborted}, record(plan.TypeCordon, run.StepSucceeded, ""), false},
		"a step that cordons not": {&run.End{Phase: run.Aborted}, record(plan.TypeUncordon, run.StepFailed, ""), false},
	} {
		j := run.Journal{End: c.end, Steps: []run.Record{c.rec}}
		if got := j.CordonInterruptedAt(); got.Equal(at) != c.want || got.IsZero() == c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
