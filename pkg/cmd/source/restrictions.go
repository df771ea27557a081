package source

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Restrictions are the policies, freezes and pauses for the objects of some namespaces.
type Restrictions struct {
	Resolver
	Pauses
	whole bool // of all namespaces that there are
}

// Unread says whether a namespace, or its policies, could not be read, or were not asked for.
func (a Restrictions) Unread(namespace string) bool {
	_, asked := a.of[namespace]
	return !a.whole && !asked || a.namespaces[namespace] != nil || a.documents[namespace] != nil
}

// Plan is what stands around a plan.
func (a Restrictions) Plan(c *factory.Factory, agent factory.AgentState, cm *corev1.ConfigMap) view.Around {
	read := view.ReadDocument(cm)
	out := view.Around{Pauses: a.AbovePlan(c, cm), Deleting: a.DeletingOf(cm), Silent: agent.In(cm.Namespace).Missing != "", Read: read}
	if gate, gated := a.planGate(c, agent, cm, read.Spec); gated {
		out.Gate = gate
	}
	return out
}

// closed are the namespaces that are frozen or paused themselves.
func (a Restrictions) closed() []string {
	out := a.Resolver.Namespaces()
	for name, pauses := range a.of {
		if slices.ContainsFunc(pauses, func(p schedule.Pause) bool { return p.On && p.Of != annotations.WholeCluster }) {
			out = append(out, name)
		}
	}
	return out
}

// ReadRestrictions reads what ReadResolver and ReadPauses read, each once and concurrently.
func ReadRestrictions(ctx context.Context, k *factory.Cluster, agentNamespace string, namespaces ...string) Restrictions {
	names := namesOf(agentNamespace, namespaces)
	if len(names) > manyNamespaces {
		if out, may := readEverything(ctx, k, agentNamespace); may {
			return out
		}
	}
	return readEach(ctx, k, agentNamespace, names)
}

// ReadAllRestrictions is ReadRestrictions for all namespaces, or for some if not all may be read.
func ReadAllRestrictions(ctx context.Context, k *factory.Cluster, agentNamespace string, namespaces ...string) Restrictions {
	if out, may := readEverything(ctx, k, agentNamespace); may {
		return out
	}
	return readEach(ctx, k, agentNamespace, namesOf(agentNamespace, namespaces))
}

// namesOf are the namespaces to read, each once.
func namesOf(agentNamespace string, namespaces []string) []string {
	names := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(namespaces), agentNamespace))))
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// namespace is the result of reading one namespace.
type namespace struct {
	notes    map[string]string
	deleting bool
	err      error
}

// readsAtOnce limits concurrent requests (a guess: an API server in another region answers in a
// tenth of a second, and fifty namespaces are not rare).
const readsAtOnce = 8

// readEach reads some namespaces and the policies in them.
func readEach(ctx context.Context, k *factory.Cluster, agentNamespace string, names []string) Restrictions {
	known, lists, failed := make([]namespace, len(names)), make([]*corev1.ConfigMapList, len(names)), make([]error, len(names))
	sideBySide(names,
		func(i int, name string) { known[i] = getNamespace(ctx, k, name) },
		func(i int, name string) {
			lists[i], failed[i] = k.ConfigMaps(name).List(ctx, metav1.ListOptions{LabelSelector: policiesAndCalendars})
		})
	out := Restrictions{Resolver: newResolver(agentNamespace), Pauses: pausesOf(byName(names, known), agentNamespace)}
	for i, name := range names {
		switch err := known[i].err; {
		case err == nil:
			out.PutNamespace(name, annotations.Stanza(known[i].notes))
		case !apierrors.IsNotFound(err):
			out.namespaces[name] = k.Explain("read namespace "+name, err)
		}
		if failed[i] != nil {
			out.documents[name] = k.Explain("read the policies of namespace "+name, failed[i])
			out.PutUnread(name)
			continue
		}
		for j := range lists[i].Items {
			out.putDocument(&lists[i].Items[j])
		}
	}
	return out
}

