package walls

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// How large the programs for linux/amd64 may be. The agent had 49.4 MB when this was written,
// and 62.9 MB with all methods; the plugin 58.1 MB, and 60.4 MB with packages of kubectl, which bring
// translations of all of kubectl along.
const (
	mostOfTheAgent  = 52_000_000
	mostOfThePlugin = 59_600_000
)

func TestTheLinkerLeavesOutWhatNobodyCalls(t *testing.T) {
	agent := filepath.Join(t.TempDir(), "agent")
	if chain := lookup(link(t, agent)); chain != nil {
		t.Errorf("the agent has a function that looks methods up by any name: %s\n  why the wall is there: where one can be reached, the linker keeps every exported method: 13 MB", strings.Join(chain, "\n  reached from "))
	}
	noLarger(t, agent, mostOfTheAgent)
}

func TestThePluginIsNoLargerThanItMayBe(t *testing.T) {
	plugin := filepath.Join(t.TempDir(), "kubectl-maint")
	build(t, "build-plugin", "PLUGIN="+plugin)
	noLarger(t, plugin, mostOfThePlugin)
}

func noLarger(t *testing.T, path string, most int64) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s has %d bytes", filepath.Base(path), info.Size())
	if info.Size() > most {
		t.Errorf("%s has %d bytes, more than %d: `make sizes` says what they are", filepath.Base(path), info.Size(), most)
	}
}

// build has make build a program for linux/amd64, and returns what that says.
func build(t *testing.T, args ...string) bytes.Buffer {
	t.Helper()
	command := exec.Command("make", append([]string{"--no-print-directory", "-C", filepath.Join("..", "..")}, args...)...)
	command.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64")
	var dump bytes.Buffer
	command.Stderr = &dump
	if err := command.Run(); err != nil {
		said := dump.Bytes()
		t.Fatalf("make %s: %v\n%s", strings.Join(args, " "), err, said[max(0, len(said)-4<<10):])
	}
	return dump
}

// link builds the agent as `make build` does, and returns what its linker says: who leads to
// which symbol.
func link(t *testing.T, agent string) []byte {
	t.Helper()
	dump := build(t, "build-agent", "AGENT="+agent, "LDFLAGS=-s -w -dumpdep")
	if !bytes.Contains(dump.Bytes(), []byte("main.main -> ")) {
		t.Fatal("the linker does not say what leads to what")
	}
	return dump.Bytes()
}

// lookup is the first function that looks methods up by a name which the linker does not
// know, as text/template does, and after it who leads to it, up to main. Others that the
// linker names come with the methods that this one makes it keep.
func lookup(dump []byte) []string {
	before := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(dump))
	lines.Buffer(nil, len(dump)+1)
	for lines.Scan() {
		from, to, ok := strings.Cut(lines.Text(), " -> ")
		if !ok {
			continue
		}
		if _, known := before[symbol(to)]; !known {
			before[symbol(to)] = symbol(from)
		}
		if !strings.HasSuffix(to, "<ReflectMethod>") {
			continue
		}
		var chain []string
		for at := symbol(to); at != "" && at != "runtime.main_main·f"; at = before[at] {
			chain = append(chain, at)
		}
		return chain
	}
	return nil
}

// symbol is a symbol without the linker's remarks.
func symbol(text string) string {
	name, _, _ := strings.Cut(text, " <")
	return strings.TrimSpace(name)
}

func TestWhoLooksMethodsUpIsFoundWithItsCallers(t *testing.T) {
	dump := `# example.org/agent
_ -> main.main
main.main -> example.org/mail.send
main.main -> example.org/trace.Render <UsedInIface>
example.org/trace.Render <UsedInIface> -> text/template.(*state).evalField <UsedInIface> <ReflectMethod>
example.org/mail.send -> text/template.(*state).evalField <UsedInIface> <ReflectMethod>
text/template.(*state).evalField <UsedInIface> <ReflectMethod> -> go:string."a -> b"
`
	if got := strings.Join(lookup([]byte(dump)), " < "); got != "text/template.(*state).evalField < example.org/trace.Render < main.main < _" {
		t.Error(got)
	}
	if got := lookup([]byte(strings.ReplaceAll(dump, " <ReflectMethod>", ""))); got != nil {
		t.Errorf("%q", got)
	}
}
