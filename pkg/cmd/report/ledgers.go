package report

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// remembered is a plan and its ledger.
type remembered struct {
	object *corev1.ConfigMap
	view.Ledger
}

// rememberedBy are the ledgers of documents, of the namespace or of all. It warns of what is wrong
// with them.
func rememberedBy(ctx context.Context, c *factory.Factory, k *factory.Cluster, namespace string, documents []*corev1.ConfigMap) ([]remembered, error) {
	ledgers, err := k.Ledgers(ctx, namespace)
	if err != nil {
		return nil, err
	}
	out := make([]remembered, 0, len(documents))
	for _, cm := range documents {
		one := remembered{cm, ledgers.Of(ctx, cm)}
		c.WarnOfLedger(cm.Namespace, cm.Name, one.Ledger)
		out = append(out, one)
	}
	return out, nil
}

// allPlans are the Plans and HibernatePlans of a namespace, or of all.
func allPlans(ctx context.Context, k *factory.Cluster, namespace, selector string) ([]*corev1.ConfigMap, error) {
	plans, err := k.Plans(ctx, namespace, selector)
	if err != nil {
		return nil, err
	}
	sleepers, err := k.HibernatePlans(ctx, namespace, selector)
	return slices.Concat(plans, sleepers), err
}

// endOf is the end or the state of an entry's run: from the ledger, else from the run while that
// exists.
func endOf(e ledger.Entry, runs []view.Run) *ledger.Outcome {
	if e.Outcome != nil || e.Run == "" {
		return e.Outcome
	}
	i := slices.IndexFunc(runs, func(r view.Run) bool { return r.Run.Name == e.Run })
	if i < 0 {
		return nil
	}
	return new(ledger.OutcomeOf(runs[i].Run, runs[i].Journal))
}
