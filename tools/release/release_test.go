package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const testVersion = "v1.2.3"

func TestMain(m *testing.M) {
	code := m.Run()
	if builds.dir != "" {
		_ = os.RemoveAll(builds.dir)
	}
	os.Exit(code)
}

// builds is the plugin, built for the first who asks: the testing package hands nothing
// from TestMain to tests.
var builds struct { //nolint:gochecknoglobals // see above
	once sync.Once
	dir  string
	err  error
}

// ready is a release whose plugin for this machine is built.
func ready(t *testing.T) dist {
	t.Helper()
	d := dist{root: filepath.Join("..", ".."), version: testVersion, builder: "https://example.org/builder"}
	builds.once.Do(func() {
		if builds.dir, builds.err = os.MkdirTemp("", "maint-release-test-"); builds.err == nil {
			builds.err = d.build(context.Background(), platform{runtime.GOOS, runtime.GOARCH}, "./cmd/kubectl-maint", filepath.Join(builds.dir, "kubectl-maint"))
		}
	})
	if builds.err != nil {
		t.Fatal(builds.err)
	}
	d.own, d.out = filepath.Join(builds.dir, "kubectl-maint"), t.TempDir()
	return d
}

var noon = source{commit: "0123456789abcdef", at: time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)} //nolint:gochecknoglobals // a constant in all but name

