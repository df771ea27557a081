package plans

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// leave ends what is done for a plan that is gone or goes; cm is nil where it is gone.
func (c *Controller) leave(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap) error {
	c.Watches.Targets.Drop(k)
	c.blockers.drop(k)
	c.Watches.Rules.Drop(k)
	c.troubles.drop(k)
	c.Stores.Runs.Quota.Forget(k)
	if cm != nil {
		return c.PublishDeleting(ctx, cm, &c.Stores.Plans.Of(cm).Written)
	}
	if c.Stores.Documents.Terminating(k.Namespace) {
		c.blockers.leaving.drop(k)
	} else {
		c.leaveMirror(ctx, k)
	}
	c.Stores.Plans.Drop(k)
	c.lookAgainAtSharing(k)
	return nil
}

// PublishDeleting says on a plan of either kind that its namespace is being deleted, for those who
// may not read the namespace. Documents may stay for as long as its pods take to end.
func (c *Controller) PublishDeleting(ctx context.Context, cm *corev1.ConfigMap, last *status.Written) error {
	if cm.DeletionTimestamp != nil || !c.Stores.Documents.Terminating(cm.Namespace) {
		return nil
	}
	deleting := metav1.Condition{Type: annotations.NamespaceDeleting, Status: metav1.ConditionTrue, Reason: "Deleted", Message: "the namespace is being deleted: nothing begins in it"}
	_, err := c.Status.Write(ctx, cm, last, func(have map[string]string) map[string]string {
		conditions := slices.DeleteFunc(status.Read(have[annotations.StatusConditions]), func(c metav1.Condition) bool { return c.Type == deleting.Type })
		return map[string]string{
			annotations.StatusMessage: deleting.Message, annotations.StatusNextRun: "", annotations.StatusSleeps: "",
			annotations.StatusConditions: status.Conditions(have[annotations.StatusConditions], append(conditions, deleting), c.Now()),
		}
	})
	return err
}
