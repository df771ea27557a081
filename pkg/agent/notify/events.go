package notify

import (
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

const (
	// mostEvents is how many Events wait (a guess: two for each of a thousand runs that begin
	// at once, and as many again; one takes less than a kilobyte).
	mostEvents = 4096
	// eventsWait is how long Events wait for work to be done (a guess: a thousand runs begin
	// in less).
	eventsWait = 5 * time.Second
	// eventPause is how soon it is looked again whether there is work.
	eventPause = 50 * time.Millisecond
	// eventGap is the time between two Events where many wait: client-go drops what comes
	// faster than it is sent, and sends one at a time.
	eventGap = 5 * time.Millisecond
	// eventBurst is how many are handed on without a gap; client-go holds a thousand.
	eventBurst = 100
	// eventsRest is how long nothing has to come before another burst (a guess: between two Events there
	// is a moment without a request, too).
	eventsRest = time.Second
)

// Recorder records Events, those of a namespace in their order, and keeps them back while there is more
// urgent work to do: where a thousand runs begin in one second, that they did is told after they have.
// Namespaces come in turn, so that none drowns the Events of another.
type Recorder struct {
	to      record.EventRecorder
	log     *slog.Logger
	news    chan struct{} // of one place: something waits
	stop    chan struct{}
	stopped chan struct{}
	once    sync.Once
	sending atomic.Int64 // requests to a Sink that are not answered yet

	waits *queue.Turns[event]

	// Of Run alone.
	busySince time.Time
	handed    int       // since the last rest
	last      time.Time // when one was handed on
}

type event struct {
	about                 *corev1.ObjectReference
	annotations           map[string]string
	kind, reason, message string
}

// NewRecorder records Events by another recorder once it is run.
func NewRecorder(to record.EventRecorder, log *slog.Logger) *Recorder {
	return &Recorder{to: to, log: log, news: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}), waits: queue.NewTurns[event](math.MaxInt)}
}

// Event records an Event about an object.
func (r *Recorder) Event(object runtime.Object, kind, reason, message string) {
	r.AnnotatedEventf(object, nil, kind, reason, "%s", message)
}

// Eventf is Event with a formatted message.
func (r *Recorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	r.AnnotatedEventf(object, nil, kind, reason, format, args...)
}

// AnnotatedEventf is Eventf with annotations. Of the object its reference alone is kept.
func (r *Recorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	about, err := reference.GetReference(scheme.Scheme, object)
	if err != nil {
		r.log.Warn("an Event is about no object that can be named", "reason", reason, "error", err.Error())
		return
	}
	e := event{about: about, annotations: annotations, kind: kind, reason: reason, message: document.OneLine(fmt.Sprintf(format, args...))}
	if left, is := r.add(e); is {
		r.log.Warn("an Event is left out, since too many wait", "reason", left.reason, "about", left.about.Namespace+"/"+left.about.Name)
	}
	select {
	case r.news <- struct{}{}:
	default: // it is said already
	}
}

// add has an Event wait. Where too many do, the newest of the namespace that has most of them is left out.
func (r *Recorder) add(e event) (left event, is bool) {
	r.waits.Add(e.about.Namespace, e)
	if r.waits.Waiting() <= mostEvents {
		return event{}, false
	}
	return r.waits.DropNewest()
}

// next is the oldest Event of the namespace whose turn it is.
func (r *Recorder) next() (e event, is bool) {
	if e, is = r.waits.Next(); is {
		r.waits.Leave(e.about.Namespace)
	}
	return e, is
}

// Run hands Events on until Stop. busy says whether there is more urgent work.
func (r *Recorder) Run(busy func() bool) {
	defer close(r.stopped)
	for {
		select {
		case <-r.news:
			r.handOn(busy)
		case <-r.stop:
		}
		select {
		case <-r.stop:
			r.drain()
			return
		default:
		}
	}
}

// handOn hands on what waits, unless it is to stop. What client-go holds comes in nobody's turn: beyond a burst it
// gets no more than it sends.
func (r *Recorder) handOn(busy func() bool) {
	if r.sending.Load() == 0 && time.Since(r.last) >= eventsRest {
		r.handed = 0
	}
	for {
		r.await(busy)
		e, is := r.next()
		if !is {
			return
		}
		r.hand(e)
		r.last = time.Now()
		for r.handed++; r.handed > eventBurst; {
			if !r.pause(eventGap) {
				return
			}
			if r.sending.Load() == 0 {
				break
			}
		}
	}
}

// Stop hands on what waits, and ends Run.
func (r *Recorder) Stop() {
	r.once.Do(func() { close(r.stop) })
	<-r.stopped
}

// await returns once there is no more urgent work, or there has been for too long.
func (r *Recorder) await(busy func() bool) {
	for busy() {
		if r.busySince.IsZero() {
			r.busySince = time.Now()
		}
		if time.Since(r.busySince) >= eventsWait || !r.pause(eventPause) {
			return
		}
	}
	r.busySince = time.Time{}
}

// pause says whether it was not cut short by Stop.
func (r *Recorder) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.stop:
		return false
	}
}

func (r *Recorder) drain() {
	for e, is := r.next(); is; e, is = r.next() {
		r.hand(e)
	}
}

func (r *Recorder) hand(e event) {
	r.to.AnnotatedEventf(e.about, e.annotations, e.kind, e.reason, "%s", e.message)
}

// Sink sends Events by another one, and has Run know of it.
func (r *Recorder) Sink(to record.EventSink) record.EventSink { return sink{to, &r.sending} }

// sink counts the requests that are not answered yet.
type sink struct {
	to      record.EventSink
	sending *atomic.Int64
}

// Create is client-go's.
func (s sink) Create(e *corev1.Event) (*corev1.Event, error) {
	defer s.sending.Add(-1)
	s.sending.Add(1)
	return s.to.Create(e)
}

// Update is client-go's.
func (s sink) Update(e *corev1.Event) (*corev1.Event, error) {
	defer s.sending.Add(-1)
	s.sending.Add(1)
	return s.to.Update(e)
}

// Patch is client-go's.
func (s sink) Patch(e *corev1.Event, data []byte) (*corev1.Event, error) {
	defer s.sending.Add(-1)
	s.sending.Add(1)
	return s.to.Patch(e, data)
}
