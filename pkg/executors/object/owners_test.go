package object

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

const apps = "Application/apps"

// newOwned is a world with a Deployment that an Application of Argo CD keeps, and the call
// of a step that holds it.
func newOwned(t *testing.T, spec string) (*world, executors.Call) {
	t.Helper()
	w := newWorld(t,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: orders, annotations: {argocd.argoproj.io/tracking-id: "shop_apps:apps/Deployment:shop/orders"}}}`,
		`{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: apps}, spec: `+spec+`}`)
	return w, w.step(&plan.HoldOwnersProperties{Object: &plan.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "orders"}, RestoreAfter: true})
}

func (w *world) asked() string {
	return strings.Trim(w.field(apps, "metadata", "annotations", "argocd.argoproj.io/refresh"), `"`)
}

// looks is Argo CD, which takes away that it was asked to look.
func (w *world) looks() {
	w.edit(apps, `{metadata: {annotations: {argocd.argoproj.io/refresh: null}}}`)
}

const automated = "{syncPolicy: {automated: {selfHeal: true}, retry: {limit: 2}}}"

func TestAnApplicationIsHeldWhenArgoCDHasLooked(t *testing.T) {
	for name, lost := range map[string]bool{"": false, "the answer to the write is lost": true} {
		t.Run(name, func(t *testing.T) {
			w, call := newOwned(t, automated)
			w.lose["patch"] = lost
			out := w.end(OwnerHolder{}, &call)
			if lost {
				out = w.end(OwnerHolder{}, &call)
			}
			if out.State != executors.NotYet || out.Watch == nil || !out.WakeAt.Equal(call.Now.Add(time.Minute)) || out.Message != "Application shop/apps is suspended; waits: its controller has not looked at it since" {
				t.Fatalf("%s, at %s", said(out), out.WakeAt)
			}
			if got := w.field(apps, "spec"); got != `{"syncPolicy":{"retry":{"limit":2}}}` || w.asked() != "normal" {
				t.Errorf("it is %s, and asked %q", got, w.asked())
			}
			w.edit(apps, `{operation: {sync: {}}}`) // what it had decided before
			w.looks()
			if out = w.end(OwnerHolder{}, &call); out.Message != "Application shop/apps is suspended; waits: a sync is under way" {
				t.Errorf("%s", said(out))
			}
			w.edit(apps, `{operation: null}`)
			for range 2 {
				if out = w.end(OwnerHolder{}, &call); out.State != executors.Done {
					t.Errorf("%s", said(out))
				}
			}
			w.wrote(1)
			if out = (OwnerHolder{}).Restore(t.Context(), call); out.State != executors.Done || w.asked() != "" {
				t.Errorf("%s, and asked %q", said(out), w.asked())
			}
			if got := w.field(apps, "spec"); got != `{"syncPolicy":{"automated":{"selfHeal":true},"retry":{"limit":2}}}` {
				t.Errorf("it is given back as %s", got)
			}
		})
	}
}

func TestAnArgoCDThatNeverLooksIsWaitedForAMinute(t *testing.T) {
	w, call := newOwned(t, automated)
	out := w.end(OwnerHolder{}, &call)
	call.Recorded.Memory = out.Memory
	call.Now = call.Now.Add(time.Minute - time.Second)
	if out = w.end(OwnerHolder{}, &call); out.State != executors.NotYet || out.Memory != nil {
		t.Errorf("%s, and remembers anew %s", said(out), out.Memory)
	}
	call.Now = call.Now.Add(time.Second)
	if out = w.end(OwnerHolder{}, &call); out.State != executors.Done || !strings.HasSuffix(out.Message, "its controller has not looked at it within 1m0s") {
		t.Errorf("%s", said(out))
	}
}

func TestAnApplicationThatWasOffBeforeIsNotLookedAt(t *testing.T) {
	w, call := newOwned(t, "{syncPolicy: {retry: {limit: 2}}}")
	if out := w.end(OwnerHolder{}, &call); out.State != executors.Done || w.asked() != "" {
		t.Errorf("%s, and asked %q", said(out), w.asked())
	}
	w.wrote(0)
}

// Argo CD takes an empty syncPolicy out by itself, and with it an automation that was put back
// since it looked.
func TestAnApplicationIsLeftNoEmptySyncPolicy(t *testing.T) {
	for spec, then := range map[string]string{
		`{"project":"shop","syncPolicy":{"automated":{"selfHeal":true}}}`:                  `{"project":"shop"}`,
		`{"project":"shop","syncPolicy":{"automated":{}}}`:                                 `{"project":"shop"}`,
		`{"project":"shop","syncPolicy":{"automated":{"prune":true},"retry":{"limit":2}}}`: `{"project":"shop","syncPolicy":{"retry":{"limit":2}}}`,
		`{"project":"shop"}`:                                    `{"project":"shop"}`,
		`{"project":"shop","syncPolicy":{}}`:                    `{"project":"shop","syncPolicy":{}}`,
		`{"project":"shop","syncPolicy":{"retry":{"limit":2}}}`: `{"project":"shop","syncPolicy":{"retry":{"limit":2}}}`,
	} {
		t.Run(spec, func(t *testing.T) {
			w, call := newOwned(t, spec)
			w.end(OwnerHolder{}, &call)
			if got := w.field(apps, "spec"); got != then {
				t.Errorf("it is left as %s, want %s", got, then)
			}
			w.looks()
			if out := w.end(OwnerHolder{}, &call); out.State != executors.Done {
				t.Errorf("%s", said(out))
			}
			if out := (OwnerHolder{}).Restore(t.Context(), call); out.State != executors.Done {
				t.Errorf("%s", said(out))
			}
			if got := w.field(apps, "spec"); got != spec {
				t.Errorf("it is given back as %s", got)
			}
		})
	}
}
