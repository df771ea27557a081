// Package kube has typed clients of the API groups that the project uses. client-go's own
// set (package kubernetes) has those of all groups and versions: they would be seven megabytes
// of each binary, and fifty clients in memory for every account of a plan.
package kube

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/discovery"
	admissionregistrationv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	autoscalingv2 "k8s.io/client-go/kubernetes/typed/autoscaling/v2"
	batchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	policyv1 "k8s.io/client-go/kubernetes/typed/policy/v1"
	storagev1 "k8s.io/client-go/kubernetes/typed/storage/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Basic is the part of client-go's kubernetes.Interface that the plugin uses, so a
// kubernetes.Clientset and its fakes satisfy it.
type Basic interface {
	Discovery() discovery.DiscoveryInterface
	AdmissionregistrationV1() admissionregistrationv1.AdmissionregistrationV1Interface
	AppsV1() appsv1.AppsV1Interface
	AuthenticationV1() authenticationv1.AuthenticationV1Interface
	AuthorizationV1() authorizationv1.AuthorizationV1Interface
	CoordinationV1() coordinationv1.CoordinationV1Interface
	CoreV1() corev1.CoreV1Interface
	PolicyV1() policyv1.PolicyV1Interface
}

// Interface is the part of it that the agent and the executors use.
type Interface interface {
	Basic
	AutoscalingV2() autoscalingv2.AutoscalingV2Interface
	BatchV1() batchv1.BatchV1Interface
	StorageV1() storagev1.StorageV1Interface
}

// BasicClients are the typed clients of Basic, of one API server. They share one connection
// and one rate limit.
type BasicClients struct {
	discovery             *discovery.DiscoveryClient
	admissionregistration *admissionregistrationv1.AdmissionregistrationV1Client
	apps                  *appsv1.AppsV1Client
	authentication        *authenticationv1.AuthenticationV1Client
	authorization         *authorizationv1.AuthorizationV1Client
	coordination          *coordinationv1.CoordinationV1Client
	core                  *corev1.CoreV1Client
	policy                *policyv1.PolicyV1Client
}

// Clients are those of Interface. They share one connection and one rate limit.
type Clients struct {
	*BasicClients
	autoscaling *autoscalingv2.AutoscalingV2Client
	batch       *batchv1.BatchV1Client
	storage     *storagev1.StorageV1Client
}

var _ Interface = (*Clients)(nil)

// NewBasic has the basic clients, with a connection of their own.
func NewBasic(c *rest.Config) (*BasicClients, error) {
	config, client, err := connect(c)
	if err != nil {
		return nil, err
	}
	if config, err = limited(config); err != nil {
		return nil, err
	}
	return newBasic(config, client)
}

// NewForConfig has all clients, with a connection of their own.
func NewForConfig(c *rest.Config) (*Clients, error) {
	config, client, err := connect(c)
	if err != nil {
		return nil, err
	}
	return NewForConfigAndClient(config, client)
}

// NewForConfigAndClient has all clients. They use this connection, whatever the configuration
// says of one. A configuration with QPS and without a RateLimiter limits all of them together.
func NewForConfigAndClient(c *rest.Config, client *http.Client) (*Clients, error) {
	config, err := limited(c)
	if err != nil {
		return nil, err
	}
	basic, err := newBasic(config, client)
	if err != nil {
		return nil, err
	}
	out := &Clients{BasicClients: basic}
	if err := errors.Join(
		set(&out.autoscaling, autoscalingv2.NewForConfigAndClient, config, client),
		set(&out.batch, batchv1.NewForConfigAndClient, config, client),
		set(&out.storage, storagev1.NewForConfigAndClient, config, client),
	); err != nil {
		return nil, err
	}
	return out, nil
}

func newBasic(config *rest.Config, client *http.Client) (*BasicClients, error) {
	out := &BasicClients{}
	if err := errors.Join(
		set(&out.discovery, discovery.NewDiscoveryClientForConfigAndClient, config, client),
		set(&out.admissionregistration, admissionregistrationv1.NewForConfigAndClient, config, client),
		set(&out.apps, appsv1.NewForConfigAndClient, config, client),
		set(&out.authentication, authenticationv1.NewForConfigAndClient, config, client),
		set(&out.authorization, authorizationv1.NewForConfigAndClient, config, client),
		set(&out.coordination, coordinationv1.NewForConfigAndClient, config, client),
		set(&out.core, corev1.NewForConfigAndClient, config, client),
		set(&out.policy, policyv1.NewForConfigAndClient, config, client),
	); err != nil {
		return nil, err
	}
	return out, nil
}

func connect(c *rest.Config) (*rest.Config, *http.Client, error) {
	config := *c
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	client, err := rest.HTTPClientFor(&config)
	if err != nil {
		return nil, nil, fmt.Errorf("connection of the clients: %w", err)
	}
	return &config, client, nil
}

// limited has one rate limit for all clients that are made of a configuration: each of them
// would otherwise have one of its own.
func limited(c *rest.Config) (*rest.Config, error) {
	config := *c
	if config.RateLimiter != nil || config.QPS <= 0 {
		return &config, nil
	}
	if config.Burst <= 0 {
		return nil, fmt.Errorf("rate limit of the clients: burst is %d with a QPS of %g; it has to be above 0", config.Burst, config.QPS)
	}
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
	return &config, nil
}

func set[T any](to **T, build func(*rest.Config, *http.Client) (*T, error), config *rest.Config, client *http.Client) error {
	var err error
	*to, err = build(config, client)
	return err
}

// Discovery asks which kinds the API server serves.
func (c *BasicClients) Discovery() discovery.DiscoveryInterface { return c.discovery }

// AdmissionregistrationV1 has admission policies and webhooks.
func (c *BasicClients) AdmissionregistrationV1() admissionregistrationv1.AdmissionregistrationV1Interface {
	return c.admissionregistration
}

// AppsV1 has Deployments, StatefulSets and DaemonSets.
func (c *BasicClients) AppsV1() appsv1.AppsV1Interface { return c.apps }

// AuthenticationV1 says whose a token is.
func (c *BasicClients) AuthenticationV1() authenticationv1.AuthenticationV1Interface {
	return c.authentication
}

// AuthorizationV1 says who may do what.
func (c *BasicClients) AuthorizationV1() authorizationv1.AuthorizationV1Interface {
	return c.authorization
}

// AutoscalingV2 has HorizontalPodAutoscalers.
func (c *Clients) AutoscalingV2() autoscalingv2.AutoscalingV2Interface { return c.autoscaling }

// BatchV1 has Jobs and CronJobs.
func (c *Clients) BatchV1() batchv1.BatchV1Interface { return c.batch }

// CoordinationV1 has Leases.
func (c *BasicClients) CoordinationV1() coordinationv1.CoordinationV1Interface { return c.coordination }

// CoreV1 has Pods, Nodes, ConfigMaps and the rest of the core group.
func (c *BasicClients) CoreV1() corev1.CoreV1Interface { return c.core }

// PolicyV1 has PodDisruptionBudgets and evictions.
func (c *BasicClients) PolicyV1() policyv1.PolicyV1Interface { return c.policy }

// StorageV1 has VolumeAttachments.
func (c *Clients) StorageV1() storagev1.StorageV1Interface { return c.storage }
