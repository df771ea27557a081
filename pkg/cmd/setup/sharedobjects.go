package setup

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// elsewhere refuses to install where an agent is in another namespace, however it runs there: its
// cluster-scoped objects have the same names, and the policies confine one token. Only namespaces that
// such objects name count: whoever may write in one could keep others from installing.
func (o *installOptions) elsewhere(ctx context.Context, a *applier, live objectsByKey) error {
	var others []string
	for key, u := range live {
		if key.kind == "ClusterRoleBinding" || policyKind(key.kind) {
			others = append(others, agentsIn(u)...)
		}
	}
	slices.Sort(others)
	for _, other := range slices.Compact(others) {
		if other == o.manifests.Namespace {
			continue
		}
		if err := o.standsIn(ctx, a, other); err != nil {
			return err
		}
	}
	return nil
}

// standsIn is the refusal where a namespace has an agent's Deployment, or one shows itself there.
func (o *installOptions) standsIn(ctx context.Context, a *applier, namespace string) error {
	there := objectIn(namespace, "apps/v1", "Deployment", annotations.AgentName)
	found, err := a.read(ctx, []*unstructured.Unstructured{there})
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return exit.Errorf(exit.CodeError, "an agent is installed in namespace %s: give --namespace %s to upgrade it, or uninstall it first: %s", namespace, namespace, o.Suggest().Uninstall(namespace))
	}
	k, err := o.Connect()
	if err != nil {
		return err
	}
	if shows, err := shows(ctx, o.Factory, k, namespace); err != nil || !shows {
		return err
	}
	return exit.Errorf(exit.CodeError, "an agent runs in namespace %s without a Deployment: stop it where it runs, and remove its objects: %s; or give --namespace %s to install it there", namespace, o.Suggest().Uninstall(namespace), namespace)
}

// shows says whether an agent shows itself in a namespace: by its heartbeat, or by its Lease alone, whose
// holder is at work also where it can write no heartbeat.
func shows(ctx context.Context, f *factory.Factory, k *factory.Cluster, namespace string) (bool, error) {
	of := *f
	of.AgentNamespace = namespace
	state, err := of.Agent(ctx, k)
	if err != nil || state.Missing == "" || state.Elsewhere {
		return err == nil, err
	}
	lease, err := k.Kube.CoordinationV1().Leases(namespace).Get(ctx, annotations.LeaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && view.LeaseHeld(lease, f.Now().Add(k.Skew())), k.Explain("read the agent's Lease in namespace "+namespace, err)
}

// sharedWith are the cluster-scoped objects that an agent of another namespace needs: all except
// those that name only the agent of this namespace, and the bindings of such policies.
func sharedWith(live objectsByKey, namespace string) map[objectKey]bool {
	kept := map[objectKey]bool{}
	for key, u := range live {
		of := u
		if policy, _, _ := unstructured.NestedString(u.Object, "spec", "policyName"); policy != "" {
			if of = live[objectKey{strings.TrimSuffix(u.GetKind(), "Binding"), policy}]; of == nil {
				continue // it binds nothing
			}
		}
		if !slices.Equal(agentsIn(of), []string{namespace}) {
			kept[key] = true
		}
	}
	return kept
}

// agentsIn are the namespaces whose agent an object names, each once.
func agentsIn(u *unstructured.Unstructured) []string {
	var out []string
	subjects, _, _ := unstructured.NestedSlice(u.Object, "subjects")
	for _, s := range subjects {
		fields, _ := s.(map[string]any)
		if namespace, _ := fields["namespace"].(string); fields["name"] == annotations.AgentName && namespace != "" {
			out = append(out, namespace)
		}
	}
	out = append(out, annotations.AgentsNamed(u.Object["spec"])...)
	slices.Sort(out)
	return slices.Compact(out)
}

func objectNames(keys map[objectKey]bool) []string {
	var names []string
	for key := range keys {
		names = append(names, key.String())
	}
	slices.Sort(names)
	return names
}
