package knob_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
)

func TestWhetherTwoValuesAreTheSameInJSON(t *testing.T) {
	unwritable := func() {}
	for _, c := range []struct {
		name string
		a, b any
		want bool
	}{
		{"a whole number and the same with a point", int64(3), 3.0, true},
		{"fields in any order", map[string]any{"a": 1, "b": 2}, map[string]any{"b": 2, "a": 1}, true},
		{"neither is there", nil, nil, true},
		{"one is not there", nil, false, false},
		{"a number and its text", int64(3), "3", false},
		{"what JSON cannot hold is like nothing", unwritable, unwritable, false},
		{"not even like what is not there", unwritable, nil, false},
		{"from either side", nil, unwritable, false},
	} {
		if got := (knob.Value{V: c.a}).Equal(knob.Value{V: c.b}); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestWhetherAKnobIsClosedWhoeverClosedIt(t *testing.T) {
	k := parsed(t, map[string]any{"path": "spec.paused", "closed": true, "open": false}, "v1", "X")
	for text, want := range map[string]bool{
		`{"spec":{"paused":true}}`: true, `{"spec":{"paused":false}}`: false, `{"spec":{}}`: false, `{}`: false, `{"spec":null}`: false,
		`{"spec":[true]}`: false, `{"spec":"paused"}`: false,
	} {
		if got := k.ClosedOn(object(t, text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
	null := parsed(t, map[string]any{"path": "spec.schedule", "closed": nil, "open": "daily"}, "v1", "X")
	if null.ClosedOn(object(t, `{"spec":[1]}`)) {
		t.Error("what cannot be read is closed")
	}
}

func TestNobodyWroteAFieldOfWhichNothingIsTold(t *testing.T) {
	k := parsed(t, "flux", "kustomize.toolkit.fluxcd.io/v1", "Kustomization")
	for _, text := range []string{`{}`, `{"metadata":{}}`, `{"metadata":[]}`, `{"metadata":{"managedFields":"x"}}`, `{"metadata":{"managedFields":["x",{"manager":"kubectl"},{"manager":"kubectl","fieldsV1":"x"}]}}`} {
		if k.Foreign(object(t, text), "maint-agent") {
			t.Errorf("somebody did by %s", text)
		}
	}
}

func TestOfAnObjectOnlySomeFieldsAreKept(t *testing.T) {
	o := object(t, `{"metadata":{"name":"a","uid":"u"},"spec":{"a":1,"b":{"c":2,"d":3}},"list":[1]}`)
	for _, c := range []struct {
		name  string
		paths [][]string
		want  string
	}{
		{"none", nil, `{}`},
		{"two of one section", [][]string{{"spec", "a"}, {"spec", "b", "c"}}, `{"spec":{"a":1,"b":{"c":2}}}`},
		{"what is not there", [][]string{{"spec", "x"}, {"absent", "y"}, {"metadata", "name"}}, `{"metadata":{"name":"a"}}`},
		{"what is no section is kept so that the fault is seen", [][]string{{"list", "x"}}, `{"list":[1]}`},
	} {
		if diff := cmp.Diff(object(t, c.want), knob.Pick(o, c.paths...)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestAFieldMayLieSixteenDeep(t *testing.T) {
	if _, faults := knob.Parse(map[string]any{"path": "a" + strings.Repeat(".a", 15), "closed": true, "open": false}, "v1", "X"); len(faults) > 0 {
		t.Errorf("as deep as allowed: %v", faults)
	}
}
