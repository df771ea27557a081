package drain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// as checks that a Deployment is as it began.
func (w *world) as(t *testing.T, name string, replicas int32) {
	t.Helper()
	d, err := w.kube.AppsV1().Deployments(w.ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || *d.Spec.Replicas != replicas || d.Annotations[annotations.StatusSurge] != "" || d.Labels[annotations.LabelSurging] != "" {
		t.Errorf("%v: %d replicas, %v %v", err, *d.Spec.Replicas, d.Annotations, d.Labels)
	}
}

func TestASurgeBringsAReplacementFirst(t *testing.T) {
	w := newWorld(t, 1)
	n := w.nodes[0]
	w.deployment(t, "one", 1, annotated("maint.dev/drain", "surge"))
	w.deployment(t, "two", 2, annotated("maint.dev/drain", "surge"))
	w.running(t, "one", 1)
	w.running(t, "two", 2)
	w.budget(t, "one", minAvailable(1))
	w.budget(t, "two", minAvailable(2))
	w.addNodes(t, 2)
	w.cordon(t, n)
	o := w.observe(t)
	d := w.drainer(t, w.client(t, nil))
	st := d.until(t, n, drain.Options{}, "drained", ended)
	// Where a replica is given back while pods are seconds old, the ReplicaSet takes
	// any of them (LogarithmicScaleDown): the second of "two" may go that way.
	if !st.Done || st.Left != 0 || st.Outcome.Evicted < 2 || st.Outcome.Evicted+st.Outcome.Gone != 3 || len(w.on(t, n)) != 0 {
		t.Errorf("%+v", st)
	}
	w.as(t, "one", 1)
	w.as(t, "two", 2)
	eventually(t, "as many pods as before", func(context.Context) bool {
		return len(w.pods(t, "app=one")) == 1 && len(w.pods(t, "app=two")) == 2
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.least["one"] < 1 || o.least["two"] < 2 {
		t.Errorf("at one time so many were healthy: %v", o.least)
	}
}

func TestASurgeThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		setup func(w *world, t *testing.T)
		why   string
	}{
		"no room elsewhere": {func(*world, *testing.T) {}, "no replacement became Ready: Unschedulable"},
		"an autoscaler owns it": {func(w *world, t *testing.T) {
			_, err := w.kube.AutoscalingV2().HorizontalPodAutoscalers(w.ns).Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
				ObjectMeta: metav1.ObjectMeta{Name: "one"},
				Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
					MaxReplicas: 3, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "one"},
				},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}, "HorizontalPodAutoscaler/one owns the replicas"},
		"GitOps owns it": {func(w *world, t *testing.T) {
			force := true
			_, err := w.kube.AppsV1().Deployments(w.ns).Patch(t.Context(), "one", types.ApplyPatchType,
				[]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"one"},"spec":{"replicas":1}}`), metav1.PatchOptions{FieldManager: "kustomize-controller", Force: &force})
			if err != nil {
				t.Fatal(err)
			}
		}, "kustomize-controller owns the replicas"},
		"its budget counts the new one in": {func(w *world, t *testing.T) { w.budget(t, "one", maxUnavailable(0)) }, "maxUnavailable is 0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			n := w.nodes[0]
			w.deployment(t, "one", 1, annotated("maint.dev/drain", "surge"))
			uid := w.running(t, "one", 1)[0].UID
			c.setup(w, t)
			w.cordon(t, n)
			d := w.drainer(t, w.client(t, nil))
			st := d.until(t, n, drain.Options{}, "blocked", blocked)
			if !strings.Contains(fmt.Sprint(st.Blocks), c.why) || !st.Blocks[0].Permanent {
				t.Errorf("%+v", st.Blocks)
			}
			t.Log(st.Message)
			w.as(t, "one", 1)
			if left := w.running(t, "one", 1); left[0].UID != uid {
				t.Error("the pod went nevertheless")
			}
		})
	}
}

func TestASurgeOfADrainerThatDiedIsUndone(t *testing.T) {
	w := newWorld(t, 1)
	n := w.nodes[0]
	w.deployment(t, "one", 1)
	w.running(t, "one", 1)
	record, err := json.Marshal(annotations.Surge{Replicas: 1, Node: n, Pod: "was-evicted", At: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{annotations.StatusSurge: string(record)}, "labels": map[string]any{annotations.LabelSurging: "true"}},
		"spec":     map[string]any{"replicas": 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.kube.AppsV1().Deployments(w.ns).Patch(t.Context(), "one", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.addNodes(t, 1)
	w.cordon(t, n)
	d := w.drainer(t, w.client(t, nil))
	d.until(t, n, drain.Options{}, "drained", ended)
	w.as(t, "one", 1)
}

func TestADrainWaitsForVolumes(t *testing.T) {
	w := newWorld(t, 1)
	n := w.nodes[0]
	volume := "pv-" + w.ns
	_, err := w.kube.CoreV1().PersistentVolumeClaims(w.ns).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeName: volume, StorageClassName: new(string),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *w.quantity("1Gi")}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.pod(t, "db", onNode(n), func(p *corev1.PodTemplateSpec) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	})
	attach := func(name, on string) {
		_, err := w.kube.StorageV1().VolumeAttachments().Create(t.Context(), &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       storagev1.VolumeAttachmentSpec{Attacher: "example.org", NodeName: on, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = w.kube.StorageV1().VolumeAttachments().Delete(context.Background(), name, metav1.DeleteOptions{})
		})
	}
	attach(w.ns+"-here", n)
	attach(w.ns+"-there", "elsewhere")
	w.cordon(t, n)
	d := w.drainer(t, w.client(t, nil))
	o := drain.Options{Force: true, WaitForVolumes: true}
	st := d.until(t, n, o, "empty", func(st executors.DrainStatus) bool {
		return ended(st) || len(st.Pods) > 0 && strings.Contains(st.Pods[0].Why, "is still attached")
	})
	if st.Done || st.Evicted != 1 {
		t.Errorf("%+v", st)
	}
	if err := w.kube.StorageV1().VolumeAttachments().Delete(t.Context(), w.ns+"-here", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	d.until(t, n, o, "drained", func(st executors.DrainStatus) bool { return st.Done })
}
