package executors

import (
	"context"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
)

// Cloud is an account of a cloud, and where the plan's ServiceAccount gets credentials for it. The
// agent's own environment, machine and files are never searched for others.
type Cloud struct {
	AWS connector.AWS
	// Credentials names the source of Keys or Token. Another name is another session: nobody
	// continues with what was read for somebody else, or before it was replaced.
	Credentials string
	// Keys reads those of auth.static.
	Keys func(ctx context.Context) (AccessKeys, error)
	// Token is the one of auth.serviceAccount: for the audience sts.amazonaws.com.
	Token func(ctx context.Context) (WebIdentity, error)
	// Endpoint replaces the cloud's own; empty: it does not.
	Endpoint string
	// Cluster is the EKS cluster that the target's connector names; empty: none.
	Cluster string
	// Connect reaches the API server of Cluster with the rights that the credentials have there;
	// nil without a Cluster.
	Connect func(ctx context.Context) (Clients, error)
}

// TokenAudience is the audience of tokens that STS accepts.
const TokenAudience = "sts.amazonaws.com"

// AccessKeys are an access key of AWS.
type AccessKeys struct{ ID, Secret, Session string }

// WebIdentity is a ServiceAccount token, and the role that STS gives for it.
type WebIdentity struct{ Token, RoleARN string }

// Region is the region of the target's connector; empty: it has none.
func (c SleepCall) Region() string {
	if c.Cloud == nil {
		return ""
	}
	return c.Cloud.AWS.Region
}

// InCloud is the call of a step to its cloud account, in the form of a call for a sleeping target.
func (c Call) InCloud() SleepCall {
	return SleepCall{Plan: c.Plan, DryRun: c.DryRun, Now: c.Now, Clients: c.Clients, Cloud: c.Cloud}
}

// ClusterAddress is where a cluster of a cloud has its API server.
type ClusterAddress struct {
	Server    string // https://…
	Authority []byte // that its certificate is from, as PEM
}

// CredentialsError says why a cloud account cannot be reached: whose credentials were asked for,
// and what the answer means. It keeps its type inside of the SDK's errors: else the answer of an
// API server in there would be taken for an answer of AWS.
type CredentialsError struct{ Outcome Outcome }

func (e *CredentialsError) Error() string { return e.Outcome.Message }

// TransientError is an error of a cloud that may pass a moment later.
type TransientError struct{ Err error }

func (e *TransientError) Error() string { return e.Err.Error() }

// Unwrap is the cloud's answer.
func (e *TransientError) Unwrap() error { return e.Err }
