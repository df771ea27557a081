package runs

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const target = "target: {apiVersion: v1, kind: ConfigMap, name: orders}\n"

// hooked is a step whose body says what an expression yields.
func hooked(expression, more string) string {
	return "steps:\n- {name: hook, type: webhook, " + more + "properties: {url: 'https://hooks.test', body: '" + expression + "'}}\n"
}

func requires(more string) string {
	return "requires: [{name: all, apiVersion: v1, kind: ConfigMap, " + more + "}], "
}

func TestWhatAStepSees(t *testing.T) {
	for name, c := range map[string]struct {
		spec    string
		given   func(w *world)
		body    string // that its executor is given
		message string // with which it fails instead
		waits   string // what it waits for after ten seconds
		then    func(w *world)
	}{
		"its target as it is":        {spec: target + hooked("${target.data.size}", ""), body: "3"},
		"no managed fields of it":    {spec: target + hooked("${string(has(target.metadata.managedFields))}", ""), body: "false"},
		"nothing, where it asks not": {spec: target + hooked("plain", ""), given: func(w *world) { w.cluster.Deny(runner, "get", "configmaps") }, body: "plain"},
		"a target that is gone": {
			spec: target + hooked("${target.data.size}", ""), given: func(w *world) { w.cluster.Delete("configmaps", shop, "orders") }, message: "ConfigMap/orders does not exist",
		},
		"a target that it may not read": {
			spec: target + hooked("${target.data.size}", ""), given: func(w *world) { w.cluster.Deny(runner, "get", "configmaps") }, waits: "cannot get resource", message: "cannot get resource",
		},
		"a target that cannot be read for now": {
			spec: target + hooked("${target.data.size}", ""), given: func(w *world) {
				w.cluster.Refuse(agenttest.When{User: "maint-runner", Verb: "get", Resource: "configmaps"}, 3, 503, "starting")
			}, body: "3",
		},
		"a target behind a connection that breaks": {
			spec: target + hooked("${target.data.size}", ""), given: func(w *world) {
				w.cluster.Fail(agenttest.When{User: "maint-runner", Verb: "get", Resource: "configmaps"}, 3)
			}, body: "3",
		},
		"a target of a kind that nobody knows": {
			spec: strings.Replace(target, "kind: ConfigMap", "kind: Unheard", 1) + hooked("${target.data.size}", ""), message: "Unheard",
		},
		"an expression that fails":         {spec: hooked("${target.data.size}", ""), message: "target"},
		"an object that it requires":       {spec: hooked("${required.all[0].data.size}", requires("objectName: orders")), body: "3"},
		"objects by their labels in order": {spec: hooked("${required.all[0].metadata.name + required.all[1].metadata.name}", requires("matchLabels: {app: shop}")), body: "cartorders"},
		"none, where none is there":        {spec: hooked("${string(size(required.all))}", requires("objectName: other")), body: "0"},
		"none, where one must be there":    {spec: hooked("${string(size(required.all))}", requires("objectName: other, required: true")), message: `required.all: there is no ConfigMap "other"`},
		"none by labels, where one must be there": {
			spec: hooked("${string(size(required.all))}", requires("matchLabels: {app: none}, required: true")), message: "there is no ConfigMap with labels app=none",
		},
		"objects of another namespace": {
			spec: hooked("${required.all[0].data.of}", requires("namespace: other, objectName: orders")), given: func(w *world) {
				cm := configMap("orders", map[string]string{"of": "another"})
				cm.Namespace = "other"
				w.cluster.Put(cm)
			}, body: "another",
		},
		"objects that it may not read": {
			spec: hooked("${required.all[0].data.size}", requires("objectName: orders")), given: func(w *world) { w.cluster.Deny(runner, "get", "configmaps") },
			waits: "read required.all as " + runner + ", which needs get on configmaps",
			then:  func(w *world) { w.cluster.Allow(runner, "get", "configmaps") }, body: "3",
		},
		"objects that it may not list": {
			spec: hooked("${required.all[0].data.size}", requires("matchLabels: {app: shop}")), given: func(w *world) { w.cluster.Deny(runner, "list", "configmaps") },
			message: "which needs list on configmaps",
		},
		"a Secret without what it keeps": {
			spec: strings.Replace(hooked("${string(has(required.all[0].data))}", requires("objectName: key")), "kind: ConfigMap", "kind: Secret", 1), given: func(w *world) {
				w.cluster.Put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "key"}, Data: map[string][]byte{"a": []byte("b")}})
			}, body: "false",
		},
		"too many objects": {
			spec: hooked("${string(size(required.all))}", requires("matchLabels: {many: yes}")), given: func(w *world) {
				for i := range maxRequired + 1 {
					cm := configMap(at("m%d", i), nil)
					cm.Labels = map[string]string{"many": "yes"}
					w.cluster.Put(cm)
				}
			}, message: "more than 500 objects",
		},
		"objects that are too large": {
			spec: hooked("${string(size(required.all))}", requires("matchLabels: {many: yes}")), given: func(w *world) {
				for i := range 4 {
					cm := configMap(at("m%d", i), map[string]string{"a": strings.Repeat("x", 400_000)})
					cm.Labels = map[string]string{"many": "yes"}
					w.cluster.Put(cm)
				}
			}, message: "more than 1048576 bytes in all",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, strings.ReplaceAll(c.spec, "many: yes", "many: 'yes'"), func(w *world) {
				for _, one := range []string{"orders", "cart"} {
					cm := configMap(one, map[string]string{"size": "3"})
					cm.Labels = map[string]string{"app": "shop"}
					w.cluster.Put(cm)
				}
				if c.given != nil {
					c.given(w)
				}
				w.begins("a")
				w.after(10 * time.Second)
				if c.waits != "" {
					if got := w.record("hook").Waits; !strings.Contains(got, c.waits) {
						t.Errorf("it waits for %q, want %q", got, c.waits)
					}
				}
				if c.then != nil {
					c.then(w)
				}
				w.after(2 * time.Minute)
				if c.message != "" {
					w.ends(run.Failed, c.message)
					w.did()
					return
				}
				w.ends(run.Succeeded, "")
				if p, is := w.steps.last("hook").Properties.(*plan.WebhookProperties); !is || p.Body != c.body {
					t.Errorf("it was given %+v, want %q", w.steps.last("hook").Properties, c.body)
				}
			})
		})
	}
}

