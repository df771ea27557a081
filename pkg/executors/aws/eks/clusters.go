package eks

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
)

// How long answers are used. A cluster keeps its address for life, and its CA until a rotation; a
// token is useless to others after a minute (all but the last are guesses).
const (
	addressFor   = 5 * time.Minute
	tokenSeconds = "60"
	tokenFor     = 45 * time.Second
	mostClusters = 500
)

// tokenPrefix begins the tokens that EKS accepts. The rest is a presigned request to STS, which the
// cluster sends to learn who signed it.
const tokenPrefix = "k8s-aws-v1." //nolint:gosec // no credentials

// Access are the calls of AWS that reach a cluster.
type Access interface {
	eks.DescribeClusterAPIClient
	// PresignIdentity signs GetCallerIdentity for one cluster.
	PresignIdentity(ctx context.Context, cluster string) (url string, err error)
}

// Clusters finds the addresses and tokens of EKS clusters, with the credentials of their accounts.
type Clusters struct {
	Open func(ctx context.Context, call executors.SleepCall) (Access, error)
	Now  func() time.Time

	mu   sync.Mutex
	kept *lru.Cache[clusterKey, *known]
}

// clusterKey is a cluster and the credentials that reach it.
type clusterKey struct {
	namespace, account, credentials     string
	id, region, role, endpoint, cluster string
}

// known is the last answer of AWS about a cluster.
type known struct {
	mu      sync.Mutex
	address executors.ClusterAddress
	asked   time.Time
	token   string
	signed  time.Time
}

// NewClusters reaches clusters by sessions of a pool.
func NewClusters(pool *session.Pool, now func() time.Time) *Clusters {
	return &Clusters{Now: now, Open: session.Opener(pool, func(config aws.Config) Access {
		return access{
			describeCluster: eks.NewFromConfig(config).DescribeCluster,
			presignIdentity: sts.NewPresignClient(sts.NewFromConfig(config)).PresignGetCallerIdentity,
		}
	})}
}

// Address is the address and CA of the cluster that a call names.
func (c *Clusters) Address(ctx context.Context, call executors.SleepCall) (executors.ClusterAddress, error) {
	k := c.of(call)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.asked.IsZero() && c.Now().Sub(k.asked) < addressFor {
		return k.address, nil
	}
	api, err := c.Open(ctx, call)
	if err != nil {
		return executors.ClusterAddress{}, judged(err)
	}
	got, err := api.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(call.Cloud.Cluster)})
	if err != nil {
		return executors.ClusterAddress{}, judged(fmt.Errorf("ask EKS for the cluster %s: %w", call.Cloud.Cluster, err))
	}
	if got.Cluster == nil || aws.ToString(got.Cluster.Endpoint) == "" || got.Cluster.CertificateAuthority == nil {
		return executors.ClusterAddress{}, &executors.TransientError{Err: fmt.Errorf("the cluster %s has no API server yet", call.Cloud.Cluster)}
	}
	authority, err := base64.StdEncoding.DecodeString(aws.ToString(got.Cluster.CertificateAuthority.Data))
	if err != nil || len(authority) == 0 {
		return executors.ClusterAddress{}, fmt.Errorf("the certificate authority of the cluster %s cannot be read", call.Cloud.Cluster)
	}
	k.address, k.asked = executors.ClusterAddress{Server: aws.ToString(got.Cluster.Endpoint), Authority: authority}, c.Now()
	return k.address, nil
}

// Token is a bearer token for the cluster that a call names, valid for some seconds at least.
func (c *Clusters) Token(ctx context.Context, call executors.SleepCall) (string, error) {
	k := c.of(call)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.token != "" && c.Now().Sub(k.signed) < tokenFor {
		return k.token, nil
	}
	signed := c.Now() // before signing, so that the token is no older than this
	api, err := c.Open(ctx, call)
	if err != nil {
		return "", judged(err)
	}
	url, err := api.PresignIdentity(ctx, call.Cloud.Cluster)
	if err != nil {
		return "", judged(fmt.Errorf("sign a token for the cluster %s: %w", call.Cloud.Cluster, err))
	}
	k.token, k.signed = tokenPrefix+base64.RawURLEncoding.EncodeToString([]byte(url)), signed
	return k.token, nil
}

func (c *Clusters) of(call executors.SleepCall) *known {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept, _ = lru.New[clusterKey, *known](mostClusters) // the error is for limits below one
	}
	cloud := call.Cloud
	at := clusterKey{
		namespace: call.Plan.Namespace, account: call.Plan.Account, credentials: cloud.Credentials,
		id: cloud.AWS.AccountID, region: cloud.AWS.Region, role: cloud.AWS.AssumeRoleARN, endpoint: cloud.Endpoint, cluster: cloud.Cluster,
	}
	k, have := c.kept.Get(at)
	if !have {
		k = &known{}
		c.kept.Add(at, k)
	}
	return k
}

// judged tells errors about the request itself from those that may pass.
func judged(err error) error {
	if plain := effect.WithoutDetails(err); !effect.IsTransient(err) {
		return plain
	}
	return &executors.TransientError{Err: effect.WithoutDetails(err)}
}

// access has the calls that are made here and no others; see client for the reason.
type access struct {
	describeCluster func(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error)
	presignIdentity func(context.Context, *sts.GetCallerIdentityInput, ...func(*sts.PresignOptions)) (*v4.PresignedHTTPRequest, error)
}

// DescribeCluster is the SDK's.
func (a access) DescribeCluster(ctx context.Context, in *eks.DescribeClusterInput, options ...func(*eks.Options)) (*eks.DescribeClusterOutput, error) {
	return a.describeCluster(ctx, in, options...)
}

// PresignIdentity is Access'.
func (a access) PresignIdentity(ctx context.Context, cluster string) (string, error) {
	got, err := a.presignIdentity(ctx, &sts.GetCallerIdentityInput{}, func(o *sts.PresignOptions) {
		o.Presigner = forCluster{o.Presigner, cluster}
	})
	if err != nil {
		return "", err
	}
	return got.URL, nil
}

// forCluster binds a presigned request to one cluster: no other accepts it.
type forCluster struct {
	sts.HTTPPresignerV4
	cluster string
}

// PresignHTTP is the SDK's.
func (f forCluster) PresignHTTP(ctx context.Context, by aws.Credentials, r *http.Request, hash, service, region string, at time.Time, options ...func(*v4.SignerOptions)) (string, http.Header, error) {
	r.Header.Set("X-K8s-Aws-Id", f.cluster)
	query := r.URL.Query()
	query.Set("X-Amz-Expires", tokenSeconds)
	r.URL.RawQuery = query.Encode()
	return f.HTTPPresignerV4.PresignHTTP(ctx, by, r, hash, service, region, at, options...)
}
