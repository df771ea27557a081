package expr

import (
	"encoding/base64"
	"fmt"
	"math"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// toJSON is a result as a JSON value. Lists in CEL may hold the same list many
// times over, so what is written out is counted.
func toJSON(expression string, v ref.Val) (any, error) {
	w := writer{items: MaxItems, bytes: MaxResult}
	out, err := w.value(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expression, err)
	}
	return out, nil
}

type writer struct{ items, bytes int }

func (w *writer) value(v ref.Val) (any, error) {
	if w.items--; w.items < 0 {
		return nil, fmt.Errorf("the result has more than %d values", MaxItems)
	}
	switch v := v.(type) {
	case types.Null:
		return nil, nil //nolint:nilnil // null is a value
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		if v > math.MaxInt64 {
			return nil, fmt.Errorf("the number %d is too large", uint64(v))
		}
		return int64(v), nil
	case types.Double:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("gives %v, which is no number in JSON", float64(v))
		}
		return float64(v), nil
	case types.String:
		return w.text(string(v))
	case types.Bytes:
		return w.text(base64.StdEncoding.EncodeToString(v))
	case types.Timestamp, types.Duration:
		s, ok := v.ConvertToType(types.StringType).(types.String)
		if !ok {
			return nil, fmt.Errorf("gives a %s that has no text", v.Type().TypeName())
		}
		return w.text(string(s))
	case traits.Mapper:
		return w.object(v)
	case traits.Lister:
		return w.list(v)
	}
	return nil, fmt.Errorf("gives %s, which has no JSON form", v.Type().TypeName())
}

func (w *writer) text(s string) (any, error) {
	if w.bytes -= len(s); w.bytes < 0 {
		return nil, errTooLong
	}
	return s, nil
}

func (w *writer) list(l traits.Lister) (any, error) {
	out := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		item, err := w.value(it.Next())
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

func (w *writer) object(m traits.Mapper) (any, error) {
	out := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.ConvertToType(types.StringType).(types.String)
		if !ok {
			return nil, fmt.Errorf("gives a map with a key of type %s, which JSON has not", key.Type().TypeName())
		}
		if _, err := w.text(string(name)); err != nil {
			return nil, err
		}
		item, err := w.value(m.Get(key))
		if err != nil {
			return nil, err
		}
		out[string(name)] = item
	}
	return out, nil
}
