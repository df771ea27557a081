package node

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

func lasting(d time.Duration) *document.Duration { return &document.Duration{Duration: d} }

// standing is a status in a line.
func standing(st executors.DrainStatus) string {
	words := []string{st.Reason + ":"}
	for _, w := range []struct {
		is   bool
		word string
	}{{st.Done, "done,"}, {st.Aborted, "aborted,"}, {st.Late, "late,"}} {
		if w.is {
			words = append(words, w.word)
		}
	}
	return strings.Join(append(words, st.Message), " ")
}

// Which pods of a node are evicted, which are left, and what is said of both.
func TestWhatADrainDoesWithThePodsOfItsNode(t *testing.T) {
	web1, web2 := podNamed("web-1"), podNamed("web-2")
	logs := podNamed("logs", of("DaemonSet", "logs"))
	for _, c := range []struct {
		name    string
		objects []metav1.Object
		options drain.Options
		before  func(*host)
		asked   []string
		want    string // after half a minute
	}{
		{
			"pods of controllers are evicted, each with its own grace",
			[]metav1.Object{web1, web2},
			drain.Options{},
			nil,
			[]string{"evict shop/web-1", "evict shop/web-2"},
			"Drained: done, 2 evicted",
		},
		{"a node without pods is drained", nil, drain.Options{}, nil, nil, "Drained: done, 0 evicted"},
		{"pods of other nodes are not its affair", []metav1.Object{podNamed("far", on("b"))}, drain.Options{}, nil, nil, "Drained: done, 0 evicted"},
		{
			"gracePeriod is said with each eviction",
			[]metav1.Object{web1},
			drain.Options{GracePeriod: lasting(7 * time.Second)},
			nil,
			[]string{"evict shop/web-1 grace 7"},
			"Drained: done, 1 evicted",
		},
		{
			"a gracePeriod of nothing is not the pod's own",
			[]metav1.Object{web1},
			drain.Options{GracePeriod: lasting(0)},
			nil,
			[]string{"evict shop/web-1 grace 0"},
			"Drained: done, 1 evicted",
		},
		{
			"pods of a DaemonSet stay",
			[]metav1.Object{web1, logs, daemonSet("logs")},
			drain.Options{},
			nil,
			[]string{"evict shop/web-1"},
			"Drained: done, 1 evicted, 1 skipped",
		},
		{
			"one whose DaemonSet is gone holds all up, without force",
			[]metav1.Object{web1, logs},
			drain.Options{},
			nil,
			nil, `Blocked: 0 of 2 pods have left; shop/logs cannot leave until somebody changes something: daemonsets.apps "logs" not found; its DaemonSet is gone: delete the pod, or set force`,
		},
		{
			"and goes with force",
			[]metav1.Object{web1, logs},
			drain.Options{Force: true},
			nil,
			[]string{"evict shop/logs", "evict shop/web-1"},
			"Drained: done, 2 evicted",
		},
		{
			"a pod of a DaemonSet that has finished is evicted, and nobody asks for its DaemonSet",
			[]metav1.Object{podNamed("logs", of("DaemonSet", "logs"), inPhase(corev1.PodSucceeded))},
			drain.Options{},
			func(h *host) { h.Deny("", "get", "daemonsets") },
			[]string{"evict shop/logs"},
			"Drained: done, 1 evicted",
		},
		{
			"a pod that nobody would bring back holds all up, without force",
			[]metav1.Object{web1, podNamed("job", alone)},
			drain.Options{},
			nil,
			nil, "Blocked: 0 of 2 pods have left; shop/job cannot leave until somebody changes something: Pods that declare no controller (use --force to override); nothing would bring it back: delete it, set force, or annotate it with maint.dev/drain=skip if it may stay",
		},
		{
			"and goes with force, the others beside it",
			[]metav1.Object{web1, podNamed("job", alone)},
			drain.Options{Force: true},
			nil,
			[]string{"evict shop/job", "evict shop/web-1"},
			"Drained: done, 2 evicted",
		},
		{
			"data of an emptyDir holds all up",
			[]metav1.Object{web1, podNamed("web-3", scratch())},
			drain.Options{},
			nil,
			nil, "Blocked: 0 of 2 pods have left; shop/web-3 cannot leave until somebody changes something: Pods with local storage (use --delete-emptydir-data to override); set deleteEmptyDir if the data may be lost, or annotate the pod with maint.dev/drain=skip if it may stay",
		},
		{
			"and is lost with deleteEmptyDir",
			[]metav1.Object{podNamed("web-3", scratch())},
			drain.Options{DeleteEmptyDir: true},
			nil,
			[]string{"evict shop/web-3"},
			"Drained: done, 1 evicted",
		},
		{
			"a static pod stays",
			[]metav1.Object{podNamed("etcd", alone, annotated(corev1.MirrorPodAnnotationKey, "x"))},
			drain.Options{},
			nil,
			nil, "Drained: done, 0 evicted, 1 skipped",
		},
		{
			"a pod that says skip stays",
			[]metav1.Object{web1, podNamed("db", alone, drained("skip"))},
			drain.Options{},
			nil,
			[]string{"evict shop/web-1"},
			"Drained: done, 1 evicted, 1 skipped",
		},
		{
			"one that says a word that nobody knows holds all up",
			[]metav1.Object{web1, podNamed("db", drained("later"))},
			drain.Options{},
			nil,
			nil, `Blocked: 0 of 2 pods have left; shop/db cannot leave until somebody changes something: maint.dev/drain is "later"; write skip, wait-completed or surge`,
		},
		{
			"podSelector picks those that go",
			[]metav1.Object{web1, podNamed("db", func(p *corev1.Pod) { p.Labels["app"] = "db" })},
			drain.Options{PodSelector: "app=db"},
			nil,
			[]string{"evict shop/db"},
			"Drained: done, 1 evicted, 1 skipped",
		},
		{
			"a podSelector that nobody can read evicts nothing",
			[]metav1.Object{web1},
			drain.Options{PodSelector: "app in"},
			nil,
			nil, `Blocked: 0 of 1 pods have left; shop/web-1 cannot leave until somebody changes something: podSelector: "app in" is no label selector: found '' expected: '('; write app=web, tier in (a,b), !canary or cores>4; correct the drain's options`,
		},
		{
			"two budgets over one pod hold it for good",
			[]metav1.Object{web1, budget(1), budget(1, func(b *policyv1.PodDisruptionBudget) { b.Name = "web-too" })},
			drain.Options{},
			nil,
			nil, "Blocked: 0 of 1 pods have left; shop/web-1 cannot leave until somebody changes something: more than one PodDisruptionBudget covers it, and the API server evicts no such pod; change a selector so that one budget covers it: shop/web, shop/web-too",
		},
		{
			"a budget that lets nobody go is not even asked",
			[]metav1.Object{web1, budget(0, func(b *policyv1.PodDisruptionBudget) {
				b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, new(intstr.FromInt32(0))
			})},
			drain.Options{},
			nil,
			nil, "Blocked: 0 of 1 pods have left; shop/web-1 cannot leave until somebody changes something: budget shop/web: maxUnavailable is 0; raise maxUnavailable to at least 1",
		},
		{
			"a budget that has room for one lets one go",
			[]metav1.Object{web1, web2, budget(1)},
			drain.Options{},
			nil,
			[]string{"evict shop/web-1"},
			"Blocked: 1 of 2 pods have left; shop/web-2 cannot leave for now: budget shop/web: 2 of 3 pods are healthy, and 1 must be: a rollout is in progress, or a replica is not Ready; wait; if it lasts, look why pods are not Ready",
		},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := newHost(t, c.objects...)
			if c.before != nil {
				c.before(h)
			}
			d := h.drainer()
			order := h.order(c.options)
			d.Ensure(t.Context(), order)
			time.Sleep(30 * time.Second)
			synctest.Wait()
			st := d.Ensure(t.Context(), order)
			got := h.requests()
			slices.Sort(got)
			if diff := cmp.Diff(c.asked, got); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
			if standing(st) != c.want {
				t.Errorf("it is %q\n want %q", standing(st), c.want)
			}
		})
	}
}

