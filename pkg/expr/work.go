package expr

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// What CEL counts only when it is over, or not at all: texts of objects may have a
// megabyte, and a loop may go through one at every turn.
const (
	// maxRead is how many bytes an expression may look at, those of the same text over and
	// over again too (a guess: up to half a second, since some functions look at each
	// letter).
	maxRead = 64 << 20
	// readItem and sortItem are how many bytes an item of a list counts as (guesses from
	// measurements: turning a list around takes 60 ns for each, sorting it some 5 µs).
	readItem = 16
	sortItem = 256
	// maxPattern is how many instructions a regular expression may have (a guess: 40 bytes
	// each, and one of a hundred letters may stand for millions).
	maxPattern = 5_000
	// matchStep is how many steps of a match cost as much as one of CEL's own (a guess from
	// measurements: a step takes 10 to 30 ns, so that MaxCost is a quarter of a second).
	matchStep = 200
)

// reader counts what one evaluation looks at.
type reader struct{ left int }

// decorate has all values that are looked at counted, and the lists that are put together
// bounded.
func (r *reader) decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	i, err := boundLists(i)
	switch one := i.(type) {
	case interpreter.InterpretableAttribute:
		return readAttribute{one, r}, err
	case interpreter.InterpretableCall:
		return readCall{one, r, itemsOf(one)}, err
	}
	return i, err
}

// count ends the evaluation that has looked at too much: as an error, a loop could go on
// after it.
func (r *reader) count(v ref.Val, item int) ref.Val {
	switch v := v.(type) {
	case types.String:
		r.left -= len(v)
	case types.Bytes:
		r.left -= len(v)
	case traits.MutableLister: // what a loop puts together, which is bounded, and looked at by none of its turns
	case traits.Lister:
		r.left -= int(v.Size().(types.Int)) * item
	}
	if r.left < 0 {
		panic(interpreter.EvalCancelledError{Message: fmt.Sprintf("it looks at more than %d MiB of values", maxRead>>20), Cause: interpreter.CostLimitExceeded})
	}
	return v
}

// itemsOf is how many bytes an item of the list counts as that a call makes.
func itemsOf(call interpreter.InterpretableCall) int {
	if strings.Contains(strings.ToLower(call.Function()), "sort") {
		return sortItem
	}
	return readItem
}

type readAttribute struct {
	interpreter.InterpretableAttribute
	reader *reader
}

// Exec is interpreter.InterpretableV2's.
func (r readAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return r.reader.count(r.InterpretableAttribute.Exec(frame), readItem)
}

// Eval is interpreter.Interpretable's.
func (r readAttribute) Eval(vars interpreter.Activation) ref.Val {
	return r.reader.count(r.InterpretableAttribute.Eval(vars), readItem)
}

type readCall struct {
	interpreter.InterpretableCall
	reader *reader
	item   int
}

// Exec is interpreter.InterpretableV2's.
func (r readCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return r.reader.count(r.InterpretableCall.Exec(frame), r.item)
}

// Eval is interpreter.Interpretable's.
func (r readCall) Eval(vars interpreter.Activation) ref.Val {
	return r.reader.count(r.InterpretableCall.Eval(vars), r.item)
}

// searches replaces the functions of CEL whose time grows with the square of what they are
// given.
func searches() []cel.EnvOption {
	s, i, l := cel.StringType, cel.IntType, cel.ListType(cel.TypeParamType("T"))
	return []cel.EnvOption{
		cel.Function(overloads.Matches,
			cel.Overload(overloads.Matches, []*cel.Type{s, s}, cel.BoolType),
			cel.MemberOverload(overloads.MatchesString, []*cel.Type{s, s}, cel.BoolType),
			cel.SingletonBinaryBinding(matches)),
		cel.Function("indexOf",
			cel.MemberOverload("string_index_of_string", []*cel.Type{s, s}, i, cel.FunctionBinding(indexOf)),
			cel.MemberOverload("string_index_of_string_int", []*cel.Type{s, s, i}, i, cel.FunctionBinding(indexOf))),
		cel.Function("lastIndexOf",
			cel.MemberOverload("string_last_index_of_string", []*cel.Type{s, s}, i, cel.FunctionBinding(lastIndexOf)),
			cel.MemberOverload("string_last_index_of_string_int", []*cel.Type{s, s, i}, i, cel.FunctionBinding(lastIndexOf))),
		cel.Function("distinct",
			cel.MemberOverload("list_distinct", []*cel.Type{l}, l, cel.UnaryBinding(distinct))),
	}
}

