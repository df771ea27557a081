// Command kubectl-maint is the plugin of kubectl maint. It knows no rules: it
// reads what the process was given and hands it to package cmd.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/terminal"
)

var version = "v0.0.0-dev" //nolint:gochecknoglobals // set by the linker

func main() {
	klog.SetLogger(logr.Discard()) // what client-go grumbles about comes back as an error, too
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cmd.Main(ctx, environment(), os.Args[1:])
	stop()
	os.Exit(code)
}

// environment is what the process was given.
func environment() cmd.Env {
	out := int(os.Stdout.Fd())
	interactive, mark := term.IsTerminal(out) && os.Getenv("TERM") != "dumb", terminal.NewMark()
	width, height, err := term.GetSize(out)
	if err != nil {
		width, height = 0, 0
	}
	typed := term.IsTerminal(int(os.Stdin.Fd()))
	env := cmd.Env{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: terminal.NewWriter(os.Stdout, mark), ErrOut: terminal.NewWriter(os.Stderr, mark)},
		Name:      calledAs(os.Args[0]), Version: version, Now: time.Now, Zone: zone(),
		InTerminal: typed, OutTerminal: interactive,
		Mark: mark, Color: interactive && os.Getenv("NO_COLOR") == "", Size: terminal.Size{Columns: width, Lines: height},
	}
	if interactive && typed {
		env.Screen = &factory.Screen{In: os.Stdin, Out: os.Stdout}
	}
	return env
}

// calledAs is how help speaks: as a plugin of kubectl where kubectl runs us.
func calledAs(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	if rest, plugin := strings.CutPrefix(name, "kubectl-"); plugin {
		return "kubectl " + rest
	}
	return name
}

// zone is the user's time zone by name, where the system tells it; else UTC.
func zone() string {
	if name := os.Getenv("TZ"); name != "" {
		return strings.TrimPrefix(name, ":")
	}
	if target, err := filepath.EvalSymlinks("/etc/localtime"); err == nil {
		if _, name, found := strings.Cut(target, "zoneinfo/"); found {
			return name
		}
	}
	return "UTC"
}
