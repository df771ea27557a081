package reference_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/reference"
)

const (
	snapshots = "type: backup, properties: {method: rds-snapshot, component: orders}"
	toStg     = "connectorRef: {kind: K8SCluster, name: stg}"
	orders    = "{apiVersion: apps/v1, kind: Deployment, name: orders}"
	patches   = "type: patch-object, properties: {resource: " + orders + ", patch: {}}"
)

// treeOf is what a plan does, with the templates that it names.
func treeOf(t *testing.T, spec string, templates ...string) plan.Tree {
	t.Helper()
	tree := coretest.RunOf(t, spec).Tree()
	tree.Templates = map[string]plan.TemplateSpec{}
	for _, text := range templates {
		name, spec, _ := strings.Cut(text, ": ")
		tree.Templates[name] = templateOf(t, "{steps: ["+spec+"]}")
	}
	return tree
}

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
	return connector.Connector{}, reference.NoConnector(ref)
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
			used, faults := reference.UseConnectors(treeOf(t, c.spec, templates...), clusters)
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
			faults := reference.CheckConnectors(tree, map[string]connector.Connector{"K8SCluster/stg": c.held})
			if c.want == "" && len(faults) > 0 || !strings.Contains(faults.Error(), c.want) {
				t.Errorf("got %v, want %q", faults, c.want)
			}
		})
	}
	if faults := reference.CheckConnectors(tree, nil); len(faults) != 1 {
		t.Errorf("without any: %v", faults)
	}
}

func TestConnectorsOfATreeThatHoldsItselfAreLookedForOnlySoLong(t *testing.T) {
	step := plan.Step{Name: "in", Type: plan.TemplatePrefix + "a"}
	tree := plan.Tree{Spec: plan.Spec{Steps: []plan.Step{step}}, Templates: map[string]plan.TemplateSpec{"a": {Steps: []plan.Step{step, step}}}}
	used, _ := reference.UseConnectors(tree, func(connector.Reference) (connector.Connector, string) { return connector.Connector{}, "" })
	if len(used) > 0 {
		t.Errorf("found %v", used)
	}
}
