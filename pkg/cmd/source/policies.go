package source

import (
	"context"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Policies reads the policies, calendars and namespace stanzas that may stand
// behind objects of some namespaces: theirs and the agent's. What may not be read
// is not known, and whoever reads warn is told; of Namespaces the errors come back.
func Policies(ctx context.Context, k *factory.Cluster, warn io.Writer, agentNamespace string, namespaces ...string) (b *policy.Resolver, unread map[string]error) {
	b, unread = policy.NewResolver(agentNamespace), map[string]error{}
	namespaces = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(namespaces), agentNamespace))))
	if len(namespaces) > manyNamespaces && allPolicies(ctx, k, b) {
		return b, unread
	}
	for _, namespace := range namespaces {
		if namespace == "" {
			continue
		}
		ns, err := k.Kube.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		switch {
		case err == nil:
			b.PutNamespace(namespace, annotations.Stanza(ns.Annotations))
		case !apierrors.IsNotFound(err):
			unread[namespace] = err
		}
		list, err := k.ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: policiesAndCalendars})
		if err != nil {
			fmt.Fprintf(warn, "warning: %v; its policies count as not there\n", factory.Explain("read the policies of namespace "+namespace, err))
			continue
		}
		for i := range list.Items {
			putDocument(b, &list.Items[i])
		}
	}
	return b, unread
}

// policiesAndCalendars selects what stands behind gates.
const policiesAndCalendars = annotations.LabelKind + " in (" + annotations.KindPolicy + "," + annotations.KindCalendar + ")"

// manyNamespaces is from how many on all are read at once (a guess: two requests
// for each of more would take longer).
const manyNamespaces = 4

// allPolicies reads all namespaces at once, where that is allowed.
func allPolicies(ctx context.Context, k *factory.Cluster, b *policy.Resolver) bool {
	list, err := k.ConfigMaps("").List(ctx, metav1.ListOptions{LabelSelector: policiesAndCalendars})
	if err != nil {
		return false
	}
	all, err := k.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false
	}
	for i := range list.Items {
		putDocument(b, &list.Items[i])
	}
	for i := range all.Items {
		b.PutNamespace(all.Items[i].Name, annotations.Stanza(all.Items[i].Annotations))
	}
	return true
}

func putDocument(b *policy.Resolver, cm *corev1.ConfigMap) {
	if cm.Labels[annotations.LabelKind] == annotations.KindPolicy {
		b.PutPolicy(annotations.Policy(cm))
		return
	}
	c, _ := annotations.Calendar(cm)
	b.PutCalendar(cm.Namespace, cm.Name, c)
}

// PolicyNamespaces are those of the policies that a node's stanza names.
func PolicyNamespaces(in intent.Intent) []string {
	var out []string
	for _, ref := range in.Stanza.Policies {
		out = append(out, ref.Namespace)
	}
	return out
}

// Pauses are the switches above the plans of a namespace: its own and the
// cluster's. What may not be read is not known, and not shown.
func Pauses(ctx context.Context, k *factory.Cluster, agentNamespace string, namespaces ...string) map[string][]schedule.Pause {
	read := func(name, of string) (schedule.Pause, bool) {
		ns, err := k.Kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return schedule.Pause{}, false
		}
		s := annotations.PauseOf(of, ns.Annotations)
		return s, s.On
	}
	everywhere, all := read(agentNamespace, annotations.WholeCluster)
	out := map[string][]schedule.Pause{}
	for _, n := range namespaces {
		if _, done := out[n]; done {
			continue
		}
		out[n] = []schedule.Pause{}
		if s, on := read(n, annotations.NamespaceNamed(n)); on && n != agentNamespace {
			out[n] = append(out[n], s)
		}
		if all {
			out[n] = append(out[n], everywhere)
		}
	}
	return out
}
