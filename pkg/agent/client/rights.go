package client

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
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// AccountMissing is the answer about an account that is not there.
const AccountMissing = "missing"

// RightsDigest is what an account is and may do in its namespace, as one string that
// changes when that does. Rights that name single objects are among it. The rules
// are the account's own answer: the agent needs no right to read Roles.
func (a *Impersonator) RightsDigest(ctx context.Context, w Account, last string) (string, error) {
	if last == "" || last == AccountMissing {
		_, err := a.kube.CoreV1().ServiceAccounts(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return AccountMissing, nil
		}
		if err != nil {
			return "", err
		}
	}
	c, err := a.Clients(w, "")
	if err != nil {
		return "", err
	}
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: w.Namespace}}
	got, err := c.Kube.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case executors.RefusalOf(err, w.User()) == executors.RefusedNoAccount:
		return AccountMissing, nil
	case apierrors.IsForbidden(err):
		return "refused", nil
	}
	if err != nil {
		return "", err
	}
	return RulesDigest(got.Status.ResourceRules)
}

// RulesDigest is the same for the same rules in any order: the API server gives
// them in none.
func RulesDigest(rules []authorizationv1.ResourceRule) (string, error) {
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

// Forget drops the answers about an account that are believed for a while.
func (a *Impersonator) Forget(w Account) {
	for _, question := range a.answers.Keys() {
		if question == "exists "+w.User() || len(question) > len(w.User()) && question[:len(w.User())+1] == w.User()+" " {
			a.answers.Remove(question)
		}
	}
}

// Metadata is a client that acts as an account and reads of objects who they are,
// and no more.
func (a *Impersonator) Metadata(w Account) (metadata.Interface, error) {
	as := transport.ImpersonationConfig{UserName: w.User()}
	client := &http.Client{Transport: transport.NewImpersonatingRoundTripper(as, a.below(w, ""))}
	return metadata.NewForConfigAndClient(a.config, client)
}
