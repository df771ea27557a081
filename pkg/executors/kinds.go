package executors

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// Mapping finds the resource of a kind, where both are spelt as the API server spells them: what
// guards the data of Secrets compares the names. Another spelling is an unknown kind.
func Mapping(mapper meta.RESTMapper, apiVersion, kind string) (*meta.RESTMapping, error) {
	if !document.GroupVersion(apiVersion) {
		return nil, unknown(apiVersion, kind)
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, unknown(apiVersion, kind)
	}
	return mapper.RESTMapping(gv.WithKind(kind).GroupKind(), gv.Version)
}

// RecordedMapping finds the resource of a kind that was written down before something was changed, to
// put it back: earlier versions also took a kind in lower case, and a group without a version. The
// mapping has the API server's spelling. Nothing else may be found by it.
func RecordedMapping(mapper meta.RESTMapper, apiVersion, kind string) (*meta.RESTMapping, error) {
	found, err := Mapping(mapper, apiVersion, kind)
	if !meta.IsNoMatchError(err) {
		return found, err
	}
	gv, invalid := schema.ParseGroupVersion(apiVersion)
	if invalid != nil {
		return nil, err
	}
	if gv.Version == runtime.APIVersionInternal {
		gv.Version = ""
	}
	of := gv.WithKind(kind).GroupKind()
	if kind == strings.ToLower(kind) { // the mapper knows a resource by its singular too, in lower case
		spelt, wrong := mapper.KindFor(gv.WithResource(kind))
		if wrong != nil || spelt.Group != gv.Group || !strings.EqualFold(spelt.Kind, kind) {
			return nil, err
		}
		of.Kind = spelt.Kind
	}
	if gv.Version == "" {
		return mapper.RESTMapping(of)
	}
	return mapper.RESTMapping(of, gv.Version)
}

func unknown(apiVersion, kind string) error {
	group, version, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group, version = "", apiVersion
	}
	return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: group, Kind: kind}, SearchedVersions: []string{version}}
}
