package function_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/functiontest"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	a := authority{certificate: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// signs makes a certificate with its key, for a server at 127.0.0.1 that is also
// called fn.example.org, or for its client.
func (a authority) signs(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"fn.example.org"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.certificate, private.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	b, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: b})
}

// serve is a function with a certificate of this authority, which wants one from
// its callers.
func (a authority) serve(t *testing.T) string {
	t.Helper()
	pair, err := tls.X509KeyPair(a.signs(t))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(a.pem)
	return functiontest.Serve(t, said(&fnv1.RunFunctionResponse{}), grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	})))
}

// padded is PEM with spaces after it, of so many bytes.
func padded(pem []byte, size int) []byte {
	return append(slices.Clone(pem), bytes.Repeat([]byte(" "), size-len(pem))...)
}

func TestWhomItTrusts(t *testing.T) {
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	endpoint := ours.serve(t)
	certificate, key := ours.signs(t)
	strange, strangeKey := theirs.signs(t)
	for name, c := range map[string]struct {
		tls    *plan.FunctionTLS
		secret map[string][]byte
		state  executors.State
		final  bool
		reason string
		words  []string
	}{
		"both sides have what the other wants": {
			tls: &plan.FunctionTLS{SecretName: "tls"}, secret: map[string][]byte{"ca.crt": ours.pem, "tls.crt": certificate, "tls.key": key}, state: executors.Done,
		},
		"by another name of the server": {
			tls: &plan.FunctionTLS{SecretName: "tls", ServerName: "fn.example.org"}, state: executors.Done,
			secret: map[string][]byte{"ca.crt": ours.pem, "tls.crt": certificate, "tls.key": key},
		},
		"by a name that is not the server's": {
			tls: &plan.FunctionTLS{SecretName: "tls", ServerName: "other.example.org"}, state: executors.Failed, reason: "TLS", words: []string{"other.example.org"},
			secret: map[string][]byte{"ca.crt": ours.pem, "tls.crt": certificate, "tls.key": key},
		},
		"the server is signed by another authority": {
			tls: &plan.FunctionTLS{SecretName: "tls"}, secret: map[string][]byte{"ca.crt": theirs.pem, "tls.crt": certificate, "tls.key": key},
			state: executors.Failed, reason: "TLS", words: []string{"ca.crt in secret shop/tls"},
		},
		"the server is signed by nobody the system knows": {
			state: executors.Failed, reason: "TLS", words: []string{"name it in tls.secretName"},
		},
		"the client has no certificate": {
			tls: &plan.FunctionTLS{SecretName: "tls"}, secret: map[string][]byte{"ca.crt": ours.pem}, state: executors.Failed, reason: "Unavailable",
		},
		"the client's certificate is another authority's": {
			tls: &plan.FunctionTLS{SecretName: "tls"}, secret: map[string][]byte{"ca.crt": ours.pem, "tls.crt": strange, "tls.key": strangeKey},
			state: executors.Failed, reason: "Unavailable",
		},
		"plaintext where TLS is spoken": {
			tls: &plan.FunctionTLS{Insecure: true}, state: executors.Failed, reason: "Unavailable",
		},
		"a secret without any of the keys": {
			tls: &plan.FunctionTLS{SecretName: "tls"}, secret: map[string][]byte{"ca": ours.pem}, state: executors.Failed, final: true, reason: "Invalid",
			words: []string{"tls.secretName", "shop/tls", "ca.crt", "its keys are: ca"},
		},
		"a certificate without its key": {
			tls: &plan.FunctionTLS{SecretName: "tls"}, secret: map[string][]byte{"tls.crt": certificate}, state: executors.Failed, final: true, reason: "Invalid",
			words: []string{"only one of tls.crt and tls.key"},
		},
		"a certificate with another's key": {
			tls: &plan.FunctionTLS{SecretName: "tls"}, secret: map[string][]byte{"tls.crt": certificate, "tls.key": strangeKey}, state: executors.Failed, final: true, reason: "Invalid",
			words: []string{"tls.crt and tls.key"},
		},
		"an authority that is no certificate": {
			tls: &plan.FunctionTLS{SecretName: "tls"}, secret: map[string][]byte{"ca.crt": []byte("trust me")}, state: executors.Failed, final: true, reason: "Invalid",
			words: []string{"ca.crt", "PEM"},
		},
		"as much as there may be": {
			tls: &plan.FunctionTLS{SecretName: "tls"}, state: executors.Done,
			secret: map[string][]byte{"ca.crt": padded(ours.pem, function.MaxCredentials-len(certificate)-len(key)), "tls.crt": certificate, "tls.key": key, "keystore.p12": make([]byte, 300<<10)},
		},
		"more authorities": {
			tls: &plan.FunctionTLS{SecretName: "tls"}, state: executors.Failed, final: true, reason: "TooLarge",
			secret: map[string][]byte{"ca.crt": padded(ours.pem, function.MaxCredentials+1-len(certificate)-len(key)), "tls.crt": certificate, "tls.key": key},
			words:  []string{"tls.secretName", "shop/tls", "65537 bytes; at most 65536"},
		},
		"a longer chain": {
			tls: &plan.FunctionTLS{SecretName: "tls"}, state: executors.Failed, final: true, reason: "TooLarge",
			secret: map[string][]byte{"tls.crt": padded(certificate, function.MaxCredentials), "tls.key": key},
		},
		"a secret that is not there": {
			tls: &plan.FunctionTLS{SecretName: "never"}, state: executors.Failed, final: true, reason: executors.ReasonNotFound, words: []string{`secrets "never"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			call := callOf(endpoint, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "tls"}, Data: c.secret})
			props(call).TLS = c.tls
			ends(t, pass(t, call), c.state, c.final, c.reason, c.words...)
		})
	}
}

// Who looks at when certificates end hears of both, also where a call fails later.
func TestCertificatesAreTold(t *testing.T) {
	ours := newAuthority(t, "ours")
	endpoint := ours.serve(t)
	certificate, key := ours.signs(t)
	call := callOf(endpoint, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "tls"}, Data: map[string][]byte{"ca.crt": ours.pem, "tls.crt": certificate, "tls.key": key}})
	props(call).TLS = &plan.FunctionTLS{SecretName: "tls"}
	var mu sync.Mutex
	told := map[executors.Certificate]time.Time{}
	call.Clients.Certificate = func(c executors.Certificate, ends time.Time) {
		mu.Lock()
		defer mu.Unlock()
		told[c] = ends
	}
	ends(t, pass(t, call), executors.Done, false, "")
	mu.Lock()
	defer mu.Unlock()
	for _, side := range []string{executors.ServerSide, executors.ClientSide} {
		at := told[executors.Certificate{Namespace: "shop", Endpoint: endpoint, Side: side}]
		if left := time.Until(at); left < 50*time.Minute || left > time.Hour { // signs says an hour
			t.Errorf("the certificate of the %s is told to end in %s; told were %v", side, left, told)
		}
	}
}

// The agent's certificate is for installed functions: a step that names an endpoint never shows it.
func TestWhoIsShownTheAgentsCertificate(t *testing.T) {
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	endpoint := ours.serve(t)
	certificate, key := ours.signs(t)
	strange, strangeKey := theirs.signs(t)
	good := map[string][]byte{"ca.crt": ours.pem, "tls.crt": certificate, "tls.key": key}
	there := revision("pkg.crossplane.io/v1", "resize", "resize-1", "Active", "dns:///"+endpoint, 1)
	tls := func(data map[string][]byte, err error) func(context.Context) (*corev1.Secret, error) {
		return func(context.Context) (*corev1.Secret, error) {
			if data == nil {
				return nil, err
			}
			return &corev1.Secret{Data: data}, err
		}
	}
	for name, c := range map[string]struct {
		agent  func(context.Context) (*corev1.Secret, error)
		own    *plan.FunctionTLS
		direct bool // by its endpoint
		state  executors.State
		final  bool
		reason string
		words  []string
	}{
		"an installed function":            {agent: tls(good, nil), state: executors.Done},
		"with a certificate of the plan's": {agent: tls(nil, nil), own: &plan.FunctionTLS{SecretName: "tls"}, state: executors.Done},
		"one that is named by its address": {agent: tls(good, nil), direct: true, own: &plan.FunctionTLS{}, state: executors.Failed, reason: "TLS"},
		"the configuration names none":     {agent: tls(nil, nil), state: executors.Failed, final: true, reason: "NoCertificate", words: []string{"spec.functions.tlsSecretRef"}},
		"this agent has none to give":      {state: executors.Failed, final: true, reason: "NoCertificate", words: []string{"spec.functions.tlsSecretRef"}},
		"its Secret is not there":          {agent: tls(nil, &agentconfig.SecretError{Why: "Secret maint-system/fn is not there"}), state: executors.Failed, final: true, reason: "NoCertificate", words: []string{"Secret maint-system/fn is not there"}},
		"it may not be read yet":           {agent: tls(nil, &agentconfig.SecretError{Why: "Secret maint-system/fn may not be read", Err: apierrors.NewForbidden(corev1.Resource("secrets"), "fn", nil)}), state: executors.NotYet, reason: executors.ReasonForbidden},
		"the API server is away":           {agent: tls(nil, errors.New("connection refused")), state: executors.NotYet, reason: executors.ReasonUnavailable},
		"its Secret holds nothing of use":  {agent: tls(map[string][]byte{"password": nil}, nil), state: executors.Failed, final: true, reason: "NoCertificate", words: []string{"has none of ca.crt, tls.crt and tls.key"}},
		"the function is signed by others": {agent: tls(map[string][]byte{"ca.crt": theirs.pem, "tls.crt": strange, "tls.key": strangeKey}, nil), state: executors.Failed, reason: "TLS", words: []string{"spec.functions.tlsSecretRef"}},
	} {
		t.Run(name, func(t *testing.T) {
			call := installed("resize", "pkg.crossplane.io/v1", c.own, there)
			if c.direct {
				props(call).Endpoint, props(call).FunctionRef = endpoint, nil
			}
			call.Clients.Kube = fake.NewSimpleClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "tls"}, Data: good})
			call.Clients.FunctionTLS = c.agent
			out := pass(t, call)
			ends(t, out, c.state, c.final, c.reason, c.words...)
			if strings.Contains(out.Message, "password") {
				t.Errorf("%q tells what the agent's Secret holds", out.Message)
			}
		})
	}
}
