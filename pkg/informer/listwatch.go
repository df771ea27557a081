// Package informer lists and watches objects for caches that say how far they have
// come, and notices a watch that has died. It knows client-go, and nothing of ours.
package informer

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// How long a watch is asked for, and how long it may be silent before it is doubted.
// Before a watch ends the API server sends a bookmark, two seconds earlier, so a short
// one is a proof of life that costs one request. The agent's own informers are few:
// what a person asks of a plan may not wait for long behind a watch that hangs. Those
// that act as plans' accounts may be many, and make do with the bookmark that is sent
// about every minute (a guess of ours: a quarter of a minute of margin).
const (
	ownWatch      = 8 * time.Second
	ownSilence    = 9 * time.Second
	foreignWatch  = 5 * time.Minute
	bookmarkEvery = time.Minute
	LongSilence   = bookmarkEvery + 15*time.Second
)

// ListWatch lists and watches for one informer, in place of what the reflector of
// client-go does by itself: its pauses grow to half a minute, it believes a watch that
// says nothing, and it cannot be told to list anew. To the reflector it is one watch
// without an end. When the watch below breaks, is silent for too long or is doubted,
// all is listed, and what differs from what was handed on before is handed on as
// events.
type ListWatch struct {
	ListFunc  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error)
	WatchFunc func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
	example   runtime.Object // of the type that is listed
	onAnswer  func(error)    // hears of each answer; nil: nobody
	timeout   time.Duration  // that a watch is asked for
	silence   time.Duration  // longer than which a watch says something
	pause     func(failed int, err error) time.Duration
	Page      int64     // how many objects are listed at once; less where they may be large
	Labels    [2]string // names of the labels with which deletions that nobody saw are told
	// Rewound hears that the API server's state is older than what was seen of it: it was
	// put back from a backup, and nothing that was kept is true. Nil: nobody.
	Rewound func(was, is uint64)
	Words   *Interner // keeps the values of the first of them; nil: such deletions are told without labels

	mu       sync.Mutex
	known    map[types.NamespacedName]knownObject // as handed on
	progress progress
	signals  signals
}

// progress is how far what is handed on has come.
type progress struct {
	version uint64 // all that was written up to here has been handed on
	handed  uint64 // how many events were
	listing bool   // a list is under way
}

// signals tell those who wait for a list or a watch.
type signals struct {
	moved   chan struct{} // closed when version grows
	doubted chan struct{} // one place: the next thing to do is to list
	retried chan struct{} // one place: the pause after a failure is over
}

// knownObject is what is kept of an object, to tell what a list says anew. There may
// be a hundred thousand.
type knownObject struct {
	uid     types.UID
	version uint64    // 0: it is no number, and each list is news
	labels  [2]string // values of those that are kept
}

// NewListWatch is one for an informer of the agent's own.
func NewListWatch(example runtime.Object) *ListWatch {
	return &ListWatch{
		example: example, timeout: ownWatch, silence: ownSilence, Page: PageSize,
		known: map[types.NamespacedName]knownObject{}, signals: signals{moved: make(chan struct{}), doubted: make(chan struct{}, 1), retried: make(chan struct{}, 1)},
		pause: Backoff,
	}
}

// NewLongListWatch is one of many, which makes do with a bookmark now and then; told hears
// of each answer.
func NewLongListWatch(example runtime.Object, told func(error)) *ListWatch {
	l := NewListWatch(example)
	l.timeout, l.silence, l.onAnswer = foreignWatch, LongSilence, told
	return l
}

