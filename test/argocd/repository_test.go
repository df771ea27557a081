package argocd_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// repository is one of Git.
type repository struct {
	dir      string
	revision string // its newest
}

func (l *lab) newRepository(name string) *repository {
	l.Helper()
	r := &repository{dir: filepath.Join(l.dir, "git", name)}
	l.must(os.MkdirAll(r.dir, 0o755))
	_, err := r.git(l.ctx, "init", "--quiet", "--initial-branch=main")
	l.must(err)
	return r
}

// push makes files a commit, and returns its revision.
func (r *repository) push(ctx context.Context, files map[string]string) (string, error) {
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	if _, err := r.git(ctx, "add", "--all"); err != nil {
		return "", err
	}
	if _, err := r.git(ctx, "commit", "--quiet", "--message", "a change"); err != nil {
		return "", err
	}
	var err error
	r.revision, err = r.git(ctx, "rev-parse", "HEAD")
	return r.revision, err
}

func (r *repository) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=somebody", "GIT_AUTHOR_EMAIL=somebody@example.com", "GIT_COMMITTER_NAME=somebody", "GIT_COMMITTER_EMAIL=somebody@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
