package rds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Shutdown stops databases that are available, after their snapshot if one was asked for. A
// database in transition is waited for.
func (s Sleeps) Shutdown(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	return s.each(ctx, call, due, func(k kind, d hibernate.Due) error {
		if !d.Seen.Awake {
			return nil
		}
		var was before
		if err := json.Unmarshal(d.Before, &was); err != nil {
			return fmt.Errorf("the restore data of %s: %w", d.ID, err)
		}
		var stale error
		if was.Snapshot != "" {
			there, err := k.snapshot(ctx, call, was.Snapshot)
			if err != nil || !there {
				return effect.Only(err)
			}
			stale = k.prune(ctx, call)
		}
		return errors.Join(effect.Only(k.stop(ctx, call)), stale)
	})
}

// Wake starts databases that are stopped. One that fell back is started again and reported as a
// failure.
func (s Sleeps) Wake(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	return s.each(ctx, call, due, func(k kind, d hibernate.Due) error {
		switch {
		case d.Seen.Asleep && d.FellBack:
			return errors.Join(k.start(ctx, call), fmt.Errorf("%s was started and is stopped again; an encrypted database does that where its key may not be used: look at the key's state and grants", d.ID))
		case d.Seen.Asleep:
			return k.start(ctx, call)
		case broken(d.Seen.Version):
			return fmt.Errorf("%s does not come up: its status is %s", d.ID, d.Seen.Version)
		}
		return nil
	})
}

// each does something to one database after the other.
func (s Sleeps) each(ctx context.Context, call executors.SleepCall, due []hibernate.Due, do func(k kind, d hibernate.Due) error) []executors.SleepResult {
	if len(due) == 0 {
		return nil
	}
	api, err := s.Open(ctx, call)
	if err != nil {
		return executors.NotBegun(err)
	}
	return effect.Each(ctx, due, func(d hibernate.Due) error {
		k, err := kindOf(api, d.ID)
		if err != nil {
			return err
		}
		return do(k, d)
	})
}

// kind is a database with the requests of its kind: RDS has two sets of the same requests.
type kind struct {
	calls
	api API
	id  string
}

func kindOf(api API, id string) (kind, error) {
	if name, ok := strings.CutPrefix(id, ofInstance); ok {
		return kind{instance{api, name}, api, id}, nil
	}
	if name, ok := strings.CutPrefix(id, ofCluster); ok {
		return kind{cluster{api, name}, api, id}, nil
	}
	return kind{}, fmt.Errorf("the restore data names %q, which is no database", id)
}

func (k kind) stop(ctx context.Context, call executors.SleepCall) error {
	err := effect.One(ctx, call, k.askStop)
	return k.unless(ctx, effect.Result(k.id, "stop", err).Err, statusStopping, statusStopped)
}

func (k kind) start(ctx context.Context, call executors.SleepCall) error {
	err := effect.One(ctx, call, k.askStart)
	return k.unless(ctx, effect.Result(k.id, "start", err).Err, statusStarting, statusAvailable)
}

// unless ignores a refusal where the database is in transition already: the reply to an earlier
// request was lost.
func (k kind) unless(ctx context.Context, refused error, statuses ...string) error {
	if refused == nil || !strings.HasPrefix(effect.Code(refused), "InvalidDB") {
		return refused
	}
	status, err := k.status(ctx)
	if err != nil {
		return refused
	}
	for _, s := range statuses {
		if status == s {
			return nil
		}
	}
	return refused
}
