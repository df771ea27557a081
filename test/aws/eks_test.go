package aws

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	awseks "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/eks"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/karpenter"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// nodeGroups is a world of clusters of EKS, of one of which those with env=stg sleep.
type nodeGroups struct {
	api     *eks.Client
	sleeper executors.Sleeper
}

func (w *nodeGroups) add(t *testing.T, cluster, name string, lowest, desired, most int32, tags map[string]string) {
	t.Helper()
	in := &eks.CreateNodegroupInput{
		ClusterName: &cluster, NodegroupName: &name, NodeRole: aws.String("arn:aws:iam::" + account + ":role/nodes"), Subnets: []string{"subnet-1"}, InstanceTypes: []string{"t3.medium"},
		ScalingConfig: &types.NodegroupScalingConfig{MinSize: &lowest, DesiredSize: &desired, MaxSize: &most}, Tags: tags,
	}
	if _, err := w.api.CreateNodegroup(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func newNodeGroups(t *testing.T) sleepertest.Backend {
	w := &nodeGroups{api: eks.NewFromConfig(fresh(t)), sleeper: awseks.New(session.NewPool(time.Now), karpenter.Sleeps{})}
	for _, cluster := range []string{"stg", "prod"} {
		in := &eks.CreateClusterInput{Name: &cluster, RoleArn: aws.String("arn:aws:iam::" + account + ":role/cluster"), ResourcesVpcConfig: &types.VpcConfigRequest{SubnetIds: []string{"subnet-1", "subnet-2"}}}
		if _, err := w.api.CreateCluster(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	stg := map[string]string{"env": "stg", "team": "*"}
	w.add(t, "stg", "stg-workers", 1, 2, 4, stg)
	w.add(t, "stg", "stg-batch", 0, 3, 3, stg)
	w.add(t, "stg", "off", 0, 0, 3, stg)
	w.add(t, "stg", "system", 1, 1, 2, map[string]string{"env": "system"})
	w.add(t, "prod", "workers", 1, 1, 2, stg)
	return w
}

func (w *nodeGroups) Sleeper() executors.Sleeper { return w.sleeper }

func (w *nodeGroups) Call() executors.SleepCall {
	c := call(&hibernate.EKSParameters{ManagedNodeGroups: &hibernate.NodeGroups{Tags: map[string]string{"env": "stg", "team": "*"}}})
	c.Cloud.Cluster = "stg"
	return c
}

func (w *nodeGroups) State(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, cluster := range []string{"stg", "prod"} {
		names, err := w.api.ListNodegroups(t.Context(), &eks.ListNodegroupsInput{ClusterName: &cluster})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names.Nodegroups {
			got, err := w.api.DescribeNodegroup(t.Context(), &eks.DescribeNodegroupInput{ClusterName: &cluster, NodegroupName: &name})
			if err != nil {
				t.Fatal(err)
			}
			s := got.Nodegroup.ScalingConfig
			out[cluster+"/"+name] = fmt.Sprintf("%d/%d/%d", *s.MinSize, *s.DesiredSize, *s.MaxSize)
		}
	}
	return out
}

func (w *nodeGroups) Outside(id string) bool { return !strings.HasPrefix(id, "stg/stg-") }

func (w *nodeGroups) Unselect(*testing.T) bool { return false } // moto changes no tags of node groups

func (w *nodeGroups) Settle(*testing.T) {}

func TestNodeGroupsOfEKS(t *testing.T) { sleepertest.Run(t, newNodeGroups) }
