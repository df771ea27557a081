package ec2

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// mostValues is how many values a filter of EC2 takes.
const mostValues = 200

// PageOf is how many instances a page of a list has (a guess): without a limit AWS answers with a thousand,
// of up to 25 KB each, and of an answer no more than 4 MiB are read.
const PageOf = 50

// selected are the instances that a selector picks. AWS reads patterns in the values of its
// filters, so its answer is compared again here.
func selected(ctx context.Context, api API, s hibernate.CloudSelector) ([]types.Instance, error) {
	var filters []types.Filter
	for _, key := range slices.Sorted(maps.Keys(s.Tags)) {
		filters = append(filters, types.Filter{Name: aws.String("tag:" + key), Values: []string{literal(s.Tags[key])}})
	}
	var found []types.Instance
	var err error
	if len(s.IDs) > 0 {
		found, err = byID(ctx, api, s.IDs)
	} else {
		found, err = list(ctx, api, filters)
	}
	return slices.DeleteFunc(found, func(i types.Instance) bool {
		return !s.Picks(aws.ToString(i.InstanceId), tagsOf(i))
	}), err
}

// literal escapes the characters that are patterns in a filter.
func literal(value string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`).Replace(value)
}

// byID are the instances of some ids that exist. It filters by id: a request that names ids is
// refused as a whole when one of them is gone.
func byID(ctx context.Context, api API, ids []string) ([]types.Instance, error) {
	var out []types.Instance
	for some := range slices.Chunk(ids, mostValues) {
		found, err := list(ctx, api, []types.Filter{{Name: aws.String("instance-id"), Values: some}})
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// list reads all pages of a list.
func list(ctx context.Context, api API, filters []types.Filter) ([]types.Instance, error) {
	var out []types.Instance
	for pages := ec2.NewDescribeInstancesPaginator(api, &ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(PageOf)}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list instances: %w", effect.WithoutDetails(err))
		}
		for _, r := range page.Reservations {
			out = append(out, r.Instances...)
		}
	}
	return out, nil
}