// Client lists and watches objects of one kind, as those of client-go do; L is the list.
type Client[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// ForClient is one for an informer of the agent's own, of those objects of a client that
// the selectors of which name.
func ForClient[L runtime.Object](example runtime.Object, from Client[L], which metav1.ListOptions) *ListWatch {
	l := NewListWatch(example)
	ask(l, from, which)
	return l
}

// ForMany is one of many, of those objects of a client that the selectors of which name;
// told hears of each answer.
func ForMany[L runtime.Object](example runtime.Object, from Client[L], which metav1.ListOptions, told func(error)) *ListWatch {
	l := NewLongListWatch(example, told)
	ask(l, from, which)
	return l
}

// ask has a list and a watch ask a client; where which selects nothing, they ask for what
// they are told to.
func ask[L runtime.Object](l *ListWatch, from Client[L], which metav1.ListOptions) {
	narrowed := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector, o.FieldSelector = cmp.Or(which.LabelSelector, o.LabelSelector), cmp.Or(which.FieldSelector, o.FieldSelector)
		return o
	}
	l.ListFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return from.List(ctx, narrowed(o))
	}
	l.WatchFunc = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return from.Watch(ctx, narrowed(o))
	}
}

// Again has an object handed on once more, unchanged as it may be: what is kept of it is
// another than it was when it came.
func (l *ListWatch) Again(k types.NamespacedName) {
	l.mu.Lock()
	was, known := l.known[k]
	if known {
		was.version = 0
		l.known[k] = was
	}
	l.mu.Unlock()
	if known {
		l.Relist()
	}
}

// Relist has all listed anew.
func (l *ListWatch) Relist() {
	select {
	case l.signals.doubted <- struct{}{}:
	default:
	}
}

// Handed is how many events have been handed on.
func (l *ListWatch) Handed() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.progress.handed
}

// RelistUnless has all listed anew where nothing has been handed on since so many events, and no
// list is under way. It says whether it is so.
func (l *ListWatch) RelistUnless(handed uint64) bool {
	l.mu.Lock()
	moves := l.progress.listing || l.progress.handed != handed
	l.mu.Unlock()
	if !moves {
		l.Relist()
	}
	return !moves
}

func (l *ListWatch) nowListing(is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.progress.listing = is
}

// at is the version up to which everything was handed on, and what is closed when it
// has grown.
func (l *ListWatch) at() (uint64, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.progress.version, l.signals.moved
}

// latest is the version of everything, read live. What was handed on before it was asked for
// cannot be newer, unless the API server's state went back.
func (l *ListWatch) latest(ctx context.Context) (uint64, error) {
	seen := l.handedUpTo()
	version, err := l.readVersion(ctx)
	if err != nil {
		return 0, err
	}
	return version, l.backThen(version, seen)
}

func (l *ListWatch) readVersion(ctx context.Context) (uint64, error) {
	page, err := l.ListFunc(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, err
	}
	m, err := meta.ListAccessor(page)
	if err != nil {
		return 0, err
	}
	return Version(m.GetResourceVersion()), nil
}

// reach returns when everything written up to a version has been handed on. Who has
// not got there lists: a watch that is filtered is told of its progress late.
func (l *ListWatch) reach(ctx context.Context, version uint64) error {
	at, moved := l.at()
	if at >= version {
		return nil
	}
	l.Relist()
	for at < version {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-moved:
		}
		at, moved = l.at()
	}
	return nil
}

// List is cache.Lister's, for a reflector that streams no lists.
func (l *ListWatch) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

// ListWithContext is cache.ListerWithContext's.
func (l *ListWatch) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	o.ResourceVersion, o.ResourceVersionMatch = "", "" // an answer from a cache may be as old as that
	got, err := l.ListFunc(ctx, o)
	l.answered(err)
	return got, err
}

// Watch is cache.Watcher's.
func (l *ListWatch) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

// WatchWithContext is cache.WatcherWithContext's. It begins with a list: only what it
// has handed on itself can it compare with what is there.
func (l *ListWatch) WatchWithContext(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	ctx, stop := context.WithCancel(ctx)
	s := &watchStream{ListWatch: l, out: make(chan watch.Event), stop: stop, quietTimeout: l.silence}
	l.mu.Lock()
	l.known = map[types.NamespacedName]knownObject{}
	l.mu.Unlock()
	go s.run(ctx)
	return s, nil
}

