package install_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// older is the kubeconfig of an admin for an API server without admission policies.
func (l *lab) older() string {
	l.Helper()
	path := filepath.Join(l.TempDir(), "older.yaml")
	stop, err := harness.Older(l.cluster.AdminConfig(), path)
	l.must(err)
	l.Cleanup(stop)
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
	if p := maint("install", "--apply", "--cloud"); p.code != 2 || !strings.Contains(p.err, "this API server has no ValidatingAdmissionPolicy") || l.get("ClusterRole", "maint-agent-cloud") != nil {
		t.Errorf("tokens that nothing confines: it exits %d: %s%s", p.code, p.out, p.err)
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

// Kubernetes 1.30 to 1.35: false names are refused, and nothing writes the true ones.
func TestWithoutMutatingPoliciesInstallLeavesOutTheStamps(t *testing.T) {
	l := newLab(t)
	path := filepath.Join(t.TempDir(), "without-stamps.yaml")
	stop, err := harness.WithoutStamps(l.cluster.AdminConfig(), path)
	l.must(err)
	l.Cleanup(stop)
	l.Cleanup(func() { l.maint(thisVersion, "install", "--apply", "--with-admission=false") })
	maint := func(args ...string) printed {
		return l.run(l.plugin(thisVersion), nil, append([]string{"--kubeconfig", path, "--cache-dir", t.TempDir()}, args...)...)
	}
	const told = "this API server has no MutatingAdmissionPolicy (Kubernetes 1.36 and later do): it does not record who asked for something, and only refuses a false name; after an upgrade of the cluster, run this again\n"
	if p := maint("install", "--apply", "--with-admission"); p.code != 0 || p.err != told {
		t.Fatalf("it exits %d and says %q; it prints\n%s", p.code, p.err, p.out)
	}
	if l.get("ValidatingAdmissionPolicy", "maint-intents") == nil || l.get("MutatingAdmissionPolicy", "maint-actor") != nil {
		t.Error("the validating policies are not there, or a mutating one is")
	}
	if p := maint("install", "--diff"); p.code != 0 || p.out != "" || p.err != told {
		t.Errorf("afterwards --diff exits %d and prints %q, %q", p.code, p.out, p.err)
	}
	if out := l.install(thisVersion); !strings.Contains(out, "mutatingadmissionpolicy/maint-actor created\n") { // the cluster was upgraded
		t.Errorf("after the upgrade of the cluster it says\n%s", out)
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
