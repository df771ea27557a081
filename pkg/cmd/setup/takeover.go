package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// Flags whose values an installation remembers.
const (
	flagWithout     = "without"
	flagReadOnly    = "read-only"
	flagKubeSystem  = "kube-system"
	flagMetricsAuth = "metrics-auth"
	flagCloud       = "cloud"
	flagTolerate    = "tolerate-cordon"
	flagReplicas    = "replicas"
	flagImage       = "image"
	flagAdmission   = "with-admission"
	flagSingle      = "single-namespace"
)

// adopt takes over the existing installation's choices where the command line says nothing: what an
// earlier install left out, and what an admin removed since. Without a Deployment there is none.
func (m *Manifests) adopt(live objectsByKey, given func(flag string) bool) {
	if !given(flagAdmission) {
		m.Admission = m.Admission || hasAdmission(live)
	}
	if !given(flagCloud) {
		m.Cloud = m.Cloud || live[objectKey{"ClusterRoleBinding", cloudRole}] != nil
	}
	m.Secrets = append(m.Secrets, namedSecrets(live[objectKey{"ConfigMap", annotations.AgentConfigName}])...)
	deployment := live[objectKey{"Deployment", annotations.AgentName}]
	if deployment == nil {
		return
	}
	if !given(flagWithout) {
		m.Without = leftOut(deployment, live)
	}
	if !given(flagReadOnly) {
		m.ReadOnly = slices.ContainsFunc(argsOf(deployment), func(arg string) bool { return arg == argDryRun || arg == argDryRun+"=true" })
	}
	if !given(flagMetricsAuth) {
		m.MetricsAuth = slices.ContainsFunc(argsOf(deployment), func(arg string) bool { return arg == argMetricsAuth || arg == argMetricsAuth+"=true" })
	}
	if !given(flagSingle) {
		m.SingleNamespace = live[objectKey{"RoleBinding", documentsRole}] != nil
	}
	if policy := live[objectKey{"ValidatingAdmissionPolicy", annotations.AgentPolicy}]; policy != nil && !given(flagKubeSystem) {
		m.KubeSystem = !speaksOf(policy, kubeSystem)
	}
}

// namedSecrets are the Secrets that a configuration names: what an earlier version could read stays
// readable. A broken configuration names none, and its agent sends nothing.
func namedSecrets(config *unstructured.Unstructured) []string {
	if config == nil {
		return nil
	}
	text, _, _ := unstructured.NestedString(config.Object, "data", annotations.DataConfig)
	spec, _ := agentconfig.Parse([]byte(text))
	return spec.Secrets()
}

// leftOut are the parts that are not wanted. A part that the earlier version did not know is
// wanted; of one that it knew and whose binding is gone, somebody removed the binding, unless all
// bindings are gone: then another installation removed them. Admission policies come back: an
// earlier API server may have lacked their kind.
func leftOut(deployment *unstructured.Unstructured, live objectsByKey) []string {
	known, recorded := deployment.GetAnnotations()[partsKey]
	offered := strings.Split(known, ",")
	if !recorded { // one role had both
		offered = []string{partRequests}
	}
	var out []string
	bound := live[objectKey{"ClusterRoleBinding", annotations.AgentName}] != nil
	for _, part := range parts() {
		binding := bindingOf(part)
		switch {
		case slices.Contains(offered, "-"+part):
			out = append(out, part)
		case bound && slices.Contains(offered, part) && binding != "" && live[objectKey{"ClusterRoleBinding", binding}] == nil && !neverBound(deployment, part):
			out = append(out, part)
		}
	}
	return out
}

// neverBound are the parts that a read-only agent, or one of a single namespace, does not get.
func neverBound(deployment *unstructured.Unstructured, part string) bool {
	args := argsOf(deployment)
	was := Manifests{ReadOnly: slices.Contains(args, argDryRun), SingleNamespace: slices.Contains(args, argWatch+"="+deployment.GetNamespace())}
	return !was.Has(part)
}

// bindingOf is the ClusterRoleBinding of a part.
func bindingOf(part string) string {
	switch part {
	case partRequests:
		return "maint-agent-nodes"
	case partForce:
		return "maint-agent-force"
	case partVolumes:
		return "maint-agent-volumes"
	case partConditions:
		return "maint-agent-conditions"
	}
	return ""
}

