package cmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// bookOf reads the policies, calendars and namespace stanzas that may stand
// behind objects of some namespaces: theirs and the agent's. What may not be read
// is not known, and whoever reads warn is told; of Namespaces the errors come back.
func (k *cluster) bookOf(ctx context.Context, warn io.Writer, agentNamespace string, namespaces ...string) (b *plan.Book, unread map[string]error) {
	b, unread = plan.NewBook(agentNamespace), map[string]error{}
	namespaces = slices.Compact(slices.Sorted(slices.Values(append(namespaces, agentNamespace))))
	if len(namespaces) > manyNamespaces && k.wholeBook(ctx, b) {
		return b, unread
	}
	for _, namespace := range namespaces {
		if namespace == "" {
			continue
		}
		ns, err := k.kube.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		switch {
		case err == nil:
			b.PutNamespace(namespace, annotations.Stanza(ns.Annotations))
		case !apierrors.IsNotFound(err):
			unread[namespace] = err
		}
		list, err := k.maps(namespace).List(ctx, metav1.ListOptions{LabelSelector: policiesAndCalendars})
		if err != nil {
			fmt.Fprintf(warn, "warning: %v; its policies count as not there\n", plain("read the policies of namespace "+namespace, err))
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

// wholeBook reads all namespaces at once, where that is allowed.
func (k *cluster) wholeBook(ctx context.Context, b *plan.Book) bool {
	list, err := k.maps("").List(ctx, metav1.ListOptions{LabelSelector: policiesAndCalendars})
	if err != nil {
		return false
	}
	all, err := k.kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
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

func putDocument(b *plan.Book, cm *corev1.ConfigMap) {
	if cm.Labels[annotations.LabelKind] == annotations.KindPolicy {
		b.PutPolicy(annotations.Policy(cm))
		return
	}
	c, _ := annotations.Calendar(cm)
	b.PutCalendar(cm.Namespace, cm.Name, c)
}

// subject is what a command about permission speaks of.
type subject struct {
	kind, namespace, name string // plan, policy or node
	zone                  string // in which people think of its times
	gate                  *schedule.Gate
	policy                *schedule.Policy
	pauses                []plan.Switch
	intervals             func(from time.Time, yield func(schedule.Interval) bool)
}

func (s subject) String() string { return s.kind + "/" + s.name }

// verdict is what may be done at an instant, pauses included: what is paused is
// not permitted, whatever its windows say.
func (s subject) verdict(at time.Time) schedule.Verdict {
	ask := s.gate.Verdict
	if s.policy != nil {
		ask = s.policy.Verdict
	}
	v := ask(at)
	var pause plan.Switch
	for _, p := range s.pauses {
		pause = longer(pause, p)
	}
	switch {
	case !pause.Holds(at) || !v.Ready:
		return v
	case pause.Until == nil:
		return schedule.Verdict{Ready: true, Reason: "paused", NextChangeETA: schedule.ForEver}
	}
	return pausedUntil(*pause.Until, at, ask)
}

// pausedUntil is a closed stretch up to the end of a pause, and on from there
// while what is below is closed too.
func pausedUntil(end, at time.Time, ask func(time.Time) schedule.Verdict) schedule.Verdict {
	v := schedule.Verdict{Ready: true, Reason: "paused until " + end.UTC().Format(time.RFC3339)}
	then := ask(end)
	opens := &end
	if !then.Permitted {
		opens = then.Until
	}
	if opens == nil || !then.Ready {
		v.NextChangeETA = schedule.ForEver
		return v
	}
	at2 := opens.UTC()
	v.Until = &at2
	v.Next = &schedule.Following{Permitted: true, Start: at2}
	if after := ask(at2); after.Until != nil {
		v.Next.End = after.Until
	}
	v.NextChangeETA = at2.Unix() - at.Unix()
	return v
}

func newSubject(kind, namespace, name, zone string, b *plan.Book, q plan.Question) subject {
	s := subject{kind: kind, namespace: namespace, name: name, zone: zone}
	if kind == annotations.KindPolicy {
		s.policy = b.Policy(namespace, name)
		s.intervals = func(from time.Time, yield func(schedule.Interval) bool) { s.policy.Intervals(from)(yield) }
		return s
	}
	s.gate = b.Gate(q)
	s.intervals = func(from time.Time, yield func(schedule.Interval) bool) { s.gate.Intervals(from)(yield) }
	return s
}

// splitKind divides KIND/NAME; plain names have no kind.
func splitKind(text string) (kind, name string) {
	kind, name, found := strings.Cut(text, "/")
	if !found {
		return "", text
	}
	if kind == "nodes" || kind == "no" {
		kind = "node"
	}
	return kind, name
}

// subjectOf finds a plan, policy or node of the cluster by its name.
func (c *cli) subjectOf(ctx context.Context, k *cluster, text string) (subject, error) {
	agent, _ := c.agent(ctx, k)
	found, err := k.thing(ctx, text, annotations.KindPlan, annotations.KindPolicy)
	switch {
	case err != nil:
		return subject{}, err
	case found.node != nil:
		return c.nodeSubject(ctx, k, agent, found.node), nil
	}
	cm := found.document
	b, unread := k.bookOf(ctx, c.ErrOut, agent.Namespace, cm.Namespace)
	if cm.Labels[annotations.LabelKind] == annotations.KindPolicy {
		s := newSubject(annotations.KindPolicy, cm.Namespace, cm.Name, policyZone(annotations.Policy(cm).Spec, c.Zone), b, plan.Question{})
		return s, nil
	}
	c.doubt(b, cm.Namespace, unread[cm.Namespace])
	return c.planSubject(ctx, k, agent, cm, b), nil
}

// doubt closes a namespace of which nobody may tell us whether it is frozen: what
// cannot be read permits nothing.
func (c *cli) doubt(b *plan.Book, namespace string, err error) {
	if err == nil {
		return
	}
	fmt.Fprintf(c.ErrOut, "warning: %v; whether it is frozen is not known, so nothing is permitted\n", plain("read namespace "+namespace, err))
	b.PutNamespace(namespace, plan.StanzaText{Strategy: schedule.RestrictiveUntil}) // without an instant it is not ready, and binds
}

func (c *cli) planSubject(ctx context.Context, k *cluster, agent agentState, cm *corev1.ConfigMap, b *plan.Book) subject {
	spec, _ := annotations.Plan(cm)
	in := annotations.Intent(cm.Annotations)
	s := newSubject(annotations.KindPlan, cm.Namespace, cm.Name, zoneOf(spec, c.Zone), b, in.Query(cm.Namespace, spec.Policies))
	s.pauses = append(k.pausesOf(ctx, agent.Namespace, cm.Namespace)[cm.Namespace], in.Pause)
	return s
}

func (c *cli) nodeSubject(ctx context.Context, k *cluster, agent agentState, node *corev1.Node) subject {
	in := annotations.Intent(node.Annotations)
	b, _ := k.bookOf(ctx, c.ErrOut, agent.Namespace, policyNamespaces(in)...)
	s := newSubject(kindNode, "", node.Name, c.Zone, b, in.Query("", nil))
	s.pauses = append(k.pausesOf(ctx, agent.Namespace, agent.Namespace)[agent.Namespace], in.Pause)
	return s
}

// policyNamespaces are those of the policies that a node's stanza names.
func policyNamespaces(in plan.Intent) []string {
	var out []string
	for _, ref := range in.Stanza.Policies {
		out = append(out, ref.Namespace)
	}
	return out
}

// policyZone is the zone in which people think of a policy's windows.
func policyZone(spec plan.PolicySpec, user string) string {
	if spec.MaintenanceSchedule == nil {
		return user
	}
	if zone := spec.MaintenanceSchedule.Timezone; zone != "" {
		return zone
	}
	return "UTC"
}

// subject finds the plan or policy in files that is meant: the one of that name,
// or else the only plan, or else the only policy. user is the zone of whoever asks.
func (w world) subject(name, user string) (subject, error) {
	var plans, policies []subject
	for _, p := range w.plans {
		if s := newSubject(annotations.KindPlan, p.namespace, p.name, zoneOf(p.spec, user), w.book, p.question()); name == "" || p.name == bareName(name) {
			s.pauses = []plan.Switch{p.intent.Pause, w.pauses[p.namespace]}
			plans = append(plans, s)
		}
	}
	for _, p := range w.policies {
		if name == "" || p.Name == strings.TrimPrefix(name, "policy/") {
			policies = append(policies, newSubject(annotations.KindPolicy, p.Namespace, p.Name, policyZone(p.Spec, user), w.book, plan.Question{}))
		}
	}
	for _, found := range [][]subject{plans, policies} {
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			return subject{}, exit(CodeUsage, "the files hold %s: name one (%s)", counted(len(found), found[0].kind), names(found))
		}
	}
	if name != "" {
		return subject{}, fmt.Errorf("the files hold no plan or policy %q", name)
	}
	return subject{}, fmt.Errorf("the files hold neither a plan nor a policy")
}

func names(list []subject) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.name
	}
	return strings.Join(out, ", ")
}

// offlineAgent is the namespace of the agent where no cluster is asked.
func (c *cli) offlineAgent() string {
	if c.agentNamespace != "" {
		return c.agentNamespace
	}
	return annotations.DefaultNamespace
}

// offlineNamespace is that of documents in files that name none.
func (c *cli) offlineNamespace() string {
	if n := *c.config.Namespace; n != "" {
		return n
	}
	return "default"
}
