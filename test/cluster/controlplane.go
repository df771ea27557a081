package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// kwokStages cannot be anything but a package variable: that is how files are
// embedded. Nobody writes to it.
//
//go:embed kwok-stages.yaml
var kwokStages []byte //nolint:gochecknoglobals // see above

// Health checks say nothing about who did what, and kept alive there would be
// a few of them in every second of the log.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: ["/healthz*", "/readyz*", "/livez*"]
- level: Metadata
`

func (c *Cluster) startEtcd(ctx context.Context) error {
	client := fmt.Sprintf("http://127.0.0.1:%d", c.ports.etcd())
	peer := fmt.Sprintf("http://127.0.0.1:%d", c.ports.etcdPeer())
	p, err := c.startProcess("etcd", client+"/health",
		"--name=maint",
		"--data-dir="+filepath.Join(c.dir, "etcd"),
		"--listen-client-urls="+client,
		"--advertise-client-urls="+client,
		"--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer,
		"--initial-cluster=maint="+peer,
		// What is written is thrown away; waiting for the disk is half of a
		// test's time.
		"--unsafe-no-fsync",
		"--log-level=warn",
	)
	if err != nil {
		return err
	}
	c.etcd = p
	return p.waitReady(ctx, c.healthClient())
}

func (c *Cluster) startAPIServer() (*process, error) {
	address := fmt.Sprintf("https://127.0.0.1:%d", c.ports.apiServer())
	args := []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", c.ports.etcd()),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.ports.apiServer()),
		"--tls-cert-file=" + c.pki.apiServer.certFile,
		"--tls-private-key-file=" + c.pki.apiServer.keyFile,
		"--client-ca-file=" + c.pki.ca.certFile,
		"--authorization-mode=Node,RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.pki.serviceAccounts.keyFile,
		"--service-account-signing-key-file=" + c.pki.serviceAccounts.keyFile,
		"--service-cluster-ip-range=10.96.0.0/16",
		"--allow-privileged=true",
		// No pod ever reaches this server through its Service, and loopback
		// addresses are refused in endpoints anyway.
		"--endpoint-reconciler-type=none",
	}
	audit, err := c.auditArgs()
	if err != nil {
		return nil, err
	}
	args = append(args, audit...)
	return c.startProcess("kube-apiserver", address+"/readyz", append(args, c.options.APIServerArgs...)...)
}

func (c *Cluster) auditArgs() ([]string, error) {
	if c.options.AuditLog == "" {
		return nil, nil
	}
	log, err := filepath.Abs(c.options.AuditLog)
	if err != nil {
		return nil, err
	}
	policy := filepath.Join(c.dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o644); err != nil {
		return nil, fmt.Errorf("write audit policy: %w", err)
	}
	return []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + log,
		"--audit-log-format=json",
		"--audit-log-maxsize=100000", // MiB: whoever counts requests wants one file
	}, nil
}

// waitForBasics returns when the namespace "default" exists. The API server
// makes it after it calls itself ready.
func (c *Cluster) waitForBasics(ctx context.Context) error {
	client, err := c.clientset()
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait for namespace default: %w", err)
	}
	return nil
}

func (c *Cluster) startControllerManager() (*process, error) {
	kubeconfig, err := c.KubeconfigFile("kube-controller-manager", c.certConfig(c.pki.controllerManager))
	if err != nil {
		return nil, err
	}
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.ports.controllerManager()),
		"--leader-elect=false",
		"--service-account-private-key-file=" + c.pki.serviceAccounts.keyFile,
		"--root-ca-file=" + c.pki.ca.certFile,
		"--use-service-account-credentials=true",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--controllers=" + c.controllers(),
	}
	health := fmt.Sprintf("https://127.0.0.1:%d/healthz", c.ports.controllerManager())
	return c.startProcess("kube-controller-manager", health, append(args, c.options.ControllerManagerArgs...)...)
}

func (c *Cluster) controllers() string {
	if c.options.Kwok || c.options.NodeLifecycle {
		return "*"
	}
	// Nodes that nobody plays would be called unreachable after 50 seconds,
	// tainted, and emptied.
	return "*,-node-lifecycle-controller"
}

func (c *Cluster) startScheduler() (*process, error) {
	kubeconfig, err := c.KubeconfigFile("kube-scheduler", c.certConfig(c.pki.scheduler))
	if err != nil {
		return nil, err
	}
	health := fmt.Sprintf("https://127.0.0.1:%d/healthz", c.ports.scheduler())
	return c.startProcess("kube-scheduler", health,
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.ports.scheduler()),
		"--leader-elect=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)
}

func (c *Cluster) startKwok() (*process, error) {
	kubeconfig, err := c.KubeconfigFile("kwok", c.AdminConfig())
	if err != nil {
		return nil, err
	}
	stages := filepath.Join(c.dir, "kwok-stages.yaml")
	if err := os.WriteFile(stages, kwokStages, 0o644); err != nil {
		return nil, fmt.Errorf("write stages of kwok: %w", err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", c.ports.kwok())
	return c.startProcess("kwok", "http://"+address+"/healthz",
		"--config="+stages,
		"--kubeconfig="+kubeconfig,
		"--manage-all-nodes=true",
		"--node-lease-duration-seconds=40",
		"--server-address="+address,
	)
}
