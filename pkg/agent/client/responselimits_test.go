package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

const aList = "https://api.test/api/v1/namespaces/shop/configmaps"

// says answers each request with a body of a type.
func says(kind string, body func(*http.Request) io.ReadCloser) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: body(r), Request: r}, nil
	})
}

func text(s string) func(*http.Request) io.ReadCloser {
	return func(*http.Request) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }
}

func get(ctx context.Context, t *testing.T, from http.RoundTripper, url string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return from.RoundTrip(req)
}

// read is how much of an answer can be read, and why not all.
func read(ctx context.Context, t *testing.T, from http.RoundTripper, url string) (int, error) {
	t.Helper()
	answer, err := get(ctx, t, from, url)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	got, err := io.ReadAll(answer.Body)
	return len(got), err
}

func tooLarge(err error) bool {
	var large *executors.TooLargeError
	return errors.As(err, &large)
}

func TestAnAnswerIsWeighedByWhatItTakesDecoded(t *testing.T) {
	const mib = 1 << 20
	numbers := "[0" + strings.Repeat(",0", mib/2) + "]"
	for name, c := range map[string]struct {
		foreign  bool
		kind     string
		body     string
		tooLarge bool
	}{
		"the largest text that an object may hold":    {kind: "application/json", body: `{"data":{"a":"` + strings.Repeat(`[,`, mib) + `"}}`},
		"as many bytes of numbers":                    {kind: "application/json", body: numbers, tooLarge: true},
		"an escaped quote ends no text":               {kind: "application/json", body: `["\"` + strings.Repeat(",", mib) + `"]`},
		"a log is weighed by its bytes":               {kind: "text/plain", body: strings.Repeat(",", mib)},
		"another cluster's text is weighed as JSON":   {foreign: true, kind: "text/plain", body: numbers, tooLarge: true},
		"so is what has no type":                      {foreign: true, kind: "", body: numbers, tooLarge: true},
		"protobuf of the agent's own API server":      {kind: "application/vnd.kubernetes.protobuf", body: strings.Repeat("x", mib)},
		"more of it":                                  {kind: "application/vnd.kubernetes.protobuf", body: strings.Repeat("x", 3*mib), tooLarge: true},
		"protobuf of another cluster is not read":     {foreign: true, kind: "application/vnd.kubernetes.protobuf", body: "x", tooLarge: true},
		"nor is YAML, whose anchors multiply":         {foreign: true, kind: "application/yaml", body: "x", tooLarge: true},
		"a page of who stands before another cluster": {foreign: true, kind: "text/html; charset=utf-8", body: "<html>"},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := read(t.Context(), t, newAnswers(c.foreign).bounded(says(c.kind, text(c.body)), "shop"), aList+"/a")
			if tooLarge(err) != c.tooLarge || !c.tooLarge && n != len(c.body) {
				t.Errorf("read %d of %d bytes, %v", n, len(c.body), err)
			}
		})
	}
}

// Whoever lists in pages gets smaller ones where those would be too large, and larger ones
// again where they would not.
func TestAPageThatIsTooLargeIsAskedForWithFewerObjects(t *testing.T) {
	var asked []string
	each := maxAnswer / perByte / 10 // so that ten objects are one too many
	from := newAnswers(false).bounded(says("application/json", func(r *http.Request) io.ReadCloser {
		limit := r.URL.Query().Get("limit")
		asked = append(asked, limit)
		n, _ := strconv.Atoi(limit)
		return io.NopCloser(strings.NewReader(strings.Repeat("x", n*each)))
	}), "shop")
	for range 3 {
		if _, err := read(t.Context(), t, from, aList+"?limit=500&labelSelector=a"); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"500", "62", "7", "14", "1", "2"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
	asked = nil
	if _, err := read(t.Context(), t, from, aList+"?limit=5"); err != nil || !slices.Equal(asked, []string{"5"}) {
		t.Errorf("another list: %q, %v", asked, err)
	}
	if _, err := read(t.Context(), t, from, aList+"?limit=0"); err != nil {
		t.Errorf("a list that is read at once: %v", err)
	}
}

func TestAnObjectThatIsTooLargeForAPageOfItsOwnIsSaid(t *testing.T) {
	for said, object := range map[string]string{
		`{"items":[{"metadata":{"namespace":"shop","name":"big"}}]}`: "shop/big", `{"items":[{"metadata":{"name":"node"}}]}`: "node",
		`{"items":[]}`: "", `{"items":[{},{}]}`: "", "no JSON": "", strings.Repeat("x", maxAnswer): "",
	} {
		asked := 0
		var named []string
		from := newAnswers(false).bounded(says("application/json", func(r *http.Request) io.ReadCloser {
			if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
				named = append(named, r.URL.RawQuery)
				return io.NopCloser(strings.NewReader(said))
			}
			asked++
			return io.NopCloser(strings.NewReader(strings.Repeat("x", maxAnswer)))
		}), "shop")
		_, err := read(t.Context(), t, from, aList+"?limit=500&continue=here")
		if !tooLarge(err) || asked != 4 || !slices.Equal(named, []string{"continue=here&limit=1"}) {
			t.Errorf("asked %d times, and for the name of %q, %v", asked, named, err)
		}
		if named := strings.HasSuffix(err.Error(), ": it is "+object); named != (object != "") {
			t.Errorf("want %q: %v", object, err)
		}
	}
}