// What an API server answers, what becomes of the pod, and what is said meanwhile.
func TestWhatAnAnswerToAnEvictionMeans(t *testing.T) {
	terminating := apierrors.NewForbidden(corev1.Resource("pods"), "web-1", fmt.Errorf("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause, Message: "namespace shop is being terminated"}}
	busy := apierrors.NewTooManyRequests("too many requests, please try again later", 20)
	broken := apierrors.NewInternalError(fmt.Errorf("etcd is away"))
	for _, c := range []struct {
		name    string
		answers []answered
		said    string        // before it is asked again
		right   string        // that is missing then
		least   time.Duration // until it is asked again
		most    time.Duration
		want    string // at the end
		asked   int
	}{
		{"it is over the budget: not said again before the budget moves or a minute is over", []answered{{refusal: overBudget()}}, "web-1 waits: for its budget", "", 500 * time.Millisecond, 61 * time.Second, "Drained: done, 1 evicted", 2},
		{"the API server is busy: as late as it wants", []answered{{refusal: busy}}, "shop/web-1 waits: the API server said 429: ", "", 20 * time.Second, 20 * time.Second, "Drained: done, 1 evicted", 2},
		{"the API server is broken: soon again", []answered{{refusal: broken}}, "shop/web-1 waits: the API server said 500: ", "", 250 * time.Millisecond, 750 * time.Millisecond, "Drained: done, 1 evicted", 2},
		{"nothing comes back, and nothing was done", []answered{{away: true}}, "shop/web-1 waits: the API server does not answer: ", "", 250 * time.Millisecond, 750 * time.Millisecond, "Drained: done, 1 evicted", 2},
		{"the answer is lost: it counts as evicted", []answered{{lost: true}}, "0 of 1 pods have left", "", 0, 0, "Drained: done, 1 evicted", 1},
		{"the right is missing: it is named, and asked for later", []answered{{refusal: forbids("create", "pods/eviction")}}, "; not allowed to create pods/eviction in namespace shop: ", "create pods/eviction in shop", 4 * time.Second, 12 * time.Second, "Drained: done, 1 evicted", 2},
		{"the namespace is being deleted: that is no missing right", []answered{{refusal: terminating}}, "shop/web-1 waits: the namespace shop is being deleted", "", 250 * time.Millisecond, 750 * time.Millisecond, "Drained: done, 1 evicted", 2},
		{"it is gone, says one who knows better", []answered{{refusal: apierrors.NewNotFound(corev1.Resource("pods"), "web-1")}}, "shop/web-1 waits: it is gone, or another pod has its name", "", 250 * time.Millisecond, 750 * time.Millisecond, "Drained: done, 1 evicted", 2},
		{"another pod has its name", []answered{{refusal: apierrors.NewConflict(corev1.Resource("pods"), "web-1", fmt.Errorf("the UID in the precondition"))}}, "shop/web-1 waits: it is gone, or another pod has its name", "", 250 * time.Millisecond, 750 * time.Millisecond, "Drained: done, 1 evicted", 2},
		{"a webhook says no", []answered{{refusal: apierrors.NewBadRequest(`admission webhook "keep.example.org" denied the request: not today`)}}, `shop/web-1 waits: the API server said 400: admission webhook "keep.example.org" denied the request: not today`, "", 250 * time.Millisecond, 750 * time.Millisecond, "Drained: done, 1 evicted", 2},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := newHost(t, podNamed("web-1"), budget(1))
			h.answers["evict shop/web-1"] = c.answers
			d := h.drainer()
			order := h.order(drain.Options{Timeout: lasting(0)})
			d.Ensure(t.Context(), order)
			synctest.Wait()
			st := d.Ensure(t.Context(), order)
			if !strings.Contains(st.Message, c.said) {
				t.Errorf("meanwhile %q", standing(st))
			}
			if got := rightSaid(st.Right); got != c.right || (st.Reason == executors.DrainForbidden) != (c.right != "") {
				t.Errorf("reason %s for want of %q", st.Reason, got)
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if st = d.Ensure(t.Context(), order); standing(st) != c.want || st.Right != nil {
				t.Errorf("at the end %q, right %v", standing(st), st.Right)
			}
			if len(h.at) != c.asked {
				t.Fatalf("asked %q", h.asked)
			}
			if c.asked > 1 {
				if after := h.at[1].Sub(h.at[0]); after < c.least || after > c.most {
					t.Errorf("asked again after %s", after)
				}
			}
		})
	}
}

func rightSaid(r *authorizationv1.ResourceAttributes) string {
	if r == nil {
		return ""
	}
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return strings.TrimSuffix(r.Verb+" "+resource+" in "+r.Namespace, " in ")
}

// Failures in a row are asked for later and later, at most every three quarters of a minute.
func TestHowLongARefusedRequestWaits(t *testing.T) {
	p := drain.Pod{Namespace: "shop", Name: "web-1"}
	busy := func(seconds int) error { return apierrors.NewTooManyRequests("busy", seconds) }
	for _, c := range []struct {
		name        string
		err         error
		tries       int
		least, most time.Duration
	}{
		{"the first time", io.ErrUnexpectedEOF, 0, 250 * time.Millisecond, 750 * time.Millisecond},
		{"the third time", io.ErrUnexpectedEOF, 2, time.Second, 3 * time.Second},
		{"for the hundredth time", io.ErrUnexpectedEOF, 100, 15 * time.Second, 45 * time.Second},
		{"a right is not granted within a second", forbids("delete", "pods"), 0, 4 * time.Second, 12 * time.Second},
		{"not before the server wants it", busy(33), 0, 33 * time.Second, 33 * time.Second},
		{"not so late as a server wants that asks for an hour", busy(3600), 0, time.Minute, time.Minute},
		{"not sooner than without its word", busy(1), 100, 15 * time.Second, 45 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 200 {
				if got := answerOf(c.err, p, "create pods/eviction", c.tries).after; got < c.least || got > c.most {
					t.Fatalf("after %s, not between %s and %s", got, c.least, c.most)
				}
			}
		})
	}
}

