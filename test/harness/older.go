package harness

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const admissionGroup = "admissionregistration.k8s.io"

// Older stands before the API server of an admin's config and looks like one without
// admission policies. It writes a kubeconfig for it, with the rights of that admin.
func Older(admin *rest.Config, kubeconfig string) (stop func(), err error) {
	to, err := url.Parse(admin.Host)
	if err != nil {
		return nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	if proxy.Transport, err = rest.TransportFor(admin); err != nil {
		return nil, err
	}
	proxy.FlushInterval = -1 // for watches
	proxy.ModifyResponse = withoutAdmission
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/apis/"+admissionGroup) {
			http.NotFound(w, r)
			return
		}
		if r.URL.Path == "/apis" || r.URL.Path == "/api" {
			r.Header.Set("Accept", "application/json") // not all groups in one answer
			r.Header.Del("Accept-Encoding")
		}
		proxy.ServeHTTP(w, r)
	}))
	config := clientcmdapi.NewConfig()
	config.Clusters["older"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["older"] = &clientcmdapi.Context{Cluster: "older"}
	config.CurrentContext = "older"
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		server.Close()
		return nil, err
	}
	return func() {
		server.CloseClientConnections()
		server.Close()
	}, nil
}

// withoutAdmission takes the group out of the list of those that are served.
func withoutAdmission(r *http.Response) error {
	if r.Request.URL.Path != "/apis" {
		return nil
	}
	var groups metav1.APIGroupList
	if err := json.NewDecoder(r.Body).Decode(&groups); err != nil {
		return err
	}
	groups.Groups = slices.DeleteFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == admissionGroup })
	b, err := json.Marshal(groups)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	r.Header.Set("Content-Length", strconv.Itoa(len(b)))
	return err
}
