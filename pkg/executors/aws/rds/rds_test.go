package rds

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

func TestDatabasesSleepAsEveryTargetDoes(t *testing.T) {
	for name, snapshots := range map[string]bool{"with snapshots": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			sleepertest.Run(t, func(*testing.T) sleepertest.Backend {
				a := newAccount()
				a.add("stg-orders", statusAvailable, "env=stg")
				a.add("stg-users", statusAvailable, "env=stg")
				a.addCluster("stg-shop", statusAvailable, "env=stg")
				a.add("prod", statusAvailable, "env=prod")
				a.addCluster("prod-shop", statusAvailable, "env=prod")
				a.add("off", statusStopped, "env=stg")
				a.add("replica", statusAvailable, "env=stg").ReadReplicaSourceDBInstanceIdentifier = aws.String("prod")
				return world{a, snapshots}
			})
		})
	}
}

// target is one of an account with the tag env=stg, and its record.
type target struct {
	*account
	call   executors.SleepCall
	record hibernate.Record
}

func nights(a *account, snapshots bool) *target {
	return &target{account: a, call: executors.SleepCall{
		Plan: executors.PlanRef{Name: "nights", Namespace: "team"}, Target: "db", Cycle: "nights-2026-11-23T20:00:00Z", Operation: hibernate.Shutdown, Snapshots: 2, Now: time.Now(),
		Params: &hibernate.RDSParameters{Selector: &hibernate.CloudSelector{Tags: map[string]string{"env": "stg"}}, SnapshotBeforeStop: snapshots},
	}}
}

// pass is one look and what follows; it says what failed.
func (x *target) pass(t *testing.T) string {
	t.Helper()
	x.call.Recorded = x.record.Resources
	seen, err := x.sleeps().Observe(t.Context(), x.call)
	if err != nil {
		t.Fatal(err)
	}
	step, act := x.record.ToSleep(seen, x.call.Now), x.sleeps().Shutdown
	if x.call.Operation == hibernate.Wake {
		step, act = x.record.ToWake(seen, x.call.Now), x.sleeps().Wake
	}
	x.record = step.Record
	x.call.Recorded = x.record.Resources
	var said []string
	for _, r := range act(t.Context(), x.call, step.Due) {
		if r.Err != nil {
			said = append(said, r.Err.Error())
		}
	}
	return strings.Join(said, "; ")
}

func TestWhatAWSRefusesOfADatabaseIsSaidOfItAndTheOthersAreStopped(t *testing.T) {
	for _, code := range []string{"AccessDenied", "UnauthorizedOperation", "KMSKeyNotAccessibleFault"} {
		a := newAccount()
		a.add("orders", statusAvailable, "env=stg")
		a.add("users", statusAvailable, "env=stg")
		a.refuses["db/orders"] = code
		x := nights(a, false)
		if got, want := x.pass(t), "stop db/orders: "+code+": User: nights is not authorized to perform: rds:StopDBInstance"; got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
		if got := *a.instances["users"].DBInstanceStatus; got != statusStopping {
			t.Errorf("the other is %s", got)
		}
	}
}

func TestWhenAWSHasTooMuchToDoItIsNotAskedForTheOtherDatabases(t *testing.T) {
	for _, code := range []string{"Throttling", "ThrottlingException", "RequestLimitExceeded"} {
		a := newAccount()
		a.add("orders", statusAvailable, "env=stg")
		a.add("users", statusAvailable, "env=stg")
		a.refuses["db/orders"], a.refuses["db/users"] = code, code
		x := nights(a, false)
		if got := x.pass(t); !strings.HasPrefix(got, "stop db/orders: "+code) || strings.Contains(got, "users") || len(a.asked) != 1 {
			t.Errorf("it says %q and asks for %q", got, a.asked)
		}
		clear(a.refuses)
		if got := x.pass(t); got != "" || len(a.asked) != 3 {
			t.Errorf("at the next look it says %q and has asked for %q", got, a.asked)
		}
	}
}

func TestADatabaseIsStoppedOnceItsSnapshotIsThere(t *testing.T) {
	a := newAccount()
	a.add("orders", statusAvailable, "env=stg")
	x := nights(a, true)
	for range 4 {
		if failed := x.pass(t); failed != "" {
			t.Error(failed)
		}
		if got := *a.instances["orders"].DBInstanceStatus; got == statusStopping && a.taken[snapshotName(x.call, "db/orders")].status != statusAvailable {
			t.Error("it stops without a snapshot")
		}
		a.settle()
	}
	if diff := cmp.Diff([]string{"snapshot db/orders", "stop db/orders"}, a.asked); diff != "" {
		t.Error(diff)
	}
}

