// Package setup holds the commands around the agent itself: its manifests and versions.
package setup

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/image"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// defaultRepository is the default repository of the image.
const defaultRepository = "kubectl-maint/agent"

type installOptions struct {
	*factory.Factory
	factory.DryRun
	manifests Manifests
	apply     bool
	diff      bool
	out       *print.Values          // of what is printed
	given     func(flag string) bool // on this command line
	faults    exit.Faults
}

// NewInstall prints or applies the agent's manifests.
func NewInstall(c *factory.Factory) *cobra.Command {
	o := &installOptions{Factory: c, out: print.NewValues()}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Print the agent's manifests, or apply them",
		Long: `Print the agent's manifests for this version: namespace, rights, configuration,
the policies that confine the agent, and a Deployment of two replicas.

--apply applies them; use it to upgrade, too. It keeps what an admin has changed since,
and lists it: the configuration, replicas, resources, the image's registry and
repository, accounts and subjects that were added, and any other field. Rights,
policies and the image's tag become those of this version. The values of --without,
--read-only, --kube-system, --metrics-auth, --cloud, --single-namespace,
--tolerate-cordon and --with-admission from an earlier install still apply, unless you
give the flag again. --diff shows what --apply would change, and exits with 1 if it would
change anything. --apply --dry-run=client|server lists the objects that would change.

--without leaves parts out, and removes them if they are installed: 'requests' (rights
over nodes for requests), 'force' (deleting pods for them), 'volumes' (reading claims
and attachments), 'conditions' (conditions in a node's status), 'confinement' (the
admission policies, which need Kubernetes 1.30), 'kubelets' (the one by which a kubelet
may not ask for its own node). --without none brings all of them back.

--with-admission adds policies for everybody else (Kubernetes 1.30; 1.36 to record
who gave an intent): intents and requests for nodes become verbs in RBAC, and only the
agent may write its own records. --with-admission=false removes them.

--single-namespace is for a team with a namespace of its own: the agent runs in it, has
only a Role there, and looks at nothing else. It then ignores nodes, namespaces and the
policies of other namespaces.

With --read-only the agent may not act as any ServiceAccount: it decides, records and
shows, and every step fails because the right is missing. Object steps are shown as dry
runs if possible.`,
		Example: `  kubectl maint install | kubectl apply -f -
  kubectl maint install --image example.org/maint/agent:v1 --apply
  kubectl maint install --diff
  kubectl maint install --apply --without force,volumes --impersonate deployer`,
		Args: factory.NoNames,
		RunE: factory.RunE(o),
	}
	f, m := cmd.Flags(), &o.manifests
	f.StringVar(&m.Image, flagImage, "", "of the agent; default "+defaultRepository+":<version>, or the tag of this version in the registry and repository that are in use")
	f.IntVar(&m.Replicas, flagReplicas, defaultReplicas, "how many agents: one leads, the others stand by")
	f.StringSliceVar(&m.Secrets, "secret", nil, "another Secret `NAME` of the agent's namespace with URLs of sinks, beside maint-sinks and those that the configuration names; can be given again")
	f.StringSliceVar(&m.Impersonate, "impersonate", nil, "another ServiceAccount `NAME` that plans may run as, in every namespace; can be given again")
	f.StringSliceVar(&m.Without, flagWithout, nil, "`PARTS` to leave out: "+strings.Join(parts(), ", ")+"; or none")
	f.BoolVar(&m.ReadOnly, flagReadOnly, false, "an agent that may act as nobody")
	f.BoolVar(&m.KubeSystem, flagKubeSystem, false, "the agent may write ConfigMaps in kube-system: for plans there")
	f.BoolVar(&m.SingleNamespace, flagSingle, false, "the agent watches only its own namespace, and has a Role there instead of cluster-wide rights")
	f.BoolVar(&m.MetricsAuth, flagMetricsAuth, false, "the agent answers /metrics only to tokens whose user may get /metrics (ClusterRole maint-metrics-reader)")
	f.BoolVar(&m.Cloud, flagCloud, false, "the agent may ask for tokens of the ServiceAccounts that it acts as, but only for STS of AWS: for connectors with auth.serviceAccount")
	f.BoolVar(&m.TolerateCordon, flagTolerate, false, "the agent may start on a cordoned node: for a cluster of one node")
	f.BoolVar(&m.Admission, flagAdmission, false, "the admission policies too: intents and node requests become RBAC verbs")
	f.StringVar(&m.Outbound, "outbound", outboundOpen, `"open", or "strict": webhooks and queries reach no private address, which pods, Services and nodes have; of a configuration that is made now`)
	f.BoolVar(&o.apply, "apply", false, "apply, instead of printing")
	f.BoolVar(&o.diff, "diff", false, "show what --apply would change, and change nothing")
	o.AddMode(cmd)
	_ = cmd.RegisterFlagCompletionFunc(flagWithout, cobra.FixedCompletions(append(parts(), "none"), cobra.ShellCompDirectiveNoFileComp))
	o.out.AddFlags(cmd)
	return cmd
}

