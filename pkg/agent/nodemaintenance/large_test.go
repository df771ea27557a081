package nodemaintenance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// Of a pod that is counted its labels are kept, with a bound.
func TestWhatIsKeptOfALargePodThatIsCounted(t *testing.T) {
	large := pod("web-1", "a", func(p *corev1.Pod) {
		for i := range 5000 {
			p.Labels[fmt.Sprint("example.org/", i)] = strings.Repeat("x", 63)
		}
		p.OwnerReferences[0].Name = strings.Repeat("n", 100_000)
		p.Annotations = map[string]string{"junk": strings.Repeat("x", 250_000)}
	})
	for what, p := range map[string]*corev1.Pod{"large": large, "small": pod("web-2", "a")} {
		kept, err := slimPod(p)
		if err != nil {
			t.Fatal(err)
		}
		if size := kept.(*corev1.Pod).Size(); size > 1000 {
			t.Errorf("of a %s pod %d bytes are kept", what, size)
		}
	}
}

// Whether a selector picks a pod whose labels are not kept is not known: it is waited for.
func TestAPodThatIsTooLargeIsWaitedFor(t *testing.T) {
	play(t, func(w *world) {
		large := func(p *corev1.Pod) { p.Labels["fat"] = strings.Repeat("x", 20_000) }
		w.api.Put(node("a", asked("gpu", `{"waitFor":{"podSelector":"app=none"}}`)), pod("web-1", "a", large), pod("web-2", "a"))
		w.lead()
		w.pass(10 * time.Second)
		if s := w.status("a", "gpu"); !strings.Contains(s.String(), "shop/web-1") || strings.Contains(s.String(), "shop/web-2") {
			w.Errorf("it is %s", s)
		}
	})
}

// A budget whose selector is too large is in the way of the pods of its namespace before any
// cordon, and where it is mended the drain begins.
func TestABudgetThatIsTooLargeStandsInTheWay(t *testing.T) {
	play(t, func(w *world) {
		big, many := budget("web", true), make([]string, 5000)
		for i := range many {
			many[i] = fmt.Sprint("v", i)
		}
		big.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: metav1.LabelSelectorOpIn, Values: many}}}
		w.api.Put(node("a", asked("gpu", "{}")), pod("web-1", "a"), big)
		w.lead()
		w.pass(10 * time.Second)
		if s := w.status("a", "gpu"); s.Blocked == nil || !s.Blocked.Permanent || w.node("a").Spec.Unschedulable || !strings.Contains(s.String(), "the selector of the budget takes more than 16 KiB, and is not read") {
			w.Errorf("it is %s", s)
		}
		w.api.Put(budget("web", true))
		w.pass(10 * time.Second)
		if !w.node("a").Spec.Unschedulable {
			w.Errorf("it is not cordoned: %s", w.status("a", "gpu"))
		}
	})
}

// Pods that take too long to read hold no slot: their drain says itself that they stand in its way for
// good, and the request says that nobody could look.
func TestADrainWhosePodsCannotBeReadInTimeYieldsItsSlot(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", asked("gpu", "{}")), pod("web-1", "a"))
		letGo := w.api.Hold(agenttest.When{Resource: "pods"}, agenttest.Always)
		a := w.lead()
		w.pass(45 * time.Second)
		w.expect("after a look that failed", "a cordoned for gpu, gpu Draining")
		if s := w.status("a", "gpu"); !strings.Contains(s.String(), "its pods could not be read within 10s before its drain") {
			w.Errorf("it is %s", s)
		}
		w.api.Put(budget("web", false), node("b", asked("os", noDrain)))
		a.drains.say("a", executors.DrainStatus{
			Reason: executors.DrainBlocked, Total: 1, Left: 1,
			Blocks: []drain.Block{{Permanent: true, Budgets: []string{"shop/web"}, Pods: []string{"shop/web-1"}, Why: "the budget permits none"}},
		})
		w.pass(20 * time.Second)
		w.expect("when it is blocked", "a cordoned for gpu, gpu Draining", "b cordoned for os, os Ready")
		w.edit("b", withdraw("os"))
		w.pass(5 * time.Minute)
		if s := w.status("a", "gpu"); s.Yielded == nil || !strings.Contains(s.String(), "the budget permits none") || !strings.Contains(s.String(), "its pods could not be read within 10s during its drain") {
			w.Errorf("while nobody can look: %s", s)
		}
		w.api.Put(budget("web", true))
		letGo()
		a.drains.done("a")
		w.pass(3 * time.Minute)
		w.expect("when it could be looked at again", "a cordoned for gpu, gpu Ready", "b open")
	})
}

// However many pods a node has, a look before its drain asks for them once.
func TestALookBeforeADrainAsksForThePodsOnce(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(node("a", asked("gpu", "{}")), budget("web", true))
		for i := range 200 {
			w.api.Put(pod(fmt.Sprint("web-", i), "a"))
		}
		w.lead()
		w.pass(10 * time.Second)
		if n := w.api.Asked(agenttest.When{Resource: "pods"}); n != 1 || !w.node("a").Spec.Unschedulable {
			w.Errorf("asked for pods %d times: %s", n, w.status("a", "gpu"))
		}
	})
}