func (l *ListWatch) answered(err error) {
	if l.onAnswer != nil {
		l.onAnswer(err)
	}
}

// reached notes that everything up to a version was handed on.
func (l *ListWatch) reached(version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := Version(version); n > l.progress.version {
		l.progress.version = n
		close(l.signals.moved)
		l.signals.moved = make(chan struct{})
	}
}

// watchStream is the watch without an end.
type watchStream struct {
	*ListWatch
	out          chan watch.Event
	stop         context.CancelFunc
	quietTimeout time.Duration // with a watch that says nothing
	bookmarks    bool          // were seen: whoever sends none is not silent for want of life
	begun        bool          // the first list was handed on
}

// Stop is watch.Interface's.
func (s *watchStream) Stop() { s.stop() }

// ResultChan is watch.Interface's.
func (s *watchStream) ResultChan() <-chan watch.Event { return s.out }

// errRewound is a list that is older than what was seen before.
var errRewound = errors.New("the API server's state is older than what was seen of it") //nolint:gochecknoglobals // a sentinel for errors.Is

// handedUpTo is the version up to which everything was handed on.
func (l *ListWatch) handedUpTo() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.progress.version
}

var errDoubted = errors.New("the watch is doubted") //nolint:gochecknoglobals // a sentinel for errors.Is

// cannotDecode marks what client-go says of an event that it cannot read: from the same version
// on the watch would come to the same event again, and no further.
const cannotDecode = "ClientWatchDecoding"

// run lists, watches, and goes on with either until ctx ends.
func (s *watchStream) run(ctx context.Context) {
	defer close(s.out)
	var failures Failures
	for from := ""; ctx.Err() == nil; {
		var err error
		began, watched := time.Now(), from != ""
		if watched {
			from, err = s.follow(ctx, from)
		} else {
			from, err = s.relist(ctx)
		}
		if watched && time.Since(began) > time.Second { // what was open worked
			failures = Failures{}
		}
		if errors.Is(err, errDoubted) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.HasStatusCause(err, cannotDecode) {
			from = ""
		}
		if err != nil && !errors.Is(err, errDoubted) {
			if s.rest(ctx, s.pause(failures.Count(err), err)) {
				failures = Failures{}
			}
		}
	}
}

// rest waits after a failure, and says whether it was told to try again sooner.
func (l *ListWatch) rest(ctx context.Context, d time.Duration) (sooner bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-l.signals.retried:
		return true
	}
	return false
}

// retry ends the pause after a failure.
func (l *ListWatch) retry() {
	select {
	case l.signals.retried <- struct{}{}:
	default:
	}
}

// longestBackoff bounds the pauses before a server that refuses is asked again (a
// guess: whoever mends a right waits no longer than this).
const longestBackoff = 30 * time.Second

// Backoff is how long to wait after so many failures. A server that is away is asked
// again soon, since work waits for it; one that refuses is asked less and less.
func Backoff(failed int, err error) time.Duration {
	limit := time.Second
	if refuses(err) {
		limit = longestBackoff
	}
	d := min(100*time.Millisecond<<min(failed, 12), limit)
	return d/2 + rand.N(d/2+1)
}

