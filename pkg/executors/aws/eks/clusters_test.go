package eks_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/smithy-go"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/eks"
)

// control is what AWS says of clusters, as a test has it.
type control struct {
	now               time.Time
	found             *types.Cluster
	err               error
	opening           error
	described, signed []string
}

func (c *control) DescribeCluster(_ context.Context, in *awseks.DescribeClusterInput, _ ...func(*awseks.Options)) (*awseks.DescribeClusterOutput, error) {
	c.described = append(c.described, *in.Name)
	return &awseks.DescribeClusterOutput{Cluster: c.found}, c.err
}

func (c *control) PresignIdentity(_ context.Context, cluster string) (string, error) {
	c.signed = append(c.signed, cluster)
	return "https://sts.test/?at=" + c.now.Format("150405"), c.err
}

func newControl() (*control, *eks.Clusters) {
	c := &control{now: time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC), found: &types.Cluster{
		Endpoint: aws.String("https://x.eks.test"), CertificateAuthority: &types.Certificate{Data: aws.String(base64.StdEncoding.EncodeToString([]byte("PEM")))},
	}}
	return c, &eks.Clusters{Now: func() time.Time { return c.now }, Open: func(context.Context, executors.SleepCall) (eks.Access, error) {
		if c.opening != nil {
			return nil, c.opening
		}
		return c, nil
	}}
}

func callOf(account, cluster string) executors.SleepCall {
	return executors.SleepCall{Plan: executors.PlanRef{Namespace: "shop", Account: account}, Cloud: &executors.Cloud{AWS: connector.AWS{AccountID: "123456789012", Region: "eu-central-1"}, Credentials: "serviceaccount", Cluster: cluster}}
}

func TestTheAddressOfAClusterIsAskedForNowAndThen(t *testing.T) {
	c, clusters := newControl()
	for _, at := range []time.Duration{0, time.Minute, 4 * time.Minute, 2 * time.Minute} {
		c.now = c.now.Add(at)
		got, err := clusters.Address(t.Context(), callOf("a", "stg"))
		if err != nil || got.Server != "https://x.eks.test" || string(got.Authority) != "PEM" {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if len(c.described) != 2 {
		t.Errorf("it was asked for %d times in seven minutes", len(c.described))
	}
	if _, err := clusters.Address(t.Context(), callOf("b", "stg")); err != nil || len(c.described) != 3 {
		t.Errorf("another account's credentials are its own: %v, %q", err, c.described)
	}
}

func TestATokenIsSignedAnewBeforeItEnds(t *testing.T) {
	c, clusters := newControl()
	seen := map[string]bool{}
	for range 6 { // a minute and a quarter
		token, err := clusters.Token(t.Context(), callOf("a", "stg"))
		if err != nil || !strings.HasPrefix(token, "k8s-aws-v1.") {
			t.Fatalf("%q, %v", token, err)
		}
		url, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "k8s-aws-v1."))
		if err != nil || !strings.HasPrefix(string(url), "https://sts.test/?at=") {
			t.Fatalf("%q, %v", url, err)
		}
		signed, err := time.Parse("150405", strings.TrimPrefix(string(url), "https://sts.test/?at="))
		if err != nil || c.now.Sub(signed.AddDate(c.now.Year(), 10, 24)) >= time.Minute {
			t.Errorf("at %s it is of %s: %v", c.now, signed, err)
		}
		seen[token] = true
		c.now = c.now.Add(15 * time.Second)
	}
	if len(seen) != 2 {
		t.Errorf("%d tokens in 75 seconds", len(seen))
	}
	if _, err := clusters.Token(t.Context(), callOf("a", "prod")); err != nil || c.signed[len(c.signed)-1] != "prod" {
		t.Errorf("a token is of one cluster: %v, %q", err, c.signed)
	}
}

func TestWhatAWSSaysOfACluster(t *testing.T) {
	operation := func(err error) error {
		return &smithy.OperationError{ServiceID: "EKS", OperationName: "DescribeCluster", Err: err}
	}
	for name, c := range map[string]struct {
		change  func(*control)
		passing bool
		says    string
	}{
		"it is not there": {change: func(c *control) {
			c.err = operation(&smithy.GenericAPIError{Code: "ResourceNotFoundException", Message: "No cluster found"})
		}, says: "ResourceNotFoundException"},
		"the role may not": {change: func(c *control) {
			c.err = operation(&smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"})
		}, says: "AccessDeniedException"},
		"too many requests": {change: func(c *control) {
			c.err = operation(&smithy.GenericAPIError{Code: "ThrottlingException", Message: "slow"})
		}, passing: true, says: "ThrottlingException"},
		"nothing answers":           {change: func(c *control) { c.err = operation(errors.New("dial: refused")) }, passing: true, says: "refused"},
		"it is being made":          {change: func(c *control) { c.found.Endpoint = nil }, passing: true, says: "no API server yet"},
		"an authority that is none": {change: func(c *control) { c.found.CertificateAuthority.Data = aws.String("%") }, says: "cannot be read"},
		"another account":           {change: func(c *control) { c.opening = errors.New("the credentials are of account 2") }, says: "of account 2"},
	} {
		t.Run(name, func(t *testing.T) {
			control, clusters := newControl()
			c.change(control)
			_, err := clusters.Address(t.Context(), callOf("a", "stg"))
			var passing *executors.TransientError
			if err == nil || errors.As(err, &passing) != c.passing || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it said %v", err)
			}
		})
	}
}
