package selector_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

func TestASelectorPicksByLabels(t *testing.T) {
	by := func(key, operator string, values ...string) *selector.LabelSelector {
		return &selector.LabelSelector{MatchExpressions: []selector.SelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	labels := func(pairs ...string) *selector.LabelSelector {
		s := &selector.LabelSelector{MatchLabels: map[string]string{}}
		for _, pair := range pairs {
			key, value, _ := strings.Cut(pair, "=")
			s.MatchLabels[key] = value
		}
		return s
	}
	of := map[string]string{"tier": "prod", "empty": ""}
	for _, c := range []struct {
		name     string
		selector *selector.LabelSelector
		want     bool
	}{
		{"none picks everything", nil, true},
		{"an empty one, too", &selector.LabelSelector{}, true},
		{"a label", labels("tier=prod"), true},
		{"another value", labels("tier=dev"), false},
		{"an empty value", labels("empty="), true},
		{"an empty value of a label that is not there", labels("absent="), false},
		{"two labels of which one differs", labels("tier=prod", "empty=x"), false},
		{"In", by("tier", "In", "dev", "prod"), true},
		{"In, another value", by("tier", "In", "dev"), false},
		{"In, not there", by("absent", "In", ""), false},
		{"NotIn", by("tier", "NotIn", "prod"), false},
		{"NotIn, another value", by("tier", "NotIn", "dev"), true},
		{"NotIn, not there", by("absent", "NotIn", "x"), true},
		{"Exists", by("empty", "Exists"), true},
		{"Exists, not there", by("absent", "Exists"), false},
		{"DoesNotExist", by("empty", "DoesNotExist"), false},
		{"DoesNotExist, not there", by("absent", "DoesNotExist"), true},
		{"an operator that is none picks nothing", by("tier", "Is", "prod"), false},
		{"a label, and an expression that does not hold", &selector.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}, MatchExpressions: by("empty", "DoesNotExist").MatchExpressions}, false},
	} {
		if got := c.selector.Matches(of); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// What Kubernetes picks by a selector, Matches picks: it is asked for every pod and
// budget, and does without what reading costs.
func TestASelectorPicksWhatKubernetesPicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "b", "c", ""})
		key := rapid.SampledFrom([]string{"k", "l", "example.com/m"})
		s := selector.LabelSelector{MatchLabels: rapid.MapOfN(key, word, 0, 2).Draw(t, "matchLabels")}
		for range rapid.IntRange(0, 3).Draw(t, "expressions") {
			r := selector.SelectorRequirement{Key: key.Draw(t, "key"), Operator: rapid.SampledFrom([]string{"In", "NotIn", "Exists", "DoesNotExist"}).Draw(t, "operator")}
			if r.Operator == "In" || r.Operator == "NotIn" {
				r.Values = rapid.SliceOfN(word, 1, 3).Draw(t, "values")
			}
			s.MatchExpressions = append(s.MatchExpressions, r)
		}
		of := rapid.MapOfN(key, word, 0, 3).Draw(t, "labels")
		read, err := s.Read()
		if err != nil {
			t.Fatal(err)
		}
		if ours, theirs := s.Matches(of), read.Matches(of); ours != theirs {
			t.Fatalf("%s of %v: %t, Kubernetes says %t", read, of, ours, theirs)
		}
	})
}

func TestATemplateInASelectorIsCheckedWhenItsValueIsKnown(t *testing.T) {
	in := func(values ...string) []selector.SelectorRequirement {
		return []selector.SelectorRequirement{{Key: "a", Operator: "In", Values: values}}
	}
	for _, c := range []struct {
		name     string
		selector selector.LabelSelector
		want     []string
	}{
		{"a value that is a template", selector.LabelSelector{MatchLabels: map[string]string{"a": "${run.name}"}}, nil},
		{"a template among the values", selector.LabelSelector{MatchExpressions: in("${run.name}", "b")}, nil},
		{"the key beside it is checked", selector.LabelSelector{MatchLabels: map[string]string{"-a": "${run.name}"}}, []string{`pod.matchLabels: "-a" is no label's key`}},
		{"a value that is none", selector.LabelSelector{MatchLabels: map[string]string{"a": "b c", "d": "${run.name}"}}, []string{`pod.matchLabels: "b c" is no label's value`}},
		{"the second expression", selector.LabelSelector{MatchExpressions: append(in("${run.name}"), in("x y")...)}, []string{`pod.matchExpressions[1].values: "x y" is no label's value`}},
		{"values without a template", selector.LabelSelector{MatchExpressions: in()}, []string{"pod.matchExpressions[0].values: is empty"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := fmt.Sprint(c.selector)
			var got []string
			c.selector.Check("pod", func(path, format string, args ...any) {
				got = append(got, path+": "+fmt.Sprintf(format, args...))
			})
			if len(got) != len(c.want) || len(got) == 1 && !strings.Contains(got[0], c.want[0]) {
				t.Errorf("-want +got:\n%s", cmp.Diff(c.want, got))
			}
			if after := fmt.Sprint(c.selector); after != before {
				t.Errorf("the selector itself became %s", after)
			}
		})
	}
}

func TestALongValueIsToldInPart(t *testing.T) {
	for n, want := range map[int]string{100: strings.Repeat("a", 100) + `"`, 101: strings.Repeat("a", 100) + `…"`} {
		_, err := selector.Of(map[string]string{"k": strings.Repeat("a", n)}, nil)
		if err == nil || !strings.Contains(err.Error(), `"`+want+" is no label's value") {
			t.Errorf("%d characters: %v", n, err)
		}
	}
}
