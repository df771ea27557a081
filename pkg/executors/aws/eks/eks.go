// Package eks removes the nodes of EKS clusters while they sleep: those of managed node groups, and
// those of Karpenter's NodePools.
package eks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/capacity"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/observe"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// API are the calls of EKS, and those of Auto Scaling about the instances of node groups.
type API interface {
	eks.ListNodegroupsAPIClient
	eks.DescribeNodegroupAPIClient
	autoscaling.DescribeAutoScalingGroupsAPIClient
	UpdateNodegroupConfig(ctx context.Context, in *eks.UpdateNodegroupConfigInput, options ...func(*eks.Options)) (*eks.UpdateNodegroupConfigOutput, error)
}

// Groups sets managed node groups to size zero and back to their old size.
type Groups struct {
	Open func(ctx context.Context, call executors.SleepCall) (API, error)
}

// newGroups reaches EKS by sessions of a pool.
func newGroups(pool *session.Pool) Groups {
	return Groups{Open: session.Opener(pool, func(config aws.Config) API {
		return newClient(autoscaling.NewFromConfig(config), eks.NewFromConfig(config))
	})}
}

// open reads the parameters of a call and finds its cluster.
func (s Groups) open(ctx context.Context, call executors.SleepCall) (hibernate.NodeGroups, clusterOf, error) {
	p, api, err := observe.Open[hibernate.EKSParameters](ctx, call, s.Open)
	if err != nil {
		return hibernate.NodeGroups{}, clusterOf{}, err
	}
	if p.ManagedNodeGroups == nil {
		return hibernate.NodeGroups{}, clusterOf{}, errors.New("the parameters name no node groups")
	}
	if call.Cloud == nil || call.Cloud.Cluster == "" {
		return hibernate.NodeGroups{}, clusterOf{}, errors.New("the target's connector names no cluster of EKS")
	}
	return *p.ManagedNodeGroups, clusterOf{api, call.Cloud.Cluster, call.Region()}, nil
}

// Validate checks that the cluster exists, with each node group that is named, and that some node
// group has the tags.
func (s Groups) Validate(ctx context.Context, call executors.SleepCall) error {
	want, c, err := s.open(ctx, call)
	if err != nil {
		return err
	}
	there, err := c.names(ctx)
	if err != nil {
		return err
	}
	for _, name := range want.Names {
		if !slices.Contains(there, name) {
			return fmt.Errorf("there is no managed node group %s in the cluster %s", name, c.name)
		}
	}
	found, err := c.selected(ctx, want)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("no managed node group of the cluster %s has the tags of parameters.managedNodeGroups", c.name)
	}
	for _, g := range found {
		if why := leftOut(g); why != "" && len(want.Names) > 0 {
			return fmt.Errorf("the node group %s cannot be put to sleep: %s", aws.ToString(g.NodegroupName), why)
		}
	}
	return nil
}

// Observe reports the selected node groups and the recorded ones.
func (s Groups) Observe(ctx context.Context, call executors.SleepCall) ([]hibernate.Observation, error) {
	want, c, err := s.open(ctx, call)
	if err != nil {
		return nil, err
	}
	return observe.Resources(call, observe.Source[group]{
		Selected: func() ([]group, error) { return c.selected(ctx, want) },
		Named:    func(ids []string) ([]group, error) { return c.named(ctx, namesOf(ids)) },
		Observed: observed,
	})
}

// Shutdown sets the node groups that have nodes to size zero. EKS drains the nodes.
func (s Groups) Shutdown(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	_, c, err := s.open(ctx, call)
	if err != nil {
		return executors.NotBegun(err)
	}
	return capacity.Empty(ctx, due, c.find(ctx, call, "set to no nodes"))
}

// Wake sets node groups to their old size. Health issues that EKS reports of a group that does not
// come up are a failure; so is a group that fell back to zero.
func (s Groups) Wake(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	_, c, err := s.open(ctx, call)
	if err != nil {
		return executors.NotBegun(err)
	}
	out := capacity.Refill(ctx, due, c.find(ctx, call, "put back"))
	for _, d := range due {
		switch {
		case d.FellBack:
			out = append(out, executors.SleepResult{ID: d.ID, Err: fmt.Errorf("%s was put back and has no nodes again: look at its updates in EKS", d.ID)})
		case d.Seen.Awake && strings.HasPrefix(d.Seen.Version, string(types.NodegroupStatusDegraded)):
			out = append(out, executors.SleepResult{ID: d.ID, Err: fmt.Errorf("%s does not come up: its status is %s", d.ID, d.Seen.Version)})
		}
	}
	return out
}

// find reads node groups right before they are changed.
func (c clusterOf) find(ctx context.Context, call executors.SleepCall, what string) capacity.Find {
	return func(ids []string) ([]capacity.Group, error) {
		found, err := c.describe(ctx, namesOf(ids))
		var out []capacity.Group
		for _, g := range found {
			out = append(out, capacity.Group{UID: aws.ToString(g.NodegroupArn), Max: sizeOf(g).Max, Set: func(ctx context.Context, d hibernate.Due, to capacity.Size) error {
				return c.set(ctx, call, d, what, to)
			}})
		}
		return out, err
	}
}

// set changes the size of a node group. EKS makes one change at a time: while another is under way,
// the next pass asks again.
func (c clusterOf) set(ctx context.Context, call executors.SleepCall, d hibernate.Due, what string, to capacity.Size) error {
	var update *types.Update
	err := effect.One(ctx, call, func(ctx context.Context) error {
		out, err := c.api.UpdateNodegroupConfig(ctx, &eks.UpdateNodegroupConfigInput{
			ClusterName: &c.name, NodegroupName: aws.String(nameOf(d.ID)), ClientRequestToken: aws.String(token(call, d)),
			ScalingConfig: &types.NodegroupScalingConfig{MinSize: &to.Min, DesiredSize: &to.Desired, MaxSize: &to.Max},
		})
		if out != nil {
			update = out.Update
		}
		return err
	})
	if effect.Code(err) == "ResourceInUseException" {
		return nil
	}
	if err == nil {
		err = failed(update)
	}
	return effect.Result(d.ID, what, err).Err
}

// token makes a request idempotent: for the same token EKS answers with the same update. After a
// failure the token is another one.
func token(call executors.SleepCall, d hibernate.Due) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%s/%s/%s/%s/%s/%d/%d/%s", call.Plan.Namespace, call.Plan.Name, call.Cycle, call.Target, d.UID, call.Operation,
		call.StartedAt.UTC().Format(time.RFC3339Nano), call.Failures, d.Revived, d.CapturedAt.UTC().Format(time.RFC3339Nano)))
	return hex.EncodeToString(sum[:16])
}

// failed is the error of an update that has ended already.
func failed(u *types.Update) error {
	if u == nil || u.Status != types.UpdateStatusFailed && u.Status != types.UpdateStatusCancelled {
		return nil
	}
	out := fmt.Sprintf("the update %s is %s", aws.ToString(u.Id), u.Status)
	for _, e := range u.Errors {
		out += fmt.Sprintf("; %s: %s", e.ErrorCode, aws.ToString(e.ErrorMessage))
	}
	return errors.New(out)
}
