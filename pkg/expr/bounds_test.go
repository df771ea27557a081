package expr_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

// A bound is met by what just fits and broken by one more.
func TestABoundLetsThroughWhatJustFits(t *testing.T) {
	most := map[string]any{
		"half": strings.Repeat("a", expr.MaxResult/2), "full": strings.Repeat("a", expr.MaxResult),
		"over": strings.Repeat("a", expr.MaxResult+1), "items": items(expr.MaxItems - 1), "list": items(expr.MaxItems / 2),
	}
	for _, c := range []struct{ name, text, want string }{
		{"an expression of the greatest length", "1" + strings.Repeat(" ", expr.MaxLength-1), ""},
		{"one character more", "1" + strings.Repeat(" ", expr.MaxLength), "at most 4096 characters, this one has 4097"},
		{"a text of the greatest length", "full", ""},
		{"one byte more", "over", "the text grows beyond 262144 bytes"},
		{"two texts of half the length", "[half, half]", ""},
		{"two texts of which one is longer", "[half, full]", "the text grows beyond"},
		{"as many values as a result may hold", "items", ""}, // the list is one, too
		{"one value more", "[items]", "the result has more than 5000 values"},
		{"a list put together of as many items as allowed", "(list + list).size()", ""},
		{"a list with one item more", "(list + list + [1]).size()", "a list grows beyond 5000 items"},
		{"a replacement that would just fit is left to its cost", "half.replace('a', 'bb')", "cost limit exceeded"},
		{"one that grows beyond it is not begun", "full.replace('a', 'bb')", "the text grows beyond"},
		{"in one place of a text that fills the bound", "full.replace('a', 'bb', 1)", "the text grows beyond"},
		{"in no place of it", "full.replace('a', 'bb', 0)", "cost limit exceeded"},
		{"a text in which there is nothing to replace", "full.replace('b', 'cccc')", "cost limit exceeded"},
		{"a text that shrinks", "full.replace('a', '')", ""},
		{"a text that was joined up to the bound", "[half, half].join()", "cost limit exceeded"},
		{"a text joined beyond it by one byte", "[half, half].join('-').size()", "the text grows beyond"},
		{"a list of what is no text", "[1, 2].join('-')", "no matching overload"},
		{"a mixed list", "['a', dyn(2)].join('-')", "join: item 1 is no string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := expr.Value(c.text, most)
			if c.want == "" && err != nil {
				t.Fatal(err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %.40v, %v, want %q", got, err, c.want)
			}
		})
	}
}

