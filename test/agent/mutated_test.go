package agent_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// mutations is how many objects a tenant writes; MAINT_MUTATIONS says another number
// (make mutations: ten thousand).
const mutations = 300

func countOfMutations(t *testing.T) int {
	t.Helper()
	text := os.Getenv("MAINT_MUTATIONS")
	if text == "" {
		return mutations
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("MAINT_MUTATIONS: %q is no number of objects", text)
	}
	return n
}

// A tenant who may write ConfigMaps in one namespace writes what looks like the agent's
// own and like documents, each made of a real one and broken somewhere. The agent goes on,
// touches nothing elsewhere, and stays within the memory that the manifest gives it. Half
// of them carry the agent's signature, as nobody's does who lacks its key: what lies
// behind that check is to stand by itself.
func TestObjectsThatATenantMadeOfRealOnesHarmNobody(t *testing.T) {
	x := newCrashes(t)
	x.story = scaling
	t.Setenv("GOMEMLIMIT", "230MiB") // nine tenths of the manifest's limit, as the agent sets it itself
	p := x.direct()
	defer p.Kill()
	for _, ns := range []string{"theirs", "tenant"} {
		x.prepare(ns)
		x.observed(ns, "orders-weekly")
	}
	x.annotate("theirs", "orders-weekly", map[string]string{annotations.Trigger: "t"})
	x.at("theirs", "orders-weekly", "hold")
	x.gatedPolicy("theirs")
	x.asleep("theirs")
	x.otherDocuments("theirs")
	seeds := x.seeds("theirs")
	before := x.versions("tenant")

	random := rand.New(rand.NewPCG(4711, 0)) //nolint:gosec // the same objects each time
	ring, n, followed := keyring(x.ctx, t, x.admin), countOfMutations(t), p.FollowMemory()
	for i := range n {
		cm := mutated(random, seeds[random.IntN(len(seeds))], i)
		if i%2 == 0 {
			if err := ring.Sign(cm); err != nil {
				t.Fatal(err)
			}
		}
		_, err := x.admin.CoreV1().ConfigMaps("tenant").Create(x.ctx, cm, metav1.CreateOptions{})
		if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsRequestEntityTooLargeError(err) {
			t.Fatal(err)
		}
		select {
		case <-p.Ended():
			text, _ := yaml.Marshal(cm)
			t.Fatalf("the agent ended at object %d:\n%.4000s\n%s", i, text, lastOf(p.Log(), 8000))
		default:
		}
	}
	x.goesOn("theirs")
	if after := x.versions("tenant"); !slices.Equal(before, after) {
		t.Errorf("it wrote where nobody had asked:\nbefore %q\nafter  %q", before, after)
	}
	if strings.Contains(p.Log(), "internal error") || strings.Contains(p.Log(), "panic") {
		t.Errorf("it panicked:\n%s", linesWith(p.Log(), "internal error", "panic"))
	}
	if runtime.GOOS != "linux" {
		t.Log("its memory was not looked at: that is read from /proc")
		return
	}
	all, err := p.MemoryOf("VmHWM:")
	if err != nil {
		t.Fatal(err)
	}
	peak := followed()
	t.Logf("%d objects; the agent had %d MiB of its own at most, %d MiB with its binary's pages", n, peak>>20, all>>20)
	if peak == 0 || peak > 256<<20 {
		t.Errorf("it had %d MiB", peak>>20)
	}
}

// gatedPolicy gives a namespace a policy whose gates have a record.
func (x *crashes) gatedPolicy(ns string) {
	x.t.Helper()
	text := "apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec:\n  strategy: Restrictive\n  gates: [{apiVersion: apps/v1, kind: Deployment, name: absent, knob: deployment}]\n"
	policy := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "weekends", Labels: map[string]string{annotations.LabelKind: annotations.KindPolicy}}, Data: map[string]string{annotations.DataPolicy: text}}
	if _, err := x.admin.CoreV1().ConfigMaps(ns).Create(x.ctx, policy, metav1.CreateOptions{}); err != nil {
		x.t.Fatal(err)
	}
	eventually(x.t, x.ctx, "the record of its gates is there", func() (bool, string) {
		policy, _ := x.admin.CoreV1().ConfigMaps(ns).Get(x.ctx, "weekends", metav1.GetOptions{})
		_, err := x.admin.CoreV1().ConfigMaps(ns).Get(x.ctx, annotations.GateName("weekends"), metav1.GetOptions{})
		return err == nil, fmt.Sprint(err, policy.Annotations)
	})
	eventually(x.t, x.ctx, "the policy is taken up", func() (bool, string) {
		cm, err := x.admin.CoreV1().ConfigMaps(ns).Get(x.ctx, "weekends", metav1.GetOptions{})
		return err == nil && strings.Contains(cm.Annotations[annotations.StatusConditions], "Gates"), fmt.Sprint(err)
	})
}

