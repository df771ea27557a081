package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Mapping finds a kind for what the agent looks at again and again, so that the
// kinds are not asked for anew each time.
func (a *Impersonator) Mapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return liveMapper{a.kinds.mapper, a.kube}.find(kind, versions, func() bool {
		a.kinds.mu.Lock()
		defer a.kinds.mu.Unlock()
		again := a.now().Sub(a.kinds.asked) >= kindsInterval
		if again {
			a.kinds.asked = a.now()
		}
		return again
	})
}

// throttledMapper is a liveMapper that does not ask for the kinds anew each time.
type throttledMapper struct {
	liveMapper
	from *Impersonator
}

// RESTMapping is meta.RESTMapper's.
func (m throttledMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.from.Mapping(kind, versions...)
}

// KindServed says whether the API server serves a kind.
func (a *Impersonator) KindServed(kind schema.GroupVersionKind) (bool, error) {
	return liveMapper{a.kinds.mapper, a.kube}.serves(kind)
}

// ResetKinds has all kinds asked for anew.
func (a *Impersonator) ResetKinds() { a.kinds.mapper.Reset() }

// liveMapper finds kinds. One that is not known may have been installed since the
// kinds were last asked for, or the API server could not tell of its group then:
// only its answer for that very group and version says that a kind is gone. That
// costs one small request, and only where it is served are all kinds asked for anew.
type liveMapper struct {
	meta.ResettableRESTMapper
	kube kube.Interface
}

// errKinds says that a kind is served, and that the kinds could not be read.
var errKinds = errors.New("it is served, but the API server does not list all kinds now") //nolint:gochecknoglobals // a sentinel for errors.Is

// RESTMapping is meta.RESTMapper's.
func (m liveMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.find(kind, versions, func() bool { return true })
}

// find takes a kind only as the API server spells it: client-go's mapper takes it in lower case
// too, and any version for an empty or internal one, and what guards Secrets compares the names.
func (m liveMapper) find(kind schema.GroupKind, versions []string, mayReset func() bool) (*meta.RESTMapping, error) {
	found, err := m.lookUp(kind, versions, mayReset)
	if err != nil {
		return nil, err
	}
	if len(versions) > 0 && !slices.Contains(versions, found.GroupVersionKind.Version) {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	if kind.Kind != strings.ToLower(kind.Kind) {
		return found, nil
	}
	switch spelt, err := m.KindFor(found.Resource); {
	case err != nil:
		return nil, err
	case spelt.Kind != kind.Kind:
		return nil, fmt.Errorf("it is spelt %s: %w", spelt.Kind, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions})
	}
	return found, nil
}

func (m liveMapper) lookUp(kind schema.GroupKind, versions []string, mayReset func() bool) (*meta.RESTMapping, error) {
	found, err := m.ResettableRESTMapper.RESTMapping(kind, versions...)
	if !meta.IsNoMatchError(err) {
		return found, err
	}
	if len(versions) == 0 && mayReset() { // there is no one version to ask for
		m.Reset()
		return m.ResettableRESTMapper.RESTMapping(kind)
	}
	for _, version := range versions {
		served, asked := m.serves(kind.WithVersion(version))
		switch {
		case asked != nil:
			return nil, asked
		case !served:
			continue
		case mayReset():
			m.Reset()
		}
		// where somebody else has had them asked for just now, they may be known
		found, err = m.ResettableRESTMapper.RESTMapping(kind, versions...)
		if meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("kind %s: %w", kind, errKinds)
		}
		return found, err
	}
	return nil, err
}

// KindGone says whether the API server serves a kind no more, and an error where it
// does not say.
func (a *Impersonator) KindGone(kind schema.GroupVersionKind) (bool, error) {
	served, err := liveMapper{a.kinds.mapper, a.kube}.serves(kind)
	return err == nil && !served, err
}

func (m liveMapper) serves(kind schema.GroupVersionKind) (bool, error) {
	list, err := m.kube.Discovery().ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask whether %s is served: %w", kind, err)
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.Kind }), nil
}

// Resolve finds the resource of a kind.
func (a *Impersonator) Resolve(apiVersion, kind string) (*meta.RESTMapping, error) {
	return a.resolved(apiVersion, kind, executors.Mapping)
}

// ResolveRecorded finds the resource of a kind of which something is put back as it was.
func (a *Impersonator) ResolveRecorded(apiVersion, kind string) (*meta.RESTMapping, error) {
	return a.resolved(apiVersion, kind, executors.RecordedMapping)
}

func (a *Impersonator) resolved(apiVersion, kind string, find func(meta.RESTMapper, string, string) (*meta.RESTMapping, error)) (*meta.RESTMapping, error) {
	mapping, err := find(throttledMapper{liveMapper{a.kinds.mapper, a.kube}, a}, apiVersion, kind)
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("look up kind %s of %s: %w", kind, apiVersion, err)
	}
	if err != nil {
		return nil, fmt.Errorf("kind %s of %s is not known to this cluster: %w", kind, apiVersion, err)
	}
	return mapping, nil
}

// UnknownKind says whether the API server told that it serves no such kind.
func UnknownKind(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if meta.IsNoMatchError(err) {
			return true
		}
	}
	return false
}
