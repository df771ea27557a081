// Package completion offers words for a command line that is being typed: only what the command can
// act on, and nothing after an error.
package completion

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Func offers words for a command line, for cobra.
type Func = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// Keep says whether a command can act on an object; nil: on all of them.
type Keep = func(metav1.ObjectMeta) bool

// within is how long the cluster may take to answer (a guess: somebody waits at a prompt).
const within = 2 * time.Second

// offer asks the cluster for words, for a short while, and keeps those that begin with what was
// typed. After an error it offers nothing.
func offer(c *factory.Factory, directive cobra.ShellCompDirective, words func(ctx context.Context, k *factory.Cluster, given []string, word string) ([]string, error)) Func {
	return func(cmd *cobra.Command, given []string, word string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), within)
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

// names are those of the objects that keep accepts and that begin with what was typed, if they are
// few, from the API server's cache, which is recent enough. Names alone are a twelfth of the metadata
// of a plan with a status.
func names(ctx context.Context, k *factory.Cluster, resource, namespace, selector, typed string, keep Keep) ([]string, error) {
	if keep == nil {
		return k.Names(ctx, resource, namespace, selector)
	}
	list, err := beginningWith(ctx, k, resource, namespace, selector, typed)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range list {
		if keep == nil || keep(m) {
			out = append(out, m.Name)
		}
	}
	return out, nil
}

// few names are asked for one by one (client-go sends ten requests without a pause).
const few = 8

// beginningWith is the metadata of the objects whose names begin with what was typed, where those are
// few; else of all. Of thousands, the metadata takes the API server four times as long as the names.
func beginningWith(ctx context.Context, k *factory.Cluster, resource, namespace, selector, typed string) ([]metav1.ObjectMeta, error) {
	if typed == "" || k.Cached == nil {
		return metadataOf(ctx, k, resource, namespace, selector)
	}
	all, err := k.Cached.Names(ctx, resource, namespace, selector)
	if err != nil {
		return nil, err
	}
	begin := beginning(all, typed)
	if len(begin) > few {
		return metadataOf(ctx, k, resource, namespace, selector)
	}
	found := make([][]metav1.ObjectMeta, len(begin))
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range begin {
		group.Go(func() (err error) {
			found[i], err = k.Cached.Metadata(ctx, resource, namespace, kube.Some{Selector: selector, Name: name})
			return err
		})
	}
	err = group.Wait()
	return slices.Concat(found...), err
}

// metadataOf is the metadata of objects, from the API server's cache.
func metadataOf(ctx context.Context, k *factory.Cluster, resource, namespace, selector string) ([]metav1.ObjectMeta, error) {
	if k.Cached != nil {
		return k.Cached.Metadata(ctx, resource, namespace, kube.Some{Selector: selector})
	}
	list, err := k.Metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	out := make([]metav1.ObjectMeta, len(list.Items))
	for i := range list.Items {
		out[i] = list.Items[i].ObjectMeta
	}
	return out, nil
}

// beginning keeps the words that begin with what was typed.
func beginning(words []string, typed string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, typed) })
}

// Documents offers the names of documents that a command can act on, with their kind before them if
// that was typed.
func Documents(c *factory.Factory, selector string, keep Keep) Func {
	return offer(c, cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context, k *factory.Cluster, given []string, word string) ([]string, error) {
		before, of, bare := "", selector, factory.BareName(word)
		if bare != word { // plan/or
			before = strings.TrimSuffix(word, bare)
			if kinds, _ := view.KindsBefore(strings.TrimSuffix(before, "/")); kinds != nil {
				of += "," + annotations.LabelKind + " in (" + strings.Join(kinds, ",") + ")"
			}
		}
		list, err := names(ctx, k, "configmaps", k.Namespace, of, bare, keep)
		return written(list, before, given), err
	})
}

// Plans offers plans for which keep is true.
func Plans(c *factory.Factory, keep Keep) Func {
	return Kind(c, annotations.KindPlan, keep)
}

// AllPlans offers plans and HibernatePlans for which keep is true.
func AllPlans(c *factory.Factory, keep Keep) Func {
	return Documents(c, annotations.LabelKind+" in ("+annotations.KindPlan+","+annotations.KindHibernatePlan+")", keep)
}

// Kind offers documents of one kind for which keep is true.
func Kind(c *factory.Factory, kind string, keep Keep) Func {
	return Documents(c, annotations.LabelKind+"="+kind, keep)
}

// Kinds offers documents of some kinds.
func Kinds(c *factory.Factory, kinds ...string) Func {
	return Documents(c, annotations.LabelKind+" in ("+strings.Join(kinds, ",")+")", nil)
}

