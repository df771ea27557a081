package hibernate_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/moto"
)

// saves is a plan whose step takes a snapshot of a database, with the rights for it.
func (l *cloudLab) saves(db database) {
	l.Helper()
	l.runner(readsKeys())
	l.keys()
	l.connector(moto.Account, byKeys)
	text := fmt.Sprintf(`apiVersion: maint.dev/v1alpha1
kind: Plan
spec:
  steps:
  - {name: save, type: backup, connectorRef: {kind: CloudProvider, name: stg}, properties: {method: rds-snapshot, component: %s}}
`, db.name)
	cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewPlan(l.ns, "weekly", text, ""), metav1.CreateOptions{})
	l.must(err)
	l.eventually("the plan is taken up", func() (bool, string) {
		a := l.annotationsOf("weekly")
		return a[annotations.StatusObserved] == annotations.Observed(cm), fmt.Sprint(a)
	})
	l.annotate("weekly", map[string]string{annotations.Trigger: "now"})
}

// ended is the plan's one run, once it is over.
func (l *lab) ended(name string) (out run.Journal) {
	l.Helper()
	l.eventually("the run of "+name+" ends", func() (bool, string) {
		list, err := l.admin.CoreV1().ConfigMaps(l.ns).List(l.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=run," + annotations.LabelPlan + "=" + name})
		l.must(err)
		if len(list.Items) != 1 {
			return false, fmt.Sprint(len(list.Items), " runs: ", l.annotationsOf(name))
		}
		_, out, err = annotations.ReadRun(&list.Items[0])
		l.must(err)
		return out.Phase.Ended(), fmt.Sprintf("%+v", out.Steps)
	})
	return out
}

// snapshotNames are those of the database that people or programs made.
func (d database) snapshotNames(l *cloudLab) []string {
	l.Helper()
	all, err := d.api.DescribeDBSnapshots(l.ctx, &rds.DescribeDBSnapshotsInput{DBInstanceIdentifier: aws.String(d.name), SnapshotType: aws.String("manual")})
	l.must(err)
	var out []string
	for _, s := range all.DBSnapshots {
		out = append(out, *s.DBSnapshotIdentifier)
	}
	return out
}

// saved makes sure that the run succeeded with the one snapshot that there is.
func (l *cloudLab) saved(db database, when string) {
	l.Helper()
	journal := l.ended("weekly")
	if journal.Phase != run.Succeeded || len(journal.Steps) != 1 {
		l.Fatalf("%s: the run is %s: %+v", when, journal.Phase, journal.Steps)
	}
	step := journal.Steps[0]
	made, _ := step.Outputs["snapshot"].(string)
	if diff := cmp.Diff([]string{made}, db.snapshotNames(l)); diff != "" || step.Attempts() != 1 {
		l.Errorf("%s: after %d attempts (-said +there):\n%s", when, step.Attempts(), diff)
	}
}

func TestAPlanTakesASnapshotOfADatabase(t *testing.T) {
	l := newCloudLab(t)
	db := l.database()
	l.saves(db)
	l.saved(db, "whole")
}

// Wherever the agent is killed around the request for the snapshot, the next one finds that
// same snapshot, and takes no second one.
func TestAKillWhileASnapshotIsTakenLeavesOne(t *testing.T) {
	newCloudLab(t) // that there is an AWS
	x := newCrashing(t)
	for _, c := range []struct {
		action string
		nth    int
		lost   bool
	}{
		{"CreateDBSnapshot", 1, false}, {"CreateDBSnapshot", 1, true}, {"DescribeDBSnapshots", 1, true}, {"DescribeDBSnapshots", 2, false}, {"DescribeDBSnapshots", 2, true},
	} {
		t.Run(fmt.Sprintf("%s %d, its reply lost %t", c.action, c.nth, c.lost), func(t *testing.T) {
			l := newCloudLab(t)
			db := l.database()
			deadly := newDeadlyAWS(t, c.nth, c.lost)
			deadly.action = c.action
			l.must(os.Setenv("AWS_ENDPOINT_URL", deadly.URL))
			victim := x.victim(l.lab)
			l.must(os.Setenv("AWS_ENDPOINT_URL", world.aws.Endpoint))
			deadly.kills(victim.kill)
			l.saves(db)
			l.saved(db, "killed at "+c.action)
			where := deadly.asked()
			victim.end(where != "")
			if where != c.action {
				t.Errorf("it was killed at %q", where)
			}
		})
	}
}
