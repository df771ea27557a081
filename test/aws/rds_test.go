package aws

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	awsrds "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/rds"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// databases is a world of instances and clusters, of which those with env=stg sleep.
type databases struct {
	t         *testing.T
	api       *rds.Client
	sleeper   executors.Sleeper
	snapshots bool
}

func (w *databases) instance(name, cluster string, tags ...types.Tag) {
	w.t.Helper()
	in := &rds.CreateDBInstanceInput{DBInstanceIdentifier: aws.String(name), DBInstanceClass: aws.String("db.t3.medium"), Engine: aws.String("postgres"), MasterUsername: aws.String("root"), MasterUserPassword: aws.String("hunter22"), AllocatedStorage: aws.Int32(20), Tags: tags}
	if cluster != "" {
		in.DBClusterIdentifier, in.Engine, in.MasterUsername, in.MasterUserPassword, in.AllocatedStorage = aws.String(cluster), aws.String("aurora-postgresql"), nil, nil, nil
	}
	if _, err := w.api.CreateDBInstance(w.t.Context(), in); err != nil {
		w.t.Fatal(err)
	}
}

func (w *databases) cluster(name string, tags ...types.Tag) {
	w.t.Helper()
	in := &rds.CreateDBClusterInput{DBClusterIdentifier: aws.String(name), Engine: aws.String("aurora-postgresql"), MasterUsername: aws.String("root"), MasterUserPassword: aws.String("hunter22"), Tags: tags}
	if _, err := w.api.CreateDBCluster(w.t.Context(), in); err != nil {
		w.t.Fatal(err)
	}
	w.instance(name+"-1", name, tags...)
}

func env(value string) types.Tag {
	return types.Tag{Key: aws.String("env"), Value: aws.String(value)}
}

func newDatabases(t *testing.T, snapshots bool) *databases {
	w := &databases{t: t, api: rds.NewFromConfig(fresh(t)), sleeper: awsrds.New(session.NewPool(time.Now)), snapshots: snapshots}
	w.instance("stg-orders", "", env("stg"))
	w.instance("stg-users", "", env("stg"))
	w.cluster("stg-shop", env("stg"))
	w.instance("prod-orders", "", env("prod"))
	w.cluster("prod-shop", env("prod"))
	return w
}

func (w *databases) Sleeper() executors.Sleeper { return w.sleeper }

func (w *databases) Call() executors.SleepCall {
	return call(&hibernate.RDSParameters{Selector: &hibernate.CloudSelector{Tags: map[string]string{"env": "stg"}}, SnapshotBeforeStop: w.snapshots})
}

func (w *databases) State(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	instances, err := w.api.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range instances.DBInstances {
		if i.DBClusterIdentifier == nil { // of members moto knows nothing
			out["db/"+*i.DBInstanceIdentifier] = *i.DBInstanceStatus
		}
	}
	clusters, err := w.api.DescribeDBClusters(t.Context(), &rds.DescribeDBClustersInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range clusters.DBClusters {
		out["cluster/"+*c.DBClusterIdentifier] = *c.Status
	}
	return out
}

func (w *databases) Outside(id string) bool { return strings.Contains(id, "/prod") }

func (w *databases) Unselect(t *testing.T) bool {
	t.Helper()
	for _, arn := range []string{"db:stg-orders", "db:stg-users", "cluster:stg-shop", "db:stg-shop-1"} {
		in := &rds.RemoveTagsFromResourceInput{ResourceName: aws.String("arn:aws:rds:" + region + ":" + account + ":" + arn), TagKeys: []string{"env"}}
		if _, err := w.api.RemoveTagsFromResource(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	return true
}

func (w *databases) Settle(*testing.T) {}

func TestDatabasesOfRDS(t *testing.T) {
	for name, snapshots := range map[string]bool{"with snapshots": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			sleepertest.Run(t, func(t *testing.T) sleepertest.Backend { return newDatabases(t, snapshots) })
		})
	}
}

// The snapshots of two cycles are kept, and that of a third before them is not.
func TestSnapshotsOfRDSAreTakenAndKept(t *testing.T) {
	w := newDatabases(t, true)
	for _, cycle := range []string{"nights-2026-11-21T20:00:00Z", "nights-2026-11-22T20:00:00Z", "nights-2026-11-23T20:00:00Z"} {
		c := w.Call()
		c.Plan.Name, c.Target, c.Cycle, c.Snapshots, c.Operation, c.Now = "nights", "db", cycle, 2, hibernate.Shutdown, time.Now()
		r := hibernate.Record{Operation: hibernate.Shutdown}
		for range 5 {
			c.Recorded = r.Resources
			seen, err := w.sleeper.Observe(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			step := r.ToSleep(seen, time.Now())
			r = step.Record
			for _, result := range w.sleeper.Shutdown(t.Context(), c, step.Due) {
				if result.Err != nil {
					t.Fatal(result.Err)
				}
			}
		}
		for _, name := range []string{"stg-orders", "stg-users"} {
			if _, err := w.api.StartDBInstance(t.Context(), &rds.StartDBInstanceInput{DBInstanceIdentifier: aws.String(name)}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.api.StartDBCluster(t.Context(), &rds.StartDBClusterInput{DBClusterIdentifier: aws.String("stg-shop")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // moto's clock has seconds
	}
	instance, err := w.api.DescribeDBSnapshots(t.Context(), &rds.DescribeDBSnapshotsInput{DBInstanceIdentifier: aws.String("stg-orders"), SnapshotType: aws.String("manual")})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range instance.DBSnapshots {
		names = append(names, *s.DBSnapshotIdentifier)
	}
	if len(names) != 2 || strings.Contains(strings.Join(names, " "), "2026-11-21t") {
		t.Errorf("of an instance there are %q", names)
	}
	cluster, err := w.api.DescribeDBClusterSnapshots(t.Context(), &rds.DescribeDBClusterSnapshotsInput{DBClusterIdentifier: aws.String("stg-shop"), SnapshotType: aws.String("manual")})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(cluster.DBClusterSnapshots); n != 2 {
		t.Errorf("of a cluster there are %d", n)
	}
}
