package install_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// second is the namespace of an installation beside the one at home.
const second = "second"

// standing is what there is of an installation, by kind and name, without what the API server
// and Helm note beside it.
func (l *lab) standing(namespace string, flags ...string) map[string]string {
	l.Helper()
	out := map[string]string{}
	for _, u := range l.printedObjects(l.maint(thisVersion, append([]string{"install", "--namespace", namespace}, flags...)...).out) {
		live, err := l.in(namespace, u.GetKind()).Get(l.ctx, u.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		l.must(err)
		object := plain(live)
		delete(object, "metadata")
		text, err := json.Marshal(object)
		l.must(err)
		out[u.GetKind()+"/"+u.GetName()] = string(text)
	}
	return out
}

// besides applies a second installation, as kubectl does, which refuses none; and gives both
// the key that their agents would make.
func (l *lab) besides(flags ...string) {
	l.Helper()
	l.Cleanup(func() {
		for _, u := range l.printedObjects(l.maint(thisVersion, "install", "--namespace", second, "--single-namespace", "--with-admission").out) {
			if u.GetKind() != "Namespace" {
				_ = l.in(second, u.GetKind()).Delete(l.ctx, u.GetName(), metav1.DeleteOptions{})
			}
		}
	})
	l.kubectl([]byte(l.maint(thisVersion, append([]string{"install", "--namespace", second}, flags...)...).out), "apply", "-f", "-")
	for _, namespace := range []string{home, second} {
		secrets := l.kube.CoreV1().Secrets(namespace)
		_, err := secrets.Create(l.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: annotations.KeyName}, Data: map[string][]byte{annotations.DataKey: annotations.NewKey()}}, metav1.CreateOptions{})
		l.must(err)
		l.Cleanup(func() { _ = secrets.Delete(l.ctx, annotations.KeyName, metav1.DeleteOptions{}) })
	}
}

// goes uninstalls one of two, after a dry run that changes nothing and names the same.
func (l *lab) goes(namespace string) printed {
	l.Helper()
	before := l.ours()
	dry := l.maint(thisVersion, "uninstall", "--dry-run=client", "--namespace", namespace)
	if dry.code != 0 {
		l.Fatalf("uninstall --dry-run=client --namespace %s exits %d: %s%s", namespace, dry.code, dry.out, dry.err)
	}
	shown := l.maint(thisVersion, "uninstall", "-o", "name", "--namespace", namespace)
	if shown.code != 0 || strings.Count(shown.out, "\n") != strings.Count(dry.out, " deleted (dry run)\n") {
		l.Errorf("uninstall -o name --namespace %s exits %d: %s%s", namespace, shown.code, shown.out, shown.err)
	}
	if diff := cmp.Diff(before, l.ours()); diff != "" {
		l.Errorf("a dry run changed (-before +after):\n%s", diff)
	}
	p := l.maint(thisVersion, "uninstall", "--yes", "--namespace", namespace)
	if p.code != 0 {
		l.Fatalf("uninstall --namespace %s exits %d: %s%s", namespace, p.code, p.out, p.err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(dry.out, " (dry run)", ""), p.out); diff != "" {
		l.Errorf("it does another thing than its dry run says (-said +did):\n%s", diff)
	}
	l.keyStays(home)
	l.keyStays(second)
	return p
}

func (l *lab) keyStays(namespace string) {
	l.Helper()
	_, err := l.kube.CoreV1().Secrets(namespace).Get(l.ctx, annotations.KeyName, metav1.GetOptions{})
	l.must(err)
}

const (
	theAgent = "the agent in namespace "
	lacks    = " lacks objects that this installation had taken over from it, at least its ClusterRoleBinding: 'kubectl maint "
)

func TestTheFirstOfTwoInstallationsGoesAndTheSecondLacksNothing(t *testing.T) {
	l := newLab(t)
	l.Cleanup(func() { l.maint(thisVersion, "install", "--apply", "--with-admission=false") })
	l.install(thisVersion, "--with-admission")
	l.besides("--with-admission")
	before := l.standing(second, "--with-admission")
	p := l.goes(home)
	if diff := cmp.Diff(before, l.standing(second, "--with-admission")); diff != "" {
		t.Errorf("of the second is gone or changed (-before +after):\n%s", diff)
	}
	if !strings.Contains(p.err, theAgent+"second stays, with these objects of the cluster that it needs: clusterrole/maint-admin, ") || strings.Contains(p.err, " lacks what") {
		t.Errorf("it says %s", p.err)
	}
	for name := range l.standing(home) {
		if kind, _, _ := strings.Cut(name, "/"); slices.Contains([]string{"ServiceAccount", "Role", "RoleBinding", "Deployment"}, kind) {
			t.Errorf("%s of the first is left", name)
		}
	}
}

// The second had taken the bindings of the first: there is nothing to keep of them, and one
// command brings them back.
func TestTheSecondOfTwoInstallationsGoesAndTheFirstIsToldWhatItLacks(t *testing.T) {
	for name, flags := range map[string][]string{"of the whole cluster": nil, "of one namespace": {"--single-namespace"}} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.Cleanup(func() { l.maint(thisVersion, "install", "--apply", "--with-admission=false") })
			l.install(thisVersion, "--with-admission")
			before := l.standing(home, "--with-admission")
			l.besides(flags...)
			p := l.goes(second)
			if !strings.Contains(p.err, theAgent+"maint-system stays, with these objects of the cluster that it needs: clusterrole/maint-admin, ") || !strings.Contains(p.err, theAgent+"maint-system"+lacks) || !strings.Contains(p.err, " install --apply --namespace maint-system' brings them back\n") {
				t.Errorf("it says %s", p.err)
			}
			if l.get("ClusterRole", "maint-agent") == nil || l.get("ValidatingAdmissionPolicy", "maint-intents") == nil || l.get("Deployment", "maint-agent") == nil {
				t.Error("the first has lost what the second had not taken")
			}
			l.install(thisVersion)
			if diff := cmp.Diff(before, l.standing(home, "--with-admission")); diff != "" {
				t.Errorf("what install brings back is not what there was (-before +after):\n%s", diff)
			}
		})
	}
}

