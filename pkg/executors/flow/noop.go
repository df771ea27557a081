package flow

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Noop is a target that has nothing to put to sleep: for demonstrations and tests, with delays and
// failures if asked for.
type Noop struct{}

// noopResource is what stands for the target's one resource.
const noopResource = "noop"

// Validate finds nothing wrong.
func (Noop) Validate(context.Context, executors.SleepCall) error { return nil }

// Observe reports the requested state once the delay has passed.
func (Noop) Observe(ctx context.Context, call executors.SleepCall) ([]hibernate.Observation, error) {
	p, ok := call.Params.(*hibernate.NoopParameters)
	if !ok {
		return nil, fmt.Errorf("the parameters are %T", call.Params)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	fails := p.FailShutdown
	if call.Operation == hibernate.Wake {
		fails = p.FailWakeUp
	}
	done := !call.StartedAt.IsZero() && failed(call) >= fails && !call.Now.Before(call.StartedAt.Add(p.Delay.Or(0)))
	o := hibernate.Observation{ID: noopResource, UID: noopResource, Before: json.RawMessage(`{}`)}
	known := len(call.Recorded) > 0
	if call.Operation == hibernate.Wake {
		done = done && (!known || call.Recorded[0].WokenAt != nil)
		o.Awake, o.Ready, o.Asleep = done, done, !done
	} else {
		o.Asleep = done && known
		o.Awake = !o.Asleep
	}
	return []hibernate.Observation{o}, nil
}

// Shutdown fails as often as the target asks for.
func (Noop) Shutdown(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	p, _ := call.Params.(*hibernate.NoopParameters)
	return pretend(ctx, due, p != nil && failed(call) < p.FailShutdown)
}

// Wake fails as often as the target asks for.
func (Noop) Wake(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	p, _ := call.Params.(*hibernate.NoopParameters)
	return pretend(ctx, due, p != nil && failed(call) < p.FailWakeUp)
}

// failed is how many passes of the operation have failed, also before somebody had it tried at once.
func failed(call executors.SleepCall) int { return call.AttemptsBefore + call.Failures }

func pretend(ctx context.Context, due []hibernate.Due, fails bool) []executors.SleepResult {
	var out []executors.SleepResult
	for _, d := range due {
		r := executors.SleepResult{ID: d.ID, Err: ctx.Err()}
		if fails {
			r.Err = fmt.Errorf("it was asked to fail")
		}
		out = append(out, r)
	}
	return out
}
