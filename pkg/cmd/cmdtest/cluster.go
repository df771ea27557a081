package cmdtest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// Told lets the agent continue when a line was printed: step by step, without a clock.
func (o *Cluster) Told(steps map[string]func()) {
	done := map[string]bool{}
	o.heard = func(text string) {
		for line, step := range steps {
			if strings.Contains(text, line) && !done[line] {
				done[line] = true
				go step()
			}
		}
	}
}

// Refusing is a cluster with a frozen namespace in which one verb on one resource is forbidden.
func Refusing(verb, resource string) *factory.Cluster {
	kube := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{annotations.ChangeStrategy: "Restrictive"}}})
	kube.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("not for you")
	})
	return &factory.Cluster{Kube: kube, Namespace: "shop"}
}

// Cluster is a cluster in memory, used by jane.
type Cluster struct {
	*testing.T
	run      Program
	Kube     *fake.Clientset
	User     string
	Stdin    string
	Terminal bool
	Ctx      context.Context
	// Moves says that the command's clock runs from Now; otherwise it stands still.
	Moves bool
	// ForbidsMetadata forbids what completion reads.
	ForbidsMetadata bool
	// Others are objects of other kinds than this cluster has, of which the metadata is seen.
	Others []runtime.Object
	heard  func(line string) // called with each write to standard output or error
}

// NewCluster holds some objects, and the account of plans in namespace shop. Program is what Maint runs; nil where a test calls the code itself.
func NewCluster(t *testing.T, run Program, objects ...runtime.Object) *Cluster {
	o := &Cluster{T: t, run: run, Kube: fake.NewClientset(withAccount(objects)...), User: "Jane@example.com", Ctx: t.Context()}
	o.Kube.Resources = []*metav1.APIResourceList{{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment", Namespaced: true}}}}
	o.Kube.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: o.User}}}, nil
	})
	o.Kube.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(authorizationv1.Resource("selfsubjectaccessreviews"), "", errors.New("impersonation is not for you"))
	})
	return o
}

// Account is the one that plans of namespace shop act as where they name none.
const Account = "maint-runner"

// withAccount has that account among the objects.
func withAccount(objects []runtime.Object) []runtime.Object {
	is := func(o runtime.Object) bool {
		account, is := o.(*corev1.ServiceAccount)
		return is && account.Namespace == "shop" && account.Name == Account
	}
	if slices.ContainsFunc(objects, is) {
		return objects
	}
	return append(slices.Clone(objects), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: Account}})
}

// listener hears each write; it hides the Buffer's other write methods.
type listener struct {
	text  bytes.Buffer
	heard func(string)
}

func (l *listener) Write(p []byte) (int, error) {
	n, err := l.text.Write(p)
	if l.heard != nil {
		l.heard(string(p))
	}
	return n, err
}

// Maint runs one command line.
func (o *Cluster) Maint(args ...string) Printed {
	o.Helper()
	out, errOut := &listener{heard: o.heard}, &listener{heard: o.heard}
	env := factory.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(o.Stdin), Out: out, ErrOut: errOut},
		Name:      "kubectl maint", Version: "v0.1.0", Now: Now, Zone: "Europe/Berlin", InTerminal: o.Terminal,
	}
	if begun := time.Now(); o.Moves {
		env.Now = func() time.Time { return Now().Add(time.Since(begun)) }
	}
	code := o.run(o.Ctx, factory.NewFor(env, o.Connected()), args)
	return Printed{Code: code, Out: out.text.String(), Err: errOut.text.String()}
}

// Line runs a command line that is split by Words.
func (o *Cluster) Line(line string) Printed {
	o.Helper()
	return o.Maint(Words(line)...)
}

// Words are those of a command line, separated by blanks; text between ' and ' is one word.
func Words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