// A database that was held awake in the night holds what no snapshot from before it does: one
// is taken anew in the same cycle.
func TestASecondSleepInACycleTakesASnapshotOfItsOwn(t *testing.T) {
	a := newAccount()
	a.add("orders", statusAvailable, "env=stg")
	began := time.Date(2026, 11, 23, 20, 0, 5, 0, time.UTC)
	for _, at := range []time.Time{began, began.Add(4 * time.Hour)} {
		x := nights(a, true)
		x.call.StartedAt = at
		for range 4 {
			x.pass(t)
			a.settle()
		}
		if got := *a.instances["orders"].DBInstanceStatus; got != statusStopped {
			t.Fatalf("it is %s", got)
		}
		*a.instances["orders"].DBInstanceStatus = statusAvailable // somebody works in it
	}
	if diff := cmp.Diff([]string{"snapshot db/orders", "stop db/orders", "snapshot db/orders", "stop db/orders"}, a.asked); diff != "" {
		t.Error(diff)
	}
}

func TestASnapshotThatFailedIsTakenAnew(t *testing.T) {
	a := newAccount()
	a.add("orders", statusAvailable, "env=stg")
	x := nights(a, true)
	x.pass(t)
	name := snapshotName(x.call, "db/orders")
	a.settle()
	a.taken[name].status = "failed"
	if failed := x.pass(t); !strings.Contains(failed, "is failed; it is taken anew") {
		t.Errorf("it says %q", failed)
	}
	for range 3 {
		x.pass(t)
		a.settle()
	}
	if got := *a.instances["orders"].DBInstanceStatus; got != statusStopped || a.taken[name].status != statusAvailable {
		t.Errorf("it is %s, asked %q", got, a.asked)
	}
}

func TestTheNewestSnapshotsOfThePlanAreKeptAndThoseOfOthersNeverTouched(t *testing.T) {
	a := newAccount()
	a.add("orders", statusAvailable, "env=stg")
	x := nights(a, true)
	own := tagsOfCall(x.call)
	for name, s := range map[string]*taken{
		"ours-1":    {status: statusAvailable, at: a.now.Add(-72 * time.Hour), tags: own},
		"ours-2":    {status: statusAvailable, at: a.now.Add(-48 * time.Hour), tags: own},
		"ours-3":    {status: statusAvailable, at: a.now.Add(-24 * time.Hour), tags: own},
		"ours-bad":  {status: "failed", at: a.now.Add(-24 * time.Hour), tags: own},
		"somebodys": {status: statusAvailable, at: a.now.Add(-99 * time.Hour)},
		"anothers":  {status: statusAvailable, at: a.now.Add(-99 * time.Hour), tags: tagsOfCall(executors.SleepCall{Plan: executors.PlanRef{Namespace: "other", Name: "nights"}, Target: "db"})},
	} {
		s.of = "db/orders"
		a.taken[name] = s
	}
	for range 4 {
		x.pass(t)
		a.settle()
	}
	var got []string
	for name := range a.taken {
		got = append(got, name)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"anothers", snapshotName(x.call, "db/orders"), "ours-3", "ours-bad", "somebodys"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSnapshotsHaveNamesThatRDSTakes(t *testing.T) {
	x := nights(newAccount(), true)
	valid := regexp.MustCompile(`^[a-z](-?[a-z0-9])*$`)
	seen := map[string]bool{}
	for _, plan := range []string{"nights", "a--b", strings.Repeat("n", 63), "x-1"} {
		for _, id := range []string{"db/orders", "cluster/orders", "db/" + strings.Repeat("o", 63)} {
			call := x.call
			call.Plan.Name, call.Cycle = plan, plan+"-2026-11-23T20:00:00Z"
			name := snapshotName(call, id)
			if !valid.MatchString(name) || len(name) > 255 || seen[name] {
				t.Errorf("%q", name)
			}
			seen[name] = true
			call.Cycle = plan + "-2026-11-24T20:00:00Z"
			if snapshotName(call, id) == name {
				t.Errorf("two cycles have %q", name)
			}
		}
	}
	if got := snapshotName(x.call, "db/orders"); !strings.HasPrefix(got, "maint-nights-orders-2026-11-23t20-00-00z-") {
		t.Errorf("it is named %q", got)
	}
}

func TestWhatAWSStartsAfterSevenDaysIsPutToSleepAgainAndWhatAPersonStartsIsNot(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		want  string
	}{
		"after a week": {7 * 24 * time.Hour, statusStopped},
		"on Sunday":    {40 * time.Hour, statusAvailable},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			a.add("orders", statusAvailable, "env=stg")
			x := nights(a, false)
			for range 3 {
				x.pass(t)
				a.settle()
			}
			x.call.Now = x.call.Now.Add(c.after)
			a.instances["orders"].DBInstanceStatus = aws.String(statusAvailable)
			for range 3 {
				x.pass(t)
				a.settle()
			}
			if got := *a.instances["orders"].DBInstanceStatus; got != c.want {
				t.Errorf("it is %s: %+v", got, x.record.Resources)
			}
		})
	}
}

