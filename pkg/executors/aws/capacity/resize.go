package capacity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Group is a group of instances right before its size is changed.
type Group struct {
	UID string
	Max int32
	Set func(ctx context.Context, d hibernate.Due, to Size) error
}

// Find reads groups by their ids, those that exist.
type Find func(ids []string) ([]Group, error)

// Empty sets the groups that have instances to size zero. Groups that are losing their instances
// already are waited for.
func Empty(ctx context.Context, due []hibernate.Due, find Find) []executors.SleepResult {
	due = slices.DeleteFunc(slices.Clone(due), func(d hibernate.Due) bool { return !d.Seen.Awake })
	return each(ctx, due, find, func(g Group, d hibernate.Due) error { return effect.Only(g.Set(ctx, d, Size{Max: g.Max})) })
}

// Refill sets sleeping groups to their old size, within the present max. Where the max is lower
// than the old size, that is reported once as a failure: after it the group counts as awake.
func Refill(ctx context.Context, due []hibernate.Due, find Find) []executors.SleepResult {
	due = slices.DeleteFunc(slices.Clone(due), func(d hibernate.Due) bool { return d.Seen.Awake || d.Seen.Starting })
	return each(ctx, due, find, func(g Group, d hibernate.Due) error {
		var was Size
		if err := json.Unmarshal(d.Before, &was); err != nil {
			return fmt.Errorf("the restore data of %s: %w", d.ID, err)
		}
		if was.None() || was.Min < 0 || was.Desired < 0 { // the record was edited: a group without instances is never put to sleep
			return fmt.Errorf("the restore data of %s does not say how many instances it had: it has %s", d.ID, was)
		}
		to, why := was.Within(g.Max)
		err := g.Set(ctx, d, to)
		if why != "" {
			err = errors.Join(err, fmt.Errorf("%s: %s", d.ID, why))
		}
		return err
	})
}

// each reads groups again, and calls do for each. A group that is gone, or was replaced by another
// of its name, is left to the next look.
func each(ctx context.Context, due []hibernate.Due, find Find, do func(g Group, d hibernate.Due) error) []executors.SleepResult {
	if len(due) == 0 {
		return nil
	}
	var ids []string
	for _, d := range due {
		ids = append(ids, d.ID)
	}
	groups, err := find(ids)
	if err != nil {
		return executors.NotBegun(err)
	}
	return effect.Each(ctx, due, func(d hibernate.Due) error {
		i := slices.IndexFunc(groups, func(g Group) bool { return g.UID == d.UID })
		if i < 0 {
			return nil
		}
		return do(groups[i], d)
	})
}
