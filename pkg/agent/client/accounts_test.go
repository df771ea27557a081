package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

const runner = "system:serviceaccount:shop:maint-runner"

func maintRunner() client.Account { return client.Account{Namespace: "shop", Name: "maint-runner"} }

func account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "maint-runner"}}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

// over reaches a cluster through a transport that notes requests as they are sent.
func over(t *testing.T, api *agenttest.Cluster, note func(*http.Request), answered func(method, code string)) *client.Connection {
	t.Helper()
	transport := client.RoundTripper(func(r *http.Request) (*http.Response, error) {
		note(r)
		return api.RoundTrip(r)
	})
	conn, err := client.Connect(client.Config{Rest: &rest.Config{Host: "http://cluster.test", Transport: transport}, Version: "v9", Lease: 15 * time.Second, Now: time.Now, OnAnswer: answered})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestWhomRequestsActAs(t *testing.T) {
	api := agenttest.New(t)
	api.Put(configMap("a"), account())
	var sent atomic.Pointer[http.Request]
	conn := over(t, api, func(r *http.Request) { sent.Store(r) }, func(string, string) {})
	accounts := conn.Impersonate(client.External{HTTP: func() *http.Client { return nil }})
	for name, c := range map[string]struct {
		as, run   string
		get       func() error
		userAgent string
	}{
		"the agent itself": {get: func() error {
			_, err := conn.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), "a", metav1.GetOptions{})
			return err
		}},
		"an account": {as: runner, get: func() error {
			c, err := accounts.Clients(maintRunner(), "")
			if err != nil {
				return err
			}
			_, err = c.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), "a", metav1.GetOptions{})
			return err
		}},
		"an account for a run": {as: runner, run: "run-1", get: func() error {
			c, err := accounts.Clients(maintRunner(), "run-1")
			if err != nil {
				return err
			}
			_, err = c.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), "a", metav1.GetOptions{})
			return err
		}},
		"an account, of any kind": {as: runner, run: "run-1", get: func() error {
			home, err := accounts.Access(t.Context(), maintRunner(), "run-1", nil)
			if err != nil {
				return err
			}
			r, err := home.Resource(plan.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Name: "a"})
			if err != nil {
				return err
			}
			_, err = r.Get(t.Context(), "a", metav1.GetOptions{})
			return err
		}},
		"an account, for metadata": {as: runner, get: func() error {
			m, err := accounts.Metadata(maintRunner())
			if err != nil {
				return err
			}
			_, err = m.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("shop").Get(t.Context(), "a", metav1.GetOptions{})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.get(); err != nil {
				t.Fatal(err)
			}
			run := ""
			last := sent.Load()
			for key, values := range last.Header {
				if strings.HasPrefix(key, "Impersonate-Extra-") {
					run = strings.Join(values, ",")
				}
			}
			if as := last.Header.Get("Impersonate-User"); as != c.as || run != c.run {
				t.Errorf("acts as %q for %q, want %q for %q", as, run, c.as, c.run)
			}
		})
	}
}

func TestNothingIsSentAsAnAccountThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := agenttest.New(t)
		api.Put(configMap("a"), account())
		_, accounts := api.Connect()
		c, err := accounts.Clients(maintRunner(), "run-1")
		if err != nil {
			t.Fatal(err)
		}
		meta, err := accounts.Metadata(maintRunner())
		if err != nil {
			t.Fatal(err)
		}
		maps := corev1.SchemeGroupVersion.WithResource("configmaps")
		ways := map[string]func() error{
			"a read": func() error {
				_, err := c.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), "a", metav1.GetOptions{})
				return err
			},
			"a patch of any kind": func() error {
				_, err := c.Dynamic.Resource(maps).Namespace("shop").Patch(t.Context(), "a", types.MergePatchType, []byte(`{"data":{"x":"1"}}`), metav1.PatchOptions{})
				return err
			},
			"a list of metadata": func() error {
				_, err := meta.Resource(maps).Namespace("shop").List(t.Context(), metav1.ListOptions{})
				return err
			},
		}
		for what, way := range ways {
			if err := way(); err != nil {
				t.Errorf("it is there, %s: %v", what, err)
			}
		}
		api.Delete("serviceaccounts", "shop", "maint-runner")
		api.ClearLog()
		time.Sleep(20 * time.Second)
		for what, way := range ways {
			err := way()
			if executors.RefusalOf(err, runner) != executors.RefusedNoAccount || err.Error() != client.MissingMessage(maintRunner()) {
				t.Errorf("it is not there, %s: %v", what, err)
			}
		}
		api.Put(account())
		for what, way := range ways {
			if err := way(); err != nil {
				t.Errorf("it is back, %s: %v", what, err)
			}
		}
	})
}

