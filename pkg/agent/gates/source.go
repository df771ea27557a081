package gates

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
)

// sourceAge is how long an answer about a source is believed (a guess: Flux
// itself asks once in minutes).
const sourceAge = time.Minute

type sourceKey struct {
	who    client.Account
	source knob.Source
}

type sourceSeen struct {
	fields map[string]any // nil: not there, or not to be read
	at     time.Time
}

// source reads what an object is fed from, as the watch's account. Where that
// may not read it, nothing is known to wait.
func (g *Controller) source(ctx context.Context, w *gateWatch, o *gateObject) (map[string]any, time.Time) {
	s, there := w.knob.Source(o.fields)
	if !there {
		return nil, time.Time{}
	}
	k, now := sourceKey{w.account(), s}, g.Now()
	g.mu.Lock()
	seen := g.sources[k]
	g.mu.Unlock()
	if now.Sub(seen.at) >= sourceAge {
		seen = sourceSeen{at: now, fields: g.readSource(ctx, k)}
		g.mu.Lock()
		if len(g.sources) > 10000 { // bounded by forgetting
			g.sources = map[sourceKey]sourceSeen{}
		}
		g.sources[k] = seen
		g.mu.Unlock()
	}
	return seen.fields, seen.at.Add(sourceAge)
}

func (g *Controller) readSource(ctx context.Context, k sourceKey) map[string]any {
	mapping, err := g.Clients.Accounts.Mapping(schema.GroupKind{Group: k.source.Group, Kind: k.source.Kind})
	if err != nil {
		return nil
	}
	c, err := g.Clients.Accounts.Clients(k.who, "")
	if err != nil {
		return nil
	}
	u, err := c.Dynamic.Resource(mapping.Resource).Namespace(k.source.Namespace).Get(ctx, k.source.Name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return knob.Pick(u.Object, []string{"status", "artifact", "revision"})
}
