// Package notify holds the executor that sends notifications. It is the only package that knows
// shoutrrr, and with it the protocols of Slack, mail and the others.
package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

const (
	// MaxText is how many bytes of a message are sent, with its title, as services take no more; the rest
	// is cut, with a mark.
	MaxText = 4 << 10
	// maxTitle is as much as mail clients show of a subject.
	maxTitle = 200
)

// Notifier executes the step type notification. It needs no right of the plan's account: sinks
// belong to the agent. Each pass sends to one sink, so that each is recorded before the next; a
// sink gets the message twice only if the agent dies in between. The outbound rules are for plans,
// and do not apply to sinks that an admin configured.
type Notifier struct {
	sender *sender
	quota  *quota
}

// New is a notifier.
func New() Notifier { return Notifier{sender: newSender(), quota: newQuota()} }

// memory is what is already sent.
type memory struct {
	Told    []string          `json:"told,omitempty"`
	Attempt int               `json:"attempt,omitempty"` // the attempt of Failed
	Failed  map[string]string `json:"failed,omitempty"`  // sink to reason
}

// Pass sends to the next sink.
func (n Notifier) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.NotificationProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	m := recall(call)
	names, err := m.meant(call, p.Sinks)
	if err != nil {
		return sinkless(ctx, call, err)
	}
	if call.DryRun {
		return executors.Outcome{State: executors.Done, Message: "dry run: would tell " + strings.Join(names, ", ") + "; nothing was sent"}
	}
	left := m.left(names)
	if len(left) == 0 {
		return m.end(nil)
	}
	urls, err := sinks(ctx, call, left)
	if err != nil {
		return sinkless(ctx, call, err)
	}
	name := left[0]
	if wait := n.wait(call, name); wait > 0 {
		return executors.Outcome{
			State: executors.NotYet, Reason: "Quota", WakeAt: call.Now.Add(wait),
			Message: fmt.Sprintf("sink %s: %s; the next may go in %s", name, sentOf(call), wait.Round(time.Second)),
		}
	}
	switch err := n.sender.send(ctx, call.Clients.Fence, urls[name], messageOf(call, p)); {
	case err != nil && ctx.Err() != nil:
		return api.Again(call, "Interrupted", "sink %s: interrupted before its answer", name)
	case err != nil:
		m.Failed[name] = document.Cut(err.Error(), 300)
	default:
		m.Told = append(m.Told, name)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return executors.Refuse(executors.ReasonInvalid, "sink %s: remember that it was told: %s", name, err)
	}
	if len(left) > 1 {
		return executors.Outcome{State: executors.Record, Memory: b}
	}
	return m.end(b)
}

// wait is how long a message has to wait for its namespace's quota. What the agent itself says of a
// namespace has another one: the steps there must not keep it from anybody, and runs that fail in a loop
// must not flood a sink either. What it says of the cluster has none.
func (n Notifier) wait(call executors.Call, sink string) time.Duration {
	of := call.Plan.Namespace
	if call.Own && of == "" {
		return 0
	}
	if call.Own {
		of = "own/" + of
	}
	return n.quota.take(of, sink, call.Now)
}

// sentOf says what has used up a message's quota.
func sentOf(call executors.Call) string {
	if call.Own {
		return fmt.Sprintf("the agent has sent %d messages about namespace %s", quotaAtOnce, call.Plan.Namespace)
	}
	return fmt.Sprintf("namespace %s has sent %d messages", call.Plan.Namespace, quotaAtOnce)
}

// recall reads what earlier passes did. Failures of another attempt are tried again; what was sent
// is never sent again.
func recall(call executors.Call) memory {
	var m memory
	if json.Unmarshal(call.Recorded.Memory, &m) != nil {
		m = memory{}
	}
	if m.Attempt != call.Attempt || m.Failed == nil {
		m.Attempt, m.Failed = call.Attempt, map[string]string{}
	}
	return m
}

