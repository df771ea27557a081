package client

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// maxKubeconfig is how many bytes a kubeconfig may have (a guess: one of a single cluster
// has a tenth of that).
const maxKubeconfig = 64 << 10

// readKubeconfig is how the current context of a kubeconfig reaches its cluster. A tenant
// wrote it: whatever would run a program, read a file of the agent's, speak through another
// or for somebody else, or believe any server, is refused. Its other contexts do not matter.
func readKubeconfig(data []byte) (*rest.Config, error) {
	if len(data) > maxKubeconfig {
		return nil, fmt.Errorf("it has %d bytes; at most %d are read", len(data), maxKubeconfig)
	}
	if document.MayHaveAliases(data) {
		return nil, errors.New("it is no kubeconfig, or it has YAML aliases: write the values out")
	}
	all, err := clientcmd.Load(data)
	if err != nil {
		return nil, errors.New("it is no kubeconfig" + lineOf(err))
	}
	current, there := all.Contexts[all.CurrentContext]
	if !there || current == nil {
		return nil, fmt.Errorf("its current-context %q is not among its contexts", all.CurrentContext)
	}
	cluster, user := all.Clusters[current.Cluster], all.AuthInfos[current.AuthInfo]
	if cluster == nil || user == nil {
		return nil, fmt.Errorf("its context %q names the cluster %q and the user %q, and not both are there", all.CurrentContext, current.Cluster, current.AuthInfo)
	}
	if err := errors.Join(refusedFields("cluster", clusterFields(cluster)), refusedFields("user", userFields(user)), checkServer(cluster.Server)); err != nil {
		return nil, err
	}
	if user.Token == "" && (len(user.ClientCertificateData) == 0 || len(user.ClientKeyData) == 0) {
		return nil, errors.New("its user has no credentials: give it a token, or client-certificate-data and client-key-data")
	}
	config := &rest.Config{Host: cluster.Server, BearerToken: user.Token, TLSClientConfig: rest.TLSClientConfig{
		CAData: cluster.CertificateAuthorityData, CertData: user.ClientCertificateData, KeyData: user.ClientKeyData, ServerName: cluster.TLSServerName,
	}}
	return config, nil
}

// lineOf is where a text cannot be read. What stands there is a Secret's, and parsers repeat it.
func lineOf(err error) string {
	line := regexp.MustCompile(`\bline \d+\b`).FindString(err.Error())
	if line == "" {
		return ""
	}
	return ": it cannot be read at " + line
}

// refusedField is a field that is not accepted, and why.
type refusedField struct {
	name, why string
	set       bool
}

func clusterFields(c *clientcmdapi.Cluster) []refusedField {
	return []refusedField{
		{"insecure-skip-tls-verify", "any server would be believed", c.InsecureSkipTLSVerify},
		{"certificate-authority", "it is a file of another machine; write certificate-authority-data", c.CertificateAuthority != ""},
		{"proxy-url", "behind a proxy no address can be checked", c.ProxyURL != ""},
	}
}

func userFields(u *clientcmdapi.AuthInfo) []refusedField {
	const file = "it is a file of another machine"
	return []refusedField{
		{"exec", "it would run a program in the agent; write a token, or the certificate of a client", u.Exec != nil},
		{"auth-provider", "it would run a program in the agent; write a token, or the certificate of a client", u.AuthProvider != nil},
		{"tokenFile", file + "; write token", u.TokenFile != ""},
		{"client-certificate", file + "; write client-certificate-data", u.ClientCertificate != ""},
		{"client-key", file + "; write client-key-data", u.ClientKey != ""},
		{"username", "Kubernetes knows no passwords any more", u.Username != "" || u.Password != ""},
		{"as", "whose rights count would be hidden; give the credentials of that user", u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups) > 0 || len(u.ImpersonateUserExtra) > 0},
	}
}

func refusedFields(what string, fields []refusedField) error {
	var faults []error
	for _, f := range fields {
		if f.set {
			faults = append(faults, fmt.Errorf("its %s has %s, which is not accepted: %s", what, f.name, f.why))
		}
	}
	return errors.Join(faults...)
}

// checkServer refuses what is no API server's address: without TLS, a token would be
// anybody's.
func checkServer(server string) error {
	u, err := url.Parse(server)
	switch {
	case err != nil || u.Host == "":
		return errors.New("its server is no address: write it like https://api.example.org:6443")
	case u.Scheme != "https":
		return fmt.Errorf("its server is reached by %q; only https is accepted", strings.ToLower(u.Scheme))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("its server holds more than an address and a path")
	}
	return nil
}
