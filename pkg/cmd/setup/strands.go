package setup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// narrowing is the flag by which the agent loses rights in all namespaces but one, or over nodes; empty: none.
func (m *Manifests) narrowing(live objectsByKey) (flag, spared string) {
	was := Manifests{Namespace: m.Namespace}
	was.adopt(live, func(string) bool { return false })
	switch {
	case live[objectKey{"Deployment", annotations.AgentName}] == nil:
	case m.ReadOnly && !was.ReadOnly:
		return flagReadOnly, ""
	case m.SingleNamespace && !was.SingleNamespace:
		return flagSingle, m.Namespace
	case was.Has(partRequests) && !m.Has(partRequests):
		return flagWithout, ""
	}
	return "", ""
}

// strands refuses to take what the agent needs to end runs, to wake what sleeps and to give nodes back.
func (o *installOptions) strands(ctx context.Context, live objectsByKey) error {
	flag, spared := o.manifests.narrowing(live)
	given, first := "--"+flag, "wait for runs or abort them, wake what sleeps, and release nodes, first"
	if flag == flagWithout {
		given, first = given+" "+partRequests, "release nodes first ('kubectl maint release')"
	}
	k, err := o.Connect()
	if err != nil || flag == "" || !o.apply || !o.Kept() {
		return err
	}
	list, err := k.Nodes(ctx, "")
	alive, most := view.RequestsAlive(list), 5
	if flag != flagWithout { // plans act on nodes as their accounts
		runs, failed := k.Runs(ctx, "", "", factory.ActiveOnly)
		sleepers, unread := k.HibernatePlans(ctx, "", "")
		alive, err = append(view.AliveBeside(runs, sleepers, spared), alive...), errors.Join(err, failed, unread)
	}
	if err != nil {
		return fmt.Errorf("whether %s leaves runs, sleeping resources or nodes behind is not known, so nothing was changed: %w", given, err)
	}
	if len(alive) == 0 {
		return nil
	}
	return exit.Errorf(exit.CodeNotNow, "nothing was changed: after %s the agent could not end %s%s: %s", given, strings.Join(alive[:min(most, len(alive))], ", "), view.AndMore(len(alive)-most), first)
}
