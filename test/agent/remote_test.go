package agent_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
)

// elsewhere is another cluster, which all tests of them share.
var elsewhere otherCluster //nolint:gochecknoglobals // as world

type otherCluster struct {
	once    sync.Once
	err     error
	cluster *cluster.Cluster
	admin   kubernetes.Interface
}

func (o *otherCluster) start() error {
	o.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if o.cluster, o.err = cluster.Start(ctx, cluster.Options{}); o.err == nil {
			o.admin, o.err = kubernetes.NewForConfig(o.cluster.AdminConfig())
		}
	})
	return o.err
}

func (o *otherCluster) stop() {
	if o.cluster != nil {
		_ = o.cluster.Stop()
	}
}

// remoteLab is a lab with a namespace of the same name on another cluster.
type remoteLab struct {
	*lab
	there kubernetes.Interface
	line  *line
}

func newRemoteLab(t *testing.T) *remoteLab {
	t.Helper()
	l := newLab(t)
	l.must(elsewhere.start())
	to, err := url.Parse(elsewhere.cluster.AdminConfig().Host)
	l.must(err)
	r := &remoteLab{lab: l, there: elsewhere.admin, line: newLine(t, to.Host)}
	r.namespace(l.ns)
	return r
}

// readsKubeconfig is the one right that a plan's own account needs.
func readsKubeconfig() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"stg"}, Verbs: []string{"get"}}
}

// scales are the rights of the other cluster's account.
func scales() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{deploymentRights(), {APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"get", "patch"}}}
}

func (r *remoteLab) namespace(ns string) {
	r.Helper()
	_, err := r.there.CoreV1().Namespaces().Create(r.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
	r.must(err)
}

// token is a token of an account of the other cluster, with some rights there.
func (r *remoteLab) token(account string, rules ...rbacv1.PolicyRule) string {
	r.Helper()
	_, err := r.there.CoreV1().ServiceAccounts(r.ns).Create(r.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	r.must(err)
	_, err = r.there.RbacV1().Roles(r.ns).Create(r.ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: account}, Rules: rules}, metav1.CreateOptions{})
	r.must(err)
	_, err = r.there.RbacV1().RoleBindings(r.ns).Create(r.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: r.ns}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
	}, metav1.CreateOptions{})
	r.must(err)
	config, err := elsewhere.cluster.ServiceAccountConfig(r.ctx, r.ns, account)
	r.must(err)
	return config.BearerToken
}

// secret writes the Secret with the kubeconfig.
func (r *remoteLab) secret(kubeconfig string) {
	r.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "stg"}, StringData: map[string]string{"kubeconfig": kubeconfig}}
	_, err := r.admin.CoreV1().Secrets(r.ns).Create(r.ctx, s, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = r.admin.CoreV1().Secrets(r.ns).Update(r.ctx, s, metav1.UpdateOptions{})
	}
	r.must(err)
}

// kubeconfig reaches the other cluster over the line, with a token.
func (r *remoteLab) kubeconfig(token string) string {
	r.Helper()
	config := &rest.Config{Host: "https://" + r.line.address, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: elsewhere.cluster.AdminConfig().CAData}}
	return r.kubeconfigOf(config)
}

// kubeconfigOf is a configuration as a kubeconfig.
func (l *lab) kubeconfigOf(config *rest.Config) string {
	l.Helper()
	l.must(world.start()) // whose folder it is written to
	path, err := world.cluster.KubeconfigFile(l.ns, config)
	l.must(err)
	text, err := os.ReadFile(path)
	l.must(err)
	return string(text)
}

// connector writes a K8SCluster.
func (r *remoteLab) connector() {
	r.Helper()
	text := "apiVersion: maint.dev/v1alpha1\nkind: K8SCluster\nspec: {k8s: {kubeconfigRef: {name: stg}}}\n"
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stg", Labels: map[string]string{annotations.LabelKind: annotations.KindConnector}}, Data: map[string]string{annotations.DataConnector: text}}
	_, err := r.admin.CoreV1().ConfigMaps(r.ns).Create(r.ctx, cm, metav1.CreateOptions{})
	r.must(err)
}

// orders is a Deployment of 3 on each of the two clusters.
func (r *remoteLab) orders() {
	r.Helper()
	here := r.deployment("orders", 3)
	there := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "orders"}, Spec: here.Spec}
	_, err := newDeployment(r.ctx, r.there, r.ns, there)
	r.must(err)
}

func (r *remoteLab) sizeOn(of kubernetes.Interface) int32 {
	r.Helper()
	d, err := of.AppsV1().Deployments(r.ns).Get(r.ctx, "orders", metav1.GetOptions{})
	r.must(err)
	return *d.Spec.Replicas
}

