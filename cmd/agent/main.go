// Command agent is the in-cluster half of kubectl maint. It knows no rules: it
// wires flags, signals and the real clock to package agent.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/builtin"
	outbound "github.com/kubectl-maint/kubectl-maint/pkg/executors/http"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/node"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

var version = "v0.0.0-dev" //nolint:gochecknoglobals // set by the linker

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

type flags struct {
	kubeconfig, namespace, watchNamespace, metricsAddress, logLevel, logFormat string
	leaderElect, dryRun, version, metricsAuth                                  bool
}

func parse(args []string, out io.Writer) (flags, error) {
	var f flags
	set := flag.NewFlagSet("agent", flag.ContinueOnError)
	set.SetOutput(out)
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "path of a kubeconfig; default in-cluster")
	set.StringVar(&f.namespace, "namespace", annotations.DefaultNamespace, "the agent's own namespace")
	set.StringVar(&f.watchNamespace, "watch-namespace", "", "the only namespace to look at; default all")
	set.BoolVar(&f.leaderElect, "leader-elect", true, "take part in leader election; without it, run one replica only")
	set.StringVar(&f.metricsAddress, "metrics-address", ":8080", "address of /metrics, /healthz and /readyz")
	set.BoolVar(&f.metricsAuth, "metrics-auth", false, "answer /metrics to tokens of the cluster alone whose user may get /metrics")
	set.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	set.StringVar(&f.logFormat, "log-format", "json", "json or text")
	set.BoolVar(&f.dryRun, "dry-run", false, "decide and record, but change nothing outside our own ConfigMaps")
	set.BoolVar(&f.version, "version", false, "print the version and exit")
	err := set.Parse(args)
	if err == nil && set.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	return f, err
}

func run(args []string, out, errOut io.Writer) int {
	f, err := parse(args, errOut)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintln(errOut, err)
		return 2
	case f.version:
		_, _ = fmt.Fprintf(out, "agent %s, zone data %s\n", version, schedule.ZoneVersion())
		return 0
	}
	level := &slog.LevelVar{}
	log, err := logger(f, level, errOut)
	if err != nil {
		_, _ = fmt.Fprintln(errOut, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, f, log, level); err != nil {
		log.Error("the agent ends", "error", err.Error())
		return 1
	}
	return 0
}

func logger(f flags, level *slog.LevelVar, out io.Writer) (*slog.Logger, error) {
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	options := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "json":
		return slog.New(slog.NewJSONHandler(out, options)), nil
	case "text":
		return slog.New(slog.NewTextHandler(out, options)), nil
	}
	return nil, fmt.Errorf("--log-format must be json or text, is %q", f.logFormat)
}

func serve(ctx context.Context, f flags, log *slog.Logger, level *slog.LevelVar) error {
	config, err := restConfig(f.kubeconfig)
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	limitMemory(log)
	go giveBack(ctx)
	klog.SetSlogLogger(log) // what the libraries say goes the same way
	steps, answers := builtin.Executors(), outbound.NewBudget()
	a, err := agent.New(agent.Options{
		Config: config, Namespace: f.namespace, WatchNamespace: f.watchNamespace, LeaderElection: agent.LeaderElection{LeaderElect: f.leaderElect, Identity: identity()}, Pod: pod(),
		Version: version, DryRun: f.dryRun, MetricsAuth: f.metricsAuth, Log: log, LogLevel: level, Now: time.Now, CPUTime: agent.ThreadTime,
		Executors: agent.Executors{
			Executor: steps.For, Sleepers: builtin.Sleepers(),
			Drainer: func(own kube.Interface, changed func(node, by string)) executors.Drainer {
				return node.New(ctx, node.Config{Reads: own, OnChange: changed, Namespace: f.namespace, Pod: pod()})
			},
		},
		Outbound: agent.Outbound{
			EKS: builtin.EKS(), AWSEndpoint: os.Getenv("AWS_ENDPOINT_URL"),
			HTTPClient: func(o agentconfig.Outbound) *http.Client {
				return outbound.NewClient(outbound.Rules{Allow: o.Allow, Deny: o.Deny, Budget: answers})
			},
			Dialer: func(o agentconfig.Outbound) func(context.Context, string, string) (net.Conn, error) {
				return outbound.NewDialer(outbound.Rules{Allow: o.Allow, Deny: o.Deny})
			},
		},
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.metricsAddress)
	if err != nil {
		return fmt.Errorf("listen for metrics and health: %w", err)
	}
	server := &http.Server{Handler: a.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	log.Info("the agent begins", "version", version, "namespace", f.namespace, "address", listener.Addr().String())
	return a.Run(ctx)
}

func restConfig(path string) (*rest.Config, error) {
	if path == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", path)
}

// pod is the pod in which this process runs, by the downward API, or else by its
// host's name, which is the pod's unless that uses its node's network.
func pod() string {
	if name := os.Getenv("POD_NAME"); name != "" {
		return name
	}
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// identity is this process, unlike any other replica and any life before.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d-%d", host, os.Getpid(), time.Now().UnixNano())
}
