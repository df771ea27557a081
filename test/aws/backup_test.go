package aws

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	awsrds "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/rds"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// saves is a step that takes a snapshot of a database, in some run.
func saves(run, component string) executors.Call {
	in := call(nil)
	return executors.Call{
		Run: run, Plan: executors.PlanRef{Name: "weekly", Namespace: in.Plan.Namespace, Account: in.Plan.Account}, Path: "save", Attempt: 1, Now: time.Now(), Clients: in.Clients, Cloud: in.Cloud,
		Properties: &plan.BackupProperties{Method: plan.MethodRDSSnapshot, Component: component},
	}
}

// saved passes until the step has ended.
func saved(t *testing.T, step executors.Executor, c executors.Call) executors.Outcome {
	t.Helper()
	for range 5 {
		if out := step.Pass(t.Context(), c); out.State != executors.NotYet {
			return out
		}
	}
	t.Fatal("it has no end")
	return executors.Outcome{}
}

func TestBackupsOfDatabases(t *testing.T) {
	w := newDatabases(t, false)
	step := awsrds.NewBackups(session.NewPool(time.Now))
	for component, id := range map[string]string{"stg-orders": "db/stg-orders", "arn:aws:rds:" + region + ":" + account + ":cluster:stg-shop": "cluster/stg-shop"} {
		dry := saves("dry", component)
		dry.DryRun = true
		if out := saved(t, step, dry); out.State != executors.Done || !strings.HasPrefix(out.Message, "dry run: would take the snapshot maint-weekly-stg-") {
			t.Fatalf("%s: %v %q", component, out.State, out.Message)
		}
		first, again := saved(t, step, saves("weekly-1", component)), saved(t, step, saves("weekly-1", component))
		if first.State != executors.Done || first.Outputs["database"] != id || first.Outputs["snapshot"] != again.Outputs["snapshot"] {
			t.Fatalf("%s: %v %q, then %q", component, first.State, first.Message, again.Message)
		}
		if arn, _ := first.Outputs["arn"].(string); !strings.HasPrefix(arn, "arn:aws:rds:"+region+":"+account+":") || !strings.HasSuffix(arn, first.Outputs["snapshot"].(string)) {
			t.Errorf("%s: its ARN is %q", component, arn)
		}
	}
	instances, err := w.api.DescribeDBSnapshots(t.Context(), &rds.DescribeDBSnapshotsInput{SnapshotType: aws.String("manual")})
	if err != nil || len(instances.DBSnapshots) != 1 {
		t.Fatalf("of instances there are %d, %v", len(instances.DBSnapshots), err)
	}
	clusters, err := w.api.DescribeDBClusterSnapshots(t.Context(), &rds.DescribeDBClusterSnapshotsInput{SnapshotType: aws.String("manual")})
	if err != nil || len(clusters.DBClusterSnapshots) != 1 {
		t.Fatalf("of clusters there are %d, %v", len(clusters.DBClusterSnapshots), err)
	}
}

func TestOlderBackupsOfADatabaseGo(t *testing.T) {
	w := newDatabases(t, false)
	step := awsrds.NewBackups(session.NewPool(time.Now))
	if _, err := w.api.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String("stg-orders"), DBSnapshotIdentifier: aws.String("by-hand")}); err != nil {
		t.Fatal(err)
	}
	old := saved(t, step, saves("weekly-1", "stg-orders"))
	next := saves("weekly-2", "stg-orders")
	next.Now = next.Now.Add(8 * 24 * time.Hour)
	next.Properties.(*plan.BackupProperties).Retain = &document.Duration{Duration: 7 * 24 * time.Hour}
	out := saved(t, step, next)
	if out.State != executors.Done || !strings.Contains(out.Message, "1 older snapshots were deleted") {
		t.Fatalf("%v %q", out.State, out.Message)
	}
	there, err := w.api.DescribeDBSnapshots(t.Context(), &rds.DescribeDBSnapshotsInput{SnapshotType: aws.String("manual")})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range there.DBSnapshots {
		names = append(names, *s.DBSnapshotIdentifier)
	}
	all := strings.Join(names, " ")
	if len(names) != 2 || !strings.Contains(all, "by-hand") || !strings.Contains(all, out.Outputs["snapshot"].(string)) || strings.Contains(all, old.Outputs["snapshot"].(string)) {
		t.Errorf("there are %q", names)
	}
}

func TestASnapshotOfSomebodyElseWithTheNameOfABackup(t *testing.T) {
	w := newDatabases(t, false)
	step := awsrds.NewBackups(session.NewPool(time.Now))
	out := saved(t, step, saves("weekly-1", "stg-orders"))
	name := aws.String(out.Outputs["snapshot"].(string))
	if _, err := w.api.DeleteDBSnapshot(t.Context(), &rds.DeleteDBSnapshotInput{DBSnapshotIdentifier: name}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.api.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String("stg-orders"), DBSnapshotIdentifier: name, Tags: []types.Tag{env("stg")}}); err != nil {
		t.Fatal(err)
	}
	if out := saved(t, step, saves("weekly-1", "stg-orders")); out.Reason != "NotOurs" || !out.Permanent {
		t.Errorf("%v %s %q", out.State, out.Reason, out.Message)
	}
}

func TestABackupInAnotherAccountIsNotTaken(t *testing.T) {
	w := newDatabases(t, false)
	c := saves("weekly-1", "stg-orders")
	cloud := *c.Cloud
	cloud.AWS.AccountID, c.Cloud = "999999999999", &cloud
	out := saved(t, awsrds.NewBackups(session.NewPool(time.Now)), c)
	if out.State != executors.Failed || out.Reason != executors.ReasonNoConnection || !strings.Contains(out.Message, "of account "+account+", and the connector names 999999999999: nothing is done") {
		t.Errorf("%v %s %q", out.State, out.Reason, out.Message)
	}
	there, err := w.api.DescribeDBSnapshots(t.Context(), &rds.DescribeDBSnapshotsInput{SnapshotType: aws.String("manual")})
	if err != nil || len(there.DBSnapshots) > 0 {
		t.Errorf("there are %d, %v", len(there.DBSnapshots), err)
	}
}
