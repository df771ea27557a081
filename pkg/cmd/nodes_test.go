package cmd

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

// A plan and a node may have one name; what is meant is said, and not guessed.
func TestANameThatIsAPlanAndANode(t *testing.T) {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "twin", UID: "u", Labels: map[string]string{annotations.LabelKind: annotations.KindPlan}},
		Data:       map[string]string{annotations.DataPlan: "{apiVersion: maint.dev/v1alpha1, kind: Plan, spec: {steps: [{name: hold, type: suspend}]}}"},
	}
	o := cmdtest.NewCluster(t, Run, cmdtest.Agent(), cm, cmdtest.Node("twin"), cmdtest.Node("other"))
	for _, verb := range []string{"status", "why", "check", "pause", "resume"} {
		o.Maint(verb, "twin").Is(t, cmdtest.Printed{Code: 2, Out: "", Err: "error: twin is a plan in namespace shop, and a node: write plan/twin or node/twin\n"})
	}
	for _, verb := range []string{"freeze", "allow"} {
		o.Maint(verb, "twin", "--for", "2h", "--reason", "x").Is(t, cmdtest.Printed{Code: 2, Err: "error: twin is a plan in namespace shop, and a node: write plan/twin or node/twin\n"})
	}
	o.Maint("check", "plan/twin").Is(t, cmdtest.Printed{Code: 0, Out: "plan/twin: change is permitted (no strategy is set)\nuntil somebody changes it\n", Err: ""})
	o.Maint("check", "node/twin").Is(t, cmdtest.Printed{Code: 0, Out: "node/twin: change is permitted (no strategy is set)\nuntil somebody changes it\n", Err: ""})
	o.Maint("check", "other").Is(t, cmdtest.Printed{Code: 0, Out: "node/other: change is permitted (no strategy is set)\nuntil somebody changes it\n", Err: ""})
	o.Maint("pause", "other", "--until", "2h", "--reason", "disks").Is(t, cmdtest.Printed{Code: 0, Out: "node/other paused until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", Err: ""})
	o.Has("other", map[string]string{annotations.Pause: "2026-11-21T02:00:00Z", annotations.Actor(annotations.Pause): "Jane@example.com", annotations.Reason(annotations.Pause): "disks"})
	o.Maint("check", "other").Is(t, cmdtest.Printed{Code: 3, Out: "node/other: change is not permitted (paused until Sat 2026-11-21 03:00 CET by Jane@example.com (unverified): disks)\nuntil Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m\nthen permitted\n", Err: ""})
	o.Maint("resume", "node/other").Is(t, cmdtest.Printed{Code: 0, Out: "node/other resumed\n", Err: ""})
	o.Has("other", map[string]string{})
	o.Maint("resume", "node/other").Is(t, cmdtest.Printed{Code: 0, Out: "node/other was not paused\n", Err: ""})
	o.Maint("status", "node/absent").Is(t, cmdtest.Printed{Code: 1, Out: "", Err: "error: there is no node \"absent\"; 'kubectl get nodes' shows which there are\n"})
}

func TestCompletionOffersTheNodesThatACommandCanActOn(t *testing.T) {
	o := cmdtest.NewCluster(t, Run, cmdtest.Agent(), cmdtest.Node("a", cmdtest.Asked("cli.jane-example.com", "{}")), cmdtest.Node("b", cmdtest.Asked("gpu", "")), cmdtest.Node("c", cmdtest.Noted(annotations.Pause, "true")), cmdtest.Namespace("shop"), cmdtest.RunObject(cmdtest.RunOf(), "maint-run-orders-a"))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"drain", ""}, "a b c"},
		{[]string{"drain", "a", ""}, "b c"},
		{[]string{"release", ""}, "a"},
		{[]string{"release", "--requestor", "gpu", ""}, "b"},
		{[]string{"resume", ""}, "c"},
		{[]string{"pause", ""}, "a b"},
		{[]string{"pause", "node/"}, "node/a node/b"},
		{[]string{"status", ""}, "a b maint-run-orders-a"},
		{[]string{"status", "node/"}, "node/a node/b node/c"},
		{[]string{"wait", "node/c"}, "node/c"},
		{[]string{"why", ""}, "a b c maint-run-orders-a"},
		{[]string{"why", "no/"}, "no/a no/b no/c"},
		{[]string{"why", "run/"}, "run/maint-run-orders-a"},
		{[]string{"check", ""}, "c"},
		{[]string{"check", "nodes/"}, "nodes/a nodes/b nodes/c"},
		{[]string{"freeze", ""}, ""},
		{[]string{"freeze", "node/b"}, "node/b"},
		{[]string{"freeze", "namespace/sh"}, "namespace/shop"},
		{[]string{"allow", "node/"}, "node/a node/b node/c"},
	} {
		got := o.Maint(append([]string{"__complete"}, c.args...)...)
		names := strings.Fields(strings.Split(got.Out, ":")[0])
		if slices.Sort(names); strings.Join(names, " ") != c.want {
			t.Errorf("%v offers %v, want %s", c.args, names, c.want)
		}
	}
}
