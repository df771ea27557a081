package agent

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/transport"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// accountMissing is the answer about an account that is not there.
const accountMissing = "missing"

// askBlocker asks a blocker's question. The answer is only compared with the one
// before.
func (a *Agent) askBlocker(ctx context.Context, by blocker, last string) (string, error) {
	if by.who != (who{}) {
		return a.accounts.standing(ctx, by.who, last)
	}
	served, err := liveMapper{a.accounts.mapper, a.kube}.serves(by.kind)
	if served {
		return "served", err
	}
	return "not served", err
}

// blockerChanged forgets what was remembered of a question whose answer is another
// one now.
func (a *Agent) blockerChanged(by blocker) {
	if by.who != (who{}) {
		a.accounts.forget(by.who)
		a.targets.retry(by.who)
		return
	}
	a.accounts.mapper.Reset()
}

// standing is what an account is and may do in its namespace, as one string that
// changes when that does. Rights that name single objects are among it. The rules
// are the account's own answer: the agent needs no right to read Roles.
func (a *accounts) standing(ctx context.Context, w who, last string) (string, error) {
	if last == "" || last == accountMissing {
		_, err := a.kube.CoreV1().ServiceAccounts(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return accountMissing, nil
		}
		if err != nil {
			return "", err
		}
	}
	c, err := a.clients(w, "")
	if err != nil {
		return "", err
	}
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: w.namespace}}
	got, err := c.Kube.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, review, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		return "refused", nil
	}
	if err != nil {
		return "", err
	}
	return rulesDigest(got.Status.ResourceRules)
}

// rulesDigest is the same for the same rules in any order: the API server gives
// them in none.
func rulesDigest(rules []authorizationv1.ResourceRule) (string, error) {
	parts := make([]string, len(rules))
	for i, rule := range rules {
		b, err := json.Marshal(rule)
		if err != nil {
			return "", err
		}
		parts[i] = string(b)
	}
	slices.Sort(parts)
	return annotations.Hash10(parts...), nil
}

// forget drops the answers about an account that are believed for a while.
func (a *accounts) forget(w who) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for question := range a.seen {
		if question == "exists "+w.user() || len(question) > len(w.user()) && question[:len(w.user())+1] == w.user()+" " {
			delete(a.seen, question)
		}
	}
}

// metadata is a client that acts as an account and reads of objects who they are,
// and no more.
func (a *accounts) metadata(w who) (metadata.Interface, error) {
	as := transport.ImpersonationConfig{UserName: w.user()}
	client := &http.Client{Transport: transport.NewImpersonatingRoundTripper(as, a.own(w, "", a.base))}
	return metadata.NewForConfigAndClient(a.config, client)
}
