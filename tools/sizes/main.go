// Command sizes says what makes programs large: of each, its bytes by the module that they
// come from, as `go tool nm` has them. It wants binaries with their symbols.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// shown is how many modules are listed; the rest is one line.
const shown = 15

// zeroed begin as zero, and nm takes them for data all the same: 32 MiB and 2 MiB.
func zeroed(symbol string) bool {
	return symbol == "crypto/internal/fips140/drbg.memory" || symbol == "github.com/mattn/go-runewidth.strictWidthLUT"
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sizes:", err)
		os.Exit(1)
	}
}

func run(binaries []string, out io.Writer) error {
	if len(binaries) == 0 {
		return errors.New("name the binaries, built with their symbols")
	}
	for _, path := range binaries {
		symbols, err := exec.Command("go", "tool", "nm", "-size", path).Output() //nolint:gosec // the developer names it
		if err != nil {
			return fmt.Errorf("list the symbols of %s: %w", path, err)
		}
		_, _ = fmt.Fprintf(out, "\n| %s | MB | |\n|---|---|---|\n", filepath.Base(path))
		for _, row := range table(byModule(symbols)) {
			_, _ = fmt.Fprintln(out, row)
		}
	}
	return nil
}

// byModule adds up symbols. Those without bytes in the file (b and B: what begins as
// zero) are left out.
func byModule(symbols []byte) map[string]int64 {
	out := map[string]int64{}
	lines := bufio.NewScanner(bytes.NewReader(symbols))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || strings.EqualFold(fields[2], "b") || zeroed(fields[3]) {
			continue
		}
		if size, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			out[module(strings.Join(fields[3:], " "))] += size
		}
	}
	return out
}

// module is where a symbol comes from: a module of others by its first elements, our own
// code, the standard library, or what the compiler adds.
func module(symbol string) string {
	for _, made := range []string{"type:", "go:", "runtime.pclntab", "runtime.etypedesc", "gcargs", "gclocals"} {
		if strings.HasPrefix(symbol, made) {
			return "types and tables of the compiler"
		}
	}
	end := strings.LastIndex(strings.SplitN(symbol, "[", 2)[0], "/")
	name, rest := symbol[:end+1], symbol[end+1:]
	last, _, _ := strings.Cut(rest, ".")
	parts := strings.Split(strings.ReplaceAll(name+last, "%2e", "."), "/")
	switch {
	case !strings.Contains(parts[0], "."):
		return "the standard library"
	case strings.HasPrefix(name, "github.com/kubectl-maint/"):
		return "our own code"
	case parts[0] == "github.com":
		return strings.Join(parts[:min(3, len(parts))], "/")
	}
	return strings.Join(parts[:min(2, len(parts))], "/")
}

func table(sizes map[string]int64) []string {
	names := make([]string, 0, len(sizes))
	var all, rest int64
	for name, size := range sizes {
		names = append(names, name)
		all += size
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a, b)) })
	var rows []string
	for i, name := range names {
		if i >= shown {
			rest += sizes[name]
			continue
		}
		rows = append(rows, row(name, sizes[name], all))
	}
	return append(rows, row(fmt.Sprintf("%d more", max(0, len(names)-shown)), rest, all), row("all symbols", all, all))
}

func row(name string, size, all int64) string {
	return fmt.Sprintf("| %s | %.1f | %d %% |", name, float64(size)/1e6, size*100/max(all, 1))
}
