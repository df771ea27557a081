package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	yamlwriter "sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

const agentAccount = "maint-agent"

// startAgent installs what the agent needs and starts it as a process with the
// credentials of its own ServiceAccount.
func (d *demo) startAgent(ctx context.Context) error {
	d.screen.chapter("The agent, as a process with the token of its own ServiceAccount")
	objects, err := d.manifests(ctx)
	if err != nil {
		return err
	}
	d.touched = true
	if err := d.apply(ctx, objects); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	install := strings.Join(append([]string{"kubectl maint install"}, d.installFlags()...), " ")
	d.screen.line("%s | kubectl apply -f -   (but for its Deployment: the agent runs here, beside the cluster)", install)
	config, err := d.agentConfig(ctx)
	if err != nil {
		return err
	}
	kubeconfig, err := d.writeKubeconfig(agentAccount, config, d.agentNS)
	if err != nil {
		return err
	}
	args := []string{"--namespace", d.agentNS}
	if d.own == nil {
		args = append(args, "--watch-namespace", d.shopNS)
	}
	if d.agent, err = harness.StartAgent(filepath.Join(d.root, "bin", "agent"), kubeconfig, args...); err != nil {
		return err
	}
	if err := d.agentReady(ctx); err != nil {
		return err
	}
	d.screen.checked("it is ready: it holds its lease and has written its heartbeat")
	return d.agentIsNoAdmin(ctx, kubeconfig)
}

// agentIsNoAdmin shows that the agent cannot do what its plans will do.
func (d *demo) agentIsNoAdmin(ctx context.Context, kubeconfig string) error {
	out, err := d.kubectl(ctx, "--kubeconfig", kubeconfig, "auth", "can-i", "patch", "deployments", "-n", d.shopNS)
	if err == nil {
		return fmt.Errorf("the agent's own ServiceAccount may patch Deployments (%s): it should not", out)
	}
	d.screen.checked("its own account may not patch Deployments: a plan's steps run as the account that the plan names")
	return nil
}

// agentReady waits for readiness and the heartbeat, which the leader writes.
func (d *demo) agentReady(ctx context.Context) error {
	return until(ctx, 30*time.Second, "the agent is ready", func() (bool, string) {
		if d.agentGone() {
			return false, "it ended; its log:\n" + d.agent.Log()
		}
		address := d.agent.Address()
		if address == "" {
			return false, "it has not said where it listens"
		}
		answer, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false, err.Error()
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return false, "/readyz says " + answer.Status + "; its log:\n" + d.agent.Log()
		}
		_, err = d.kube.CoreV1().ConfigMaps(d.agentNS).Get(ctx, annotations.HeartbeatName, metav1.GetOptions{})
		return err == nil, fmt.Sprintf("heartbeat: %v; its log:\n%s", err, d.agent.Log())
	})
}

// installFlags are what the story needs beside the defaults.
func (d *demo) installFlags() []string {
	if d.cloud != nil {
		return []string{"--cloud"}
	}
	return nil
}

// manifests are what `kubectl maint install` prints, but for the Deployment. On
// somebody's cluster what has no namespace gets a name of its own.
func (d *demo) manifests(ctx context.Context) ([]*unstructured.Unstructured, error) {
	text, err := d.kubectl(ctx, append([]string{"maint", "install", "--namespace", d.agentNS}, d.installFlags()...)...)
	if err != nil {
		return nil, fmt.Errorf("kubectl maint install: %w\n%s", err, text)
	}
	all, err := parseObjects([]byte(text))
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, u := range all {
		if u.GetKind() == "Deployment" {
			continue
		}
		if u.GetKind() == "ConfigMap" && u.GetName() == annotations.AgentConfigName {
			continue // written below, with loopback allowed
		}
		out = append(out, u)
	}
	d.rename(out)
	return append(out, d.agentSettings()), nil
}

// agentSettings let the agent speak to the receiver, which is on loopback and
// therefore refused otherwise.
func (d *demo) agentSettings() *unstructured.Unstructured {
	const config = "apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec:\n  outbound: {allow: [127.0.0.1/32]}\n"
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name": annotations.AgentConfigName, "namespace": d.agentNS,
			"labels": map[string]any{annotations.LabelKind: annotations.KindAgentConfig},
		},
		"data": map[string]any{annotations.DataConfig: config},
	}}
}

// rename keeps objects without a namespace apart from an installation's.
func (d *demo) rename(all []*unstructured.Unstructured) {
	ours := map[string]bool{}
	for _, u := range all {
		if u.GetNamespace() == "" && u.GetKind() != "Namespace" {
			ours[u.GetName()] = true
			u.SetName(u.GetName() + d.suffix)
		}
	}
	for _, u := range all {
		if kind, _, _ := unstructured.NestedString(u.Object, "roleRef", "kind"); kind == "Role" {
			continue
		}
		for _, path := range [][]string{{"roleRef", "name"}, {"spec", "policyName"}} {
			if name, _, _ := unstructured.NestedString(u.Object, path...); ours[name] {
				_ = unstructured.SetNestedField(u.Object, name+d.suffix, path...) // a string always fits
			}
		}
	}
}

func parseObjects(text []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("read manifests: %w", err)
		case len(u.Object) > 0:
			out = append(out, u)
		}
	}
}

func (d *demo) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	var text bytes.Buffer
	for _, u := range objects {
		b, err := yamlwriter.Marshal(u.Object)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "---\n%s", b)
	}
	return harness.Apply(ctx, d.admin, d.shopNS, text.Bytes(), nil)
}

// agentConfig is a client configuration with a token of the agent's account.
func (d *demo) agentConfig(ctx context.Context) (*rest.Config, error) {
	seconds := int64((12 * time.Hour).Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := d.kube.CoreV1().ServiceAccounts(d.agentNS).CreateToken(ctx, agentAccount, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("token of the agent's ServiceAccount: %w", err)
	}
	config := rest.AnonymousClientConfig(d.admin)
	config.BearerToken = answer.Status.Token
	return config, nil
}

// removeClusterWide deletes what was installed without a namespace.
func (d *demo) removeClusterWide(ctx context.Context) error {
	objects, err := d.manifests(ctx)
	if err != nil {
		return err
	}
	dyn, err := dynamic.NewForConfig(d.admin)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d.kube.Discovery()))
	for _, u := range objects {
		mapping, err := mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
		if err != nil {
			return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace || u.GetKind() == "Namespace" {
			continue
		}
		if err := dyn.Resource(mapping.Resource).Delete(ctx, u.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}
