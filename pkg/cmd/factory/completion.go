package factory

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Completer offers words for a command line, as cobra takes them.
type Completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// Complete offers the names of our ConfigMaps that a command can act on. It asks for metadata
// alone, of what an API server has in its cache, and for a short while; whatever fails offers
// nothing.
func (c *Factory) Complete(selector string, keep func(metav1.ObjectMeta) bool) Completer {
	return func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		return c.offered(ctx, selector, given, keep), cobra.ShellCompDirectiveNoFileComp
	}
}

func (c *Factory) offered(ctx context.Context, selector string, given []string, keep func(metav1.ObjectMeta) bool) []string {
	k, err := c.Connect()
	if err != nil {
		return nil
	}
	list, err := k.Metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(k.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return nil
	}
	var out []string
	for _, item := range list.Items {
		if !slices.Contains(given, item.Name) && (keep == nil || keep(item.ObjectMeta)) {
			out = append(out, item.Name)
		}
	}
	return out
}

// CompletePlans offers plans, or those to keep.
func (c *Factory) CompletePlans(keep func(metav1.ObjectMeta) bool) Completer {
	return c.CompleteKind(annotations.KindPlan, keep)
}

// CompleteAllPlans offers plans and HibernatePlans, or those to keep.
func (c *Factory) CompleteAllPlans(keep func(metav1.ObjectMeta) bool) Completer {
	return c.Complete(annotations.LabelKind+" in ("+annotations.KindPlan+","+annotations.KindHibernatePlan+")", keep)
}

// CompleteKind offers documents of one kind, or those to keep.
func (c *Factory) CompleteKind(kind string, keep func(metav1.ObjectMeta) bool) Completer {
	return c.Complete(annotations.LabelKind+"="+kind, keep)
}

// CompleteKinds offers documents of some kinds.
func (c *Factory) CompleteKinds(kinds ...string) Completer {
	return c.Complete(annotations.LabelKind+" in ("+strings.Join(kinds, ",")+")", nil)
}

// CompleteRuns offers runs in some phases.
func (c *Factory) CompleteRuns(phases ...run.Phase) Completer {
	return c.Complete(annotations.LabelKind+"="+annotations.KindRun, func(m metav1.ObjectMeta) bool {
		return slices.Contains(phases, run.Phase(m.Labels[annotations.LabelPhase]))
	})
}

// CompleteNodes offers the names of nodes that a command can act on.
func (c *Factory) CompleteNodes(keep func(metav1.ObjectMeta) bool) Completer {
	return func(cmd *cobra.Command, given []string, word string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		return c.offeredNodes(ctx, given, word, keep), cobra.ShellCompDirectiveNoFileComp
	}
}

// offeredNodes are as the word begins: node/NAME after node/. What an API server
// has in its cache is new enough.
func (c *Factory) offeredNodes(ctx context.Context, given []string, word string, keep func(metav1.ObjectMeta) bool) []string {
	k, err := c.Connect()
	if err != nil {
		return nil
	}
	list, err := k.Metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil
	}
	before := ""
	if kind, _ := SplitKind(word); kind == KindNode {
		before = word[:strings.Index(word, "/")+1]
	}
	taken := nodeNames(given)
	var out []string
	for _, item := range list.Items {
		if name := before + item.Name; strings.HasPrefix(name, word) && !slices.Contains(taken, item.Name) && (keep == nil || keep(item.ObjectMeta)) {
			out = append(out, name)
		}
	}
	return out
}

// CompleteBoth offers what one completer and another offer, asked at once.
func CompleteBoth(one, other Completer) Completer {
	return func(cmd *cobra.Command, given []string, word string) ([]string, cobra.ShellCompDirective) {
		second := make(chan []string, 1)
		go func() {
			names, _ := other(cmd, given, word)
			second <- names
		}()
		first, directive := one(cmd, given, word)
		return append(first, <-second...), directive
	}
}

// Maintained says whether anything of maintenance stands on a node.
func Maintained(m metav1.ObjectMeta) bool {
	_, cordoned := m.Annotations[annotations.StatusCordoned]
	return cordoned || len(annotations.Requests(m.Annotations)) > 0 || len(annotations.RequestStatuses(m.Annotations)) > 0
}

// Governed says whether somebody said when a node may be changed.
func Governed(m metav1.ObjectMeta) bool {
	in := annotations.Intent(m.Annotations)
	return in.Stanza.Set() || in.Pause.On
}

// CompleteNamespaces offers the names of namespaces.
func (c *Factory) CompleteNamespaces() Completer {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		k, err := c.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, err := k.Metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, item := range list.Items {
			if strings.HasPrefix(item.Name, word) {
				out = append(out, item.Name)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteParameters offers the parameters of the plan that the command line names, as NAME=.
func (c *Factory) CompleteParameters() Completer {
	return func(cmd *cobra.Command, given []string, word string) ([]string, cobra.ShellCompDirective) {
		const goesOn = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		k, err := c.Connect()
		if err != nil || len(given) == 0 {
			return nil, goesOn
		}
		cm, err := k.Plan(ctx, given[0])
		if err != nil {
			return nil, goesOn
		}
		spec, _ := annotations.Plan(cm) // as far as it can be read
		var out []string
		for _, p := range spec.Parameters {
			if strings.HasPrefix(p.Name+"=", word) {
				out = append(out, p.Name+"=")
			}
		}
		return out, goesOn
	}
}

// CompleteSteps offers the paths of the steps of the run that the command line names, or of the
// newest of a plan.
func (c *Factory) CompleteSteps() Completer {
	return func(cmd *cobra.Command, given []string, word string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		k, err := c.Connect()
		if err != nil || len(given) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		r, err := c.quiet().RunOf(ctx, k, given[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.DeleteFunc(view.Paths(r), func(path string) bool { return !strings.HasPrefix(path, word) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// quiet is a Factory that tells nobody anything: what completion prints is taken for words.
func (c *Factory) quiet() *Factory {
	out := *c
	out.Out, out.ErrOut = io.Discard, io.Discard
	return &out
}