// speaksOf says whether a validation of a policy names something.
func speaksOf(policy *unstructured.Unstructured, what string) bool {
	validations, _, _ := unstructured.NestedSlice(policy.Object, "spec", "validations")
	return slices.ContainsFunc(validations, func(v any) bool {
		fields, _ := v.(map[string]any)
		expression, _ := fields["expression"].(string)
		return strings.Contains(expression, "'"+what+"'")
	})
}

// container is the agent's container in its Deployment.
func container(deployment *unstructured.Unstructured) map[string]any {
	all, _, _ := unstructured.NestedFieldNoCopy(deployment.Object, "spec", "template", "spec", "containers")
	list, _ := all.([]any)
	for _, item := range list {
		if c, _ := item.(map[string]any); c["name"] == "agent" {
			return c
		}
	}
	return nil
}

func argsOf(deployment *unstructured.Unstructured) []string {
	list, _ := container(deployment)["args"].([]any)
	var out []string
	for _, item := range list {
		if arg, ok := item.(string); ok {
			out = append(out, arg)
		}
	}
	return out
}

// narrowing is the flag by which the agent loses rights in all namespaces but one, or over nodes; empty: none.
func (m *Manifests) narrowing(live objectsByKey) (flag, spared string) {
	was := Manifests{Namespace: m.Namespace}
	was.adopt(live, func(string) bool { return false })
	switch {
	case live[objectKey{"Deployment", annotations.AgentName}] == nil:
	case m.ReadOnly && !was.ReadOnly:
		return flagReadOnly, ""
	case m.SingleNamespace && !was.SingleNamespace:
		return flagSingle, m.Namespace
	case was.Has(partRequests) && !m.Has(partRequests):
		return flagWithout, ""
	}
	return "", ""
}

// strands refuses to take what the agent needs to end runs, to wake what sleeps and to give nodes back.
func (o *installOptions) strands(ctx context.Context, live objectsByKey) error {
	flag, spared := o.manifests.narrowing(live)
	given, first, most := "--"+flag, "wait for runs or abort them, wake what sleeps, and release nodes, first", 5
	k, err := o.Connect()
	if err != nil || flag == "" || !o.apply || !o.Kept() {
		return err
	}
	list, err := k.Nodes(ctx, "")
	alive, node, requestor := view.RequestsAlive(list)
	if flag == flagWithout {
		given, first = given+" "+partRequests, "take back what asks for the nodes first, as with "+o.Suggest().ReleaseFor(node, requestor)
	} else { // plans act on nodes as their accounts
		beside, doubt, failed := o.aliveBeside(ctx, k, spared)
		alive, first, err = append(beside, alive...), first+doubt, errors.Join(err, failed)
	}
	if err != nil {
		return fmt.Errorf("whether %s leaves runs, sleeping resources or nodes behind is not known, so nothing was changed: %w", given, err)
	}
	if len(alive) == 0 {
		return nil
	}
	return exit.Errorf(exit.CodeNotNow, "nothing was changed: after %s the agent could not end %s%s: %s", given, strings.Join(alive[:min(most, len(alive))], ", "), view.AndMore(len(alive)-most), first)
}

// aliveBeside names the runs and the sleeps that only an agent with its rights ends, in all namespaces but one, and
// says what is doubtful of them. Of runs that do not count it warns: no agent ends them, whatever it may.
func (o *installOptions) aliveBeside(ctx context.Context, k *factory.Cluster, spared string) (alive []string, doubt string, err error) {
	keys := readKeys(ctx, k, append(k.OtherAgents(ctx, o.manifests.Namespace), o.manifests.Namespace))
	runs, uncounted, err := liveRuns(ctx, o.Factory, k, keys)
	sleepers, unread := k.HibernatePlans(ctx, "", "")
	for _, what := range uncounted {
		fmt.Fprintf(o.ErrOut, "warning: %s\n", what)
	}
	if len(runs) > 0 {
		doubt = keys.Doubt()
	}
	return view.AliveBeside(runs, sleepers, spared), doubt, errors.Join(err, unread)
}
