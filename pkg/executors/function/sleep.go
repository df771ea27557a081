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

// Sleeps has a function put to sleep what nothing here knows. The function is called with
// the credentials that the plan's account may read, and gets what it requires as that
// account sees it; nothing that it says is applied.
type Sleeps struct{}

// What the function is asked, in input.operation.
const (
	askValidate = "validate"
	askObserve  = "observe"
)

// Validate has the function say what is wrong with its input: a fatal result does.
func (Sleeps) Validate(ctx context.Context, call executors.SleepCall) error {
	_, err := ask(ctx, call, askValidate, map[string]any{"now": stamp(call.Now)})
	return err
}

// Observe has the function say how its resources are.
func (Sleeps) Observe(ctx context.Context, call executors.SleepCall) ([]hibernate.Observation, error) {
	recorded := make([]any, 0, len(call.Recorded))
	for _, r := range call.Recorded {
		one, err := handed(r)
		if err != nil {
			return nil, err
		}
		recorded = append(recorded, one)
	}
	// The instant makes it another question each time: an answer that was kept is none.
	said, err := ask(ctx, call, askObserve, map[string]any{"now": stamp(call.Now), "for": string(call.Operation), "resources": recorded})
	if err != nil {
		return nil, err
	}
	return said.observations(call.Recorded)
}

// Shutdown has the function put resources to sleep.
func (Sleeps) Shutdown(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	return effect(ctx, call, hibernate.Shutdown, due)
}

// Wake has the function wake resources.
func (Sleeps) Wake(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	return effect(ctx, call, hibernate.Wake, due)
}

// effect asks for all that is due at once.
func effect(ctx context.Context, call executors.SleepCall, op hibernate.Operation, due []hibernate.Due) []executors.SleepResult {
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
	said, err := ask(ctx, call, string(op), map[string]any{"key": keyOf(call, due), "resources": resources})
	if err != nil {
		return all(err)
	}
	return said.results(due)
}

// keyOf names what is asked for: the same after a lost answer and a crash, another one once
// an attempt has failed or something was put back. A function may tell of its resources in
// another order each time.
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

// ask calls the function once, as often as it requires more, and reads what it says.
func ask(ctx context.Context, call executors.SleepCall, operation string, about map[string]any) (*sleepAnswer, error) {
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
	c, err := newConversation(ctx, executors.Call{
		Run: call.Cycle, Plan: call.Plan, Path: call.Target + "/" + operation, Attempt: call.Failures + 1,
		Properties: props, Now: call.Now, Clients: call.Clients,
	}, props)
	if err != nil {
		return nil, err
	}
	said, err := c.answered(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", operation, document.Cut(c.mask.Text(err.Error()), document.MaxMessage))
	}
	return said, nil
}

// answered is the whole conversation.
func (c *conversation) answered(ctx context.Context) (*sleepAnswer, error) {
	line, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer line.close()
	response, err := c.ask(ctx, line)
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
