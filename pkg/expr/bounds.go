package expr

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// bounds replaces the functions of CEL that can make gigabytes in one call: the
// cost of a call is counted when it is over, which is too late for those.
func bounds() []cel.EnvOption {
	s, i, l := cel.StringType, cel.IntType, cel.ListType(cel.StringType)
	return []cel.EnvOption{
		cel.Function("replace",
			cel.MemberOverload("string_replace_string_string", []*cel.Type{s, s, s}, s, cel.FunctionBinding(replace)),
			cel.MemberOverload("string_replace_string_string_int", []*cel.Type{s, s, s, i}, s, cel.FunctionBinding(replace))),
		cel.Function("join",
			cel.MemberOverload("list_join", []*cel.Type{l}, s, cel.FunctionBinding(join)),
			cel.MemberOverload("list_join_string", []*cel.Type{l, s}, s, cel.FunctionBinding(join))),
		cel.Function("format",
			cel.MemberOverload("string_format", []*cel.Type{s, cel.ListType(cel.DynType)}, s, cel.FunctionBinding(noFormat))),
	}
}

var errTooLong = fmt.Errorf("the text grows beyond %d bytes", MaxResult) //nolint:gochecknoglobals // a sentinel

func replace(args ...ref.Val) ref.Val {
	s, old, fresh := text(args[0]), text(args[1]), text(args[2])
	limit := -1
	if len(args) > 3 {
		limit = int(min(max(int64(args[3].(types.Int)), -1), math.MaxInt32))
	}
	n := strings.Count(s, old)
	if limit >= 0 {
		n = min(n, limit)
	}
	if len(s)+n*(len(fresh)-len(old)) > MaxResult {
		return types.WrapErr(errTooLong)
	}
	return types.String(strings.Replace(s, old, fresh, limit))
}

func join(args ...ref.Val) ref.Val {
	list, between := args[0].(traits.Lister), ""
	if len(args) > 1 {
		between = text(args[1])
	}
	var b strings.Builder
	for i := range int64(list.Size().(types.Int)) {
		item, ok := list.Get(types.Int(i)).(types.String)
		if !ok {
			return types.NewErr("join: item %d is no string", i)
		}
		if i > 0 {
			b.WriteString(between)
		}
		b.WriteString(string(item))
		if b.Len() > MaxResult {
			return types.WrapErr(errTooLong)
		}
	}
	return types.String(b.String())
}

func noFormat(...ref.Val) ref.Val {
	return types.WrapErr(errors.New("format is not available: write the text with a ${…} for each value"))
}

func text(v ref.Val) string {
	s, _ := v.(types.String)
	return string(s)
}

// boundLists refuses lists that are too long where they are put together. CEL
// adds two lists without copying, so that forty doublings cost nothing until
// somebody looks for an item.
func boundLists(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if call, ok := i.(interpreter.InterpretableCall); ok && call.Function() == operators.Add {
		return boundedAdd{call}, nil
	}
	return i, nil
}

type boundedAdd struct{ interpreter.InterpretableCall }

// Exec is interpreter.InterpretableV2's.
func (b boundedAdd) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return boundList(b.InterpretableCall.Exec(frame))
}

// Eval is interpreter.Interpretable's.
func (b boundedAdd) Eval(vars interpreter.Activation) ref.Val {
	return boundList(b.InterpretableCall.Eval(vars))
}

func boundList(v ref.Val) ref.Val {
	if list, ok := v.(traits.Lister); ok && list.Size().(types.Int) > MaxItems {
		return types.NewErr("a list grows beyond %d items", MaxItems)
	}
	return v
}
