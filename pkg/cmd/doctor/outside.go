package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/outbound"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// usedBy maps a name to the steps or targets that use it.
type usedBy map[string][]string

func (u usedBy) add(name, user string) {
	if name != "" && !slices.Contains(u[name], user) {
		u[name] = append(u[name], user)
	}
}

// of are the steps or targets that use it, in words.
func (u usedBy) of(what, name string) string {
	if len(u[name]) == 1 {
		return what + " " + u[name][0]
	}
	return what + "s " + strings.Join(u[name], ", ")
}

// mostHosts limits the host names that are looked up for one plan, hostsAtOnce those at a time, and
// lookupWithin the time for all of them (guesses).
const (
	mostHosts    = 20
	hostsAtOnce  = 8
	lookupWithin = 5 * time.Second
)

// outboundRules are the agent's rules for the hosts that it may call.
type outboundRules struct {
	outbound.Rules
	known bool   // the configuration could be read
	where string // the ConfigMap that holds them
}

func outboundOf(config *agentconfig.AgentConfig, namespace string) outboundRules {
	if config == nil {
		return outboundRules{}
	}
	rules, err := outbound.New(config.Outbound.Allow, config.Outbound.Deny)
	return outboundRules{Rules: rules, known: err == nil, where: namespace + "/" + annotations.AgentConfigName} // a fault of the configuration is reported already
}

// hosts checks whether the hosts that steps call exist and may be called.
func (o *options) hosts(ctx context.Context, k *factory.Cluster, t plan.Tree, rules outboundRules) {
	calls := usedBy{}
	t.Walk(func(s plan.Step) {
		for _, key := range []string{"url", "alertmanager", "endpoint"} {
			calls.add(hostIn(s.Properties[key]), s.Name)
		}
		functions, _ := s.Properties["functions"].([]any) // of a pipeline
		for _, f := range functions {
			function, _ := f.(map[string]any)
			calls.add(hostIn(function["endpoint"]), s.Name)
		}
	})
	o.lookUp(ctx, k, calls, "step", rules)
}

// targetHosts checks whether the hosts of functions exist that put targets to sleep.
func (o *options) targetHosts(ctx context.Context, k *factory.Cluster, spec hibernate.Spec, rules outboundRules) {
	calls := usedBy{}
	for _, t := range spec.Targets {
		if t.Type == hibernate.TypeFunction {
			calls.add(hostIn(t.Parameters["endpoint"]), t.Name)
		}
	}
	o.lookUp(ctx, k, calls, "target", rules)
}

// host is a host that steps or targets call, with its addresses if they are known.
type host struct {
	name      string
	by        string // the steps or targets
	addresses []netip.Addr
}

// lookUp checks whether hosts exist and may be called: a Service by its object, all others by DNS.
func (o *options) lookUp(ctx context.Context, k *factory.Cluster, calls usedBy, what string, rules outboundRules) {
	o.check = "hosts"
	var hosts []host
	names := 0
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		one := host{name: name, by: calls.of(what, name)}
		if address, err := netip.ParseAddr(name); err == nil {
			one.addresses = []netip.Addr{address}
		} else if names++; names > mostHosts {
			continue
		}
		hosts = append(hosts, one)
	}
	if n := names - mostHosts; n > 0 {
		o.unknown(view.Counted(n, "host")+" that the "+what+"s call", errors.New("only the first "+strconv.Itoa(mostHosts)+" are looked up"))
	}
	findAddresses(ctx, hosts)
	for _, one := range hosts {
		o.host(ctx, k, one, rules)
	}
}

// findAddresses resolves host names, a few at a time.
func findAddresses(ctx context.Context, hosts []host) {
	ctx, cancel := context.WithTimeout(ctx, lookupWithin)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(hostsAtOnce)
	for i := range hosts {
		one := &hosts[i]
		if _, _, is := serviceIn(one.name); is || len(one.addresses) > 0 {
			continue
		}
		group.Go(func() error {
			one.addresses, _ = net.DefaultResolver.LookupNetIP(ctx, "ip", one.name) // without an answer, no addresses
			return nil
		})
	}
	_ = group.Wait() // none is an error
}

// host reports on one host.
func (o *options) host(ctx context.Context, k *factory.Cluster, one host, rules outboundRules) {
	_, err := netip.ParseAddr(one.name)
	isName := err != nil
	name, namespace, isService := serviceIn(one.name)
	switch {
	case isService:
		o.service(ctx, k, one, name, namespace, rules)
	case o.refused(one, rules) || !isName:
	case len(one.addresses) > 0:
		o.good("the host %s, which %s calls, is found from this machine", one.name, one.by)
	default: // the agent may resolve it differently
		o.unknown(fmt.Sprintf("whether the agent finds the host %s, which %s calls", one.name, one.by), errors.New("this machine does not find it"))
	}
}

