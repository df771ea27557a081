package selector_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

func TestAFaultNamesTheFieldAndWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name        string
		match       map[string]string
		expressions []selector.SelectorRequirement
		want        string // empty: none
	}{
		{"nothing", nil, nil, ""},
		{"all that is allowed", map[string]string{"example.com/a": "", "b": "c"}, []selector.SelectorRequirement{{Key: "d", Operator: "In", Values: []string{"e", ""}}, {Key: "f", Operator: "DoesNotExist"}}, ""},
		{"a key", map[string]string{"-a": "b"}, nil, `matchLabels: "-a" is no label's key: name part must consist of`},
		{"a prefix in capitals", map[string]string{"EXAMPLE.com/a": "b"}, nil, `matchLabels: "EXAMPLE.com/a" is no label's key: prefix part a lowercase RFC 1123 subdomain`},
		{"a value", map[string]string{"a": "b c"}, nil, `matchLabels: "b c" is no label's value: a valid label must be`},
		{"a value that is too long", map[string]string{"a": strings.Repeat("b", 64)}, nil, `is no label's value: must be no more than 63`},
		{"a value of an expression", nil, []selector.SelectorRequirement{{Key: "a", Operator: "In", Values: []string{"b", "c d"}}}, `matchExpressions[0].values: "c d" is no label's value`},
		{"a key of an expression", nil, []selector.SelectorRequirement{{Key: "a", Operator: "Exists"}, {Key: "", Operator: "Exists"}}, `matchExpressions[1].key: "" is no label's key: name part must be non-empty`},
		{"no values", nil, []selector.SelectorRequirement{{Key: "a", Operator: "NotIn"}}, "matchExpressions[0].values: is empty; In and NotIn need values"},
		{"values where there are none", nil, []selector.SelectorRequirement{{Key: "a", Operator: "Exists", Values: []string{"b"}}}, "matchExpressions[0].values: must be left out with Exists and DoesNotExist"},
		{"an operator", nil, []selector.SelectorRequirement{{Key: "a", Operator: "Gt", Values: []string{"1"}}}, `matchExpressions[0].operator: must be one of In, NotIn, Exists, DoesNotExist, is "Gt"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := selector.Of(c.match, c.expressions)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			case err != nil && strings.Contains(err.Error(), "regex"):
				t.Errorf("nobody reads that: %v", err)
			}
		})
	}
}

func TestATextIsReadAsKubectlReadsIt(t *testing.T) {
	nodes := map[string]map[string]string{"big": {"n": "8", "pool": "gpu"}, "small": {"n": "1"}, "none": nil}
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", []string{"big", "none", "small"}},
		{"n>1", []string{"big"}},
		{"n<2", []string{"small"}},
		{"!pool", []string{"none", "small"}},
		{"pool!=gpu", []string{"none", "small"}},
		{"pool in (gpu,cpu),n", []string{"big"}},
		{"example.com/a", nil},
	} {
		read, err := selector.Parse(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		var got []string
		for _, name := range []string{"big", "none", "small"} {
			if read.Matches(nodes[name]) {
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q: %s", c.text, diff)
		}
		if again, err := selector.Parse(read.String()); err != nil || again.String() != read.String() {
			t.Errorf("%q is written as %q: %v", c.text, read, err)
		}
	}
	for text, want := range map[string]string{
		"EXAMPLE.com/a": `"EXAMPLE.com/a" is no label selector: "EXAMPLE.com/a": prefix part`,
		"n>x":           `the value must be an integer`,
		"a in (b":       `"a in (b" is no label selector`,
		"a=b c":         `"a=b c" is no label selector`,
	} {
		if _, err := selector.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestWhetherAllThatIsPickedHasAValue(t *testing.T) {
	for text, want := range map[string]bool{
		"kind=run":                 true,
		"kind==run,app=web":        true,
		"kind in (run,plan)":       true,
		"app=web,kind in (run)":    true,
		"":                         false,
		"app=run":                  false,
		"kind":                     false,
		"!kind":                    false,
		"kind!=run":                false,
		"kind notin (run)":         false,
		"kind in (run,other)":      false,
		"kind=other":               false,
		"kind in (run),kind=other": true, // it picks nothing
	} {
		picks, err := selector.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := picks.Within("kind", "run", "plan"); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

func TestLabelsAsATextAreInTheOrderOfTheirKeys(t *testing.T) {
	for want, of := range map[string]map[string]string{"": nil, "app=web,tier=": {"tier": "", "app": "web"}, "app=not a value": {"app": "not a value"}} {
		if got := selector.Text(of); got != want {
			t.Errorf("%v: %q, want %q", of, got, want)
		}
	}
}

func TestExactLabelsAreThoseThatALabelCanBe(t *testing.T) {
	for name, c := range map[string]struct {
		match map[string]string
		want  string
		fails bool
	}{
		"in the order of their keys":    {map[string]string{"b": "2", "a/x": "1"}, "a/x=1,b=2", false},
		"a value that no label can be":  {map[string]string{"a": "two words"}, "", true},
		"a value that would say more":   {map[string]string{"a": "b,c=d"}, "", true},
		"a key that none can have":      {map[string]string{"../a": "b"}, "", true},
		"none picks all":                {nil, "", false},
		"a value may be there and void": {map[string]string{"a": ""}, "a=", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := selector.Exact(c.match)
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