// asleep gives a namespace a HibernatePlan by which a Deployment sleeps.
func (x *crashes) asleep(ns string) {
	x.t.Helper()
	replicas, labels := int32(2), map[string]string{"app": "nightly"}
	_, err := newDeployment(x.ctx, x.admin, ns, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}}}},
		},
	})
	if err != nil {
		x.t.Fatal(err)
	}
	text := "apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec:\n  schedule: {timezone: UTC, offHours: [{start: '03:00', end: '03:30', daysOfWeek: [MON]}]}\n" +
		"  targets: [{name: apps, type: workload, parameters: {kinds: [Deployment], selector: {matchLabels: {app: nightly}}}}]\n"
	plan := annotations.NewHibernatePlan(ns, "nights", text, "")
	plan.Annotations = map[string]string{annotations.HoldState: "asleep"}
	if _, err := x.admin.CoreV1().ConfigMaps(ns).Create(x.ctx, plan, metav1.CreateOptions{}); err != nil {
		x.t.Fatal(err)
	}
	eventually(x.t, x.ctx, "it is asked to sleep", func() (bool, string) {
		d, err := x.admin.AppsV1().Deployments(ns).Get(x.ctx, "nightly", metav1.GetOptions{})
		if err != nil || *d.Spec.Replicas > 0 {
			return false, fmt.Sprint(err, x.annotationsOf(ns, "nights"))
		}
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation} // for want of its controller
		_, err = x.admin.AppsV1().Deployments(ns).UpdateStatus(x.ctx, d, metav1.UpdateOptions{})
		return err == nil, fmt.Sprint(err)
	})
	eventually(x.t, x.ctx, "it sleeps", func() (bool, string) {
		said := x.annotationsOf(ns, "nights")
		return said[annotations.StatusPhase] == string(hibernate.Hibernated), fmt.Sprint(said)
	})
}

// otherDocuments gives a namespace one of each kind of document that the ones before do not name, and
// waits until the agent has parsed what it parses by itself. Prices are read by commands alone.
func (x *crashes) otherDocuments(ns string) {
	x.t.Helper()
	head := "apiVersion: maint.dev/v1alpha1\nkind: "
	for name, d := range map[string]struct{ kind, key, text string }{
		"holidays": {annotations.KindCalendar, annotations.DataICS, "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//example//EN\r\nBEGIN:VEVENT\r\nUID:1@example.org\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;VALUE=DATE:20261224\r\nDTEND;VALUE=DATE:20261227\r\nRRULE:FREQ=YEARLY;COUNT=9\r\nEXDATE;VALUE=DATE:20271224\r\nSUMMARY:Christmas\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"},
		"dates":    {annotations.KindCalendar, annotations.DataDates, "- {from: 2026-12-24, until: 2026-12-27, reason: Christmas}\n- {from: \"2026-11-02T10:00:00Z\", until: \"2026-11-02T12:00:00Z\"}\n"},
		"announce": {annotations.KindStepTemplate, annotations.DataTemplate, head + "StepTemplate\nspec:\n  parameters: [{name: text, required: true}, {name: times, type: integer, default: 1}]\n  steps:\n  - {name: say, type: webhook, properties: {url: \"https://hooks.example.org\", body: \"${params.text}\"}}\n"},
		"stg":      {annotations.KindConnector, annotations.DataConnector, head + "K8SCluster\nspec: {k8s: {kubeconfigRef: {name: stg-kubeconfig}}}\n"},
		"prices":   {annotations.KindPrices, annotations.DataPrices, "currency: USD\nhourly:\n  workload: {cpu: 0.03, memoryGiB: 0.004}\n  ec2: {m5.large: 0.10, \"*\": 0.05}\n"},
	} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{annotations.LabelKind: d.kind}}, Data: map[string]string{d.key: d.text}}
		if _, err := x.admin.CoreV1().ConfigMaps(ns).Create(x.ctx, cm, metav1.CreateOptions{}); err != nil {
			x.t.Fatal(err)
		}
		if d.kind == annotations.KindPrices {
			continue
		}
		eventually(x.t, x.ctx, name+" is valid", func() (bool, string) {
			said := x.annotationsOf(ns, name)[annotations.StatusConditions]
			return strings.Contains(said, `"type":"Valid","status":"True"`), said
		})
	}
}

