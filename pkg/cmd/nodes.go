package cmd

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// kindNode is the word for nodes beside the kinds of our documents.
const kindNode = "node"

// node reads a node by its name.
func (k *cluster) node(ctx context.Context, name string) (*corev1.Node, error) {
	n, err := k.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no node %q", name)
	}
	return n, plain("read node "+name, err)
}

// nodesNamed are the nodes that a command line names or picks by labels, by name.
// Those that do not exist are named all at once.
func (k *cluster) nodesNamed(ctx context.Context, names []string, selector string) ([]*corev1.Node, error) {
	if len(names) == 0 {
		return k.nodesPicked(ctx, selector)
	}
	var out []*corev1.Node
	var missing []string
	for _, name := range nodeNames(names) {
		n, err := k.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, name)
		case err != nil:
			return nil, plain("read node "+name, err)
		default:
			out = append(out, n)
		}
	}
	switch len(missing) {
	case 0:
		return out, nil
	case 1:
		return nil, fmt.Errorf("there is no node %q; nothing was done", missing[0])
	}
	return nil, fmt.Errorf("there are no nodes %s; nothing was done", strings.Join(missing, ", "))
}

func (k *cluster) nodesPicked(ctx context.Context, selector string) ([]*corev1.Node, error) {
	list, err := k.nodeList(ctx, selector)
	if err == nil && len(list) == 0 {
		return nil, fmt.Errorf("-l %s picks no node", selector)
	}
	return list, err
}

// nodeList are all nodes, or those that a selector picks, by name.
func (k *cluster) nodeList(ctx context.Context, selector string) ([]*corev1.Node, error) {
	list, err := k.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, plain("list nodes", err)
	}
	out := make([]*corev1.Node, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	slices.SortFunc(out, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// nodeNames are names without node/ before them, each once, in order.
func nodeNames(args []string) []string {
	var out []string
	for _, arg := range args {
		name := arg
		if kind, bare := splitKind(arg); kind == kindNode {
			name = bare
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// askedBy is what a requestor asks of a node, or what is left of it; nil: nothing.
func askedBy(n nodes.Node, requestor string) *nodes.Asked {
	i := slices.IndexFunc(n.Asked, func(a nodes.Asked) bool { return a.Request.Requestor == requestor })
	if i < 0 {
		return nil
	}
	return &n.Asked[i]
}

// annotateNode writes an intent on a node as annotate does on documents, and says
// how the node stands after it.
func (k *cluster) annotateNode(ctx context.Context, n *corev1.Node, dry *dryRun, decide func(*corev1.Node) (change, error)) (*corev1.Node, error) {
	for {
		c, err := decide(n)
		if err != nil || len(c) == 0 || dry.client() {
			return n, err
		}
		patch, err := mergePatch(n.ObjectMeta, c)
		if err != nil {
			return n, err
		}
		written, err := k.kube.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, dry.options())
		if err == nil {
			return written, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) { // another uid is invalid
			return n, plain("write to node "+n.Name, err)
		}
		now, readErr := k.kube.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(readErr) || readErr == nil && now.UID != n.UID:
			return n, fmt.Errorf("node %s was deleted, or created again, meanwhile: look at it and ask again", n.Name)
		case readErr != nil:
			return n, plain("read again what somebody changed meanwhile", readErr)
		case apierrors.IsInvalid(err):
			return n, plain("write to node "+n.Name, err)
		}
		n = now
	}
}

// cliRequestor begins the names under which people ask for nodes.
const cliRequestor = "cli."

// requestorOf is who asks: the name that was given, or cli.<user>.
func (k *cluster) requestorOf(ctx context.Context, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	user := k.actor(ctx)
	if user == "" {
		return "", errors.New("the API server does not say who you are: name the requestor with --requestor")
	}
	return requestorName(user), nil
}

// requestorName is a user's name as a requestor: in small letters, with a dash for
// what a requestor's name may not hold. A hash stands in for the end of a long one.
func requestorName(user string) string {
	const longest = 63
	text := regexp.MustCompile(`[^a-z0-9.]+`).ReplaceAllString(strings.ToLower(user), "-")
	text = regexp.MustCompile(`-*\.[-.]*`).ReplaceAllString(text, ".")
	if text = strings.Trim(text, "-."); text == "" {
		text = annotations.Hash10(user)
	}
	if len(cliRequestor+text) > longest {
		keep := longest - len(cliRequestor) - 11
		text = strings.TrimRight(text[:keep], "-.") + "-" + annotations.Hash10(user)
	}
	return cliRequestor + text
}

// checkRequestor refuses a name under which nobody can ask.
func checkRequestor(name string, f *faults) {
	if name == "" {
		return
	}
	if _, err := nodes.Parse(name, ""); err != nil {
		f.add("--requestor: %v", err)
	}
}

// checkNodes refuses a command line that names no nodes, or names them twice.
func checkNodes(names []string, selector string, f *faults) {
	switch {
	case len(names) > 0 && selector != "":
		f.add("-l and names exclude each other")
	case len(names) == 0 && selector == "":
		f.add("NODE is missing; or pick nodes with -l")
	}
}

// nodeWords are some nodes in a sentence, the first few by name.
func nodeWords(names []string) string {
	const few = 10
	switch {
	case len(names) == 1:
		return "node " + names[0]
	case len(names) > few:
		return fmt.Sprintf("%d nodes (%s and %d more)", len(names), strings.Join(names[:few], ", "), len(names)-few)
	}
	return fmt.Sprintf("%d nodes (%s)", len(names), strings.Join(names, ", "))
}
