package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// Bounds of what is kept of the kinds of another cluster, and asked for (guesses).
const (
	maxRemoteKinds    = 64  // of one connection
	maxRemoteVersions = 20  // of one group
	maxKindName       = 253 // letters of a kind, a resource or a version
)

// remoteKinds finds kinds of another cluster, which may say that it serves millions: only
// the group and version that somebody asks for are read, and only what was asked for is kept.
type remoteKinds struct {
	discovery discovery.DiscoveryInterface
	known     *lru.Cache[string, *meta.RESTMapping]
}

func newRemoteKinds(d discovery.DiscoveryInterface) remoteKinds {
	known, _ := lru.New[string, *meta.RESTMapping](maxRemoteKinds) // the error is for limits below one
	return remoteKinds{d, known}
}

// RESTMapping is meta.RESTMapper's.
func (m remoteKinds) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if slices.Contains(versions, "") {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	found, err := m.find("kind", kind.Group, kind.Kind, versions, func(r metav1.APIResource) bool { return r.Kind == kind.Kind })
	if found == nil && err == nil {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return found, err
}

// RESTMappings is meta.RESTMapper's.
func (m remoteKinds) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	found, err := m.RESTMapping(kind, versions...)
	if err != nil {
		return nil, err
	}
	return []*meta.RESTMapping{found}, nil
}

// ResourceFor is meta.RESTMapper's.
func (m remoteKinds) ResourceFor(of schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	found, err := m.resource(of)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return found.Resource, nil
}

// ResourcesFor is meta.RESTMapper's.
func (m remoteKinds) ResourcesFor(of schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	found, err := m.ResourceFor(of)
	if err != nil {
		return nil, err
	}
	return []schema.GroupVersionResource{found}, nil
}

// KindFor is meta.RESTMapper's.
func (m remoteKinds) KindFor(of schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	found, err := m.resource(of)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return found.GroupVersionKind, nil
}

// KindsFor is meta.RESTMapper's.
func (m remoteKinds) KindsFor(of schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	found, err := m.KindFor(of)
	if err != nil {
		return nil, err
	}
	return []schema.GroupVersionKind{found}, nil
}

// ResourceSingularizer is meta.RESTMapper's.
func (m remoteKinds) ResourceSingularizer(resource string) (string, error) { return resource, nil }

func (m remoteKinds) resource(of schema.GroupVersionResource) (*meta.RESTMapping, error) {
	var versions []string
	if of.Version != "" {
		versions = []string{of.Version}
	}
	found, err := m.find("resource", of.Group, of.Resource, versions, func(r metav1.APIResource) bool { return r.Name == of.Resource })
	if found == nil && err == nil {
		return nil, &meta.NoResourceMatchError{PartialResource: of}
	}
	return found, err
}

// find is the first of some versions of a group, or of all, that serves what is asked for;
// nil where none does.
func (m remoteKinds) find(what, group, name string, versions []string, is func(metav1.APIResource) bool) (*meta.RESTMapping, error) {
	key := strings.Join(append([]string{what, group, name}, versions...), " ")
	if found, known := m.known.Get(key); known {
		return found, nil
	}
	if len(versions) == 0 {
		var err error
		if versions, err = m.versions(group); err != nil {
			return nil, err
		}
	}
	for _, version := range versions {
		gv := schema.GroupVersion{Group: group, Version: version}
		list, err := m.discovery.ServerResourcesForGroupVersion(gv.String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		served := slices.DeleteFunc(list.APIResources, func(r metav1.APIResource) bool { return strings.Contains(r.Name, "/") || !is(r) })
		if len(served) == 0 {
			continue
		}
		found, err := mappingOf(gv, served[len(served)-1])
		if err == nil {
			m.known.Add(key, found)
		}
		return found, err
	}
	return nil, nil //nolint:nilnil // each caller has an error of its own for that
}

func mappingOf(gv schema.GroupVersion, r metav1.APIResource) (*meta.RESTMapping, error) {
	if max(len(r.Name), len(r.Kind)) > maxKindName {
		return nil, &executors.TooLargeError{What: fmt.Sprintf("the API server serves a kind in %s whose name has more than %d letters", gv, maxKindName)}
	}
	scope := meta.RESTScopeRoot
	if r.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	return &meta.RESTMapping{Resource: gv.WithResource(r.Name), GroupVersionKind: gv.WithKind(r.Kind), Scope: scope}, nil
}

// versions are those of a group, the preferred one first; none where it is not served.
func (m remoteKinds) versions(group string) ([]string, error) {
	if group == "" {
		return []string{"v1"}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), remoteHeaders) // who asks for a kind has no context
	defer cancel()
	text, err := m.discovery.RESTClient().Get().AbsPath("/apis", group).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var served metav1.APIGroup
	if err := json.Unmarshal(text, &served); err != nil {
		return nil, fmt.Errorf("read which versions of %s are served: %w", group, err)
	}
	if len(served.Versions) > maxRemoteVersions {
		return nil, &executors.TooLargeError{What: fmt.Sprintf("the API server says that it serves %d versions of %s; at most %d are looked at", len(served.Versions), group, maxRemoteVersions)}
	}
	var out []string
	for _, v := range slices.Concat([]metav1.GroupVersionForDiscovery{served.PreferredVersion}, served.Versions) {
		if len(v.Version) > maxKindName {
			return nil, &executors.TooLargeError{What: fmt.Sprintf("the API server serves a version of %s whose name has more than %d letters", group, maxKindName)}
		}
		if v.Version != "" && !slices.Contains(out, v.Version) {
			out = append(out, v.Version)
		}
	}
	return out, nil
}
