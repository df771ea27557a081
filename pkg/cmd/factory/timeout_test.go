package factory

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/serverstate"
)

// Without a --request-timeout a request that nobody answers ends a little after the API server
// would have ended it; what has begun to be answered, and a log that is followed, goes on.
func TestARequestThatNobodyAnswersEnds(t *testing.T) {
	silent := serverstate.RoundTripFunc(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	slow := serverstate.RoundTripFunc(func(r *http.Request) (*http.Response, error) { // its body comes two minutes later
		text, late := io.Pipe()
		go func() {
			select {
			case <-time.After(2 * time.Minute):
				_, _ = late.Write([]byte("all of it"))
				_ = late.Close()
			case <-r.Context().Done():
				_ = late.CloseWithError(r.Context().Err())
			}
		}()
		return &http.Response{Body: text}, nil
	})
	for name, c := range map[string]struct {
		server  http.RoundTripper
		timeout string // --request-timeout, which another one watches over
		query   string
		gone    time.Duration // when whoever asked is gone
		took    time.Duration
		err     string
	}{
		"nobody answers":                {server: silent, gone: time.Hour, took: 65 * time.Second, err: "no answer within 1m5s"},
		"who asked is gone before":      {server: silent, gone: time.Second, took: time.Second, err: "context deadline exceeded"},
		"a log that is followed":        {server: silent, query: "?follow=true", gone: time.Hour, took: time.Hour, err: "context deadline exceeded"},
		"with a --request-timeout":      {server: silent, timeout: "1m", gone: 2 * time.Hour, took: 2 * time.Hour, err: "context deadline exceeded"},
		"with one of 0, which is never": {server: silent, timeout: "0", gone: 2 * time.Hour, took: 2 * time.Hour, err: "context deadline exceeded"},
		"an answer that has begun":      {server: slow, gone: time.Hour, took: 2 * time.Minute},
		"who asked is gone meanwhile":   {server: slow, gone: time.Minute, took: time.Minute, err: "context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, flags := New(Env{}), pflag.NewFlagSet("", pflag.ContinueOnError)
				f.AddFlags(flags)
				if c.timeout != "" {
					if err := flags.Set("request-timeout", c.timeout); err != nil {
						t.Fatal(err)
					}
				}
				limit, err := clientcmd.ParseTimeout(*f.Config.Timeout)
				if err != nil {
					t.Fatal(err)
				}
				config := f.endUnanswered(&rest.Config{Timeout: limit})
				transport := c.server
				if config.WrapTransport != nil {
					transport = config.WrapTransport(transport)
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.gone)
				defer cancel()
				began := time.Now()
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.test/api"+c.query, nil)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := transport.RoundTrip(r)
				text := []byte("all of it")
				if err == nil {
					text, err = io.ReadAll(answer.Body)
					err = errors.Join(err, answer.Body.Close())
				}
				said := ""
				if err != nil {
					said = err.Error()
				} else if string(text) != "all of it" {
					t.Errorf("%q", text)
				}
				if took := time.Since(began); took != c.took || !strings.Contains(said, c.err) || (said == "") != (c.err == "") {
					t.Errorf("after %s: %q", took, said)
				}
			})
		})
	}
}
