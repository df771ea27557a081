// Command profiled is the agent with net/http/pprof beside its metrics. Only
// `go run ./test/bench --profile` builds it; it is never shipped.
package main

import (
	"context"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/builtin"
	outbound "github.com/kubectl-maint/kubectl-maint/pkg/executors/http"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/node"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	kubeconfig := flag.String("kubeconfig", "", "path of a kubeconfig")
	address := flag.String("metrics-address", "127.0.0.1:0", "address of metrics and profiles")
	_ = flag.String("log-format", "text", "for the real one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, log, *kubeconfig, *address); err != nil {
		log.Error("the agent ends", "error", err.Error())
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func serve(ctx context.Context, log *slog.Logger, kubeconfig, address string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	debug.SetGCPercent(50) // as the real one
	runtime.SetMutexProfileFraction(10)
	runtime.SetBlockProfileRate(10_000)
	a, err := agent.New(agent.Options{
		Config: config, Namespace: annotations.DefaultNamespace, LeaderElection: agent.LeaderElection{LeaderElect: true, Identity: "profiled-" + strconv.Itoa(os.Getpid())},
		Version: "profiled", Log: log, LogLevel: &slog.LevelVar{}, Now: time.Now, CPUTime: agent.ThreadTime,
		Executors: agent.Executors{
			Executor: builtin.Executors().For,
			Drainer: func(own kube.Interface, changed func(node, by string)) executors.Drainer {
				return node.New(ctx, node.Config{Reads: own, OnChange: changed})
			},
		},
		Outbound: agent.Outbound{
			HTTPClient: func(o agentconfig.Outbound) *http.Client {
				return outbound.NewClient(outbound.Rules{Allow: o.Allow, Deny: o.Deny})
			},
			Dialer: func(o agentconfig.Outbound) func(context.Context, string, string) (net.Conn, error) {
				return outbound.NewDialer(outbound.Rules{Allow: o.Allow, Deny: o.Deny})
			},
		},
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", a.Handler())
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	log.Info("the agent begins", "address", listener.Addr().String())
	return a.Run(ctx)
}
