// Command podimage builds the image of everything that runs on a real node of
// the tests: test/kubelet/pod, static, on nothing, for the platform of this
// machine, as an archive for `ctr images import`.
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	out := flag.String("o", "", "the archive to write")
	root := flag.String("root", "../..", "the root of the repository")
	reference := flag.String("name", "", "the image's name, with its tag")
	flag.Parse()
	if err := run(*root, *reference, *out); err != nil {
		fmt.Fprintln(os.Stderr, "podimage:", err)
		os.Exit(1)
	}
}

func run(root, reference, out string) error {
	tag, err := name.NewTag(reference)
	if err != nil {
		return fmt.Errorf("read -name: %w", err)
	}
	program, err := build(root)
	if err != nil {
		return err
	}
	image, err := fromScratch(program)
	if err != nil {
		return fmt.Errorf("make the image: %w", err)
	}
	return tarball.WriteToFile(out, tag, image)
}

func build(root string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "maint-podimage-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "pod")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", path, "./test/kubelet/pod")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the program: %w\n%s", err, text)
	}
	return os.ReadFile(path)
}

// fromScratch is an image that pauses unless told otherwise, as a pod's
// sandbox has to.
func fromScratch(program []byte) (v1.Image, error) {
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	if err := w.WriteHeader(&tar.Header{Name: "pod", Mode: 0o555, Size: int64(len(program)), Typeflag: tar.TypeReg}); err != nil {
		return nil, err
	}
	if _, err := w.Write(program); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	})
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{Entrypoint: []string{"/pod"}, Cmd: []string{"pause"}, WorkingDir: "/"}
	return mutate.ConfigFile(image, config)
}
