package factory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// AgentState is the state of the agent, by its heartbeat or its Lease.
type AgentState = view.Agent

// staleAfter is how old a heartbeat may be: the leader writes one every 5 s, and another leads within 15 s.
const staleAfter = 30 * time.Second

// agentWithin is how long reading the heartbeat may take (a guess): a view that waits for it shows
// nothing else meanwhile.
const agentWithin = 10 * time.Second

// errUnknownAgent says that it is not known whether an agent runs.
var errUnknownAgent = errors.New("could not look whether the agent runs") //nolint:gochecknoglobals // a sentinel for errors.Is

// Agent reads the heartbeat: from the namespace that was named, from the default one, or from
// wherever there is one. It waits at most agentWithin.
func (c *Factory) Agent(ctx context.Context, k *Cluster) (AgentState, error) {
	ctx, cancel := context.WithTimeout(ctx, agentWithin)
	defer cancel()
	if c.AgentNamespace != "" {
		return c.agentIn(ctx, k, c.AgentNamespace)
	}
	state, err := c.agentIn(ctx, k, annotations.DefaultNamespace)
	if err == nil && state.Heartbeat.IsZero() {
		found, listErr := k.ConfigMaps("").List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindHeartbeat, FieldSelector: "metadata.name=" + annotations.HeartbeatName})
		if listErr != nil { // forbidden: then only the default namespace counts
			return state, err
		}
		isAgent, told := k.confined(ctx)
		beats := slices.DeleteFunc(found.Items, func(cm corev1.ConfigMap) bool {
			return cm.Name != annotations.HeartbeatName || !isAgent(cm.Namespace) || !told && !c.leads(ctx, k, cm)
		})
		switch {
		case len(beats) == 0:
			if elsewhere := k.podsIn(ctx, isAgent); elsewhere != "" && elsewhere != state.Namespace {
				why, _ := k.silentAgent(ctx, elsewhere)
				return AgentState{Namespace: elsewhere, Missing: fmt.Sprintf("the agent that is installed in namespace %s has not run yet: %s", elsewhere, why)}, nil
			}
		case len(beats) == 1:
			return c.readHeartbeat(ctx, k, &beats[0]), nil
		case len(beats) > 1: // the user has to choose
			state.Absent, state.Missing = false, fmt.Sprintf("there are agents in namespaces %s: choose one with --agent-namespace", namespacesOf(beats))
		}
	}
	return state, err
}

// confined says of a namespace whether the policy that confines agents names its agent: whoever may write
// in a namespace can make a heartbeat or a pod. Where that policy cannot be read (told is false), each may
// have one.
func (k *Cluster) confined(ctx context.Context) (isAgent func(namespace string) bool, told bool) {
	confines, err := k.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, annotations.AgentPolicy, metav1.GetOptions{})
	if err != nil {
		return func(string) bool { return true }, false
	}
	agents := annotations.AgentsNamed(confines.Spec)
	return func(namespace string) bool { return slices.Contains(agents, namespace) }, true
}

// Agents are the namespaces with a Deployment of the agent's name, which anybody may have made there.
func (k *Cluster) Agents(ctx context.Context) ([]string, error) {
	list, err := k.Kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: annotations.AgentPods})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, d := range list.Items {
		if d.Name == annotations.AgentName {
			out = append(out, d.Namespace)
		}
	}
	return out, nil
}

// OtherAgents are the other namespaces with such a Deployment whose agent a policy of the cluster
// names; none where that may not be read.
func (k *Cluster) OtherAgents(ctx context.Context, namespace string) []string {
	all, err := k.Agents(ctx)
	policies, unread := k.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, metav1.ListOptions{})
	if err != nil || unread != nil {
		return nil
	}
	named := annotations.AgentsNamed(policies.Items)
	return slices.DeleteFunc(all, func(other string) bool { return other == namespace || !slices.Contains(named, other) })
}

// podsIn is the only namespace with pods of an agent; empty: there are none, or in several.
func (k *Cluster) podsIn(ctx context.Context, isAgent func(namespace string) bool) string {
	list, err := k.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: annotations.AgentPods, Limit: 500})
	if err != nil {
		return ""
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !isAgent(p.Namespace) })
	if len(pods) == 0 || slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Namespace != pods[0].Namespace }) {
		return ""
	}
	return pods[0].Namespace
}

func namespacesOf(beats []corev1.ConfigMap) string {
	var names []string
	for _, cm := range beats {
		names = append(names, cm.Namespace)
	}
	slices.Sort(names)
	return strings.Join(names, " and ")
}

