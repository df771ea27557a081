package write

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// gone is what a plan has, and the one that takes its place has not.
type gone struct {
	field, was string
	restricts  bool // without it a run may begin, or do, what it may not with it
}

// What is printed of what goes: so many lines, and so much of a value (guesses).
const (
	mostGone    = 12
	longestGone = 80
)

// goes compares a plan with the one that takes its place. A value that changes does not go: it is
// on the command line. Nor does one that is the default. What restricts comes first.
func goes(have, next plan.Spec) []gone {
	was, is := fieldsOf(have), fieldsOf(next)
	before, after := fieldsOf(plan.Tree{Spec: have}.Defaulted()), fieldsOf(plan.Tree{Spec: next}.Defaulted())
	for field := range was {
		if is[field] == nil && reflect.DeepEqual(before[field], after[field]) {
			delete(was, field)
		}
	}
	out := lacking("", was, is)
	slices.SortStableFunc(out, func(a, b gone) int {
		switch {
		case a.restricts == b.restricts:
			return strings.Compare(a.field, b.field)
		case a.restricts:
			return -1
		}
		return 1
	})
	return out
}

// fieldsOf is a spec as a document has it, without what it does not set.
func fieldsOf(s plan.Spec) map[string]any {
	out := map[string]any{}
	if b, err := json.Marshal(s); err == nil {
		_ = json.Unmarshal(b, &out) // what was marshalled is an object
	}
	return out
}

// lacking is what was has below a path, and is has not.
func lacking(path string, was, is any) []gone {
	switch was := was.(type) {
	case map[string]any:
		is, _ := is.(map[string]any)
		var out []gone
		for _, key := range slices.Sorted(maps.Keys(was)) {
			field := strings.TrimPrefix(path+"."+key, ".")
			if key == "timezone" && was[key] == "UTC" {
				continue // the default
			}
			if _, list := was[key].([]any); is[key] != nil || list || key == "triggers" {
				out = append(out, lacking(field, was[key], is[key])...)
				continue
			}
			out = append(out, goneFrom(field, was[key]))
		}
		return out
	case []any:
		is, _ := is.([]any)
		return lackingItems(path, was, is)
	}
	return nil
}

// lackingItems compares lists. An item goes with its equal, else with the one of its name where each
// list has one of that name, else, without a name, with the next that is left.
func lackingItems(path string, was, is []any) []gone {
	partners := partnersOf(was, is)
	var out []gone
	for i, item := range was {
		name := nameOfItem(item)
		at := fmt.Sprintf("%s[%s]", path, name)
		if !isNamed(item) {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		switch other, there := partners[i]; {
		case there:
			out = append(out, lacking(at, item, other)...)
		case isNamed(item):
			g := goneFrom(path, item)
			g.was = name
			out = append(out, g)
		default:
			out = append(out, goneFrom(at, item))
		}
	}
	return out
}

// partnersOf are the items of a list that stand for those of the list before, by their places there.
func partnersOf(was, is []any) map[int]any {
	out, taken := map[int]any{}, map[int]bool{}
	pair := func(fits func(i, j int) bool) {
		for i := range was {
			if _, done := out[i]; done {
				continue
			}
			for j := range is {
				if !taken[j] && fits(i, j) {
					out[i], taken[j] = is[j], true
					break
				}
			}
		}
	}
	names := func(list []any) map[string]int {
		count := map[string]int{}
		for _, item := range list {
			count[nameOfItem(item)]++
		}
		return count
	}
	before, after := names(was), names(is)
	pair(func(i, j int) bool { return reflect.DeepEqual(was[i], is[j]) })
	pair(func(i, j int) bool {
		name := nameOfItem(was[i])
		return name != "" && name == nameOfItem(is[j]) && before[name] == 1 && after[name] == 1
	})
	pair(func(i, _ int) bool { return !isNamed(was[i]) })
	return out
}

// isNamed says whether an item of another name is another one, and not the same with a new value.
func isNamed(item any) bool {
	switch item := item.(type) {
	case string:
		return true
	case map[string]any:
		return item["name"] != nil
	}
	return false
}

// nameOfItem is what an item of a list is known by: its name, or when a schedule fires, or what a
// watch is of. A step of another type is another step.
func nameOfItem(item any) string {
	switch item := item.(type) {
	case string:
		return item
	case map[string]any:
		name, _ := item["name"].(string)
		if namespace, _ := item["namespace"].(string); namespace != "" && name != "" {
			name = namespace + "/" + name
		}
		if kind, _ := item["type"].(string); kind != "" && name != "" {
			name += " (" + kind + ")"
		}
		for _, key := range []string{"cron", "rrule", "at", "apiVersion", "kind"} {
			if text, _ := item[key].(string); name == "" || key == "kind" && item["name"] == nil {
				name += text
			}
		}
		return name
	}
	return ""
}

func goneFrom(field string, was any) gone {
	g := gone{field: field, restricts: restricting(field, was)}
	switch value := was.(type) {
	case string:
		g.was = value
	case map[string]any:
		if kind, name := value["kind"], value["name"]; kind != nil && name != nil {
			g.was = fmt.Sprintf("%v/%v", kind, name)
		}
	}
	if b, err := json.Marshal(was); err == nil && g.was == "" {
		g.was = string(b)
	}
	return g
}

// stepLimits are the fields of a step without which it may act where, when or on more than with them.
func stepLimits() []string {
	return []string{
		"if", "dependsOn", "connectorRef", "timeout", "when", "until", "selector", "matchLabels", "disruptive",
		"maxConcurrency", "maxUnavailable", "maxFailures", "batches", "soak",
	}
}

// restricting says whether a field that goes may let a run begin, or do, what it may not with it.
func restricting(field string, was any) bool {
	parts := strings.FieldsFunc(field, func(r rune) bool { return strings.ContainsRune(".[]", r) })
	has := func(names ...string) bool {
		return slices.ContainsFunc(parts[1:], func(part string) bool { return slices.Contains(names, part) })
	}
	switch parts[0] {
	case "policies", "target", "connectorRef", "serviceAccountName", "parameters", "requiresApproval", "approvalTimeout",
		"startDeadline", "catchUp", "concurrencyPolicy", "maxDuration", "onWindowClose", "onDrift", "freezeTarget", "dryRun":
		return true
	case "triggers":
		return has("timezone", "dtstart", "exdate", "selector", "fields", "events", "when")
	}
	return has(stepLimits()...) || approves(was)
}

// approves says whether a step is, or holds, one that asks somebody.
func approves(was any) bool {
	switch was := was.(type) {
	case map[string]any:
		return was["type"] == plan.TypeApproval || slices.ContainsFunc(slices.Collect(maps.Values(was)), approves)
	case []any:
		return slices.ContainsFunc(was, approves)
	}
	return false
}

// sayGone prints what goes from a plan, and returns the fields that restrict it.
func (o *scheduleOptions) sayGone(name string, all []gone) (restricting []string) {
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintf(o.ErrOut, "replacing plan/%s takes away:\n", name)
	for i, g := range all {
		if g.restricts && !slices.Contains(restricting, g.field) {
			restricting = append(restricting, g.field)
		}
		switch {
		case i == mostGone:
			fmt.Fprintf(o.ErrOut, "  and %d more\n", len(all)-mostGone)
		case i < mostGone:
			fmt.Fprintf(o.ErrOut, "  %s: %s\n", document.Cut(g.field, longestGone), document.Cut(g.was, longestGone))
		}
	}
	return restricting
}
