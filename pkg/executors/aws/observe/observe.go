// Package observe is what all observations of resources in AWS have in common: how they begin, and
// which resources they report.
package observe

import (
	"context"
	"fmt"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Lag is for how long after a request AWS may still show the state before it (a guess: AWS promises
// nothing; mostly it is a few seconds).
const Lag = 30 * time.Second

// Open gives the parameters of a target and the client of its account.
func Open[P, A any](ctx context.Context, call executors.SleepCall, open func(context.Context, executors.SleepCall) (A, error)) (*P, A, error) {
	var none A
	p, ok := call.Params.(*P)
	if !ok || p == nil {
		return nil, none, fmt.Errorf("the parameters are %T", call.Params)
	}
	api, err := open(ctx, call)
	if err != nil {
		return nil, none, err
	}
	return p, api, nil
}

// Source finds resources of a kind.
type Source[R any] struct {
	Selected func() ([]R, error)             // those that the target selects now
	Named    func(ids []string) ([]R, error) // those of some ids that exist
	Observed func(R) hibernate.Observation
}

// Resources reports the resources that the target selects now, and all that are recorded. On waking
// nothing is selected: the records say what sleeps.
func Resources[R any](call executors.SleepCall, from Source[R]) ([]hibernate.Observation, error) {
	seen := map[string]bool{}
	var out []hibernate.Observation
	show := func(list []R) {
		for _, r := range list {
			if o := from.Observed(r); !seen[o.ID] {
				seen[o.ID] = true
				o.Lag = Lag
				out = append(out, o)
			}
		}
	}
	if call.Operation != hibernate.Wake {
		list, err := from.Selected()
		if err != nil {
			return nil, err
		}
		show(list)
	}
	if ids := missing(call.Recorded, seen); len(ids) > 0 {
		list, err := from.Named(ids)
		if err != nil {
			return nil, err
		}
		show(list)
	}
	for _, r := range call.Recorded {
		if !seen[r.ID] {
			out = append(out, hibernate.Observation{ID: r.ID, UID: r.UID, Gone: true})
		}
	}
	return out, nil
}

// missing are the recorded resources that were not found.
func missing(recorded []hibernate.Resource, seen map[string]bool) []string {
	var out []string
	for _, r := range recorded {
		if !seen[r.ID] {
			out = append(out, r.ID)
		}
	}
	return out
}
