package write_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

func TestScheduleSaysWhatAPlanLoses(t *testing.T) {
	const (
		line  = "schedule orders --cron '0 4 * * *' --step call=webhook,url=https://x"
		ask   = "replace plan orders, without what restricts it now "
		head  = "replacing plan/orders takes away:\n"
		next  = "next run Sat 2026-11-21 04:00 UTC (2026-11-21T04:00:00Z), in 4h0m\n"
		steps = "steps: [{name: call, type: webhook, properties: {url: https://x}}]\n"
	)
	full := "policies: [{name: weekends}, {name: all, namespace: maint-system}]\ntarget: {apiVersion: apps/v1, kind: Deployment, name: hello}\ntriggers: {schedules: [{cron: 0 3 * * *, timezone: Europe/Berlin}], labels: [company.org/go]}\nsteps: [{name: ask, type: approval}, {name: call, type: webhook, properties: {url: https://x, method: GET}}]\n"
	lost := head + "  policies: weekends\n  policies: maint-system/all\n  steps: ask (approval)\n  target: Deployment/hello\n  triggers.schedules[0].timezone: Europe/Berlin\n  steps[call (webhook)].properties.method: GET\n  triggers.labels: company.org/go\n"
	question := ask + "(policies, steps, target, triggers.schedules[0].timezone)"
	for _, c := range []struct {
		name, was, line, typed string
		code                   int
		out, err               string
		stays                  bool
	}{
		{name: "what restricts goes, and nobody can be asked: it is said", was: full, line: line, out: "plan/orders changed\n", err: lost + next},
		{name: "a file is all of the plan", was: full, line: "schedule orders -f is.yaml", typed: "n\n", out: "plan/orders changed\n", err: lost + next},
		{name: "with --yes", was: full, line: line + " --yes", out: "plan/orders changed\n", err: lost + next},
		{name: "asked, and it is a no", was: full, line: line, typed: "n\n", code: 1, err: lost + question + "? [y/N] error: nothing was done\n", stays: true},
		{name: "asked, and it is a yes", was: full, line: line, typed: "y\n", out: "plan/orders changed\n", err: lost + question + "? [y/N] " + next},
		{name: "a trial says it, and does not ask", was: full, line: line + " --dry-run=server", out: "plan/orders changed (server dry run)\n", err: lost + next},
		{name: "what goes restricts nothing", was: "description: d\nfinally: [{name: end, type: suspend}]\ntriggers: {schedules: [{cron: 0 4 * * *, timezone: UTC}, {cron: 0 5 * * *}]}\n" + steps, line: line, out: "plan/orders changed\n", err: head + "  description: d\n  finally: end (suspend)\n  triggers.schedules[1]: {\"cron\":\"0 5 * * *\"}\n" + next},
		{name: "the same in another value, and what is the default", was: "catchUp: latest\nstartDeadline: 1h\nserviceAccountName: maint-runner\ntriggers: {schedules: [{cron: 0 3 * * *}]}\n" + steps, line: line, out: "plan/orders changed\n", err: next},
		{name: "an approval of the whole run", was: "requiresApproval: true\ntriggers: {schedules: [{cron: 0 4 * * *}]}\n" + steps, line: line, typed: "n\n", code: 1, err: head + "  requiresApproval: true\n" + ask + "(requiresApproval)? [y/N] error: nothing was done\n", stays: true},
		{name: "very much", was: "triggers: {labels: [a, b, c, d, e, f, g, h, i, j, k, l, m, n]}\ntarget: {apiVersion: apps/v1, kind: Deployment, name: hello}\n" + steps, line: line + " --target Deployment/hello --label z", out: "plan/orders changed\n", err: head + "  triggers.labels: a\n  triggers.labels: b\n  triggers.labels: c\n  triggers.labels: d\n  triggers.labels: e\n  triggers.labels: f\n  triggers.labels: g\n  triggers.labels: h\n  triggers.labels: i\n  triggers.labels: j\n  triggers.labels: k\n  triggers.labels: l\n  and 2 more\n" + next},
	} {
		t.Run(c.name, func(t *testing.T) {
			const top = "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  "
			cmdtest.WriteFiles(t, map[string]string{"was.yaml": top + strings.ReplaceAll(strings.TrimSpace(c.was), "\n", "\n  ") + "\n", "is.yaml": top + "triggers: {schedules: [{cron: 0 4 * * *}]}\n  " + steps})
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent())
			if got := o.Line("schedule orders -f was.yaml"); got.Code != 0 {
				t.Fatal(got.Err)
			}
			text := func() string {
				cm, err := o.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), "orders", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return cm.Data[annotations.DataPlan]
			}
			was := text()
			o.KeepsNoDryRun()
			o.Terminal, o.Stdin = c.typed != "", c.typed
			o.Line(c.line).Is(t, cmdtest.Printed{Code: c.code, Out: c.out, Err: c.err})
			if c.stays != (text() == was) && !strings.Contains(c.line, "dry-run") {
				t.Errorf("the plan is\n%s", text())
			}
		})
	}
}

