package moto

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Authenticate is what aws-iam-authenticator does with a request to a cluster of EKS; empty:
// the token is good. endpoints are where clients know AWS to be.
func (s *Server) Authenticate(r *http.Request, cluster string, endpoints ...string) string {
	text, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer k8s-aws-v1.")
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if !is || err != nil {
		return "no token of EKS"
	}
	to, err := url.Parse(string(raw))
	if err != nil {
		return err.Error()
	}
	q := to.Query()
	signed, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
	switch {
	case q.Get("Action") != "GetCallerIdentity":
		return "it asks STS for " + q.Get("Action")
	case !strings.Contains(";"+q.Get("X-Amz-SignedHeaders")+";", ";x-k8s-aws-id;"):
		return "it is signed for no cluster: " + q.Get("X-Amz-SignedHeaders")
	case q.Get("X-Amz-Expires") != "60" || err != nil || time.Since(signed) > time.Minute:
		return "it is good for " + q.Get("X-Amz-Expires") + " since " + q.Get("X-Amz-Date")
	case !slices.Contains(endpoints, "http://"+to.Host):
		return "it is for " + to.Host
	}
	return s.believes(r, q, cluster)
}

// believes asks STS itself for whom the token is.
func (s *Server) believes(r *http.Request, q url.Values, cluster string) string {
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodGet, s.Endpoint+"/?"+q.Encode(), nil)
	if err != nil {
		return err.Error()
	}
	ask.Header.Set("X-K8s-Aws-Id", cluster)
	// moto looks for the service in this header alone; AWS finds it in the address.
	ask.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+q.Get("X-Amz-Credential")+", SignedHeaders=host, Signature="+q.Get("X-Amz-Signature"))
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(Account)) {
		return fmt.Sprintf("STS says %d %s", answer.StatusCode, body)
	}
	return ""
}

// WithCluster is this AWS, with a cluster of EKS that is at an API server of ours: moto's
// leads nowhere. The caller closes it.
func (s *Server) WithCluster(name string, api *httptest.Server) (*httptest.Server, error) {
	to, err := url.Parse(s.Endpoint)
	if err != nil {
		return nil, err
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	return httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Path != "/clusters/"+name || r.StatusCode != http.StatusOK {
				return nil
			}
			var got map[string]map[string]any
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
				return err
			}
			got["cluster"]["endpoint"] = api.URL
			got["cluster"]["certificateAuthority"] = map[string]string{"data": base64.StdEncoding.EncodeToString(authority)}
			b, err := json.Marshal(got)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
			r.Header.Set("Content-Length", fmt.Sprint(len(b)))
			return err
		},
	}), nil
}
