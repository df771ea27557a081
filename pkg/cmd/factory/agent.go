package factory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
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
)

// AgentState is what the heartbeat says about the agent, or its Lease.
type AgentState struct {
	Namespace string    `json:"namespace"`
	Version   string    `json:"version"`
	Identity  string    `json:"identity,omitempty"`
	Pod       string    `json:"pod,omitempty"`
	Heartbeat time.Time `json:"heartbeat"`
	Key       string    `json:"-"` // names the key that it signs with; empty: it has not said
	Missing   string    `json:"-"` // why there is none that could be counted on
}

// Called is the agent's version, which it tells by its first heartbeat.
func (s AgentState) Called() string { return cmp.Or(s.Version, "(version not known yet)") }

// staleAfter is how old a heartbeat may be: the leader writes one every 5 s, and another leads
// within 15 s.
const staleAfter = 30 * time.Second

// agentWithin is how long the heartbeat may take to be read (a guess): a view that waits for it
// would show nothing else meanwhile.
const agentWithin = 10 * time.Second

// errUnknownAgent says that whether an agent runs could not be found out.
var errUnknownAgent = errors.New("could not look whether the agent runs") //nolint:gochecknoglobals // a sentinel for errors.Is

// Agent reads the heartbeat, from the namespace that was named, from the usual
// one, or from wherever one is found.
// A server that does not answer is waited for so long, and no longer.
func (c *Factory) Agent(ctx context.Context, k *Cluster) (AgentState, error) {
	ctx, cancel := context.WithTimeout(ctx, agentWithin)
	defer cancel()
	if c.AgentNamespace != "" {
		return c.agentIn(ctx, k, c.AgentNamespace)
	}
	state, err := c.agentIn(ctx, k, annotations.DefaultNamespace)
	if err == nil && state.Heartbeat.IsZero() {
		found, listErr := k.ConfigMaps("").List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindHeartbeat, FieldSelector: "metadata.name=" + annotations.HeartbeatName})
		if listErr != nil { // forbidden is no news: the usual place had none
			return state, err
		}
		beats := slices.DeleteFunc(found.Items, func(cm corev1.ConfigMap) bool { return cm.Name != annotations.HeartbeatName })
		switch {
		case len(beats) == 0:
			if elsewhere := k.podsIn(ctx); elsewhere != "" && elsewhere != state.Namespace {
				why, _ := k.silentAgent(ctx, elsewhere)
				return AgentState{Namespace: elsewhere, Missing: fmt.Sprintf("the agent that is installed in namespace %s has not run yet: %s", elsewhere, why)}, nil
			}
		case len(beats) == 1:
			return c.readBeat(ctx, k, &beats[0]), nil
		case len(beats) > 1: // anybody may write one: which is meant is for the user to say
			state.Missing = fmt.Sprintf("agents show themselves in namespaces %s: name yours with --agent-namespace", namespacesOf(beats))
		}
	}
	return state, err
}

// Agents are the namespaces with a Deployment of an agent.
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

// OtherAgents are the namespaces, beside the agent's own, with a Deployment of an agent; none
// where they may not be listed.
func (k *Cluster) OtherAgents(ctx context.Context, namespace string) []string {
	all, err := k.Agents(ctx)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(other string) bool { return other == namespace })
}

// AgentsNamed are the namespaces whose agent's ServiceAccount a text names, as often as it does.
func AgentsNamed(text []byte) []string {
	var out []string
	for _, match := range regexp.MustCompile(`system:serviceaccount:([a-z0-9-]+):`+annotations.AgentName+`\b`).FindAllSubmatch(text, -1) {
		out = append(out, string(match[1]))
	}
	return out
}

// podsIn is the only namespace with pods of an agent; empty where there are none, or in
// several, or where that may not be read.
func (k *Cluster) podsIn(ctx context.Context) string {
	list, err := k.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: annotations.AgentPods, Limit: 10})
	if err != nil || len(list.Items) == 0 {
		return ""
	}
	namespace := list.Items[0].Namespace
	if slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return p.Namespace != namespace }) {
		return ""
	}
	return namespace
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
		missing := fmt.Sprintf("no agent runs in namespace %s: install it with %s", namespace, c.Suggest().Install())
		if why, installed := k.silentAgent(ctx, namespace); installed {
			missing = fmt.Sprintf("the agent in namespace %s is installed, but does not show itself: %s", namespace, why)
		}
		return c.byLease(ctx, k, AgentState{Namespace: namespace, Missing: missing}), nil
	case err != nil:
		return AgentState{Namespace: namespace}, fmt.Errorf("%w: %w", errUnknownAgent, err)
	}
	return c.readBeat(ctx, k, cm), nil
}

func (c *Factory) readBeat(ctx context.Context, k *Cluster, cm *corev1.ConfigMap) AgentState {
	s := AgentState{Namespace: cm.Namespace, Version: cm.Data["version"], Identity: cm.Data["identity"], Pod: cm.Data["pod"], Key: cm.Data[annotations.HeartbeatKey]}
	now := c.Now().Add(k.Skew())
	at, err := time.Parse(time.RFC3339, cm.Data["heartbeat"])
	if err != nil {
		s.Missing = fmt.Sprintf("the heartbeat of the agent in namespace %s cannot be read", cm.Namespace)
		return s
	}
	if at.After(now.Add(aheadBy)) {
		s.Missing = fmt.Sprintf("the heartbeat of the agent in namespace %s is in the future (%s): it is not the agent's, or its clock is wrong", cm.Namespace, instant.Local(at, c.Zone))
		return s
	}
	s.Heartbeat = at
	// While the API server did not answer, nobody could write one.
	if age := now.Sub(at); min(age, k.answering()) > staleAfter {
		s.Missing = c.silence(ctx, k, s, age)
	}
	return s
}

