package client

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// existing sends what acts as an account only while that account is there: the API server lets
// one be impersonated that was deleted, with all rights that its bindings still name. Otherwise
// the request is answered as a refusal, for which everybody waits who waits for a right.
func (a *Impersonator) existing(w Account, next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(req *http.Request) (*http.Response, error) {
		missing, err := a.Missing(req.Context(), w)
		if err == nil && missing == "" {
			return next.RoundTrip(req)
		}
		if req.Body != nil {
			_ = req.Body.Close() // as every RoundTripper does
		}
		if err != nil {
			return nil, err
		}
		return refusal(req, executors.NoAccount(missing))
	})
}

// refusal is an answer that was not asked for.
func refusal(req *http.Request, status metav1.Status) (*http.Response, error) {
	text, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: http.StatusText(int(status.Code)), StatusCode: int(status.Code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": []string{runtime.ContentTypeJSON}}, ContentLength: int64(len(text)), Body: io.NopCloser(bytes.NewReader(text)),
	}, nil
}
