package hibernate_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
	"github.com/kubectl-maint/kubectl-maint/test/moto"
)

// eksLab is a lab with a cluster of EKS: its node groups are in the simulated AWS, and its
// API server is the real one, which lets in whom STS believes.
type eksLab struct {
	*cloudLab
	nodes     *eks.Client
	cluster   string
	tag       string           // ends the names of what no namespace holds
	account   string           // of the cluster, as which the role of AWS works there
	server    http.Handler     // the API server of the cluster
	front     *httptest.Server // AWS, as the agent has it
	mu        sync.Mutex
	endpoints []string
}

func newEKSLab(t *testing.T) *eksLab {
	l := &eksLab{cloudLab: newCloudLab(t)}
	l.serves()
	l.nodes = eks.NewFromConfig(aws.Config{Region: "eu-central-1", BaseEndpoint: aws.String(world.aws.Endpoint), HTTPClient: http.DefaultClient, Credentials: credentials.NewStaticCredentialsProvider("admin", "admin", "")})
	l.tag, l.account = strings.Trim(l.ns[max(0, len(l.ns)-20):], "-"), "nights-role"
	l.cluster = "eks-" + l.tag
	_, err := l.nodes.CreateCluster(l.ctx, &eks.CreateClusterInput{Name: &l.cluster, RoleArn: aws.String("arn:aws:iam::" + moto.Account + ":role/eks"), ResourcesVpcConfig: &types.VpcConfigRequest{SubnetIds: []string{"subnet-1"}}})
	l.must(err)
	l.nodeGroup("workers", 1, 2, 4)
	l.nodeGroup("system", 1, 1, 2)
	l.entry()
	l.front = l.aws(l.server)
	l.runner(readsKeys())
	l.keys()
	l.connector(moto.Account, byKeys)
	l.apply(fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: cluster, labels: {maint.dev/kind: connector}}
data:
  connector.yaml: |
    apiVersion: maint.dev/v1alpha1
    kind: K8SCluster
    spec: {providerRef: {name: stg}, eks: {name: %s}}
`, l.cluster))
	return l
}

func (l *eksLab) nodeGroup(name string, lowest, desired, most int32) {
	l.Helper()
	_, err := l.nodes.CreateNodegroup(l.ctx, &eks.CreateNodegroupInput{
		ClusterName: &l.cluster, NodegroupName: &name, NodeRole: aws.String("arn:aws:iam::" + moto.Account + ":role/nodes"), Subnets: []string{"subnet-1"},
		ScalingConfig: &types.NodegroupScalingConfig{MinSize: &lowest, DesiredSize: &desired, MaxSize: &most},
	})
	l.must(err)
}

// entry is what an access entry gives: the role is an account of the cluster that may have
// NodePools sleep, and nothing else.
func (l *eksLab) entry() {
	l.Helper()
	_, err := l.admin.CoreV1().ServiceAccounts(l.ns).Create(l.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: l.account}}, metav1.CreateOptions{})
	l.must(err)
	l.apply(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: nodepools-%[1]s}
rules:
- {apiGroups: [karpenter.sh], resources: [nodepools], verbs: [list, patch]}
- {apiGroups: [karpenter.sh], resources: [nodeclaims], verbs: [list, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nodepools-%[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nodepools-%[1]s}
subjects: [{kind: ServiceAccount, namespace: %[1]s, name: %[2]s}]
`, l.ns, l.account))
	config, err := world.cluster.ServiceAccountConfig(l.ctx, l.ns, l.account)
	l.must(err)
	through, err := harness.NewProxy(config)
	l.must(err)
	l.Cleanup(through.Close)
	l.server = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		endpoints := l.endpoints
		l.mu.Unlock()
		if why := world.aws.Authenticate(r, l.cluster, endpoints...); why != "" {
			http.Error(w, why, http.StatusUnauthorized)
			return
		}
		through.Server.Config.Handler.ServeHTTP(w, r)
	})
}

// aws is an AWS that has the cluster at an API server.
func (l *eksLab) aws(server http.Handler) *httptest.Server {
	l.Helper()
	api := httptest.NewTLSServer(server)
	l.Cleanup(api.Close)
	front, err := world.aws.WithCluster(l.cluster, api)
	l.must(err)
	l.Cleanup(front.Close)
	l.known(front.URL)
	return front
}

