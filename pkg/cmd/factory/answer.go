package factory

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// answerWithin is how long an API server may take to begin an answer. It ends requests itself
// after a minute, unless it was started with another --request-timeout: what comes later than
// that does not come.
const answerWithin = 65 * time.Second

// answered has requests end that nobody answers: client-go waits for ever where no
// --request-timeout was given. Only the beginning of an answer is waited for, since a watch goes
// on.
func answered(within time.Duration) func(*rest.Config) *rest.Config {
	return func(config *rest.Config) *rest.Config {
		if config.Timeout == 0 {
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return limited(next, within) })
		}
		return config
	}
}

func limited(next http.RoundTripper, within time.Duration) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("follow") == "true" { // a log begins when something is printed
			return next.RoundTrip(r)
		}
		ctx, cancel := context.WithCancel(r.Context())
		late := time.AfterFunc(within, cancel)
		answer, err := next.RoundTrip(r.WithContext(ctx))
		inTime := late.Stop()
		switch {
		case err != nil:
			cancel()
			if !inTime && r.Context().Err() == nil {
				return nil, noAnswer(within)
			}
			return nil, err
		case !inTime: // its body is cut off
			_ = answer.Body.Close()
			return nil, noAnswer(within)
		}
		answer.Body = &lastRead{answer.Body, cancel}
		return answer, nil
	})
}

// lastRead releases what belongs to a request once its answer is closed.
type lastRead struct {
	io.ReadCloser
	release context.CancelFunc
}

// Close is io.Closer's.
func (l *lastRead) Close() error {
	defer l.release()
	return l.ReadCloser.Close()
}

// noAnswer is the error of a request that was not answered within so long.
type noAnswer time.Duration

func (n noAnswer) Error() string { return fmt.Sprintf("no answer within %s", time.Duration(n)) }

// Timeout is asked by url.Error.
func (noAnswer) Timeout() bool { return true }
