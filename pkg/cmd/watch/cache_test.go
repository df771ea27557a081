package watch

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

// outages is an API server whose answers a test says.
type outages struct {
	asked  atomic.Int32
	answer func(n int32, w http.ResponseWriter)
}

func (o *outages) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	o.answer(o.asked.Add(1), w)
}

func list(w http.ResponseWriter) {
	fmt.Fprint(w, `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[]}`)
}

func status(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":%q,"code":%d}`, reason, code)
}

// at is a cluster of a kubeconfig that names the server, and what ends the server.
func (o *outages) at(t *testing.T, said *bytes.Buffer) (k *factory.Cluster, end func()) {
	t.Helper()
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	config := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", server.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := factory.New(factory.Env{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: said}})
	f.Config.KubeConfig = &config
	k, err := f.Connect()
	if err != nil {
		t.Fatal(err)
	}
	return k, server.Close
}

// What a command has asked for goes on while the API server is away, and so does its wait.
func TestAnOutageBeforeTheFirstListEndsNoWait(t *testing.T) {
	for _, c := range []struct {
		name    string
		reached bool // it had answered before
		answer  func(w http.ResponseWriter)
		asked   int32 // in all, the first one of a command that had reached it included
		fails   bool
		says    string
	}{
		{"it starts", true, func(w http.ResponseWriter) { status(w, 500, metav1.StatusReasonInternalError) }, 3, false, "warning: the API server does not answer; it is asked again: "},
		{"it has too much to do", true, func(w http.ResponseWriter) { status(w, 429, metav1.StatusReasonTooManyRequests) }, 3, false, "warning: the API server does not answer"},
		{"a right is missing", true, func(w http.ResponseWriter) { status(w, 403, metav1.StatusReasonForbidden) }, 2, true, ""},
		{"it has never answered", false, func(w http.ResponseWriter) { status(w, 503, metav1.StatusReasonServiceUnavailable) }, 1, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var said bytes.Buffer
			before := int32(0)
			if c.reached {
				before = 1
			}
			server := &outages{answer: func(n int32, w http.ResponseWriter) {
				if n == before+1 { // the first list alone fails
					c.answer(w)
				} else {
					list(w)
				}
			}}
			k, _ := server.at(t, &said)
			ask := func() error {
				_, err := k.Kube.CoreV1().ConfigMaps("shop").List(t.Context(), metav1.ListOptions{Limit: 1})
				return err
			}
			if c.reached {
				if err := ask(); err != nil {
					t.Fatal(err)
				}
			}
			if err := first(t.Context(), k, ask); (err != nil) != c.fails {
				t.Errorf("%v", err)
			}
			if n := server.asked.Load(); n != c.asked {
				t.Errorf("it was asked %d times, not %d", n, c.asked)
			}
			if c.says == "" && said.Len() > 0 || !strings.Contains(said.String(), c.says) || strings.Count(said.String(), "\n") > 1 {
				t.Errorf("said %q", said.String())
			}
		})
	}
}

func TestAnOutageThatLastsEndsWithTheWait(t *testing.T) {
	var said bytes.Buffer
	k, end := (&outages{answer: func(_ int32, w http.ResponseWriter) { list(w) }}).at(t, &said)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	ask := func() error {
		_, err := k.Kube.CoreV1().ConfigMaps("shop").List(ctx, metav1.ListOptions{Limit: 1})
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	end()
	if err := first(ctx, k, ask); err == nil || ctx.Err() == nil {
		t.Errorf("%v, %v", err, ctx.Err())
	}
	if n := strings.Count(said.String(), "\n"); n != 1 {
		t.Errorf("said %q", said.String())
	}
}
