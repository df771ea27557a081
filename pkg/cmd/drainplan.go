package cmd

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// forecast is what a drain of a node would do, in the machine's shape, see
// docs/cli.md.
type forecast struct {
	Node     string        `json:"node"`
	Possible bool          `json:"possible"`
	Groups   []drain.Group `json:"groups"`
	Skipped  []drain.Stay  `json:"skipped"`
	Refused  []drain.Stay  `json:"refused"`
	Blocks   []drain.Block `json:"blocks"`
	Warnings string        `json:"warnings,omitempty"` // as kubectl drain prints them
	Errors   []string      `json:"errors,omitempty"`   // as kubectl drain prints them
	Total    int           `json:"total"`              // pods that would have to leave
}

// foresee shows what would become of the nodes' pods, and changes nothing.
func (o *drainOptions) foresee(ctx context.Context, k *cluster, targets []*corev1.Node) error {
	asked, err := nodes.Parse("cli.me", o.text)
	if err != nil {
		return err
	}
	agent, err := o.agent(ctx, k)
	if err != nil {
		fmt.Fprintf(o.ErrOut, "warning: %v\n", err)
	}
	world := &podWorld{k: k, agent: agent, budgets: map[string][]drain.Budget{}, daemonSets: map[string]bool{}}
	var all []forecast
	blocked := false
	for _, n := range targets {
		f := drain.Forecast{}
		if asked.Drain != nil {
			pods, budgets, err := world.of(ctx, n.Name)
			if err != nil {
				return err
			}
			f = drain.NewJudge(*asked.Drain, world.there(ctx)).WithAgent(world.replicas(ctx, n.Name, pods, o.Now())).Foresee(pods, budgets, o.Now())
		}
		blocked = blocked || !f.Possible()
		all = append(all, forecastOf(n.Name, f))
	}
	if err := o.printForecasts(all); err != nil {
		return err
	}
	if blocked {
		return exit(CodeNotNow, "")
	}
	return nil
}

func forecastOf(node string, f drain.Forecast) forecast {
	return forecast{
		Node: node, Possible: f.Possible(), Groups: filled(f.Groups), Skipped: filled(f.Skipped), Refused: filled(f.Refused), Blocks: filled(f.Blocks),
		Warnings: f.Warnings, Errors: f.Errors, Total: f.Total,
	}
}