// Complete sets the defaults.
func (o *installOptions) Complete(cmd *cobra.Command, _ []string) error {
	m := &o.manifests
	m.Version = o.Version
	m.Namespace = annotations.DefaultNamespace
	if f := cmd.Flag("namespace"); f != nil && f.Changed {
		m.Namespace = f.Value.String()
	}
	if m.Image == "" {
		m.Image = defaultRepository + ":" + o.Version
	}
	if slices.Equal(m.Without, []string{"none"}) {
		m.Without = nil
	}
	o.given = func(flag string) bool {
		f := cmd.Flag(flag)
		return f != nil && f.Changed
	}
	return nil
}

// Validate checks the flags.
func (o *installOptions) Validate() error {
	m := o.manifests
	o.out.Check(&o.faults)
	if !o.out.Lines() && (o.apply || o.diff) {
		o.faults.Add("-o prints the manifests, and --apply and --diff do not: give one of them")
	}
	if m.Outbound != outboundOpen && m.Outbound != outboundStrict {
		o.faults.Add("--outbound must be open or strict, is %q", m.Outbound)
	}
	o.DryRun.Check(&o.faults)
	if !o.Kept() && !o.apply {
		o.faults.Add("--dry-run is for --apply; without --apply nothing is changed")
	}
	if o.apply && o.diff {
		o.faults.Add("--diff changes nothing, and --apply does: give one of them")
	}
	if !document.DNSLabel(m.Namespace) {
		o.faults.Add("--namespace %q cannot name a namespace", m.Namespace)
	}
	if strings.ContainsAny(m.Image, " \t\n\"'{}") {
		o.faults.Add("--image %q cannot name an image", m.Image)
	}
	if m.Replicas < 0 || o.given(flagReplicas) && m.Replicas == 0 {
		o.faults.Add("--replicas must be at least 1, is %d", m.Replicas)
	}
	for _, name := range m.Impersonate {
		if !document.DNSLabel(name) {
			o.faults.Add("--impersonate %q cannot name a ServiceAccount", name)
		}
	}
	for _, name := range m.Secrets {
		if !document.DNSSubdomain(name) {
			o.faults.Add("--secret %q cannot name a Secret", name)
		}
	}
	for _, part := range m.Without {
		if !slices.Contains(parts(), part) {
			o.faults.Add("--without takes %s, or none alone; not %q", strings.Join(parts(), ", "), part)
		}
	}
	for _, fault := range m.contradictions() {
		o.faults.Add("%s", fault)
	}
	err := o.faults.Err()
	if why := image.Doubt(m.Image, o.Version); err == nil && why != "" && o.given(flagImage) {
		fmt.Fprintf(o.ErrOut, "warning: --image %s %s\n", m.Image, why)
	}
	return err
}

