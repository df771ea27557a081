package kube

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// What tests hand in.
var _ Interface = kubernetes.Interface(nil)

// ask sends a request by the client of each group.
func ask(ctx context.Context, k Interface) error {
	_, err := k.Discovery().ServerVersion()
	for _, next := range []func() error{
		func() error {
			return k.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx, "a", metav1.DeleteOptions{})
		},
		func() error { return k.AppsV1().Deployments("n").Delete(ctx, "a", metav1.DeleteOptions{}) },
		func() error {
			return k.AutoscalingV2().HorizontalPodAutoscalers("n").Delete(ctx, "a", metav1.DeleteOptions{})
		},
		func() error { return k.BatchV1().Jobs("n").Delete(ctx, "a", metav1.DeleteOptions{}) },
		func() error { return k.CoordinationV1().Leases("n").Delete(ctx, "a", metav1.DeleteOptions{}) },
		func() error { return k.CoreV1().Pods("n").Delete(ctx, "a", metav1.DeleteOptions{}) },
		func() error { return k.PolicyV1().PodDisruptionBudgets("n").Delete(ctx, "a", metav1.DeleteOptions{}) },
		func() error { return k.StorageV1().VolumeAttachments().Delete(ctx, "a", metav1.DeleteOptions{}) },
		func() error { return k.AuthorizationV1().RESTClient().Get().AbsPath("/authz").Do(ctx).Error() },
		func() error { return k.AuthenticationV1().RESTClient().Get().AbsPath("/authn").Do(ctx).Error() },
	} {
		if err == nil {
			err = next()
		}
	}
	return err
}

func TestEachClientReachesItsGroup(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
	}))
	defer server.Close()
	k, err := NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := ask(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	want := "/version /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/a /apis/apps/v1/namespaces/n/deployments/a " +
		"/apis/autoscaling/v2/namespaces/n/horizontalpodautoscalers/a /apis/batch/v1/namespaces/n/jobs/a /apis/coordination.k8s.io/v1/namespaces/n/leases/a " +
		"/api/v1/namespaces/n/pods/a /apis/policy/v1/namespaces/n/poddisruptionbudgets/a /apis/storage.k8s.io/v1/volumeattachments/a /authz /authn"
	if got := strings.Join(asked, " "); got != want {
		t.Errorf("asked\n%s\nwant\n%s", got, want)
	}
}

func TestOneRateLimitForAllClients(t *testing.T) {
	for name, build := range map[string]func(*rest.Config) (Basic, error){
		"all":   func(c *rest.Config) (Basic, error) { return NewForConfig(c) },
		"basic": func(c *rest.Config) (Basic, error) { return NewBasic(c) },
	} {
		t.Run(name, func(t *testing.T) {
			k, err := build(&rest.Config{Host: "http://192.0.2.1", QPS: 0.001, Burst: 1})
			if err != nil {
				t.Fatal(err)
			}
			limit := k.CoreV1().RESTClient().GetRateLimiter()
			if !limit.TryAccept() {
				t.Fatal("the first request has to wait")
			}
			if k.AppsV1().RESTClient().GetRateLimiter().TryAccept() {
				t.Error("the second request, of another group, does not have to wait")
			}
		})
	}
}

func TestWhatCannotBeBuiltIsNil(t *testing.T) {
	for name, c := range map[string]*rest.Config{
		"a limit without a burst": {Host: "http://192.0.2.1", QPS: 1},
		"no address":              {Host: "http://[::1", Timeout: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if k, err := NewForConfig(c); err == nil || k != nil {
				t.Errorf("all: got %v, %v, want an error alone", k, err)
			}
			if k, err := NewBasic(c); err == nil || k != nil {
				t.Errorf("basic: got %v, %v, want an error alone", k, err)
			}
		})
	}
}
