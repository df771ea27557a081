package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is one whose code is in a binary.
type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *module
}

// licences are the texts of all modules that a command is made of, and of Go's own
// library. A module without one fails the release.
func (d dist) licences(ctx context.Context, p platform, pkg string) ([]byte, error) {
	text, err := d.command(ctx, []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOFLAGS=-mod=readonly", "GOWORK=off"}, "go", "list", "-deps", "-json=Module", pkg)
	if err != nil {
		return nil, err
	}
	modules, err := readModules(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	root, err := d.command(ctx, nil, "go", "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	where, goVersion, _ := strings.Cut(strings.TrimSpace(root), "\n")
	modules = append([]module{{Path: "the Go standard library", Version: goVersion, Dir: where}}, modules...)
	var out bytes.Buffer
	fmt.Fprintf(&out, "What this program is made of beside its own code, under the licence in LICENSE:\n%d modules, each with the text of its licence.\n", len(modules))
	for _, m := range modules {
		files, err := licenceFiles(m.Dir)
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("module %s %s has no file with a licence", m.Path, m.Version)
		}
		fmt.Fprintf(&out, "\n%s\n%s %s\n", strings.Repeat("=", 80), m.Path, m.Version)
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(m.Dir, file))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&out, "\n--- %s\n\n%s\n", file, bytes.TrimSpace(text))
		}
	}
	return out.Bytes(), nil
}

// readModules reads what go list prints: each module once, sorted, without our own.
func readModules(from io.Reader) ([]module, error) {
	found := map[string]module{}
	for decoder := json.NewDecoder(from); ; {
		var p struct{ Module *module }
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the list of packages: %w", err)
		}
		if p.Module == nil || p.Module.Main {
			continue
		}
		m := *p.Module
		if m.Replace != nil {
			m.Dir, m.Version = m.Replace.Dir, m.Replace.Version
		}
		found[m.Path] = m
	}
	var out []module
	for _, m := range found {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// licenceFiles are the files at a module's root that say what its licence is.
func licenceFiles(dir string) ([]string, error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	named := regexp.MustCompile(`(?i)^(un)?licen[cs]e|^copying|^notice|^patents`)
	var out []string
	for _, e := range all {
		if e.Type().IsRegular() && named.MatchString(e.Name()) && !strings.HasSuffix(e.Name(), ".go") {
			out = append(out, e.Name())
		}
	}
	return out, nil
}
