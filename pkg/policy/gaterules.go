package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
)

// MaxGates is how many gates a policy may name: each may be a watch of its own
// on the API server (a guess).
const MaxGates = 50

// GateKnob is the knob of a rule, which may have been read from a record that
// somebody edited.
func (g GateRule) GateKnob() (knob.Knob, error) {
	k, faults := knob.Parse(g.Knob, g.APIVersion, g.Kind)
	if len(faults) > 0 {
		return k, fmt.Errorf("knob of %s: %s", g, strings.TrimSpace(faults[0].Field+" "+faults[0].Message))
	}
	return k, nil
}

// Matches says whether a rule means an object, by its name and labels.
func (g GateRule) Matches(name string, labels map[string]string) bool {
	return (g.Name == "" || g.Name == name) && g.Selector.Matches(labels)
}

// Means says whether a policy of a namespace gates an object by one of its rules.
func (s PolicySpec) Means(policyNamespace, group, kind, namespace, name string, labels map[string]string) bool {
	return slices.ContainsFunc(s.Gates, func(g GateRule) bool {
		of, _, grouped := strings.Cut(g.APIVersion, "/")
		if !grouped {
			of = ""
		}
		return of == group && g.Kind == kind && (namespace == "" || g.GateScope(policyNamespace) == namespace) && g.Matches(name, labels)
	})
}

func (v *policyChecker) gates(rules []GateRule) {
	if len(rules) > MaxGates {
		v.Fault("spec.gates", "a policy may name %d gates, this one has %d; a selector means many objects", MaxGates, len(rules))
		return
	}
	for i, g := range rules {
		v.gate(document.Index("spec.gates", i), g)
	}
}

func (v *policyChecker) gate(path string, g GateRule) {
	for _, f := range []struct{ field, value, example string }{
		{"apiVersion", g.APIVersion, "kustomize.toolkit.fluxcd.io/v1"}, {"kind", g.Kind, "Kustomization"},
	} {
		if f.value == "" {
			v.Fault(path+"."+f.field, "is missing; write it like %s", f.example)
		}
	}
	if g.isEvent() {
		v.Fault(path+".kind", "an Event has no controller that could be paused: name what the controller works on")
	}
	if g.isSecret() {
		v.Fault(path+".kind", "a Secret cannot be gated: an annotation or a label of it may have other controllers copy it, and what a gate finds is written into an annotation; name what the controller works on")
	}
	if field, why := document.Misspelt(g.APIVersion, g.Kind); g.APIVersion != "" && field != "" && !g.isSecret() {
		v.Fault(path+"."+field, "%s", why)
	}
	switch {
	case g.Namespace == "*":
		v.Fault(path+".namespace", "must be one namespace; write a gate for each")
	case g.Namespace != "" && !document.DNSLabel(g.Namespace):
		v.Fault(path+".namespace", "%q cannot name a namespace", document.Cut(g.Namespace, 100))
	}
	if fault := document.NotNaming(g.Name, "an object"); g.Name != "" && fault != "" {
		v.Fault(path+".name", "%s", fault)
	}
	if g.Name != "" && g.Selector != nil {
		v.Fault(path+".selector", "stands beside name; write one of them, or neither for all of the kind")
	}
	if g.Selector != nil {
		g.Selector.Check(path+".selector", v.Fault)
	}
	v.knob(path+".knob", g)
}

// isEvent says whether a rule means Events. The agent sends one for each object that it closes, so
// that it would close its own without end.
func (g GateRule) isEvent() bool {
	group, _, _ := strings.Cut(g.APIVersion, "/")
	return g.Kind == "Event" && (group == "v1" || group == "events.k8s.io")
}

// isSecret says whether a rule means Secrets, in whatever spelling. No list of the keys by which
// controllers copy a Secret, or keep what it holds, is ever complete.
func (g GateRule) isSecret() bool { return g.APIVersion == "v1" && strings.EqualFold(g.Kind, "Secret") }

func (v *policyChecker) knob(path string, g GateRule) {
	if name, isText := g.Knob.(string); isText && !slices.Contains(knob.Names(), name) {
		if near, ok := document.Nearest(name, knob.Names()); ok {
			v.Fault(path, "unknown knob %q; did you mean %q?", document.Cut(name, 80), near)
			return
		}
	}
	_, faults := knob.Parse(g.Knob, g.APIVersion, g.Kind)
	for _, f := range faults {
		v.Fault(strings.TrimSuffix(path+"."+f.Field, "."), "%s", f.Message)
	}
}

// GateRecord is what the agent writes down of a policy's gates before it closes
// the first: where to look for what it closed when the policy is gone.
type GateRecord struct {
	Policy  string      `json:"policy"`
	Entries []GateEntry `json:"gates"`
}

// GateEntry is a rule with the account that it works with. One that is leaving
// was taken out of the policy, and some object may still be held by it.
type GateEntry struct {
	GateRule
	Account string `json:"serviceAccountName"`
	Leaving bool   `json:"leaving,omitempty"`
}

// Next is the record that follows when a policy names these rules: what it no
// longer names is leaving.
func (r GateRecord) Next(now []GateEntry) GateRecord {
	next := GateRecord{Policy: r.Policy, Entries: slices.Clone(now)}
	for _, e := range r.Entries {
		if !slices.ContainsFunc(now, func(n GateEntry) bool { return n.same(e) }) {
			e.Leaving = true
			next.Entries = append(next.Entries, e)
		}
	}
	return next
}

// Same says whether two records say the same.
func (r GateRecord) Same(o GateRecord) bool {
	return slices.EqualFunc(r.Entries, o.Entries, func(a, b GateEntry) bool { return a.Leaving == b.Leaving && a.same(b) })
}

// InForce are the rules that the policy names.
func (r GateRecord) InForce() []GateEntry {
	return slices.DeleteFunc(slices.Clone(r.Entries), func(e GateEntry) bool { return e.Leaving })
}

// same compares what entries say, but for whether they are leaving.
func (e GateEntry) same(o GateEntry) bool {
	e.Leaving, o.Leaving = false, false
	a, errA := json.Marshal(e)
	b, errB := json.Marshal(o)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// GateEntries are the gates of a policy with the account that works them.
func (s PolicySpec) GateEntries() []GateEntry {
	out := make([]GateEntry, len(s.Gates))
	for i, g := range s.Gates {
		out[i] = GateEntry{GateRule: g, Account: cmp.Or(s.ServiceAccountName, DefaultServiceAccount)}
	}
	return out
}

// GateScope is where a rule looks for objects: the policy's namespace unless it
// names another.
func (g GateRule) GateScope(policyNamespace string) string {
	return cmp.Or(g.Namespace, policyNamespace)
}

// String is a rule as people say it: Kustomization/apps, or what it selects.
func (g GateRule) String() string {
	switch {
	case g.Name != "":
		return g.Kind + "/" + g.Name
	case g.Selector != nil:
		return fmt.Sprintf("%s of a selector", g.Kind)
	}
	return "every " + g.Kind
}
