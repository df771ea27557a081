package client_test

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// kubeconfigOf is a kubeconfig whose cluster and user hold some lines.
func kubeconfigOf(cluster, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {%s}}]
users: [{name: u, user: {%s}}]
`, cluster, user)
}

const there = "server: https://api.stg.test:6443"

// stg is another cluster, by a Secret of the same name.
func stg() client.Cluster {
	return client.Cluster{Name: "stg", Spec: connector.ClusterSpec{K8S: &connector.Kubernetes{KubeconfigRef: connector.KubeconfigRef{Name: "stg"}}}}
}

func kubeconfigSecret(text string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stg"}, Data: map[string][]byte{"kubeconfig": []byte(text)}}
}

// farWorld is a home cluster, another one, and how that is reached.
type farWorld struct {
	home, far *agenttest.Cluster
	conn      *client.Connection
	accounts  *client.Impersonator
	rules     string
	reached   []rest.Config
	answer    func(*http.Request) (*http.Response, error) // in place of the other cluster
	last      *http.Request
}

func newFarWorld(t *testing.T) *farWorld {
	w := &farWorld{home: agenttest.New(t), far: agenttest.New(t)}
	w.home.Put(account(), kubeconfigSecret(kubeconfigOf(there, "token: t1")))
	w.far.Put(configMap("a"))
	w.conn, _ = w.home.Connect()
	w.accounts = w.conn.Impersonate(client.External{HTTP: func() *http.Client { return nil }, Rules: func() string { return w.rules }, Remote: func(c *rest.Config) (http.RoundTripper, error) {
		w.reached = append(w.reached, *c)
		return client.RoundTripper(func(r *http.Request) (*http.Response, error) {
			w.last = r
			if w.answer != nil {
				return w.answer(r)
			}
			return w.far.RoundTrip(r)
		}), nil
	}})
	return w
}

func (w *farWorld) clients(t *testing.T) executors.Clients {
	t.Helper()
	c, failure := w.accounts.Remote(t.Context(), maintRunner(), stg())
	if failure != nil {
		t.Fatal(failure.Message)
	}
	return c
}

func TestAnotherClusterIsReachedWithItsOwnCredentialsAlone(t *testing.T) {
	w := newFarWorld(t)
	c := w.clients(t)
	if _, err := c.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	for name := range w.last.Header {
		if strings.HasPrefix(name, "Impersonate") {
			t.Errorf("it is told %s", name)
		}
	}
	if got := w.last.Header.Get("Authorization"); got != "Bearer t1" || !strings.HasPrefix(w.last.URL.String(), "https://api.stg.test:6443/") {
		t.Errorf("%s was asked with %q", w.last.URL, got)
	}
	if c.Cluster != "stg" || c.Config != nil {
		t.Errorf("the clients are of %q, and may stream by %v", c.Cluster, c.Config)
	}
}

func TestClientsOfAnotherClusterAreKeptWhileNothingChanges(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *farWorld)
		anew   bool
	}{
		"nothing":                     {change: func(*farWorld) {}},
		"the Secret is replaced":      {change: func(w *farWorld) { w.home.Put(kubeconfigSecret(kubeconfigOf(there, "token: t2"))) }, anew: true},
		"the outbound rules change":   {change: func(w *farWorld) { w.rules = "narrower" }, anew: true},
		"nobody used them for an age": {change: func(*farWorld) { time.Sleep(time.Hour) }, anew: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFarWorld(t)
				first := w.clients(t)
				c.change(w)
				if again := w.clients(t); (again.Kube != first.Kube) != c.anew {
					t.Errorf("made anew: %t, want %t", again.Kube != first.Kube, c.anew)
				}
				if name == "nobody used them for an age" && w.accounts.Remotes() != 1 {
					t.Errorf("%d are kept", w.accounts.Remotes())
				}
			})
		})
	}
}

// Whose word counts is asked each time: what was let in once is not let in for ever.
func TestWhatKeepsAnotherClusterFromBeingReached(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *farWorld)
		reason string
		says   string
	}{
		"a right that was taken away": {change: func(w *farWorld) { w.home.Deny(runner, "get", "secrets") }, reason: executors.ReasonForbidden, says: `serviceaccount shop/maint-runner may not get secrets "stg", which holds the kubeconfig of K8SCluster stg`},
		"a Secret without the key": {change: func(w *farWorld) {
			s := kubeconfigSecret("")
			s.Data = map[string][]byte{"other": []byte("x")}
			w.home.Put(s)
		}, reason: executors.ReasonNoConnection, says: "the Secret stg has nothing under the key kubeconfig"},
		"a kubeconfig that cannot be used": {change: func(w *farWorld) { w.home.Put(kubeconfigSecret(kubeconfigOf(there, "tokenFile: /x"))) }, reason: executors.ReasonNoConnection, says: "K8SCluster stg: the kubeconfig under the key kubeconfig of the Secret stg cannot be used: its user has tokenFile"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFarWorld(t)
			w.clients(t)
			c.change(w)
			_, failure := w.accounts.Remote(t.Context(), maintRunner(), stg())
			if failure == nil || failure.Reason != c.reason || !strings.Contains(failure.Message, c.says) {
				t.Errorf("it said %+v, want %s: %s", failure, c.reason, c.says)
			}
		})
	}
}

func TestASecretThatIsNotThereIsNamed(t *testing.T) {
	w := newFarWorld(t)
	other := stg()
	other.Spec.K8S.KubeconfigRef.Name = "gone"
	_, failure := w.accounts.Remote(t.Context(), maintRunner(), other)
	if failure == nil || failure.Reason != executors.ReasonNoConnection || !strings.Contains(failure.Message, "the Secret gone, which holds its kubeconfig, does not exist in namespace shop") {
		t.Errorf("it said %+v", failure)
	}
}

func TestAnAgentThatMayNotLeadChangesNothingOnAnotherCluster(t *testing.T) {
	w := newFarWorld(t)
	c := w.clients(t)
	w.conn.Fence.Close()
	if _, err := c.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Errorf("it may look: %v", err)
	}
	if _, err := c.Kube.CoreV1().ConfigMaps("shop").Create(t.Context(), configMap("b"), metav1.CreateOptions{}); !errors.Is(err, client.ErrFenced) {
		t.Errorf("it said %v", err)
	}
}

// What is not read must not be asked for: the typed clients prefer protobuf by themselves.
func TestAnotherClusterIsAskedForJSON(t *testing.T) {
	w := newFarWorld(t)
	c := w.clients(t)
	w.answer = func(r *http.Request) (*http.Response, error) {
		for _, name := range []string{"Accept", "Content-Type"} {
			if strings.Contains(r.Header.Get(name), "protobuf") {
				t.Errorf("%s %s has %s: %s", r.Method, r.URL.Path, name, r.Header.Get(name))
			}
		}
		return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
	}
	_, _ = c.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), "a", metav1.GetOptions{})
	_, _ = c.Kube.CoreV1().ConfigMaps("shop").Create(t.Context(), configMap("b"), metav1.CreateOptions{})
	_, _ = c.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("shop").Get(t.Context(), "a", metav1.GetOptions{})
}

// The other cluster may be anybody's.
func TestWhatAnotherClusterAnswersIsBounded(t *testing.T) {
	w := newFarWorld(t)
	c := w.clients(t)
	sent := 0
	w.answer = func(r *http.Request) (*http.Response, error) {
		sent++
		if r.URL.Host != "api.stg.test:6443" {
			t.Errorf("it followed to %s", r.URL)
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(endless{}), Request: r}, nil
	}
	if _, err := c.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), "a", metav1.GetOptions{}); err == nil || !strings.Contains(err.Error(), "the answer of the API server is too large") {
		t.Errorf("it said %v", err)
	}
	w.answer = func(r *http.Request) (*http.Response, error) {
		sent++
		return &http.Response{StatusCode: http.StatusTemporaryRedirect, Header: http.Header{"Location": {"https://thief.test/"}}, Body: http.NoBody, Request: r}, nil
	}
	sent = 0
	if _, err := c.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), "a", metav1.GetOptions{}); err == nil || sent != 1 {
		t.Errorf("a redirect was followed: %d requests, %v", sent, err)
	}
}

// Headers are a map before anybody has looked at the body: they have a bound of their own.
func TestTheHeadersOfAnotherClusterAreBounded(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 10_000 {
			w.Header().Set(fmt.Sprintf("A%d", i), "")
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}`)
	}))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	home := agenttest.New(t)
	home.Put(account(), kubeconfigSecret(kubeconfigOf("server: "+server.URL+", certificate-authority-data: "+base64.StdEncoding.EncodeToString(ca), "token: t1")))
	conn, _ := home.Connect()
	accounts := conn.Impersonate(client.External{HTTP: func() *http.Client { return nil }, Dial: (&net.Dialer{}).DialContext})
	c, failure := accounts.Remote(t.Context(), maintRunner(), stg())
	if failure != nil {
		t.Fatal(failure.Message)
	}
	if _, err := c.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), "a", metav1.GetOptions{}); err == nil || !strings.Contains(err.Error(), "header") {
		t.Errorf("it said %v", err)
	}
}