// meant are the sinks of a step. One that names none keeps to the sink that it has tried, whatever
// the configuration says by then: nobody is told twice.
func (m memory) meant(call executors.Call, names []string) ([]string, error) {
	if tried := append(slices.Clone(m.Told), slices.Sorted(maps.Keys(m.Failed))...); len(names) == 0 && len(tried) > 0 {
		return tried, nil
	}
	if len(names) > 0 {
		return names, nil
	}
	if call.Clients.Sinks.Default == nil {
		return nil, errNoSinks
	}
	name, err := call.Clients.Sinks.Default()
	return []string{name}, err
}

// left are the sinks that this attempt has not tried, without duplicates.
func (m memory) left(names []string) []string {
	var out []string
	for _, name := range names {
		if _, failed := m.Failed[name]; !failed && !slices.Contains(m.Told, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// end is the outcome once every sink was tried: a broken one does not keep the others from getting
// the message.
func (m memory) end(b json.RawMessage) executors.Outcome {
	var reasons []string
	for _, name := range slices.Sorted(maps.Keys(m.Failed)) {
		reasons = append(reasons, "sink "+name+": "+m.Failed[name])
	}
	if len(reasons) > 0 {
		out := executors.Fail("Sink", "%s", strings.Join(reasons, "; "))
		out.Memory = b
		return out
	}
	return executors.Outcome{State: executors.Done, Message: "told " + strings.Join(m.Told, ", "), Memory: b}
}

var errNoSinks = errors.New("no sinks are configured") //nolint:gochecknoglobals // a sentinel for errors.Is

// sinks looks up all sinks before the first message: a misspelled name or a missing Secret is
// reported before anything is sent.
func sinks(ctx context.Context, call executors.Call, names []string) (map[string]string, error) {
	if call.Clients.Sinks.URL == nil {
		return nil, errNoSinks
	}
	out := map[string]string{}
	for _, name := range names {
		u, err := call.Clients.Sinks.URL(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("sink %s: %w", name, err)
		}
		out[name] = u
	}
	return out, nil
}

// sinkless is the outcome where a sink has no URL. A fault of the configuration does not go away by
// retrying; an API server that does not answer does.
func sinkless(ctx context.Context, call executors.Call, err error) executors.Outcome {
	var fault *agentconfig.SinkError
	switch {
	case errors.Is(err, errNoSinks):
		return executors.Refuse("NoSinks", "sinks: %s: name them under spec.notifications.sinks of the AgentConfig", err)
	case executors.RefusalOf(err, "") != executors.NotRefused: // the agent itself was refused: an API server that starts refuses everybody
		out := executors.Fail(executors.ReasonForbidden, "sinks: %s", err)
		out.State, out.WakeAt = executors.NotYet, call.Now.Add(api.RetryDelay)
		return out
	case errors.As(err, &fault):
		return executors.Refuse("Sink", "sinks: %s", fault)
	}
	return api.Outcome(ctx, call, err)
}

// message is what a sink is told.
type message struct {
	origin      string // who speaks: the agent, or the plan of a step; no author of a step can choose it
	title, text string
}

// agentOrigin is the origin of the agent's own messages. That of a step has a blank in it.
const agentOrigin = "agent"

// messageOf begins the title of a step's message with its plan: a sink is shared, and a step could
// otherwise say in the agent's words how the plans of others fare. It stands at the head, where
// nothing is cut off.
func messageOf(call executors.Call, p *plan.NotificationProperties) message {
	title := strings.Join(strings.Fields(p.Title), " ") // a line break in the subject of a mail would begin another header
	m := message{origin: agentOrigin}
	if !call.Own {
		m.origin = "plan " + call.Plan.Namespace + "/" + call.Plan.Name
		title = strings.TrimSuffix(m.origin+": "+title, ": ")
	}
	m.title = document.Cut(title, maxTitle)
	m.text = document.Cut(p.Message, MaxText-len(m.title)-1)
	return m
}
