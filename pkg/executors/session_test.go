package executors_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

func TestHowADrainStands(t *testing.T) {
	for name, c := range map[string]struct {
		says executors.DrainStatus
		want nodes.Session
	}{
		"pods leave": {
			says: executors.DrainStatus{Reason: executors.DrainWorking, Message: "evicting", Total: 3, Left: 2},
			want: nodes.Session{State: nodes.SessionRunning, Key: "k", Total: 3, Left: 2, Text: "evicting"},
		},
		"it is done, and something stays that matters": {
			says: executors.DrainStatus{Done: true, Outcome: drain.Outcome{
				Evicted: 1, Agent: &drain.RemainingPod{Pod: "maint-system/agent", Why: "it drains"}, Left: 2, LeftPods: []drain.RemainingPod{{Pod: "shop/a", Why: "slow"}, {Pod: "shop/b", Why: "slower"}},
			}},
			want: nodes.Session{
				State: nodes.SessionDone, Key: "k", Text: "1 evicted, 2 left; maint-system/agent: it drains: shop/a (slow)",
				Note: "maint-system/agent: it drains; left: shop/a (slow); shop/b (slower)",
			},
		},
		"it gave up": {
			says: executors.DrainStatus{Aborted: true, Message: "out of time"},
			want: nodes.Session{State: nodes.SessionAborted, Key: "k", Text: "out of time"},
		},
		"it waits for volumes": {
			says: executors.DrainStatus{Pods: []drain.Progress{{Pod: "shop/a", Why: "leaves"}, {Pod: drain.Volumes, Why: "two are attached"}}},
			want: nodes.Session{State: nodes.SessionRunning, Key: "k", Waits: "two are attached"},
		},
		"a right is missing": {
			says: executors.DrainStatus{Reason: executors.DrainForbidden, Message: "may not evict", Total: 1, Left: 1},
			want: nodes.Session{State: nodes.SessionRunning, Key: "k", Total: 1, Left: 1, Text: "may not evict", Block: nodes.Block{Text: "may not evict"}},
		},
		"its pods are not listed yet": {
			says: executors.DrainStatus{Reason: executors.DrainListing, Message: "looking"},
			want: nodes.Session{State: nodes.SessionRunning, Key: "k", Uncounted: true, Text: "looking"},
		},
		"its pods cannot be listed": {
			says: executors.DrainStatus{Reason: executors.DrainUnavailable, Message: "cannot read pods"},
			want: nodes.Session{State: nodes.SessionRunning, Key: "k", Uncounted: true, Text: "cannot read pods", Block: nodes.Block{Text: "cannot read pods"}},
		},
		"nothing has to leave": {
			says: executors.DrainStatus{Reason: executors.DrainWorking, Message: "0 of 0"},
			want: nodes.Session{State: nodes.SessionRunning, Key: "k", Text: "0 of 0"},
		},
		"one of two blocks is for good, and refused": {
			says: executors.DrainStatus{Blocks: []drain.Block{{Pods: []string{"shop/a"}, Count: 1, Why: "x"}, {Pods: []string{"shop/b"}, Count: 1, Why: "y", Permanent: true, Refused: true}}},
			want: nodes.Session{State: nodes.SessionRunning, Key: "k", Block: nodes.Block{
				Permanent: true, Refused: true, Text: drain.Block{Pods: []string{"shop/a"}, Count: 1, Why: "x"}.String() + "; " + drain.Block{Pods: []string{"shop/b"}, Count: 1, Why: "y", Permanent: true, Refused: true}.String(),
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.says.Session("k")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
