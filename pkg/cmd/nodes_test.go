package cmd

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// worker is a node that is Ready and that nobody asks for.
func worker(name string, edits ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Annotations: map[string]string{}, Labels: map[string]string{}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for _, edit := range edits {
		edit(n)
	}
	return n
}

func asked(requestor, value string) func(*corev1.Node) {
	return noted(annotations.RequestPrefix+requestor, value)
}

func noted(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}

func zoned(zone string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = zone }
}

// stood is what the agent says of a request, for ten minutes by now.
func stood(requestor string, phase nodes.Phase, reason string, edits ...func(*nodes.Status)) func(*corev1.Node) {
	s := nodes.Status{Phase: phase, Reason: reason, Since: saturday().Add(-10 * time.Minute), Asked: saturday().Add(-10 * time.Minute)}
	for _, edit := range edits {
		edit(&s)
	}
	return noted(annotations.StatusRequestPrefix+requestor, s.String())
}

// forGood is what the agent says of a drain that no waiting ends.
func forGood(text string) func(*nodes.Status) {
	return func(s *nodes.Status) { s.Blocked = &nodes.Block{Permanent: true, Text: text} }
}

func cordonedFor(c nodes.Cordon) func(*corev1.Node) {
	c.At = saturday().Add(-10 * time.Minute)
	return func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		n.Annotations[annotations.StatusCordoned] = c.String()
	}
}

// anAgent is the heartbeat of an agent that runs.
func anAgent() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: annotations.HeartbeatName, Labels: map[string]string{annotations.LabelKind: annotations.KindHeartbeat}},
		Data:       map[string]string{"version": "v0.1.0", "heartbeat": saturday().Format(time.RFC3339)},
	}
}

// configured is the agent's configuration; nodes is the YAML of spec.nodes.
func configured(nodes string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: annotations.AgentConfigName, Labels: map[string]string{annotations.LabelKind: annotations.KindAgentConfig}},
		Data:       map[string]string{annotations.DataConfig: "{apiVersion: maint.dev/v1alpha1, kind: AgentConfig, spec: {nodes: " + nodes + "}}"},
	}
}

// online is a cluster in memory, and jane who asks it.
type online struct {
	*testing.T
	run      program
	kube     *fake.Clientset
	user     string
	stdin    string
	terminal bool
	ctx      context.Context
	heard    func(line string) // each write to standard output or error
}

func newOnline(t *testing.T, run program, objects ...runtime.Object) *online {
	o := &online{T: t, run: run, kube: fake.NewClientset(objects...), user: "Jane@example.com", ctx: t.Context()}
	o.kube.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: o.user}}}, nil
	})
	return o
}

type listener struct {
	bytes.Buffer
	heard func(string)
}

func (l *listener) Write(p []byte) (int, error) {
	n, err := l.Buffer.Write(p)
	if l.heard != nil {
		l.heard(string(p))
	}
	return n, err
}

// maint runs one command line.
func (o *online) maint(args ...string) printed {
	o.Helper()
	out, errOut := &listener{heard: o.heard}, &listener{heard: o.heard}
	env := Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(o.stdin), Out: out, ErrOut: errOut},
		Name:      "kubectl maint", Version: "v0.1.0", Now: saturday, Zone: "Europe/Berlin", InTerminal: o.terminal,
	}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		o.Fatal(err)
	}
	k := &cluster{kube: o.kube, meta: metadatafake.NewSimpleMetadataClient(scheme, o.metadata()...), namespace: "shop"}
	code := o.run(o.ctx, newOn(env, k), args)
	return printed{code: code, out: out.String(), err: errOut.String()}
}

// metadata are the nodes and documents without the rest of them.
func (o *online) metadata() []runtime.Object {
	var out []runtime.Object
	list, err := o.kube.CoreV1().Nodes().List(o.ctx, metav1.ListOptions{})
	if err != nil {
		o.Fatal(err)
	}
	for _, n := range list.Items {
		out = append(out, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: n.ObjectMeta})
	}
	maps, err := o.kube.CoreV1().ConfigMaps("").List(o.ctx, metav1.ListOptions{})
	if err != nil {
		o.Fatal(err)
	}
	for _, cm := range maps.Items {
		out = append(out, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: cm.ObjectMeta})
	}
	return out
}

// on are the annotations of a node.
func (o *online) on(name string) map[string]string {
	o.Helper()
	n, err := o.kube.CoreV1().Nodes().Get(o.ctx, name, metav1.GetOptions{})
	if err != nil {
		o.Fatal(err)
	}
	return n.Annotations
}

func (o *online) has(name string, want map[string]string) {
	o.Helper()
	if diff := cmp.Diff(want, o.on(name)); diff != "" {
		o.Errorf("annotations of %s (-want +got):\n%s", name, diff)
	}
}

