// Package ec2 stops and starts instances of EC2.
package ec2

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/observe"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// API are the calls of EC2.
type API interface {
	ec2.DescribeInstancesAPIClient
	StopInstances(ctx context.Context, in *ec2.StopInstancesInput, options ...func(*ec2.Options)) (*ec2.StopInstancesOutput, error)
	StartInstances(ctx context.Context, in *ec2.StartInstancesInput, options ...func(*ec2.Options)) (*ec2.StartInstancesOutput, error)
}

// KeyHint is the usual reason why an instance stops again right after its start.
const KeyHint = "an encrypted disk does that where the key may not be used: grant kms:CreateGrant on it"

// Sleeps stops instances, and starts those that ran.
type Sleeps struct {
	Open func(ctx context.Context, call executors.SleepCall) (API, error)
}

// New reaches EC2 by sessions of a pool.
func New(pool *session.Pool) Sleeps {
	return Sleeps{Open: session.Opener(pool, func(config aws.Config) API { return NewClient(ec2.NewFromConfig(config)) })}
}

// atOnce is how many instances one request names (a guess: AWS takes a thousand, but a list that is
// refused is then asked for one by one).
const atOnce = 50

// before is the restore data of an instance.
type before struct {
	State string `json:"state"`
}

// Validate checks that each id is an instance of the account, and that some instance has the tags.
func (s Sleeps) Validate(ctx context.Context, call executors.SleepCall) error {
	p, api, err := observe.Open[hibernate.EC2Parameters](ctx, call, s.Open)
	if err != nil {
		return err
	}
	found, err := selected(ctx, api, *p.Selector)
	if err != nil {
		return err
	}
	if len(p.Selector.IDs) == 0 {
		if len(found) == 0 {
			return fmt.Errorf("no instance of region %s has the tags of parameters.selector", call.Region())
		}
		return nil
	}
	there, err := byID(ctx, api, p.Selector.IDs)
	if err != nil {
		return err
	}
	for _, id := range p.Selector.IDs {
		if !slices.ContainsFunc(there, func(i types.Instance) bool { return aws.ToString(i.InstanceId) == id }) {
			return fmt.Errorf("there is no instance %s in region %s", id, call.Region())
		}
	}
	return nil
}

// Observe reports the selected instances and the recorded ones.
func (s Sleeps) Observe(ctx context.Context, call executors.SleepCall) ([]hibernate.Observation, error) {
	p, api, err := observe.Open[hibernate.EC2Parameters](ctx, call, s.Open)
	if err != nil {
		return nil, err
	}
	return observe.Resources(call, observe.Source[types.Instance]{
		Selected: func() ([]types.Instance, error) { return selected(ctx, api, *p.Selector) },
		Named:    func(ids []string) ([]types.Instance, error) { return byID(ctx, api, ids) },
		Observed: func(i types.Instance) hibernate.Observation {
			o := observed(i, p.Hibernate)
			o.Starting = o.Starting || o.Asleep && startedAnew(i, call.Recorded)
			return o
		},
	})
}

// startedAnew says whether a stopped instance was started since it was asked to wake: it may have
// fallen back between two looks.
func startedAnew(i types.Instance, recorded []hibernate.Resource) bool {
	return i.LaunchTime != nil && slices.ContainsFunc(recorded, func(r hibernate.Resource) bool {
		return r.ID == aws.ToString(i.InstanceId) && r.WokenAt != nil && !i.LaunchTime.Before(*r.WokenAt)
	})
}

// observed says how an instance is. One that is shutting down never comes back.
func observed(i types.Instance, memory bool) hibernate.Observation {
	id := aws.ToString(i.InstanceId)
	o := hibernate.Observation{ID: id, UID: id, Kind: "instance", LeftOut: leftOut(i, memory), Machines: []string{id}}
	if i.State == nil {
		return o
	}
	switch i.State.Name {
	case types.InstanceStateNameRunning:
		text, err := json.Marshal(before{State: string(i.State.Name)})
		if err != nil {
			return o // two words always marshal; without them nothing is done
		}
		o.Awake, o.Ready, o.Before, o.Units = true, true, text, map[string]float64{string(i.InstanceType): 1}
	case types.InstanceStateNameStopped:
		o.Asleep = true
	case types.InstanceStateNamePending:
		o.Starting = true
	case types.InstanceStateNameShuttingDown, types.InstanceStateNameTerminated:
		o.Gone = true
	}
	return o
}