func (x *crashes) annotationsOf(ns, name string) map[string]string {
	x.t.Helper()
	cm, err := x.admin.CoreV1().ConfigMaps(ns).Get(x.ctx, name, metav1.GetOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	return cm.Annotations
}

// seeds are the objects of a namespace that the agent reads.
func (x *crashes) seeds(ns string) []corev1.ConfigMap {
	x.t.Helper()
	list, err := x.admin.CoreV1().ConfigMaps(ns).List(x.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind})
	if err != nil {
		x.t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, cm := range list.Items {
		kinds[cm.Labels[annotations.LabelKind]] = true
	}
	for _, kind := range []string{annotations.KindPlan, annotations.KindPolicy, annotations.KindRun, annotations.KindLedger, annotations.KindGate, annotations.KindHibernatePlan, annotations.KindRestore, annotations.KindCalendar, annotations.KindStepTemplate, annotations.KindConnector, annotations.KindPrices} {
		if !kinds[kind] {
			x.t.Fatalf("there is no %s among %v", kind, kinds)
		}
	}
	return list.Items
}

// versions are the objects of ours in all namespaces but a tenant's and the agent's, and what
// they are about, each with its version.
func (x *crashes) versions(tenant string) []string {
	x.t.Helper()
	var out []string
	maps, err := x.admin.CoreV1().ConfigMaps("").List(x.ctx, metav1.ListOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	deployments, err := x.admin.AppsV1().Deployments("").List(x.ctx, metav1.ListOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	secrets, err := x.admin.CoreV1().Secrets("").List(x.ctx, metav1.ListOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	namespaces, err := x.admin.CoreV1().Namespaces().List(x.ctx, metav1.ListOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	note := func(kind string, o metav1.Object) {
		if ns := cmp.Or(o.GetNamespace(), o.GetName()); ns != tenant && ns != annotations.DefaultNamespace && !strings.HasPrefix(ns, "kube-") {
			out = append(out, kind+" "+ns+"/"+o.GetName()+" "+o.GetResourceVersion())
		}
	}
	for i := range maps.Items {
		note("ConfigMap", &maps.Items[i])
	}
	for i := range deployments.Items {
		note("Deployment", &deployments.Items[i])
	}
	for i := range secrets.Items {
		note("Secret", &secrets.Items[i])
	}
	for i := range namespaces.Items {
		note("Namespace", &namespaces.Items[i])
	}
	return out
}

// goesOn has the agent work for somebody else, soon.
func (x *crashes) goesOn(ns string) {
	x.t.Helper()
	x.document(ns, "after", "steps:\n- {name: hold, type: suspend}\n")
	x.observed(ns, "after")
	x.annotate(ns, "after", map[string]string{annotations.Trigger: "t"})
	eventually(x.t, x.ctx, "another tenant's plan runs", func() (bool, string) {
		runs, err := readRuns(x.ctx, x.admin, ns, "after")
		return err == nil && len(runs) == 1, describeRuns(runs)
	})
	if err := x.admin.CoreV1().ConfigMaps(ns).Delete(x.ctx, "after", metav1.DeleteOptions{}); err != nil { // as it was
		x.t.Fatal(err)
	}
	eventually(x.t, x.ctx, "and is gone", func() (bool, string) {
		list, err := x.admin.CoreV1().ConfigMaps(ns).List(x.ctx, metav1.ListOptions{LabelSelector: annotations.LabelPlan + "=after"})
		return err == nil && len(list.Items) == 0, fmt.Sprint(err)
	})
}

// mutated is an object like a real one, broken somewhere, by another name or the same.
func mutated(random *rand.Rand, seed corev1.ConfigMap, n int) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: seed.Name, Labels: map[string]string{}, Annotations: map[string]string{}}, Data: map[string]string{}, BinaryData: seed.BinaryData}
	if random.IntN(10) > 0 {
		cm.Name = fmt.Sprintf("%.200s-%d", seed.Name, n)
	}
	for k, v := range seed.Labels {
		cm.Labels[k] = v
	}
	for k, v := range seed.Annotations {
		if annotations.IsProjectKey(k) && random.IntN(2) == 0 {
			cm.Annotations[k] = v
		}
	}
	if random.IntN(8) == 0 {
		kinds := []string{annotations.KindRun, annotations.KindLedger, annotations.KindGate, annotations.KindRestore, annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy, annotations.KindStepTemplate, annotations.KindCalendar, annotations.KindConnector}
		cm.Labels[annotations.LabelKind] = kinds[random.IntN(len(kinds))]
	}
	if random.IntN(8) == 0 && cm.Labels[annotations.LabelPhase] != "" {
		cm.Labels[annotations.LabelPhase] = []string{"Pending", "Running", "Succeeded", "Failed"}[random.IntN(4)]
	}
	for k, v := range seed.Data {
		cm.Data[k] = mutatedText(random, strings.ReplaceAll(v, seed.Name, cm.Name), seed.Namespace)
	}
	return cm
}

// mutatedText breaks a document: its text, or the tree that it stands for.
func mutatedText(random *rand.Rand, text, namespace string) string {
	if random.IntN(2) == 0 {
		text = strings.ReplaceAll(text, namespace, "tenant")
	}
	var tree any
	unread := yaml.Unmarshal([]byte(text), &tree) != nil
	if _, plain := tree.(string); unread || plain || random.IntN(5) == 0 { // iCalendar is no tree
		return mutatedBytes(random, text)
	}
	for range 1 + random.IntN(3) {
		tree = mutatedTree(random, tree, tree)
	}
	out, err := json.Marshal(tree)
	if err != nil || len(out) > 900_000 {
		return text
	}
	return string(out)
}

func mutatedBytes(random *rand.Rand, text string) string {
	b := []byte(text)
	for range 1 + random.IntN(4) {
		b[random.IntN(len(b))] = byte(random.IntN(256))
	}
	return strings.ToValidUTF8(string(b[:1+random.IntN(len(b))]), "?")
}

// mutatedTree replaces something of a tree, at a depth that chance takes.
func mutatedTree(random *rand.Rand, tree, whole any) any {
	switch node := tree.(type) {
	case map[string]any:
		if len(node) > 0 && random.IntN(6) > 0 {
			names := make([]string, 0, len(node))
			for name := range node {
				names = append(names, name)
			}
			slices.Sort(names)
			name := names[random.IntN(len(names))]
			out := map[string]any{}
			for k, v := range node {
				out[k] = v
			}
			out[name] = mutatedTree(random, node[name], whole)
			return out
		}
	case []any:
		if len(node) > 0 && random.IntN(6) > 0 {
			out := slices.Clone(node)
			i := random.IntN(len(out))
			out[i] = mutatedTree(random, out[i], whole)
			return out
		}
	}
	return replacement(random, tree, whole)
}

func replacement(random *rand.Rand, was, whole any) any {
	switch random.IntN(10) {
	case 0:
		return nil
	case 1:
		return -1
	case 2:
		return 9e18
	case 3:
		return strings.Repeat("x", 1+random.IntN(20_000))
	case 4:
		return slices.Repeat([]any{was}, 1+random.IntN(500))
	case 5:
		deep := was
		for range 1 + random.IntN(300) {
			deep = map[string]any{"steps": []any{deep}}
		}
		return deep
	case 6:
		return whole
	case 7:
		return map[string]any{"name": "a", "type": "template/a", "steps": []any{was}}
	case 8:
		return time.Unix(random.Int64N(1<<40)-1<<39, 0).UTC().Format(time.RFC3339)
	}
	return ""
}

func lastOf(text string, n int) string { return text[max(0, len(text)-n):] }

func linesWith(text string, words ...string) string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(line, w) }) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
