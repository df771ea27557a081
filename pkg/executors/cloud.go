package executors

import (
	"context"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
)

// Cloud is an account of a cloud, and where the plan's ServiceAccount gets credentials for
// it. There are no others: what the agent's own environment, machine or files may hold is
// not looked for.
type Cloud struct {
	AWS connector.AWS
	// Credentials names what Keys or Token are of. Another name is another session: nobody
	// goes on with what was read for somebody else, or before it was replaced.
	Credentials string
	// Keys are those of auth.static.
	Keys func(ctx context.Context) (AccessKeys, error)
	// Token is of auth.serviceAccount: a token for the audience sts.amazonaws.com.
	Token func(ctx context.Context) (WebIdentity, error)
	// Endpoint stands in for the cloud's own; empty: none does.
	Endpoint string
	// Cluster is the cluster of EKS that the target's connector names; empty: it names none.
	Cluster string
	// Connect reaches the API server of Cluster, with the rights that the credentials have
	// there; nil where there is no Cluster.
	Connect func(ctx context.Context) (Clients, error)
}

// TokenAudience is the audience of tokens that STS takes.
const TokenAudience = "sts.amazonaws.com"

// AccessKeys are an access key of AWS.
type AccessKeys struct{ ID, Secret, Session string }

// WebIdentity is a token of a ServiceAccount, and the role that STS gives for it.
type WebIdentity struct{ Token, RoleARN string }

// Region is that of the target's connector; empty where it has none.
func (c SleepCall) Region() string {
	if c.Cloud == nil {
		return ""
	}
	return c.Cloud.AWS.Region
}

// InCloud is how a step asks its account of a cloud: as targets that sleep ask theirs.
func (c Call) InCloud() SleepCall {
	return SleepCall{Plan: c.Plan, DryRun: c.DryRun, Now: c.Now, Clients: c.Clients, Cloud: c.Cloud}
}

// ClusterAddress is where a cluster of a cloud has its API server.
type ClusterAddress struct {
	Server    string // https://…
	Authority []byte // that its certificate is from, as PEM
}

// CredentialsError is why an account of a cloud is not reached: whose credentials were asked
// for, and what the answer means. It stays what it is in whatever an SDK makes of it: the
// answer of an API server in there would be taken for that of the request itself.
type CredentialsError struct{ Outcome Outcome }

func (e *CredentialsError) Error() string { return e.Outcome.Message }

// PassingError is what a cloud may answer otherwise a moment later.
type PassingError struct{ Err error }

func (e *PassingError) Error() string { return e.Err.Error() }

// Unwrap is what it answered.
func (e *PassingError) Unwrap() error { return e.Err }
