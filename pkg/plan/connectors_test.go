package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

const (
	snapshots = "type: backup, properties: {method: rds-snapshot, component: orders}"
	toStg     = "connectorRef: {kind: K8SCluster, name: stg}"
	orders    = "{apiVersion: apps/v1, kind: Deployment, name: orders}"
	patches   = "type: patch-object, properties: {resource: " + orders + ", patch: {}}"
)

func TestWhatIsWrongWithTheConnectorOfAStep(t *testing.T) {
	for name, c := range map[string]struct {
		step string // after its name
		want string // empty: nothing
	}{
		"a step on another cluster":     {step: toStg + ", " + patches},
		"a cloud":                       {step: "connectorRef: {kind: CloudProvider, name: aws}, " + patches, want: `connectorRef.kind: must be K8SCluster, is "CloudProvider"`},
		"a connector elsewhere":         {step: "connectorRef: {kind: K8SCluster, name: other/stg}, " + patches, want: `connectorRef.name: "other/stg" cannot name a connector`},
		"of another namespace":          {step: "connectorRef: {kind: K8SCluster, name: stg, namespace: other}, " + patches, want: "namespace"},
		"a step that is on no cluster":  {step: toStg + ", type: suspend", want: "those of type suspend do not"},
		"a step of the plan's own":      {step: toStg + ", type: for-each-node, properties: {steps: [{name: b, type: cordon}]}", want: "steps of type for-each-node work on the plan's own cluster alone"},
		"a node there":                  {step: toStg + ", type: uncordon, properties: {node: a}"},
		"a group on another cluster":    {step: toStg + ", type: step-group, properties: {steps: [{name: b, " + patches + "}]}"},
		"a template there":              {step: toStg + ", type: template/tidy"},
		"a snapshot in an account":      {step: "connectorRef: {kind: CloudProvider, name: aws}, " + snapshots},
		"a snapshot in no account":      {step: snapshots, want: "spec.steps[0].connectorRef: is missing: the CloudProvider in whose account the database is"},
		"a snapshot on a cluster":       {step: toStg + ", " + snapshots, want: `spec.steps[0].connectorRef.kind: must be CloudProvider, is "K8SCluster": rds-snapshot works in an account of AWS`},
		"a snapshot in a bad name":      {step: "connectorRef: {kind: CloudProvider, name: a/b}, " + snapshots, want: `connectorRef.name: "a/b" cannot name a connector`},
		"a claim's snapshot in a cloud": {step: "connectorRef: {kind: CloudProvider, name: aws}, type: backup, properties: {method: velero}", want: `must be K8SCluster, is "CloudProvider": a step works on a cluster`},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := plan.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec: {steps: [{name: a, "+c.step+"}]}\n"), "p")
			if c.want == "" && len(faults) > 0 || !strings.Contains(faults.Error(), c.want) {
				t.Errorf("got %q, want %q", faults.Error(), c.want)
			}
		})
	}
}

func TestWhatIsWrongWithTheConnectorOfAPlan(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want string // empty: nothing
	}{
		"all of it on another cluster":   {spec: toStg + "\ntarget: " + orders},
		"a cloud":                        {spec: "connectorRef: {kind: CloudProvider, name: aws}", want: `spec.connectorRef.kind: must be K8SCluster, is "CloudProvider": a plan works on a cluster`},
		"one that cannot be named":       {spec: "connectorRef: {kind: K8SCluster, name: a/b}", want: `spec.connectorRef.name: "a/b" cannot name a connector`},
		"a target that is to be frozen":  {spec: toStg + "\ntarget: " + orders + "\nfreezeTarget: true", want: "spec.freezeTarget: is for targets on the agent's own cluster"},
		"an owner that is to be held":    {spec: toStg + "\ntarget: " + orders + "\nholdOwners: true", want: "spec.holdOwners: is for targets on the agent's own cluster"},
		"labels on what is not named":    {spec: toStg + "\ntriggers: {labels: [go]}", want: "spec.triggers.labels: need a target"},
		"a field that is not written so": {spec: "connectorref: {kind: K8SCluster, name: stg}", want: "connectorRef"},
	} {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  " + strings.ReplaceAll(c.spec, "\n", "\n  ") + "\n  steps: [{name: a, " + patches + "}]\n"
			_, faults := plan.Parse([]byte(text), "p")
			if c.want == "" && len(faults) > 0 || !strings.Contains(faults.Error(), c.want) {
				t.Errorf("got %q, want %q", faults.Error(), c.want)
			}
		})
	}
}

func TestAStepInAnAccountOfACloudIsOnNoCluster(t *testing.T) {
	const inAWS = "connectorRef: {kind: CloudProvider, name: aws}, "
	tree := treeOf(t, toStg+"\nsteps:\n- {name: save, "+inAWS+snapshots+"}\n- {name: g, type: step-group, properties: {steps: [{name: save-too, "+inAWS+snapshots+"}]}}\n- {name: a, "+patches+"}\n", "t: {name: deep, "+patches+"}")
	want := map[string]string{"save": "CloudProvider/aws", "g": "K8SCluster/stg", "g/save-too": "CloudProvider/aws", "a": "K8SCluster/stg", "gone": "K8SCluster/stg"}
	got, walked := map[string]string{}, map[string]bool{}
	for path := range want {
		ref, onCluster := tree.ConnectorAt(path)
		account, onCloud := tree.CloudAt(path)
		if onCloud {
			ref = account
		}
		if got[path] = ref.Key(); onCluster && onCloud {
			t.Errorf("%s is on a cluster and in an account", path)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	tree.WalkClusters(func(s plan.Step, at *connector.Reference) { walked[s.Name] = at != nil })
	if diff := cmp.Diff(map[string]bool{"save": false, "g": true, "save-too": false, "a": true}, walked); diff != "" {
		t.Error(diff)
	}
}

func TestTheClusterOfAStepIsTheNearestThatIsNamed(t *testing.T) {
	steps := "steps:\n- {name: home, " + patches + "}\n- {name: g, " + toStg + ", type: step-group, properties: {steps: [{name: in, " + patches + "}, {name: hook, type: webhook, properties: {url: 'https://x'}}, {name: other, " + strings.Replace(toStg, "stg", "prod", 1) + ", " + patches + "}, {name: box, type: template/t}]}}\n"
	for of, want := range map[string]map[string]string{
		"": {"": "", "home": "", "g": "stg", "g/in": "stg", "g/hook": "", "g/other": "prod", "g/box/deep": "stg", "gone": ""},
		"connectorRef: {kind: K8SCluster, name: eu}\n": {"": "eu", "home": "eu", "g": "stg", "g/in": "stg", "g/hook": "", "g/other": "prod", "g/box/deep": "stg", "gone": "eu"},
	} {
		tree := treeOf(t, of+steps, "t: {name: deep, "+patches+"}")
		got, walked := map[string]string{}, map[string]string{}
		for path := range want {
			ref, _ := tree.ConnectorAt(path)
			got[path] = ref.Name
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("of %q: %s", of, diff)
		}
		tree.WalkClusters(func(s plan.Step, at *connector.Reference) {
			if walked[s.Name] = ""; at != nil {
				walked[s.Name] = at.Name
			}
		})
		of := map[string]string{"home": want["home"], "g": "stg", "in": "stg", "hook": "", "other": "prod", "box": "stg", "deep": "stg"}
		if diff := cmp.Diff(of, walked); diff != "" {
			t.Error(diff)
		}
	}
}
