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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const admissionGroup = "admissionregistration.k8s.io"

// Older stands before the API server of an admin's config and looks like one without
// admission policies. It writes a kubeconfig for it, with the rights of that admin.
func Older(admin *rest.Config, kubeconfig string) (stop func(), err error) {
	return standIn(admin, kubeconfig, withoutAdmission, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/apis/"+admissionGroup) {
				http.NotFound(w, r)
				return
			}
			askPlainly(r)
			next.ServeHTTP(w, r)
		})
	})
}

// WithoutStamps stands before the API server of an admin's config and looks like one that has
// validating admission policies and no mutating ones (Kubernetes 1.30 to 1.35). It writes a
// kubeconfig for it, with the rights of that admin.
func WithoutStamps(admin *rest.Config, kubeconfig string) (stop func(), err error) {
	return standIn(admin, kubeconfig, withoutMutating, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/apis/"+admissionGroup+"/") && strings.Contains(r.URL.Path, "/"+mutatingPolicies) {
				http.NotFound(w, r)
				return
			}
			askPlainly(r)
			next.ServeHTTP(w, r)
		})
	})
}

// mutatingPolicies begins the names of the resources of policies that change what is written.
const mutatingPolicies = "mutatingadmissionpolic"

// askPlainly has kinds listed one version at a time, as text that can be changed.
func askPlainly(r *http.Request) {
	if r.URL.Path == "/api" || r.URL.Path == "/apis" || strings.Count(r.URL.Path, "/") == 3 && strings.HasPrefix(r.URL.Path, "/apis/"+admissionGroup+"/") {
		r.Header.Set("Accept", "application/json")
		r.Header.Del("Accept-Encoding")
	}
}

// OtherClock stands before the API server of a config and answers by a clock that is ahead of
// the true one. It writes a kubeconfig for it, with the rights of that config.
func OtherClock(of *rest.Config, kubeconfig string, ahead func() time.Duration) (stop func(), err error) {
	shift := func(r *http.Response) error {
		r.Header.Set("Date", time.Now().Add(ahead()).UTC().Format(http.TimeFormat))
		return nil
	}
	return standIn(of, kubeconfig, shift, func(next http.Handler) http.Handler { return next })
}

// standIn is a server in front of an API server, and a kubeconfig for it.
func standIn(of *rest.Config, kubeconfig string, changes func(*http.Response) error, serve func(next http.Handler) http.Handler) (stop func(), err error) {
	to, err := url.Parse(of.Host)
	if err != nil {
		return nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	if proxy.Transport, err = rest.TransportFor(of); err != nil {
		return nil, err
	}
	proxy.FlushInterval = -1 // for watches
	proxy.ModifyResponse = changes
	server := httptest.NewServer(serve(proxy))
	config := clientcmdapi.NewConfig()
	config.Clusters["stand-in"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["stand-in"] = &clientcmdapi.Context{Cluster: "stand-in"}
	config.CurrentContext = "stand-in"
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
	return answerInstead(r, groups)
}

// withoutMutating takes the mutating policies out of the lists of kinds.
func withoutMutating(r *http.Response) error {
	path := r.Request.URL.Path
	if strings.Count(path, "/") != 3 || !strings.HasPrefix(path, "/apis/"+admissionGroup+"/") || r.StatusCode != http.StatusOK {
		return nil
	}
	var kinds metav1.APIResourceList
	if err := json.NewDecoder(r.Body).Decode(&kinds); err != nil {
		return err
	}
	kinds.APIResources = slices.DeleteFunc(kinds.APIResources, func(k metav1.APIResource) bool { return strings.HasPrefix(k.Name, mutatingPolicies) })
	return answerInstead(r, kinds)
}

// answerInstead replaces the body of a response.
func answerInstead(r *http.Response, with any) error {
	b, err := json.Marshal(with)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	r.Header.Set("Content-Length", strconv.Itoa(len(b)))
	return err
}