// become changes a node as the agent does.
func (o *online) become(name string, edits ...func(*corev1.Node)) {
	o.Helper()
	n, err := o.kube.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		o.Error(err)
		return
	}
	for _, edit := range edits {
		edit(n)
	}
	if _, err := o.kube.CoreV1().Nodes().Update(context.Background(), n, metav1.UpdateOptions{}); err != nil {
		o.Error(err)
	}
}

func TestUsersAsRequestors(t *testing.T) {
	for user, want := range map[string]string{
		"jane":                          "cli.jane",
		"Jane@example.com":              "cli.jane-example.com",
		"system:serviceaccount:ops:bot": "cli.system-serviceaccount-ops-bot",
		"a..b-.-c_":                     "cli.a.b.c",
		"日本":                            "cli." + annotations.Hash10("日本"),
		strings.Repeat("x", 80):         "cli." + strings.Repeat("x", 48) + "-" + annotations.Hash10(strings.Repeat("x", 80)),
	} {
		got := requestorName(user)
		if _, err := nodes.Parse(got, ""); err != nil || got != want {
			t.Errorf("%s is %s, want %s; %v", user, got, want, err)
		}
	}
}

// A plan and a node may have one name; what is meant is said, and not guessed.
func TestANameThatIsAPlanAndANode(t *testing.T) {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "twin", UID: "u", Labels: map[string]string{annotations.LabelKind: annotations.KindPlan}},
		Data:       map[string]string{annotations.DataPlan: "{apiVersion: maint.dev/v1alpha1, kind: Plan, spec: {steps: [{name: hold, type: suspend}]}}"},
	}
	o := newOnline(t, Run, anAgent(), cm, worker("twin"), worker("other"))
	for _, verb := range []string{"status", "why", "check", "pause", "resume"} {
		o.maint(verb, "twin").is(t, printed{code: 2, out: "", err: "error: twin is a plan in namespace shop, and a node: write plan/twin or node/twin\n"})
	}
	o.maint("check", "plan/twin").is(t, printed{code: 0, out: "plan/twin: permitted (no strategy is set)\nuntil somebody changes it: it does not change by itself\n", err: ""})
	o.maint("check", "node/twin").is(t, printed{code: 0, out: "node/twin: permitted (no strategy is set)\nuntil somebody changes it: it does not change by itself\n", err: ""})
	o.maint("check", "other").is(t, printed{code: 0, out: "node/other: permitted (no strategy is set)\nuntil somebody changes it: it does not change by itself\n", err: ""})
	o.maint("pause", "other", "--until", "2h", "--reason", "disks").is(t, printed{code: 0, out: "node/other paused until Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n", err: ""})
	o.has("other", map[string]string{annotations.Pause: "2026-11-21T02:00:00Z", annotations.Actor(annotations.Pause): "Jane@example.com", annotations.Reason(annotations.Pause): "disks"})
	o.maint("check", "other").is(t, printed{code: 3, out: "node/other: not permitted (paused until 2026-11-21T02:00:00Z)\nuntil Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z), in 2h0m\nthen permitted\n", err: ""})
	o.maint("resume", "node/other").is(t, printed{code: 0, out: "node/other resumed\n", err: ""})
	o.has("other", map[string]string{})
	o.maint("resume", "node/other").is(t, printed{code: 0, out: "node/other was not paused\n", err: ""})
	o.maint("status", "node/absent").is(t, printed{code: 1, out: "", err: "error: there is no node \"absent\"\n"})
}

func TestCompletionOffersTheNodesThatACommandCanActOn(t *testing.T) {
	o := newOnline(t, Run, anAgent(), worker("a", asked("cli.jane-example.com", "{}")), worker("b", asked("gpu", "")), worker("c", noted(annotations.Pause, "true")))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"drain", ""}, "a b c"},
		{[]string{"drain", "a", ""}, "b c"},
		{[]string{"release", ""}, "a"},
		{[]string{"release", "--requestor", "gpu", ""}, "b"},
		{[]string{"resume", ""}, "c"},
		{[]string{"pause", ""}, "a b"},
		{[]string{"pause", "node/"}, "node/a node/b"},
		{[]string{"status", ""}, "a b"},
		{[]string{"why", ""}, "a b c"},
		{[]string{"check", ""}, "c"},
	} {
		got := o.maint(append([]string{"__complete"}, c.args...)...)
		names := strings.Fields(strings.Split(got.out, ":")[0])
		if strings.Join(names, " ") != c.want {
			t.Errorf("%v offers %v, want %s", c.args, names, c.want)
		}
	}
}