// line is a connection to a server that can be cut.
type line struct {
	address, to string
	mu          sync.Mutex
	listener    net.Listener
	open        []net.Conn
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	l := &line{to: to, address: "127.0.0.1:0"}
	if err := l.mend(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.cut)
	return l
}

// mend has it answer again at the same address.
func (l *line) mend() error {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", l.address)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener, l.address = listener, listener.Addr().String()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go l.forward(conn)
		}
	}()
	return nil
}

func (l *line) forward(conn net.Conn) {
	through, err := new(net.Dialer).DialContext(context.Background(), "tcp", l.to)
	if err != nil {
		_ = conn.Close()
		return
	}
	l.mu.Lock()
	l.open = append(l.open, conn, through)
	l.mu.Unlock()
	go func() {
		_, _ = io.Copy(through, conn)
		_ = through.Close()
	}()
	_, _ = io.Copy(conn, through)
	_ = conn.Close()
}

// cut ends all that goes over it, and lets nothing in.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.listener.Close()
	for _, conn := range l.open {
		_ = conn.Close()
	}
	l.open = nil
}

const elsewhereStory = `
steps:
- name: away
  type: step-group
  connectorRef: {kind: K8SCluster, name: stg}
  properties:
    steps:
    - {name: healthy, type: health-check, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}}}
    - {name: mark, type: patch-object, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, patchType: merge, patch: {metadata: {annotations: {example.org/by: "${run.name}"}}}}}
    - {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0, restoreAfter: true}}
    - {name: hold, type: wait, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, until: "object.metadata.?annotations['go'].orValue('') == 'on'"}}
- name: each
  type: for-each
  connectorRef: {kind: K8SCluster, name: stg}
  properties:
    apiVersion: apps/v1
    kind: Deployment
    steps:
    - {name: tell, type: webhook, properties: {url: "HOOK/each/${each.metadata.annotations['go']}"}}
- name: see
  type: webhook
  properties: {url: "HOOK/end"}
`

// goOn lets the plan's wait go on.
func (r *remoteLab) goOn() {
	r.Helper()
	_, err := r.there.AppsV1().Deployments(r.ns).Patch(r.ctx, "orders", types.MergePatchType, []byte(`{"metadata":{"annotations":{"go":"on"}}}`), metav1.PatchOptions{})
	r.must(err)
}

func TestStepsWorkOnAnotherClusterWithItsRightsAlone(t *testing.T) {
	r := newRemoteLab(t)
	r.runner(readsKubeconfig()) // and nothing else: not even to see a Deployment
	r.orders()
	r.connector()
	r.secret(r.kubeconfig(r.token("maint", scales()...)))
	r.plan("far", elsewhereStory)
	r.seen("far")
	r.trigger("far", "1")
	r.running("far", "away/hold")
	if here, there := r.sizeOn(r.admin), r.sizeOn(r.there); here != 3 || there != 0 {
		t.Errorf("there are %d replicas here and %d there, want 3 and 0", here, there)
	}
	r.goOn()
	end := r.succeeded("far")
	if got := r.sizeOn(r.there); got != 3 {
		t.Errorf("%d replicas were put back, want 3", got)
	}
	rec := recordOf(end.journal, "away/down")
	if len(rec.Changed) == 0 || rec.Changed[0].Cluster != "stg" || rec.Changed[0].Name != "orders" || !strings.HasPrefix(rec.Message, "on K8SCluster stg: ") {
		t.Errorf("what was changed is %+v: %s", rec.Changed, rec.Message)
	}
	if got := r.hooks.Keys("/" + r.ns + "/each/on"); len(got) != 1 {
		t.Errorf("the loop saw the objects of the other cluster %d times", len(got))
	}
	d, err := r.there.AppsV1().Deployments(r.ns).Get(r.ctx, "orders", metav1.GetOptions{})
	r.must(err)
	if d.Annotations["example.org/by"] != end.run.Name {
		t.Errorf("it was marked %v", d.Annotations)
	}
	r.expect(r.maint("describe", end.run.Name), 0, "Deployment/orders on K8SCluster stg: ")
}

// patched is a plan of one step on the other cluster.
const patched = `
steps:
- {name: patch, type: patch-object, connectorRef: {kind: K8SCluster, name: stg}, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, patchType: merge, patch: {metadata: {labels: {a: b}}}}}
`

