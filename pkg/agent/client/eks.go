package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// EKS says how clusters of EKS are reached, by the account of AWS that a call's Cloud is and
// the cluster that it names. The answers are kept for as long as they are good.
type EKS interface {
	Address(ctx context.Context, call executors.SleepCall) (executors.ClusterAddress, error)
	Token(ctx context.Context, call executors.SleepCall) (string, error)
}

// cloudPause is after how long AWS is asked again that did not answer as it should (a guess).
const cloudPause = 5 * time.Second

// eksConfig is how an account reaches a cluster of EKS. Each request carries the token of its
// moment; where the cluster is and whose credentials count tell connections apart.
func (a *Impersonator) eksConfig(ctx context.Context, home executors.Clients, w Account, c Cluster) (*rest.Config, string, *executors.Outcome) {
	if a.external.EKS == nil {
		return nil, "", a.noConnection(c, errors.New("this agent reaches no clusters of EKS"))
	}
	if c.Provider == nil {
		return nil, "", a.noConnection(c, errors.New("the CloudProvider of its providerRef is not known"))
	}
	spec := *c.Provider
	if region := c.Spec.EKS.Region; region != "" {
		spec.Region = region
	}
	cloud, err := a.Cloud(ctx, w, spec)
	if err != nil { // of our own API server, if it is not that the account is gone
		return nil, "", a.cloudFailure(c, &executors.TransientError{Err: err})
	}
	cloud.Cluster = c.Spec.EKS.Name
	call := executors.SleepCall{Plan: executors.PlanRef{Namespace: w.Namespace, Account: w.Name}, Clients: home, Cloud: cloud, Now: a.now()}
	at, err := a.external.EKS.Address(ctx, call)
	if err == nil {
		err = checkServer(at.Server)
	}
	if err != nil {
		return nil, "", a.cloudFailure(c, err)
	}
	config := &rest.Config{Host: at.Server, TLSClientConfig: rest.TLSClientConfig{CAData: at.Authority}}
	config.WrapTransport = a.bearing(c, call)
	return config, digestOf("eks", at.Server, string(at.Authority), spec.AccountID, spec.Region, spec.AssumeRoleARN, cloud.Credentials, cloud.Cluster), nil
}

// bearing gives each request the token of its moment. Where that is refused, it is not the
// cluster that does not answer.
func (a *Impersonator) bearing(c Cluster, call executors.SleepCall) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return RoundTripper(func(req *http.Request) (*http.Response, error) {
			token, err := a.external.EKS.Token(req.Context(), call)
			if err != nil {
				return nil, &executors.CredentialsError{Outcome: *a.cloudFailure(c, err)}
			}
			req = req.Clone(req.Context())
			req.Header.Set("Authorization", "Bearer "+token)
			return next.RoundTrip(req)
		})
	}
}

// cloudFailure is what AWS says, or that it does not answer.
func (a *Impersonator) cloudFailure(c Cluster, err error) *executors.Outcome {
	var passing *executors.TransientError
	var credentials *executors.CredentialsError
	if errors.As(err, &credentials) {
		out := credentials.Outcome
		out.Message = document.Cut(fmt.Sprintf("K8SCluster %s: %s", c.Name, out.Message), document.MaxMessage)
		return &out
	}
	if !errors.As(err, &passing) {
		return a.noConnection(c, err)
	}
	out := executors.Fail(executors.ReasonUnavailable, "%s", fmt.Sprintf("K8SCluster %s: %s", c.Name, err))
	out.State, out.WakeAt = executors.NotYet, a.now().Add(cloudPause)
	return &out
}
