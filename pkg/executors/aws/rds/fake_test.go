package rds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/aws/smithy-go"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// account is RDS as it behaves with time: what is told to stop is stopping until it is
// settled, a snapshot holds its database up, and each list has pages of one.
type account struct {
	instances map[string]*types.DBInstance
	clusters  map[string]*types.DBCluster
	taken     map[string]*taken
	now       time.Time
	falls     map[string]bool   // those that fall back after a start
	refuses   map[string]string // the code with which a request about a database is refused
	asked     []string          // each request that changes something
	loses     bool              // the replies to requests for snapshots
}

// taken is a snapshot.
type taken struct {
	of, status string
	at         time.Time
	tags       []types.Tag
}

func newAccount() *account {
	return &account{instances: map[string]*types.DBInstance{}, clusters: map[string]*types.DBCluster{}, taken: map[string]*taken{}, falls: map[string]bool{}, refuses: map[string]string{}, now: time.Now()}
}

func tagList(tags []string) []types.Tag {
	var out []types.Tag
	for _, t := range tags {
		key, value, _ := strings.Cut(t, "=")
		out = append(out, types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	return out
}

// add has an instance with tags as key=value.
func (a *account) add(name, status string, tags ...string) *types.DBInstance {
	i := &types.DBInstance{
		DBInstanceIdentifier: aws.String(name), DBInstanceStatus: aws.String(status), DbiResourceId: aws.String("db-" + name), Engine: aws.String("postgres"),
		DBInstanceClass: aws.String("db.t3.medium"), DBInstanceArn: aws.String("arn:aws:rds:eu-central-1:123456789012:db:" + name), TagList: tagList(tags),
	}
	a.instances[name] = i
	return i
}

// addCluster has a cluster of Aurora with one member.
func (a *account) addCluster(name, status string, tags ...string) *types.DBCluster {
	c := &types.DBCluster{
		DBClusterIdentifier: aws.String(name), Status: aws.String(status), DbClusterResourceId: aws.String("cluster-" + name), Engine: aws.String("aurora-postgresql"), EngineMode: aws.String("provisioned"),
		DBClusterArn: aws.String("arn:aws:rds:eu-central-1:123456789012:cluster:" + name), TagList: tagList(tags),
	}
	a.clusters[name] = c
	a.add(name+"-1", statusAvailable, tags...).DBClusterIdentifier = aws.String(name)
	return c
}

// page is one thing of many, and the marker of the next.
func page[T any](all map[string]*T, only, marker *string) (one []T, next *string) {
	names := slices.Sorted(maps.Keys(all))
	if only != nil {
		return []T{*all[*only]}, nil
	}
	i := 0
	if marker != nil {
		i = slices.Index(names, *marker)
	}
	if i+1 < len(names) {
		next = aws.String(names[i+1])
	}
	if len(names) == 0 {
		return nil, nil
	}
	return []T{*all[names[i]]}, next
}

func (a *account) DescribeDBInstances(ctx context.Context, in *rds.DescribeDBInstancesInput, _ ...func(*rds.Options)) (*rds.DescribeDBInstancesOutput, error) {
	if err := a.denied("rds:DescribeDBInstances"); err != nil {
		return nil, err
	}
	list, next := page(a.instances, in.DBInstanceIdentifier, in.Marker)
	return &rds.DescribeDBInstancesOutput{DBInstances: list, Marker: next}, ctx.Err()
}

func (a *account) DescribeDBClusters(ctx context.Context, in *rds.DescribeDBClustersInput, _ ...func(*rds.Options)) (*rds.DescribeDBClustersOutput, error) {
	if err := a.denied("rds:DescribeDBClusters"); err != nil {
		return nil, err
	}
	list, next := page(a.clusters, in.DBClusterIdentifier, in.Marker)
	return &rds.DescribeDBClustersOutput{DBClusters: list, Marker: next}, ctx.Err()
}

// denied is the answer to who lacks a right.
func (a *account) denied(right string) error {
	if code := a.refuses[right]; code != "" {
		return &smithy.GenericAPIError{Code: code, Message: "User: nights is not authorized to perform: " + right}
	}
	return nil
}

// find is the snapshot of a name, or those of a database.
func (a *account) find(name, database *string, of, missing string) (map[string]*taken, error) {
	if code := a.refuses["look"]; code != "" {
		return nil, &smithy.GenericAPIError{Code: code, Message: "nights may not look"}
	}
	if name == nil {
		return a.snapshotsOf(of + *database), nil
	}
	s := a.taken[*name]
	if s == nil || !strings.HasPrefix(s.of, of) {
		return nil, &smithy.GenericAPIError{Code: missing, Message: *name}
	}
	return map[string]*taken{*name: s}, nil
}

func (a *account) snapshotsOf(id string) map[string]*taken {
	out := maps.Clone(a.taken)
	maps.DeleteFunc(out, func(_ string, s *taken) bool { return s.of != id })
	return out
}

func (a *account) DescribeDBSnapshots(ctx context.Context, in *rds.DescribeDBSnapshotsInput, _ ...func(*rds.Options)) (*rds.DescribeDBSnapshotsOutput, error) {
	out := &rds.DescribeDBSnapshotsOutput{}
	found, err := a.find(in.DBSnapshotIdentifier, in.DBInstanceIdentifier, ofInstance, "DBSnapshotNotFound")
	if err != nil {
		return nil, err
	}
	for name, s := range found {
		out.DBSnapshots = append(out.DBSnapshots, types.DBSnapshot{DBSnapshotIdentifier: aws.String(name), DBSnapshotArn: aws.String("arn:snapshot:" + name), DBInstanceIdentifier: aws.String(strings.TrimPrefix(s.of, ofInstance)), Status: aws.String(s.status), SnapshotCreateTime: aws.Time(s.at), TagList: s.tags})
	}
	return out, ctx.Err()
}

func (a *account) DescribeDBClusterSnapshots(ctx context.Context, in *rds.DescribeDBClusterSnapshotsInput, _ ...func(*rds.Options)) (*rds.DescribeDBClusterSnapshotsOutput, error) {
	out := &rds.DescribeDBClusterSnapshotsOutput{}
	found, err := a.find(in.DBClusterSnapshotIdentifier, in.DBClusterIdentifier, ofCluster, "DBClusterSnapshotNotFoundFault")
	if err != nil {
		return nil, err
	}
	for name, s := range found {
		out.DBClusterSnapshots = append(out.DBClusterSnapshots, types.DBClusterSnapshot{DBClusterSnapshotIdentifier: aws.String(name), DBClusterSnapshotArn: aws.String("arn:cluster-snapshot:" + name), DBClusterIdentifier: aws.String(strings.TrimPrefix(s.of, ofCluster)), Status: aws.String(s.status), SnapshotCreateTime: aws.Time(s.at), TagList: s.tags})
	}
	return out, ctx.Err()
}

// move has a database go from one status to another, as long as it has the first.
func (a *account) move(ctx context.Context, what, id string, status **string, from, to string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a.asked = append(a.asked, what+" "+id)
	if code := a.refuses[id]; code != "" {
		return &smithy.GenericAPIError{Code: code, Message: "User: nights is not authorized to perform: rds:StopDBInstance"}
	}
	if **status != from {
		return &smithy.GenericAPIError{Code: "InvalidDBInstanceState", Message: fmt.Sprintf("%s is not in %s state", id, from)}
	}
	*status = aws.String(to)
	return nil
}

func (a *account) StopDBInstance(ctx context.Context, in *rds.StopDBInstanceInput, _ ...func(*rds.Options)) (*rds.StopDBInstanceOutput, error) {
	name := *in.DBInstanceIdentifier
	return nil, a.move(ctx, "stop", ofInstance+name, &a.instances[name].DBInstanceStatus, statusAvailable, statusStopping)
}

func (a *account) StartDBInstance(ctx context.Context, in *rds.StartDBInstanceInput, _ ...func(*rds.Options)) (*rds.StartDBInstanceOutput, error) {
	name := *in.DBInstanceIdentifier
	return nil, a.move(ctx, "start", ofInstance+name, &a.instances[name].DBInstanceStatus, statusStopped, statusStarting)
}

func (a *account) StopDBCluster(ctx context.Context, in *rds.StopDBClusterInput, _ ...func(*rds.Options)) (*rds.StopDBClusterOutput, error) {
	name := *in.DBClusterIdentifier
	return nil, a.move(ctx, "stop", ofCluster+name, &a.clusters[name].Status, statusAvailable, statusStopping)
}

func (a *account) StartDBCluster(ctx context.Context, in *rds.StartDBClusterInput, _ ...func(*rds.Options)) (*rds.StartDBClusterOutput, error) {
	name := *in.DBClusterIdentifier
	return nil, a.move(ctx, "start", ofCluster+name, &a.clusters[name].Status, statusStopped, statusStarting)
}

const backingUp = "backing-up"

func (a *account) take(ctx context.Context, id string, status **string, name string, tags []types.Tag) error {
	if a.taken[name] != nil {
		return &smithy.GenericAPIError{Code: "DBSnapshotAlreadyExists", Message: name}
	}
	if err := a.move(ctx, "snapshot", id, status, statusAvailable, backingUp); err != nil {
		return err
	}
	a.taken[name] = &taken{of: id, status: "creating", at: a.now, tags: tags}
	if a.loses {
		return &smithy.OperationError{ServiceID: "RDS", OperationName: "CreateDBSnapshot", Err: errors.New("connection reset by peer")}
	}
	return nil
}

func (a *account) CreateDBSnapshot(ctx context.Context, in *rds.CreateDBSnapshotInput, _ ...func(*rds.Options)) (*rds.CreateDBSnapshotOutput, error) {
	name := *in.DBInstanceIdentifier
	return nil, a.take(ctx, ofInstance+name, &a.instances[name].DBInstanceStatus, *in.DBSnapshotIdentifier, in.Tags)
}

func (a *account) CreateDBClusterSnapshot(ctx context.Context, in *rds.CreateDBClusterSnapshotInput, _ ...func(*rds.Options)) (*rds.CreateDBClusterSnapshotOutput, error) {
	name := *in.DBClusterIdentifier
	return nil, a.take(ctx, ofCluster+name, &a.clusters[name].Status, *in.DBClusterSnapshotIdentifier, in.Tags)
}

func (a *account) DeleteDBSnapshot(ctx context.Context, in *rds.DeleteDBSnapshotInput, _ ...func(*rds.Options)) (*rds.DeleteDBSnapshotOutput, error) {
	a.asked = append(a.asked, "delete "+*in.DBSnapshotIdentifier)
	delete(a.taken, *in.DBSnapshotIdentifier)
	return nil, ctx.Err()
}

func (a *account) DeleteDBClusterSnapshot(ctx context.Context, in *rds.DeleteDBClusterSnapshotInput, _ ...func(*rds.Options)) (*rds.DeleteDBClusterSnapshotOutput, error) {
	a.asked = append(a.asked, "delete "+*in.DBClusterSnapshotIdentifier)
	delete(a.taken, *in.DBClusterSnapshotIdentifier)
	return nil, ctx.Err()
}

func (a *account) settle() {
	a.now = a.now.Add(time.Minute)
	for _, s := range a.taken {
		if s.status == "creating" {
			s.status = statusAvailable
		}
	}
	next := map[string]string{statusStopping: statusStopped, statusStarting: statusAvailable, backingUp: statusAvailable}
	arrive := func(id string, status **string) {
		to, moves := next[**status]
		if moves && **status == statusStarting && a.falls[id] {
			to = statusStopped
		}
		if moves {
			*status = aws.String(to)
		}
	}
	for name, i := range a.instances {
		arrive(ofInstance+name, &i.DBInstanceStatus)
	}
	for name, c := range a.clusters {
		arrive(ofCluster+name, &c.Status)
	}
}

func (a *account) sleeps() Sleeps {
	return Sleeps{Open: func(ctx context.Context, _ executors.SleepCall) (API, error) { return a, ctx.Err() }}
}

// world is an account for the questions that every sleeper is asked. Databases of which
// the name begins with stg are the target's.
type world struct {
	*account
	snapshots bool
}

func (w world) Sleeper() executors.Sleeper { return w.sleeps() }

func (w world) Call() executors.SleepCall {
	return executors.SleepCall{Plan: executors.PlanRef{Namespace: "team"}, Params: &hibernate.RDSParameters{Selector: &hibernate.CloudSelector{Tags: map[string]string{"env": "stg"}}, SnapshotBeforeStop: w.snapshots}}
}

func (w world) State(*testing.T) map[string]string {
	out := map[string]string{}
	for name, i := range w.instances {
		out[ofInstance+name] = *i.DBInstanceStatus
	}
	for name, c := range w.clusters {
		out[ofCluster+name] = *c.Status
	}
	return out
}

func (w world) Outside(id string) bool {
	_, name, _ := strings.Cut(id, "/")
	return !strings.HasPrefix(name, "stg")
}

func (w world) Unselect(*testing.T) bool {
	for _, i := range w.instances {
		i.TagList = nil
	}
	for _, c := range w.clusters {
		c.TagList = nil
	}
	return true
}

func (w world) Settle(*testing.T) { w.settle() }