func TestAClusterThatMayNotBeReachedIsNamedWithWhatIsMissing(t *testing.T) {
	reads := []rbacv1.PolicyRule{deploymentRightsWithout("patch")}
	for name, c := range map[string]struct {
		rights  []rbacv1.PolicyRule // of the plan's account
		secret  func(r *remoteLab)
		message []string
	}{
		"the other cluster's account may not":        {rights: []rbacv1.PolicyRule{readsKubeconfig(), deploymentRights()}, secret: func(r *remoteLab) { r.secret(r.kubeconfig(r.token("maint", reads...))) }, message: []string{"on K8SCluster stg: the account of K8SCluster stg may not patch deployments.apps", `:maint" cannot patch resource`}},
		"the plan's account may not read the Secret": {rights: []rbacv1.PolicyRule{deploymentRights()}, secret: func(r *remoteLab) { r.secret(r.kubeconfig(r.token("maint", scales()...))) }, message: []string{`maint-runner may not get secrets "stg"`, "kubeconfig of K8SCluster stg"}},
		"there is no Secret":                         {rights: []rbacv1.PolicyRule{readsKubeconfig()}, secret: func(*remoteLab) {}, message: []string{"K8SCluster stg: the Secret stg, which holds its kubeconfig, does not exist"}},
		"a kubeconfig that runs a program": {rights: []rbacv1.PolicyRule{readsKubeconfig()}, secret: func(r *remoteLab) {
			r.secret(strings.Replace(r.kubeconfig("t"), "    token: t\n", "    exec: {apiVersion: client.authentication.k8s.io/v1, command: id, interactiveMode: Never}\n", 1))
		}, message: []string{"its user has exec, which is not accepted"}},
		"an address that the outbound rules refuse": {rights: []rbacv1.PolicyRule{readsKubeconfig()}, secret: func(r *remoteLab) {
			r.secret(strings.Replace(r.kubeconfig("t"), r.line.address, "169.254.169.254:443", 1))
		}, message: []string{"does not allow the address", "metadata services are not called"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemoteLab(t)
			r.runner(c.rights...)
			r.orders()
			r.connector()
			c.secret(r)
			r.plan("far", patched)
			r.seen("far")
			r.trigger("far", "1")
			end := r.ended("far", 1)[0]
			for _, part := range c.message {
				if end.journal.Phase != run.Failed || !strings.Contains(end.journal.Message+recordOf(end.journal, "patch").Message, part) {
					t.Errorf("it ended %s: %s\n%s\nwant %s", end.journal.Phase, end.journal.Message, recordOf(end.journal, "patch").Message, part)
				}
			}
			for _, of := range []kubernetes.Interface{r.admin, r.there} {
				if d, err := of.AppsV1().Deployments(r.ns).Get(r.ctx, "orders", metav1.GetOptions{}); err != nil || d.Labels["a"] != "" {
					t.Errorf("%v: it was patched", err)
				}
			}
		})
	}
}

// A connector belongs to the namespace of those who name it.
func TestAPlanWithoutItsConnectorIsInvalidUntilItIsThere(t *testing.T) {
	r := newRemoteLab(t)
	other := &remoteLab{lab: r.beside(), there: r.there, line: r.line}
	other.connector()
	r.runner(readsKubeconfig())
	r.plan("far", patched)
	r.eventually("the plan is refused", func() (bool, string) {
		got := r.seen("far").Annotations[annotations.StatusMessage]
		return strings.Contains(got, "there is no connector stg of kind K8SCluster in namespace "+r.ns), got
	})
	r.connector()
	r.eventually("the plan is taken", func() (bool, string) {
		got := r.seen("far").Annotations
		return got[annotations.StatusPhase] == "Idle", fmt.Sprint(got)
	})
}

// The credentials are replaced, and the old ones end, while a step waits.
func TestCredentialsThatAreReplacedCountAtOnce(t *testing.T) {
	r := newRemoteLab(t)
	r.runner(readsKubeconfig())
	r.orders()
	r.connector()
	r.secret(r.kubeconfig(r.token("first", scales()...)))
	r.plan("far", elsewhereStory)
	r.seen("far")
	r.trigger("far", "1")
	r.running("far", "away/hold")
	r.secret(r.kubeconfig(r.token("second", scales()...)))
	r.must(r.there.CoreV1().ServiceAccounts(r.ns).Delete(r.ctx, "first", metav1.DeleteOptions{}))
	r.goOn()
	r.succeeded("far")
	if got := r.sizeOn(r.there); got != 3 {
		t.Errorf("%d replicas were put back, want 3", got)
	}
}

