package metrics

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/semaphore"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Scrapers lets those read the metrics whose token the API server knows, and who may get
// /metrics there, as the API server's own metrics are read.
//
// Whoever reaches the port may send as many tokens as they like. So those that were let in are
// kept apart, and have places of their own: strangers keep none of them out.
type Scrapers struct {
	kube      kube.Interface
	now       func() time.Time
	admitted  callers // that may read, or might a while ago
	strangers callers // all others
}

// callers are those who send tokens of one sort.
type callers struct {
	answers *lru.Cache[[sha256.Size]byte, scraperAnswer]
	asking  *semaphore.Weighted // questions that are under way
}

func newCallers() callers {
	answers, _ := lru.New[[sha256.Size]byte, scraperAnswer](scrapersHeld) // its error is for limits below one
	return callers{answers: answers, asking: semaphore.NewWeighted(scrapersAsking)}
}

type scraperAnswer struct {
	allowed bool
	why     string
	at      time.Time
}

// Bounds of what strangers can have the agent ask (guesses: a scraper comes every few
// seconds with the same token).
const (
	scraperAge     = 30 * time.Second // an answer is believed
	scrapersHeld   = 100              // answers of each sort
	scrapersAsking = 2                // questions of each sort at once
	scraperTimeout = 5 * time.Second
)

// NewScrapers asks a client's API server.
func NewScrapers(kube kube.Interface, now func() time.Time) *Scrapers {
	return &Scrapers{kube: kube, now: now, admitted: newCallers(), strangers: newCallers()}
}

// errBusy says that too many ask at once.
var errBusy = errors.New("too many tokens are being looked at") //nolint:gochecknoglobals // a sentinel for errors.Is

// guard serves next to scrapers alone.
func (s *Scrapers) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !is || token == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "send a token of this cluster: Authorization: Bearer TOKEN", http.StatusUnauthorized)
			return
		}
		answer, err := s.answer(r.Context(), token)
		switch {
		case err != nil:
			http.Error(w, "who asks could not be looked up: "+err.Error(), http.StatusServiceUnavailable)
		case !answer.allowed && answer.why == "":
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the API server does not know this token", http.StatusUnauthorized)
		case !answer.allowed:
			http.Error(w, answer.why, http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// answer is what the API server says of a token, now or a while ago.
func (s *Scrapers) answer(ctx context.Context, token string) (scraperAnswer, error) {
	key := sha256.Sum256([]byte(token))
	among := s.admitted
	known, there := among.answers.Get(key)
	if !there {
		among = s.strangers
		known, there = among.answers.Get(key)
	}
	if there && s.now().Sub(known.at) < scraperAge {
		return known, nil
	}
	if !among.asking.TryAcquire(1) {
		return scraperAnswer{}, errBusy
	}
	defer among.asking.Release(1)
	ctx, cancel := context.WithTimeout(ctx, scraperTimeout)
	defer cancel()
	answer, err := s.ask(ctx, token)
	if err == nil {
		answer.at = s.now()
		s.keep(key, answer)
	}
	return answer, err
}

// keep keeps an answer among those of its sort.
func (s *Scrapers) keep(key [sha256.Size]byte, answer scraperAnswer) {
	into, out := s.strangers, s.admitted
	if answer.allowed {
		into, out = out, into
	}
	out.answers.Remove(key)
	into.answers.Add(key, answer)
}

func (s *Scrapers) ask(ctx context.Context, token string) (scraperAnswer, error) {
	review, err := s.kube.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return scraperAnswer{}, fmt.Errorf("ask whose token it is: %w", err)
	}
	if !review.Status.Authenticated {
		return scraperAnswer{}, nil
	}
	user := review.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	access, err := s.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return scraperAnswer{}, fmt.Errorf("ask what %s may: %w", user.Username, err)
	}
	if !access.Status.Allowed {
		return scraperAnswer{why: user.Username + " may not get /metrics: the ClusterRole maint-metrics-reader, bound to it, lets it"}, nil
	}
	return scraperAnswer{allowed: true}, nil
}
