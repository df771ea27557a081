package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Known is how soon after its commit an intent is known to whoever acts.
const Known = 10 * time.Second

func unmarshalYAML(text string, into any) error { return yaml.Unmarshal([]byte(text), into) }

// version is a plan as one write left it.
type version struct {
	at     time.Time // no earlier than it was sent, no later than this
	sent   time.Time
	uid    string
	text   string
	paused bool
	gone   bool
}

// plans are the versions of all plans, by namespace/name, in order.
func plans(writes []write) map[string][]version {
	out := map[string][]version{}
	for _, w := range writes {
		m := w.object.Metadata
		switch {
		case w.Object.Resource == "configmaps" && w.Verb == "delete":
			key := w.Object.Namespace + "/" + w.Object.Name
			if last := out[key]; len(last) > 0 {
				v := last[len(last)-1]
				v.at, v.sent, v.gone = w.committed, w.sent, true
				out[key] = append(last, v)
			}
		case w.Object.Resource == "configmaps" && m.Labels[labelKind] == "plan":
			key := m.Namespace + "/" + m.Name
			out[key] = append(out[key], version{
				at: w.committed, sent: w.sent, uid: m.UID, text: w.object.Data["plan.yaml"],
				paused: on(m.Annotations[pauseKey]), gone: m.DeletionTimestamp != nil,
			})
		}
	}
	return out
}

func on(pause string) bool { return pause != "" && pause != "false" }

// standing is what a function reads of the version of a plan that stood at an
// instant, and whether it had stood so for longer than Known.
func standing[T comparable](all []version, instant time.Time, read func(version) T) (value T, long bool) {
	var none T
	last := -1
	for i, v := range all {
		if v.sent.After(instant) {
			break
		}
		last = i
	}
	if last < 0 {
		return none, false
	}
	value = read(all[last])
	since := all[last].at
	for i := last - 1; i >= 0 && read(all[i]) == value; i-- {
		since = all[i].at
	}
	return value, instant.Sub(since) > Known
}

// Intents finds claims, starts and steps that came more than ten seconds after a
// pause, an edit or a deletion of their plan was committed, and against it.
func Intents(h History) []Finding {
	writes := h.writes()
	known := plans(writes)
	return slices.Concat(claimsAgainst(writes, known), startsAgainst(runs(writes), known))
}

// claimsAgainst looks at each new open entry of a ledger.
func claimsAgainst(writes []write, known map[string][]version) []Finding {
	var out []Finding
	open := map[string]map[string]bool{}
	for _, w := range writes {
		m := w.object.Metadata
		if w.Object.Resource != "configmaps" || m.Labels[labelKind] != "ledger" || w.Verb == "delete" || w.object.Data["ledger.json"] == "" {
			continue
		}
		ledger, ok := readLedger(w.object.Data["ledger.json"])
		if !ok {
			continue
		}
		before, now := open[m.Name], map[string]bool{}
		plan := m.Namespace + "/" + m.Labels[labelPlan]
		for _, e := range ledger.Open {
			now[e.Run] = true
			if !before[e.Run] {
				out = append(out, against(known[plan], ledger.PlanUID, w.sent, fmt.Sprintf("plan %s claimed run %s", plan, e.Run))...)
			}
		}
		open[m.Name] = now
	}
	return out
}

// against says whether a plan was paused, or gone, at an instant and for long.
func against(all []version, uid string, at time.Time, what string) []Finding {
	var out []Finding
	if paused, long := standing(all, at, func(v version) bool { return v.paused }); paused && long {
		out = append(out, Finding{"intents", what + ", paused for more than " + Known.String(), at})
	}
	if gone, long := standing(all, at, func(v version) bool { return v.gone || v.uid != uid }); gone && long {
		out = append(out, Finding{"intents", what + ", deleted for more than " + Known.String(), at})
	}
	return out
}

// startsAgainst looks at each run's claim by its snapshot, its start, and each step
// that begins.
func startsAgainst(all map[string]*run, known map[string][]version) []Finding {
	var out []Finding
	for _, r := range sorted(all) {
		plan := r.namespace + "/" + r.fixed.Plan
		versions := known[plan]
		if len(r.creations) > 0 {
			out = append(out, oldSnapshot(r, versions)...)
		}
		began, seen := false, map[string]bool{}
		for _, s := range r.states {
			if !began && s.StartedAt != nil {
				began = true
				out = append(out, against(versions, r.fixed.PlanUID, s.sent, fmt.Sprintf("run %s of %s started", r.name, plan))...)
			}
			out = append(out, stepsAgainst(r, s, versions, seen)...)
		}
	}
	return out
}

// oldSnapshot compares the plan that a run holds with the one that stood when it
// was created: a claim comes a moment before.
func oldSnapshot(r *run, versions []version) []Finding {
	created := r.creations[0].sent
	stood, long := standing(versions, created, func(v version) string { return v.text })
	var spec struct {
		Spec struct {
			Description string `json:"description"`
		} `json:"spec"`
	}
	if !long || unmarshalYAML(stood, &spec) != nil || spec.Spec.Description == "" || spec.Spec.Description == r.fixed.Spec.Description {
		return nil
	}
	return []Finding{{"intents", fmt.Sprintf("run %s of %s/%s was created with %q, which had been %q for more than %s", r.name, r.namespace, r.fixed.Plan, r.fixed.Spec.Description, spec.Spec.Description, Known), created}}
}

// stepsAgainst finds steps that begin in a paused plan. Cleanup is not held.
func stepsAgainst(r *run, s state, versions []version, seen map[string]bool) []Finding {
	var out []Finding
	for _, rec := range s.Steps {
		if rec.Phase != "Running" || seen[rec.Path] {
			continue
		}
		seen[rec.Path] = true
		if cleanup(rec.Path) || len(seen) == 1 { // the first begins with the run
			continue
		}
		if paused, long := standing(versions, s.sent, func(v version) bool { return v.paused && v.uid == r.fixed.PlanUID }); paused && long {
			out = append(out, Finding{"intents", fmt.Sprintf("step %s of run %s began, its plan paused for more than %s", rec.Path, r.name, Known), s.sent})
		}
	}
	return out
}

func cleanup(path string) bool {
	return strings.HasPrefix(path, "finally/") || strings.HasPrefix(path, "onFailure/")
}

// entry is one end of a slot, or several that say the same.
type entry struct {
	Slot   *time.Time `json:"slot"`
	Kind   string     `json:"kind"`
	Result string     `json:"result"`
	Reason string     `json:"reason"`
	Run    string     `json:"run"`
	First  *time.Time `json:"first"`
	Last   *time.Time `json:"last"`
	Count  int        `json:"count"`
}

type ledger struct {
	PlanUID string  `json:"planUID"`
	Open    []entry `json:"open"`
	Recent  []entry `json:"recent"`
}

func readLedger(text string) (ledger, bool) {
	var l ledger
	err := json.Unmarshal([]byte(text), &l)
	return l, err == nil
}

// keys are a map's keys in order.
func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
