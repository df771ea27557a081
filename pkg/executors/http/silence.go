package http

import (
	"context"
	"encoding/json"
	"fmt"
	nethttp "net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

const (
	// silenceLease is for how long alerts stay silenced when nobody renews (a guess: long enough
	// for a restart of the agent, short enough that a dead agent does not hide alerts for long).
	silenceLease = 10 * time.Minute
	// silenceRetry is the pause between two attempts to renew.
	silenceRetry = 30 * time.Second
	// silenceTimeout is the limit for one request.
	silenceTimeout = 20 * time.Second
	// silenceAuthor is the author of the silence for Alertmanager.
	silenceAuthor = "kubectl-maint"
)

// Silence executes the step type silence. It needs get on the Secrets of its headers, as the plan's
// account. The silence is a lease that expires by itself, even when the agent dies. A silence whose
// creation was not recorded is found by the key in its comment.
type Silence struct{}

// Pass makes sure that the silence is there.
func (Silence) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	s, err := newSilencer(ctx, call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if call.DryRun {
		return executors.Outcome{State: executors.Done, Message: "dry run: would silence " + s.matches() + "; nothing was sent"}
	}
	return s.keep(ctx, call)
}

// Keep renews the silence when half of its time is over.
func (Silence) Keep(ctx context.Context, call executors.Call) executors.Outcome {
	s, err := newSilencer(ctx, call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if call.DryRun {
		return executors.Outcome{State: executors.Done, Message: "dry run: nothing to renew"}
	}
	out := s.keep(ctx, call)
	if out.State == executors.Failed && out.WakeAt.IsZero() {
		out.WakeAt = call.Now.Add(silenceRetry)
	}
	return out
}

// Release expires the silence. One that is gone already is released.
func (Silence) Release(ctx context.Context, call executors.Call) executors.Outcome {
	s, err := newSilencer(ctx, call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if call.DryRun {
		return executors.Outcome{State: executors.Done, Message: "dry run: nothing to release"}
	}
	held, ended := s.held(ctx, call)
	if ended != nil {
		return *ended
	}
	if held.ID == "" {
		return executors.Outcome{State: executors.Done, Message: "no silence is left to release"}
	}
	return s.release(ctx, call, held.ID)
}

// silencer is Alertmanager, and the silence that this step wants.
type silencer struct {
	*service
	p *plan.SilenceProperties
}

func newSilencer(ctx context.Context, call executors.Call) (silencer, error) {
	p, err := api.PropertiesAs[plan.SilenceProperties](call)
	if err != nil {
		return silencer{}, err
	}
	if call.DryRun { // a dry run reads no Secret
		_, err := parseURL("alertmanager", p.Alertmanager)
		return silencer{p: p}, err
	}
	s, err := newService(ctx, call, "alertmanager", p.Alertmanager, p.Headers)
	return silencer{service: s, p: p}, err
}

// silenceMemory is the silence that the step owns.
type silenceMemory struct {
	ID       string    `json:"id"`
	StartsAt time.Time `json:"startsAt"`
	EndsAt   time.Time `json:"endsAt"`
}

// silence is what Alertmanager's API v2 gives and takes.
type silence struct {
	ID        string    `json:"id,omitempty"`
	Matchers  []matcher `json:"matchers"`
	StartsAt  time.Time `json:"startsAt"`
	EndsAt    time.Time `json:"endsAt"`
	CreatedBy string    `json:"createdBy"`
	Comment   string    `json:"comment"`
	Status    *struct {
		State string `json:"state"`
	} `json:"status,omitempty"`
}

// matcher is one with all its fields: Alertmanager requires each of them.
type matcher struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	IsRegex bool   `json:"isRegex"`
	IsEqual bool   `json:"isEqual"`
}

func (s silence) lives() bool { return s.Status != nil && s.Status.State != "expired" }

// keep finds or makes the silence, and renews it when that is due.
func (s silencer) keep(ctx context.Context, call executors.Call) executors.Outcome {
	held, ended := s.held(ctx, call)
	if ended != nil {
		return *ended
	}
	if held.ID == "" || !call.Now.Before(due(held)) {
		if held, ended = s.post(ctx, call, held); ended != nil {
			return *ended
		}
	}
	out := executors.Outcome{
		State: executors.Done, Message: "silenced " + s.matches() + " until " + held.EndsAt.Format(time.RFC3339) + ", renewed while the run lives",
		WakeAt: due(held), Outputs: map[string]any{"silenceID": held.ID},
	}
	if was, known := recall[silenceMemory](call.Recorded.Memory); !known || was != held {
		out.Memory = remember(held)
	}
	return out
}

func due(held silenceMemory) time.Time { return held.EndsAt.Add(-silenceLease / 2) }

// held is the remembered silence, or the one that is found by its key when its creation was not
// recorded.
func (s silencer) held(ctx context.Context, call executors.Call) (silenceMemory, *executors.Outcome) {
	if held, known := recall[silenceMemory](call.Recorded.Memory); known && held.ID != "" {
		return held, nil
	}
	a, ended := s.request(ctx, call, question{method: nethttp.MethodGet, path: "/api/v2/silences", query: url.Values{"filter": s.filter()}})
	switch {
	case ended != nil:
		return silenceMemory{}, ended
	case a.tooLong, values(a.body) > MaxValues: // at worst a second silence, which expires by itself
		return silenceMemory{}, nil
	case a.status != nethttp.StatusOK:
		return silenceMemory{}, refused(call, a)
	}
	var all []silence
	if err := json.Unmarshal(a.body, &all); err != nil {
		return silenceMemory{}, garbled(a)
	}
	for _, one := range all {
		if one.ID != "" && one.lives() && one.CreatedBy == silenceAuthor && strings.HasSuffix(one.Comment, signature(call)) {
			return silenceMemory{ID: one.ID, StartsAt: one.StartsAt.UTC(), EndsAt: one.EndsAt.UTC()}, nil
		}
	}
	return silenceMemory{}, nil
}

// filter selects the silences with our matchers, in Alertmanager's syntax: name=~"value".
func (s silencer) filter() []string {
	out := make([]string, len(s.p.Matchers))
	for i, m := range s.p.Matchers {
		value := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(m.Value)
		out[i] = m.Name + operator(m) + `"` + value + `"`
	}
	return out
}

func operator(m plan.SilenceMatcher) string {
	switch {
	case m.IsRegex && unequal(m):
		return "!~"
	case m.IsRegex:
		return "=~"
	case unequal(m):
		return "!="
	}
	return "="
}

func unequal(m plan.SilenceMatcher) bool { return m.IsEqual != nil && !*m.IsEqual }

func (s silencer) matches() string { return "{" + strings.Join(s.filter(), ", ") + "}" }

// signature is the end of each comment: whom the silence is for, and the key that finds it again.
func signature(call executors.Call) string {
	return fmt.Sprintf("plan %s/%s, run %s [%s]", call.Plan.Namespace, call.Plan.Name, call.Run, call.IdempotencyKey())
}

// post makes the silence or prolongs ours. Alertmanager may answer with another id, which is ours
// from then on.
func (s silencer) post(ctx context.Context, call executors.Call, held silenceMemory) (silenceMemory, *executors.Outcome) {
	if held.ID == "" {
		held.StartsAt = call.Now.UTC().Truncate(time.Millisecond) // in Alertmanager's precision
	}
	held.EndsAt = call.Now.Add(silenceLease).UTC().Truncate(time.Millisecond)
	a, ended := s.request(ctx, call, question{
		method: nethttp.MethodPost, path: "/api/v2/silences", kind: "application/json", body: s.body(call, held),
	})
	switch {
	case ended != nil:
		return held, ended
	case a.status == nethttp.StatusNotFound && held.ID != "": // Alertmanager has forgotten it: make a new one
		return s.post(ctx, call, silenceMemory{})
	case a.status != nethttp.StatusOK:
		return held, refused(call, a)
	}
	var made struct {
		SilenceID string `json:"silenceID"`
	}
	if json.Unmarshal(a.body, &made) != nil || made.SilenceID == "" || len(made.SilenceID) > 128 {
		return held, garbled(a)
	}
	held.ID = made.SilenceID
	return held, nil
}

func (s silencer) body(call executors.Call, held silenceMemory) []byte {
	out := silence{ID: held.ID, StartsAt: held.StartsAt, EndsAt: held.EndsAt, CreatedBy: silenceAuthor, Comment: signature(call)}
	if s.p.Comment != "" {
		out.Comment = s.p.Comment + " — " + out.Comment
	}
	for _, m := range s.p.Matchers {
		out.Matchers = append(out.Matchers, matcher{m.Name, m.Value, m.IsRegex, !unequal(m)})
	}
	return remember(out)
}

// release expires a silence. Alertmanager answers 500 for one that has expired already, so the
// silence is read then.
func (s silencer) release(ctx context.Context, call executors.Call, id string) executors.Outcome {
	one := "/api/v2/silence/" + url.PathEscape(id)
	a, ended := s.request(ctx, call, question{method: nethttp.MethodDelete, path: one})
	switch {
	case ended != nil:
		return *ended
	case a.status == nethttp.StatusOK:
		return executors.Outcome{State: executors.Done, Message: "the silence of " + s.matches() + " is over"}
	case a.status != nethttp.StatusNotFound && !s.expired(ctx, call, one):
		return *refused(call, a)
	}
	return executors.Outcome{State: executors.Done, Message: "the silence of " + s.matches() + " was over already"}
}

func (s silencer) expired(ctx context.Context, call executors.Call, path string) bool {
	a, ended := s.request(ctx, call, question{method: nethttp.MethodGet, path: path})
	if ended != nil {
		return false
	}
	var one silence
	return a.status == nethttp.StatusNotFound || a.status == nethttp.StatusOK && json.Unmarshal(a.body, &one) == nil && one.Status != nil && !one.lives()
}

// request makes one request. Without an answer the attempt has failed.
func (s silencer) request(ctx context.Context, call executors.Call, q question) (answer, *executors.Outcome) {
	limit, cancel := context.WithTimeout(ctx, silenceTimeout)
	defer cancel()
	a, err := s.ask(limit, call, q)
	if err == nil {
		return a, nil
	}
	out, is := refusal(a.what, err)
	switch {
	case is:
	case ctx.Err() != nil:
		out = api.Again(call, "Interrupted", "%s: interrupted before its answer", a.what)
	default:
		out = executors.Fail("Network", "%s: %s", a.what, s.why(err))
	}
	return a, &out
}

// refused is the outcome of an answer that is no success.
func refused(call executors.Call, a answer) *executors.Outcome {
	out := a.after(call, executors.Refuse("Status", "%s", a.says()))
	out.Permanent = !mayMend(a.status)
	return &out
}

// garbled is the outcome of an answer that is not Alertmanager's.
func garbled(a answer) *executors.Outcome {
	out := executors.Fail("BadAnswer", "%s, which is no answer of Alertmanager's API v2; is the URL right?", document.Cut(a.says(), document.MaxMessage-80))
	return &out
}
