package monitoring

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/functiontest"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// asked is the variable without which no cluster is started here.
const asked = "MAINT_MONITORING"

// patience is for things that take seconds; a guess for a busy machine.
const patience = 90 * time.Second

// notProvoked are the alerts that no fault of a test brings about: promtool's tests alone
// show them.
func notProvoked() []string {
	return []string{"MaintInternalErrors"} // it takes a bug of the agent
}

// lab is a cluster with an agent, and a Prometheus that scrapes it.
type lab struct {
	*testing.T
	ctx        context.Context
	cluster    *cluster.Cluster
	admin      kubernetes.Interface
	ns         string
	bin        string
	agent      *harness.Process
	prometheus *prometheus
}

func newLab(t *testing.T) *lab {
	t.Helper()
	if os.Getenv(asked) == "" {
		t.Skipf("%s is not set: `make monitoring-test` starts a cluster, an agent and a Prometheus", asked)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute) // the commands are built first, perhaps from nothing
	t.Cleanup(cancel)
	l := &lab{T: t, ctx: ctx, ns: "shop"}
	var err error
	l.bin, _, err = harness.Build(ctx, t.TempDir())
	l.must(err)
	l.cluster, err = cluster.Start(ctx, cluster.Options{ControllerManager: true, Scheduler: true, Kwok: true, Nodes: 2})
	l.must(err)
	t.Cleanup(func() { _ = l.cluster.Stop() })
	l.admin, err = kubernetes.NewForConfig(l.cluster.AdminConfig())
	l.must(err)
	l.must(harness.Install(ctx, l.cluster.AdminConfig()))
	_, err = l.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.ns}}, metav1.CreateOptions{})
	l.must(err)
	l.prometheus = startPrometheus(t)
	l.launch()
	return l
}

// launch starts an agent, and has Prometheus scrape it instead of the one before.
func (l *lab) launch() {
	l.Helper()
	var err error
	l.agent, err = harness.StartInstalled(l.ctx, l.cluster, annotations.DefaultNamespace, l.bin)
	l.must(err)
	l.Cleanup(l.agent.Kill)
	l.eventually("the agent says where it serves", func() (bool, string) { return l.agent.Address() != "", l.agent.Log() })
	l.prometheus.scrapes(l.agent.Address())
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// eventually asks again until it holds; the last answer is the failure's text.
func (l *lab) eventually(what string, holds func() (bool, string)) {
	l.Helper()
	limit := time.After(patience)
	for {
		ok, now := holds()
		if ok {
			return
		}
		select {
		case <-l.ctx.Done():
			l.Fatalf("%s: %s: %v", what, now, l.ctx.Err())
		case <-limit:
			l.Fatalf("%s: not within %s: %s", what, patience, now)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// fires waits for an alert with a label of that value.
func (l *lab) fires(alert, label, value string) {
	l.Helper()
	l.eventually(alert+" fires", func() (bool, string) {
		told := l.prometheus.alerts()
		return slices.ContainsFunc(told, func(a active) bool {
			return a.State == "firing" && a.Labels["alertname"] == alert && a.Labels[label] == value
		}), fmt.Sprintf("%v; the agent says\n%s", told, tail(l.agent.Log()))
	})
	l.Logf("%s fired", alert)
}

func (l *lab) quiet(alert string) {
	l.Helper()
	l.eventually(alert+" ends", func() (bool, string) {
		told := l.prometheus.alerts()
		return !slices.ContainsFunc(told, func(a active) bool { return a.Labels["alertname"] == alert }), fmt.Sprint(told)
	})
}

func tail(log string) string {
	lines := strings.Split(log, "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

// document creates a ConfigMap of a kind of ours from a spec, with annotations.
func (l *lab) document(kind, key, name, kindWord, spec string, with map[string]string) {
	l.Helper()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{annotations.LabelKind: kind}, Annotations: with},
		Data:       map[string]string{key: "apiVersion: maint.dev/v1alpha1\nkind: " + kindWord + "\nspec: " + spec + "\n"},
	}
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, cm, metav1.CreateOptions{})
	l.must(err)
}

func (l *lab) plan(name, spec string) {
	l.Helper()
	l.document(annotations.KindPlan, annotations.DataPlan, name, "Plan", spec, nil)
}

func (l *lab) policy(name, spec string, with map[string]string) {
	l.Helper()
	l.document(annotations.KindPolicy, annotations.DataPolicy, name, "Policy", spec, with)
}

func (l *lab) patch(name, body string) {
	l.Helper()
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	l.must(err)
}

// runner gives maint-runner what the plans of this test need, but for the gates.
func (l *lab) runner() {
	l.Helper()
	l.must(harness.Runner(l.ctx, l.admin, l.ns,
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments", "deployments/scale"}, Verbs: []string{"get", "list", "watch", "patch", "update"}},
		rbacv1.PolicyRule{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "secrets"}, Verbs: []string{"get", "list", "watch"}}))
}

func (l *lab) deployment(name string) {
	l.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}}}},
	}}
	_, err := l.admin.AppsV1().Deployments(l.ns).Create(l.ctx, d, metav1.CreateOptions{})
	l.must(err)
	l.eventually(name+" is ready", func() (bool, string) {
		is, err := l.admin.AppsV1().Deployments(l.ns).Get(l.ctx, name, metav1.GetOptions{})
		return err == nil && is.Status.ReadyReplicas == 1, fmt.Sprint(err)
	})
}

