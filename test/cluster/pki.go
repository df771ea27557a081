package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// pki is the cluster's authority and what it has signed, in memory and as
// files for the processes. It is made anew for each cluster.
type pki struct {
	dir       string
	authority *x509.Certificate
	signer    crypto.Signer

	ca                identity
	apiServer         identity
	admin             identity
	controllerManager identity
	scheduler         identity
	serviceAccounts   identity // a key alone: it signs tokens, nobody trusts a certificate of it
}

// identity is a certificate with its key, PEM-encoded, and where they lie.
type identity struct {
	certPEM, keyPEM   []byte
	certFile, keyFile string
}

func newPKI(dir string) (*pki, error) {
	p := &pki{dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := p.makeAuthority(); err != nil {
		return nil, fmt.Errorf("make certificate authority: %w", err)
	}
	wanted := []struct {
		file    string
		into    *identity
		subject pkix.Name
	}{
		{"apiserver", &p.apiServer, pkix.Name{CommonName: "kube-apiserver"}},
		{"admin", &p.admin, pkix.Name{CommonName: "maint-test-admin", Organization: []string{"system:masters"}}},
		{"controller-manager", &p.controllerManager, pkix.Name{CommonName: "system:kube-controller-manager"}},
		{"scheduler", &p.scheduler, pkix.Name{CommonName: "system:kube-scheduler"}},
		{"service-accounts", &p.serviceAccounts, pkix.Name{CommonName: "service-accounts"}},
	}
	for _, w := range wanted {
		id, err := p.issue(w.file, w.subject)
		if err != nil {
			return nil, fmt.Errorf("make certificate of %s: %w", w.file, err)
		}
		*w.into = id
	}
	return p, nil
}

func (p *pki) makeAuthority() error {
	key, err := newKey()
	if err != nil {
		return err
	}
	template := certificate(pkix.Name{CommonName: "maint-test-ca"})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	if p.authority, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	p.signer = key
	p.ca, err = p.write("ca", der, key)
	return err
}

// issue signs a certificate that serves on loopback and identifies a client.
func (p *pki) issue(file string, subject pkix.Name) (identity, error) {
	key, err := newKey()
	if err != nil {
		return identity{}, err
	}
	template := certificate(subject)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.DNSNames = []string{"localhost", "kubernetes.default.svc"}
	der, err := x509.CreateCertificate(rand.Reader, template, p.authority, key.Public(), p.signer)
	if err != nil {
		return identity{}, err
	}
	return p.write(file, der, key)
}

// Elliptic keys take no time to make, RSA ones take a second each.
func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func certificate(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:      subject,
		SerialNumber: big.NewInt(now.UnixNano()),
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(0, 0, 7),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
}

func (p *pki) write(file string, der []byte, key *ecdsa.PrivateKey) (identity, error) {
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return identity{}, err
	}
	id := identity{
		certPEM:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		keyPEM:   pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
		certFile: filepath.Join(p.dir, file+".crt"),
		keyFile:  filepath.Join(p.dir, file+".key"),
	}
	if err := os.WriteFile(id.certFile, id.certPEM, 0o644); err != nil {
		return identity{}, err
	}
	return id, os.WriteFile(id.keyFile, id.keyPEM, 0o600)
}
