package informer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Source is how a watch of a Set is opened and what is kept of what it shows. Members of
// one key bring equal ones.
type Source struct {
	// Open gives what lists and watches.
	Open func() (*ListWatch, error)
	// Keep says what is kept of an object, in the place of what was kept of it before (nil:
	// nothing). Without Keep nothing is kept and nothing is listed: members hear that
	// something may have changed, and the right to watch is all that the account needs.
	Keep func(o runtime.Object, was any) any
	// Delivered hears of an object once every member has: what only they needed may be let go.
	// Nil: nothing is.
	Delivered func(kept any)
	// Refusal is what an error says of the account's rights, in words for its people; nil:
	// nothing. Where it is missing nothing is told of errors.
	Refusal func(error) error
	// RefusalTimeout is how long an account has to be refused before that is believed to be for want of
	// a right, or a kind not to be there: an API server that has just started refuses everybody, and
	// knows few kinds. 0: it is believed at once.
	RefusalTimeout time.Duration
	// Pause is how long to wait after so many failures; nil: as Backoff says.
	Pause func(failed int, err error) time.Duration
	// Silence is after how long a watch that says nothing is doubted; 0: LongSilence.
	Silence time.Duration
}

// sharedWatch is one open watch of a Set.
type sharedWatch struct {
	key      Key
	source   Source
	from     *ListWatch
	stop     context.CancelFunc
	informer cache.SharedIndexInformer // nil: nothing is kept
	heard    cache.InformerSynced

	mu      sync.Mutex
	members map[string][]*Use // by the name that they are about
	refusal refusal           // why the account sees nothing
	stands  bool              // where nothing is kept: the watch is open
}

// refusal is what the last answer says of the account's rights, as the source puts it.
type refusal struct {
	said  error // nil: nothing
	raw   error
	since time.Time // the answers say so
	lasts bool      // for so long, twice at least, that it is believed
}

// again is what another answer makes of it.
func (r refusal) again(said, raw error, now time.Time, lasting time.Duration) refusal {
	passes := apierrors.IsForbidden(raw) || apierrors.IsUnauthorized(raw) || apierrors.IsNotFound(raw)
	next := refusal{said: said, raw: raw, since: now, lasts: lasting == 0 || !passes}
	if r.said != nil {
		next.since, next.lasts = r.since, next.lasts || now.Sub(r.since) >= lasting
	}
	return next
}

func newSharedWatch(k Key, source Source, from *ListWatch) *sharedWatch {
	w := &sharedWatch{key: k, source: source, from: from, members: map[string][]*Use{}}
	from.onAnswer = w.answered
	if source.Pause != nil {
		from.pause = source.Pause
	}
	if source.Silence > 0 {
		from.silence = source.Silence
	}
	return w
}

func (w *sharedWatch) keepsNothing() bool { return w.source.Keep == nil }

func (w *sharedWatch) start(ctx context.Context) {
	ctx, w.stop = context.WithCancel(ctx)
	if w.keepsNothing() {
		go w.notice(ctx)
		return
	}
	informer, heard := New(w.from, w.keep, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.changed(o, false) },
		UpdateFunc: func(_, o any) { w.changed(o, false) },
		DeleteFunc: func(o any) {
			if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = d.Obj
			}
			w.changed(o, true)
		},
	})
	w.informer, w.heard = informer, heard.HasSynced
	go Run(ctx, w.informer)
	go func() { // a watch of nothing sends no event to say that it is open
		if cache.WaitForCacheSync(ctx.Done(), w.heard) {
			w.notifyEstablished()
		}
	}()
}

func (w *sharedWatch) keep(o any) (any, error) {
	object, is := o.(runtime.Object)
	if !is { // kept already
		return o, nil
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return o, nil //nolint:nilerr // what is no object has nothing to keep of
	}
	return w.source.Keep(object, w.get(m.GetNamespace(), m.GetName())), nil
}

// changed tells the members that an object is about.
func (w *sharedWatch) changed(o any, gone bool) {
	for _, u := range w.about(o) {
		u.member.Changed(o, gone)
	}
	if w.source.Delivered != nil {
		w.source.Delivered(o)
	}
}

func (w *sharedWatch) about(o any) []*Use {
	m, err := meta.Accessor(o)
	if err != nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Concat(w.members[""], w.members[m.GetName()])
}

func (w *sharedWatch) all() []*Use {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Concat(slices.Collect(maps.Values(w.members))...)
}

// noticed tells the members that something may have changed.
func (w *sharedWatch) noticed() {
	for _, u := range w.all() {
		u.member.Changed(nil, false)
	}
}

func (w *sharedWatch) notifyEstablished() {
	for _, u := range w.all() {
		if u.member.Established != nil {
			u.member.Established()
		}
	}
}

