package node

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/choice"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

// each does something with each node, as kubectl drain does: where one fails, the others go on. The error
// names each node that failed.
func each(ctx context.Context, c *factory.Factory, targets []*corev1.Node, do func(*corev1.Node) error) error {
	object := func(n *corev1.Node) metav1.Object { return n }
	return choice.Each(ctx, c, choice.Chosen{ByName: true}, targets, object, func(n *corev1.Node) error {
		err := do(n)
		if err == nil || len(targets) == 1 || strings.Contains(err.Error(), n.Name) {
			return err
		}
		return fmt.Errorf("node %s: %w", n.Name, err)
	})
}

// goOn waits for the nodes that are left where some of all have failed. What failed is returned at the end, too:
// the exit code of the wait counts first.
func goOn(c *factory.Factory, missed, all int, failed error, wait func() error) error {
	if missed > 0 {
		c.Warn(fmt.Sprintf("%d of %d nodes failed; waiting for the others, and the errors follow at the end", missed, all))
	}
	return errors.Join(wait(), failed)
}