// known has tokens count that are signed for AWS at an endpoint.
func (l *eksLab) known(endpoint string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endpoints = append(l.endpoints, endpoint)
}

// pools are two NodePools that sleep, one of them with a node that takes its time to go, and
// one that does not.
func (l *eksLab) pools() {
	l.Helper()
	l.apply(fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general-%[1]s}
spec: {weight: 10, limits: {cpu: "1000", memory: 1000Gi}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: free-%[1]s}
spec: {template: {}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: kept-%[1]s}
spec: {limits: {cpu: "8"}}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: general-%[1]s, labels: {karpenter.sh/nodepool: general-%[1]s}, finalizers: [karpenter.sh/termination]}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: kept-%[1]s, labels: {karpenter.sh/nodepool: kept-%[1]s}}
`, l.tag))
}

func (l *eksLab) claims() dynamic.ResourceInterface {
	return l.dynamic().Resource(resourceNamed("karpenter.sh", "v1", "nodeclaims"))
}

// drained is what Karpenter does once a node is empty.
func (l *eksLab) drained() {
	l.Helper()
	_, err := l.claims().Patch(l.ctx, "general-"+l.tag, apitypes.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	l.must(err)
}

func (l *eksLab) plan(more string) {
	l.Helper()
	l.sleeper("nights", fmt.Sprintf(`
schedule: {offHours: [{start: "20:00", end: "20:01", daysOfWeek: [MON]}]}
targets:
- name: nodes
  type: eks
  connectorRef: {kind: K8SCluster, name: cluster}
  parameters: {computePolicy: {mode: Both%[2]s}, karpenter: {nodePools: [general-%[1]s, free-%[1]s]}, managedNodeGroups: {names: [workers]}}
