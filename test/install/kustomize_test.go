package install_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// base is the folder of kustomize's base for a version.
func (l *lab) base(version string) string { return l.folder(version, "base") }

// folder is one of kustomize for a version.
func (l *lab) folder(version, name string) string {
	l.Helper()
	dir := l.TempDir()
	l.must(os.CopyFS(dir, os.DirFS(filepath.Join(l.root, "manifests", "kustomize"))))
	file := filepath.Join(dir, "base", "agent.yaml")
	text, err := os.ReadFile(file)
	l.must(err)
	l.must(os.WriteFile(file, []byte(strings.ReplaceAll(string(text), thisVersion, version)), 0o600))
	return filepath.Join(dir, filepath.FromSlash(name))
}

// customize has kubectl apply a folder.
func (l *lab) customize(config, dir string, flags ...string) printed {
	l.Helper()
	return l.run(filepath.Join(l.root, "bin", "kubectl"), nil, append([]string{"--kubeconfig", config, "apply", "-k", dir}, flags...)...)
}

func (l *lab) customized(dir string, flags ...string) {
	l.Helper()
	if p := l.customize(l.config, dir, flags...); p.code != 0 {
		l.Fatalf("kubectl apply -k %v exits %d: %s%s", flags, p.code, p.out, p.err)
	}
}

// kustomizations are the ways in which kubectl applies a folder.
func kustomizations() map[string][]string {
	return map[string][]string{"kubectl apply -k": nil, "kubectl apply --server-side -k": {"--server-side"}}
}

func TestKustomizeAndInstallTakeOverFromEachOther(t *testing.T) {
	l := newLab(t)
	l.install(nextVersion)
	fresh := l.installed()
	same := func(l *lab, when string) {
		l.Helper()
		if diff := cmp.Diff(fresh, l.installed()); diff != "" {
			l.Errorf("%s it differs from a fresh installation (-fresh +this):\n%s", when, diff)
		}
		l.changesNothing(nextVersion)
	}
	for name, flags := range kustomizations() {
		t.Run(name+" over install", func(t *testing.T) {
			l := newLab(t)
			l.install(nextVersion)
			l.customized(l.base(nextVersion), flags...)
			same(l, "after it")
			l.customized(l.base(nextVersion), flags...)
			same(l, "after it once more")
		})
		t.Run("install over "+name, func(t *testing.T) {
			l := newLab(t)
			l.customized(l.base(thisVersion), flags...)
			l.kubectl(nil, "create", "-k", filepath.Join(l.root, "manifests", "kustomize", "config"))
			l.install(nextVersion)
			same(l, "after it")
			l.customized(l.base(nextVersion), flags...)
			same(l, "after a kustomize of the same version")
		})
	}
}

// A list that the API server takes as one field conflicts where it fills in a default that our
// manifests leave out.
func TestNoOverlayConflictsWithInstall(t *testing.T) {
	for overlay, flags := range map[string][]string{"with-admission": {"--with-admission"}, "cloud": {"--cloud"}, "read-only": {"--read-only"}} {
		t.Run(overlay, func(t *testing.T) {
			l := newLab(t)
			l.Cleanup(func() {
				l.maint(thisVersion, "install", "--apply", "--with-admission=false", "--cloud=false", "--read-only=false")
			})
			l.install(nextVersion, flags...)
			l.customized(l.folder(nextVersion, "overlays/"+overlay), "--server-side")
			l.changesNothing(nextVersion)
		})
	}
}

// edits are what an admin changes in the cluster, and not in an overlay: three fields of the
// base, two that the base does not have, and the configuration.
func (l *lab) edits() {
	l.Helper()
	l.edit("kubectl-edit", "Deployment", "maint-agent", `{"spec":{"replicas":3}}`)
	l.actsAsToo("deployer")
	l.edit("kubectl-edit", "ValidatingAdmissionPolicyBinding", "maint-agent-configmaps", `{"spec":{"validationActions":["Warn"]}}`)
	l.patch("kubectl-edit", types.StrategicMergePatchType, "Deployment", "maint-agent", `{"spec":{"template":{"spec":{"nodeSelector":{"infra":"true"}}}}}`)
	l.edit("kubectl-edit", "ServiceAccount", "maint-agent", `{"metadata":{"annotations":{"eks.amazonaws.com/role-arn":"arn"}}}`)
	l.edit("kubectl-edit", "ConfigMap", "maint-agent", `{"data":{"config.yaml":"spec: {logLevel: debug}"}}`)
}

// seen is what became of the edits.
func (l *lab) seen() map[string]any {
	l.Helper()
	deployment := l.get("Deployment", "maint-agent").Object
	field := func(object map[string]any, at ...string) any {
		v, _, err := unstructured.NestedFieldNoCopy(object, at...)
		l.must(err)
		return v
	}
	return map[string]any{
		"image":         containerOf(l.T, deployment)["image"],
		"replicas":      field(deployment, "spec", "replicas"),
		"accounts":      l.mayActAs(),
		"actions":       field(l.get("ValidatingAdmissionPolicyBinding", "maint-agent-configmaps").Object, "spec", "validationActions"),
		"node selector": field(deployment, "spec", "template", "spec", "nodeSelector"),
		"role":          l.get("ServiceAccount", "maint-agent").GetAnnotations()["eks.amazonaws.com/role-arn"],
		"configuration": field(l.get("ConfigMap", "maint-agent").Object, "data", "config.yaml"),
	}
}

