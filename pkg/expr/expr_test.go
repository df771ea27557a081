package expr_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

func vars() map[string]any {
	return map[string]any{
		"run":    map[string]any{"name": "r-1", "n": int64(3), "share": 0.5, "ok": true, "evil": "${run.name}", "big": int64(9007199254740993)},
		"steps":  map[string]any{"scale-down": map[string]any{"phase": "Succeeded"}},
		"target": nil,
	}
}

func TestExpand(t *testing.T) {
	for in, want := range map[string]any{
		"plain":                                "plain",
		"":                                     "",
		"${run.n}":                             int64(3),
		"${ run.n }":                           int64(3),
		"${run.n + 1}":                         int64(4),
		"${run.share}":                         0.5,
		"${run.ok}":                            true,
		"${run.big}":                           int64(9007199254740993),
		"${[run.big]}":                         []any{int64(9007199254740993)},
		"n is ${run.n}":                        "n is 3",
		"${run.n}${run.n}":                     "33",
		"${run.name}!":                         "r-1!",
		"$${run.name}":                         "${run.name}",
		"$${run.name} ${run.name}":             "${run.name} r-1",
		"$$${run.name}":                        "$${run.name}",
		"$5":                                   "$5",
		"a$":                                   "a$",
		"{x}":                                  "{x}",
		"${run.evil}":                          "${run.name}", // a value smuggles nothing in
		"${'}'}":                               "}",
		`${"\"}"}`:                             `"}`,
		"${'${run.name}'}":                     "${run.name}",
		"${{'a': {'b': run.n}}}":               map[string]any{"a": map[string]any{"b": int64(3)}},
		"x ${{'a': 1}} y":                      `x {"a":1} y`,
		"${null}":                              nil,
		"${[1, 'a', true, null, 1.5]}":         []any{int64(1), "a", true, nil, 1.5},
		"${1u}":                                int64(1),
		"${b'abc'}":                            "YWJj",
		"${timestamp('2026-01-01T00:00:00Z')}": "2026-01-01T00:00:00Z",
		"${duration('90s')}":                   "90s",
		"${steps['scale-down'].phase}":         "Succeeded",
		"${has(run.other) ? run.other : 'default'}": "default",
		"${run.?other.orValue('default')}":          "default",
		"${'a,b'.split(',')}":                       []any{"a", "b"},
		"${['a', 'b'].join('-')}":                   "a-b",
		"${'a.b.c'.replace('.', '-')}":              "a-b-c",
		"${'a.b.c'.replace('.', '-', 1)}":           "a-b.c",
		"${'abc'.replace('', '-')}":                 "-a-b-c-",
		"${['a', 'b'].map(x, x + '!')}":             []any{"a!", "b!"},
		"${{1: 'a', true: 'b'}}":                    map[string]any{"1": "a", "true": "b"},
	} {
		got, err := expr.Expand(in, vars())
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}

func TestExpandGoesThroughTrees(t *testing.T) {
	in := map[string]any{"a": []any{"${run.n}", map[string]any{"b": "x${run.n}"}, int64(7), nil, true}, "${run.name}": "keys stay"}
	want := map[string]any{"a": []any{int64(3), map[string]any{"b": "x3"}, int64(7), nil, true}, "${run.name}": "keys stay"}
	got, err := expr.Expand(in, vars())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if in["a"].([]any)[0] != "${run.n}" {
		t.Error("the tree that was given has changed")
	}
}

// A missing value is an error, not an empty string.
func TestExpandRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"${run.nme}":                 "no such key: nme",
		"x ${run.nme}":               "no such key: nme",
		"${nobody}":                  "undeclared reference to 'nobody'",
		"${target.metadata.name}":    "no such",
		"${run.name":                 "is not closed",
		"${":                         "is not closed",
		"${}":                        "does not compile",
		"${run.name + 1}":            "no such overload",
		"${1/0}":                     "division by zero",
		"${1.0/0.0}":                 "no number in JSON",
		"${optional.none()}":         "no JSON form",
		"${18446744073709551615u}":   "too large",
		"${{[1]: 2}}":                "",
		"${'%s'.format(['a'])}":      "format is not available",
		"${run.name.matches('(')}":   "",
		strings.Repeat("${run.n", 2): "is not closed",
		"${" + strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300) + "}": "does not compile",
		"${'" + strings.Repeat("x", 5000) + "'}":                               "at most 4096 characters",
	} {
		got, err := expr.Expand(in, vars())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, %v", in, got, err)
			continue
		}
		if strings.Contains(err.Error(), "all expressions of a step") {
			t.Errorf("%s: what one says is blamed on all: %v", in, err)
		}
	}
}

