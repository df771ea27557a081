package annotations_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

const closes, opens = `{"f:spec":{"f:unschedulable":{}}}`, `{"f:spec":{"f:taints":{}}}`

func wrote(manager, fields string, minute int) metav1.ManagedFieldsEntry {
	return managed(manager, metav1.ManagedFieldsOperationUpdate, instant("2026-05-01T02:00:00Z").Add(time.Duration(minute)*time.Minute), fields)
}

// cordoned is a node that we closed: with our record, and our write of the field.
func cordoned(t *testing.T, edits ...func(*corev1.Node)) *corev1.Node {
	t.Helper()
	n := read[corev1.Node](t, `
metadata:
  name: n1
  uid: u1
  labels: {topology.kubernetes.io/zone: z1}
  annotations: {status.maint.dev/cordoned: '{"by":["ops"]}', status.maint.dev/progress: p, request.maint.dev/ops: "{}", request.maint.dev/: x, status.request.maint.dev/ops: "{}"}
spec: {unschedulable: true}
status: {conditions: [{type: MemoryPressure, status: "False"}, {type: Ready, status: "True"}]}
`)
	n.ManagedFields = []metav1.ManagedFieldsEntry{wrote("kubelet", opens, 0), wrote(annotations.ManagerAgent, closes, 1)}
	for _, edit := range edits {
		edit(n)
	}
	return n
}

func TestANodeAsTheDecisionsLookAtIt(t *testing.T) {
	got := annotations.Node(cordoned(t))
	if got.Name != "n1" || got.UID != "u1" || got.Zone != "z1" || !got.Unschedulable || got.NotReady || got.Deleting || got.Progress != "p" || len(got.Asked) != 1 || got.Asked[0].Request.Requestor != "ops" || got.Cordon == nil {
		t.Errorf("%+v", got)
	}
	now := metav1.Now()
	for name, c := range map[string]struct {
		edit               func(*corev1.Node)
		notReady, deleting bool
	}{
		"as it is":                        {func(*corev1.Node) {}, false, false},
		"its condition is not True":       {func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionUnknown }, true, false},
		"it has no such condition":        {func(n *corev1.Node) { n.Status.Conditions = nil }, true, false},
		"another condition is True":       {func(n *corev1.Node) { n.Status.Conditions[1].Type = corev1.NodeDiskPressure }, true, false},
		"somebody has begun to delete it": {func(n *corev1.Node) { n.DeletionTimestamp = &now }, false, true},
	} {
		got := annotations.Node(cordoned(t, c.edit))
		if got.NotReady != c.notReady || got.Deleting != c.deleting {
			t.Errorf("%s: not ready %t, deleting %t", name, got.NotReady, got.Deleting)
		}
	}
}

