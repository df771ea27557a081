package karpenter

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

func TestHowANodePoolIs(t *testing.T) {
	for name, c := range map[string]struct {
		spec     string
		nodes    int
		recorded bool
		want     string
		leftOut  string
	}{
		"it makes nodes":              {spec: `{"limits":{"cpu":"1000"},"weight":10}`, nodes: 2, want: `awake {"limits":{"cpu":"1000"},"weight":10}`},
		"without limits":              {spec: `{}`, nodes: 2, want: `awake {"limits":null}`},
		"with others":                 {spec: `{"limits":{"memory":"1Gi"}}`, want: `awake {"limits":{"memory":"1Gi"}}`},
		"its limit is a number":       {spec: `{"limits":{"cpu":8}}`, want: `awake {"limits":{"cpu":8}}`},
		"it may make none":            {spec: `{"limits":{"cpu":"0"}}`, want: `asleep {"limits":{"cpu":"0"}}`},
		"however that is written":     {spec: `{"limits":{"cpu":"0m"}}`, want: `asleep {"limits":{"cpu":"0m"}}`},
		"its nodes are on their way":  {spec: `{"limits":{"cpu":"0"}}`, nodes: 1, recorded: true, want: `neither {"limits":{"cpu":"0"}}`},
		"somebody else is about it":   {spec: `{"limits":{"cpu":"0"}}`, nodes: 1, want: `neither {"limits":{"cpu":"0"}}`, leftOut: "its limits.cpu is 0 already"},
		"it keeps a number of nodes":  {spec: `{"replicas":3}`, nodes: 3, want: `awake {"limits":null}`, leftOut: "it keeps a fixed number of nodes"},
		"a limit that cannot be read": {spec: `{"limits":{"cpu":"many"}}`, want: `awake {"limits":{"cpu":"many"}}`},
	} {
		pool := &unstructured.Unstructured{}
		if err := pool.UnmarshalJSON([]byte(`{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"small","uid":"u"},"spec":` + c.spec + `}`)); err != nil {
			t.Fatal(err)
		}
		o, err := observed(pool, c.nodes, c.recorded)
		if err != nil {
			t.Fatal(err)
		}
		state := map[[2]bool]string{{true, false}: "asleep", {false, true}: "awake", {false, false}: "neither"}[[2]bool{o.Asleep, o.Awake}]
		if got := fmt.Sprintf("%s %s", state, o.Before); got != c.want || o.ID != "nodepools/small" {
			t.Errorf("%s: %s is %s", name, o.ID, got)
		}
		if !strings.HasPrefix(o.LeftOut, c.leftOut) || (c.leftOut == "") != (o.LeftOut == "") {
			t.Errorf("%s: left out for %q", name, o.LeftOut)
		}
	}
}

// Who takes the limit of the cpu off is no GitOps controller because that owns the limit of memory.
func TestWhoPutsBackALimitOfTheCPU(t *testing.T) {
	for fields, want := range map[string]string{`{"f:spec":{"f:limits":{"f:memory":{}}}}`: "", `{"f:spec":{"f:limits":{"f:cpu":{},"f:memory":{}}}}`: "kustomize-controller"} {
		pool := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"limits": map[string]any{"cpu": "8", "memory": "1Gi"}}}}
		pool.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kustomize-controller", FieldsV1: metav1.NewFieldsV1(fields)}})
		if o, err := observed(pool, 1, true); err != nil || o.RevivedBy != want {
			t.Errorf("%s: %q (%v)", fields, o.RevivedBy, err)
		}
	}
}

// Only the limit of the cpu is put back: what somebody changed of the others stays.
func TestWhatIsPutBack(t *testing.T) {
	for _, c := range []struct{ was, is, want string }{
		{`{"limits":null}`, `{"limits":{"cpu":"0"}}`, `null`},
		{`{"limits":null}`, `{"limits":{"cpu":"0","memory":"200Gi"}}`, `{"cpu":null}`},
		{`{"limits":null}`, `nonsense`, `{"cpu":null}`},
		{`{"limits":{}}`, `{"limits":{"cpu":"0"}}`, `{"cpu":null}`},
		{`{"limits":{"memory":"1Gi"}}`, `{"limits":{"cpu":"0","memory":"1Gi"}}`, `{"cpu":null}`},
		{`{"limits":{"cpu":"8","memory":"1Gi"}}`, `{"limits":{"cpu":"0"}}`, `{"cpu":"8"}`},
		{`{"limits":{"cpu":"8"},"weight":10}`, `{"limits":{"cpu":"0"}}`, `{"cpu":"8"}`},
	} {
		b, err := recorded(hibernate.Due{Resource: hibernate.Resource{Before: []byte(c.was)}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(b.limits([]byte(c.is)))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want {
			t.Errorf("%s of %s: %s, want %s", c.was, c.is, got, c.want)
		}
	}
}

// A limit that is taken away for nonsense would let Karpenter make nodes without end.
func TestRestoreDataOfANodePoolThatIsNonsenseIsNotPutBack(t *testing.T) {
	for before, want := range map[string]string{
		`{}`:                    "the restore data of nodepools/small does not say what its limits were",
		`null`:                  "the restore data of nodepools/small does not say what its limits were",
		`3`:                     "the restore data of nodepools/small: json: cannot unmarshal number",
		`{"limits":"1000"}`:     "the restore data of nodepools/small: json: cannot unmarshal string",
		`{"weight":"much"}`:     "the restore data of nodepools/small: json: cannot unmarshal string",
		`{"replicas":3`:         "the restore data of nodepools/small: unexpected end of JSON input",
		`{"max":3,"limits":[]}`: "the restore data of nodepools/small: json: cannot unmarshal array",
	} {
		due := []hibernate.Due{{Resource: hibernate.Resource{ID: "nodepools/small", UID: "u", Before: []byte(before)}}}
		results := Sleeps{}.Wake(t.Context(), executors.SleepCall{}, due) // without clients: nothing is sent
		if len(results) != 1 || results[0].ID != "nodepools/small" || results[0].Err == nil || !strings.HasPrefix(results[0].Err.Error(), want) {
			t.Errorf("%s: %+v", before, results)
		}
	}
}
