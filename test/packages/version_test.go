package packages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sources is a folder with the project's Makefile.
type sources struct {
	*testing.T
	dir string
}

func (s sources) git(args ...string) string {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), "git", append([]string{"-C", s.dir, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// version is that which make would build.
func (s sources) version() string {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), "make", "-n", "build-plugin")
	cmd.Dir = s.dir
	for _, name := range os.Environ() { // make may run this test, with variables of its own
		if key, _, _ := strings.Cut(name, "="); !strings.HasPrefix(key, "MAKE") && key != "MFLAGS" && key != "VERSION" {
			cmd.Env = append(cmd.Env, name)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(s.dir))
	out, err := cmd.Output()
	if err != nil {
		s.Fatal(err)
	}
	found := regexp.MustCompile(`-X main\.version=([^ "]*)`).FindSubmatch(out)
	if found == nil {
		s.Fatalf("make builds without a version:\n%s", out)
	}
	return string(found[1])
}

// An image's tag and the label app.kubernetes.io/version have it, so there is no "+" in it.
func TestABuildFromSourceNamesItsCommit(t *testing.T) {
	s := sources{t, t.TempDir()}
	text, err := os.ReadFile(path(t, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "Makefile"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	is := func(when, want string) {
		t.Helper()
		if got := s.version(); got != want {
			t.Errorf("%s the version is %q, want %q", when, got, want)
		}
	}
	is("without git", "v0.1.0-dev")
	s.git("init", "-q")
	is("without a commit", "v0.1.0-dev")
	s.git("add", "Makefile")
	s.git("commit", "-q", "-m", "one")
	commit := s.git("rev-parse", "--short=7", "HEAD")
	is("before the first tag", "v0.1.0-dev.g"+commit)
	if err := os.WriteFile(filepath.Join(s.dir, "Makefile"), append(text, "\n# more\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	is("with changes", "v0.1.0-dev.g"+commit+"-dirty")
	s.git("checkout", "-q", "Makefile")
	s.git("tag", "v1.2.3")
	is("at a tag", "v1.2.3")
	s.git("commit", "-q", "--allow-empty", "-m", "two")
	is("after a tag", "v1.2.3-1-g"+s.git("rev-parse", "--short=7", "HEAD"))
}
