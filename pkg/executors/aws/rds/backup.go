package rds

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// between is the pause between two looks at a snapshot, which takes minutes; again is the pause
// after an answer that decides nothing (both are guesses).
const (
	between = 15 * time.Second
	again   = 5 * time.Second
)

// Backups executes steps of type backup with method rds-snapshot, and is done when the snapshot is
// available. Its name is derived from run, step and attempt, so that a pass after a crash or a lost
// reply finds it. When a run ends early, a snapshot that was begun goes on and stays.
type Backups struct {
	Open func(ctx context.Context, call executors.SleepCall) (API, error)
}

// NewBackups reaches RDS by sessions of a pool.
func NewBackups(pool *session.Pool) Backups {
	return Backups{Open: session.Opener(pool, func(config aws.Config) API { return newClient(rds.NewFromConfig(config)) })}
}

// Pass begins the snapshot, or checks its progress.
func (b Backups) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	out, err := b.pass(ctx, call)
	if err != nil {
		return judged(call, err)
	}
	return out
}

func (b Backups) pass(ctx context.Context, call executors.Call) (executors.Outcome, error) {
	p, err := api.PropertiesAs[plan.BackupProperties](call)
	if err != nil {
		return executors.Outcome{}, err
	}
	if call.Cloud == nil {
		return executors.Outcome{}, api.Refuse(executors.ReasonInvalid, "the step has no connector of kind CloudProvider")
	}
	client, err := b.Open(ctx, call.InCloud())
	if err != nil {
		return executors.Outcome{}, err
	}
	d, err := savable(ctx, client, p.Component, call.Cloud.AWS.Region)
	if refused := new(api.Refused); errors.As(err, &refused) {
		return begun(ctx, client, call, p, refused)
	}
	if err != nil {
		return executors.Outcome{}, err
	}
	k, err := kindOf(client, d.id)
	if err != nil {
		return executors.Outcome{}, err
	}
	return backup{call, k, d, p}.pass(ctx)
}

// begun finds a snapshot that an earlier pass of this attempt asked for and whose database was
// deleted since, or has become ambiguous: the snapshot's name follows from the step. Without such a
// snapshot the refusal stands.
func begun(ctx context.Context, client API, call executors.Call, p *plan.BackupProperties, refused error) (executors.Outcome, error) {
	for _, d := range called(p.Component) {
		k, err := kindOf(client, d.id)
		if err != nil {
			return executors.Outcome{}, err
		}
		b := backup{call, k, d, p}
		have, there, err := k.called(ctx, b.name())
		switch {
		case effect.Denied(err): // rights for one of the two kinds may be enough
		case err != nil:
			return executors.Outcome{}, b.unseen(err)
		case there && b.took(have):
			return b.standing(ctx, have)
		}
	}
	return executors.Outcome{}, refused
}

// called are the databases that a name or an ARN may mean.
func called(component string) []database {
	instance, cluster := true, true
	if parts := strings.Split(component, ":"); len(parts) == 7 && parts[0] == "arn" {
		instance, cluster, component = parts[5] == "db", parts[5] == "cluster", parts[6]
	}
	name := strings.ToLower(component)
	var out []database
	if instance {
		out = append(out, database{id: ofInstance + name, name: name})
	}
	if cluster {
		out = append(out, database{id: ofCluster + name, name: name})
	}
	return out
}

// savable is the database that a step names. A name that an instance and a cluster share is
// refused.
func savable(ctx context.Context, client API, component, region string) (database, error) {
	all, err := databases(ctx, client)
	if err != nil {
		return database{}, err
	}
	switch named := all.named(component); {
	case len(named) == 0:
		return database{}, api.Refuse(executors.ReasonNotFound, "there is no database %s in region %s", component, region)
	case len(named) > 1:
		return database{}, api.Refuse("Ambiguous", "an instance and a cluster of region %s have the name %s: write the ARN, %s or %s", region, component, named[0].arn, named[1].arn)
	case named[0].memberOf != "":
		return database{}, api.Refuse("Unsupported", "%s is part of the cluster %s, of which a snapshot is taken as a whole: name that", named[0].id, named[0].memberOf)
	case named[0].foreign():
		return database{}, api.Refuse("Unsupported", "the engine of %s is %s, which is not RDS' own", named[0].id, named[0].engine)
	default:
		return named[0], nil
	}
}

