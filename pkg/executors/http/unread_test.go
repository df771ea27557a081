package http

import (
	nethttp "net/http"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
)

// Those who wait for a place to read a large answer do not read: what a server may send meanwhile
// is nobody's budget.
func TestOfAnAnswerThatNobodyReadsLittleIsKept(t *testing.T) {
	flood := conformance.NewFlood(t)
	client := NewClient(Rules{Allow: []string{"127.0.0.0/8"}})
	through := client.Transport.(*nethttp.Transport)
	through.TLSClientConfig.RootCAs = flood.Client().Transport.(*nethttp.Transport).TLSClientConfig.RootCAs
	if _, err := get(t, client, flood.URL); err != nil {
		t.Fatal(err)
	}
	if sent, protocol := flood.Unread(); sent > 256<<10 || protocol != "HTTP/2.0" {
		t.Errorf("%s: %d bytes were taken", protocol, sent)
	}
}
