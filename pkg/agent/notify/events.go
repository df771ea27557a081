package notify

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"

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
)

// Recorder records Events in their order, and keeps them back while there is more urgent work
// to do: where a thousand runs begin in one second, that they did is told after they have.
type Recorder struct {
	to      record.EventRecorder
	log     *slog.Logger
	queue   chan event
	stop    chan struct{}
	stopped chan struct{}
	once    sync.Once

	busySince time.Time // of Run alone
}

type event struct {
	about                 *corev1.ObjectReference
	annotations           map[string]string
	kind, reason, message string
}

// NewRecorder records Events by another recorder once it is run.
func NewRecorder(to record.EventRecorder, log *slog.Logger) *Recorder {
	return &Recorder{to: to, log: log, queue: make(chan event, mostEvents), stop: make(chan struct{}), stopped: make(chan struct{})}
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
	select {
	case r.queue <- event{about: about, annotations: annotations, kind: kind, reason: reason, message: document.OneLine(fmt.Sprintf(format, args...))}:
	default:
		r.log.Warn("an Event is left out, since too many wait", "reason", reason, "about", about.Namespace+"/"+about.Name)
	}
}

// Run hands Events on until Stop. busy says whether there is more urgent work.
func (r *Recorder) Run(busy func() bool) {
	defer close(r.stopped)
	handed := 0
	for {
		select {
		case e := <-r.queue:
			r.await(busy)
			r.hand(e)
			if handed++; len(r.queue) == 0 {
				handed = 0
			} else if handed > eventBurst {
				r.pause(eventGap)
			}
		case <-r.stop:
			r.drain()
			return
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
	for {
		select {
		case e := <-r.queue:
			r.hand(e)
		default:
			return
		}
	}
}

func (r *Recorder) hand(e event) {
	r.to.AnnotatedEventf(e.about, e.annotations, e.kind, e.reason, "%s", e.message)
}
