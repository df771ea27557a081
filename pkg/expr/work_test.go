package expr_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

// What an expression may look at may have a megabyte, and nothing cuts it short.
func TestNoExpressionTakesLong(t *testing.T) {
	const n = 100_000
	objects, texts := make([]any, n), make([]any, n)
	for i := range objects {
		objects[i], texts[i] = map[string]any{"a": int64(i)}, "aaaa"
	}
	vars := map[string]any{"target": map[string]any{
		"text": strings.Repeat("a", 1_000_000), "half": strings.Repeat("a", 500_000) + "b", "objects": objects, "texts": texts,
		"pattern": strings.Repeat("(a|b)", 100_000),
	}}
	for _, text := range []string{
		"target.text.matches('(a|a|a|a|a){500}b')",
		"target.text.matches('a{1000}.*b')",
		"target.texts.exists(x, target.half.matches('^a{50}b'))",
		"target.texts.exists(x, 'aaaaaaaaaaaaaaaa'.matches('(a|a){900}b'))",
		"'a'.matches(target.pattern)",
		"'a'.matches('((a{1000}){1000}){1000}')",
		"'a'.matches('" + strings.Repeat("(abcde){900}", 100) + "')",
		"target.texts.exists(x, target.text.indexOf(target.half) > 0)",
		"target.texts.exists(x, int(target.text) == 1)",
		"target.texts.exists(x, timestamp(target.text) == null)",
		"target.texts.exists(x, string(target.text) == '')",
		"target.texts.exists(x, bytes(target.text) == b'')",
		"target.texts.exists(x, target.text.reverse() == '')",
		"target.texts.exists(x, target.text.size() == 1)",
		"target.texts.all(x, target.text.charAt(999999) == 'a')",
		"target.objects.distinct().size()",
		"target.texts.distinct().size()",
		"target.texts.exists(x, target.texts.sort().size() == 1)",
		"target.texts.exists(x, target.objects.reverse().size() == 1)",
		"target.objects.all(x, target.objects == target.objects)",
		"target.texts.exists(x, x in target.objects)",
		"target.texts.exists(x, target.objects.sortBy(y, y.a).size() == 1)",
	} {
		began := time.Now()
		if _, err := expr.Value(text, vars); err == nil {
			t.Errorf("%.60s: it is evaluated", text)
		}
		if took := time.Since(began); took > 5*time.Second { // far more than it takes on a busy machine, far less than it took
			t.Errorf("%.60s took %s", text, took)
		}
	}
}

