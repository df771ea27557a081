package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenLifetime is longer than any demo or benchmark; tests never refresh.
const tokenLifetime = 12 * time.Hour

// AdminConfig returns a new client configuration of a cluster administrator
// (group system:masters), without a limit on requests per second.
func (c *Cluster) AdminConfig() *rest.Config {
	return c.certConfig(c.pki.admin)
}

func (c *Cluster) certConfig(id identity) *rest.Config {
	config := c.anonymousConfig()
	config.CertData = slices.Clone(id.certPEM)
	config.KeyData = slices.Clone(id.keyPEM)
	return config
}

// ServiceAccountConfig returns a client configuration that acts as an existing
// ServiceAccount, with a token from the API server that is good for 12 hours
// and without a limit on requests per second.
func (c *Cluster) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	client, err := c.clientset()
	if err != nil {
		return nil, err
	}
	seconds := int64(tokenLifetime.Seconds())
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("request token of service account %s/%s: %w", namespace, name, err)
	}
	config := c.anonymousConfig()
	config.BearerToken = answer.Status.Token
	return config, nil
}

func (c *Cluster) anonymousConfig() *rest.Config {
	return &rest.Config{
		Host:            fmt.Sprintf("https://127.0.0.1:%d", c.ports.apiServer()),
		QPS:             -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: slices.Clone(c.pki.ca.certPEM)},
	}
}

func (c *Cluster) clientset() (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(c.AdminConfig())
}

// KubeconfigFile writes the address, the authority and the credentials of cfg
// (token or client certificate) as a kubeconfig in the cluster's directory and
// returns its path. The name becomes the file's name and the user's.
func (c *Cluster) KubeconfigFile(name string, cfg *rest.Config) (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["maint"] = &clientcmdapi.Cluster{
		Server:                   cfg.Host,
		CertificateAuthorityData: cfg.CAData,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{
		Token:                 cfg.BearerToken,
		ClientCertificateData: cfg.CertData,
		ClientKeyData:         cfg.KeyData,
		Impersonate:           cfg.Impersonate.UserName,
		ImpersonateGroups:     cfg.Impersonate.Groups,
	}
	config.Contexts["maint"] = &clientcmdapi.Context{Cluster: "maint", AuthInfo: name}
	config.CurrentContext = "maint"
	dir := filepath.Join(c.dir, "kubeconfig")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("write kubeconfig %s: %w", name, err)
	}
	path := filepath.Join(dir, name+".yaml")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("write kubeconfig %s: %w", name, err)
	}
	return path, nil
}
