package agent

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// plans hold what was worked out about each plan and would be costly to work
// out again: its parsed text, its readiness, and the status last written.
type plans struct {
	mu         sync.Mutex
	byKey      map[key]*knownPlan
	namespaces map[string]string // pause annotation and deletion, as last seen
	others     map[key]*written  // statuses of documents that are no plans
}

type knownPlan struct {
	uid, text, account string
	spec               plan.Spec // with defaults
	faults             plan.Faults
	observed           string // hash of the text
	written
	checked bool // readiness was looked at
	ready   plan.Readiness
	phase   plan.Phase
	// templates are what the spec's steps of type template stand for, as last seen.
	templates map[string]plan.TemplateSpec
	gate      planGate
	mirrored  mirrored
}

// written is a status as we last wrote it, until the watch shows it.
type written struct {
	status  map[string]string
	version uint64 // of the object that the write gave
}

func newPlans() *plans {
	return &plans{byKey: map[key]*knownPlan{}, namespaces: map[string]string{}, others: map[key]*written{}}
}

// of is what is known about a plan, read anew when its text or identity changed.
func (p *plans) of(cm *corev1.ConfigMap) *knownPlan {
	k := key{cm.Namespace, cm.Name}
	text := cm.Data[annotations.DataPlan]
	account := cm.Labels[annotations.LabelServiceAccount]
	p.mu.Lock()
	have := p.byKey[k]
	p.mu.Unlock()
	if have != nil && have.uid == string(cm.UID) && have.text == text && have.account == account && len(cm.Data) == 1 {
		return have
	}
	spec, faults := annotations.Plan(cm)
	known := &knownPlan{uid: string(cm.UID), text: text, account: account, spec: spec.Defaulted(), faults: faults, observed: annotations.Hash10(text)}
	p.mu.Lock()
	p.byKey[k] = known
	p.mu.Unlock()
	return known
}

// writtenOf is the status last written on a document that is no plan.
func (p *plans) writtenOf(k key) *written {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.others[k] == nil {
		p.others[k] = &written{}
	}
	return p.others[k]
}

// all are the plans that are known.
func (p *plans) all() map[key]*knownPlan {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.byKey)
}

func (p *plans) has(k key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byKey[k] != nil
}

func (p *plans) forgetWritten(k key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.others, k)
}

func (p *plans) drop(k key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byKey, k)
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

// count is how many plans are known, valid and not.
func (p *plans) count() (valid, broken int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.byKey {
		if len(k.faults) == 0 {
			valid++
		} else {
			broken++
		}
	}
	return valid, broken
}
