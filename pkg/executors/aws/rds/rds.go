// Package rds stops and starts databases of RDS: instances, and clusters of Aurora.
package rds

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/observe"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// API are the calls of RDS.
type API interface {
	rds.DescribeDBInstancesAPIClient
	rds.DescribeDBClustersAPIClient
	rds.DescribeDBSnapshotsAPIClient
	rds.DescribeDBClusterSnapshotsAPIClient
	StopDBInstance(ctx context.Context, in *rds.StopDBInstanceInput, options ...func(*rds.Options)) (*rds.StopDBInstanceOutput, error)
	StartDBInstance(ctx context.Context, in *rds.StartDBInstanceInput, options ...func(*rds.Options)) (*rds.StartDBInstanceOutput, error)
	StopDBCluster(ctx context.Context, in *rds.StopDBClusterInput, options ...func(*rds.Options)) (*rds.StopDBClusterOutput, error)
	StartDBCluster(ctx context.Context, in *rds.StartDBClusterInput, options ...func(*rds.Options)) (*rds.StartDBClusterOutput, error)
	CreateDBSnapshot(ctx context.Context, in *rds.CreateDBSnapshotInput, options ...func(*rds.Options)) (*rds.CreateDBSnapshotOutput, error)
	DeleteDBSnapshot(ctx context.Context, in *rds.DeleteDBSnapshotInput, options ...func(*rds.Options)) (*rds.DeleteDBSnapshotOutput, error)
	CreateDBClusterSnapshot(ctx context.Context, in *rds.CreateDBClusterSnapshotInput, options ...func(*rds.Options)) (*rds.CreateDBClusterSnapshotOutput, error)
	DeleteDBClusterSnapshot(ctx context.Context, in *rds.DeleteDBClusterSnapshotInput, options ...func(*rds.Options)) (*rds.DeleteDBClusterSnapshotOutput, error)
}

// Sleeps stops databases, and starts those that ran.
type Sleeps struct {
	Open func(ctx context.Context, call executors.SleepCall) (API, error)
}

// New reaches RDS by sessions of a pool.
func New(pool *session.Pool) Sleeps {
	return Sleeps{Open: session.Opener(pool, func(config aws.Config) API { return newClient(rds.NewFromConfig(config)) })}
}

// before is the restore data of a database.
type before struct {
	Status   string `json:"status"`
	Snapshot string `json:"snapshot,omitempty"` // that is taken before it is stopped
}

// Validate checks that each id is a database that can be stopped, and that some database has the
// tags.
func (s Sleeps) Validate(ctx context.Context, call executors.SleepCall) error {
	p, api, err := observe.Open[hibernate.RDSParameters](ctx, call, s.Open)
	if err != nil {
		return err
	}
	all, err := databases(ctx, api)
	if err != nil {
		return err
	}
	if picked := all.picked(*p.Selector); len(picked) == 0 && len(p.Selector.IDs) == 0 {
		return fmt.Errorf("no database of region %s has the tags of parameters.selector", call.Region())
	}
	for _, id := range p.Selector.IDs {
		named := all.named(id)
		if len(named) == 0 {
			return fmt.Errorf("there is no database %s in region %s", id, call.Region())
		}
		for _, d := range named {
			if why := all.leftOut(d, *p.Selector); why != "" {
				return fmt.Errorf("%s cannot be put to sleep: %s", d.id, why)
			}
		}
	}
	return nil
}

// Observe reports the selected databases and the recorded ones.
func (s Sleeps) Observe(ctx context.Context, call executors.SleepCall) ([]hibernate.Observation, error) {
	p, api, err := observe.Open[hibernate.RDSParameters](ctx, call, s.Open)
	if err != nil {
		return nil, err
	}
	all, err := databases(ctx, api)
	if err != nil {
		return nil, err
	}
	return observe.Resources(call, observe.Source[database]{
		Selected: func() ([]database, error) { return all.picked(*p.Selector), nil },
		Named:    func(ids []string) ([]database, error) { return all.having(ids), nil },
		Observed: func(d database) hibernate.Observation { return observed(call, all, d, *p) },
	})
}

// observed says how a database is.
func observed(call executors.SleepCall, all list, d database, p hibernate.RDSParameters) hibernate.Observation {
	o := hibernate.Observation{
		ID: d.id, UID: d.uid, Version: d.status, LeftOut: all.leftOut(d, *p.Selector),
		Asleep: d.status == statusStopped, Starting: d.status == statusStarting, Gone: d.status == statusDeleting,
	}
	if d.status != statusAvailable {
		return o
	}
	was := before{Status: d.status}
	if p.SnapshotBeforeStop {
		was.Snapshot = snapshotName(call, d.id)
	}
	text, err := json.Marshal(was)
	if err != nil {
		return o // two words always marshal; without them nothing is done
	}
	o.Awake, o.Ready, o.Before, o.Units = true, true, text, d.units
	for _, r := range call.Recorded {
		if r.ID != d.id {
			continue
		}
		if call.Operation == hibernate.Wake { // its name is that of the sleep that took it: it is no change of the database
			o.Before = r.Before
		}
		if r.AsleepAt != nil && call.Now.Sub(*r.AsleepAt) > mostStopped {
			o.RevivedBy, o.Often = "AWS, which starts a database again that was stopped for seven days", true
		}
	}
	return o
}

// mostStopped is for how long a database stays stopped for certain: AWS starts it after seven days,
// at an hour that AWS chooses.
const mostStopped = 6 * 24 * time.Hour
