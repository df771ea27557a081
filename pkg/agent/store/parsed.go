package store

import (
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// ParsedPlan is a plan's text as it was understood.
type ParsedPlan struct {
	Text   string
	Spec   plan.Spec // with defaults
	Faults document.Faults
}

func parsePlan(cm *corev1.ConfigMap) *ParsedPlan {
	spec, faults := annotations.Plan(cm)
	return &ParsedPlan{Text: cm.Data[annotations.DataPlan], Spec: spec.Defaulted(), Faults: faults}
}

// What is kept of plans as they were understood (guesses). A plan takes several times the
// memory of its text so, and a tenth of a millisecond to be understood again; most are
// looked at once a day. One that is as heavy as a hundred others is not kept, and is
// understood while no other such one is.
const (
	maxParsed       = 2000
	maxParsedWeight = 24 << 20
	maxParsedOne    = 512 << 10
	perMark         = 100 // bytes that a value takes, its line and its path among them
)

// WeightOf is about how much memory a document takes as it was understood.
func WeightOf(text string) int { return len(text) + perMark*document.Weight(text) }

// isHeavy says whether a document is as heavy as a hundred others.
func isHeavy(weight int) bool { return weight > maxParsedOne }

// Parsed keeps what documents were understood as, of those that were looked at last. What it
// forgets is understood again from the text. It is not safe for concurrent use, but for Read.
type Parsed[V any] struct {
	cache        *lru.Cache[types.NamespacedName, weighed[V]]
	weight, most int
	keepsHeavy   bool
	heavy        sync.Mutex // held while a heavy document is read
}

type weighed[V any] struct {
	value  V
	weight int
}

// NewParsed keeps no more than so many, which weigh no more than so much.
func NewParsed[V any](limit, most int) *Parsed[V] {
	p := &Parsed[V]{most: most}
	p.cache, _ = lru.NewWithEvict(limit, func(_ types.NamespacedName, gone weighed[V]) { p.weight -= gone.weight }) // its error is for limits below one
	return p
}

// KeepHeavy has heavy ones kept, too: each pushes out what it weighs, and one that is heavier
// than all that is kept stays until another is looked at.
func (p *Parsed[V]) KeepHeavy() *Parsed[V] {
	p.keepsHeavy = true
	return p
}

func newParsedPlans(limit, most int) *Parsed[*ParsedPlan] { return NewParsed[*ParsedPlan](limit, most) }

// Read understands a document of a weight, of the heavy ones one at a time.
func (p *Parsed[V]) Read(weight int, read func() V) V {
	if isHeavy(weight) {
		p.heavy.Lock()
		defer p.heavy.Unlock()
	}
	return read()
}

// Get is what is kept of a document.
func (p *Parsed[V]) Get(k types.NamespacedName) (value V, kept bool) {
	one, kept := p.cache.Get(k)
	return one.value, kept
}

// Keep keeps a document in place of what it was before, and lets others go for it. A heavy
// one is not kept without KeepHeavy.
func (p *Parsed[V]) Keep(k types.NamespacedName, weight int, value V) {
	p.cache.Remove(k)
	if isHeavy(weight) && !p.keepsHeavy {
		return
	}
	p.weight += weight
	p.cache.Add(k, weighed[V]{value, weight})
	for p.weight > p.most && (!p.keepsHeavy || p.cache.Len() > 1) {
		p.cache.RemoveOldest()
	}
}

// Contains says whether a document is kept.
func (p *Parsed[V]) Contains(k types.NamespacedName) bool { return p.cache.Contains(k) }

// Remove forgets a document.
func (p *Parsed[V]) Remove(k types.NamespacedName) { p.cache.Remove(k) }

// Len is how many are kept.
func (p *Parsed[V]) Len() int { return p.cache.Len() }
