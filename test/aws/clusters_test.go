package aws

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	awseks "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/eks"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
)

// eksServer is the API server of a cluster of EKS: it believes whom STS believes.
type eksServer struct {
	*httptest.Server
	mu      sync.Mutex
	refused []string
	served  int
}

func newEKSServer(t *testing.T, cluster string) *eksServer {
	s := &eksServer{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := simulated.Authenticate(r, cluster, endpoint); why != "" {
			s.mu.Lock()
			s.refused = append(s.refused, why)
			s.mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: 401, Reason: metav1.StatusReasonUnauthorized, Message: why})
			return
		}
		s.mu.Lock()
		s.served++
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a"}, Data: map[string]string{"of": cluster}})
	}))
	t.Cleanup(s.Close)
	return s
}

func TestAClusterOfEKSIsReachedWithTheCredentialsOfThePlan(t *testing.T) {
	_, err := eks.NewFromConfig(fresh(t)).CreateCluster(t.Context(), &eks.CreateClusterInput{Name: aws.String("stg"), RoleArn: aws.String("arn:aws:iam::" + account + ":role/eks"), ResourcesVpcConfig: &types.VpcConfigRequest{}})
	if err != nil {
		t.Fatal(err)
	}
	api := newEKSServer(t, "stg")
	front, err := simulated.WithCluster("stg", api.Server)
	if err != nil {
		t.Fatal(err)
	}
	before := endpoint
	endpoint = front.URL
	t.Cleanup(func() {
		endpoint = before
		front.Close()
	})
	home := agenttest.New(t)
	home.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "maint-runner"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "keys"}, Data: map[string][]byte{"accessKeyId": []byte("AKIAIOSFODNN7EXAMPLE"), "secretAccessKey": []byte("none")}})
	conn, _ := home.Connect()
	accounts := conn.Impersonate(client.External{
		HTTP: func() *http.Client { return http.DefaultClient }, Dial: (&net.Dialer{}).DialContext, AWSEndpoint: endpoint,
		EKS: awseks.NewClusters(session.NewPool(time.Now), time.Now),
	})
	reach := func(id, name string) (client.ClusterAccess, error) {
		return accounts.Access(context.Background(), client.Account{Namespace: "team", Name: "maint-runner"}, "", &client.Cluster{
			Name: "stg", Spec: connector.ClusterSpec{EKS: &connector.EKSCluster{Name: name}, ProviderRef: &connector.Ref{Name: "aws"}},
			Provider: &connector.AWS{AccountID: id, Region: region, Auth: connector.Auth{Static: &connector.StaticAuth{SecretRef: connector.Ref{Name: "keys"}}}},
		})
	}
	for range 2 {
		r, err := reach(account, "stg")
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Clients.Kube.CoreV1().ConfigMaps("team").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || got.Data["of"] != "stg" {
			t.Fatalf("%v, %v, refused for %q", got, err, api.refused)
		}
	}
	if n := accounts.Remotes(); n != 1 {
		t.Errorf("%d connections are kept, though nothing changed", n)
	}
	if _, err := reach("999999999999", "stg"); err == nil || !strings.Contains(err.Error(), "the credentials are of account "+account) {
		t.Errorf("credentials of another account: %v", err)
	}
	if _, err := reach(account, "none"); err == nil || !strings.Contains(err.Error(), "ResourceNotFoundException") {
		t.Errorf("a cluster that is not there: %v", err)
	}
}
