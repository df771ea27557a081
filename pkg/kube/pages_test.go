package kube_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// An API server, or whoever stands before it, may give fewer objects than were asked for.
func TestATypedListIsReadToItsLastPage(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	var asked []string
	list := func(_ context.Context, o metav1.ListOptions) (*corev1.NodeList, error) {
		asked = append(asked, fmt.Sprintf("%d %s %s", o.Limit, o.LabelSelector, o.Continue))
		first := slices.Index(names, o.Continue)
		out := &corev1.NodeList{}
		for _, name := range names[max(first, 0):min(max(first, 0)+2, len(names))] {
			out.Items = append(out.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		if last := max(first, 0) + 2; last < len(names) {
			out.Continue = names[last]
		}
		return out, nil
	}
	var seen []string
	err := kube.EachOf(t.Context(), list, "zone=a", func(n *corev1.Node) error {
		seen = append(seen, n.Name)
		return nil
	})
	if err != nil || !slices.Equal(seen, names) {
		t.Errorf("saw %q, %v", seen, err)
	}
	if want := []string{"500 zone=a ", "500 zone=a c", "500 zone=a e"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	stop := errors.New("enough")
	if err := kube.EachOf(t.Context(), list, "", func(*corev1.Node) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("goes on after an error: %v", err)
	}
}
