package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// template is the manifest in the repository.
func template(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "plugins", "krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func faultsOf(text, file string) []string {
	p, faults := readPlugin([]byte(text))
	if len(faults) > 0 {
		return faults
	}
	return p.faults(file)
}

func TestTheManifestInTheRepositoryKeepsKrewsRules(t *testing.T) {
	if faults := faultsOf(template(t), "maint.yaml"); len(faults) > 0 {
		t.Error(faults)
	}
}

func TestEachOfKrewsRulesIsChecked(t *testing.T) {
	const sum = `"0000000000000000000000000000000000000000000000000000000000000000"`
	for _, c := range []struct {
		rule, was, is string // the first place
		fault         string
	}{
		{"the version of the API", "v1alpha2", "v1", `apiVersion is "krew.googlecontainertools.github.com/v1"`},
		{"the kind", "kind: Plugin", "kind: Plug", `kind is "Plug", not Plugin`},
		{"no field that krew does not know", "  homepage:", "  home: x\n  homepage:", `unknown field "home"`},
		{"no field twice", "  version: v0.0.0", "  version: v0.0.0\n  version: v0.0.1", `already set`},
		{"a safe name", "name: maint", "name: Maint!", `metadata.name "Maint!" is not lower-case words with dashes`},
		{"no prefix that krew adds", "name: maint", "name: kubectl-maint", `metadata.name "kubectl-maint" has the prefix that krew adds`},
		{"the name of the file", "name: maint", "name: main", `the file is maint.yaml, and the plugin is "main"`},
		{"a version with v", "version: v0.0.0", "version: 0.0.0", `version "0.0.0" is not vX.Y.Z`},
		{"a version of three numbers", "version: v0.0.0", "version: v0.0", `version "v0.0" is not vX.Y.Z`},
		{"a version without empty parts", "version: v0.0.0", "version: v0.0.0-rc..1", `version "v0.0.0-rc..1" is not vX.Y.Z`},
		{"a version without zeros before", "version: v0.0.0", "version: v01.0.0", `version "v01.0.0" is not vX.Y.Z`},
		{"a short description", "shortDescription: Plan, permit and run maintenance of a cluster", `shortDescription: ""`, "shortDescription is not one line"},
		{"a short description of one line", "shortDescription: Plan, permit and run maintenance of a cluster", "shortDescription: |\n    Plan,\n    run", "shortDescription is not one line"},
		{"a homepage", "homepage: https", "homepage: http", `is no https address`},
		{"an address", "uri: https://github.com/", "uri: file:///", `is no https address`},
		{"a kind of archive", "linux_amd64.tar.gz", "linux_amd64.tar.xz", `is neither .tar.gz nor .zip`},
		{"a checksum of 64 digits", sum, `"00"`, `sha256 "00" is not 64 digits`},
		{"a checksum in lower case", sum, `"` + strings.Repeat("A", 64) + `"`, `is not 64 digits of lower-case hex`},
		{"an executable", "bin: kubectl-maint\n", "bin: ''\n", `bin "" is no file of the installation`},
		{"an executable inside", "bin: kubectl-maint\n", "bin: ../kubectl-maint\n", `bin "../kubectl-maint" is no file of the installation`},
		{"no .exe where it is not Windows", "bin: kubectl-maint\n", "bin: kubectl-maint.exe\n", `bin "kubectl-maint.exe" on linux`},
		{".exe on Windows", "bin: kubectl-maint.exe", "bin: kubectl-maint", `bin "kubectl-maint" on windows`},
		{"a selector by os and arch alone", "{os: linux, arch: amd64}", "{os: linux, arch: amd64, libc: musl}", `the selector speaks of "libc"`},
		{"a selector that selects", "{os: linux, arch: amd64}", "{os: plan9, arch: amd64}", "the selector selects no system"},
		{"no two for one system", "{os: linux, arch: arm64}", "{os: linux, arch: amd64}", "platforms[0] and [1] are both for linux/amd64"},
		{"no two where one has no arch", "{os: linux, arch: amd64}", "{os: linux}", "platforms[0] and [1] are both for linux/arm64"},
		{"no two by expressions", "{matchLabels: {os: linux, arch: amd64}}", "{matchExpressions: [{key: os, operator: In, values: [linux, darwin]}]}", "platforms[0] and [1] are both for linux/arm64"},
		{"files that are named", "[{from: kubectl-maint, to: .}, {from: LICENSE, to: .}, {from: THIRD_PARTY_LICENSES, to: .}]", "[]", "files is empty"},
		{"files with a source", "{from: kubectl-maint, to: .}", "{from: '', to: .}", `files: from "" is not in the archive`},
		{"files with a place", "{from: kubectl-maint, to: .}", "{from: kubectl-maint, to: ''}", `files: to "" is not in the installation`},
		{"files from inside", "{from: LICENSE, to: .}", "{from: ../LICENSE, to: .}", `files: from "../LICENSE" is not in the archive`},
		{"files to inside", "{from: LICENSE, to: .}", "{from: LICENSE, to: /etc}", `files: to "/etc" is not in the installation`},
		{"the executable is installed", "{from: kubectl-maint, to: .}, ", "", `bin "kubectl-maint" is not among the files`},
		{"the executable is installed where bin says", "{from: kubectl-maint, to: .}", "{from: kubectl-maint, to: bin}", `bin "kubectl-maint" is not among the files`},
		{"a licence is installed", "{from: LICENSE, to: .}, ", "", "no LICENSE is among the files"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			text := template(t)
			if !strings.Contains(text, c.was) {
				t.Fatalf("the manifest has no %q", c.was)
			}
			faults := strings.Join(faultsOf(strings.Replace(text, c.was, c.is, 1), "maint.yaml"), "\n")
			if !strings.Contains(faults, c.fault) {
				t.Errorf("it says %q, without %q", faults, c.fault)
			}
		})
	}
}

