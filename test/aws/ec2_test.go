package aws

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsec2 "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/ec2"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// instances is a world of instances, of which those with env=stg sleep.
type instances struct {
	api     *ec2.Client
	sleeper executors.Sleeper
	stg     map[string]bool
}

// launch has so many instances with tags as key=value, and gives their ids.
func launch(t *testing.T, api *ec2.Client, n int32, tags ...string) []string {
	t.Helper()
	in := &ec2.RunInstancesInput{ImageId: aws.String("ami-12c6146b"), InstanceType: types.InstanceTypeT3Micro, MinCount: aws.Int32(n), MaxCount: aws.Int32(n)}
	if len(tags) > 0 {
		spec := types.TagSpecification{ResourceType: types.ResourceTypeInstance}
		for _, tag := range tags {
			key, value, _ := strings.Cut(tag, "=")
			spec.Tags = append(spec.Tags, types.Tag{Key: aws.String(key), Value: aws.String(value)})
		}
		in.TagSpecifications = []types.TagSpecification{spec}
	}
	out, err := api.RunInstances(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, i := range out.Instances {
		ids = append(ids, aws.ToString(i.InstanceId))
	}
	return ids
}

func newInstances(t *testing.T) sleepertest.Backend {
	w := &instances{api: ec2.NewFromConfig(fresh(t)), sleeper: awsec2.New(session.NewPool(time.Now)), stg: map[string]bool{}}
	for _, id := range launch(t, w.api, 7, "env=stg", "team=*") {
		w.stg[id] = true
	}
	launch(t, w.api, 2, "env=prod", "team=*")
	launch(t, w.api, 1, "env=stg", "team=other")
	launch(t, w.api, 1)
	off := launch(t, w.api, 1, "env=stg", "team=*")
	if _, err := w.api.StopInstances(t.Context(), &ec2.StopInstancesInput{InstanceIds: off}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *instances) Sleeper() executors.Sleeper { return w.sleeper }

func (w *instances) Call() executors.SleepCall {
	return call(&hibernate.EC2Parameters{Selector: &hibernate.CloudSelector{Tags: map[string]string{"env": "stg", "team": "*"}}})
}

func (w *instances) State(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for pages := ec2.NewDescribeInstancesPaginator(w.api, &ec2.DescribeInstancesInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				out[aws.ToString(i.InstanceId)] = string(i.State.Name)
			}
		}
	}
	return out
}

func (w *instances) Outside(id string) bool { return !w.stg[id] }

func (w *instances) Unselect(t *testing.T) bool {
	t.Helper()
	var ids []string
	for id := range w.stg {
		ids = append(ids, id)
	}
	if _, err := w.api.DeleteTags(t.Context(), &ec2.DeleteTagsInput{Resources: ids, Tags: []types.Tag{{Key: aws.String("env")}}}); err != nil {
		t.Fatal(err)
	}
	return true
}

func (w *instances) Settle(*testing.T) {}

func TestInstancesOfEC2(t *testing.T) { sleepertest.Run(t, newInstances) }