// archives packs each platform's archive: the real plugin for this machine, and a text in
// its place for the others.
func archives(t *testing.T, d dist) {
	t.Helper()
	for _, p := range platforms() {
		binary := d.own
		if p != (platform{runtime.GOOS, runtime.GOARCH}) {
			binary = filepath.Join(t.TempDir(), p.binary())
			if err := os.WriteFile(binary, []byte("the plugin for "+p.String()), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		entries, err := d.entries(t.Context(), p, binary)
		if err != nil {
			t.Fatal(err)
		}
		if err := pack(filepath.Join(d.out, p.archive(d.version)), entries, noon.at); err != nil {
			t.Fatal(err)
		}
	}
}

// install does what krew does with a platform of a manifest: it unpacks the archive, puts
// files where they belong, and links the executable. It returns the folder for the PATH.
func install(t *testing.T, p krewPlatform, dist, name, version string) string {
	t.Helper()
	home := t.TempDir()
	entries, err := unpacked(filepath.Join(dist, path.Base(p.URI)))
	if err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(home, "store", name, version)
	for _, f := range p.Files {
		for _, e := range entries {
			if matched, err := path.Match(f.From, e.name); err != nil || !matched {
				continue
			}
			to := filepath.Join(store, filepath.FromSlash(f.To), path.Base(e.name))
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, e.text, os.FileMode(e.mode())); err != nil {
				t.Fatal(err)
			}
		}
	}
	bin := filepath.Join(home, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	link := "kubectl-" + strings.ReplaceAll(name, "-", "_")
	if strings.HasSuffix(p.Bin, ".exe") {
		link += ".exe"
	}
	if err := os.Symlink(filepath.Join(store, filepath.FromSlash(p.Bin)), filepath.Join(bin, link)); err != nil {
		t.Fatal(err)
	}
	return bin
}

func TestEveryArchiveInstallsAsKrewDoes(t *testing.T) {
	d := ready(t)
	archives(t, d)
	if err := writeKrew(filepath.Join(d.root, "plugins", "krew.yaml"), testVersion, d.out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(d.out, "maint.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, faults := readPlugin(text)
	if len(faults) > 0 || manifest.Spec.Version != testVersion || len(manifest.Spec.Platforms) != len(platforms()) {
		t.Fatalf("the manifest is of %s, for %d platforms: %v", manifest.Spec.Version, len(manifest.Spec.Platforms), faults)
	}
	for _, p := range manifest.Spec.Platforms {
		for _, s := range p.systems() {
			bin := install(t, p, d.out, manifest.Metadata.Name, manifest.Spec.Version)
			own := s == system{runtime.GOOS, runtime.GOARCH}
			name := "kubectl-maint"
			if s.os == "windows" {
				name += ".exe"
			}
			target, err := filepath.EvalSymlinks(filepath.Join(bin, name))
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(target); err != nil || info.Mode()&0o100 == 0 {
				t.Errorf("%s/%s: the plugin cannot be executed: %v, %v", s.os, s.arch, info, err)
			}
			beside, err := filepath.Glob(filepath.Join(filepath.Dir(target), "*LICENSE*"))
			if err != nil || len(beside) != 2 {
				t.Errorf("%s/%s: beside it are %v, %v; want both licences", s.os, s.arch, beside, err)
			}
			if got, err := os.ReadFile(target); err != nil || !own && string(got) != "the plugin for "+s.os+"/"+s.arch {
				t.Errorf("%s/%s: it is %.60q, %v", s.os, s.arch, got, err)
			}
			if own {
				runs(t, d, bin)
			}
		}
	}
}

// runs has kubectl find the plugin and its helper for completion.
func runs(t *testing.T, d dist, bin string) {
	t.Helper()
	kubectl, err := filepath.Abs(filepath.Join(d.root, "bin", "kubectl"))
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), kubectl, args...)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+filepath.Dir(kubectl)+":"+os.Getenv("PATH"), "KUBECONFIG="+filepath.Join(t.TempDir(), "none"))
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if out := run("maint", "version", "--client"); !strings.Contains(out, "client:    "+testVersion) {
		t.Errorf("kubectl maint version prints\n%s", out)
	}
	// What the caveats say.
	if err := os.WriteFile(filepath.Join(bin, "kubectl_complete-maint"), []byte(run("maint", "completion", "kubectl")), 0o755); err != nil {
		t.Fatal(err)
	}
	if out := run("__complete", "maint", "versio"); !strings.Contains(out, "version") {
		t.Errorf("kubectl completes 'maint versio' by\n%s", out)
	}
}

func TestAnArchiveHoldsWhatARealOneNeeds(t *testing.T) {
	d := ready(t)
	archives(t, d)
	for _, p := range platforms() {
		entries, err := unpacked(filepath.Join(d.out, p.archive(testVersion)))
		if err != nil {
			t.Fatal(err)
		}
		var names, executables []string
		for _, e := range entries {
			names = append(names, e.name)
			if e.executable {
				executables = append(executables, e.name)
			}
			if len(e.text) == 0 {
				t.Errorf("%s: %s is empty", p, e.name)
			}
		}
		want := []string{"LICENSE", "THIRD_PARTY_LICENSES", "completions/_kubectl-maint", "completions/kubectl-maint.bash", "completions/kubectl-maint.fish", "completions/kubectl-maint.ps1", p.binary()}
		run := []string{p.binary()}
		if p.os != "windows" {
			want, run = append(want, "kubectl_complete-maint"), append(run, "kubectl_complete-maint")
		}
		if !slices.Equal(names, want) || !slices.Equal(executables, run) {
			t.Errorf("%s holds %v, of which %v can be executed; want %v and %v", p, names, executables, want, run)
		}
	}
}

func TestTheLicencesAreThoseOfWhatIsInTheBinary(t *testing.T) {
	d := ready(t)
	text, err := d.licences(t.Context(), platform{"linux", "amd64"}, "./cmd/kubectl-maint")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the Go standard library go1.", "k8s.io/client-go v", "github.com/spf13/cobra v", "Apache License", "--- NOTICE"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("there is no %q", want)
		}
	}
	if bytes.Contains(text, []byte("github.com/aws/aws-sdk-go-v2 v")) {
		t.Error("there is a licence of what the plugin does not contain")
	}
}

func TestWhatABinaryIsMadeOf(t *testing.T) {
	d := ready(t)
	host := platform{runtime.GOOS, runtime.GOARCH}
	text, err := billOfMaterials("kubectl-maint", testVersion, host, d.own, noon)
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		BOMFormat, SerialNumber string
		Metadata                struct {
			Component struct{ Name, Version string }
		}
		Components []struct {
			Name, Version, Purl string
			Properties          []struct{ Name, Value string }
		}
	}
	if err := json.Unmarshal(text, &bill); err != nil {
		t.Fatal(err)
	}
	if bill.BOMFormat != "CycloneDX" || !strings.HasPrefix(bill.SerialNumber, "urn:uuid:") || bill.Metadata.Component.Name != "kubectl-maint" || bill.Metadata.Component.Version != testVersion {
		t.Errorf("it is %s %s of %+v", bill.BOMFormat, bill.SerialNumber, bill.Metadata.Component)
	}
	found := false
	for _, c := range bill.Components {
		if c.Name == "k8s.io/client-go" {
			found = c.Purl == "pkg:golang/k8s.io/client-go@"+c.Version && len(c.Properties) == 1 && strings.HasPrefix(c.Properties[0].Value, "h1:")
		}
	}
	if !found || bill.Components[0].Name != "std" {
		t.Errorf("client-go is not as it should be among %d components, or Go is not the first", len(bill.Components))
	}
	again, err := billOfMaterials("kubectl-maint", testVersion, host, d.own, noon)
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("a second one differs: %v", err)
	}
}

