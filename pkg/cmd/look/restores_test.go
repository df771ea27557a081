package look

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

func TestRestoreDataInLines(t *testing.T) {
	web := hibernate.Resource{ID: "apps/v1/Deployment/web", Before: []byte(`{}`)}
	left := hibernate.Resource{ID: "apps/v1/Deployment/api", Before: []byte(`{}`), Left: "it is gone"}
	of := func(fault string, resources ...hibernate.Resource) view.Restore {
		cm := &corev1.ConfigMap{}
		cm.Name = "maint-restore-office-x"
		return view.Restore{Object: cm, Record: cmdtest.Slept("office", "apps", resources...), Fault: fault}
	}
	unread := of("it is cut off")
	unread.Record = hibernate.Record{}
	want := []string{
		"", "Restore data:",
		"  maint-restore-office-x  apps: 1 resource to be woken",
		"  maint-restore-office-x  apps: 1 resource to be woken, 1 left as they are; does not count: it carries no signature",
		"  maint-restore-office-x  ; does not count: it is cut off",
	}
	if diff := cmp.Diff(want, restoreLines([]view.Restore{of("", web), of("it carries no signature", web, left), unread})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := restoreLines(nil); got != nil {
		t.Errorf("%q", got)
	}
}
