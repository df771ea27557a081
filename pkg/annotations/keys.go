// Package annotations is the only place where a key of ours is spelled: labels,
// annotations, data keys and the names of the agent's ConfigMaps, and how the
// nouns of the core are read from and written into them.
package annotations

import (
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// The prefixes of our keys: people write the first, the agent the second.
const (
	IntentPrefix = "maint.dev/"
	StatusPrefix = "status.maint.dev/"
	ActorPrefix  = "actor.maint.dev/"
	ReasonPrefix = "reason.maint.dev/"
)

// Labels.
const (
	LabelKind           = "maint.dev/kind"
	LabelPlan           = "maint.dev/plan"
	LabelServiceAccount = "maint.dev/service-account"
	LabelPhase          = "maint.dev/phase"
	// LabelAsleep is in the node selector of a DaemonSet that sleeps. No node has it.
	LabelAsleep = "maint.dev/asleep"
)

// The values of LabelKind.
const (
	KindPlan          = "plan"
	KindHibernatePlan = "hibernate-plan"
	KindPolicy        = "policy"
	KindCalendar      = "calendar"
	KindStepTemplate  = "step-template"
	KindConnector     = "connector"
	KindPrices        = "prices"
	KindAgentConfig   = "agent-config"
	KindRun           = "run"
	KindLedger        = "ledger"
	KindRestore       = "restore"
	KindHeartbeat     = "heartbeat"
	KindGate          = "gate"
)

// Data keys of documents and of the agent's ConfigMaps.
const (
	DataPlan     = "plan.yaml"
	DataPolicy   = "policy.yaml"
	DataICS      = "calendar.ics"
	DataDates    = "calendar.yaml"
	DataConfig   = "config.yaml"
	DataTemplate = "step.yaml"
	DataRun      = "run.yaml"
	DataJournal  = "journal.json"
	DataSteps    = "steps.json.gz" // binaryData: of a long journal, the records that have ended
	DataLedger   = "ledger.json"
	DataGate     = "gate.json"
	DataSeen     = "seen.json"
	DataNodes    = "nodes.json"
	DataPrices   = "prices.yaml"
)

// Intent annotations. Actor and reason of each stand beside it, see Actor.
const (
	Pause          = "maint.dev/pause"
	Skip           = "maint.dev/skip"
	Trigger        = "maint.dev/trigger"
	TriggerOptions = "maint.dev/trigger-options"
	Approve        = "maint.dev/approve"
	Reject         = "maint.dev/reject"
	Resume         = "maint.dev/resume"
	Abort          = "maint.dev/abort"
	Retry          = "maint.dev/retry"
	Bypass         = "maint.dev/bypass"
)

// The stanza: when change of an object is permitted.
const (
	ChangeStrategy   = "maint.dev/change-strategy"
	ChangePolicy     = "maint.dev/change-policy"
	PermissiveUntil  = "maint.dev/permissive-until"
	RestrictiveUntil = "maint.dev/restrictive-until"
)

// PermittedContexts says on a step template in which plans it may be used: a
// list with commas of maintenance and interactive.
const PermittedContexts = "maint.dev/permitted-contexts"

// LabelSystem says which system an object belongs to, for metrics.
const LabelSystem = "maint.dev/system"

// Status annotations.
const (
	StatusPhase       = "status.maint.dev/phase"
	StatusMessage     = "status.maint.dev/message"
	StatusLastRun     = "status.maint.dev/last-run"
	StatusLastRunName = "status.maint.dev/last-run-name"
	StatusLastResult  = "status.maint.dev/last-result"
	StatusLastSuccess = "status.maint.dev/last-success"
	StatusDryRun      = "status.maint.dev/dry-run" // of a run: true
	StatusRuns        = "status.maint.dev/runs"    // live runs, each with its phase
	StatusNextRun     = "status.maint.dev/next-run"
	StatusObserved    = "status.maint.dev/observed"
	StatusTrigger     = "status.maint.dev/trigger"
	StatusConditions  = "status.maint.dev/conditions"
	StatusProgress    = "status.maint.dev/progress"
	StatusMirrored    = "status.maint.dev/mirrored" // digest of what was written on the target
	StatusBehavior    = "status.maint.dev/behavior"
	StatusPermitted   = "status.maint.dev/permitted"
	StatusGate        = "status.maint.dev/gate"
	StatusWatching    = "status.maint.dev/watching"   // number of watched objects
	StatusToldAhead   = "status.maint.dev/told-ahead" // the instant of which sinks were told ahead
	StatusHandled     = "status.maint.dev/handled-"
)

// What the objects of a step carry, beside LabelPlan. They belong to the plan's
// account and not to the agent, so none of these is a status key.
const (
	LabelStep   = "maint.dev/step"         // name of the step
	JobOf       = "maint.dev/job-of"       // annotation of a Job: run/path#attempt, whole
	BackupOf    = "maint.dev/backup-of"    // annotation of a snapshot or Backup: run/path#attempt/claim, whole
	BackupStep  = "maint.dev/backup-step"  // annotation beside it: namespace/plan/path, whole
	RestartedBy = "maint.dev/restarted-by" // annotation of a pod template: run/path#attempt
)

// NamespaceDeleting is the type of the condition of plans whose namespace is being deleted: nothing
// begins in it.
const NamespaceDeleting = "NamespaceDeleting"

// Finalizer keeps a live run until its entry in the ledger is closed.
const Finalizer = "maint.dev/run"

// RunExtra is the user extra that marks requests made for a run.
const RunExtra = "maint.dev/run"

// WakingExtra is its value on requests that wake what a HibernatePlan put to sleep. No run has this name.
const WakingExtra = "waking"

// Field managers. What a plan applies has one of its own, see PlanManager.
const (
	ManagerCLI   = "maint-cli"
	ManagerAgent = "maint-agent"
	// PlanManagerPrefix begins the managers of all plans.
	PlanManagerPrefix = "maint-plan-"
)

// AgentConfigName is the name of the agent's configuration in its namespace.
const AgentConfigName = "maint-agent"

// HeartbeatName is the name of the ConfigMap that says which agent runs.
const HeartbeatName = "maint-agent-status"

// LeaseName is the name of the Lease that the agents elect a leader by.
const LeaseName = "maint-agent"

// DefaultNamespace is where install puts the agent.
const DefaultNamespace = "maint-system"

// AgentPods picks the pods of the agent in its namespace, as install labels them.
const AgentPods = "app.kubernetes.io/name=maint-agent"

// Actor is the key that says who stands behind an intent.
func Actor(intent string) string { return ActorPrefix + strings.TrimPrefix(intent, IntentPrefix) }

// Reason is the key that says why an intent was given.
func Reason(intent string) string { return ReasonPrefix + strings.TrimPrefix(intent, IntentPrefix) }

// Handled is the key on a target that holds the number of the last handled request by a label. It
// has a hash of the label's key, which may be longer than fits; the plan's ledger has the whole
// key.
func Handled(label string) string { return StatusHandled + Hash10(label) }

// Mirror is the key on a target under which a plan tells the target's users of
// itself: <prefix>/<plan>-status and the like. A hash stands in for a plan's name
// that would make it too long.
func Mirror(prefix, planName, suffix string) string {
	if len(planName)+1+len(suffix) > 63 {
		planName = Hash10(planName)
	}
	return prefix + "/" + planName + "-" + suffix
}

// What a plan tells the users of its target, by the end of the key.
const (
	MirrorStatus  = "status"
	MirrorLastRun = "last-run"
	MirrorNextRun = "next-run"
	MirrorStep    = "step"
)

// MirrorSuffixes are all of these.
func MirrorSuffixes() []string {
	return []string{MirrorStatus, MirrorLastRun, MirrorNextRun, MirrorStep}
}

// MaybeMirror says whether a key on a target may be one under which some plan tells of itself.
func MaybeMirror(key string) bool {
	return slices.ContainsFunc(MirrorSuffixes(), func(suffix string) bool { return strings.HasSuffix(key, "-"+suffix) })
}

// MirroredOn says whether a plan of the name tells of itself on a target.
func MirroredOn(target map[string]string, prefix, planName string) bool {
	return slices.ContainsFunc(MirrorSuffixes(), func(suffix string) bool {
		_, there := target[Mirror(prefix, planName, suffix)]
		return there
	})
}

// MirrorSkip ends the key by which a target's users skip a plan there.
const MirrorSkip = "-skip"

// SkippedOn says whether a target's users skip a plan: any value but false does.
func SkippedOn(target map[string]string, prefix, planName string) bool {
	return !off(target[Mirror(prefix, planName, strings.TrimPrefix(MirrorSkip, "-"))])
}

// Hash10 is the ten letters that stand in for longer identities in names.
func Hash10(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:10])
}

