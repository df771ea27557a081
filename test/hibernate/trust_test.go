package hibernate_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/test/moto"
)

// ownRole begins the names of roles that trust the ServiceAccount of one namespace alone: what
// follows is its name. Simulated AWS gives every role to everybody.
const ownRole = "of-"

// trust stands before a simulated AWS and gives roles for tokens as AWS does: the cluster has to
// have signed the token, for STS, and the role has to trust the account in it.
type trust struct {
	aws  http.Handler
	user func(ctx context.Context, token string) (string, error)
}

// withTrust has a simulated AWS asked through trust.
func withTrust(server *moto.Server) (*moto.Server, error) {
	target, err := url.Parse(server.Endpoint)
	if err != nil {
		return nil, err
	}
	front := httptest.NewServer(trust{aws: httputil.NewSingleHostReverseProxy(target), user: userOf})
	return &moto.Server{Endpoint: front.URL, Stop: func() { front.Close(); server.Stop() }}, nil
}

// userOf is whom the cluster says that a token for STS is of.
func userOf(ctx context.Context, token string) (string, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{"sts.amazonaws.com"}}}
	out, err := world.admin.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil || !out.Status.Authenticated {
		return "", err
	}
	return out.Status.User.Username, nil
}

func (f trust) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("Action") != "AssumeRoleWithWebIdentity" {
		f.aws.ServeHTTP(w, req)
		return
	}
	role := form.Get("RoleArn")
	user, err := f.user(req.Context(), form.Get("WebIdentityToken"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	namespace, own := strings.CutPrefix(role[strings.LastIndex(role, "/")+1:], ownRole)
	if user == "" || own && user != "system:serviceaccount:"+namespace+":maint-runner" {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>Not authorized to perform sts:AssumeRoleWithWebIdentity</Message></Error></ErrorResponse>`)
		return
	}
	f.aws.ServeHTTP(w, req)
}

// role has the ServiceAccount of the lab's plans ask for a role.
func (l *cloudLab) role(name string) {
	l.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"eks.amazonaws.com/role-arn":"arn:aws:iam::%s:role/%s"}}}`, moto.Account, name)
	_, err := l.admin.CoreV1().ServiceAccounts(l.ns).Patch(l.ctx, "maint-runner", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	l.must(err)
}

// Whoever may edit their own ServiceAccount can name any role. AWS gives it to whom it trusts,
// and the session of one tenant serves no other.
func TestTwoTenantsCannotUseEachOthersRole(t *testing.T) {
	one, other := newCloudLab(t), newCloudLab(t)
	one.allowTokens()
	for _, l := range []*cloudLab{one, other} {
		l.runner()
		l.role(ownRole + one.ns)
		l.connector(moto.Account, "{serviceAccount: {}}")
		l.plan()
	}
	one.hold("asleep")
	one.phaseOf("nights", hibernate.Hibernated, "1 of 1")
	other.hold("asleep")
	other.phaseOf("nights", hibernate.InError, "AccessDenied")
	if got := other.state(); got != "running" {
		t.Fatalf("with another tenant's role it is %s", got)
	}
	other.role(ownRole + other.ns)
	other.annotate("nights", map[string]string{annotations.Trigger: "again"})
	other.phaseOf("nights", hibernate.Hibernated, "1 of 1")
	for _, l := range []*cloudLab{one, other} {
		l.hold("awake")
		l.phaseOf("nights", hibernate.Active, "")
		if got := l.state(); got != "running" {
			t.Errorf("it is %s", got)
		}
	}
}
