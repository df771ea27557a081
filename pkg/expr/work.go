package expr

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// CEL counts the cost of a call when it is over, or not at all, and its count takes time with the square
// of the turns of a loop. So it is counted here: each value that is looked up and each call is a step,
// and what they look at is paid for before, or as, they look at it. Texts of objects may have a megabyte,
// and a loop may go through one at every turn.
const (
	// maxRead is how many bytes an expression may look at, those of the same text over and over again too
	// (a guess: 10 to 100 ms, since some functions look at each letter).
	maxRead = 64 << 20
	// readStep is how many bytes that are looked at cost as much as a step.
	readStep = maxRead / MaxCost
	// makeStep is how many bytes of a new text cost as much as a step.
	makeStep = 5
	// readItem and sortItem are how many bytes an item of a list counts as that is read, or sorted, and
	// compareItem and mapItem a value and an entry of a map that are compared (guesses from measurements:
	// they take 20 ns, 1 µs, 50 ns and 0.4 µs).
	readItem    = 16
	sortItem    = 1024
	compareItem = 64
	mapItem     = 512
	// zoneSteps are what it costs to look a time zone up (a guess: one that there is not takes 30 µs).
	zoneSteps = 200
	// maxPattern is how many instructions a regular expression may have (a guess: 40 bytes
	// each, and one of a hundred letters may stand for millions).
	maxPattern = 5_000
	// maxKept is how many instructions the patterns have that are kept compiled (a guess: 400 KB).
	maxKept = 2 * maxPattern
	// matchStep is how many steps of a match cost as much as a step (a guess from
	// measurements: one takes 5 to 10 ns, so that MaxCost takes 50 to 100 ms where a text is long).
	matchStep = 200
)

// work is what one evaluation may still do, in bytes that are looked at.
type work struct {
	left, limit int
	patterns    patterns // a loop matches the same ones at every turn
}

// newWork is as much as some steps.
func newWork(steps uint64) *work {
	limit := int(min(steps, MaxCost)) * readStep //nolint:gosec // at most MaxCost
	return &work{left: limit, limit: limit}
}

// cost is what was done so far, in steps.
func (w *work) cost() uint64 {
	return uint64(w.limit-w.left+readStep-1) / readStep //nolint:gosec // never negative
}

// decorate has all values that are looked at and all calls counted, and the lists that are put together
// bounded.
func (w *work) decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	i, err := boundLists(i)
	switch one := i.(type) {
	case interpreter.InterpretableAttribute:
		return countedAttribute{one, w}, err
	case interpreter.InterpretableCall:
		return countedCall{one, w, stepsOf(one), itemsOf(one), w.paidFirst(one)}, err
	}
	return i, err
}

// spend ends the evaluation that costs too much: as an error, a loop could go on after it.
func (w *work) spend(bytes int, why string) {
	if w.left -= bytes; w.left < 0 {
		panic(interpreter.EvalCancelledError{Message: why, Cause: interpreter.CostLimitExceeded})
	}
}

// Why an evaluation ends that costs too much.
const tooDear = "cost limit exceeded: it takes too many steps"

var readsTooMuch = fmt.Sprintf("cost limit exceeded: it looks at more than %d MiB of values", maxRead>>20) //nolint:gochecknoglobals // a text

// step counts a step.
func (w *work) step(n int) { w.spend(n*readStep, tooDear) }

// read counts a value that is looked at, in bytes for an item of a list.
func (w *work) read(v ref.Val, item int) ref.Val {
	switch v := v.(type) {
	case types.String:
		w.spend(len(v), readsTooMuch)
	case types.Bytes:
		w.spend(len(v), readsTooMuch)
	case traits.MutableLister: // what a loop puts together, which is bounded, and looked at by none of its turns
	case traits.Lister:
		w.spend(int(v.Size().(types.Int))*item, readsTooMuch)
	}
	return v
}

