package nodes_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// observer watches pods, budgets and nodes as an admin, past the agent and its
// proxy, and counts anew at every event. Each watch is read as it comes, without an
// informer, which may hand on the events of two objects in another order.
type observer struct {
	mu      sync.Mutex
	pods    map[types.UID]seenPod
	healthy map[string]int // by namespace/app
	demands map[string]int // by namespace/app: what its budget says must be healthy
	least   map[string]int // the fewest that were healthy at one time
	left    map[string]string
	nodes   map[string]seenNode
	most    int // nodes in maintenance at one time
	zones   map[string]int
	limits  struct{ nodes, zone int } // 0: none
	visit   func(*corev1.Node)        // sees each event of a node too
	events  int
	lists   int
	faults  map[string]string // the first of each kind
}

type seenPod struct {
	app, node         string
	healthy, deleting bool
}

type seenNode struct {
	zone string
	kept bool // out of use: cordoned, or somebody's
}

// observe begins to watch the pods and budgets of a namespace, all for "", and nodes.
func observe(ctx context.Context, t *testing.T, kube kubernetes.Interface, ns string) *observer {
	t.Helper()
	o := &observer{
		pods: map[types.UID]seenPod{}, healthy: map[string]int{}, demands: map[string]int{}, least: map[string]int{},
		left: map[string]string{}, nodes: map[string]seenNode{}, zones: map[string]int{}, faults: map[string]string{},
	}
	pods, budgets, all := kube.CoreV1().Pods(ns), kube.PolicyV1().PodDisruptionBudgets(ns), kube.CoreV1().Nodes()
	for _, s := range []stream{
		{list: func(ctx context.Context) (runtime.Object, error) { return pods.List(ctx, metav1.ListOptions{}) }, watch: pods.Watch, see: o.sawPod},
		{list: func(ctx context.Context) (runtime.Object, error) { return budgets.List(ctx, metav1.ListOptions{}) }, watch: budgets.Watch, see: o.sawBudget},
		{list: func(ctx context.Context) (runtime.Object, error) { return all.List(ctx, metav1.ListOptions{}) }, watch: all.Watch, see: o.sawNode},
	} {
		s.o, s.known = o, map[types.UID]runtime.Object{}
		if err := s.begin(ctx); err != nil {
			t.Fatal(err)
		}
		go s.follow(ctx)
	}
	return o
}

// stream is one kind of objects, from a list on.
type stream struct {
	list    func(context.Context) (runtime.Object, error)
	watch   func(context.Context, metav1.ListOptions) (watch.Interface, error)
	see     func(watch.EventType, runtime.Object)
	o       *observer
	known   map[types.UID]runtime.Object
	version string
}

// begin takes a list in as one event.
func (s *stream) begin(ctx context.Context) error {
	list, err := s.list(ctx)
	if err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	head, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	s.version = head.GetResourceVersion()
	s.o.mu.Lock()
	defer s.o.mu.Unlock()
	s.o.lists++
	before := s.known
	s.known = map[types.UID]runtime.Object{}
	for _, item := range items {
		s.known[uidOf(item)] = item
	}
	for uid, was := range before {
		if s.known[uid] == nil {
			s.see(watch.Deleted, was)
		}
	}
	for _, item := range items {
		s.see(watch.Modified, item)
	}
	s.o.count()
	return nil
}

// follow watches until ctx ends; where the API server does not remember so far back,
// it lists.
func (s *stream) follow(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := s.watch(ctx, metav1.ListOptions{ResourceVersion: s.version, AllowWatchBookmarks: true})
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if !s.read(w) {
			for ctx.Err() == nil && s.begin(ctx) != nil {
				time.Sleep(20 * time.Millisecond)
			}
		}
		w.Stop()
	}
}

// read takes events in until the watch breaks, and says whether it can be resumed.
func (s *stream) read(w watch.Interface) bool {
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			return false
		}
		head, err := meta.Accessor(e.Object)
		if err != nil {
			return false
		}
		s.version = head.GetResourceVersion()
		if e.Type == watch.Bookmark {
			continue
		}
		s.o.mu.Lock()
		s.known[head.GetUID()] = e.Object
		if e.Type == watch.Deleted {
			delete(s.known, head.GetUID())
		}
		s.o.events++
		s.see(e.Type, e.Object)
		s.o.count()
		s.o.mu.Unlock()
	}
	return true
}

func uidOf(o runtime.Object) types.UID {
	head, err := meta.Accessor(o)
	if err != nil {
		return ""
	}
	return head.GetUID()
}

