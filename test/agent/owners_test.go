package agent_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// owned has a Deployment kept by a Kustomization of the same namespace.
func (l *gateLab) owned(name string) {
	l.Helper()
	l.deployment(name, 3)
	l.kustomization("apps", `{"spec":{"path":"./apps","prune":true}}`)
	patch := fmt.Sprintf(`{"metadata":{"labels":{"kustomize.toolkit.fluxcd.io/name":"apps","kustomize.toolkit.fluxcd.io/namespace":%q}}}`, l.ns)
	_, err := l.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	l.must(err)
}

const (
	openApps = `{"spec":{"path":"./apps","prune":true}}`
	heldApps = `{"spec":{"path":"./apps","prune":true,"suspend":true}}`
)

func TestTheTargetsOwnerIsSuspendedWhileARunLives(t *testing.T) {
	l := newGateLab(t)
	l.runner(watchedScaleRights("list", "watch"), gateRights())
	l.owned("orders")
	kustomization := find("Kustomization", "")
	l.plan("plain", fmt.Sprintf(scaledDown, ""))
	l.plan("upgrade", strings.Replace(fmt.Sprintf(scaledDown, "holdOwners: true\n"), "HOOK/migrate", "HOOK/fails?status=400", 1))
	l.seen("plain")
	l.seen("upgrade")
	l.expect(l.maint("why", "plain"), 0, "Kustomization "+l.ns+"/apps manages Deployment/orders from Git, and may undo what step down does during a run: holdOwners: true")
	if out := l.maint("why", "upgrade"); strings.Contains(out.err, "from Git") {
		t.Errorf("a plan that holds the owner is told to: %s", out.err)
	}

	l.trigger("upgrade", "one")
	name := l.running("upgrade", "hold").run.Name
	l.reaches(kustomization, "apps", heldApps)
	l.expect(l.maint("describe", name), 0, "hold-owners", "spec.suspend")
	l.expect(l.maint("abort", name, "--yes"), 0)
	r := l.ended("upgrade", 1)[0]
	l.reaches(kustomization, "apps", openApps)
	if got := recordOf(r.journal, "hold-owners"); got.Restored != "Succeeded" && got.Restored == "" || l.replicas("orders") != 3 {
		t.Errorf("it is %+v, and %d replicas", got, l.replicas("orders"))
	}
}

// A run that fails gives the owner back, too.
func TestTheTargetsOwnerIsGivenBackWhenItsRunFails(t *testing.T) {
	l := newGateLab(t)
	l.runner(watchedScaleRights("list", "watch"), gateRights())
	l.owned("orders")
	kustomization := find("Kustomization", "")
	l.plan("upgrade", strings.Replace(fmt.Sprintf(scaledDown, "holdOwners: true\n"), `{name: migrate, type: webhook, properties: {url: "HOOK/migrate"}}`, "{name: migrate, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: absent}, replicas: 0}}", 1))
	l.seen("upgrade")
	l.trigger("upgrade", "one")
	name := l.running("upgrade", "hold").run.Name
	l.reaches(kustomization, "apps", heldApps)
	l.expect(l.maint("resume", name), 0, "resumed")
	l.expect(l.maint("wait", name, "--timeout", "60s"), 4, "ended Failed")
	l.ended("upgrade", 1)
	l.reaches(kustomization, "apps", openApps)
	if got := l.replicas("orders"); got != 3 {
		t.Errorf("orders has %d replicas", got)
	}
	l.expect(l.maint("describe", name), 0, "hold-owners", "Failed")
	l.eventually("status tells what failed, and why", func() (bool, string) {
		out := l.maint("status")
		return strings.Contains(out.out, "Needs somebody:") && strings.Contains(out.out, "in step migrate") && strings.Contains(out.out, `"absent"`) && strings.Contains(out.out, "describe "+name+"'"), out.out
	})
	l.expect(l.maint("list"), 0, "upgrade", "Failed")
	l.expect(l.maint("history", "upgrade", "-o", "wide"), 0, "Failed after", "step migrate", `"absent"`, "in all: 1 Ran (1 Failed)")
}

func TestAnOwnerThatSomebodyResumesHoldsTheRun(t *testing.T) {
	l := newGateLab(t)
	l.runner(watchedScaleRights("list", "watch"), gateRights())
	l.owned("orders")
	l.plan("upgrade", fmt.Sprintf(scaledDown, "holdOwners: true\n"))
	l.seen("upgrade")
	l.trigger("upgrade", "one")
	name := l.running("upgrade", "hold").run.Name
	l.write(find("Kustomization", ""), "apps", `{"spec":{"suspend":false}}`)
	l.eventually("the run says who resumed it", func() (bool, string) {
		out := l.maint("describe", name).out
		return strings.Contains(out, "person changed spec.suspend of Kustomization/apps from true to false"), out
	})
	l.write(find("Kustomization", ""), "apps", `{"spec":{"suspend":true}}`)
	l.expect(l.maint("resume", name), 0, "resumed")
	l.ended("upgrade", 1)
	l.reaches(find("Kustomization", ""), "apps", openApps)
	if l.migrated() != 1 {
		t.Errorf("%d deliveries", l.migrated())
	}
}

// Whose owner may not be suspended has done nothing when its run fails.
func TestAnOwnerThatMayNotBeSuspendedKeepsTheRunFromBeginning(t *testing.T) {
	l := newGateLab(t)
	l.runner(watchedScaleRights("list", "watch"), rbacv1.PolicyRule{APIGroups: []string{"kustomize.toolkit.fluxcd.io"}, Resources: []string{"kustomizations"}, Verbs: []string{"get"}})
	l.owned("orders")
	l.plan("upgrade", fmt.Sprintf(scaledDown, "holdOwners: true\n"))
	l.seen("upgrade")
	l.trigger("upgrade", "one")
	r := l.ended("upgrade", 1)[0]
	if r.journal.Phase != run.Failed || !strings.Contains(r.journal.Message, "may not patch kustomizations.kustomize.toolkit.fluxcd.io") || l.replicas("orders") != 3 || l.migrated() != 0 {
		t.Errorf("it is %s: %s; %d replicas, %d deliveries", r.journal.Phase, r.journal.Message, l.replicas("orders"), l.migrated())
	}
	l.reaches(find("Kustomization", ""), "apps", openApps)
}
