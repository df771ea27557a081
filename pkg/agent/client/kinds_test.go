package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// An API server that starts knows its groups before it can tell what is in them, or
// lists none of a group at all: only its answer for that very group and version is
// believed when it says that a kind is gone.
func TestOnlyAnAnswerForTheVeryGroupAndVersionSaysThatAKindIsGone(t *testing.T) {
	const group = `{"kind":"APIGroup","apiVersion":"v1","name":"example.org","versions":[{"groupVersion":"example.org/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.org/v1","version":"v1"}}`
	const kinds = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.org/v1","resources":[{"name":"apps","singularName":"app","namespaced":true,"kind":"App","verbs":["get"]}]}`
	app := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "App"}
	cases := map[string]struct {
		groups string // of the list of groups
		status int    // of the answer for the group and version
		body   string
		found  bool
		gone   bool
	}{
		"served": {groups: group, status: http.StatusOK, body: kinds, found: true},
		"not in the list of groups, and not known": {status: http.StatusNotFound, body: `{}`, gone: true},
		"not in the list of groups, and served":    {status: http.StatusOK, body: kinds},
		"not in the list of groups, and no answer": {status: http.StatusServiceUnavailable, body: `{}`},
		"the group is there, and gives no answer":  {groups: group, status: http.StatusServiceUnavailable, body: `{}`},
		"the group is there, and refused":          {groups: group, status: http.StatusForbidden, body: `{}`},
		"the group is there without the kind":      {groups: group, status: http.StatusOK, body: strings.ReplaceAll(kinds, `"App"`, `"Other"`), gone: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := accountsOf(t, func(w http.ResponseWriter, path string) {
				switch path {
				case "/apis":
					fmt.Fprintf(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[%s]}`, c.groups)
				case "/apis/example.org/v1":
					w.WriteHeader(c.status)
					fmt.Fprint(w, c.body)
				default:
					fmt.Fprint(w, `{"kind":"APIVersions","versions":[]}`)
				}
			})
			mapping, err := a.Mapping(app.GroupKind(), app.Version)
			if c.found && (err != nil || mapping.Resource.Resource != "apps") {
				t.Fatalf("not found: %v, %v", mapping, err)
			}
			if !c.found && err == nil {
				t.Fatal("found")
			}
			if meta.IsNoMatchError(err) != c.gone {
				t.Errorf("taken for gone: %v, by %v", !c.gone, err)
			}
			if gone, err := a.KindGone(app); gone != c.gone || gone && err != nil {
				t.Errorf("gone: %v, %v", gone, err)
			}
		})
	}
}

// A kind that could not be told of is found as soon as the API server tells of it.
func TestAKindIsFoundOnceTheAPIServerTellsOfIt(t *testing.T) {
	var up atomic.Bool
	a := accountsOf(t, func(w http.ResponseWriter, path string) {
		switch {
		case path == "/apis" && up.Load():
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.org","versions":[{"groupVersion":"example.org/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.org/v1","version":"v1"}}]}`)
		case path == "/apis/example.org/v1" && up.Load():
			fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.org/v1","resources":[{"name":"apps","namespaced":true,"kind":"App","verbs":["get"]}]}`)
		case path == "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		case path == "/apis/example.org/v1":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			fmt.Fprint(w, `{"kind":"APIVersions","versions":[]}`)
		}
	})
	app := schema.GroupKind{Group: "example.org", Kind: "App"}
	if _, err := a.Mapping(app, "v1"); err == nil || meta.IsNoMatchError(err) {
		t.Fatalf("an API server that does not answer said: %v", err)
	}
	up.Store(true)
	if mapping, err := a.Mapping(app, "v1"); err != nil || mapping.Resource.Resource != "apps" {
		t.Fatalf("%v, %v", mapping, err)
	}
}

// A kind that is looked up while somebody else has all kinds asked for anew is found with them.
func TestAKindIsFoundThatSomebodyElseHadAskedFor(t *testing.T) {
	var up atomic.Bool
	var a *Impersonator
	var again sync.Once
	a = accountsOf(t, func(w http.ResponseWriter, path string) {
		switch {
		case path == "/apis" && up.Load():
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.org","versions":[{"groupVersion":"example.org/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.org/v1","version":"v1"}}]}`)
		case path == "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		case path == "/apis/example.org/v1":
			again.Do(func() { // the other is faster
				a.kinds.asked = time.Now()
				up.Store(true)
				a.ResetKinds()
			})
			fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.org/v1","resources":[{"name":"apps","namespaced":true,"kind":"App","verbs":["get"]}]}`)
		default:
			fmt.Fprint(w, `{"kind":"APIVersions","versions":[]}`)
		}
	})
	if mapping, err := a.Mapping(schema.GroupKind{Group: "example.org", Kind: "App"}, "v1"); err != nil || mapping.Resource.Resource != "apps" {
		t.Fatalf("%v, %v", mapping, err)
	}
}

func accountsOf(t *testing.T, answer func(w http.ResponseWriter, path string)) *Impersonator {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer(w, req.URL.Path)
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, QPS: -1}
	kube, err := kube.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return newImpersonator(config, http.DefaultTransport, kube, memory.NewMemCacheClient(kube.Discovery()), External{HTTP: func() *http.Client { return http.DefaultClient }}, time.Now)
}

// What keeps the data of Secrets compares kinds, so a kind in other letters or without a version
// would get past it: client-go's mapper takes both.
func TestAKindIsFoundAsTheAPIServerSpellsIt(t *testing.T) {
	a := accountsOf(t, func(w http.ResponseWriter, path string) {
		switch path {
		case "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"secrets","singularName":"secret","namespaced":true,"kind":"Secret","verbs":["get"]},{"name":"lowers","singularName":"lower","namespaced":true,"kind":"lower","verbs":["get"]}]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{}`)
		}
	})
	c, err := a.Clients(Account{Namespace: "shop", Name: "maint-runner"}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Secret", "lower"} {
		if found, err := c.Mapper.RESTMapping(schema.GroupKind{Kind: kind}, "v1"); err != nil || found.GroupVersionKind != (schema.GroupVersionKind{Version: "v1", Kind: kind}) {
			t.Errorf("%s: %v, %v", kind, found, err)
		}
	}
	if found, err := a.Mapping(schema.GroupKind{Kind: "Secret"}); err != nil || found.Resource.Resource != "secrets" {
		t.Errorf("of any version: %v, %v", found, err)
	}
	for _, spelt := range [][2]string{{"v1", "secret"}, {"v1", "SECRET"}, {"v1", "sEcret"}, {"v1", "secrets"}, {"v1", "Lower"}, {"", "Secret"}, {"/", "Secret"}, {"__internal", "Secret"}, {"V1", "Secret"}} {
		if found, err := a.Resolve(spelt[0], spelt[1]); !meta.IsNoMatchError(err) || !UnknownKind(err) {
			t.Errorf("%q: found %v, %v", spelt, found, err)
		}
	}
}
