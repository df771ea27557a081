package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// Bounds of what API servers answer to requests for plans and policies: what a tenant
// stored in the agent's own cluster may be large, and another cluster may be anybody's. An
// answer is weighed while it is read and before it is decoded, since what it says takes many
// times its bytes in memory. 46 bytes were measured for a number in a list, and 100 for an
// entry of a map of texts, which counts as two values; all others are guesses.
const (
	maxAnswer   = 16 << 20         // weight of one answer
	maxEvent    = 8 << 20          // weight of one event of a watch
	lightAnswer = 128 << 10        // an answer of more weight takes a place
	heavyHome   = 2                // places of the passes of steps, and as many of all other reads
	heavyAbroad = 1                // the same for other clusters
	slowAbroad  = 30 * time.Second // longer than which no heavy answer of another cluster takes
	perValue    = 48               // weight of a JSON value beside its bytes
	perByte     = 3                // weight of a byte: it is read, handed on and decoded
	perPacked   = 8                // weight of a byte of protobuf
	fewer       = 8                // a page that is too large is asked for again with so many times fewer objects
)

// answers bounds what is read at once of the agent's own API server, or of all others.
type answers struct {
	foreign        bool
	passes         *places
	others, events *semaphore.Weighted
}

func newAnswers(foreign bool) *answers {
	most := heavyHome
	if foreign {
		most = heavyAbroad
	}
	return &answers{foreign: foreign, passes: newPlaces(most), others: semaphore.NewWeighted(int64(most)), events: semaphore.NewWeighted(1)}
}

// pass is one pass of a step: what it reads lives until it ends or says that it does not
// need it any more, so it keeps the places that its first heavy answers take.
type pass struct {
	tenant string
	mu     sync.Mutex
	held   map[*places]bool
	ended  bool
}

// WithPass is the context of a pass of a step of a tenant; end gives back what the pass has
// taken.
func WithPass(ctx context.Context, tenant string) (inner context.Context, end func()) {
	p := &pass{tenant: tenant, held: map[*places]bool{}}
	return executors.WithReservation(ctx, p), p.end
}

func (p *pass) end() {
	p.Release()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// Namespace is executors.Reservation's.
func (p *pass) Namespace() string { return p.tenant }

// Release is executors.Reservation's.
func (p *pass) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for from := range p.held {
		from.release(p.tenant)
	}
	clear(p.held)
}

// Holds is executors.Reservation's.
func (p *pass) Holds() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.held) > 0
}

// enter takes one of the places for the pass, unless it has one. Steps of a pass that read
// side by side wait for each other here, no longer than their requests may take.
func (p *pass) enter(ctx context.Context, from *places) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[from] || p.ended {
		return nil
	}
	if err := from.acquire(ctx, p.tenant); err != nil {
		return err
	}
	p.held[from] = true
	return nil
}

// place takes a place for a heavy answer. leave gives it back; a pass keeps it to its end.
func (a *answers) place(ctx context.Context) (leave func(), err error) {
	if p, is := executors.ReservationOf(ctx).(*pass); is {
		return func() {}, p.enter(ctx, a.passes)
	}
	if err := a.others.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { a.others.Release(1) }, nil
}

// pageSizes are the pages that lists of a client are read in where those that were asked for
// were too large, by the list. A page that was not too large lets the next have twice as
// many objects.
type pageSizes struct{ pages *lru.Cache[string, int] }

// maxPageSizes is how many lists of a client are known to be large (a guess).
const maxPageSizes = 64

func newPageSizes() pageSizes {
	pages, _ := lru.New[string, int](maxPageSizes) // the error is for limits below one
	return pageSizes{pages}
}

func listKey(u *url.URL) string {
	query := u.Query()
	return u.Path + "?" + query.Get("labelSelector") + "&" + query.Get("fieldSelector")
}

// ask is a request for a page, with as many objects as may fit.
func (s pageSizes) ask(req *http.Request) (asks *http.Request, limit int) {
	query := req.URL.Query()
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil || limit < 2 || req.Method != http.MethodGet || query.Get("watch") != "" {
		return req, 0
	}
	if fits, known := s.pages.Get(listKey(req.URL)); known && fits < limit {
		limit = fits
	}
	asks = req.Clone(req.Context())
	query.Set("limit", strconv.Itoa(limit))
	asks.URL.RawQuery = query.Encode()
	return asks, limit
}

