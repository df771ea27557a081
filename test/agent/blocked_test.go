package agent_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// noticed is how soon the end of a plan's wait shows in these tests. The promise is
// two seconds; the rest is for a machine that has other work, too.
const noticed = 6 * time.Second

const onTarget = "target: {apiVersion: apps/v1, kind: Deployment, name: late}\ntriggers: {onCreate: true}" + quick

// blockedBy waits until a plan says why it is not ready.
func (l *lab) blockedBy(name, why string) {
	l.Helper()
	l.eventually("it says why it waits", func() (bool, string) {
		text := l.seen(name).Annotations[annotations.StatusMessage]
		return strings.Contains(text, why), text
	})
}

// goesOn says how long a plan takes to begin its run after what it waited for came.
func (l *lab) goesOn(name string, since time.Time) {
	l.Helper()
	l.eventually("its run begins", func() (bool, string) { return len(l.runs(name)) > 0, "" })
	took := time.Since(since)
	l.Logf("noticed after %s", took.Round(time.Millisecond))
	if took > noticed {
		l.Errorf("it took %s, want %s at most", took.Round(time.Millisecond), noticed)
	}
}

// longAgo lets the pauses of a plan that waits grow, so that it is not an early look
// that notices.
func (l *lab) longAgo() {
	l.Helper()
	select {
	case <-l.ctx.Done():
	case <-time.After(16 * time.Second):
	}
}

func TestATargetThatAppearsIsNoticedByItsWatch(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("waits", onTarget)
	l.blockedBy("waits", "Deployment/late does not exist")
	l.longAgo()
	began := time.Now()
	l.deployment("late", 1)
	l.goesOn("waits", began)
}

func TestATargetThatBecomesReadyIsNoticedByItsWatch(t *testing.T) {
	l := newLab(t)
	l.runner()
	d := l.deployment("late", 1)
	patch := func(ready string) {
		_, err := l.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, d.Name, types.MergePatchType, []byte(`{"status":{"readyReplicas":`+ready+`,"availableReplicas":`+ready+`}}`), metav1.PatchOptions{}, "status")
		l.must(err)
	}
	patch("0")
	l.plan("waits", onTarget)
	l.blockedBy("waits", "was never ready yet")
	l.longAgo()
	began := time.Now()
	patch("1")
	l.goesOn("waits", began)
}

func TestARightThatIsGivenIsNoticed(t *testing.T) {
	for name, spec := range map[string]string{
		"to read the target":            onTarget,
		"to watch for a trigger label":  "target: {apiVersion: apps/v1, kind: Deployment, name: late}\ntriggers: {onCreate: true, labels: [example.org/now]}" + quick,
		"by the name of one object":     onTarget,
		"to take a trigger label away":  "target: {apiVersion: apps/v1, kind: Deployment, name: late}\ntriggers: {onCreate: true, labels: [example.org/now]}" + quick,
		"with the account that has it":  onTarget,
		"where the account alone lacks": "triggers: {onCreate: true}" + quick,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.deployment("late", 1)
			give := func() { l.grant(deploymentRights()) }
			why := "forbidden"
			switch name {
			case "to take a trigger label away":
				l.runner(deploymentRightsWithout("patch"))
				why = "may not patch"
			case "by the name of one object":
				l.runner(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}})
				rule := deploymentRights()
				rule.ResourceNames = []string{"late"}
				give = func() { l.grant(rule) }
			case "with the account that has it", "where the account alone lacks":
				l.runner()
				accounts := l.admin.CoreV1().ServiceAccounts(l.ns)
				l.must(accounts.Delete(l.ctx, "maint-runner", metav1.DeleteOptions{}))
				why = "ServiceAccount maint-runner does not exist"
				give = func() {
					_, err := accounts.Create(l.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "maint-runner"}}, metav1.CreateOptions{})
					l.must(err)
				}
			default:
				l.runner(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}})
			}
			l.plan("waits", spec)
			l.blockedBy("waits", why)
			l.longAgo()
			began := time.Now()
			give()
			l.goesOn("waits", began)
		})
	}
}
