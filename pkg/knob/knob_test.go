package knob_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
)

// object reads an object as a client would.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// merge applies a merge patch (RFC 7386) as the API server does.
func merge(to any, patch any) any {
	p, isMap := patch.(map[string]any)
	if !isMap {
		return patch
	}
	have, isMap := to.(map[string]any)
	out := map[string]any{}
	if isMap {
		for k, v := range have {
			out[k] = v
		}
	}
	for k, v := range p {
		if v == nil {
			delete(out, k)
			continue
		}
		out[k] = merge(out[k], v)
	}
	return out
}

func parsed(t interface {
	Helper()
	Fatalf(string, ...any)
}, spelled any, apiVersion, kind string,
) knob.Knob {
	t.Helper()
	k, faults := knob.Parse(spelled, apiVersion, kind)
	if len(faults) > 0 {
		t.Fatalf("%v: %v", spelled, faults)
	}
	return k
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestEachKnobClosesAndGivesBackWhatItFound(t *testing.T) {
	custom := map[string]any{"path": "/spec/mode", "closed": "manual", "open": "auto"}
	for _, c := range []struct {
		name             string
		knob             any
		apiVersion, kind string
		open, closed     string
	}{
		{"a Kustomization", "flux", "kustomize.toolkit.fluxcd.io/v1", "Kustomization", `{"spec":{"prune":true}}`, `{"spec":{"prune":true,"suspend":true}}`},
		{"a HelmRelease that says false", "flux", "helm.toolkit.fluxcd.io/v2", "HelmRelease", `{"spec":{"suspend":false}}`, `{"spec":{"suspend":true}}`},
		{"an object without any spec", "flux", "source.toolkit.fluxcd.io/v1", "GitRepository", `{"kind":"GitRepository"}`, `{"kind":"GitRepository","spec":{"suspend":true}}`},
		{
			"an Application of Argo CD with all its words", "argocd", "argoproj.io/v1alpha1", "Application",
			`{"spec":{"syncPolicy":{"automated":{"prune":true,"selfHeal":true},"syncOptions":["A=b"]}}}`, `{"spec":{"syncPolicy":{"syncOptions":["A=b"]}}}`,
		},
		{"an Application of Argo CD with none", "argocd", "argoproj.io/v1alpha1", "Application", `{"spec":{"syncPolicy":{"automated":{}}}}`, `{"spec":{}}`},
		{"a Deployment", "deployment", "apps/v1", "Deployment", `{"spec":{"replicas":3}}`, `{"spec":{"replicas":3,"paused":true}}`},
		{"a MachineConfigPool", "machineconfigpool", "machineconfiguration.openshift.io/v1", "MachineConfigPool", `{"spec":{"paused":false}}`, `{"spec":{"paused":true}}`},
		{"a Cluster", "cluster-api", "cluster.x-k8s.io/v1beta2", "Cluster", `{"spec":{}}`, `{"spec":{"paused":true}}`},
		{"a Machine", "cluster-api", "cluster.x-k8s.io/v1beta2", "Machine", `{"metadata":{"annotations":{"a":"b"}}}`, `{"metadata":{"annotations":{"a":"b","cluster.x-k8s.io/paused":"true"}}}`},
		{"an infrastructure's cluster", "cluster-api", "infrastructure.cluster.x-k8s.io/v1beta2", "AWSCluster", `{"metadata":{"annotations":{}}}`, `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":"true"}}}`},
		{"a resource of Crossplane", "crossplane", "s3.aws.upbound.io/v1beta1", "Bucket", `{"metadata":{"annotations":{"crossplane.io/paused":"false"}}}`, `{"metadata":{"annotations":{"crossplane.io/paused":"true"}}}`},
		{"an Application of KubeVela", "kubevela", "core.oam.dev/v1beta1", "Application", `{"metadata":{"labels":{}}}`, `{"metadata":{"labels":{"controller.core.oam.dev/pause":"true"}}}`},
		{"a field of one's own", custom, "example.org/v1", "App", `{"spec":{"mode":"canary"}}`, `{"spec":{"mode":"manual"}}`},
		{"a field that was not there", custom, "example.org/v1", "App", `{"spec":{"x":1}}`, `{"spec":{"x":1,"mode":"manual"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := parsed(t, c.knob, c.apiVersion, c.kind)
			before := object(t, c.open)
			v, err := k.Decide(knob.Facts{Object: before}, knob.DesiredState{Policy: "ns/p", Closed: true})
			if err != nil || v.Action != knob.Closing || !v.Closed || !v.Held {
				t.Fatalf("%+v, %v", v, err)
			}
			closed := merge(before, v.Patch).(map[string]any)
			if !reflect.DeepEqual(closed, object(t, c.closed)) {
				t.Fatalf("closed it is %s, want %s", asJSON(closed), c.closed)
			}
			memory, err := knob.ReadMemory(v.Memory.String())
			if err != nil {
				t.Fatal(err)
			}
			v, err = k.Decide(knob.Facts{Object: closed, Memory: memory}, knob.DesiredState{Policy: "ns/p"})
			if err != nil || v.Action != knob.Opening || v.Closed || v.Held || v.Memory.String() != "" {
				t.Fatalf("%+v, %v", v, err)
			}
			want := before
			if _, had := before["spec"]; !had && k.Path[0] == "spec" {
				want = merge(before, map[string]any{"spec": map[string]any{}}).(map[string]any)
			}
			if opened := merge(closed, v.Patch); !reflect.DeepEqual(opened, want) {
				t.Errorf("opened it is %s, was %s", asJSON(opened), asJSON(want))
			}
		})
	}
}

func TestWhatFollowsFromWhoClosedAndWhoHolds(t *testing.T) {
	const open, shut = `{"spec":{"suspend":false}}`, `{"spec":{"suspend":true}}`
	const byP = `{"/spec/suspend":{"found":{"value":false},"set":{"value":true},"by":["ns/p"]}}`
	const byBoth = `{"/spec/suspend":{"found":{"value":false},"set":{"value":true},"by":["ns/p","ns/q"]}}`
	const human = `{"/spec/suspend":{"found":{"value":true},"by":["ns/p"]}}`
	for _, c := range []struct {
		name, object, memory string
		deleting, foreign    bool
		wants                []knob.DesiredState
		what                 knob.Action
		patch, then          string
	}{
		{"nobody wants anything", open, "", false, false, nil, knob.Nothing, "null", ""},
		{"it is open and may be", open, "", false, false, []knob.DesiredState{{"ns/p", false}}, knob.Nothing, "null", ""},
		{"a human closed it and the policy permits", shut, "", false, false, []knob.DesiredState{{"ns/p", false}}, knob.Nothing, "null", ""},
		{"it is closed", open, "", false, false, []knob.DesiredState{{"ns/p", true}}, knob.Closing, `{"spec":{"suspend":true}}`, byP},
		{"it is closed already, by us", shut, byP, false, false, []knob.DesiredState{{"ns/p", true}}, knob.Nothing, "null", byP},
		{"a human had closed it", shut, "", false, false, []knob.DesiredState{{"ns/p", true}}, knob.FoundClosed, "null", human},
		{"a human had closed it, and it is known", shut, human, false, false, []knob.DesiredState{{"ns/p", true}}, knob.Nothing, "null", human},
		{"a human had closed it: we let go and leave it", shut, human, false, false, []knob.DesiredState{{"ns/p", false}}, knob.Releasing, "null", ""},
		{"a human opens what we hold", open, byP, false, false, []knob.DesiredState{{"ns/p", true}}, knob.ClosesAgain, `{"spec":{"suspend":true}}`, byP},
		{"a human opens what a human had closed, while it is held", open, human, false, false, []knob.DesiredState{{"ns/p", true}}, knob.ClosesAgain, `{"spec":{"suspend":true}}`, byP},
		{"a human opened it just before we do", open, byP, false, false, []knob.DesiredState{{"ns/p", false}}, knob.Releasing, "null", ""},
		{"a second policy closes as well", shut, byP, false, false, []knob.DesiredState{{"ns/q", true}}, knob.Nothing, "null", byBoth},
		{"one of two lets go", shut, byBoth, false, false, []knob.DesiredState{{"ns/q", false}}, knob.Nothing, "null", byP},
		{"the last lets go", shut, byP, false, false, []knob.DesiredState{{"ns/p", false}, {"ns/q", false}}, knob.Opening, `{"spec":{"suspend":false}}`, ""},
		{"one lets go as the other begins", shut, byP, false, false, []knob.DesiredState{{"ns/p", false}, {"ns/q", true}}, knob.Nothing, "null", strings.ReplaceAll(byP, "ns/p", "ns/q")},
		{"a human opened it and closed it again", shut, byP, false, true, []knob.DesiredState{{"ns/p", true}}, knob.FoundClosed, "null", human},
		{"a human closed it again, and the policy permits", shut, byP, false, true, []knob.DesiredState{{"ns/p", false}}, knob.Releasing, "null", ""},
		{"what is being deleted is not closed", open, "", true, false, []knob.DesiredState{{"ns/p", true}}, knob.Nothing, "null", ""},
		{"what is being deleted is not closed again", open, byP, true, false, []knob.DesiredState{{"ns/p", true}}, knob.Nothing, "null", byP},
		{"what is being deleted is opened", shut, byP, true, false, []knob.DesiredState{{"ns/p", false}}, knob.Opening, `{"spec":{"suspend":false}}`, ""},
		{"the memory of another knob is left alone", shut, `{"/spec/paused":{"found":{},"by":["ns/x"]}}`, false, false, []knob.DesiredState{{"ns/p", false}}, knob.Nothing, "null", `{"/spec/paused":{"found":{},"by":["ns/x"]}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := parsed(t, "flux", "kustomize.toolkit.fluxcd.io/v1", "Kustomization")
			memory, err := knob.ReadMemory(c.memory)
			if err != nil {
				t.Fatal(err)
			}
			v, err := k.Decide(knob.Facts{Object: object(t, c.object), Memory: memory, Deleting: c.deleting, Foreign: c.foreign}, c.wants...)
			if err != nil {
				t.Fatal(err)
			}
			if v.Action != c.what || asJSON(v.Patch) != c.patch || v.Memory.String() != c.then {
				t.Errorf("%q, patch %s, memory %s\nwant %q, %s, %s", v.Action, asJSON(v.Patch), v.Memory, c.what, c.patch, c.then)
			}
		})
	}
}

func TestAnotherWayOfBeingClosedIsSomebodyElses(t *testing.T) {
	for _, c := range []struct {
		name, knob, apiVersion, kind, object string
	}{
		{"Argo CD: automated is switched off", "argocd", "argoproj.io/v1alpha1", "Application", `{"spec":{"syncPolicy":{"automated":{"enabled":false,"prune":true}}}}`},
		{"Cluster API: any value of the annotation pauses", "cluster-api", "cluster.x-k8s.io/v1beta1", "Machine", `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := parsed(t, c.knob, c.apiVersion, c.kind)
			v, err := k.Decide(knob.Facts{Object: object(t, c.object)}, knob.DesiredState{Policy: "ns/p", Closed: true})
			if err != nil || v.Action != knob.FoundClosed || v.Patch != nil {
				t.Fatalf("%+v, %v", v, err)
			}
			v, err = k.Decide(knob.Facts{Object: object(t, c.object), Memory: v.Memory}, knob.DesiredState{Policy: "ns/p"})
			if err != nil || v.Action != knob.Releasing || v.Patch != nil || !v.Closed {
				t.Fatalf("%+v, %v", v, err)
			}
		})
	}
}

func TestAKnobWhoseClosedValueWasEditedForgetsNothing(t *testing.T) {
	spelled := func(closed string) map[string]any {
		return map[string]any{"path": "spec.mode", "closed": closed, "open": "auto"}
	}
	first, second := parsed(t, spelled("manual"), "example.org/v1", "App"), parsed(t, spelled("off"), "example.org/v1", "App")
	start := object(t, `{"spec":{"mode":"canary"}}`)
	v, err := first.Decide(knob.Facts{Object: start}, knob.DesiredState{Policy: "ns/p", Closed: true})
	if err != nil {
		t.Fatal(err)
	}
	now := merge(start, v.Patch).(map[string]any)
	v, err = second.Decide(knob.Facts{Object: now, Memory: v.Memory}, knob.DesiredState{Policy: "ns/p", Closed: true})
	if err != nil || v.Action != knob.Closing {
		t.Fatalf("%+v, %v", v, err)
	}
	now = merge(now, v.Patch).(map[string]any)
	v, err = second.Decide(knob.Facts{Object: now, Memory: v.Memory}, knob.DesiredState{Policy: "ns/p"})
	if err != nil || asJSON(merge(now, v.Patch)) != asJSON(start) {
		t.Fatalf("%s, %v", asJSON(merge(now, v.Patch)), err)
	}
}

func TestAMemoryThatCannotBeReadOpensNothing(t *testing.T) {
	k := parsed(t, "flux", "kustomize.toolkit.fluxcd.io/v1", "Kustomization")
	memory, err := knob.ReadMemory(`{"/spec/suspend": `)
	if err == nil {
		t.Fatal("it was read")
	}
	v, err := k.Decide(knob.Facts{Object: object(t, `{"spec":{"suspend":true}}`), Memory: memory}, knob.DesiredState{Policy: "ns/p"})
	if err != nil || v.Patch != nil || v.Memory.String() != "" {
		t.Fatalf("%+v, %v", v, err)
	}
}

func TestWhatCannotBeWrittenIsAnError(t *testing.T) {
	k := parsed(t, map[string]any{"path": "/spec/a/b", "closed": true, "open": false}, "example.org/v1", "App")
	if _, err := k.Decide(knob.Facts{Object: object(t, `{"spec":{"a":[1]}}`)}, knob.DesiredState{Policy: "ns/p", Closed: true}); err == nil || !strings.Contains(err.Error(), "/spec/a ") {
		t.Errorf("a list on the way: %v", err)
	}
	long := asJSON(map[string]any{"spec": map[string]any{"a": map[string]any{"b": strings.Repeat("x", 20000)}}})
	if _, err := k.Decide(knob.Facts{Object: object(t, long)}, knob.DesiredState{Policy: "ns/p", Closed: true}); err == nil || !strings.Contains(err.Error(), "20002 bytes") {
		t.Errorf("too much to remember: %v", err)
	}
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	custom := func(path, closed, open any) any {
		return map[string]any{"path": path, "closed": closed, "open": open}
	}
	for _, c := range []struct {
		name    string
		knob    any
		version string
		kind    string
		want    string
	}{
		{"nothing", nil, "v1", "X", ": is missing"},
		{"a number", int64(3), "v1", "X", ": must be a name"},
		{"no such name", "fluxx", "v1", "X", ": is no knob; known are flux"},
		{"another world's kind", "argocd", "core.oam.dev/v1beta1", "Application", ": argocd is for Application of argoproj.io, not for Application of core.oam.dev/v1beta1"},
		{"a StatefulSet, which cannot be paused", "deployment", "apps/v1", "StatefulSet", ": deployment is for Deployment of apps"},
		{"no open", map[string]any{"path": "spec.a", "closed": true}, "v1", "X", "open: is missing"},
		{"an unknown field", map[string]any{"path": "spec.a", "closed": true, "open": false, "opened": true}, "v1", "X", "opened: unknown field"},
		{"no path", custom("", true, false), "v1", "X", "path: "},
		{"a path with a hole", custom("spec..a", true, false), "v1", "X", "path: "},
		{"the status", custom("status.phase", "a", "b"), "v1", "X", "path: lies in the status"},
		{"the name", custom("metadata.name", "a", "b"), "v1", "X", "path: of metadata"},
		{"an annotation of ours", custom("/metadata/annotations/maint.dev~1pause", "a", "b"), "v1", "X", "path: \"maint.dev/pause\" belongs to kubectl maint"},
		{"all of the spec", custom("/spec", "a", "b"), "v1", "X", "path: \"/spec\" is a whole section"},
		{"an annotation that is no text", custom("/metadata/annotations/a", true, nil), "v1", "X", "closed: must be a string in quotes"},
		{"a list", custom("spec.a", []any{}, nil), "v1", "X", "closed: must be a string, a number"},
		{"twice the same", custom("spec.a", int64(1), 1.0), "v1", "X", "open: is the same"},
		{"too deep", custom("a"+strings.Repeat(".a", 16), true, false), "v1", "X", "path: lies 17 fields deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, faults := knob.Parse(c.knob, c.version, c.kind)
			if len(faults) != 1 || !strings.HasPrefix(faults[0].Field+": "+faults[0].Message, c.want) {
				t.Errorf("%v, want %q", faults, c.want)
			}
		})
	}
	k := parsed(t, custom("/metadata/annotations/example.org~1hold~0it", "yes", nil), "v1", "X")
	if want := []string{"metadata", "annotations", "example.org/hold~it"}; !reflect.DeepEqual(k.Path, want) || k.Pointer() != "/metadata/annotations/example.org~1hold~0it" {
		t.Errorf("path %q, pointer %s", k.Path, k.Pointer())
	}
}

func TestPendingIsToldWhereTheObjectTellsIt(t *testing.T) {
	const git = `{"status":{"artifact":{"revision":"main@sha1:new"}}}`
	for _, c := range []struct {
		name, knob, apiVersion, kind, object, source string
		want                                         bool
	}{
		{"Flux has fetched more than it applied", "flux", "kustomize.toolkit.fluxcd.io/v1", "Kustomization", `{"status":{"lastAppliedRevision":"main@sha1:old"}}`, git, true},
		{"Flux has applied what it fetched", "flux", "kustomize.toolkit.fluxcd.io/v1", "Kustomization", `{"status":{"lastAppliedRevision":"main@sha1:new"}}`, git, false},
		{"Flux's source cannot be read", "flux", "kustomize.toolkit.fluxcd.io/v1", "Kustomization", `{"status":{"lastAppliedRevision":"main@sha1:old"}}`, `null`, false},
		{"a newer chart", "flux", "helm.toolkit.fluxcd.io/v2", "HelmRelease", `{"status":{"lastAttemptedRevision":"1.0.0"}}`, `{"status":{"artifact":{"revision":"1.1.0"}}}`, true},
		{"the same chart from a registry", "flux", "helm.toolkit.fluxcd.io/v2", "HelmRelease", `{"status":{"lastAttemptedRevision":"1.0.0+abc","lastAttemptedRevisionDigest":"sha256:abc1"}}`, `{"status":{"artifact":{"revision":"1.0.0@sha256:abc1"}}}`, false},
		{"a chart without a digest in its source's revision", "flux", "helm.toolkit.fluxcd.io/v2", "HelmRelease", `{"status":{"lastAttemptedRevision":"1.1.0","lastAttemptedRevisionDigest":"sha256:abc1"}}`, `{"status":{"artifact":{"revision":"1.1.0"}}}`, false},
		{"a chart of which no digest was attempted", "flux", "helm.toolkit.fluxcd.io/v2", "HelmRelease", `{"status":{"lastAttemptedRevision":"1.0.0@sha256:abc1"}}`, `{"status":{"artifact":{"revision":"1.0.0@sha256:abc1"}}}`, false},
		{"Argo CD says OutOfSync", "argocd", "argoproj.io/v1alpha1", "Application", `{"status":{"sync":{"status":"OutOfSync"}}}`, `null`, true},
		{"Argo CD says Synced", "argocd", "argoproj.io/v1alpha1", "Application", `{"status":{"sync":{"status":"Synced"}}}`, `null`, false},
		{"a pool whose machines wait", "machineconfigpool", "machineconfiguration.openshift.io/v1", "MachineConfigPool", `{"spec":{"configuration":{"name":"b"}},"status":{"configuration":{"name":"a"}}}`, `null`, true},
		{"a pool that is done", "machineconfigpool", "machineconfiguration.openshift.io/v1", "MachineConfigPool", `{"spec":{"configuration":{"name":"a"}},"status":{"configuration":{"name":"a"}}}`, `null`, false},
		{"a Deployment cannot tell", "deployment", "apps/v1", "Deployment", `{}`, `null`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := parsed(t, c.knob, c.apiVersion, c.kind)
			o := object(t, c.object)
			if got := k.Pending(knob.Pick(o, k.Keep()...), object(t, c.source)); got != c.want {
				t.Errorf("pending %t, want %t", got, c.want)
			}
		})
	}
}

func TestTheSourceOfAFluxObject(t *testing.T) {
	for _, c := range []struct {
		kind, object string
		want         knob.Source
		there        bool
	}{
		{"Kustomization", `{"metadata":{"namespace":"apps"},"spec":{"sourceRef":{"kind":"GitRepository","name":"repo"}}}`, knob.Source{Group: "source.toolkit.fluxcd.io", Kind: "GitRepository", Namespace: "apps", Name: "repo"}, true},
		{"Kustomization", `{"metadata":{"namespace":"apps"},"spec":{"sourceRef":{"kind":"OCIRepository","name":"repo","namespace":"flux-system"}}}`, knob.Source{Group: "source.toolkit.fluxcd.io", Kind: "OCIRepository", Namespace: "flux-system", Name: "repo"}, true},
		{"HelmRelease", `{"metadata":{"namespace":"apps"},"status":{"helmChart":"flux-system/apps-podinfo"}}`, knob.Source{Group: "source.toolkit.fluxcd.io", Kind: "HelmChart", Namespace: "flux-system", Name: "apps-podinfo"}, true},
		{"HelmRelease", `{"metadata":{"namespace":"apps"},"spec":{"chartRef":{"kind":"OCIRepository","name":"chart"}}}`, knob.Source{Group: "source.toolkit.fluxcd.io", Kind: "OCIRepository", Namespace: "apps", Name: "chart"}, true},
		{"HelmRelease", `{"metadata":{"namespace":"apps"}}`, knob.Source{}, false},
		{"Kustomization", `{"metadata":{"namespace":"apps"},"spec":{"sourceRef":{"kind":"GitRepository"}}}`, knob.Source{}, false},
		{"Kustomization", `{"metadata":{"namespace":"apps"},"spec":{"sourceRef":{"name":"repo"}}}`, knob.Source{}, false},
		{"GitRepository", `{"metadata":{"namespace":"apps"},"spec":{"sourceRef":{"kind":"GitRepository","name":"repo"}}}`, knob.Source{}, false},
		{"GitRepository", `{"metadata":{"namespace":"apps"},"spec":{"url":"https://example.org"}}`, knob.Source{}, false},
	} {
		k := parsed(t, "flux", "x.toolkit.fluxcd.io/v1", c.kind)
		got, there := k.Source(object(t, c.object))
		if there != c.there || there && got != c.want {
			t.Errorf("%s %s: %+v, %t", c.kind, c.object, got, there)
		}
	}
}

func TestWhoWroteAField(t *testing.T) {
	k := parsed(t, "flux", "kustomize.toolkit.fluxcd.io/v1", "Kustomization")
	entry := func(manager, fields string) string {
		return `{"manager":"` + manager + `","operation":"Update","fieldsV1":` + fields + `}`
	}
	for _, c := range []struct {
		name, managers string
		want           bool
	}{
		{"nobody is known", "", false},
		{"we alone", entry("maint-agent", `{"f:spec":{"f:suspend":{}}}`), false},
		{"somebody else wrote other fields", entry("kubectl", `{"f:spec":{"f:prune":{}}}`) + "," + entry("maint-agent", `{"f:spec":{"f:suspend":{}}}`), false},
		{"somebody else", entry("kubectl", `{"f:spec":{"f:suspend":{}}}`), true},
		{"Git declares it as well", entry("maint-agent", `{"f:spec":{"f:suspend":{}}}`) + "," + entry("kustomize-controller", `{"f:spec":{"f:suspend":{}}}`), true},
	} {
		if got := k.WrittenByOthers(object(t, `{"metadata":{"managedFields":[`+c.managers+`]}}`), "maint-agent"); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
