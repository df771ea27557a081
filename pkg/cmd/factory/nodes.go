package factory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// KindNode is the word for nodes in names such as node/NAME.
const KindNode = "node"

// node reads a node by its name.
func (k *Cluster) node(ctx context.Context, name string) (*corev1.Node, error) {
	n, err := k.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, NotFoundError(fmt.Sprintf("there is no node %q%s", name, k.nodesInstead(ctx, []string{name})))
	}
	return n, k.unreadNode("read node "+name, err)
}

// unreadNode is Explain for reading nodes.
func (k *Cluster) unreadNode(doing string, err error) error {
	out := k.Explain(doing, err)
	if !apierrors.IsForbidden(err) {
		return out
	}
	return exit.WithHelp(out, exit.RightBy("a ClusterRole with get, list and watch on nodes", "", k.canI("")))
}

// NodesNamed are the nodes that a command line names or selects, by name. All that do not exist are
// reported at once.
func (k *Cluster) NodesNamed(ctx context.Context, names []string, selector string) ([]*corev1.Node, error) {
	if len(names) == 0 {
		return k.nodesPicked(ctx, selector)
	}
	var out []*corev1.Node
	var missing []string
	for _, name := range NodeNames(names) {
		n, err := k.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, name)
		case err != nil:
			return nil, k.unreadNode("read node "+name, err)
		default:
			out = append(out, n)
		}
	}
	switch len(missing) {
	case 0:
		return out, nil
	case 1:
		return nil, fmt.Errorf("there is no node %q%s; nothing was done", missing[0], k.nodesInstead(ctx, missing))
	}
	return nil, fmt.Errorf("there are no nodes %s%s; nothing was done", strings.Join(missing, ", "), k.nodesInstead(ctx, missing))
}

// nodesInstead names the nodes that were probably meant, and says where to look for others.
func (k *Cluster) nodesInstead(ctx context.Context, missing []string) string {
	near, said := k.nearNodes(ctx, missing), ""
	if len(near) > 0 {
		said = `; did you mean "` + strings.Join(near, `", "`) + `"?`
	}
	if len(near) < len(missing) {
		said += "; " + k.commands().In("").Get("nodes") + " shows which there are"
	}
	return said
}

// nearNode is the node that was probably meant.
func (k *Cluster) nearNode(ctx context.Context, name string) (string, bool) {
	near := k.nearNodes(ctx, []string{name})
	return strings.Join(near, ""), len(near) > 0
}

// nearNodes are the nodes that were probably meant. Names of nodes mostly begin alike, so it counts the
// letters that differ. It is empty where nodes may not be listed.
func (k *Cluster) nearNodes(ctx context.Context, missing []string) []string {
	missing = slices.DeleteFunc(slices.Clone(missing), func(name string) bool { return len(name) < 3 }) // too short to compare
	if len(missing) == 0 {
		return nil
	}
	names, err := k.Names(ctx, "nodes", "", "")
	if err != nil {
		return nil
	}
	var out []string
	for _, name := range missing {
		if near, ok := document.Nearest(name, names); ok {
			out = append(out, near)
		}
	}
	return out
}

func (k *Cluster) nodesPicked(ctx context.Context, selector string) ([]*corev1.Node, error) {
	list, err := k.Nodes(ctx, selector)
	if err == nil && len(list) == 0 {
		return nil, fmt.Errorf("-l %s picks no node; %s shows which there are", selector, k.commands().In("").GetLabels("nodes"))
	}
	return list, err
}

// Nodes are all nodes, or those that a selector picks, by name.
func (k *Cluster) Nodes(ctx context.Context, selector string) ([]*corev1.Node, error) {
	list, err := k.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, k.unreadNode("list nodes", err)
	}
	out := make([]*corev1.Node, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	slices.SortFunc(out, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// NodeNames are names of nodes without node/ before them, in order, each once.
func NodeNames(args []string) []string {
	var out []string
	for _, arg := range args {
		name := arg
		if kind, bare := SplitKind(arg); kind == KindNode {
			name = bare
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// AnnotateNode writes an intent on a node as Annotate does on documents, and returns the node after
// the write.
func (k *Cluster) AnnotateNode(ctx context.Context, n *corev1.Node, dry *DryRun, decide func(*corev1.Node) (Change, error)) (*corev1.Node, error) {
	err := retry.RetryOnConflict(ConflictBackoff(), func() error {
		c, err := decide(n)
		if err != nil {
			return err
		}
		if len(c) == 0 || dry.Client() {
			dry.WouldWrite(n, c)
			return nil
		}
		patch, err := mergePatch(n.ObjectMeta, c)
		if err != nil {
			return err
		}
		written, refusal := k.Kube.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, dry.Options())
		if refusal == nil {
			n = written
			dry.Wrote(n)
			return nil
		}
		if !apierrors.IsConflict(refusal) && !apierrors.IsInvalid(refusal) { // another uid is reported as invalid
			return k.WriteError("write to node "+n.Name, "patch", "", refusal)
		}
		now, err := k.Kube.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || err == nil && now.UID != n.UID:
			return fmt.Errorf("node %s was deleted, or created again, meanwhile: look at it and ask again", n.Name)
		case err != nil:
			return k.unreadNode("read again what somebody changed meanwhile", err)
		case apierrors.IsInvalid(refusal):
			return k.Explain("write to node "+n.Name, refusal)
		}
		n = now
		return refusal
	})
	if apierrors.IsConflict(err) {
		err = k.Explain("write to node "+n.Name, err)
	}
	return n, err
}

// Requestor is the requestor: the name that was given, or cli.<user>.
func (k *Cluster) Requestor(ctx context.Context, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	user := k.Actor(ctx)
	if user == "" {
		return "", errors.New("the API server does not say who you are: name the requestor with --requestor")
	}
	return view.RequestorName(user), nil
}
