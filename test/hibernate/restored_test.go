package hibernate_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// outOfBackup is an object's metadata as it is made anew.
func outOfBackup(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: m.Name, Labels: m.Labels, Annotations: m.Annotations, Finalizers: m.Finalizers}
}

// A namespace is lost while it sleeps, and put back as tools for backups do it: all has other
// uids, and workloads come last.
func TestANamespaceOutOfABackupWakesAsItWas(t *testing.T) {
	l := newLab(t)
	l.runner(sleepRights()...)
	l.deployment("orders", 3)
	l.cronJob("report")
	l.sleeper("nights", workloads())
	l.annotate("nights", map[string]string{annotations.HoldState: "asleep"})
	l.phaseOf("nights", hibernate.Hibernated, "1 of 1 targets sleep")
	maps := l.admin.CoreV1().ConfigMaps(l.ns)
	plan, err := maps.Get(l.ctx, "nights", metav1.GetOptions{})
	l.must(err)
	data, err := maps.Get(l.ctx, annotations.RestoreName("nights", "apps"), metav1.GetOptions{})
	l.must(err)
	orders, err := l.admin.AppsV1().Deployments(l.ns).Get(l.ctx, "orders", metav1.GetOptions{})
	l.must(err)
	report, err := l.admin.BatchV1().CronJobs(l.ns).Get(l.ctx, "report", metav1.GetOptions{})
	l.must(err)

	l.must(l.admin.CoreV1().Namespaces().Delete(l.ctx, l.ns, metav1.DeleteOptions{}))
	l.eventually("the namespace is lost", func() (bool, string) {
		_, err := l.admin.CoreV1().Namespaces().Get(l.ctx, l.ns, metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	_, err = l.admin.CoreV1().Namespaces().Create(l.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.ns}}, metav1.CreateOptions{})
	l.must(err)
	l.runner(sleepRights()...)
	delete(plan.Annotations, annotations.HoldState)
	for _, cm := range []*corev1.ConfigMap{data, plan} {
		cm.ObjectMeta = outOfBackup(cm.ObjectMeta)
		_, err = maps.Create(l.ctx, cm, metav1.CreateOptions{})
		l.must(err)
	}
	l.phaseOf("nights", hibernate.WakingUp, "")
	time.Sleep(2 * time.Second)
	orders.ObjectMeta, report.ObjectMeta = outOfBackup(orders.ObjectMeta), outOfBackup(report.ObjectMeta)
	_, err = l.admin.AppsV1().Deployments(l.ns).Create(l.ctx, orders, metav1.CreateOptions{})
	l.must(err)
	_, err = l.admin.BatchV1().CronJobs(l.ns).Create(l.ctx, report, metav1.CreateOptions{})
	l.must(err)
	l.eventually("all is as it was", func() (bool, string) {
		return l.replicas("orders") == 3 && !l.suspended("report"), fmt.Sprint(l.replicas("orders"), l.suspended("report"))
	})
	l.eventually("the restore data has served", func() (bool, string) { return l.restoreData("nights", "apps") == nil, "" })
	l.phaseOf("nights", hibernate.Active, "")
}
