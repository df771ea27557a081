// Package aws puts what sleeps in AWS to sleep over the wire, against a simulated AWS
// (moto_server). It has no time, and hardly refuses anything: what is on its way, what is
// throttled and what is denied is tested in the rooms themselves, with fakes.
package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/test/moto"
)

// The account and region of all tests: moto's own account, whoever asks.
const (
	account = moto.Account
	region  = "eu-central-1"
)

// The simulated AWS; nil: it is not there.
var (
	simulated *moto.Server //nolint:gochecknoglobals // set by TestMain
	endpoint  string       //nolint:gochecknoglobals // set by TestMain
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	server, err := moto.Start()
	switch {
	case errors.Is(err, moto.ErrMissing) && os.Getenv("CI") != "true":
		fmt.Fprintln(os.Stderr, "NOT RUN:", err)
		return m.Run()
	case err != nil:
		fmt.Fprintln(os.Stderr, "--- FAIL:", err)
		return 1
	}
	defer server.Stop()
	simulated, endpoint = server, server.Endpoint
	return m.Run()
}

// fresh is an AWS in which nothing is.
func fresh(t *testing.T) aws.Config {
	t.Helper()
	if simulated == nil {
		t.Skip(moto.ErrMissing)
	}
	if err := simulated.Reset(); err != nil {
		t.Fatal(err)
	}
	return admin()
}

// admin may do everything: it makes what sleeps.
func admin() aws.Config {
	return aws.Config{Region: region, BaseEndpoint: aws.String(endpoint), HTTPClient: http.DefaultClient, Credentials: credentials.NewStaticCredentialsProvider("admin", "admin", "")}
}

// call is a target's, by keys of a Secret.
func call(params any) executors.SleepCall {
	return executors.SleepCall{
		Plan: executors.PlanRef{Namespace: "team", Account: "maint-runner"}, Params: params, Clients: executors.Clients{HTTP: http.DefaultClient},
		Cloud: &executors.Cloud{
			AWS:         connector.AWS{AccountID: account, Region: region, Auth: connector.Auth{Static: &connector.StaticAuth{SecretRef: connector.Ref{Name: "keys"}}}},
			Credentials: "Secret keys", Endpoint: endpoint,
			Keys: func(context.Context) (executors.AccessKeys, error) {
				return executors.AccessKeys{ID: "AKIAIOSFODNN7EXAMPLE", Secret: "none"}, nil
			},
		},
	}
}
