package setup

import (
	"bytes"
	"context"
	_ "embed" // for the manifests
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

//go:embed manifests/agent.yaml
var agentManifests string //nolint:gochecknoglobals // embedding needs a variable

// Manifests is what install prints: the agent's objects for one version.
type Manifests struct {
	Version, Namespace, Image string
	ReadOnly                  bool
	TolerateCordon            bool
}

// Render writes the objects as YAML documents.
func (m Manifests) Render() (string, error) {
	t, err := template.New("agent").Option("missingkey=error").Parse(agentManifests)
	if err != nil {
		return "", fmt.Errorf("read the manifests: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, m); err != nil {
		return "", fmt.Errorf("write the manifests: %w", err)
	}
	return b.String(), nil
}

type installOptions struct {
	*factory.Factory
	manifests Manifests
	apply     bool
	format    string
	faults    exit.Faults
}

// NewInstall prints or applies the agent's manifests.
func NewInstall(c *factory.Factory) *cobra.Command {
	o := &installOptions{Factory: c}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Print the agent's manifests, or apply them",
		Long: `Print the agent's manifests for this version: namespace, rights, configuration
and a Deployment of two replicas. --apply applies them.

With --read-only the agent may act as no ServiceAccount at all: it decides,
records and shows, and every step fails by its missing right. Object steps are
shown as dry runs where they can be.`,
		Example: `  kubectl maint install | kubectl apply -f -
  kubectl maint install --image example.org/maint/agent:v1 --apply`,
		Args: cobra.NoArgs,
		RunE: factory.RunE(o),
	}
	cmd.Flags().StringVar(&o.manifests.Image, "image", "", "of the agent; default kubectl-maint/agent:<version>")
	cmd.Flags().BoolVar(&o.manifests.ReadOnly, "read-only", false, "an agent that may act as nobody")
	cmd.Flags().BoolVar(&o.manifests.TolerateCordon, "tolerate-cordon", false, "the agent may start on a cordoned node: for a cluster of one node")
	cmd.Flags().BoolVar(&o.apply, "apply", false, "apply, instead of printing")
	cmd.Flags().StringVarP(&o.format, "output", "o", "yaml", "yaml")
	return cmd
}

// Complete fills in the defaults.
func (o *installOptions) Complete(cmd *cobra.Command, _ []string) error {
	o.manifests.Version = o.Version
	o.manifests.Namespace = annotations.DefaultNamespace
	if f := cmd.Flag("namespace"); f != nil && f.Changed {
		o.manifests.Namespace = f.Value.String()
	}
	if o.manifests.Image == "" {
		o.manifests.Image = "kubectl-maint/agent:" + o.Version
	}
	return nil
}

// Validate checks the flags.
func (o *installOptions) Validate() error {
	if o.format != "yaml" {
		o.faults.Add("-o must be yaml, is %q", o.format)
	}
	if !document.DNSLabel(o.manifests.Namespace) {
		o.faults.Add("--namespace %q cannot name a namespace", o.manifests.Namespace)
	}
	if strings.ContainsAny(o.manifests.Image, " \t\n\"'{}") {
		o.faults.Add("--image %q cannot name an image", o.manifests.Image)
	}
	return o.faults.Err()
}

// Run prints the manifests or applies them, in their order.
func (o *installOptions) Run(ctx context.Context) error {
	text, err := o.manifests.Render()
	if err != nil {
		return err
	}
	if !o.apply {
		_, err := io.WriteString(o.Out, text)
		return err
	}
	return each(o.Factory, text, func(u *unstructured.Unstructured, to dynamic.ResourceInterface) error {
		b, err := json.Marshal(u)
		if err != nil {
			return err
		}
		force := true
		_, err = to.Patch(ctx, u.GetName(), types.ApplyPatchType, b, metav1.PatchOptions{FieldManager: annotations.ManagerCLI, Force: &force})
		if err != nil {
			return factory.Explain("apply "+named(u), err)
		}
		fmt.Fprintf(o.Out, "%s applied\n", named(u))
		return nil
	}, false)
}

func named(u *unstructured.Unstructured) string {
	return strings.ToLower(u.GetKind()) + "/" + u.GetName()
}

// each visits the objects of a manifest with a client for their kind.
func each(c *factory.Factory, text string, visit func(*unstructured.Unstructured, dynamic.ResourceInterface) error, reverse bool) error {
	objects, err := readObjects(text)
	if err != nil {
		return err
	}
	if reverse {
		slices.Reverse(objects)
	}
	config, err := c.Config.ToRESTConfig()
	if err != nil {
		return factory.NoCluster(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	mapper, err := c.Config.ToRESTMapper()
	if err != nil {
		return factory.Explain("ask what kinds the cluster has", err)
	}
	for _, u := range objects {
		gvk := u.GroupVersionKind()
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return factory.Explain("find the kind "+gvk.Kind, err)
		}
		var to dynamic.ResourceInterface = client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			to = client.Resource(mapping.Resource).Namespace(u.GetNamespace())
		}
		if err := visit(u, to); err != nil {
			return err
		}
	}
	return nil
}

func readObjects(text string) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	var out []*unstructured.Unstructured
	for {
		u := &unstructured.Unstructured{}
		switch err := decoder.Decode(&u.Object); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("read the manifests: %w", err)
		}
		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
}