// RunsOfPlan offers runs in some phases of the plan that the command line names first.
func RunsOfPlan(c *factory.Factory, phases ...run.Phase) Func {
	return func(cmd *cobra.Command, given []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(given) == 0 {
			return Runs(c, phases...)(cmd, given, word)
		}
		return Documents(c, inPhases(phases)+","+annotations.LabelPlan+"="+factory.BareName(given[0]), nil)(cmd, given, word)
	}
}

// Runs offers runs in some phases.
func Runs(c *factory.Factory, phases ...run.Phase) Func { return Documents(c, inPhases(phases), nil) }

// inPhases selects runs in some phases.
func inPhases(phases []run.Phase) string {
	in := make([]string, len(phases))
	for i, phase := range phases {
		in[i] = string(phase)
	}
	return annotations.LabelKind + "=" + annotations.KindRun + "," + annotations.LabelPhase + " in (" + strings.Join(in, ",") + ")"
}

// Nodes offers the names of nodes that a command can act on, with node/ before them if that
// was typed.
func Nodes(c *factory.Factory, keep Keep) Func {
	return offer(c, cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context, k *factory.Cluster, given []string, word string) ([]string, error) {
		list, err := names(ctx, k, "nodes", "", "", factory.BareName(word), keep)
		before := ""
		if kind, _ := factory.SplitKind(word); kind == factory.KindNode {
			before = word[:strings.Index(word, "/")+1]
		}
		taken := factory.NodeNames(given)
		var out []string
		for _, name := range list {
			if !slices.Contains(taken, name) {
				out = append(out, before+name)
			}
		}
		return out, err
	})
}

// Likely offers the nodes that a command is probably about and, where node/ was typed, all.
func Likely(c *factory.Factory, likely Keep) Func {
	return func(cmd *cobra.Command, given []string, word string) ([]string, cobra.ShellCompDirective) {
		if kind, _ := factory.SplitKind(word); kind == factory.KindNode {
			return Nodes(c, nil)(cmd, given, word)
		}
		return Nodes(c, likely)(cmd, given, word)
	}
}

// Typed offers nodes and namespaces by name where their kind was typed.
func Typed(c *factory.Factory) Func {
	return func(cmd *cobra.Command, given []string, word string) ([]string, cobra.ShellCompDirective) {
		kind, _ := factory.SplitKind(word)
		switch kind {
		case factory.KindNode:
			return Nodes(c, nil)(cmd, given, word)
		case "namespace", "namespaces", "ns":
			return offer(c, cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context, k *factory.Cluster, given []string, _ string) ([]string, error) {
				list, err := names(ctx, k, "namespaces", "", "", "", nil)
				return written(list, kind+"/", given), err
			})(cmd, given, word)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// Both offers the words of two completers, which run concurrently.
func Both(one, other Func) Func {
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

// Namespaces offers the names of namespaces.
func Namespaces(c *factory.Factory) Func {
	return offer(c, cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context, k *factory.Cluster, _ []string, word string) ([]string, error) {
		return names(ctx, k, "namespaces", "", "", "", nil)
	})
}

// Parameters offers the parameters of the plan that the command line names, as NAME=.
func Parameters(c *factory.Factory) Func {
	return offer(c, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace, func(ctx context.Context, k *factory.Cluster, given []string, word string) ([]string, error) {
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

// Of offers words about the plan or HibernatePlan that the command line names.
func Of(c *factory.Factory, words func(*corev1.ConfigMap) []string) Func {
	return offer(c, cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context, k *factory.Cluster, given []string, _ string) ([]string, error) {
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

// About offers words about the document of some kinds, or the node, that the command line
// names; about nothing, where it cannot be found.
func About(c *factory.Factory, words func(factory.Resource) []string, kinds ...string) Func {
	return offer(c, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace, func(ctx context.Context, k *factory.Cluster, given []string, _ string) ([]string, error) {
		if len(given) == 0 {
			return words(factory.Resource{}), nil
		}
		found, err := k.Find(ctx, given[0], kinds...)
		if err != nil {
			return words(factory.Resource{}), nil //nolint:nilerr // all words are better than none
		}
		return words(found), nil
	})
}

// Steps offers the paths of the steps of the run that the command line names, or of a
// plan's newest.
func Steps(c *factory.Factory) Func {
	return offer(c, cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context, k *factory.Cluster, given []string, word string) ([]string, error) {
		if len(given) == 0 {
			return nil, nil
		}
		r, err := quiet(c).RunOf(ctx, k, given[0])
		if err != nil {
			return nil, err
		}
		return view.Paths(r), nil
	})
}

// quiet is a Factory that prints nothing: output of completion would be taken for words.
func quiet(c *factory.Factory) *factory.Factory {
	out := *c
	out.Out, out.ErrOut = io.Discard, io.Discard
	return &out
}