// passes are looks, between which what is on its way arrives. Nothing may fail.
func (x *target) passes(t *testing.T) {
	t.Helper()
	for range 5 {
		if failed := x.pass(t); failed != "" {
			t.Errorf("it says %q", failed)
		}
		x.settle()
	}
}

// both has the instance orders and the cluster shop be of a status.
func (a *account) both(status string) {
	a.instances["orders"].DBInstanceStatus, a.clusters["shop"].Status = aws.String(status), aws.String(status)
}

func (a *account) are() string {
	return *a.instances["orders"].DBInstanceStatus + " " + *a.clusters["shop"].Status
}

func sleepingDatabases(t *testing.T, snapshots bool) *target {
	t.Helper()
	a := newAccount()
	a.add("orders", statusAvailable, "env=stg")
	a.addCluster("shop", statusAvailable, "env=stg")
	x := nights(a, snapshots)
	x.call.StartedAt = x.call.Now
	x.passes(t)
	if x.are() != "stopped stopped" {
		t.Fatalf("they are %s: %+v", x.are(), x.record.Resources)
	}
	return x
}

// wakes has both wake, and makes sure that they are as they were.
func (x *target) wakes(t *testing.T) {
	t.Helper()
	x.call.Operation, x.call.StartedAt = hibernate.Wake, x.call.Now
	x.passes(t)
	if x.are() != "available available" {
		t.Errorf("they are %s", x.are())
	}
	for _, r := range x.record.Resources {
		if r.RestoredAt == nil || r.Left != "" {
			t.Errorf("%s is left: %q", r.ID, r.Left)
		}
	}
}

// Whoever sleeps for weeks is started by AWS each week, and stopped again each time.
func TestDatabasesThatSleepForWeeksAreStoppedAfterEachStartByAWS(t *testing.T) {
	for name, snapshots := range map[string]bool{"with snapshots": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			x := sleepingDatabases(t, snapshots)
			for week := range 5 {
				x.call.Now = x.call.Now.Add(7 * 24 * time.Hour)
				x.asked = nil
				x.both(statusStarting)
				x.pass(t)
				if len(x.asked) > 0 {
					t.Errorf("week %d: they are on their way, and it asks for %q", week, x.asked)
				}
				x.settle()
				x.passes(t)
				if diff := cmp.Diff([]string{"stop db/orders", "stop cluster/shop"}, x.asked); diff != "" || x.are() != "stopped stopped" {
					t.Errorf("week %d: they are %s\n%s", week, x.are(), diff)
				}
			}
			x.wakes(t)
		})
	}
}

// They are to wake while AWS starts them, or right after.
func TestDatabasesThatAWSStartsWhenTheyAreToWakeAreAwake(t *testing.T) {
	for _, status := range []string{statusStarting, statusAvailable} {
		for name, snapshots := range map[string]bool{"with snapshots": true, "without": false} {
			t.Run(status+" "+name, func(t *testing.T) {
				x := sleepingDatabases(t, snapshots)
				x.call.Now = x.call.Now.Add(7 * 24 * time.Hour)
				x.asked = nil
				x.both(status)
				x.wakes(t)
				if len(x.asked) > 0 {
					t.Errorf("it asks for %q", x.asked)
				}
			})
		}
	}
}