// silence says since when an agent has not shown itself, and why as far as that is known.
func (c *Factory) silence(ctx context.Context, k *Cluster, s AgentState, age time.Duration) string {
	why, _ := k.silentAgent(ctx, s.Namespace)
	return fmt.Sprintf("the agent in namespace %s last showed itself %s ago (%s): %s", s.Namespace, age.Round(time.Second), instant.Local(s.Heartbeat, c.Zone), why)
}

// aheadBy is how far the agent's clock may be ahead of the API server's.
const aheadBy = 90 * time.Second

// SilentEvery is how often the heartbeat of a silent agent is read, or one that could not be read:
// who waits for the agent learns soon that it is back.
const SilentEvery = 5 * time.Second

// AgentLiveness knows while a command goes on whether the agent is at work, falls silent and
// comes back.
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

// WatchAgent begins with the agent as it was just seen.
func (c *Factory) WatchAgent(k *Cluster) *AgentLiveness {
	return &AgentLiveness{c: c, k: k, next: c.Now().Add(SilentEvery)}
}

// FollowAgent looks at the agent, and then tells on changed when it falls silent and when it is
// back, until ctx ends.
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
		default: // it is known already that there is news
		}
	}
}

// State is the agent as it was last seen, or why it could not be seen.
func (a *AgentLiveness) State() (AgentState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state, a.unknown
}

// look reads the heartbeat when that may tell something new: four times a minute while all is well,
// twice where it may not be read, and more often while the agent misses beats or the API server
// does not answer. What cannot be read changes nothing that is known.
func (a *AgentLiveness) look(ctx context.Context) AgentState {
	now := a.c.Now()
	if now.Before(a.next) {
		s, _ := a.State()
		return s
	}
	s, err := a.c.Agent(ctx, a.k)
	if err == nil && s.Missing == "" && a.k.answering() > staleAfter && a.signs.gone(ctx, a.k, s, now) {
		s.Missing = a.c.silence(ctx, a.k, s, now.Add(a.k.Skew()).Sub(s.Heartbeat))
	}
	switch beat := s.Heartbeat.Add(heldFor + time.Second - a.k.Skew()); {
	case apierrors.IsForbidden(err): // it stays so
		a.next = now.Add(staleAfter)
	case err != nil, s.Missing != "", !beat.After(now): // one lost request says nothing of the agent
		a.next = now.Add(SilentEvery)
	case beat.After(now.Add(heldFor)): // its clock is ahead
		a.next = now.Add(heldFor)
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

// Check is an error once the agent has been silent for too long; an agent that could not be
// seen is not silent. stands says what becomes of what was asked. It also tells on standard error
// while the API server does not answer: then nothing new can be shown.
func (a *AgentLiveness) Check(ctx context.Context, stands string) error {
	a.warnOfOutage()
	if s := a.look(ctx); s.Missing != "" {
		return exit.Errorf(exit.CodeNoAgent, "%s; %s", s.Missing, stands)
	}
	return nil
}

// outageAfter is how long the API server does not answer before that is an outage: a lost request is
// none.
const outageAfter = 3 * time.Second

func (a *AgentLiveness) warnOfOutage() {
	since, why := a.k.outage()
	switch {
	case why == nil && a.warned:
		a.warned = false
		a.c.Warn(fmt.Sprintf("the API server answers again (%s)", time.Now().Format(time.TimeOnly)))
	case why != nil && !a.warned && time.Since(since) >= outageAfter:
		a.warned = true
		a.c.Warn(fmt.Sprintf("since %s the API server does not answer, and what is shown may be old: %s", since.Format(time.TimeOnly), why))
	}
}

// Falters says whether the agent has missed several beats: what it leaves undone may be its silence
// then, which Check tells as soon as that is sure.
func (a *AgentLiveness) Falters(ctx context.Context) bool {
	s, err := a.c.Agent(ctx, a.k)
	return err == nil && !s.Heartbeat.IsZero() && min(a.c.Now().Add(a.k.Skew()).Sub(s.Heartbeat), a.k.answering()) > staleAfter/2
}

// WarnSilent warns of an agent that was at work and is silent.
func (c *Factory) WarnSilent(s AgentState) {
	if s.Missing != "" && !s.Heartbeat.IsZero() {
		c.Warn(s.Missing)
	}
}

// NeedAgent refuses to go on where nobody would act on what is asked. Whoever
// may not look gets a word of doubt instead.
func (c *Factory) NeedAgent(ctx context.Context, k *Cluster) error {
	s, err := c.Agent(ctx, k)
	switch {
	case errors.Is(err, errUnknownAgent):
		fmt.Fprintf(c.ErrOut, "warning: %v\n", err)
		return nil
	case err != nil:
		return err
	case s.Missing != "":
		return exit.Errorf(exit.CodeNoAgent, "%s", s.Missing)
	}
	return nil
}

// AgentTimeout is how long the agent is given to look at a plan or to handle a
// token before somebody is told that it does not (a guess: a leader changes
// within 15 s).
const AgentTimeout = 30 * time.Second
