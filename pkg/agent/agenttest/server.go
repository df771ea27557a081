package agenttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// Request is one request as the cluster sees it.
type Request struct {
	User      string // whom it acts as; empty: the agent itself
	Run       string // whose step it is; empty: nobody's
	Verb      string // get, list, watch, create, update, patch or delete
	Resource  string
	Status    bool // the object's status alone
	Namespace string
	Name      string
	Body      []byte

	kind   Kind
	labels labels.Selector
	fields fields.Selector
	meta   bool // only metadata is asked for
	merges bool // strategically
	query  map[string][]string
}

func (r Request) who() string {
	if r.User == "" {
		return "agent"
	}
	return r.User[strings.LastIndex(r.User, ":")+1:]
}

func (r Request) String() string {
	return fmt.Sprintf("%s %s %s %s/%s", r.who(), r.Verb, r.what(), r.Namespace, r.Name)
}

// what is the resource, as rights name it.
func (r Request) what() string {
	if r.Status {
		return r.Resource + "/status"
	}
	return r.Resource
}

// picks says whether an object is among those that a list or a watch asks for.
func (r Request) picks(k objectKey, u *unstructured.Unstructured) bool {
	return u != nil && k.resource == r.Resource && k.group == r.kind.Group && (r.Namespace == "" || k.namespace == r.Namespace) &&
		r.labels.Matches(labelsOf{u}) && r.fields.Matches(r.fieldsOf(u))
}

// labelsOf are the labels of an object, none of them copied: a watch looks at every change.
type labelsOf struct{ *unstructured.Unstructured }

// Has is labels.Labels'.
func (l labelsOf) Has(key string) bool { _, has := l.Lookup(key); return has }

// Get is labels.Labels'.
func (l labelsOf) Get(key string) string { value, _ := l.Lookup(key); return value }

// Lookup is labels.Labels'.
func (l labelsOf) Lookup(key string) (value string, has bool) {
	meta, _ := l.Object["metadata"].(map[string]any)
	all, _ := meta["labels"].(map[string]any)
	value, has = all[key].(string)
	return value, has
}

// fieldsOf are the fields of an object that the request picks by.
func (r Request) fieldsOf(u *unstructured.Unstructured) fields.Set {
	set := fields.Set{}
	for _, asked := range r.fields.Requirements() {
		set[asked.Field], _, _ = unstructured.NestedString(u.Object, strings.Split(asked.Field, ".")...)
	}
	return set
}

// RoundTrip is http.RoundTripper's.
func (c *Cluster) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	path := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	r, isObject, err := c.read(req, path)
	if err != nil {
		return nil, err
	}
	if !isObject {
		return c.discover(r, path), nil
	}
	fault := c.faultFor(r)
	if fault != nil && fault.held != nil {
		select {
		case <-fault.held:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	if fault != nil && fault.before != nil {
		fault.before()
	}
	if fault != nil && fault.refusal != nil {
		return answerError(fault.refusal), nil
	}
	if fault != nil && fault.away {
		return nil, io.ErrUnexpectedEOF // a connection that breaks
	}
	if r.Verb == "watch" && !c.isDead() {
		return c.watch(req.Context(), r)
	}
	undone, unheard := c.dies(r)
	if undone {
		return nil, io.ErrUnexpectedEOF
	}
	answer, status := c.serve(r)
	if unheard || fault != nil && fault.lose {
		return nil, io.ErrUnexpectedEOF // a connection that breaks
	}
	if status != nil {
		return answerError(status), nil
	}
	return answerWith(http.StatusOK, answer), nil
}

func (c *Cluster) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.death != nil && c.death.dead
}

func (c *Cluster) discover(r Request, path []string) *http.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.discovery(path); answer != nil {
		return answerWith(http.StatusOK, answer)
	}
	return answerError(apierrors.NewGenericServerResponse(http.StatusNotFound, r.Verb, schema.GroupResource{}, "", "the server could not find the requested resource", 0, false))
}