type endless struct{}

// Read is io.Reader's.
func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestWhichKubeconfigsAreRefused(t *testing.T) {
	token := "token: t"
	for name, c := range map[string]struct{ text, says string }{
		"a program":                     {kubeconfigOf(there, "exec: {apiVersion: client.authentication.k8s.io/v1, command: id, interactiveMode: Never}"), "its user has exec, which is not accepted: it would run a program"},
		"a provider":                    {kubeconfigOf(there, "auth-provider: {name: gcp}"), "its user has auth-provider"},
		"a token in a file":             {kubeconfigOf(there, "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token"), "its user has tokenFile"},
		"a certificate in a file":       {kubeconfigOf(there, token+", client-certificate: /x"), "its user has client-certificate, which"},
		"a key in a file":               {kubeconfigOf(there, token+", client-key: /x"), "its user has client-key, which"},
		"a password":                    {kubeconfigOf(there, "username: a, password: b"), "its user has username"},
		"somebody else":                 {kubeconfigOf(there, token+", as: admin"), "its user has as, which"},
		"a group":                       {kubeconfigOf(there, token+", as-groups: ['system:masters']"), "its user has as, which"},
		"nobody":                        {kubeconfigOf(there, ""), "its user has no credentials"},
		"a certificate without a key":   {kubeconfigOf(there, "client-certificate-data: eA=="), "its user has no credentials"},
		"any server":                    {kubeconfigOf(there+", insecure-skip-tls-verify: true", token), "insecure-skip-tls-verify, which is not accepted: any server would be believed"},
		"an authority in a file":        {kubeconfigOf(there+", certificate-authority: /x", token), "its cluster has certificate-authority, which"},
		"a proxy":                       {kubeconfigOf(there+", proxy-url: 'http://proxy.test'", token), "its cluster has proxy-url"},
		"no TLS":                        {kubeconfigOf("server: http://api.stg.test", token), `reached by "http"; only https`},
		"no server":                     {kubeconfigOf("", token), "its server is no address"},
		"a password in the address":     {kubeconfigOf("server: 'https://a:b@api.stg.test'", token), "more than an address"},
		"no context":                    {strings.Replace(kubeconfigOf(there, token), "current-context: c", "current-context: d", 1), `its current-context "d" is not among its contexts`},
		"no user":                       {strings.Replace(kubeconfigOf(there, token), "user: u}", "user: v}", 1), `the user "v", and not both are there`},
		"values that stand for others":  {strings.Replace(kubeconfigOf(there, token), "current-context: c", "current-context: c\nx: &a "+strings.Repeat("A", 20_000)+"\ny: ["+strings.Repeat("*a,", 10_000)+"*a]", 1), "or it has YAML aliases: write the values out"},
		"no kubeconfig":                 {"[", "it is no kubeconfig"},
		"what is longer than it may be": {strings.Repeat("#", 70<<10), "at most 65536 are read"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFarWorld(t)
			w.home.Put(kubeconfigSecret(c.text))
			_, failure := w.accounts.Remote(t.Context(), maintRunner(), stg())
			if failure == nil || failure.Reason != executors.ReasonNoConnection || !strings.Contains(failure.Message, c.says) || len(w.reached) > 0 {
				t.Errorf("it said %+v, want %s", failure, c.says)
			}
		})
	}
}

// A Secret that holds something else is no kubeconfig, and what it holds is nobody's to read.
func TestWhatIsNoKubeconfigIsNotRepeated(t *testing.T) {
	for text, want := range map[string]string{"*hunter2": "it is no kubeconfig", "hunter2": "it is no kubeconfig", "a: b\n\thunter2": "cannot be read at line 2", "kind: hunter2\napiVersion: hunter2": "it is no kubeconfig"} {
		w := newFarWorld(t)
		w.home.Put(kubeconfigSecret(text))
		_, failure := w.accounts.Remote(t.Context(), maintRunner(), stg())
		if failure == nil || !strings.Contains(failure.Message, want) || strings.Contains(failure.Message, "hunter2") {
			t.Errorf("%q: %+v, want %s", text, failure, want)
		}
	}
}
