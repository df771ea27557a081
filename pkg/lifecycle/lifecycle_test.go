package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/lifecycle"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

func asked(requestor string, phase nodes.Phase, edits ...func(*nodes.Asked)) nodes.Asked {
	a := nodes.Asked{Request: nodes.Request{Requestor: requestor, Cordon: true, Drain: &drain.Options{}}, Status: &nodes.Status{Phase: phase}}
	for _, edit := range edits {
		edit(&a)
	}
	return a
}

// node is cordoned for its claimants, unless there are none.
func node(cordon *nodes.Cordon, list ...nodes.Asked) nodes.Node {
	return nodes.Node{Name: "a", Unschedulable: cordon != nil, Cordon: cordon, Asked: list, Gate: nodes.Gate{Permitted: true}}
}

func cordon(by ...string) *nodes.Cordon { return &nodes.Cordon{By: by, At: noon()} }

func (c cordonEdit) on(record *nodes.Cordon) *nodes.Cordon { c(record); return record }

type cordonEdit func(*nodes.Cordon)

func drained(left bool) cordonEdit {
	return func(c *nodes.Cordon) { c.Drained = append(c.Drained, nodes.Drained{Left: left}) }
}

func is(t lifecycle.Type, reason, message string) lifecycle.Condition {
	return lifecycle.Condition{Type: t, True: true, Reason: reason, Message: message}
}

func not(t lifecycle.Type, reason string) lifecycle.Condition {
	return lifecycle.Condition{Type: t, Reason: reason}
}

func theirs(c lifecycle.Condition) lifecycle.Condition { c.Foreign = true; return c }

// unknown is a condition that somebody set of whom the API server tells no more.
func unknown(c lifecycle.Condition) lifecycle.Condition { c.Unknown = true; return c }

const shop = "plan:shop/kernel"

