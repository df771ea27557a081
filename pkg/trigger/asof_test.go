package trigger_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	gates "github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// backTo asks for a rollback to run "good".
func backTo(more ...edit) edit {
	return func(f *trigger.Facts) {
		token("a")(f)
		f.Plan.Intent.Asked = intent.TriggerOptions{Token: "a", AsOf: "good"}
		for _, e := range more {
			e(f)
		}
	}
}

// goodRun is a run of the plan of coretest.Facts, which has ended.
func goodRun() (run.Run, run.Journal) {
	r := coretest.NewRun()
	r.Name, r.Request = "good", run.Request{Kind: run.ByToken, Token: "then", Parameters: map[string]string{"mode": "slow"}}
	return r, run.Journal{Phase: run.Succeeded}
}

func found(e trigger.Earlier) edit { return func(f *trigger.Facts) { f.State.Earlier = &e } }

func TestARollbackIsClaimedOnceItsRunIsFound(t *testing.T) {
	r, _ := goodRun()
	paused := func(f *trigger.Facts) { f.Plan.Intent.Pause.On = true }
	check(t, []decideCase{
		{"found", coretest.Facts("01:00", backTo(found(trigger.Earlier{Name: "good", Run: r}))), []string{"claim token a"}},
		{"not looked for yet", coretest.Facts("01:00", backTo()), nil},
		{"another one was looked for", coretest.Facts("01:00", backTo(found(trigger.Earlier{Name: "other", Run: r}))), nil},
		{"of a paused plan it waits", coretest.Facts("01:00", backTo(found(trigger.Earlier{Name: "good", Run: r}), paused)), nil},
	})
	d := trigger.Decide(coretest.Facts("01:00", backTo(found(trigger.Earlier{Name: "good", Run: r}))))
	want := run.Request{Kind: run.ByToken, Token: "a", At: coretest.Clock("01:00"), Parameters: map[string]string{"mode": "slow"}, AsOf: "good"}
	if diff := cmp.Diff(want, d.Claims[0]); diff != "" {
		t.Errorf("the request has not the parameters of its run (-want +got):\n%s", diff)
	}
	if e := d.Ledger.Open[0]; e.AsOf != "good" || e.Reason != "rollback" {
		t.Errorf("the entry says as of %q, reason %q", e.AsOf, e.Reason)
	}
	if d := trigger.Decide(coretest.Facts("01:00", backTo())); d.Ledger.KnowsToken("a") {
		t.Error("a token whose run was not looked for is taken for handled")
	}
}

// A trigger that is refused must not hold up the next one.
func TestARefusedRollbackEndsWithoutARun(t *testing.T) {
	d := trigger.Decide(coretest.Facts("01:00", backTo(found(trigger.Earlier{Name: "good", Refused: "it is gone"}))))
	want := []ledger.Entry{{
		Kind: run.ByToken, Result: run.Skipped, Reason: run.ReasonRefused, Run: "manual|a", At: coretest.Clock("01:00"), AsOf: "good",
		Outcome: &ledger.Outcome{Phase: run.Aborted, Message: "it is gone"},
	}}
	if diff := cmp.Diff(want, d.Ledger.Recent); diff != "" {
		t.Errorf("the ledger (-want +got):\n%s", diff)
	}
	if len(d.Claims) > 0 || len(d.Ledger.Open) > 0 || !d.Ledger.KnowsToken("a") || !d.Changed || d.Status.NotRun != "it is gone" {
		t.Errorf("claims %v, open %v, tokens %q, changed %v, not run %q", d.Claims, d.Ledger.Open, d.Ledger.Tokens, d.Changed, d.Status.NotRun)
	}
}