// Of what may have been done nobody gives the budget's room back.
func TestWhichAnswersMayHaveBeenAYes(t *testing.T) {
	status := func(code int) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(code), Message: "x"}} //nolint:gosec // codes are small
	}
	for _, c := range []struct {
		name    string
		err     error
		answer  drain.Answer
		unclear bool
	}{
		{"a yes", nil, drain.Accepted, false},
		{"no answer", io.ErrUnexpectedEOF, drain.Failed, true},
		{"not sent", notSentError{}, drain.Failed, false},
		{"500", status(http.StatusInternalServerError), drain.Failed, true},
		{"504", status(http.StatusGatewayTimeout), drain.Failed, true},
		{"499", status(499), drain.Failed, false},
		{"429 of a budget", overBudget(), drain.OverBudget, false},
		{"429 of a server that is busy", apierrors.NewTooManyRequests("busy", 1), drain.Failed, false},
		{"403", forbids("create", "pods/eviction"), drain.Failed, false},
		{"404", apierrors.NewNotFound(corev1.Resource("pods"), "web-1"), drain.Failed, false},
		{"409", apierrors.NewConflict(corev1.Resource("pods"), "web-1", io.EOF), drain.Failed, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := answerOf(c.err, drain.Pod{Namespace: "shop", Name: "web-1"}, "create pods/eviction", 0)
			if a.Answer != c.answer || a.unclear != c.unclear || a.forbidden != (c.name == "403") {
				t.Errorf("%+v", a)
			}
		})
	}
}