// sideBySide makes a number of reads for each namespace, concurrently. Each notes its own error.
func sideBySide(names []string, questions ...func(i int, name string)) {
	var group errgroup.Group
	group.SetLimit(readsAtOnce)
	for i, name := range names {
		for _, ask := range questions {
			group.Go(func() error {
				ask(i, name)
				return nil
			})
		}
	}
	_ = group.Wait() // none is an error
}

func byName(names []string, known []namespace) map[string]namespace {
	out := make(map[string]namespace, len(names))
	for i, name := range names {
		out[name] = known[i]
	}
	return out
}

func getNamespace(ctx context.Context, k *factory.Cluster, name string) namespace {
	ns, err := k.Kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return namespace{err: err}
	}
	return namespace{notes: ns.Annotations, deleting: ns.DeletionTimestamp != nil}
}

// readEverything reads all namespaces with two requests, where that is allowed.
func readEverything(ctx context.Context, k *factory.Cluster, agentNamespace string) (Restrictions, bool) {
	var documents *corev1.ConfigMapList
	var all *corev1.NamespaceList
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		documents, err = k.ConfigMaps("").List(inner, metav1.ListOptions{LabelSelector: policiesAndCalendars})
		return err
	})
	group.Go(func() (err error) {
		all, err = k.Kube.CoreV1().Namespaces().List(inner, metav1.ListOptions{})
		return err
	})
	if group.Wait() != nil {
		return Restrictions{}, false
	}
	out, known := Restrictions{Resolver: newResolver(agentNamespace), whole: true}, map[string]namespace{}
	for i := range documents.Items {
		out.putDocument(&documents.Items[i])
	}
	for i := range all.Items {
		ns := &all.Items[i]
		out.PutNamespace(ns.Name, annotations.Stanza(ns.Annotations))
		known[ns.Name] = namespace{notes: ns.Annotations, deleting: ns.DeletionTimestamp != nil}
	}
	out.Pauses = pausesOf(known, agentNamespace)
	return out, true
}

// pausesOf are the pauses above the objects of namespaces that were read.
func pausesOf(known map[string]namespace, agentNamespace string) Pauses {
	out := Pauses{of: map[string][]schedule.Pause{}, hidden: map[string]bool{}, deleting: map[string]bool{}, missing: map[string]bool{}}
	agents := known[agentNamespace]
	everywhere := annotations.PauseOf(annotations.WholeCluster, agents.notes)
	out.hidden[annotations.WholeCluster] = unread(agents.err)
	for name, ns := range known {
		out.of[name] = []schedule.Pause{}
		if own := annotations.PauseOf(annotations.NamespaceNamed(name), ns.notes); own.On && name != agentNamespace {
			out.of[name] = append(out.of[name], own)
		}
		if everywhere.On {
			out.of[name] = append(out.of[name], everywhere)
		}
		out.hidden[annotations.NamespaceNamed(name)] = unread(ns.err)
		out.deleting[name], out.missing[name] = ns.deleting, apierrors.IsNotFound(ns.err)
	}
	return out
}

// PausedThemselves are the plans and policies of a namespace with a pause of their own, of all
// namespaces nodes, too; and the namespaces of all plans and policies.
func PausedThemselves(ctx context.Context, k *factory.Cluster, namespace string, now time.Time) (names, namespaces []string) {
	held := func(m metav1.ObjectMeta) bool { return annotations.Intent(m.Annotations).Pause.Holds(now) }
	kinds := annotations.LabelKind + " in (" + annotations.KindPlan + "," + annotations.KindHibernatePlan + "," + annotations.KindPolicy + ")"
	list, err := k.ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: kinds})
	if err != nil {
		list = &corev1.ConfigMapList{}
	}
	for _, cm := range list.Items {
		namespaces = append(namespaces, cm.Namespace)
		if !held(cm.ObjectMeta) {
			continue
		}
		kind := ""
		if cm.Labels[annotations.LabelKind] == annotations.KindPolicy {
			kind = "policy "
		}
		names = append(names, kind+cm.Namespace+"/"+cm.Name)
	}
	if namespace != "" {
		return names, namespaces
	}
	nodes, _ := k.Nodes(ctx, "") // none where they may not be read
	for _, n := range nodes {
		if held(n.ObjectMeta) {
			names = append(names, "node "+n.Name)
		}
	}
	return names, namespaces
}
