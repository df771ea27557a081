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
	"strings"
	"time"

	"github.com/distribution/reference"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// lookupWithin is how long a host's name is looked up (a guess).
const lookupWithin = 3 * time.Second

// usedBy are the steps that use something, by its name.
type usedBy map[string][]string

func (u usedBy) add(name, step string) {
	if name != "" && !slices.Contains(u[name], step) {
		u[name] = append(u[name], step)
	}
}

// steps are the steps that use it, in words.
func (u usedBy) steps(name string) string {
	if len(u[name]) == 1 {
		return "step " + u[name][0]
	}
	return "steps " + strings.Join(u[name], ", ")
}

// hosts looks whether the hosts are there that steps call.
func (o *options) hosts(ctx context.Context, k *factory.Cluster, t plan.Tree) {
	calls := usedBy{}
	t.Walk(func(s plan.Step) {
		for _, key := range []string{"url", "alertmanager", "endpoint"} {
			calls.add(hostIn(s.Properties[key]), s.Name)
		}
	})
	for _, host := range slices.Sorted(maps.Keys(calls)) {
		if name, namespace, is := serviceIn(host); is {
			o.service(ctx, k, name, namespace, calls.steps(host))
			continue
		}
		if _, err := netip.ParseAddr(host); err != nil {
			o.resolves(ctx, host, calls.steps(host))
		}
	}
}

// hostIn is the host of a URL or of host:port; empty: it is none, or known only when the step runs.
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

// serviceIn is the Service that a name of the cluster's DNS names.
func serviceIn(host string) (name, namespace string, is bool) {
	before, is := strings.CutSuffix(strings.TrimSuffix(host, ".cluster.local"), ".svc")
	if !is {
		return "", "", false
	}
	labels := strings.Split(before, ".") // of a pod of a headless Service, more than two
	if len(labels) < 2 {
		return "", "", false
	}
	return labels[len(labels)-2], labels[len(labels)-1], true
}

func (o *options) service(ctx context.Context, k *factory.Cluster, name, namespace, steps string) {
	_, err := k.Kube.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		o.amiss(fmt.Sprintf("there is no Service %s in namespace %s, which %s calls", name, namespace, steps), "create it, or mend the address")
	case err != nil:
		o.unknown(fmt.Sprintf("Service %s/%s, which %s calls", namespace, name, steps), factory.Explain("read it", err))
	default:
		o.good("Service %s/%s, which %s calls, is there", namespace, name, steps)
	}
}

// resolves looks a name up as this machine does; the agent may be told something else.
func (o *options) resolves(ctx context.Context, host, steps string) {
	ctx, cancel := context.WithTimeout(ctx, lookupWithin)
	defer cancel()
	if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
		o.unknown(fmt.Sprintf("whether the agent finds the host %s, which %s calls", host, steps), errors.New("this machine does not find it"))
		return
	}
	o.good("the host %s, which %s calls, is found from this machine", host, steps)
}

// nodesWithImages is of how many nodes the images are read: kubelets report up to 50 each.
const nodesWithImages = 100

// images looks whether the images of Jobs have a valid name and are on a node already: whether a
// registry has them shows only when a pod pulls them.
func (o *options) images(ctx context.Context, k *factory.Cluster, t plan.Tree) {
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
		o.unknown("whether nodes have the images of Jobs", factory.Explain("list nodes", err))
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
			o.good("the image %s of %s is on a node already", image, wanted.steps(image))
			continue
		}
		o.unknown(fmt.Sprintf("whether the image %s of %s can be pulled", image, wanted.steps(image)), errors.New("no node has it yet, so this is seen when the pod starts"))
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
		containers, _, _ := unstructured.NestedSlice(s.Properties, "template", "template", "spec", list) // what is none was refused with the plan
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

// fullImage is an image with its registry and tag, as kubelets report it.
func fullImage(image string) (string, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", err
	}
	return reference.TagNameOnly(named).String(), nil
}
