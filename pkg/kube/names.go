package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
)

// Cached lists little of many objects of the core group, as words at a prompt need it: of one
// namespace or, where it is empty, of all.
type Cached struct {
	Names    func(ctx context.Context, resource, namespace, selector string) ([]string, error)
	Metadata func(ctx context.Context, resource, namespace string, of Some) ([]metav1.ObjectMeta, error)
}

// Some are the objects that have labels, and a name if there is one here.
type Some struct{ Selector, Name string }

// NewCached asks through a client of the core group.
func NewCached(core rest.Interface) *Cached {
	return &Cached{Names: names(core), Metadata: someMetadata(core)}
}

// asTable asks the API server for the columns that kubectl prints.
const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

// table is what is read of a metav1.Table. Its type there has the objects, too.
type table struct {
	Kind    string `json:"kind"`
	Columns []struct {
		Format string `json:"format"` // "name": this column has the names
	} `json:"columnDefinitions"`
	Rows []struct {
		Cells []json.RawMessage `json:"cells"`
	} `json:"rows"`
}

// names lists names, from the API server's cache. Names without the rest of the metadata are a small
// answer: of plans with a status a twelfth.
func names(core rest.Interface) func(ctx context.Context, resource, namespace, selector string) ([]string, error) {
	return func(ctx context.Context, resource, namespace, selector string) ([]string, error) {
		request := fromCache(core, asTable, resource, namespace, Some{Selector: selector}).Param("includeObject", string(metav1.IncludeNone))
		answer := request.Do(ctx)
		if err := answer.Error(); err != nil { // with what the API server says of it
			return nil, err
		}
		body, err := answer.Raw()
		if err != nil {
			return nil, err
		}
		out, err := namesIn(body)
		if err != nil {
			return nil, fmt.Errorf("names of %s: %w", resource, err)
		}
		return out, nil
	}
}

// fromCache is a request for objects as the API server's cache has them, which is recent enough for
// words at a prompt.
func fromCache(core rest.Interface, accept, resource, namespace string, of Some) *rest.Request {
	request := core.Get().Resource(resource).SetHeader("Accept", accept).Param("resourceVersion", "0")
	if namespace != "" {
		request = request.Namespace(namespace)
	}
	if of.Selector != "" {
		request = request.Param("labelSelector", of.Selector)
	}
	if of.Name != "" {
		request = request.Param("fieldSelector", fields.OneTermEqualSelector(metav1.ObjectNameField, of.Name).String())
	}
	return request
}

func namesIn(body []byte) ([]string, error) {
	var t table
	if err := json.Unmarshal(body, &t); err != nil {
		return nil, err
	}
	column := -1
	for i, c := range t.Columns {
		if c.Format == "name" {
			column = i
		}
	}
	if t.Kind != "Table" || column < 0 {
		return nil, errors.New("the API server did not answer with a table that has a column of names")
	}
	out := make([]string, len(t.Rows))
	for i, row := range t.Rows {
		if column >= len(row.Cells) {
			return nil, fmt.Errorf("row %d has no name", i)
		}
		if err := json.Unmarshal(row.Cells[column], &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