// A request that was decided on in time, and comes to be sent after the end, is not sent.
func TestNothingIsSentPastTheEndOfADrain(t *testing.T) {
	for onTimeout, want := range map[drain.OnTimeout][]string{
		drain.TimeoutRetry: {"evict shop/web-1"}, drain.TimeoutForce: {"evict shop/web-1"}, drain.TimeoutAbort: nil, drain.TimeoutSkip: nil,
	} {
		inBubble(t, string(onTimeout), func(t *testing.T) {
			h := newHost(t, podNamed("web-1"))
			order := h.order(drain.Options{OnTimeout: onTimeout})
			order.Since = time.Now().Add(-drain.DefaultDrainTimeout)
			s := newSession(h.drainer(), order)
			s.send(request{pod: drain.Pod{Namespace: "shop", Name: "web-1", UID: "uid-web-1"}})
			s.life.cancel()
			if got := h.requests(); !slices.Equal(got, want) {
				t.Errorf("asked %q", got)
			}
			time.Sleep(time.Minute)
		})
	}
}

// When the time of a drain is over.
func TestADrainWhoseTimeIsOver(t *testing.T) {
	held := []metav1.Object{podNamed("web-1"), budget(0)}
	for _, c := range []struct {
		name    string
		objects []metav1.Object
		options drain.Options
		before  func(*host)
		early   string // a second before
		asked   []string
		want    string // a while after
	}{
		{
			"retry goes on, and says so", held,
			drain.Options{},
			nil,
			"Blocked: 0 of 1 pods have left; ", nil, "Blocked: late, 0 of 1 pods have left; its time is over, and it goes on; ",
		},
		{
			"skip leaves what is left", held,
			drain.Options{OnTimeout: drain.TimeoutSkip},
			nil,
			"Blocked: 0 of 1 pods have left; ", nil, "TimedOut: done, 0 evicted, 1 left: shop/web-1 (",
		},
		{
			"abort gives up", held,
			drain.Options{OnTimeout: drain.TimeoutAbort},
			nil,
			"Blocked: 0 of 1 pods have left; ", nil, "TimedOut: aborted, time is over, and the drain is given up: 0 evicted, 1 left: shop/web-1 (",
		},
		{
			"force deletes past the budget", held,
			drain.Options{OnTimeout: drain.TimeoutForce},
			nil,
			"Blocked: 0 of 1 pods have left; ",
			[]string{"delete shop/web-1"},
			"Drained: done, 0 evicted, 1 forced",
		},
		{
			"force says the grace", held,
			drain.Options{OnTimeout: drain.TimeoutForce, GracePeriod: lasting(5 * time.Second)},
			nil,
			"Blocked: 0 of 1 pods have left; ",
			[]string{"delete shop/web-1 grace 5"},
			"Drained: done, 0 evicted, 1 forced",
		},
		{
			"force deletes nobody while a pod is refused",
			[]metav1.Object{podNamed("web-1"), podNamed("job", alone), budget(0)},
			drain.Options{OnTimeout: drain.TimeoutForce},
			nil,
			"Blocked: 0 of 2 pods have left; ", nil, "Blocked: late, 0 of 2 pods have left; its time is over, and it goes on; shop/job cannot leave",
		},
		{
			"force without the right to delete says which", held,
			drain.Options{OnTimeout: drain.TimeoutForce},
			func(h *host) {
				h.answers["delete shop/web-1"] = slices.Repeat([]answered{{refusal: forbids("delete", "pods")}}, 100)
			},
			"Blocked: 0 of 1 pods have left; ",
			[]string{"delete shop/web-1"},
			"Forbidden: 0 of 1 pods have left; not allowed to delete pods in namespace shop: ",
		},
		{
			"another timeout than the usual", held,
			drain.Options{OnTimeout: drain.TimeoutSkip, Timeout: lasting(5*time.Minute + 10*time.Second)},
			nil,
			"Blocked: 0 of 1 pods have left; ", nil, "TimedOut: done, ",
		},
		{
			"no timeout is no deadline", held,
			drain.Options{OnTimeout: drain.TimeoutSkip, Timeout: lasting(0)},
			nil,
			"Blocked: 0 of 1 pods have left; ", nil, "Blocked: 0 of 1 pods have left; ",
		},
		{
			"podTimeout deletes one that its budget held for so long", held,
			drain.Options{OnTimeout: drain.TimeoutForce, PodTimeout: lasting(5*time.Minute + 15*time.Second), Timeout: lasting(time.Hour)},
			nil,
			"Blocked: 0 of 1 pods have left; ",
			[]string{"delete shop/web-1"},
			"Drained: done, 0 evicted, 1 forced",
		},
		{
			"one that is still shutting down is left",
			[]metav1.Object{podNamed("web-1")},
			drain.Options{OnTimeout: drain.TimeoutSkip},
			func(h *host) { h.shutdown = time.Hour },
			"Draining: 0 of 1 pods have left; ",
			[]string{"evict shop/web-1"},
			"TimedOut: done, 0 evicted, 1 left: shop/web-1 (",
		},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := newHost(t, c.objects...)
			if c.before != nil {
				c.before(h)
			}
			d := h.drainer()
			order := h.order(c.options)
			d.Ensure(t.Context(), order)
			time.Sleep(drain.DefaultDrainTimeout - time.Second)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); !strings.HasPrefix(standing(st), strings.TrimSuffix(c.early, "; ")) {
				t.Errorf("before it is %q", standing(st))
			}
			time.Sleep(31 * time.Second)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); !strings.HasPrefix(standing(st), c.want) {
				t.Errorf("after it is %q", standing(st))
			}
			if got := h.requests(); !slices.Equal(slices.Compact(got), c.asked) {
				t.Errorf("asked %q", got)
			}
		})
	}
}