// What is changed, backed up or on its way is neither stopped nor taken for asleep: it is
// waited for, before it sleeps and when it wakes.
func TestDatabasesInTransitionAreWaitedFor(t *testing.T) {
	for _, status := range []string{"creating", "modifying", "backing-up", "maintenance", "rebooting", "upgrading", "renaming", "resetting-master-credentials", "configuring-enhanced-monitoring", "storage-optimization", statusStarting, statusStopping} {
		t.Run(status, func(t *testing.T) {
			a := newAccount()
			a.add("orders", status, "env=stg")
			a.addCluster("shop", status, "env=stg")
			x := nights(a, false)
			for range 2 {
				if failed := x.pass(t); failed != "" || len(x.asked) > 0 || len(x.record.Resources) > 0 || len(x.record.LeftOut) > 0 {
					t.Errorf("it says %q, asks for %q and records %+v, left out %q", failed, x.asked, x.record.Resources, x.record.LeftOut)
				}
			}
			x = sleepingDatabases(t, false)
			x.call.Operation = hibernate.Wake
			x.pass(t)
			x.asked = nil
			x.both(status)
			for range 2 {
				if failed := x.pass(t); failed != "" || len(x.asked) > 0 || x.record.Resources[0].RestoredAt != nil {
					t.Errorf("when it wakes it says %q, asks for %q and records %+v", failed, x.asked, x.record.Resources)
				}
			}
			x.both(statusAvailable)
			x.wakes(t)
		})
	}
}

// The cluster is put back from a backup, and with it the restore data as it was then; the
// databases are as they are now. What docs/operations.md says of that.
func TestDatabasesAndRestoreDataOutOfABackup(t *testing.T) {
	for name, c := range map[string]struct {
		backup func(asleep hibernate.Record) hibernate.Record // the restore data as it was
		status string                                         // of the databases now
		want   string                                         // of them in the morning
	}{
		"taken before they slept": {func(hibernate.Record) hibernate.Record { return hibernate.Record{} }, statusStopped, "stopped stopped"},
		"taken while they fell asleep": {func(r hibernate.Record) hibernate.Record {
			r.Resources = slices.Clone(r.Resources)
			for i := range r.Resources {
				r.Resources[i].AsleepAt = nil
			}
			return r
		}, statusStopped, "available available"},
		"taken while they slept":                      {func(r hibernate.Record) hibernate.Record { return r }, statusStopped, "available available"},
		"taken while they slept, and they woke since": {func(r hibernate.Record) hibernate.Record { return r }, statusAvailable, "available available"},
	} {
		for _, night := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, put back by night %t", name, night), func(t *testing.T) {
				x := sleepingDatabases(t, true)
				x.record = c.backup(x.record)
				x.both(c.status)
				x.call.Now = x.call.Now.Add(2 * time.Hour)
				x.asked = nil
				if night {
					x.passes(t)
				}
				x.call.Operation, x.call.StartedAt = hibernate.Wake, x.call.Now
				x.passes(t)
				if x.are() != c.want {
					t.Errorf("they are %s, want %s: %+v", x.are(), c.want, x.record.Resources)
				}
				if slices.ContainsFunc(x.asked, func(asked string) bool { return strings.HasPrefix(asked, "stop") }) {
					t.Errorf("it asks for %q", x.asked)
				}
			})
		}
	}
}

func TestALookThatIsDeniedNamesTheRight(t *testing.T) {
	for right, want := range map[string]string{"rds:DescribeDBInstances": "list database instances: AccessDenied: ", "rds:DescribeDBClusters": "list database clusters: AccessDenied: "} {
		a := newAccount()
		a.add("orders", statusAvailable, "env=stg")
		a.refuses[right] = "AccessDenied"
		x := nights(a, false)
		_, looked := x.sleeps().Observe(t.Context(), x.call)
		for _, err := range []error{looked, x.sleeps().Validate(t.Context(), x.call)} {
			if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), right) {
				t.Errorf("it says %v", err)
			}
		}
	}
}

func TestADatabaseThatFallsBackIsAFailure(t *testing.T) {
	a := newAccount()
	a.add("orders", statusAvailable, "env=stg")
	a.falls["db/orders"] = true
	x := nights(a, false)
	for range 3 {
		x.pass(t)
		a.settle()
	}
	x.call.Operation = hibernate.Wake
	var said []string
	for i := range 3 {
		said = append(said, x.pass(t))
		if i > 0 {
			a.settle()
		}
	}
	if said[0] != "" || said[1] != "" || !strings.Contains(said[2], "is stopped again") {
		t.Errorf("it says %q", said)
	}
}

func TestADatabaseThatDoesNotComeUpSaysWhy(t *testing.T) {
	a := newAccount()
	a.add("orders", statusAvailable, "env=stg")
	x := nights(a, false)
	for range 3 {
		x.pass(t)
		a.settle()
	}
	x.call.Operation = hibernate.Wake
	a.instances["orders"].DBInstanceStatus = aws.String("inaccessible-encryption-credentials")
	if failed := x.pass(t); !strings.Contains(failed, "its status is inaccessible-encryption-credentials") {
		t.Errorf("it says %q", failed)
	}
}