// contradictions are flags that exclude each other.
func (m Manifests) contradictions() []string {
	var out []string
	if m.Cloud && slices.Contains(m.Without, partConfinement) {
		out = append(out, fmt.Sprintf("--cloud lets the agent ask for tokens, and the part %s limits for which accounts: give --cloud, or leave out that part, not both", partConfinement))
	}
	if m.SingleNamespace && m.Namespace == kubeSystem {
		out = append(out, fmt.Sprintf("--single-namespace is for a team's own namespace: an agent in %s watches the whole cluster", kubeSystem))
	}
	if m.Cloud && m.ReadOnly {
		out = append(out, "--cloud is for an agent that acts as accounts, and --read-only lets it act as none: give one of them")
	}
	if m.ReadOnly && len(m.Impersonate) > 0 {
		out = append(out, "--impersonate lets the agent act as an account, and --read-only as none: give one of them")
	}
	return out
}

// Run prints the manifests, applies them, or shows what would change.
func (o *installOptions) Run(ctx context.Context) error {
	if o.apply || o.diff {
		return o.install(ctx)
	}
	o.warn()
	return o.print()
}

// print prints the manifests as they are written, with their comments, or as another -o has it.
func (o *installOptions) print() error {
	if o.out.Lines() || o.out.Format() == "yaml" {
		text, err := o.manifests.Render()
		if err != nil {
			return err
		}
		_, err = io.WriteString(o.Out, text)
		return err
	}
	objects, err := o.manifests.Objects()
	if err != nil {
		return err
	}
	items := make([]unstructured.Unstructured, len(objects))
	for i, u := range objects {
		items[i] = *u
	}
	return o.out.PrintObjects(o.Out, items)
}

// warn says what --outbound strict does not hold.
func (o *installOptions) warn() {
	if m := o.manifests; m.SingleNamespace && m.Outbound == outboundStrict && !m.Admission {
		fmt.Fprintf(o.ErrOut, "warning: --outbound strict is in ConfigMap %s/%s, and whoever may edit ConfigMaps of the namespace can remove it: with --%s only those with the verb override on plans.maint.dev can\n", m.Namespace, annotations.AgentConfigName, flagAdmission)
	}
}

// install applies what this version and its admin want, object by object, or shows how it differs.
func (o *installOptions) install(ctx context.Context) error {
	a, err := connect(o.Factory)
	if err != nil {
		return err
	}
	all, err := o.manifests.all()
	if err != nil {
		return err
	}
	live, err := a.read(ctx, all)
	if err != nil {
		return err
	}
	if err := o.elsewhere(ctx, a, live); err != nil {
		return err
	}
	if err := o.adopt(a, live); err != nil {
		return err
	}
	o.warn()
	if err := o.strands(ctx, live); err != nil {
		return err
	}
	wanted, err := o.prepare(a, all, live)
	if err != nil {
		return err
	}
	if o.apply && !o.Client() {
		if err := a.refused(ctx, wanted, live); err != nil {
			return fmt.Errorf("nothing was changed: %w", err)
		}
	}
	want, differ := byKey(wanted), false
	for _, u := range all {
		c, err := o.one(ctx, a, u, want[keyOf(u)], live)
		if err != nil {
			return err
		}
		if err := o.say(c); err != nil {
			return err
		}
		differ = differ || c.differs()
	}
	o.sayNotServed(a)
	if o.diff && differ {
		return &exit.Error{Code: exit.CodeError} // as in kubectl diff
	}
	return nil
}

// adopt takes over the options of an earlier install that still apply, and says which contradict those given.
func (o *installOptions) adopt(a *applier, live objectsByKey) error {
	o.manifests.adopt(live, o.given)
	for _, fault := range o.manifests.contradictions() {
		o.faults.Add("%s; the options of an earlier install still apply: --%s=false, --%s=false or --%s none ends them", fault, flagCloud, flagReadOnly, flagWithout)
	}
	if o.manifests.Cloud && a.notServed {
		o.faults.Add("this API server has no ValidatingAdmissionPolicy (Kubernetes 1.30 and later do), so nothing would limit for which accounts the agent may ask for tokens: give --%s=false", flagCloud)
	}
	return o.faults.Err()
}

