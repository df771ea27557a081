package hibernate_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/setup"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
	"github.com/kubectl-maint/kubectl-maint/test/moto"
)

// cloudLab is a lab with an instance of EC2 of its own.
type cloudLab struct {
	*lab
	api *ec2.Client
	id  string
}

func newCloudLab(t *testing.T) *cloudLab {
	l := newLab(t)
	if world.aws == nil {
		t.Skip(moto.ErrMissing)
	}
	api := ec2.NewFromConfig(aws.Config{Region: "eu-central-1", BaseEndpoint: aws.String(world.aws.Endpoint), HTTPClient: http.DefaultClient, Credentials: credentials.NewStaticCredentialsProvider("admin", "admin", "")})
	out, err := api.RunInstances(l.ctx, &ec2.RunInstancesInput{
		ImageId: aws.String("ami-12c6146b"), InstanceType: types.InstanceTypeT3Micro, MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String(l.ns)}}}},
	})
	l.must(err)
	return &cloudLab{l, api, *out.Instances[0].InstanceId}
}

func (l *cloudLab) state() string {
	l.Helper()
	out, err := l.api.DescribeInstances(l.ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{l.id}})
	l.must(err)
	return string(out.Reservations[0].Instances[0].State.Name)
}

func (l *cloudLab) connector(account, auth string) {
	l.Helper()
	text := fmt.Sprintf("apiVersion: maint.dev/v1alpha1\nkind: CloudProvider\nspec: {type: aws, aws: {accountId: %q, region: eu-central-1, auth: %s}}\n", account, auth)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stg", Labels: map[string]string{annotations.LabelKind: annotations.KindConnector}}, Data: map[string]string{annotations.DataConnector: text}}
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, cm, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = l.admin.CoreV1().ConfigMaps(l.ns).Update(l.ctx, cm, metav1.UpdateOptions{})
	}
	l.must(err)
}

func (l *cloudLab) plan() {
	l.Helper()
	l.sleeper("nights", fmt.Sprintf(`
schedule: {offHours: [{start: "20:00", end: "20:01", daysOfWeek: [MON]}]}
behavior: {retries: 0}
targets: [{name: vm, type: ec2, connectorRef: {kind: CloudProvider, name: stg}, parameters: {selector: {tags: {team: %s}}}}]
`, l.ns))
}

// sleeps and wakes by hand.
func (l *cloudLab) hold(state string) {
	l.Helper()
	l.annotate("nights", map[string]string{annotations.HoldState: state})
}

func (l *cloudLab) keys() {
	l.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{"accessKeyId": "AKIAIOSFODNN7EXAMPLE", "secretAccessKey": "none"}}
	_, err := l.admin.CoreV1().Secrets(l.ns).Create(l.ctx, secret, metav1.CreateOptions{})
	l.must(err)
}

const byKeys = "{static: {secretRef: {name: keys}}}"

func readsKeys() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"keys"}, Verbs: []string{"get"}}
}

// While it sleeps its connector goes away, or leads elsewhere: it wakes where it is.
func TestAnInstanceSleepsByTheKeysOfASecretAndWakesWithoutItsConnector(t *testing.T) {
	for name, change := range map[string]func(l *cloudLab){
		"as it was": func(*cloudLab) {},
		"gone": func(l *cloudLab) {
			l.must(l.admin.CoreV1().ConfigMaps(l.ns).Delete(l.ctx, "stg", metav1.DeleteOptions{}))
		},
		"elsewhere": func(l *cloudLab) { l.connector("999999999999", byKeys) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newCloudLab(t)
			l.runner(readsKeys())
			l.keys()
			l.connector(moto.Account, byKeys)
			l.plan()
			l.hold("asleep")
			l.phaseOf("nights", hibernate.Hibernated, "1 of 1")
			if got := l.state(); got != "stopped" {
				t.Fatalf("it is %s", got)
			}
			change(l)
			l.hold("awake")
			l.phaseOf("nights", hibernate.Active, "")
			if got := l.state(); got != "running" {
				t.Errorf("it is %s", got)
			}
		})
	}
}