func TestASearchThatIsTooMuchSaysSo(t *testing.T) {
	const most = 64 << 20 / expr.MaxCost * (expr.MaxCost - 3) // but for the steps to look it up, to ask its size, and to compare that
	longer := strings.Repeat("a", most+1)
	deep := map[string]any{}
	for i := range 1000 {
		deep[strconv.Itoa(i)] = map[string]any{"value": []any{int64(i), strings.Repeat("a", 100)}}
	}
	vars := map[string]any{"text": strings.Repeat("a", 300_000), "pattern": strings.Repeat("(a|b)", 1000), "list": make([]any, 1100), "most": longer[1:], "longer": longer, "object": deep, "time": time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	for text, want := range map[string]string{
		"text.matches('(a|a){900}b')":                                  "cost limit exceeded",
		"text.matches('^a')":                                           "",
		"'a'.matches(pattern)":                                         "a pattern may have at most 4096 characters, this one has 5000",
		"'a'.matches('" + strings.Repeat("(abcde){900}", 9) + "')":     "stands for more than 5000 instructions",
		"list.distinct().size()":                                       "cost limit exceeded",
		"list.slice(0, 900).distinct().size() == 1":                    "",
		"object == object":                                             "",
		"list.exists(x, object != object)":                             "it looks at more than 64 MiB of values",
		"list.exists(x, {} in [object])":                               "it looks at more than 64 MiB of values",
		"list.exists(x, [object, object].distinct().size() == 3)":      "it looks at more than 64 MiB of values",
		"list.exists(x, optional.of(object) != optional.of({}))":       "",
		"list.exists(x, optional.of(object) != optional.of(object))":   "it looks at more than 64 MiB of values",
		"list.exists(x, time.getHours('Nowhere/Land') == 1)":           "it takes too many steps",
		"[1, 1]" + strings.Repeat(".distinct()", 100) + ".size() == 1": "", // each is made once
		"'a' in {'a': 1} && [1].all(x, x in [1, 2])":                   "",
		"time.getHours('Europe/Berlin') == 13":                         "",
		"text.indexOf('b') + 0":                                        "",
		"list.all(x, text.size() > 0)":                                 "it looks at more than 64 MiB of values",
		"most.size() > 0":                                              "",
		"longer.size() > 0":                                            "it looks at more than 64 MiB of values",
	} {
		_, err := expr.Value(text, vars)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
}

func TestWhichPatternsAreCompiled(t *testing.T) {
	const instructions = "a{1000}b{1000}c{499}d" // two for each letter that is repeated, one for the last, and one for all
	for name, c := range map[string]struct{ pattern, want string }{
		"as many letters as it may have":           {strings.Repeat("a", expr.MaxLength), ""},
		"one letter more":                          {strings.Repeat("a", expr.MaxLength+1), "a pattern may have at most 4096 characters, this one has 4097"},
		"as many instructions as it may have":      {instructions, ""},
		"one instruction more":                     {instructions + "d", "stands for more than 5000 instructions"},
		"an instruction more, by what is repeated": {"a{1000}b{1000}c{500}", "stands for more than 5000 instructions"},
		"no regular expression":                    {"(", "missing closing )"},
	} {
		re, err := expr.CompilePattern(c.pattern)
		if c.want == "" && (err != nil || re.String() != c.pattern) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Ours are to find what CEL's own find.
func TestSearchesFindWhatTheyAreToFind(t *testing.T) {
	for text, want := range map[string]any{
		"'hello'.indexOf('')": int64(0), "'hello'.indexOf('l')": int64(2), "'hello'.indexOf('l', 3)": int64(3), "'hello'.indexOf('x')": int64(-1),
		"'hello'.indexOf('', 9)": int64(5), "'hello'.indexOf('', 2)": int64(2), "'hello'.indexOf('o', 9)": int64(-1), "'hello'.indexOf('hellohello')": int64(-1),
		"'äöü€x'.indexOf('x')": int64(4), "'äöüäöü'.indexOf('ö', 2)": int64(4), "''.indexOf('a')": int64(-1), "''.indexOf('')": int64(0),
		"'hello'.lastIndexOf('')": int64(5), "'hello'.lastIndexOf('l')": int64(3), "'hello'.lastIndexOf('l', 2)": int64(2), "'hello'.lastIndexOf('x')": int64(-1),
		"'hello'.lastIndexOf('', 9)": int64(5), "'hello'.lastIndexOf('', 2)": int64(2), "'hello'.lastIndexOf('o', 9)": int64(-1), "'hello'.lastIndexOf('o', 4)": int64(4),
		"'hello'.lastIndexOf('o', 5)": int64(-1), "'hello'.lastIndexOf('hello')": int64(0), "'hello'.lastIndexOf('h')": int64(0), "'hello'.indexOf('o', 5)": int64(-1),
		"'hello'.lastIndexOf('lo', 3)": int64(3), "'hello'.lastIndexOf('lo', 2)": int64(-1), "'hello'.lastIndexOf('hellohello')": int64(-1),
		"'äöüäöü'.lastIndexOf('ö')": int64(4), "'äöüäöü'.lastIndexOf('öü', 3)": int64(1), "''.lastIndexOf('a')": int64(-1), "''.lastIndexOf('')": int64(0),
		"[1, 2, 2, 3, 3, 3].distinct() == [1, 2, 3]": true, "['b', 'b', 'c', 'a', 'c'].distinct() == ['b', 'c', 'a']": true, "[].distinct().size()": int64(0),
		"[{'a': 1}, {'a': 1}].distinct().size()": int64(1), "'123-456'.matches('^[0-9]+(-[0-9]+)?$')": true, "matches('hello', '^h.*o$')": true, "'a'.matches('b')": false,
	} {
		if got, err := expr.Value(text, nil); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"'a'.indexOf('a', -1)": "index out of range: -1", "'a'.lastIndexOf('a', -1)": "index out of range: -1", "'a'.matches('(')": "missing closing )",
	} {
		if _, err := expr.Value(text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// BenchmarkDearest takes the dearest expressions to their bound.
func BenchmarkDearest(b *testing.B) {
	texts := make([]any, 5000)
	for i := range texts {
		texts[i] = "aaaa"
	}
	object := map[string]any{}
	for i := range 1000 {
		object[strconv.Itoa(i)] = int64(i)
	}
	vars := map[string]any{"texts": texts, "text": strings.Repeat("a", 100_000), "object": object, "long": strings.Repeat("a", 10_000), "time": time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	for name, text := range map[string]string{
		"loops":   "lists.range(5000).all(a, lists.range(5000).all(b, a + b >= 0))",
		"map":     "lists.range(5000).map(a, texts.filter(b, b == 'x').size()).size() > 0",
		"matches": "texts.exists(x, 'aaaaaaaaaaaaaaaaaaaa'.matches('(a|a){200}b'))",
		"long":    "texts.exists(x, text.matches('^(a|b)*c'))",
		"equal":   "texts.exists(x, object != object)",
		"letters": "texts.exists(x, long.upperAscii() == '')",
		"sort":    "texts.exists(x, texts.sort().size() == 1)",
		"zones":   "texts.exists(x, time.getHours('Nowhere/Land') == 1)",
		"new":     "texts.exists(x, (x + x + x + x) == '')",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := expr.Value(text, vars); err == nil {
					b.Fatal("it does not meet its bound")
				}
			}
		})
	}
}
