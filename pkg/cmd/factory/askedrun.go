package factory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// AskedRunError says that a run was asked for and the agent has not created it yet.
type AskedRunError struct {
	Name string            // of the run
	Plan *corev1.ConfigMap // which carries the waiting trigger
	why  string            // the command that shows what it waits for
}

// Error is error's.
func (e *AskedRunError) Error() string {
	return fmt.Sprintf("run %s is asked for, and has not begun: the trigger of plan %s waits, see %s", e.Name, e.Plan.Name, e.why)
}

// askedRun finds the plan whose trigger asks for a run of a name; nil: none, or that cannot be seen.
func (k *Cluster) askedRun(ctx context.Context, name string) *AskedRunError {
	list, err := k.ConfigMaps(k.Namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindPlan})
	if err != nil {
		return nil
	}
	name = view.RunPrefix + strings.TrimPrefix(name, view.RunPrefix)
	i := slices.IndexFunc(list.Items, func(cm corev1.ConfigMap) bool {
		return view.TokenPending(&cm, nil) && name == view.AskedRun(&cm)
	})
	if i < 0 {
		return nil
	}
	return &AskedRunError{Name: name, Plan: &list.Items[i], why: k.commands().Why(list.Items[i].Name)}
}
