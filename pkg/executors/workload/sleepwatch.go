package workload

import (
	"context"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// Watches are the kinds that a target selects, in each of its namespaces. A namespace that a
// selector picks later is not included.
func (Sleeps) Watches(ctx context.Context, call executors.SleepCall) (list []executors.Watch, all bool, err error) {
	s, err := newSleep(call)
	if err != nil {
		return nil, false, err
	}
	namespaces, err := s.namespaces(ctx)
	if err != nil {
		return nil, false, err
	}
	for _, k := range s.kinds {
		if k.unasked { // the account may lack the right, and a watch that is refused would have all kinds listed often
			continue
		}
		selector := s.selector
		if k.form == byPause { // it goes with the workload that it scales, whatever its own labels
			selector = ""
		}
		for _, namespace := range namespaces {
			list = append(list, executors.Watch{Resource: k.resource, Namespace: namespace, Selector: selector})
		}
	}
	return list, s.params.NamespaceSelector == nil, nil
}
