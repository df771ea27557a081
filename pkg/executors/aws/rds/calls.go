package rds

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
)

// calls are the requests about one database.
type calls interface {
	status(ctx context.Context) (string, error)
	askStop(ctx context.Context) error
	askStart(ctx context.Context) error
	askSnapshot(ctx context.Context, name string, tags []types.Tag) error
	askDelete(ctx context.Context, snapshot string) error
	snapshots(ctx context.Context) ([]snapshot, error)                   // manual ones: those that people or programs made
	called(ctx context.Context, snapshot string) (snapshot, bool, error) // also one that is somebody else's
}

// manual is the type of snapshots that AWS keeps until somebody deletes them.
const manual = "manual"

type instance struct {
	api  API
	name string
}

func (i instance) status(ctx context.Context) (string, error) {
	out, err := i.api.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: &i.name})
	if err != nil {
		return "", err
	}
	if len(out.DBInstances) != 1 {
		return "", fmt.Errorf("there are %d instances %s", len(out.DBInstances), i.name)
	}
	return aws.ToString(out.DBInstances[0].DBInstanceStatus), nil
}

func (i instance) askStop(ctx context.Context) error {
	_, err := i.api.StopDBInstance(ctx, &rds.StopDBInstanceInput{DBInstanceIdentifier: &i.name})
	return err
}

func (i instance) askStart(ctx context.Context) error {
	_, err := i.api.StartDBInstance(ctx, &rds.StartDBInstanceInput{DBInstanceIdentifier: &i.name})
	return err
}

func (i instance) askSnapshot(ctx context.Context, name string, tags []types.Tag) error {
	_, err := i.api.CreateDBSnapshot(ctx, &rds.CreateDBSnapshotInput{DBInstanceIdentifier: &i.name, DBSnapshotIdentifier: &name, Tags: tags})
	return err
}

func (i instance) askDelete(ctx context.Context, name string) error {
	_, err := i.api.DeleteDBSnapshot(ctx, &rds.DeleteDBSnapshotInput{DBSnapshotIdentifier: &name})
	return err
}

func (i instance) snapshots(ctx context.Context) ([]snapshot, error) {
	var out []snapshot
	in := &rds.DescribeDBSnapshotsInput{DBInstanceIdentifier: &i.name, SnapshotType: aws.String(manual)}
	for pages := rds.NewDescribeDBSnapshotsPaginator(i.api, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range page.DBSnapshots {
			out = append(out, ofDBSnapshot(s))
		}
	}
	return out, nil
}

func (i instance) called(ctx context.Context, name string) (snapshot, bool, error) {
	out, err := i.api.DescribeDBSnapshots(ctx, &rds.DescribeDBSnapshotsInput{DBSnapshotIdentifier: &name})
	switch {
	case noSnapshot(err) || err == nil && len(out.DBSnapshots) == 0:
		return snapshot{}, false, nil
	case err != nil:
		return snapshot{}, false, err
	}
	return ofDBSnapshot(out.DBSnapshots[0]), true, nil
}

func ofDBSnapshot(s types.DBSnapshot) snapshot {
	return snapshot{
		name: aws.ToString(s.DBSnapshotIdentifier), arn: aws.ToString(s.DBSnapshotArn), of: ofInstance + aws.ToString(s.DBInstanceIdentifier),
		status: aws.ToString(s.Status), at: aws.ToTime(s.SnapshotCreateTime), tags: tagsOf(s.TagList),
	}
}

type cluster struct {
	api  API
	name string
}

func (c cluster) status(ctx context.Context) (string, error) {
	out, err := c.api.DescribeDBClusters(ctx, &rds.DescribeDBClustersInput{DBClusterIdentifier: &c.name})
	if err != nil {
		return "", err
	}
	if len(out.DBClusters) != 1 {
		return "", fmt.Errorf("there are %d clusters %s", len(out.DBClusters), c.name)
	}
	return aws.ToString(out.DBClusters[0].Status), nil
}

func (c cluster) askStop(ctx context.Context) error {
	_, err := c.api.StopDBCluster(ctx, &rds.StopDBClusterInput{DBClusterIdentifier: &c.name})
	return err
}

func (c cluster) askStart(ctx context.Context) error {
	_, err := c.api.StartDBCluster(ctx, &rds.StartDBClusterInput{DBClusterIdentifier: &c.name})
	return err
}

func (c cluster) askSnapshot(ctx context.Context, name string, tags []types.Tag) error {
	_, err := c.api.CreateDBClusterSnapshot(ctx, &rds.CreateDBClusterSnapshotInput{DBClusterIdentifier: &c.name, DBClusterSnapshotIdentifier: &name, Tags: tags})
	return err
}

func (c cluster) askDelete(ctx context.Context, name string) error {
	_, err := c.api.DeleteDBClusterSnapshot(ctx, &rds.DeleteDBClusterSnapshotInput{DBClusterSnapshotIdentifier: &name})
	return err
}

func (c cluster) snapshots(ctx context.Context) ([]snapshot, error) {
	var out []snapshot
	in := &rds.DescribeDBClusterSnapshotsInput{DBClusterIdentifier: &c.name, SnapshotType: aws.String(manual)}
	for pages := rds.NewDescribeDBClusterSnapshotsPaginator(c.api, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range page.DBClusterSnapshots {
			out = append(out, ofDBClusterSnapshot(s))
		}
	}
	return out, nil
}

func (c cluster) called(ctx context.Context, name string) (snapshot, bool, error) {
	out, err := c.api.DescribeDBClusterSnapshots(ctx, &rds.DescribeDBClusterSnapshotsInput{DBClusterSnapshotIdentifier: &name})
	switch {
	case noSnapshot(err) || err == nil && len(out.DBClusterSnapshots) == 0:
		return snapshot{}, false, nil
	case err != nil:
		return snapshot{}, false, err
	}
	return ofDBClusterSnapshot(out.DBClusterSnapshots[0]), true, nil
}

func ofDBClusterSnapshot(s types.DBClusterSnapshot) snapshot {
	return snapshot{
		name: aws.ToString(s.DBClusterSnapshotIdentifier), arn: aws.ToString(s.DBClusterSnapshotArn), of: ofCluster + aws.ToString(s.DBClusterIdentifier),
		status: aws.ToString(s.Status), at: aws.ToTime(s.SnapshotCreateTime), tags: tagsOf(s.TagList),
	}
}

// noSnapshot says whether AWS knows no snapshot of that name.
func noSnapshot(err error) bool { return strings.Contains(effect.Code(err), "SnapshotNotFound") }