// Each alert fires by a fault of its own, with its `for` taken away, and what the
// dashboard asks is answered.
func TestEachAlertFiresByARealFault(t *testing.T) {
	l := newLab(t)
	began := time.Now()
	l.shows(`maint_run_duration_seconds_count{result="Failed"} == 0`)
	l.runner()
	l.deployment("web")
	l.deployment("batch")

	l.windows()
	l.plan("fails", "{triggers: {onCreate: true}, steps: [{name: s, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: gone}, replicas: 1}}]}")
	l.plan("broken", "{steps: []}")
	l.policy("shut", "{strategy: Restrictive}", nil)
	slot := time.Now().Add(4 * time.Second).UTC().Format(time.RFC3339)
	l.plan("late", fmt.Sprintf("{policies: [{name: shut}], startDeadline: 2s, triggers: {schedules: [{at: %q}]}, steps: [{name: s, type: suspend, properties: {duration: 1s}}]}", slot))
	l.policy("lost", "{strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{days: [Sat], start: \"22:00\", end: \"23:00\"}], exclude: [{calendar: {name: nowhere}}]}}", nil)
	l.policy("gated", "{strategy: Restrictive, serviceAccountName: maint-runner, gates: [{apiVersion: v1, kind: ReplicationController, name: held, knob: {path: /spec/minReadySeconds, closed: 5, open: 0}}]}", nil)
	blocked, given := l.blocksDrain()
	l.sleeps()
	l.callsAFunction()

	l.fires("MaintRunFailed", "object", "fails")
	l.fires("MaintPlanInvalid", "kind", "plan")
	l.fires("MaintSlotMissed", "object", "late")
	l.fires("MaintPolicyNotReady", "object", "lost")
	l.fires("MaintPolicyNotEnforced", "object", "gated")
	l.fires("MaintDrainBlocked", "namespace", "")
	l.fires("MaintRestoreFailed", "object", "nights")
	l.fires("MaintAsleepPastWake", "object", "nights")
	l.fires("MaintChangePendingWindowCloses", "object", "asks")
	l.fires("MaintChangePendingWindowCloses", "object", blocked)
	l.fires("MaintWindowClosesWithWorkLeft", "object", "works")
	l.fires("MaintWindowClosesWithWorkLeft", "object", given)
	l.fires("MaintFunctionCertificateExpires", "side", "server")
	l.must(harness.Configure(l.ctx, l.cluster.AdminConfig(), "{nodes: {maxParallelOperations: -1}}"))
	l.fires("MaintConfigInvalid", "job", "maint-agent")
	l.must(harness.Configure(l.ctx, l.cluster.AdminConfig(), "{}"))
	l.quiet("MaintConfigInvalid")
	l.shows(`maint:runs_ended:increase1d{result="Failed"} > 0`) // the first one counts, too
	l.dashboard()
	l.shown(l.picture(began))

	l.agent.Kill()
	l.fires("MaintAgentAbsent", "severity", "critical")
	l.somebodyElseLeads()
	l.launch()
	l.quiet("MaintAgentAbsent")
	l.fires("MaintAgentNotLeading", "job", "maint-agent")
	l.coversAll()
}

