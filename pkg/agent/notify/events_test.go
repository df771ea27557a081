package notify_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
)

// recording is a recorder at work, and what it has handed on.
type recording struct {
	*notify.Recorder
	busy atomic.Bool
	fake *record.FakeRecorder
	log  strings.Builder
}

func recorded(t *testing.T, story func(r *recording)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &recording{fake: record.NewFakeRecorder(10_000)}
		r.fake.IncludeObject = true
		r.Recorder = notify.NewRecorder(r.fake, slog.New(slog.NewTextHandler(&r.log, nil)))
		go r.Run(r.busy.Load)
		story(r)
		r.Stop()
		r.Stop() // as often as one likes
	})
}

func (r *recording) says(n int) {
	for i := range n {
		r.Eventf(plan("nightly"), corev1.EventTypeNormal, "RunStarted", "run %d", i)
	}
}

// saysOf records Events about a plan of a namespace.
func (r *recording) saysOf(namespace string, n int) {
	of := plan("nightly")
	of.Namespace = namespace
	for i := range n {
		r.Eventf(of, corev1.EventTypeNormal, "RunStarted", "%s %d", namespace, i)
	}
}

func (r *recording) told() []string {
	synctest.Wait()
	var out []string
	for len(r.fake.Events) > 0 {
		out = append(out, <-r.fake.Events)
	}
	return out
}

func plan(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "u"}}
}

func TestEventsAreToldAtOnceWhereNothingIsToBeDone(t *testing.T) {
	recorded(t, func(r *recording) {
		r.Event(plan("nightly"), corev1.EventTypeWarning, "RunFailed", "100% lost")
		if got := r.told(); !slices.Equal(got, []string{"Warning RunFailed 100% lost involvedObject{kind=ConfigMap,apiVersion=v1}"}) {
			t.Errorf("told %q", got)
		}
	})
}

func TestEventsWaitForMoreUrgentWork(t *testing.T) {
	recorded(t, func(r *recording) {
		r.busy.Store(true)
		r.says(3)
		time.Sleep(4 * time.Second)
		if got := r.told(); len(got) > 0 {
			t.Errorf("while there is work it tells %q", got)
		}
		r.busy.Store(false)
		time.Sleep(100 * time.Millisecond)
		got := r.told()
		if len(got) != 3 || !strings.HasPrefix(got[0], "Normal RunStarted run 0") || !strings.HasPrefix(got[2], "Normal RunStarted run 2") {
			t.Errorf("told %q", got)
		}
	})
}

func TestEventsDoNotWaitForEver(t *testing.T) {
	recorded(t, func(r *recording) {
		r.busy.Store(true)
		r.says(50)
		time.Sleep(6 * time.Second)
		if got := r.told(); len(got) != 50 {
			t.Errorf("%d are told", len(got))
		}
		r.says(1)
		if got := r.told(); len(got) != 1 {
			t.Errorf("%d more are told while the same work goes on", len(got))
		}
	})
}

// client-go holds a thousand, and sends one after the other.
func TestManyEventsAreHandedOnOneByOne(t *testing.T) {
	recorded(t, func(r *recording) {
		r.says(2000)
		if got := len(r.told()); got < 100 || got > 200 {
			t.Errorf("%d at once", got)
		}
		time.Sleep(time.Second)
		if got := len(r.told()); got < 150 || got > 250 {
			t.Errorf("%d in a second", got)
		}
		time.Sleep(10 * time.Second)
		if got := len(r.told()); got < 1500 || r.log.Len() > 0 {
			t.Errorf("%d of the rest; it says %s", got, r.log.String())
		}
	})
}

func TestEventsThatWaitAreToldAtTheEnd(t *testing.T) {
	var last *recording
	recorded(t, func(r *recording) {
		r.busy.Store(true)
		r.says(300)
		last = r
	})
	if got := len(last.fake.Events); got != 300 {
		t.Errorf("%d are told", got)
	}
}

