package answers_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/answers"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
)

func TestAnAnswerThatWasTakenUpIsHiddenUntilTheCacheShowsThatItIsGone(t *testing.T) {
	asked := intent.Intent{Resume: intent.RunRef{Run: "a"}, Approve: intent.RunRef{Run: "b"}, Reject: intent.RunRef{Run: "c"}}
	var taken answers.Handled
	taken.Note("orders", 30, nil)
	taken.Note("orders", 20, nil) // an earlier one, told late
	for _, c := range []struct {
		name    string
		uid     types.UID
		version string
		open    bool
	}{
		{"a plan that nobody answered", "reports", "10", true},
		{"the version that was answered", "orders", "20", false},
		{"one before the answer was gone", "orders", "29", false},
		{"that in which it is gone", "orders", "30", true},
		{"another answer, later", "orders", "31", true},
	} {
		got := taken.Pending(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: c.uid, ResourceVersion: c.version}}, asked)
		if (got.Resume.Run == "a") != c.open || (got.Approve.Run == "b") != c.open || (got.Reject.Run == "c") != c.open {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestAnAnswerThatCouldNotBeTakenAwayIsHiddenUntilItSaysSomethingElse(t *testing.T) {
	plan := func(resume, by string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "orders", ResourceVersion: "20", Annotations: map[string]string{
			annotations.Resume: resume, annotations.Actor(annotations.Resume): by, annotations.Approve: "b/ask",
		}}}
	}
	for name, c := range map[string]struct {
		now        *corev1.ConfigMap
		away       bool // it was taken away at last
		open, left bool
	}{
		"it stands there still":            {now: plan("a", "jane"), left: true},
		"it is taken away, and said again": {now: plan("a", "jane"), away: true, open: true},
		"somebody else says it":            {now: plan("a", "joe"), open: true},
		"it is for another run":            {now: plan("c", "jane"), open: true},
	} {
		t.Run(name, func(t *testing.T) {
			var taken answers.Handled
			taken.NoteRemaining(plan("a", "jane"), map[string]string{annotations.Resume: "a"})
			if c.away {
				taken.Note("orders", 20, map[string]string{annotations.Resume: "a"})
			}
			got := taken.Pending(c.now, annotations.Intent(c.now.Annotations))
			if (got.Resume.Run != "") != c.open || got.Approve.Run != "b" || taken.Remains(c.now, "a") != c.left || taken.Remains(c.now, "b") || taken.Remains(nil, "a") {
				t.Errorf("open is %+v; to be taken away: %t", got, taken.Remains(c.now, "a"))
			}
		})
	}
}

// A plan may have several runs: what is taken away of one leaves what is known of another.
func TestAnswersToTwoRunsOfAPlanAreKeptApart(t *testing.T) {
	plan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "orders", ResourceVersion: "20", Annotations: map[string]string{annotations.Resume: "a", annotations.Approve: "b"}}}
	in := annotations.Intent(plan.Annotations)
	var taken answers.Handled
	taken.NoteRemaining(plan, map[string]string{annotations.Resume: "a"})
	taken.Note("orders", 20, map[string]string{annotations.Approve: "b"})
	if !taken.Remains(plan, "a") || taken.Pending(plan, in).Resume.Run != "" {
		t.Error("the answer to another run is forgotten with that of one")
	}
	taken.NoteRemaining(plan, map[string]string{annotations.Approve: "b"})
	if got := taken.Pending(plan, in); !taken.Remains(plan, "a") || !taken.Remains(plan, "b") || got.Resume.Run != "" || got.Approve.Run != "" {
		t.Errorf("of two that could not be taken away, open is %+v", got)
	}
}
