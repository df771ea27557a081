package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const testName = "kubectl-maint/agent:v1.2.3"

// archive writes an archive of stand-ins for the two binaries, each its own.
func archive(t *testing.T) string {
	t.Helper()
	var binaries []binary
	for _, p := range platforms() {
		binaries = append(binaries, binary{platform: p, text: []byte("the agent for " + p.String())})
	}
	roots, err := certificates()
	if err != nil {
		t.Fatal(err)
	}
	index, err := multiPlatform(about{version: "v1.2.3"}, roots, binaries)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "agent-image.tar")
	if err := writeArchive(path, testName, filepath.Join(t.TempDir(), "layout"), index); err != nil {
		t.Fatal(err)
	}
	return path
}

// images unpacks an archive and gives its name, and its images by platform.
func images(t *testing.T, path string) (string, map[string]v1.Image) {
	t.Helper()
	l, err := layout.FromPath(unpack(t, path))
	if err != nil {
		t.Fatalf("the archive is no OCI layout: %v", err)
	}
	top, err := l.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("the layout holds %+v, %v; want one index", manifest, err)
	}
	named := manifest.Manifests[0]
	index, err := top.ImageIndex(named.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Fatalf("the index is not valid: %v", err)
	}
	inner, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]v1.Image{}
	for _, d := range inner.Manifests {
		if out[d.Platform.String()], err = index.Image(d.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return named.Annotations["io.containerd.image.name"], out
}

// content is what an image's only layer holds.
func content(t *testing.T, image v1.Image) map[string]file {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v; want one", len(layers), err)
	}
	text, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	return readTar(t, text)
}

func unpack(t *testing.T, path string) string {
	t.Helper()
	dir := t.TempDir()
	for name, f := range read(t, path) {
		target := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, f.text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

type file struct {
	header *tar.Header
	text   []byte
}

func read(t *testing.T, path string) map[string]file {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return readTar(t, bytes.NewReader(b))
}

func readTar(t *testing.T, from io.Reader) map[string]file {
	t.Helper()
	out := map[string]file{}
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			out[h.Name] = file{h, text}
		}
	}
}

func TestTheArchiveHoldsAnImageForEachPlatform(t *testing.T) {
	name, got := images(t, archive(t))
	if name != "docker.io/"+testName || len(got) != 2 {
		t.Fatalf("it is named %s, with images for %v; want %s, for linux/amd64 and linux/arm64", name, got, testName)
	}
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		image, there := got[platform]
		if !there {
			t.Fatalf("there is no image for %s", platform)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.OS+"/"+config.Architecture != platform {
			t.Errorf("the image for %s says %s/%s", platform, config.OS, config.Architecture)
		}
		if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/agent"}) || len(config.Config.Cmd) != 0 {
			t.Errorf("%s: user %q, entrypoint %v, cmd %v", platform, config.Config.User, config.Config.Entrypoint, config.Config.Cmd)
		}
		if config.Config.Labels["org.opencontainers.image.version"] != "v1.2.3" {
			t.Errorf("%s: labels %v lack the version", platform, config.Config.Labels)
		}
		if config.Created.Unix() != 0 {
			t.Errorf("%s: created %s, which changes with each build", platform, config.Created)
		}
	}
}

func TestAnImageHoldsTheAgentAndCertificatesAndNothingElse(t *testing.T) {
	_, all := images(t, archive(t))
	for platform, image := range all {
		got := content(t, image)
		if len(got) != 2 || string(got["agent"].text) != "the agent for "+platform || got["agent"].header.Mode != 0o555 {
			t.Errorf("%s: the layer holds %v", platform, got)
		}
		for name, f := range got {
			if f.header.ModTime.Unix() != 0 || f.header.Uid != 0 || f.header.Mode&0o222 != 0 {
				t.Errorf("%s: %s is of %s, uid %d, mode %o; want the epoch, root, and writable by nobody", platform, name, f.header.ModTime, f.header.Uid, f.header.Mode)
			}
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(got["etc/ssl/certs/ca-certificates.crt"].text) {
			t.Errorf("%s: no certificate authority can be read", platform)
		}
	}
}

func TestTheSameSourceGivesTheSameBytes(t *testing.T) {
	first, err := os.ReadFile(archive(t))
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(archive(t))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("two archives of the same binaries differ")
	}
}

// Two clones in two folders, as by two people. `make reproduce` has the second one begin with
// an empty build cache.
func TestTwoFoldersGiveTheSameImage(t *testing.T) {
	outputs := map[string]string{}
	for _, who := range []string{"anna", "berta-elsewhere"} {
		root, out := filepath.Join(t.TempDir(), who), t.TempDir()
		if text, err := exec.CommandContext(t.Context(), "git", "clone", "-q", filepath.Join("..", ".."), root).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if err := run(t.Context(), []string{"-root", root, "-version", "v1.2.3", "-keep", out, "-o", filepath.Join(out, "image.tar")}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"agent-amd64", "agent-arm64", "image.tar"} {
			text, err := os.ReadFile(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			outputs[who] += fmt.Sprintf("%x  %s\n", sha256.Sum256(text), name)
		}
		if os.Getenv("MAINT_EMPTY_CACHE") != "" {
			t.Setenv("GOCACHE", t.TempDir())
		}
	}
	if outputs["anna"] != outputs["berta-elsewhere"] {
		t.Errorf("anna has\n%sand berta\n%s", outputs["anna"], outputs["berta-elsewhere"])
	}
}

// What `make image` wrote: each agent is for its platform, asks for no interpreter, that
// is, for no C library, and was built with the tags that keep it small.
func TestTheBuiltArchiveHoldsStaticBinaries(t *testing.T) {
	path := os.Getenv("MAINT_IMAGE")
	if path == "" {
		t.Skip("MAINT_IMAGE names no archive: `make image` sets it")
	}
	_, all := images(t, path)
	for platform, machine := range map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64} {
		text := content(t, all[platform])["agent"].text
		agent, err := elf.NewFile(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: the agent is no binary of Linux: %v", platform, err)
		}
		if agent.Machine != machine {
			t.Errorf("the agent for %s is for %s", platform, agent.Machine)
		}
		if slices.ContainsFunc(agent.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
			t.Errorf("%s: the agent is not static", platform)
		}
		info, err := buildinfo.Read(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: read how the agent was built: %v", platform, err)
		}
		if !slices.Contains(info.Settings, debug.BuildSetting{Key: "-tags", Value: tags}) {
			t.Errorf("%s: the agent was built without -tags %s: %v", platform, tags, info.Settings)
		}
	}
}
