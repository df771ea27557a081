package write_test

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/write"
)

func TestLintFindsAFieldThatANodeDoesNotHave(t *testing.T) {
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - name: roll\n    type: for-each-node\n    properties:\n      when: \"node.status.nodeInfo.kernel == 'a'\"\n      steps:\n      - {name: uncordon, type: uncordon}\n"
	faults := write.UnknownFields(source.Document{File: "p.yaml", Kind: "plan", Name: "p", Text: text})
	if len(faults) != 1 || faults[0].Path != "spec.steps[0].properties.when" || !strings.Contains(faults[0].Message, "node.status.nodeInfo.kernel: a Node has no such field") {
		t.Errorf("%+v", faults)
	}
}
