// Package admission_test shows on a real API server whom the policies of
// manifests/admission allow what, and that nobody is locked out by them.
package admission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

func TestMain(m *testing.M) {
	code := 1
	defer func() { os.Exit(code) }()
	defer world.stop()
	code = m.Run()
}

// world is what the tests of this binary share: one cluster with the policies on it.
// The testing package hands nothing from TestMain to tests.
var world shared //nolint:gochecknoglobals // see above

type shared struct {
	once    sync.Once
	err     error
	cluster *cluster.Cluster
	admin   kubernetes.Interface

	building sync.Once
	broken   error
	dir      string
	agent    string // the binaries
	plugin   string
}

// build makes the two commands, for the tests that need them.
func (s *shared) build() error {
	s.building.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // perhaps from nothing
		defer cancel()
		if s.dir, s.broken = os.MkdirTemp("", "maint-admission-test-"); s.broken == nil {
			s.agent, s.plugin, s.broken = harness.Build(ctx, s.dir)
		}
	})
	return s.broken
}

func (s *shared) start() error {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		s.err = s.prepare(ctx)
	})
	return s.err
}

// prepare puts the policies on the cluster before anything else of ours.
func (s *shared) prepare(ctx context.Context) (err error) {
	if s.cluster, err = cluster.Start(ctx, cluster.Options{ControllerManager: true, ControllerManagerArgs: []string{"--controllers=*,-deployment-controller,-node-lifecycle-controller"}}); err != nil {
		return err
	}
	if s.admin, err = kubernetes.NewForConfig(s.cluster.AdminConfig()); err != nil {
		return err
	}
	if err = s.switchOn(ctx); err != nil {
		return err
	}
	if err = harness.Install(ctx, s.cluster.AdminConfig()); err != nil {
		return err
	}
	return s.bindOnce(ctx)
}