func TestAStepOfATemplateSeesItsParameters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		template, faults := plan.ParseTemplate([]byte("apiVersion: "+document.APIVersion+"\nkind: StepTemplate\nspec:\n  parameters: [{name: to}]\n  steps:\n  - {name: hook, type: webhook, properties: {url: 'https://hooks.test', body: '${params.to}'}}\n"), "call")
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		w.asked("steps:\n- {name: use, type: template/call, properties: {to: '${\"o\" + \"ps\"}'}}\n", func(r *run.Run) {
			r.Templates = map[string]plan.TemplateSpec{"call": template}
		})
		w.plays()
		w.ends(run.Succeeded, "")
		if p, is := w.steps.last("use/hook").Properties.(*plan.WebhookProperties); !is || p.Body != "ops" {
			t.Errorf("it was given %+v", w.steps.last("use/hook").Properties)
		}
	})
}

func TestAnApprovalWaitsAsLongAsItsPlanSays(t *testing.T) {
	inWorld(t, "approvalTimeout: 7m\nsteps:\n- {name: ask, type: approval}\n", func(w *world) {
		w.plays()
		w.after(5 * time.Minute)
		if got := w.record("ask").Phase; got != run.StepRunning {
			t.Errorf("it is %s", got)
		}
		w.after(2 * time.Minute)
		w.ends(run.Failed, "nobody approved or rejected")
	})
}

// What a step has read to put its properties together is not kept for as long as whoever it
// calls does not answer: others wait for the room that it takes.
func TestWhatWasReadForAStepIsLetGoBeforeItsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.cluster.Put(configMap("large", map[string]string{"text": strings.Repeat("x", 200<<10)}))
		w.asked(hooked("${string(size(required.all[0].data.text))}", requires("objectName: large")), func(*run.Run) {})
		w.steps.does("pass hook", func(ctx context.Context, call executors.Call) executors.Outcome {
			if p := call.Properties.(*plan.WebhookProperties); executors.ReservationOf(ctx).Holds() || call.Objects.Required != nil || p.Body != "204800" {
				t.Errorf("holds: %t, %d lists are handed over, its body is %v", executors.ReservationOf(ctx).Holds(), len(call.Objects.Required), p.Body)
			}
			return executors.Outcome{State: executors.Done}
		})
		w.plays()
		w.after(time.Minute)
		w.ends(run.Succeeded, "")
	})
}
