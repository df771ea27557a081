package factory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/serverstate"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/terminal"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Env is everything that a command line takes from its process.
type Env struct {
	genericiooptions.IOStreams
	Name         string           // as which it was called: "kubectl maint"
	Version      string           // of this build
	Elsewhere    string           // the namespace, where it is not the context's own
	ClusterFlags string           // flags that choose another cluster or user than the kubeconfig does
	Now          func() time.Time // the real clock, read once per question
	Zone         string           // IANA name of the user's time zone
	InTerminal   bool             // somebody can answer questions
	OutTerminal  bool             // what is printed can be redrawn
	Color        bool
	Mark         terminal.Mark // of our own control sequences
	Size         terminal.Size // of the terminal
	AnswerWithin time.Duration // how long an API server may be silent; 0: kube.AnswerWithin

	// Screen is the terminal for live views; nil: there is none, and changes are shown as lines.
	Screen *Screen
	// Show receives a live picture when the command runs in the view of another one; nil: it runs
	// by itself.
	Show func([]view.Line)
}

// Screen is an interactive terminal.
type Screen struct{ In, Out *os.File }

// Suggest are the commands that messages suggest.
func (e Env) Suggest() remedy.Commands {
	return remedy.Commands{Name: e.Name, Namespace: e.Elsewhere, ClusterFlags: e.ClusterFlags}
}

// AgentText is a message of the agent with its instants in a zone, and its commands for the cluster of this one.
func (e Env) AgentText(message, zone string) string {
	return remedy.AgentText(e.Suggest(), instant.InText(message, zone))
}

// Factory is what all commands share.
type Factory struct {
	Env
	Config         *genericclioptions.ConfigFlags
	AgentNamespace string
	// Perform runs another command line, with given clients and streams: live views do that when
	// keys are pressed. The root command sets it.
	Perform        func(ctx context.Context, env Env, k *Cluster, args []string) error
	requestTimeout *pflag.Flag // nil: there are no flags
	fixed          *Cluster    // in place of the kubeconfig's; nil: that
	warned         *warnings
	connecting     *sync.Mutex // guards what Connect sets of Env
}

// warnings are what was printed already.
type warnings struct {
	sync.Mutex
	said map[string]bool
}

// Warn prints a warning to standard error, each one once.
func (c *Factory) Warn(text string) {
	if c.warned == nil { // made without New
		c.warned = &warnings{}
	}
	c.warned.Lock()
	defer c.warned.Unlock()
	if c.warned.said[text] {
		return
	}
	if c.warned.said == nil {
		c.warned.said = map[string]bool{}
	}
	c.warned.said[text] = true
	fmt.Fprintf(c.ErrOut, "warning: %s\n", text)
}

// New takes the cluster of the kubeconfig.
func New(env Env) *Factory {
	c := &Factory{Env: env, warned: &warnings{}, connecting: &sync.Mutex{}}
	c.Config = genericclioptions.NewConfigFlags(true).WithWrapConfigFn(c.endUnanswered)
	return c
}

// NewFor takes the given clients in place of the kubeconfig's.
func NewFor(env Env, k *Cluster) *Factory {
	c := New(env)
	c.fixed = k
	return c
}

