package function_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/functiontest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// sized is a Secret with so many values of so many bytes.
func sized(name string, values, bytes int) *corev1.Secret {
	data := map[string][]byte{}
	for i := range values {
		data[fmt.Sprintf("k%04d", i)] = []byte(strings.Repeat("<", bytes))
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: data}
}

func credentialsFrom(secrets ...string) []plan.FunctionCredential {
	var all []plan.FunctionCredential
	for i, name := range secrets {
		all = append(all, plan.FunctionCredential{Name: fmt.Sprintf("c%d", i), SecretName: name})
	}
	return all
}

// A Secret may have 1 MiB, and the forms in which it is masked are dozens of times as long.
func TestTheCredentialsOfAStepAreBounded(t *testing.T) {
	secrets := []*corev1.Secret{
		sized("most", 1, function.MaxCredentials), sized("more", 1, function.MaxCredentials+1), sized("half", 2, function.MaxCredentials/4),
		sized("few", function.MaxCredentials/256, 1), sized("many", function.MaxCredentials/256+1, 1),
	}
	const limit = "its credentials have more than 65536 bytes (each value counts as at least 256)"
	for name, c := range map[string]struct {
		functions [][]string // the Secrets of each; one alone is a step of its own, and a target
		refusal   []string   // nil: it is called
	}{
		"as much as there may be":               {functions: [][]string{{"most"}}},
		"more":                                  {[][]string{{"more"}}, []string{"with secret shop/more", limit}},
		"as many values as there may be":        {functions: [][]string{{"few"}}},
		"more values, however short they are":   {[][]string{{"many"}}, []string{"with secret shop/many", limit}},
		"two halves":                            {functions: [][]string{{"half", "half"}}},
		"a Secret that is named too often":      {[][]string{{"half", "half", "half"}}, []string{"with secret shop/half", limit}},
		"of a pipeline, beside one without any": {functions: [][]string{{"most"}, nil}},
		"of two functions of a pipeline":        {functions: [][]string{{"half"}, {"half"}}},
		"of a pipeline, more than its part":     {[][]string{{"half"}, {"cloud", "half"}}, []string{"function b", "with secret shop/half", "more than 32768 bytes, its part of 65536 for the 2 functions that have some"}},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			endpoint := functiontest.Serve(t, func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				calls.Add(1)
				return &fnv1.RunFunctionResponse{}, nil
			})
			call := pipelineOf(endpoint, endpoint)
			call.Clients = callOf(endpoint, secrets...).Clients
			all := pipeline(call)
			all.Functions = all.Functions[:len(c.functions)]
			for i, names := range c.functions {
				all.Functions[i].Credentials = credentialsFrom(names...)
			}
			outcomes := []executors.Outcome{function.Pipeline{}.Pass(t.Context(), call)}
			if len(c.functions) == 1 {
				call.Properties = all.Functions[0].Called()
				outcomes = append(outcomes, pass(t, call))
			}
			for _, out := range outcomes {
				if c.refusal == nil {
					ends(t, out, executors.Done, false, "")
					continue
				}
				ends(t, out, executors.Failed, true, "TooLarge", c.refusal...)
			}
			if (calls.Load() == 0) != (c.refusal != nil) {
				t.Errorf("%d calls", calls.Load())
			}
		})
	}
}

func TestTheCredentialsOfATargetAreBounded(t *testing.T) {
	call, _ := answering(t, `{}`)
	call.Clients.Kube = callOf("", sized("more", 1, function.MaxCredentials+1)).Clients.Kube
	call.Params.(*hibernate.FunctionParameters).Credentials = credentialsFrom("more")
	if err := (function.Sleeps{}).Validate(t.Context(), call); err == nil || !strings.Contains(err.Error(), "with secret shop/more its credentials have more than 65536 bytes") {
		t.Errorf("%v", err)
	}
}