func TestWhoElseCordonedANode(t *testing.T) {
	fields := func(entries ...metav1.ManagedFieldsEntry) func(*corev1.Node) {
		return func(n *corev1.Node) { n.ManagedFields = entries }
	}
	ours, plans, kubectl := wrote(annotations.ManagerAgent, closes, 1), wrote(annotations.PlanManagerPrefix+"abc", closes, 1), wrote("kubectl-cordon", closes, 2)
	record := func(text string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Annotations[annotations.StatusCordoned] = text }
	}
	for _, c := range []struct {
		name  string
		edits []func(*corev1.Node)
		want  nodes.CordonTakeover
	}{
		{"nobody", []func(*corev1.Node){fields(ours)}, nodes.CordonTakeover{}},
		{"a plan of ours", []func(*corev1.Node){fields(plans)}, nodes.CordonTakeover{}},
		{"somebody beside us", []func(*corev1.Node){fields(ours, kubectl)}, nodes.CordonTakeover{By: "kubectl-cordon"}},
		{"somebody after it had been opened", []func(*corev1.Node){fields(kubectl)}, nodes.CordonTakeover{By: "kubectl-cordon", Opened: true}},
		{"who wrote something else did not", []func(*corev1.Node){fields(ours, wrote("kubelet", opens, 3))}, nodes.CordonTakeover{}},
		{"a write without a time tells nothing", []func(*corev1.Node){fields(ours, func() metav1.ManagedFieldsEntry { m := kubectl; m.Time = nil; return m }())}, nodes.CordonTakeover{}},
		{"nor does one without its fields", []func(*corev1.Node){fields(ours, func() metav1.ManagedFieldsEntry { m := kubectl; m.FieldsV1 = nil; return m }())}, nodes.CordonTakeover{}},
		{"nor one that cannot be read", []func(*corev1.Node){fields(ours, wrote("kubectl-cordon", "[", 2))}, nodes.CordonTakeover{}},
		{"of a node that is open nobody asks", []func(*corev1.Node){fields(kubectl), func(n *corev1.Node) { n.Spec.Unschedulable = false }}, nodes.CordonTakeover{}},
		{"nor of one that we did not close", []func(*corev1.Node){fields(kubectl), record("")}, nodes.CordonTakeover{}},
		{"nor of one that was closed before", []func(*corev1.Node){fields(kubectl), record(`{"by":["ops"],"before":true}`)}, nodes.CordonTakeover{}},
	} {
		if diff := cmp.Diff(c.want, annotations.Node(cordoned(t, c.edits...)).Taken); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	slim := annotations.SlimCordon(cordoned(t, fields(wrote("kubelet", opens, 0), ours, kubectl)))
	if len(slim) != 2 || slim[0].Manager != annotations.ManagerAgent || slim[1].Manager != "kubectl-cordon" || !slim[1].Time.Equal(kubectl.Time) {
		t.Errorf("%+v", slim)
	}
	if got := annotations.Node(cordoned(t, func(n *corev1.Node) {
		n.ManagedFields = annotations.SlimCordon(cordoned(t, fields(ours, kubectl)))
	})).Taken.By; got != "kubectl-cordon" {
		t.Errorf("what is kept of them does not tell any more: %q", got)
	}
	for name, edit := range map[string]func(*corev1.Node){"open": func(n *corev1.Node) { n.Spec.Unschedulable = false }, "not ours": record("")} {
		if got := annotations.SlimCordon(cordoned(t, fields(ours, kubectl), edit)); got != nil {
			t.Errorf("of a node that is %s: %v", name, got)
		}
	}
}

func TestWhichAnnotationsOfANodeAreLookedAt(t *testing.T) {
	got := annotations.OfNode(map[string]string{"maint.dev/a": "1", "request.maint.dev/b": "2", "notmaint.dev/c": "3", "example.org/d": "4", "maint.dev": "5", "plain": "6"})
	if diff := cmp.Diff(map[string]string{"maint.dev/a": "1", "request.maint.dev/b": "2", "maint.dev": "5"}, got); diff != "" {
		t.Error(diff)
	}
	if got := annotations.Requests(map[string]string{"example.org/a": "b"}); got != nil {
		t.Errorf("without requests: %v", got)
	}
}

