package function

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// How Crossplane says which revisions a function has.
const (
	revisionKind = "FunctionRevision"
	packageLabel = "pkg.crossplane.io/package" // on a revision: the name of its function
)

// maxRevisions is how many revisions of a function are looked at (a guess: Crossplane keeps one that
// is inactive, unless it is told otherwise).
const maxRevisions = 500

// versions are those in which Crossplane has served revisions, the newest first.
func versions() []string { return []string{"pkg.crossplane.io/v1", "pkg.crossplane.io/v1beta1"} }

// locate finds out where an installed function is: its active revision says so. The revisions are read
// as the plan's account.
func (c *conversation) locate(ctx context.Context) error {
	ref := c.props.FunctionRef
	if ref == nil {
		return nil
	}
	if (ref.Name == "") == (c.props.Endpoint == "") { // what expressions made of it
		return api.Refuse(executors.ReasonInvalid, "functionRef: exactly one of endpoint and functionRef.name is needed")
	}
	picks, err := selector.Exact(map[string]string{packageLabel: ref.Name})
	if err != nil {
		return api.Refuse(executors.ReasonInvalid, "functionRef.name: %s", err)
	}
	revisions, err := c.revisions()
	if err != nil {
		return err
	}
	found := false
	var active *unstructured.Unstructured
	_, err = revisions.Each(ctx, picks, maxRevisions, func(u *unstructured.Unstructured) error {
		found = true
		state, _, _ := unstructured.NestedString(u.Object, "spec", "desiredState")
		if state == "Active" && (active == nil || number(u) > number(active)) {
			active = u.DeepCopy()
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case !found:
		return notReady("%s is not installed: there is no FunctionRevision of it", c)
	case active == nil:
		return notReady("%s has no active FunctionRevision", c)
	}
	endpoint, _, _ := unstructured.NestedString(active.Object, "status", "endpoint")
	if endpoint = address(endpoint); endpoint == "" {
		return notReady("%s is not ready: its active FunctionRevision %s has no status.endpoint", c, active.GetName())
	}
	props := *c.props
	props.Endpoint = endpoint
	c.props = &props
	return nil
}

// revisions is the kind of revisions in the newest version that is served.
func (c *conversation) revisions() (api.Object, error) {
	var first error
	for _, version := range versions() {
		o, err := api.Resolve(c.call, plan.ResourceRef{APIVersion: version, Kind: revisionKind})
		if err == nil || !api.IsUnknownKind(err) {
			return o, err
		}
		if first == nil {
			first = err
		}
	}
	return api.Object{}, first
}

// number is the ordinal of a revision.
func number(u *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(u.Object, "spec", "revision")
	return n
}

// address is the host and port of an endpoint in gRPC's form, dns:///host:port.
func address(endpoint string) string {
	if scheme, rest, is := strings.Cut(endpoint, "://"); is && (scheme == "dns" || scheme == "passthrough") {
		_, endpoint, _ = strings.Cut(rest, "/") // what stands before the slash is a name server
	}
	return endpoint
}

// notReady is an outcome that Crossplane mends by itself while a function is installed.
func notReady(format string, args ...any) error {
	return &api.Refused{Outcome: executors.Fail("FunctionNotReady", format, args...)}
}

// installedTLS is the Secret with the certificate for installed functions, which an admin gave the
// agent for them and for nobody else: a step that names an endpoint by itself never shows it.
func (c *conversation) installedTLS(ctx context.Context) (map[string][]byte, error) {
	none := func(why string) error {
		return api.Refuse("NoCertificate", "%s: %s; the agent's admin can name one in spec.functions.tlsSecretRef, and tls in the step one of the plan's namespace", c, why)
	}
	if c.call.Clients.FunctionTLS == nil {
		return nil, none("the agent's configuration has no client certificate for installed functions")
	}
	secret, err := c.call.Clients.FunctionTLS(ctx)
	var fault *agentconfig.SecretError
	switch {
	case executors.RefusalOf(err, "") != executors.NotRefused: // the agent itself was refused: an API server that starts refuses everybody
		out := executors.Fail(executors.ReasonForbidden, "%s: %s", c, err)
		out.State, out.WakeAt = executors.NotYet, c.call.Now.Add(api.RetryDelay)
		return nil, &api.Refused{Outcome: out}
	case errors.As(err, &fault):
		return nil, none(fault.Why)
	case err != nil:
		return nil, err
	case secret == nil:
		return nil, none("the agent's configuration has no client certificate for installed functions")
	}
	return secret.Data, nil
}
