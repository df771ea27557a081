package workload

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// Units that have prices.
const (
	unitCPU    = "cpu"       // cores
	unitMemory = "memoryGiB" // GiB
)

// units are the requests of a number of a workload's pods. A kind without a pod template has none.
func units(u *unstructured.Unstructured, replicas int64) map[string]float64 {
	template, found, err := unstructured.NestedMap(u.Object, "spec", "template")
	if err != nil || !found || document.HugeQuantity(template) != "" {
		return nil
	}
	var pod corev1.PodTemplateSpec
	if runtime.DefaultUnstructuredConverter.FromUnstructured(template, &pod) != nil {
		return nil
	}
	var cores, memory float64
	for _, c := range pod.Spec.Containers {
		cores += c.Resources.Requests.Cpu().AsApproximateFloat64()
		memory += c.Resources.Requests.Memory().AsApproximateFloat64()
	}
	out := map[string]float64{}
	for unit, n := range map[string]float64{unitCPU: cores, unitMemory: memory / (1 << 30)} {
		if n > 0 {
			out[unit] = rounded(n * float64(replicas))
		}
	}
	return out
}

// rounded has six decimal places: people read what is stored.
func rounded(n float64) float64 { return math.Round(n*1e6) / 1e6 }