// refuses says whether a server that answers does not do what it was asked.
func refuses(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// Failures are those in a row. An API server that was away for long and has just come back
// refuses everybody for a moment: its refusals are counted from the first one on.
type Failures struct {
	n       int
	refused bool
}

// Count takes another failure in, and says how many they are, for Backoff.
func (f *Failures) Count(err error) int {
	if is := refuses(err); is != f.refused {
		*f = Failures{refused: is}
	}
	f.n++
	return f.n
}

// hand gives an event to the informer.
func (s *watchStream) hand(ctx context.Context, kind watch.EventType, o runtime.Object) error {
	select {
	case s.out <- watch.Event{Type: kind, Object: o}:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.progress.handed++
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// relist lists all, in pages, and hands on what is news.
func (s *watchStream) relist(ctx context.Context) (string, error) {
	select { // what was doubted is listed now
	case <-s.signals.doubted:
	default:
	}
	s.nowListing(true)
	defer s.nowListing(false)
	there, handed := map[types.NamespacedName]bool{}, s.handedUpTo()
	for next, first := "", true; first || next != ""; first = false {
		page, err := s.ListFunc(ctx, metav1.ListOptions{Limit: s.Page, Continue: next})
		if err != nil {
			s.answered(err)
			return "", err
		}
		m, err := meta.ListAccessor(page)
		if err != nil {
			return "", err
		}
		if err := s.backThen(Version(m.GetResourceVersion()), handed); err != nil {
			return "", err
		}
		err = meta.EachListItem(page, func(o runtime.Object) error { return s.listed(ctx, o, handed, there) })
		if err != nil {
			return "", err
		}
		if next = m.GetContinue(); next == "" {
			s.answered(nil) // not for a page before one that is refused
			return m.GetResourceVersion(), s.end(ctx, there, m.GetResourceVersion())
		}
	}
	return "", nil
}

// backThen tells whoever hears of it that a version is older than what was seen.
func (l *ListWatch) backThen(is, seen uint64) error {
	if is == 0 || is >= seen || l.Rewound == nil {
		return nil
	}
	l.Rewound(seen, is)
	return errRewound
}

// listed hands one object of a list on, where it is not what was handed on before. Whoever
// puts a backup back may have the versions go on from a higher one, or others may have
// written as many meanwhile: then the objects alone are older than they were, or there
// again although their deletion was told.
func (s *watchStream) listed(ctx context.Context, o runtime.Object, handed uint64, there map[types.NamespacedName]bool) error {
	m, err := meta.Accessor(o)
	if err != nil {
		return err
	}
	k := keyOf(m)
	there[k] = true
	s.mu.Lock()
	was, known := s.known[k]
	s.mu.Unlock()
	seen := handed + 1
	switch {
	case known:
		seen = was.version
	case !s.begun: // a reflector that begins anew knows none of what it was handed before
		seen = 0
	}
	if err := s.backThen(Version(m.GetResourceVersion()), seen); err != nil {
		return err
	}
	kind := watch.Added
	switch {
	case known && was.uid != m.GetUID():
		if err := s.lose(ctx, k, was, m.GetResourceVersion()); err != nil {
			return err
		}
	case known && was.version != 0 && was.version == Version(m.GetResourceVersion()):
		return nil
	case known:
		kind = watch.Modified
	}
	s.keep(k, m)
	return s.hand(ctx, kind, o)
}

// end hands on what a list no longer has, and that all of it was told.
func (s *watchStream) end(ctx context.Context, there map[types.NamespacedName]bool, version string) error {
	s.mu.Lock()
	lost := map[types.NamespacedName]knownObject{}
	for k, was := range s.known {
		if !there[k] {
			lost[k] = was
		}
	}
	s.mu.Unlock()
	for k, was := range lost {
		if err := s.lose(ctx, k, was, version); err != nil {
			return err
		}
	}
	mark, m := s.blank(version)
	if !s.begun {
		m.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	if err := s.hand(ctx, watch.Bookmark, mark); err != nil {
		return err
	}
	s.begun = true
	s.reached(version)
	return nil
}

func (s *watchStream) keep(k types.NamespacedName, m metav1.Object) {
	known := knownObject{uid: m.GetUID(), version: Version(m.GetResourceVersion())}
	if s.Words != nil {
		labels := m.GetLabels()
		known.labels = [2]string{s.Words.Intern(labels[s.Labels[0]]), labels[s.Labels[1]]}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[k] = known
}

// lose hands on that an object is gone whose deletion nobody saw.
func (s *watchStream) lose(ctx context.Context, k types.NamespacedName, was knownObject, version string) error {
	s.mu.Lock()
	delete(s.known, k)
	s.mu.Unlock()
	o, m := s.blank(version)
	m.SetNamespace(k.Namespace)
	m.SetName(k.Name)
	m.SetUID(was.uid)
	labels := map[string]string{}
	for i, value := range was.labels {
		if value != "" {
			labels[s.Labels[i]] = value
		}
	}
	m.SetLabels(labels)
	return s.hand(ctx, watch.Deleted, o)
}

// blank is an empty object of the type that is listed.
func (s *watchStream) blank(version string) (runtime.Object, metav1.Object) {
	o := reflect.New(reflect.TypeOf(s.example).Elem()).Interface().(runtime.Object)
	m, err := meta.Accessor(o)
	must(err) // the type is ours to choose
	m.SetResourceVersion(version)
	return o, m
}

// follow watches from a version on until the watch ends, and says where it came to.
func (s *watchStream) follow(ctx context.Context, from string) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	seconds := int64(s.timeout/time.Second) + rand.Int64N(int64(s.timeout/time.Second)/10+1)
	opening := time.AfterFunc(s.silence, func() { cancel(errDoubted) }) // it is not even answered
	w, err := s.WatchFunc(ctx, metav1.ListOptions{ResourceVersion: from, TimeoutSeconds: &seconds, AllowWatchBookmarks: true})
	opening.Stop()
	if errors.Is(context.Cause(ctx), errDoubted) {
		if err == nil {
			w.Stop()
		}
		return from, errDoubted
	}
	s.answered(err)
	if err != nil {
		return from, err
	}
	defer w.Stop()
	return s.events(ctx, w, from)
}

// events hands on what a watch shows.
func (s *watchStream) events(ctx context.Context, w watch.Interface, from string) (string, error) {
	began, some := time.Now(), false
	quiet := time.NewTimer(s.quietTimeout)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return from, ctx.Err()
		case <-s.signals.doubted:
			return from, errDoubted
		case <-quiet.C:
			if !s.bookmarks && s.timeout > ownWatch { // it may be one of those that send none
				s.quietTimeout = min(2*s.quietTimeout, 2*s.timeout)
			}
			return from, errDoubted
		case event, open := <-w.ResultChan():
			if !open && !some && time.Since(began) < time.Second {
				return from, errors.New("the watch ended as soon as it began")
			}
			if !open {
				return from, nil
			}
			some = true
			version, err := s.event(ctx, event)
			if err != nil {
				return from, err
			}
			from = version
			quiet.Reset(s.quietTimeout)
		}
	}
}

// event hands one event on, and says up to which version everything is told.
func (s *watchStream) event(ctx context.Context, event watch.Event) (string, error) {
	if event.Type == watch.Error {
		return "", apierrors.FromObject(event.Object)
	}
	m, err := meta.Accessor(event.Object)
	if err != nil {
		return "", err
	}
	k := keyOf(m)
	switch event.Type {
	case watch.Bookmark:
		s.bookmarks, s.quietTimeout = true, s.silence
	case watch.Deleted:
		s.mu.Lock()
		delete(s.known, k)
		s.mu.Unlock()
	default:
		s.keep(k, m)
	}
	version := m.GetResourceVersion() // once it is handed on, whoever has it may change it
	if err := s.hand(ctx, event.Type, event.Object); err != nil {
		return "", err
	}
	s.reached(version)
	return version, nil
}

// ExponentialBackoff are pauses that begin with one length and double up to another, whatever failed.
func ExponentialBackoff(first, longest time.Duration) func(failed int, err error) time.Duration {
	return func(failed int, _ error) time.Duration { return min(first<<min(failed-1, 12), longest) }
}

// PageSize is how many objects are listed at once (what client-go takes for it).
const PageSize = 500

// Sleep waits, and says whether all of the time has passed.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
