package eks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/smithy-go"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/capacity"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// account is EKS as it behaves with time: an update takes until it is settled, and no other
// is taken meanwhile; the same token is the same update; lists have pages of two.
type account struct {
	cluster   string
	groups    map[string]*types.Nodegroup
	instances map[string]int    // of each group
	refuses   map[string]string // the code with which a request about a group is refused
	denies    string            // the right that the account lacks
	fails     map[string]bool   // those whose updates fail
	updates   map[string]*types.Update
	asked     []string // each request that changes something
	made      int
}

func newAccount() *account {
	return &account{
		cluster: "stg", groups: map[string]*types.Nodegroup{}, instances: map[string]int{}, refuses: map[string]string{}, fails: map[string]bool{}, updates: map[string]*types.Update{},
	}
}

// add has a node group that is at its size, with tags as key=value.
func (a *account) add(name string, size capacity.Size, tags ...string) *types.Nodegroup {
	a.made++
	g := &types.Nodegroup{
		NodegroupName: &name, NodegroupArn: aws.String(fmt.Sprintf("arn:aws:eks:eu-central-1:123456789012:nodegroup/stg/%s/%d", name, a.made)), Status: types.NodegroupStatusActive,
		ScalingConfig: &types.NodegroupScalingConfig{MinSize: &size.Min, DesiredSize: &size.Desired, MaxSize: &size.Max}, Tags: map[string]string{},
		Resources: &types.NodegroupResources{AutoScalingGroups: []types.AutoScalingGroup{{Name: aws.String("eks-" + name)}}},
	}
	for _, t := range tags {
		key, value, _ := strings.Cut(t, "=")
		g.Tags[key] = value
	}
	a.groups[name], a.instances[name] = g, int(size.Desired)
	return g
}

func (a *account) settle() {
	for name, g := range a.groups {
		if g.Status == types.NodegroupStatusUpdating {
			g.Status = types.NodegroupStatusActive
		}
		a.instances[name] = int(*g.ScalingConfig.DesiredSize)
	}
}

func (a *account) denied(right string) error {
	if a.denies != right {
		return nil
	}
	return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "User: nights is not authorized to perform: " + right}
}

func (a *account) ListNodegroups(ctx context.Context, in *eks.ListNodegroupsInput, _ ...func(*eks.Options)) (*eks.ListNodegroupsOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := a.denied("eks:ListNodegroups"); err != nil {
		return nil, err
	}
	if *in.ClusterName != a.cluster {
		return nil, &types.ResourceNotFoundException{Message: aws.String("No cluster found for name: " + *in.ClusterName)}
	}
	names := slices.Sorted(maps.Keys(a.groups))
	from, _ := strconv.Atoi(aws.ToString(in.NextToken))
	out := &eks.ListNodegroupsOutput{Nodegroups: names[min(from, len(names)):min(from+2, len(names))]}
	if from+2 < len(names) {
		out.NextToken = aws.String(strconv.Itoa(from + 2))
	}
	return out, nil
}

func (a *account) DescribeNodegroup(ctx context.Context, in *eks.DescribeNodegroupInput, _ ...func(*eks.Options)) (*eks.DescribeNodegroupOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := a.denied("eks:DescribeNodegroup"); err != nil {
		return nil, err
	}
	g, there := a.groups[*in.NodegroupName]
	if !there || *in.ClusterName != a.cluster {
		return nil, &types.ResourceNotFoundException{Message: aws.String("No node group found")}
	}
	one := *g
	scaling := *g.ScalingConfig
	one.ScalingConfig = &scaling
	return &eks.DescribeNodegroupOutput{Nodegroup: &one}, nil
}