// fits notes that a page of so many objects was not too large, or was.
func (s pageSizes) fits(req *http.Request, limit int, ok bool) {
	key := listKey(req.URL)
	switch _, known := s.pages.Get(key); {
	case !ok:
		s.pages.Add(key, max(1, limit/fewer))
	case known:
		s.pages.Add(key, 2*limit)
	}
}

// bounded weighs the answers of a transport. A page of a list is read whole: one that is too
// large is asked for with fewer objects, and whoever lists in pages goes on from where it
// ends. Another cluster may speak nothing but JSON: of other encodings nobody can tell
// beforehand how large they become.
func (a *answers) bounded(next http.RoundTripper) http.RoundTripper {
	pages := newPageSizes()
	return RoundTripper(func(req *http.Request) (*http.Response, error) {
		for {
			asks, limit := pages.ask(req)
			answer, err := a.answer(next, asks)
			if err != nil || limit == 0 {
				return answer, err
			}
			text, err := io.ReadAll(answer.Body)
			var large *executors.TooLargeError
			tooLarge := errors.As(err, &large)
			pages.fits(req, limit, !tooLarge)
			if err == nil {
				answer.Body = &readBody{Reader: bytes.NewReader(text), leave: answer.Body.Close}
				return answer, nil
			}
			_ = answer.Body.Close()
			if tooLarge && limit == 1 {
				return nil, a.naming(next, asks, large)
			}
			if !tooLarge {
				return nil, err
			}
		}
	})
}

// naming asks for no more than the metadata of a page whose only object is too large: who has
// to mend that wants to know its name. Where that is not answered it goes without.
func (a *answers) naming(next http.RoundTripper, req *http.Request, large *executors.TooLargeError) error {
	req = req.Clone(req.Context())
	req.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
	answer, err := a.answer(next, req)
	if err != nil {
		return large
	}
	defer func() { _ = answer.Body.Close() }()
	var page metav1.PartialObjectMetadataList
	if text, err := io.ReadAll(answer.Body); err != nil || json.Unmarshal(text, &page) != nil || len(page.Items) != 1 {
		return large
	}
	of := page.Items[0]
	return &executors.TooLargeError{What: large.What, Object: strings.TrimPrefix(of.Namespace+"/"+of.Name, "/")}
}

// answer is the answer to a request, with a body that is weighed.
func (a *answers) answer(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	if a.foreign {
		req = jsonAlone(req)
	}
	answer, err := next.RoundTrip(req)
	if err != nil || answer.Body == nil || answer.StatusCode == http.StatusSwitchingProtocols {
		return answer, err
	}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	text := kind == "" || strings.HasPrefix(kind, "text/") // a log, or an error of who stands in between
	w := weigher{json: kind == runtime.ContentTypeJSON || text && a.foreign, perByte: perByte, most: maxAnswer}
	watch := req.URL.Query().Get("watch") != ""
	switch {
	case w.json, text:
	case a.foreign:
		_ = answer.Body.Close()
		return nil, &executors.TooLargeError{What: "an answer of the type " + strconv.Quote(kind) + " is not read of another cluster"}
	case watch: // of kinds that the agent knows, each bounded by its decoder
		return answer, nil
	default:
		w.perByte = perPacked
	}
	read := &reading{ReadCloser: answer.Body, ctx: req.Context(), from: a}
	if w.json && watch {
		w.most = maxEvent
		answer.Body = &events{reading: read, weigher: w}
		return answer, nil
	}
	answer.Body = &answerBody{reading: read, weigher: w}
	return answer, nil
}

// jsonAlone is a request that accepts no other encoding: clients of known kinds and of
// metadata prefer protobuf by themselves.
func jsonAlone(req *http.Request) *http.Request {
	req = req.Clone(req.Context())
	accepts := slices.DeleteFunc(strings.Split(req.Header.Get("Accept"), ","), func(one string) bool {
		kind, _, _ := strings.Cut(strings.TrimSpace(one), ";")
		return kind != runtime.ContentTypeJSON && kind != "*/*"
	})
	if len(accepts) == 0 {
		accepts = []string{runtime.ContentTypeJSON}
	}
	req.Header.Set("Accept", strings.Join(accepts, ","))
	return req
}

