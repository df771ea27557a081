package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// kubectl runs the kubectl that `make tools-kube` built, which finds the plugin
// beside it, and returns what it printed.
func (d *demo) kubectl(ctx context.Context, args ...string) (string, error) {
	bin := filepath.Join(d.root, "bin")
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.kubeconfig, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// typed are arguments as a person types them.
func typed(args []string) string {
	words := slices.Clone(args)
	for i, word := range words {
		if word == "" || strings.ContainsAny(word, " '\"$*{}[]()<>|;&") {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// say runs a command as a person would and shows both it and its answer. On
// somebody's cluster it names the namespace.
func (d *demo) say(ctx context.Context, args ...string) error {
	if d.own == nil {
		args = append(slices.Clone(args), "-n", d.shopNS)
	}
	d.screen.command("kubectl " + typed(args))
	out, err := d.kubectl(ctx, args...)
	d.screen.answer(out)
	if err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
