package client

import (
	"encoding/pem"
	"net"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
)

func TestOfAnAnswerOfAnotherClusterThatNobodyReadsLittleIsKept(t *testing.T) {
	flood := conformance.NewFlood(t)
	a := &Impersonator{external: External{Dial: (&net.Dialer{}).DialContext}}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: flood.Certificate().Raw})
	through, err := a.transport(&rest.Config{Host: flood.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, flood.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := through.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if sent, protocol := flood.Unread(); sent > 256<<10 || protocol != "HTTP/2.0" {
		t.Errorf("%s: %d bytes were taken", protocol, sent)
	}
}

// The agent's own API server sends what a tenant wrote, to more watches than read at once.
func TestOfAnAnswerOfTheAPIServerThatNobodyReadsLittleIsKept(t *testing.T) {
	flood := conformance.NewFlood(t)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: flood.Certificate().Raw})
	conn, err := Connect(Config{
		Rest: &rest.Config{Host: flood.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, Version: "test", Lease: time.Minute, Now: time.Now, OnAnswer: func(string, string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, flood.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := conn.base.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if sent, protocol := flood.Unread(); sent > 256<<10 || protocol != "HTTP/2.0" {
		t.Errorf("%s: %d bytes were taken", protocol, sent)
	}
}