// What a pass has read lives until it ends, whatever is closed before.
func TestHeavyAnswersWaitForTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := newAnswers(false).bounded(says("application/json", text(strings.Repeat("x", lightAnswer))), "shop")
		var ends []func()
		pass := func() error {
			ctx, end := WithPass(t.Context(), "shop")
			ends = append(ends, end)
			short, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			_, err := read(short, t, from, aList)
			return err
		}
		for range heavyHome {
			if err := pass(); err != nil {
				t.Fatal(err)
			}
		}
		if err := pass(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one pass more did not wait: %v", err)
		}
		for range 2 * heavyHome {
			if _, err := read(t.Context(), t, from, aList); err != nil { // what is no pass gives its place back
				t.Fatal(err)
			}
		}
		ends[0]()
		if err := pass(); err != nil {
			t.Errorf("after the end of a pass: %v", err)
		}
		for _, end := range ends {
			end()
		}
	})
}

// Who answers slowly keeps no place from others.
func TestAnotherClusterThatDribblesIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := newAnswers(true).bounded(says("application/json", func(r *http.Request) io.ReadCloser {
			return &dribble{ctx: r.Context(), first: lightAnswer, closed: make(chan struct{})}
		}), "shop")
		began := time.Now()
		_, err := read(t.Context(), t, from, aList)
		if took := time.Since(began); !errors.Is(err, errSlow) || took != slowAbroad {
			t.Errorf("it took %s, %v", took, err)
		}
	})
}

// dribble sends some bytes, and then one in each pause, or nothing more, until it is closed.
type dribble struct {
	ctx    context.Context //nolint:containedctx // of the request
	first  int
	pause  time.Duration
	last   int // so many come after pauses; zero: without end
	sent   int
	closed chan struct{}
}

func (d *dribble) Read(p []byte) (int, error) {
	if d.first > 0 {
		n := min(len(p), d.first)
		d.first -= n
		return copy(p, strings.Repeat("x", n)), nil
	}
	if d.last > 0 && d.sent == d.last {
		return 0, io.EOF
	}
	var next <-chan time.Time
	if d.pause > 0 {
		next = time.After(d.pause)
	}
	select {
	case <-next:
		d.sent++
		return copy(p, "x"), nil
	case <-d.closed:
		return 0, io.ErrClosedPipe
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
}

func (d *dribble) Close() error {
	select {
	case <-d.closed:
	default:
		close(d.closed)
	}
	return nil
}

func TestEachEventOfAWatchIsWeighedByItself(t *testing.T) {
	event := fmt.Sprintf(`{"type":"ADDED","object":{"a":%q}}`, strings.Repeat("x", maxEvent/perByte/2))
	split := strings.Replace(event, "ADDED", "ADDED\",\n\n\"b\":\"", 1)
	broken := strings.Repeat("{\n\"a\":", maxEvent/perValue)
	for name, c := range map[string]struct {
		body     string
		tooLarge bool
	}{
		"many of them":                     {strings.Repeat(event+"\n", 20), false},
		"with lines in between":            {strings.Repeat(split+"\n", 20), false},
		"one that has lines and no end":    {broken, true},
		"one that is as large as two":      {strings.Replace(event, "ADDED", strings.Repeat("x", maxEvent/perByte), 1), true},
		"one after many that is too large": {strings.Repeat(event+"\n", 3) + broken, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t.Context(), t, newAnswers(true).bounded(says("application/json", text(c.body)), "shop"), aList+"?watch=true")
			if tooLarge(err) != c.tooLarge {
				t.Errorf("%v", err)
			}
		})
	}
}
