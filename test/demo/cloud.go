package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	rdstypes "github.com/aws/aws-sdk-go-v2/service/rds/types"

	"github.com/kubectl-maint/kubectl-maint/test/moto"
)

// As examples/staging-account-sleeps.yaml spells them.
const (
	cloudRegion = "ap-southeast-3"
	cloudEnv    = "stg"
)

// cloud is a simulated AWS with two machines and a database of the staging
// environment, and with one of each that is none of the plan's business.
type cloud struct {
	server *moto.Server
	ec2    *ec2.Client
	rds    *rds.Client
	names  map[string]string // of instances, by id
}

// openCloud starts it before the agent, which reads where it is when it starts.
func (d *demo) openCloud(ctx context.Context) error {
	d.screen.chapter("A simulated AWS (moto) with account %s", moto.Account)
	server, err := moto.Start()
	if err != nil {
		return err
	}
	config := aws.Config{
		Region: cloudRegion, BaseEndpoint: aws.String(server.Endpoint), HTTPClient: http.DefaultClient,
		Credentials: credentials.NewStaticCredentialsProvider("admin", "admin", ""),
	}
	d.cloud = &cloud{server: server, ec2: ec2.NewFromConfig(config), rds: rds.NewFromConfig(config), names: map[string]string{}}
	if err := os.Setenv("AWS_ENDPOINT_URL", server.Endpoint); err != nil {
		return err
	}
	for name, env := range map[string]string{"worker-1": cloudEnv, "worker-2": cloudEnv, "prod-1": "prod"} {
		if err := d.cloud.launch(ctx, name, env); err != nil {
			return err
		}
	}
	for name, env := range map[string]string{"stg-orders": cloudEnv, "prod-orders": "prod"} {
		if err := d.cloud.create(ctx, name, env); err != nil {
			return err
		}
	}
	d.screen.checked("it has worker-1, worker-2 and the database stg-orders, tagged env=stg, and prod-1 and prod-orders, which must never be touched")
	return nil
}

func (c *cloud) launch(ctx context.Context, name, env string) error {
	tags := []ec2types.Tag{{Key: aws.String("env"), Value: aws.String(env)}, {Key: aws.String("Name"), Value: aws.String(name)}}
	out, err := c.ec2.RunInstances(ctx, &ec2.RunInstancesInput{
		ImageId: aws.String("ami-12c6146b"), InstanceType: ec2types.InstanceTypeT3Micro, MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeInstance, Tags: tags}},
	})
	if err != nil {
		return fmt.Errorf("launch %s: %w", name, err)
	}
	c.names[aws.ToString(out.Instances[0].InstanceId)] = name
	return nil
}

func (c *cloud) create(ctx context.Context, name, env string) error {
	_, err := c.rds.CreateDBInstance(ctx, &rds.CreateDBInstanceInput{
		DBInstanceIdentifier: aws.String(name), DBInstanceClass: aws.String("db.t3.medium"), Engine: aws.String("postgres"), AllocatedStorage: aws.Int32(20),
		MasterUsername: aws.String("root"), MasterUserPassword: aws.String("not-a-secret"), Tags: []rdstypes.Tag{{Key: aws.String("env"), Value: aws.String(env)}},
	})
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// states are those of all machines and databases, by name.
func (c *cloud) states(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	machines, err := c.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: slices.Collect(maps.Keys(c.names))})
	if err != nil {
		return nil, err
	}
	for _, r := range machines.Reservations {
		for _, i := range r.Instances {
			out[c.names[aws.ToString(i.InstanceId)]] = string(i.State.Name)
		}
	}
	databases, err := c.rds.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{})
	if err != nil {
		return nil, err
	}
	for _, i := range databases.DBInstances {
		out[aws.ToString(i.DBInstanceIdentifier)] = aws.ToString(i.DBInstanceStatus)
	}
	return out, nil
}

// snapshots counts those of a database.
func (c *cloud) snapshots(ctx context.Context, name string) (int, error) {
	out, err := c.rds.DescribeDBSnapshots(ctx, &rds.DescribeDBSnapshotsInput{DBInstanceIdentifier: aws.String(name), SnapshotType: aws.String("manual")})
	if err != nil {
		return 0, err
	}
	return len(out.DBSnapshots), nil
}

// watchCloud tells what changes in AWS, until ctx ends. AWS has no watch.
func (d *demo) watchCloud(ctx context.Context) {
	was, _ := d.cloud.states(ctx)
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		is, err := d.cloud.states(ctx)
		if err != nil {
			continue // it is asked again
		}
		for _, name := range slices.Sorted(maps.Keys(is)) {
			if was[name] != is[name] {
				d.screen.saw("aws", "%s is %s", name, is[name])
			}
		}
		was = is
	}
}