`, l.tag, more))
}

// are how all nodes are: limits of NodePools, sizes of node groups.
func (l *eksLab) are() string {
	l.Helper()
	var out []string
	for _, name := range []string{"general", "free", "kept"} {
		u, err := l.dynamic().Resource(resourceNamed("karpenter.sh", "v1", "nodepools")).Get(l.ctx, name+"-"+l.tag, metav1.GetOptions{})
		l.must(err)
		limits, _, _ := unstructured.NestedMap(u.Object, "spec", "limits")
		out = append(out, fmt.Sprintf("%s %v", name, limits["cpu"]))
	}
	for _, name := range []string{"workers", "system"} {
		got, err := l.nodes.DescribeNodegroup(l.ctx, &eks.DescribeNodegroupInput{ClusterName: &l.cluster, NodegroupName: &name})
		l.must(err)
		s := got.Nodegroup.ScalingConfig
		out = append(out, fmt.Sprintf("%s %d/%d/%d", name, *s.MinSize, *s.DesiredSize, *s.MaxSize))
	}
	return strings.Join(out, ", ")
}

const (
	nodesAwake  = "general 1000, free <nil>, kept 8, workers 1/2/4, system 1/1/2"
	nodesAsleep = "general 0, free 0, kept 8, workers 0/0/4, system 1/1/2"
)

func (l *eksLab) nodesAre(want, when string) {
	l.Helper()
	if got := l.are(); got != want {
		l.Errorf("%s: nodes are %s, want %s\n%s", when, got, want, l.annotationsOf("nights")[annotations.StatusTargets])
	}
}

// agentAt has one agent for whom AWS is elsewhere, until the test is over.
func agentAt(t *testing.T, endpoint string) {
	t.Helper()
	world.process.Kill()
	restart := func(at string) {
		if err := os.Setenv("AWS_ENDPOINT_URL", at); err != nil {
			t.Error(err)
		}
		if err := world.launch(); err != nil {
			t.Error(err)
		}
	}
	restart(endpoint)
	t.Cleanup(func() {
		world.process.Kill()
		restart(world.aws.Endpoint)
	})
}

// fallsAsleep has the plan sleep, until a node of Karpenter is to go.
func (l *eksLab) fallsAsleep() {
	l.Helper()
	l.plan("")
	l.hold("asleep")
	l.eventually("a node of Karpenter is to go", func() (bool, string) {
		u, err := l.claims().Get(l.ctx, "general-"+l.tag, metav1.GetOptions{})
		l.must(err)
		return u.GetDeletionTimestamp() != nil, l.are() + l.annotationsOf("nights")[annotations.StatusTargets]
	})
}

func TestTheNodesOfAClusterOfEKSSleepByKarpenterAndByNodeGroups(t *testing.T) {
	l := newEKSLab(t)
	l.pools()
	agentAt(t, l.front.URL)
	l.fallsAsleep()
	l.phaseOf("nights", hibernate.Hibernating, "")
	l.nodesAre("general 0, free 0, kept 8, workers 1/2/4, system 1/1/2", "while Karpenter's nodes go")
	l.drained()
	l.phaseOf("nights", hibernate.Hibernated, "1 of 1")
	l.nodesAre(nodesAsleep, "asleep")
	if _, err := l.claims().Get(l.ctx, "kept-"+l.tag, metav1.GetOptions{}); err != nil {
		t.Errorf("a node of another pool: %v", err)
	}
	l.hold("awake")
	l.phaseOf("nights", hibernate.Active, "")
	l.nodesAre(nodesAwake, "awake")
}

// The access entry is taken away while the nodes sleep: the node groups wake all the same,
// and the NodePools once it is back.
func TestNodeGroupsWakeWhateverBecameOfTheAccessToTheirCluster(t *testing.T) {
	l := newEKSLab(t)
	l.pools()
	agentAt(t, l.front.URL)
	l.fallsAsleep()
	l.drained()
	l.phaseOf("nights", hibernate.Hibernated, "1 of 1")
	bindings := l.admin.RbacV1().ClusterRoleBindings()
	binding, err := bindings.Get(l.ctx, "nodepools-"+l.ns, metav1.GetOptions{})
	l.must(err)
	l.must(bindings.Delete(l.ctx, binding.Name, metav1.DeleteOptions{}))
	l.hold("awake")
	l.eventually("it is said", func() (bool, string) {
		text := l.annotationsOf("nights")[annotations.StatusTargets]
		return strings.Contains(text, "list NodePools: nodepools.karpenter.sh is forbidden"), text
	})
	l.eventually("the node group is awake", func() (bool, string) {
		return l.are() == "general 0, free 0, kept 8, workers 1/2/4, system 1/1/2", l.are()
	})
	binding.ResourceVersion = ""
	_, err = bindings.Create(l.ctx, binding, metav1.CreateOptions{})
	l.must(err)
	l.annotate("nights", map[string]string{annotations.Trigger: "again"})
	l.phaseOf("nights", hibernate.Active, "")
	l.nodesAre(nodesAwake, "awake")
}

// Wherever in a cycle an agent is killed, at a call of AWS or of the cluster, before it is
// sent or with its reply lost, the next one brings all nodes back as they were.
func TestAKillAtAnyCallOfAClusterOfEKSWakesAllItsNodes(t *testing.T) {
	newCloudLab(t) // that there is an AWS
	x := newCrashing(t)
	t.Cleanup(func() {
		if err := os.Setenv("AWS_ENDPOINT_URL", world.aws.Endpoint); err != nil {
			t.Error(err)
		}
	})
	killedAtEach(t, "call", x.nodesCycle)
}

// nodesCycle has the nodes of a cluster sleep and wake while the agent is killed at its n-th
// call, and says which one that was.
func (x *crashing) nodesCycle(t *testing.T, n int, lost bool) string {
	l := newEKSLab(t)
	l.pools()
	l.drained()
	deadly := newDeadlyAWS(t, n, lost)
	deadly.before(l.aws(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { deadly.serve(l.server, w, req) })))
	l.known(deadly.URL)
	l.must(os.Setenv("AWS_ENDPOINT_URL", deadly.URL))
	victim := x.victim(l.lab)
	l.must(os.Setenv("AWS_ENDPOINT_URL", l.front.URL))
	deadly.kills(victim.kill)
	l.plan("")
	l.hold("asleep")
	l.phaseOf("nights", hibernate.Hibernated, "1 of 1")
	l.nodesAre(nodesAsleep, "killed at "+deadly.asked())
	l.hold("awake")
	l.phaseOf("nights", hibernate.Active, "")
	l.nodesAre(nodesAwake, "killed at "+deadly.asked())
	where := deadly.asked()
	victim.end(where != "")
	return where
}
