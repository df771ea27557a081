// Package karpenter puts the nodes that Karpenter makes to sleep: its NodePools may create no more
// nodes, and the existing ones are deleted.
package karpenter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Sleeps puts NodePools to sleep.
type Sleeps struct{}

// pageOf is the page size for lists of NodeClaims.
const pageOf = 500

// of is the prefix of a NodePool's id.
const of = "nodepools/"

func nodePools() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
}

func nodeClaims() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
}

// poolLabel is the label of a NodeClaim that names its NodePool.
const poolLabel = "karpenter.sh/nodepool"

// before is the restore data of a NodePool. Its weight is for people only: it is never changed.
type before struct {
	Limits map[string]any `json:"limits"` // null: there were none
	Weight *int64         `json:"weight,omitempty"`
}

// Validate checks that the cluster has Karpenter and the NodePools that are named.
func (Sleeps) Validate(ctx context.Context, call executors.SleepCall) error {
	params, err := parameters(call)
	if err != nil {
		return err
	}
	pools, err := list(ctx, call)
	if err != nil {
		return err
	}
	for _, name := range params.NodePools {
		if !slices.ContainsFunc(pools, func(p unstructured.Unstructured) bool { return p.GetName() == name }) {
			return fmt.Errorf("there is no NodePool %s", name)
		}
	}
	return nil
}

func parameters(call executors.SleepCall) (*hibernate.KarpenterParameters, error) {
	params, ok := call.Params.(*hibernate.KarpenterParameters)
	if !ok {
		return nil, fmt.Errorf("the parameters are %T", call.Params)
	}
	return params, nil
}

func list(ctx context.Context, call executors.SleepCall) ([]unstructured.Unstructured, error) {
	pools, err := call.Clients.Dynamic.Resource(nodePools()).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errors.New("the cluster serves no NodePools of karpenter.sh/v1")
	}
	if err != nil {
		return nil, fmt.Errorf("list NodePools: %w", err)
	}
	return pools.Items, nil
}

// Observe reports the selected NodePools and the recorded ones.
func (Sleeps) Observe(ctx context.Context, call executors.SleepCall) ([]hibernate.Observation, error) {
	params, err := parameters(call)
	if err != nil {
		return nil, err
	}
	pools, err := list(ctx, call)
	if err != nil {
		return nil, err
	}
	claims, err := claimsOf(ctx, call)
	if err != nil {
		return nil, err
	}
	var out []hibernate.Observation
	for i := range pools {
		pool := &pools[i]
		recorded := slices.ContainsFunc(call.Recorded, func(r hibernate.Resource) bool { return r.ID == of+pool.GetName() && r.UID == string(pool.GetUID()) })
		selected := len(params.NodePools) == 0 || slices.Contains(params.NodePools, pool.GetName())
		if recorded || selected && call.Operation != hibernate.Wake {
			o, err := observed(pool, len(claims[pool.GetName()]), recorded)
			if err != nil {
				return nil, err
			}
			o.Machines = machinesOf(claims[pool.GetName()])
			out = append(out, o)
		}
	}
	return out, nil
}

// claimsOf are the NodeClaims of each NodePool.
func claimsOf(ctx context.Context, call executors.SleepCall) (map[string][]*unstructured.Unstructured, error) {
	out, n := map[string][]*unstructured.Unstructured{}, 0
	for page, first := "", true; first || page != ""; first = false {
		claims, err := call.Clients.Dynamic.Resource(nodeClaims()).List(ctx, metav1.ListOptions{Limit: pageOf, Continue: page})
		if err != nil {
			return nil, fmt.Errorf("list NodeClaims: %w", err)
		}
		for i := range claims.Items {
			pool := claims.Items[i].GetLabels()[poolLabel]
			out[pool] = append(out[pool], reduced(&claims.Items[i]))
		}
		n += len(claims.Items)
		if err := call.Clients.TooMany(n, "NodeClaims"); err != nil {
			return nil, err
		}
		page = claims.GetContinue()
	}
	return out, nil
}

// reduced is a NodeClaim with what is asked of it: thousands are in memory at once.
func reduced(claim *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetName(claim.GetName())
	out.SetUID(claim.GetUID())
	out.SetDeletionTimestamp(claim.GetDeletionTimestamp())
	if id, there, _ := unstructured.NestedString(claim.Object, "status", "providerID"); there {
		out.Object["status"] = map[string]any{"providerID": id}
	}
	return out
}

// machinesOf are the machines of NodeClaims, where they have one.
func machinesOf(claims []*unstructured.Unstructured) []string {
	var out []string
	for _, claim := range claims {
		if id, _, _ := unstructured.NestedString(claim.Object, "status", "providerID"); id != "" {
			out = append(out, id)
		}
	}
	return out
}

