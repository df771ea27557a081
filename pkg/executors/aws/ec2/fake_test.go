package ec2

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// account is EC2 as it behaves with time: what is told to stop is stopping until it is
// settled, lists have pages of two, and some instances refuse.
type account struct {
	instances map[string]*types.Instance
	refuses   map[string]string // the code with which a request about an instance is refused
	throttles bool
	shows     map[string]types.InstanceStateName // what lists say of instances whatever is so
	falls     map[string]bool                    // those that fall back after a start
	asked     []string                           // each request that changes something
	lists     string                             // the code with which lists are refused
	values    []int                              // of how many ids each list is
	unbounded bool                               // a list was asked for without the size of its pages
}

func newAccount() *account {
	return &account{instances: map[string]*types.Instance{}, refuses: map[string]string{}, shows: map[string]types.InstanceStateName{}, falls: map[string]bool{}}
}

// add has an instance with tags as key=value.
func (a *account) add(id string, state types.InstanceStateName, tags ...string) *types.Instance {
	i := &types.Instance{InstanceId: aws.String(id), State: &types.InstanceState{Name: state}, InstanceType: "m5.large", RootDeviceType: types.DeviceTypeEbs, LaunchTime: aws.Time(time.Now().Add(-time.Hour))}
	for _, t := range tags {
		key, value, _ := strings.Cut(t, "=")
		i.Tags = append(i.Tags, types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	a.instances[id] = i
	return i
}

func (a *account) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a.unbounded = a.unbounded || aws.ToInt32(in.MaxResults) != PageOf
	if a.lists != "" {
		return nil, &smithy.GenericAPIError{Code: a.lists, Message: "You are not authorized to perform: ec2:DescribeInstances"}
	}
	if len(in.Filters) > 0 && aws.ToString(in.Filters[0].Name) == "instance-id" && in.NextToken == nil {
		a.values = append(a.values, len(in.Filters[0].Values))
	}
	var found []types.Instance
	for _, id := range slices.Sorted(maps.Keys(a.instances)) {
		i := *a.instances[id]
		if shown, late := a.shows[id]; late {
			i.State = &types.InstanceState{Name: shown}
		}
		if filtered(i, in.Filters) {
			found = append(found, i)
		}
	}
	from, _ := strconv.Atoi(aws.ToString(in.NextToken))
	out := &ec2.DescribeInstancesOutput{}
	for n := from; n < min(from+2, len(found)); n++ {
		out.Reservations = append(out.Reservations, types.Reservation{Instances: found[n : n+1]})
	}
	if from+2 < len(found) {
		out.NextToken = aws.String(strconv.Itoa(from + 2))
	}
	return out, nil
}

func filtered(i types.Instance, filters []types.Filter) bool {
	for _, f := range filters {
		name := aws.ToString(f.Name)
		value := aws.ToString(i.InstanceId)
		if key, tag := strings.CutPrefix(name, "tag:"); tag {
			value = tagsOf(i)[key]
		}
		if !slices.Contains(f.Values, value) {
			return false
		}
	}
	return true
}

func (a *account) refused(ids []string) error {
	if a.throttles {
		return &smithy.GenericAPIError{Code: "RequestLimitExceeded", Message: "Request limit exceeded."}
	}
	for _, id := range ids {
		if code := a.refuses[id]; code != "" {
			return &smithy.GenericAPIError{Code: code, Message: fmt.Sprintf("The instance '%s' may not be modified", id)}
		}
	}
	return nil
}

func (a *account) StopInstances(ctx context.Context, in *ec2.StopInstancesInput, _ ...func(*ec2.Options)) (*ec2.StopInstancesOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a.asked = append(a.asked, fmt.Sprintf("stop %s hibernate=%t", strings.Join(in.InstanceIds, " "), aws.ToBool(in.Hibernate)))
	if err := a.refused(in.InstanceIds); err != nil {
		return nil, err
	}
	for _, id := range in.InstanceIds {
		if s := a.instances[id].State; s.Name == types.InstanceStateNameRunning {
			s.Name = types.InstanceStateNameStopping
		}
	}
	return &ec2.StopInstancesOutput{}, nil
}

func (a *account) StartInstances(ctx context.Context, in *ec2.StartInstancesInput, _ ...func(*ec2.Options)) (*ec2.StartInstancesOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a.asked = append(a.asked, "start "+strings.Join(in.InstanceIds, " "))
	if err := a.refused(in.InstanceIds); err != nil {
		return nil, err
	}
	for _, id := range in.InstanceIds {
		if s := a.instances[id].State; s.Name == types.InstanceStateNameStopped {
			s.Name = types.InstanceStateNamePending
		}
	}
	return &ec2.StartInstancesOutput{}, nil
}

func (a *account) settle() {
	for id, i := range a.instances {
		switch i.State.Name {
		case types.InstanceStateNameStopping:
			i.State.Name = types.InstanceStateNameStopped
		case types.InstanceStateNamePending:
			i.State.Name = types.InstanceStateNameRunning
			if a.falls[id] {
				i.State.Name = types.InstanceStateNameStopped
			}
		}
	}
}

func (a *account) sleeps() Sleeps {
	return Sleeps{Open: func(ctx context.Context, _ executors.SleepCall) (API, error) { return a, ctx.Err() }}
}

// nights is a target of all that has the tag env=stg.
func nights() *hibernate.EC2Parameters {
	return &hibernate.EC2Parameters{Selector: &hibernate.CloudSelector{Tags: map[string]string{"env": "stg"}}}
}

// world is an account for the questions that every sleeper is asked.
type world struct{ *account }

func (w world) Sleeper() executors.Sleeper { return w.sleeps() }

func (w world) Call() executors.SleepCall { return executors.SleepCall{Params: nights()} }

func (w world) State(*testing.T) map[string]string {
	out := map[string]string{}
	for id, i := range w.instances {
		out[id] = string(i.State.Name)
	}
	return out
}

func (w world) Outside(id string) bool { return !strings.HasPrefix(id, "i-stg") }

func (w world) Unselect(*testing.T) bool {
	for _, i := range w.instances {
		i.Tags = nil
	}
	return true
}

func (w world) Settle(*testing.T) { w.settle() }
