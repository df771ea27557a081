package write

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAConditionOnAKnownKindNamesItsFields(t *testing.T) {
	for _, c := range []struct {
		text, root, apiVersion, kind string
		want                         []string
	}{
		{"node.status.nodeInfo.kubeletVersion != 'v1.36.3'", "node", "v1", "Node", nil},
		{"node.metadata.labels.pool == 'gpu' && node.metadata.annotations['a'] == 'b'", "node", "v1", "Node", nil},
		{"node.status.conditions.exists(c, c.type == 'Ready')", "node", "v1", "Node", nil},
		{"has(node.spec.unschedulable) && node.status.capacity.cpu == '4'", "node", "v1", "Node", nil},
		{"node.metadata.creationTimestamp < '2026'", "node", "v1", "Node", nil},
		{"node.status.nodeInfo.kubeletVerion != 'v1'", "node", "v1", "Node", []string{"node.status.nodeInfo.kubeletVerion: a Node has no such field; did you mean node.status.nodeInfo.kubeletVersion?"}},
		{"node.stats.nodeInfo.kubeletVersion == 'v1'", "node", "v1", "Node", []string{"node.stats: a Node has no such field; did you mean node.status?"}},
		{"has(node.spec.unschedulabel)", "node", "v1", "Node", []string{"node.spec.unschedulabel: a Node has no such field"}},
		{"object.status.readyreplicas > 0", "object", "apps/v1", "Deployment", []string{"object.status.readyreplicas: a Deployment has no such field; did you mean object.status.readyReplicas?"}},
		{"object.status.nothing", "object", "example.org/v1", "Own", nil},
		{"object.data.password != '' && object.metadata.name == 'a'", "object", "v1", "Secret", []string{"object.data: conditions see only the metadata of a Secret; name its data in fields"}},
		{"does not compile", "node", "v1", "Node", nil},
	} {
		if diff := cmp.Diff(c.want, misspelt(c.text, c.root, c.apiVersion, c.kind, c.root)); diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
	}
}
