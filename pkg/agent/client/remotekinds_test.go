package client_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// manyKinds is an API server of forty groups, each of many kinds. asked are the paths.
func manyKinds(t *testing.T, w *farWorld, kinds, versions int, name string) (asked *[]string) {
	t.Helper()
	asked = new([]string)
	w.answer = func(r *http.Request) (*http.Response, error) {
		*asked = append(*asked, r.URL.Path)
		path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		var body any
		switch {
		case len(path) == 1 && path[0] == "apis":
			list := metav1.APIGroupList{}
			for i := range 40 {
				list.Groups = append(list.Groups, groupOf(fmt.Sprintf("g%d.x", i), versions))
			}
			body = list
		case len(path) == 2 && path[0] == "apis":
			body = groupOf(path[1], versions)
		case len(path) == 3:
			list := metav1.APIResourceList{GroupVersion: path[1] + "/" + path[2]}
			for i := range kinds {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: fmt.Sprintf("r%d%s", i, name), Kind: fmt.Sprintf("K%d", i), Namespaced: true, Verbs: metav1.Verbs{"get"}}, metav1.APIResource{Name: fmt.Sprintf("r%d%s/status", i, name), Kind: fmt.Sprintf("K%d", i)})
			}
			body = list
		default:
			body = metav1.APIVersions{Versions: []string{"v1"}}
		}
		text, err := json.Marshal(body)
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, err
	}
	return asked
}

func groupOf(name string, versions int) metav1.APIGroup {
	g := metav1.APIGroup{Name: name}
	for i := versions; i > 0; i-- {
		version := fmt.Sprintf("v%d", i)
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + version, Version: version})
	}
	g.PreferredVersion = g.Versions[len(g.Versions)-1]
	return g
}

// Another cluster may say that it serves millions of kinds.
func TestOfTheKindsOfAnotherClusterThatOfOneGroupIsRead(t *testing.T) {
	w := newFarWorld(t)
	c := w.clients(t)
	asked := manyKinds(t, w, 100, 2, "")
	for range 3 {
		found, err := c.Mapper.RESTMapping(schema.GroupKind{Group: "g3.x", Kind: "K7"}, "v1")
		if err != nil || found.Resource.String() != "g3.x/v1, Resource=r7" || found.Scope.Name() != meta.RESTScopeNameNamespace {
			t.Fatalf("%+v, %v", found, err)
		}
	}
	if diff := cmp.Diff([]string{"/apis/g3.x/v1"}, *asked); diff != "" {
		t.Errorf("-want +asked\n%s", diff)
	}
	for i := range 100 {
		if _, err := c.Mapper.RESTMapping(schema.GroupKind{Group: "g4.x", Kind: fmt.Sprintf("K%d", i)}, "v1"); err != nil {
			t.Fatal(err)
		}
	}
	*asked = nil
	if _, err := c.Mapper.RESTMapping(schema.GroupKind{Group: "g3.x", Kind: "K7"}, "v1"); err != nil || len(*asked) != 1 {
		t.Errorf("of a hundred kinds all are kept: %v, %v", *asked, err)
	}
}

func TestAResourceOfAnotherClusterIsFoundInThePreferredVersion(t *testing.T) {
	w := newFarWorld(t)
	c := w.clients(t)
	asked := manyKinds(t, w, 10, 2, "")
	found, err := c.Mapper.ResourceFor(schema.GroupVersionResource{Group: "g3.x", Resource: "r7"})
	if err != nil || found.String() != "g3.x/v1, Resource=r7" {
		t.Errorf("%+v, %v", found, err)
	}
	mapping, err := c.Mapper.RESTMapping(schema.GroupKind{Group: "g3.x", Kind: "K8"})
	if err != nil || mapping.Resource.String() != "g3.x/v1, Resource=r8" {
		t.Errorf("%+v, %v", mapping, err)
	}
	kind, err := c.Mapper.KindFor(schema.GroupVersionResource{Group: "g3.x", Version: "v2", Resource: "r9"})
	if err != nil || kind.String() != "g3.x/v2, Kind=K9" {
		t.Errorf("%+v, %v", kind, err)
	}
	*asked = nil
	if _, err := c.Mapper.ResourceFor(schema.GroupVersionResource{Group: "g3.x", Resource: "none"}); !meta.IsNoMatchError(err) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"/apis/g3.x", "/apis/g3.x/v1", "/apis/g3.x/v2"}, *asked); diff != "" {
		t.Errorf("-want +asked\n%s", diff)
	}
}

