package cmdtest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Served are the flags by which a command line reaches the cluster over HTTP, as commands do that
// look up objects of any kind. It serves ConfigMaps, nodes and namespaces, and bindings of the cluster
// to read.
func (o *Cluster) Served() []string {
	o.Helper()
	o.Setenv("KUBECONFIG", filepath.Join(o.TempDir(), "none"))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api", answer(func(*http.Request) (any, error) { return metav1.APIVersions{Versions: []string{"v1"}}, nil }))
	mux.HandleFunc("GET /apis", answer(func(*http.Request) (any, error) {
		version := metav1.GroupVersionForDiscovery{GroupVersion: rbac, Version: "v1"}
		return metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: rbacv1.GroupName, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}}}, nil
	}))
	mux.HandleFunc("GET /apis/"+rbac, answer(func(*http.Request) (any, error) {
		return metav1.APIResourceList{GroupVersion: rbac, APIResources: []metav1.APIResource{{Name: "clusterrolebindings", SingularName: "clusterrolebinding", Kind: "ClusterRoleBinding", Verbs: metav1.Verbs{"get"}}}}, nil
	}))
	mux.HandleFunc("GET /apis/"+rbac+"/clusterrolebindings/{name}", answer(func(r *http.Request) (any, error) {
		b, err := o.Kube.RbacV1().ClusterRoleBindings().Get(r.Context(), r.PathValue("name"), metav1.GetOptions{})
		return typed("ClusterRoleBinding", b, err)
	}))
	mux.HandleFunc("GET /api/v1", answer(func(*http.Request) (any, error) { return served(), nil }))
	for _, path := range []string{"/api/v1/{resource}/{name}", "/api/v1/namespaces/{namespace}/{resource}/{name}"} {
		mux.HandleFunc("GET "+path, answer(o.get))
		mux.HandleFunc("PATCH "+path, answer(o.patch))
	}
	server := httptest.NewServer(mux)
	o.Cleanup(server.Close)
	return []string{"--server", server.URL, "--cache-dir", o.TempDir()}
}

const rbac = rbacv1.GroupName + "/v1"

func served() metav1.APIResourceList {
	all := metav1.Verbs{"get", "list", "patch"}
	return metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "configmaps", SingularName: "configmap", Kind: "ConfigMap", Namespaced: true, ShortNames: []string{"cm"}, Verbs: all},
		{Name: "nodes", SingularName: "node", Kind: "Node", ShortNames: []string{"no"}, Verbs: all},
		{Name: "namespaces", SingularName: "namespace", Kind: "Namespace", ShortNames: []string{"ns"}, Verbs: all},
	}}
}

// answer writes the answer to a request, an error as a Status.
func answer(handle func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		out, err := handle(r)
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			s := status.Status()
			s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			w.WriteHeader(int(s.Code))
			out = s
		} else if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(out) // the client went away
	}
}

func (o *Cluster) get(r *http.Request) (any, error) {
	name, none := r.PathValue("name"), metav1.GetOptions{}
	switch core := o.Kube.CoreV1(); r.PathValue("resource") {
	case "nodes":
		n, err := core.Nodes().Get(r.Context(), name, none)
		return typed("Node", n, err)
	case "namespaces":
		ns, err := core.Namespaces().Get(r.Context(), name, none)
		return typed("Namespace", ns, err)
	}
	cm, err := o.Kube.CoreV1().ConfigMaps(r.PathValue("namespace")).Get(r.Context(), name, none)
	return typed("ConfigMap", cm, err)
}

func (o *Cluster) patch(r *http.Request) (any, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	name, kind := r.PathValue("name"), types.PatchType(strings.Split(r.Header.Get("Content-Type"), ";")[0])
	options := metav1.PatchOptions{FieldManager: r.URL.Query().Get("fieldManager"), DryRun: r.URL.Query()["dryRun"]}
	switch core := o.Kube.CoreV1(); r.PathValue("resource") {
	case "nodes":
		n, err := core.Nodes().Patch(r.Context(), name, kind, body, options)
		return typed("Node", n, err)
	case "namespaces":
		ns, err := core.Namespaces().Patch(r.Context(), name, kind, body, options)
		return typed("Namespace", ns, err)
	}
	cm, err := o.Kube.CoreV1().ConfigMaps(r.PathValue("namespace")).Patch(r.Context(), name, kind, body, options)
	return typed("ConfigMap", cm, err)
}

// typed is an object with its kind, which clients remove.
func typed(kind string, object metav1.Object, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	meta := metav1.TypeMeta{APIVersion: "v1", Kind: kind}
	switch o := object.(type) {
	case *corev1.Node:
		o = o.DeepCopy()
		o.TypeMeta = meta
		return o, nil
	case *corev1.Namespace:
		o = o.DeepCopy()
		o.TypeMeta = meta
		return o, nil
	case *corev1.ConfigMap:
		o = o.DeepCopy()
		o.TypeMeta = meta
		return o, nil
	case *rbacv1.ClusterRoleBinding:
		o = o.DeepCopy()
		o.TypeMeta = metav1.TypeMeta{APIVersion: rbac, Kind: kind}
		return o, nil
	}
	return object, nil
}
