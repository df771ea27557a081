package agent_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// waits runs `wait` beside the test, and hands over what it said when it has ended.
func (l *lab) waits(args ...string) func() said {
	l.Helper()
	answer := make(chan said, 1)
	go func() { answer <- l.maint(append([]string{"wait", "--timeout", "60s"}, args...)...) }()
	return func() said {
		l.Helper()
		select {
		case s := <-answer:
			return s
		case <-l.ctx.Done():
			l.Fatal("it waits on")
		}
		return said{}
	}
}

func TestRunbooksWait(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.deployment("orders", 1)
	l.policy("shut", "{strategy: Restrictive}")
	l.plan("holds", holding)
	l.plan("shut-in", "policies: [{name: shut}]\nsteps: [{name: hold, type: suspend}]\n")
	l.seen("holds")
	l.seen("shut-in")
	l.policySeen("shut", permitted("false"))

	l.trigger("holds", "one")
	name := l.running("holds", "hold").run.Name
	l.expect(l.maint("wait", name, "--for=phase=Running"), 0, "run/"+name+": phase Running")
	l.expect(l.maint("wait", name, "--timeout", "1s"), 124, "--timeout passed")
	byPlan, policy, plan := l.waits("holds"), l.waits("shut"), l.waits("shut-in", "--for=permitted")
	l.expect(l.maint("resume", name), 0)
	l.expect(byPlan(), 0, "is the newest of plan holds", "Succeeded")

	time.Sleep(time.Second) // both have begun to wait; else they find it so, which is another case
	patch := fmt.Sprintf(`{"data":{"policy.yaml":%q}}`, "apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: {strategy: Permissive}\n")
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, "shut", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	l.must(err)
	l.expect(policy(), 0, "policy/shut: change is permitted")
	l.expect(plan(), 0, "plan/shut-in: change is permitted")

	l.plan("breaks", failing)
	l.seen("breaks")
	l.trigger("breaks", "one")
	l.ended("breaks", 1)
	l.expect(l.maint("wait", "breaks"), 4, "Failed")
}
