package drain

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// ParseSelector reads a label selector as a list's options take it: app=web,
// tier!=db, env in (a,b), zone notin (c), gpu, !spot. An empty text picks all.
// The comparisons > and < are not taken: nodes have such labels, pods do not.
func ParseSelector(text string) (plan.LabelSelector, error) {
	var out plan.LabelSelector
	if strings.TrimSpace(text) == "" {
		return out, nil
	}
	for _, part := range clauses(text) {
		r, err := clause(part)
		if err != nil {
			return plan.LabelSelector{}, fmt.Errorf("podSelector %q: %w", plan.Cut(text, 200), err)
		}
		out.MatchExpressions = append(out.MatchExpressions, r)
	}
	return out, nil
}

// clauses splits at the commas outside parentheses.
func clauses(text string) []string {
	var out []string
	depth, from := 0, 0
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				out, from = append(out, text[from:i]), i+1
			}
		}
	}
	return append(out, text[from:])
}

// clauseForms are the forms of a clause: a set, a comparison, a key alone.
func clauseForms() (set, equal, key *regexp.Regexp) {
	const name = `([A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?)`
	const value = `([A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?|)`
	return regexp.MustCompile(`^\s*` + name + `\s+(in|notin)\s*\(([^()]*)\)\s*$`),
		regexp.MustCompile(`^\s*` + name + `\s*(=|==|!=)\s*` + value + `\s*$`),
		regexp.MustCompile(`^\s*(!?)\s*` + name + `\s*$`)
}

func clause(text string) (plan.SelectorRequirement, error) {
	set, equal, key := clauseForms()
	if m := set.FindStringSubmatch(text); m != nil {
		r := plan.SelectorRequirement{Key: m[1], Operator: "In"}
		if m[2] == "notin" {
			r.Operator = "NotIn"
		}
		for _, v := range strings.Split(m[3], ",") {
			r.Values = append(r.Values, strings.TrimSpace(v))
		}
		return r, nil
	}
	if m := equal.FindStringSubmatch(text); m != nil {
		r := plan.SelectorRequirement{Key: m[1], Operator: "In", Values: []string{m[3]}}
		if m[2] == "!=" {
			r.Operator = "NotIn"
		}
		return r, nil
	}
	if m := key.FindStringSubmatch(text); m != nil {
		if m[1] == "!" {
			return plan.SelectorRequirement{Key: m[2], Operator: "DoesNotExist"}, nil
		}
		return plan.SelectorRequirement{Key: m[2], Operator: "Exists"}, nil
	}
	return plan.SelectorRequirement{}, fmt.Errorf("%q is none of key=value, key!=value, key in (a,b), key notin (a,b), key and !key", plan.Cut(strings.TrimSpace(text), 80))
}
