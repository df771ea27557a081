package aws

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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
	cluster string
	mu      sync.Mutex
	refused []string
	served  int
}

func newEKSServer(t *testing.T, cluster string) *eksServer {
	s := &eksServer{cluster: cluster}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := s.authenticate(r); why != "" {
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

// authenticate is what aws-iam-authenticator does with a token; empty: it is good.
func (s *eksServer) authenticate(r *http.Request) string {
	text, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer k8s-aws-v1.")
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if !is || err != nil {
		return "no token of EKS"
	}
	to, err := url.Parse(string(raw))
	if err != nil {
		return err.Error()
	}
	q := to.Query()
	signed, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
	switch {
	case q.Get("Action") != "GetCallerIdentity":
		return "it asks STS for " + q.Get("Action")
	case !strings.Contains(";"+q.Get("X-Amz-SignedHeaders")+";", ";x-k8s-aws-id;"):
		return "it is signed for no cluster: " + q.Get("X-Amz-SignedHeaders")
	case q.Get("X-Amz-Expires") != "60" || err != nil || time.Since(signed) > time.Minute:
		return "it is good for " + q.Get("X-Amz-Expires") + " since " + q.Get("X-Amz-Date")
	case "http://"+to.Host != endpoint:
		return "it is for " + to.Host
	}
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodGet, to.String(), nil)
	if err != nil {
		return err.Error()
	}
	ask.Header.Set("X-K8s-Aws-Id", s.cluster)
	// moto looks for the service in this header alone; AWS finds it in the address.
	ask.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+q.Get("X-Amz-Credential")+", SignedHeaders=host, Signature="+q.Get("X-Amz-Signature"))
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(account)) {
		return fmt.Sprintf("STS says %d %s", answer.StatusCode, body)
	}
	return ""
}

// inFront is AWS with the cluster at an API server of ours: moto's leads nowhere. STS is
// reached past it, so that what is signed for it holds.
func inFront(t *testing.T, api *eksServer) string {
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Path != "/clusters/"+api.cluster || r.StatusCode != http.StatusOK {
				return nil
			}
			var got map[string]map[string]any
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
				return err
			}
			got["cluster"]["endpoint"] = api.URL
			got["cluster"]["certificateAuthority"] = map[string]string{"data": base64.StdEncoding.EncodeToString(authority)}
			b, err := json.Marshal(got)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
			r.Header.Set("Content-Length", fmt.Sprint(len(b)))
			return err
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

func TestAClusterOfEKSIsReachedWithTheCredentialsOfThePlan(t *testing.T) {
	_, err := eks.NewFromConfig(fresh(t)).CreateCluster(t.Context(), &eks.CreateClusterInput{Name: aws.String("stg"), RoleArn: aws.String("arn:aws:iam::" + account + ":role/eks"), ResourcesVpcConfig: &types.VpcConfigRequest{}})
	if err != nil {
		t.Fatal(err)
	}
	api := newEKSServer(t, "stg")
	before := endpoint
	endpoint = inFront(t, api)
	t.Cleanup(func() { endpoint = before })
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
