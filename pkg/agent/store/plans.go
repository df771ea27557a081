package store

import (
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// Plans hold what was worked out about each plan and would be costly to work
// out again: its parsed text, its readiness, and the status last written.
type Plans struct {
	mu         sync.Mutex
	byKey      map[types.NamespacedName]*PlanMemory
	parsed     *Parsed[*ParsedPlan]
	namespaces map[string]string                        // pause annotation and deletion, as last seen
	others     map[types.NamespacedName]*status.Written // statuses of documents that are no plans
	targets    sharedTargets
}

// CachedPlan is what is known about a plan in one look at it.
type CachedPlan struct {
	*PlanMemory
	*ParsedPlan
	// templates are what the spec's steps of type template stand for, as last seen.
	Templates map[string]plan.TemplateSpec
	// Connectors are those by which its steps reach other clusters, as last seen.
	Connectors map[string]connector.Connector
}

// Cluster is the other cluster that the plan is about, as its connector was last seen; nil:
// its own.
func (k *CachedPlan) Cluster() *client.Cluster {
	return client.ClusterOf(k.Spec.ConnectorRef, k.Connectors)
}

// PlanMemory is what is kept of a plan as long as its text is the same.
type PlanMemory struct {
	uid, account string
	Observed     string // hash of the text
	valid        bool
	Policed      bool // its text names policies
	drains       bool // it has drain steps, or templates that may have some
	runsAs       string
	status.Written
	Readiness ReadinessCheck
	Phase     trigger.Phase
	Gate      policy.KeptGate
	Mirror    *Mirror   // that of its versions before, too: an edit may move it
	LeftAgain time.Time // when what its runs did not put back is looked at again
	Resume    seenResume
}

// seenResume is an intent to resume a run, and when it was first seen.
type seenResume struct {
	text string
	At   time.Time
}

// NoteResume notes what a plan says of resuming. It comes before its runs are looked
// at: what ends in that look was not known to whoever said it.
func (k *CachedPlan) NoteResume(text string, now time.Time) {
	if text != k.Resume.text {
		k.Resume = seenResume{text, now}
	}
}

// NewPlans knows of none.
func NewPlans() *Plans {
	return &Plans{byKey: map[types.NamespacedName]*PlanMemory{}, parsed: newParsedPlans(maxParsed, maxParsedWeight), namespaces: map[string]string{}, others: map[types.NamespacedName]*status.Written{}, targets: newSharedTargets()}
}

// Of is what is known about a plan, read anew when its text or identity changed.
func (p *Plans) Of(cm *corev1.ConfigMap) *CachedPlan {
	k := types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
	p.mu.Lock()
	memory := p.byKey[k]
	parsed, _ := p.parsed.Get(k)
	p.mu.Unlock()
	same := memory != nil && memory.isOf(cm)
	if same && parsed != nil && parsed.Text == cm.Data[annotations.DataPlan] {
		return &CachedPlan{PlanMemory: memory, ParsedPlan: parsed}
	}
	weight := WeightOf(cm.Data[annotations.DataPlan])
	parsed = p.parsed.Read(weight, func() *ParsedPlan { return parsePlan(cm) })
	if observed := annotations.Hash10(parsed.Text); !same || memory.Observed != observed {
		mirror := &Mirror{}
		if memory != nil && memory.uid == string(cm.UID) {
			mirror = memory.Mirror
		}
		memory = &PlanMemory{
			Mirror: mirror, uid: string(cm.UID), account: cm.Labels[annotations.LabelServiceAccount], Observed: observed,
			valid: len(parsed.Faults) == 0, Policed: len(parsed.Spec.Policies) > 0,
			drains: mayDrain(parsed.Spec), runsAs: plan.Account(parsed.Spec),
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byKey[k] = memory
	p.targets.put(k, targetOf(k.Namespace, parsed.Spec))
	p.parsed.Keep(k, weight, parsed)
	return &CachedPlan{PlanMemory: memory, ParsedPlan: parsed}
}

// targetOf names a plan's target among those of all plans; empty: it has none.
func targetOf(namespace string, s plan.Spec) string {
	if s.Target == nil {
		return ""
	}
	group, _, _ := strings.Cut(s.Target.APIVersion, "/")
	return namespace + "/" + group + "/" + s.TargetSaid()
}

// isOf says whether the memory is of this very plan, apart from its text.
func (m *PlanMemory) isOf(cm *corev1.ConfigMap) bool {
	return m.uid == string(cm.UID) && m.account == cm.Labels[annotations.LabelServiceAccount] && len(cm.Data) == 1
}

// Memory is what is kept of a plan; nil where it was not looked at yet.
func (p *Plans) Memory(k types.NamespacedName) *PlanMemory {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byKey[k]
}

// WrittenOf is the status last written on a document that is no plan.
func (p *Plans) WrittenOf(k types.NamespacedName) *status.Written {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.others[k] == nil {
		p.others[k] = &status.Written{}
	}
	return p.others[k]
}

// Draining are the plans that may drain nodes, and whom their steps act as.
func (p *Plans) Draining() map[types.NamespacedName]client.Account {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[types.NamespacedName]client.Account{}
	for k, memory := range p.byKey {
		if memory.drains {
			out[k] = client.Account{Namespace: k.Namespace, Name: memory.runsAs}
		}
	}
	return out
}

func mayDrain(spec plan.Spec) bool {
	drains := false
	plan.Tree{Spec: spec}.Walk(func(s plan.Step) {
		drains = drains || s.Type == plan.TypeDrain || strings.HasPrefix(s.Type, plan.TemplatePrefix)
	})
	return drains
}

// Has says whether a plan was looked at.
func (p *Plans) Has(k types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byKey[k] != nil
}

// ForgetWritten forgets what was last written on a document that is no plan.
func (p *Plans) ForgetWritten(k types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.others, k)
}

// Drop forgets a plan that is gone.
func (p *Plans) Drop(k types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byKey, k)
	p.targets.put(k, "")
	p.parsed.Remove(k)
}

// NamespaceChanged says whether a namespace's pause or deletion is news.
func (p *Plans) NamespaceChanged(name, pause string, deleted bool) bool {
	state := pause
	if deleted {
		state += " deleted"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	was, seen := p.namespaces[name]
	p.namespaces[name] = state
	return was != state || !seen && state != ""
}

// Size is how many plans are known.
func (p *Plans) Size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byKey)
}

// Count is how many plans are known, valid and not.
func (p *Plans) Count() (valid, broken int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.byKey {
		if k.valid {
			valid++
		} else {
			broken++
		}
	}
	return valid, broken
}

// ReadinessCheck is what a look at a plan's readiness found, and of what it was a look.
type ReadinessCheck struct {
	Done     bool
	Ready    trigger.Readiness
	Version  uint64 // of the plan
	Newest   string // the run that the plan would have begun with
	Failures int    // in a row that found it not ready
}

// Mirror is what stands in the way of telling the users of a plan's target.
type Mirror struct {
	Digest  string    // of what was written last
	Problem string    // why it could not be written
	Again   time.Time // when to try again
	Seen    bool      // on the target, when that was looked at last; a plan of the same name may have left it
	// On, Prefix and Account are where it stands and who writes it.
	On      *plan.ObjectRef
	Prefix  string
	Account string
	Cluster *client.Cluster // where it stands; nil: on the plan's own
}
