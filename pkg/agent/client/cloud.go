package client

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
)

// roleAnnotation names the role of AWS that a ServiceAccount has: EKS's own convention.
const roleAnnotation = "eks.amazonaws.com/role-arn"

// tokenSeconds is how long a token for STS is valid: the shortest that Kubernetes gives.
// It is exchanged at once.
const tokenSeconds = 600

// maxKeys is how many bytes an access key may have with its session token (a guess: those of STS are
// shorter than 4 KiB). Hundreds of them are kept at once.
const maxKeys = 16 << 10

// Cloud is an account of AWS as a plan's ServiceAccount reaches it. Nothing is asked of AWS
// before credentials are needed. What they are kept under names the ServiceAccount by its
// uid: the namespace may have been deleted and made again, for somebody else.
func (a *Impersonator) Cloud(ctx context.Context, w Account, spec connector.AWS) (*executors.Cloud, error) {
	account, err := a.kube.CoreV1().ServiceAccounts(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, noCredentials(executors.ReasonNoAccount, "%s", MissingMessage(w))
	case err != nil:
		return nil, fmt.Errorf("read ServiceAccount %s: %w", w.Name, err)
	}
	c := &executors.Cloud{AWS: spec, Endpoint: a.external.AWSEndpoint}
	switch {
	case spec.Auth.Static != nil:
		name := spec.Auth.Static.SecretRef.Name
		c.Credentials = "secret/" + name + " of " + string(account.UID)
		c.Keys = func(ctx context.Context) (executors.AccessKeys, error) { return a.accessKeys(ctx, w, name) }
	case spec.Auth.ServiceAccount != nil:
		c.Credentials = "serviceaccount " + string(account.UID)
		c.Token = func(ctx context.Context) (executors.WebIdentity, error) { return a.webIdentity(ctx, w) }
	}
	return c, nil
}

// accessKeys reads keys as the account, which has to have the right to.
func (a *Impersonator) accessKeys(ctx context.Context, w Account, name string) (executors.AccessKeys, error) {
	clients, err := a.Clients(w, "")
	if err != nil {
		return executors.AccessKeys{}, err
	}
	secret, err := clients.Kube.CoreV1().Secrets(w.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return executors.AccessKeys{}, a.noKeys(ctx, clients, w, name, err)
	}
	id, key, session := secret.Data["accessKeyId"], secret.Data["secretAccessKey"], secret.Data["sessionToken"]
	if n := len(id) + len(key) + len(session); n > maxKeys {
		return executors.AccessKeys{}, noCredentials(executors.ReasonNoConnection, "the keys accessKeyId, secretAccessKey and sessionToken of the Secret %s have %d bytes together; at most %d are used", name, n, maxKeys)
	}
	keys := executors.AccessKeys{ID: string(id), Secret: string(key), Session: string(session)}
	if keys.ID == "" || keys.Secret == "" {
		return executors.AccessKeys{}, noCredentials(executors.ReasonNoConnection, "the Secret %s lacks accessKeyId or secretAccessKey", name)
	}
	return keys, nil
}

// noKeys says why a Secret with keys was not given. An API server that does not answer is none
// of the reasons, and is asked again.
func (a *Impersonator) noKeys(ctx context.Context, home executors.Clients, w Account, name string, err error) error {
	asked := executors.Asked{
		As: w.User(), Right: authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "secrets", Namespace: w.Namespace, Name: name},
		Missing: fmt.Sprintf("serviceaccount %s/%s may not get secrets %q, which holds an access key of AWS: grant get on secrets to it; 'kubectl auth can-i get secrets/%s -n %s --as %s' says whether it may", w.Namespace, w.Name, name, intent.Word(name), w.Namespace, w.User()),
		Denied:  fmt.Sprintf("the Secret %s, which holds an access key of AWS, was not given to serviceaccount %s/%s", name, w.Namespace, w.Name),
	}
	if out, is := executors.Refused(ctx, home.Kube, a.now(), asked, err); is {
		return &executors.CredentialsError{Outcome: out}
	}
	if apierrors.IsNotFound(err) {
		return noCredentials(executors.ReasonNoConnection, "the Secret %s, which holds an access key of AWS, does not exist in namespace %s", name, w.Namespace)
	}
	return fmt.Errorf("read the Secret %s as serviceaccount %s/%s: %w", name, w.Namespace, w.Name, err)
}

// noCredentials is why there are none until somebody mends what is said.
func noCredentials(reason, format string, args ...any) error {
	return &executors.CredentialsError{Outcome: executors.Refuse(reason, format, args...)}
}

// webIdentity asks for a token of the account. It is the one thing that the agent does
// here by its own right, which install --cloud gives: an account that could ask for its own
// tokens could hand them on.
func (a *Impersonator) webIdentity(ctx context.Context, w Account) (executors.WebIdentity, error) {
	accounts := a.kube.CoreV1().ServiceAccounts(w.Namespace)
	account, err := accounts.Get(ctx, w.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return executors.WebIdentity{}, noCredentials(executors.ReasonNoAccount, "there is no ServiceAccount %s in namespace %s", w.Name, w.Namespace)
	case err != nil:
		return executors.WebIdentity{}, fmt.Errorf("read ServiceAccount %s: %w", w.Name, err)
	}
	role := account.Annotations[roleAnnotation]
	if _, ok := connector.RoleAccount(role); !ok {
		return executors.WebIdentity{}, noCredentials(executors.ReasonNoConnection, "the ServiceAccount %s names no role of AWS: annotate it with %s", w.Name, roleAnnotation)
	}
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{executors.TokenAudience}, ExpirationSeconds: &seconds}}
	got, err := accounts.CreateToken(ctx, w.Name, request, CreateOptions())
	switch {
	case apierrors.IsForbidden(err):
		return executors.WebIdentity{}, noCredentials(executors.ReasonForbidden, "the agent may not create serviceaccounts/token of ServiceAccount %s in namespace %s, which asks for a token; 'kubectl maint install --cloud --apply' gives it that right: %s", w.Name, w.Namespace, err)
	case err != nil:
		return executors.WebIdentity{}, fmt.Errorf("ask for a token of ServiceAccount %s: %w", w.Name, err)
	}
	return executors.WebIdentity{Token: got.Status.Token, RoleARN: role}, nil
}
