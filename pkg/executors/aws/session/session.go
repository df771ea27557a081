// Package session reaches accounts of AWS with the credentials that a plan's
// ServiceAccount has for them, and with no others.
package session

import (
	"context"
	"errors"
	"fmt"
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

// Pool keeps the sessions of accounts, so that a look every few seconds costs no token.
type Pool struct {
	mu   sync.Mutex
	kept *lru.Cache[key, *session]
	now  func() time.Time
}

// mostSessions are kept at once (a guess: a plan of each team, in a few accounts).
const mostSessions = 500

// checkedFor is how long an account is believed to be the one that it was (a guess:
// credentials that are replaced meanwhile make another session, or get here by expiring).
const checkedFor = 15 * time.Minute

// NewPool has no session yet.
func NewPool(now func() time.Time) *Pool {
	kept, _ := lru.New[key, *session](mostSessions) // the error is for limits below one
	return &Pool{kept: kept, now: now}
}

// key is whose session it is, where, and by which credentials.
type key struct {
	namespace, account, credentials string
	id, region, role, endpoint      string
}

// session is an account, once it was checked that it is the one that was meant.
type session struct {
	config aws.Config

	mu      sync.Mutex
	checked time.Time
}

// Config is how the SDK reaches the account of a call's connector. Before it is given, AWS
// is asked whose credentials they are: those of another account are an error, and nothing
// is done with them.
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

// Opener opens what a service is asked by a pool's sessions.
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

// build puts a configuration together by hand: the SDK's own would look into the
// environment, files and the machine's metadata.
func build(call executors.SleepCall) (aws.Config, error) {
	if call.Clients.HTTP == nil {
		return aws.Config{}, errors.New("there is no client for requests to AWS")
	}
	cloud := call.Cloud
	config := aws.Config{Region: cloud.AWS.Region, HTTPClient: call.Clients.HTTP, AppID: "kubectl-maint"}
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

// anonymous signs nothing: the token is what STS looks at.
func anonymous(o *sts.Options) { o.Credentials = aws.AnonymousCredentials{} }

// sessionName is what CloudTrail shows beside the role: whose plan it was.
func sessionName(call executors.SleepCall) string {
	name := regexp.MustCompile(`[^\w+=,.@-]`).ReplaceAllString("maint-"+call.Plan.Namespace+"-"+call.Plan.Account, "-")
	return name[:min(len(name), 64)]
}

// check asks whose credentials they are.
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
