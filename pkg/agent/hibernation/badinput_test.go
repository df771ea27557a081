package hibernation

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// What can be known from the text of a plan is said at once, all of it, and nothing of the
// plan is looked at.
func TestAPlanThatCannotBeIsSaidBeforeAnythingIsTouched(t *testing.T) {
	const three = "targets: [{name: apps, type: noop}, {name: bad, type: noop}, {name: db, type: noop}]\n"
	const dag = "execution: {strategy: {type: DAG, dependencies: [%s]}}\n"
	for name, c := range map[string]struct{ text, says string }{
		"targets that wait for each other": {three + fmt.Sprintf(dag, "{from: apps, to: bad}, {from: bad, to: apps}"), "wait for each other: apps → bad → apps"},
		"an unknown target":                {three + fmt.Sprintf(dag, "{from: apps, to: bda}"), `"bda" is no target`},
		"one in two stages":                {three + "execution: {strategy: {type: Staged}, stages: [{targets: [apps, bad]}, {targets: [bad, db]}]}\n", `"bad" is in stage 1 already`},
		"a type that does not exist":       {strings.Replace(three, "{name: bad, type: noop}", "{name: bad, type: cloudsql}", 1), `"cloudsql" is not supported`},
		"a type with a slip":               {strings.Replace(three, "{name: bad, type: noop}", "{name: bad, type: workloads}", 1), `"workloads" is no type of target; there are`},
		"a cloud without a connector":      {strings.Replace(three, "{name: bad, type: noop}", "{name: bad, type: rds, parameters: {selector: {ids: [x]}}}", 1), "connectorRef: is missing: a target of type rds is reached by a CloudProvider"},
		"a connector of the wrong kind":    {strings.Replace(three, "{name: bad, type: noop}", "{name: bad, type: eks, connectorRef: {kind: CloudProvider, name: aws}, parameters: {managedNodeGroups: {names: [x]}}}", 1), `a target of type eks takes no "CloudProvider"`},
		"all of an account":                {strings.Replace(three, "{name: bad, type: noop}", "{name: bad, type: ec2, connectorRef: {kind: CloudProvider, name: aws}}", 1), "selector: is missing; write ids or tags"},
		"two of one name":                  {strings.Replace(three, "name: bad", "name: apps", 1), `"apps" appears twice`},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+c.text, func(w *world) {
				w.until("02:00")
				w.awake()
				if got := w.phase(); !strings.HasPrefix(got, "Invalid: ") || !strings.Contains(got, c.says) {
					t.Errorf("the plan says %q", got)
				}
				if n := w.beds.observed(""); n > 0 {
					t.Errorf("its targets are looked at %d times", n)
				}
			})
		})
	}
}

// connector is a document of the plan's namespace.
func (w *world) connector(name, text string, edits ...func(*corev1.ConfigMap)) {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name, Labels: map[string]string{annotations.LabelKind: annotations.KindConnector}},
		Data:       map[string]string{annotations.DataConnector: "{apiVersion: maint.dev/v1alpha1, " + text + "}"},
	}
	for _, edit := range edits {
		edit(cm)
	}
	w.api.Put(cm)
}

