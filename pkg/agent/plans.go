package agent

import (
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// plans hold what was worked out about each plan and would be costly to work
// out again: its parsed text, its readiness, and the status last written.
type plans struct {
	mu         sync.Mutex
	byKey      map[types.NamespacedName]*planMemory
	parsed     *parsedPlans
	namespaces map[string]string                 // pause annotation and deletion, as last seen
	others     map[types.NamespacedName]*written // statuses of documents that are no plans
}

// knownPlan is what is known about a plan in one look at it.
type knownPlan struct {
	*planMemory
	*parsedPlan
	// templates are what the spec's steps of type template stand for, as last seen.
	templates map[string]plan.TemplateSpec
}

// planMemory is what is kept of a plan as long as its text is the same.
type planMemory struct {
	uid, account string
	observed     string // hash of the text
	valid        bool
	policed      bool // its text names policies
	drains       bool // it has drain steps, or templates that may have some
	runsAs       string
	written
	looked    looked
	phase     trigger.Phase
	gate      planGate
	mirrored  mirrored
	leftAgain time.Time // when what its runs did not put back is looked at again
	resume    seenResume
}

// seenResume is an intent to resume a run, and when it was first seen.
type seenResume struct {
	text string
	at   time.Time
}

// noteResume notes what a plan says of resuming. It comes before its runs are looked
// at: what ends in that look was not known to whoever said it.
func (k *knownPlan) noteResume(text string, now time.Time) {
	if text != k.resume.text {
		k.resume = seenResume{text, now}
	}
}

// written is a status as we last wrote it, until the watch shows it.
type written struct {
	status  map[string]string
	version uint64 // of the object that the write gave
}

func newPlans() *plans {
	return &plans{byKey: map[types.NamespacedName]*planMemory{}, parsed: newParsedPlans(mostParsed), namespaces: map[string]string{}, others: map[types.NamespacedName]*written{}}
}

// of is what is known about a plan, read anew when its text or identity changed.
func (p *plans) of(cm *corev1.ConfigMap) *knownPlan {
	k := types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
	p.mu.Lock()
	memory := p.byKey[k]
	parsed, _ := p.parsed.Get(k)
	p.mu.Unlock()
	same := memory != nil && memory.of(cm)
	if same && parsed != nil && parsed.text == cm.Data[annotations.DataPlan] {
		return &knownPlan{planMemory: memory, parsedPlan: parsed}
	}
	parsed = parsePlan(cm)
	if observed := annotations.Hash10(parsed.text); !same || memory.observed != observed {
		memory = &planMemory{
			uid: string(cm.UID), account: cm.Labels[annotations.LabelServiceAccount], observed: observed,
			valid: len(parsed.faults) == 0, policed: len(parsed.spec.Policies) > 0,
			drains: mayDrain(parsed.spec), runsAs: plan.Account(parsed.spec),
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byKey[k] = memory
	p.parsed.Add(k, parsed)
	return &knownPlan{planMemory: memory, parsedPlan: parsed}
}

// of says whether the memory is of this very plan, apart from its text.
func (m *planMemory) of(cm *corev1.ConfigMap) bool {
	return m.uid == string(cm.UID) && m.account == cm.Labels[annotations.LabelServiceAccount] && len(cm.Data) == 1
}

// memory is what is kept of a plan; nil where it was not looked at yet.
func (p *plans) memory(k types.NamespacedName) *planMemory {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byKey[k]
}

// writtenOf is the status last written on a document that is no plan.
func (p *plans) writtenOf(k types.NamespacedName) *written {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.others[k] == nil {
		p.others[k] = &written{}
	}
	return p.others[k]
}

// draining are the plans that may drain nodes, and whom their steps act as.
func (p *plans) draining() map[types.NamespacedName]client.Account {
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

func (p *plans) has(k types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byKey[k] != nil
}

func (p *plans) forgetWritten(k types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.others, k)
}

func (p *plans) drop(k types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byKey, k)
	p.parsed.Remove(k)
}

// namespaceChanged says whether a namespace's pause or deletion is news.
func (p *plans) namespaceChanged(name, pause string, deleted bool) bool {
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

func (p *plans) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byKey)
}

// count is how many plans are known, valid and not.
func (p *plans) count() (valid, broken int) {
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
