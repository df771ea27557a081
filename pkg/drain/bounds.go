package drain

import "github.com/kubectl-maint/kubectl-maint/pkg/document"

// Bounds of what is kept of one pod and of one budget, in bytes (guesses: labels of pods and
// selectors have some hundred). Whoever may write them in a namespace may write a megabyte into each.
const (
	maxPod      = 16 << 10
	maxSelector = 16 << 10
	maxWord     = 100 // of a value that would have a few letters
)

// Bounded is the pod without what is too large to be kept. Such a pod is refused: which budgets
// cover it is not known then.
func (p Pod) Bounded() Pod {
	p.How, p.OrderFault = document.Cut(p.How, maxWord), document.Cut(p.OrderFault, maxWord)
	weight := 0
	for k, v := range p.Labels {
		weight += len(k) + len(v)
	}
	for _, list := range [][]string{p.Resources, p.Claims} {
		for _, name := range list {
			weight += len(name)
		}
	}
	if o := p.Controller; o != nil {
		weight += len(o.APIVersion) + len(o.Kind) + len(o.Name) + len(o.UID)
	}
	if weight > maxPod {
		p.TooLarge, p.Labels, p.Resources, p.Claims, p.Controller = true, nil, nil, nil, nil
	}
	return p
}

// Bounded is the budget without a selector that is too large to be kept. Such a budget covers
// every pod of its namespace and lets none go, as it may cover any.
func (b Budget) Bounded() Budget {
	if b.Selector == nil {
		return b
	}
	weight := 0
	for k, v := range b.Selector.MatchLabels {
		weight += len(k) + len(v)
	}
	for _, e := range b.Selector.MatchExpressions {
		weight += len(e.Key) + len(e.Operator)
		for _, v := range e.Values {
			weight += len(v) + perValue
		}
	}
	if weight <= maxSelector {
		return b
	}
	return Budget{Namespace: b.Namespace, Name: b.Name, Version: b.Version, Current: true, TooLarge: true}
}

// perValue is what a value of a list takes beside its text.
const perValue = 16