// What can be known of one target only when it is looked at is that target's failure. The
// others go on as the strategy says, and all that slept wakes.
func TestATargetThatCannotBeIsSaidAndTheOthersGoOnAsTheStrategySays(t *testing.T) {
	const (
		vm    = "{name: bad, type: ec2, connectorRef: {kind: CloudProvider, name: aws}, parameters: {selector: {ids: [i-0123456789abcdef0]}}}"
		nodes = "{name: bad, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {karpenter: {}, managedNodeGroups: {names: [x]}}}"
		aws   = "kind: CloudProvider, spec: {type: aws, aws: {accountId: '123456789012', region: eu-central-1, auth: {serviceAccount: {}}}}"
		eks   = "kind: K8SCluster, spec: {providerRef: {name: aws}, eks: {name: stg-1}}"
	)
	there := func(w *world) { w.connector("aws", aws) }
	for name, c := range map[string]struct {
		target string
		given  func(w *world)
		says   string
	}{
		"no connector":                 {vm, func(*world) {}, "there is no connector aws in namespace shop"},
		"a ConfigMap that is none":     {vm, func(w *world) { w.connector("aws", aws, func(cm *corev1.ConfigMap) { cm.Labels = nil }) }, "the ConfigMap aws lacks the label maint.dev/kind: connector"},
		"a connector with faults":      {vm, func(w *world) { w.connector("aws", "kind: CloudProvider, spec: {type: gcp}") }, `the connector aws is not valid: line 1: spec.type: "gcp" is not supported`},
		"a connector of another kind":  {vm, func(w *world) { w.connector("aws", "kind: K8SCluster, spec: {k8s: {kubeconfigRef: {name: x}}}") }, "the connector aws is a K8SCluster, and the target names a CloudProvider"},
		"a cluster of no account":      {nodes, func(w *world) { w.connector("stg", eks) }, "there is no connector aws in namespace shop"},
		"a cluster that is not of EKS": {nodes, func(w *world) { w.connector("stg", "kind: K8SCluster, spec: {k8s: {kubeconfigRef: {name: x}}}") }, "the connector stg is no cluster of EKS, which a target of type eks needs"},
		"the wrong account": {vm, func(w *world) {
			there(w)
			w.beds.goes("validate bad", "the credentials are of account 1, and the connector names 2: nothing is done")
		}, "the credentials are of account 1"},
		"an engine that is not supported": {vm, func(w *world) {
			there(w)
			w.beds.goes("validate bad", "db/x cannot be put to sleep: its engine custom-oracle is not supported")
		}, "its engine custom-oracle is not supported"},
		"a look that is denied": {vm, func(w *world) {
			there(w)
			w.beds.goes("observe bad", "list instances: AccessDenied")
		}, "list instances: AccessDenied"},
		"an effect that is denied": {vm, func(w *world) {
			there(w)
			w.beds.goes("shutdown vm", "stop vm: UnauthorizedOperation")
		}, "stop vm: UnauthorizedOperation"},
	} {
		for _, mode := range []string{"Strict", "BestEffort"} {
			t.Run(name+", "+mode, func(t *testing.T) {
				spec := oneToThree + "behavior: {mode: " + mode + ", retries: 0}\ntargets: [{name: apps, type: noop}, " + c.target + ", {name: db, type: noop}]\n"
				night(t, spec, func(w *world) {
					w.deployment("vm", "bad", 1)
					w.deployment("data", "db", 4)
					c.given(w)
					w.until("01:30")
					phase, data := "Hibernated: 2 of 3 targets sleep; bad failed: ", 0
					if mode == "Strict" {
						phase, data = "Error: bad failed: ", 4
					}
					w.is(phase)
					w.has(fmt.Sprintf("data %d, orders 0, vm 1, web 0", data))
					if got := w.phase(); !strings.Contains(got, c.says) {
						t.Errorf("the plan says %q", got)
					}
					w.wantEvent("Warning TargetFailed nights: shutdown of target bad failed (attempt 1): ")
					w.until("03:30")
					w.has("data 4, orders 3, vm 1, web 2")
					w.is("Active: ")
					w.closed()
				})
			})
		}
	}
}

// What becomes of a resource, or of what is recorded of it, while it sleeps keeps no other
// asleep.
func TestWhatIsWrongWithOneResourceOnWakingKeepsNoOtherAsleep(t *testing.T) {
	recorded := func(before, after string) func(w *world) {
		return func(w *world) {
			w.api.Rewrite(shop, annotations.RestoreName("nights", "apps"), func(cm *corev1.ConfigMap) {
				cm.Data[annotations.DataRestore] = strings.Replace(cm.Data[annotations.DataRestore], `"before":`+before, `"before":`+after, 1)
			})
		}
	}
	replaced := func(w *world) {
		w.api.Delete("deployments", shop, "orders")
		w.deployment("orders", "other", 7)
	}
	nobody := func(*world) {}
	for name, c := range map[string]struct {
		happens func(w *world)
		woken   string // what is awake by then
		says    string
		mends   func(w *world)
		after   string
	}{
		"it is gone":              {func(w *world) { w.api.Delete("deployments", shop, "orders") }, "web 2", "Active: ", nobody, "web 2"},
		"another bears its name":  {replaced, "orders 7, web 2", "Active: ", nobody, "orders 7, web 2"},
		"it may not be woken":     {func(w *world) { w.beds.goes("wake orders", "start orders: AccessDenied") }, "orders 0, web 2", "Error: apps failed: start orders: AccessDenied", func(w *world) { w.beds.goes("wake orders", "") }, "orders 3, web 2"},
		"it cannot be looked at":  {func(w *world) { w.beds.goes("look orders", "get orders: no answer") }, "orders 0, web 2", "Error: apps failed: get orders: no answer", func(w *world) { w.beds.goes("look orders", "") }, "orders 3, web 2"},
		"what it was is nonsense": {recorded(`3`, `{"limits":[]}`), "orders 0, web 2", "Error: apps failed: the restore data of orders: json: cannot unmarshal object", recorded(`{"limits":[]}`, `3`), "orders 3, web 2"},
		"what it was is a word":   {recorded(`3`, `"many"`), "orders 0, web 2", "Error: apps failed: the restore data of orders: json: cannot unmarshal string", recorded(`"many"`, `3`), "orders 3, web 2"},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.until("01:30")
				w.sleeps()
				c.happens(w)
				w.until("03:30")
				w.has(c.woken)
				w.is(c.says)
				c.mends(w)
				w.until("04:30")
				w.has(c.after)
				w.is("Active: ")
				w.closed()
			})
		})
	}
}
