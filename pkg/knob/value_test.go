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
		if k.WrittenByOthers(object(t, text), "maint-agent") {
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

func TestHowMuchOfWhatWasFoundCanBeRemembered(t *testing.T) {
	k := parsed(t, map[string]any{"path": "spec.mode", "closed": "manual", "open": nil}, "v1", "X")
	for n, ok := range map[int]bool{16 << 10: true, 16<<10 + 1: false} {
		o := map[string]any{"spec": map[string]any{"mode": strings.Repeat("m", n-2)}} // two quotes
		v, err := k.Decide(knob.Facts{Object: o}, knob.DesiredState{Policy: "shop/p", Closed: true})
		if (err == nil) != ok || ok && v.Action != knob.Closing {
			t.Errorf("%d bytes: %v, %q", n, err, v.Action)
		}
	}
}

func TestALabelMayBeAKnobAndOtherMetadataNot(t *testing.T) {
	for path, want := range map[string]string{
		"/metadata/labels/example.org~1hold":      "",
		"/metadata/annotations/example.org~1hold": "",
		"/metadata/finalizers/x":                  "of metadata, only a label or an annotation",
		"/metadata/labels":                        "of metadata, only a label or an annotation",
		"/metadata/labels/a/b":                    "of metadata, only a label or an annotation",
		"/metadata/labels/status.maint.dev~1x":    `"status.maint.dev/x" belongs to kubectl maint`,
	} {
		_, faults := knob.Parse(map[string]any{"path": path, "closed": "yes", "open": nil}, "v1", "X")
		if want == "" && len(faults) > 0 || want != "" && (len(faults) != 1 || !strings.HasPrefix(faults[0].Message, want)) {
			t.Errorf("%s: %v, want %q", path, faults, want)
		}
	}
}

func TestWhichKnobIsForWhichKind(t *testing.T) {
	for _, c := range []struct {
		name, knob, apiVersion, kind string
		want                         bool
	}{
		{"a MachineConfigPool", "machineconfigpool", "machineconfiguration.openshift.io/v1", "MachineConfigPool", true},
		{"another kind of its group", "machineconfigpool", "machineconfiguration.openshift.io/v1", "MachineConfig", false},
		{"its name in another group", "machineconfigpool", "example.org/v1", "MachineConfigPool", false},
		{"another kind of Argo CD", "argocd", "argoproj.io/v1alpha1", "AppProject", false},
		{"a Deployment of another group", "deployment", "example.org/v1", "Deployment", false},
		{"another kind of Cluster API", "cluster-api", "bootstrap.cluster.x-k8s.io/v1", "KubeadmConfig", true},
		{"a group that only ends like it", "cluster-api", "mycluster.x-k8s.io/v1", "Cluster", false},
		{"a group that only ends like Flux's", "flux", "mytoolkit.fluxcd.io/v1", "Kustomization", false},
	} {
		if _, faults := knob.Parse(c.knob, c.apiVersion, c.kind); (len(faults) == 0) != c.want {
			t.Errorf("%s: %v", c.name, faults)
		}
	}
}

func TestASectionThatIsNullIsOneThatIsNotThere(t *testing.T) {
	k := parsed(t, "flux", "kustomize.toolkit.fluxcd.io/v1", "Kustomization")
	v, err := k.Decide(knob.Facts{Object: object(t, `{"spec":null}`)}, knob.DesiredState{Policy: "shop/p", Closed: true})
	if err != nil || v.Action != knob.Closing {
		t.Errorf("%+v, %v", v, err)
	}
}
