package informer

import "strconv"

// Version is a resourceVersion as a number, since they are compared; 0 is none.
func Version(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