// closing is a stanza by which change is permitted for ten minutes more.
func closing() map[string]string {
	return map[string]string{annotations.ChangeStrategy: "PermissiveUntil", annotations.PermissiveUntil: time.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339)}
}

// windows are one that closes while a run asks for an approval, and one while a run is at work.
func (l *lab) windows() {
	l.Helper()
	l.policy("closes", "{strategy: Restrictive}", closing())
	l.plan("asks", "{policies: [{name: closes}], requiresApproval: true, triggers: {onCreate: true}, steps: [{name: s, type: suspend, properties: {duration: 1s}}]}")
	l.plan("works", "{policies: [{name: closes}], triggers: {onCreate: true}, steps: [{name: s, type: suspend, properties: {duration: 30m}}]}")
}

// blocksDrain asks for a node whose only pod no budget ever lets go, and for the other one
// without a drain; the windows of both close soon.
func (l *lab) blocksDrain() (blocked, given string) {
	l.Helper()
	none := intstr.FromInt32(0)
	_, err := l.admin.PolicyV1().PodDisruptionBudgets(l.ns).Create(l.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}, metav1.CreateOptions{})
	l.must(err)
	pods, err := l.admin.CoreV1().Pods(l.ns).List(l.ctx, metav1.ListOptions{LabelSelector: "app=web"})
	l.must(err)
	if len(pods.Items) == 0 || pods.Items[0].Spec.NodeName == "" {
		l.Fatal("the pod of web has no node")
	}
	blocked = pods.Items[0].Spec.NodeName
	all, err := l.admin.CoreV1().Nodes().List(l.ctx, metav1.ListOptions{})
	l.must(err)
	for _, n := range all.Items {
		if n.Name != blocked {
			given = n.Name
		}
	}
	l.ask(blocked, `{"drain":{}}`)
	l.ask(given, `{"drain":false}`)
	return blocked, given
}

// ask requests a node whose window closes soon.
func (l *lab) ask(node, request string) {
	l.Helper()
	with := closing()
	with[annotations.RequestPrefix+"os"] = request
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": with}})
	l.must(err)
	_, err = l.admin.CoreV1().Nodes().Patch(l.ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	l.must(err)
}

// sleeps has a HibernatePlan sleep whose restore data loses its signature: it cannot wake.
func (l *lab) sleeps() {
	l.Helper()
	l.document(annotations.KindHibernatePlan, annotations.DataPlan, "nights", "HibernatePlan",
		`{schedule: {offHours: [{start: "03:00", end: "03:30"}]}, targets: [{name: apps, type: workload, parameters: {kinds: [Deployment], selector: {matchLabels: {app: batch}}}}]}`,
		map[string]string{annotations.HoldState: "asleep"})
	l.eventually("batch sleeps", func() (bool, string) {
		cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, "nights", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return cm.Annotations[annotations.StatusPhase] == "Hibernated", fmt.Sprint(cm.Annotations)
	})
	l.patch(annotations.RestoreName("nights", "apps"), fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, annotations.StatusSignature))
	l.patch("nights", fmt.Sprintf(`{"metadata":{"annotations":{%q:"awake"}}}`, annotations.HoldState))
}