func TestTheRetryOfARollbackIsOne(t *testing.T) {
	r, _ := goodRun()
	failed := func(f *trigger.Facts) {
		f.State.Ledger.Last = &ledger.LastRun{Name: "back", Phase: run.Failed, Request: run.Request{Kind: run.ByToken, Token: "x", AsOf: "good"}}
		f.Plan.Intent.Retry.Run = "back"
	}
	f := coretest.Facts("01:00", failed)
	if got := f.AsOf(); got != "good" {
		t.Errorf("it goes back to %q", got)
	}
	if d := trigger.Decide(f); len(d.Claims) > 0 {
		t.Errorf("without its run it claims %v", d.Claims)
	}
	f.State.Earlier = &trigger.Earlier{Name: "good", Run: r}
	d := trigger.Decide(f)
	if len(d.Claims) != 1 || d.Claims[0].AsOf != "good" || d.Claims[0].Parameters["mode"] != "slow" {
		t.Errorf("it claims %v", d.Claims)
	}
	if f.State.Ledger = &d.Ledger; f.AsOf() != "" {
		t.Errorf("once claimed it looks for %q", f.AsOf())
	}
}

func TestWhichEarlierRunIsWanted(t *testing.T) {
	for name, c := range map[string]struct {
		f    trigger.Facts
		want string
	}{
		"a new token's":                         {coretest.Facts("01:00", backTo()), "good"},
		"none of one that is handled":           {coretest.Facts("01:00", backTo(ledgerWith(func(l *ledger.Ledger) { *l = l.WithToken("a") }))), ""},
		"none of options of another token":      {coretest.Facts("01:00", backTo(func(f *trigger.Facts) { f.Plan.Intent.Asked.Token = "b" })), ""},
		"none where nothing is asked":           {coretest.Facts("01:00"), ""},
		"where the ledger is lost, the token's": {coretest.Facts("01:00", backTo(first)), "good"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.f.AsOf(); got != c.want {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestWhichRunsMayRunAgain(t *testing.T) {
	const ask, change = "{name: ask, type: approval}", "{name: change, type: restart}"
	steps := func(texts ...string) []plan.Step {
		var out []plan.Step
		if err := yaml.Unmarshal([]byte("["+strings.Join(texts, ", ")+"]"), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	asking := func(templates map[string]plan.TemplateSpec, then []plan.Step, now ...string) func(*run.Run, *run.Journal, *trigger.Facts) {
		return func(r *run.Run, _ *run.Journal, f *trigger.Facts) {
			f.Plan.Spec.Steps, f.Plan.Templates = steps(now...), templates
			if r.Templates = map[string]plan.TemplateSpec{"careful": {Steps: steps(change)}}; then != nil {
				r.Spec.Steps = then
			}
		}
	}
	unasked := func(step string) string {
		return "the steps of the plan now ask for approval (step " + step + "), and those of run good do not ask as they do: set requiresApproval: true on the plan, so that the rollback itself waits for an approval, or name a run that asks"
	}
	target := &plan.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "orders"}
	for name, c := range map[string]struct {
		edit func(r *run.Run, j *run.Journal, f *trigger.Facts)
		want string
	}{
		"one of the plan that has ended": {func(*run.Run, *run.Journal, *trigger.Facts) {}, ""},
		"one that failed":                {func(_ *run.Run, j *run.Journal, _ *trigger.Facts) { j.Phase = run.Failed }, ""},
		"one that lives":                 {func(_ *run.Run, j *run.Journal, _ *trigger.Facts) { j.Phase = run.Running }, "run good has not ended"},
		"one of another plan":            {func(r *run.Run, _ *run.Journal, _ *trigger.Facts) { r.Plan = "other" }, "run good is of plan other"},
		"one of a plan that is gone":     {func(r *run.Run, _ *run.Journal, _ *trigger.Facts) { r.PlanUID = "before" }, "run good is of an earlier plan of that name, which was deleted"},
		"one of another account": {
			func(r *run.Run, _ *run.Journal, _ *trigger.Facts) { r.Spec.ServiceAccountName = "admin" },
			"run good worked as ServiceAccount admin, and the plan now names maint-runner: a rollback does not change the account",
		},
		"one that names the usual account": {func(r *run.Run, _ *run.Journal, f *trigger.Facts) {
			r.Spec.ServiceAccountName, f.Plan.Spec.ServiceAccountName = "maint-runner", ""
		}, ""},
		"one of another target": {
			func(r *run.Run, _ *run.Journal, _ *trigger.Facts) { r.Spec.Target = target },
			"run good was about apps/v1 Deployment/orders, and the plan now is about no target: a rollback does not change the target",
		},
		"one of the same target": {func(r *run.Run, _ *run.Journal, f *trigger.Facts) {
			r.Spec.Target, f.Plan.Spec.Target = target, new(*target)
		}, ""},
		"one without the approval that a step asks for": {asking(nil, nil, ask, change), unasked("ask")},
		"one with the same approval":                    {asking(nil, steps(ask, `{name: change, type: webhook}`), ask, change, `{name: more, type: suspend}`), ""},
		"one with an approval only on a condition":      {asking(nil, steps(`{name: ask, type: approval, if: "false"}`, change), ask, change), unasked("ask")},
		"one that changes before it asks":               {asking(nil, steps(change, ask), ask, change), unasked("ask")},
		"one with the approval in a step that is left out": {
			asking(nil, steps(`{name: both, type: step-group, if: "false", properties: {steps: [`+ask+`]}}`), `{name: both, type: step-group, properties: {steps: [`+ask+`]}}`), unasked("both"),
		},
		"one with the approval beside what waits for it": {
			asking(nil, steps(`{name: both, type: step-group, properties: {mode: parallel, steps: [`+ask+`, `+change+`]}}`), `{name: both, type: step-group, properties: {steps: [`+ask+`, `+change+`]}}`), unasked("both"),
		},
		"one with the approval in a group of now": {
			asking(nil, steps(`{name: both, type: step-group, properties: {steps: [`+ask+`, `+change+`]}}`), `{name: both, type: step-group, properties: {steps: [`+ask+`, `+change+`]}}`), "",
		},
		"one without the approval of a template": {
			asking(map[string]plan.TemplateSpec{"careful": {Steps: steps(ask, change)}}, steps(`{name: both, type: template/careful}`), `{name: both, type: template/careful}`), unasked("both"),
		},
		"one without an approval, of a plan that waits for one": {func(r *run.Run, j *run.Journal, f *trigger.Facts) {
			asking(nil, nil, ask)(r, j, f)
			f.Plan.Spec.RequiresApproval = true
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, j := goodRun()
			f := coretest.Facts("01:00")
			c.edit(&r, &j, &f)
			if got := f.CheckEarlier(r, j); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// What is done comes from the run; when, and with whose consent, from the plan.
func TestARollbackKeepsTheRulesOfThePlanAsItStands(t *testing.T) {
	r, _ := goodRun()
	r.Spec.MaxDuration, r.Spec.RetryLimit, r.Spec.Finally = coretest.Duration("3h"), 2, []plan.Step{{Name: "z", Type: "webhook"}}
	r.Spec.RequiresApproval, r.Spec.ConcurrencyPolicy = false, plan.Allow
	r.Templates = map[string]plan.TemplateSpec{"hush": {}}
	r.Watched = run.Body{"kind": "Secret"}
	f := coretest.Facts("01:00")
	f.Plan.Spec.RequiresApproval, f.Plan.Spec.Policies = true, []gates.PolicyRef{{Name: "night"}}
	request := run.Request{Kind: run.ByToken, Token: "a", AsOf: "good"}
	got := f.RunAsOf(ledger.Entry{Run: "back", Request: &request}, r)
	want := f.Plan.Spec
	want.MaxDuration, want.RetryLimit, want.Steps, want.OnFailure, want.Finally = r.Spec.MaxDuration, 2, r.Spec.Steps, nil, r.Spec.Finally
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("the snapshot (-want +got):\n%s", diff)
	}
	if got.Name != "back" || got.Request.AsOf != "good" || len(got.Templates) != 1 || got.Watched["kind"] != "Secret" {
		t.Errorf("%+v", got)
	}
}