// Connect reads the kubeconfig; it sends nothing.
func (c *Factory) Connect() (*Cluster, error) {
	if c.fixed != nil {
		return c.fixed, nil
	}
	config, err := c.ClientConfig()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NewWarningWriter(c.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	clock := &serverstate.State{}
	config.Wrap(clock.RoundTripper)
	clients, err := kube.NewBasic(config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	namespace, _, err := c.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, c.NoCluster(err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	c.note(c.elsewhere(namespace), c.chosen())
	return &Cluster{
		Kube: clients, Metadata: meta, Cached: kube.NewCached(clients.CoreV1().RESTClient()), Namespace: namespace,
		clock: clock, suggest: c.Suggest(), actors: &actorsOf{agent: c.AgentNamespace}, Warn: c.Warn, seen: &seenNamespaces{},
	}, nil
}

// note keeps what the command line says of the cluster, for the commands that messages suggest.
// Another call with the same changes nothing: completers connect side by side.
func (c *Factory) note(elsewhere, flags string) {
	c.connecting.Lock()
	defer c.connecting.Unlock()
	if c.Elsewhere != elsewhere {
		c.Elsewhere = elsewhere
	}
	if c.ClusterFlags != flags {
		c.ClusterFlags = flags
	}
}

// ConnectAs is the same cluster with clients that impersonate somebody, which needs that right;
// nil: the command line impersonates somebody already, or has given clients.
func (c *Factory) ConnectAs(k *Cluster, user string) (*Cluster, error) {
	if k.As != nil {
		return k.As(user), nil
	}
	if c.fixed != nil {
		return nil, nil //nolint:nilnil // reported by Connect
	}
	config, err := c.ClientConfig()
	if err != nil {
		return nil, err
	}
	if config.Impersonate.UserName != "" {
		return nil, nil //nolint:nilnil // reported by Connect
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	as := *k
	if as.Kube, err = kube.NewBasic(config); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &as, nil
}

// chosen are the flags that chose another cluster or user than the kubeconfig does, as suggested
// commands have to repeat them.
func (c *Factory) chosen() string {
	var out []string
	for flag, value := range map[string]*string{
		"--context": c.Config.Context, "--kubeconfig": c.Config.KubeConfig, "--cluster": c.Config.ClusterName,
		"--server": c.Config.APIServer, "--user": c.Config.AuthInfoName, "--as": c.Config.Impersonate, "--as-uid": c.Config.ImpersonateUID,
	} {
		if value != nil && *value != "" {
			out = append(out, flag+" "+intent.Word(*value))
		}
	}
	for _, group := range *c.Config.ImpersonateGroup {
		out = append(out, "--as-group "+intent.Word(group))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// elsewhere is the namespace that suggested commands have to name; empty: the default one.
func (c *Factory) elsewhere(namespace string) string {
	raw, err := c.Config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return namespace // a superfluous -n does no harm
	}
	home := metav1.NamespaceDefault
	if at := raw.Contexts[cmp.Or(*c.Config.Context, raw.CurrentContext)]; at != nil {
		home = cmp.Or(at.Namespace, home)
	}
	if namespace == home {
		return ""
	}
	return namespace
}

// NoCluster says why there is no cluster.
func (c *Factory) NoCluster(err error) error {
	if clientcmd.IsEmptyConfig(err) {
		return errors.New("no cluster is configured: set KUBECONFIG or give --kubeconfig")
	}
	return fmt.Errorf("read kubeconfig: %w; %s shows what kubectl finds", err, c.contexts())
}

// ClientConfig is the REST configuration of the kubeconfig.
func (c *Factory) ClientConfig() (*rest.Config, error) {
	config, err := c.Config.ToRESTConfig()
	if err != nil {
		return nil, c.NoCluster(err)
	}
	if config.Host == unconfigured && !c.namesServer() {
		return nil, c.nothingConfigured()
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 300 // as kubectl
	config.UserAgent = "kubectl-maint/" + c.Version
	return config, nil
}

// namesServer says whether anything names a server: kubectl proxy serves client-go's default address.
func (c *Factory) namesServer() bool {
	if *c.Config.APIServer != "" || os.Getenv("KUBERNETES_MASTER") != "" {
		return true
	}
	raw, err := c.Config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return false
	}
	name := *c.Config.ClusterName
	if at := raw.Contexts[cmp.Or(*c.Config.Context, raw.CurrentContext)]; at != nil {
		name = cmp.Or(name, at.Cluster)
	}
	cluster := raw.Clusters[name]
	return cluster != nil && cluster.Server != ""
}

// nothingConfigured names the files that should configure the cluster and do not: client-go would
// try this machine.
func (c *Factory) nothingConfigured() error {
	var missing, silent []string
	for _, file := range c.Config.ToRawKubeConfigLoader().ConfigAccess().GetLoadingPrecedence() {
		if _, err := os.Stat(file); err != nil {
			missing = append(missing, file)
		} else {
			silent = append(silent, file)
		}
	}
	why := view.PrefixList("there is no kubeconfig ", missing)
	if len(silent) > 0 {
		why = view.PrefixList("no current context names a cluster in kubeconfig ", silent)
	}
	return fmt.Errorf("no cluster is configured: %s; set KUBECONFIG to an existing file, or give --kubeconfig; %s shows what kubectl finds", why, c.contexts())
}

// contexts is the command that lists the contexts of the kubeconfig; nothing is connected yet.
func (c *Factory) contexts() string { return remedy.Commands{ClusterFlags: c.chosen()}.Contexts() }

// OfflineAgent is the namespace of the agent when no cluster is asked.
func (c *Factory) OfflineAgent() string {
	if c.AgentNamespace != "" {
		return c.AgentNamespace
	}
	return annotations.DefaultNamespace
}

// OfflineNamespace is the namespace of documents in files that name none: that of -n, or of the
// kubeconfig's context, where kubectl apply would put them.
func (c *Factory) OfflineNamespace() string {
	if n := *c.Config.Namespace; n != "" {
		return n
	}
	if n, _, err := c.Config.ToRawKubeConfigLoader().Namespace(); err == nil {
		return n
	}
	return metav1.NamespaceDefault // no kubeconfig can be read: there is no cluster to apply them to
}