func (c *Factory) agentIn(ctx context.Context, k *Cluster, namespace string) (AgentState, error) {
	cm, err := k.ConfigMaps(namespace).Get(ctx, annotations.HeartbeatName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		s := AgentState{Namespace: namespace, Absent: true, Missing: fmt.Sprintf("no agent runs in namespace %s: install it with %s", namespace, c.Suggest().Install())}
		if why, installed := k.silentAgent(ctx, namespace); installed {
			s.Absent, s.Missing = false, fmt.Sprintf("the agent in namespace %s is installed, but sends no heartbeat: %s", namespace, why)
		}
		return c.byLease(ctx, k, s), nil
	case err != nil:
		return AgentState{Namespace: namespace}, fmt.Errorf("%w: %w", errUnknownAgent, err)
	}
	return c.readHeartbeat(ctx, k, cm), nil
}

func (c *Factory) readHeartbeat(ctx context.Context, k *Cluster, cm *corev1.ConfigMap) AgentState {
	s := AgentState{Namespace: cm.Namespace, Version: cm.Data["version"], Identity: cm.Data["identity"], Pod: cm.Data["pod"], Key: cm.Data[annotations.HeartbeatKey], Unconfigured: remedy.Unconfigured(c.Suggest(), cm.Namespace, cm.Data[annotations.HeartbeatConfiguration])}
	now := c.Now().Add(k.Skew())
	at, err := time.Parse(time.RFC3339, cm.Data["heartbeat"])
	if err != nil {
		s.Missing = fmt.Sprintf("the heartbeat of the agent in namespace %s cannot be read", cm.Namespace)
		return s
	}
	if at.After(now.Add(view.AheadBy)) {
		s.Missing = fmt.Sprintf("the heartbeat of the agent in namespace %s is in the future (%s): it is not the agent's, or its clock is wrong", cm.Namespace, instant.Local(at, c.Zone))
		return s
	}
	s.Heartbeat = at
	// While the API server did not answer, no agent could write a heartbeat.
	if age := now.Sub(at); min(age, k.server().Answering()) > staleAfter {
		s.Missing = c.silence(ctx, k, s, age)
	} else if s.Watches = cm.Data[annotations.HeartbeatWatches]; s.Watches != "" {
		s.Widened = c.Suggest().InstallWith(s.Namespace, "--single-namespace=false")
	}
	return s.In(k.Namespace)
}

// silence says since when an agent is silent, and why as far as that is known.
func (c *Factory) silence(ctx context.Context, k *Cluster, s AgentState, age time.Duration) string {
	why, _ := k.silentAgent(ctx, s.Namespace)
	return fmt.Sprintf("the agent in namespace %s was last seen %s ago (%s): %s", s.Namespace, age.Round(time.Second), instant.Local(s.Heartbeat, c.Zone), why)
}

// SilentEvery is the pause between two reads of the heartbeat while the agent is silent or cannot
// be read: waiting commands notice soon that it is back.
const SilentEvery = 5 * time.Second

// AgentLiveness tracks during a command whether the agent runs, falls silent and comes back.
type AgentLiveness struct {
	c      *Factory
	k      *Cluster
	next   time.Time
	signs  signs
	warned bool // that the API server does not answer

	mu      sync.Mutex // guards what follows
	state   AgentState
	unknown error // why the state is not known
}

// WatchAgent starts with the agent as it was just seen.
func (c *Factory) WatchAgent(k *Cluster) *AgentLiveness {
	return &AgentLiveness{c: c, k: k, next: c.Now().Add(SilentEvery)}
}

// FollowAgent watches the agent until ctx ends, and signals on changed when it falls silent and
// when it is back.
func (c *Factory) FollowAgent(ctx context.Context, k *Cluster, changed chan<- struct{}) *AgentLiveness {
	a := &AgentLiveness{c: c, k: k}
	a.look(ctx)
	go a.follow(ctx, changed)
	return a
}

func (a *AgentLiveness) follow(ctx context.Context, changed chan<- struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		was, unseen := a.State()
		a.look(ctx)
		if is, still := a.State(); (was.Missing == "") == (is.Missing == "") && (unseen == nil) == (still == nil) {
			continue
		}
		select {
		case changed <- struct{}{}:
		default: // a signal is pending already
		}
	}
}

// State is the last known state of the agent, or why it is not known.
func (a *AgentLiveness) State() (AgentState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state, a.unknown
}

