package install_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const admissionGroup = "admissionregistration.k8s.io"

// older stands before the API server and looks like one without admission policies. It
// returns the path of an admin's kubeconfig.
func (l *lab) older() string {
	l.Helper()
	to, err := url.Parse(l.cluster.AdminConfig().Host)
	l.must(err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport, err = rest.TransportFor(l.cluster.AdminConfig())
	l.must(err)
	proxy.ModifyResponse = func(r *http.Response) error {
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
	l.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["older"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["older"] = &clientcmdapi.Context{Cluster: "older"}
	config.CurrentContext = "older"
	path := filepath.Join(l.TempDir(), "older.yaml")
	l.must(clientcmd.WriteToFile(*config, path))
	return path
}

func TestWithoutAdmissionPoliciesInstallSaysSoAndGoesOn(t *testing.T) {
	l := newLab(t)
	older := l.older()
	maint := func(args ...string) printed {
		return l.run(l.plugin(thisVersion), nil, append([]string{"--kubeconfig", older, "--cache-dir", t.TempDir()}, args...)...)
	}
	const told = "this API server has no ValidatingAdmissionPolicy (Kubernetes 1.30 and later do): nothing but its own code confines the agent's token; after an upgrade of the cluster, run this again\n"
	p := maint("install", "--apply")
	if p.code != 0 || p.err != told {
		t.Errorf("it exits %d and says %q", p.code, p.err)
	}
	if l.get("Deployment", "maint-agent") == nil || l.get("ValidatingAdmissionPolicy", "maint-agent-secrets") != nil {
		t.Errorf("there is no Deployment, or there are policies:\n%s", p.out)
	}
	if p := maint("install", "--diff"); p.code != 0 || p.out != "" || p.err != told {
		t.Errorf("afterwards --diff exits %d and prints %q, %q", p.code, p.out, p.err)
	}
	if p := maint("install", "--apply", "--without", "confinement"); p.code != 0 || p.err != "" {
		t.Errorf("where they are not wanted it exits %d and says %q", p.code, p.err)
	}
	if p := maint("install", "--apply", "--without", "none"); p.code != 0 || p.err != told {
		t.Errorf("where they are wanted again it exits %d and says %q", p.code, p.err)
	}
	if p := maint("install", "--apply", "--with-admission"); p.code != 0 || l.get("ClusterRole", "maint-viewer") == nil {
		t.Errorf("with the admission policies it exits %d: %s%s", p.code, p.out, p.err)
	}
	if p := maint("install", "--apply", "--without", "force"); p.code != 0 || l.get("ClusterRole", "maint-viewer") == nil {
		t.Errorf("what is left out takes roles away that it does not speak of: exit %d, %s", p.code, p.out)
	}
	out := l.install(thisVersion) // the cluster is of a newer version now
	if !strings.Contains(out, "validatingadmissionpolicy/maint-agent-secrets created\n") {
		t.Errorf("after the upgrade of the cluster it says\n%s", out)
	}
	if p := maint("uninstall", "--yes"); p.code != 0 {
		t.Errorf("uninstall exits %d: %s%s", p.code, p.out, p.err)
	}
}

func TestWhatIsLeftOutOfThePrintedManifestsStaysOut(t *testing.T) {
	l := newLab(t)
	p := l.maint(thisVersion, "install", "--without", "confinement,force", "--impersonate", "deployer", "--replicas", "3")
	if p.code != 0 || strings.Contains(p.out, "ValidatingAdmissionPolicy") {
		t.Fatalf("it exits %d and prints\n%s%s", p.code, p.out, p.err)
	}
	l.kubectl([]byte(p.out), "apply", "-f", "-")
	if got := l.mayActAs(); !slices.Equal(got, []string{"maint-runner", "deployer"}) {
		t.Errorf("it may act as %v", got)
	}
	if l.get("ClusterRole", "maint-agent-force") != nil {
		t.Error("it may delete pods")
	}
	l.install(nextVersion)
	if l.get("ClusterRole", "maint-agent-force") != nil || l.get("ValidatingAdmissionPolicy", "maint-agent-secrets") != nil {
		t.Error("the upgrade brought what was left out")
	}
	kept, err := os.ReadFile(filepath.Join(l.root, "manifests", "agent.yaml"))
	l.must(err)
	if p := l.maint(thisVersion, "install"); p.out != string(kept) {
		t.Error("manifests/agent.yaml is not what install prints")
	}
}