// answered notes what an answer says of the account's rights. One that says nothing of
// them, since the server is away, leaves what is known.
func (w *sharedWatch) answered(err error) {
	var said error
	if err != nil && w.source.Refusal != nil {
		said = w.source.Refusal(err)
	}
	if err != nil && said == nil {
		return
	}
	var is refusal
	w.mu.Lock()
	was := w.refusal
	if said != nil {
		is = was.again(said, err, time.Now(), w.source.RefusalTimeout)
	}
	w.refusal = is
	w.mu.Unlock()
	if was.said == nil && said != nil && !is.lasts {
		time.AfterFunc(w.source.RefusalTimeout, w.from.retry) // the answer that counts
	}
	if wordsOf(was.said) != wordsOf(said) || was.lasts != is.lasts {
		w.notifyEstablished()
	}
}

func wordsOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (w *sharedWatch) refused() refusal {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refusal
}

// notice has members hear that something may have changed, until ctx ends: when the watch
// begins, for what happened before sent no event, for each event, and when it ends.
func (w *sharedWatch) notice(ctx context.Context) {
	for failures := (Failures{}); ctx.Err() == nil; {
		stood, err := w.follow(ctx)
		if stood {
			failures = Failures{}
		}
		if w.from.rest(ctx, w.from.pause(failures.Count(err), err)) {
			failures = Failures{}
		}
	}
}

// follow opens the watch and hears it to its end or until it is doubted, and says whether
// it stood.
func (w *sharedWatch) follow(ctx context.Context) (stood bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opening := time.AfterFunc(w.from.silence, cancel) // it is not even answered
	stream, err := w.from.WatchFunc(ctx, metav1.ListOptions{AllowWatchBookmarks: true})
	if !opening.Stop() {
		w.noticed()
		if err == nil {
			stream.Stop()
		}
		return false, err
	}
	w.answered(err)
	if err != nil {
		return false, err
	}
	defer stream.Stop()
	w.setStands(true)
	w.noticed()
	w.hear(ctx, stream)
	w.setStands(false)
	w.noticed()
	return true, nil
}

func (w *sharedWatch) hear(ctx context.Context, stream watch.Interface) {
	quiet := time.NewTimer(w.from.silence)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-quiet.C:
			return
		case event, open := <-stream.ResultChan():
			if !open || event.Type == watch.Error {
				return
			}
			if event.Type != watch.Bookmark {
				w.noticed()
			}
			quiet.Reset(w.from.silence)
		}
	}
}

func (w *sharedWatch) setStands(stands bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stands = stands
}

func (w *sharedWatch) get(namespace, name string) any {
	o, found, err := w.informer.GetStore().GetByKey(cache.NewObjectName(namespace, name).String())
	if err != nil || !found {
		return nil
	}
	return o
}

// Synced says that all that was there at first has been told; where nothing is kept, that
// the watch is open.
func (u *Use) Synced() bool {
	w := u.watch
	if !w.keepsNothing() {
		return w.heard()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stands
}

// Refusal is why the account sees nothing, as the source put it; nil: it does, or was not
// answered yet.
func (u *Use) Refusal() error { return u.watch.refused().said }

// ErrNotYet is in the trouble of an account that nobody knows yet to lack a right.
var ErrNotYet = errors.New("cannot be read yet") //nolint:gochecknoglobals // a sentinel for errors.Is

// Trouble is what is to be told of a refusal: that the account lacks a right only once it was
// refused for as long as the source is patient. Until then what was seen before counts.
func (u *Use) Trouble() error {
	r := u.watch.refused()
	switch {
	case r.said == nil, r.lasts:
		return r.said
	case u.Synced():
		return nil
	}
	return fmt.Errorf("%s %w: %w", u.Key(), ErrNotYet, r.raw)
}

// Get is what is kept of an object; nil: nothing is.
func (u *Use) Get(namespace, name string) any { return u.watch.get(namespace, name) }

// Again has an object handed on once more, if it is there: what can be kept of it is more than it was.
func (u *Use) Again(namespace, name string) {
	u.watch.from.Again(types.NamespacedName{Namespace: namespace, Name: name})
}

// Kept is what is kept of all objects.
func (u *Use) Kept() []any { return u.watch.informer.GetStore().List() }

// List reads what the API server has of what is watched, until see has seen enough.
func (u *Use) List(ctx context.Context, see func(runtime.Object) (more bool)) error {
	for next := ""; ; {
		page, err := u.watch.from.ListFunc(ctx, metav1.ListOptions{Limit: u.watch.from.Page, Continue: next})
		if err != nil {
			return err
		}
		enough := false
		err = meta.EachListItem(page, func(o runtime.Object) error {
			enough = enough || !see(o)
			return nil
		})
		if err != nil || enough {
			return err
		}
		m, err := meta.ListAccessor(page)
		if err != nil {
			return err
		}
		if next = m.GetContinue(); next == "" {
			return nil
		}
	}
}
