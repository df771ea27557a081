// Package stream prints for scripts what changes: values that are new or have changed, and which are
// gone.
package stream

import (
	"cmp"
	"io"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
)

// Key names a value.
type Key struct{ Kind, Namespace, Name string }

func compare(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Unread is what could not be read of the values.
type Unread struct {
	Why []any            // what is missing, and why, as text
	Has func(k Key) bool // says whether a value that is not there may only not have been read; nil: none
}

// NewUnread is what could not be read for some reasons; those that are nil are none.
func NewUnread(has func(k Key) bool, why ...error) Unread {
	u := Unread{Has: has}
	for _, err := range why {
		if err != nil {
			u.Why = append(u.Why, err.Error())
		}
	}
	return u
}

// Changes prints what has changed of values that are read again and again.
type Changes struct {
	out  *print.Values
	last map[Key]printed
}

// printed is a value as it was printed last.
type printed struct {
	value  print.Value
	object map[string]any // without what counts down
}

// New prints as -o says.
func New(out *print.Values) *Changes { return &Changes{out: out, last: map[Key]printed{}} }

// Print prints those items that have changed since the last call, other than by what counts down,
// each as Emit does; then what is not among them any more, with its metadata and "gone". What
// could not be read now is not gone.
func (c *Changes) Print(w io.Writer, items []print.Value, unread Unread) error {
	there := map[Key]bool{}
	for _, v := range items {
		u, err := v.Object()
		if err != nil {
			return err
		}
		for _, counts := range [][]string{{"permission", "nextChangeETA"}, {"permission", "permissiveRemaining"}, {"slept"}} {
			unstructured.RemoveNestedField(u.Object, counts...)
		}
		key := Key{Kind: v.Kind, Namespace: u.GetNamespace(), Name: v.Name}
		there[key] = true
		if reflect.DeepEqual(c.last[key].object, u.Object) {
			continue
		}
		c.last[key] = printed{v, u.Object}
		if err := c.out.Emit(w, v); err != nil {
			return err
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.last), compare) {
		if there[key] || unread.Has != nil && unread.Has(key) {
			continue
		}
		was := c.last[key]
		delete(c.last, key)
		if err := c.out.Emit(w, gone(was)); err != nil {
			return err
		}
	}
	return nil
}

// gone is the last value of an object: which it was, and that it is gone.
func gone(was printed) print.Value {
	return print.Value{Kind: was.value.Kind, Name: was.value.Name, Body: map[string]any{"metadata": was.object["metadata"], "gone": true}}
}