// Connected are the clients of a command line.
func (o *Cluster) Connected() *factory.Cluster {
	o.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		o.Fatal(err)
	}
	known := metadatafake.NewSimpleMetadataClient(scheme, o.metadata()...)
	if o.ForbidsMetadata {
		known = metadatafake.NewSimpleMetadataClient(scheme)
		known.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("not for you"))
		})
	}
	as := func(string) *factory.Cluster { return &factory.Cluster{Kube: o.Kube, Namespace: "shop"} }
	return &factory.Cluster{Kube: o.Kube, Metadata: known, Namespace: "shop", As: as}
}

// Deployment is one of namespace shop.
func Deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

// metadata are the nodes, namespaces, Deployments and documents without the rest of them.
func (o *Cluster) metadata() []runtime.Object {
	out := slices.Clone(o.Others)
	list, err := o.Kube.Tracker().List(corev1.SchemeGroupVersion.WithResource("nodes"), corev1.SchemeGroupVersion.WithKind("Node"), "")
	if err != nil {
		o.Fatal(err)
	}
	for _, n := range list.(*corev1.NodeList).Items {
		out = append(out, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: n.ObjectMeta})
	}
	spaces, err := o.Kube.Tracker().List(corev1.SchemeGroupVersion.WithResource("namespaces"), corev1.SchemeGroupVersion.WithKind("Namespace"), "")
	if err != nil {
		o.Fatal(err)
	}
	for _, n := range spaces.(*corev1.NamespaceList).Items {
		out = append(out, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: n.ObjectMeta})
	}
	maps, err := o.Kube.Tracker().List(corev1.SchemeGroupVersion.WithResource("configmaps"), corev1.SchemeGroupVersion.WithKind("ConfigMap"), "")
	if err != nil {
		o.Fatal(err)
	}
	for _, cm := range maps.(*corev1.ConfigMapList).Items {
		out = append(out, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: cm.ObjectMeta})
	}
	apps, err := o.Kube.Tracker().List(appsv1.SchemeGroupVersion.WithResource("deployments"), appsv1.SchemeGroupVersion.WithKind("Deployment"), "")
	if err != nil {
		o.Fatal(err)
	}
	for _, d := range apps.(*appsv1.DeploymentList).Items {
		out = append(out, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: d.ObjectMeta})
	}
	return out
}

// on are the annotations of a node.
func (o *Cluster) on(name string) map[string]string {
	o.Helper()
	n, err := o.Kube.CoreV1().Nodes().Get(o.Ctx, name, metav1.GetOptions{})
	if err != nil {
		o.Fatal(err)
	}
	return n.Annotations
}

// Has compares the annotations of a node.
func (o *Cluster) Has(name string, want map[string]string) {
	o.Helper()
	if diff := cmp.Diff(want, o.on(name)); diff != "" {
		o.Errorf("annotations of %s (-want +got):\n%s", name, diff)
	}
}

// Become changes a node as the agent would.
func (o *Cluster) Become(name string, edits ...func(*corev1.Node)) {
	o.Helper()
	n, err := o.Kube.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		o.Error(err)
		return
	}
	for _, edit := range edits {
		edit(n)
	}
	if _, err := o.Kube.CoreV1().Nodes().Update(context.Background(), n, metav1.UpdateOptions{}); err != nil {
		o.Error(err)
	}
}

// Leaving is plan orders with uid "u", and a ledger that names what run maint-run-orders-x did not
// restore.
func Leaving(t *testing.T) []runtime.Object {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "orders", UID: "u", ResourceVersion: "1", Labels: map[string]string{annotations.LabelKind: annotations.KindPlan},
	}}
	l, err := annotations.LedgerObject("shop", "orders", ledger.Ledger{PlanUID: "u", Left: []ledger.Leftover{{Run: "maint-run-orders-x", Message: "no"}}})
	if err != nil {
		t.Fatal(err)
	}
	other, err := annotations.LedgerObject("shop", "other", ledger.Ledger{PlanUID: "o"})
	if err != nil {
		t.Fatal(err)
	}
	return []runtime.Object{cm, l, other}
}