// refused says by which of the agent's rules a host may not be called.
func (o *options) refused(one host, rules outboundRules) bool {
	if !rules.known {
		return false
	}
	_, err := rules.Resolve(one.name, func(string) ([]netip.Addr, error) {
		if len(one.addresses) == 0 {
			return nil, errors.New("no address is known")
		}
		return one.addresses, nil
	})
	refusal := new(outbound.Refusal)
	if !errors.As(err, &refusal) {
		return false
	}
	o.amiss("the agent may not call what "+one.by+" calls: "+refusal.Error(), "call another host, or have an admin change spec.outbound in ConfigMap "+rules.where)
	return true
}

// hostIn is the host of a URL or of host:port; empty: there is none, or it is known only when the
// step runs.
func hostIn(address any) string {
	text, _ := address.(string)
	if !strings.Contains(text, "://") {
		text = "//" + text
	}
	u, err := url.Parse(text)
	if err != nil || strings.ContainsAny(u.Host, "${}") {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
}

// serviceIn is the Service behind a name of the cluster's DNS.
func serviceIn(host string) (name, namespace string, is bool) {
	before, is := strings.CutSuffix(strings.TrimSuffix(host, ".cluster.local"), ".svc")
	if !is {
		return "", "", false
	}
	labels := strings.Split(before, ".") // a pod of a headless Service has more labels than two
	if len(labels) < 2 {
		return "", "", false
	}
	return labels[len(labels)-2], labels[len(labels)-1], true
}

func (o *options) service(ctx context.Context, k *factory.Cluster, one host, name, namespace string, rules outboundRules) {
	service, err := k.Kube.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		o.amiss(fmt.Sprintf("there is no Service %s in namespace %s, which %s calls", name, namespace, one.by), "create it, or fix the address")
		return
	case err != nil:
		o.unknown(fmt.Sprintf("Service %s/%s, which %s calls", namespace, name, one.by), k.Explain("it cannot be read", err))
	default:
		for _, ip := range service.Spec.ClusterIPs {
			if address, err := netip.ParseAddr(ip); err == nil { // None: the addresses of its pods are not known
				one.addresses = append(one.addresses, address)
			}
		}
	}
	if !o.refused(one, rules) && err == nil {
		o.good("Service %s/%s, which %s calls, is there", namespace, name, one.by)
	}
}

// nodesWithImages is the number of nodes whose images are read: kubelets report up to 50 each.
const nodesWithImages = 100

// images checks whether the images of Jobs have valid names and are on a node already. Whether a
// registry has them shows only when a pod pulls them.
func (o *options) images(ctx context.Context, k *factory.Cluster, t plan.Tree) {
	o.check = "images"
	wanted := usedBy{}
	t.WalkClusters(func(s plan.Step, at *connector.Reference) {
		for _, image := range imagesOf(s) {
			if at != nil || strings.Contains(image, "${") {
				continue
			}
			if full, err := fullImage(image); err != nil {
				o.amiss(fmt.Sprintf("the image %q of step %s has no valid name: %v", image, s.Name, err), "write it as REGISTRY/NAME:TAG")
			} else {
				wanted.add(full, s.Name)
			}
		}
	})
	if len(wanted) == 0 {
		return
	}
	nodes, err := k.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: nodesWithImages})
	if err != nil {
		o.unknown("whether nodes have the images of Jobs", k.Explain("list nodes", err))
		return
	}
	have := map[string]bool{}
	for i := range nodes.Items {
		for _, image := range nodes.Items[i].Status.Images {
			for _, name := range image.Names {
				have[name] = true
			}
		}
	}
	for _, image := range slices.Sorted(maps.Keys(wanted)) {
		if have[image] {
			o.good("the image %s of %s is on a node already", image, wanted.of("step", image))
			continue
		}
		o.unknown(fmt.Sprintf("whether the image %s of %s can be pulled", image, wanted.of("step", image)), fmt.Errorf("not reported by the %s looked at, so this is seen when the pod starts", view.Counted(len(nodes.Items), "node")))
	}
}

// imagesOf are the images of a step that runs a Job.
func imagesOf(s plan.Step) []string {
	if s.Type != "job" {
		return nil
	}
	var out []string
	if image, _ := s.Properties["image"].(string); image != "" {
		out = append(out, image)
	}
	for _, list := range []string{"initContainers", "containers"} {
		containers, _, _ := unstructured.NestedSlice(s.Properties, "template", "template", "spec", list) // an invalid one was refused with the plan
		for _, c := range containers {
			if one, _ := c.(map[string]any); one != nil {
				if image, _ := one["image"].(string); image != "" {
					out = append(out, image)
				}
			}
		}
	}
	return out
}

// fullImage is the full name of an image, as kubelets report it.
func fullImage(image string) (string, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", err
	}
	return reference.TagNameOnly(named).String(), nil
}