func TestClientsOfAnAccountAreKept(t *testing.T) {
	_, accounts := agenttest.New(t).Connect()
	first, _ := accounts.Clients(maintRunner(), "")
	again, _ := accounts.Clients(maintRunner(), "")
	run, _ := accounts.Clients(maintRunner(), "run-1")
	if first.Kube != again.Kube || first.Kube == run.Kube {
		t.Error("those of an account are made anew, or those of a run are not")
	}
}

// An account that nobody asks for any more, as of a namespace that is gone or of a plan that
// names another one now, is forgotten.
func TestClientsOfAccountsThatNobodyAsksForAreForgotten(t *testing.T) {
	_, accounts := agenttest.New(t).Connect()
	clients := func(name string) executors.Clients {
		t.Helper()
		c, err := accounts.Clients(client.Account{Namespace: "shop", Name: name}, "")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	old, used := clients("old"), clients("used")
	for i := range 1999 {
		clients(fmt.Sprintf("runner-%d", i))
		clients("used")
	}
	if clients("used").Kube != used.Kube {
		t.Error("those of an account that is at work are made anew")
	}
	if clients("old").Kube == old.Kube {
		t.Error("those of an account are kept after two thousand others were asked for")
	}
}

func TestWhoListensHearsOfAccountsAlone(t *testing.T) {
	api := agenttest.New(t)
	api.Put(account())
	conn, accounts := api.Connect()
	var heard []string
	accounts.OnWrite(func(w client.Account, run string, next http.RoundTripper) http.RoundTripper {
		return client.RoundTripper(func(r *http.Request) (*http.Response, error) {
			heard = append(heard, w.Name+" "+run+" "+r.Method)
			return next.RoundTrip(r)
		})
	})
	c, err := accounts.Clients(maintRunner(), "run-1")
	if err != nil {
		t.Fatal(err)
	}
	_, theirs := c.Kube.CoreV1().ConfigMaps("shop").Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	_, ours := conn.Kube.CoreV1().ConfigMaps("shop").Create(t.Context(), configMap("b"), metav1.CreateOptions{})
	if want := []string{"maint-runner run-1 POST"}; theirs != nil || ours != nil || !slices.Equal(heard, want) {
		t.Errorf("%v, %v, heard %q, want %q", theirs, ours, heard, want)
	}
}

func TestEveryWriteStopsAtTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := agenttest.New(t)
		api.Put(configMap("a"), account())
		conn, accounts := api.Connect()
		theirs, err := accounts.Clients(maintRunner(), "run-1")
		if err != nil {
			t.Fatal(err)
		}
		maps := corev1.SchemeGroupVersion.WithResource("configmaps")
		empty := []byte(`{"data":{"x":"1"}}`)
		ways := map[string]func() error{
			"the agent's own": func() error {
				_, err := conn.Kube.CoreV1().ConfigMaps("shop").Patch(t.Context(), "a", types.MergePatchType, empty, metav1.PatchOptions{})
				return err
			},
			"the agent's own, of metadata": func() error {
				_, err := conn.Meta.Resource(maps).Namespace("shop").Patch(t.Context(), "a", types.MergePatchType, empty, metav1.PatchOptions{})
				return err
			},
			"an account's": func() error {
				_, err := theirs.Kube.CoreV1().ConfigMaps("shop").Patch(t.Context(), "a", types.MergePatchType, empty, metav1.PatchOptions{})
				return err
			},
			"an account's, of any kind": func() error {
				_, err := theirs.Dynamic.Resource(maps).Namespace("shop").Patch(t.Context(), "a", types.MergePatchType, empty, metav1.PatchOptions{})
				return err
			},
			"what a library sends": theirs.Fence,
		}
		conn.Fence.Renew(time.Now(), 1)
		for what, way := range ways {
			if err := way(); err != nil {
				t.Errorf("within the lease, %s: %v", what, err)
			}
		}
		time.Sleep(15 * time.Second)
		api.ClearLog()
		for what, way := range ways {
			if err := way(); !errors.Is(err, client.ErrFenced) {
				t.Errorf("after the lease, %s: %v", what, err)
			}
		}
		if _, err := theirs.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), "a", metav1.GetOptions{}); err != nil || len(api.Log()) > 0 {
			t.Errorf("after the lease: a read %v, writes %q", err, api.Log())
		}
	})
}

