package trigger

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Jitter is the start delay of the plan namespace/name, in [0, max) and whole
// seconds where max is more than one. It is a hash of the names and nothing
// else, so every restart and every preview says the same; a plan that is moved
// to another name may start at another second.
func Jitter(namespace, name string, max time.Duration) time.Duration {
	if max <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	hash := binary.BigEndian.Uint64(sum[:8])
	if seconds := uint64((max + time.Second - 1) / time.Second); seconds > 1 {
		return time.Duration(hash%seconds) * time.Second
	}
	return time.Duration(hash % uint64(max))
}