func (o *observer) sawPod(what watch.EventType, object runtime.Object) {
	p, ok := object.(*corev1.Pod)
	if !ok || p.Labels["app"] == "" {
		return
	}
	was := o.pods[p.UID]
	now := seenPod{app: p.Namespace + "/" + p.Labels["app"], node: p.Spec.NodeName, deleting: p.DeletionTimestamp != nil || what == watch.Deleted}
	now.healthy = !now.deleting && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	if was.healthy {
		o.healthy[now.app]--
	}
	if now.healthy {
		o.healthy[now.app]++
	}
	if now.deleting && now.node != "" {
		o.left[p.Namespace+"/"+p.Name] = now.node
	}
	o.pods[p.UID] = now
	if what == watch.Deleted {
		delete(o.pods, p.UID)
	}
}

func (o *observer) sawBudget(what watch.EventType, object runtime.Object) {
	b, ok := object.(*policyv1.PodDisruptionBudget)
	if !ok {
		return
	}
	if app := b.Namespace + "/" + b.Name; what == watch.Deleted {
		delete(o.demands, app)
	} else if b.Status.ExpectedPods > 0 {
		o.demands[app] = int(b.Status.DesiredHealthy)
	}
}

func (o *observer) sawNode(what watch.EventType, object runtime.Object) {
	n, ok := object.(*corev1.Node)
	if !ok {
		return
	}
	if what == watch.Deleted {
		delete(o.nodes, n.Name)
		return
	}
	kept := n.Spec.Unschedulable
	for _, text := range annotations.RequestStatuses(n.Annotations) {
		if s, ok := nodes.ParseStatus(text); ok && s.Phase.Holds() {
			kept = true
		}
	}
	o.nodes[n.Name] = seenNode{zone: n.Labels[corev1.LabelTopologyZone], kept: kept}
	if o.visit != nil {
		o.visit(n)
	}
}

// count is what is looked at after every event.
func (o *observer) count() {
	for app, demand := range o.demands {
		have := o.healthy[app]
		if least, seen := o.least[app]; !seen || have < least {
			o.least[app] = have
		}
		if have < demand {
			o.fault("budget "+app, "%d pods were healthy, its budget demands %d", have, demand)
		}
	}
	kept, zones := 0, map[string]int{}
	for _, n := range o.nodes {
		if n.kept {
			kept++
			zones[n.zone]++
		}
	}
	o.most = max(o.most, kept)
	if o.limits.nodes > 0 && kept > o.limits.nodes {
		o.fault("maxParallelOperations", "%d nodes were in maintenance at one time, allowed are %d", kept, o.limits.nodes)
	}
	for zone, n := range zones {
		o.zones[zone] = max(o.zones[zone], n)
		if o.limits.zone > 0 && zone != "" && n > o.limits.zone {
			o.fault("zone "+zone, "%d of its nodes were in maintenance at one time, allowed are %d", n, o.limits.zone)
		}
	}
}

func (o *observer) fault(kind, format string, args ...any) {
	if o.faults[kind] == "" {
		o.faults[kind] = time.Now().Format(time.TimeOnly) + " " + kind + ": " + fmt.Sprintf(format, args...)
	}
}

// said are the faults so far, which are forgotten with it.
func (o *observer) said() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, text := range o.faults {
		out = append(out, text)
	}
	o.faults = map[string]string{}
	slices.Sort(out)
	return out
}

// weather stands before a proxy: it counts what the agent asks for, and on a bad day
// answers some of it with an error, before or after the API server was asked.
type weather struct {
	*httptest.Server
	mu     sync.Mutex
	asked  map[string]int  // by verb and kind
	pods   map[string]bool // that the agent had leave, or tried to
	spoilt map[string]int  // by status
	bad    bool
	dice   *rand.Rand
}

func newWeather(t *testing.T, through http.Handler) *weather {
	w := &weather{asked: map[string]int{}, pods: map[string]bool{}, spoilt: map[string]int{}, dice: rand.New(rand.NewPCG(1, 2))}
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		status, after := w.forecast(req)
		if status == 0 {
			through.ServeHTTP(out, req)
			return
		}
		if after {
			through.ServeHTTP(httptest.NewRecorder(), req)
		}
		out.Header().Set("Content-Type", "application/json")
		if status == http.StatusTooManyRequests {
			out.Header().Set("Retry-After", "1")
		}
		out.WriteHeader(status)
		fmt.Fprintf(out, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":"","message":"bad weather"}`, status)
	}))
	t.Cleanup(w.CloseClientConnections)
	return w
}