func TestBool(t *testing.T) {
	for text, want := range map[string]bool{"run.ok": true, "run.n > 2": true, "run.n == 3.0": true, "!run.ok": false, "target == null": true, "'scale-down' in steps": true, "has(run.x) && run.x": false} {
		if got, err := expr.Bool(text, vars()); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"run.n", "run.x", "1", "'true'", ""} {
		if got, err := expr.Bool(text, vars()); err == nil {
			t.Errorf("%s gives %v", text, got)
		}
	}
}

// An expression that costs too much is an error, not a stall. Each of these took
// minutes or gigabytes without its bound.
func TestExpressionsAreBounded(t *testing.T) {
	big := vars()
	big["text"] = strings.Repeat("a", 200_000)
	for name, text := range map[string]string{
		"replacing again and again":    "'aaaaaaaaaa'" + strings.Repeat(".replace('a', 'aaaaaaaaaa')", 100),
		"replacing nothing by much":    "text.replace('', text)",
		"joining by much":              "text.split('').join(text)",
		"strings that double":          "['a']" + strings.Repeat(".map(s, s + s)", 20),
		"lists that double":            "[[1]]" + strings.Repeat(".map(l, l + l)", 18),
		"looking in lists that double": "2 in [[1]]" + strings.Repeat(".map(l, l + l)", 18) + "[0]",
		"nested lists that share":      "[[1]]" + strings.Repeat(".map(l, [l, l])", 16),
		"loops in loops":               "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, a + b + c >= 0)))",
		"a long range":                 "lists.range(1000000000)",
		"a long regular expression":    "text.matches('" + strings.Repeat("(a?)", 500) + strings.Repeat("a", 500) + "')",
		"a large result":               "[text, text]",
		"many values":                  "lists.range(10000).map(x, [x, x])",
		"a long loop":                  "lists.range(10000).all(a, lists.range(10000).all(b, a + b >= 0))",
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			got, err := expr.Value(text, big)
			if err == nil {
				t.Errorf("gives %s", fmt.Sprint(got)[:40])
			}
			if took := time.Since(began); took > 10*time.Second { // an alarm for explosions: these took minutes
				t.Errorf("took %s", took)
			}
		})
	}
	many := make([]any, 20)
	for i := range many {
		many[i] = "${text}"
	}
	if _, err := expr.Expand(many, big); err == nil {
		t.Error("all together may grow without bound")
	}
	if _, err := expr.Expand("${text}${text}", big); err == nil {
		t.Error("one text may grow without bound")
	}
}