func TestAManifestWithoutPlatformsOrDescriptionIsRefused(t *testing.T) {
	text := template(t)
	head, _, _ := strings.Cut(text, "  platforms:")
	if faults := strings.Join(faultsOf(head+"  platforms: []\n", "maint.yaml"), "\n"); !strings.Contains(faults, "there are no platforms") {
		t.Errorf("it says %q", faults)
	}
	before, after, _ := strings.Cut(text, "  description: |")
	_, after, _ = strings.Cut(after, "  caveats:")
	if faults := strings.Join(faultsOf(before+"  caveats:"+after, "maint.yaml"), "\n"); !strings.Contains(faults, "there is no description") {
		t.Errorf("it says %q", faults)
	}
}

// What the manifest says of its archives is compared with what they hold.
func TestAnArchiveHasWhatKrewInstalls(t *testing.T) {
	bin, license := entry{"kubectl-maint", true, []byte("binary")}, entry{"LICENSE", false, []byte("licence")}
	const named = "files: [{from: kubectl-maint, to: .}, {from: LICENSE, to: .}]"
	for _, c := range []struct {
		name, files string
		entries     []entry
		fault       string // empty: there is none
	}{
		{"all that is named", named, []entry{bin, license}, ""},
		{"all that there is", "", []entry{bin, license}, ""},
		{"all by a pattern", "files: [{from: '*', to: .}]", []entry{bin, license}, ""},
		{"a folder is emptied by a pattern", "files: [{from: 'maint/*', to: .}]", []entry{{"maint/kubectl-maint", true, nil}, {"maint/LICENSE", false, nil}}, ""},
		{"a file that is named is not there", named, []entry{bin}, "holds no LICENSE"},
		{"no licence, and no files are named", "", []entry{bin}, "installs no LICENSE"},
		{"no licence among what a pattern takes", "files: [{from: '*', to: .}]", []entry{bin}, "installs no LICENSE"},
		{"no executable, and no files are named", "", []entry{license}, "holds no bin kubectl-maint"},
		{"the executable is in a folder", "", []entry{{"maint/kubectl-maint", true, nil}, license}, "holds no bin kubectl-maint"},
		{"the executable may not be run", named, []entry{{"kubectl-maint", false, nil}, license}, "kubectl-maint in maint.tar.gz is not executable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dist := t.TempDir()
			archive := filepath.Join(dist, "maint.tar.gz")
			if err := pack(archive, c.entries, time.Unix(0, 0)); err != nil {
				t.Fatal(err)
			}
			sum, err := checksum(archive)
			if err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(template(t), "  platforms:")
			text := head + "  platforms:\n  - selector: {matchLabels: {os: linux}}\n    uri: https://example.org/maint.tar.gz\n    sha256: \"" + sum + "\"\n    bin: kubectl-maint\n    " + c.files + "\n"
			file := filepath.Join(t.TempDir(), "maint.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			err = checkKrew(file, dist)
			if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("it says %v, want %q", err, c.fault)
			}
		})
	}
}

// A manifest is of the archives of its own release, and of no others.
func TestAManifestOfOtherArchivesIsRefused(t *testing.T) {
	bin, license := entry{"kubectl-maint", true, []byte("binary")}, entry{"LICENSE", false, []byte("licence")}
	for _, c := range []struct {
		name   string
		change func(archive string) error
		fault  string
	}{
		{"another binary", func(archive string) error {
			return pack(archive, []entry{{"kubectl-maint", true, []byte("another")}, license}, time.Unix(0, 0))
		}, "platforms[0]: sha256 of maint.tar.gz is "},
		{"the same files at another time", func(archive string) error {
			return pack(archive, []entry{bin, license}, time.Unix(1, 0))
		}, "platforms[0]: sha256 of maint.tar.gz is "},
		{"a byte more", func(archive string) error {
			text, err := os.ReadFile(archive)
			if err != nil {
				return err
			}
			return os.WriteFile(archive, append(text, 0), 0o600)
		}, "platforms[0]: sha256 of maint.tar.gz is "},
		{"no archive", os.Remove, "platforms[0]: open "},
	} {
		t.Run(c.name, func(t *testing.T) {
			dist := t.TempDir()
			archive := filepath.Join(dist, "maint.tar.gz")
			if err := pack(archive, []entry{bin, license}, time.Unix(0, 0)); err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(template(t), "  platforms:")
			template := filepath.Join(t.TempDir(), "krew.yaml")
			text := head + "  platforms:\n  - selector: {matchLabels: {os: linux}}\n    uri: https://example.org/maint.tar.gz\n    sha256: \"\"\n    bin: kubectl-maint\n"
			if err := os.WriteFile(template, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := writeKrew(template, "v1.2.3", dist); err != nil {
				t.Fatal(err)
			}
			if err := c.change(archive); err != nil {
				t.Fatal(err)
			}
			if err := checkKrew(filepath.Join(dist, "maint.yaml"), dist); err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("it says %v, want %q", err, c.fault)
			}
		})
	}
}