func TestWhatIsLeftOutAndWhy(t *testing.T) {
	for name, c := range map[string]struct {
		add  func(a *account)
		id   string
		want string
	}{
		"a read replica": {func(a *account) {
			a.add("x", statusAvailable, "env=stg").ReadReplicaSourceDBInstanceIdentifier = aws.String("y")
		}, "x", "read replica"},
		"what a replica reads from": {func(a *account) {
			a.add("x", statusAvailable, "env=stg").ReadReplicaDBInstanceIdentifiers = []string{"y"}
		}, "x", "has read replicas"},
		"a member of a cluster": {func(a *account) {
			a.addCluster("c", statusAvailable)
			a.add("x", statusAvailable, "env=stg").DBClusterIdentifier = aws.String("c")
		}, "x", "part of the cluster c"},
		"SQL Server in several zones": {func(a *account) {
			i := a.add("x", statusAvailable, "env=stg")
			i.Engine, i.MultiAZ = aws.String("sqlserver-se"), aws.Bool(true)
		}, "x", "SQL Server"},
		"RDS Custom":           {func(a *account) { a.add("x", statusAvailable, "env=stg").Engine = aws.String("custom-oracle-ee") }, "x", "custom-oracle-ee is not supported"},
		"a cluster of Neptune": {func(a *account) { a.addCluster("x", statusAvailable, "env=stg").Engine = aws.String("neptune") }, "x", "neptune is not supported"},
		"Aurora Serverless v1": {func(a *account) { a.addCluster("x", statusAvailable, "env=stg").EngineMode = aws.String("serverless") }, "x", "Serverless v1"},
		"a global database": {func(a *account) {
			a.addCluster("x", statusAvailable, "env=stg").GlobalClusterIdentifier = aws.String("world")
		}, "x", "global database"},
		"one that is broken": {func(a *account) { a.add("x", "storage-full", "env=stg") }, "x", "storage-full"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			c.add(a)
			x := nights(a, false)
			x.pass(t)
			if len(a.asked) > 0 || len(x.record.LeftOut) != 1 || !strings.Contains(x.record.LeftOut[0], c.want) {
				t.Errorf("asked %q, left out %q", a.asked, x.record.LeftOut)
			}
			x.call.Params = &hibernate.RDSParameters{Selector: &hibernate.CloudSelector{IDs: []string{c.id}}}
			if err := x.sleeps().Validate(t.Context(), x.call); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("who names it is told %v", err)
			}
		})
	}
}

func TestADatabaseIsNamedAsPeopleNameIt(t *testing.T) {
	a := newAccount()
	a.add("orders", statusAvailable)
	a.addCluster("shop", statusAvailable)
	for id, want := range map[string]string{
		"orders": "", "Orders": "", "shop": "", "arn:aws:rds:eu-central-1:123456789012:db:orders": "", "arn:aws:rds:eu-central-1:123456789012:cluster:shop": "",
		"users": "there is no database users", "arn:aws:rds:eu-west-1:123456789012:db:orders": "there is no database",
	} {
		call := executors.SleepCall{Params: &hibernate.RDSParameters{Selector: &hibernate.CloudSelector{IDs: []string{id}}}}
		err := a.sleeps().Validate(t.Context(), call)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	call := executors.SleepCall{Params: &hibernate.RDSParameters{Selector: &hibernate.CloudSelector{Tags: map[string]string{"env": "dev"}}}}
	if err := a.sleeps().Validate(t.Context(), call); err == nil {
		t.Error("tags that nothing has are no fault")
	}
}

func TestTheUnitsOfAClusterAreThoseOfItsMembers(t *testing.T) {
	a := newAccount()
	a.addCluster("shop", statusAvailable, "env=stg")
	a.add("shop-2", statusAvailable).DBClusterIdentifier = aws.String("shop")
	a.add("orders", statusAvailable, "env=stg").MultiAZ = aws.Bool(true)
	x := nights(a, false)
	x.pass(t)
	got := map[string]map[string]float64{}
	for _, r := range x.record.Resources {
		got[r.ID] = r.Units
	}
	if diff := cmp.Diff(map[string]map[string]float64{"cluster/shop": {"db.t3.medium": 2}, "db/orders": {"db.t3.medium": 2}}, got); diff != "" {
		t.Error(diff)
	}
}
