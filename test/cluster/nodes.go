package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// createNodes creates the nodes of the options and waits until all are Ready.
func (c *Cluster) createNodes(ctx context.Context) error {
	if c.options.Nodes == 0 {
		return nil
	}
	c.progress("creating %d nodes", c.options.Nodes)
	client, err := c.clientset()
	if err != nil {
		return err
	}
	for i := range c.options.Nodes {
		if _, err := client.CoreV1().Nodes().Create(ctx, simulatedNode(i), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %d: %w", i, err)
		}
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		return countReady(nodes.Items) >= c.options.Nodes, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %d nodes are Ready: %w", c.options.Nodes, err)
	}
	return nil
}

func simulatedNode(i int) *corev1.Node {
	name := fmt.Sprintf("node-%d", i)
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name,
		Labels: map[string]string{
			corev1.LabelHostname:   name,
			corev1.LabelOSStable:   "linux",
			corev1.LabelArchStable: "amd64",
			"type":                 "kwok",
		},
		Annotations: map[string]string{
			"kwok.x-k8s.io/node":           "fake",
			"node.alpha.kubernetes.io/ttl": "0",
		},
	}}
}

// countReady counts the nodes on which pods can start: Ready, and no longer
// tainted as new.
func countReady(nodes []corev1.Node) int {
	count := 0
	for _, node := range nodes {
		if len(node.Spec.Taints) > 0 {
			continue
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				count++
			}
		}
	}
	return count
}