// readBody is an answer that was read already; its place is held until it is closed.
type readBody struct {
	*bytes.Reader
	leave func() error
}

// Close is io.Closer's.
func (b *readBody) Close() error { return b.leave() }

// reading is the body of an answer, and the place that it has while it is heavy.
type reading struct {
	io.ReadCloser
	ctx  context.Context //nolint:containedctx // of the request, whose body this is
	from *answers

	mu    sync.Mutex // Close may come at any time
	leave func()
}

// enter takes a place, where it has none.
func (r *reading) enter(take func(context.Context) (func(), error)) error {
	r.mu.Lock()
	has := r.leave != nil
	r.mu.Unlock()
	if has {
		return nil
	}
	leave, err := take(r.ctx)
	if err != nil {
		return err
	}
	slow := func() bool { return true }
	if r.from.foreign {
		slow = time.AfterFunc(slowAbroad, func() { _ = r.Close() }).Stop
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leave = func() { slow(); leave() }
	return nil
}

// exit gives the place back.
func (r *reading) exit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leave != nil {
		r.leave()
		r.leave = nil
	}
}

// Close is io.Closer's.
func (r *reading) Close() error {
	r.exit()
	return r.ReadCloser.Close()
}

// weigher counts what an answer comes to.
type weigher struct {
	json                  bool
	perByte, most, weight int64
	quoted, escaped       bool
	depth                 int // of lists and objects
}

// add weighs one byte, and says whether it ends a value that stands in no other.
func (w *weigher) add(c byte) (ends bool) {
	w.weight += w.perByte
	switch {
	case !w.json:
	case w.escaped:
		w.escaped = false
	case w.quoted:
		w.escaped, w.quoted = c == '\\', c != '"'
	case c == '"':
		w.quoted = true
	case c == ',', c == ':':
		w.weight += perValue
	case c == '[', c == '{':
		w.weight += perValue
		w.depth++
	case c == ']', c == '}':
		w.depth--
		return w.depth == 0
	}
	return false
}

func (w *weigher) tooLarge() bool { return w.weight > w.most }

func (w *weigher) failure(what string) error {
	return &executors.TooLargeError{What: what + " is too large: to read it would take more than " + strconv.FormatInt(w.most>>20, 10) + " MiB of the agent's memory"}
}

// answerBody is an answer that is weighed. One that becomes heavy waits for a place.
type answerBody struct {
	*reading
	weigher
}

// Read is io.Reader's.
func (b *answerBody) Read(p []byte) (int, error) {
	if b.tooLarge() {
		return 0, b.failure("the answer of the API server")
	}
	if b.weight > lightAnswer {
		if err := b.enter(b.from.place); err != nil {
			return 0, err
		}
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), lightAnswer)])
	for _, c := range p[:n] {
		b.add(c)
	}
	if b.tooLarge() {
		return 0, b.failure("the answer of the API server")
	}
	return n, err
}

// events are those of a watch, of which each is weighed by itself. A heavy one keeps its
// place until more is read: then it was decoded.
type events struct {
	*reading
	weigher
	ended bool // with the last read
}

// Read is io.Reader's.
func (e *events) Read(p []byte) (int, error) {
	if e.ended {
		e.exit()
		e.ended = false
	}
	if e.tooLarge() {
		return 0, e.failure("what a watch shows")
	}
	if e.weight > lightAnswer {
		if err := e.enter(e.place); err != nil {
			return 0, err
		}
	}
	n, err := e.ReadCloser.Read(p[:min(len(p), lightAnswer)])
	for _, c := range p[:n] {
		if e.add(c) {
			e.weight, e.ended = 0, true
		}
	}
	return n, err
}

func (e *events) place(ctx context.Context) (leave func(), err error) {
	if err := e.from.events.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { e.from.events.Release(1) }, nil
}
