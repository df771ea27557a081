package rds

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/rds"
)

// client has the calls that are made here and no others. Some code of the program finds
// methods by name (text templates do), and so the linker keeps all methods of whatever
// stands in an interface: of the SDK's client that is a whole service, megabytes of it.
// A function says nothing of whose it is.
type client struct {
	describeDBInstances        func(context.Context, *rds.DescribeDBInstancesInput, ...func(*rds.Options)) (*rds.DescribeDBInstancesOutput, error)
	describeDBClusters         func(context.Context, *rds.DescribeDBClustersInput, ...func(*rds.Options)) (*rds.DescribeDBClustersOutput, error)
	describeDBSnapshots        func(context.Context, *rds.DescribeDBSnapshotsInput, ...func(*rds.Options)) (*rds.DescribeDBSnapshotsOutput, error)
	describeDBClusterSnapshots func(context.Context, *rds.DescribeDBClusterSnapshotsInput, ...func(*rds.Options)) (*rds.DescribeDBClusterSnapshotsOutput, error)
	stopDBInstance             func(context.Context, *rds.StopDBInstanceInput, ...func(*rds.Options)) (*rds.StopDBInstanceOutput, error)
	startDBInstance            func(context.Context, *rds.StartDBInstanceInput, ...func(*rds.Options)) (*rds.StartDBInstanceOutput, error)
	stopDBCluster              func(context.Context, *rds.StopDBClusterInput, ...func(*rds.Options)) (*rds.StopDBClusterOutput, error)
	startDBCluster             func(context.Context, *rds.StartDBClusterInput, ...func(*rds.Options)) (*rds.StartDBClusterOutput, error)
	createDBSnapshot           func(context.Context, *rds.CreateDBSnapshotInput, ...func(*rds.Options)) (*rds.CreateDBSnapshotOutput, error)
	deleteDBSnapshot           func(context.Context, *rds.DeleteDBSnapshotInput, ...func(*rds.Options)) (*rds.DeleteDBSnapshotOutput, error)
	createDBClusterSnapshot    func(context.Context, *rds.CreateDBClusterSnapshotInput, ...func(*rds.Options)) (*rds.CreateDBClusterSnapshotOutput, error)
	deleteDBClusterSnapshot    func(context.Context, *rds.DeleteDBClusterSnapshotInput, ...func(*rds.Options)) (*rds.DeleteDBClusterSnapshotOutput, error)
}

func newClient(c *rds.Client) API {
	return client{
		describeDBInstances:        c.DescribeDBInstances,
		describeDBClusters:         c.DescribeDBClusters,
		describeDBSnapshots:        c.DescribeDBSnapshots,
		describeDBClusterSnapshots: c.DescribeDBClusterSnapshots,
		stopDBInstance:             c.StopDBInstance,
		startDBInstance:            c.StartDBInstance,
		stopDBCluster:              c.StopDBCluster,
		startDBCluster:             c.StartDBCluster,
		createDBSnapshot:           c.CreateDBSnapshot,
		deleteDBSnapshot:           c.DeleteDBSnapshot,
		createDBClusterSnapshot:    c.CreateDBClusterSnapshot,
		deleteDBClusterSnapshot:    c.DeleteDBClusterSnapshot,
	}
}

// DescribeDBInstances is the SDK's.
func (c client) DescribeDBInstances(ctx context.Context, in *rds.DescribeDBInstancesInput, options ...func(*rds.Options)) (*rds.DescribeDBInstancesOutput, error) {
	return c.describeDBInstances(ctx, in, options...)
}

// DescribeDBClusters is the SDK's.
func (c client) DescribeDBClusters(ctx context.Context, in *rds.DescribeDBClustersInput, options ...func(*rds.Options)) (*rds.DescribeDBClustersOutput, error) {
	return c.describeDBClusters(ctx, in, options...)
}

// DescribeDBSnapshots is the SDK's.
func (c client) DescribeDBSnapshots(ctx context.Context, in *rds.DescribeDBSnapshotsInput, options ...func(*rds.Options)) (*rds.DescribeDBSnapshotsOutput, error) {
	return c.describeDBSnapshots(ctx, in, options...)
}

// DescribeDBClusterSnapshots is the SDK's.
func (c client) DescribeDBClusterSnapshots(ctx context.Context, in *rds.DescribeDBClusterSnapshotsInput, options ...func(*rds.Options)) (*rds.DescribeDBClusterSnapshotsOutput, error) {
	return c.describeDBClusterSnapshots(ctx, in, options...)
}

// StopDBInstance is the SDK's.
func (c client) StopDBInstance(ctx context.Context, in *rds.StopDBInstanceInput, options ...func(*rds.Options)) (*rds.StopDBInstanceOutput, error) {
	return c.stopDBInstance(ctx, in, options...)
}

// StartDBInstance is the SDK's.
func (c client) StartDBInstance(ctx context.Context, in *rds.StartDBInstanceInput, options ...func(*rds.Options)) (*rds.StartDBInstanceOutput, error) {
	return c.startDBInstance(ctx, in, options...)
}

// StopDBCluster is the SDK's.
func (c client) StopDBCluster(ctx context.Context, in *rds.StopDBClusterInput, options ...func(*rds.Options)) (*rds.StopDBClusterOutput, error) {
	return c.stopDBCluster(ctx, in, options...)
}

// StartDBCluster is the SDK's.
func (c client) StartDBCluster(ctx context.Context, in *rds.StartDBClusterInput, options ...func(*rds.Options)) (*rds.StartDBClusterOutput, error) {
	return c.startDBCluster(ctx, in, options...)
}

// CreateDBSnapshot is the SDK's.
func (c client) CreateDBSnapshot(ctx context.Context, in *rds.CreateDBSnapshotInput, options ...func(*rds.Options)) (*rds.CreateDBSnapshotOutput, error) {
	return c.createDBSnapshot(ctx, in, options...)
}

// DeleteDBSnapshot is the SDK's.
func (c client) DeleteDBSnapshot(ctx context.Context, in *rds.DeleteDBSnapshotInput, options ...func(*rds.Options)) (*rds.DeleteDBSnapshotOutput, error) {
	return c.deleteDBSnapshot(ctx, in, options...)
}

// CreateDBClusterSnapshot is the SDK's.
func (c client) CreateDBClusterSnapshot(ctx context.Context, in *rds.CreateDBClusterSnapshotInput, options ...func(*rds.Options)) (*rds.CreateDBClusterSnapshotOutput, error) {
	return c.createDBClusterSnapshot(ctx, in, options...)
}

// DeleteDBClusterSnapshot is the SDK's.
func (c client) DeleteDBClusterSnapshot(ctx context.Context, in *rds.DeleteDBClusterSnapshotInput, options ...func(*rds.Options)) (*rds.DeleteDBClusterSnapshotOutput, error) {
	return c.deleteDBClusterSnapshot(ctx, in, options...)
}
