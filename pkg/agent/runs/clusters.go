package runs

import (
	"context"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/targets"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// clientsAt are those with which the step at a path works: the account's own, or those of
// the cluster that its connector names. The run holds the connector as it was when the run
// was made; its credentials are read each time.
func (c *Controller) clientsAt(ctx context.Context, l *store.CachedRun, path string, home executors.Clients) (executors.Clients, *executors.Outcome) {
	cluster, elsewhere := clusterAt(l.Run, path)
	if !elsewhere {
		return home, nil
	}
	clients, failure := c.Clients.Accounts.Remote(ctx, l.Account(), cluster)
	if failure != nil && failure.State == executors.NotYet {
		failure.WakeAt = queue.Latest(failure.WakeAt, c.Now().Add(retryDelay))
	}
	return clients, failure
}

// clusterAt is the other cluster that the step at a path works on, if it does; at the empty
// path that of the target.
func clusterAt(r run.Run, path string) (client.Cluster, bool) {
	ref, elsewhere := r.Tree().ConnectorAt(path)
	if !elsewhere {
		return client.Cluster{}, false
	}
	return *client.ClusterOf(&ref, r.Connectors), true // a run without it is not read
}

// onTarget asks a question of the cluster of a run's target; with marked it is the run's.
func onTarget[T any](ctx context.Context, c *Controller, l *store.CachedRun, marked bool, question func(context.Context, client.ClusterAccess) (T, error)) (T, error) {
	name := ""
	if marked {
		name = l.Run.Name
	}
	return client.Ask(ctx, c.Clients.Accounts, l.Account(), name, client.ClusterOf(l.Run.Spec.ConnectorRef, l.Run.Connectors), question)
}

// readTarget reads a run's target live.
func (c *Controller) readTarget(ctx context.Context, l *store.CachedRun) (*targets.Object, error) {
	return onTarget(ctx, c, l, false, func(ctx context.Context, from client.ClusterAccess) (*targets.Object, error) {
		u, err := targets.Read(ctx, from, *l.Run.Spec.Target)
		if err != nil {
			return nil, err
		}
		return targets.Slim(u, from.Where()), nil
	})
}

// placed is what came of a step on another cluster, with where that was.
func placed(out executors.Outcome, clients executors.Clients) executors.Outcome {
	if clients.Cluster == "" {
		return out
	}
	if out.Message != "" {
		out.Message = document.Cut("on "+connector.K8SCluster+" "+clients.Cluster+": "+out.Message, document.MaxMessage)
	}
	changed := make([]run.Change, len(out.Changed))
	for i, one := range out.Changed {
		one.Cluster = clients.Cluster
		changed[i] = one
	}
	out.Changed = changed
	return out
}

// loopOf is the path of the innermost loop that a path lies in.
func loopOf(r run.Run, path string) string {
	at := ""
	for _, link := range r.Tree().Chain(path) {
		if plan.IsLoop(link.Step.Type) && link.Path != path {
			at = link.Path
		}
	}
	return at
}
