package hibernation

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// cloud is how a target's account is reached; nil where it has no connector. Until the
// first resource is recorded the connector counts as it stands, and goes into the record.
// From then on where the target is stands in the record alone: nothing of it is looked for
// in another account, whatever becomes of the document. Only credentials are taken from a
// connector that still leads there, so that a key that was replaced keeps nothing asleep.
// failure is what is wrong with the connector.
func (c *Controller) cloud(ctx context.Context, w client.Account, r *hibernate.Record, target hibernate.Target) (cloud *executors.Cloud, failure string, err error) {
	ref := target.ConnectorRef
	switch {
	case ref == nil:
		return nil, "", nil
	case ref.Kind == connector.CloudProvider:
		return c.account(ctx, w, r, *ref, "")
	case inCluster(target):
		return nil, "", nil
	}
	one, failure, err := c.connector(ctx, w.Namespace, r, *ref)
	if failure != "" || err != nil {
		return nil, failure, err
	}
	eks := one.Cluster.EKS
	if eks == nil {
		return nil, hibernate.NoEKS(*ref, target.Type), nil
	}
	provider := connector.Reference{Kind: connector.CloudProvider, Name: one.Cluster.ProviderRef.Name}
	if cloud, failure, err = c.account(ctx, w, r, provider, eks.Region); cloud != nil {
		account := cloud.AWS
		cloud.Cluster = eks.Name
		cloud.Connect = func(ctx context.Context) (executors.Clients, error) {
			clients, failed := c.Clients.Accounts.Remote(ctx, w, client.Cluster{Name: ref.Name, Spec: *one.Cluster, Provider: &account})
			if failed != nil {
				return clients, errors.New(failed.Message)
			}
			return clients, nil
		}
	}
	return cloud, failure, err
}

// account is the account of a connector, in another region of it if one is said.
func (c *Controller) account(ctx context.Context, w client.Account, r *hibernate.Record, ref connector.Reference, region string) (*executors.Cloud, string, error) {
	one, failure, err := c.connector(ctx, w.Namespace, r, ref)
	if failure != "" || err != nil {
		return nil, failure, err
	}
	spec := *one.Cloud.AWS
	if region != "" {
		spec.Region = region
	}
	cloud, err := c.Clients.Accounts.Cloud(ctx, w, spec)
	var missing *executors.CredentialsError
	if errors.As(err, &missing) {
		return nil, missing.Error(), nil
	}
	return cloud, "", err
}

// connector is one that counts for a record.
func (c *Controller) connector(ctx context.Context, namespace string, r *hibernate.Record, ref connector.Reference) (connector.Connector, string, error) {
	live, failure, err := c.readConnector(ctx, namespace, ref)
	held, recorded := r.Snapshot.Connectors[ref.Key()]
	if len(r.Resources) == 0 || !recorded {
		if failure != "" || err != nil {
			return connector.Connector{}, failure, err
		}
		r.Snapshot.Connectors = maps.Clone(r.Snapshot.Connectors)
		if r.Snapshot.Connectors == nil {
			r.Snapshot.Connectors = map[string]connector.Connector{}
		}
		r.Snapshot.Connectors[ref.Key()] = live
		return live, "", nil
	}
	byKubeconfig := held.Cluster != nil && held.Cluster.K8S != nil && live.Cluster != nil && live.Cluster.K8S != nil // hibernate.Record.Found tells whether it still leads there
	if failure == "" && err == nil && (held.LeadsTo(live) || byKubeconfig) {
		return live, "", nil
	}
	return held, "", nil
}

// inCluster says whether a target sleeps in a cluster, its plan's own or another.
func inCluster(target hibernate.Target) bool {
	kind, _ := hibernate.TypeNamed(target.Type)
	return kind.Cluster
}

// clients are those with which a target is put to sleep: the account's own, or those of the
// cluster that its connector names.
func (c *Controller) clients(ctx context.Context, w client.Account, r *hibernate.Record, target hibernate.Target) (executors.Clients, string, error) {
	home, err := c.Clients.Accounts.SleepClients(w, r.Operation == hibernate.Wake)
	if err != nil || target.ConnectorRef == nil || !inCluster(target) {
		return home, "", err
	}
	one, failure, err := c.connector(ctx, w.Namespace, r, *target.ConnectorRef)
	if failure != "" || err != nil {
		return home, failure, err
	}
	cluster := client.Cluster{Name: target.ConnectorRef.Name, Spec: *one.Cluster}
	if provider, is := one.Cluster.Provider(); is {
		in, failure, err := c.connector(ctx, w.Namespace, r, provider)
		if failure != "" || err != nil {
			return home, failure, err
		}
		cluster.Provider = in.Cloud.AWS
	}
	clients, failed := c.Clients.Accounts.Remote(ctx, w, cluster)
	if failed != nil {
		return home, failed.Message, nil
	}
	return clients, "", nil
}

// readConnector reads a connector of the plan's namespace as it stands now.
func (c *Controller) readConnector(ctx context.Context, namespace string, ref connector.Reference) (one connector.Connector, failure string, err error) {
	cm, err := c.Clients.Kube.CoreV1().ConfigMaps(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return one, fmt.Sprintf("there is no connector %s in namespace %s", ref.Name, namespace), nil
	case err != nil:
		return one, "", fmt.Errorf("read connector %s/%s: %w", namespace, ref.Name, err)
	case cm.Labels[annotations.LabelKind] != annotations.KindConnector:
		return one, fmt.Sprintf("the ConfigMap %s lacks the label %s: %s, so it is no connector", ref.Name, annotations.LabelKind, annotations.KindConnector), nil
	}
	one, faults := annotations.Connector(cm)
	switch {
	case len(faults) > 0:
		return one, fmt.Sprintf("the connector %s is not valid: %s", ref.Name, faults[0]), nil
	case one.Kind() != ref.Kind:
		return one, fmt.Sprintf("the connector %s is a %s, and the target names a %s", ref.Name, one.Kind(), ref.Kind), nil
	}
	return one, "", nil
}