func items(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

func TestReplaceTakesAsManyAsItIsToldTo(t *testing.T) {
	for text, want := range map[string]string{
		"'aaa'.replace('a', 'b', 0)":                    "aaa",
		"'aaa'.replace('a', 'b', 1)":                    "baa",
		"'aaa'.replace('a', 'b', 3)":                    "bbb",
		"'aaa'.replace('a', 'b', 9)":                    "bbb",
		"'aaa'.replace('a', 'b', -1)":                   "bbb",
		"'aaa'.replace('a', 'b', -7)":                   "bbb",
		"'aaa'.replace('a', 'b', 9223372036854775807)":  "bbb",
		"'aaa'.replace('a', 'b', -9223372036854775807)": "bbb",
		"['a'].join('-')":                               "a",
		"[].join('-')":                                  "",
		"['', ''].join('-')":                            "-",
	} {
		if got, err := expr.Value(text, nil); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
}

func TestNumbersAreThoseOfJSON(t *testing.T) {
	for text, want := range map[string]any{
		"9223372036854775807":       int64(math.MaxInt64),
		"9223372036854775807u":      int64(math.MaxInt64),
		"9223372036854775808u":      "the number 9223372036854775808 is too large",
		"-9223372036854775808":      int64(math.MinInt64),
		"0.0 / 0.0":                 "gives NaN, which is no number in JSON",
		"-1.0 / 0.0":                "gives -Inf, which is no number in JSON",
		"1.0 / 4.0":                 0.25,
		"{'a': [{'b': 1.0 / 0.0}]}": "gives +Inf, which is no number in JSON",
		"type(1)":                   "which has no JSON form",
	} {
		got, err := expr.Value(text, nil)
		if err != nil {
			if says, ok := want.(string); !ok || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %v", text, err, want)
			}
			continue
		}
		if got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestAStepHoldsAThousandExpressions(t *testing.T) {
	told := func(n int) (got []string) {
		body := map[string]any{"last": "${nobody}", "many": make([]any, n)}
		for i := range n {
			body["many"].([]any)[i] = "${run.n}"
		}
		expr.CheckTemplates(body, []string{"run"}, func(path string, err error) {
			got = append(got, fmt.Sprintf("%s: %.50s", path, err))
		})
		return got
	}
	unknown := `last: "nobody" does not compile: 1: undeclared reference`
	if diff := cmp.Diff([]string{unknown}, told(expr.MaxExpressions-1)); diff != "" {
		t.Errorf("as many as allowed:\n%s", diff)
	}
	many := make([]any, expr.MaxExpressions)
	for i := range many {
		many[i] = "${run.n}"
	}
	many[expr.MaxExpressions-1] = "${nobody}"
	at := ""
	expr.CheckTemplates(many, []string{"run"}, func(path string, _ error) { at = path })
	if at != "[999]" {
		t.Errorf("the last one allowed is checked as well: %q", at)
	}
	want := []string{unknown, "many[999]: is one too many: a step may hold 1000 expressions"}
	if diff := cmp.Diff(want, told(expr.MaxExpressions)); diff != "" {
		t.Errorf("one more:\n%s", diff)
	}
	if diff := cmp.Diff(want, told(expr.MaxExpressions+9)); diff != "" {
		t.Errorf("what is beyond is told once:\n%s", diff)
	}
}

// Each of them alone is within its bound; all together would hold a worker for minutes.
func TestTheExpressionsOfAStepAreBoundedTogether(t *testing.T) {
	fill := func(n int, text string) []any {
		all := make([]any, n)
		for i := range all {
			all[i] = text
		}
		return all
	}
	const dear = "${lists.range(1500).all(a, a >= 0)}"
	if _, err := expr.Expand(fill(3, dear), vars()); err != nil {
		t.Errorf("a few that are dear: %v", err)
	}
	if _, err := expr.Expand(fill(expr.MaxExpressions, "${lists.range(30).all(a, a >= 0)}"), vars()); err != nil {
		t.Errorf("a thousand that cost nearly all that they may: %v", err)
	}
	began := time.Now()
	_, err := expr.Expand(fill(expr.MaxExpressions, dear), vars())
	if err == nil || !strings.Contains(err.Error(), "all expressions of a step together may cost 200000") {
		t.Errorf("a thousand that are dear: %v", err)
	}
	if took := time.Since(began); took > 20*time.Second { // an alarm: it was minutes
		t.Errorf("took %s", took)
	}
	if _, err := expr.Expand(fill(expr.MaxExpressions, "${steps['a'].outputs.code == 200 ? 'ok ' + run.name : 'no'}"), map[string]any{"steps": map[string]any{"a": map[string]any{"outputs": map[string]any{"code": int64(200)}}}, "run": map[string]any{"name": "r"}}); err != nil {
		t.Errorf("a thousand ordinary ones: %v", err)
	}
}

func TestAPathIsToldAsFarAsPeopleReadIt(t *testing.T) {
	where := func(key string) (got string) {
		expr.CheckTemplates(map[string]any{key: map[string]any{"x": "${"}}, nil, func(path string, _ error) { got = path })
		return got
	}
	if want := strings.Repeat("k", 997) + ".x"; where(strings.Repeat("k", 997)) != want {
		t.Errorf("a path of 999 characters is told as %q", where(strings.Repeat("k", 997)))
	}
	if want := strings.Repeat("k", 998) + ".x"; where(strings.Repeat("k", 998)) != want {
		t.Error("a path of a thousand characters is cut")
	}
	if want := strings.Repeat("k", 999); where(strings.Repeat("k", 999)) != want {
		t.Error("a path of more than a thousand characters goes on")
	}
}

func TestOneTextMayGrowAsFarAsItsBound(t *testing.T) {
	vars := map[string]any{"half": strings.Repeat("a", expr.MaxResult/2), "quarter": strings.Repeat("a", expr.MaxExpanded/4)}
	if _, err := expr.Expand("${half}${half}", vars); err != nil {
		t.Errorf("up to its bound: %v", err)
	}
	if _, err := expr.Expand("-${half}${half}", vars); err == nil || !strings.Contains(err.Error(), "the text grows beyond 262144 bytes") {
		t.Errorf("beyond it: %v", err)
	}
	four := []any{"${quarter}", "${quarter}", "${quarter}", "${quarter}"}
	if _, err := expr.Expand(four, vars); err != nil {
		t.Errorf("all properties up to their bound: %v", err)
	}
	if _, err := expr.Expand(append(four, "${'a'}"), vars); err == nil || !strings.Contains(err.Error(), "the properties grow beyond 1048576 bytes") {
		t.Errorf("all properties beyond it: %v", err)
	}
}

func TestAnErrorNamesTheExpressionAndNotTheParsersWords(t *testing.T) {
	for text, want := range map[string]string{
		"run.name": `"run.name" must give bool, gives string`,
		"1 +":      `"1 +" does not compile: 4: Syntax error`,
	} {
		vars := map[string]any{}
		if err := expr.CheckBool(strings.ReplaceAll(text, "run.name", "'a'"), "run"); err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(want, "run.name", "'a'")) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if _, err := expr.Bool("run.name", vars); err == nil {
			t.Error("a root that is not known")
		}
	}
	if err := expr.CheckBool("run.name", "run"); err != nil {
		t.Errorf("what may be true or false when it is there: %v", err)
	}
	if _, err := expr.Bool("run.name", map[string]any{"run": map[string]any{"name": "r"}}); err == nil || err.Error() != "run.name: must give true or false, gives string" {
		t.Errorf("what turns out to be a text: %v", err)
	}
}
