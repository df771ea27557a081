package factory

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/serverstate"
)

// answerWithin is how long an API server may take to begin an answer. It ends requests itself after
// a minute, unless it was started with another --request-timeout: later answers do not come.
const answerWithin = 65 * time.Second

// AddFlags adds the flags that choose and reach the cluster.
func (c *Factory) AddFlags(flags *pflag.FlagSet) {
	c.Config.AddFlags(flags)
	c.requestTimeout = flags.Lookup("request-timeout")
}

// endUnanswered ends requests that nobody answers: client-go waits forever without
// --request-timeout. --request-timeout=0 asks for that. Only the wait for the beginning of an
// answer is limited, since a watch goes on.
func (c *Factory) endUnanswered(config *rest.Config) *rest.Config {
	forEver := c.requestTimeout != nil && c.requestTimeout.Changed
	if config.Timeout == 0 && !forEver {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return limited(next, cmp.Or(c.AnswerWithin, answerWithin))
		})
	}
	return config
}

func limited(next http.RoundTripper, within time.Duration) http.RoundTripper {
	return serverstate.RoundTripFunc(func(r *http.Request) (*http.Response, error) {
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

// lastRead cleans up after a request once its answer is closed.
type lastRead struct {
	io.ReadCloser
	release context.CancelFunc
}

// Close is io.Closer's.
func (l *lastRead) Close() error {
	defer l.release()
	return l.ReadCloser.Close()
}

// noAnswer is the error of a request without an answer in time.
type noAnswer time.Duration

func (n noAnswer) Error() string { return fmt.Sprintf("no answer within %s", time.Duration(n)) }

// Timeout is asked by url.Error.
func (noAnswer) Timeout() bool { return true }
