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
	maxAbroad   = 8 << 20          // the same for other clusters, of which two namespaces are read at once
	maxEvent    = 8 << 20          // weight of one event of a watch
	lightAnswer = 128 << 10        // an answer of more weight takes a place
	heavyHome   = 2                // places of the passes of steps, and as many of all other reads
	heavyEvents = 1                // places of the events of watches
	heavyAbroad = 2                // the same three for other clusters, of which a namespace has one each
	slowAbroad  = 30 * time.Second // longer than which no heavy answer of another cluster takes
	perValue    = 48               // weight of a JSON value beside its bytes
	perByte     = 3                // weight of a byte: it is read, handed on and decoded
	perPacked   = 8                // weight of a byte of protobuf
	fewer       = 8                // a page that is too large is asked for again with so many times fewer objects
)

// answers bounds what is read at once of the agent's own API server, or of all others.
type answers struct {
	foreign                bool
	most                   int64 // weight of one
	passes, others, events *tenantSemaphore
}

func newAnswers(foreign bool) *answers {
	if foreign {
		few := func() *tenantSemaphore { return newTenantSemaphore(heavyAbroad, 1) }
		return &answers{foreign: true, most: maxAbroad, passes: few(), others: few(), events: few()}
	}
	of := func(n int) *tenantSemaphore { return newTenantSemaphore(n, n) }
	return &answers{most: maxAnswer, passes: of(heavyHome), others: of(heavyHome), events: of(heavyEvents)}
}

// pass is one pass of a step: what it reads lives until it ends or says that it does not
// need it any more, so it keeps the places that its first heavy answers take.
type pass struct {
	tenant string
	mu     sync.Mutex
	held   map[*tenantSemaphore]func() // gives the place back
	ended  bool
}

// WithPass is the context of a pass of a step of a tenant; end gives back what the pass has
// taken.
func WithPass(ctx context.Context, tenant string) (inner context.Context, end func()) {
	p := &pass{tenant: tenant, held: map[*tenantSemaphore]func(){}}
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
	for _, leave := range p.held {
		leave()
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
func (p *pass) enter(ctx context.Context, from *tenantSemaphore) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[from] != nil || p.ended {
		return nil
	}
	leave, err := from.acquire(ctx, p.tenant)
	if err != nil {
		return err
	}
	p.held[from] = leave
	return nil
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

// bounded weighs the answers of a transport, whose requests are those of a tenant. A page of a
// list is read whole: one that is too large is asked for with fewer objects, and whoever lists in
// pages goes on from where it ends. Another cluster may speak nothing but JSON: of other encodings
// nobody can tell beforehand how large they become.
func (a *answers) bounded(next http.RoundTripper, tenant string) http.RoundTripper {
	pages := newPageSizes()
	return RoundTripper(func(req *http.Request) (*http.Response, error) {
		for {
			asks, limit := pages.ask(req)
			answer, err := a.answer(next, asks, tenant)
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
				return nil, a.naming(next, asks, tenant, large)
			}
			if !tooLarge {
				return nil, err
			}
		}
	})
}

// naming asks for no more than the metadata of a page whose only object is too large: who has
// to mend that wants to know its name. Where that is not answered it goes without.
func (a *answers) naming(next http.RoundTripper, req *http.Request, tenant string, large *executors.TooLargeError) error {
	req = req.Clone(req.Context())
	req.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
	answer, err := a.answer(next, req, tenant)
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
func (a *answers) answer(next http.RoundTripper, req *http.Request, tenant string) (*http.Response, error) {
	if a.foreign {
		req = jsonAlone(req)
	}
	answer, err := next.RoundTrip(req)
	if err != nil || answer.Body == nil || answer.StatusCode == http.StatusSwitchingProtocols {
		return answer, err
	}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	text := kind == "" || strings.HasPrefix(kind, "text/") // a log, or an error of who stands in between
	w := weigher{json: kind == runtime.ContentTypeJSON || text && a.foreign, perByte: perByte, most: a.most}
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
	read := &reading{ReadCloser: answer.Body, ctx: req.Context(), from: a, tenant: tenant}
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
	ctx    context.Context //nolint:containedctx // of the request, whose body this is
	from   *answers
	tenant string

	mu     sync.Mutex // Close may come at any time
	leave  func()
	asks   func(since time.Time) // tells those who wait for the place; nil: there is none
	closed error                 // why nothing more is read
}

// errSlow is an answer that was cut off.
var errSlow = errors.New("the API server took too long to send its whole answer, and was not waited for any longer") //nolint:gochecknoglobals // a sentinel for errors.Is

// enter takes a place, where it has none. What a pass reads takes one of those of passes.
func (r *reading) enter(in *tenantSemaphore) error {
	r.mu.Lock()
	has := r.leave != nil
	r.mu.Unlock()
	if has {
		return nil
	}
	leave, err := func() {}, error(nil)
	if p, is := executors.ReservationOf(r.ctx).(*pass); is && in == r.from.others {
		in = r.from.passes
		err = p.enter(r.ctx, in)
	} else {
		leave, err = in.acquire(r.ctx, r.tenant)
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil { // while it waited: nobody would give the place back
		leave()
		return r.closed
	}
	r.leave = leave
	if !r.from.foreign {
		return nil
	}
	cut := func() { _ = r.end(errSlow) }
	slow := time.AfterFunc(slowAbroad, cut)
	body, done := in.reads(r.tenant, cut)
	r.asks = func(since time.Time) { in.asks(body, since) }
	r.leave = func() { slow.Stop(); done(); leave() }
	return nil
}

// next reads some bytes. Who waits for the place learns how long that takes.
func (r *reading) next(p []byte) (int, error) {
	r.mu.Lock()
	asks := r.asks
	r.mu.Unlock()
	if asks == nil {
		asks = func(time.Time) {}
	}
	asks(time.Now())
	n, err := r.ReadCloser.Read(p[:min(len(p), lightAnswer)])
	asks(time.Time{})
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && errors.Is(r.closed, errSlow) {
		err = errSlow
	}
	return n, err
}

// exit gives the place back.
func (r *reading) exit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leave != nil {
		r.leave()
		r.leave, r.asks = nil, nil
	}
}

// end closes the body, and says why nothing more is read.
func (r *reading) end(why error) error {
	r.mu.Lock()
	if r.closed == nil {
		r.closed = why
	}
	r.mu.Unlock()
	r.exit()
	return r.ReadCloser.Close()
}

// Close is io.Closer's.
func (r *reading) Close() error { return r.end(http.ErrBodyReadAfterClose) }

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
		if err := b.enter(b.from.others); err != nil {
			return 0, err
		}
	}
	n, err := b.next(p)
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
		if err := e.enter(e.from.events); err != nil {
			return 0, err
		}
	}
	n, err := e.next(p)
	for _, c := range p[:n] {
		if e.add(c) {
			e.weight, e.ended = 0, true
		}
	}
	return n, err
}
