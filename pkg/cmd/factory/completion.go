package factory

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Completer offers words for a command line, for cobra.
type Completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completeWithin is how long the cluster may take to answer (a guess: somebody waits at a prompt).
const completeWithin = 2 * time.Second

// offer asks the cluster for words, for a short while, and keeps those that begin with what was
// typed. After an error it offers nothing.
func (c *Factory) offer(directive cobra.ShellCompDirective, words func(ctx context.Context, k *Cluster, given []string, word string) ([]string, error)) Completer {
	return func(cmd *cobra.Command, given []string, word string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		k, err := c.Connect()
		if err != nil {
			return nil, directive
		}
		out, err := words(ctx, k, given, word)
		if err != nil {
			return nil, directive
		}
		return beginning(out, word), directive
	}
}

// cached reads metadata from the API server's cache, which is recent enough.
func (k *Cluster) cached(ctx context.Context, resource, namespace, selector string) ([]metav1.PartialObjectMetadata, error) {
	list, err := k.Metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// beginning keeps the words that begin with what was typed.
func beginning(words []string, typed string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, typed) })
}

// Complete offers the names of documents that a command can act on.
func (c *Factory) Complete(selector string, keep func(metav1.ObjectMeta) bool) Completer {
	return c.offer(cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context, k *Cluster, given []string, _ string) ([]string, error) {
		list, err := k.cached(ctx, "configmaps", k.Namespace, selector)
		var out []string
		for _, item := range list {
			if !slices.Contains(given, item.Name) && (keep == nil || keep(item.ObjectMeta)) {
				out = append(out, item.Name)
			}
		}
		return out, err
	})
}

// CompletePlans offers plans for which keep is true.
func (c *Factory) CompletePlans(keep func(metav1.ObjectMeta) bool) Completer {
	return c.CompleteKind(annotations.KindPlan, keep)
}

// CompleteAllPlans offers plans and HibernatePlans for which keep is true.
func (c *Factory) CompleteAllPlans(keep func(metav1.ObjectMeta) bool) Completer {
	return c.Complete(annotations.LabelKind+" in ("+annotations.KindPlan+","+annotations.KindHibernatePlan+")", keep)
}

// CompleteKind offers documents of one kind for which keep is true.
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

// CompleteNodes offers the names of nodes that a command can act on, with node/ before them if that
// was typed.
func (c *Factory) CompleteNodes(keep func(metav1.ObjectMeta) bool) Completer {
	return c.offer(cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context, k *Cluster, given []string, word string) ([]string, error) {
		list, err := k.cached(ctx, "nodes", "", "")
		before := ""
		if kind, _ := SplitKind(word); kind == KindNode {
			before = word[:strings.Index(word, "/")+1]
		}
		taken := nodeNames(given)
		var out []string
		for _, item := range list {
			if !slices.Contains(taken, item.Name) && (keep == nil || keep(item.ObjectMeta)) {
				out = append(out, before+item.Name)
			}
		}
		return out, err
	})
}

// CompleteBoth offers the words of two completers, which run concurrently.
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

// Maintained says whether a node has annotations of maintenance.
func Maintained(m metav1.ObjectMeta) bool {
	_, cordoned := m.Annotations[annotations.StatusCordoned]
	return cordoned || len(annotations.Requests(m.Annotations)) > 0 || len(annotations.RequestStatuses(m.Annotations)) > 0
}

// Governed says whether a node has annotations about when it may be changed.
func Governed(m metav1.ObjectMeta) bool {
	in := annotations.Intent(m.Annotations)
	return in.Stanza.Set() || in.Pause.On
}

// CompleteNamespaces offers the names of namespaces.
func (c *Factory) CompleteNamespaces() Completer {
	return c.offer(cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context, k *Cluster, _ []string, word string) ([]string, error) {
		list, err := k.cached(ctx, "namespaces", "", "")
		var out []string
		for _, item := range list {
			out = append(out, item.Name)
		}
		return out, err
	})
}

// CompleteParameters offers the parameters of the plan that the command line names, as NAME=.
func (c *Factory) CompleteParameters() Completer {
	return c.offer(cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace, func(ctx context.Context, k *Cluster, given []string, word string) ([]string, error) {
		if len(given) == 0 {
			return nil, nil
		}
		cm, err := k.Plan(ctx, given[0])
		if err != nil {
			return nil, err
		}
		spec, _ := annotations.Plan(cm) // as far as it can be read
		var out []string
		for _, p := range spec.Parameters {
			out = append(out, p.Name+"=")
		}
		return out, nil
	})
}

// CompleteOf offers words about the plan or HibernatePlan that the command line names.
func (c *Factory) CompleteOf(words func(*corev1.ConfigMap) []string) Completer {
	return c.offer(cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context, k *Cluster, given []string, _ string) ([]string, error) {
		if len(given) == 0 {
			return nil, nil
		}
		cm, err := k.Document(ctx, given[0], annotations.KindPlan, annotations.KindHibernatePlan)
		if err != nil {
			return nil, err
		}
		return words(cm), nil
	})
}

// CompleteAbout offers words about the document of some kinds, or the node, that the command line
// names; about nothing, where it cannot be found.
func (c *Factory) CompleteAbout(words func(Resource) []string, kinds ...string) Completer {
	return c.offer(cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace, func(ctx context.Context, k *Cluster, given []string, _ string) ([]string, error) {
		if len(given) == 0 {
			return words(Resource{}), nil
		}
		found, err := k.Find(ctx, given[0], kinds...)
		if err != nil {
			return words(Resource{}), nil //nolint:nilerr // all words are better than none
		}
		return words(found), nil
	})
}

// CompleteSteps offers the paths of the steps of the run that the command line names, or of a
// plan's newest.
func (c *Factory) CompleteSteps() Completer {
	return c.offer(cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context, k *Cluster, given []string, word string) ([]string, error) {
		if len(given) == 0 {
			return nil, nil
		}
		r, err := c.quiet().RunOf(ctx, k, given[0])
		if err != nil {
			return nil, err
		}
		return view.Paths(r), nil
	})
}

// quiet is a Factory that prints nothing: output of completion would be taken for words.
func (c *Factory) quiet() *Factory {
	out := *c
	out.Out, out.ErrOut = io.Discard, io.Discard
	return &out
}