// A drain that begins again, after its agent died, has the time that is left of it.
func TestTheTimeOfADrainCountsFromItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, podNamed("web-1"), budget(0))
		order := h.order(drain.Options{OnTimeout: drain.TimeoutSkip})
		order.Since = time.Now().Add(-drain.DefaultDrainTimeout + time.Minute)
		d := h.drainer()
		if st := d.Ensure(t.Context(), order); !st.Deadline.Equal(time.Now().Add(time.Minute)) {
			t.Errorf("its deadline is %s", st.Deadline)
		}
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); st.Done {
			t.Errorf("before it is %q", standing(st))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); !st.Done || st.Left != 1 {
			t.Errorf("after it is %q", standing(st))
		}
	})
}

// A budget that has room again is noticed by its watch, not by waiting.
func TestAPodGoesWhenItsBudgetHasRoomAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, podNamed("web-1"), podNamed("web-2"), budget(1))
		d := h.drainer()
		order := h.order(drain.Options{})
		d.Ensure(t.Context(), order)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := h.requests(); !slices.Equal(got, []string{"evict shop/web-1"}) {
			t.Fatalf("asked %q", got)
		}
		h.allow(1)
		synctest.Wait()
		if got := h.requests(); !slices.Equal(got, []string{"evict shop/web-1", "evict shop/web-2"}) {
			t.Fatalf("asked %q", got)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); standing(st) != "Drained: done, 2 evicted" || st.Total != 2 || st.Left != 0 || st.Evicted != 2 {
			t.Errorf("%+v", st)
		}
	})
}

// An eviction that the API server counted and did not carry out is finished by a deletion
// that budgets are not asked for, or waited for where the account may not delete.
func TestAnEvictionThatWasCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		mayDelete bool
		asked     []string
		want      string
	}{
		"is finished": {true, []string{"delete shop/web-1"}, "Drained: done, 1 evicted"},
		"is waited for without the right to delete": {false, []string{"delete shop/web-1"}, "Blocked: 0 of 1 pods have left; shop/web-1 cannot leave for now: budget shop/web: "},
	} {
		inBubble(t, name, func(t *testing.T) {
			h := newHost(t)
			p := podNamed("web-1")
			p.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
			h.put(p, budget(0, func(b *policyv1.PodDisruptionBudget) {
				b.Status.DisruptedPods = map[string]metav1.Time{"web-1": metav1.Now()}
			}))
			if !c.mayDelete {
				h.answers["delete shop/web-1"] = slices.Repeat([]answered{{refusal: forbids("delete", "pods")}}, 10)
			}
			d := h.drainer()
			order := h.order(drain.Options{})
			d.Ensure(t.Context(), order)
			time.Sleep(4 * time.Second)
			synctest.Wait()
			if got := h.requests(); len(got) != 0 {
				t.Errorf("at once it asked %q", got)
			}
			time.Sleep(6 * time.Second)
			synctest.Wait()
			if got := h.requests(); !slices.Equal(got, c.asked) {
				t.Errorf("asked %q", got)
			}
			if st := d.Ensure(t.Context(), order); !strings.HasPrefix(standing(st), c.want) || st.Right != nil {
				t.Errorf("%q, right %v", standing(st), st.Right)
			}
		})
	}
}

// Pods that left without us, that came back, and that wait for others.
func TestPodsThatComeAndGoByThemselves(t *testing.T) {
	completes := func(h *host) {
		h.put(podNamed("job-1", of("Job", "job"), drained("wait-completed"), inPhase(corev1.PodSucceeded)))
	}
	for _, c := range []struct {
		name    string
		objects []metav1.Object
		then    func(*host) // ten seconds later
		asked   []string
		before  string
		want    string
	}{
		{
			"one that is waited for ends",
			[]metav1.Object{podNamed("job-1", of("Job", "job"), drained("wait-completed"))},
			completes,
			nil, "Draining: 0 of 1 pods have left; shop/job-1 waits: until it has completed (maint.dev/drain: wait-completed)", "Drained: done, 0 evicted, 1 skipped",
		},
		{
			"one that somebody deletes is gone by itself",
			[]metav1.Object{podNamed("web-1"), budget(0)},
			func(h *host) { h.end("shop", "web-1") },
			nil, "Blocked: 0 of 1 pods have left; ", "Drained: done, 0 evicted, 1 gone by themselves",
		},
		{
			"one that is being deleted already is not evicted",
			[]metav1.Object{podNamed("web-1", func(p *corev1.Pod) {
				p.DeletionTimestamp = new(metav1.NewTime(time.Date(2000, 1, 1, 0, 0, 20, 0, time.UTC)))
			})},
			func(h *host) { h.DeleteAtOnce("pods", "shop", "web-1") },
			nil, "Draining: 0 of 1 pods have left", "Drained: done, 0 evicted, 1 gone by themselves",
		},
		{
			"a pod of a lower order leaves first",
			[]metav1.Object{podNamed("web-1", annotated(annotations.DrainOrder, "2")), podNamed("web-2", annotated(annotations.DrainOrder, "1"), func(p *corev1.Pod) { p.Labels["app"] = "db" }), func() metav1.Object {
				b := budget(0)
				b.Spec.Selector.MatchLabels["app"] = "db"
				return b
			}()},
			func(h *host) { h.allow(1) },
			[]string{"evict shop/web-2", "evict shop/web-1"},
			"Blocked: 0 of 2 pods have left; shop/web-2 cannot leave", "Drained: done, 2 evicted",
		},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := newHost(t, c.objects...)
			d := h.drainer()
			order := h.order(drain.Options{})
			d.Ensure(t.Context(), order)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); !strings.HasPrefix(standing(st), strings.TrimSuffix(c.before, "; ")) {
				t.Errorf("before %q", standing(st))
			}
			c.then(h)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); standing(st) != c.want {
				t.Errorf("after %q", standing(st))
			}
			if got := h.requests(); !slices.Equal(got, c.asked) {
				t.Errorf("asked %q", got)
			}
		})
	}
}