// What cannot be reached is waited for as long as the step may take, and what was changed
// there is put back when it answers again.
func TestAClusterThatIsDownIsWaitedFor(t *testing.T) {
	r := newRemoteLab(t)
	r.runner(readsKubeconfig())
	r.orders()
	r.connector()
	r.secret(r.kubeconfig(r.token("maint", scales()...)))
	r.plan("far", elsewhereStory)
	r.plan("short", strings.Replace(patched, "name: patch,", "name: patch, timeout: 3s,", 1))
	r.seen("far")
	r.seen("short")
	r.trigger("far", "1")
	r.running("far", "away/hold")
	r.line.cut()
	r.goOn()
	r.trigger("short", "1")
	end := r.ended("short", 1)[0]
	if rec := recordOf(end.journal, "patch"); end.journal.Phase != run.Failed || rec.Reason != "Timeout" {
		t.Errorf("it ended %s: %s: %s", end.journal.Phase, rec.Reason, rec.Message)
	}
	if rec := recordOf(r.runs("far")[0].journal, "away/hold"); rec.Phase != run.StepRunning {
		t.Errorf("the wait is %s: %s", rec.Phase, rec.Message)
	}
	r.must(r.line.mend())
	r.succeeded("far")
	if got := r.sizeOn(r.there); got != 3 {
		t.Errorf("%d replicas were put back, want 3", got)
	}
}

// The agent dies at its writes around what it does on the other cluster.
func TestAKillAroundAStepOnAnotherClusterRepeatsNothing(t *testing.T) {
	x, r := newFarCrashes(t)
	for _, lost := range []bool{false, true} {
		for n := 1; ; n += strideOfCrashes(5) {
			r.ns = fmt.Sprintf("far-%d-%t", n, lost)
			if where := r.killedAt(x, n, lost); where == "" || t.Failed() {
				break
			}
		}
	}
}

const farStory = `
steps:
- {name: down, type: scale, connectorRef: {kind: K8SCluster, name: stg}, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0, restoreAfter: true}}
- {name: mark, type: label, connectorRef: {kind: K8SCluster, name: stg}, properties: {operation: add, labels: {a: b}, object: {apiVersion: apps/v1, kind: Deployment, name: orders}}}
`

func (r *remoteLab) killedAt(x *crashes, n int, lost bool) (where string) {
	r.bothNamespaces()
	r.orders()
	r.connector()
	r.secret(r.kubeconfig(r.token("maint", scales()...)))
	r.plan("far", farStory)
	where = r.deathAt(x, n, lost)
	d, err := r.there.AppsV1().Deployments(r.ns).Get(r.ctx, "orders", metav1.GetOptions{})
	r.must(err)
	if *d.Spec.Replicas != 3 || d.Labels["a"] != "b" {
		r.Errorf("killed at %s: %d replicas, labels %v", where, *d.Spec.Replicas, d.Labels)
	}
	return where
}

// newFarCrashes are crashes around what is done on the other cluster.
func newFarCrashes(t *testing.T) (*crashes, *remoteLab) {
	t.Helper()
	x := newCrashes(t)
	r := &remoteLab{lab: &lab{T: t, ctx: x.ctx, admin: x.admin, ns: "home", hooks: x.hooks}}
	r.must(elsewhere.start())
	r.there = elsewhere.admin
	to, err := url.Parse(elsewhere.cluster.AdminConfig().Host)
	r.must(err)
	r.line = newLine(t, to.Host)
	go r.kubelets()
	return x, r
}

// kubelets finish what is marked as deleted on the other cluster, as those of real nodes do: an API
// server that is left between its mark on a pod and the deletion does not go on by itself.
func (r *remoteLab) kubelets() {
	for r.ctx.Err() == nil {
		w, err := r.there.CoreV1().Pods("").Watch(r.ctx, metav1.ListOptions{})
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for event := range w.ResultChan() {
			p, is := event.Object.(*corev1.Pod)
			if !is || event.Type == watch.Deleted || p.DeletionTimestamp == nil {
				continue
			}
			_ = r.there.CoreV1().Pods(p.Namespace).Delete(r.ctx, p.Name, metav1.DeleteOptions{ // it may be gone by now
				GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(p.UID)),
			})
		}
	}
}

// bothNamespaces are the lab's, one of each cluster, with an account that reads the kubeconfig.
func (r *remoteLab) bothNamespaces() {
	r.Helper()
	_, err := r.admin.CoreV1().Namespaces().Create(r.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.ns}}, metav1.CreateOptions{})
	r.must(err)
	r.namespace(r.ns)
	r.runner(readsKubeconfig())
}

