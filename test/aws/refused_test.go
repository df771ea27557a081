package aws

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	awseks "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/eks"
	awsrds "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/rds"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
)

// answering is an STS with one answer for all.
func answering(t *testing.T, status int, code, message string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`<ErrorResponse><Error><Type>Sender</Type><Code>` + code + `</Code><Message>` + message + `</Message></Error><RequestId>1</RequestId></ErrorResponse>`))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// What is refused on the way to credentials is told as what it is, through all layers of the
// SDK, and is not tried again as if AWS had not answered.
func TestCredentialsThatAreRefusedAreARefusal(t *testing.T) {
	noRight := executors.Refuse(executors.ReasonForbidden, `serviceaccount team/maint-runner may not get secrets "keys"`)
	for name, c := range map[string]struct {
		change func(*executors.Cloud)
		state  executors.State
		reason string
		want   string
	}{
		"the Secret": {func(c *executors.Cloud) {
			c.Keys = func(context.Context) (executors.AccessKeys, error) {
				return executors.AccessKeys{}, &executors.CredentialsError{Outcome: noRight}
			}
		}, executors.Failed, executors.ReasonForbidden, noRight.Message},
		"the token": {func(c *executors.Cloud) {
			*c = *byToken("arn:aws:iam::" + account + ":role/nights").Cloud
			c.Token = func(context.Context) (executors.WebIdentity, error) {
				return executors.WebIdentity{}, &executors.CredentialsError{Outcome: noRight}
			}
		}, executors.Failed, executors.ReasonForbidden, noRight.Message},
		"the role": {func(c *executors.Cloud) {
			*c = *byToken("arn:aws:iam::" + account + ":role/nights").Cloud
			c.Endpoint = answering(t, http.StatusForbidden, "AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity")
		}, executors.Failed, executors.ReasonForbidden, "AccessDenied: Not authorized to perform sts:AssumeRoleWithWebIdentity"},
		"the key": {func(c *executors.Cloud) {
			c.Endpoint = answering(t, http.StatusForbidden, "InvalidClientTokenId", "The security token included in the request is invalid")
		}, executors.Failed, executors.ReasonForbidden, "InvalidClientTokenId"},
		"nothing: it does not answer": {func(c *executors.Cloud) { c.Endpoint = "http://127.0.0.1:1" }, executors.NotYet, executors.ReasonUnavailable, "AWS does not answer as it should"},
	} {
		t.Run(name, func(t *testing.T) {
			one := saves("weekly-1", "orders")
			cloud := *one.Cloud
			one.Cloud = &cloud
			c.change(&cloud)
			out := awsrds.NewBackups(session.NewPool(time.Now)).Pass(t.Context(), one)
			if out.State != c.state || out.Reason != c.reason || !strings.Contains(out.Message, c.want) {
				t.Errorf("a snapshot: %v %s %q", out.State, out.Reason, out.Message)
			}
			cloud.Cluster = "stg"
			_, err := awseks.NewClusters(session.NewPool(time.Now), time.Now).Token(t.Context(), one.InCloud())
			_, passes := err.(*executors.TransientError)
			if err == nil || passes != (c.state == executors.NotYet) {
				t.Errorf("a cluster: %v (passes: %t)", err, passes)
			}
		})
	}
}
