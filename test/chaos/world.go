package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/chaos/check"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// auditPolicy keeps the bodies of what the checkers read.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  nonResourceURLs: ["/healthz*", "/readyz*", "/livez*"]
- level: RequestResponse
  verbs: [create, update, patch, delete]
  resources:
  - {group: "", resources: [configmaps]}
  - {group: coordination.k8s.io, resources: [leases]}
- level: RequestResponse
  verbs: [create, update, patch, delete]
  resources:
  - {group: apps, resources: [deployments, deployments/scale, statefulsets/scale, replicasets/scale]}
  - {group: batch, resources: [cronjobs]}
- level: Metadata
`

// world is a cluster, two agents on it, and what they are made to work on.
type world struct {
	options
	*timeline
	dir      string
	audit    string
	cluster  *cluster.Cluster
	admin    kubernetes.Interface
	hooks    *receiver
	replicas [2]*replica
	api      sync.Mutex // held by who takes the API server or etcd away
	edits    int
	tokens   []string // asked for, as plan uid/token
	findings []check.Finding
	stop     func() // ends the replicas
	kept     sync.WaitGroup
}

// open starts everything and returns when one of the agents leads.
func open(ctx context.Context, o options, t *timeline, dir string) (*world, error) {
	w := &world{options: o, timeline: t, dir: dir, audit: filepath.Join(dir, "audit.log"), stop: func() {}}
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o644); err != nil {
		return w, err
	}
	var err error
	w.cluster, err = cluster.Start(ctx, cluster.Options{
		ControllerManager: true, Scheduler: true, Kwok: true, Nodes: 5, AuditLog: w.audit, Dir: filepath.Join(dir, "cluster"),
		APIServerArgs: []string{"--audit-policy-file=" + policy},
	})
	if err != nil {
		return w, err
	}
	if w.admin, err = kubernetes.NewForConfig(w.cluster.AdminConfig()); err != nil {
		return w, err
	}
	if err := harness.Install(ctx, w.cluster.AdminConfig()); err != nil {
		return w, err
	}
	if err := harness.Configure(ctx, w.cluster.AdminConfig(), `{outbound: {allow: ["127.0.0.1/32"]}, nodes: {maxParallelOperations: 2}}`); err != nil {
		return w, err
	}
	if w.hooks, err = newReceiver(w.pids, w.processOf); err != nil {
		return w, err
	}
	return w, w.startReplicas(ctx)
}

func (w *world) startReplicas(ctx context.Context) error {
	own, err := w.cluster.ServiceAccountConfig(ctx, annotations.DefaultNamespace, "maint-agent")
	if err != nil {
		return err
	}
	for i, name := range []string{"a", "b"} {
		p, err := newProxy(own, rand.New(rand.NewPCG(w.seed, uint64(100+i))))
		if err != nil {
			return err
		}
		path, err := w.cluster.KubeconfigFile("agent-"+name, p.config(own))
		if err != nil {
			return err
		}
		w.replicas[i] = &replica{name: name, binary: w.agent, config: path, dir: w.dir, proxy: p, say: w.say}
	}
	running, stop := context.WithCancel(ctx)
	w.stop = func() { stop(); w.kept.Wait() }
	for _, r := range w.replicas {
		w.kept.Go(func() { r.keep(running) })
	}
	_, err = w.leader(ctx)
	return err
}

// leader waits until a replica says that it leads.
func (w *world) leader(ctx context.Context) (*replica, error) {
	var found *replica
	err := w.until(ctx, "an agent leads", 90*time.Second, func(ctx context.Context) (bool, error) {
		for _, r := range w.replicas {
			if r.leads(ctx) {
				found = r
			}
		}
		return found != nil, nil
	})
	return found, err
}

func (w *world) other(r *replica) *replica {
	if w.replicas[0] == r {
		return w.replicas[1]
	}
	return w.replicas[0]
}

func (w *world) pids() []int {
	var out []int
	for _, r := range w.replicas {
		if r == nil {
			continue
		}
		if p := r.current(); p != nil {
			out = append(out, p.PID())
		}
	}
	return out
}

func (w *world) processOf(pid int) string {
	for _, r := range w.replicas {
		if name, ok := r.named(pid); ok {
			return name
		}
	}
	return ""
}

// close ends everything. What is left in dir is for whoever looks for a fault.
func (w *world) close() error {
	w.stop()
	for _, r := range w.replicas {
		if r != nil {
			r.proxy.CloseClientConnections()
		}
	}
	if w.cluster == nil {
		return nil
	}
	return w.cluster.Stop()
}

// found adds what the harness itself has seen.
func (w *world) found(f ...check.Finding) { w.findings = append(w.findings, f...) }

// until asks again and again, also while the API server does not answer.
func (w *world) until(ctx context.Context, what string, limit time.Duration, holds func(context.Context) (bool, error)) error {
	over := time.Now().Add(limit)
	var last error
	for {
		each, cancel := context.WithTimeout(ctx, 10*time.Second)
		ok, err := holds(each)
		cancel()
		if ok {
			return nil
		}
		if err != nil {
			last = err
		}
		if time.Now().After(over) {
			return errors.Join(fmt.Errorf("not within %s: %s", limit, what), last)
		}
		if !pause(ctx, 100*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// mergeNode merges a patch into a node, as a person.
func (w *world) mergeNode(ctx context.Context, name, patch string) error {
	_, err := w.admin.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "someone"})
	return err
}

// mergeMap merges a patch into a ConfigMap of the namespace, as a person.
func (w *world) mergeMap(ctx context.Context, name, patch string) error {
	_, err := w.admin.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: annotations.ManagerCLI})
	return err
}