func (a *account) DescribeAutoScalingGroups(ctx context.Context, in *autoscaling.DescribeAutoScalingGroupsInput, _ ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	if err := a.denied("autoscaling:DescribeAutoScalingGroups"); err != nil {
		return nil, err
	}
	out := &autoscaling.DescribeAutoScalingGroupsOutput{}
	for _, name := range in.AutoScalingGroupNames {
		g := asgtypes.AutoScalingGroup{AutoScalingGroupName: &name}
		for range a.instances[strings.TrimPrefix(name, "eks-")] {
			g.Instances = append(g.Instances, asgtypes.Instance{InstanceType: aws.String("m5.large"), LifecycleState: asgtypes.LifecycleStateInService, HealthStatus: aws.String("Healthy")})
		}
		out.AutoScalingGroups = append(out.AutoScalingGroups, g)
	}
	return out, ctx.Err()
}

func (a *account) UpdateNodegroupConfig(ctx context.Context, in *eks.UpdateNodegroupConfigInput, _ ...func(*eks.Options)) (*eks.UpdateNodegroupConfigOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name, to := *in.NodegroupName, in.ScalingConfig
	a.asked = append(a.asked, fmt.Sprintf("%s min=%d desired=%d max=%d", name, *to.MinSize, *to.DesiredSize, *to.MaxSize))
	if code := a.refuses[name]; code != "" {
		return nil, &smithy.GenericAPIError{Code: code, Message: "User: nights is not authorized to perform: eks:UpdateNodegroupConfig"}
	}
	if u, have := a.updates[*in.ClientRequestToken]; have {
		return &eks.UpdateNodegroupConfigOutput{Update: u}, nil
	}
	g := a.groups[name]
	if g.Status == types.NodegroupStatusUpdating {
		return nil, &types.ResourceInUseException{Message: aws.String("Nodegroup cannot be updated as it is currently not in Active State")}
	}
	if *to.MinSize > *to.DesiredSize || *to.DesiredSize > *to.MaxSize {
		return nil, &types.InvalidParameterException{Message: aws.String("desired capacity must be between min and max")}
	}
	u := &types.Update{Id: aws.String(fmt.Sprint("u-", len(a.updates)+1)), Status: types.UpdateStatusInProgress}
	a.updates[*in.ClientRequestToken] = u
	if a.fails[name] {
		u.Status, u.Errors = types.UpdateStatusFailed, []types.ErrorDetail{{ErrorCode: types.ErrorCodeAccessDenied, ErrorMessage: aws.String("the node role may not")}}
		return &eks.UpdateNodegroupConfigOutput{Update: &types.Update{Id: u.Id, Status: types.UpdateStatusInProgress}}, nil
	}
	g.ScalingConfig, g.Status = to, types.NodegroupStatusUpdating
	return &eks.UpdateNodegroupConfigOutput{Update: u}, nil
}

func (a *account) sleeps() Groups {
	return Groups{Open: func(ctx context.Context, _ executors.SleepCall) (API, error) { return a, ctx.Err() }}
}

// nights is a call about all node groups of the cluster that have the tag env=stg.
func nights() executors.SleepCall {
	return executors.SleepCall{
		Params: &hibernate.EKSParameters{ManagedNodeGroups: &hibernate.NodeGroups{Tags: map[string]string{"env": "stg"}}}, Cloud: &executors.Cloud{Cluster: "stg"},
	}
}

// world is an account for the questions that every sleeper is asked.
type world struct{ *account }

func (w world) Sleeper() executors.Sleeper { return w.sleeps() }

func (w world) Call() executors.SleepCall { return nights() }

func (w world) State(*testing.T) map[string]string {
	out := map[string]string{}
	for name, g := range w.groups {
		s := sizeOf(*g)
		out[name] = fmt.Sprintf("%d/%d/%d with %d, %s", s.Min, s.Desired, s.Max, w.instances[name], g.Status)
	}
	return out
}

func (w world) Outside(id string) bool { return !strings.HasPrefix(id, "stg") }

func (w world) Unselect(*testing.T) bool {
	for _, g := range w.groups {
		g.Tags = nil
	}
	return true
}

func (w world) Settle(*testing.T) { w.settle() }
