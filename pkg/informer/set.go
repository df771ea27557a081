package informer

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// Key tells the watches of a Set apart: who asks for the same joins the same.
type Key struct {
	As        types.NamespacedName // the account that looks; watches are counted by its namespace
	Resource  schema.GroupVersionResource
	Namespace string // empty: all, or of the cluster
	Labels    string // selectors, as a list's options take them; empty picks all
	Fields    string
	Variant   string // tells those apart that ask alike and keep different parts of objects
}

// String is what is watched, as RBAC says it.
func (k Key) String() string {
	s := k.Resource.GroupResource().String()
	if k.Namespace != "" {
		s += " in namespace " + k.Namespace
	}
	return s
}

func (k Key) options() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: k.Labels, FieldSelector: k.Fields}
}

// Objects lists and watches whole objects.
func (k Key) Objects(c dynamic.Interface) *ListWatch {
	return ForMany(&unstructured.Unstructured{}, c.Resource(k.Resource).Namespace(k.Namespace), k.options(), nil)
}

// Metadata lists and watches no more than the metadata of objects.
func (k Key) Metadata(c metadata.Interface) *ListWatch {
	return ForMany(&metav1.PartialObjectMetadata{}, c.Resource(k.Resource).Namespace(k.Namespace), k.options(), nil)
}

// Bound is how many watches may be open for the accounts of one namespace.
type Bound struct {
	Max    int    // 0: as many as are asked for
	Of     string // whose watches they are, and what helps who has too many: for messages
	Advice string
}

// FullError says that a namespace has as many watches open as it may.
type FullError struct {
	Namespace string
	Bound
}

// Error is error's.
func (e *FullError) Error() string {
	return fmt.Sprintf("namespace %s has %d watches of %s open, as many as one may: %s", e.Namespace, e.Max, e.Of, e.Advice)
}

// Set holds watches of kinds that users choose, as the accounts that they choose. Members
// that ask for the same share one watch; it is opened for the first and ends with the last.
type Set struct {
	bound Bound

	mu      sync.Mutex
	open    map[Key]*sharedWatch
	counted map[string]int // by the namespace of the account
}

// NewSet has nothing open.
func NewSet(bound Bound) *Set {
	return &Set{bound: bound, open: map[Key]*sharedWatch{}, counted: map[string]int{}}
}

// Member hears of a watch. No lock of the Set is held meanwhile: it may join and leave.
type Member struct {
	// Name is that of the only objects that it hears of; empty: all.
	Name string
	// Changed hears of an object that came, changed or went, as it is kept. Where nothing
	// is kept it hears, with nil, that something may have changed.
	Changed func(o any, gone bool)
	// Established hears that the account was refused, that it no longer is, and that all that
	// was there at first has been told. Nil: it does not matter.
	Established func()
}

// Use is one member's part in a watch.
type Use struct {
	// Late says that the watch was open when it joined: of what was told before it has
	// heard nothing.
	Late   bool
	set    *Set
	watch  *sharedWatch
	member Member
}

// Join has a member hear of what a key names, until it leaves. The watch is opened from the
// source if it is not open yet, and then ends with ctx at the latest. What cannot be opened
// is an error, and one of *FullError where the namespace has too many.
func (s *Set) Join(ctx context.Context, k Key, source Source, m Member) (*Use, error) {
	u, err := s.join(ctx, k, source, m)
	if err == nil && u.Late && u.watch.keepsNothing() && u.Synced() {
		m.Changed(nil, false) // what happened since it looked was told to others alone
	}
	return u, err
}

func (s *Set) join(ctx context.Context, k Key, source Source, m Member) (*Use, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, late := s.open[k]
	if !late {
		if s.bound.Max > 0 && s.counted[k.As.Namespace] >= s.bound.Max {
			return nil, &FullError{k.As.Namespace, s.bound}
		}
		from, err := source.Open()
		if err != nil {
			return nil, err
		}
		w = newSharedWatch(k, source, from)
		s.open[k] = w
		s.counted[k.As.Namespace]++
	}
	u := &Use{Late: late, set: s, watch: w, member: m}
	w.add(u)
	if !late {
		w.start(ctx)
	}
	return u, nil
}

// Leave ends a member's part; the last one ends the watch. To leave twice is to leave once.
func (u *Use) Leave() {
	s, w := u.set, u.watch
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.remove(u) || s.open[w.key] != w {
		return
	}
	w.stop()
	delete(s.open, w.key)
	if s.counted[w.key.As.Namespace]--; s.counted[w.key.As.Namespace] == 0 {
		delete(s.counted, w.key.As.Namespace)
	}
}

// Key is what is watched.
func (u *Use) Key() Key { return u.watch.key }

// Retry asks again at once for what an account was refused: its rights have changed.
func (s *Set) Retry(as types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, w := range s.open {
		if k.As == as && w.refused().said != nil {
			w.from.retry()
		}
	}
}

// Count is how many watches are open.
func (s *Set) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// add has a member hear of a watch.
func (w *sharedWatch) add(u *Use) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.members[u.member.Name] = append(w.members[u.member.Name], u)
}

// remove takes a member off, and says whether nobody is left.
func (w *sharedWatch) remove(u *Use) (empty bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := u.member.Name
	left := slices.DeleteFunc(slices.Clone(w.members[name]), func(other *Use) bool { return other == u })
	if w.members[name] = left; len(left) == 0 {
		delete(w.members, name)
	}
	return len(w.members) == 0
}