// forecast says with what a request is answered instead, and whether it happens
// nevertheless.
func (w *weather) forecast(req *http.Request) (status int, after bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := req.Method + " " + kindOf(req)
	w.asked[kind]++
	if part := strings.Split(strings.Trim(req.URL.Path, "/"), "/"); req.Method != http.MethodGet && len(part) > 5 && part[4] == "pods" {
		w.pods[part[3]+"/"+part[5]] = true
	}
	if !w.bad {
		return 0, false
	}
	dice := w.dice.IntN(100)
	switch {
	case dice < 6:
		status = http.StatusTooManyRequests
	case dice < 10:
		status = http.StatusInternalServerError
	case dice < 13:
		status = http.StatusServiceUnavailable
	case dice < 17 && req.Method != http.MethodGet:
		status, after = http.StatusGatewayTimeout, true
	}
	if status != 0 {
		w.spoilt[strconv.Itoa(status)]++
	}
	return status, after
}

func kindOf(req *http.Request) string {
	path := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	at := 2 // api/v1/nodes
	if path[0] == "apis" {
		at = 3 // apis/policy/v1/poddisruptionbudgets
	}
	kind := path[min(len(path)-1, at)]
	for i, part := range path {
		if part == "namespaces" && len(path) > i+2 {
			kind = path[i+2]
		}
	}
	if path[len(path)-1] == "eviction" {
		return "eviction"
	}
	if req.URL.Query().Get("watch") != "" {
		return kind + " watch"
	}
	return kind
}

// tally is how often was asked for what since the last, and the sum.
func (w *weather) tally() (sum int, of map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of = w.asked
	w.asked = map[string]int{}
	for _, n := range of {
		sum += n
	}
	return sum, of
}

// Sizes of the fleet. Each app has a pod for each node, and its budget leaves a tenth.
const (
	fleetNodes, fleetReplicas  = 100, 100
	fleetZones, fleetZoneLimit = 5, 5
	fleetParallel              = 20
	playAll                    = "MAINT_TEST_ALL" // plays what takes minutes, too
)

// fleetApps is how many pods are on a node: thirty, as on a busy cluster, take too
// long to start for every day, where it is twelve.
func fleetApps() int {
	if os.Getenv(playAll) != "" {
		return 30
	}
	return 12
}

// wide is a cluster of a hundred nodes that is full of pods.
type wide struct {
	*lab
	*cluster.Cluster
	o       *observer
	weather *weather
}

func newWide(t *testing.T) *wide {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute)
	t.Cleanup(cancel)
	w := &wide{lab: &lab{T: t, ctx: ctx}}
	var err error
	dir := t.TempDir()
	agentBin, _, err := harness.Build(ctx, dir)
	w.must(err)
	w.Cluster, err = cluster.Start(ctx, cluster.Options{
		ControllerManager: true, Scheduler: true, Kwok: true, Nodes: fleetNodes,
		// Nodes that say nothing while the API server is away are not to be called lost.
		ControllerManagerArgs: []string{"--node-monitor-grace-period=10m"},
	})
	w.must(err)
	t.Cleanup(func() { _ = w.Cluster.Stop() })
	config := w.AdminConfig()
	w.admin, err = kubernetes.NewForConfig(config)
	w.must(err)
	w.must(harness.Install(ctx, config))
	w.must(harness.Configure(ctx, config, fmt.Sprintf("{nodes: {maxParallelOperations: %d, zoneLimit: %d}}", fleetParallel, fleetZoneLimit)))
	w.ns = w.Cluster.Namespace(t)
	own, err := w.ServiceAccountConfig(ctx, annotations.DefaultNamespace, "maint-agent")
	w.must(err)
	proxy, err := harness.NewProxy(own)
	w.must(err)
	t.Cleanup(proxy.CloseClientConnections)
	w.weather = newWeather(t, proxy.Server.Config.Handler)
	agent := proxy.Config(own)
	agent.Host = w.weather.URL
	path, err := w.KubeconfigFile("agent", agent)
	w.must(err)
	w.fill()
	w.agent, err = harness.StartAgent(agentBin, path, "--leader-elect=false")
	w.must(err)
	t.Cleanup(func() {
		if t.Failed() {
			lines := strings.Split(w.agent.Log(), "\n")
			for _, line := range lines[max(0, len(lines)-20):] {
				t.Log(line[:min(len(line), 300)])
			}
		}
		_ = w.agent.Stop()
	})
	return w
}