// RunName is the name of the run that answers a request to a plan: derived, so
// that the same request twice is the same run.
func RunName(planName, planUID string, r run.Request) string {
	return agentName(KindRun, planName, Hash10(r.Identity(planUID)))
}

// RetryName is the name of the run that answers the retry of a run: trigger.Decide
// claims a retry under this token.
func RetryName(planName, planUID, r string) string {
	return RunName(planName, planUID, run.Request{Kind: run.ByToken, Token: "retry/" + r})
}

// LedgerName is the name of a plan's ledger head.
func LedgerName(planName, planUID string) string {
	return agentName(KindLedger, planName, Hash10(planUID))
}

// ArchiveName is the name of the shard that holds a ledger's older entries.
func ArchiveName(planName, planUID string) string {
	return agentName(KindLedger, planName, Hash10(planUID, "archive"))
}

// ShardName is the name of a shard of what a plan's watch rules have seen.
func ShardName(planName, planUID string, shard int) string {
	return agentName(KindLedger, planName, Hash10(planUID, "seen", strconv.Itoa(shard)))
}

// NodeTurnsName is the name of the part of a ledger that knows which nodes a plan's
// rollouts have been through.
func NodeTurnsName(planName, planUID string) string {
	return agentName(KindLedger, planName, Hash10(planUID, "nodes"))
}

// GateName is the name of the record of a policy's gates. A policy that is made
// anew under the name goes on with it.
func GateName(policy string) string { return agentName(KindGate, policy, Hash10(policy)) }

// agentName is maint-<kind>-<plan>-<hash>. A ConfigMap's name may have 253
// letters, so that a plan's 63 always fit.
func agentName(kind, planName, hash string) string {
	return "maint-" + kind + "-" + planName + "-" + hash
}

// PlanManager is the one field manager of everything that a plan applies.
func PlanManager(namespace, name string) string {
	return PlanManagerPrefix + Hash10(namespace+"/"+name)
}

// IsProjectKey says whether a key is one of this project's.
func IsProjectKey(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	root := strings.TrimSuffix(IntentPrefix, "/")
	return found && (domain == root || strings.HasSuffix(domain, "."+root))
}
