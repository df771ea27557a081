package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

func watchedScaleRights(more ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments", "deployments/scale"}, Verbs: append([]string{"get", "patch"}, more...)}
}

const scaledDown = `
%starget: {apiVersion: apps/v1, kind: Deployment, name: orders}
steps:
- {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0, restoreAfter: true}}
- {name: hold, type: suspend}
- {name: migrate, type: webhook, properties: {url: "HOOK/migrate"}}
`

// pushes has a GitOps controller put replicas where its repository has them.
func (l *lab) pushes(replicas int) {
	l.Helper()
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	_, err := l.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, "orders", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kustomize-controller"})
	l.must(err)
}

// watchesOf is how many watches of a resource the plans' account of the namespace has opened.
func (l *lab) watchesOf(resource string) int {
	l.Helper()
	n := 0
	_, err := harness.EachAudited(world.audit, 0, l.ns, func(e harness.AuditEvent) {
		if e.Verb == "watch" && e.Stage == "ResponseStarted" && e.Object.Resource == resource && e.Object.Namespace == l.ns && e.Impersonated != nil {
			n++
		}
	})
	l.must(err)
	return n
}

func (l *lab) migrated() int { return len(l.hooks.Keys("/" + l.ns + "/migrate")) }

func TestARunIsHeldWhereSomebodyChangesWhatItHolds(t *testing.T) {
	l := newLab(t)
	l.runner(watchedScaleRights("list", "watch"))
	l.deployment("orders", 3)
	l.plan("upgrade", fmt.Sprintf(scaledDown, ""))
	l.seen("upgrade")
	l.trigger("upgrade", "one")
	name := l.running("upgrade", "hold").run.Name
	l.pushes(3)
	l.eventually("the run says who changed what", func() (bool, string) {
		out := l.maint("describe", name).out
		return strings.Contains(out, "kustomize-controller changed spec.replicas of Deployment/orders from 0 to 3 at "), out
	})
	if n := l.watchesOf("deployments"); n != 1 {
		t.Errorf("its account has opened %d watches of Deployments, want one", n)
	}
	l.eventually("an Event tells of it", func() (bool, string) { // Events are sent beside the work
		out := l.maint("describe", "upgrade").out
		return strings.Contains(out, "Drift") && strings.Contains(out, "kustomize-controller"), out
	})
	l.pushes(0)
	l.eventually("it is as the run left it", func() (bool, string) {
		rec := recordOf(l.runs("upgrade")[0].journal, "down")
		return rec.Drift != nil && rec.Drift.Over != nil, fmt.Sprintf("%+v", rec.Drift)
	})
	l.pushes(2)
	l.eventually("the second change is seen", func() (bool, string) {
		return len(l.runs("upgrade")[0].journal.OpenDrifts()) == 1, ""
	})
	l.expect(l.maint("why", "upgrade"), 3, "begins no further step: after step down kustomize-controller changed spec.replicas", "accepts the change, and ends step hold", "is suspended at step hold")
	l.expect(l.maint("resume", name, "--reason", "two will do"), 0, "it goes on although after step down kustomize-controller changed spec.replicas", "and ends step hold", "resumed")
	r := l.ended("upgrade", 1)[0]
	l.expect(l.maint("describe", name), 0, "the change was accepted by ", ": two will do")
	l.expect(l.maint("history", "upgrade"), 0, "resumed in step hold by ", ": two will do")
	if r.journal.Phase != run.Succeeded || !strings.Contains(r.journal.Message, "while it ran kustomize-controller changed spec.replicas") {
		t.Errorf("it is %s: %s", r.journal.Phase, r.journal.Message)
	}
	if got := recordOf(r.journal, "down").RestoreMessage; !strings.Contains(got, "kustomize-controller") {
		t.Errorf("the restore says %q", got)
	}
	if l.migrated() != 1 || l.replicas("orders") != 2 {
		t.Errorf("%d deliveries, %d replicas", l.migrated(), l.replicas("orders"))
	}
}