func TestNamesAndVersionsOfTheKindsOfAnotherClusterAreBounded(t *testing.T) {
	w := newFarWorld(t)
	c := w.clients(t)
	var large *executors.TooLargeError
	asked := manyKinds(t, w, 10, 1000, "")
	if _, err := c.Mapper.RESTMapping(schema.GroupKind{Group: "g3.x", Kind: "none"}); !errors.As(err, &large) || len(*asked) != 1 {
		t.Errorf("a thousand versions: %v after %d requests", err, len(*asked))
	}
	manyKinds(t, w, 10, 1, strings.Repeat("x", 10_000))
	if _, err := c.Mapper.RESTMapping(schema.GroupKind{Group: "g3.x", Kind: "K1"}, "v1"); !errors.As(err, &large) {
		t.Errorf("a name of ten thousand letters: %v", err)
	}
}

func TestAKindOfAnotherClusterIsFoundOnceItIsThere(t *testing.T) {
	w := newFarWorld(t)
	c := w.clients(t)
	app := schema.GroupKind{Group: "example.org", Kind: "App"}
	for _, versions := range [][]string{{"v1"}, nil} {
		if _, err := c.Mapper.RESTMapping(app, versions...); !meta.IsNoMatchError(err) {
			t.Errorf("before: %v", err)
		}
	}
	w.far.Serve(agenttest.Kind{Group: "example.org", Version: "v1", Kind: "App", Resource: "apps"})
	for _, versions := range [][]string{{"v1"}, nil} {
		found, err := c.Mapper.RESTMapping(app, versions...)
		if err != nil || found.Resource.Resource != "apps" || found.Scope.Name() != meta.RESTScopeNameRoot {
			t.Errorf("%+v, %v", found, err)
		}
	}
	w.answer = func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
	if _, err := c.Mapper.RESTMapping(schema.GroupKind{Kind: "Pod"}, "v1"); err == nil || meta.IsNoMatchError(err) {
		t.Errorf("a cluster that does not answer said: %v", err)
	}
}

// The kinds of another cluster are found as those of the own one are: only as the API server spells them.
func TestAKindOfAnotherClusterIsFoundAsItsAPIServerSpellsIt(t *testing.T) {
	w := newFarWorld(t)
	clients := w.clients(t)
	access := w.accounts.With(maintRunner(), clients)
	for _, spelt := range [][2]string{{"v1", "Secret"}, {"apps/v1", "Deployment"}} {
		if found, err := access.Resolve(spelt[0], spelt[1]); err != nil || found.GroupVersionKind.Kind != spelt[1] {
			t.Errorf("%q: %v, %v", spelt, found, err)
		}
	}
	for _, spelt := range [][2]string{
		{"v1", "secret"},
		{"v1", "SECRET"},
		{"v1", "secrets"},
		{"v1/", "Secret"},
		{" v1", "Secret"},
		{"/v1", "Secret"},
		{"/", "Secret"},
		{"V1", "Secret"},
		{"__internal", "Secret"},
		{"apps/", "Deployment"},
		{"Apps/v1", "Deployment"},
		{"apps/V1", "Deployment"},
		{"apps/v1", "deployment"},
		{"apps/..", "Deployment"},
	} {
		if found, err := access.Resolve(spelt[0], spelt[1]); !meta.IsNoMatchError(err) {
			t.Errorf("%q: found %v, %v", spelt, found, err)
		}
	}
	if found, err := clients.Mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}, ""); !meta.IsNoMatchError(err) {
		t.Errorf("of an empty version: %v, %v", found, err)
	}
}
