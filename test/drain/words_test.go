package drain_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// said is what kubectl drain says, and what we say: whom it would evict, its
// warnings and its errors.
type said struct{ Evicted, Warnings, Errors []string }

func TestTheWordsAreKubectls(t *testing.T) {
	w := newWorld(t, 1)
	n := w.nodes[0]
	w.podsOfEveryKind(t, n)
	for name, c := range map[string]struct {
		flags   []string
		options drain.Options
	}{
		"no flags":            {nil, drain.Options{}},
		"force":               {[]string{"--force"}, drain.Options{Force: true}},
		"delete emptyDir":     {[]string{"--delete-emptydir-data"}, drain.Options{DeleteEmptyDir: true}},
		"force and emptyDir":  {[]string{"--force", "--delete-emptydir-data"}, drain.Options{Force: true, DeleteEmptyDir: true}},
		"a pod selector":      {[]string{"--pod-selector", "app in (managed, finished), app!=x"}, drain.Options{PodSelector: "app in (managed, finished), app!=x"}},
		"a selector, refused": {[]string{"--pod-selector", "app=unmanaged"}, drain.Options{PodSelector: "app=unmanaged"}},
		"selector and force":  {[]string{"--force", "--pod-selector", "app notin (scratch)"}, drain.Options{Force: true, PodSelector: "app notin (scratch)"}},
		"a grace period":      {[]string{"--force", "--delete-emptydir-data", "--grace-period", "5"}, drain.Options{Force: true, DeleteEmptyDir: true, GracePeriod: seconds(5)}},
	} {
		t.Run(name, func(t *testing.T) {
			theirs := w.kubectlSays(t, n, c.flags...)
			ours := w.weSay(t, n, c.options)
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Errorf("kubectl (-), we (+):\n%s", diff)
			}
			if len(theirs.Evicted)+len(theirs.Errors) == 0 {
				t.Error("kubectl said nothing")
			}
		})
	}
}

// podsOfEveryKind puts one pod of each kind on a node, some with a container
// less than they need to be told apart.
func (w *world) podsOfEveryKind(t *testing.T, n string) {
	t.Helper()
	ctx := t.Context()
	ds, err := w.kube.AppsV1().DaemonSets(w.ns).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}, Template: w.template("agent")},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.running(t, "agent", 1)
	w.deployment(t, "managed", 2)
	w.running(t, "managed", 2)
	w.pod(t, "unmanaged", onNode(n))
	w.pod(t, "scratch", onNode(n), emptyDir, ownedBy("apps/v1", "ReplicaSet", "scratch", "11111111-0000-0000-0000-000000000000"))
	w.pod(t, "scratch-unmanaged", onNode(n), emptyDir)
	w.pod(t, "orphan", onNode(n), ownedBy("apps/v1", "DaemonSet", "gone", "22222222-0000-0000-0000-000000000000"))
	w.pod(t, "orphan-too", onNode(n), ownedBy("apps/v1", "DaemonSet", "gone-too", "22222222-0000-0000-0000-000000000001"))
	w.pod(t, "orphan-scratch", onNode(n), emptyDir, ownedBy("apps/v1", "DaemonSet", "gone", "22222222-0000-0000-0000-000000000000"))
	w.pod(t, "other-daemon", onNode(n), ownedBy("apps.kruise.io/v1alpha1", "DaemonSet", "x", "33333333-0000-0000-0000-000000000000"))
	w.pod(t, "of-replica-set", onNode(n), ownedBy("apps/v1", "ReplicaSet", "gone", "44444444-0000-0000-0000-000000000000"))
	w.pod(t, "mirror", onNode(n), annotated(corev1.MirrorPodAnnotationKey, "abc"))
	w.pod(t, "finished", onNode(n), emptyDir)
	w.pod(t, "finished-daemon", onNode(n), ownedBy("apps/v1", "DaemonSet", "agent", string(ds.UID)))
	w.phase(t, "finished", corev1.PodSucceeded)
	w.phase(t, "finished-daemon", corev1.PodFailed)
}

// phase sets a pod's phase past the controllers that play its kubelet.
func (w *world) phase(t *testing.T, name string, phase corev1.PodPhase) {
	t.Helper()
	for {
		p, err := w.kube.CoreV1().Pods(w.ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if p.Status.Phase != corev1.PodRunning {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		p.Status.Phase = phase
		if _, err = w.kube.CoreV1().Pods(w.ns).UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err == nil {
			return
		} else if !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
	}
}

func (w *world) kubectlSays(t *testing.T, n string, flags ...string) said {
	t.Helper()
	config, err := w.KubeconfigFile("drain-admin", w.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--kubeconfig", config, "drain", n, "--dry-run=server", "--ignore-daemonsets", "--timeout=20s"}, flags...)
	// Its exit status says whether it would drain, which its words do, too.
	text, _ := exec.Command(filepath.Join(root(t), "bin", "kubectl"), args...).CombinedOutput()
	var s said
	for _, line := range strings.Split(string(text), "\n") {
		if m := regexp.MustCompile(`^evicting pod (\S+) \(server dry run\)$`).FindStringSubmatch(line); m != nil {
			s.Evicted = append(s.Evicted, m[1])
		}
		if words, ok := strings.CutPrefix(line, "Warning: "); ok {
			s.Warnings = append(s.Warnings, lists(strings.Split(words, "; "))...)
		}
		if m := regexp.MustCompile(`^error: unable to drain node "[^"]*" due to error: \[?(.*?)\]?, continuing command\.\.\.$`).FindStringSubmatch(line); m != nil {
			s.Errors = lists(strings.Split(strings.ReplaceAll(m[1], ", cannot delete", "\x00cannot delete"), "\x00"))
		}
	}
	slices.Sort(s.Evicted)
	return s
}

// lists sorts messages, and the pods that each of them names.
func lists(messages []string) []string {
	for i, m := range messages {
		words, pods, _ := strings.Cut(m, ": ")
		names := strings.Split(pods, ", ")
		slices.Sort(names)
		messages[i] = words + ": " + strings.Join(names, ", ")
	}
	slices.Sort(messages)
	return messages
}

func (w *world) weSay(t *testing.T, n string, o drain.Options) said {
	t.Helper()
	list, err := w.kube.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + n})
	if err != nil {
		t.Fatal(err)
	}
	pods := make([]drain.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = annotations.DrainPod(&list.Items[i])
	}
	f := drain.NewJudge(o, func(namespace, name string) (bool, error) {
		_, err := w.kube.AppsV1().DaemonSets(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	}).Forecast(pods, nil, time.Now())
	var s said
	for _, g := range f.Groups {
		s.Evicted = append(s.Evicted, g.Evict...)
	}
	slices.Sort(s.Evicted)
	if f.Warnings != "" {
		s.Warnings = lists(strings.Split(f.Warnings, "; "))
	}
	if len(f.Errors) > 0 { // kubectl evicts nobody then, and prints no warning
		s = said{Errors: lists(f.Errors)}
	}
	return s
}