// The records of an object's steps go when they are through, but for what is looked after.
func TestWhatAStepInALoopDidIsWatchedAsAnyOther(t *testing.T) {
	for name, more := range map[string]string{"that stays": "", "that is put back": ", restoreAfter: true"} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.runner(watchedScaleRights("list", "watch"))
			l.deployment("orders", 3)
			l.plan("upgrade", `
steps:
- {name: all, type: for-each, properties: {apiVersion: apps/v1, kind: Deployment, steps: [
    {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: "${each.metadata.name}"}, replicas: 0`+more+`}}]}}
- {name: hold, type: suspend}
- {name: migrate, type: webhook, properties: {url: "HOOK/migrate"}}
`)
			l.seen("upgrade")
			l.trigger("upgrade", "one")
			l.running("upgrade", "hold")
			l.pushes(3)
			l.eventually("the run says who changed what", func() (bool, string) {
				out := l.runs("upgrade")[0].journal.DriftMessage()
				return strings.Contains(out, "after step all/orders/down kustomize-controller changed spec.replicas of Deployment/orders from 0 to 3 at "), out
			})
			if l.migrated() != 0 {
				t.Error("the step after the drift began")
			}
		})
	}
}

func TestNoStepBeginsAfterADrift(t *testing.T) {
	l := newLab(t)
	l.runner(watchedScaleRights("list", "watch"))
	l.deployment("orders", 3)
	l.plan("upgrade", strings.Replace(fmt.Sprintf(scaledDown, ""), "{name: hold, type: suspend}", "{name: hold, type: suspend, properties: {duration: 4s}}", 1))
	l.plan("strict", strings.Replace(fmt.Sprintf(scaledDown, "onDrift: fail\n"), "HOOK/migrate", "HOOK/strict", 1))
	l.seen("upgrade")
	l.seen("strict")
	l.trigger("upgrade", "one")
	name := l.running("upgrade", "hold").run.Name
	l.pushes(3)
	l.eventually("the run is held behind its suspend", func() (bool, string) {
		r := l.runs("upgrade")[0]
		return recordOf(r.journal, "hold").Phase == run.StepSucceeded && strings.Contains(r.journal.Message, "no new step begins"), r.journal.Message
	})
	l.expect(l.maint("status", "upgrade"), 0, "kustomize-controller changed spec.replicas", "'kubectl maint -n "+l.ns+" resume "+name+"'")
	if l.migrated() != 0 {
		t.Error("the step after the drift began")
	}
	l.pushes(0)
	l.ended("upgrade", 1)
	if l.migrated() != 1 || l.replicas("orders") != 3 {
		t.Errorf("%d deliveries, %d replicas", l.migrated(), l.replicas("orders"))
	}

	l.trigger("strict", "one")
	l.running("strict", "hold")
	l.pushes(1)
	r := l.ended("strict", 1)[0]
	if r.journal.Phase != run.Failed || r.journal.End.Reason != run.ReasonDrift || len(l.hooks.Keys("/"+l.ns+"/strict")) != 0 {
		t.Errorf("it is %s (%s)", r.journal.Phase, r.journal.End.Reason)
	}
}

// Without the right to watch, a look is made now and then, and what the plan itself does is
// no drift.
func TestDriftWithoutTheRightToWatch(t *testing.T) {
	l := newLab(t)
	l.runner(rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"get", "patch"}})
	l.deployment("orders", 3)
	l.plan("twice", `
steps:
- {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0}}
- {name: up, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 2}}
- {name: rest, type: suspend, properties: {duration: 40s}}
- {name: call, type: webhook, properties: {url: "HOOK/call"}}
`)
	l.seen("twice")
	l.trigger("twice", "one")
	r := l.ended("twice", 1)[0]
	if r.journal.Phase != run.Succeeded || r.journal.Message != "all steps are done" {
		t.Errorf("it is %s: %s", r.journal.Phase, r.journal.Message)
	}
	l.eventually("that it may not watch is said", func() (bool, string) {
		out := l.maint("describe", "twice").out
		return strings.Contains(out, "DriftUnwatched"), out
	})
}

