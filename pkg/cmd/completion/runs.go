package completion

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Retryable offers the runs that can be retried: of each plan the newest that was no dry run, if it
// failed or was aborted, and no other run of the plan lives.
func Retryable(c *factory.Factory) Func {
	return runNames(c, func(ctx context.Context, k *factory.Cluster) ([]string, error) {
		list, err := metadataOf(ctx, k, annotations.LabelKind+" in ("+annotations.KindPlan+","+annotations.KindRun+")")
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

// Resumable offers the runs that a resume does something for: those that are suspended or held by
// drift, and those that have ended and left what nobody has acknowledged, as their plans say. It reads
// whole runs, since only their journals say the former; there are few live ones.
func Resumable(c *factory.Factory) Func {
	return runNames(c, func(ctx context.Context, k *factory.Cluster) ([]string, error) {
		plans, err := metadataOf(ctx, k, annotations.LabelKind+"="+annotations.KindPlan)
		if err != nil {
			return nil, err
		}
		live, err := k.Runs(ctx, k.Namespace, "", factory.ActiveOnly)
		if err != nil {
			return nil, err
		}
		var out []string
		for _, r := range live {
			if len(view.Suspends(r)) > 0 || slices.ContainsFunc(r.Journal.Steps, r.Run.HeldByDrift) {
				out = append(out, r.Run.Name)
			}
		}
		for _, m := range plans {
			if name := leftBy(m); name != "" && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
		return out, nil
	})
}

// leftBy is the run that a plan says left something, which its condition tells how to acknowledge;
// empty: none.
func leftBy(m metav1.ObjectMeta) string {
	message, left := view.Stands(view.ConditionsIn(m.Annotations), "Restored", metav1.ConditionFalse)
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
		if before != "" && kindOf(strings.TrimSuffix(before, "/")) != annotations.KindRun {
			return nil, nil
		}
		names, err := list(ctx, k)
		var out []string
		for _, name := range names {
			if !slices.Contains(given, name) && !slices.Contains(given, before+name) {
				out = append(out, before+name)
			}
		}
		return out, err
	})
}

// metadataOf is the metadata of documents, from the API server's cache.
func metadataOf(ctx context.Context, k *factory.Cluster, selector string) ([]metav1.ObjectMeta, error) {
	list, err := k.Metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(k.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	out := make([]metav1.ObjectMeta, len(list.Items))
	for i := range list.Items {
		out[i] = list.Items[i].ObjectMeta
	}
	return out, nil
}