func TestEachRequestIsCounted(t *testing.T) {
	api := agenttest.New(t)
	var counted []string
	conn := over(t, api, func(*http.Request) {}, func(method, code string) { counted = append(counted, method+" "+code) })
	maps := conn.Kube.CoreV1().ConfigMaps("shop")
	_, _ = maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	_, _ = maps.Get(t.Context(), "none", metav1.GetOptions{})
	api.Fail(agenttest.When{Verb: "delete"}, 1)
	_ = maps.Delete(t.Context(), "a", metav1.DeleteOptions{})
	conn.Fence.Close()
	_ = maps.Delete(t.Context(), "a", metav1.DeleteOptions{})
	if want := []string{"POST 200", "GET 404", "DELETE error", "DELETE error"}; !slices.Equal(counted, want) {
		t.Errorf("counted %q, want %q", counted, want)
	}
}

func TestWhetherAnAccountIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := agenttest.New(t)
		_, accounts := api.Connect()
		ask := agenttest.When{Verb: "get", Resource: "serviceaccounts"}
		missing := func(what string, want bool, asked int) {
			t.Helper()
			before := api.Asked(ask)
			got, err := accounts.Missing(t.Context(), maintRunner())
			if (got != "") != want || err != nil || api.Asked(ask)-before != asked {
				t.Errorf("%s: %q, %v, asked %d times, want %d", what, got, err, api.Asked(ask)-before, asked)
			}
		}
		missing("it is missing", true, 1)
		missing("a no is asked for again", true, 1)
		api.Put(account())
		missing("it is there", false, 1)
		api.Delete("serviceaccounts", "shop", "maint-runner")
		missing("a yes is believed for a while", false, 0)
		time.Sleep(20 * time.Second)
		missing("and not for longer", true, 1)
		api.Put(account())
		missing("it is there again", false, 1)
		accounts.Forget(client.Account{Namespace: "shop", Name: "maint"})
		missing("another account is forgotten", false, 0)
		accounts.Forget(maintRunner())
		missing("it is forgotten", false, 1)
		accounts.Forget(maintRunner())
		api.Refuse(ask, 1, http.StatusServiceUnavailable, "away")
		if got, err := accounts.Missing(t.Context(), maintRunner()); got != "" || err == nil {
			t.Errorf("no answer is taken for one: %q, %v", got, err)
		}
	})
}