func (s *shared) stop() {
	if s.cluster != nil {
		_ = s.cluster.Stop()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// switchOn applies the policies and returns when each refuses what it is there for.
func (s *shared) switchOn(ctx context.Context) error {
	if err := s.bindProber(ctx); err != nil {
		return err
	}
	if err := harness.ApplyAdmission(ctx, s.cluster.AdminConfig()); err != nil {
		return err
	}
	return s.untilProbes(ctx, true)
}

// switchOff deletes the policies' bindings. Those that confine the agent's own token,
// which install always brings, stay.
func (s *shared) switchOff(ctx context.Context) error {
	bindings := s.admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	list, err := bindings.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, b := range list.Items {
		if strings.HasPrefix(b.Name, annotations.AgentName) {
			continue
		}
		if err := bindings.Delete(ctx, b.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	if err := s.stopStamping(ctx); err != nil {
		return err
	}
	return s.untilProbes(ctx, false)
}

func (s *shared) stopStamping(ctx context.Context) error {
	return s.admin.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

// eventuallyErr asks again until there is no error.
func eventuallyErr(ctx context.Context, ask func() error) error {
	limit := time.After(time.Minute)
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", err, ctx.Err())
		case <-limit:
			return fmt.Errorf("not within a minute: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// person is somebody who asks the API server for something.
type person struct {
	name   string
	groups []string
	extra  map[string][]string
}

// as is a client that acts as somebody.
func (s *shared) as(p person) kubernetes.Interface {
	config := s.cluster.AdminConfig()
	if p.name != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: p.name, Groups: append([]string{"system:authenticated"}, p.groups...), Extra: p.extra}
	}
	k, err := kubernetes.NewForConfig(config)
	if err != nil {
		panic(err) // of a configuration that the admin's client was made of
	}
	return k
}

func account(namespace, name string) person {
	return person{name: "system:serviceaccount:" + namespace + ":" + name, groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}}
}

// Those of whom the tables speak, and what each may do by RBAC.
func admin() person      { return person{} } // group system:masters
func agent() person      { return account("maint-system", "maint-agent") }
func tenant() person     { return person{name: "tina"} }        // writes ConfigMaps in the namespace, and has no verb of ours
func editor() person     { return person{name: "eddy"} }        // bound to edit
func nsAdmin() person    { return person{name: "nora"} }        // bound to admin
func approver() person   { return person{name: "ann"} }         // maint-approver, and may patch the plan orders
func restorer() person   { return person{name: "rita"} }        // maint-restorer, and writes ConfigMaps
func aborter() person    { return person{name: "abe"} }         // abort on orders, and writes ConfigMaps
func starter() person    { return person{name: "stan"} }        // trigger on orders, and writes ConfigMaps
func nodeAdmin() person  { return person{name: "nick"} }        // maint-admin in the cluster, and writes nodes
func pauser() person     { return person{name: "paula"} }       // pause on nodes, and writes nodes
func bot() person        { return account("bots", "rebooter") } // noderequest rebooter, and writes nodes
func driver() person     { return account("bots", "driver") }   // create on all noderequests, and writes nodes
func nodeWriter() person { return person{name: "norbert"} }     // writes nodes, and has no verb of ours
func kubelet() person {
	return person{name: "system:node:worker-1", groups: []string{"system:nodes"}}
}
func namespaceOwner() person  { return person{name: "owen"} } // writes namespaces, and has verbs on policies alone
func clusterOperator() person { return person{name: "olga"} } // writes namespaces, pause and override on all plans

// runOf is the account of a plan, asking for one of its runs.
func runOf(ns string) person {
	p := account(ns, "maint-runner")
	p.extra = map[string][]string{"maint.dev/run": {ns + "/maint-run-orders-aaaaaaaaaa"}}
	return p
}

func rule(group, resource string, names []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: strings.Split(resource, ","), ResourceNames: names, Verbs: verbs}
}

// bindOnce gives those their rights who have them in the whole cluster.
func (s *shared) bindOnce(ctx context.Context) error {
	nodes := rule("", "nodes,nodes/status", nil, "get", "create", "patch", "update")
	namespaces := rule("", "namespaces,namespaces/status,namespaces/finalize", nil, "get", "patch", "update")
	for name, b := range map[string]struct {
		who   person
		rules []rbacv1.PolicyRule
	}{
		"bot":      {bot(), []rbacv1.PolicyRule{nodes, rule("maint.dev", "noderequests", []string{"rebooter"}, "create")}},
		"driver":   {driver(), []rbacv1.PolicyRule{nodes, rule("maint.dev", "noderequests", nil, "create")}},
		"pauser":   {pauser(), []rbacv1.PolicyRule{nodes, rule("maint.dev", "nodes", nil, "pause")}},
		"nodes":    {nodeAdmin(), []rbacv1.PolicyRule{nodes}},
		"writer":   {nodeWriter(), []rbacv1.PolicyRule{nodes}},
		"owner":    {namespaceOwner(), []rbacv1.PolicyRule{namespaces, rule("maint.dev", "policies", nil, "pause", "override", "write")}},
		"operator": {clusterOperator(), []rbacv1.PolicyRule{namespaces, rule("maint.dev", "plans", nil, "pause", "override")}},
	} {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test-" + name}, Rules: b.rules}
		if _, err := s.admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
			return err
		}
		if err := s.bindCluster(ctx, "test-"+name, b.who); err != nil {
			return err
		}
	}
	for role, who := range map[string]person{"maint-admin": nodeAdmin(), "cluster-admin": account("flux-system", "kustomize-controller"), "system:node": kubelet()} {
		if err := s.bindCluster(ctx, role, who); err != nil {
			return err
		}
	}
	everything := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "argocd-application-controller"}, Rules: []rbacv1.PolicyRule{rule("*", "*", nil, "*")}} // as Argo CD installs it
	if _, err := s.admin.RbacV1().ClusterRoles().Create(ctx, everything, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := s.bindCluster(ctx, everything.Name, account("argocd", "argocd-application-controller")); err != nil {
		return err
	}
	return s.may(ctx, driver(), "", "create", "maint.dev", "noderequests", "x")
}

func (s *shared) bindCluster(ctx context.Context, role string, who person) error {
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: subject(who)}
	_, err := s.admin.RbacV1().ClusterRoleBindings().Create(ctx, b, metav1.CreateOptions{})
	return err
}

func subject(who person) []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: who.name}}
}

// may waits until the API server knows of a right.
func (s *shared) may(ctx context.Context, who person, ns, verb, group, resource, name string) error {
	return eventuallyErr(ctx, func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: who.name, Groups: who.groups, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: ns, Verb: verb, Group: group, Resource: resource, Name: name,
		}}}
		answer, err := s.admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			err = fmt.Errorf("%s may not %s %s.%s", who.name, verb, resource, group)
		}
		return err
	})
}

