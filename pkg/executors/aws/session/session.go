// Package session reaches accounts of AWS with the credentials of a plan's ServiceAccount, and with
// no others.
package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
)

// Pool keeps sessions of accounts, so that a look every few seconds needs no new token.
type Pool struct {
	mu   sync.Mutex
	kept *lru.Cache[key, *session]
	now  func() time.Time
}

// mostSessions are kept at once (a guess: a plan of each team, in a few accounts).
const mostSessions = 500

// checkedFor is for how long the identity of an account is believed (a guess: replaced credentials
// make another session, or come here when the old ones expire).
const checkedFor = 15 * time.Minute

// NewPool has no sessions yet.
func NewPool(now func() time.Time) *Pool {
	kept, _ := lru.New[key, *session](mostSessions) // the error is for sizes below one
	return &Pool{kept: kept, now: now}
}

// key is a session's account, region and credentials.
type key struct {
	namespace, account, credentials string
	id, region, role, endpoint      string
}

// session is an account whose identity was checked.
type session struct {
	config aws.Config

	mu      sync.Mutex
	checked time.Time
}

// Config is the SDK configuration for the account of a call's connector. Before it is given out,
// AWS is asked for the identity of the credentials: those of another account are an error, and
// nothing is done with them.
func (p *Pool) Config(ctx context.Context, call executors.SleepCall) (aws.Config, error) {
	if call.Cloud == nil {
		return aws.Config{}, errors.New("the target has no connector of kind CloudProvider")
	}
	s, err := p.session(call)
	if err != nil {
		return aws.Config{}, err
	}
	if err := s.check(ctx, call.Cloud.AWS.AccountID, p.now()); err != nil {
		return aws.Config{}, err
	}
	return s.config, nil
}

// Opener makes a service's client from the sessions of a pool.
func Opener[API any](p *Pool, service func(aws.Config) API) func(context.Context, executors.SleepCall) (API, error) {
	return func(ctx context.Context, call executors.SleepCall) (API, error) {
		config, err := p.Config(ctx, call)
		if err != nil {
			var none API
			return none, err
		}
		return service(config), nil
	}
}

func (p *Pool) session(call executors.SleepCall) (*session, error) {
	cloud := call.Cloud
	k := key{
		namespace: call.Plan.Namespace, account: call.Plan.Account, credentials: cloud.Credentials,
		id: cloud.AWS.AccountID, region: cloud.AWS.Region, role: cloud.AWS.AssumeRoleARN, endpoint: cloud.Endpoint,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, have := p.kept.Get(k); have {
		return s, nil
	}
	config, err := build(call)
	if err != nil {
		return nil, err
	}
	s := &session{config: config}
	p.kept.Add(k, s)
	return s, nil
}

// build makes a configuration by hand: the SDK's own would read the environment, files and the
// instance metadata.
func build(call executors.SleepCall) (aws.Config, error) {
	if call.Clients.HTTP == nil {
		return aws.Config{}, errors.New("there is no client for requests to AWS")
	}
	cloud := call.Cloud
	config := aws.Config{Region: cloud.AWS.Region, HTTPClient: releasing{call.Clients.HTTP}, AppID: "kubectl-maint"}
	config.APIOptions = append(config.APIOptions, effect.HideKeys)
	if cloud.Endpoint != "" {
		config.BaseEndpoint = aws.String(cloud.Endpoint)
	}
	source, err := source(config, call)
	if err != nil {
		return aws.Config{}, err
	}
	config.Credentials = aws.NewCredentialsCache(source)
	if role := cloud.AWS.AssumeRoleARN; role != "" {
		assumed := stscreds.NewAssumeRoleProvider(assumeRole(sts.NewFromConfig(config).AssumeRole), role, func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName = sessionName(call)
		})
		config.Credentials = aws.NewCredentialsCache(assumed)
	}
	return config, nil
}

// releasing is a client of a pass that needs nothing more of what it read of API servers, such as
// the Secret with its keys: AWS may take long, and others wait for the memory.
type releasing struct{ client *http.Client }

// Do is aws.HTTPClient's.
func (r releasing) Do(request *http.Request) (*http.Response, error) {
	executors.ReservationOf(request.Context()).Release()
	return r.client.Do(request)
}

// source is where the first credentials come from, as the connector says.
func source(config aws.Config, call executors.SleepCall) (aws.CredentialsProvider, error) {
	auth := call.Cloud.AWS.Auth
	switch {
	case auth.Static != nil && call.Cloud.Keys != nil:
		return keys(call.Cloud.Keys), nil
	case auth.ServiceAccount != nil && call.Cloud.Token != nil:
		return &identity{assume: sts.NewFromConfig(config, anonymous).AssumeRoleWithWebIdentity, token: call.Cloud.Token, name: sessionName(call)}, nil
	}
	return nil, fmt.Errorf("the connector of kind %s names no credentials", connector.CloudProvider)
}

// anonymous signs nothing: STS authenticates the token instead.
func anonymous(o *sts.Options) { o.Credentials = aws.AnonymousCredentials{} }

// sessionName is what CloudTrail shows beside the role: the plan.
func sessionName(call executors.SleepCall) string {
	name := regexp.MustCompile(`[^\w+=,.@-]`).ReplaceAllString("maint-"+call.Plan.Namespace+"-"+call.Plan.Account, "-")
	return name[:min(len(name), 64)]
}

// check compares the identity of the credentials with the account that was meant.
func (s *session) check(ctx context.Context, want string, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.checked.IsZero() && now.Sub(s.checked) < checkedFor {
		return nil
	}
	got, err := sts.NewFromConfig(s.config).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return fmt.Errorf("ask AWS whose credentials these are: %w", err)
	}
	if id := aws.ToString(got.Account); id != want {
		return fmt.Errorf("the credentials are of account %s, and the connector names %s: nothing is done", id, want)
	}
	s.checked = now
	return nil
}
