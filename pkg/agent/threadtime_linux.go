package agent

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime is the CPU time that the calling thread has had.
func ThreadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
