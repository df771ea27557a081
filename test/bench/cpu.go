package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticks is how many of the kernel's clock ticks are a second, on every Linux
// that Go runs on.
const ticks = 100

// cpu are the seconds of CPU that our children have used so far: etcd, the API
// server, the controller managers, the agent. Where the machine has other work
// too, this says more than the clock on the wall. Elsewhere than on Linux it is 0.
func cpu() float64 {
	var sum float64
	for _, seconds := range cpuByName() {
		sum += seconds
	}
	return sum
}

// cpuByName are they by the names of the programs, as the kernel knows them: of
// at most 15 characters.
func cpuByName() map[string]float64 {
	out := map[string]float64{}
	self := strconv.Itoa(os.Getpid())
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return out
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may hold anything; what follows does not.
		text := string(b)
		end := strings.LastIndexByte(text, ')')
		fields := strings.Fields(text[end+1:])
		if len(fields) < 13 || fields[1] != self {
			continue
		}
		name := text[strings.IndexByte(text, '(')+1 : end]
		for _, f := range fields[11:13] { // utime and stime
			n, err := strconv.ParseFloat(f, 64)
			if err != nil {
				panic(fmt.Sprintf("%s: %v", file, err)) // the kernel's format
			}
			out[name] += n / ticks
		}
	}
	return out
}
