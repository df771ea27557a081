package plans

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const otherHook = "steps:\n- {name: hook, type: webhook, properties: {url: 'https://other.test'}}\n"

// backTo asks for a rollback to a run.
func (w *world) backTo(token, earlier string) {
	w.Helper()
	w.api.Annotate(shop, "nightly", annotations.TriggerOptions, fmt.Sprintf(`{"token":%q,"asOf":%q}`, token, earlier))
	w.says("nightly", annotations.Trigger, token)
	w.after(2 * time.Second)
}

// edited has somebody write another spec into the plan.
func (w *world) edited(name, spec string) {
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
	w.api.Edit("configmaps", shop, name, func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, text, "data", annotations.DataPlan); err != nil {
			w.Fatal(err)
		}
	})
	w.after(2 * time.Second)
}

// ran has the plan run once, by a token, and then changed.
func (w *world) ran(spec, then string) (earlier string) {
	w.plan("nightly", spec)
	w.begins()
	w.after(time.Second)
	w.says("nightly", annotations.Trigger, "first")
	earlier = nameOf("nightly", "first")
	w.progress(earlier, run.Succeeded)
	w.edited("nightly", then)
	return earlier
}

func TestARollbackDoesWhatTheEarlierRunDid(t *testing.T) {
	play(t, func(w *world) {
		earlier := w.ran(hook, otherHook)
		w.backTo("back", earlier)
		r, _, err := annotations.ReadRun(w.api.ConfigMap(shop, nameOf("nightly", "back")))
		if err != nil {
			w.Fatal(err)
		}
		if url := r.Spec.Steps[0].Properties["url"]; url != "https://hooks.test" || r.Request.AsOf != earlier {
			w.Errorf("it calls %v, as of %q", url, r.Request.AsOf)
		}
		w.wantEvent(fmt.Sprintf("Normal RollbackRequested nightly: Run %s does what run %s did", r.Name, earlier))
	})
}

func TestWhyARollbackIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spec, then string
		before     func(w *world, earlier string)
		earlier    string // empty: that of the plan
		want       string // of the message; EARLIER stands for the run's name
	}{
		"its run is gone": {
			before: func(w *world, earlier string) { w.api.Delete("configmaps", shop, earlier) }, want: "there is no run EARLIER any more",
		},
		"its run has a name that none can have": {earlier: "../x", want: `"../x" is no name of a run`},
		"it is no run": {
			before: func(w *world, _ string) {
				cm := &corev1.ConfigMap{}
				cm.Namespace, cm.Name = shop, "notes"
				w.api.Put(agenttest.Signed(w, cm))
			}, earlier: "notes", want: "shop/notes is no run",
		},
		"its run was changed by somebody": {
			before: func(w *world, earlier string) {
				w.api.Edit("configmaps", shop, earlier, func(u *unstructured.Unstructured) {
					text, _, _ := unstructured.NestedString(u.Object, "data", annotations.DataRun)
					if err := unstructured.SetNestedField(u.Object, strings.ReplaceAll(text, "hooks.test", "evil.test"), "data", annotations.DataRun); err != nil {
						w.Fatal(err)
					}
				})
			}, want: "EARLIER",
		},
		"the configuration does not allow its steps any more": {
			then: "steps:\n- {name: hold, type: suspend, properties: {duration: 1m}}\n",
			before: func(w *world, _ string) {
				w.settings.Steps = []agentconfig.StepUse{{Namespaces: []string{"sh*"}, Deny: []string{"webhook"}}}
			}, want: "step hook is of type webhook, which the agent's configuration does not allow in namespace shop",
		},
		"the plan names another account now": {
			then: "serviceAccountName: other\n" + otherHook,
			before: func(w *world, _ string) {
				other := account()
				other.Name = "other"
				w.api.Put(other)
				w.api.Edit("configmaps", shop, "nightly", func(u *unstructured.Unstructured) {
					labels := u.GetLabels()
					labels[annotations.LabelServiceAccount] = "other"
					u.SetLabels(labels)
				})
				w.after(2 * time.Second)
			},
			want: "run EARLIER worked as ServiceAccount maint-runner, and the plan now names other: a rollback does not change the account",
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				then := c.then
				if then == "" {
					then = otherHook
				}
				earlier := w.ran(hook, then)
				if c.before != nil {
					c.before(w, earlier)
				}
				asked := earlier
				if c.earlier != "" {
					asked = c.earlier
				}
				w.backTo("back", asked)
				if runs := w.runs("nightly"); len(runs) > 1 || len(runs) == 1 && runs[0] != earlier {
					w.Errorf("there are runs %q", runs)
				}
				l := w.ledger("nightly")
				last := l.Recent[len(l.Recent)-1]
				want := strings.ReplaceAll(c.want, "EARLIER", earlier)
				if last.Result != run.Skipped || last.Reason != run.ReasonRefused || last.Outcome == nil || !strings.Contains(last.Outcome.Message, want) {
					w.Errorf("the last entry is %+v, outcome %+v", last, last.Outcome)
				}
				w.wantEvent("Warning RollbackRefused nightly: No run was started: ")
				w.settings.Steps = nil
				w.says("nightly", annotations.Trigger, "next")
				w.after(2 * time.Second)
				if w.api.ConfigMap(shop, nameOf("nightly", "next")) == nil {
					w.Errorf("the next trigger is held up: %s", w.said("nightly", annotations.StatusMessage))
				}
			})
		})
	}
}

// An agent that dies between its claim and its run leaves both to the next one, which
// may find that the earlier run was taken away meanwhile.
func TestARollbackThatWasClaimedGoesOnUnderTheNextAgent(t *testing.T) {
	for name, lost := range map[string]bool{"its run is there": false, "its run is gone": true} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				earlier := w.ran(hook, otherHook)
				mend := w.api.Refuse(agenttest.When{Verb: "create", Resource: "configmaps"}, agenttest.Always, 500, "not now")
				w.backTo("back", earlier)
				mend()
				if lost {
					w.api.Delete("configmaps", shop, earlier)
				}
				w.begins()
				w.after(3 * time.Second)
				made := w.api.ConfigMap(shop, nameOf("nightly", "back")) != nil
				if l := w.ledger("nightly"); made == lost || len(l.Open) == 1 == lost {
					w.Errorf("made: %v, open %v, recent %v", made, l.Open, l.Recent)
				}
			})
		})
	}
}
