package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// shared is the one cluster of a test binary. It is a package variable because
// the tests of a binary have nothing else in common: `testing` hands nothing
// from TestMain to the tests.
var shared oncePerBinary //nolint:gochecknoglobals // see above

type oncePerBinary struct {
	mu      sync.Mutex
	willEnd bool // Main runs and will stop the cluster
	tried   bool
	cluster *Cluster
	err     error
}

// Main runs the tests of a binary and then stops the cluster that Shared may
// have started. It is the whole body of a TestMain.
func Main(m *testing.M) {
	shared.mu.Lock()
	shared.willEnd = true
	shared.mu.Unlock()
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop shared cluster:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Shared returns the cluster that the tests of this binary share, with an API
// server and the controller manager, and starts it for the first who asks. The
// tests keep to namespaces of their own, see [Cluster.Namespace], and do not
// restart anything.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	c, err := shared.get()
	if err != nil {
		t.Fatalf("shared cluster: %v", err)
	}
	return c
}

func (s *oncePerBinary) get() (*Cluster, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.willEnd {
		return nil, errors.New("nobody would stop it: this package needs `func TestMain(m *testing.M) { cluster.Main(m) }`")
	}
	if !s.tried {
		s.tried = true
		ctx, cancel := context.WithTimeout(context.Background(), 2*readyTimeout)
		defer cancel()
		s.cluster, s.err = Start(ctx, Options{ControllerManager: true})
	}
	return s.cluster, s.err
}

func (s *oncePerBinary) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Stop()
}

// Namespace creates a namespace named after the test, with its ServiceAccount
// "default" in place, and has it deleted when the test ends. Nobody waits for
// the deletion: names never repeat.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	client, err := c.clientset()
	if err != nil {
		t.Fatalf("create namespace: %v", err)
	}
	name := namespaceName(t.Name())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create namespace %s: %v", name, err)
	}
	t.Cleanup(func() {
		// The test's context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Logf("delete namespace %s: %v", name, err)
		}
	})
	if err := c.ensureDefaultAccount(t.Context(), client, name); err != nil {
		t.Fatalf("namespace %s: %v", name, err)
	}
	return name
}

// ensureDefaultAccount waits for the controller manager to create the account
// without which no pod is admitted, or creates it where there is none.
func (c *Cluster) ensureDefaultAccount(ctx context.Context, client kubernetes.Interface, namespace string) error {
	accounts := client.CoreV1().ServiceAccounts(namespace)
	if !c.options.ControllerManager {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		_, err := accounts.Create(ctx, account, metav1.CreateOptions{})
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := accounts.Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait for service account default: %w", err)
	}
	return nil
}

// namespaceName turns a test's name into a DNS label with a random end.
func namespaceName(test string) string {
	const longest = 63 - len("-12345")
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		default:
			return '-'
		}
	}, test)
	name = strings.Trim(name[:min(len(name), longest)], "-")
	return name + "-" + rand.String(5)
}