// deathAt triggers plan far, and has the agent die at its n-th write, with the reply lost or
// before it is sent on; another agent brings the run to its end. It returns the write; empty:
// there were not so many.
func (r *remoteLab) deathAt(x *crashes, n int, lost bool) (where string) {
	r.Helper()
	victim := x.agent()
	defer func() {
		if !r.Failed() {
			victim.Kill()
			return
		}
		r.explain()
		pods, err := r.there.CoreV1().Pods(r.ns).List(r.ctx, metav1.ListOptions{})
		victim.Dump()
		r.Logf("killed at %q; pods there: %v %v; the agent after it:\n%s", where, pods, err, victim.Log())
	}()
	r.seen("far")
	seen, gone := 0, make(chan struct{})
	var mu sync.Mutex
	x.proxy.At(func(req *http.Request, answered bool) bool {
		if answered != lost || !counted(req, r.ns) {
			return true
		}
		mu.Lock()
		defer mu.Unlock()
		if seen++; seen != n {
			return true
		}
		where = req.Method + " " + req.URL.Path
		victim.Kill()
		close(gone)
		return false
	})
	r.trigger("far", "1")
	r.eventually("the agent is killed, or done", func() (bool, string) {
		select {
		case <-gone:
			return true, ""
		default:
		}
		runs := r.runs("far")
		return len(runs) == 1 && runs[0].journal.Phase.Ended() && len(runs[0].object.Finalizers) == 0, fmt.Sprint(len(runs))
	})
	x.proxy.At(nil)
	select {
	case <-gone:
		victim = x.agent()
	default:
	}
	r.succeeded("far")
	return where
}

// drains are the rights with which another cluster's account drains nodes.
func drains() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, Verbs: []string{"get"}},
		{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"list", "watch"}},
	}
}

// everywhere gives the other cluster's account maint rights in its whole cluster.
func (r *remoteLab) everywhere(rules ...rbacv1.PolicyRule) {
	r.Helper()
	_, err := r.there.RbacV1().ClusterRoles().Create(r.ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: r.ns}, Rules: rules}, metav1.CreateOptions{})
	r.must(err)
	_, err = r.there.RbacV1().ClusterRoleBindings().Create(r.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: r.ns}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "maint", Namespace: r.ns}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.ns},
	}, metav1.CreateOptions{})
	r.must(err)
}

// nodes are three of the other cluster, with a pod each: a, which is returned, b, which somebody cordoned, and
// one whose name a node of this cluster has, too.
func (r *remoteLab) nodes() (a string) {
	r.Helper()
	a, b, twin := r.ns+"-a", r.ns+"-b", r.ns+"-twin"
	for _, name := range []string{a, b, twin} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": r.ns}}, Spec: corev1.NodeSpec{Unschedulable: name == b}}
		_, err := r.there.CoreV1().Nodes().Create(r.ctx, n, metav1.CreateOptions{})
		r.must(err)
		r.Cleanup(func() { _ = r.there.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}) })
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
			NodeName: name, ServiceAccountName: "maint", TerminationGracePeriodSeconds: new(int64(0)), Containers: []corev1.Container{{Name: "c", Image: "example.org/i"}},
		}}
		_, err = r.there.CoreV1().Pods(r.ns).Create(r.ctx, p, metav1.CreateOptions{})
		r.must(err)
	}
	_, err := r.admin.CoreV1().Nodes().Create(r.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: twin, Labels: map[string]string{"pool": r.ns}}}, metav1.CreateOptions{})
	r.must(err)
	r.Cleanup(func() { _ = r.admin.CoreV1().Nodes().Delete(context.Background(), twin, metav1.DeleteOptions{}) })
	return a
}

// cordons are the nodes of a cluster's pool: who wants each cordoned, and whether it is.
func (r *remoteLab) cordons(of kubernetes.Interface) map[string]string {
	r.Helper()
	list, err := of.CoreV1().Nodes().List(r.ctx, metav1.ListOptions{LabelSelector: "pool=" + r.ns})
	r.must(err)
	out := map[string]string{}
	for _, n := range list.Items {
		word := "open"
		if n.Spec.Unschedulable {
			word = "shut"
		}
		if c, noted := nodes.ParseCordon(n.Annotations[annotations.StatusCordoned]); noted && c != nil {
			word += " for " + strings.Join(c.By, " ")
		}
		out[strings.TrimPrefix(n.Name, r.ns+"-")] = word
	}
	return out
}

func (r *remoteLab) podsThere() int {
	r.Helper()
	list, err := r.there.CoreV1().Pods(r.ns).List(r.ctx, metav1.ListOptions{})
	r.must(err)
	return len(list.Items)
}

func (r *remoteLab) drainStory(hold string) string {
	pool := "{selector: {matchLabels: {pool: " + r.ns + "}}"
	return "\nconnectorRef: {kind: K8SCluster, name: stg}\nsteps:\n- {name: drain, type: drain, properties: " + pool + ", force: true, timeout: 2m}}\n" + hold +
		"- {name: back, type: uncordon, properties: " + pool + "}}\n"
}