// lab is a namespace of a test, with the people who work in it.
type lab struct {
	*testing.T
	ctx context.Context
	ns  string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	if err := world.start(); err != nil {
		t.Fatalf("start the cluster: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	l := &lab{T: t, ctx: ctx, ns: world.cluster.Namespace(t)}
	l.people()
	return l
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// people gives those their rights who have them in the test's namespace.
func (l *lab) people() {
	l.Helper()
	maps := rule("", "configmaps", nil, "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
	l.role(tenant(), maps)
	l.role(restorer(), maps)
	l.bind("maint-restorer", restorer())
	l.role(aborter(), maps, rule("maint.dev", "plans", []string{"orders"}, "abort"))
	l.role(starter(), maps, rule("maint.dev", "plans", []string{"orders"}, "trigger"))
	l.role(approver(), rule("", "configmaps", []string{"orders"}, "get", "patch"))
	l.bind("maint-approver", approver())
	l.bind("edit", editor())
	l.bind("admin", nsAdmin())
	l.bind("edit", account(l.ns, "flux"))
	l.role(account(l.ns, "maint-runner"), maps)
	// The last ones; and what the controller manager has to add to edit and admin.
	l.must(world.may(l.ctx, account(l.ns, "maint-runner"), l.ns, "patch", "", "configmaps", "x"))
	l.must(world.may(l.ctx, editor(), l.ns, "write", "maint.dev", "plans", "x"))
	l.must(world.may(l.ctx, account(l.ns, "flux"), l.ns, "write", "maint.dev", "plans", "x"))
	l.must(world.may(l.ctx, nsAdmin(), l.ns, "override", "maint.dev", "plans", "x"))
	l.must(world.may(l.ctx, nsAdmin(), l.ns, "approve", "maint.dev", "plans", "x"))
}

func (l *lab) role(who person, rules ...rbacv1.PolicyRule) {
	l.Helper()
	role, err := world.admin.RbacV1().Roles(l.ns).Create(l.ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Rules: rules}, metav1.CreateOptions{})
	l.must(err)
	l.bindTo(rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}, who)
}

func (l *lab) bind(clusterRole string, who person) {
	l.Helper()
	l.bindTo(rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole}, who)
}

func (l *lab) bindTo(ref rbacv1.RoleRef, who person) {
	l.Helper()
	_, err := world.admin.RbacV1().RoleBindings(l.ns).Create(l.ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, RoleRef: ref, Subjects: subject(who)}, metav1.CreateOptions{})
	l.must(err)
}

// given puts an object there before anybody asks for anything: what bears a name of the
// agent's as the agent, and the rest as an admin, on which the agent then speaks.
func (l *lab) given(cm *corev1.ConfigMap) *corev1.ConfigMap {
	l.Helper()
	cm.Namespace = l.ns
	by, says := world.admin, map[string]string{}
	switch {
	case strings.HasPrefix(cm.Name, "maint-") && cm.Labels[annotations.LabelKind] != annotations.KindAgentConfig: // an admin writes that
		by = world.as(agent())
	case cm.Labels[annotations.LabelKind] != "":
		says, cm.Annotations = cm.Annotations, nil
	}
	got, err := by.CoreV1().ConfigMaps(l.ns).Create(l.ctx, cm, metav1.CreateOptions{})
	l.must(err)
	if len(says) > 0 {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": says}})
		l.must(err)
		got, err = world.as(agent()).CoreV1().ConfigMaps(l.ns).Patch(l.ctx, cm.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: annotations.ManagerAgent})
		l.must(err)
	}
	return got
}

// row is one line of a table: who asks for what, and what comes of it.
type row struct {
	name   string
	who    person
	asks   request
	denied string            // what the refusal says; empty: it is allowed
	stored map[string]string // annotations of ours that are stored
}

// request is tried on the API server and never kept, so that rows do not meet.
type request func(l *lab, k kubernetes.Interface) (metav1.Object, error)

func (l *lab) table(rows []row) {
	l.Helper()
	for _, r := range rows {
		l.Run(r.name, func(t *testing.T) {
			got, err := r.asks(l, world.as(r.who))
			switch {
			case r.denied == "" && err != nil:
				t.Fatalf("is refused: %v", err)
			case r.denied != "" && err == nil:
				t.Fatalf("is allowed, and should be refused: %s", r.denied)
			case r.denied != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), r.denied)):
				t.Fatalf("is refused with %v, and not, as forbidden, with %q", err, r.denied)
			}
			if r.stored != nil {
				for key, want := range r.stored {
					if have := got.GetAnnotations()[key]; have != want {
						t.Errorf("%s is %q, want %q", key, have, want)
					}
				}
			}
		})
	}
}
