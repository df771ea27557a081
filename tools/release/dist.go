package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// dist makes the files of a release.
type dist struct {
	root, out, version, builder string
	agents                      string // empty: the image is made elsewhere, or not at all
	own                         string // the plugin for this machine, which prints completions
}

// source is the commit that is built.
type source struct {
	commit string
	at     time.Time
	dirty  bool
}

func (d dist) make(ctx context.Context, list string) error {
	if !regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(d.version) {
		return fmt.Errorf("-version %q is not vX.Y.Z", d.version)
	}
	all, err := chosen(list)
	if err != nil {
		return err
	}
	from, err := d.source(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(d.out, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "maint-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d.own = filepath.Join(dir, "kubectl-maint")
	if err := d.build(ctx, platform{runtime.GOOS, runtime.GOARCH}, "./cmd/kubectl-maint", d.own); err != nil {
		return err
	}
	for _, p := range all {
		began := time.Now()
		if err := d.platform(ctx, p, from); err != nil {
			return err
		}
		fmt.Printf("release: %s after %.0f s\n", p.archive(d.version), time.Since(began).Seconds())
	}
	if err := d.agentBills(ctx, from); err != nil {
		return err
	}
	if err := d.chart(ctx, from); err != nil {
		return err
	}
	if len(all) == len(platforms()) { // krew's manifest names all of them
		if err := writeKrew(filepath.Join(d.root, "plugins", "krew.yaml"), d.version, d.out); err != nil {
			return err
		}
	}
	if err := d.provenance(from); err != nil {
		return err
	}
	return d.checksums()
}

// source asks git. SOURCE_DATE_EPOCH, if it is set, is the time of everything.
func (d dist) source(ctx context.Context) (source, error) {
	commit, err := d.command(ctx, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return source{}, err
	}
	hash, stamp, _ := strings.Cut(strings.TrimSpace(commit), " ")
	if given := os.Getenv("SOURCE_DATE_EPOCH"); given != "" {
		stamp = given
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return source{}, fmt.Errorf("the time of the commit: %w", err)
	}
	changed, err := d.command(ctx, nil, "git", "status", "--porcelain", "--untracked-files=no")
	return source{hash, time.Unix(seconds, 0).UTC(), strings.TrimSpace(changed) != ""}, err
}

// platform writes the archive for one platform, and what its binary is made of.
func (d dist) platform(ctx context.Context, p platform, from source) error {
	dir, err := os.MkdirTemp("", "maint-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := d.own
	if p != (platform{runtime.GOOS, runtime.GOARCH}) {
		binary = filepath.Join(dir, p.binary())
		if err := d.build(ctx, p, "./cmd/kubectl-maint", binary); err != nil {
			return err
		}
	}
	entries, err := d.entries(ctx, p, binary)
	if err != nil {
		return err
	}
	if err := pack(filepath.Join(d.out, p.archive(d.version)), entries, from.at); err != nil {
		return err
	}
	bill, err := billOfMaterials("kubectl-maint", d.version, p, binary, from)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.out, fmt.Sprintf("kubectl-maint_%s_%s_%s.cdx.json", d.version, p.os, p.arch)), bill, 0o644)
}

// build compiles a command as the Makefile does. Nothing of this machine ends up in it.
func (d dist) build(ctx context.Context, p platform, pkg, to string) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	_, err = d.command(ctx, []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOFLAGS=-mod=readonly", "GOWORK=off"},
		"go", "build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace", "-ldflags", "-s -w -X main.version="+d.version, "-o", to, pkg)
	return err
}

// entries are the files of an archive.
func (d dist) entries(ctx context.Context, p platform, binary string) ([]entry, error) {
	text, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(filepath.Join(d.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	licences, err := d.licences(ctx, p, "./cmd/kubectl-maint")
	if err != nil {
		return nil, err
	}
	out := []entry{{p.binary(), true, text}, {"LICENSE", false, license}, {"THIRD_PARTY_LICENSES", false, licences}}
	completions, err := d.completions(ctx, p)
	return append(out, completions...), err
}

// completions are what the plugin prints: that of this machine is asked.
func (d dist) completions(ctx context.Context, p platform) ([]entry, error) {
	shells := map[string]string{"bash": "completions/kubectl-maint.bash", "zsh": "completions/_kubectl-maint", "fish": "completions/kubectl-maint.fish", "powershell": "completions/kubectl-maint.ps1"}
	if p.os != "windows" { // the helper is a script of the shell
		shells["kubectl"] = "kubectl_complete-maint"
	}
	var out []entry
	for shell, name := range shells {
		text, err := d.command(ctx, nil, d.own, "completion", shell)
		if err != nil {
			return nil, err
		}
		out = append(out, entry{name, shell == "kubectl", []byte(text)})
	}
	return out, nil
}

// agentBills writes what the agents in the image are made of, and their licences.
func (d dist) agentBills(ctx context.Context, from source) error {
	if d.agents == "" {
		return nil
	}
	for _, arch := range []string{"amd64", "arm64"} {
		p := platform{"linux", arch}
		bill, err := billOfMaterials("agent", d.version, p, filepath.Join(d.agents, "agent-"+arch), from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(d.out, fmt.Sprintf("maint-agent_%s_linux_%s.cdx.json", d.version, arch)), bill, 0o644); err != nil {
			return err
		}
	}
	text, err := d.licences(ctx, platform{"linux", "amd64"}, "./cmd/agent")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.out, "maint-agent_"+d.version+"_THIRD_PARTY_LICENSES.txt"), text, 0o644)
}

// checksums are of every file, in the format of sha256sum.
func (d dist) checksums() error {
	names, err := d.files()
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, name := range names {
		sum, err := checksum(filepath.Join(d.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s  %s\n", sum, name)
	}
	return os.WriteFile(filepath.Join(d.out, "checksums.txt"), []byte(out.String()), 0o644)
}

// files are those of the release, but for the checksums.
func (d dist) files() ([]string, error) {
	all, err := os.ReadDir(d.out)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range all {
		if e.Type().IsRegular() && e.Name() != "checksums.txt" {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out, nil
}

// command runs a program in the repository, and gives what it prints.
func (d dist) command(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = d.root, append(os.Environ(), env...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, said.String())
	}
	return string(out), nil
}
