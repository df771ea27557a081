package notify

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sync/semaphore"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/mask"
)

const (
	// sinkTimeout is the limit for one sink, from its lookup to its answer.
	sinkTimeout = 30 * time.Second
	// atOnce is how many messages of steps to one sink may be in flight, and as many of the agent's
	// own beside them. shoutrrr takes no context, so a message that we gave up on goes on in the
	// background: this many may pile up before a sink that never answers is left alone.
	atOnce = 4
)

// sender sends one message to one sink, and returns in time whatever the sink does.
type sender struct {
	timeout time.Duration
	mu      sync.Mutex
	lines   map[lineKey]*line // sinks with messages in flight
}

// lineKey tells the agent's own messages to a sink from those of steps: no step can delay what the
// agent says.
type lineKey struct {
	url string
	own bool
}

// line are the messages to one sink, the agent's own or those of steps.
type line struct {
	places  *semaphore.Weighted
	users   int // in flight, or waiting for a place
	givenUp int // in flight, but no longer waited for
}

func newSender() *sender { return &sender{lines: map[lineKey]*line{}, timeout: sinkTimeout} }

// send sends to one sink, if the fence permits: the library dials by itself. Its errors contain
// nothing of the URL.
func (s *sender) send(ctx context.Context, fence func() error, rawURL string, m message) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	one, err := s.enter(ctx, lineKey{rawURL, m.origin == agentOrigin})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		defer one.leave()
		ended <- guarded(func() error {
			if fence != nil {
				if err := fence(); err != nil {
					return err
				}
			}
			return deliver(rawURL, m)
		})
	}()
	select {
	case err := <-ended:
		return hidden(err, rawURL)
	case <-ctx.Done():
		one.giveUp()
		return fmt.Errorf("no answer within %s", s.timeout)
	}
}

// enter waits for a place, so that many messages of one tenant do not make others fail. Where all
// messages in flight were given up, waiting would be useless, too.
func (s *sender) enter(ctx context.Context, to lineKey) (*delivery, error) {
	silent := fmt.Errorf("it has not answered %d earlier messages", atOnce)
	s.mu.Lock()
	l := s.lines[to]
	if l == nil {
		l = &line{places: semaphore.NewWeighted(atOnce)}
		s.lines[to] = l
	}
	if l.givenUp >= atOnce {
		s.mu.Unlock()
		return nil, silent
	}
	l.users++
	s.mu.Unlock()
	one := &delivery{sender: s, line: l, to: to}
	if l.places.Acquire(ctx, 1) != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		one.end()
		return nil, silent
	}
	return one, nil
}

// delivery is one message in flight.
type delivery struct {
	sender         *sender
	line           *line
	to             lineKey
	ended, givenUp bool
}

// giveUp says that nobody waits for the delivery any more.
func (d *delivery) giveUp() {
	d.sender.mu.Lock()
	defer d.sender.mu.Unlock()
	if !d.ended {
		d.givenUp = true
		d.line.givenUp++
	}
}

func (d *delivery) leave() {
	d.sender.mu.Lock()
	defer d.sender.mu.Unlock()
	if d.end(); d.givenUp {
		d.line.givenUp--
	}
	d.line.places.Release(1)
}

// end forgets a line that is no longer used. The caller holds the lock.
func (d *delivery) end() {
	d.ended = true
	if d.line.users--; d.line.users == 0 {
		delete(d.sender.lines, d.to)
	}
}

// guarded turns a panic of the library into a failure of this sink only.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the library for this kind of sink broke: %v", r)
		}
	}()
	return f()
}

// deliver finds the service and sends the message.
func deliver(rawURL string, m message) error {
	s, err := locate(rawURL)
	if err != nil {
		return fmt.Errorf("its URL cannot be used: %w", err)
	}
	return s.send(m)
}

// hidden is an error without any part of the sink's URL. Services take URLs apart and reassemble
// them, so each word of it is hidden.
func hidden(err error, rawURL string) error {
	if err == nil {
		return nil
	}
	text := strings.Join(strings.Fields(mask.New(secretsOf(rawURL)).Text(err.Error())), " ")
	return fmt.Errorf("%s", document.Cut(text, 300))
}

// secretsOf are the parts of a sink's URL, except its scheme, which only says what kind of sink it
// is.
func secretsOf(rawURL string) []string {
	_, rest, found := strings.Cut(rawURL, "://")
	if !found {
		rest = rawURL
	}
	out := []string{rawURL, rest}
	if u, err := url.Parse(rawURL); err == nil {
		password, _ := u.User.Password()
		out = append(out, u.User.Username(), password, u.Host, u.Hostname(), strings.Trim(u.Path, "/"), u.RawQuery, u.Fragment, u.Opaque)
		for _, values := range u.Query() {
			out = append(out, values...)
		}
	}
	for _, part := range slices.Clone(out[1:]) {
		out = append(out, words(part)...)
		out = append(out, words(strings.ToLower(part))...)
	}
	return out
}

// words are the sequences of letters and digits in a text. Those of one or two characters are no
// secrets, and hiding them would make the error unreadable.
func words(text string) []string {
	parts := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.DeleteFunc(parts, func(s string) bool { return len(s) < 3 })
}
