package rds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// The statuses that decide something. All others are in transition, or broken.
const (
	statusAvailable = "available"
	statusStopped   = "stopped"
	statusStopping  = "stopping"
	statusStarting  = "starting"
	statusDeleting  = "deleting"
)

// Prefixes of ids in restore data: an instance and a cluster may share a name.
const (
	ofInstance = "db/"
	ofCluster  = "cluster/"
)

// database is an instance or a cluster.
type database struct {
	id, name, arn, uid string
	status, engine     string
	tags               map[string]string
	units              map[string]float64
	memberOf           string // the cluster that it is part of
	barred             string // why it cannot be stopped
}

// list is all databases of an account's region.
type list []database

// databases reads all pages of both lists: RDS cannot filter by tag.
func databases(ctx context.Context, api API) (list, error) {
	var out list
	for pages := rds.NewDescribeDBInstancesPaginator(api, &rds.DescribeDBInstancesInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list database instances: %w", effect.WithoutDetails(err))
		}
		for _, i := range page.DBInstances {
			out = append(out, ofDBInstance(i))
		}
	}
	for pages := rds.NewDescribeDBClustersPaginator(api, &rds.DescribeDBClustersInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list database clusters: %w", effect.WithoutDetails(err))
		}
		for _, c := range page.DBClusters {
			out = append(out, out.ofDBCluster(c))
		}
	}
	return out, nil
}

func ofDBInstance(i types.DBInstance) database {
	d := database{
		name: aws.ToString(i.DBInstanceIdentifier), arn: aws.ToString(i.DBInstanceArn), uid: aws.ToString(i.DbiResourceId),
		status: aws.ToString(i.DBInstanceStatus), tags: tagsOf(i.TagList), memberOf: aws.ToString(i.DBClusterIdentifier),
	}
	d.id = ofInstance + d.name
	n := 1.0
	if aws.ToBool(i.MultiAZ) {
		n = 2 // the standby costs the same
	}
	d.units = map[string]float64{aws.ToString(i.DBInstanceClass): n}
	engine := aws.ToString(i.Engine)
	d.engine = engine
	switch {
	case i.ReadReplicaSourceDBInstanceIdentifier != nil || i.ReadReplicaSourceDBClusterIdentifier != nil:
		d.barred = "it is a read replica, which AWS does not stop"
	case len(i.ReadReplicaDBInstanceIdentifiers)+len(i.ReadReplicaDBClusterIdentifiers) > 0:
		d.barred = "it has read replicas, and AWS does not stop what they read from"
	case strings.HasPrefix(engine, "custom-"):
		d.barred = fmt.Sprintf("its engine %s is not supported: an RDS Custom instance is stopped by its owner", engine)
	case strings.HasPrefix(engine, "sqlserver") && aws.ToBool(i.MultiAZ):
		d.barred = "it is SQL Server in several zones, which AWS does not stop"
	}
	return d
}

// ofDBCluster is a cluster whose members are in the list already.
func (l list) ofDBCluster(c types.DBCluster) database {
	d := database{
		name: aws.ToString(c.DBClusterIdentifier), arn: aws.ToString(c.DBClusterArn), uid: aws.ToString(c.DbClusterResourceId),
		status: aws.ToString(c.Status), tags: tagsOf(c.TagList), units: map[string]float64{},
	}
	d.id = ofCluster + d.name
	for _, member := range l {
		if member.memberOf == d.name {
			for class, n := range member.units {
				d.units[class] += n
			}
		}
	}
	engine := aws.ToString(c.Engine)
	d.engine = engine
	switch {
	case !strings.HasPrefix(engine, "aurora"):
		d.barred = fmt.Sprintf("its engine %s is not supported: of clusters, those of Aurora are", engine)
	case aws.ToString(c.EngineMode) == "serverless":
		d.barred = "it is Aurora Serverless v1, which pauses by itself and cannot be stopped"
	case aws.ToString(c.GlobalClusterIdentifier) != "":
		d.barred = "it is part of a global database, which AWS does not stop"
	case aws.ToString(c.ReplicationSourceIdentifier) != "":
		d.barred = "it is a replica of another cluster, which AWS does not stop"
	}
	return d
}

// foreign says that a database belongs to another service of AWS, although RDS lists it.
func (d database) foreign() bool { return d.engine == "docdb" || d.engine == "neptune" }

func tagsOf(tags []types.Tag) map[string]string {
	out := map[string]string{}
	for _, t := range tags {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}

// find is a database by its id in restore data.
func (l list) find(id string) (database, bool) {
	i := slices.IndexFunc(l, func(d database) bool { return d.id == id })
	if i < 0 {
		return database{}, false
	}
	return l[i], true
}

// having are the databases of some ids that exist.
func (l list) having(ids []string) list {
	var out list
	for _, id := range ids {
		if d, there := l.find(id); there {
			out = append(out, d)
		}
	}
	return out
}

// named are the databases that a name or an ARN means.
func (l list) named(id string) list {
	var out list
	for _, d := range l {
		if d.arn == id || strings.EqualFold(d.name, id) { // RDS keeps names in lower case
			out = append(out, d)
		}
	}
	return out
}

// picked are the databases that a selector picks. A member of a cluster that is picked, too, sleeps
// with the cluster and is not listed.
func (l list) picked(s hibernate.CloudSelector) list {
	var out list
	for _, d := range l {
		if !l.picks(s, d) {
			continue
		}
		if of, there := l.find(ofCluster + d.memberOf); there && d.memberOf != "" && l.picks(s, of) {
			continue
		}
		out = append(out, d)
	}
	return out
}

func (l list) picks(s hibernate.CloudSelector, d database) bool {
	if !s.PicksTags(d.tags) {
		return false
	}
	return len(s.IDs) == 0 || slices.ContainsFunc(s.IDs, func(id string) bool { return d.arn == id || strings.EqualFold(d.name, id) })
}

// leftOut says why a database is not stopped; empty: it is.
func (l list) leftOut(d database, s hibernate.CloudSelector) string {
	switch {
	case d.memberOf != "":
		return fmt.Sprintf("it is part of the cluster %s, which sleeps as a whole: select that", d.memberOf)
	case d.barred != "":
		return d.barred
	case broken(d.status):
		return fmt.Sprintf("its status is %s, in which AWS does not stop it", d.status)
	}
	return ""
}

// broken says whether a status is one that does not pass by itself.
func broken(status string) bool {
	return strings.HasPrefix(status, "incompatible-") || strings.HasPrefix(status, "inaccessible-encryption-credentials") ||
		slices.Contains([]string{"failed", "restore-error", "insufficient-capacity", "storage-full", "cloning-failed"}, status)
}