// Items of a list that nothing tells apart are compared as they are: one that goes is told, and the
// same list loses nothing.
func TestScheduleComparesItemsThatNothingTellsApart(t *testing.T) {
	const top = "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  triggers: {watch: ["
	pods := func(role string) string {
		return "{apiVersion: v1, kind: Pod, when: 'object.metadata.name == \"" + role + "\"', selector: {matchExpressions: [{key: role, operator: In, values: [" + role + "]}, {key: tier, operator: Exists}]}}"
	}
	rolls := func(batches string) string {
		return "]}\n  steps: [{name: roll, type: for-each, properties: {apiVersion: v1, kind: Pod, selector: {}, batches: " + batches + ", steps: [{name: call, type: webhook, properties: {url: https://x}}]}}]\n"
	}
	was := top + pods("a") + ", " + pods("b") + rolls("[1, 10, 50]")
	const said = "replacing plan/orders takes away:\n"
	for name, c := range map[string]struct{ is, err string }{
		"the same":         {was, ""},
		"in another order": {top + pods("b") + ", " + pods("a") + rolls("[1, 10, 50]"), ""},
		"a watch goes":     {top + pods("b") + rolls("[1, 10, 50]"), said + "  triggers.watch[0]: " + document.Cut(`{"apiVersion":"v1","kind":"Pod","selector":{"matchExpressions":[{"key":"role","operator":"In","values":["a"]},{"key":"tier","operator":"Exists"}]},"when":"object.metadata.name == \"a\""}`, 80) + "\n"},
		"a batch goes":     {top + pods("a") + ", " + pods("b") + rolls("[10, 50]"), said + "  steps[roll (for-each)].properties.batches[0]: 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			cmdtest.WriteFiles(t, map[string]string{"was.yaml": was, "is.yaml": c.is})
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent())
			if got := o.Line("schedule orders -f was.yaml"); got.Code != 0 {
				t.Fatal(got.Err)
			}
			if got := o.Line("schedule orders -f is.yaml"); got.Code != 0 || !strings.HasPrefix(got.Err, c.err) || c.err == "" && strings.Contains(got.Err, said) {
				t.Errorf("%d, %s", got.Code, got.Err)
			}
		})
	}
}

// A pipeline that gives the same command again is asked nothing.
func TestScheduleOfTheSamePlanLosesNothing(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent())
	const line = "schedule nightly --cron '0 2 * * *' --timezone Europe/Berlin --target Deployment/orders --policy weekends --step ask=approval --step call=webhook,url=https://x"
	const next = "next run Sat 2026-11-21 02:00 CET (2026-11-21T01:00:00Z), in 1h0m\n"
	o.Line(line).Is(t, cmdtest.Printed{Out: "plan/nightly written\n", Err: next})
	o.Line(line).Is(t, cmdtest.Printed{Out: "plan/nightly unchanged\n", Err: next})
}

// One instant is printed twice, in one zone: that of the plan.
func TestScheduleAtATimeIsSaidInTheZoneOfThePlan(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent())
	for zone, said := range map[string]string{
		"":                             "Sat 2026-11-21 08:00 UTC (2026-11-21T08:00:00Z)",
		" --timezone America/New_York": "Sat 2026-11-21 03:00 EST (2026-11-21T08:00:00Z)",
	} {
		got := o.Line("schedule once --at 2026-11-21T08:00:00Z --step call=webhook,url=https://x --dry-run=client" + zone)
		got.Is(t, cmdtest.Printed{Out: "plan/once written (dry run)\n", Err: "once at " + said + "\nnext run " + said + ", in 8h0m\n"})
	}
}

func TestScheduleSaysWhichRightIsMissing(t *testing.T) {
	const line = "schedule nightly --cron '0 2 * * *' --step call=webhook,url=https://x"
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent())
	o.Forbids("patch", "configmaps", "")
	o.Line(line).Is(t, cmdtest.Printed{Code: 1, Err: "Error from server (Forbidden): write plan nightly: configmaps is forbidden: not for you; the ClusterRole edit in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\n"})
	o.Forbids("get", "configmaps", "")
	o.Line(line).Is(t, cmdtest.Printed{Code: 1, Err: "Error from server (Forbidden): look whether nightly is there: configmaps is forbidden: not for you; the ClusterRole view in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\n"})
}

// A plan that kubectl wrote is changed by kubectl: that is said before anything is asked.
func TestScheduleLeavesAPlanToTheOneWhoKeepsIt(t *testing.T) {
	const line = "schedule orders --cron '0 4 * * *' --step call=webhook,url=https://x"
	const lost = "replacing plan/orders takes away:\n  policies: weekends\n"
	for manager, err := range map[string]string{
		"kubectl-client-side-apply": "plan orders was written with kubectl (kubectl-client-side-apply), and 'schedule' changes no plan that others wrote: change it in its file, and give 'kubectl apply -f FILE'\n",
		"flux":                      "plan orders is kept by somebody else (Git?): change it there: Apply failed with 1 conflict: conflict with \"flux\" using v1: .data.plan.yaml\n",
	} {
		for _, typed := range []string{"", "y\n"} {
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent())
			theirs := annotations.NewPlan("shop", "orders", "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  policies: [{name: weekends}]\n  triggers: {schedules: [{cron: 0 4 * * *}]}\n  steps: [{name: call, type: webhook, properties: {url: https://x}}]\n", "")
			if _, err := o.Kube.CoreV1().ConfigMaps("shop").Create(t.Context(), theirs, metav1.CreateOptions{FieldManager: manager}); err != nil {
				t.Fatal(err)
			}
			o.Terminal, o.Stdin = typed != "", typed
			o.Line(line).Is(t, cmdtest.Printed{Code: 1, Err: lost + "error: " + err})
		}
	}
}

func TestScheduleWarnsWhereNoAgentIsAtWork(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run)
	o.Line("schedule nightly --cron '0 2 * * *' --step call=webhook,url=https://x").Is(t, cmdtest.Printed{
		Out: "plan/nightly written\n",
		Err: "next run Sat 2026-11-21 02:00 UTC (2026-11-21T02:00:00Z), in 2h0m\nwarning: no agent runs in namespace maint-system: install it with 'kubectl maint install --apply'; no run of the plan begins before one is at work\n",
	})
}
