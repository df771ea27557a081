package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// twice is a function of the example: it desires that each App has twice its size.
func twice(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	desired := &fnv1.State{Resources: map[string]*fnv1.Resource{}}
	for _, item := range r.GetRequiredResources()["apps"].GetItems() {
		app := &unstructured.Unstructured{Object: item.GetResource().AsMap()}
		size, _, _ := unstructured.NestedFloat64(app.Object, "spec", "size")
		s, err := structpb.NewStruct(map[string]any{"apiVersion": "example.org/v1", "kind": "App", "metadata": map[string]any{"name": app.GetName()}, "spec": map[string]any{"size": 2 * size}})
		if err != nil {
			return nil, err
		}
		desired.Resources[app.GetName()] = &fnv1.Resource{Resource: s}
	}
	output, err := structpb.NewStruct(map[string]any{"proposed": len(desired.GetResources())})
	return &fnv1.RunFunctionResponse{Desired: desired, Output: output}, err
}

// largest is the other: nothing may be larger than its input says.
func largest(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	answer := &fnv1.RunFunctionResponse{Desired: r.GetDesired()}
	most := r.GetInput().GetFields()["largest"].GetNumberValue()
	for name, resource := range r.GetDesired().GetResources() {
		if size, _, _ := unstructured.NestedFloat64(resource.GetResource().AsMap(), "spec", "size"); size > most {
			answer.Results = append(answer.Results, &fnv1.Result{Severity: fnv1.Severity_SEVERITY_FATAL, Message: fmt.Sprintf("%s would have %v", name, size)})
		}
	}
	return answer, nil
}

// certified has the agent show a certificate to installed functions, until the test ends.
func (l *lab) certified(certificate, key []byte) {
	l.Helper()
	world.configuring.Lock()
	l.Cleanup(world.configuring.Unlock)
	secrets := l.admin.CoreV1().Secrets(annotations.DefaultNamespace)
	_, err := secrets.Create(l.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "maint-sinks"}, Data: map[string][]byte{"ca.crt": certificate, corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
	}, metav1.CreateOptions{})
	l.must(err)
	const allow = `outbound: {allow: ["127.0.0.1/32"]}`
	l.configure(`{` + allow + `, functions: {tlsSecretRef: {name: maint-sinks}}}`)
	l.Cleanup(func() {
		l.configure(`{` + allow + `}`)
		l.must(secrets.Delete(l.ctx, "maint-sinks", metav1.DeleteOptions{}))
	})
}

func TestExampleResizeApps(t *testing.T) {
	revisions := foreign{"pkg.crossplane.io", "v1", "FunctionRevision", "functionrevisions"}
	s := newStage(t, "resize-apps", exampleOrg("App"))
	s.make(strings.NewReplacer("scope: Namespaced", "scope: Cluster", "    subresources: {status: {}}\n", "").Replace(revisions.definition()))
	s.eventually("FunctionRevisions are served", func() (bool, string) {
		_, err := s.dyn.Resource(revisions.gvr()).List(s.ctx, metav1.ListOptions{})
		return err == nil, fmt.Sprint(err)
	})
	certificate, key := passport(t)
	_, err := s.admin.CoreV1().Secrets(s.ns).Create(s.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "fn-tls"}, Data: map[string][]byte{"ca.crt": certificate, corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
	}, metav1.CreateOptions{})
	s.must(err)
	s.certified(certificate, key)
	s.make(fmt.Sprintf(`
{apiVersion: pkg.crossplane.io/v1, kind: FunctionRevision, metadata: {name: function-resize-1, labels: {pkg.crossplane.io/package: function-resize}}, spec: {desiredState: Active, revision: 1}, status: {endpoint: "dns:///%s"}}
---
{apiVersion: example.org/v1, kind: App, metadata: {name: one, labels: {resize: nightly}}, spec: {size: 4}}
---
{apiVersion: example.org/v1, kind: App, metadata: {name: two, labels: {resize: nightly}}, spec: {size: 20}}
---
{apiVersion: example.org/v1, kind: App, metadata: {name: other}, spec: {size: 7}}
`, guarded(t, twice, certificate, key)))
	s.play("fn.example.org:9443", guarded(t, largest, certificate, key), "namespace: default ", "namespace: "+s.ns+" ", "retry: {limit: 2, backoff: 30s}", "retry: {limit: 0}")
	sizes := func() string {
		var all []string
		for _, name := range []string{"one", "two", "other"} {
			size, _, _ := unstructured.NestedNumberAsFloat64(s.read(exampleOrg("App"), name).Object, "spec", "size")
			all = append(all, fmt.Sprint(size))
		}
		return strings.Join(all, " ")
	}
	said := func(r runState) (*run.Record, string) {
		rec := r.journal.Record("resize")
		return rec, fmt.Sprintf("%s %s %v", rec.Phase, rec.Message, rec.Outputs)
	}
	s.expect(s.maint("trigger", s.name, "--wait", "--timeout", "100s"), 0, "Succeeded")
	if got := sizes(); got != "8 40 7" {
		t.Errorf("the sizes are %s", got)
	}
	if rec, text := said(s.ended(s.name, 1)[0]); len(rec.Changed) != 2 || !strings.Contains(text, "map[check:map[] propose:map[output:map[proposed:2]]]") {
		t.Errorf("it says %s", text)
	}
	s.expect(s.maint("trigger", s.name, "--wait", "--timeout", "100s"), 4, "two would have 80")
	if got := sizes(); got != "8 40 7" {
		t.Errorf("after a fatal result the sizes are %s", got)
	}
}