// upgraded is what docs/install.md says of a newer base over the edits: fields of the base are
// those of the base, everything else stays.
func upgraded() map[string]any {
	return map[string]any{
		"image": "kubectl-maint/agent:" + nextVersion, "replicas": int64(2), "accounts": []string{"maint-runner"}, "actions": []any{"Deny"},
		"node selector": map[string]any{"infra": "true"}, "role": "arn", "configuration": "spec: {logLevel: debug}",
	}
}

func TestANewerBaseResetsItsOwnFieldsAndNoOthers(t *testing.T) {
	l := newLab(t)
	l.customized(l.base(thisVersion))
	l.kubectl(nil, "create", "-k", filepath.Join(l.root, "manifests", "kustomize", "config"))
	l.edits()
	l.customized(l.base(nextVersion))
	if diff := cmp.Diff(upgraded(), l.seen()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestANewerBaseAppliedByTheServerAsksBeforeItResets(t *testing.T) {
	l := newLab(t)
	l.customized(l.base(thisVersion), "--server-side")
	l.kubectl(nil, "create", "-k", filepath.Join(l.root, "manifests", "kustomize", "config"))
	l.edits()
	edited := l.seen()
	p := l.customize(l.config, l.base(nextVersion), "--server-side")
	for _, words := range []string{`conflict with "kubectl-edit"`, ".spec.replicas", ".rules", "must not contain both Deny and Warn"} {
		if p.code != 1 || !strings.Contains(p.err, words) {
			t.Errorf("it exits %d and says %q, without %q", p.code, p.err, words)
		}
	}
	if diff := cmp.Diff(edited, l.seen()); diff != "" {
		t.Errorf("what it asks about is changed already (-edited +now):\n%s", diff)
	}
	l.edit("kubectl-edit", "ValidatingAdmissionPolicyBinding", "maint-agent-configmaps", `{"spec":{"validationActions":["Deny"]}}`)
	l.customized(l.base(nextVersion), "--server-side", "--force-conflicts")
	if diff := cmp.Diff(upgraded(), l.seen()); diff != "" {
		t.Errorf("forced (-want +got):\n%s", diff)
	}
}

// As docs/install.md says for an API server of before Kubernetes 1.30.
func TestWithoutAdmissionPoliciesKustomizeTakesAnotherBase(t *testing.T) {
	l := newLab(t)
	older := l.older()
	const told = `no matches for kind "ValidatingAdmissionPolicy"`
	if p := l.customize(older, l.base(thisVersion), "--dry-run=server"); p.code == 0 || !strings.Contains(p.err, told) {
		t.Errorf("the dry run exits %d: %s%s", p.code, p.out, p.err)
	}
	if left := l.installed(); left["Deployment/maint-agent"] != nil || left["ClusterRole/maint-agent"] != nil {
		t.Error("a dry run applies")
	}
	if p := l.customize(older, l.base(thisVersion)); p.code == 0 || !strings.Contains(p.err, told) {
		t.Errorf("it exits %d: %s%s", p.code, p.out, p.err)
	}

	printed := l.run(l.plugin(thisVersion), nil, "install", "--without", "confinement")
	dir := t.TempDir()
	l.must(os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte(printed.out), 0o600))
	l.must(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [agent.yaml]\n"), 0o600))
	if p := l.customize(older, dir); p.code != 0 {
		t.Errorf("the other base: it exits %d: %s%s", p.code, p.out, p.err)
	}
	if l.get("Deployment", "maint-agent") == nil || l.get("ClusterRoleBinding", "maint-agent") == nil || l.get("ConfigMap", "maint-agent") == nil {
		t.Error("the agent is not installed")
	}
	if p := l.maint(thisVersion, "install", "--diff"); p.code != 0 || p.out != "" {
		t.Errorf("it is not all that install brings: exit %d, %s%s", p.code, p.out, p.err)
	}
}

// kubectl apply -k refuses no second installation; docs/install.md names what does.
func TestASecondInstallationIsToldBeforeKustomizeBringsIt(t *testing.T) {
	l := newLab(t)
	l.customized(l.base(thisVersion))
	before := l.versions()
	p := l.maint(nextVersion, "install", "--diff", "--single-namespace", "--namespace", "team")
	if p.code != 1 || !strings.Contains(p.err, "an agent is installed in namespace maint-system: give --namespace maint-system to upgrade it, or uninstall it first") || p.out != "" {
		t.Errorf("it exits %d: %s%s", p.code, p.out, p.err)
	}
	if diff := cmp.Diff(before, l.versions()); diff != "" {
		t.Errorf("it wrote (-before +after):\n%s", diff)
	}
}
