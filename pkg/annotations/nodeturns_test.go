package annotations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestNodeTurnsAreReadBack(t *testing.T) {
	turns := run.NodeTurns{"a": {UID: "12345678", Last: 9, Success: 5}, "b": {Last: 7}}
	cm, err := annotations.NodeTurnsObject("shop", "roll", "uid-1", turns)
	if err != nil {
		t.Fatal(err)
	}
	got, err := annotations.ReadNodeTurns(cm, "uid-1")
	if diff := cmp.Diff(turns, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if _, err := annotations.ReadNodeTurns(cm, "uid-2"); err == nil {
		t.Error("another plan's are taken for its own")
	}
}

func TestNodeTurnsFitIntoAConfigMap(t *testing.T) {
	turns := run.NodeTurns{}
	for i := range run.MaxNodeTurns {
		turns[fmt.Sprintf("n%d-%s", i, strings.Repeat("x", 240))] = run.NodeTurn{UID: "12345678", Last: int64(1_800_000_000 + i), Success: 1_800_000_000}
	}
	cm, err := annotations.NodeTurnsObject("shop", "roll", "uid-1", turns)
	if err != nil {
		t.Fatal(err)
	}
	got, err := annotations.ReadNodeTurns(cm, "uid-1")
	if err != nil || len(cm.Data[annotations.DataNodes]) > 1<<20 || len(got) < 1000 {
		t.Errorf("%d bytes, %d turns, %v", len(cm.Data[annotations.DataNodes]), len(got), err)
	}
	if _, newest := got[fmt.Sprintf("n%d-%s", run.MaxNodeTurns-1, strings.Repeat("x", 240))]; !newest {
		t.Error("the newest went")
	}
}
