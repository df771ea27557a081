package selector

import (
	"maps"
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

// LabelSelector has the shape and meaning of metav1.LabelSelector.
type LabelSelector struct {
	MatchLabels      map[string]string     `json:"matchLabels,omitempty"`
	MatchExpressions []SelectorRequirement `json:"matchExpressions,omitempty"`
}

// SelectorRequirement is one expression of a LabelSelector.
type SelectorRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

// Matches says whether labels are selected; no selector selects everything. It is asked
// for every pod and budget, so it does without reading the selector first; where Read
// gives no error, both pick the same.
func (s *LabelSelector) Matches(labels map[string]string) bool {
	if s == nil {
		return true
	}
	for key, want := range s.MatchLabels {
		if have, there := labels[key]; !there || have != want {
			return false
		}
	}
	return !slices.ContainsFunc(s.MatchExpressions, func(r SelectorRequirement) bool { return !r.matches(labels) })
}

func (r SelectorRequirement) matches(labels map[string]string) bool {
	value, there := labels[r.Key]
	switch r.Operator {
	case "In":
		return there && slices.Contains(r.Values, value)
	case "NotIn":
		return !there || !slices.Contains(r.Values, value)
	case "Exists":
		return there
	case "DoesNotExist":
		return !there
	}
	return false
}

// Check reports what of a selector Kubernetes would refuse. A value may be a
// template: what comes of it is checked when the step is carried out.
func (s LabelSelector) Check(path string, at func(path, format string, args ...any)) {
	match := maps.Clone(s.MatchLabels)
	maps.DeleteFunc(match, func(_, value string) bool { return expr.IsTemplate(value) })
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		if _, plain := match[key]; !plain {
			Check(map[string]string{key: ""}, nil, func(below, format string, args ...any) { at(path+"."+below, format, args...) })
		}
	}
	expressions := slices.Clone(s.MatchExpressions)
	for i, e := range expressions {
		if slices.ContainsFunc(e.Values, expr.IsTemplate) {
			expressions[i].Values = []string{""}
		}
	}
	Check(match, expressions, func(below, format string, args ...any) { at(path+"."+below, format, args...) })
}

// Read is the selector as Kubernetes reads it.
func (s LabelSelector) Read() (Labels, error) {
	return Of(s.MatchLabels, s.MatchExpressions)
}