func TestNodesOfAnotherClusterAreDrainedWithItsRights(t *testing.T) {
	r := newRemoteLab(t)
	r.runner(readsKubeconfig()) // and no right on nodes of this cluster
	r.connector()
	r.secret(r.kubeconfig(r.token("maint")))
	r.everywhere(drains()...)
	r.nodes()
	r.plan("far", r.drainStory("- {name: hold, type: suspend}\n"))
	r.seen("far")
	r.trigger("far", "1")
	at := r.running("far", "hold")
	by := "plan:" + r.ns + "/far@" + at.run.PlanUID
	if diff := cmp.Diff(map[string]string{"a": "shut for " + by, "b": "shut for " + by, "twin": "shut for " + by}, r.cordons(r.there)); diff != "" {
		t.Errorf("there (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"twin": "open"}, r.cordons(r.admin)); diff != "" {
		t.Errorf("here (-want +got):\n%s", diff)
	}
	if n := r.podsThere(); n != 0 {
		t.Errorf("%d pods are left", n)
	}
	r.annotate("far", map[string]string{annotations.Resume: at.run.Name})
	end := r.succeeded("far")
	if diff := cmp.Diff(map[string]string{"a": "open", "b": "shut", "twin": "open"}, r.cordons(r.there)); diff != "" {
		t.Errorf("in the end (-want +got):\n%s", diff)
	}
	r.expect(r.maint("describe", end.run.Name), 0, "on K8SCluster stg", "Node/"+r.ns+"-a", "1 evicted")
}

// Between two steps somebody lets pods in again, on a node of the other cluster: what takes
// it for empty does not run.
func TestANodeOfAnotherClusterThatSomebodyUncordonsEndsTheRun(t *testing.T) {
	r := newRemoteLab(t)
	r.runner(readsKubeconfig())
	r.connector()
	r.secret(r.kubeconfig(r.token("maint")))
	r.everywhere(drains()...)
	a := r.nodes()
	r.plan("far", r.drainStory("- {name: hold, type: suspend}\n- {name: work, type: webhook, properties: {url: '"+r.hooks.URL+"/"+r.ns+"/work'}}\n"))
	r.seen("far")
	r.trigger("far", "1")
	at := r.running("far", "hold")
	_, err := r.there.CoreV1().Nodes().Patch(r.ctx, a, types.MergePatchType, []byte(`{"spec":{"unschedulable":null}}`), metav1.PatchOptions{})
	r.must(err)
	r.annotate("far", map[string]string{annotations.Resume: at.run.Name})
	end := r.ended("far", 1)[0]
	if end.journal.Phase != run.Failed || !strings.Contains(end.journal.Message, "Node/"+a+" was uncordoned") { // hold may see it first
		t.Errorf("it ended %s: %s", end.journal.Phase, end.journal.Message)
	}
	if got := r.hooks.Keys("/" + r.ns + "/work"); len(got) != 0 {
		t.Errorf("the step ran all the same")
	}
}

func TestADrainOnAnotherClusterNamesTheRightThatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		without string
		message []string
	}{
		"to change nodes":    {"nodes", []string{"on K8SCluster stg: ", "nodes"}},
		"to read budgets":    {"poddisruptionbudgets", []string{"on K8SCluster stg: ", `:maint" cannot list resource "poddisruptionbudgets"`}},
		"to evict its pods":  {"pods/eviction", []string{"on K8SCluster stg: ", "not allowed to create pods/eviction in namespace"}},
		"to see where it is": {"pods", []string{"on K8SCluster stg: ", `:maint" cannot list resource "pods"`}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemoteLab(t)
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // a refusal alone takes one
			defer cancel()
			r.ctx = ctx
			r.runner(readsKubeconfig())
			r.connector()
			r.secret(r.kubeconfig(r.token("maint")))
			r.nodes()
			r.everywhere(slices.DeleteFunc(drains(), func(p rbacv1.PolicyRule) bool { return p.Resources[0] == c.without })...)
			r.plan("far", r.drainStory(""))
			r.seen("far")
			r.trigger("far", "1")
			var end runState
			eventuallyWithin(t, r.ctx, 4*time.Minute, "the refusal counts", func() (bool, string) { // it has to be said for a minute
				runs := r.runs("far")
				if len(runs) == 1 {
					end = runs[0]
				}
				return end.journal.Phase.Ended(), string(end.journal.Phase)
			})
			for _, part := range c.message {
				if said := recordOf(end.journal, "drain").Message; end.journal.Phase != run.Failed || !strings.Contains(said, part) {
					t.Errorf("it ended %s: %s\nwant %s", end.journal.Phase, said, part)
				}
			}
			if n := r.podsThere(); n != 3 {
				t.Errorf("%d pods are left, want all", n)
			}
		})
	}
}

