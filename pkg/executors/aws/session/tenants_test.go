package session

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// trustingSTS is an STS whose roles say who may take them on: subjects of the cluster's tokens,
// and roles. Whoever is not named is denied, as IAM does.
type trustingSTS struct {
	trusts map[string][]string // of a role: subjects of tokens, and access keys of roles
	given  []string            // roles, in the order in which somebody got them
}

func (s *trustingSTS) RoundTrip(r *http.Request) (*http.Response, error) {
	form, key, err := asked(r)
	if err != nil {
		return nil, err
	}
	action, role, who := form.Get("Action"), form.Get("RoleArn"), form.Get("WebIdentityToken")
	switch action {
	case "GetCallerIdentity":
		return xml(http.StatusOK, fmt.Sprintf(`<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>%s</Arn><Account>%s</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`, key, ours)), nil
	case "AssumeRole":
		who = key
	}
	if !slices.Contains(s.trusts[role], who) {
		return xml(http.StatusForbidden, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized to perform sts:`+action+`</Message></Error></ErrorResponse>`), nil
	}
	s.given = append(s.given, who+" got "+name(role))
	return xml(http.StatusOK, fmt.Sprintf(`<%[1]sResponse><%[1]sResult><Credentials><AccessKeyId>%[2]s</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%[3]s</Expiration></Credentials></%[1]sResult></%[1]sResponse>`, action, name(role), time.Now().Add(time.Hour).UTC().Format(time.RFC3339))), nil
}

// name is that of a role, by which its access key is known here.
func name(role string) string { return role[strings.LastIndex(role, "/")+1:] }

func roleOf(team string) string { return "arn:aws:iam::" + ours + ":role/" + team }

// tenant is a call of a plan of a team's namespace, with the role that its ServiceAccount is
// annotated with and the one that its connector says. Its token is of its own ServiceAccount,
// whatever they say: the agent asks for no other.
func tenant(sts *trustingSTS, team, role, then string) executors.SleepCall {
	return executors.SleepCall{
		Plan: executors.PlanRef{Namespace: team, Account: "maint-runner"}, Clients: executors.Clients{HTTP: &http.Client{Transport: sts}},
		Cloud: &executors.Cloud{
			AWS:         connector.AWS{AccountID: ours, Region: "eu-central-1", AssumeRoleARN: then, Auth: connector.Auth{ServiceAccount: &connector.ServiceAccountAuth{}}},
			Credentials: "ServiceAccount maint-runner with " + role,
			Token: func(context.Context) (executors.WebIdentity, error) {
				return executors.WebIdentity{Token: "system:serviceaccount:" + team + ":maint-runner", RoleARN: role}, nil
			},
		},
	}
}

func TestTwoTenantsCannotUseEachOthersRole(t *testing.T) {
	sts := &trustingSTS{trusts: map[string][]string{
		roleOf("red"): {"system:serviceaccount:red:maint-runner"}, roleOf("blue"): {"system:serviceaccount:blue:maint-runner"},
		roleOf("red-nights"): {"red"}, roleOf("blue-nights"): {"blue"},
	}}
	pool := NewPool(time.Now)
	as := func(call executors.SleepCall) (string, error) {
		config, err := pool.Config(t.Context(), call)
		if err != nil {
			return "", err
		}
		got, err := config.Credentials.Retrieve(t.Context())
		return got.AccessKeyID, err
	}
	for team, other := range map[string]string{"red": "blue", "blue": "red"} {
		for what, c := range map[string]struct {
			role, then, want string
		}{
			"its own role":                       {roleOf(team), "", team},
			"its own role, and another by it":    {roleOf(team), roleOf(team + "-nights"), team + "-nights"},
			"the other's, on its ServiceAccount": {roleOf(other), "", ""},
			"the other's, by its connector":      {roleOf(team), roleOf(other), ""},
			"what the other's role leads to":     {roleOf(team), roleOf(other + "-nights"), ""},
		} {
			got, err := as(tenant(sts, team, c.role, c.then))
			if got != c.want || (err == nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), "Not authorized to perform sts:AssumeRole") {
				t.Errorf("%s with %s works as %q: %v", team, what, got, err)
			}
		}
	}
	for _, got := range sts.given {
		who, role, _ := strings.Cut(got, " got ")
		if strings.Contains(who, "red") != strings.HasPrefix(role, "red") {
			t.Error(got)
		}
	}
}
