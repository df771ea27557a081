package remedy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"
)

// Explain adds what a person can do to an error of the API server.
func (c Commands) Explain(doing string, err error) error {
	var out *url.Error
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "client rate limiter Wait returned"): // client-go has no type for it
		return UnansweredError{fmt.Errorf("%s: no time was left to ask the API server", doing)}
	case errors.As(err, &out) && errors.Is(out.Err, TimeoutPassed):
		return fmt.Errorf("%s: the API server at %s had not answered by then; %s shows whether it does", doing, serverOf(out.URL), c.ClusterInfo())
	case errors.As(err, &out) && !errors.Is(err, context.Canceled):
		what := "cannot be reached"
		switch {
		case out.Timeout():
			what = "does not answer"
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(err.Error(), "stream error: "): // net/http does not export its type
			what = "ended the request without an answer"
		}
		return UnansweredError{fmt.Errorf("%s: the API server at %s %s: %w; %s tries it, %s lists others", doing, serverOf(out.URL), what, out.Err, c.ClusterInfo(), c.Contexts())}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// UnansweredError says that the API server did not answer what was asked of it.
type UnansweredError struct{ error }

// Late says that the API server took too long.
func Late(limit time.Duration) error {
	return UnansweredError{fmt.Errorf("not everything was answered within %s", limit.Round(time.Second))}
}

// Unwrap is asked by errors.As.
func (e UnansweredError) Unwrap() error { return e.error }

// serverOf is the address of the API server.
func serverOf(request string) string {
	u, err := url.Parse(request)
	if err != nil {
		return request
	}
	return u.Scheme + "://" + u.Host
}

// TimeoutPassed is the error of a request that --timeout cut off: how long the API server would
// have taken is not known.
const TimeoutPassed = timeoutPassed("no full answer by then")

type timeoutPassed string

func (t timeoutPassed) Error() string { return string(t) }

// Timeout is asked by url.Error.
func (timeoutPassed) Timeout() bool { return true }