// The agent dies at its writes around a drain on the other cluster: what somebody had
// cordoned stays so, and nothing else does.
func TestAKillAroundADrainOnAnotherClusterLeavesTheNodesAsTheyWere(t *testing.T) {
	x, r := newFarCrashes(t)
	for _, lost := range []bool{false, true} {
		for n := 2; ; n += strideOfCrashes(5) {
			r.ns = fmt.Sprintf("drained-%d-%t", n, lost)
			r.bothNamespaces()
			r.connector()
			r.secret(r.kubeconfig(r.token("maint")))
			r.nodes()
			r.everywhere(drains()...)
			r.plan("far", r.drainStory(""))
			where := r.deathAt(x, n, lost)
			if diff := cmp.Diff(map[string]string{"a": "open", "b": "shut", "twin": "open"}, r.cordons(r.there)); diff != "" || r.podsThere() != 0 {
				t.Errorf("killed at %s: %d pods; (-want +got):\n%s", where, r.podsThere(), diff)
			}
			if where == "" || t.Failed() {
				break
			}
		}
	}
}

// sleeping are the rights of the other cluster's account where it has workloads asleep.
func sleeping() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"get", "patch"}},
	}
}

// nights makes a HibernatePlan whose one target is on the other cluster.
func (r *remoteLab) nights() {
	r.Helper()
	text := "apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec:\n  schedule: {offHours: [{start: '20:00', end: '20:01', daysOfWeek: [MON]}]}\n  behavior: {retries: 0}\n" +
		"  targets: [{name: apps, type: workload, connectorRef: {kind: K8SCluster, name: stg}, parameters: {kinds: [Deployment]}}]\n"
	_, err := r.admin.CoreV1().ConfigMaps(r.ns).Create(r.ctx, annotations.NewHibernatePlan(r.ns, "nights", text, ""), metav1.CreateOptions{})
	r.must(err)
}

// sleepPhase waits until the HibernatePlan is in a phase, and says something. Nobody scales
// Deployments there: their status follows here.
func (r *remoteLab) sleepPhase(phase, says string) {
	r.Helper()
	r.eventually("the HibernatePlan is "+phase, func() (bool, string) {
		d, err := r.there.AppsV1().Deployments(r.ns).Get(r.ctx, "orders", metav1.GetOptions{})
		r.must(err)
		if n := *d.Spec.Replicas; d.Status.Replicas != n || d.Status.ObservedGeneration != d.Generation {
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, ReadyReplicas: n, AvailableReplicas: n, UpdatedReplicas: n}
			_, _ = r.there.AppsV1().Deployments(r.ns).UpdateStatus(r.ctx, d, metav1.UpdateOptions{}) // a conflict is tried again
		}
		cm, err := r.admin.CoreV1().ConfigMaps(r.ns).Get(r.ctx, "nights", metav1.GetOptions{})
		r.must(err)
		return cm.Annotations[annotations.StatusPhase] == phase && strings.Contains(cm.Annotations[annotations.StatusMessage]+cm.Annotations[annotations.StatusTargets], says), fmt.Sprint(cm.Annotations)
	})
}

// What sleeps on another cluster wakes there: whatever was away meanwhile is tried again
// without end, and a kubeconfig that leads elsewhere wakes nothing and puts nothing to sleep.
func TestWorkloadsOfAnotherClusterSleepAndWake(t *testing.T) {
	r := newRemoteLab(t)
	r.runner(readsKubeconfig())
	r.orders()
	r.connector()
	token := r.token("maint", sleeping()...)
	r.secret(r.kubeconfig(token))
	r.nights()
	r.annotate("nights", map[string]string{annotations.HoldState: "asleep"})
	r.sleepPhase("Hibernated", "")
	if here, there := r.sizeOn(r.admin), r.sizeOn(r.there); here != 3 || there != 0 {
		t.Errorf("there are %d replicas here and %d there, want 3 and 0", here, there)
	}
	r.line.cut()
	r.annotate("nights", map[string]string{annotations.HoldState: "awake"})
	r.sleepPhase("Error", "connection refused")
	r.must(r.line.mend())
	r.annotate("nights", map[string]string{annotations.Trigger: "again"})
	r.sleepPhase("Active", "")
	if here, there := r.sizeOn(r.admin), r.sizeOn(r.there); here != 3 || there != 3 {
		t.Errorf("there are %d replicas here and %d there, want 3 and 3", here, there)
	}
}

