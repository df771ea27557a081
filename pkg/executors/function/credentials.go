package function

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Limits of the credentials of a step (guesses: a kubeconfig of another cluster may have as much). They
// are masked, for which each value is kept in dozens of forms.
const (
	MaxCredentials  = 64 << 10 // bytes of all values; those of a Secret for TLS may have as many
	leastCredential = 256      // what a value counts at least: it has as many forms, however short it is
)

// allowance is how many bytes of credentials the function may still be given.
type allowance struct {
	left, limit, sharers int
}

// allowed is what the function may be given: of a pipeline's, an equal part for each that has credentials,
// so that it does not depend on what the others are given.
func (c *conversation) allowed() allowance {
	sharers := 1
	if p, is := c.call.Properties.(*plan.PipelineProperties); is {
		sharers = 0
		for _, f := range p.Functions {
			if len(f.Credentials) > 0 {
				sharers++
			}
		}
	}
	limit := MaxCredentials / max(1, sharers)
	return allowance{left: limit, limit: limit, sharers: sharers}
}

// take takes what a Secret has, or says that it is too much.
func (a *allowance) take(c *conversation, secret *corev1.Secret) error {
	for _, value := range secret.Data {
		a.left -= max(leastCredential, len(value))
	}
	if a.left >= 0 {
		return nil
	}
	of := ""
	if a.sharers > 1 {
		of = fmt.Sprintf(", its part of %d for the %d functions that have some", MaxCredentials, a.sharers)
	}
	return api.Refuse(executors.ReasonTooLarge, "%s cannot be asked: with secret %s/%s its credentials have more than %d bytes%s (each value counts as at least %d); give it a Secret with less", c, c.call.Plan.Namespace, secret.Name, a.limit, of, leastCredential)
}

// boundTLS refuses certificates that take long to parse: that is done again for each call.
func (c *conversation) boundTLS(secret *corev1.Secret) error {
	size := 0
	for _, key := range []string{authorityKey, corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		size += len(secret.Data[key])
	}
	if size <= MaxCredentials {
		return nil
	}
	return api.Refuse(executors.ReasonTooLarge, "tls.secretName: ca.crt, tls.crt and tls.key of secret %s/%s have %d bytes; at most %d are allowed: leave out authorities that the function's certificate is not of", c.call.Plan.Namespace, secret.Name, size, MaxCredentials)
}