// read understands a request; isObject is false for one that asks what is served, or for
// what is not.
func (c *Cluster) read(req *http.Request, path []string) (r Request, isObject bool, err error) {
	r = Request{User: req.Header.Get("Impersonate-User"), query: req.URL.Query(), labels: labels.Everything(), fields: fields.Everything()}
	for name, values := range req.Header { // there is one extra, and its key is escaped
		if strings.HasPrefix(name, "Impersonate-Extra-") {
			r.Run = values[0]
		}
	}
	if req.Body != nil {
		if r.Body, err = io.ReadAll(req.Body); err != nil {
			return r, false, err
		}
	}
	r.meta = strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata")
	group, version, rest := groupOf(path)
	if len(rest) >= 2 && rest[0] == "namespaces" && len(rest) > 2 {
		r.Namespace, rest = rest[1], rest[2:]
	}
	if len(rest) == 0 {
		return r, false, nil
	}
	c.mu.Lock()
	kind, served := c.served(group, version, rest[0])
	c.mu.Unlock()
	if !served {
		return r, false, nil
	}
	r.kind, r.Resource = kind, kind.Resource
	if len(rest) > 1 {
		r.Name = rest[1]
	}
	r.Status = len(rest) > 2 && rest[2] == "status"
	r.merges = req.Header.Get("Content-Type") == string(types.StrategicMergePatchType)
	if text := req.URL.Query().Get("labelSelector"); text != "" {
		if r.labels, err = labels.Parse(text); err != nil {
			return r, false, err
		}
	}
	if text := req.URL.Query().Get("fieldSelector"); text != "" {
		if r.fields, err = fields.ParseSelector(text); err != nil {
			return r, false, err
		}
	}
	r.Verb = verbOf(req, r.Name)
	return r, true, nil
}

func groupOf(path []string) (group, version string, rest []string) {
	switch {
	case len(path) > 2 && path[0] == "api":
		return "", path[1], path[2:]
	case len(path) > 3 && path[0] == "apis":
		return path[1], path[2], path[3:]
	}
	return "", "", nil
}

func verbOf(req *http.Request, name string) string {
	if req.Method == http.MethodGet && req.URL.Query().Get("watch") != "" && req.URL.Query().Get("watch") != "false" {
		return "watch"
	}
	if req.Method == http.MethodGet && name == "" {
		return "list"
	}
	return map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[req.Method]
}

// serve does what a request asks.
func (c *Cluster) serve(r Request) (any, *apierrors.StatusError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.kind.Group == "authorization.k8s.io" {
		return c.review(r)
	}
	if err := c.forbidden(r); err != nil {
		return nil, err
	}
	switch r.Verb {
	case "get":
		_, u, err := c.there(r)
		if err != nil {
			return nil, err
		}
		return r.shown(u), nil
	case "list":
		return c.list(r), nil
	}
	out, err := c.write(r)
	if err != nil {
		return nil, err
	}
	c.log = append(c.log, r.String())
	return r.shown(out), nil
}

func (c *Cluster) forbidden(r Request) *apierrors.StatusError {
	if !c.denied[right{r.User, r.Verb, r.what()}] {
		return nil
	}
	who := r.User
	if who == "" {
		who = "system:serviceaccount:maint-system:maint-agent"
	}
	return apierrors.NewForbidden(r.resource(), r.Name, fmt.Errorf("User %q cannot %s resource %q in API group %q in the namespace %q", who, r.Verb, r.Resource, r.kind.Group, r.Namespace)) //nolint:staticcheck // as the API server says it
}

func (r Request) resource() schema.GroupResource {
	return schema.GroupResource{Group: r.kind.Group, Resource: r.Resource}
}

func (r Request) key() objectKey {
	return objectKey{r.kind.Group, r.Resource, r.Namespace, r.Name}
}