// What a pod's owner writes on it in the middle of a drain is minded as it stands when the
// pod is to be evicted: no pod of others leaves for it, and none that was left alone is
// evicted in its place.
func TestPodsWhoseMarksChangeInMidDrain(t *testing.T) {
	picked := drain.Options{PodSelector: "app=web"}
	labelled := func(app string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Labels["app"] = app } }
	for _, c := range []struct {
		name  string
		first []func(*corev1.Pod)
		then  []func(*corev1.Pod)
		asked []string
		want  string
	}{
		{
			"one that is picked no more stays", nil,
			[]func(*corev1.Pod){labelled("db")},
			nil, "Drained: done, 0 evicted, 2 skipped",
		},
		{
			"one that is to be skipped now stays, and the drain says so", nil,
			[]func(*corev1.Pod){drained("skip")},
			nil, "Drained: done, 0 evicted, 2 skipped",
		},
		{
			"one that is picked now leaves by its budget alone",
			[]func(*corev1.Pod){labelled("db")},
			nil,
			[]string{"evict shop/web-1"},
			"Drained: done, 1 evicted, 1 gone by themselves, 1 skipped",
		},
		{
			"one whose mark nobody understands holds the drain up, and is not evicted", nil,
			[]func(*corev1.Pod){drained("please")},
			nil, `Blocked: 0 of 1 pods have left; shop/web-1 cannot leave until somebody changes something: maint.dev/drain is "please"`,
		},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			other := podNamed("other-1", labelled("other"))
			h := newHost(t, podNamed("web-1", c.first...), other, budget(0))
			d := h.drainer()
			order := h.order(picked)
			if c.first != nil { // something else keeps the drain going
				h.put(podNamed("job-1", of("Job", "job"), drained("wait-completed")))
			}
			d.Ensure(t.Context(), order)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			h.put(podNamed("web-1", c.then...))
			time.Sleep(10 * time.Second)
			h.allow(1)
			if c.first != nil {
				h.end("shop", "job-1")
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); !strings.HasPrefix(standing(st), c.want) {
				t.Errorf("it is %q", standing(st))
			}
			if got := h.requests(); !slices.Equal(got, c.asked) {
				t.Errorf("asked %q", got)
			}
		})
	}
}

// What tolerates the cordon comes back: the drain waits a moment to see whether it does,
// and after twice it stays.
func TestPodsThatTolerateTheCordonComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tolerant := func(n int) *corev1.Pod {
			return podNamed("agent-0", of("StatefulSet", "agent"), func(p *corev1.Pod) {
				p.UID = types.UID(fmt.Sprint("uid-agent-0-", n))
				p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			})
		}
		h := newHost(t, tolerant(0))
		d := h.drainer()
		order := h.order(drain.Options{})
		d.Ensure(t.Context(), order)
		for n := range 2 {
			time.Sleep(h.shutdown + time.Second)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); st.Done {
				t.Fatalf("a second after it left, for the %d. time: %q", n+1, standing(st))
			}
			h.put(tolerant(n + 1))
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		want := "TimedOut: done, 2 evicted, 1 left: shop/agent-0 (pods of its kind came back to this node 2 times: they tolerate the cordon)"
		if st := d.Ensure(t.Context(), order); standing(st) != want {
			t.Errorf("%q", standing(st))
		}
		if got := h.requests(); !slices.Equal(got, []string{"evict shop/agent-0", "evict shop/agent-0"}) {
			t.Errorf("asked %q", got)
		}
	})
}

// What cannot be read: nothing is evicted, and it is said why.
func TestADrainThatCannotReadEvictsNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		deny  string // list of
		away  bool
		said  string
		right string
	}{
		{"pods that the account may not list", "pods", false, "Forbidden: cannot read pods and budgets: ", "list pods"},
		{"budgets that the agent may not list: no right of the account is missing", "poddisruptionbudgets", false, "Forbidden: cannot read pods and budgets: ", ""},
		{"an API server that is away", "pods", true, "Unavailable: cannot read pods and budgets: ", ""},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := newHost(t, podNamed("web-1"))
			mend := func() { h.Allow("", "list", c.deny) }
			if c.away {
				mend = h.Fail(agenttest.When{Verb: "list", Resource: c.deny}, agenttest.Always)
			} else {
				h.Deny("", "list", c.deny)
			}
			d := h.drainer()
			order := h.order(drain.Options{OnTimeout: drain.TimeoutForce})
			d.Ensure(t.Context(), order)
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			st := d.Ensure(t.Context(), order)
			if !strings.HasPrefix(standing(st), c.said) || rightSaid(st.Right) != c.right || len(h.requests()) != 0 {
				t.Errorf("%q, right %q, asked %q", standing(st), rightSaid(st.Right), h.requests())
			}
			mend()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); !st.Done || st.Right != nil {
				t.Errorf("afterwards %q", standing(st))
			}
		})
	}
}