// look reads the heartbeat when that may bring news: four times a minute while all is well, twice
// where it may not be read, and more often while the agent misses heartbeats or the API server does
// not answer. A failed read changes nothing.
func (a *AgentLiveness) look(ctx context.Context) AgentState {
	now := a.c.Now()
	if now.Before(a.next) {
		s, _ := a.State()
		return s
	}
	s, err := a.c.Agent(ctx, a.k)
	if err == nil && s.Missing == "" && a.k.server().Answering() > staleAfter && a.signs.gone(ctx, a.k, s, now) {
		s.Missing = a.c.silence(ctx, a.k, s, now.Add(a.k.Skew()).Sub(s.Heartbeat))
	}
	switch beat := s.Heartbeat.Add(view.HeldFor + time.Second - a.k.Skew()); {
	case apierrors.IsForbidden(err): // that will not change
		a.next = now.Add(staleAfter)
	case err != nil, s.Missing != "", !beat.After(now): // one lost request says nothing about the agent
		a.next = now.Add(SilentEvery)
	case beat.After(now.Add(view.HeldFor)): // its clock is ahead
		a.next = now.Add(view.HeldFor)
	default:
		a.next = beat
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil || a.state == (AgentState{}) {
		a.state, a.unknown = s, err
	}
	return a.state
}

// Check is an error once the agent has been silent for too long; an unknown state is not silence.
// stands says what becomes of the request. It warns of an outage, too: nothing new can be shown then.
func (a *AgentLiveness) Check(ctx context.Context, stands string) error {
	a.WarnOfOutage()
	if s := a.look(ctx); s.Missing != "" {
		return exit.Errorf(exit.CodeNoAgent, "%s; %s", s.Missing, stands)
	}
	return nil
}

// outageAfter is how long the API server has to be silent to count as down: a lost request is not.
const outageAfter = 3 * time.Second

// WarnOfOutage warns on standard error of the beginning and the end of an outage, and says whether one goes on.
func (a *AgentLiveness) WarnOfOutage() bool {
	since, why := a.k.server().Outage()
	switch {
	case why == nil && a.warned:
		a.warned = false
		a.c.Warn(fmt.Sprintf("the API server answers again (%s)", instant.Local(time.Now(), a.c.Zone)))
	case why != nil && !a.warned && time.Since(since) >= outageAfter:
		a.warned = true
		a.c.Warn(fmt.Sprintf("since %s the API server does not answer, and what is shown may be old: %s", instant.Local(since, a.c.Zone), why))
	}
	return a.warned
}

// IsLate says whether the agent has missed several heartbeats: what it leaves undone may be due to
// that. Check reports its silence once that is certain.
func (a *AgentLiveness) IsLate(ctx context.Context) bool {
	s, err := a.c.Agent(ctx, a.k)
	return err == nil && !s.Heartbeat.IsZero() && min(a.c.Now().Add(a.k.Skew()).Sub(s.Heartbeat), a.k.server().Answering()) > staleAfter/2
}

// WarnSilent warns of an agent that has become silent, shows itself in no way that counts, or does nothing
// in some of the namespaces that are meant.
func (c *Factory) WarnSilent(s AgentState) {
	if amiss := s.Amiss(); amiss != "" && !s.Absent {
		c.Warn(amiss)
	}
}

// AgentBeside reads the state of the agent while its caller makes other requests. What it returns
// waits for that, and warns once of a silent agent.
func (c *Factory) AgentBeside(ctx context.Context, k *Cluster) func() (AgentState, error) {
	var state AgentState
	var err error
	read := make(chan struct{})
	go func() {
		defer close(read)
		state, err = c.Agent(ctx, k)
	}()
	return sync.OnceValues(func() (AgentState, error) {
		<-read
		c.WarnSilent(state)
		return state, err
	})
}

// NothingAsked is what follows for a request from NeedAgent.
const NothingAsked = "nothing was asked"

// NeedAgent refuses to continue where no agent would act on the request, and says what follows from that; empty:
// the caller says it. Where the user may not look, it only warns.
func (c *Factory) NeedAgent(ctx context.Context, k *Cluster, follows string) error {
	s, err := c.Agent(ctx, k)
	switch {
	case errors.Is(err, errUnknownAgent):
		fmt.Fprintf(c.ErrOut, "warning: %v\n", err)
		return nil
	case err != nil:
		return err
	case s.Missing != "":
		return exit.Errorf(exit.CodeNoAgent, "%s%s", s.Missing, view.Prefix("; ", follows))
	}
	return nil
}

// AgentTimeout is how long the agent gets to look at a plan or to handle a token before people are
// told that it does not (a guess: a new leader takes up to 15 s).
const AgentTimeout = 30 * time.Second