// there is a copy of the object that a request names.
func (c *Cluster) there(r Request) (objectKey, *unstructured.Unstructured, *apierrors.StatusError) {
	u := c.objects[r.key()]
	if u == nil {
		return r.key(), nil, apierrors.NewNotFound(r.resource(), r.Name)
	}
	return r.key(), u.DeepCopy(), nil
}

func (c *Cluster) list(r Request) any {
	items := []any{}
	all, from := c.listed(r), 0
	_, _ = fmt.Sscan(url.Values(r.query).Get("continue"), &from) // none: the first page
	page, next := all[min(from, len(all)):], ""
	if limit, err := strconv.Atoi(url.Values(r.query).Get("limit")); err == nil && limit > 0 && limit < len(page) {
		page, next = page[:limit], strconv.Itoa(from+limit)
	}
	for _, u := range page {
		items = append(items, r.shown(u))
	}
	kind, version := r.kind.Kind+"List", schema.GroupVersion{Group: r.kind.Group, Version: r.kind.Version}.String()
	if r.meta {
		kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	return map[string]any{"kind": kind, "apiVersion": version, "metadata": map[string]any{"resourceVersion": strconv.FormatInt(c.version, 10), "continue": next}, "items": items}
}

// shown is an object as the request asks for it.
func (r Request) shown(u *unstructured.Unstructured) any {
	if !r.meta {
		return u.Object
	}
	return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": u.Object["metadata"]}
}

// write creates, updates, patches or deletes.
func (c *Cluster) write(r Request) (*unstructured.Unstructured, *apierrors.StatusError) {
	switch r.Verb {
	case "create":
		return c.create(r)
	case "update":
		return c.update(r, func(*unstructured.Unstructured) (*unstructured.Unstructured, error) { return decoded(r.Body) })
	case "patch":
		return c.update(r, func(was *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			var patch map[string]any
			if err := json.Unmarshal(r.Body, &patch); err != nil {
				return nil, err
			}
			if r.merges {
				return r.strategically(was, patch)
			}
			return &unstructured.Unstructured{Object: merge(was.Object, patch)}, nil
		})
	}
	return c.delete(r)
}

func (c *Cluster) create(r Request) (*unstructured.Unstructured, *apierrors.StatusError) {
	u, err := decoded(r.Body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	r.Name = u.GetName()
	if c.objects[r.key()] != nil {
		return nil, apierrors.NewAlreadyExists(r.resource(), r.Name)
	}
	u.SetNamespace(r.Namespace)
	c.typed(r, u)
	if invalid := r.invalid(u); invalid != nil {
		return nil, invalid
	}
	c.born(u, nil)
	c.keep(r.key(), u)
	return u, nil
}

// invalid says what an API server says of names, of the keys of a ConfigMap and of annotations that
// it does not take.
func (r Request) invalid(u *unstructured.Unstructured) *apierrors.StatusError {
	var faults field.ErrorList
	for _, why := range validation.IsDNS1123Subdomain(u.GetName()) {
		faults = append(faults, field.Invalid(field.NewPath("metadata", "name"), u.GetName(), why))
	}
	if apivalidation.ValidateAnnotationsSize(u.GetAnnotations()) != nil {
		faults = append(faults, field.TooLong(field.NewPath("metadata", "annotations"), "", apivalidation.TotalAnnotationSizeLimitB))
	}
	var parts []string
	if r.Resource == "configmaps" {
		parts = []string{"data", "binaryData"}
	}
	for _, part := range parts {
		values, _, _ := unstructured.NestedMap(u.Object, part)
		for key := range values {
			for _, why := range validation.IsConfigMapKey(key) {
				faults = append(faults, field.Invalid(field.NewPath(part).Key(key), key, why))
			}
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return apierrors.NewInvalid(u.GroupVersionKind().GroupKind(), u.GetName(), faults)
}

func (c *Cluster) typed(r Request, u *unstructured.Unstructured) {
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: r.kind.Group, Version: r.kind.Version, Kind: r.kind.Kind})
}

func (c *Cluster) update(r Request, edit func(*unstructured.Unstructured) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, *apierrors.StatusError) {
	k, was, missing := c.there(r)
	if missing != nil {
		return nil, missing
	}
	u, err := edit(was)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if u.GetUID() != "" && u.GetUID() != was.GetUID() {
		return nil, apierrors.NewConflict(r.resource(), r.Name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s)", u.GetUID(), was.GetUID()))
	}
	if v := u.GetResourceVersion(); v != "" && v != was.GetResourceVersion() {
		return nil, apierrors.NewConflict(r.resource(), r.Name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	c.typed(r, u)
	if invalid := r.invalid(u); invalid != nil {
		return nil, invalid
	}
	if immutable, _, _ := unstructured.NestedBool(was.Object, "immutable"); immutable && !reflect.DeepEqual(was.Object["data"], u.Object["data"]) {
		return nil, apierrors.NewInvalid(u.GroupVersionKind().GroupKind(), u.GetName(), field.ErrorList{field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set")})
	}
	u.SetDeletionTimestamp(was.GetDeletionTimestamp())
	c.born(u, was)
	if u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 {
		c.keep(k, nil)
		u.SetResourceVersion(strconv.FormatInt(c.version, 10))
		return u, nil
	}
	c.keep(k, u)
	return u, nil
}

func (c *Cluster) delete(r Request) (*unstructured.Unstructured, *apierrors.StatusError) {
	k, was, missing := c.there(r)
	if missing != nil {
		return nil, missing
	}
	var options metav1.DeleteOptions
	if len(r.Body) > 0 {
		if o, _, err := scheme.Codecs.UniversalDeserializer().Decode(r.Body, nil, nil); err == nil {
			if read, is := o.(*metav1.DeleteOptions); is {
				options = *read
			}
		}
	}
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != was.GetUID() {
		return nil, apierrors.NewConflict(r.resource(), r.Name, errors.New("the UID in the precondition does not match"))
	}
	c.remove(k, was)
	return was, nil
}

// decoded is an object as a client sends it.
func decoded(body []byte) (*unstructured.Unstructured, error) {
	if json.Valid(body) {
		u := &unstructured.Unstructured{}
		return u, json.Unmarshal(body, &u.Object)
	}
	o, gvk, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: object}
	u.SetGroupVersionKind(*gvk)
	return u, nil
}

// review answers what whoever asks may do.
func (c *Cluster) review(r Request) (any, *apierrors.StatusError) {
	if r.Resource != "selfsubjectaccessreviews" {
		return authorizationv1.SelfSubjectRulesReview{TypeMeta: metav1.TypeMeta{Kind: "SelfSubjectRulesReview", APIVersion: "authorization.k8s.io/v1"}}, nil
	}
	u, err := decoded(r.Body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	verb, _, _ := unstructured.NestedString(u.Object, "spec", "resourceAttributes", "verb")
	resource, _, _ := unstructured.NestedString(u.Object, "spec", "resourceAttributes", "resource")
	return authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{Kind: "SelfSubjectAccessReview", APIVersion: "authorization.k8s.io/v1"},
		Status:   authorizationv1.SubjectAccessReviewStatus{Allowed: !c.denied[right{r.User, verb, resource}]},
	}, nil
}

func answerError(err *apierrors.StatusError) *http.Response {
	status := err.ErrStatus
	status.Kind, status.APIVersion, status.Status = "Status", "v1", metav1.StatusFailure
	return answerWith(int(status.Code), status)
}

func answerWith(code int, o any) *http.Response {
	body, err := json.Marshal(o)
	if err != nil {
		panic(err) // what the cluster holds came from JSON
	}
	return response(code, io.NopCloser(bytes.NewReader(body)))
}

func response(code int, body io.ReadCloser) *http.Response {
	head := http.Header{"Content-Type": {"application/json"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}}
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: head, Body: body}
}