func TestWhatThereIsNoRoomForIsLeftOutAndSaid(t *testing.T) {
	recorded(t, func(r *recording) {
		r.busy.Store(true)
		r.says(4000)
		if r.log.Len() > 0 {
			t.Errorf("it says %s", r.log.String())
		}
		r.says(1000)
		if said := r.log.String(); !strings.Contains(said, "an Event is left out") || !strings.Contains(said, "about=shop/nightly") {
			t.Errorf("it says %s", said)
		}
	})
}

// Whoever has many Events waits for himself: those of other namespaces come in their turn, and find room.
func TestTheEventsOfOneNamespaceDrownNobodyElses(t *testing.T) {
	recorded(t, func(r *recording) {
		r.busy.Store(true)
		r.saysOf("loud", 4096)
		r.saysOf("quiet", 3)
		if said := r.log.String(); strings.Contains(said, "about=quiet") || !strings.Contains(said, "about=loud") {
			t.Errorf("left out: %s", said)
		}
		r.busy.Store(false)
		time.Sleep(time.Second)
		var quiet []string
		for i, e := range r.told() {
			if strings.Contains(e, "quiet") {
				quiet = append(quiet, fmt.Sprintf("%s at %d", strings.Fields(e)[3], i))
			}
		}
		if !slices.Equal(quiet, []string{"0 at 1", "1 at 3", "2 at 5"}) {
			t.Errorf("told %q", quiet)
		}
	})
}

// slow answers a second after it is asked.
type slow struct {
	mu   sync.Mutex
	sent []string
}

func (s *slow) Create(e *corev1.Event) (*corev1.Event, error) {
	time.Sleep(1001 * time.Millisecond) // at no instant at which an Event comes
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, e.InvolvedObject.Namespace)
	return e, nil
}
func (s *slow) Update(e *corev1.Event) (*corev1.Event, error)          { return s.Create(e) }
func (s *slow) Patch(e *corev1.Event, _ []byte) (*corev1.Event, error) { return s.Create(e) }

// client-go sends in the order in which it is given: it holds a burst, however slow the API server is.
func TestWhatIsNotSentYetWaitsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broadcaster := record.NewBroadcasterWithCorrelatorOptions(record.CorrelatorOptions{BurstSize: 10_000, QPS: 1, MaxEvents: 10_000})
		r := notify.NewRecorder(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{}), slog.New(slog.DiscardHandler))
		api := &slow{}
		broadcaster.StartRecordingToSink(r.Sink(api))
		go r.Run(func() bool { return false })
		told := recording{Recorder: r}
		for range 300 { // faster than it sends, and never many at once
			told.saysOf("loud", 1)
			time.Sleep(100 * time.Millisecond)
		}
		told.saysOf("quiet", 1)
		time.Sleep(110 * time.Second)
		api.mu.Lock()
		if !slices.Contains(api.sent, "quiet") {
			t.Errorf("of %d that were sent none is of the other namespace", len(api.sent))
		}
		api.mu.Unlock()
		r.Stop()
		broadcaster.Shutdown()
		time.Sleep(10 * time.Minute)
	})
}

func TestAnEventKeepsNoMoreOfItsObjectThanAReference(t *testing.T) {
	recorded(t, func(r *recording) {
		cm := plan("nightly")
		cm.Kind, cm.APIVersion = "", "" // as clients return it
		r.busy.Store(true)
		r.Event(cm, corev1.EventTypeNormal, "RunStarted", "one")
		cm.Name = "other"
		r.busy.Store(false)
		time.Sleep(time.Second)
		if got := r.told(); len(got) != 1 || !strings.Contains(got[0], "kind=ConfigMap") {
			t.Errorf("told %q", got)
		}
		r.Event(&corev1.ObjectReference{Kind: "Node", Name: "a"}, corev1.EventTypeNormal, "Drained", "two\nlines")
		if got := r.told(); len(got) != 1 || !strings.Contains(got[0], "kind=Node") || !strings.Contains(got[0], "two; lines") {
			t.Errorf("told %q", got)
		}
	})
}
