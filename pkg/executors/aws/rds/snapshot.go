package rds

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
)

// Tags of our snapshots: they say whose they are, so that nobody else's is ever deleted.
const (
	tagPlan   = "maint.dev/plan"
	tagTarget = "maint.dev/target"
	tagCycle  = "maint.dev/cycle"
)

// snapshot is one of a database.
type snapshot struct {
	name, arn, of, status string
	at                    time.Time
	tags                  map[string]string
}

// maxSnapshotName is RDS's limit for names of cluster snapshots. Those of instances could be
// longer, but get the same names.
const maxSnapshotName = 63

// nameOf is a snapshot name of characters and length that RDS accepts: its subject, and a hash of
// the identity.
func nameOf(about, identity string) string {
	sum := sha256.Sum256([]byte(identity))
	hash := hex.EncodeToString(sum[:5])
	about = regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower("maint-"+about), "-")
	return strings.Trim(about[:min(len(about), maxSnapshotName-1-len(hash))], "-") + "-" + hash
}

// snapshotName is the name of a database's snapshot, the same after any crash:
// maint-<plan>-<database>-<cycle>-<hash>. A cycle may sleep twice, when somebody holds the plan
// awake in between: data that was written then is in no earlier snapshot.
func snapshotName(call executors.SleepCall, id string) string {
	_, database, _ := strings.Cut(id, "/")
	cycle := strings.TrimPrefix(call.Cycle, call.Plan.Name+"-")
	return nameOf(call.Plan.Name+"-"+database+"-"+cycle, strings.Join([]string{call.Plan.Namespace, call.Plan.Name, call.Target, call.Cycle, call.StartedAt.UTC().Format(time.RFC3339Nano), id}, "\x00"))
}

// failed says that nothing can be restored from a snapshot.
func (s snapshot) failed() bool {
	return slices.Contains([]string{"failed", "incompatible-restore", "incompatible-parameters"}, s.status)
}

func tagsOfCall(call executors.SleepCall) []types.Tag {
	return []types.Tag{
		{Key: aws.String(tagPlan), Value: aws.String(call.Plan.Namespace + "/" + call.Plan.Name)},
		{Key: aws.String(tagTarget), Value: aws.String(call.Target)},
		{Key: aws.String(tagCycle), Value: aws.String(call.Cycle)},
	}
}

func ours(s snapshot, call executors.SleepCall) bool {
	return s.tags[tagPlan] == call.Plan.Namespace+"/"+call.Plan.Name && s.tags[tagTarget] == call.Target
}

// snapshot says whether the snapshot of this cycle is there, and asks for it where it is not.
func (k kind) snapshot(ctx context.Context, call executors.SleepCall, name string) (there bool, err error) {
	all, err := k.snapshots(ctx)
	if err != nil {
		return false, fmt.Errorf("list the snapshots of %s: %w", k.id, effect.WithoutDetails(err))
	}
	i := slices.IndexFunc(all, func(s snapshot) bool { return s.name == name })
	if i < 0 {
		return false, k.takeSnapshot(ctx, call, name)
	}
	switch s := all[i]; {
	case s.status == statusAvailable:
		return true, nil
	case s.failed():
		err := effect.One(ctx, call, func(ctx context.Context) error { return k.askDelete(ctx, name) })
		return false, errors.Join(fmt.Errorf("the snapshot %s of %s is %s; it is taken anew", name, k.id, s.status), effect.WithoutDetails(err))
	}
	return false, nil
}

func (k kind) takeSnapshot(ctx context.Context, call executors.SleepCall, name string) error {
	err := effect.One(ctx, call, func(ctx context.Context) error { return k.askSnapshot(ctx, name, tagsOfCall(call)) })
	if strings.Contains(effect.Code(err), "SnapshotAlreadyExists") { // the reply to an earlier request was lost
		return nil
	}
	return effect.Result(k.id, "take a snapshot of", err).Err
}

// prune deletes the plan's older snapshots of a database beyond the number to keep. Only available
// ones count; others are not touched.
func (k kind) prune(ctx context.Context, call executors.SleepCall) error {
	all, err := k.snapshots(ctx)
	if err != nil {
		return fmt.Errorf("list the snapshots of %s: %w", k.id, effect.WithoutDetails(err))
	}
	all = slices.DeleteFunc(all, func(s snapshot) bool { return !ours(s, call) || s.status != statusAvailable })
	slices.SortFunc(all, func(a, b snapshot) int { return b.at.Compare(a.at) })
	var failed []error
	for _, s := range all[min(max(call.Snapshots, 1), len(all)):] {
		err := effect.One(ctx, call, func(ctx context.Context) error { return k.askDelete(ctx, s.name) })
		failed = append(failed, effect.Result(s.name, "delete the snapshot", err).Err)
	}
	return errors.Join(failed...)
}
