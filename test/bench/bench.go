package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// writers is how many objects are prepared or removed at a time.
const writers = 16

// bench is what is measured with, a cluster at a time, and what has been measured
// so far.
type bench struct {
	options
	began    time.Time
	progress io.Writer
	dir      string
	binary   string // of the agent
	plugin   string // empty where the agent was handed in without one beside it, or is profiled
	cluster  *cluster.Cluster
	admin    kubernetes.Interface
	lead     time.Duration // what preparing a round is given before its slot
	samples  map[string][]sample
}

func start(ctx context.Context, o options, progress io.Writer) (_ *bench, err error) {
	b := &bench{options: o, began: time.Now(), progress: progress, binary: o.agent, samples: map[string][]sample{}}
	b.lead = 6*time.Second + time.Duration(o.plans)*10*time.Millisecond
	defer func() {
		if err != nil {
			err = errors.Join(err, b.stop())
		}
	}()
	if b.dir, err = os.MkdirTemp("", "maint-bench-"); err != nil {
		return b, err
	}
	b.say("building the agent")
	return b, b.build(ctx)
}

// open starts a cluster with the agent's manifests in it. One is open at a time.
func (b *bench) open(ctx context.Context, o cluster.Options) (err error) {
	o.Log = b.progress
	if b.cluster, err = cluster.Start(ctx, o); err != nil {
		return err
	}
	config := b.cluster.AdminConfig()
	if err := harness.Install(ctx, config); err != nil {
		return err
	}
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	b.admin, err = kubernetes.NewForConfig(config)
	return err
}

// close ends the cluster that is open.
func (b *bench) close() error {
	if b.cluster == nil {
		return nil
	}
	b.say("stopping the cluster")
	c := b.cluster
	b.cluster, b.admin = nil, nil
	return c.Stop()
}

func (b *bench) openShared(ctx context.Context, out io.Writer) error {
	if err := b.open(ctx, clusterOptions()); err != nil {
		return err
	}
	b.printHead(out, fmt.Sprintf("%d plans or CronJobs in %d namespaces", b.plans, b.namespaces))
	return b.makeNamespaces(ctx)
}

// clusterOptions leave out the two controllers that would take part: the CronJob
// controller is started for its rounds alone, and Jobs are not to run.
func clusterOptions() cluster.Options {
	return cluster.Options{
		ControllerManager:     true,
		ControllerManagerArgs: []string{"--controllers=*,-node-lifecycle-controller,-cronjob-controller,-job-controller"},
	}
}

func (b *bench) build(ctx context.Context) (err error) {
	switch {
	case b.binary != "":
		if beside := filepath.Join(filepath.Dir(b.binary), "kubectl-maint"); exists(beside) {
			b.plugin = beside
		}
		return nil
	case b.profile == "":
		b.binary, b.plugin, err = harness.Build(ctx, b.dir)
		return err
	}
	root, err := harness.Root()
	if err != nil {
		return err
	}
	b.binary = filepath.Join(b.dir, "agent")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", b.binary, "./test/bench/profiled")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the agent with profiles: %w\n%s", err, out)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// stop ends the cluster and removes what was written.
func (b *bench) stop() error {
	err := b.close()
	if b.dir != "" {
		err = errors.Join(err, os.RemoveAll(b.dir))
	}
	return err
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// printHead says what a cluster is, and what for.
func (b *bench) printHead(out io.Writer, what string) {
	version := "?"
	if v, err := b.admin.Discovery().ServerVersion(); err == nil {
		version = v.GitVersion
	}
	fmt.Fprintf(out, "kubectl maint bench: %s; Kubernetes %s, etcd without fsync; %s, %d cores, load average %s\n",
		what, version, runtime.Version(), runtime.NumCPU(), loadAverage())
}

// loadAverage is how busy the machine is: with others at work on it, figures are
// theirs too.
func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}

// namespace is where the i-th plan, CronJob or target lives.
func (b *bench) namespace(i int) string { return fmt.Sprintf("bench-%02d", i%b.namespaces) }

// makeNamespaces gives every namespace its maint-runner, which may change
// ConfigMaps: those are the targets here.
func (b *bench) makeNamespaces(ctx context.Context) error {
	b.say("making %d namespaces", b.namespaces)
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "patch"}}
	return each(ctx, b.namespaces, func(ctx context.Context, i int) error {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace(i)}}
		if _, err := b.admin.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
		return harness.Runner(ctx, b.admin, b.namespace(i), rule)
	})
}

// each does something for 0 … n-1, some at a time, and returns the first error.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	group.Wait()
	return context.Cause(ctx)
}

// until waits for an instant.
func until(ctx context.Context, at time.Time) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Until(at)):
		return nil
	}
}

// nextMinute is the first full minute that is at least the lead away.
func nextMinute(lead time.Duration) time.Time {
	return time.Now().Add(lead + time.Minute - time.Nanosecond).UTC().Truncate(time.Minute)
}
