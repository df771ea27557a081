// Command release makes what a release consists of: archives of the plugin with licences
// and completions, the chart, the manifest for krew, checksums, bills of materials and a
// statement of provenance. The same commit gives the same bytes.
//
//	release dist -version v1.2.3 -o dist [-platforms linux/amd64,…]
//	release krew -version v1.2.3 -dist dist
//	release check-krew FILE [DIST]
//
// GoReleaser 2.18 needs a newer Go than this repository and brings the clients of every
// cloud; this brings one library.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("say dist, krew or check-krew")
	}
	set := flag.NewFlagSet("release "+args[0], flag.ContinueOnError)
	root := set.String("root", "../..", "the root of the repository")
	version := set.String("version", "", "the version, vX.Y.Z")
	switch args[0] {
	case "dist":
		out := set.String("o", "../../dist", "the folder to write into")
		platforms := set.String("platforms", "", "some of the platforms, with commas; default all")
		agents := set.String("agents", "", "the folder with agent-amd64 and agent-arm64, whose bills of materials are written")
		builder := set.String("builder", "https://github.com/kubectl-maint/kubectl-maint/blob/main/Makefile#dist", "who builds, for the provenance")
		if err := set.Parse(args[1:]); err != nil {
			return err
		}
		d := dist{root: *root, out: *out, version: *version, builder: *builder, agents: *agents}
		return d.make(ctx, *platforms)
	case "krew":
		from := set.String("dist", "../../dist", "the folder with the archives")
		if err := set.Parse(args[1:]); err != nil {
			return err
		}
		return writeKrew(filepath.Join(*root, "plugins", "krew.yaml"), *version, *from)
	case "check-krew":
		if err := set.Parse(args[1:]); err != nil {
			return err
		}
		return checkKrew(set.Arg(0), set.Arg(1))
	}
	return fmt.Errorf("there is no %q: say dist, krew or check-krew", args[0])
}

// platform is what an archive is for.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// binary is the plugin's file.
func (p platform) binary() string {
	if p.os == "windows" {
		return "kubectl-maint.exe"
	}
	return "kubectl-maint"
}

// archive is the name of what holds it.
func (p platform) archive(version string) string {
	ending := ".tar.gz"
	if p.os == "windows" {
		ending = ".zip"
	}
	return fmt.Sprintf("kubectl-maint_%s_%s_%s%s", version, p.os, p.arch, ending)
}

func platforms() []platform {
	return []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"}}
}

// chosen are the platforms that a list names, all where it is empty.
func chosen(list string) ([]platform, error) {
	if list == "" {
		return platforms(), nil
	}
	var out []platform
	for _, name := range strings.Split(list, ",") {
		found := false
		for _, p := range platforms() {
			if p.String() == name {
				out, found = append(out, p), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%q is none of the platforms %v", name, platforms())
		}
	}
	return out, nil
}