// made counts what a call has made.
func (w *work) made(v ref.Val, item int) ref.Val {
	switch v := v.(type) {
	case types.String:
		w.step(len(v) / makeStep)
	case types.Bytes:
		w.step(len(v) / makeStep)
	}
	return w.read(v, item)
}

// compare counts all that a value holds, so many times over: what compares it looks at each of its parts.
func (w *work) compare(v any, times int) {
	w.spend(compareItem*times, readsTooMuch)
	switch v := v.(type) {
	case types.String:
		w.spend(len(v)*times, readsTooMuch)
	case types.Bytes:
		w.spend(len(v)*times, readsTooMuch)
	case string:
		w.spend(len(v)*times, readsTooMuch)
	case map[string]any:
		for key, one := range v {
			w.spend((mapItem+len(key))*times, readsTooMuch)
			w.compare(one, times)
		}
	case []any:
		for _, one := range v {
			w.compare(one, times)
		}
	case traits.Mapper:
		if whole, is := v.Value().(map[string]any); is {
			w.compare(whole, times)
			return
		}
		for i := v.Iterator(); i.HasNext() == types.True; {
			key := i.Next()
			w.spend(mapItem*times, readsTooMuch)
			w.compare(key, times)
			w.compare(v.Get(key), times)
		}
	case traits.Lister:
		if whole, is := v.Value().([]any); is {
			w.compare(whole, times)
			return
		}
		for i := range int64(v.Size().(types.Int)) {
			w.compare(v.Get(types.Int(i)), times)
		}
	case *types.Optional:
		if v.HasValue() {
			w.compare(v.GetValue(), times)
		}
	}
}

// paidCall makes a call in place of CEL, once what it costs is paid. It returns nil for arguments of
// other types than it takes: CEL says what is wrong with those.
type paidCall func(args []ref.Val) ref.Val

// paidFirst makes the calls that are paid for before they are made; nil: the others are paid for by what
// they have made.
func (w *work) paidFirst(call interpreter.InterpretableCall) paidCall {
	switch call.Function() {
	case operators.Equals:
		return func(args []ref.Val) ref.Val { return w.equal(args[0], args[1]) }
	case operators.NotEquals:
		return func(args []ref.Val) ref.Val { return types.Bool(w.equal(args[0], args[1]) != types.True) }
	case operators.In:
		return func(args []ref.Val) ref.Val { return w.contains(args[1], args[0]) }
	case overloads.Matches:
		return func(args []ref.Val) ref.Val { return w.matches(args[0], args[1]) }
	case "distinct":
		return func(args []ref.Val) ref.Val { return w.distinct(args[0]) }
	}
	return nil
}

// equal is whether two values are equal.
func (w *work) equal(a, b ref.Val) ref.Val {
	w.compare(a, 1)
	w.compare(b, 1)
	return types.Equal(a, b)
}

// contains is whether a list holds a value, or a map a key, which is found at once.
func (w *work) contains(in, v ref.Val) ref.Val {
	container, is := in.(traits.Container)
	if !is {
		return nil
	}
	if list, is := in.(traits.Lister); is {
		w.compare(list, 1)
	}
	return container.Contains(v)
}

// distinct are the different items of a list. Each is compared with each.
func (w *work) distinct(v ref.Val) ref.Val {
	list, is := v.(traits.Lister)
	if !is {
		return nil
	}
	w.compare(list, int(list.Size().(types.Int)))
	return distinct(list)
}

// compiledPattern is a regular expression that was compiled, and how many instructions it has.
type compiledPattern struct {
	*regexp.Regexp
	size int
}

// patterns are regular expressions by their texts, of so many instructions in all.
type patterns struct {
	compiled map[string]compiledPattern
	size     int
}

// keep keeps one more. Those before it are forgotten where all together would be too large.
func (k *patterns) keep(text string, one compiledPattern) {
	if k.compiled == nil || k.size+one.size > maxKept {
		k.compiled, k.size = map[string]compiledPattern{}, 0
	}
	k.compiled[text], k.size = one, k.size+one.size
}

