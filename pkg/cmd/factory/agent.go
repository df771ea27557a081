package factory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
)

// AgentState is what the heartbeat says about the agent.
type AgentState struct {
	Namespace string    `json:"namespace"`
	Version   string    `json:"version"`
	Identity  string    `json:"identity,omitempty"`
	Pod       string    `json:"pod,omitempty"`
	Heartbeat time.Time `json:"heartbeat"`
	Missing   string    // why there is none that could be counted on
}

// staleAfter is how old a heartbeat may be: the leader writes one every 30 s.
const staleAfter = 90 * time.Second

// errUnknownAgent says that whether an agent runs could not be found out.
var errUnknownAgent = errors.New("could not look whether the agent runs") //nolint:gochecknoglobals // a sentinel for errors.Is

// Agent reads the heartbeat, from the namespace that was named, from the usual
// one, or from wherever one is found.
func (c *Factory) Agent(ctx context.Context, k *Cluster) (AgentState, error) {
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
		case len(beats) == 1:
			return c.readBeat(&beats[0]), nil
		case len(beats) > 1: // anybody may write one: which is meant is for the user to say
			state.Missing = fmt.Sprintf("agents show themselves in namespaces %s: name yours with --agent-namespace", namespacesOf(beats))
		}
	}
	return state, err
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
		return AgentState{Namespace: namespace, Missing: fmt.Sprintf("no agent runs in namespace %s: install it with %s", namespace, c.Suggest().Install())}, nil
	case err != nil:
		return AgentState{Namespace: namespace}, fmt.Errorf("%w: %w", errUnknownAgent, err)
	}
	return c.readBeat(cm), nil
}

func (c *Factory) readBeat(cm *corev1.ConfigMap) AgentState {
	s := AgentState{Namespace: cm.Namespace, Version: cm.Data["version"], Identity: cm.Data["identity"], Pod: cm.Data["pod"]}
	at, err := time.Parse(time.RFC3339, cm.Data["heartbeat"])
	if err != nil {
		s.Missing = fmt.Sprintf("the heartbeat of the agent in namespace %s cannot be read", cm.Namespace)
		return s
	}
	if at.After(c.Now().Add(staleAfter)) {
		s.Missing = fmt.Sprintf("the heartbeat of the agent in namespace %s is of a time to come (%s): it is not the agent's, or its clock is wrong", cm.Namespace, at.UTC().Format(time.RFC3339))
		return s
	}
	s.Heartbeat = at
	if age := c.Now().Sub(at); age > staleAfter {
		s.Missing = fmt.Sprintf("the agent in namespace %s last showed itself %s ago (%s): see 'kubectl -n %s get pods'", cm.Namespace, age.Round(time.Second), at.UTC().Format(time.RFC3339), cm.Namespace)
	}
	return s
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