// Where nobody minds, the run goes on, and says at its end what somebody changed and who.
func TestADriftThatNobodyMindsHoldsNothing(t *testing.T) {
	l := newLab(t)
	l.runner(watchedScaleRights("list", "watch"))
	l.deployment("orders", 3)
	l.plan("upgrade", fmt.Sprintf(scaledDown, "onDrift: ignore\n"))
	l.seen("upgrade")
	l.trigger("upgrade", "one")
	name := l.running("upgrade", "hold").run.Name
	l.pushes(2)
	l.expect(l.maint("resume", name), 0, "resumed")
	r := l.ended("upgrade", 1)[0]
	if r.journal.Phase != run.Succeeded || l.migrated() != 1 {
		t.Errorf("it is %s: %s; %d deliveries", r.journal.Phase, r.journal.Message, l.migrated())
	}
	if got := l.replicas("orders"); got != 2 {
		t.Errorf("orders has %d replicas: what kustomize-controller set was put back", got)
	}
	l.expect(l.maint("describe", name), 0, "not put back: ")
}

// What a step applied is watched like what a step scaled.
func TestARunIsHeldWhereSomebodyChangesWhatItApplied(t *testing.T) {
	l := newLab(t)
	l.runner(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch"}})
	l.plan("upgrade", `
steps:
- {name: banner, type: apply-object, properties: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: banner}, data: {text: "maintenance"}}}}
- {name: hold, type: suspend}
`)
	l.seen("upgrade")
	l.trigger("upgrade", "one")
	name := l.running("upgrade", "hold").run.Name
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, "banner", types.MergePatchType, []byte(`{"data":{"text":"open"}}`), metav1.PatchOptions{FieldManager: "helm"})
	l.must(err)
	l.eventually("the run says who changed what", func() (bool, string) {
		out := l.maint("describe", name).out
		return strings.Contains(out, "helm changed data.text of ConfigMap/banner"), out
	})
	l.expect(l.maint("resume", name), 0, "it goes on although after step banner helm changed data.text", "resumed")
	if r := l.ended("upgrade", 1)[0]; r.journal.Phase != run.Succeeded || !strings.Contains(r.journal.Message, "while it ran helm changed data.text") {
		t.Errorf("it is %s: %s", r.journal.Phase, r.journal.Message)
	}
}

// Who resumes a run accepts one change: another one holds the run again. That the account may not
// read what a step did is told.
func TestAnotherDriftAfterAResumeHoldsTheRunAgain(t *testing.T) {
	l := newLab(t)
	l.runner(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch"}})
	l.plan("upgrade", `
steps:
- {name: banner, type: apply-object, properties: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: banner}, data: {text: "maintenance", link: "/"}}, force: true}}
- {name: hold, type: suspend}
- {name: longer, type: suspend}
`)
	l.seen("upgrade")
	l.trigger("upgrade", "one")
	name := l.running("upgrade", "hold").run.Name
	changes := func(manager, data string) {
		_, err := l.admin.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, "banner", types.MergePatchType, []byte(`{"data":`+data+`}`), metav1.PatchOptions{FieldManager: manager})
		l.must(err)
	}
	open := func(what string) {
		l.eventually(what, func() (bool, string) {
			said := l.runs("upgrade")[0].journal.DriftMessage()
			return strings.Contains(said, what), said
		})
	}
	changes("helm", `{"text":"open"}`)
	open("helm changed data.text")
	l.expect(l.maint("resume", name), 0, "it goes on although after step banner helm changed data.text", "resumed")
	l.running("upgrade", "longer")
	changes("kubectl-edit", `{"link":"/orders"}`)
	open("kubectl-edit changed data.link")
	l.expect(l.maint("resume", name), 0, "it goes on although after step banner kubectl-edit changed data.link", "resumed")
	l.ended("upgrade", 1)

	l.trigger("upgrade", "two")
	l.eventually("the second run is at its suspend", func() (bool, string) {
		runs := l.runs("upgrade")
		at := slices.IndexFunc(runs, func(r runState) bool {
			rec := recordOf(r.journal, "hold")
			return r.journal.Phase == run.Running && rec != nil && rec.Phase == run.StepRunning
		})
		return len(runs) == 2 && at >= 0, fmt.Sprintf("%d runs", len(runs))
	})
	l.must(l.admin.RbacV1().RoleBindings(l.ns).DeleteCollection(l.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	changes("helm", `{"text":"open"}`)
	l.eventually("that it may not be read is told", func() (bool, string) {
		out := l.maint("describe", "upgrade").out
		return strings.Contains(out, "DriftUnchecked") && strings.Contains(out, "it is not known whether what it changed is still as it left it"), out
	})
}
