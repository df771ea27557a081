package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestASymbolIsItsModules(t *testing.T) {
	for symbol, want := range map[string]string{
		"github.com/kubectl-maint/kubectl-maint/pkg/run.(*Journal).Record":           "our own code",
		"github.com/google/cel-go/checker.(*checker).check":                          "github.com/google/cel-go",
		"k8s.io/api/core/v1.(*Pod).Unmarshal":                                        "k8s.io/api",
		"sigs.k8s.io/structured-merge-diff/v6/typed.Parse":                           "sigs.k8s.io/structured-merge-diff",
		"gopkg.in/yaml%2ev3.Unmarshal":                                               "gopkg.in/yaml.v3",
		"net/http.(*Client).Do":                                                      "the standard library",
		"runtime.mallocgc":                                                           "the standard library",
		"runtime.pclntab":                                                            "types and tables of the compiler",
		"type:.eq.k8s.io/api/core/v1.PodSpec":                                        "types and tables of the compiler",
		"slices.SortFunc[go.shape.[]k8s.io/api/core/v1.Pod,go.shape.struct {}]":      "the standard library",
		"github.com/aws/aws-sdk-go-v2/service/ec2.(*Client).DescribeInstances.func1": "github.com/aws/aws-sdk-go-v2",
	} {
		if got := module(symbol); got != want {
			t.Errorf("%s comes from %s, want %s", symbol, got, want)
		}
	}
}

func TestWhatHasNoBytesInTheFileCountsNothing(t *testing.T) {
	got := byModule([]byte("  4a0 1000 T main.main\n  4b0 500 B runtime.mheap_\n  4c0 20 R go:string.*\n  4d0 T torn\n  4e0 2228224 D github.com/mattn/go-runewidth.strictWidthLUT\n"))
	if diff := cmp.Diff(map[string]int64{"the standard library": 1000, "types and tables of the compiler": 20}, got); diff != "" {
		t.Error(diff)
	}
}
