package session

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
)

// answers is AWS that says the same to everybody.
type answers string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"text/xml"}}, Body: io.NopCloser(strings.NewReader(string(a))), Request: r}, nil
}

// An error of AWS names the key of who asks. It goes into a status, Events and messages,
// which others read than those who may read the key.
func TestErrorsOfAnAccountAreToldWithoutItsKeys(t *testing.T) {
	const id = "AKIAIOSFODNN7EXAMPLE"
	call := executors.SleepCall{Plan: executors.PlanRef{Namespace: "shop", Account: "maint-runner"}, Clients: executors.Clients{HTTP: &http.Client{Transport: answers(
		`<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code><Message>The key ` + id + ` did not sign this. The Canonical String for this request should have been 'x-amz-security-token:FQoGZXIvYXdz'</Message></Error></ErrorResponse>`)}}}
	call.Cloud = &executors.Cloud{Credentials: "secret/keys", AWS: connector.AWS{AccountID: "123456789012", Region: "eu-central-1"}}
	call.Cloud.AWS.Auth.Static = &connector.StaticAuth{}
	call.Cloud.Keys = func(context.Context) (executors.AccessKeys, error) {
		return executors.AccessKeys{ID: id, Secret: "none", Session: "FQoGZXIvYXdz"}, nil
	}
	_, err := NewPool(time.Now).Config(t.Context(), call)
	if err == nil {
		t.Fatal("the credentials are taken")
	}
	if text := err.Error(); strings.Contains(text, id) || strings.Contains(text, "FQoG") || !strings.Contains(text, "The key AKIA*** did not sign this") {
		t.Errorf("it says %q", text)
	}
	if code := effect.Code(err); code != "SignatureDoesNotMatch" {
		t.Errorf("its code is %q", code)
	}
}