// An account that may list pods and not watch them drains: it lists again. Where nothing can be decided
// for another reason, no right is missing.
func TestADrainWhosePodsMayNotBeWatchedListsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, podNamed("web-1"), podNamed("web-2"))
		h.unwatch = true
		mend := h.Fail(agenttest.When{Verb: "list", Resource: "poddisruptionbudgets"}, agenttest.Always)
		d := h.drainer()
		order := h.order(drain.Options{})
		d.Ensure(t.Context(), order)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); !strings.HasPrefix(standing(st), "Unavailable: cannot read pods and budgets: ") || st.Right != nil || strings.Contains(st.Message, "watch") {
			t.Errorf("%q, right %q", standing(st), rightSaid(st.Right))
		}
		mend()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); standing(st) != "Drained: done, 2 evicted" {
			t.Errorf("%q", standing(st))
		}
	})
}

// What is said is why budgets cannot be read now, and not why they could not at first.
func TestTheReasonWhyBudgetsAreNotReadIsTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, podNamed("web-1"))
		mend := h.Fail(agenttest.When{Verb: "list", Resource: "poddisruptionbudgets"}, agenttest.Always)
		d := h.drainer()
		order := h.order(drain.Options{})
		says := func(want string) {
			t.Helper()
			time.Sleep(20 * time.Second)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); !strings.HasPrefix(standing(st), want) {
				t.Errorf("%q", standing(st))
			}
		}
		d.Ensure(t.Context(), order)
		says("Unavailable: cannot read pods and budgets: ")
		h.Deny("", "list", "poddisruptionbudgets")
		mend()
		says("Forbidden: cannot read pods and budgets: poddisruptionbudgets.policy is forbidden: ")
		h.Allow("", "list", "poddisruptionbudgets")
		says("Drained: done, 1 evicted")
	})
}

// A DaemonSet that cannot be read holds its pods up, until it can.
func TestADaemonSetThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, podNamed("web-1"), podNamed("logs", of("DaemonSet", "logs")), daemonSet("logs"))
		h.Deny("", "get", "daemonsets")
		d := h.drainer()
		order := h.order(drain.Options{})
		d.Ensure(t.Context(), order)
		time.Sleep(time.Minute)
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); !strings.HasSuffix(st.Message, "the DaemonSet must be readable: grant get on daemonsets.apps") || len(h.requests()) != 0 {
			t.Errorf("%q, asked %q", standing(st), h.requests())
		}
		if n := h.Asked(agenttest.When{Verb: "get", Resource: "daemonsets"}); n < 11 || n > 14 {
			t.Errorf("it was asked for %d times in a minute, not every five seconds", n)
		}
		h.Allow("", "get", "daemonsets")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); standing(st) != "Drained: done, 1 evicted, 1 skipped" {
			t.Errorf("afterwards %q", standing(st))
		}
		if n := h.Asked(agenttest.When{Verb: "get", Resource: "daemonsets"}); n > 15 {
			t.Errorf("it was asked for %d times", n)
		}
	})
}

// A dry run says what would be, and asks for nothing.
func TestADryRunOfADrain(t *testing.T) {
	for _, c := range []struct {
		name    string
		objects []metav1.Object
		want    string
		skipped int
	}{
		{"of a node whose pods would leave", []metav1.Object{podNamed("web-1"), podNamed("web-2"), podNamed("db", drained("skip"))}, "Drained: done, dry run: 2 pods would have to leave", 1},
		{"of one with a pod that is refused", []metav1.Object{podNamed("web-1"), podNamed("job", alone)}, "Drained: done, dry run: 2 pods would have to leave; shop/job cannot leave until somebody changes something: ", 0},
		{"of one whose budget has no room", []metav1.Object{podNamed("web-1"), budget(0)}, "Drained: done, dry run: 1 pods would have to leave; shop/web-1 cannot leave for now: budget shop/web: ", 0},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := newHost(t, c.objects...)
			order := h.order(drain.Options{})
			order.DryRun = true
			d := h.drainer()
			d.Ensure(t.Context(), order)
			time.Sleep(time.Minute)
			synctest.Wait()
			st := d.Ensure(t.Context(), order)
			if !strings.HasPrefix(standing(st), c.want) || st.Outcome.Skipped != c.skipped || len(h.requests()) != 0 {
				t.Errorf("%q, %d stay, asked %q", standing(st), st.Outcome.Skipped, h.requests())
			}
		})
	}
}

