package eks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/capacity"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// of is the prefix of a node group's id.
const of = "nodegroups/"

func nameOf(id string) string { return strings.TrimPrefix(id, of) }

func namesOf(ids []string) []string {
	var out []string
	for _, id := range ids {
		out = append(out, nameOf(id))
	}
	return out
}

// clusterOf is a cluster of EKS.
type clusterOf struct {
	api          API
	name, region string
}

// group is a managed node group and its instances. Without known, the instances are not known.
type group struct {
	types.Nodegroup
	members []autoscaling.Instance
	known   bool
}

// names are all node groups of the cluster.
func (c clusterOf) names(ctx context.Context) ([]string, error) {
	var out []string
	for pages := eks.NewListNodegroupsPaginator(c.api, &eks.ListNodegroupsInput{ClusterName: &c.name}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		switch {
		case missing(err):
			return nil, fmt.Errorf("there is no cluster %s in region %s", c.name, c.region)
		case err != nil:
			return nil, fmt.Errorf("list the node groups of the cluster %s: %w", c.name, effect.WithoutDetails(err))
		}
		out = append(out, page.Nodegroups...)
	}
	return out, nil
}

func missing(err error) bool {
	var gone *types.ResourceNotFoundException
	return errors.As(err, &gone)
}

// describe reads node groups by their names, those that exist. EKS has no request for several.
func (c clusterOf) describe(ctx context.Context, names []string) ([]types.Nodegroup, error) {
	var out []types.Nodegroup
	for _, name := range names {
		got, err := c.api.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &c.name, NodegroupName: &name})
		switch {
		case missing(err):
		case err != nil:
			return nil, fmt.Errorf("look at the node group %s of the cluster %s: %w", name, c.name, effect.WithoutDetails(err))
		case got.Nodegroup != nil:
			out = append(out, *got.Nodegroup)
		}
	}
	return out, nil
}

// named are node groups with their instances.
func (c clusterOf) named(ctx context.Context, names []string) ([]group, error) {
	found, err := c.describe(ctx, names)
	if err != nil {
		return nil, err
	}
	return c.withMembers(ctx, found)
}

// selected are the node groups that are named and have all of the tags.
func (c clusterOf) selected(ctx context.Context, want hibernate.NodeGroups) ([]group, error) {
	names := want.Names
	if len(names) == 0 {
		var err error
		if names, err = c.names(ctx); err != nil {
			return nil, err
		}
	}
	found, err := c.describe(ctx, names)
	if err != nil {
		return nil, err
	}
	tags := hibernate.CloudSelector{Tags: want.Tags}
	return c.withMembers(ctx, slices.DeleteFunc(found, func(g types.Nodegroup) bool { return !tags.PicksTags(g.Tags) }))
}

// withMembers finds the instances of node groups, which EKS does not list.
func (c clusterOf) withMembers(ctx context.Context, list []types.Nodegroup) ([]group, error) {
	var names []string
	for _, g := range list {
		names = append(names, scalingGroups(g)...)
	}
	found, err := capacity.Named(ctx, c.api, names)
	if err != nil {
		return nil, err
	}
	var out []group
	for _, g := range list {
		one := group{Nodegroup: g}
		for _, f := range found {
			if slices.Contains(scalingGroups(g), aws.ToString(f.AutoScalingGroupName)) {
				one.known, one.members = true, append(one.members, capacity.Members(f)...)
			}
		}
		out = append(out, one)
	}
	return out, nil
}

func scalingGroups(g types.Nodegroup) []string {
	if g.Resources == nil {
		return nil
	}
	var out []string
	for _, one := range g.Resources.AutoScalingGroups {
		out = append(out, aws.ToString(one.Name))
	}
	return out
}

func sizeOf(g types.Nodegroup) capacity.Size {
	if g.ScalingConfig == nil {
		return capacity.Size{}
	}
	return capacity.Size{Min: aws.ToInt32(g.ScalingConfig.MinSize), Desired: aws.ToInt32(g.ScalingConfig.DesiredSize), Max: aws.ToInt32(g.ScalingConfig.MaxSize)}
}

// observed says how a node group is. It is asleep once its size is zero and it has no nodes. While
// EKS updates it, that is not known.
func observed(g group) hibernate.Observation {
	size := sizeOf(g.Nodegroup)
	o := hibernate.Observation{
		ID: of + aws.ToString(g.NodegroupName), UID: aws.ToString(g.NodegroupArn), Kind: "node group", LeftOut: leftOut(g),
		Gone: g.Status == types.NodegroupStatusDeleting, Version: statusOf(g.Nodegroup), Machines: capacity.Machines(g.members),
	}
	switch {
	case g.Status == types.NodegroupStatusUpdating || g.Status == types.NodegroupStatusCreating:
		o.Starting = !size.None()
		return o
	case size.None():
		o.Asleep = len(g.members) == 0
		return o
	}
	text, err := json.Marshal(size)
	if err != nil {
		return o // three numbers always marshal; without them nothing is done
	}
	weight, _ := capacity.InService(g.members)
	o.Awake, o.Before, o.Units = true, text, unitsOf(g, size)
	o.Ready = g.Status == types.NodegroupStatusActive && (!g.known || weight >= size.Desired)
	return o
}

// unitsOf counts the nodes of a node group by instance type, as far as they are known.
func unitsOf(g group, size capacity.Size) map[string]float64 {
	switch {
	case len(g.members) > 0:
		return capacity.Units(g.members)
	case len(g.InstanceTypes) == 1:
		return map[string]float64{g.InstanceTypes[0]: float64(size.Desired)}
	}
	return map[string]float64{"nodes": float64(size.Desired)}
}

// statusOf is the status of a node group, with the health issues that EKS reports.
func statusOf(g types.Nodegroup) string {
	out := string(g.Status)
	if g.Health != nil && g.Status != types.NodegroupStatusActive {
		for _, issue := range g.Health.Issues {
			out += fmt.Sprintf("; %s: %s", issue.Code, aws.ToString(issue.Message))
		}
	}
	return document.Cut(out, document.MaxMessage)
}

// leftOut says why a node group is not set to size zero.
func leftOut(g group) string {
	switch {
	case g.Status == types.NodegroupStatusCreateFailed || g.Status == types.NodegroupStatusDeleteFailed:
		return "its status is " + statusOf(g.Nodegroup)
	case g.WarmPoolConfig != nil && aws.ToBool(g.WarmPoolConfig.Enabled):
		return "it has a warm pool, which would fill up instead"
	case slices.ContainsFunc(g.members, func(i autoscaling.Instance) bool { return aws.ToBool(i.ProtectedFromScaleIn) }):
		return "it has instances that are protected from scale-in, which would stay"
	}
	return ""
}
