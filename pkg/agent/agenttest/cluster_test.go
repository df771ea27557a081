package agenttest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": name}}, Data: map[string]string{"a": "1"}}
}

// What the rooms' tests lean on: the answers of a real API server.
func TestTheClusterAnswersAsAnAPIServerDoes(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		ask  func(*Cluster, *client.Connection) error
		want func(error) bool
	}{
		"an object is not there": {func(_ *Cluster, conn *client.Connection) error {
			_, err := conn.Kube.CoreV1().ConfigMaps("shop").Get(ctx, "other", metav1.GetOptions{})
			return err
		}, apierrors.IsNotFound},
		"it is created twice": {func(_ *Cluster, conn *client.Connection) error {
			_, err := conn.Kube.CoreV1().ConfigMaps("shop").Create(ctx, configMap("one"), metav1.CreateOptions{})
			return err
		}, apierrors.IsAlreadyExists},
		"it was written since it was read": {func(w *Cluster, conn *client.Connection) error {
			have, err := conn.Kube.CoreV1().ConfigMaps("shop").Get(ctx, "one", metav1.GetOptions{})
			if err != nil {
				return err
			}
			w.Annotate("shop", "one", "who", "somebody")
			_, err = conn.Kube.CoreV1().ConfigMaps("shop").Update(ctx, have, metav1.UpdateOptions{})
			return err
		}, apierrors.IsConflict},
		"a patch is meant for another of the same name": {func(_ *Cluster, conn *client.Connection) error {
			_, err := conn.Kube.CoreV1().ConfigMaps("shop").Patch(ctx, "one", types.MergePatchType, []byte(`{"metadata":{"uid":"another"}}`), metav1.PatchOptions{})
			return err
		}, apierrors.IsConflict},
		"it is immutable": {func(w *Cluster, conn *client.Connection) error {
			immutable := true
			w.Rewrite("shop", "one", func(cm *corev1.ConfigMap) { cm.Immutable = &immutable })
			have, err := conn.Kube.CoreV1().ConfigMaps("shop").Get(ctx, "one", metav1.GetOptions{})
			if err != nil {
				return err
			}
			have.Labels = nil
			if have, err = conn.Kube.CoreV1().ConfigMaps("shop").Update(ctx, have, metav1.UpdateOptions{}); err != nil {
				return err
			}
			have.Data = map[string]string{"a": "2"}
			_, err = conn.Kube.CoreV1().ConfigMaps("shop").Update(ctx, have, metav1.UpdateOptions{})
			return err
		}, apierrors.IsInvalid},
		"its annotations are full": {func(w *Cluster, conn *client.Connection) error {
			w.Annotate("shop", "one", "example.org/x", strings.Repeat("y", 262144-len("example.org/x")))
			_, err := conn.Kube.CoreV1().ConfigMaps("shop").Patch(ctx, "one", types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":""}}}`), metav1.PatchOptions{})
			return err
		}, func(err error) bool {
			cause, long := apierrors.StatusCause(err, metav1.CauseTypeTooLong)
			return apierrors.IsInvalid(err) && long && cause.Field == "metadata.annotations"
		}},
		"it is refused": {func(w *Cluster, conn *client.Connection) error {
			w.Refuse(When{Verb: "delete", Resource: "configmaps"}, 1, 422, "no")
			return conn.Kube.CoreV1().ConfigMaps("shop").Delete(ctx, "one", metav1.DeleteOptions{})
		}, apierrors.IsInvalid},
		"the reply of a write is lost": {func(w *Cluster, conn *client.Connection) error {
			w.LoseReply(When{Verb: "delete"}, 1)
			if err := conn.Kube.CoreV1().ConfigMaps("shop").Delete(ctx, "one", metav1.DeleteOptions{}); !client.Unreachable(err) {
				return err
			}
			_, err := conn.Kube.CoreV1().ConfigMaps("shop").Get(ctx, "one", metav1.GetOptions{})
			return err
		}, apierrors.IsNotFound},
		"somebody deletes it right before": {func(w *Cluster, conn *client.Connection) error {
			w.Before(When{Verb: "get"}, func() { w.Delete("configmaps", "shop", "one") })
			_, err := conn.Kube.CoreV1().ConfigMaps("shop").Get(ctx, "one", metav1.GetOptions{})
			return err
		}, apierrors.IsNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			w := New(t)
			w.Put(configMap("one"))
			conn, _ := w.Connect()
			if err := c.ask(w, conn); !c.want(err) {
				t.Errorf("it answers %v", err)
			}
		})
	}
}

