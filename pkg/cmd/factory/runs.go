package factory

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// Run finds a run.
func (k *Cluster) Run(ctx context.Context, name string) (view.Run, error) {
	cm, err := k.Document(ctx, name, annotations.KindRun)
	if err != nil {
		return view.Run{}, err
	}
	return k.ReadRun(ctx, cm)
}

// Answered is a run with the answers that stand for it on its plan. Whoever may not read the plan
// does without.
func (k *Cluster) Answered(ctx context.Context, r view.Run) view.Run {
	if r.Journal.Phase.Ended() {
		return r
	}
	cm, err := k.ConfigMaps(r.Run.Namespace).Get(ctx, r.Run.Plan, metav1.GetOptions{})
	if err != nil {
		return r
	}
	return view.Answered(r, cm)
}

// RunOf finds a run, or the newest run of a plan, which it reports; it prefers runs that were no dry runs.
func (c *Factory) RunOf(ctx context.Context, k *Cluster, name string) (view.Run, error) {
	return c.newestOf(ctx, k, name, func(r view.Run) bool { return !r.Run.Request.DryRun }, " that was no dry run")
}

// LiveRunOf is RunOf, preferring runs that have not ended.
func (c *Factory) LiveRunOf(ctx context.Context, k *Cluster, name string) (view.Run, error) {
	return c.newestOf(ctx, k, name, func(r view.Run) bool { return !r.Journal.Phase.Ended() }, " that has not ended")
}

// LiveRunObject is the object of a run, or of the newest run of a plan as of LiveRunOf. That a plan has no
// run is no NotFoundError.
func (c *Factory) LiveRunObject(ctx context.Context, k *Cluster, name string) (*corev1.ConfigMap, error) {
	cm, err := k.Document(ctx, name, annotations.KindRun, annotations.KindPlan)
	if err != nil || cm.Labels[annotations.LabelKind] == annotations.KindRun {
		return cm, err
	}
	r, err := c.LiveRunOf(ctx, k, name)
	if err != nil {
		return nil, exit.Errorf(exit.CodeError, "%s", err)
	}
	return k.Document(ctx, r.Run.Name, annotations.KindRun)
}

// newestOf is the newest run of a plan, preferring those that a function accepts.
func (c *Factory) newestOf(ctx context.Context, k *Cluster, name string, meant func(view.Run) bool, words string) (view.Run, error) {
	cm, err := k.Document(ctx, name, annotations.KindRun, annotations.KindPlan)
	switch {
	case err != nil:
		return view.Run{}, err
	case cm.Labels[annotations.LabelKind] == annotations.KindRun:
		return k.ReadRun(ctx, cm)
	}
	runs, err := k.RunsOf(ctx, cm)
	if err != nil {
		return view.Run{}, err
	}
	last := len(runs) - 1
	found := last
	for found >= 0 && !meant(runs[found]) {
		found--
	}
	for name := range view.AllLeftAlone(cm) { // one that cannot be read may be meant
		if _, err := k.Run(ctx, name); found < 0 && exit.CodeOf(err) == exit.CodeNotNow {
			return view.Run{}, err
		}
	}
	if len(runs) == 0 {
		return view.Run{}, c.noRun(ctx, k, cm)
	}
	if found < 0 || found == last {
		found, words = last, ""
	}
	fmt.Fprintf(c.ErrOut, "run %s is the newest of plan %s%s\n", runs[found].Run.Name, cm.Name, words)
	return runs[found], nil
}

// noRun says why a plan has no run, as far as its ledger shows.
func (c *Factory) noRun(ctx context.Context, k *Cluster, cm *corev1.ConfigMap) error {
	kept, err := k.Ledger(ctx, cm)
	head := kept.Head
	switch {
	case err == nil && head != nil && len(head.Open) > 0:
		return NotFoundError(fmt.Sprintf("plan %s has no run yet: run %s is about to be made; see %s", cm.Name, head.Open[0].Run, c.Suggest().Why(cm.Name)))
	case view.TokenPending(cm, head):
		return NotFoundError(fmt.Sprintf("plan %s has no run yet: its trigger waits, see %s; %s takes it back", cm.Name, c.Suggest().Why(cm.Name), c.Suggest().Abort(cm.Name)))
	case head != nil && head.Last != nil && head.Last.Phase.Ended():
		return k.lastRun(cm, kept)
	}
	spec, _ := annotations.Plan(cm)
	return NotFoundError(fmt.Sprintf("plan %s has no run: %s asks for one", cm.Name, c.Suggest().Ask(cm.Name, "", view.ParametersToGive(spec))))
}

// Runs are the runs of a plan, or of all plans of a namespace, oldest first. Runs that cannot be
// read, or that the agent ignores, are left out: describe says what is wrong with them.
func (k *Cluster) Runs(ctx context.Context, namespace, planName string, more ...string) ([]view.Run, error) {
	selector := annotations.LabelKind + "=" + annotations.KindRun
	if planName != "" {
		selector += "," + annotations.LabelPlan + "=" + planName
	}
	list, err := k.ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: strings.Join(append([]string{selector}, more...), ",")})
	if err != nil {
		return nil, k.ReadError("list runs", namespace, err)
	}
	var out []view.Run
	for i := range list.Items {
		if r, err := k.ReadRun(ctx, &list.Items[i]); err == nil {
			out = append(out, r)
		}
	}
	view.SortRuns(out)
	return out, nil
}

// RunsOf are the runs of one plan, oldest first.
func (k *Cluster) RunsOf(ctx context.Context, cm *corev1.ConfigMap, more ...string) ([]view.Run, error) {
	runs, err := k.Runs(ctx, cm.Namespace, cm.Name, more...)
	return view.RunsOf(cm, runs), err
}

// ActiveOnly selects runs that have not ended.
const ActiveOnly = annotations.LabelPhase + " in (Pending,Running)"

// ActiveRuns are those of all namespaces, or of this one where the others may not be read.
func (k *Cluster) ActiveRuns(ctx context.Context) ([]view.Run, view.UnseenRuns, error) {
	runs, err := k.Runs(ctx, "", "", ActiveOnly)
	if k.Namespace == "" || !apierrors.IsForbidden(err) {
		return runs, view.UnseenRuns{Some: err != nil}, err
	}
	if runs, err = k.Runs(ctx, k.Namespace, "", ActiveOnly); err != nil {
		return nil, view.UnseenRuns{Some: true}, err
	}
	return runs, view.UnseenRuns{Some: true, But: k.Namespace}, nil
}