func TestTheProvenanceNamesEachFileByItsDigest(t *testing.T) {
	d := ready(t)
	for _, name := range []string{"b.zip", "a.tar.gz"} {
		if err := os.WriteFile(filepath.Join(d.out, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.provenance(noon); err != nil {
		t.Fatal(err)
	}
	if err := d.provenance(noon); err != nil { // it does not speak of itself
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(d.out, "provenance.intoto.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s statement
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	sum, err := checksum(filepath.Join(d.out, "a.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Type != "https://in-toto.io/Statement/v1" || s.PredicateType != "https://slsa.dev/provenance/v1" || len(s.Subject) != 2 || s.Subject[0].Name != "a.tar.gz" || s.Subject[0].Digest["sha256"] != sum {
		t.Errorf("it is %+v", s)
	}
	if s.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"] != noon.commit || s.Predicate.RunDetails.Builder.ID != d.builder {
		t.Errorf("it was made from %+v by %s", s.Predicate.BuildDefinition, s.Predicate.RunDetails.Builder.ID)
	}
}

func TestOrderAndTimeOfFilesAreInNoArchive(t *testing.T) {
	for _, ending := range []string{".zip", ".tar.gz"} {
		first, second := filepath.Join(t.TempDir(), "x"+ending), filepath.Join(t.TempDir(), "x"+ending)
		if err := pack(first, []entry{{"a", true, []byte("1")}, {"b", false, []byte("2")}}, noon.at); err != nil {
			t.Fatal(err)
		}
		if err := pack(second, []entry{{"b", false, []byte("2")}, {"a", true, []byte("1")}}, noon.at); err != nil {
			t.Fatal(err)
		}
		a, errA := checksum(first)
		b, errB := checksum(second)
		if errA != nil || errB != nil || a != b {
			t.Errorf("%s: %s and %s, %v, %v", ending, a, b, errA, errB)
		}
	}
}

// Two clones in two folders, as by two people, for this machine and another one. `make
// reproduce` has the second person begin with an empty build cache, and takes all platforms.
func TestTwoFoldersGiveTheSameBytes(t *testing.T) {
	list, begin := os.Getenv("MAINT_PLATFORMS"), 0
	switch list {
	case "":
		list = runtime.GOOS + "/" + runtime.GOARCH + ",darwin/arm64"
	case "all":
		list, begin = "", 1 // and krew's manifest
	}
	all, err := chosen(list)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b platform) int { return strings.Compare(a.String(), b.String()) })
	all = slices.Compact(all)
	want := begin + 3 + 2*len(all) // chart, manifests, provenance; of each platform the archive and its bill of materials
	outputs := map[string]string{}
	for _, who := range []string{"anna", "berta-elsewhere"} {
		root, out := filepath.Join(t.TempDir(), who), filepath.Join(t.TempDir(), "dist")
		if text, err := exec.CommandContext(t.Context(), "git", "clone", "-q", filepath.Join("..", ".."), root).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		d := dist{root: root, out: out, version: testVersion, builder: "https://example.org/builder"}
		if err := d.make(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(out, "checksums.txt"))
		if err != nil {
			t.Fatal(err)
		}
		outputs[who] = string(text)
		if os.Getenv("MAINT_EMPTY_CACHE") != "" {
			t.Setenv("GOCACHE", t.TempDir())
		}
	}
	if outputs["anna"] != outputs["berta-elsewhere"] || strings.Count(outputs["anna"], "\n") != want {
		t.Errorf("anna has\n%sand berta\n%swant %d files", outputs["anna"], outputs["berta-elsewhere"], want)
	}
}

func TestAVersionThatIsNoneIsRefused(t *testing.T) {
	for _, version := range []string{"", "1.2.3", "v1.2", "v1.2.3 "} {
		if err := (dist{version: version}).make(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "is not vX.Y.Z") {
			t.Errorf("%q: %v", version, err)
		}
	}
	if err := (dist{version: "v1.2.3"}).make(t.Context(), "plan9/amd64"); err == nil || !strings.Contains(err.Error(), "none of the platforms") {
		t.Errorf("plan9: %v", err)
	}
}