// matches is whether a text matches a regular expression.
func (w *work) matches(s, p ref.Val) ref.Val {
	if s.Type() != types.StringType || p.Type() != types.StringType {
		return nil
	}
	one, known := w.patterns.compiled[text(p)]
	if !known {
		size, err := patternSize(text(p))
		if err != nil {
			return types.WrapErr(err)
		}
		one.size = size
	}
	w.step(1 + (len(text(s))+1)*one.size/matchStep)
	if !known {
		var err error
		if one.Regexp, err = regexp.Compile(text(p)); err != nil {
			return types.WrapErr(err)
		}
		w.patterns.keep(text(p), one)
	}
	return types.Bool(one.MatchString(text(s)))
}

type countedAttribute struct {
	interpreter.InterpretableAttribute
	work *work
}

// Exec is interpreter.InterpretableV2's.
func (c countedAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	c.work.step(1)
	return c.work.read(c.InterpretableAttribute.Exec(frame), readItem)
}

// Eval is interpreter.Interpretable's.
func (c countedAttribute) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

type countedCall struct {
	interpreter.InterpretableCall
	work        *work
	steps, item int
	paidFirst   paidCall
}

// Exec is interpreter.InterpretableV2's.
func (c countedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	c.work.step(c.steps)
	if c.paidFirst != nil {
		args := make([]ref.Val, len(c.Args()))
		for i, arg := range c.Args() {
			if args[i] = arg.Exec(frame); types.IsUnknownOrError(args[i]) {
				return args[i]
			}
		}
		if v := c.paidFirst(args); v != nil {
			return c.work.made(v, c.item)
		}
	}
	return c.work.made(c.InterpretableCall.Exec(frame), c.item)
}

// Eval is interpreter.Interpretable's.
func (c countedCall) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// stepsOf is how many steps a call is.
func stepsOf(call interpreter.InterpretableCall) int {
	if strings.HasPrefix(call.Function(), "get") && len(call.Args()) > 1 { // getHours('Europe/Berlin')
		return zoneSteps
	}
	return 1
}

// itemsOf is how many bytes an item of the list counts as that a call makes.
func itemsOf(call interpreter.InterpretableCall) int {
	if strings.Contains(strings.ToLower(call.Function()), "sort") {
		return sortItem
	}
	return readItem
}

// searches replaces the functions of CEL whose time grows with the square of what they are
// given.
func searches() []cel.EnvOption {
	s, i, l := cel.StringType, cel.IntType, cel.ListType(cel.TypeParamType("T"))
	return []cel.EnvOption{
		cel.Function(overloads.Matches,
			cel.Overload(overloads.Matches, []*cel.Type{s, s}, cel.BoolType),
			cel.MemberOverload(overloads.MatchesString, []*cel.Type{s, s}, cel.BoolType),
			cel.SingletonBinaryBinding(func(s, p ref.Val) ref.Val { return newWork(MaxCost).matches(s, p) })),
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

// CompilePattern compiles a regular expression that somebody wrote in a document. Few
// letters may stand for millions of instructions, which are memory: such a one is refused.
func CompilePattern(p string) (*regexp.Regexp, error) {
	if _, err := patternSize(p); err != nil {
		return nil, err
	}
	return regexp.Compile(p)
}

// patternSize is how many instructions a regular expression has that may be compiled: for each letter of
// a text it takes at most so many steps.
func patternSize(p string) (int, error) {
	if len(p) > MaxLength {
		return 0, fmt.Errorf("a pattern may have at most %d characters, this one has %d", MaxLength, len(p))
	}
	tree, err := syntax.Parse(p, syntax.Perl)
	if err != nil {
		return 0, err
	}
	size := instructions(tree)
	if size > maxPattern {
		return 0, fmt.Errorf("the pattern %.60q stands for more than %d instructions: repeat less of it", p, maxPattern)
	}
	return size, nil
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

func distinct(v ref.Val) ref.Val {
	list := v.(traits.Lister)
	n := int64(list.Size().(types.Int))
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