func TestWhatAnAccountMay(t *testing.T) {
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	for name, c := range map[string]struct {
		change func(*agenttest.Cluster)
		want   string
		fails  bool
	}{
		"it may":                         {change: func(*agenttest.Cluster) {}},
		"it may not":                     {change: func(api *agenttest.Cluster) { api.Deny(runner, "patch", "deployments") }, want: `the ServiceAccount maint-runner may not patch deployments.apps "orders" in namespace shop`},
		"the agent may not act as it":    {change: func(api *agenttest.Cluster) { api.Refuse(agenttest.When{Verb: "create"}, 1, 403, "cannot impersonate") }, want: "the agent may not act as the ServiceAccount maint-runner; 'kubectl maint install --read-only=false --apply' lets it ("},
		"it is not there":                {change: func(api *agenttest.Cluster) { api.Delete("serviceaccounts", "shop", "maint-runner") }, want: "the ServiceAccount maint-runner does not exist in namespace shop"},
		"the API server does not answer": {change: func(api *agenttest.Cluster) { api.Refuse(agenttest.When{Verb: "create"}, 1, 503, "away") }, fails: true},
		"another account may not":        {change: func(api *agenttest.Cluster) { api.Deny("system:serviceaccount:shop:other", "patch", "deployments") }},
	} {
		t.Run(name, func(t *testing.T) {
			api := agenttest.New(t)
			api.Put(account())
			_, accounts := api.Connect()
			c.change(api)
			got, err := accounts.Refused(t.Context(), maintRunner(), "patch", deployments, "orders")
			if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") || (err != nil) != c.fails {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestWhatAnAccountIsInOneWord(t *testing.T) {
	api := agenttest.New(t)
	_, accounts := api.Connect()
	digest := func(last string) string {
		t.Helper()
		got, err := accounts.RightsDigest(t.Context(), maintRunner(), last)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := digest(""); got != client.AccountMissing {
		t.Errorf("it is missing, and: %q", got)
	}
	api.Put(account())
	there := digest(client.AccountMissing)
	if there == client.AccountMissing || there == "" || digest(there) != there {
		t.Errorf("it is there, and: %q, then %q", there, digest(there))
	}
	api.Delete("serviceaccounts", "shop", "maint-runner")
	accounts.Forget(maintRunner())
	if got := digest(there); got != client.AccountMissing {
		t.Errorf("it is deleted, and: %q", got)
	}
	api.Put(account())
	api.Refuse(agenttest.When{Verb: "create", Resource: "selfsubjectrulesreviews"}, 1, 403, "no")
	if got := digest(there); got != "refused" {
		t.Errorf("it is refused, and: %q", got)
	}
	api.Refuse(agenttest.When{Verb: "create", Resource: "selfsubjectrulesreviews"}, 1, 503, "away")
	if got, err := accounts.RightsDigest(t.Context(), maintRunner(), there); err == nil {
		t.Errorf("no answer is taken for one: %q", got)
	}
}

func TestWhetherA404SaysThatAnObjectIsGone(t *testing.T) {
	api := agenttest.New(t)
	_, accounts := api.Connect()
	maps, none := corev1.SchemeGroupVersion.WithKind("ConfigMap"), schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "App"}
	bare := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound}}
	for name, c := range map[string]struct {
		err  error
		kind schema.GroupVersionKind
		want bool
	}{
		"one that names it": {apierrors.NewNotFound(corev1.Resource("configmaps"), "a"), maps, true},
		"one that names nothing, of a kind that is served": {bare, maps, false},
		"one that names nothing, of a kind that is not":    {bare, none, true},
	} {
		if got, err := accounts.With(maintRunner(), executors.Clients{}).ObjectGone(c.err, c.kind); got != c.want || err != nil {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
	if served, err := accounts.KindServed(maps); !served || err != nil {
		t.Errorf("ConfigMaps are served: %t, %v", served, err)
	}
	if _, err := accounts.Resolve("a/b/c", "App"); err == nil {
		t.Error("an apiVersion with two slashes is understood")
	}
	_, err := accounts.Resolve("example.org/v1", "App")
	if !client.UnknownKind(err) {
		t.Errorf("a kind that is not served: %v", err)
	}
	accounts.ResetKinds()
	api.Serve(agenttest.Kind{Group: "example.org", Version: "v1", Kind: "App", Resource: "apps"})
	mapping, err := accounts.Resolve("example.org/v1", "App")
	if err != nil || mapping.Resource.Resource != "apps" {
		t.Errorf("when it is served: %v, %v", mapping, err)
	}
}

func TestWhatAnErrorMeans(t *testing.T) {
	kind := corev1.Resource("configmaps")
	for name, c := range map[string]struct {
		err                          error
		notTaken, never, unreachable bool
	}{
		"a connection that broke":     {err: io.ErrUnexpectedEOF, unreachable: true},
		"a dial that failed":          {err: &net.OpError{Op: "dial", Err: errors.New("refused")}, unreachable: true},
		"a server that is away":       {err: apierrors.NewServiceUnavailable("x"), unreachable: true},
		"a server that is busy":       {err: apierrors.NewTooManyRequests("x", 1), unreachable: true},
		"an error of the server":      {err: apierrors.NewInternalError(errors.New("x")), unreachable: true},
		"an object that is not valid": {err: apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", nil), notTaken: true, never: true},
		"one that is too large":       {err: apierrors.NewRequestEntityTooLargeError("x"), notTaken: true, never: true},
		"a right that is missing":     {err: apierrors.NewForbidden(kind, "a", errors.New("x")), notTaken: true},
		"a conflict":                  {err: apierrors.NewConflict(kind, "a", errors.New("x"))},
		"an error of ours":            {err: errors.New("x")},
		"none":                        {},
	} {
		if a, b, u := client.IsRejected(c.err), client.IsRejectedForGood(c.err), c.err != nil && client.Unreachable(c.err); a != c.notTaken || b != c.never || u != c.unreachable {
			t.Errorf("%s: not taken %t, never %t, unreachable %t", name, a, b, u)
		}
	}
}

// A machine that slept has a monotonic clock that stood still, and one whose clock was
// set back has a wall clock that did.
func TestAFenceBelievesTheClockThatWentFurther(t *testing.T) {
	began := time.Now()
	for name, c := range map[string]struct {
		now  time.Time
		want bool
	}{
		"within the lease by both":  {began.Add(14 * time.Second), true},
		"past it by the wall clock": {began.Round(0).Add(16 * time.Second), false},
		"past it by both":           {began.Add(16 * time.Second), false},
	} {
		f := client.NewFence(15*time.Second, func() time.Time { return c.now })
		f.Renew(began, 1)
		if got := f.Valid(); got != c.want {
			t.Errorf("%s: open %t", name, got)
		}
	}
}

func TestADialThatFailsIsSaid(t *testing.T) {
	f := client.NewFence(time.Second, time.Now)
	broken := errors.New("broken")
	dial := f.Dialer(func(context.Context, string, string) (net.Conn, error) { return nil, broken })
	if _, err := dial(t.Context(), "tcp", "example.org:443"); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if f.Client(nil) != nil {
		t.Error("no client became one")
	}
}
