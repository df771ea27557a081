package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// sts is AWS's: it says whose keys they are, and gives roles.
type stsServer struct {
	accounts map[string]string // by access key
	asked    []string          // action and the access key that signed it; none: nobody did
	fails    bool
	empty    bool
}

// asked is the form of a request to STS, and the access key that signed it.
func asked(r *http.Request) (form url.Values, key string, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, "", err
	}
	_, signed, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	key, _, _ = strings.Cut(signed, "/")
	form, err = url.ParseQuery(string(body))
	return form, key, err
}

func (s *stsServer) RoundTrip(r *http.Request) (*http.Response, error) {
	form, key, err := asked(r)
	if err != nil {
		return nil, err
	}
	action := form.Get("Action")
	said := action
	if role := form.Get("RoleArn"); role != "" {
		said += " " + role + " as " + form.Get("RoleSessionName")
	}
	if token := form.Get("WebIdentityToken"); token != "" {
		said += " with " + token
	}
	s.asked = append(s.asked, strings.TrimSpace(said+" by "+key))
	if s.fails {
		return xml(http.StatusForbidden, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>`), nil
	}
	if action == "GetCallerIdentity" {
		return xml(http.StatusOK, fmt.Sprintf(`<GetCallerIdentityResponse><GetCallerIdentityResult><Account>%s</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`, s.accounts[key])), nil
	}
	given := fmt.Sprintf(`<Credentials><AccessKeyId>ROLE</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials>`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	if s.empty {
		given = ""
	}
	return xml(http.StatusOK, fmt.Sprintf(`<%[1]sResponse><%[1]sResult>%[2]s</%[1]sResult></%[1]sResponse>`, action, given)), nil
}

func xml(code int, body string) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"text/xml"}}, Body: io.NopCloser(strings.NewReader(body))}
}

// calling is a call of shop/sleeper whose connector has these keys.
func calling(server *stsServer, key string) executors.SleepCall {
	return executors.SleepCall{
		Plan: executors.PlanRef{Namespace: "shop", Account: "sleeper"}, Clients: executors.Clients{HTTP: &http.Client{Transport: server}},
		Cloud: &executors.Cloud{
			AWS: connector.AWS{AccountID: "111122223333", Region: "eu-central-1", Auth: connector.Auth{Static: &connector.StaticAuth{}}}, Credentials: "secret-1",
			Keys: func(context.Context) (executors.AccessKeys, error) {
				return executors.AccessKeys{ID: key, Secret: "s"}, nil
			},
		},
	}
}

const ours = "111122223333"

// Nothing is done with credentials before AWS has said whose they are.
func TestCredentialsAreOfTheAccountThatTheConnectorNames(t *testing.T) {
	gone := &executors.CredentialsError{Outcome: executors.Refuse(executors.ReasonNoConnection, "the Secret is gone")}
	for _, c := range []struct {
		name string
		edit func(*executors.SleepCall, *stsServer)
		want string // error
		asks []string
	}{
		{"they are", func(*executors.SleepCall, *stsServer) {}, "", []string{"GetCallerIdentity by KEY"}},
		{"they are another's", func(_ *executors.SleepCall, s *stsServer) { s.accounts["KEY"] = "999999999999" }, "the credentials are of account 999999999999, and the connector names 111122223333: nothing is done", []string{"GetCallerIdentity by KEY"}},
		{"AWS does not say", func(_ *executors.SleepCall, s *stsServer) { s.fails = true }, "ask AWS whose credentials these are: ", []string{"GetCallerIdentity by KEY"}},
		{"there are none", func(c *executors.SleepCall, _ *stsServer) {
			c.Cloud.Keys = func(context.Context) (executors.AccessKeys, error) { return executors.AccessKeys{}, gone }
		}, "ask AWS whose credentials these are: ", nil},
		{"a target without a connector", func(c *executors.SleepCall, _ *stsServer) { c.Cloud = nil }, "the target has no connector of kind CloudProvider", nil},
		{"a connector that names no credentials", func(c *executors.SleepCall, _ *stsServer) { c.Cloud.AWS.Auth.Static = nil }, "the connector of kind CloudProvider names no credentials", nil},
		{"no client to ask with", func(c *executors.SleepCall, _ *stsServer) { c.Clients.HTTP = nil }, "there is no client for requests to AWS", nil},
		{
			"those of a role, taken with the keys", func(c *executors.SleepCall, _ *stsServer) { c.Cloud.AWS.AssumeRoleARN = "arn:role" },
			"",
			[]string{"AssumeRole arn:role as maint-shop-sleeper by KEY", "GetCallerIdentity by ROLE"},
		},
		{
			"those of the ServiceAccount's own role: the token is what STS looks at", func(c *executors.SleepCall, _ *stsServer) {
				c.Cloud.AWS.Auth = connector.Auth{ServiceAccount: &connector.ServiceAccountAuth{}}
				c.Cloud.Token = func(context.Context) (executors.WebIdentity, error) {
					return executors.WebIdentity{Token: "jwt", RoleARN: "arn:own"}, nil
				}
			}, "", []string{"AssumeRoleWithWebIdentity arn:own as maint-shop-sleeper with jwt by", "GetCallerIdentity by ROLE"},
		},
		{
			"the ServiceAccount's role is given without credentials", func(c *executors.SleepCall, s *stsServer) {
				s.empty = true
				c.Cloud.AWS.Auth = connector.Auth{ServiceAccount: &connector.ServiceAccountAuth{}}
				c.Cloud.Token = func(context.Context) (executors.WebIdentity, error) {
					return executors.WebIdentity{Token: "jwt", RoleARN: "arn:own"}, nil
				}
			}, "ask AWS whose credentials these are: ", []string{"AssumeRoleWithWebIdentity arn:own as maint-shop-sleeper with jwt by"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := &stsServer{accounts: map[string]string{"KEY": ours, "ROLE": ours}}
			call := calling(server, "KEY")
			c.edit(&call, server)
			config, err := NewPool(time.Now).Config(t.Context(), call)
			if (err != nil) != (c.want != "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			if got := slices.Compact(server.asked); !slices.Equal(got, c.asks) {
				t.Errorf("asked %q, want %q", got, c.asks)
			}
			if err == nil && (config.Region != "eu-central-1" || config.AppID != "kubectl-maint") {
				t.Errorf("%+v", config)
			}
			if c.name == "there are none" && !errors.As(err, new(*executors.CredentialsError)) {
				t.Errorf("what is wrong with them is lost: %v", err)
			}
		})
	}
}

// A session is whoever's asked for it, and is checked again after a while.
func TestWhoSharesASession(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  func(*executors.SleepCall)
		after time.Duration
		asked int // in all
	}{
		{"the same again", func(*executors.SleepCall) {}, 0, 1},
		{"a moment before it is checked anew", func(*executors.SleepCall) {}, checkedFor - time.Second, 1},
		{"when it is checked anew", func(*executors.SleepCall) {}, checkedFor, 2},
		{"another namespace", func(c *executors.SleepCall) { c.Plan.Namespace = "mall" }, 0, 2},
		{"another account of the cluster", func(c *executors.SleepCall) { c.Plan.Account = "other" }, 0, 2},
		{"credentials that were replaced", func(c *executors.SleepCall) { c.Cloud.Credentials = "secret-2" }, 0, 2},
		{"another region", func(c *executors.SleepCall) { c.Cloud.AWS.Region = "us-east-1" }, 0, 2},
		{"another endpoint", func(c *executors.SleepCall) { c.Cloud.Endpoint = "https://moto.test" }, 0, 2},
		{"another plan of the account", func(c *executors.SleepCall) { c.Plan.Name = "weekend" }, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &stsServer{accounts: map[string]string{"KEY": ours}}
				pool := NewPool(time.Now)
				ask := func(call executors.SleepCall) {
					t.Helper()
					open := Opener(pool, func(c aws.Config) string { return c.Region })
					if region, err := open(t.Context(), call); err != nil || region != call.Region() {
						t.Errorf("%q %v", region, err)
					}
				}
				ask(calling(server, "KEY"))
				time.Sleep(c.after)
				call := calling(server, "KEY")
				c.edit(&call)
				ask(call)
				if len(server.asked) != c.asked {
					t.Errorf("asked %q", server.asked)
				}
			})
		})
	}
}

// Credentials that were refused once are asked for again: they may be right by then.
func TestARefusedSessionIsCheckedAgain(t *testing.T) {
	server := &stsServer{accounts: map[string]string{"KEY": "999999999999"}}
	open := Opener(NewPool(time.Now), func(c aws.Config) string { return "opened" })
	if got, err := open(t.Context(), calling(server, "KEY")); err == nil || got != "" {
		t.Errorf("%q %v", got, err)
	}
	server.accounts["KEY"] = ours
	if got, err := open(t.Context(), calling(server, "KEY")); err != nil || got != "opened" {
		t.Errorf("%q %v", got, err)
	}
}

// Keys are read anew after five minutes: they may have been replaced in their Secret.
func TestKeysAreReadAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &stsServer{accounts: map[string]string{"KEY-1": ours, "KEY-2": ours}}
		pool, reads := NewPool(time.Now), 0
		call := calling(server, "")
		call.Cloud.Keys = func(context.Context) (executors.AccessKeys, error) {
			reads++
			return executors.AccessKeys{ID: fmt.Sprint("KEY-", reads), Secret: "s"}, nil
		}
		for _, c := range []struct {
			after time.Duration
			want  string
		}{{0, "KEY-1"}, {keysFor - time.Second, "KEY-1"}, {time.Second, "KEY-2"}} {
			time.Sleep(c.after)
			config, err := pool.Config(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := config.Credentials.Retrieve(t.Context()); err != nil || got.AccessKeyID != c.want {
				t.Errorf("%s later it is %s, %v", c.after, got.AccessKeyID, err)
			}
		}
	})
}

// What CloudTrail shows holds nothing that STS does not take, and no more than it takes.
func TestTheNameOfASession(t *testing.T) {
	for account, want := range map[string]string{
		"sleeper":               "maint-shop-sleeper",
		"system:sleeper":        "maint-shop-system-sleeper",
		strings.Repeat("x", 80): "maint-shop-" + strings.Repeat("x", 53),
		"a.b_c=d,e@f+g":         "maint-shop-a.b_c=d,e@f+g",
	} {
		if got := sessionName(executors.SleepCall{Plan: executors.PlanRef{Namespace: "shop", Account: account}}); got != want {
			t.Errorf("%s: %q", account, got)
		}
	}
}

// readsMuch is the reservation of a pass that has read a large Secret.
type readsMuch struct{ held bool }

func (*readsMuch) Namespace() string { return "shop" }
func (r *readsMuch) Release()        { r.held = false }
func (r *readsMuch) Holds() bool     { return r.held }

// asks is an HTTP client's transport that has somebody look at each request.
type asks struct {
	*stsServer
	look func()
}

func (a asks) RoundTrip(r *http.Request) (*http.Response, error) {
	a.look()
	return a.stsServer.RoundTrip(r)
}

// AWS may take long, and the memory for API servers' answers is for all.
func TestNothingIsReservedForKeysWhileAWSIsWaitedFor(t *testing.T) {
	for name, role := range map[string]string{"the keys' own account": "", "a role that they lead to": "arn:role"} {
		t.Run(name, func(t *testing.T) {
			server, of := &stsServer{accounts: map[string]string{"KEY": ours, "ROLE": ours}}, &readsMuch{}
			call := calling(server, "KEY")
			call.Cloud.AWS.AssumeRoleARN = role
			call.Clients.HTTP = &http.Client{Transport: asks{server, func() {
				if of.Holds() {
					t.Error("the memory for the Secret is reserved while AWS is waited for")
				}
			}}}
			call.Cloud.Keys = func(context.Context) (executors.AccessKeys, error) {
				of.held = true
				return executors.AccessKeys{ID: "KEY", Secret: "s"}, nil
			}
			if _, err := NewPool(time.Now).Config(executors.WithReservation(t.Context(), of), call); err != nil || len(server.asked) == 0 {
				t.Errorf("%v, asked %q", err, server.asked)
			}
		})
	}
}
