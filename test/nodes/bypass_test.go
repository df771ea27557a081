package nodes_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// A rollout waits for a node that permits no change until a bypass on the node names its run; who
// wrote that stands in the run and in an Event on the node.
func TestABypassOnANodeLetsARolloutHaveIt(t *testing.T) {
	l := newLab(t, unlimited)
	l.roller()
	b := newBench(t)
	b.letGo()
	note := func(key, value string) {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
		_, err := l.admin.CoreV1().Nodes().Patch(l.ctx, "node-0", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		l.must(err)
	}
	note(annotations.ChangeStrategy, "Restrictive")
	t.Cleanup(func() { note(annotations.ChangeStrategy, ""); note(annotations.Bypass, "") })
	l.pool("gpu", "node-0")
	l.roll("gpu", "", b)
	l.eventually("the run says what it waits for", func() (bool, string) {
		for _, j := range l.journals("gpu") {
			if rec := j.Record("roll"); rec != nil {
				return strings.Contains(rec.Message, "waits: node-0 "), rec.Message
			}
		}
		return false, ""
	})
	list, err := l.admin.CoreV1().ConfigMaps(l.ns).List(l.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=run," + annotations.LabelPlan + "=gpu"})
	l.must(err)
	note(annotations.Bypass, list.Items[0].Name+": urgent")
	j := l.ends("gpu", 1)
	if j.Phase != run.Succeeded || j.Passed == nil || j.Passed.Reason != "urgent" {
		t.Errorf("the run ended %s: %+v; passed %+v", j.Phase, j.End, j.Passed)
	}
	l.eventually("an Event on the node tells", func() (bool, string) {
		got := strings.Join(l.events("default", "node-0", "GateBypassed"), "\n")
		return strings.Contains(got, list.Items[0].Name), got
	})
}
