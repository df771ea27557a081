package metrics

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// reviewer is an API server that knows the tokens "prometheus", who may scrape, and
// "tenant", who may not.
type reviewer struct {
	*fake.Clientset
	asked atomic.Int32
	away  atomic.Bool
}

func newReviewer() *reviewer {
	r := &reviewer{Clientset: fake.NewClientset()}
	r.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r.asked.Add(1)
		if r.away.Load() {
			return true, nil, errors.New("away")
		}
		review := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		if token := review.Spec.Token; token == "prometheus" || token == "tenant" {
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: token, Groups: []string{"g"}}}
		}
		return true, review, nil
	})
	r.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		asks := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "prometheus" && len(review.Spec.Groups) == 1 && asks != nil && asks.Path == "/metrics" && asks.Verb == "get"
		return true, review, nil
	})
	return r
}

func get(h http.Handler, path, authorization string) (int, string) {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	return w.Code, w.Body.String()
}

func TestWhoReadsTheMetrics(t *testing.T) {
	r := newReviewer()
	h := New("v1").Handler(func() bool { return true }, func(*bufio.Writer) {}, NewScrapers(r, time.Now))
	for name, c := range map[string]struct {
		path, authorization string
		code                int
		says                string
	}{
		"who has the right":        {"/metrics", "Bearer prometheus", 200, "maint_build_info"},
		"who has it not":           {"/metrics", "Bearer tenant", 403, "tenant may not get /metrics"},
		"a token nobody knows":     {"/metrics", "Bearer other", 401, "does not know this token"},
		"nobody":                   {"/metrics", "", 401, "send a token"},
		"an empty token":           {"/metrics", "Bearer ", 401, "send a token"},
		"a password":               {"/metrics", "Basic cHJvbWV0aGV1cw==", 401, "send a token"},
		"the kubelet asks of life": {"/healthz", "", 200, "ok"},
		"and whether it is ready":  {"/readyz", "", 200, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := get(h, c.path, c.authorization)
			if code != c.code || !strings.Contains(body, c.says) {
				t.Errorf("answers %d %q, want %d %q", code, body, c.code, c.says)
			}
		})
	}
}

// The API server is asked once in a while for each token, and what it could not be asked
// is no answer.
func TestAnAnswerAboutAScraperIsBelievedForAWhile(t *testing.T) {
	r, now := newReviewer(), time.Unix(0, 0)
	h := New("v1").Handler(func() bool { return true }, func(*bufio.Writer) {}, NewScrapers(r, func() time.Time { return now }))
	for range 3 {
		get(h, "/metrics", "Bearer prometheus")
		get(h, "/metrics", "Bearer other")
	}
	if n := r.asked.Load(); n != 2 {
		t.Errorf("the API server was asked %d times, want 2", n)
	}
	now = now.Add(scraperAge)
	r.away.Store(true)
	if code, body := get(h, "/metrics", "Bearer prometheus"); code != 503 {
		t.Errorf("without the API server it answers %d %q", code, body)
	}
	r.away.Store(false)
	if code, _ := get(h, "/metrics", "Bearer prometheus"); code != 200 {
		t.Errorf("with it again it answers %d", code)
	}
}

func TestWithoutScrapersWhoeverComesReads(t *testing.T) {
	h := New("v1").Handler(func() bool { return true }, func(*bufio.Writer) {}, nil)
	if code, body := get(h, "/metrics", ""); code != 200 || !strings.Contains(body, "maint_build_info") {
		t.Errorf("answers %d", code)
	}
}

// Whoever reaches the port may send tokens without end: who was let in before is asked about all
// the same, beside them.
func TestStrangersKeepNoScraperOut(t *testing.T) {
	r, now := newReviewer(), time.Unix(0, 0)
	s := NewScrapers(r, func() time.Time { return now })
	h := New("v1").Handler(func() bool { return true }, func(*bufio.Writer) {}, s)
	reads := func(when string) {
		t.Helper()
		if code, body := get(h, "/metrics", "Bearer prometheus"); code != 200 {
			t.Errorf("%s it answers %d %q", when, code, body)
		}
	}
	reads("at first")
	for i := range 2 * scrapersHeld {
		get(h, "/metrics", fmt.Sprintf("Bearer stranger-%d", i))
	}
	if !s.strangers.asking.TryAcquire(scrapersAsking) { // strangers that are asked about
		t.Fatal("somebody is still asked about")
	}
	now = now.Add(scraperAge)
	reads("while strangers are asked about")
}

func TestAScraperThatLostItsRightIsAStrangerAgain(t *testing.T) {
	r, now := newReviewer(), time.Unix(0, 0)
	s := NewScrapers(r, func() time.Time { return now })
	h := New("v1").Handler(func() bool { return true }, func(*bufio.Writer) {}, s)
	get(h, "/metrics", "Bearer prometheus")
	r.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, a.(clienttesting.CreateAction).GetObject(), nil
	})
	now = now.Add(scraperAge)
	for range 2 {
		if code, _ := get(h, "/metrics", "Bearer prometheus"); code != 401 {
			t.Errorf("it answers %d", code)
		}
	}
	if n := s.admitted.answers.Len(); n != 0 {
		t.Errorf("%d are known who may read", n)
	}
}