// prepare gives the applier what it merges with what is live, and returns the objects that are wanted.
func (o *installOptions) prepare(a *applier, all []*unstructured.Unstructured, live objectsByKey) ([]*unstructured.Unstructured, error) {
	acts, err := actsAs(live)
	if err != nil {
		return nil, err
	}
	if o.given(flagSingle) && !o.manifests.ReadOnly { // the accounts move to another role
		o.manifests.Impersonate = append(o.manifests.Impersonate, acts...)
	}
	wanted, err := o.manifests.Objects()
	if err != nil {
		return nil, err
	}
	known, err := knownRules(all)
	if err != nil {
		return nil, err
	}
	a.mode, a.merger = o.mode(), merger{manifests: o.manifests, given: o.given, known: known, acts: acts}
	return wanted, nil
}

// sayNotServed warns of kinds of policies that the API server does not have.
func (o *installOptions) sayNotServed(a *applier) {
	if o.manifests.Has(partConfinement) && a.notServed {
		fmt.Fprintln(o.ErrOut, "this API server has no ValidatingAdmissionPolicy (Kubernetes 1.30 and later do): nothing but its own code confines the agent's token; after an upgrade of the cluster, run this again")
	}
	if o.manifests.Admission && a.noStamps {
		fmt.Fprintln(o.ErrOut, "this API server has no MutatingAdmissionPolicy (Kubernetes 1.36 and later do): it does not record who asked for something, and only refuses a false name; after an upgrade of the cluster, run this again")
	}
}

// mode is what happens to the objects.
func (o *installOptions) mode() mode {
	switch {
	case o.diff:
		return modeDiff
	case o.Kept():
		return modeApply
	}
	return mode(o.Mode)
}

// one applies one object. A part that is left out is deleted only where this command line says so:
// the admin decides about objects that exist.
func (o *installOptions) one(ctx context.Context, a *applier, u, want *unstructured.Unstructured, all objectsByKey) (change, error) {
	live := all[keyOf(u)]
	switch {
	case want != nil && live != nil:
		return a.configure(ctx, want, live)
	case want != nil:
		return a.create(ctx, want, all)
	case live != nil && o.takesAway(u):
		return a.remove(ctx, live)
	}
	return change{of: u}, nil
}

// takesAway says whether this command line leaves out the part of an object.
func (o *installOptions) takesAway(u *unstructured.Unstructured) bool {
	switch {
	case ofAdmission(u):
		return o.given(flagAdmission)
	case u.GetName() == "maint-agent-metrics", u.GetName() == "maint-metrics-reader":
		return o.given(flagMetricsAuth)
	case u.GetName() == documentsRole, o.given(flagSingle) && len(u.GetNamespace()) == 0 && !policyKind(u.GetKind()):
		return o.given(flagSingle)
	case u.GetName() == cloudRole, u.GetName() == tokenPolicy:
		return o.given(flagCloud)
	}
	return o.given(flagWithout) || o.given(flagReadOnly)
}

// say prints the change of an object, or the difference.
func (o *installOptions) say(c change) error {
	if c.did == "" {
		return nil
	}
	if !o.diff {
		fmt.Fprintf(o.Out, "%s %s%s\n", named(c.of), c.did, o.Mark())
		for _, what := range c.kept {
			fmt.Fprintf(o.Out, "  kept: %s\n", what)
		}
		return nil
	}
	for _, what := range c.kept {
		fmt.Fprintf(o.ErrOut, "%s keeps %s\n", named(c.of), what)
	}
	text, err := c.unified()
	if err != nil {
		return err
	}
	_, err = io.WriteString(o.Out, text)
	return err
}