func TestTheRecordOfAPolicysGatesIsItsOwn(t *testing.T) {
	record := policy.GateRecord{Policy: "night", Entries: []policy.GateEntry{{GateRule: policy.GateRule{APIVersion: "v1", Kind: "A", Knob: "flux"}, Account: "a"}}}
	cm, err := annotations.GateObject("shop", record)
	if err != nil {
		t.Fatal(err)
	}
	got, err := annotations.ReadGates(cm)
	if err != nil || !got.Same(record) || got.Policy != "night" || cm.Namespace != "shop" || len(cm.OwnerReferences) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for name, edit := range map[string]func(*corev1.ConfigMap){
		"without our label":      func(cm *corev1.ConfigMap) { cm.Labels = nil },
		"of another kind":        func(cm *corev1.ConfigMap) { cm.Labels[annotations.LabelKind] = annotations.KindPolicy },
		"that cannot be read":    func(cm *corev1.ConfigMap) { cm.Data[annotations.DataGate] = "{" },
		"of another policy":      func(cm *corev1.ConfigMap) { cm.Name = annotations.GateName("day") },
		"that speaks of nothing": func(cm *corev1.ConfigMap) { cm.Data[annotations.DataGate] = "{}" },
	} {
		other := cm.DeepCopy()
		edit(other)
		if _, err := annotations.ReadGates(other); !errors.Is(err, annotations.ErrForeign) {
			t.Errorf("a record %s: %v", name, err)
		}
	}
	if _, err := annotations.GateObject("shop", policy.GateRecord{Entries: []policy.GateEntry{{GateRule: policy.GateRule{Knob: func() {}}}}}); err == nil {
		t.Error("a knob that cannot be written is written")
	}
}

