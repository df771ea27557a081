package function_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/functiontest"
)

// byName requires a ConfigMap so many times.
func byName(name string, times int) map[string]*fnv1.ResourceSelector {
	out := map[string]*fnv1.ResourceSelector{}
	for i := range times {
		out[fmt.Sprintf("r%03d", i)] = &fnv1.ResourceSelector{ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchName{MatchName: name}}
	}
	return out
}

// byLabels requires the ConfigMaps with a label so many times.
func byLabels(app string, times int) map[string]*fnv1.ResourceSelector {
	out := map[string]*fnv1.ResourceSelector{}
	for i := range times {
		out[fmt.Sprintf("r%03d", i)] = &fnv1.ResourceSelector{ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchLabels{
			MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{"app": app}},
		}}
	}
	return out
}

// withObjects has a client find a ConfigMap of one long text, and one of many values. It returns
// how often it was asked.
func withObjects(clients *executors.Clients) *int {
	long, many := object("ConfigMap", "shop", "long"), object("ConfigMap", "shop", "many")
	long.Object["data"] = map[string]any{"text": strings.Repeat("x", 1_000_000)}
	many.Object["list"] = slices.Repeat([]any{true}, 30_000)
	for _, u := range []*unstructured.Unstructured{long, many} {
		u.SetLabels(map[string]string{"app": u.GetName()})
	}
	kinds := map[schema.GroupVersionResource]string{{Version: "v1", Resource: "configmaps"}: "ConfigMapList"}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, long, many)
	reads := 0
	client.PrependReactor("*", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		reads++
		return false, nil, nil
	})
	clients.Dynamic = client
	return &reads
}

// However many requirements a function has, their objects together have one limit, and what is beyond
// it is not read.
func TestWhatAFunctionRequiresHasOneLimit(t *testing.T) {
	for name, c := range map[string]struct {
		wants  map[string]*fnv1.ResourceSelector
		reads  int
		reason string // empty: it fits
		words  []string
	}{
		"by name, as much as fits":    {byName("long", 2), 2, "", nil},
		"by name":                     {byName("long", 50), 3, "TooLarge", []string{"requirements.resources.r002: the objects that the function at ", "requires have more than 2 MiB in all"}},
		"by labels":                   {byLabels("long", 50), 3, "TooLarge", []string{"requirements.resources.r002: ", "more than 2 MiB in all"}},
		"of many values, by name":     {byName("many", 50), 7, "TooLarge", []string{"requirements.resources.r006: ", "more than 200000 values in all"}},
		"of many values, by labels":   {byLabels("many", 50), 7, "TooLarge", []string{"requirements.resources.r006: ", "more than 200000 values in all"}},
		"by as many as there may be":  {byName("absent", 100), 100, "", nil},
		"by more than there may be":   {byName("absent", 101), 0, "TooMany", []string{"function at ", "has 101 requirements, and 100 are the most"}},
		"by labels, as much as fits":  {byLabels("many", 6), 6, "", nil},
		"by labels that pick nothing": {byLabels("nothing", 5), 5, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := functiontest.Serve(t, said(&fnv1.RunFunctionResponse{Requirements: &fnv1.Requirements{Resources: c.wants}}))
			call := callOf(endpoint)
			reads := withObjects(&call.Clients)
			out := pass(t, call)
			if c.reason == "" {
				ends(t, out, executors.Done, false, "")
			} else {
				ends(t, out, executors.Failed, true, c.reason, c.words...)
			}
			if *reads != c.reads {
				t.Errorf("of a step it reads %d times, want %d", *reads, c.reads)
			}
			sleep := sleepOf(endpoint)
			reads = withObjects(&sleep.Clients)
			err := function.Sleeps{}.Validate(t.Context(), sleep)
			if (err == nil) != (c.reason == "") || *reads != c.reads {
				t.Errorf("of a target it reads %d times, want %d: %v", *reads, c.reads, err)
			}
			for _, word := range c.words {
				if err != nil && !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %q", err, word)
				}
			}
		})
	}
}

// What functions require takes the room that their answers do, and is given back with the step.
func TestWhatFunctionsRequireTakesRoom(t *testing.T) {
	called, release := make(chan struct{}), make(chan struct{})
	wants := &fnv1.RunFunctionResponse{Requirements: &fnv1.Requirements{Resources: byName("many", 2)}}
	waits := functiontest.Serve(t, func(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		if len(r.GetRequiredResources()) > 0 {
			close(called)
			<-release
		}
		return wants, nil
	})
	answers := function.NewAnswers()
	asks := func(endpoint, namespace string, timeout time.Duration) executors.Outcome {
		call := callOf(endpoint)
		withObjects(&call.Clients)
		call.Plan.Namespace, props(call).Timeout = namespace, &document.Duration{Duration: timeout}
		return function.Runner{Answers: answers}.Pass(t.Context(), call)
	}
	var all sync.WaitGroup
	all.Go(func() { ends(t, asks(waits, "shop", time.Minute), executors.Done, false, "") }) // it has the place for large answers until its end
	<-called
	at := functiontest.Serve(t, said(wants))
	ends(t, asks(at, "shop", 6*time.Second), executors.Failed, false, "Timeout", "function at "+at+": what it requires is large, and within 6s there was no room for it beside that of other steps")
	close(release)
	all.Wait()
	ends(t, asks(at, "shop", 2*time.Second), executors.Done, false, "")
}