// Which orders go on with a drain, and which begin another.
func TestAnOrderThatIsGivenAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*executors.DrainOrder)
		anew   bool
	}{
		{"the same", func(*executors.DrainOrder) {}, false},
		{"with other clients", func(o *executors.DrainOrder) { o.Clients.Connection = "x" }, false},
		{"with the same options, written elsewhere", func(o *executors.DrainOrder) { o.Options.GracePeriod = lasting(time.Second) }, false},
		{"with another grace", func(o *executors.DrainOrder) { o.Options.GracePeriod = lasting(2 * time.Second) }, true},
		{"for another node of the name", func(o *executors.DrainOrder) { o.NodeUID = "uid-a-2" }, true},
		{"from another beginning", func(o *executors.DrainOrder) { o.Since = o.Since.Add(time.Second) }, true},
		{"from the same beginning, said in another zone", func(o *executors.DrainOrder) { o.Since = o.Since.In(time.FixedZone("x", 3600)) }, false},
		{"as a dry run", func(o *executors.DrainOrder) { o.DryRun = true }, true},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := newHost(t, podNamed("web-1"), budget(0))
			d := h.drainer()
			order := h.order(drain.Options{GracePeriod: lasting(time.Second)})
			d.Ensure(t.Context(), order)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			c.change(&order)
			if anew := d.Ensure(t.Context(), order).Reason == executors.DrainListing; anew != c.anew {
				t.Errorf("begun again: %t", anew)
			}
			if len(d.sessions) != 1 {
				t.Errorf("%d sessions", len(d.sessions))
			}
		})
	}
}

// A drain that is stopped asks for nothing more; the other claimant's goes on.
func TestADrainThatIsStopped(t *testing.T) {
	for name, stop := range map[string]func(*Drainer){
		"by Stop": func(d *Drainer) { d.Stop("a", mine) },
		"because nobody wants it any more": func(d *Drainer) {
			d.Keep(func(node, by string) bool { return node != "a" || by != mine })
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			h := newHost(t, podNamed("web-1"), podNamed("db-1", on("b"), func(p *corev1.Pod) { p.Labels["app"] = "web" }), budget(0))
			d := h.drainer()
			d.Ensure(t.Context(), h.order(drain.Options{}))
			other := h.order(drain.Options{})
			other.Node, other.By = "b", "gpu"
			d.Ensure(t.Context(), other)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			stop(d)
			d.Stop("ghost", mine) // one that is not there
			h.allow(2)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if got := h.requests(); !slices.Equal(got, []string{"evict shop/db-1"}) {
				t.Errorf("asked %q", got)
			}
			if st := d.Ensure(t.Context(), other); !st.Done {
				t.Errorf("the other is %q", standing(st))
			}
		})
	}
}

// A request in flight when its drain is stopped has five seconds for its answer: AwaitRequests
// waits for it.
func TestARequestInFlightIsLeftItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, podNamed("web-1"))
		d := h.drainer()
		d.mu.Lock()
		d.busy = 1
		d.mu.Unlock()
		began := time.Now()
		time.AfterFunc(3*time.Second, func() {
			d.mu.Lock()
			d.busy = 0
			d.mu.Unlock()
		})
		d.AwaitRequests()
		if took := time.Since(began); took < 3*time.Second || took > 3*time.Second+20*time.Millisecond {
			t.Errorf("settled after %s", took)
		}
		d.busy = 1
		began = time.Now()
		if d.AwaitRequests(); time.Since(began) < stopFor || time.Since(began) > stopFor+20*time.Millisecond {
			t.Errorf("given up after %s", time.Since(began))
		}
	})
}

// The watches of budgets outlast the last drain by a minute, and no longer.
func TestBudgetsAreWatchedAMinuteLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, podNamed("web-1"), budget(0))
		d := h.drainer()
		watched := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if got := h.Watches(); !slices.Equal(got, want) {
				t.Errorf("watches %q, want %q", got, want)
			}
		}
		d.Ensure(t.Context(), h.order(drain.Options{WaitForVolumes: true}))
		watched("agent poddisruptionbudgets", "agent pods", "agent volumeattachments")
		d.Stop("a", mine)
		time.Sleep(budgetsIdle - time.Second)
		watched("agent poddisruptionbudgets", "agent volumeattachments")
		d.Ensure(t.Context(), h.order(drain.Options{}))
		d.Stop("a", mine) // begins the minute anew
		time.Sleep(budgetsIdle - time.Second)
		watched("agent poddisruptionbudgets", "agent volumeattachments")
		time.Sleep(2 * time.Second)
		watched()
	})
}

// OnChange is called for an end or a block at once, for one pod more a second later.
func TestWhoeverWaitsForADrainIsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		h := newHost(t, podNamed("web-1"), podNamed("web-2"), podNamed("web-3"))
		h.shutdown = 10 * time.Second
		began := time.Now()
		d := h.drainer(func(c *Config) {
			c.OnChange = func(node, by string) {
				if node != "a" || by != mine {
					t.Errorf("called for %s of %s", node, by)
				}
				h.mu.Lock()
				defer h.mu.Unlock()
				at = append(at, time.Since(began).Round(100*time.Millisecond))
			}
		})
		order := h.order(drain.Options{})
		d.Ensure(t.Context(), order)
		time.Sleep(5 * time.Second)
		h.DeleteAtOnce("pods", "shop", "web-1")
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []time.Duration{100 * time.Millisecond, 6 * time.Second, 10100 * time.Millisecond}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
