package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
)

const nodes = 3

// startCluster brings the ground that the story takes place on.
func (d *demo) startCluster(ctx context.Context) error {
	if d.cluster == "existing" {
		return d.useCluster(ctx)
	}
	d.screen.chapter("A cluster: etcd, API server with RBAC, controller manager, scheduler, %d simulated nodes", nodes)
	began := time.Now()
	said, done := d.relay()
	var err error
	d.own, err = cluster.Start(ctx, cluster.Options{ControllerManager: true, Scheduler: true, Kwok: true, Nodes: nodes, Log: said})
	done()
	if err != nil {
		return fmt.Errorf("start a cluster: %w", err)
	}
	d.admin = d.own.AdminConfig()
	if d.kube, err = kubernetes.NewForConfig(d.admin); err != nil {
		return err
	}
	if d.kubeconfig, err = d.writeKubeconfig("admin", d.admin, d.shopNS); err != nil {
		return err
	}
	d.screen.checked(fmt.Sprintf("it answers after %.1f s; its nodes are Ready", time.Since(began).Seconds()))
	return nil
}

// relay shows what the cluster says while it starts.
func (d *demo) relay() (io.Writer, func()) {
	read, write := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(read); lines.Scan(); {
			d.screen.line("%s", strings.TrimPrefix(lines.Text(), "cluster: "))
		}
	}()
	return write, func() {
		_ = write.Close()
		<-ended
	}
}

// useCluster takes the cluster that KUBECONFIG names, as long as no agent runs
// there: two would both act on the demo's plan.
func (d *demo) useCluster(ctx context.Context) error {
	d.screen.chapter("Your cluster, in namespace %s", d.agentNS)
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
	raw, err := loader.RawConfig()
	if err != nil {
		return fmt.Errorf("read KUBECONFIG: %w", err)
	}
	if d.admin, err = loader.ClientConfig(); err != nil {
		return fmt.Errorf("read KUBECONFIG: %w", err)
	}
	d.admin.QPS = -1
	d.kubeconfig = os.Getenv("KUBECONFIG")
	if d.kube, err = kubernetes.NewForConfig(d.admin); err != nil {
		return err
	}
	d.screen.line("context %s, %s", raw.CurrentContext, d.admin.Host)
	beats, err := d.kube.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindHeartbeat})
	if err != nil {
		return fmt.Errorf("look for an agent in the cluster: %w", err)
	}
	for _, cm := range beats.Items {
		at, err := time.Parse(time.RFC3339, cm.Data["heartbeat"])
		if err == nil && time.Since(at) < 2*time.Minute {
			return fmt.Errorf("an agent runs there already, in namespace %s: it and the demo's would both act; use another cluster, or none", cm.Namespace)
		}
	}
	d.screen.checked("it answers, and no agent runs there")
	return nil
}

// writeKubeconfig writes credentials to a file that only this user may read.
func (d *demo) writeKubeconfig(name string, c *rest.Config, namespace string) (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["maint-demo"] = &clientcmdapi.Cluster{
		Server: c.Host, CertificateAuthorityData: c.CAData, CertificateAuthority: c.CAFile, InsecureSkipTLSVerify: c.Insecure, TLSServerName: c.ServerName,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: c.BearerToken, ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}
	config.Contexts["maint-demo"] = &clientcmdapi.Context{Cluster: "maint-demo", AuthInfo: name, Namespace: namespace}
	config.CurrentContext = "maint-demo"
	path := filepath.Join(d.dir, name+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("write kubeconfig of %s: %w", name, err)
	}
	return path, nil
}

// remove takes the demo off somebody's cluster. A live run holds its namespace
// by a finalizer that the agent takes off; where no agent is left (Ctrl-C ends
// it, too) we do.
func (d *demo) remove(ctx context.Context) error {
	namespaces := d.kube.CoreV1().Namespaces()
	if err := namespaces.Delete(ctx, d.agentNS, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	patience := time.Now().Add(10 * time.Second)
	err := until(ctx, time.Minute, "namespace "+d.agentNS+" is gone", func() (bool, string) {
		_, err := namespaces.Get(ctx, d.agentNS, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, ""
		}
		if d.agentGone() || time.Now().After(patience) {
			d.release(ctx)
		}
		return false, "it is still there"
	})
	return errors.Join(err, d.removeClusterWide(ctx))
}

func (d *demo) agentGone() bool {
	if d.agent == nil {
		return true
	}
	select {
	case <-d.agent.Ended():
		return true
	default:
		return false
	}
}

// release takes the finalizers off what is left of the demo's runs.
func (d *demo) release(ctx context.Context) {
	maps := d.kube.CoreV1().ConfigMaps(d.agentNS)
	runs, err := maps.List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindRun})
	if err != nil {
		return // it is asked again
	}
	for _, cm := range runs.Items {
		_, _ = maps.Patch(ctx, cm.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	}
}

// until asks again and again until it holds; the last answer is in the error.
func until(ctx context.Context, limit time.Duration, what string, holds func() (bool, string)) error {
	over := time.After(limit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, got := holds()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return fmt.Errorf("not within %s: %s; %s", limit, what, got)
		case <-tick.C:
		}
	}
}