func TestWhichConditionsANodeHas(t *testing.T) {
	opens, later := noon().Add(time.Hour), noon().Add(2*time.Hour)
	open := func(a *nodes.Asked) { a.Request.Cordon = false }
	of := func(pods string) func(*nodes.Asked) {
		return func(a *nodes.Asked) {
			a.Request.Drain = &drain.Options{PodSelector: pods, OnTimeout: drain.TimeoutSkip}
		}
	}
	byStatus := func(left bool) func(*nodes.Asked) {
		return func(a *nodes.Asked) { a.Status.Drained, a.Status.Left = "x", left }
	}
	one := func(pods string, left bool) nodes.Drained {
		return nodes.Drained{Options: drain.Options{PodSelector: pods}, Left: left}
	}
	passes := func(all ...nodes.Drained) cordonEdit { return func(c *nodes.Cordon) { c.Drained = all } }
	incomplete := func(names string) lifecycle.Condition {
		return lifecycle.Condition{Type: lifecycle.Drained, Reason: "DrainIncomplete", Message: names + ": pods that were to leave are still there"}
	}
	closed := func(n nodes.Node, opens *time.Time) nodes.Node {
		n.Gate = nodes.Gate{Reason: "outside of the windows", Opens: opens}
		return n
	}
	type list = []lifecycle.Condition
	gone := func(a *nodes.Asked) { a.Gone = true }
	for name, c := range map[string]struct {
		node         nodes.Node
		works        []lifecycle.Work
		have         list
		change, left list
	}{
		"nobody asks":                         {node: node(nil)},
		"a request without a status":          {node: node(nil, nodes.Asked{Request: nodes.Request{Requestor: "gpu"}})},
		"a request that cannot be read":       {node: node(nil, asked("gpu", nodes.Invalid, func(a *nodes.Asked) { a.Fault = "no JSON" }))},
		"a request that was given up":         {node: node(nil, asked("gpu", nodes.Pending, func(a *nodes.Asked) { a.Status.Ended = &nodes.End{} }))},
		"a request that waits":                {node: node(nil, asked("gpu", nodes.Pending)), change: list{is(lifecycle.Planned, "MaintenanceRequested", "gpu: waits for the node")}},
		"its turn has come":                   {node: node(nil, asked("gpu", nodes.Scheduled)), change: list{is(lifecycle.Planned, "MaintenanceRequested", "gpu: waits for the node")}},
		"two wait":                            {node: node(nil, asked("gpu", nodes.Pending), asked("os", nodes.Pending)), change: list{is(lifecycle.Planned, "MaintenanceRequested", "gpu, os: waits for the node")}},
		"its window is closed":                {node: closed(node(nil, asked("gpu", nodes.Pending)), &opens), change: list{is(lifecycle.Planned, "MaintenanceWindow", "gpu: not before 2026-11-20T13:00:00Z: outside of the windows")}},
		"nobody knows when it opens":          {node: closed(node(nil, asked("gpu", nodes.Pending)), nil), change: list{is(lifecycle.Planned, "MaintenanceWindow", "gpu: outside of the windows")}},
		"a rollout lists it":                  {node: node(nil), works: []lifecycle.Work{{Claimant: shop, Planned: true}}, change: list{is(lifecycle.Planned, "RolloutPlanned", "plan shop/kernel: waits for the node")}},
		"the window of its run is closed":     {node: node(nil), works: []lifecycle.Work{{Claimant: shop, Planned: true, Opens: &opens, Closed: "outside of the windows"}}, change: list{is(lifecycle.Planned, "MaintenanceWindow", "plan shop/kernel: not before 2026-11-20T13:00:00Z: outside of the windows")}},
		"and that of the node opens later":    {node: closed(node(nil), &later), works: []lifecycle.Work{{Claimant: shop, Planned: true, Opens: &opens, Closed: "the run's"}}, change: list{is(lifecycle.Planned, "MaintenanceWindow", "plan shop/kernel: not before 2026-11-20T14:00:00Z: outside of the windows")}},
		"and that of the node opens earlier":  {node: closed(node(nil), &opens), works: []lifecycle.Work{{Claimant: shop, Planned: true, Opens: &later, Closed: "the run's"}}, change: list{is(lifecycle.Planned, "MaintenanceWindow", "plan shop/kernel: not before 2026-11-20T14:00:00Z: the run's")}},
		"only that of the node is closed":     {node: closed(node(nil), &opens), works: []lifecycle.Work{{Claimant: shop, Planned: true}}, change: list{is(lifecycle.Planned, "MaintenanceWindow", "plan shop/kernel: not before 2026-11-20T13:00:00Z: outside of the windows")}},
		"nobody knows when the run's opens":   {node: node(nil), works: []lifecycle.Work{{Claimant: shop, Planned: true, Closed: "the plan is paused"}}, change: list{is(lifecycle.Planned, "MaintenanceWindow", "plan shop/kernel: the plan is paused")}},
		"its turn in the rollout has come":    {node: closed(node(nil), &opens), works: []lifecycle.Work{{Claimant: shop, Planned: true, Begun: true}}, change: list{is(lifecycle.Planned, "RolloutPlanned", "plan shop/kernel: waits for the node")}},
		"one that was written":                {node: node(nil, asked("gpu", nodes.Pending)), have: list{is(lifecycle.Planned, "MaintenanceRequested", "gpu: waits for the node")}},
		"it was withdrawn":                    {node: node(nil), have: list{is(lifecycle.Planned, "MaintenanceRequested", "gpu: waits for the node")}, change: list{not(lifecycle.Planned, "MaintenanceCanceled")}},
		"it is gone, with a status":           {node: node(nil, asked("gpu", nodes.Pending, gone)), have: list{is(lifecycle.Planned, "MaintenanceRequested", "gpu: waits for the node")}, change: list{not(lifecycle.Planned, "MaintenanceCanceled")}},
		"one that is False stays":             {node: node(nil), have: list{not(lifecycle.Planned, "MaintenanceCanceled"), not(lifecycle.Drained, "NodeReleased")}},
		"the cordon is not there yet":         {node: node(nil, asked("gpu", nodes.Cordoning))},
		"a node that is to stay open":         {node: node(nil, asked("gpu", nodes.Draining, func(a *nodes.Asked) { a.Request.Cordon = false })), change: list{is(lifecycle.Draining, "DrainStarted", "gpu: pods are leaving")}},
		"no drain is asked for":               {node: node(cordon("gpu"), asked("gpu", nodes.Cordoning, func(a *nodes.Asked) { a.Request.Drain = nil }))},
		"a drain begins":                      {node: node(cordon("gpu"), asked("gpu", nodes.Draining)), have: list{is(lifecycle.Planned, "MaintenanceRequested", "gpu: waits for the node")}, change: list{not(lifecycle.Planned, "MaintenanceStarted"), is(lifecycle.Draining, "DrainStarted", "gpu: pods are leaving")}},
		"it waits for pods":                   {node: node(cordon("gpu"), asked("gpu", nodes.WaitingForPods)), change: list{is(lifecycle.Draining, "DrainStarted", "gpu: pods are leaving")}},
		"it is blocked":                       {node: node(cordon("gpu"), asked("gpu", nodes.Draining, func(a *nodes.Asked) { a.Status.Blocked = &nodes.Block{Text: "budget shop/db"} })), change: list{is(lifecycle.Draining, "DrainBlocked", "gpu: budget shop/db")}},
		"it is Ready":                         {node: node(drained(false).on(cordon("gpu")), asked("gpu", nodes.Ready)), have: list{is(lifecycle.Draining, "DrainStarted", "gpu: pods are leaving")}, change: list{not(lifecycle.Draining, "DrainCompleted"), is(lifecycle.Drained, "DrainCompleted", "gpu: pods have left"), is(lifecycle.Maintenance, "HandedOver", "gpu: has the node")}},
		"skip left pods":                      {node: node(drained(true).on(cordon("gpu")), asked("gpu", nodes.Ready)), have: list{is(lifecycle.Draining, "DrainStarted", "gpu: pods are leaving")}, change: list{not(lifecycle.Draining, "DrainIncomplete"), {Type: lifecycle.Drained, Reason: "DrainIncomplete", Message: "gpu: pods that were to leave are still there"}, is(lifecycle.Maintenance, "HandedOver", "gpu: has the node")}},
		"skip, and one that left all":         {node: node(drained(false).on(drained(true).on(cordon("gpu", "os"))), asked("gpu", nodes.Ready)), change: list{is(lifecycle.Drained, "DrainCompleted", "gpu, os: pods have left"), is(lifecycle.Maintenance, "HandedOver", "gpu: has the node")}},
		"another left all, and is released":   {node: node(passes(one("app=a", false), one("app=b", true)).on(cordon("os")), asked("os", nodes.Ready, of("app=b"))), change: list{incomplete("os"), is(lifecycle.Maintenance, "HandedOver", "os: has the node")}},
		"one of two left some":                {node: node(passes(one("app=a", false), one("app=b", true)).on(cordon("gpu", "os")), asked("gpu", nodes.Ready, of("app=a")), asked("os", nodes.Ready, of("app=b"))), change: list{incomplete("gpu, os"), is(lifecycle.Maintenance, "HandedOver", "gpu, os: has the node")}},
		"another left some, and is released":  {node: node(passes(one("app=a", false), one("app=b", true)).on(cordon("gpu")), asked("gpu", nodes.Ready, of("app=a"))), change: list{is(lifecycle.Drained, "DrainCompleted", "gpu: pods have left"), is(lifecycle.Maintenance, "HandedOver", "gpu: has the node")}},
		"its status alone says some are left": {node: node(cordon("gpu"), asked("gpu", nodes.Ready, byStatus(true))), change: list{incomplete("gpu"), is(lifecycle.Maintenance, "HandedOver", "gpu: has the node")}},
		"one without a drain has it now":      {node: node(drained(false).on(cordon("gpu")), asked("gpu", nodes.Ready, func(a *nodes.Asked) { a.Request.Drain = nil })), change: list{is(lifecycle.Drained, "DrainCompleted", "gpu: pods have left"), is(lifecycle.Maintenance, "HandedOver", "gpu: has the node")}},
		"a later drain of the run left some":  {node: node(cordon(shop)), works: []lifecycle.Work{{Claimant: shop, Drained: true, Since: noon()}, {Claimant: shop, Incomplete: true, Since: noon().Add(time.Minute)}}, change: list{incomplete("plan shop/kernel")}},
		"open, and some are left":             {node: node(nil, asked("gpu", nodes.Ready, open, byStatus(true))), change: list{incomplete("gpu"), is(lifecycle.Maintenance, "HandedOver", "gpu: has the node")}},
		"open, and its requestor failed":      {node: node(nil, asked("gpu", nodes.RequestorFailed, open, byStatus(false))), have: list{is(lifecycle.Drained, "DrainCompleted", "gpu: pods have left")}, change: list{is(lifecycle.Maintenance, "RequestorFailed", "gpu: failed, and keeps the node")}},
		"open for two":                        {node: node(nil, asked("gpu", nodes.Ready, open, byStatus(false)), asked("os", nodes.Ready, open, byStatus(false))), change: list{is(lifecycle.Drained, "DrainCompleted", "gpu, os: pods have left"), is(lifecycle.Maintenance, "HandedOver", "gpu, os: has the node")}},
		"Ready without a cordon":              {node: node(nil, asked("gpu", nodes.Ready, func(a *nodes.Asked) { a.Request.Cordon, a.Status.Drained = false, "x" })), change: list{is(lifecycle.Drained, "DrainCompleted", "gpu: pods have left"), is(lifecycle.Maintenance, "HandedOver", "gpu: has the node")}},
		"its requestor failed":                {node: node(drained(false).on(cordon("gpu")), asked("gpu", nodes.RequestorFailed)), have: list{is(lifecycle.Drained, "DrainCompleted", "gpu: pods have left")}, change: list{is(lifecycle.Maintenance, "RequestorFailed", "gpu: failed, and keeps the node")}},
		"somebody uncordoned it":              {node: node(nil, asked("gpu", nodes.Uncordoned)), have: list{is(lifecycle.Drained, "DrainCompleted", "gpu: pods have left"), is(lifecycle.Maintenance, "HandedOver", "gpu: has the node")}, change: list{not(lifecycle.Drained, "NodeReleased")}},
		"a second drain of another":           {node: node(drained(false).on(cordon("gpu", "os")), asked("gpu", nodes.Ready), asked("os", nodes.Draining)), have: list{is(lifecycle.Drained, "DrainCompleted", "gpu: pods have left")}, change: list{is(lifecycle.Draining, "DrainStarted", "os: pods are leaving"), not(lifecycle.Drained, "DrainStarted"), is(lifecycle.Maintenance, "HandedOver", "gpu: has the node")}},
		"released":                            {node: node(nil), have: list{is(lifecycle.Drained, "DrainCompleted", "gpu: pods have left"), is(lifecycle.Maintenance, "HandedOver", "gpu: has the node")}, change: list{not(lifecycle.Drained, "NodeReleased"), not(lifecycle.Maintenance, "NodeReleased")}},
		"the drain was given up":              {node: node(nil), have: list{is(lifecycle.Draining, "DrainBlocked", "gpu: x")}, change: list{not(lifecycle.Draining, "DrainEnded")}},
		"a rollout drains it":                 {node: node(cordon(shop)), works: []lifecycle.Work{{Claimant: shop, Draining: true}}, change: list{is(lifecycle.Draining, "DrainStarted", "plan shop/kernel: pods are leaving")}},
		"a rollout's drain is blocked":        {node: node(cordon(shop)), works: []lifecycle.Work{{Claimant: shop, Draining: true, Blocked: true, Why: "budget shop/db"}}, change: list{is(lifecycle.Draining, "DrainBlocked", "plan shop/kernel: budget shop/db")}},
		"a rollout works on it":               {node: node(cordon(shop)), works: []lifecycle.Work{{Claimant: shop, AtWork: true}, {Claimant: shop, Drained: true, Since: noon()}}, have: list{is(lifecycle.Draining, "DrainStarted", "plan shop/kernel: pods are leaving")}, change: list{not(lifecycle.Draining, "DrainCompleted"), is(lifecycle.Drained, "DrainCompleted", "plan shop/kernel: pods have left"), is(lifecycle.Maintenance, "RolloutAtWork", "plan shop/kernel: works on the node")}},
		"a rollout's drain left pods":         {node: node(cordon(shop)), works: []lifecycle.Work{{Claimant: shop, Incomplete: true, Since: noon()}}, change: list{{Type: lifecycle.Drained, Reason: "DrainIncomplete", Message: "plan shop/kernel: pods that were to leave are still there"}}},
		"a drain of an earlier cordon":        {node: node(cordon(shop)), works: []lifecycle.Work{{Claimant: shop, Drained: true, Since: noon().Add(-time.Second)}}},
		"a drain of somebody else's run":      {node: node(cordon("gpu")), works: []lifecycle.Work{{Claimant: shop, Drained: true, Since: noon()}}},
		"a rollout failed, and left it":       {node: node(cordon(shop)), have: list{is(lifecycle.Drained, "DrainCompleted", "plan shop/kernel: pods have left"), is(lifecycle.Maintenance, "RolloutAtWork", "plan shop/kernel: works on the node")}, change: list{not(lifecycle.Maintenance, "MaintenanceEnded")}},
		"somebody undid the cordon":           {node: node(func() *nodes.Cordon { c := cordon(shop); c.Undone = true; return c }()), have: list{is(lifecycle.Drained, "DrainCompleted", "plan shop/kernel: pods have left")}, change: list{not(lifecycle.Drained, "NodeReleased")}},
		"one that somebody else has set":      {node: node(cordon("gpu"), asked("gpu", nodes.Draining)), have: list{theirs(is(lifecycle.Draining, "KuredDrains", "kured"))}, left: list{theirs(is(lifecycle.Draining, "KuredDrains", "kured"))}},
		"theirs, and nobody of ours asks":     {node: node(nil), have: list{theirs(is(lifecycle.Maintenance, "CAPI", "x"))}},
		"theirs is False":                     {node: node(cordon("gpu"), asked("gpu", nodes.Draining)), have: list{not(lifecycle.Draining, "KuredDone")}, change: list{is(lifecycle.Draining, "DrainStarted", "gpu: pods are leaving")}},
		"ours by its words":                   {node: node(nil), have: list{unknown(is(lifecycle.Maintenance, "HandedOver", "gpu: has the node")), unknown(is(lifecycle.Drained, "DrainCompleted", "gpu: pods have left"))}, change: list{not(lifecycle.Drained, "NodeReleased"), not(lifecycle.Maintenance, "NodeReleased")}},
		"ours by its words, and it goes on":   {node: node(drained(false).on(cordon("gpu")), asked("gpu", nodes.Ready)), have: list{unknown(is(lifecycle.Drained, "DrainCompleted", "gpu: pods have left")), unknown(is(lifecycle.Maintenance, "HandedOver", "gpu: has the node"))}},
		"ours by its names":                   {node: node(cordon("gpu"), asked("gpu", nodes.Draining)), have: list{unknown(is(lifecycle.Draining, "DrainBlocked", "gpu: budget shop/db"))}, change: list{is(lifecycle.Draining, "DrainStarted", "gpu: pods are leaving")}},
		"ours by a plan's name":               {node: node(cordon(shop)), have: list{unknown(is(lifecycle.Draining, "DrainBlocked", "plan shop/kernel: budget shop/db"))}, change: list{not(lifecycle.Draining, "DrainEnded")}},
		"ours by the name of its run":         {node: node(nil), works: []lifecycle.Work{{Claimant: shop, Draining: true}}, have: list{unknown(is(lifecycle.Draining, "DrainBlocked", "plan shop/kernel: budget shop/db"))}, change: list{is(lifecycle.Draining, "DrainStarted", "plan shop/kernel: pods are leaving")}},
		"another's name in our words":         {node: node(cordon("gpu"), asked("gpu", nodes.Draining)), have: list{unknown(is(lifecycle.Draining, "DrainBlocked", "gpu, kured: budget shop/db"))}, left: list{unknown(is(lifecycle.Draining, "DrainBlocked", "gpu, kured: budget shop/db"))}},
		"another's reason":                    {node: node(nil), have: list{unknown(is(lifecycle.Maintenance, "CAPI", "gpu: has the node"))}},
		"another's words":                     {node: node(nil), have: list{unknown(is(lifecycle.Maintenance, "HandedOver", "to the operator"))}},
		"a drain that may be ours goes on":    {node: node(cordon(shop)), have: list{unknown(is(lifecycle.Drained, "DrainCompleted", "plan shop/kernel: pods have left"))}},
		"another reason in the same words":    {node: node(nil), works: []lifecycle.Work{{Claimant: shop, Planned: true}}, have: list{is(lifecycle.Planned, "MaintenanceRequested", "plan shop/kernel: waits for the node")}, change: list{is(lifecycle.Planned, "RolloutPlanned", "plan shop/kernel: waits for the node")}},
		"another's reason, and our name":      {node: node(cordon("gpu"), asked("gpu", nodes.Draining)), have: list{unknown(is(lifecycle.Draining, "KuredDrains", "gpu: reboots"))}, left: list{unknown(is(lifecycle.Draining, "KuredDrains", "gpu: reboots"))}},
		"a drain begins without a cordon":     {node: node(nil, asked("gpu", nodes.Draining, func(a *nodes.Asked) { a.Request.Cordon = false })), have: list{is(lifecycle.Planned, "MaintenanceRequested", "gpu: waits for the node")}, change: list{not(lifecycle.Planned, "MaintenanceStarted"), is(lifecycle.Draining, "DrainStarted", "gpu: pods are leaving")}},
		"it is gone while it drains":          {node: node(cordon("gpu"), asked("gpu", nodes.Draining, gone)), have: list{is(lifecycle.Draining, "DrainStarted", "gpu: pods are leaving")}, change: list{not(lifecycle.Draining, "DrainEnded")}},
		"it is gone, and was Ready":           {node: node(nil, asked("gpu", nodes.Ready, gone, func(a *nodes.Asked) { a.Request.Cordon, a.Status.Drained = false, "x" }))},
		"Ready without a drain":               {node: node(nil, asked("gpu", nodes.Ready, func(a *nodes.Asked) { a.Request.Cordon = false })), change: list{is(lifecycle.Maintenance, "HandedOver", "gpu: has the node")}},
		"a cordon that is not there any more": {node: node(nil, asked("gpu", nodes.Ready, func(a *nodes.Asked) { a.Status.Drained = "x" })), change: list{is(lifecycle.Maintenance, "HandedOver", "gpu: has the node")}},
		"a rollout works without a drain":     {node: node(cordon(shop)), works: []lifecycle.Work{{Claimant: shop, AtWork: true, Since: noon()}}, change: list{is(lifecycle.Maintenance, "RolloutAtWork", "plan shop/kernel: works on the node")}},
		"theirs, and a drain of ours ends":    {node: node(drained(false).on(cordon("gpu"))), have: list{theirs(is(lifecycle.Drained, "KuredDrains", "kured"))}, left: list{theirs(is(lifecycle.Drained, "KuredDrains", "kured"))}},
	} {
		t.Run(name, func(t *testing.T) {
			change, left := lifecycle.Facts{Node: c.node, Works: c.works}.Changes(c.have)
			if diff := cmp.Diff(c.change, change); diff != "" {
				t.Errorf("changes, -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(c.left, left); diff != "" {
				t.Errorf("left, -want +got:\n%s", diff)
			}
			settled(t, lifecycle.Facts{Node: c.node, Works: c.works}, c.have, change)
		})
	}
}

// Where no agent looks after a node any more, nothing of ours stays True.
func TestHowConditionsEndWithoutAnAgent(t *testing.T) {
	f := lifecycle.Facts{Node: node(nil, asked("gpu", nodes.Pending))}
	got := f.Ends([]lifecycle.Condition{
		is(lifecycle.Planned, "MaintenanceWindow", "gpu: not before 2026-11-20T13:00:00Z: outside of the windows"), not(lifecycle.Draining, "DrainEnded"),
		theirs(is(lifecycle.Drained, "KuredDrains", "kured")), unknown(is(lifecycle.Maintenance, "HandedOver", "gpu: has the node")),
	})
	if diff := cmp.Diff([]lifecycle.Condition{not(lifecycle.Planned, "MaintenanceCanceled"), not(lifecycle.Maintenance, "NodeReleased")}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// settled fails where a second look at what was written would write again.
func settled(t *testing.T, f lifecycle.Facts, have, change []lifecycle.Condition) {
	t.Helper()
	after := map[lifecycle.Type]lifecycle.Condition{}
	for _, c := range append(have, change...) {
		after[c.Type] = c
	}
	var list []lifecycle.Condition
	for _, t := range lifecycle.Types() {
		if c, there := after[t]; there {
			list = append(list, c)
		}
	}
	if again, _ := f.Changes(list); len(again) > 0 {
		t.Errorf("a second look changes %+v", again)
	}
}
