package gitops_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// chart is the repository as a chart: each commit is a version of it. As charts do, it
// writes its version on an object, here on one of the plans.
func chart(commit int) map[string]string {
	out := map[string]string{"Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: apps\nversion: %s\n", version(commit))}
	for name, text := range files(commit) {
		if name != "kustomization.yaml" {
			out["templates/"+name] = text
		}
	}
	const mark = "labels: {maint.dev/kind: plan"
	out["templates/nightly.yaml"] = strings.Replace(out["templates/nightly.yaml"], mark, mark+`, helm.sh/chart: 'apps-{{ .Chart.Version | replace "+" "_" }}'`, 1)
	return out
}

func version(commit int) string { return fmt.Sprintf("1.0.%d", commit) }

// releases are what helm-controller installs and upgrades from a registry of charts.
func releases() fluxController {
	return fluxController{
		name: "helm-controller", module: "helm-controller", definition: "helm.toolkit.fluxcd.io_helmreleases.yaml",
		owns: schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}, kind: "HelmRelease",
		source: source{
			resource: schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "ocirepositories"}, kind: "OCIRepository",
			spec: map[string]any{"url": "oci://registry.example/apps", "interval": "1h"}, folder: "apps",
			revision: func(files map[string]string, archive []byte) string {
				_, line, _ := strings.Cut(files["Chart.yaml"], "version: ")
				return fmt.Sprintf("%s@sha256:%x", strings.TrimSpace(line), sha256.Sum256(archive))
			},
		},
		files: chart,
		settled: func(owner *unstructured.Unstructured, revision string) bool {
			version, _, _ := strings.Cut(revision, "@")
			return strings.HasPrefix(latest(owner, "chartVersion"), version+"+") && latest(owner, "status") == "deployed"
		},
	}
}

// latest is a field of the newest release that an owner has made.
func latest(owner *unstructured.Unstructured, field string) string {
	history, _, _ := unstructured.NestedSlice(owner.Object, "status", "history")
	if len(history) == 0 {
		return ""
	}
	release, _ := history[0].(map[string]any)
	return fmt.Sprint(release[field])
}

// drifts are the Events by which the controller says that something is not as its chart has it.
// An API client sends 25 of an object and drops others, so they are looked at before the hour.
// The first release does not count, for during it people and the agent write: the controller
// reads an object and then tries what it would apply to it, and takes for drift what is written
// between the two.
func (l *lab) drifts() []string {
	l.Helper()
	events, err := l.admin.CoreV1().Events(l.ns).List(l.ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=HelmRelease"})
	l.must(err)
	var out []string
	for _, e := range events.Items {
		if strings.HasPrefix(e.Reason, "Drift") && !strings.Contains(e.Message, "/apps.v1 ") {
			out = append(out, e.Reason+": "+e.Message)
		}
	}
	return out
}

// driftsFound is how often the controller has found something that is not as its chart has it.
func (l *lab) driftsFound() int {
	return strings.Count(l.log.String(), "detected changes in cluster state")
}

// TestBesideHelm: what people and the agent wrote on documents of a chart survives every
// version of it and is no drift, and a run keeps its target while it lives.
func TestBesideHelm(t *testing.T) {
	l := newLab(t, releases())
	unawaited := map[string]any{"disableWait": true} // nothing here makes pods of a Deployment
	l.begin(map[string]any{
		"interval": "3s", "releaseName": "apps", "timeout": "30s",
		"chartRef":       map[string]any{"kind": "OCIRepository", "name": "apps"},
		"driftDetection": map[string]any{"mode": "enabled"},
		"install":        unawaited, "upgrade": unawaited,
	})
	l.applied(l.push(1))
	t.Run("a run whose target Helm keeps is held", func(t *testing.T) { l.of(t).corrected() })
	t.Run("an hour of new versions leaves plans as they are and is no drift, and nothing is released again", func(t *testing.T) {
		before := l.driftsFound()
		l.of(t).pushed(pushes)
		l.of(t).atRest()
		if n := l.driftsFound() - before; n > 0 {
			t.Errorf("drift was found %d times:\n%s", n, strings.Join(l.drifts(), "\n"))
		}
	})
	t.Run("a run that holds the owners is left alone", func(t *testing.T) { l.of(t).held() })
	t.Run("a release whose chart is lost is held at once", func(t *testing.T) { l.of(t).lost() })
}

// atRest looks at two intervals without a new version.
func (l *lab) atRest() {
	l.Helper()
	before := map[string]string{}
	for _, name := range documents() {
		before[name] = l.document(name).ResourceVersion
	}
	time.Sleep(7 * time.Second)
	for name, was := range before {
		if is := l.document(name).ResourceVersion; is != was {
			l.Errorf("%s is written while nothing changes: %s, and now %s", name, was, is)
		}
	}
	if got, want := latest(l.owner(), "version"), fmt.Sprint(pushes+1); got != want {
		l.Errorf("%s releases, want %s", got, want)
	}
}

// corrected is drift, of which the controller says that it corrected it.
func (l *lab) corrected() {
	l.Helper()
	l.drift()
	l.eventually("the controller says what it corrected", func() (bool, string) {
		said := strings.Join(l.drifts(), "\n")
		return strings.Contains(said, "DriftCorrected") && strings.Contains(said, "Deployment/"+l.ns+"/orders"), said
	})
	if l.driftsFound() == 0 {
		l.Errorf("the controller's log does not say that it found drift:\n%s", l.log.Tail(shown))
	}
	l.eventually("the agent has said all of the run", func() (bool, string) {
		a := l.document("plain").Annotations
		return a[annotations.StatusPhase] == "Idle" && a[annotations.StatusLastResult] == "Aborted", fmt.Sprint(a)
	})
	l.looksAgain(1) // one that is at work may have read a document before the agent wrote it
	before := l.driftsFound()
	l.looksAgain(2)
	if n := l.driftsFound() - before; n > 0 {
		l.Errorf("what the run left is drift, %d times:\n%s", n, strings.Join(l.drifts(), "\n"))
	}
}

// looksAgain waits until the controller has found so many times more that all is as its chart has it.
func (l *lab) looksAgain(times int) {
	l.Helper()
	looks := func() int { return strings.Count(l.log.String(), "release in-sync with desired state") }
	before := looks()
	l.eventually("the controller looks again", func() (bool, string) { return looks() >= before+times, l.log.Tail(shown) })
}

// lost holds a release that cannot be applied and goes on to say that it is at it.
func (l *lab) lost() {
	l.Helper()
	l.must(l.repo.lose(l.ctx))
	l.eventually("the release misses its chart", func() (bool, string) {
		status := fmt.Sprint(l.owner().Object["status"])
		return strings.Contains(status, "SourceNotReady"), status
	})
	was := l.owner().Object["spec"]
	l.maint(0, "trigger", "upgrade")
	l.released("upgrade", l.holds("upgrade", 2), was)
}