// leftOut says why an instance is not stopped: it would be replaced, or lost.
func leftOut(i types.Instance, memory bool) string {
	tags := tagsOf(i)
	switch {
	case tags["eks:nodegroup-name"] != "":
		return fmt.Sprintf("it is a node of the managed node group %s, which would replace it; a target of type eks puts that to sleep", tags["eks:nodegroup-name"])
	case hasKey(tags, "karpenter.sh/"):
		return "it is a node of Karpenter's, which would replace it"
	case tags["aws:autoscaling:groupName"] != "":
		return fmt.Sprintf("it is a member of the Auto Scaling group %s, which would replace it; a target of type asg puts that to sleep", tags["aws:autoscaling:groupName"])
	case i.Operator != nil && aws.ToBool(i.Operator.Managed):
		return fmt.Sprintf("it is managed by %s", aws.ToString(i.Operator.Principal))
	case tags["aws:eks:cluster-name"] != "" || tags["eks:cluster-name"] != "":
		return "it is a node of EKS, which would replace it"
	case i.InstanceLifecycle == types.InstanceLifecycleTypeSpot:
		return "it is a spot instance, which may not come back"
	case i.InstanceLifecycle == types.InstanceLifecycleTypeScheduled || i.InstanceLifecycle == types.InstanceLifecycleTypeCapacityBlock:
		return fmt.Sprintf("its capacity is of the kind %s, which cannot be stopped", i.InstanceLifecycle)
	case i.RootDeviceType == types.DeviceTypeInstanceStore:
		return "its root device is an instance store, which is lost when it stops"
	case memory && (i.HibernationOptions == nil || !aws.ToBool(i.HibernationOptions.Configured)):
		return "it was not launched with hibernation, which parameters.hibernate asks for"
	}
	return ""
}

func tagsOf(i types.Instance) map[string]string {
	out := map[string]string{}
	for _, t := range i.Tags {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}

func hasKey(tags map[string]string, prefix string) bool {
	for key := range tags {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// Shutdown stops the instances that run. One that is starting or stopping is waited for.
func (s Sleeps) Shutdown(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	p, api, err := observe.Open[hibernate.EC2Parameters](ctx, call, s.Open)
	if err != nil {
		return executors.NotBegun(err)
	}
	ids := chosen(due, func(d hibernate.Due) bool { return d.Seen.Awake })
	return effect.Many(ctx, call, "stop", ids, atOnce, func(ctx context.Context, ids []string) error {
		in := &ec2.StopInstancesInput{InstanceIds: ids}
		if p.Hibernate {
			in.Hibernate = aws.Bool(true)
		}
		_, err := api.StopInstances(ctx, in)
		return err
	})
}

// Wake starts the instances that are stopped. One that fell back is started again and reported as a
// failure.
func (s Sleeps) Wake(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	_, api, err := observe.Open[hibernate.EC2Parameters](ctx, call, s.Open)
	if err != nil {
		return executors.NotBegun(err)
	}
	ids := chosen(due, func(d hibernate.Due) bool { return d.Seen.Asleep })
	out := effect.Many(ctx, call, "start", ids, atOnce, func(ctx context.Context, ids []string) error {
		_, err := api.StartInstances(ctx, &ec2.StartInstancesInput{InstanceIds: ids})
		return err
	})
	for _, d := range due {
		if d.FellBack {
			out = append(out, executors.SleepResult{ID: d.ID, Err: fmt.Errorf("%s was started and is stopped again; %s", d.ID, KeyHint)})
		}
	}
	return out
}

func chosen(due []hibernate.Due, pick func(hibernate.Due) bool) []string {
	var out []string
	for _, d := range due {
		if pick(d) {
			out = append(out, d.ID)
		}
	}
	return out
}
