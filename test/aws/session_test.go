package aws

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
)

// counted are the requests to AWS, by their host and first bytes of what they carry.
type counted struct {
	next  http.RoundTripper
	sent  int
	names []string
}

func (c *counted) RoundTrip(req *http.Request) (*http.Response, error) {
	c.sent++
	c.names = append(c.names, req.Header.Get("Authorization"))
	return c.next.RoundTrip(req)
}

// byToken is a call whose credentials come from the ServiceAccount's token.
func byToken(role string) executors.SleepCall {
	c := call(nil)
	c.Cloud.Keys, c.Cloud.Credentials = nil, "ServiceAccount "+role
	c.Cloud.AWS.Auth = connector.Auth{ServiceAccount: &connector.ServiceAccountAuth{}}
	c.Cloud.Token = func(context.Context) (executors.WebIdentity, error) {
		return executors.WebIdentity{Token: "a-token-of-the-cluster", RoleARN: role}, nil
	}
	return c
}

// who is whose credentials a call ends up with.
func who(t *testing.T, pool *session.Pool, c executors.SleepCall) (string, error) {
	t.Helper()
	config, err := pool.Config(t.Context(), c)
	if err != nil {
		return "", err
	}
	got, err := sts.NewFromConfig(config).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(got.Arn), nil
}

func TestTheTokenOfTheServiceAccountIsExchangedForItsRole(t *testing.T) {
	fresh(t)
	got, err := who(t, session.NewPool(time.Now), byToken("arn:aws:iam::"+account+":role/nights"))
	if err != nil || !strings.Contains(got, ":assumed-role/nights/maint-team-maint-runner") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestARoleIsTakenOnWithWhatTheTokenGave(t *testing.T) {
	fresh(t)
	c := byToken("arn:aws:iam::999999999999:role/first")
	c.Cloud.AWS.AssumeRoleARN = "arn:aws:iam::" + account + ":role/second"
	got, err := who(t, session.NewPool(time.Now), c)
	if err != nil || !strings.Contains(got, account+":assumed-role/second/") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestCredentialsOfAnotherAccountAreNotUsed(t *testing.T) {
	fresh(t)
	got, err := who(t, session.NewPool(time.Now), byToken("arn:aws:iam::999999999999:role/nights"))
	if err == nil || !strings.Contains(err.Error(), "of account 999999999999, and the connector names "+account) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestASessionIsCheckedOnceAndAnotherOneAgain(t *testing.T) {
	fresh(t)
	requests := &counted{next: http.DefaultTransport}
	pool := session.NewPool(time.Now)
	c := call(nil)
	c.Clients.HTTP = &http.Client{Transport: requests}
	for range 3 {
		if _, err := pool.Config(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if requests.sent != 1 {
		t.Errorf("three calls ask %d times whose credentials they are", requests.sent)
	}
	other := c
	cloud := *c.Cloud
	cloud.Credentials, other.Cloud = "Secret keys of another version", &cloud
	if _, err := pool.Config(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	other = c
	other.Plan.Namespace = "others"
	if _, err := pool.Config(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if requests.sent != 3 {
		t.Errorf("%d requests: other credentials and another namespace are sessions of their own", requests.sent)
	}
}

func TestNoCredentialsAreTakenFromTheAgentsOwnSurroundings(t *testing.T) {
	fresh(t)
	for key, value := range map[string]string{"AWS_ACCESS_KEY_ID": "AKIAOFTHEAGENT", "AWS_SECRET_ACCESS_KEY": "x", "AWS_WEB_IDENTITY_TOKEN_FILE": "/dev/null", "AWS_ROLE_ARN": "arn:aws:iam::" + account + ":role/agent", "AWS_EC2_METADATA_SERVICE_ENDPOINT": endpoint} {
		t.Setenv(key, value)
	}
	requests := &counted{next: http.DefaultTransport}
	c := call(nil)
	c.Clients.HTTP = &http.Client{Transport: requests}
	none := errors.New("the Secret is not there")
	c.Cloud.Keys = func(context.Context) (executors.AccessKeys, error) { return executors.AccessKeys{}, none }
	if _, err := session.NewPool(time.Now).Config(t.Context(), c); !errors.Is(err, none) {
		t.Errorf("without keys it is %v", err)
	}
	c.Cloud.Keys = nil
	if _, err := session.NewPool(time.Now).Config(t.Context(), c); err == nil {
		t.Error("a connector without credentials gives some")
	}
	if requests.sent > 0 {
		t.Errorf("it is signed with %q", requests.names)
	}
}
