package client

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// What stands between the agent and the API server may lose an answer. Whoever waits for it forever does
// nothing else for that plan.
func TestAWriteWhoseAnswerIsLostEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := RoundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		c, err := Connect(Config{Rest: &rest.Config{Host: "https://api.test", Transport: silent}, Now: time.Now, Lease: time.Hour, OnAnswer: func(string, string) {}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = c.Kube.CoreV1().ConfigMaps("shop").Patch(context.Background(), "nights", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
		if took := time.Since(began); !Unreachable(err) || took != kube.AnswerWithin {
			t.Errorf("after %s: %v", took, err)
		}
	})
}
