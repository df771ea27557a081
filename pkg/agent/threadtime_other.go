//go:build !linux

package agent

import "time"

// ThreadTime is the time of the clock, where that of a thread is not known.
func ThreadTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