// searchCosts are what they cost, which is known before they begin.
func searchCosts() cel.ProgramOption {
	cost := func(args []ref.Val, _ ref.Val) *uint64 {
		_, steps, err := pattern(text(args[0]), text(args[1]))
		if err != nil {
			steps = 0
		}
		return new(uint64(1 + steps/matchStep))
	}
	return cel.CostTrackerOptions(interpreter.OverloadCostTracker(overloads.Matches, cost), interpreter.OverloadCostTracker(overloads.MatchesString, cost))
}

func matches(s, p ref.Val) ref.Val {
	re, steps, err := pattern(text(s), text(p))
	switch {
	case err != nil:
		return types.WrapErr(err)
	case steps/matchStep > MaxCost:
		return types.NewErr("matches: a text of %d bytes is too long for this pattern: cut it, or write a simpler one", len(text(s)))
	}
	found, err := regexp.MatchString(re, text(s))
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(found)
}

// CompilePattern compiles a regular expression that somebody wrote in a document. Few
// letters may stand for millions of instructions, which are memory: such a one is refused.
func CompilePattern(p string) (*regexp.Regexp, error) {
	if _, _, err := pattern("", p); err != nil {
		return nil, err
	}
	return regexp.Compile(p)
}

// pattern is a regular expression that may be compiled, and how many steps it takes at most
// to look through a text.
func pattern(s, p string) (re string, steps int, err error) {
	if len(p) > MaxLength {
		return "", 0, fmt.Errorf("a pattern may have at most %d characters, this one has %d", MaxLength, len(p))
	}
	tree, err := syntax.Parse(p, syntax.Perl)
	if err != nil {
		return "", 0, err
	}
	size := instructions(tree)
	if size > maxPattern {
		return "", 0, fmt.Errorf("the pattern %.60q stands for more than %d instructions: repeat less of it", p, maxPattern)
	}
	return p, (len(s) + 1) * size, nil
}

// instructions is about how many a pattern has, with what it repeats.
func instructions(re *syntax.Regexp) int {
	sum := 1 + len(re.Rune)/2
	for _, sub := range re.Sub {
		sum = min(sum+instructions(sub), maxPattern+1)
	}
	if re.Op == syntax.OpRepeat {
		sum *= max(re.Min, re.Max, 1)
	}
	return min(sum, maxPattern+1)
}

// indexOf is where a text stands first in another from an offset on, in letters; -1 if
// nowhere. It is what ext.Strings has it be, but for its time.
func indexOf(args ...ref.Val) ref.Val {
	s, sub, offset := text(args[0]), text(args[1]), int64(0)
	if len(args) > 2 {
		offset = int64(args[2].(types.Int))
	}
	length := int64(utf8.RuneCountInString(s))
	switch {
	case offset < 0:
		return types.NewErr("index out of range: %d", offset)
	case sub == "":
		return types.Int(min(offset, length))
	case offset >= length:
		return types.Int(-1)
	}
	from := bytesOf(s, offset)
	at := strings.Index(s[from:], sub)
	if at < 0 {
		return types.Int(-1)
	}
	return types.Int(offset + int64(utf8.RuneCountInString(s[from:from+at])))
}

// lastIndexOf is where a text stands last in another, no later than at an offset.
func lastIndexOf(args ...ref.Val) ref.Val {
	s, sub := text(args[0]), text(args[1])
	length, wanted := int64(utf8.RuneCountInString(s)), int64(utf8.RuneCountInString(sub))
	offset := max(length-1, 0)
	if len(args) > 2 {
		offset = int64(args[2].(types.Int))
	}
	switch {
	case offset < 0:
		return types.NewErr("index out of range: %d", offset)
	case sub == "" && len(args) == 2:
		return types.Int(length)
	case sub == "":
		return types.Int(min(offset, length))
	case offset >= length, wanted > length:
		return types.Int(-1)
	}
	at := strings.LastIndex(s[:bytesOf(s, min(offset, length-wanted)+wanted)], sub)
	if at < 0 {
		return types.Int(-1)
	}
	return types.Int(utf8.RuneCountInString(s[:at]))
}

// bytesOf is how many bytes so many letters of a text have.
func bytesOf(s string, letters int64) int {
	for at := range s {
		if letters == 0 {
			return at
		}
		letters--
	}
	return len(s)
}

// distinct are the different items of a list. CEL compares each with each, and counts that
// as what it is, but afterwards.
func distinct(v ref.Val) ref.Val {
	list := v.(traits.Lister)
	n := int64(list.Size().(types.Int))
	if n*n > MaxCost {
		return types.NewErr("distinct: a list of %d items costs too much: it compares each with each", n)
	}
	var out []ref.Val
	for i := range n {
		one, known := list.Get(types.Int(i)), false
		for _, other := range out {
			known = known || one.Equal(other) == types.True
		}
		if !known {
			out = append(out, one)
		}
	}
	return types.DefaultTypeAdapter.NativeToValue(out)
}
