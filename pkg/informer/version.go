package informer

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Version is a resourceVersion as a number, since they are compared; 0 is none.
func Version(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// VersionOf is the resourceVersion of an object as a number.
func VersionOf(o metav1.Object) uint64 { return Version(o.GetResourceVersion()) }