// The types of an expression are checked in no time, or not at all. Each of these, in less than
// 4096 characters, took seconds or minutes without its bound.
func TestCheckingTypesIsBounded(t *testing.T) {
	in := func(n int, before, after string) string {
		return strings.Repeat(before, n) + "1" + strings.Repeat(after, n)
	}
	for name, c := range map[string]struct {
		text string
		says string // empty: it is taken
	}{
		"loops in loops":                   {in(200, "[1].map(a, ", ")"), "nest loops, calls, lists and maps 20 deep (map counts as two); this one is 400 deep"},
		"loops after loops":                {"[1]" + strings.Repeat(".map(a, [a])", 200), "20 deep"},
		"lists in lists":                   {in(200, "[", "]"), "this one is 200 deep"},
		"maps in maps":                     {in(200, "{1: ", "}"), "this one is 200 deep"},
		"maps as keys":                     {in(200, "{", ": 1}"), "this one is 200 deep"},
		"optional values in one another":   {"optional.of(1)" + strings.Repeat(".optMap(a, a)", 150), "20 deep"},
		"optional values of one another":   {in(240, "optional.of(", ")") + " == optional.none()", "this one is 240 deep"},
		"the same of what is not empty":    {in(150, "optional.ofNonZeroValue(", ")") + " == optional.none()", "this one is 150 deep"},
		"types of types":                   {in(200, "type(", ")") + " == type(type(1))", "this one is 200 deep"},
		"calls in arguments of methods":    {strings.Repeat("'a'.replace('a', ", 200) + "'b'" + strings.Repeat(")", 200) + " == 'b'", "this one is 200 deep"},
		"as many calls in one another":     {in(19, "optional.of(", ")") + ".hasValue()", ""},
		"calls one after another":          {"'a'" + strings.Repeat(".replace('a', 'b')", 150) + " == 'b'", ""},
		"a sum of many":                    {strings.Repeat("1 + ", 150) + "1 == 151", ""},
		"a choice of many":                 {"(" + strings.Repeat("1 == 2 ? 1 : (", 60) + "1" + strings.Repeat(")", 60) + ") == 1", ""},
		"loops beside one another":         {in(150, "[1].map(a, a).size() + ", ""), "at most 20 loops such as map and all, this one has 150"},
		"loops in arguments":               {"size(" + in(100, "[1].filter(a, size(", ") == 1)") + ")", "20 deep"},
		"as many in one another as go":     {in(10, "[1].map(a, ", ")"), ""},
		"as many that take one":            {strings.Repeat("[1].all(a, ", 19) + "true" + strings.Repeat(")", 19), ""},
		"as many beside one another":       {in(20, "[1].map(a, a).size() + ", ""), ""},
		"one more":                         {in(21, "[1].map(a, a).size() + ", ""), "this one has 21"},
		"as many lists in one another":     {in(20, "[", "]"), ""},
		"one more of them":                 {in(21, "[", "]"), "this one is 21 deep"},
		"a long list, which nests nothing": {"[" + strings.Repeat("1, ", 1000) + "1]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			err := expr.Check(c.text)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v, want %q", err, c.says)
			}
			if took := time.Since(began); took > 5*time.Second { // an alarm for explosions
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestCheckTemplatesNamesThePath(t *testing.T) {
	in := map[string]any{"b": []any{"fine ${run.n}", map[string]any{"c": "${nobody}"}}, "a": "${"}
	var got []string
	expr.CheckTemplates(in, []string{"run"}, func(path string, err error) { got = append(got, path) })
	if diff := cmp.Diff([]string{"a", "b[1].c"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestIsTemplate(t *testing.T) {
	for s, want := range map[string]bool{"": false, "a": false, "${a}": true, "$${a}": false, "$${a} ${b}": true, "${a": true, "$": false, "{a}": false} {
		if got := expr.IsTemplate(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

func TestTheExpressionsInATextAreFound(t *testing.T) {
	for s, want := range map[string][]string{"": nil, "a": nil, "${a}": {"a"}, "x ${ a } y ${b}": {"a", "b"}, "$${a} ${b}": {"b"}, "${a} ${b": nil} {
		if diff := cmp.Diff(want, expr.InText(s)); diff != "" {
			t.Errorf("%q: %s", s, diff)
		}
	}
}

func TestWholeNumbersAreIntegers(t *testing.T) {
	got := expr.Whole([]any{json.Number("3"), json.Number("3.0"), json.Number("3.5"), 3.0, 3.5, 1e300, map[string]any{"a": 2.0}})
	if diff := cmp.Diff([]any{int64(3), int64(3), 3.5, int64(3), 3.5, 1e300, map[string]any{"a": int64(2)}}, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"", "${run.n}", "$${", "${'}'}", "${", "a${run.name}b", "${[1].map(x, x)}", "${{'a': 1}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := expr.Expand(s, vars())
		if err != nil {
			return
		}
		if _, err := json.Marshal(v); err != nil {
			t.Errorf("%q gives what JSON cannot hold: %v", s, err)
		}
	})
}
