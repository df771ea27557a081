package main

import (
	"context"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// memoryShare is how much of the container's memory the Go runtime may take before
// it collects harder, in percent: the rest is for what it does not count, the
// program itself above all (a guess).
const memoryShare = 90

// garbageShare is how much garbage the runtime lets gather before it collects, in
// percent of what lives; 100 as it comes. An agent is idle most of its time, and
// what lives is what it keeps of each plan (a guess: a third less memory at size for
// a few percent more CPU while many runs are at work). GOGC, where it is set, wins.
const garbageShare = 50

// limitMemory tells the Go runtime the container's limit. GOMEMLIMIT, where it is
// set, has told it already.
func limitMemory(log *slog.Logger) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbageShare)
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit, found := containerLimit(os.DirFS("/"))
	if !found {
		return
	}
	debug.SetMemoryLimit(limit / 100 * memoryShare)
	log.Info("memory is limited", "container", limit, "runtime", limit/100*memoryShare)
}

// How an agent at rest gives memory back (guesses): it is looked at every so often;
// at rest is one that allocates less than a tenth of what lives in that time; it
// pays where a fifth of what is held may go. To collect takes as long as it takes to
// read what lives once, so it is done no more often than the runtime does by itself.
const (
	restLook  = 15 * time.Second
	restAgain = 2 * time.Minute
	restShare = 10
	idleShare = 5
)

// heapUse is what a look at the heap finds, in bytes.
type heapUse struct {
	allocated uint64 // since the process began
	lives     uint64 // as of the last collection
	held      uint64 // of the system's memory
}

func readHeap() heapUse {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	u := heapUse{allocated: samples[0].Value.Uint64(), lives: samples[1].Value.Uint64()}
	for _, s := range samples[2:] {
		u.held += s.Value.Uint64()
	}
	return u
}

// giveBack returns what the runtime holds beyond what lives whenever the agent is at
// rest: after a start with many plans, or a busy hour, that is as much again.
func giveBack(ctx context.Context) {
	ticker := time.NewTicker(restLook)
	defer ticker.Stop()
	before, least, last := readHeap(), uint64(0), time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := readHeap()
		if time.Since(last) >= restAgain && now.pays(before, least) {
			debug.FreeOSMemory()
			now, last = readHeap(), time.Now()
			least = now.held
		}
		before = now
	}
}

// pays says whether to collect is worth it: since a look before little was
// allocated, and much more is held than what lives, and than what was left when it
// was last collected.
func (u heapUse) pays(before heapUse, least uint64) bool {
	atRest := u.allocated-before.allocated < u.lives/restShare
	floor := max(u.lives, least)
	return atRest && u.held > floor+floor/idleShare
}

// containerLimit is the smallest limit of memory, in bytes, that the control groups
// of this process have, version 2 or 1.
func containerLimit(root fs.FS) (int64, bool) {
	least := int64(math.MaxInt64)
	for _, file := range limitFiles(root) {
		b, err := fs.ReadFile(root, file)
		if err != nil {
			continue // not this version, or seen from inside a container
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 { // max is none
			least = min(least, n)
		}
	}
	return least, least < 1<<50 // version 1 says a huge number for none
}

// limitFiles are where a limit may stand: of the process's own group and of those
// around it, up to the root, which is the container's own where it has a namespace.
func limitFiles(root fs.FS) []string {
	const two, one = "sys/fs/cgroup", "sys/fs/cgroup/memory"
	out := []string{two + "/memory.max", one + "/memory.limit_in_bytes"}
	b, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return out
	}
	for _, line := range strings.Split(string(b), "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		for group := path.Clean("/" + parts[2]); group != "/"; group = path.Dir(group) {
			switch {
			case parts[1] == "":
				out = append(out, two+group+"/memory.max")
			case strings.Contains(","+parts[1]+",", ",memory,"):
				out = append(out, one+group+"/memory.limit_in_bytes")
			}
		}
	}
	return out
}
