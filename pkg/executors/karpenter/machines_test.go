package karpenter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWhichMachinesANodePoolHas(t *testing.T) {
	claim := func(status map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": status}}
	}
	got := machinesOf([]*unstructured.Unstructured{
		claim(map[string]any{"providerID": "aws:///eu-central-1a/i-1"}), claim(map[string]any{}), claim(nil),
		claim(map[string]any{"providerID": "aws:///eu-central-1b/i-2"}),
	})
	if diff := cmp.Diff([]string{"aws:///eu-central-1a/i-1", "aws:///eu-central-1b/i-2"}, got); diff != "" {
		t.Error(diff)
	}
}