func TestWhichPodsAreTheAgents(t *testing.T) {
	of := func(namespace, name string, labels map[string]string) drain.Pod {
		return drain.Pod{Namespace: namespace, Name: name, Labels: labels}
	}
	named := map[string]string{annotations.AgentLabel: annotations.AgentName}
	for name, c := range map[string]struct {
		pod  drain.Pod
		own  string
		want bool
	}{
		"a replica by its label":      {of("maint-system", "a", named), "", true},
		"one of another namespace":    {of("shop", "a", named), "", false},
		"one of another name":         {of("maint-system", "a", map[string]string{annotations.AgentLabel: "x"}), "", false},
		"itself, whatever its labels": {of("maint-system", "me", nil), "maint-system/me", true},
		"another than itself":         {of("maint-system", "you", nil), "maint-system/me", false},
		"nobody knows who it is":      {of("", "", nil), "", false},
	} {
		if got := annotations.AgentPod(c.pod, "maint-system", c.own); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestTheRecordOfASurgeIsReadBack(t *testing.T) {
	if _, ok, err := annotations.ReadSurge(nil); ok || err != nil {
		t.Errorf("where there is none: %t, %v", ok, err)
	}
	s, ok, err := annotations.ReadSurge(map[string]string{annotations.StatusSurge: `{"replicas":3,"node":"n1","pod":"u","by":"c","at":"2026-05-01T02:00:00Z"}`})
	if want := (annotations.Surge{Replicas: 3, Node: "n1", Pod: "u", By: "c", At: instant("2026-05-01T02:00:00Z")}); !ok || err != nil || s != want {
		t.Errorf("%+v, %t, %v", s, ok, err)
	}
	if _, ok, err := annotations.ReadSurge(map[string]string{annotations.StatusSurge: "x"}); !ok || err == nil {
		t.Errorf("one that cannot be read is there: %t, %v", ok, err)
	}
}

// Whoever may write a Deployment may write the record of its surge.
func TestImpossibleRecordsOfSurgesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want string // empty: it is possible
	}{
		"one of an older agent":           {`{"replicas":0,"node":"n1","pod":"u"}`, ""},
		"the most replicas":               {`{"replicas":1000000,"node":"n1","pod":"u"}`, ""},
		"fewer replicas than none":        {`{"replicas":-1,"node":"n1","pod":"u"}`, "says -1 replicas; possible are 0 to 1000000"},
		"more replicas than there can be": {`{"replicas":2147483647,"node":"n1","pod":"u"}`, "says 2147483647 replicas"},
		"no node":                         {`{"replicas":1,"pod":"u"}`, "names no node"},
		"a node that cannot be":           {`{"replicas":1,"node":"` + strings.Repeat("n", 254) + `","pod":"u"}`, "names no node"},
		"no pod":                          {`{"replicas":1,"node":"n1"}`, "names no pod"},
		"the longest names":               {`{"replicas":1,"node":"` + strings.Repeat("n", 253) + `","pod":"` + strings.Repeat("u", 253) + `"}`, ""},
		"a pod that cannot be":            {`{"replicas":1,"node":"n1","pod":"` + strings.Repeat("u", 254) + `"}`, "names no pod"},
	} {
		_, ok, err := annotations.ReadSurge(map[string]string{annotations.StatusSurge: c.text})
		if !ok || (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
	}
}

func TestWhatADrainSeesOfAPod(t *testing.T) {
	base := func() *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}} }
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(instant("2026-05-01T02:00:00Z"))})
		}
	}
	waits := func(reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
		}
	}
	tolerates := func(key string, operator corev1.TolerationOperator, effect corev1.TaintEffect) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: key, Operator: operator, Effect: effect}}
		}
	}
	note := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} }
	}
	for _, c := range []struct {
		name string
		edit func(*corev1.Pod)
		want func(*drain.Pod)
	}{
		{"nothing more", func(*corev1.Pod) {}, func(*drain.Pod) {}},
		{"it is ready", condition(corev1.PodReady, corev1.ConditionTrue, ""), func(p *drain.Pod) { p.Ready = true }},
		{"it is not, since then", condition(corev1.PodReady, corev1.ConditionFalse, ""), func(p *drain.Pod) { p.NotReady = instant("2026-05-01T02:00:00Z") }},
		{"no node takes it", condition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable), func(p *drain.Pod) { p.Unschedulable = true }},
		{"it has no node for another reason", condition(corev1.PodScheduled, corev1.ConditionFalse, "SchedulingGated"), func(*drain.Pod) {}},
		{"it has a node", condition(corev1.PodScheduled, corev1.ConditionTrue, corev1.PodReasonUnschedulable), func(*drain.Pod) {}},
		{"another condition", condition("Other", corev1.ConditionFalse, corev1.PodReasonUnschedulable), func(*drain.Pod) {}},
		{"its image cannot be pulled", waits("ImagePullBackOff"), func(p *drain.Pod) { p.Trouble = "ImagePullBackOff" }},
		{"it is being made", waits("ContainerCreating"), func(*drain.Pod) {}},
		{"its first containers run", waits("PodInitializing"), func(*drain.Pod) {}},
		{"it waits without a reason", waits(""), func(*drain.Pod) {}},
		{"it tolerates the cordon", tolerates(corev1.TaintNodeUnschedulable, corev1.TolerationOpExists, corev1.TaintEffectNoSchedule), func(p *drain.Pod) { p.Tolerates = true }},
		{"it tolerates all effects of it", tolerates(corev1.TaintNodeUnschedulable, corev1.TolerationOpExists, ""), func(p *drain.Pod) { p.Tolerates = true }},
		{"it tolerates everything", tolerates("", corev1.TolerationOpExists, ""), func(p *drain.Pod) { p.Tolerates = true }},
		{"it tolerates another effect", tolerates(corev1.TaintNodeUnschedulable, corev1.TolerationOpExists, corev1.TaintEffectNoExecute), func(*drain.Pod) {}},
		{"it tolerates another taint", tolerates("example.org/gpu", corev1.TolerationOpExists, ""), func(*drain.Pod) {}},
		{"it tolerates an empty key that has to be equal", tolerates("", corev1.TolerationOpEqual, ""), func(*drain.Pod) {}},
		{"an autoscaler is to leave it", note("karpenter.sh/do-not-disrupt", "30m"), func(p *drain.Pod) { p.Kept = `karpenter.sh/do-not-disrupt: "30m"` }},
		{"it may be disrupted", note("karpenter.sh/do-not-disrupt", ""), func(*drain.Pod) {}},
		{"a volume of its own, and one that is none", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, {Name: "b"}}
		}, func(p *drain.Pod) { p.EmptyDir = true }},
		{"its order", note(annotations.DrainOrder, "7"), func(p *drain.Pod) { p.Order = 7 }},
		{"a version that is a number", func(p *corev1.Pod) { p.ResourceVersion = "12" }, func(p *drain.Pod) { p.Version = 12 }},
		{"a version that is none", func(p *corev1.Pod) { p.ResourceVersion = "x12" }, func(*drain.Pod) {}},
	} {
		pod, want := base(), annotations.DrainPod(base())
		c.edit(pod)
		c.want(&want)
		got := annotations.DrainPod(pod)
		got.Labels, want.Labels = nil, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestWhatAStepWritesOnANode(t *testing.T) {
	closed, open := true, false
	for name, c := range map[string]struct {
		step nodes.Step
		want string // beside uid and resourceVersion
	}{
		"nothing":                         {nodes.Step{}, `{"metadata":{"annotations":{}}}`},
		"what was done of it":             {nodes.Step{Progress: new("p")}, `{"metadata":{"annotations":{"status.maint.dev/progress":"p"}}}`},
		"nothing is left to be done":      {nodes.Step{Progress: new("")}, `{"metadata":{"annotations":{"status.maint.dev/progress":null}}}`},
		"what is told of its gate":        {nodes.Step{Behavior: new("b")}, `{"metadata":{"annotations":{"status.maint.dev/behavior":"b"}}}`},
		"nothing is told of it any more":  {nodes.Step{Behavior: new("")}, `{"metadata":{"annotations":{"status.maint.dev/behavior":null}}}`},
		"it is closed":                    {nodes.Step{Unschedulable: &closed}, `{"metadata":{"annotations":{}},"spec":{"unschedulable":true}}`},
		"it is opened":                    {nodes.Step{Unschedulable: &open}, `{"metadata":{"annotations":{}},"spec":{"unschedulable":null}}`},
		"the record of a cordon goes":     {nodes.Step{CordonChanged: true}, `{"metadata":{"annotations":{"status.maint.dev/cordoned":null}}}`},
		"a cordon that is no news":        {nodes.Step{Cordon: &nodes.Cordon{}}, `{"metadata":{"annotations":{}}}`},
		"the status of a requestor, gone": {nodes.Step{Remove: []string{"ops"}}, `{"metadata":{"annotations":{"status.request.maint.dev/ops":null}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			patch, err := annotations.NodePatch("u-1", "7", c.step)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Replace(c.want, `"metadata":{`, `"metadata":{"uid":"u-1","resourceVersion":"7",`, 1)
			var got, wanted any
			if err := errors.Join(json.Unmarshal(patch, &got), json.Unmarshal([]byte(want), &wanted)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wanted, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestByHowMuchTheAnnotationsOfANodeGrow(t *testing.T) {
	on := map[string]string{annotations.StatusProgress: "p", annotations.StatusRequestPrefix + "ops": "{}"}
	const progress, behavior, ops = len(annotations.StatusProgress), len(annotations.StatusBehavior), len(annotations.StatusRequestPrefix + "ops")
	if got, want := annotations.Bytes(on), progress+1+ops+2; got != want {
		t.Errorf("they have %d bytes, want %d", got, want)
	}
	for name, c := range map[string]struct {
		step nodes.Step
		want int
	}{
		"nothing changes":               {nodes.Step{}, 0},
		"a longer text":                 {nodes.Step{Progress: new("abc")}, 2},
		"a new one":                     {nodes.Step{Behavior: new("b")}, behavior + 1},
		"one that goes":                 {nodes.Step{Progress: new("")}, -progress - 1},
		"one that goes and was not":     {nodes.Step{Behavior: new("")}, 0},
		"the status of a requestor":     {nodes.Step{Remove: []string{"ops"}}, -ops - 2},
		"one that goes, one that comes": {nodes.Step{Progress: new(""), Behavior: new("bb")}, behavior + 2 - progress - 1},
	} {
		if got := annotations.Grows(on, c.step); got != c.want {
			t.Errorf("%s: by %d, want %d", name, got, c.want)
		}
	}
}