// fill labels the zones, creates all that runs, and waits until it does.
func (w *wide) fill() {
	w.Helper()
	for i := range fleetNodes {
		zone := fmt.Sprintf("zone-%d", i%fleetZones)
		w.label(fmt.Sprintf("node-%d", i), corev1.LabelTopologyZone, zone)
	}
	replicas := int32(fleetReplicas)
	for i := range fleetApps() {
		labels := map[string]string{"app": fmt.Sprintf("app-%d", i)}
		_, err := w.admin.AppsV1().Deployments(w.ns).Create(w.ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: labels["app"]},
			Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}}},
			}},
		}, metav1.CreateOptions{})
		w.must(err)
	}
	w.wait("all pods are Ready", 3*time.Minute, func() (bool, string) {
		list, err := w.admin.AppsV1().Deployments(w.ns).List(w.ctx, metav1.ListOptions{})
		w.must(err)
		ready := 0
		for _, d := range list.Items {
			ready += int(d.Status.ReadyReplicas)
		}
		return ready == fleetApps()*fleetReplicas, fmt.Sprintf("%d are", ready)
	})
	w.guard()
}

// guard gives each app its budget; before, it would be counted anew for every pod
// that starts.
func (w *wide) guard() {
	w.Helper()
	tenth := intstr.FromString("10%")
	for i := range fleetApps() {
		name := fmt.Sprintf("app-%d", i)
		_, err := w.admin.PolicyV1().PodDisruptionBudgets(w.ns).Create(w.ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &tenth, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
		}, metav1.CreateOptions{})
		w.must(err)
	}
	w.wait("all budgets are counted", 3*time.Minute, func() (bool, string) {
		list, err := w.admin.PolicyV1().PodDisruptionBudgets(w.ns).List(w.ctx, metav1.ListOptions{})
		w.must(err)
		full := 0
		for _, b := range list.Items {
			if b.Status.CurrentHealthy == fleetReplicas && b.Status.DesiredHealthy == fleetReplicas-fleetReplicas/10 {
				full++
			}
		}
		return full == fleetApps(), fmt.Sprintf("%d of %d", full, fleetApps())
	})
}

