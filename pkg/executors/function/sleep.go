package function

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Sleeps has a function put resources to sleep that no executor here knows. The function is called
// with credentials that the plan's account may read, and sees what it requires as that account
// does; nothing that it desires is applied.
type Sleeps struct {
	Answers *Answers // nil: no limit
}

// Values of input.operation.
const (
	askValidate = "validate"
	askObserve  = "observe"
)

// Validate asks the function to check its input: a fatal result is a fault.
func (s Sleeps) Validate(ctx context.Context, call executors.SleepCall) error {
	_, err := s.ask(ctx, call, askValidate, map[string]any{"now": stamp(call.Now)})
	return err
}

// Observe asks the function for the state of its resources.
func (s Sleeps) Observe(ctx context.Context, call executors.SleepCall) ([]hibernate.Observation, error) {
	recorded := make([]any, 0, len(call.Recorded))
	for _, r := range call.Recorded {
		one, err := handed(r)
		if err != nil {
			return nil, err
		}
		recorded = append(recorded, one)
	}
	// The instant makes each request a new one: a cached answer would be useless.
	said, err := s.ask(ctx, call, askObserve, map[string]any{"now": stamp(call.Now), "for": string(call.Operation), "resources": recorded})
	if err != nil {
		return nil, err
	}
	return said.observations(call.Recorded)
}

// Shutdown has the function put resources to sleep.
func (s Sleeps) Shutdown(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	return s.effect(ctx, call, hibernate.Shutdown, due)
}

// Wake has the function wake resources.
func (s Sleeps) Wake(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	return s.effect(ctx, call, hibernate.Wake, due)
}

// effect asks for all resources that are due.
func (s Sleeps) effect(ctx context.Context, call executors.SleepCall, op hibernate.Operation, due []hibernate.Due) []executors.SleepResult {
	all := func(err error) []executors.SleepResult { return []executors.SleepResult{{Err: err}} }
	if len(due) == 0 || call.DryRun {
		return nil
	}
	resources := make([]any, 0, len(due))
	for _, d := range due {
		one, err := handed(d.Resource)
		if err != nil {
			return all(err)
		}
		one["state"] = stateOf(d.Seen)
		resources = append(resources, one)
	}
	if call.Clients.Fence != nil {
		if err := call.Clients.Fence(); err != nil {
			return all(err)
		}
	}
	said, err := s.ask(ctx, call, string(op), map[string]any{"key": keyOf(call, due), "resources": resources})
	if err != nil {
		return all(err)
	}
	return said.results(due)
}

// keyOf is the idempotency key of a request: the same after a lost reply or a crash, another one
// after a failed attempt or a revival. It does not depend on the order of resources, which may
// differ each time.
func keyOf(call executors.SleepCall, due []hibernate.Due) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s/%s/%s/%s/%s/%s/%d", call.Plan.Namespace, call.Plan.Name, call.Cycle, call.Target, call.Operation, stamp(call.StartedAt), call.Failures)
	inOrder := slices.SortedFunc(slices.Values(due), func(a, b hibernate.Due) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.UID, b.UID))
	})
	for _, d := range inOrder {
		fmt.Fprintf(sum, "\x00%s\x00%s\x00%d\x00%s", d.ID, d.UID, d.Revived, stamp(d.CapturedAt))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// ask calls the function, up to MaxRounds times, and reads its answer.
func (s Sleeps) ask(ctx context.Context, call executors.SleepCall, operation string, about map[string]any) (*sleepAnswer, error) {
	p, ok := call.Params.(*hibernate.FunctionParameters)
	if !ok {
		return nil, fmt.Errorf("the parameters are %T", call.Params)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	maps.Copy(about, map[string]any{"plan": call.Plan.Name, "namespace": call.Plan.Namespace, "target": call.Target, "cycle": call.Cycle})
	input := maps.Clone(p.Input)
	if input == nil {
		input = map[string]any{}
	}
	input["operation"], input["hibernation"] = operation, about
	props := &plan.FunctionProperties{Endpoint: p.Endpoint, Input: input, Credentials: p.Credentials, TLS: p.TLS}
	c := &conversation{props: props, call: executors.Call{
		Run: call.Cycle, Plan: call.Plan, Path: call.Target + "/" + operation, Attempt: call.Failures + 1,
		Properties: props, Now: call.Now, Clients: call.Clients,
	}, room: s.Answers.open(call.Plan.Namespace)}
	defer c.room.close()
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	said, err := c.aboutSleep(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", operation, document.Cut(c.mask.Text(err.Error()), document.MaxMessage))
	}
	return said, nil
}

// aboutSleep runs the whole conversation, and reads the answer.
func (c *conversation) aboutSleep(ctx context.Context) (*sleepAnswer, error) {
	response, err := c.answered(ctx)
	if err != nil {
		return nil, err
	}
	if a := c.read(response); a.fatal != "" {
		return nil, fmt.Errorf("%s failed: %s", c, a.fatal)
	}
	if d := response.GetDesired(); len(d.GetResources()) > 0 || d.GetComposite().GetResource() != nil {
		return nil, api.Refuse(executors.ReasonInvalid, "%s desires objects, which are not applied for a target of a HibernatePlan: it has to change by itself what it puts to sleep", c)
	}
	return c.sleepAnswer(response.GetOutput())
}
