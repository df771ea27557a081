package client_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

func TestCredentialsThatAreRefusedSayWhoLacksWhat(t *testing.T) {
	const agent = "system:serviceaccount:kube-maint:kubectl-maint-agent"
	keys := connector.AWS{Auth: connector.Auth{Static: &connector.StaticAuth{SecretRef: connector.Ref{Name: "aws-keys"}}}}
	token := connector.AWS{Auth: connector.Auth{ServiceAccount: &connector.ServiceAccountAuth{}}}
	for name, c := range map[string]struct {
		spec   connector.AWS
		change func(api *agenttest.Cluster)
		reason string
		want   string
	}{
		"a Secret that may not be read": {keys, func(api *agenttest.Cluster) { api.Deny(runner, "get", "secrets") }, executors.ReasonForbidden, "serviceaccount shop/maint-runner may not get secrets \"aws-keys\", which holds an access key of AWS: grant get on secrets to it; 'kubectl auth can-i get secrets/aws-keys -n shop --as " + runner + "'"},
		"a Secret that is not there":    {keys, func(*agenttest.Cluster) {}, executors.ReasonNoConnection, "the Secret aws-keys, which holds an access key of AWS, does not exist in namespace shop"},
		"a Secret without keys": {keys, func(api *agenttest.Cluster) {
			api.Put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "aws-keys"}})
		}, executors.ReasonNoConnection, "lacks accessKeyId"},
		"keys that are longer than any of AWS": {keys, func(api *agenttest.Cluster) {
			api.Put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "aws-keys"}, Data: map[string][]byte{
				"accessKeyId": []byte("id"), "secretAccessKey": []byte("key"), "sessionToken": []byte(strings.Repeat("x", 16<<10)),
			}})
		}, executors.ReasonNoConnection, "the keys accessKeyId, secretAccessKey and sessionToken of the Secret aws-keys have 16389 bytes together; at most 16384 are used"},
		"an account without a role": {token, func(*agenttest.Cluster) {}, executors.ReasonNoConnection, "names no role of AWS: annotate it with eks.amazonaws.com/role-arn"},
		"a token that is not given": {token, func(api *agenttest.Cluster) {
			a := account()
			a.Annotations = map[string]string{"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/shop"}
			api.Put(a)
			api.Refuse(agenttest.When{Verb: "create", Resource: "serviceaccounts"}, 1, 403, `serviceaccounts "maint-runner" is forbidden: User "`+agent+`" cannot create resource "serviceaccounts/token"`)
		}, executors.ReasonForbidden, "the agent may not create serviceaccounts/token of ServiceAccount maint-runner in namespace shop, which asks for a token; 'kubectl maint install --cloud --apply' gives it that right"},
	} {
		t.Run(name, func(t *testing.T) {
			api := agenttest.New(t)
			api.Put(account())
			c.change(api)
			_, accounts := api.Connect()
			cloud, err := accounts.Cloud(t.Context(), maintRunner(), c.spec)
			if err != nil {
				t.Fatal(err)
			}
			if cloud.Keys != nil {
				_, err = cloud.Keys(t.Context())
			} else {
				_, err = cloud.Token(t.Context())
			}
			var refused *executors.CredentialsError
			if !errors.As(err, &refused) || refused.Outcome.State != executors.Failed || refused.Outcome.Reason != c.reason || !strings.Contains(refused.Outcome.Message, c.want) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("an API server that does not answer is none of it", func(t *testing.T) {
		api := agenttest.New(t)
		api.Put(account())
		api.Refuse(agenttest.When{Verb: "get", Resource: "secrets"}, 1, 503, "later")
		_, accounts := api.Connect()
		cloud, err := accounts.Cloud(t.Context(), maintRunner(), keys)
		if err != nil {
			t.Fatal(err)
		}
		_, err = cloud.Keys(t.Context())
		var refused *executors.CredentialsError
		if err == nil || errors.As(err, &refused) {
			t.Errorf("%v", err)
		}
	})
}

// A namespace that is deleted and made again may be another tenant's. What AWS gave the one
// before for its credentials is kept for up to an hour, and is not for the next one.
func TestANamespaceThatIsMadeAgainGetsNoCredentialsOfTheOneBefore(t *testing.T) {
	for name, spec := range map[string]connector.AWS{
		"keys":  {Auth: connector.Auth{Static: &connector.StaticAuth{SecretRef: connector.Ref{Name: "aws-keys"}}}},
		"token": {Auth: connector.Auth{ServiceAccount: &connector.ServiceAccountAuth{}}},
	} {
		api := agenttest.New(t)
		_, accounts := api.Connect()
		credentials := func(uid types.UID) string {
			made := account()
			made.UID = uid
			api.Put(made)
			cloud, err := accounts.Cloud(t.Context(), maintRunner(), spec)
			if err != nil {
				t.Fatal(err)
			}
			return cloud.Credentials
		}
		first, again := credentials("one"), credentials("one")
		if first != again {
			t.Errorf("%s: the same account has no session of its own: %q and %q", name, first, again)
		}
		api.Delete("serviceaccounts", "shop", "maint-runner")
		if _, err := accounts.Cloud(t.Context(), maintRunner(), spec); err == nil || !strings.Contains(err.Error(), "does not exist in namespace shop") {
			t.Errorf("%s: without its account: %v", name, err)
		}
		if next := credentials("two"); next == first {
			t.Errorf("%s: the account that was made again goes on with %q", name, next)
		}
	}
}