func TestAWriteThatChangesNothingIsNoNewVersion(t *testing.T) {
	w := New(t)
	w.Put(configMap("one"))
	before := w.ConfigMap("shop", "one")
	conn, _ := w.Connect()
	after, err := conn.Kube.CoreV1().ConfigMaps("shop").Update(context.Background(), before, metav1.UpdateOptions{})
	if err != nil || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("version %s became %v, %v", before.ResourceVersion, after, err)
	}
	after.Data["a"] = "2"
	again, err := conn.Kube.CoreV1().ConfigMaps("shop").Update(context.Background(), after, metav1.UpdateOptions{})
	if err != nil || again.ResourceVersion == before.ResourceVersion || again.UID != before.UID {
		t.Errorf("it became %v, %v", again, err)
	}
}

func TestAnObjectWithAFinalizerIsGoneOnlyWithoutIt(t *testing.T) {
	w, kept := New(t), configMap("one")
	kept.Finalizers = []string{"maint.dev/run"}
	w.Put(kept)
	w.Delete("configmaps", "shop", "one")
	if cm := w.ConfigMap("shop", "one"); cm == nil || cm.DeletionTimestamp == nil {
		t.Fatalf("it is %v", cm)
	}
	w.Edit("configmaps", "shop", "one", func(u *unstructured.Unstructured) { u.SetLabels(nil) })
	conn, _ := w.Connect()
	cm := w.ConfigMap("shop", "one")
	cm.Finalizers = nil
	if _, err := conn.Kube.CoreV1().ConfigMaps("shop").Update(context.Background(), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if w.ConfigMap("shop", "one") != nil {
		t.Error("it is still there")
	}
}

// A watch shows what stops to be meant by its labels as deleted.
func TestACacheShowsWhatItsLabelsPick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t)
		w.Put(configMap("one"), configMap("two"))
		conn, _ := w.Connect()
		var saw []string
		c := ConfigMaps(conn, "app", func(o any) (any, error) { return o, nil })
		c.Handle(func(o any) { saw = append(saw, "saw "+o.(*corev1.ConfigMap).Name) }, func(o any) { saw = append(saw, "lost "+o.(*corev1.ConfigMap).Name) })
		go c.Informer.RunWithContext(t.Context())
		synctest.Wait()
		slices.Sort(saw)
		w.Put(configMap("three"))
		synctest.Wait()
		w.Edit("configmaps", "shop", "one", func(u *unstructured.Unstructured) { u.SetLabels(nil) })
		synctest.Wait()
		w.Delete("configmaps", "shop", "two")
		time.Sleep(time.Minute) // in which each watch ends several times
		synctest.Wait()
		if want := []string{"saw one", "saw two", "saw three", "lost one", "lost two"}; !slices.Equal(saw, want) {
			t.Errorf("it %q, want %q", saw, want)
		}
	})
}

func TestAnAccountHasTheRightsThatWereNotTakenFromIt(t *testing.T) {
	w := New(t)
	w.Put(configMap("one"), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "maint-runner"}})
	w.Deny("system:serviceaccount:shop:maint-runner", "get", "configmaps")
	_, accounts := w.Connect()
	who := client.Account{Namespace: "shop", Name: "maint-runner"}
	home, err := accounts.Access(t.Context(), who, "run-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	from, err := home.Resource(plan.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Name: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := from.Get(context.Background(), "one", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("it reads: %v", err)
	}
	if _, err := from.Patch(context.Background(), "one", types.MergePatchType, []byte(`{"data":{"a":"2"}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("it may not write: %v", err)
	}
	if want := []string{"maint-runner patch configmaps shop/one"}; !slices.Equal(w.Log(), want) {
		t.Errorf("logged %q, want %q", w.Log(), want)
	}
	for verb, want := range map[string]bool{"get": false, "patch": true} {
		message, err := accounts.Refused(context.Background(), who, verb, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "one")
		if err != nil || (message == "") != want {
			t.Errorf("%s: %q, %v", verb, message, err)
		}
	}
	if message, err := accounts.Missing(context.Background(), client.Account{Namespace: "shop", Name: "nobody"}); err != nil || message == "" {
		t.Errorf("an account that is not there: %q, %v", message, err)
	}
}
