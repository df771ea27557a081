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
	"unicode"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/terminal"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Env is everything that a command line takes from the process it runs in.
type Env struct {
	genericiooptions.IOStreams
	Name         string           // as which it was called: "kubectl maint"
	Version      string           // of this build
	Elsewhere    string           // the namespace that is spoken of, where it is not the context's own
	ClusterFlags string           // flags that chose another cluster than the kubeconfig does
	Now          func() time.Time // the real clock, read once per question
	Zone         string           // IANA name of the user's time zone
	InTerminal   bool             // somebody can answer questions
	OutTerminal  bool             // what is printed can be redrawn
	Color        bool
	Mark         terminal.Mark // of our own control sequences
	Width        int           // of the terminal, 0 where unknown
	AnswerWithin time.Duration // how long an API server may be silent; 0: as long as it takes to answer a request

	// Screen is the terminal as a whole, for live views; nil: none is to be had, and what changes is
	// shown in lines.
	Screen *Screen
	// Show takes what a command shows live within the view of another one; nil: it is by itself.
	Show func([]view.Line)
}

// Screen is a terminal that somebody types at.
type Screen struct{ In, Out *os.File }

// Suggest are the command lines that messages tell people to give.
func (e Env) Suggest() remedy.Commands {
	return remedy.Commands{Name: e.Name, Namespace: e.Elsewhere, ClusterFlags: e.ClusterFlags}
}

// Factory is what all commands share.
type Factory struct {
	Env
	Config         *genericclioptions.ConfigFlags
	AgentNamespace string
	// Perform runs another command line as if it had been given, on clients and with streams of its
	// own: live views do what keys ask that way. The root of the commands sets it.
	Perform        func(ctx context.Context, env Env, k *Cluster, args []string) error
	requestTimeout *pflag.Flag // nil: there are no flags
	fixed          *Cluster    // instead of what the kubeconfig points at; nil: that
	warned         *warnings
}

// warnings are what was said already.
type warnings struct {
	sync.Mutex
	said map[string]bool
}

// Warn tells on standard error what somebody should know, each thing once.
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

// New has clients of the cluster that the kubeconfig points at.
func New(env Env) *Factory {
	c := &Factory{Env: env, warned: &warnings{}}
	c.Config = genericclioptions.NewConfigFlags(true).WithWrapConfigFn(c.endUnanswered)
	return c
}

// NewFor has the clients that it is given, whatever the kubeconfig says.
func NewFor(env Env, k *Cluster) *Factory {
	c := New(env)
	c.fixed = k
	return c
}

// Connect reads the kubeconfig; nothing is sent yet.
func (c *Factory) Connect() (*Cluster, error) {
	if c.fixed != nil {
		return c.fixed, nil
	}
	config, err := c.ClientConfig()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NewWarningWriter(c.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	clock := &serverClock{}
	config.Wrap(clock.RoundTripper)
	kube, err := kube.NewBasic(config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	namespace, _, err := c.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, NoCluster(err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	c.Elsewhere, c.ClusterFlags = c.elsewhere(namespace), c.chosen()
	return &Cluster{Kube: kube, Metadata: meta, Namespace: namespace, clock: clock, suggest: c.Suggest(), actors: &actorsOf{agent: c.AgentNamespace}, warn: c.Warn, seen: &seenNamespaces{}}, nil
}

// ConnectAs is the same cluster for who speaks as somebody else, which takes the right to
// impersonate them; nil: the command line speaks as somebody else already, or has clients that it
// was given.
func (c *Factory) ConnectAs(k *Cluster, user string) (*Cluster, error) {
	if k.As != nil {
		return k.As(user), nil
	}
	if c.fixed != nil {
		return nil, nil //nolint:nilnil // said above
	}
	config, err := c.ClientConfig()
	if err != nil {
		return nil, err
	}
	if config.Impersonate.UserName != "" {
		return nil, nil //nolint:nilnil // said above
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	as := *k
	if as.Kube, err = kube.NewBasic(config); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &as, nil
}

// chosen are the flags by which another cluster was chosen than the kubeconfig does, as command
// lines have to name them. What a shell would take apart is left out.
func (c *Factory) chosen() string {
	var out []string
	for flag, value := range map[string]*string{"--context": c.Config.Context, "--kubeconfig": c.Config.KubeConfig, "--cluster": c.Config.ClusterName} {
		if value != nil && *value != "" && !strings.ContainsFunc(*value, splitsWords) {
			out = append(out, flag+" "+*value)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func splitsWords(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune(`'"\$&;|<>()*?[]{}~#!`, r)
}

// elsewhere is a namespace that command lines have to name; empty: it is the one that they have
// without -n.
func (c *Factory) elsewhere(namespace string) string {
	raw, err := c.Config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return namespace // one -n too many does no harm
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

// NoCluster says why there is no cluster to ask.
func NoCluster(err error) error {
	if clientcmd.IsEmptyConfig(err) {
		return errors.New("no cluster is configured: set KUBECONFIG or give --kubeconfig")
	}
	return fmt.Errorf("read kubeconfig: %w; 'kubectl config get-contexts' shows what kubectl finds", err)
}

// ClientConfig is how to reach the cluster that the kubeconfig points at.
func (c *Factory) ClientConfig() (*rest.Config, error) {
	config, err := c.Config.ToRESTConfig()
	if err != nil {
		return nil, NoCluster(err)
	}
	if config.Host == unconfigured && !c.namesServer() {
		return nil, c.nothingConfigured()
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 300 // as kubectl
	config.UserAgent = "kubectl-maint/" + c.Version
	return config, nil
}

// namesServer says whether anybody named a server: kubectl proxy serves where client-go looks by
// itself.
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

// nothingConfigured says which files were to say where the cluster is, and do not: client-go
// would look for one on this machine.
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
	return fmt.Errorf("no cluster is configured: %s; set KUBECONFIG to an existing file, or give --kubeconfig; 'kubectl config get-contexts' shows what kubectl finds", why)
}

// OfflineAgent is the namespace of the agent where no cluster is asked.
func (c *Factory) OfflineAgent() string {
	if c.AgentNamespace != "" {
		return c.AgentNamespace
	}
	return annotations.DefaultNamespace
}

// OfflineNamespace is that of documents in files that name none: of -n, or of the kubeconfig's
// context, where kubectl apply would put them.
func (c *Factory) OfflineNamespace() string {
	if n := *c.Config.Namespace; n != "" {
		return n
	}
	if n, _, err := c.Config.ToRawKubeConfigLoader().Namespace(); err == nil {
		return n
	}
	return metav1.NamespaceDefault // no kubeconfig can be read: there is no cluster to apply them to
}
