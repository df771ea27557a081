package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// AnswerWithin is how long an API server may take to begin an answer. It ends requests itself after
// a minute, unless it was started with another --request-timeout: later answers do not come.
const AnswerWithin = 65 * time.Second

// LimitAnswers ends requests that nobody begins to answer within a time: client-go waits forever. Only
// the wait for the beginning of an answer is limited, since a watch goes on, and that of a log that is
// followed is not, which begins when something is printed.
func LimitAnswers(next http.RoundTripper, within time.Duration) http.RoundTripper {
	return answerLimit{next, within}
}

type answerLimit struct {
	next   http.RoundTripper
	within time.Duration
}

// RoundTrip is http.RoundTripper's.
func (l answerLimit) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("follow") == "true" {
		return l.next.RoundTrip(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	late := time.AfterFunc(l.within, cancel)
	answer, err := l.next.RoundTrip(r.WithContext(ctx))
	inTime := late.Stop()
	switch {
	case err != nil:
		cancel()
		if !inTime && r.Context().Err() == nil {
			return nil, noAnswer(l.within)
		}
		return nil, err
	case !inTime: // its body is cut off
		_ = answer.Body.Close()
		return nil, noAnswer(l.within)
	}
	answer.Body = &lastRead{answer.Body, cancel}
	return answer, nil
}

// WrappedRoundTripper is what client-go asks for the transport below.
func (l answerLimit) WrappedRoundTripper() http.RoundTripper { return l.next }

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