// observed says how a NodePool is. It is asleep once it may create no node and has none.
func observed(pool *unstructured.Unstructured, nodes int, recorded bool) (hibernate.Observation, error) {
	o := hibernate.Observation{
		ID: of + pool.GetName(), UID: string(pool.GetUID()), Version: pool.GetResourceVersion(), Gone: pool.GetDeletionTimestamp() != nil, Kind: "NodePool",
		RevivedBy: api.GitOpsOwner(pool, "limits", "cpu"), Units: map[string]float64{"nodes": float64(nodes)},
	}
	was := before{}
	was.Limits, _, _ = unstructured.NestedMap(pool.Object, "spec", "limits")
	if weight, there, _ := unstructured.NestedInt64(pool.Object, "spec", "weight"); there {
		was.Weight = &weight
	}
	closed := isNone(was.Limits["cpu"])
	if _, fixed, _ := unstructured.NestedFieldNoCopy(pool.Object, "spec", "replicas"); fixed && !recorded {
		o.LeftOut = "it keeps a fixed number of nodes (spec.replicas), which no limit takes away"
	} else if closed && nodes > 0 && !recorded {
		o.LeftOut = "its limits.cpu is 0 already: somebody else manages its nodes"
	}
	o.Asleep, o.Awake, o.Ready = closed && nodes == 0, !closed, !closed
	text, err := json.Marshal(was)
	if err != nil {
		return o, fmt.Errorf("NodePool %s: %w", pool.GetName(), err)
	}
	o.Before = text
	return o, nil
}

// isNone says whether a limit is 0, in any notation.
func isNone(limit any) bool {
	if limit == nil || document.HugeQuantity(map[string]any{"limits": limit}) != "" {
		return false
	}
	q, err := resource.ParseQuantity(fmt.Sprint(limit))
	return err == nil && q.IsZero()
}

// Shutdown forbids NodePools more nodes, and deletes those that exist: Karpenter drains them first.
func (Sleeps) Shutdown(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	claims, err := claimsOf(ctx, call)
	if err != nil {
		return executors.NotBegun(err)
	}
	var out []executors.SleepResult
	for _, d := range due {
		name := strings.TrimPrefix(d.ID, of)
		err := error(nil)
		if d.Seen.Awake {
			err = limit(ctx, call, d, map[string]any{"cpu": "0"})
		} else {
			err = remove(ctx, call, claims[name])
		}
		out = append(out, executors.SleepResult{ID: d.ID, Err: err, Untouched: executors.NothingDone(err)})
	}
	return out
}

// limit writes the limits of a NodePool, under the version that was seen.
func limit(ctx context.Context, call executors.SleepCall, d hibernate.Due, limits any) error {
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": d.UID, "resourceVersion": d.Seen.Version}, "spec": map[string]any{"limits": limits}})
	if err != nil {
		return fmt.Errorf("%s: %w", d.ID, err)
	}
	_, err = call.Clients.Dynamic.Resource(nodePools()).Patch(ctx, strings.TrimPrefix(d.ID, of), types.MergePatchType, text, metav1.PatchOptions{FieldManager: call.Plan.Manager, DryRun: dryRun(call)})
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // the next look decides about those
		return fmt.Errorf("%s: %w", d.ID, err)
	}
	return nil
}

func dryRun(call executors.SleepCall) []string {
	if call.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// remove deletes NodeClaims, except those that are being deleted. A refusal for one does not stop
// the others.
func remove(ctx context.Context, call executors.SleepCall, claims []*unstructured.Unstructured) error {
	var faults []error
	for _, claim := range claims {
		if claim.GetDeletionTimestamp() != nil || ctx.Err() != nil {
			continue
		}
		err := call.Clients.Dynamic.Resource(nodeClaims()).Delete(ctx, claim.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(claim.GetUID())}, DryRun: dryRun(call)})
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			faults = append(faults, fmt.Errorf("delete NodeClaim %s: %w", claim.GetName(), err))
		}
	}
	return errors.Join(faults...)
}

// Wake restores the limits of NodePools. Their nodes come when pods need them.
func (Sleeps) Wake(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	var out []executors.SleepResult
	for _, d := range due {
		if d.Seen.Awake {
			continue
		}
		was, err := recorded(d)
		if err == nil {
			err = limit(ctx, call, d, was.limits(d.Seen.Before))
		}
		out = append(out, executors.SleepResult{ID: d.ID, Err: err})
	}
	return out
}

// recorded is the restore data of a NodePool. If somebody edited the limits away, that does not
// mean that there were none.
func recorded(d hibernate.Due) (before, error) {
	var was before
	var fields map[string]any
	if err := errors.Join(json.Unmarshal(d.Before, &was), json.Unmarshal(d.Before, &fields)); err != nil {
		return was, fmt.Errorf("the restore data of %s: %w", d.ID, err)
	}
	if _, says := fields["limits"]; !says {
		return was, fmt.Errorf("the restore data of %s does not say what its limits were", d.ID)
	}
	return was, nil
}

// limits restores the limit of cpu, the only one that was changed. Where there were none, an empty
// map is taken out with it, but not what somebody added to it while the NodePool slept.
func (b before) limits(seen json.RawMessage) any {
	var now before
	known := json.Unmarshal(seen, &now) == nil
	delete(now.Limits, "cpu")
	if b.Limits == nil && known && len(now.Limits) == 0 {
		return nil
	}
	return map[string]any{"cpu": b.Limits["cpu"]}
}
