package main

import (
	"testing"
	"testing/fstest"
)

func TestTheLimitOfMemoryIsTheContainers(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
		found bool
	}{
		"version 2, with a namespace": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n"}, 256 * mib, true},
		"version 2, no limit":         {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0, false},
		"version 2, without a namespace, the pod's is less": {map[string]string{
			"proc/self/cgroup":                             "0::/kubepods/pod1/agent\n",
			"sys/fs/cgroup/kubepods/memory.max":            "max\n",
			"sys/fs/cgroup/kubepods/pod1/memory.max":       "134217728\n",
			"sys/fs/cgroup/kubepods/pod1/agent/memory.max": "268435456\n",
		}, 128 * mib, true},
		"version 1":           {map[string]string{"proc/self/cgroup": "5:memory:/docker/x\n2:cpu,cpuacct:/docker/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "268435456\n"}, 256 * mib, true},
		"version 1, no limit": {map[string]string{"proc/self/cgroup": "5:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0, false},
		"version 1, without a namespace": {map[string]string{
			"proc/self/cgroup": "5:memory:/docker/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": "268435456\n",
		}, 256 * mib, true},
		"no control groups": {nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			for file, text := range c.files {
				root[file] = &fstest.MapFile{Data: []byte(text)}
			}
			got, found := containerLimit(root)
			if found != c.found || found && got != c.want {
				t.Errorf("got %d, %v; want %d, %v", got, found, c.want, c.found)
			}
		})
	}
}

func TestMemoryIsGivenBackAtRestWhereItPays(t *testing.T) {
	const mib = 1 << 20
	before := heapUse{allocated: 1000 * mib}
	for what, row := range map[string]struct {
		now   heapUse
		least uint64
		want  bool
	}{
		"at rest, with much garbage":             {heapUse{allocated: 1001 * mib, lives: 80 * mib, held: 150 * mib}, 0, true},
		"at work":                                {heapUse{allocated: 1100 * mib, lives: 80 * mib, held: 150 * mib}, 0, false},
		"at rest, with little":                   {heapUse{allocated: 1001 * mib, lives: 80 * mib, held: 90 * mib}, 0, false},
		"no more than the last time left":        {heapUse{allocated: 1001 * mib, lives: 80 * mib, held: 110 * mib}, 105 * mib, false},
		"more than the last time left":           {heapUse{allocated: 1001 * mib, lives: 80 * mib, held: 130 * mib}, 105 * mib, true},
		"less lives than when it was last given": {heapUse{allocated: 1001 * mib, lives: 20 * mib, held: 130 * mib}, 105 * mib, true},
	} {
		if got := row.now.pays(before, row.least); got != row.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

func TestTheHeapIsRead(t *testing.T) {
	if u := readHeap(); u.allocated == 0 || u.held == 0 {
		t.Errorf("the runtime does not know these metrics: %+v", u)
	}
}
