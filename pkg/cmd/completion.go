package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// complete offers the names of our ConfigMaps that a command can act on. It asks
// for metadata alone and for a short while; whatever fails offers nothing.
func (c *cli) complete(selector string, keep func(metav1.ObjectMeta) bool) completer {
	return func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		return c.offered(ctx, selector, given, keep), cobra.ShellCompDirectiveNoFileComp
	}
}

func (c *cli) offered(ctx context.Context, selector string, given []string, keep func(metav1.ObjectMeta) bool) []string {
	k, err := c.connect()
	if err != nil {
		return nil
	}
	list, err := k.meta.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(k.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
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

func (c *cli) completePlans(keep func(metav1.ObjectMeta) bool) completer {
	return c.complete(annotations.LabelKind+"="+annotations.KindPlan, keep)
}

func (c *cli) completeKinds(kinds ...string) completer {
	return c.complete(annotations.LabelKind+" in ("+strings.Join(kinds, ",")+")", nil)
}

func (c *cli) completeRuns(phases ...plan.RunPhase) completer {
	return c.complete(annotations.LabelKind+"="+annotations.KindRun, func(m metav1.ObjectMeta) bool {
		return slices.Contains(phases, plan.RunPhase(m.Labels[annotations.LabelPhase]))
	})
}

// completeNodes offers the names of nodes that a command can act on.
func (c *cli) completeNodes(keep func(metav1.ObjectMeta) bool) completer {
	return func(cmd *cobra.Command, given []string, word string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		return c.offeredNodes(ctx, given, word, keep), cobra.ShellCompDirectiveNoFileComp
	}
}

// offeredNodes are as the word begins: node/NAME after node/. What an API server
// has in its cache is new enough.
func (c *cli) offeredNodes(ctx context.Context, given []string, word string, keep func(metav1.ObjectMeta) bool) []string {
	k, err := c.connect()
	if err != nil {
		return nil
	}
	list, err := k.meta.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil
	}
	before := ""
	if kind, _ := splitKind(word); kind == kindNode {
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

// beside offers what one completer and another offer, asked at once.
func beside(one, other completer) completer {
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

// maintained says whether anything of maintenance stands on a node.
func maintained(m metav1.ObjectMeta) bool {
	_, cordoned := m.Annotations[annotations.StatusCordoned]
	return cordoned || len(annotations.Requests(m.Annotations)) > 0 || len(annotations.RequestStatuses(m.Annotations)) > 0
}

// governed says whether somebody said when a node may be changed.
func governed(m metav1.ObjectMeta) bool {
	in := annotations.Intent(m.Annotations)
	return in.Stanza.Set() || in.Pause.On
}

// completionHelper is what kubectl runs to complete a plugin's command line: an
// executable of the name kubectl_complete-maint on the PATH.
const completionHelper = `#!/usr/bin/env sh
# Save as kubectl_complete-maint in a folder of your PATH and make it executable.
exec kubectl maint __complete "$@"
`

func newCompletion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell", "kubectl"}
	return &cobra.Command{
		Use:   "completion " + strings.Join(shells, "|"),
		Short: "Print what completes command lines",
		Long: `Print what completes command lines: a script for a shell, or with "kubectl" the
helper that kubectl looks for when it completes 'kubectl maint'.`,
		Example:   `  kubectl maint completion kubectl > ~/.local/bin/kubectl_complete-maint && chmod +x ~/.local/bin/kubectl_complete-maint`,
		ValidArgs: shells,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			_, err := fmt.Fprint(out, completionHelper)
			return err
		},
	}
}
