package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// preview shows what would happen to the nodes' pods, and changes nothing.
func (o *drainOptions) preview(ctx context.Context, k *factory.Cluster, targets []*corev1.Node) error {
	asked, err := nodes.Parse("cli.me", o.request.text)
	if err != nil {
		return err
	}
	agent, err := o.Agent(ctx, k)
	if err != nil {
		fmt.Fprintf(o.ErrOut, "warning: %v\n", err)
	}
	o.WarnSilent(agent)
	world := &podReader{k: k, agent: agent, budgets: map[string][]drain.Budget{}, daemonSets: map[string]bool{}}
	var all []view.Forecast
	blocked := false
	failed := each(ctx, o.Factory, targets, func(n *corev1.Node) error {
		f := drain.Forecast{}
		if asked.Drain != nil {
			pods, budgets, err := world.podsAndBudgets(ctx, n.Name)
			if err != nil {
				return err
			}
			f = drain.NewJudge(*asked.Drain, world.daemonSet(ctx)).WithAgent(world.replicas(ctx, n.Name, pods, o.Now())).Forecast(pods, budgets, o.Now())
		}
		blocked = blocked || !f.Possible()
		all = append(all, view.NewForecast(n.Name, f))
		return nil
	})
	if len(all) > 0 || failed == nil {
		failed = errors.Join(o.printForecasts(all), failed)
	}
	switch {
	case failed != nil:
		return failed
	case blocked:
		return exit.Errorf(exit.CodeNotNow, "")
	}
	return nil
}

func (o *drainOptions) printForecasts(all []view.Forecast) error {
	if o.out.Format() == "" {
		for i, f := range all {
			if i > 0 {
				fmt.Fprintln(o.Out)
			}
			for _, l := range print.New(o.Env, o.Zone).ForecastLines(f) {
				fmt.Fprintln(o.Out, l)
			}
		}
		return nil
	}
	t := print.NewTable(print.Column{Name: "Node"}, print.Column{Name: "Possible"}, print.Column{Name: "Leave"}, print.Column{Name: "Stay"}, print.Column{Name: "Refused"}, print.Column{Name: "Blocked"})
	for _, f := range all {
		print.AddRow(t, nil, f.Node, yesNo(f.Possible), fmt.Sprint(f.Total-len(f.Refused)), fmt.Sprint(len(f.Skipped)), fmt.Sprint(len(f.Refused)), blockCounts(f.Blocks))
	}
	return o.out.Print(o.Out, t, "ForecastList", func() ([]print.Value, error) {
		items := make([]print.Value, len(all))
		for i, f := range all {
			items[i] = print.Value{Kind: "Forecast", Name: "node/" + f.Node, Body: f}
		}
		return items, nil
	})
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func blockCounts(blocks []drain.Block) string {
	permanent := 0
	for _, b := range blocks {
		if b.Permanent {
			permanent++
		}
	}
	return fmt.Sprintf("%d for good, %d for now", permanent, len(blocks)-permanent)
}

// podReader reads pods and what their eviction depends on, with the user's own rights.
type podReader struct {
	k          *factory.Cluster
	budgets    map[string][]drain.Budget // by namespace
	asked      bool                      // those of all namespaces were asked for
	whole      bool                      // budgets has all namespaces
	daemonSets map[string]bool
	agent      factory.AgentState
}

// replicas is what is known of the agent's replicas, if the node has one.
func (w *podReader) replicas(ctx context.Context, node string, pods []drain.Pod, now time.Time) drain.Agent {
	own := ""
	if w.agent.Pod != "" {
		own = w.agent.Namespace + "/" + w.agent.Pod
	}
	is := func(p drain.Pod) bool { return annotations.AgentPod(p, w.agent.Namespace, own) }
	if !slices.ContainsFunc(pods, is) {
		return drain.Agent{}
	}
	list, err := w.k.Kube.CoreV1().Pods(w.agent.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		known := drain.AgentOn(node, own, slices.DeleteFunc(slices.Clone(pods), func(p drain.Pod) bool { return !is(p) }), now)
		known.Unknown = w.k.Explain("list the agent's pods", err).Error()
		return known
	}
	var all []drain.Pod
	for i := range list.Items {
		if p := annotations.DrainPod(&list.Items[i]); is(p) {
			all = append(all, p)
		}
	}
	return drain.AgentOn(node, own, all, now)
}

// podsAndBudgets are the pods of a node, and the budgets of their namespaces.
func (w *podReader) podsAndBudgets(ctx context.Context, node string) ([]drain.Pod, []drain.Budget, error) {
	pods, err := podsOn(ctx, w.k, node)
	if err != nil {
		return nil, nil, err
	}
	var namespaces []string
	for _, p := range pods {
		namespaces = append(namespaces, p.Namespace)
	}
	budgets, err := w.budgetsOf(ctx, sorted(namespaces))
	return pods, budgets, err
}

// budgetsOf reads the budgets of some namespaces once: all at once where that is allowed, since a
// node has pods of many namespaces.
func (w *podReader) budgetsOf(ctx context.Context, namespaces []string) ([]drain.Budget, error) {
	if !w.asked {
		w.asked = true
		if list, err := w.k.Kube.PolicyV1().PodDisruptionBudgets("").List(ctx, metav1.ListOptions{}); err == nil {
			w.whole = true
			for i := range list.Items {
				b := annotations.DrainBudget(&list.Items[i])
				w.budgets[b.Namespace] = append(w.budgets[b.Namespace], b)
			}
		}
	}
	var out []drain.Budget
	for _, namespace := range namespaces {
		if _, read := w.budgets[namespace]; !read && !w.whole {
			list, err := w.k.Kube.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, metav1.ListOptions{})
			if err != nil { // without them every forecast would be too optimistic
				return nil, w.k.Explain("list the budgets of namespace "+namespace, err)
			}
			w.budgets[namespace] = []drain.Budget{}
			for i := range list.Items {
				w.budgets[namespace] = append(w.budgets[namespace], annotations.DrainBudget(&list.Items[i]))
			}
		}
		out = append(out, w.budgets[namespace]...)
	}
	return out, nil
}

// daemonSet asks for each DaemonSet once.
func (w *podReader) daemonSet(ctx context.Context) drain.DaemonSets {
	return func(namespace, name string) (bool, error) {
		at := namespace + "/" + name
		if there, asked := w.daemonSets[at]; asked {
			return there, nil
		}
		_, err := w.k.Kube.AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
		w.daemonSets[at] = err == nil
		return w.daemonSets[at], nil
	}
}

// sorted are words in order, without duplicates.
func sorted(words []string) []string {
	out := slices.Clone(words)
	slices.Sort(out)
	return slices.Compact(out)
}