// backup is a step and its database.
type backup struct {
	call     executors.Call
	kind     kind
	database database
	p        *plan.BackupProperties
}

// name is the name of this attempt's snapshot: maint-<plan>-<database>-<hash>.
func (b backup) name() string {
	return nameOf(b.call.Plan.Name+"-"+b.database.name, b.identity())
}

// identity is the whole identity behind the hash of a snapshot's name.
func (b backup) identity() string {
	return strings.Join([]string{b.call.Plan.Namespace, api.Identity(b.call), b.database.id}, "/")
}

// step identifies the step across runs and attempts, for retention.
func (b backup) step() string {
	return b.call.Plan.Namespace + "/" + b.call.Plan.Name + "/" + b.call.Path
}

// tags mark a snapshot as this step's.
func (b backup) tags() []types.Tag {
	return []types.Tag{
		{Key: aws.String(tagPlan), Value: aws.String(tagValue(b.call.Plan.Namespace + "/" + b.call.Plan.Name))},
		{Key: aws.String(annotations.BackupStep), Value: aws.String(tagValue(b.step()))},
		{Key: aws.String(annotations.BackupOf), Value: aws.String(tagValue(b.identity()))},
	}
}

// tagValue is a text that tags accept: where they do not, its hash.
func tagValue(text string) string {
	text = strings.ReplaceAll(text, "#", "@")
	if regexp.MustCompile(`^[A-Za-z0-9 _.:/=+@-]{0,256}$`).MatchString(text) {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (b backup) pass(ctx context.Context) (executors.Outcome, error) {
	have, there, err := b.kind.called(ctx, b.name())
	switch {
	case err != nil:
		return executors.Outcome{}, b.unseen(err)
	case there && !b.took(have):
		return executors.Outcome{}, b.notOurs()
	case there:
		return b.standing(ctx, have)
	}
	return b.begin(ctx)
}

// took says whether this attempt took a snapshot.
func (b backup) took(s snapshot) bool {
	return s.of == b.database.id && s.tags[annotations.BackupOf] == tagValue(b.identity())
}

func (b backup) unseen(err error) error {
	return fmt.Errorf("look for the snapshot %s: %w", b.name(), effect.WithoutDetails(err))
}

func (b backup) notOurs() error {
	return api.Refuse("NotOurs", "there is a snapshot %s that was not taken by this step; delete it", b.name())
}

// begin asks for the snapshot once the database is in a state that allows it.
func (b backup) begin(ctx context.Context) (executors.Outcome, error) {
	switch status := b.database.status; {
	case broken(status), status == statusStopped, status == statusDeleting:
		return executors.Fail("NotAvailable", "%s is %s, in which AWS takes no snapshot of it", b.database.id, status), nil
	case b.call.DryRun && status == statusAvailable:
		return api.Done("dry run: would take the snapshot %s of %s", b.name(), b.database.id), nil
	case b.call.DryRun:
		return api.Done("dry run: would take the snapshot %s of %s once it is available; it is %s", b.name(), b.database.id, status), nil
	case status != statusAvailable && status != "storage-optimization":
		return b.waits(between, "%s is %s; its snapshot is taken once it is available", b.database.id, status), nil
	}
	err := effect.One(ctx, b.call.InCloud(), func(ctx context.Context) error { return b.kind.askSnapshot(ctx, b.name(), b.tags()) })
	switch code := effect.Code(err); {
	case strings.Contains(code, "SnapshotAlreadyExists"): // the reply to an earlier request was lost, or it is another's: the next look decides
		return b.waits(again, "there is a snapshot %s; looking whose it is", b.name()), nil
	case strings.HasPrefix(code, "InvalidDB"): // somebody else has begun a change of it
		return b.waits(between, "take a snapshot of %s: %s", b.database.id, effect.WithoutDetails(err)), nil
	case err != nil:
		return executors.Outcome{}, fmt.Errorf("take a snapshot of %s: %w", b.database.id, effect.WithoutDetails(err))
	}
	return b.waits(between, "the snapshot %s of %s is asked for%s", b.name(), b.database.id, stays), nil
}

// stays is the end of messages about a snapshot under way.
const stays = "; it stays when the run ends before it"

// standing reads the progress of the snapshot. Statuses that are not named here are temporary.
func (b backup) standing(ctx context.Context, have snapshot) (executors.Outcome, error) {
	switch {
	case have.status == statusAvailable:
		return b.done(ctx, have)
	case have.failed():
		out := executors.Fail("SnapshotFailed", "the snapshot %s of %s is %s", have.name, b.database.id, have.status)
		out.Changed = []run.Change{b.change(have.name, "created")}
		return out, nil
	case have.status == statusDeleting:
		return executors.Fail("Deleted", "the snapshot %s of %s is being deleted before its end", have.name, b.database.id), nil
	}
	return b.waits(between, "the snapshot %s of %s is %s%s", have.name, b.database.id, have.status, stays), nil
}

func (b backup) waits(pause time.Duration, format string, args ...any) executors.Outcome {
	out := api.Waiting(nil, format, args...)
	out.WakeAt = b.call.Now.Add(pause)
	return out
}

// done deletes old snapshots once the new one can be restored from.
func (b backup) done(ctx context.Context, have snapshot) (executors.Outcome, error) {
	out := api.Done("%s can be restored from the snapshot %s", b.database.id, have.name)
	out.Outputs = map[string]any{"snapshot": have.name, "arn": have.arn, "database": b.database.id}
	out.Changed = []run.Change{b.change(have.name, "created")}
	gone, err := b.retain(ctx, have)
	for _, name := range gone {
		out.Changed = append(out.Changed, b.change(name, "deleted"))
	}
	if len(gone) > 0 {
		out.Message = document.Cut(fmt.Sprintf("%s; %d older snapshots were deleted", out.Message, len(gone)), document.MaxMessage)
	}
	return out, err
}

// retain deletes snapshots of the database that this step of this plan took and that are older than
// its retention: never one of this attempt, and never one with other tags.
func (b backup) retain(ctx context.Context, have snapshot) (gone []string, err error) {
	if b.p.Retain == nil || b.call.DryRun {
		return nil, nil
	}
	all, err := b.kind.snapshots(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the snapshots of %s: %w", b.database.id, effect.WithoutDetails(err))
	}
	limit := b.call.Now.Add(-b.p.Retain.Duration)
	for _, s := range all {
		if s.name == have.name || s.tags[annotations.BackupStep] != tagValue(b.step()) || s.status == statusDeleting || !s.at.Before(limit) || s.at.IsZero() {
			continue
		}
		err := effect.One(ctx, b.call.InCloud(), func(ctx context.Context) error { return b.kind.askDelete(ctx, s.name) })
		if err != nil && !noSnapshot(err) {
			return gone, fmt.Errorf("delete the snapshot %s: %w", s.name, effect.WithoutDetails(err))
		}
		gone = append(gone, s.name)
	}
	return gone, nil
}

// change is an entry of the run's list of changes.
func (b backup) change(name, what string) run.Change {
	kind := "DBSnapshot"
	if strings.HasPrefix(b.database.id, ofCluster) {
		kind = "DBClusterSnapshot"
	}
	return run.Change{APIVersion: "rds.amazonaws.com/2014-10-31", Kind: kind, Name: name, What: what}
}

// judged is the outcome of an error. When AWS does not answer, the step waits; an answer about the
// request fails it.
func judged(call executors.Call, err error) executors.Outcome {
	var refused *api.Refused
	var rules interface{ Refused() string }
	var credentials *executors.CredentialsError
	switch {
	case errors.As(err, &refused):
		return refused.Outcome
	case errors.As(err, &credentials):
		return credentials.Outcome
	case errors.As(err, &rules):
		return executors.Refuse(executors.ReasonNoConnection, "the agent's configuration does not allow the address: %s", rules.Refused())
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), effect.IsTransient(err):
		out := executors.Fail(executors.ReasonUnavailable, "AWS does not answer as it should: %s", err)
		out.State, out.WakeAt = executors.NotYet, call.Now.Add(again)
		return out
	case effect.Denied(err):
		return executors.Refuse(executors.ReasonForbidden, "%s", err)
	case effect.Code(err) != "":
		return executors.Fail("RefusedByAWS", "%s", err)
	}
	return executors.Refuse(executors.ReasonNoConnection, "%s", err)
}
