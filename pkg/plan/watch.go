package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

// Limits of watch triggers. What is beyond them is said, never dropped silently.
const (
	MaxWatchRules   = 20
	MaxWatchFields  = 20
	MaxWatched      = 20_000    // objects that one plan watches
	MaxWatchedBytes = 16 << 20  // of the objects that one plan keeps for `when`, as JSON (a guess: a sixteenth of what the agent may take in its manifest)
	MaxWatchedBody  = 64 << 10  // of an object that a run is handed as `watched`
	MaxWatchedClaim = 16 << 10  // of an object that is gone, in the claim on its run
	MaxShard        = 200 << 10 // bytes of one shard, about
	MaxSeen         = 50        // entries beside the head, before they go to the shards
)

// The events of a watch.
const (
	EventCreate = "create"
	EventUpdate = "update"
	EventDelete = "delete"
)

// AllNamespaces asks a watch for the objects of every namespace.
const AllNamespaces = "*"

// RuleID is the identity of a rule: all that it says, and which keys it takes
// for ours. A rule that was edited is another rule.
func RuleID(w Watch, mirrorPrefix string) string {
	b, err := json.Marshal(w)
	if err != nil {
		panic(fmt.Sprintf("plan.RuleID: %v", err)) // strings alone always survive
	}
	if prefix := cmp.Or(mirrorPrefix, DefaultMirrorPrefix); prefix != DefaultMirrorPrefix {
		b = append(b, prefix...)
	}
	sum := sha256.Sum256(b)
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:10])
}

// Asks says whether a rule is for an event. One that names none wants
// them all.
func (w Watch) Asks(event string) bool {
	return len(w.Events) == 0 || slices.Contains(w.Events, event)
}

// Holds says whether a rule's condition holds for a change; without one it does.
// Bodies of Secrets do not find their way into the error.
func (w Watch) Holds(object, old map[string]any) (bool, error) {
	if w.When == "" {
		return true, nil
	}
	holds, err := expr.Bool(w.When, map[string]any{"object": expr.OrNull(object), "oldObject": expr.OrNull(old)})
	if err != nil && w.secret() {
		return false, fmt.Errorf("%s: cannot be evaluated", w.When)
	}
	return holds, err
}

// Keeps says whether an object has to be kept to judge its next change: as the old
// one, or as the one that is gone.
func (w Watch) Keeps() bool {
	return w.When != "" && (w.Asks(EventDelete) || strings.Contains(w.When, "oldObject"))
}

func (w Watch) secret() bool { return w.APIVersion == "v1" && strings.EqualFold(w.Kind, "Secret") }

// String is a rule as people say it: App in namespace shop.
func (w Watch) String() string {
	switch w.Namespace {
	case "":
		return w.Kind
	case AllNamespaces:
		return w.Kind + " in all namespaces"
	}
	return w.Kind + " in namespace " + w.Namespace
}

// watches checks the watch triggers of a plan.
func (v *validator) watches(rules []Watch, mirrorPrefix string) {
	const path = "spec.triggers.watch"
	if len(rules) > MaxWatchRules {
		v.Fault(path, "has %d rules; at most %d are watched", len(rules), MaxWatchRules)
	}
	seen := map[string]int{}
	for i, w := range rules {
		at := fmt.Sprintf("%s[%d]", path, i)
		v.watch(at, w)
		id := RuleID(w, mirrorPrefix)
		if first, twice := seen[id]; twice {
			v.Fault(at, "is the same as watch[%d]", first)
			continue
		}
		seen[id] = i
	}
}

func (v *validator) watch(path string, w Watch) {
	report := func(at, format string, args ...any) { v.Fault(path+"."+at, format, args...) }
	if !v.snapshot && !document.GroupVersion(w.APIVersion) {
		report("apiVersion", "must be <group>/<version>, or v1; is %q", document.Cut(w.APIVersion, 100))
	} else {
		v.spelling(path, map[string]any{"apiVersion": w.APIVersion, "kind": w.Kind})
	}
	if w.Kind == "" {
		report("kind", "is missing")
	}
	if w.Namespace != "" && w.Namespace != AllNamespaces && !document.DNSLabel(w.Namespace) {
		report("namespace", "%q cannot name a namespace; %q asks for all", document.Cut(w.Namespace, 100), AllNamespaces)
	}
	if w.Selector != nil {
		w.Selector.Check("selector", report)
	}
	for i, event := range w.Events {
		document.OneOf(v.Checker, fmt.Sprintf("%s.events[%d]", path, i), cmp.Or(event, "nothing"), EventCreate, EventUpdate, EventDelete)
	}
	v.watchFields(path+".fields", w.Fields)
	if w.When != "" {
		if err := expr.CheckBool(w.When, "object", "oldObject"); err != nil {
			report("when", "%s", err)
		}
	}
}

func (v *validator) watchFields(path string, fields []string) {
	if len(fields) > MaxWatchFields {
		v.Fault(path, "names %d fields; at most %d are compared", len(fields), MaxWatchFields)
	}
	for i, field := range fields {
		at := fmt.Sprintf("%s[%d]", path, i)
		steps, err := expr.ParsePath(field)
		switch {
		case err != nil:
			v.Fault(at, "%q is no path: %s; write it like spec.size, spec.list[0].name or metadata.labels['example.org/x']", document.Cut(field, 200), err)
		case noise(steps):
			v.Fault(at, "%q changes with every write, also with those of the plan's own runs; name what it stands for", document.Cut(field, 200))
		}
	}
}

// noise knows the fields that say of a write only that it was.
func noise(steps []expr.PathStep) bool {
	return len(steps) > 1 && steps[0].Name == "metadata" && slices.Contains([]string{"managedFields", "resourceVersion"}, steps[1].Name)
}