func (l *lab) helm(args ...string) string {
	l.Helper()
	p := l.run(filepath.Join(l.root, "bin", "helm"), nil, append(args, "-n", home, "--kubeconfig", l.config)...)
	if p.code != 0 {
		l.Fatalf("helm %v: exit %d\n%s%s", args, p.code, p.out, p.err)
	}
	return p.out + p.err
}

// Helm deletes whatever carries the marks of its release, whoever has taken it over.
func TestAReleaseOfHelmGoesAndAnotherInstallationLacksNothing(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{"HELM_CACHE_HOME", "HELM_DATA_HOME", "HELM_CONFIG_HOME"} {
		t.Setenv(name, filepath.Join(os.TempDir(), "maint-helm"))
	}
	l.helm("install", "maint", filepath.Join(l.root, "manifests", "chart"), "--create-namespace")
	l.besides()
	before := l.standing(second)
	if p := l.goes(home); !strings.Contains(p.out, "clusterrolebinding/maint-agent taken out of Helm's release maint\n") {
		t.Errorf("uninstall says\n%s", p.out)
	}
	out := l.helm("uninstall", "maint")
	if !strings.Contains(out, "not deleted because they are not owned by this release") {
		t.Errorf("helm uninstall says\n%s", out)
	}
	if diff := cmp.Diff(before, l.standing(second)); diff != "" {
		t.Errorf("of the second is gone or changed (-before +after):\n%s", diff)
	}
	l.keyStays(home)
}

// The configuration is a hook of the installation, and in no revision.
func TestARollbackOfHelmLeavesTheConfiguration(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{"HELM_CACHE_HOME", "HELM_DATA_HOME", "HELM_CONFIG_HOME"} {
		t.Setenv(name, filepath.Join(os.TempDir(), "maint-helm"))
	}
	chart := filepath.Join(l.root, "manifests", "chart")
	l.helm("install", "maint", chart, "--create-namespace")
	l.Cleanup(func() { l.helm("uninstall", "maint") })
	const edited = "spec: {logLevel: debug}"
	l.edit("kubectl-edit", "ConfigMap", "maint-agent", `{"data":{"config.yaml":"`+edited+`"}}`)
	stands := func(when string) {
		t.Helper()
		config := l.get("ConfigMap", "maint-agent")
		if config == nil {
			t.Fatalf("%s there is no configuration", when)
		}
		if text, _, _ := unstructured.NestedString(config.Object, "data", "config.yaml"); text != edited {
			t.Errorf("%s the configuration is %q", when, text)
		}
	}
	l.helm("upgrade", "maint", chart, "--set", "replicas=3")
	stands("after an upgrade")
	l.helm("rollback", "maint", "1")
	stands("after a rollback")
	l.helm("rollback", "maint", "2", "--force-conflicts")
	stands("after a forced rollback")
}
