// Command image builds the agent's container image without Docker: one static
// binary on nothing, for linux/amd64 and linux/arm64, as an OCI archive that
// `ctr images import`, `podman load` and `skopeo copy oci-archive:` read. The
// same source gives the same bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("image", flag.ExitOnError)
	out := set.String("o", "../../bin/agent-image.tar", "the archive to write")
	root := set.String("root", "../..", "the root of the repository")
	name := set.String("name", "kubectl-maint/agent", "the image's name, without its tag")
	keep := set.String("keep", "", "a folder to leave agent-amd64 and agent-arm64 in, too")
	version := set.String("version", "v0.0.0-dev", "the version to put into binary, labels and tag")
	if err := set.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "maint-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binaryDir := dir
	if *keep != "" {
		binaryDir = *keep
	}
	roots, err := certificates()
	if err != nil {
		return err
	}
	var binaries []binary
	for _, p := range platforms() {
		began := time.Now()
		fmt.Printf("image: building the agent for %s\n", p)
		b, err := build(ctx, *root, filepath.Join(binaryDir, "agent-"+p.Architecture), p, *version)
		if err != nil {
			return err
		}
		fmt.Printf("image: %s after %.0f s, %d MiB\n", p, time.Since(began).Seconds(), len(b.text)>>20)
		binaries = append(binaries, b)
	}
	index, err := multiPlatform(about{version: *version}, roots, binaries)
	if err != nil {
		return err
	}
	if err := writeArchive(*out, *name+":"+*version, filepath.Join(dir, "layout"), index); err != nil {
		return err
	}
	fmt.Printf("image: wrote %s as %s:%s\n", filepath.Clean(*out), *name, *version)
	return nil
}