func TestNothingIsTouchedWithoutTheRightCredentials(t *testing.T) {
	for name, c := range map[string]struct {
		rights  []rbacv1.PolicyRule
		prepare func(l *cloudLab)
		says    string
	}{
		"an account that may not read the Secret": {prepare: func(l *cloudLab) { l.keys(); l.connector(moto.Account, byKeys) }, says: `may not get secrets "keys", which holds an access key of AWS`},
		"a connector that is not there":           {rights: []rbacv1.PolicyRule{readsKeys()}, prepare: func(l *cloudLab) { l.keys() }, says: "there is no connector stg"},
		"keys of another account":                 {rights: []rbacv1.PolicyRule{readsKeys()}, prepare: func(l *cloudLab) { l.keys(); l.connector("999999999999", byKeys) }, says: "the credentials are of account " + moto.Account},
		"a ServiceAccount without a role":         {prepare: func(l *cloudLab) { l.connector(moto.Account, "{serviceAccount: {}}") }, says: "names no role of AWS"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newCloudLab(t)
			l.runner(c.rights...)
			c.prepare(l)
			l.plan()
			l.hold("asleep")
			l.phaseOf("nights", hibernate.InError, c.says)
			if got := l.state(); got != "running" {
				t.Errorf("it is %s", got)
			}
			l.hold("awake")
			l.phaseOf("nights", hibernate.Active, "")
		})
	}
}

// Once the machine that the agent runs on sleeps nobody wakes anything.
func TestTheMachineThatTheAgentRunsOnIsNotStopped(t *testing.T) {
	l := newCloudLab(t)
	l.runner(readsKeys())
	l.keys()
	l.connector(moto.Account, byKeys)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: l.ns}, Spec: corev1.NodeSpec{ProviderID: "aws:///eu-central-1a/" + l.id}}
	_, err := l.admin.CoreV1().Nodes().Create(l.ctx, node, metav1.CreateOptions{})
	l.must(err)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: l.ns, Labels: map[string]string{annotations.AgentLabel: annotations.AgentName}},
		Spec: corev1.PodSpec{
			NodeName:        l.ns,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "agent", Image: "none",
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
	pods := l.admin.CoreV1().Pods(pod.Namespace)
	_, err = pods.Create(l.ctx, pod, metav1.CreateOptions{})
	l.must(err)
	gone := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	t.Cleanup(func() {
		_ = pods.Delete(context.Background(), pod.Name, gone)
		_ = l.admin.CoreV1().Nodes().Delete(context.Background(), node.Name, gone)
	})
	l.plan()
	l.hold("asleep")
	l.phaseOf("nights", hibernate.Hibernated, "")
	if got := l.annotationsOf("nights")[annotations.StatusTargets]; l.state() != "running" || !strings.Contains(got, "the agent itself runs on "+l.id) {
		t.Fatalf("it is %s: %s", l.state(), got)
	}
	l.must(pods.Delete(l.ctx, pod.Name, gone))
	l.annotate("nights", map[string]string{annotations.Trigger: "again"})
	l.hold("awake")
	l.phaseOf("nights", hibernate.Active, "")
	l.hold("asleep")
	l.eventually("it is stopped", func() (bool, string) { return l.state() == "stopped", l.state() })
	l.hold("awake")
	l.phaseOf("nights", hibernate.Active, "")
	if got := l.state(); got != "running" {
		t.Errorf("it is %s", got)
	}
}

// install --cloud lets the agent ask for tokens, for STS alone.
func TestAnInstanceSleepsByTheTokenOfItsPlansServiceAccount(t *testing.T) {
	l := newCloudLab(t)
	l.runner()
	l.role("nights")
	l.connector(moto.Account, "{serviceAccount: {}}")
	l.plan()
	l.hold("asleep")
	l.phaseOf("nights", hibernate.InError, "install --cloud --apply")
	l.allowTokens()
	l.annotate("nights", map[string]string{annotations.Trigger: "again"})
	l.phaseOf("nights", hibernate.Hibernated, "1 of 1")
	l.hold("awake")
	l.phaseOf("nights", hibernate.Active, "")
	if got := l.state(); got != "running" {
		t.Errorf("it is %s", got)
	}
}

// allowTokens applies what install --cloud adds.
func (l *cloudLab) allowTokens() {
	l.Helper()
	text, err := setup.Manifests{Version: "v0.0.0", Namespace: annotations.DefaultNamespace, Image: "none", Cloud: true}.Render()
	l.must(err)
	skip := func(u *unstructured.Unstructured) bool {
		return u.GetName() != "maint-agent-cloud" && u.GetName() != "maint-agent-tokens"
	}
	l.must(harness.Apply(l.ctx, world.cluster.AdminConfig(), "", []byte(text), skip))
}

// startAWS has an AWS for the agent, before it starts.
func (s *shared) startAWS() error {
	server, err := moto.Start()
	if errors.Is(err, moto.ErrMissing) && os.Getenv("CI") != "true" {
		fmt.Fprintln(os.Stderr, "NOT RUN, what sleeps in a cloud:", err)
		return nil
	}
	if err != nil {
		return err
	}
	if s.aws, err = withTrust(server); err != nil {
		return err
	}
	return os.Setenv("AWS_ENDPOINT_URL", s.aws.Endpoint)
}