// wait is eventually with a limit of its own, and errors of a server that is being
// restarted are no end.
func (w *wide) wait(what string, limit time.Duration, holds func() (bool, string)) {
	w.Helper()
	over := time.After(limit)
	for {
		ok, now := holds()
		if ok {
			return
		}
		select {
		case <-over:
			w.Fatalf("%s: not within %s: %s", what, limit, now)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// phases are how the requests stand, by node.
func (w *wide) phases() map[string]nodes.Status {
	out := map[string]nodes.Status{}
	list, err := w.admin.CoreV1().Nodes().List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return out // the API server is being restarted
	}
	for _, n := range list.Items {
		if s, ok := nodes.ParseStatus(n.Annotations[annotations.StatusRequestPrefix+"os"]); ok {
			out[n.Name] = s
		}
	}
	return out
}

func among(all map[string]nodes.Status, phase nodes.Phase) []string {
	var out []string
	for name, s := range all {
		if s.Phase == phase {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// empty fails where a pod is left on a node that is drained.
func (w *wide) empty(name string) {
	w.Helper()
	if left := w.podsOn(name); len(left) > 0 {
		w.Errorf("%s is Ready, and these pods are on it: %v", name, left)
	}
}

// evicted is how many pods left since the last. The agent had them leave from nodes that
// were asked for and from no others; a ReplicaSet that made one too many, for an answer
// it did not get, takes away what it likes.
func (w *wide) evicted(asked []string) int {
	w.Helper()
	w.o.mu.Lock()
	defer w.o.mu.Unlock()
	w.weather.mu.Lock()
	defer w.weather.mu.Unlock()
	for pod, node := range w.o.left {
		switch {
		case slices.Contains(asked, node):
		case w.weather.pods[pod]:
			w.Errorf("the agent had pod %s leave %s, which nobody asked for", pod, node)
		default:
			w.Logf("pod %s left %s, by another hand", pod, node)
			delete(w.o.left, pod)
		}
	}
	n := len(w.o.left)
	w.o.left = map[string]string{}
	return n
}

// tell logs what a phase of the test cost, and fails where a request too many was made.
func (w *wide) tell(what string, evicted int, since time.Time, most float64) {
	w.Helper()
	sum, of := w.weather.tally()
	evictions := float64(of["POST eviction"]) / float64(max(evicted, 1))
	w.o.mu.Lock()
	least := fleetReplicas
	for _, n := range w.o.least {
		least = min(least, n)
	}
	w.Logf("%s: %d pods left in %s; %.2f evictions asked for a pod, %.2f requests in all; at most %d nodes in maintenance, %v by zone; at least %d of %d healthy; %d events, %d lists; %v",
		what, evicted, time.Since(since).Round(100*time.Millisecond), evictions, float64(sum)/float64(max(evicted, 1)), w.o.most, w.o.zones, least, fleetReplicas, w.o.events, w.o.lists, of)
	w.o.mu.Unlock()
	if evictions > most {
		w.Errorf("%s: %.2f evictions were asked for a pod, not more than %.2f are needed", what, evictions, most)
	}
	for _, fault := range w.o.said() {
		w.Errorf("%s: %s", what, fault)
	}
}

// A hundred nodes full of pods, every pod under a budget of a tenth. First
// twenty are asked for at once on a good day; eight of these lie in one zone. Then
// twenty-five more, on a bad one: the API server is lost in mid-drain, and an answer in
// seven is an error, some of them after what was asked for happened.
func TestTwentyOfAHundredNodesAreDrainedWithoutHarmToAnyBudget(t *testing.T) {
	begun := time.Now()
	log.SetOutput(io.Discard) // the proxy tells of each watch that breaks
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	w := newWide(t)
	t.Logf("%d pods on %d nodes run after %s", fleetApps()*fleetReplicas, fleetNodes, time.Since(begun).Round(100*time.Millisecond))
	w.o = observe(w.ctx, t, w.admin, w.ns)
	w.o.mu.Lock()
	w.o.limits.nodes, w.o.limits.zone = fleetParallel, fleetZoneLimit
	w.o.mu.Unlock()
	w.wait("the agent looks", 20*time.Second, func() (bool, string) { return w.agent.Address() != "", "" })

	var first []string
	for i := range 8 {
		first = append(first, fmt.Sprintf("node-%d", i*fleetZones)) // all in zone-0
	}
	for i := 1; len(first) < 20; i++ {
		if i%fleetZones != 0 {
			first = append(first, fmt.Sprintf("node-%d", i))
		}
	}
	w.weather.tally()
	start := time.Now()
	for _, name := range first {
		w.request(name, "os", "{}")
	}
	w.wait("all that the zone limit allows are Ready", 3*time.Minute, func() (bool, string) {
		all := w.phases()
		ready := among(all, nodes.Ready)
		return len(ready) == 17, fmt.Sprintf("%d are", len(ready))
	})
	all := w.phases()
	for _, name := range among(all, nodes.Pending) {
		if !strings.Contains(all[name].Reason, "zone") {
			t.Errorf("%s waits and says %q", name, all[name].Reason)
		}
	}
	w.drained(first, 3*time.Minute)
	w.tell("a good day", w.evicted(first), start, 1.2)

	var second []string
	for i := 50; len(second) < 25; i++ {
		second = append(second, fmt.Sprintf("node-%d", i))
	}
	start = time.Now()
	for _, name := range second {
		w.request(name, "os", "{}")
	}
	w.wait("drains are under way", 30*time.Second, func() (bool, string) {
		w.o.mu.Lock()
		defer w.o.mu.Unlock()
		return len(w.o.left) > 60, fmt.Sprint(len(w.o.left))
	})
	w.weather.mu.Lock()
	w.weather.bad = true
	w.weather.mu.Unlock()
	down := time.Now()
	w.must(w.RestartAPIServer(w.ctx))
	t.Logf("the API server was away for %s", time.Since(down).Round(100*time.Millisecond))
	w.drained(second, 3*time.Minute)
	w.weather.mu.Lock()
	spoilt := fmt.Sprint(w.weather.spoilt)
	w.weather.mu.Unlock()
	w.tell("a bad day ("+spoilt+" spoilt)", w.evicted(second), start, 2)
	t.Logf("in all %s", time.Since(begun).Round(100*time.Millisecond))
}

// drained plays the requestor: it takes each node that is Ready, and gives it back,
// until nothing is left of any request.
func (w *wide) drained(asked []string, limit time.Duration) {
	w.Helper()
	served := map[string]bool{}
	w.wait("all are served", limit, func() (bool, string) {
		all := w.phases()
		for _, name := range among(all, nodes.Ready) {
			if !served[name] {
				served[name] = true
				w.empty(name)
				w.release(name, "os")
			}
		}
		return len(served) == len(asked) && len(all) == 0, fmt.Sprintf("%d of %d were Ready, %d are Draining, %d Pending", len(served), len(asked), len(among(all, nodes.Draining)), len(among(all, nodes.Pending)))
	})
	for _, name := range asked {
		n := w.node(name)
		if on := annotations.OfNode(n.Annotations); n.Spec.Unschedulable || len(on) > 0 {
			w.Errorf("%s is left with unschedulable=%v %v", name, n.Spec.Unschedulable, on)
		}
	}
}