// callsAFunction has a plan call one whose certificate ends within the day.
func (l *lab) callsAFunction() {
	l.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	l.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fn"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	l.must(err)
	endpoint := functiontest.Serve(l.T, func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		return &fnv1.RunFunctionResponse{}, nil
	}, grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})))
	_, err = l.admin.CoreV1().Secrets(l.ns).Create(l.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "fn"}, Data: map[string][]byte{"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})},
	}, metav1.CreateOptions{})
	l.must(err)
	l.plan("calls", fmt.Sprintf("{triggers: {onCreate: true}, steps: [{name: s, type: function, properties: {endpoint: %q, tls: {secretName: fn}}}]}", endpoint))
}

// mayBeEmpty are the queries of the dashboard, by panel and letter, that show nothing in this
// story, and why.
func mayBeEmpty() map[string]string {
	return map[string]string{
		"Drains A": "the only drain is blocked, so that none ends",
	}
}

// dashboard asks what the panels ask, and each query shows something. A zero that a panel adds
// where there is no series is none.
func (l *lab) dashboard() {
	l.Helper()
	may := mayBeEmpty()
	for _, p := range readDashboard(l.T).Panels {
		for _, one := range p.Targets {
			name, expr := p.Title+" "+one.RefID, strings.TrimSuffix(filled().Replace(one.Expr), " or vector(0)")
			if _, empty := may[name]; !empty {
				l.shows(expr)
				continue
			}
			if _, err := l.prometheus.query(expr); err != nil {
				l.Errorf("%s: %v", expr, err)
			}
			delete(may, name)
		}
	}
	for name := range may {
		l.Errorf("the dashboard has no query %s", name)
	}
	for _, q := range readRules(l.T).queries() {
		if _, err := l.prometheus.query(q); err != nil {
			l.Errorf("%s: %v", q, err)
		}
	}
}

// shows waits until an expression has a series.
func (l *lab) shows(expr string) {
	l.Helper()
	l.eventually("there is "+expr, func() (bool, string) {
		n, err := l.prometheus.query(expr)
		return err == nil && n > 0, fmt.Sprint(err)
	})
}

// shown sees that the dashboard shows what is wrong here.
func (l *lab) shown(picture string) {
	l.Helper()
	l.keep(picture)
	for _, text := range []string{
		"<td>failed</td><td>namespace=" + l.ns + "</td><td>object=fails</td>", "<td>missed</td><td>namespace=" + l.ns + "</td><td>object=late</td>",
		"object=nights", "object=gated", `<div class="stat" style="color:green">1</div>`, `<div class="stat" style="color:red">1</div>`, "</span>Failed<",
	} {
		if !strings.Contains(picture, text) {
			l.Errorf("the dashboard does not show %s", text)
		}
	}
}

// somebodyElseLeads has the Lease renewed by nobody that is scraped.
func (l *lab) somebodyElseLeads() {
	l.Helper()
	leases := l.admin.CoordinationV1().Leases(annotations.DefaultNamespace)
	hold := func(ctx context.Context) error {
		is, err := leases.Get(ctx, annotations.LeaseName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now := metav1.NewMicroTime(time.Now())
		is.Spec = coordinationv1.LeaseSpec{HolderIdentity: new("somebody-else"), LeaseDurationSeconds: new(int32(60)), AcquireTime: &now, RenewTime: &now}
		_, err = leases.Update(ctx, is, metav1.UpdateOptions{})
		return err
	}
	l.must(hold(l.ctx))
	ctx, cancel := context.WithCancel(l.ctx)
	l.Cleanup(cancel)
	go func() {
		for ctx.Err() == nil {
			_ = hold(ctx)
			time.Sleep(time.Second)
		}
	}()
}

// coversAll says which alerts were never seen to fire, of those that can be provoked.
func (l *lab) coversAll() {
	l.Helper()
	for _, a := range readRules(l.T).alerts() {
		if !l.prometheus.fired[a.Alert] && !slices.Contains(notProvoked(), a.Alert) {
			l.Errorf("%s was not provoked", a.Alert)
		}
	}
}
