// Package cluster runs a real Kubernetes control plane for tests, the demo and
// the benchmarks: etcd and an API server with RBAC, and when asked for the
// controller manager, the scheduler and simulated nodes. Everything listens on
// loopback, lives in one directory and is gone after Stop.
//
// It exists because the fake clientset never raises a conflict, never deletes
// on eviction and consults no budget: whatever rests on those is tested here.
package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Options says what a cluster is made of. The zero value is etcd and an API
// server.
type Options struct {
	// ControllerManager adds every controller of kube-controller-manager:
	// namespaces, garbage collection, Jobs, Deployments, disruption, …
	ControllerManager bool
	// NodeLifecycle keeps the controller that calls a node dead which sends no
	// heartbeat, and lets pods onto a new one that does: for nodes with a kubelet.
	// Without it, or Kwok, nobody does either.
	NodeLifecycle bool
	// Scheduler adds kube-scheduler.
	Scheduler bool
	// Kwok adds the controller that plays kubelet: nodes become Ready, pods on
	// them start, finish (those of a Job) and go away when deleted.
	Kwok bool
	// Nodes is how many nodes to create, named node-0, node-1, …; Start returns
	// when all of them are Ready. It needs Kwok.
	Nodes int
	// AuditLog is a file that receives one JSON line per request, level
	// Metadata. Health checks are left out. It survives Stop.
	AuditLog string
	// ControllerManagerArgs are added after the default ones and win over them.
	ControllerManagerArgs []string
	// APIServerArgs are added after the default ones and win over them.
	APIServerArgs []string
	// Dir keeps certificates, data and logs, and is left behind by Stop. Empty
	// means a temporary directory that Stop removes.
	Dir string
	// Log receives a line for each thing that starts. Nil means silence.
	Log io.Writer
}

// Cluster is a running control plane.
type Cluster struct {
	options Options
	assets  assets
	dir     string
	ports   portBlock
	pki     *pki

	etcd      *process
	apiServer *process
	others    []*process // clients of the API server, in the order they started
}

// Start runs the control plane that o describes and returns when every part of
// it answers. What had started is stopped again when something does not.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.Nodes > 0 && !o.Kwok {
		return nil, errors.New("cluster options: Nodes needs Kwok, which makes them Ready")
	}
	c, err := prepare(o)
	if err != nil {
		return nil, fmt.Errorf("prepare cluster: %w", err)
	}
	if err := c.startParts(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// prepare finds the binaries and makes what the processes read: a directory,
// ports, certificates, kubeconfigs.
func prepare(o Options) (_ *Cluster, err error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	c := &Cluster{options: o}
	if c.assets, err = findAssets(o); err != nil {
		return nil, err
	}
	if c.dir, err = makeDir(o.Dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.removeDir())
		}
	}()
	if c.ports, err = reservePorts(); err != nil {
		return nil, err
	}
	if c.pki, err = newPKI(filepath.Join(c.dir, "pki")); err != nil {
		return nil, errors.Join(err, c.ports.release())
	}
	return c, nil
}

func makeDir(chosen string) (string, error) {
	if chosen == "" {
		return os.MkdirTemp("", "maint-cluster-")
	}
	dir, err := filepath.Abs(chosen)
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o755)
}

func (c *Cluster) startParts(ctx context.Context) error {
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	if err := c.startClients(ctx); err != nil {
		return err
	}
	return c.createNodes(ctx)
}

// startClients starts everything that talks to the API server at once, then
// waits for each: they do not need one another.
func (c *Cluster) startClients(ctx context.Context) error {
	starts := []struct {
		wanted bool
		start  func() (*process, error)
	}{
		{c.options.ControllerManager, c.startControllerManager},
		{c.options.Scheduler, c.startScheduler},
		{c.options.Kwok, c.startKwok},
	}
	for _, s := range starts {
		if !s.wanted {
			continue
		}
		p, err := s.start()
		if err != nil {
			return err
		}
		c.others = append(c.others, p)
	}
	for _, p := range c.others {
		if err := p.waitReady(ctx, c.healthClient()); err != nil {
			return err
		}
	}
	return nil
}

// Stop kills every process, waits until each is gone and removes the temporary
// directory. A second Stop does nothing.
func (c *Cluster) Stop() error {
	// Clients first, so that none of them spends its last moments retrying.
	for _, p := range slices.Backward(c.others) {
		p.kill()
	}
	c.StopAPIServer()
	if c.etcd != nil {
		c.etcd.kill()
	}
	return errors.Join(c.ports.release(), c.removeDir())
}

func (c *Cluster) removeDir() error {
	if c.options.Dir != "" {
		return nil
	}
	return os.RemoveAll(c.dir)
}

// StopAPIServer kills the API server, as a lost machine would: nothing is
// drained and watches break. It returns when the process is gone.
func (c *Cluster) StopAPIServer() {
	if c.apiServer == nil {
		return
	}
	c.apiServer.kill()
	c.apiServer = nil
}

// StartAPIServer starts the API server again, on the same port and data, and
// returns when it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	if c.apiServer != nil {
		return errors.New("start API server: it is running")
	}
	p, err := c.startAPIServer()
	if err != nil {
		return err
	}
	c.apiServer = p
	if err := p.waitReady(ctx, c.healthClient()); err != nil {
		return err
	}
	return c.waitForBasics(ctx)
}

// RestartAPIServer is StopAPIServer and StartAPIServer.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	c.StopAPIServer()
	return c.StartAPIServer(ctx)
}

// RestartEtcd kills etcd and starts it again, on the same port and data, while the
// API server runs on. It returns when etcd is healthy.
func (c *Cluster) RestartEtcd(ctx context.Context) error {
	c.etcd.kill()
	return c.startEtcd(ctx)
}

// FreezeAPIServer stops the API server where it is: connections stay open, and
// nobody answers. The function returned lets it go on.
func (c *Cluster) FreezeAPIServer() (thaw func() error, err error) {
	if c.apiServer == nil {
		return nil, errors.New("freeze API server: it is not running")
	}
	return c.apiServer.freeze()
}

// FreezeEtcd stops etcd where it is. The function returned lets it go on.
func (c *Cluster) FreezeEtcd() (thaw func() error, err error) { return c.etcd.freeze() }

// healthClient asks the health endpoints. It does not verify the answering
// certificate: the controller manager and the scheduler make up their own.
func (c *Cluster) healthClient() *http.Client {
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			InsecureSkipVerify: true, // loopback, processes of our own, nothing secret asked
		},
	}
	return &http.Client{Transport: transport, Timeout: 2 * time.Second}
}

func (c *Cluster) progress(format string, args ...any) {
	fmt.Fprintf(c.options.Log, "cluster: "+format+"\n", args...)
}