// filled is never nil: machines find an empty list, and not nothing.
func filled[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func (o *drainOptions) printForecasts(all []forecast) error {
	switch o.out.format() {
	case "":
		for i, f := range all {
			if i > 0 {
				fmt.Fprintln(o.Out)
			}
			for _, l := range o.view(o.Zone).forecastLines(f) {
				fmt.Fprintln(o.Out, l)
			}
		}
		return nil
	case "name":
		for _, f := range all {
			fmt.Fprintf(o.Out, "node/%s\n", f.Node)
		}
		return nil
	}
	t := newTable(column{name: "Node"}, column{name: "Possible"}, column{name: "Leave"}, column{name: "Stay"}, column{name: "Refused"}, column{name: "Blocked"})
	for _, f := range all {
		addRow(t, nil, f.Node, yesNo(f.Possible), fmt.Sprint(f.Total-len(f.Refused)), fmt.Sprint(len(f.Skipped)), fmt.Sprint(len(f.Refused)), blockCounts(f.Blocks))
	}
	return o.out.print(o.Out, t, func() (runtime.Object, error) { return plainList("ForecastList", all) })
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

// forecastLines are a forecast for people: what leaves in its order, what stays and
// why, and what stands in the way with what helps.
func (v view) forecastLines(f forecast) []string {
	head := v.bold("node/"+f.Node) + "  "
	switch {
	case !f.Possible:
		head += v.bad("blocked until somebody changes something")
	case len(f.Blocks) > 0:
		head += v.warn("possible, after some waiting")
	default:
		head += v.good("possible")
	}
	lines := []string{fmt.Sprintf("%s: %s would leave, %s would stay", head, counted(f.Total, "pod"), fmt.Sprint(len(f.Skipped)))}
	several := slices.ContainsFunc(f.Groups, func(g drain.Group) bool { return g.Order != f.Groups[0].Order && g.Order != drain.LastOrder })
	for _, g := range f.Groups {
		lines = append(lines, groupLines(g, several)...)
	}
	lines = append(lines, stayLines("stays", f.Skipped)...)
	lines = append(lines, v.refusedLines(f)...)
	for _, b := range f.Blocks {
		if !refuses(f, b) {
			lines = append(lines, v.blockLines(b)...)
		}
	}
	return lines
}

// refusedLines are the pods that may not be evicted, each reason with what helps.
func (v view) refusedLines(f forecast) []string {
	var lines []string
	told := map[string]bool{}
	for _, b := range f.Blocks {
		if !refuses(f, b) {
			continue
		}
		for _, s := range f.Refused {
			if s.Why == b.Why && slices.Contains(b.Pods, s.Pod) {
				told[s.Pod] = true
				lines = append(lines, stayLines(v.bad("refused"), []drain.Stay{s})...)
			}
		}
		lines = append(lines, "    "+b.Remedy)
	}
	rest := slices.DeleteFunc(slices.Clone(f.Refused), func(s drain.Stay) bool { return told[s.Pod] })
	return append(lines, stayLines(v.bad("refused"), rest)...)
}

// refuses says whether a block is that pods are refused.
func refuses(f forecast, b drain.Block) bool {
	return slices.ContainsFunc(f.Refused, func(s drain.Stay) bool { return s.Why == b.Why && slices.Contains(b.Pods, s.Pod) })
}

func groupLines(g drain.Group, several bool) []string {
	if g.Order == drain.LastOrder {
		return agentLines(g)
	}
	before := ""
	if several {
		before = fmt.Sprintf("order %d, ", g.Order)
	}
	var lines []string
	for _, part := range []struct {
		word string
		pods []string
	}{{"evicted", g.Evict}, {"replaced, then evicted", g.Surge}, {"left to finish", g.Await}, {"shuts down already", g.Leaves}} {
		for _, pod := range part.pods {
			lines = append(lines, fmt.Sprintf("  %s%s: %s", before, part.word, pod))
		}
	}
	return lines
}

// agentLines are the agent's own pod, which leaves last.
func agentLines(g drain.Group) []string {
	var lines []string
	for _, pod := range g.Evict {
		lines = append(lines, fmt.Sprintf("  last, evicted: %s (the agent's own pod; another replica is Ready elsewhere)", pod))
	}
	for _, pod := range g.Await {
		lines = append(lines, fmt.Sprintf("  last: %s (the agent's own pod; it is evicted once another replica is Ready elsewhere, and stays where none can be)", pod))
	}
	return lines
}

func stayLines(word string, stays []drain.Stay) []string {
	var lines []string
	for _, s := range stays {
		lines = append(lines, fmt.Sprintf("  %s: %s (%s)", word, s.Pod, s.Why))
	}
	return lines
}

func (v view) blockLines(b drain.Block) []string {
	kind := v.warn("blocked for now")
	if b.Permanent {
		kind = v.bad("blocked for good")
	}
	pods := b.Pods[0]
	if b.Count > 1 {
		pods += fmt.Sprintf(" and %d more", b.Count-1)
	}
	return []string{fmt.Sprintf("  %s: %s%s: %s", kind, pods, and(" by budget ", b.Budgets), b.Why), "    " + b.Remedy}
}

// podWorld reads pods and what stands before them, with the user's own rights.
type podWorld struct {
	k          *cluster
	budgets    map[string][]drain.Budget // by namespace
	whole      bool                      // budgets holds those of all namespaces
	daemonSets map[string]bool
	agent      agentState
}

// replicas is what is known of the agent's replicas, where the node has one.
func (w *podWorld) replicas(ctx context.Context, node string, pods []drain.Pod, now time.Time) drain.Agent {
	own := ""
	if w.agent.Pod != "" {
		own = w.agent.Namespace + "/" + w.agent.Pod
	}
	is := func(p drain.Pod) bool { return annotations.AgentPod(p, w.agent.Namespace, own) }
	if !slices.ContainsFunc(pods, is) {
		return drain.Agent{}
	}
	list, err := w.k.kube.CoreV1().Pods(w.agent.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		known := drain.AgentOn(node, own, slices.DeleteFunc(slices.Clone(pods), func(p drain.Pod) bool { return !is(p) }), now)
		known.Unknown = plain("list the agent's pods", err).Error()
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

// of are the pods of a node, and the budgets of their namespaces.
func (w *podWorld) of(ctx context.Context, node string) ([]drain.Pod, []drain.Budget, error) {
	pods, err := w.k.podsOn(ctx, node)
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

// podsOn reads the pods of a node.
func (k *cluster) podsOn(ctx context.Context, node string) ([]drain.Pod, error) {
	found, err := k.kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		return nil, plain("list the pods of node "+node, err)
	}
	var pods []drain.Pod
	for i := range found.Items {
		if p := &found.Items[i]; p.Spec.NodeName == node {
			pods = append(pods, annotations.DrainPod(p))
		}
	}
	return pods, nil
}

// budgetsOf reads the budgets of some namespaces, each once: all at once where that
// is allowed, for a node has pods of many.
func (w *podWorld) budgetsOf(ctx context.Context, namespaces []string) ([]drain.Budget, error) {
	if !w.whole {
		if list, err := w.k.kube.PolicyV1().PodDisruptionBudgets("").List(ctx, metav1.ListOptions{}); err == nil {
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
			list, err := w.k.kube.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, metav1.ListOptions{})
			if err != nil { // without them every forecast would be too fair
				return nil, plain("list the budgets of namespace "+namespace, err)
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

// there asks for each DaemonSet once.
func (w *podWorld) there(ctx context.Context) drain.DaemonSets {
	return func(namespace, name string) (bool, error) {
		at := namespace + "/" + name
		if there, asked := w.daemonSets[at]; asked {
			return there, nil
		}
		_, err := w.k.kube.AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
		w.daemonSets[at] = err == nil
		return w.daemonSets[at], nil
	}
}

// sorted are words in order, each once.
func sorted(words []string) []string {
	out := slices.Clone(words)
	slices.Sort(out)
	return slices.Compact(out)
}
