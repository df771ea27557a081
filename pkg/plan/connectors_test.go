package plan_test

import (
	"maps"
	"slices"
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

// clusters are the connectors of a namespace.
func clusters(ref connector.Reference) (connector.Connector, string) {
	cluster := connector.ClusterSpec{K8S: &connector.Kubernetes{KubeconfigRef: connector.KubeconfigRef{Name: "stg"}}}
	switch ref.Name {
	case "stg", "prod":
		return connector.Connector{Cluster: &cluster}, ""
	case "eks":
		return connector.Connector{Cluster: &connector.ClusterSpec{EKS: &connector.EKSCluster{Name: "e"}, ProviderRef: &connector.Ref{Name: "aws"}}}, ""
	case "astray":
		return connector.Connector{Cluster: &connector.ClusterSpec{EKS: &connector.EKSCluster{Name: "e"}, ProviderRef: &connector.Ref{Name: "gone"}}}, ""
	case "aws":
		return connector.Connector{Cloud: &connector.CloudSpec{}}, ""
	}
	return connector.Connector{}, plan.NoConnector(ref)
}

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

func TestWhichConnectorsAPlanUses(t *testing.T) {
	group := func(inner string) string {
		return "steps: [{name: g, " + toStg + ", type: step-group, properties: {steps: [" + inner + "]}}]"
	}
	for name, c := range map[string]struct {
		spec     string
		template string
		used     string
		want     string // the fault
	}{
		"none":                                {spec: "steps: [{name: a, " + patches + "}]"},
		"a snapshot's account":                {spec: "steps: [{name: a, connectorRef: {kind: CloudProvider, name: aws}, " + snapshots + "}]", used: "CloudProvider/aws"},
		"a snapshot's account in a group":     {spec: group("{name: b, connectorRef: {kind: CloudProvider, name: aws}, " + snapshots + "}"), used: "CloudProvider/aws K8SCluster/stg"},
		"an account that is not there":        {spec: "steps: [{name: a, connectorRef: {kind: CloudProvider, name: gone}, " + snapshots + "}]", want: "spec.steps[0].connectorRef: there is no connector gone of kind CloudProvider"},
		"an account that is a cluster":        {spec: "steps: [{name: a, connectorRef: {kind: CloudProvider, name: stg}, " + snapshots + "}]", want: "spec.steps[0].connectorRef: the connector stg is a K8SCluster, and not a CloudProvider"},
		"a step's":                            {spec: "steps: [{name: a, " + toStg + ", " + patches + "}]", used: "K8SCluster/stg"},
		"of finally, too":                     {spec: "{steps: [{name: a, " + patches + "}], finally: [{name: b, " + toStg + ", " + patches + "}]}", used: "K8SCluster/stg"},
		"a template's":                        {spec: "steps: [{name: a, type: template/t}]", template: "{name: b, " + toStg + ", " + patches + "}", used: "K8SCluster/stg"},
		"two":                                 {spec: group("{name: b, " + strings.Replace(toStg, "stg", "prod", 1) + ", " + patches + "}"), used: "K8SCluster/prod K8SCluster/stg"},
		"one that is not there":               {spec: "steps: [{name: a, " + strings.Replace(toStg, "stg", "gone", 1) + ", " + patches + "}]", want: "spec.steps[0].connectorRef: there is no connector gone of kind K8SCluster"},
		"one of another kind":                 {spec: "steps: [{name: a, " + strings.Replace(toStg, "stg", "aws", 1) + ", " + patches + "}]", want: "the connector aws is a CloudProvider, and not a K8SCluster"},
		"a cluster of EKS":                    {spec: "steps: [{name: a, " + strings.Replace(toStg, "stg", "eks", 1) + ", " + patches + "}]", used: "CloudProvider/aws K8SCluster/eks"},
		"a cluster of EKS of no account":      {spec: "steps: [{name: a, " + strings.Replace(toStg, "stg", "astray", 1) + ", " + patches + "}]", want: "spec.steps[0].connectorRef: there is no connector gone of kind CloudProvider"},
		"what stops nothing there":            {spec: group("{name: b, type: suspend}"), used: "K8SCluster/stg"},
		"a drain in a group there":            {spec: group("{name: b, type: drain, properties: {node: a}}"), used: "K8SCluster/stg"},
		"a rollout in a group there":          {spec: group("{name: b, type: for-each-node, properties: {steps: [{name: c, type: cordon, properties: {node: a}}]}}"), want: "spec.steps[0].properties.steps[0].type: stands in a step with a connectorRef"},
		"the target, which is not there":      {spec: "target: " + orders + "\n" + group("{name: b, type: label, properties: {operation: add, labels: {a: b}}}"), want: "properties.object: is missing: the step works on another cluster than that of the plan's target"},
		"a plan's":                            {spec: "{" + toStg + ", steps: [{name: a, " + patches + "}]}", used: "K8SCluster/stg"},
		"a plan's that is not there":          {spec: "{" + strings.Replace(toStg, "stg", "gone", 1) + ", steps: [{name: a, " + patches + "}]}", want: "spec.connectorRef: there is no connector gone of kind K8SCluster"},
		"a plan's, and a step's":              {spec: "{" + toStg + ", steps: [{name: a, " + strings.Replace(toStg, "stg", "prod", 1) + ", " + patches + "}]}", used: "K8SCluster/prod K8SCluster/stg"},
		"the target, which is there, too":     {spec: "{" + toStg + ", target: " + orders + ", steps: [{name: b, type: label, properties: {operation: add, labels: {a: b}}}]}", used: "K8SCluster/stg"},
		"the target, by the step's own":       {spec: "{" + toStg + ", target: " + orders + ", steps: [{name: b, " + toStg + ", type: label, properties: {operation: add, labels: {a: b}}}]}", used: "K8SCluster/stg"},
		"the target of yet another cluster":   {spec: "{" + toStg + ", target: " + orders + ", steps: [{name: b, " + strings.Replace(toStg, "stg", "prod", 1) + ", type: label, properties: {operation: add, labels: {a: b}}}]}", want: "properties.object: is missing: the step works on another cluster than that of the plan's target"},
		"a drain in a plan there":             {spec: "{" + toStg + ", steps: [{name: b, type: drain, properties: {node: a}}]}", used: "K8SCluster/stg"},
		"a command in a plan there":           {spec: "{" + toStg + ", steps: [{name: b, type: exec, properties: {pod: {matchLabels: {a: b}}, command: [ls]}}]}", want: "spec.steps[0].type: stands in a plan with a connectorRef, and steps of type exec work on the plan's own cluster alone"},
		"a drain of a rollout's node there":   {spec: "steps: [{name: r, type: for-each-node, properties: {steps: [{name: b, " + toStg + ", type: drain}]}}]", want: "properties.node: is missing, and so is selector: the step works on another cluster, and the nodes of a rollout are of the plan's own"},
		"an object there":                     {spec: "target: " + orders + "\n" + group("{name: b, type: label, properties: {operation: add, labels: {a: b}, object: "+orders+"}}"), used: "K8SCluster/stg"},
		"a wait for a node of this cluster's": {spec: "steps: [{name: r, type: for-each-node, properties: {steps: [{name: b, " + toStg + ", type: wait, properties: {condition: Ready}}]}}]", want: "properties.resource: is missing: the step works on another cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			var templates []string
			if c.template != "" {
				templates = []string{"t: " + c.template}
			}
			used, faults := plan.UseConnectors(treeOf(t, c.spec, templates...), clusters)
			if c.want != "" {
				if len(faults) != 1 || !strings.Contains(faults[0].String(), c.want) {
					t.Errorf("got %v, want %s", faults, c.want)
				}
				return
			}
			if got := strings.Join(slices.Sorted(maps.Keys(used)), " "); got != c.used || len(faults) > 0 {
				t.Errorf("got %s with %v, want %s", got, faults, c.used)
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

// What a run holds is checked like a user's: a run can be written by hand.
func TestARunWithoutItsConnectorIsNotBelieved(t *testing.T) {
	tree := treeOf(t, "steps: [{name: a, "+toStg+", "+patches+"}]")
	good, _ := clusters(connector.Reference{Name: "stg"})
	for name, c := range map[string]struct {
		held connector.Connector
		want string
	}{
		"as it was":  {held: good},
		"not there":  {want: "the connector stg is not valid"},
		"not usable": {held: connector.Connector{Cluster: &connector.ClusterSpec{}}, want: "the connector stg is not valid: "},
	} {
		t.Run(name, func(t *testing.T) {
			faults := plan.CheckConnectors(tree, map[string]connector.Connector{"K8SCluster/stg": c.held})
			if c.want == "" && len(faults) > 0 || !strings.Contains(faults.Error(), c.want) {
				t.Errorf("got %v, want %q", faults, c.want)
			}
		})
	}
	if faults := plan.CheckConnectors(tree, nil); len(faults) != 1 {
		t.Errorf("without any: %v", faults)
	}
}
