package hibernation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// withoutOwnMachines leaves out what the agent itself runs on: once that sleeps nobody would wake
// anything. Where it is not known what that is, nothing falls asleep that has machines.
func (c *Controller) withoutOwnMachines(ctx context.Context, seen []hibernate.Observation) ([]hibernate.Observation, error) {
	if !slices.ContainsFunc(seen, func(o hibernate.Observation) bool { return len(o.Machines) > 0 }) {
		return seen, nil
	}
	own, err := c.Executors.Machines(ctx)
	if err != nil {
		return nil, fmt.Errorf("find out what the agent itself runs on: %w", err)
	}
	out := slices.Clone(seen)
	for i, o := range out {
		if machine, runs := shares(own, o.Machines); runs && o.LeftOut == "" {
			out[i].LeftOut = fmt.Sprintf("the agent itself runs on %s: nobody would wake what sleeps", machine)
		}
	}
	return out, nil
}

// shares is a machine of two lists, by provider id or by the id alone that ends it.
func shares(own, machines []string) (string, bool) {
	for _, id := range own {
		alone := id[strings.LastIndex(id, "/")+1:]
		if slices.Contains(machines, id) || slices.Contains(machines, alone) {
			return alone, true
		}
	}
	return "", false
}
