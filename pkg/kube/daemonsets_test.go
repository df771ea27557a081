package kube_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

func TestEachDaemonSetIsAskedForOnce(t *testing.T) {
	api := agenttest.New(t)
	api.Put(&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "logs"}})
	conn, _ := api.Connect()
	there := kube.DaemonSets(t.Context(), conn.Kube)
	for range 3 {
		if is, err := there("shop", "logs"); !is || err != nil {
			t.Errorf("%t, %v", is, err)
		}
		if is, err := there("shop", "other"); is || err != nil {
			t.Errorf("%t, %v", is, err)
		}
	}
	if n := api.Asked(agenttest.When{Resource: "daemonsets"}); n != 2 {
		t.Errorf("asked %d times, want once for each", n)
	}
	api.Refuse(agenttest.When{Resource: "daemonsets"}, 1, 500, "broken")
	if _, err := there("shop", "third"); err == nil {
		t.Error("no answer is taken for one")
	}
}
