// Package selector reads label selectors: one grammar for the whole project, and
// that is Kubernetes' own. It alone of the core imports k8s.io/apimachinery, and of
// that only pkg/labels and what it takes: no client comes with it.
package selector

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Labels are requirements on labels. The zero value picks everything.
type Labels struct{ requirements labels.Requirements }

// Parse reads a selector as a list's options and kubectl's -l take it: app=web,
// tier!=db, env in (a,b), zone notin (c), gpu, !spot, cores>4. An empty text picks
// everything. The error says what is wrong and where.
func Parse(text string) (Labels, error) {
	requirements, err := labels.ParseToRequirements(text)
	if err != nil {
		return Labels{}, fmt.Errorf("%q is no label selector: %s; write app=web, tier in (a,b), !canary or cores>4", cut(text), said(err))
	}
	return Labels{requirements}, nil
}

// Of are the requirements of a metav1.LabelSelector in parts.
func Of(match map[string]string, expressions []SelectorRequirement) (Labels, error) {
	var out Labels
	var faults []error
	out.each(match, expressions, func(path, format string, args ...any) {
		faults = append(faults, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...)))
	})
	return out, errors.Join(faults...)
}

// Check reports what is wrong with a metav1.LabelSelector in parts: at takes the
// path below the selector.
func Check(match map[string]string, expressions []SelectorRequirement, at func(path, format string, args ...any)) {
	(&Labels{}).each(match, expressions, at)
}

// each reads the parts into requirements.
func (l *Labels) each(match map[string]string, expressions []SelectorRequirement, at func(path, format string, args ...any)) {
	for _, key := range slices.Sorted(maps.Keys(match)) {
		l.add("matchLabels", key, selection.Equals, []string{match[key]}, at)
	}
	for i, e := range expressions {
		path := fmt.Sprintf("matchExpressions[%d]", i)
		operator, known := operators()[e.Operator]
		if !known {
			at(path+".operator", "must be one of In, NotIn, Exists, DoesNotExist, is %q", cut(e.Operator))
			operator = selection.Exists // its key is looked at all the same
			e.Values = nil
		}
		l.add(path, e.Key, operator, e.Values, at)
	}
}

// operators are those of a metav1.LabelSelector.
func operators() map[string]selection.Operator {
	return map[string]selection.Operator{"In": selection.In, "NotIn": selection.NotIn, "Exists": selection.Exists, "DoesNotExist": selection.DoesNotExist}
}

func (l *Labels) add(path, key string, operator selection.Operator, values []string, at func(path, format string, args ...any)) {
	r, err := labels.NewRequirement(key, operator, values)
	if err == nil {
		l.requirements = append(l.requirements, *r)
		return
	}
	for _, fault := range faultsOf(err) {
		where, what := describe(path, operator, fault)
		at(where, "%s", what)
	}
}

func faultsOf(err error) []*field.Error {
	var many interface{ Errors() []error }
	var one *field.Error
	switch {
	case errors.As(err, &one):
		return []*field.Error{one}
	case !errors.As(err, &many):
		return nil
	}
	var out []*field.Error
	for _, e := range many.Errors() {
		out = append(out, faultsOf(e)...)
	}
	return out
}

// describe says in our words which part of a requirement is wrong.
func describe(path string, operator selection.Operator, fault *field.Error) (where, what string) {
	below := func(name string) string {
		if path == "matchLabels" {
			return path
		}
		return path + "." + name
	}
	value := cut(fmt.Sprint(fault.BadValue))
	switch {
	case fault.Field == "key":
		return below("key"), fmt.Sprintf("%q is no label's key: %s", value, brief(fault.Detail))
	case fault.Field == "values" && operator == selection.Exists || operator == selection.DoesNotExist:
		return below("values"), "must be left out with Exists and DoesNotExist"
	case fault.Field == "values":
		return below("values"), "is empty; In and NotIn need values"
	}
	return below("values"), fmt.Sprintf("%q is no label's value: %s", value, brief(fault.Detail))
}

// Matches says whether labels meet all requirements.
func (l Labels) Matches(of map[string]string) bool {
	for i := range l.requirements {
		if !l.requirements[i].Matches(labels.Set(of)) {
			return false
		}
	}
	return true
}

// String is the selector as a list's options take it, in the order of its keys.
func (l Labels) String() string {
	return labels.NewSelector().Add(l.requirements...).String()
}

// Within says whether all that is picked has one of some values in a label.
func (l Labels) Within(key string, values ...string) bool {
	return slices.ContainsFunc(l.requirements, func(r labels.Requirement) bool {
		picked := r.Values().UnsortedList()
		return r.Key() == key && len(picked) > 0 && (r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals || r.Operator() == selection.In) &&
			!slices.ContainsFunc(picked, func(value string) bool { return !slices.Contains(values, value) })
	})
}

// Exact is a selector, as a text, of objects that bear all of some labels. A key or a value that no
// label can have is an error.
func Exact(match map[string]string) (string, error) {
	s, err := labels.ValidatedSelectorFromSet(match)
	if err != nil {
		return "", err
	}
	return s.String(), nil
}

// Text is what picks by labels that must all be there, as a list's options take it. It is not
// checked: the API server says what is wrong with it.
func Text(match map[string]string) string { return labels.SelectorFromSet(match).String() }

// said is an error of the parser without the regular expressions behind it.
func said(err error) string {
	if faults := faultsOf(err); len(faults) > 0 {
		fault := faults[0]
		return fmt.Sprintf("%q: %s", cut(fmt.Sprint(fault.BadValue)), brief(fault.Detail))
	}
	text := strings.TrimPrefix(err.Error(), "unable to parse requirement: ")
	return brief(strings.TrimPrefix(text, "<nil>: Invalid value: ")) // the parser has no path to name
}

// brief leaves out the example and the regular expression that Kubernetes adds.
func brief(detail string) string {
	text, _, _ := strings.Cut(detail, " (e.g.")
	return text
}

func cut(text string) string {
	const longest = 100
	if len(text) > longest {
		return text[:longest] + "…"
	}
	return text
}