type uninstallOptions struct {
	*factory.Factory
	factory.Consent
	namespace string
}

// NewUninstall removes the agent.
func NewUninstall(c *factory.Factory) *cobra.Command {
	o := &uninstallOptions{Factory: c}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the agent; refused while a run lives, a gate or a node is held",
		Long: `Remove what install applied. Refused while a run lives: its finally would not
run, and its finalizer would hold it for ever; while gates hold something, and while
nodes are cordoned by the agent. Plans, their ledgers and their
history stay, and so does the agent's namespace.`,
		Example: "  kubectl maint uninstall --yes",
		Args:    cobra.NoArgs,
		RunE:    factory.RunE(o),
	}
	o.Consent.AddFlag(cmd)
	return cmd
}

// Complete takes the namespace.
func (o *uninstallOptions) Complete(cmd *cobra.Command, _ []string) error {
	o.namespace = annotations.DefaultNamespace
	if f := cmd.Flag("namespace"); f != nil && f.Changed {
		o.namespace = f.Value.String()
	}
	return nil
}

// Validate has nothing to check.
func (o *uninstallOptions) Validate() error { return nil }

// nothingCordoned refuses while nodes are cordoned by us: nobody would uncordon
// them.
func (o *uninstallOptions) nothingCordoned(ctx context.Context, k *factory.Cluster) error {
	list, err := k.Nodes(ctx, "")
	if err != nil {
		return factory.Explain("look whether nodes are cordoned", err)
	}
	for _, n := range list {
		if c := annotations.Node(n).Cordon; c != nil && len(c.By) > 0 {
			return exit.Errorf(exit.CodeNotNow, "node %s is cordoned for %s, and nobody would uncordon it: %s shows all such nodes; release them, or let their plans end", n.Name, view.ClaimantWords(c.By[0]), o.Suggest().Status())
		}
	}
	return nil
}

// nothingHeld refuses while gates may hold objects: nobody would open them.
func (o *uninstallOptions) nothingHeld(ctx context.Context, k *factory.Cluster) error {
	list, err := k.ConfigMaps("").List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindGate})
	if err != nil {
		return factory.Explain("look whether gates hold anything", err)
	}
	if len(list.Items) == 0 {
		return o.nothingCordoned(ctx, k)
	}
	cm := &list.Items[0]
	policy := cm.Name
	if record, err := annotations.ReadGates(cm); err == nil {
		policy = record.Policy
	}
	return exit.Errorf(exit.CodeNotNow, "the gates of policy %s/%s%s may hold objects that nobody would open: take them out of the policy, or delete it, and wait until the agent has opened them", cm.Namespace, policy, view.AndMore(len(list.Items)-1))
}

// Run deletes the objects in the reverse of their order, once nothing lives.
func (o *uninstallOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	live, err := k.Runs(ctx, "", "", factory.ActiveOnly)
	if err != nil {
		return err
	}
	if len(live) > 0 {
		return exit.Errorf(exit.CodeNotNow, "run %s/%s of plan %s lives%s: wait for it or abort it first", live[0].Run.Namespace, live[0].Run.Name, live[0].Run.Plan, view.AndMore(len(live)-1))
	}
	if err := o.nothingHeld(ctx, k); err != nil {
		return err
	}
	if err := o.Confirm(ctx, o.Consent, "remove the agent from namespace "+o.namespace); err != nil {
		return err
	}
	text, err := Manifests{Version: o.Version, Namespace: o.namespace, Image: "kubectl-maint/agent"}.Render()
	if err != nil {
		return err
	}
	err = each(o.Factory, text, func(u *unstructured.Unstructured, to dynamic.ResourceInterface) error {
		if u.GetKind() == "Namespace" {
			return nil
		}
		err := to.Delete(ctx, u.GetName(), metav1.DeleteOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return factory.Explain("delete "+named(u), err)
		}
		fmt.Fprintf(o.Out, "%s deleted\n", named(u))
		return nil
	}, true)
	if err != nil {
		return err
	}
	return o.leftovers(ctx, k)
}

// leftovers takes away what the agent itself kept in its namespace. The
// namespace stays: what else is in it is not ours to delete.
func (o *uninstallOptions) leftovers(ctx context.Context, k *factory.Cluster) error {
	err := k.ConfigMaps(o.namespace).Delete(ctx, annotations.HeartbeatName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return factory.Explain("delete the heartbeat", err)
	}
	err = k.Kube.CoordinationV1().Leases(o.namespace).Delete(ctx, annotations.LeaseName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return factory.Explain("delete the lease", err)
	}
	fmt.Fprintf(o.ErrOut, "namespace %s stays, with whatever else is in it: 'kubectl delete namespace %s' takes it away\n", o.namespace, o.namespace)
	return nil
}
