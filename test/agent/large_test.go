package agent_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// foreignRun is a run as large as the API server takes, with a journal that is mostly packed,
// as somebody writes it who has not the agent's key.
func foreignRun(t *testing.T, random *rand.Rand, name string) *corev1.ConfigMap {
	t.Helper()
	step := plan.Step{Name: "s", Type: "suspend"}
	r := run.Run{
		APIVersion: document.APIVersion, Kind: "Run", Name: name, Namespace: "theirs", Plan: "orders-weekly", PlanUID: "foreign",
		Request: run.Request{Kind: run.ByToken, Token: name}, Spec: plan.Spec{Steps: []plan.Step{step}}.Defaulted(),
	}
	j := run.Journal{Phase: run.Running}
	for range 850 { // a thousand bytes each, which hardly become fewer
		noise := make([]byte, 750)
		for i := range noise {
			noise[i] = byte(random.UintN(256))
		}
		j.Steps = append(j.Steps, run.Record{Path: "s", Type: step.Type, Phase: run.StepSucceeded, Message: base64.StdEncoding.EncodeToString(noise)})
	}
	cm, err := annotations.RunObject(r, j)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(cm.BinaryData[annotations.DataSteps]); n < 600_000 {
		t.Fatalf("its journal has %d bytes", n)
	}
	cm.Labels[annotations.LabelPhase] = string(run.Running)
	return cm
}

// A tenant fills a namespace with the largest documents and runs that the API server
// takes. An agent that starts then is ready within half a minute, reads them all, within its
// memory, and works for others.
func TestTheLargestObjectsOfATenantFillNoAgent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("an agent's memory is read from /proc")
	}
	x := newCrashes(t)
	x.prepare("theirs")
	kinds := []string{annotations.KindPlan, annotations.KindPolicy, annotations.KindRun, annotations.KindGate}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same objects each time
	for i := range 200 {
		kind := kinds[i%len(kinds)]
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("large-%d", i), Labels: map[string]string{annotations.LabelKind: kind, annotations.LabelPhase: "Running"}},
			Data:       map[string]string{annotations.DataPlan: "spec: |\n" + strings.Repeat("  steps and steps\n", 50_000)},
		}
		if kind == annotations.KindPolicy {
			cm.Data = map[string]string{annotations.DataPolicy: cm.Data[annotations.DataPlan]}
		}
		if kind == annotations.KindRun {
			cm = foreignRun(t, random, cm.Name)
		}
		if _, err := x.admin.CoreV1().ConfigMaps("theirs").Create(x.ctx, cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOMEMLIMIT", "230MiB") // nine tenths of the manifest's limit, as the agent sets it itself
	began := time.Now()
	p := x.direct()
	defer p.Kill()
	followed := p.FollowMemory()
	eventuallyWithin(t, x.ctx, time.Until(began.Add(30*time.Second)), "the agent is ready", func() (bool, string) { return x.ready(p), lastOf(p.Log(), 500) })
	x.goesOn("theirs")
	peak := followed()
	t.Logf("after %s another tenant's plan had run; the agent had %d MiB of its own at most", time.Since(began).Round(time.Second), peak>>20)
	if peak == 0 || peak > 256<<20 {
		t.Errorf("it had %d MiB", peak>>20)
	}
}