func TestAKubeconfigThatLeadsElsewhereWakesNothing(t *testing.T) {
	r := newRemoteLab(t)
	r.runner(readsKubeconfig())
	r.orders()
	r.connector()
	token := r.token("maint", sleeping()...)
	r.secret(r.kubeconfig(token))
	r.nights()
	r.annotate("nights", map[string]string{annotations.HoldState: "asleep"})
	r.sleepPhase("Hibernated", "")
	home, err := world.cluster.ServiceAccountConfig(r.ctx, r.ns, "maint-runner")
	r.must(err)
	r.grant(append(sleeping(), readsKubeconfig())...)
	path, err := world.cluster.KubeconfigFile(r.ns+"-home", home)
	r.must(err)
	text, err := os.ReadFile(path)
	r.must(err)
	r.secret(string(text))
	r.annotate("nights", map[string]string{annotations.HoldState: "awake"})
	r.sleepPhase("Error", "none of the sleeping resources is there")
	if here := r.sizeOn(r.admin); here != 3 {
		t.Errorf("there are %d replicas here, want 3", here)
	}
	other := newLine(t, r.line.to) // another address of the same cluster
	r.line = other
	r.secret(r.kubeconfig(token))
	r.annotate("nights", map[string]string{annotations.Trigger: "again"})
	r.sleepPhase("Active", "")
	if there := r.sizeOn(r.there); there != 3 {
		t.Errorf("there are %d replicas there, want 3", there)
	}
}

// wholeElsewhere has its target and all its steps on the other cluster.
const wholeElsewhere = `
connectorRef: {kind: K8SCluster, name: stg}
target: {apiVersion: apps/v1, kind: Deployment, name: orders}
triggers: {labels: [ops/restart]}
steps:
- {name: mark, type: annotate, properties: {operation: add, annotations: {example.org/by: "${run.name}"}}}
- {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0, restoreAfter: true}}
- {name: hold, type: wait, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, until: "object.metadata.?annotations['go'].orValue('') == 'on'"}}
- {name: see, type: webhook, properties: {url: "HOOK/end/${target.metadata.annotations['go']}"}}
`

func TestAWholePlanOnAnotherCluster(t *testing.T) {
	r := newRemoteLab(t)
	r.runner(readsKubeconfig()) // and nothing else: not even to see a Deployment
	r.orders()
	d, err := r.there.AppsV1().Deployments(r.ns).Get(r.ctx, "orders", metav1.GetOptions{})
	r.must(err)
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3}
	_, err = r.there.AppsV1().Deployments(r.ns).UpdateStatus(r.ctx, d, metav1.UpdateOptions{})
	r.must(err)
	r.connector()
	r.secret(r.kubeconfig(r.token("maint", scales()...)))
	r.plan("far", wholeElsewhere)
	r.seen("far")
	label := []byte(`{"metadata":{"labels":{"ops/restart":"now"}}}`)
	for _, of := range []kubernetes.Interface{r.admin, r.there} { // here it asks for nothing
		_, err := of.AppsV1().Deployments(r.ns).Patch(r.ctx, "orders", types.MergePatchType, label, metav1.PatchOptions{})
		r.must(err)
	}
	r.running("far", "hold")
	if here, there := r.sizeOn(r.admin), r.sizeOn(r.there); here != 3 || there != 0 {
		t.Errorf("there are %d replicas here and %d there, want 3 and 0", here, there)
	}
	r.goOn()
	end := r.succeeded("far")
	if got := r.hooks.Keys("/" + r.ns + "/end/on"); len(got) != 1 {
		t.Errorf("the target was read %d times as it is there", len(got))
	}
	if got := r.sizeOn(r.there); got != 3 {
		t.Errorf("%d replicas were put back, want 3", got)
	}
	there, err := r.there.AppsV1().Deployments(r.ns).Get(r.ctx, "orders", metav1.GetOptions{})
	r.must(err)
	here, err := r.admin.AppsV1().Deployments(r.ns).Get(r.ctx, "orders", metav1.GetOptions{})
	r.must(err)
	if there.Annotations["example.org/by"] != end.run.Name || there.Labels["ops/restart"] != "" {
		t.Errorf("there it is %v %v", there.Labels, there.Annotations)
	}
	if here.Labels["ops/restart"] != "now" || len(here.Annotations) > 0 {
		t.Errorf("here it is %v %v", here.Labels, here.Annotations)
	}
	r.expect(r.maint("list", "-o", "wide"), 0, "Deployment/orders on stg")
}
