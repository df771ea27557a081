package why_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/why"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// A requestor that may read its node, or nodes, and nothing of the agent's namespace is told what
// the agent says; and that a right is missing once, where it changes the answer.
func TestWhyOfANodeForWhomeverMayReadLittle(t *testing.T) {
	const closed = `{"current":{"state":"ChangesPaused","reason":"policy night: Restrictive"}}`
	shut := cmdtest.Node("shut", append(why.Held("gpu", nodes.Pending, "policy night: Restrictive"), cmdtest.Noted(annotations.ChangePolicy, "maint-system/night"), cmdtest.Noted(annotations.StatusBehavior, closed))...)
	verdict := "node/shut: not permitted (policy night: Restrictive, says the agent)\nuntil somebody changes it\n"
	allow := "'kubectl maint allow node/shut --for 2h --reason …'"
	little := func() *cmdtest.Cluster {
		o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), shut, cmdtest.Node("full", why.Held("os", nodes.Pending, "waits its turn")...), cmdtest.Node("mine", why.Held("gpu", nodes.Ready, "")...))
		o.Forbids("list", "configmaps", "maint-system")
		return o
	}
	word := "warning: read the policies of namespace maint-system: configmaps is forbidden: not for you; what follows from it is the agent's word\n"
	o := little()
	o.Forbids("get", "configmaps", "maint-system") // also the heartbeat: nobody knows whether the agent runs
	got := o.Maint("why", "shut")
	if got.Code != 3 || strings.Contains(got.Err, "maxUnavailable") {
		t.Errorf("the limits decide nothing of it: %+v", got)
	}
	if got := o.Maint("why", "full"); got.Code != 3 || strings.Count(got.Err, "warning: the limits maxParallelOperations, maxUnavailable and zoneLimit are not known") != 1 {
		t.Errorf("the limits decide: %+v", got)
	}
	o = little()
	o.Forbids("list", "nodes", "")
	o.Maint("why", "shut").Is(t, cmdtest.Printed{
		Code: 3, Err: word + "warning: list nodes: nodes is forbidden: not for you; of the requests only the agent's word is known\n",
		Out: verdict + "1. gpu: Pending for 10m0s: policy night: Restrictive\n   it goes on by itself then; 'kubectl maint release shut --requestor gpu' takes it back\nto permit it for a while: " + allow + "\n",
	})
	if got := o.Maint("why", "mine"); got.Code != 0 || !strings.Contains(got.Out, "gpu: Ready for 10m0s\nnothing is in the way\n") {
		t.Errorf("a node that was handed over: %+v", got)
	}
}

func TestWhyOfANode(t *testing.T) {
	night := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: "night", Labels: map[string]string{annotations.LabelKind: annotations.KindPolicy}},
		Data:       map[string]string{annotations.DataPolicy: "{apiVersion: maint.dev/v1alpha1, kind: Policy, spec: {strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{start: '02:00', end: '04:00'}]}}}"},
	}
	o := cmdtest.NewCluster(
		t, cmd.Run, cmdtest.Agent(), cmdtest.Configured("{maxParallelOperations: 2}"), night, cmdtest.Node("free"), cmdtest.Node("ready", why.Held(cmdtest.Jane, nodes.Ready, "")...),
		cmdtest.Node("closed", cmdtest.Asked("gpu", ""), cmdtest.Noted(annotations.ChangePolicy, "maint-system/night")), cmdtest.Node("new", cmdtest.Asked("gpu", "")),
		cmdtest.Node("late", cmdtest.Asked("gpu", "")), cmdtest.Node("paused", cmdtest.Asked("gpu", ""), cmdtest.Noted(annotations.Pause, "true")),
	)
	o.Maint("why", "free").Is(t, cmdtest.Printed{Code: 0, Out: "node/free: permitted (no strategy is set)\nuntil somebody changes it\nnobody asks for it: 'kubectl maint drain free' does\n", Err: ""})
	o.Maint("why", "ready").Is(t, cmdtest.Printed{Code: 0, Out: "node/ready: permitted (no strategy is set)\nuntil somebody changes it\n" + cmdtest.Jane + ": Ready for 10m0s\nnothing is in the way\n", Err: ""})
	o.Maint("why", "late").Is(t, cmdtest.Printed{Code: 0, Out: "node/late: permitted (no strategy is set)\nuntil somebody changes it\ngpu: its turn has come: the agent takes it up as soon as it can\nnothing is in the way\n", Err: ""})
	o.Maint("why", "node/new").Is(t, cmdtest.Printed{Code: 3, Out: "node/new: permitted (no strategy is set)\nuntil somebody changes it\n" +
		"1. gpu: waits its turn: 0 before it (maxParallelOperations 2); in maintenance: ready\n   its turn comes when one of them is released; or raise spec.nodes.maxParallelOperations in the agent's configuration (ConfigMap maint-system/maint-agent)\n", Err: ""})
	o.Maint("why", "closed").Is(t, cmdtest.Printed{Code: 3, Out: `node/closed: not permitted (policy night: outside of the windows)
since Fri 2026-11-20 05:00 CET (2026-11-20T04:00:00Z)
until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m
then permitted until Sat 2026-11-21 05:00 CET (2026-11-21T04:00:00Z)
1. gpu: policy night: outside of the windows
   permitted from Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m; or 'kubectl maint allow node/closed --for 2h --reason …'
to permit it for a while: 'kubectl maint allow node/closed --for 2h --reason …'
`, Err: ""})
	if got := o.Maint("why", "paused"); got.Code != 3 || !strings.HasSuffix(got.Out, "\nto end the pause: 'kubectl maint resume node/paused'\n") || !strings.Contains(got.Out, "1. gpu: the node is paused\n   it stays so until somebody changes it; or 'kubectl maint resume node/paused'\n") {
		t.Errorf("%+v", got)
	}
}
