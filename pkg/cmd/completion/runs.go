package completion

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Retryable offers the runs that can be retried: of each plan the newest that was no dry run, if it
// failed or was aborted, and no other run of the plan lives.
func Retryable(c *factory.Factory) Func {
	return runNames(c, func(ctx context.Context, k *factory.Cluster) ([]string, error) {
		list, err := metadataOf(ctx, k, "configmaps", k.Namespace, annotations.LabelKind+" in ("+annotations.KindPlan+","+annotations.KindRun+")")
		return retryable(list), err
	})
}

// retryable are the names of the runs among plans and runs that can be retried. Which run of a plan
// is the newest that started, its status says; where it does not, the newest that is kept counts.
func retryable(list []metav1.ObjectMeta) []string {
	newest, lives, said := map[string]metav1.ObjectMeta{}, map[string]bool{}, map[string]string{}
	for _, m := range list {
		of, phase := m.Labels[annotations.LabelPlan], run.Phase(m.Labels[annotations.LabelPhase])
		switch {
		case m.Labels[annotations.LabelKind] == annotations.KindPlan:
			said[m.Name] = m.Annotations[annotations.StatusLastRunName]
		case !phase.Ended():
			lives[of] = true
		case m.Annotations[annotations.StatusDryRun] == "true":
		case newest[of].Name == "" || newest[of].CreationTimestamp.Time.Before(m.CreationTimestamp.Time):
			newest[of] = m
		}
	}
	var out []string
	for _, m := range list {
		of, phase := m.Labels[annotations.LabelPlan], run.Phase(m.Labels[annotations.LabelPhase])
		name, there := said[of]
		if there && !lives[of] && m.Name == cmp.Or(name, newest[of].Name) && (phase == run.Failed || phase == run.Aborted) {
			out = append(out, m.Name)
		}
	}
	return out
}

// Resumable offers what a resume does something for: the documents that are paused, and the runs that
// are suspended or held by drift, or have ended and left what nobody has acknowledged, as their plans
// say. It reads whole runs, since only their journals say the former; there are few live ones.
func Resumable(c *factory.Factory, paused Keep) Func {
	return offer(c, cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context, k *factory.Cluster, given []string, word string) ([]string, error) {
		before := strings.TrimSuffix(word, factory.BareName(word))
		kind := strings.TrimSuffix(before, "/")
		var documents []metav1.ObjectMeta
		var live []view.Run
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() (err error) {
			kinds := strings.Join([]string{annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy}, ",")
			documents, err = beginningWith(ctx, k, "configmaps", k.Namespace, annotations.LabelKind+" in ("+kinds+")", ofDocument(word))
			return err
		})
		group.Go(func() (err error) {
			live, err = k.Runs(ctx, k.Namespace, "", factory.ActiveOnly)
			return err
		})
		if err := group.Wait(); err != nil {
			return nil, err
		}
		var out []string
		for _, m := range documents {
			if paused(m) && view.MayMean(kind, m.Labels[annotations.LabelKind]) {
				out = append(out, m.Name)
			}
		}
		if view.MayMean(kind, annotations.KindRun) {
			out = append(out, resumable(live, documents)...)
		}
		return written(out, before, given), nil
	})
}

// runPrefix begins the names of runs.
const runPrefix = "maint-" + annotations.KindRun + "-"

// ofDocument is what was typed of the name of a document; empty, where it may be that of a run, which
// any plan may name.
func ofDocument(word string) string {
	typed := factory.BareName(word)
	if strings.HasPrefix(typed, runPrefix) || strings.HasPrefix(runPrefix, typed) {
		return ""
	}
	return typed
}

// Questions offers what waits for approval, RUN or RUN/STEP. It reads whole runs, since only their
// journals say so; there are few live ones.
func Questions(c *factory.Factory) Func {
	return offer(c, cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context, k *factory.Cluster, given []string, _ string) (out []string, err error) {
		if len(given) > 0 {
			return nil, nil
		}
		runs, err := k.Runs(ctx, k.Namespace, "", factory.ActiveOnly)
		for _, r := range runs {
			out = append(out, view.Questions(r)...)
		}
		return out, err
	})
}

// resumable are the names of the runs that a resume does something for.
func resumable(live []view.Run, documents []metav1.ObjectMeta) (out []string) {
	for _, r := range live {
		if view.ResumeHelps(r) != "" {
			out = append(out, r.Run.Name)
		}
	}
	for _, m := range documents {
		if name := leftBy(m); m.Labels[annotations.LabelKind] == annotations.KindPlan && name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// written are names as somebody writes them, with what was typed before them, but for those that are
// given already.
func written(names []string, before string, given []string) []string {
	var out []string
	for _, name := range names {
		if !slices.Contains(given, name) && !slices.Contains(given, before+name) {
			out = append(out, before+name)
		}
	}
	return out
}

// leftBy is the run that a plan says left something, which its condition tells how to acknowledge;
// empty: none.
func leftBy(m metav1.ObjectMeta) string {
	if !strings.Contains(m.Annotations[annotations.StatusConditions], " resume ") {
		return "" // of thousands of plans, hardly one is decoded
	}
	message, left := view.FindCondition(view.ConditionsIn(m.Annotations), "Restored", metav1.ConditionFalse)
	i := strings.LastIndex(message, " resume ")
	if name, whole := strings.CutSuffix(message[max(i, 0):], "'"); left && i >= 0 && whole {
		return strings.TrimPrefix(name, " resume ")
	}
	return ""
}

// runNames offers the names of runs, with run/ before them if that was typed.
func runNames(c *factory.Factory, list func(ctx context.Context, k *factory.Cluster) ([]string, error)) Func {
	return offer(c, cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context, k *factory.Cluster, given []string, word string) ([]string, error) {
		before := strings.TrimSuffix(word, factory.BareName(word))
		if !view.MayMean(strings.TrimSuffix(before, "/"), annotations.KindRun) {
			return nil, nil
		}
		names, err := list(ctx, k)
		return written(names, before, given), err
	})
}
